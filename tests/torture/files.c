/* Reading, comparing and removing files of the trials. */
#define _GNU_SOURCE
#include "tests/torture/files.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *join(char path[TORTURE_PATH], const char *folder, const char *name) {
  int n = snprintf(path, TORTURE_PATH, "%s/%s", folder, name);
  if (n < 0 || n >= TORTURE_PATH) abort();
  return path;
}

char *file_read(const char *path, size_t *size) {
  struct stat s;
  *size = 0;
  FILE *from = fopen(path, "rb");
  if (from == NULL) return NULL;
  char *bytes = NULL;
  if (fstat(fileno(from), &s) == 0 && S_ISREG(s.st_mode)) {
    bytes = malloc((size_t)s.st_size + 1);
    if (bytes == NULL) abort();
    *size = fread(bytes, 1, (size_t)s.st_size, from);
    bytes[*size] = '\0';
  }
  fclose(from);
  return bytes;
}

int file_write(const char *path, const char *bytes, size_t size) {
  FILE *to = fopen(path, "wb");
  if (to == NULL) return -1;
  int good = fwrite(bytes, 1, size, to) == size;
  return fclose(to) == 0 && good ? 0 : -1;
}

int file_exists(const char *path) {
  return access(path, F_OK) == 0;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s, (void)type, (void)at;
  remove(path);
  return 0;
}

void folder_remove(const char *folder) {
  nftw(folder, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

/* --- snapshots --- */

static void collect(snapshot *s, const char *folder, const char *prefix) {
  DIR *all = opendir(folder);
  if (all == NULL) return;
  for (struct dirent *e; (e = readdir(all)) != NULL;) {
    char path[TORTURE_PATH], name[TORTURE_PATH];
    struct stat about;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    join(path, folder, e->d_name);
    snprintf(name, sizeof name, "%.200s%.255s", prefix, e->d_name);
    if (lstat(path, &about) != 0) continue;
    if (S_ISDIR(about.st_mode)) {
      strcat(name, "/");
      collect(s, path, name);
      continue;
    }
    file_copy *more = realloc(s->files, (s->n + 1) * sizeof *more);
    if (more == NULL) abort();
    s->files = more;
    file_copy *f = &s->files[s->n++];
    f->name = strdup(name);
    f->bytes = file_read(path, &f->size);
    if (f->bytes == NULL) f->bytes = calloc(1, 1);
    if (f->name == NULL || f->bytes == NULL) abort();
  }
  closedir(all);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const file_copy *)a)->name, ((const file_copy *)b)->name);
}

snapshot snapshot_take(const char *folder) {
  snapshot s = {0};
  collect(&s, folder, "");
  if (s.n > 0) qsort(s.files, s.n, sizeof *s.files, by_name);
  return s;
}

void snapshot_fini(snapshot *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->files[i].name), free(s->files[i].bytes);
  free(s->files);
  *s = (snapshot){0};
}

const file_copy *snapshot_find(const snapshot *s, const char *name) {
  for (size_t i = 0; i < s->n; ++i)
    if (strcmp(s->files[i].name, name) == 0) return &s->files[i];
  return NULL;
}

/* --- names and ends --- */

int is_temporary(const char *name) {
  static const char journal[] = "-journal"; /* of a study in the making */
  size_t n = strlen(name);
  if (n >= sizeof journal && strcmp(name + n - (sizeof journal - 1), journal) == 0)
    n -= sizeof journal - 1;
  size_t i = n;
  if (n < 6 || strncmp(name + n - 4, ".tmp", 4) != 0) return 0;
  for (i = n - 4; i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9';) --i;
  return i < n - 4 && i > 0 && name[i - 1] == '.';
}

static int ends_with(const file_copy *f, const char *end, size_t size) {
  return f->size >= size && memcmp(f->bytes + f->size - size, end, size) == 0;
}

int is_whole(const file_copy *f) {
  const char *dot = strrchr(f->name, '.');
  if (dot == NULL) return 1;
  if (strcmp(dot, ".pdf") == 0)
    return f->size > 8 && memcmp(f->bytes, "%PDF-", 5) == 0 && ends_with(f, "%%EOF\n", 6);
  if (strcmp(dot, ".png") == 0)
    return f->size > 8 && memcmp(f->bytes, "\x89PNG", 4) == 0 &&
           ends_with(f, "IEND\xae\x42\x60\x82", 8);
  if (strcmp(dot, ".json") == 0)
    return ends_with(f, "}\n", 2) || ends_with(f, "}", 1) || ends_with(f, "]\n", 2);
  if (strcmp(dot, ".svg") == 0) return ends_with(f, "</svg>\n", 7) || ends_with(f, "</svg>\n\n", 8);
  if (strcmp(dot, ".html") == 0) return ends_with(f, "</html>\n", 8);
  if (strcmp(dot, ".csv") == 0 || strcmp(dot, ".tsv") == 0 || strcmp(dot, ".gp") == 0 ||
      strcmp(dot, ".yaml") == 0)
    return ends_with(f, "\n", 1);
  return 1;
}
