/* A folder for a suite's files, and files as bytes. */
#ifndef GEPOLAB_TESTS_SUPPORT_FILES_H
#define GEPOLAB_TESTS_SUPPORT_FILES_H

#include <stddef.h>
#include <stdio.h>

enum { FILES_PATH = 256 };

/* Makes a fresh folder; folder[FILES_PATH]. */
void files_make(char *folder);
/* Removes the folder with all files in it and in its folders. */
void files_remove(const char *folder);
/* folder/name; returns path. */
char *files_path(const char *folder, const char *name, char path[FILES_PATH]);
/* malloc'd bytes, NULL if there is no such file. */
unsigned char *files_read(const char *path, size_t *size);
/* The same as a text with a NUL behind it. */
char *files_text(const char *path);
void files_write(const char *path, const void *bytes, size_t size);
void files_put(const char *path, const char *text);
/* 1 if both exist and hold the same bytes. */
int files_equal(const char *a, const char *b);
/* The next number of a text; ends the program if there is none. */
double files_number(FILE *from);
/* How many entries a folder has; 0 if there is no such folder. */
size_t files_count(const char *folder);

#endif
