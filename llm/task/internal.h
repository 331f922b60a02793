/* What the task_*.c files share: a kind's table, its parameters, texts and draws. Private to
 * llm/task*.c. */
#ifndef GEPOLAB_LLM_TASK_INTERNAL_H
#define GEPOLAB_LLM_TASK_INTERNAL_H

#include "core/random/rng.h"
#include "llm/answer/answer.h"
#include "llm/task/dataset.h"
#include "llm/task/task.h"

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
 * and go to the same split; no key: the prompt is its own. */
typedef struct task_sample {
  task_text prompt, answer, key;
} task_sample;

/* Words in order, from the blocks that belong to one attempt at one problem. */
typedef struct task_source {
  rng_stream stream;
  uint64_t block;
} task_source;

/* Uniform on 0 .. n - 1, n below 2^52; takes one block. */
uint64_t task_below(task_source *s, uint64_t n);

typedef struct task_rules {
  const char *name, *about;
  /* Reads the kind's own fields, sets alphabet, max_prompt and max_answer. */
  gl_status (*read)(task *t, cfg_reader *r, const cfg_node *section);
  /* Draws a problem; 0 if what was drawn is none and the next attempt should be made. NULL: the
   * kind is a list of problems. */
  int (*draw)(const task *t, task_source *s, task_sample *out);
  /* Score of a trimmed response[n]. */
  double (*score)(const task *t, const problem *p, const char *response, size_t n);
  int has_graded;
  /* Keys of its own fields whose values are names of files, up to a NULL; NULL: no field is one. */
  const char *const *file_keys;
} task_rules;

typedef struct task_problems {
  dataset rows[2]; /* by split */
  char *template_head, *template_tail;
  answer_pattern pattern;
} task_problems;

struct task {
  const task_rules *kind;
  uint64_t seed;
  double held_out; /* share of all problems that is held out */
  int graded, score_cut_off;
  char alphabet[128];
  size_t max_prompt, max_answer;
  union {
    struct {
      size_t digits, min_digits, terms;
      int reverse, pad;
      size_t answer_digits; /* of the largest sum */
    } addition;
    struct {
      int64_t modulus;
      size_t terms, n_operations;
      char operation[3];
    } modular;
    struct {
      size_t numbers, n_operations;
      int64_t largest, largest_target;
      int use_all;
      char operation[4];
    } countdown;
    struct {
      size_t length, min_length, values;
      int chain;
    } sequence; /* sorting and parity */
    struct {
      size_t length, min_length, depth, kinds, longest;
    } brackets;
    task_problems math;
  } as;
};

extern const task_rules task_addition, task_modular, task_countdown, task_sorting, task_parity,
    task_brackets, task_math;

/* --- for the kinds' read() ---------------------------------------------------------------------
 */

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
/* length (up to hi) and min_length (up to length, which is its default). */
void task_read_length(cfg_reader *r, size_t fallback, size_t hi, size_t *length,
                      size_t *min_length);

/* --- for the kinds' score() --------------------------------------------------------------------
 */

/* 1 if response is p's answer; where the section says graded, the share of positions that agree, of
 * as many as the longer one has. */
double task_score_positions(const task *t, const problem *p, const char *response, size_t n);

/* --- math (task_math.c) ------------------------------------------------------------------------
 */

gl_status task_math_problem(const task *t, task_split split, uint64_t i, problem *out,
                            gl_error *err);
void task_math_fini(task *t);

/* 1 if a problem with this text as its key is held out: a hash of the text against the share, so
 * that neither seed nor order matters. */
int task_is_held_out(double share, const char *key, size_t n);

#endif
