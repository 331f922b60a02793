/* Lists the logs in folders. */
#include "analysis/import/read.h"

#include "core/base/array.h"
#include "core/base/file.h"
#include "core/base/records.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST_FOLDER = 8, MOST_FILES = 20000 };

void folder_fini(folder_logs *f) {
  free(f->path);
  arena_fini(&f->memory);
  *f = (folder_logs){.n = 0};
}

/* --- names --- */

bool folder_name_is_table(const char *name) {
  const size_t n = file_uncompressed_length(name);
  return name_ends_with(name, n, ".csv") || name_ends_with(name, n, ".tsv") ||
         name_ends_with(name, n, ".jsonl");
}

bool folder_name_is_log(const char *name) {
  return folder_name_is_table(name) ||
         name_ends_with(name, file_uncompressed_length(name), ".json");
}

/* --- the files of a folder --- */

typedef struct found_files {
  const char **path; /* [n] */
  size_t n;
  arena *memory;
  gl_error *err;
} found_files;

static int is_not_hidden(const struct dirent *e) {
  return e->d_name[0] != '.';
}

static gl_status find_folder_files(found_files *to, const char *folder, int depth);

static gl_status folder_add_entry(found_files *to, const char *folder, const char *name,
                                  int depth) {
  struct stat there;
  const size_t size = strlen(folder) + strlen(name) + 2;
  char *path = ARENA_ARRAY(to->memory, char, size);
  if (!path) return gl_fail_memory(to->err, "files");
  snprintf(path, size, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
  if (lstat(path, &there) != 0) return GL_OK; /* removed in the meantime */
  if (S_ISDIR(there.st_mode)) return find_folder_files(to, path, depth + 1);
  if (S_ISLNK(there.st_mode) && stat(path, &there) != 0) return GL_OK;
  if (!S_ISREG(there.st_mode)) return GL_OK;
  if (to->n == MOST_FILES)
    return gl_fail(to->err, GL_EINPUT, "%.400s has more than %d files; name the logs", folder,
                   (int)MOST_FILES);
  const char **added = ARRAY_ADD(to->path, to->n);
  if (!added) return gl_fail_memory(to->err, "files");
  *added = path;
  return GL_OK;
}

static gl_status find_folder_files(found_files *to, const char *folder, int depth) {
  struct dirent **entry = NULL;
  if (depth > DEEPEST_FOLDER)
    return gl_fail(to->err, GL_EINPUT, "%.400s is nested deeper than %d folders; name the logs",
                   folder, (int)DEEPEST_FOLDER);
  const int n = scandir(folder, &entry, is_not_hidden, alphasort);
  if (n < 0) return gl_fail(to->err, GL_EIO, "%.400s cannot be read: %s", folder, strerror(errno));
  gl_status status = GL_OK;
  for (int i = 0; i < n; i++) {
    if (status == GL_OK) status = folder_add_entry(to, folder, entry[i]->d_name, depth);
    free(entry[i]);
  }
  free(entry);
  return status;
}

/* --- checkpoints --- */

/* Returns the number in a checkpoint's path, 20 of "out/checkpoint-20/trainer_state.json", and in
 * *length the length of the folder before it ("out"). Returns -1 for other paths. */
static long checkpoint_number(const char *path, size_t *length) {
  static const char state[] = "/trainer_state.json", folder[] = "checkpoint-";
  const size_t n = file_uncompressed_length(path);
  if (!name_ends_with(path, n, state)) return -1;
  size_t begin = n - (sizeof state - 1);
  const size_t end = begin;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  const size_t digits = begin + sizeof folder - 1;
  if (end <= digits || end - digits > 9 || strncmp(path + begin, folder, sizeof folder - 1) != 0 ||
      strspn(path + digits, "0123456789") != end - digits)
    return -1;
  *length = begin > 0 ? begin - 1 : 0;
  return strtol(path + digits, NULL, 10);
}

/* Whether the log of a checkpoint is contained in another one of the list: of a later checkpoint
 * beside it, or of the folder above. */
static bool is_earlier_checkpoint(const found_files *f, size_t i) {
  size_t length = 0, other = 0;
  const long own = checkpoint_number(f->path[i], &length);
  for (size_t k = 0; k < f->n && own >= 0; k++) {
    if (k == i || strncmp(f->path[k], f->path[i], length) != 0) continue;
    if (strncmp(f->path[k] + length, "/trainer_state.json", 19) == 0) return true;
    if (checkpoint_number(f->path[k], &other) > own && other == length) return true;
  }
  return false;
}

/* --- choosing --- */

static void leave_out(folder_logs *to, const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const size_t n = strlen(to->left_out), room = sizeof to->left_out - n;
  to->n_left_out++;
  if (n + strlen(name) + 8 < sizeof to->left_out)
    snprintf(to->left_out + n, room, "%s%s", n ? ", " : "", name);
  else if (n < 4 || strcmp(to->left_out + n - 3, "...") != 0)
    snprintf(to->left_out + n, room, "%s...", n ? ", " : "");
}

static gl_status kinds_of_files(read_kind *kind, const found_files *f, bool *any_log,
                                gl_error *err) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < f->n && status == GL_OK; i++) {
    kind[i] = READ_IS_OTHER;
    if (!folder_name_is_log(f->path[i]) || is_earlier_checkpoint(f, i)) continue;
    status = read_which(&kind[i], f->path[i], err);
    *any_log |= kind[i] != READ_IS_OTHER;
  }
  return status;
}

gl_status folder_list(folder_logs *out, const char *folder, read_kind kind, gl_error *err) {
  *out = (folder_logs){.n = 0};
  found_files f = {.memory = &out->memory, .err = err};
  bool any_log = false;
  size_t n_other_logs = 0;
  gl_status status = find_folder_files(&f, folder, 0);
  read_kind *kinds = status == GL_OK ? ARENA_ARRAY(&out->memory, read_kind, f.n) : NULL;
  if (status == GL_OK) status = arena_check(&out->memory, "files", err);
  if (status == GL_OK) status = kinds_of_files(kinds, &f, &any_log, err);
  for (size_t i = 0; i < f.n && status == GL_OK; i++) {
    const bool is_wanted = any_log ? kinds[i] == kind : folder_name_is_table(f.path[i]);
    n_other_logs += kinds[i] != READ_IS_OTHER && kinds[i] != kind;
    const char **added = is_wanted ? ARRAY_ADD(out->path, out->n) : NULL;
    if (is_wanted && !added) status = gl_fail_memory(err, "files");
    if (added)
      *added = f.path[i];
    else if (!is_wanted)
      leave_out(out, f.path[i]);
  }
  free(f.path);
  out->are_tables = !any_log;
  if (status == GL_OK && out->n == 0 && n_other_logs > 0)
    status = gl_fail(err, GL_EINPUT, "%.400s: the logs in this folder have %s", folder,
                     kind == READ_IS_ROWS
                         ? "series of steps and no times of requests; gepolab analyze reads them"
                         : "times of requests and no series of steps; gepolab fit reads them");
  else if (status == GL_OK && out->n == 0)
    status = gl_fail(err, GL_EINPUT,
                     "%.400s: there is no %s in this folder; name the file, or its format with "
                     "--log-format",
                     folder,
                     kind == READ_IS_ROWS ? "log of requests and no table"
                                          : "trainer's log and no table");
  return status;
}

/* --- rows --- */

/* Whether the paths differ in digits only: "a/sessions-r0.jsonl" and "a/sessions-r12.jsonl". */
static bool are_parts(const char *a, const char *b) {
  static const char digits[] = "0123456789";
  for (;; a++, b++) {
    a += strspn(a, digits), b += strspn(b, digits);
    if (*a != *b) return false;
    if (*a == '\0') return true;
  }
}

/* Reads files first .. last - 1 as one text. */
static gl_status rows_together(const folder_logs *f, size_t first, size_t last, const char *format,
                               rows_taker *take, void *context, gl_error *err) {
  char *all = NULL;
  size_t n = 0, room = 0;
  sheet rows = {.name = NULL};
  gl_status status = GL_OK;
  for (size_t i = first; i < last && status == GL_OK; i++) {
    char *text = NULL;
    size_t size = 0;
    status = csv_load(&text, &size, f->path[i], err);
    if (status == GL_OK && !ARRAY_RESERVE(all, room, n + size + 1))
      status = gl_fail_memory(err, "a log");
    if (status == GL_OK && size > 0) {
      memcpy(all + n, text, size);
      n += size;
      if (all[n - 1] != '\n' && i + 1 < last) all[n++] = '\n';
    }
    free(text);
  }
  if (status == GL_OK)
    status = read_rows_text(&rows, all ? all : "", n, f->path[first], format, err);
  if (status == GL_OK) status = take(context, &rows, err);
  sheet_fini(&rows);
  free(all);
  return status;
}

static gl_status rows_of_folder(const char *folder, const char *format, rows_taker *take,
                                void *context, gl_error *err) {
  folder_logs f;
  gl_status status = folder_list(&f, folder, READ_IS_ROWS, err);
  for (size_t i = 0, last; i < f.n && status == GL_OK; i = last) {
    last = i + 1;
    while (!f.are_tables && last < f.n && are_parts(f.path[last], f.path[i])) last++;
    status = rows_together(&f, i, last, format, take, context, err);
  }
  folder_fini(&f);
  return status;
}

gl_status read_rows_each(const char *path, const char *format, rows_taker *take, void *context,
                         gl_error *err) {
  sheet rows = {.name = NULL};
  if (file_is_folder(path)) return rows_of_folder(path, format, take, context, err);
  gl_status status = read_rows(&rows, path, format, err);
  if (status == GL_OK) status = take(context, &rows, err);
  sheet_fini(&rows);
  return status;
}
