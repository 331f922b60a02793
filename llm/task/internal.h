/* Shared by the files of this folder only: the table of a kind of task, texts, random numbers. */
#ifndef GEPOLAB_LLM_TASK_INTERNAL_H
#define GEPOLAB_LLM_TASK_INTERNAL_H

#include "core/random/rng.h"
#include "llm/answer/arithmetic.h"
#include "llm/task/task.h"

#include <stdbool.h>

/* Generated texts are ASCII and fit into this size, because the fields are limited. */
enum { TASK_TEXT_SIZE = 1024 };
typedef struct task_text {
  char data[TASK_TEXT_SIZE]; /* NUL-terminated after the first put */
  size_t n;
} task_text;

void task_put(task_text *to, const char *text, size_t n);
void task_put_char(task_text *to, char c);
void task_put_number(task_text *to, int64_t x);

/* A problem as its kind samples it. Problems with the same key are the same problem in different
 * notation (3+5 and 5+3) and belong to the same split. If the key is empty the prompt is the key.
 */
typedef struct task_sample {
  task_text prompt, answer, key;
} task_sample;

/* Random words in order, from the blocks of one attempt at one problem. */
typedef struct task_source {
  rng_stream stream;
  uint64_t block;
} task_source;

static inline bool task_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Uniform on 0 .. n - 1, n below 2^52; uses one block of the stream. */
uint64_t task_below(task_source *s, uint64_t n);

/* The maximum values of the kinds' fields. */
enum {
  TASK_MAX_DIGITS = 64,
  TASK_MAX_TERMS = 8,
  TASK_MAX_NUMBERS = 6,
  TASK_MAX_LARGEST = 999,
  TASK_MAX_SORTED = 200,
  TASK_MAX_VALUES = 1000,
  TASK_MAX_LENGTH = 500
};

/* One kind of task. A new kind is a file that defines one of these, and a line of TASK_KINDS. */
typedef struct task_rules {
  const char *name, *about;
  const char *example[2];  /* a prompt and its answer; both NULL if problems come from a file */
  const task_field *field; /* fields of this kind; the last has key NULL */
  size_t parameters_size;  /* size in bytes of task.parameters */
  /* Reads the kind's fields into the zeroed t->parameters; sets alphabet, max_prompt and
   * max_answer. Errors are in r->status. */
  gl_status (*read)(task *t, cfg_reader *r, const cfg_node *section);
  /* The score of a trimmed response[n]. */
  double (*score)(const task *t, const problem *p, const char *response, size_t n);
  bool has_graded; /* score() supports partial credit */

  /* For a kind with generated problems: samples one. Returns false if the attempt gave no problem
   * and the next one should be made. */
  bool (*draw)(const task *t, task_source *s, task_sample *out);

  /* For a kind with a list of problems: the size of a split; the i-th problem (as in task_problem);
   * and the release of memory owned by parameters, also called after a failed read(). */
  size_t (*size)(const task *t, task_split split);
  gl_status (*problem)(const task *t, task_split split, uint64_t i, problem *out, gl_error *err);
  void (*fini)(task *t);
} task_rules;

struct task {
  const task_rules *kind;
  uint64_t seed;
  double held_out; /* fraction of all problems that belong to the held-out split */
  bool graded, score_cut_off;
  char alphabet[128];
  size_t max_prompt, max_answer;
  void *parameters; /* the kind's struct, allocated and freed by task.c */
};

/* The kinds, in the order of listings. */
#define TASK_KINDS(KIND)                                                                           \
  KIND(addition)                                                                                   \
  KIND(modular)                                                                                    \
  KIND(countdown)                                                                                  \
  KIND(sorting)                                                                                    \
  KIND(parity)                                                                                     \
  KIND(brackets)                                                                                   \
  KIND(math)

#define TASK_KIND(name) extern const task_rules task_##name;
TASK_KINDS(TASK_KIND)
#undef TASK_KIND

/* --- for the kinds' read() --- */

/* Adds ASCII characters to the alphabet, which stays sorted and free of repeats. */
void task_use(task *t, const char *characters);
/* Adds the digits that the numbers 0 .. largest need. */
void task_use_digits(task *t, uint64_t largest);
/* Number of decimal digits of x. */
size_t task_digits(uint64_t x);
/* Reads a list of distinct words (or a single word) among names[n]. Writes their letters[i] into
 * out[n] and returns their number; all of them if the key is absent. */
size_t task_choices(cfg_reader *r, const char *key, const char *const *names, const char *letters,
                    size_t n, char *out);
/* Reads length, and min_length, which is at most length and has it as default. */
void task_read_length(cfg_reader *r, size_t *length, size_t *min_length);

/* --- for the kinds' score() --- */

/* 1 if response is p's answer. If the section requests graded rewards: the fraction of positions
 * that agree, relative to the longer one. */
double task_score_positions(const task *t, const problem *p, const char *response, size_t n);

/* True if a problem with this key is held out: a hash of the key is compared with the fraction, so
 * that neither seed nor order matters. */
bool task_is_held_out(double share, const char *key, size_t n);

/* --- expressions --- */

/* Arithmetic expressions written by a model: integers, + - * /, parentheses and white space; no
 * signs before numbers. Values are exact fractions. Reading any text takes linear time and a
 * bounded stack. */
enum { EXPRESSION_MAX_NUMBERS = 32, EXPRESSION_MAX_DEPTH = 32 };

typedef enum expression_status {
  EXPRESSION_OK,
  EXPRESSION_SYNTAX,   /* syntax error */
  EXPRESSION_DEEP,     /* more than EXPRESSION_MAX_DEPTH nested parentheses */
  EXPRESSION_MANY,     /* more than EXPRESSION_MAX_NUMBERS numbers */
  EXPRESSION_DIVISION, /* division by zero */
  EXPRESSION_OVERFLOW  /* a number or an intermediate value does not fit a 64-bit fraction */
} expression_status;

typedef struct expression {
  rational value;
  int64_t number[EXPRESSION_MAX_NUMBERS]; /* in the order of the text */
  size_t n_numbers;
} expression;

/* Reads all of text[size]. *out is valid only after EXPRESSION_OK. */
expression_status expression_read(expression *out, const char *text, size_t size);

/* --- data sets: math.c --- */

/* Prompts and answers from a JSON Lines file: one object per line, UTF-8, with two keys to read.
 * The prompt must be a string. The answer may also be a number, which is kept as written. Other
 * keys may have any value. Blank lines and a byte order mark are skipped.
 *
 * Errors name file, line and column (in characters): invalid UTF-8, invalid strict JSON, a line
 * that is not an object, a key that is missing, duplicate, of another type or empty, a NUL in a
 * text, a line longer than DATASET_MAX_LINE, a file without objects. Prefix: dataset_. */
enum { DATASET_MAX_LINE = 4 << 20 };

typedef struct dataset_row {
  char *prompt, *answer; /* owned by the dataset; not empty */
  size_t line;           /* line number in the file, from 1 */
} dataset_row;

/* One entry per object, in the file's order; release with dataset_fini(). */
typedef struct dataset {
  dataset_row *row;
  size_t n;
} dataset;

/* Reads the file at path. *out is empty after an error. Errors: GL_EINPUT (as above, or the file
 * cannot be opened), GL_EIO. */
gl_status dataset_read(dataset *out, const char *path, const char *prompt_key,
                       const char *answer_key, gl_error *err);
/* dataset_read() from memory; messages use `name` as the file's name. */
gl_status dataset_parse(dataset *out, const char *text, size_t size, const char *name,
                        const char *prompt_key, const char *answer_key, gl_error *err);
void dataset_fini(dataset *d);

#endif
