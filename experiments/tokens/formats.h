/* The formats of token-level logs, in the order in which they are tried. To add a format, write
 * NAME.c with the struct token_format_NAME and add its name to TOKEN_FORMATS; trainer_formats.c has
 * examples. Private to this folder. */
#ifndef GEPOLAB_EXPERIMENTS_TOKENS_FORMATS_H
#define GEPOLAB_EXPERIMENTS_TOKENS_FORMATS_H

#include "core/base/error.h"
#include "experiments/tokens/batch.h"
#include "experiments/tokens/scan.h"

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_FORMATS(F) F(gepolab) F(nemo_rl) F(prime_rl) F(areal)

typedef struct token_line {
  const char *text; /* [size], then NUL */
  size_t size;
  const char *file; /* name for messages; lives as long as the log */
  size_t number;    /* line number in the file, from 1 */
} token_line;

typedef struct token_field {
  const char *name;
  bool needed;
} token_field;

typedef struct token_format {
  const char *name, *title;
  const char *writer; /* trainer and version whose source was read, for messages */
  /* The first line of a file has this format if it has `least` of these keys. Ends with NULL. */
  const char *const *marks;
  size_t least;
  bool drops; /* 1: the trainer drops responses without trained tokens; 0: it may train them with
                 another loss */
  /* Folder that the trainer writes its evaluations to, in the same format: its files are skipped in
   * the folders given. NULL: there is none. */
  const char *evaluation;
  /* Adds the line to the batch, or sets *next, without adding it, if the line begins another
   * batch. */
  gl_status (*read)(token_builder *b, const token_line *line, bool *next, gl_error *err);
  /* Checks a batch before its responses are arranged; NULL: nothing to check. */
  gl_status (*check)(const token_builder *b, gl_error *err);
} token_format;

#define TOKEN_FORMAT_DECLARED(name) extern const token_format token_format_##name;
TOKEN_FORMATS(TOKEN_FORMAT_DECLARED)

/* Finds the fields in the line: piece[i] is the value of field[i]; text NULL: absent. Other keys
 * are noted as unread. Errors: GL_EINPUT: damaged JSON, a field given twice, or a needed field that
 * is missing, with the nearest key of the line. */
gl_status token_find_fields(token_builder *b, const token_format *format, const token_line *line,
                            const token_field *field, scan_piece *piece, size_t n, gl_error *err);
bool token_is_key(scan_piece key, const char *name);
/* Returns GL_EINPUT with the position of a byte of the line: "FILE:LINE:COLUMN: …". */
gl_status token_refuse(const token_line *line, const char *at, gl_error *err, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));

/* --- lists of tokens; the builder has the response, and b->mask is the loss mask --- */

typedef struct token_tokens {
  const char *mask_name; /* field of the loss mask, for messages */
  double length;         /* tokens without padding; NaN: the list is not padded */
  size_t n_list, n;      /* n_list: elements of the mask; n: trained tokens among them */
} token_tokens;

/* Reads a finite number. */
gl_status token_read_finite(const token_line *line, const char *name, scan_piece v, double *out,
                            gl_error *err);
/* Reads the loss mask, and counts the prompt, masked and trained tokens of the response. */
gl_status token_read_mask(token_builder *b, token_tokens *t, const token_line *line, scan_piece v,
                          gl_error *err);
/* Counts the trained tokens again, after b->mask has changed. */
void token_count(token_builder *b, token_tokens *t);
/* Sets the key of the response's group to the hash of the tokens before the first trained one. */
gl_status token_read_prompt(token_builder *b, const token_tokens *t, const token_line *line,
                            const char *name, scan_piece v, gl_error *err);
/* Reads the numbers of the trained tokens, which must be finite, to out[t->n]. */
gl_status token_read_numbers(token_builder *b, const token_tokens *t, const token_line *line,
                             const char *name, scan_piece v, double *out, gl_error *err);
/* Reads the log-probabilities of the trained tokens to a column. */
gl_status token_read_logs(token_builder *b, const token_tokens *t, const token_line *line,
                          const char *name, scan_piece v, token_column c, gl_error *err);
/* Reads the advantages of the trained tokens, and sets the response's advantage to their mean. */
gl_status token_read_advantages(token_builder *b, const token_tokens *t, const token_line *line,
                                scan_piece v, gl_error *err);
/* Workspace for n numbers, valid until the next call. */
double *token_workspace(token_builder *b, size_t n);

#endif
