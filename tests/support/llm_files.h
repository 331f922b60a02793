/* A folder for a suite's files, and files as bytes. */
#ifndef GEPOLAB_TESTS_SUPPORT_LLM_FILES_H
#define GEPOLAB_TESTS_SUPPORT_LLM_FILES_H

#include <stddef.h>

enum { FILES_PATH = 256 };

/* Makes a fresh folder; folder[FILES_PATH]. */
void files_make(char *folder);
/* Removes the folder with all files in it and in its folders. */
void files_remove(const char *folder);
/* folder/name; returns path. */
char *files_path(const char *folder, const char *name, char path[FILES_PATH]);
/* malloc'd bytes, NULL if there is no such file. */
unsigned char *files_read(const char *path, size_t *size);
void files_write(const char *path, const void *bytes, size_t size);
/* 1 if both exist and hold the same bytes. */
int files_equal(const char *a, const char *b);
/* How many entries a folder has. */
size_t files_count(const char *folder);

#endif
