/* Stored results: the numbers of a command's JSON output as a table that is kept with the documents
 * that cite them.
 *
 * NAME.tsv begins with lines "# recipe: …", commit, processor, command and date, without host names
 * or paths. Then it has a line "KEY<tab>VALUE" for each number, text and boolean of the document.
 * KEY is the path: members are joined by dots, and array elements are in brackets, identified by
 * their texts, their axes and identifying numbers: "cells[gepo,1800].last.iqm",
 * "theorem1.constants[16].expected", for a run after 128 updates "measurements[gepo,128,16].mse"; a
 * second element with the same name is "[gepo,64#1]". Arrays of numbers are not stored. */
#ifndef GEPOLAB_ANALYSIS_STORED_RESULTS_H
#define GEPOLAB_ANALYSIS_STORED_RESULTS_H

#include "core/base/arena.h"
#include "core/base/error.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

/* Provenance of the numbers. */
typedef struct stored_head {
  const char *recipe, *commit, *processor, *command, *date;
} stored_head;

typedef struct stored_entry {
  char *key, *value; /* value: for numbers the shortest form that reads back exactly */
} stored_entry;

typedef struct stored {
  char *name;          /* file name without folder and extension */
  stored_entry *entry; /* [n] sorted by key */
  size_t n;
  arena memory; /* of the texts */
} stored;

/* Writes the numbers of a document. keeps(key) returns whether a key is stored; NULL: all are.
 * Write errors are kept by the stream. Errors: GL_ENOMEM, GL_EINPUT (two entries with one key, or
 * nothing to store). */
gl_status stored_write(FILE *to, const stored_head *head, const cJSON *document,
                       int (*keeps)(void *self, const char *key), void *self, gl_error *err);

/* *is: 1 if the file has this format: it begins with "# recipe: ", and its first line without # has
 * two cells. Errors: GL_EIO (cannot be read). */
gl_status stored_recognise(const char *path, int *is, gl_error *err);
/* Reads a file; release with stored_fini(), also after an error. Errors: GL_ENOMEM, GL_EIO,
 * GL_EINPUT (with file and line). */
gl_status stored_read(stored *out, const char *path, gl_error *err);
void stored_fini(stored *s);
/* Returns the value of a key; NULL if there is none. */
const char *stored_value(const stored *s, const char *key);

/* Formats a value: ".3f", ".4g", ".0p" (per cent, without the sign), "s" (unchanged); allocated.
 * Errors: GL_ENOMEM, GL_EINPUT (unknown format, or a text where a number is required). */
gl_status stored_format(const char *value, const char *format, char **out, gl_error *err);

/* --- stored results in documents --- */
/* A Markdown document has a template, README.md.in, in which a number is written as
 *
 *   {{delay_sweep cells[gepo,1800].last.iqm .3f}}
 *
 * In LaTeX it is \result{delay_sweep}{cells[gepo,1800].last.iqm}{.3f}; a file with the definitions
 * is generated. */

/* Location of the results. */
typedef struct marker_source {
  const char *folder;
  const char *const *missing; /* [n_missing] results that may be missing; numbers become dashes */
  size_t n_missing;
} marker_source;

/* Fills the numbers into a template; returns the text, allocated, and the count in *n_numbers. name
 * is the file name in messages. Errors: GL_ENOMEM, GL_EINPUT with the line (malformed marker,
 * missing results or key, unknown format). */
gl_status markers_fill(char **out, const char *text, const char *name, const marker_source *from,
                       size_t *n_numbers, gl_error *err);

/* Writes a definition for each \result in the text of a LaTeX file. Errors as above; write errors
 * are kept by the stream. */
gl_status markers_define(FILE *to, const char *text, const char *name, const marker_source *from,
                         gl_error *err);

#endif
