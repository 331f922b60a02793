/* Tasks with verifiable answers, on which the transformer learner is trained and evaluated.
 *
 * A task is a numbered set of problems. Each has a prompt, the answer for supervised warm-up, and a
 * rule that scores a response. Problem i of a split is a pure function of (task section, seed,
 * split, i). Generated tasks store no list, so their splits have any length, and a small one
 * repeats problems. The held-out split shares no prompt with the training split: a hash of the
 * problem decides, in a form without its notation (3+5 and 5+3 are one problem); the seed does not.
 *
 *   addition   12+34=          46        modular    (3*5+2)%7=   3
 *   countdown  3,5,2=11:       3*2+5     sorting    31524=       12345
 *   parity     10110=          1         brackets   ([]{         })
 *   math       any text, from JSON Lines of prompt and answer (llm/answer/answer.h compares)
 *
 * experiments/RECIPES.md describes the fields. A task is immutable after it is made; any number of
 * threads may use one. Prefix: task_. */
#ifndef GEPOLAB_LLM_TASK_TASK_H
#define GEPOLAB_LLM_TASK_TASK_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct task task;

/* A field of a kind's section, for documentation and for storing sections; `gepolab llm tasks`
 * prints them. */
typedef struct task_field {
  const char *key;
  const char *values; /* allowed values */
  const char *normal; /* the default */
  const char *about;
  bool is_file; /* its value is a file name, which must be valid in any working directory */
} task_field;

typedef enum task_split { TASK_TRAIN, TASK_HELD_OUT } task_split;

/* A problem's texts; owned, release with problem_fini(). */
typedef struct problem {
  char *prompt; /* the model's input */
  char *answer; /* the expected response, as warm-up teaches it (without end token) */
} problem;

/* Reads a `task` section: its kind and that kind's fields. section may be NULL: all defaults. The
 * caller frees *out; the section need not outlive it. Errors: GL_EINPUT with file:line:column
 * (unknown keys, splits without problems). */
gl_status task_new(task **out, const cfg_node *section, uint64_t seed, gl_error *err);
void task_free(task *t);
/* The name of the i-th kind, and one line about it; NULL if there are fewer. */
const char *task_kind_at(size_t i, const char **about);
/* The fields of a kind's section except kind, held_out, reward and cut_off, ending with one whose
 * key is NULL; NULL if there is no such kind. Static. */
const task_field *task_kind_fields(const char *kind);
/* An example of a prompt and its answer; NULL if the kind's problems come from a file or there is
 * no such kind. Static. */
const char *const *task_kind_example(const char *kind);

const char *task_kind(const task *t);
/* The distinct characters, except white space, of every prompt and every correct answer, sorted, in
 * UTF-8: the alphabet for a char tokenizer. NULL for a task over free text (math). Borrowed. */
const char *task_alphabet(const task *t);
/* Number of problems of a split; SIZE_MAX / 2 or more means unlimited. With held_out: 0 the
 * held-out split is empty. */
size_t task_size(const task *t, task_split split);
/* Maximum length in characters of a prompt, and of an answer that a response must have room for; 0:
 * unknown (math). */
size_t task_max_prompt(const task *t);
size_t task_max_answer(const task *t);
/* Makes problem i (below task_size) of a split in *out, which the caller frees; *out is empty after
 * an error. Different i may give the same prompt. */
gl_status task_problem(const task *t, task_split split, uint64_t i, problem *out, gl_error *err);
void problem_fini(problem *p);
/* The reward of a response to p, in [0, 1]: 1 for a correct answer. finished is false if the
 * response was cut off at the length limit before its end token. Such a response is wrong unless
 * the section has `cut_off: score`. */
double task_score(const task *t, const problem *p, const char *response, bool finished);

/* The fields of the section `world.task`. */
extern const struct field_table llm_task_fields;

#endif
