/* Files and folders of the trials: reading, comparing, looking for what is half-written. */
#ifndef GEPOLAB_TESTS_TORTURE_FILES_H
#define GEPOLAB_TESTS_TORTURE_FILES_H

#include "tests/torture/torture.h"

typedef struct file_copy {
  char *name; /* relative to the folder */
  char *bytes;
  size_t size;
} file_copy;

typedef struct snapshot {
  file_copy *files; /* sorted by name */
  size_t n;
} snapshot;

/* All files below the folder, with their bytes. Release with snapshot_fini(). */
snapshot snapshot_take(const char *folder);
void snapshot_fini(snapshot *s);
/* NULL: there is none of that name. */
const file_copy *snapshot_find(const snapshot *s, const char *name);

/* Whether the name is one that a writer gives to a file in the making: NAME.PID.tmp. */
int is_temporary(const char *name);
/* Whether a figure's or table's file is whole, as far as its end tells. */
int is_whole(const file_copy *f);

/* malloc'd, with a zero behind it; NULL if it cannot be read. */
char *file_read(const char *path, size_t *size);
/* 0, or -1. */
int file_write(const char *path, const char *bytes, size_t size);
int file_exists(const char *path);
void folder_remove(const char *folder);
/* folder/name in path; returns path. */
const char *join(char path[TORTURE_PATH], const char *folder, const char *name);

#endif
