/* Tasks whose answers can be verified: what the transformer learner is trained and measured on.
 *
 * A task is a numbered set of problems, each a prompt, the answer used for supervised warm-up, and
 * a rule that scores a response. Problem i of a split is a pure function of (task section, seed,
 * split, i): generated tasks hold no list, so their splits are as long as anyone asks, and a small
 * one repeats itself. The held-out split shares no prompt with the training split: a hash of the
 * prompt decides, not the seed, so the split is the same under every seed.
 *
 *   addition   12+34=          46        modular    (3*5+2)%7=   3
 *   countdown  3,5,2=11:       3*2+5     sorting    31524=       12345
 *   parity     10110=          1         brackets   ([]{         })
 *   math       any text, from JSON Lines of prompt and answer (llm/answer/answer.h compares)
 *
 * experiments/RECIPES.md has the fields. A task is immutable after it is made; any number of
 * threads may use one. Prefix: task_. */
#ifndef GEPOLAB_LLM_TASK_TASK_H
#define GEPOLAB_LLM_TASK_TASK_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct task task;

/* A field of a kind's section, for who writes or stores one: `gepolab llm tasks` prints them. */
typedef struct task_field {
  const char *key;
  const char *values; /* what it may be */
  const char *normal; /* what it is where it is not given */
  const char *about;
  bool is_file; /* its value is the name of a file, which must find it from any working directory */
} task_field;

typedef enum task_split { TASK_TRAIN, TASK_HELD_OUT } task_split;

/* A problem's texts; owned, release with problem_fini(). */
typedef struct problem {
  char *prompt; /* what the model is given */
  char *answer; /* what it should say, as warm-up teaches it (without an end token) */
} problem;

/* Reads a `task` section: its kind and that kind's fields; every unknown key is an error, and so is
 * a split without problems. section may be NULL: all defaults. GL_EINPUT with file:line:column. The
 * caller frees *out; the section need not outlive it. */
gl_status task_new(task **out, const cfg_node *section, uint64_t seed, gl_error *err);
void task_free(task *t);
/* i-th kind's name, one line about it; NULL beyond the last. */
const char *task_kind_at(size_t i, const char **about);
/* The fields of a kind's section beside kind, held_out, reward and cut_off, up to one whose key is
 * NULL; NULL if there is no such kind. Static. */
const task_field *task_kind_fields(const char *kind);
/* A prompt and its answer, as such a task writes them; NULL if the kind's problems come from a
 * file, or there is no such kind. Static. */
const char *const *task_kind_example(const char *kind);

const char *task_kind(const task *t);
/* Distinct characters of every prompt and every right answer without white space, sorted, as UTF-8:
 * the alphabet of a char tokenizer. NULL for a task over free text (math). Borrowed. */
const char *task_alphabet(const task *t);
/* Problems of a split; SIZE_MAX / 2 or more means "as many as you like". The held-out split has
 * none where the section says held_out: 0. */
size_t task_size(const task *t, task_split split);
/* Longest prompt, and longest answer that a response needs room for, in characters, where the task
 * bounds them; 0: unknown (math). */
size_t task_max_prompt(const task *t);
size_t task_max_answer(const task *t);
/* Problem i (below task_size) of a split into *out, which the caller releases; on failure *out is
 * empty. The same i may hold the same prompt as another one. */
gl_status task_problem(const task *t, task_split split, uint64_t i, problem *out, gl_error *err);
void problem_fini(problem *p);
/* The reward of a response to p, in [0, 1]: 1 for a right answer. `finished` is false if the
 * response was cut off at the length limit before its end token; such a response is wrong unless
 * the section says `cut_off: score`. */
double task_score(const task *t, const problem *p, const char *response, bool finished);

/* The fields of the section `world.task`. */
extern const struct field_table llm_task_fields;

#endif
