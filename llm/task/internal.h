/* Shared by the files of this folder only: the table of a kind of task, texts, random draws. */
#ifndef GEPOLAB_LLM_TASK_INTERNAL_H
#define GEPOLAB_LLM_TASK_INTERNAL_H

#include "core/random/rng.h"
#include "llm/answer/value.h"
#include "llm/task/task.h"

#include <stdbool.h>

/* Generated texts are ASCII and fit here: the bounds of the fields see to it. */
enum { TASK_TEXT_SIZE = 1024 };
typedef struct task_text {
  char data[TASK_TEXT_SIZE]; /* NUL-terminated once something was put */
  size_t n;
} task_text;

void task_put(task_text *to, const char *text, size_t n);
void task_put_char(task_text *to, char c);
void task_put_number(task_text *to, int64_t x);

/* A problem as a kind draws it. Problems with the same key are the same problem in another form
 * (3+5 and 5+3) and go to the same split; without a key the prompt is the key. */
typedef struct task_sample {
  task_text prompt, answer, key;
} task_sample;

/* Random words in order, from the blocks that belong to one attempt at one problem. */
typedef struct task_source {
  rng_stream stream;
  uint64_t block;
} task_source;

static inline bool task_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Uniform on 0 .. n - 1, n below 2^52; takes one block. */
uint64_t task_below(task_source *s, uint64_t n);

/* The largest values of the kinds' fields. */
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
  const char *example[2];  /* a prompt and its answer; both NULL where a file has them */
  const task_field *field; /* its own fields; the last has key NULL */
  size_t parameters_size;  /* bytes of task.parameters */
  /* Reads the kind's own fields into the zeroed t->parameters; sets alphabet, max_prompt and
   * max_answer. Fails by r->status. */
  gl_status (*read)(task *t, cfg_reader *r, const cfg_node *section);
  /* Score of a trimmed response[n]. */
  double (*score)(const task *t, const problem *p, const char *response, size_t n);
  bool has_graded; /* score() knows partial credit */

  /* Either a kind whose problems are drawn: draws one; false if what was drawn is none and the next
   * attempt should be made. */
  bool (*draw)(const task *t, task_source *s, task_sample *out);

  /* or one whose problems are a list: how many a split has, the i-th of them (as task_problem), and
   * the release of what parameters own, which is also called after a read() that failed. */
  size_t (*size)(const task *t, task_split split);
  gl_status (*problem)(const task *t, task_split split, uint64_t i, problem *out, gl_error *err);
  void (*fini)(task *t);
} task_rules;

struct task {
  const task_rules *kind;
  uint64_t seed;
  double held_out; /* fraction of all problems that is held out */
  bool graded, score_cut_off;
  char alphabet[128];
  size_t max_prompt, max_answer;
  void *parameters; /* the kind's own struct, made and released by task.c */
};

/* The kinds, in the order in which they are listed. */
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
/* The digits that the numbers 0 .. largest need, and those of largest. */
void task_use_digits(task *t, uint64_t largest);
/* Decimal digits of x. */
size_t task_digits(uint64_t x);
/* A list of distinct words (or a lone word) of names[n]: the characters letters[i] of those named
 * into out[n], their number returned; all of them where the key is absent. */
size_t task_choices(cfg_reader *r, const char *key, const char *const *names, const char *letters,
                    size_t n, char *out);
/* length, and min_length, which is up to length and by default the same. */
void task_read_length(cfg_reader *r, size_t *length, size_t *min_length);

/* --- for the kinds' score() --- */

/* 1 if response is p's answer; where the section says graded, the fraction of positions that agree,
 * of as many as the longer one has. */
double task_score_positions(const task *t, const problem *p, const char *response, size_t n);

/* 1 if a problem with this text as its key is held out: a hash of the text against the share, so
 * that neither seed nor order matters. */
bool task_is_held_out(double share, const char *key, size_t n);

/* Orders two int64_t, for qsort(). */
int task_by_value(const void *a, const void *b);

/* --- expressions --- */

/* Arithmetic expressions as a model writes them: whole numbers, + - * /, parentheses and white
 * space; no signs in front of a number. Values are exact fractions. Whatever the text, reading it
 * takes time linear in its length and a bounded stack. */
enum { EXPRESSION_MAX_NUMBERS = 32, EXPRESSION_MAX_DEPTH = 32 };

typedef enum expression_status {
  EXPRESSION_OK,
  EXPRESSION_SYNTAX,   /* not an expression */
  EXPRESSION_DEEP,     /* parentheses deeper than EXPRESSION_MAX_DEPTH */
  EXPRESSION_MANY,     /* more than EXPRESSION_MAX_NUMBERS numbers */
  EXPRESSION_DIVISION, /* by zero */
  EXPRESSION_OVERFLOW  /* a number or a step that 64-bit fractions cannot hold */
} expression_status;

typedef struct expression {
  rational value;
  int64_t number[EXPRESSION_MAX_NUMBERS]; /* from left to right */
  size_t n_numbers;
} expression;

/* Reads all of text[size]. *out is meaningful only after EXPRESSION_OK. */
expression_status expression_read(expression *out, const char *text, size_t size);

/* --- data sets: math.c --- */

/* Prompts and answers from a JSON Lines file: one object a line, UTF-8, of which two keys are
 * taken. The prompt must be text; the answer may be a number, too, and is then kept as it is
 * written. Other keys may hold anything. Blank lines and a byte order mark are passed over.
 *
 * Errors name file, line and column (in characters): bytes that are no UTF-8, what is not
 * strict JSON, a line that is no object, a key that is missing, there twice, of another type or
 * empty, a NUL in a text, a line longer than DATASET_MAX_LINE, a file without an object.
 * Prefix: dataset_. */
enum { DATASET_MAX_LINE = 4 << 20 };

typedef struct dataset_row {
  char *prompt, *answer; /* owned by the dataset; never empty */
  size_t line;           /* of the file, from 1 */
} dataset_row;

/* One entry for each object, in the order of the file; release with dataset_fini(). */
typedef struct dataset {
  dataset_row *row;
  size_t n;
} dataset;

/* Reads the file at path. GL_EINPUT as above, or where it cannot be opened; GL_EIO if reading
 * fails. On failure *out is empty. */
gl_status dataset_read(dataset *out, const char *path, const char *prompt_key,
                       const char *answer_key, gl_error *err);
/* Same from memory; messages name the file `name`. */
gl_status dataset_parse(dataset *out, const char *text, size_t size, const char *name,
                        const char *prompt_key, const char *answer_key, gl_error *err);
void dataset_fini(dataset *d);

#endif
