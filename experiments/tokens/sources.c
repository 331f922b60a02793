/* Lists the files of a log. */
#include "experiments/tokens/sources.h"

#include "experiments/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 32 };
static const char what[] = "the files of a log";

static bool name_ends_with(const char *name, size_t n, const char *ending) {
  const size_t k = strlen(ending);
  return n > k && memcmp(name + n - k, ending, k) == 0;
}

static bool is_log_name(const char *name) {
  size_t n = strlen(name);
  if (name_ends_with(name, n, ".gz"))
    n -= 3;
  else if (name_ends_with(name, n, ".zst"))
    n -= 4;
  return name[0] != '.' && (name_ends_with(name, n, ".jsonl") || name_ends_with(name, n, ".json"));
}

static size_t digits_at_front(const char *text) {
  return strspn(text, "0123456789");
}

/* Numbers within the names by value: step_2 before step_10. */
static int natural_order(const char *a, const char *b) {
  while (*a != '\0' && *b != '\0') {
    size_t n = digits_at_front(a), m = digits_at_front(b);
    if (n == 0 || m == 0) {
      if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
      ++a, ++b;
      continue;
    }
    while (n > 1 && *a == '0') ++a, --n;
    while (m > 1 && *b == '0') ++b, --m;
    const int order = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
    if (order != 0) return order;
    a += n, b += m;
  }
  return *a != '\0' ? 1 : *b != '\0' ? -1 : 0;
}

static int by_name(const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  const int order = natural_order(x, y);
  return order != 0 ? order : strcmp(x, y);
}

typedef struct names {
  char **name;
  size_t n;
} names;

static void names_fini(names *l) {
  for (size_t i = 0; i < l->n; ++i) free(l->name[i]);
  free(l->name);
}

static gl_status list_names(names *out, const char *folder, gl_error *err) {
  *out = (names){.n = 0};
  DIR *d = opendir(folder);
  if (d == NULL)
    return gl_fail(err, GL_EIO, "%s: the folder cannot be read: %s", folder, strerror(errno));
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.') *MUST_ADD(out->name, out->n, what) = must_copy(e->d_name, what);
  closedir(d);
  if (out->n > 0) qsort(out->name, out->n, sizeof *out->name, by_name);
  return GL_OK;
}

static void add_file(token_sources *s, char *path, bool in_folder) {
  *MUST_ADD(s->file, s->n, what) = (token_source){.path = path, .in_folder = in_folder};
}

static gl_status add_folder(token_sources *s, const char *folder, int depth, gl_error *err) {
  names list;
  if (depth > MOST_DEPTH)
    return gl_fail(err, GL_EINPUT, "%s: folders are nested more than %d deep", folder, MOST_DEPTH);
  gl_status status = list_names(&list, folder, err);
  for (size_t i = 0; i < list.n && status == GL_OK; ++i) {
    char *path = must_textf(what, "%s/%s", folder, list.name[i]);
    struct stat about;
    const bool known = lstat(path, &about) == 0;
    if (known && S_ISDIR(about.st_mode)) {
      status = add_folder(s, path, depth + 1, err);
      free(path);
    } else if (is_log_name(list.name[i]) && stat(path, &about) == 0 && S_ISREG(about.st_mode)) {
      add_file(s, path, true);
    } else {
      free(path);
    }
  }
  names_fini(&list);
  return status;
}

gl_status token_sources_list(token_sources *s, const char *const *paths, size_t n, gl_error *err) {
  gl_status status = GL_OK;
  *s = (token_sources){.n = 0};
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    const size_t before = s->n;
    struct stat about;
    if (strcmp(paths[i], "-") == 0 || stat(paths[i], &about) != 0 || !S_ISDIR(about.st_mode)) {
      add_file(s, must_copy(paths[i], what), false);
      continue;
    }
    status = add_folder(s, paths[i], 0, err);
    if (status == GL_OK && s->n == before)
      status = gl_fail(err, GL_EINPUT,
                       "%s: there is no .jsonl or .json file in this folder; give the folder that "
                       "the trainer writes its logs to (the .pt files of slime and miles are read "
                       "in Python: gepolab.write_log(gepolab.read_dump(\"dump\"), \"run.jsonl\"))",
                       paths[i]);
  }
  return status;
}

void token_sources_fini(token_sources *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->file[i].path);
  free(s->file);
  *s = (token_sources){.n = 0};
}
