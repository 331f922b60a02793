/* A folder for the files of a test: reading, writing and comparing them. */
#include "tests/support/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void files_make(char *folder) {
  snprintf(folder, FILES_PATH, "/tmp/gepolab-llm-XXXXXX");
  if (mkdtemp(folder) == NULL) abort();
}

void files_remove(const char *folder) {
  DIR *open = opendir(folder);
  char path[FILES_PATH];
  struct stat about;
  for (struct dirent *e; open != NULL && (e = readdir(open)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    files_path(folder, e->d_name, path);
    if (lstat(path, &about) == 0 && S_ISDIR(about.st_mode))
      files_remove(path);
    else
      unlink(path);
  }
  if (open != NULL) closedir(open);
  rmdir(folder);
}

char *files_path(const char *folder, const char *name, char path[FILES_PATH]) {
  if (snprintf(path, FILES_PATH, "%s/%s", folder, name) >= FILES_PATH) abort();
  return path;
}

unsigned char *files_read(const char *path, size_t *size) {
  FILE *from = fopen(path, "rb");
  *size = 0;
  if (from == NULL) return NULL;
  fseek(from, 0, SEEK_END);
  long n = ftell(from);
  rewind(from);
  unsigned char *bytes = malloc((size_t)n + 1);
  if (bytes == NULL) abort();
  *size = fread(bytes, 1, (size_t)n, from);
  bytes[*size] = 0;
  fclose(from);
  return bytes;
}

char *files_text(const char *path) {
  size_t size;
  return (char *)files_read(path, &size);
}

void files_put(const char *path, const char *text) {
  files_write(path, text, strlen(text));
}

void files_write(const char *path, const void *bytes, size_t size) {
  FILE *to = fopen(path, "wb");
  if (to == NULL || fwrite(bytes, 1, size, to) != size || fclose(to) != 0) {
    perror(path);
    abort();
  }
}

int files_equal(const char *a, const char *b) {
  size_t n, m;
  unsigned char *x = files_read(a, &n), *y = files_read(b, &m);
  int same = x != NULL && y != NULL && n == m && memcmp(x, y, n) == 0;
  free(x);
  free(y);
  return same;
}

double files_number(FILE *from) {
  double value;
  if (fscanf(from, "%lf", &value) != 1) abort();
  return value;
}

size_t files_count(const char *folder) {
  size_t n = 0;
  DIR *open = opendir(folder);
  for (struct dirent *e; open != NULL && (e = readdir(open)) != NULL;)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  if (open != NULL) closedir(open);
  return n;
}
