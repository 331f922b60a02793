/* Stored results: the numbers of a command's JSON as a table that is kept beside the documents that
 * cite them.
 *
 * A file NAME.tsv has a head of lines "# recipe: …", commit, processor, command and date, and no
 * name of a host or a path; then a line "KEY<tab>VALUE" for each number, text and truth value of
 * the document. KEY is the path to it: members are joined by dots, elements of arrays stand in
 * brackets, known by their texts, their axes and what numbers tell them apart:
 * "cells[gepo,1800].last.iqm", "theorem1.constants[16].expected", of a run after 128 updates
 * "measurements[gepo,128,16].mse"; a second one of the same name is "[gepo,64#1]". Arrays of
 * numbers are not kept.
 */
#ifndef GEPOLAB_ANALYSIS_STORED_H
#define GEPOLAB_ANALYSIS_STORED_H

#include "core/base/arena.h"
#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

/* How the numbers came about. */
typedef struct stored_head {
  const char *recipe, *commit, *processor, *command, *date;
} stored_head;

typedef struct stored_entry {
  char *key, *value; /* numbers in the shortest form that reads back */
} stored_entry;

typedef struct stored {
  char *name;          /* of the file without its folder and ending */
  stored_entry *entry; /* [n] by key */
  size_t n;
  arena memory; /* of the texts */
} stored;

/* Writes the numbers of a document. keeps (NULL: all) returns which keys are kept. GL_EINPUT where
 * two have one key or nothing is kept; trouble with the stream stays there. */
gl_status stored_write(FILE *to, const stored_head *head, const cJSON *document,
                       int (*keeps)(void *self, const char *key), void *self, gl_error *err);

/* *is: whether the file is one of these: it begins with "# recipe: ", and its first line
 * without # has two cells. GL_EIO if it cannot be read. */
gl_status stored_recognise(const char *path, int *is, gl_error *err);
/* Reads a file; release with stored_fini() in any case. GL_EIO, GL_EINPUT with file and line. */
gl_status stored_read(stored *out, const char *path, gl_error *err);
void stored_fini(stored *s);
/* The value of a key; NULL if there is none. */
const char *stored_value(const stored *s, const char *key);

/* The value as a format writes it: ".3f", ".4g", ".0p" (per cent, without the sign), "s" (as it
 * is); on the heap. GL_EINPUT for another format, and for a text where a number is asked for. */
gl_status stored_format(const char *value, const char *format, char **out, gl_error *err);

/* --- stored results in documents --- */
/*
 *
 * A Markdown document has a template beside it, README.md.in, where a number is
 *
 *   {{delay_sweep cells[gepo,1800].last.iqm .3f}}
 *
 * In LaTeX it is \result{delay_sweep}{cells[gepo,1800].last.iqm}{.3f}, for which a file of
 * definitions is written.
 */

/* Where the results are. */
typedef struct marker_source {
  const char *folder;
  const char *const *missing; /* [n_missing] names of results that need not exist: their numbers
                                 become dashes */
  size_t n_missing;
} marker_source;

/* The text of a template with its numbers filled in, on the heap; *n_numbers of them. name is the
 * name of the file in errors: GL_EINPUT with its line for a malformed marker, results or a key that
 * do not exist, and an unknown format. */
gl_status markers_fill(char **out, const char *text, const char *name, const marker_source *from,
                       size_t *n_numbers, gl_error *err);

/* Writes a definition for each \result of a LaTeX file's text. Errors as above; trouble with the
 * stream stays there. */
gl_status markers_define(FILE *to, const char *text, const char *name, const marker_source *from,
                         gl_error *err);

#endif
