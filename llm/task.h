/* Tasks whose answers can be verified: what the transformer learner is trained and measured on.
 *
 * A task is a numbered set of problems, each a prompt, the answer used for supervised warm-up, and
 * a rule that scores a response. Problem i of a split is a pure function of (task section, seed,
 * split, i): generated tasks hold no list, so their training split is as long as anyone asks. The
 * held-out split shares no prompt with the training split.
 *
 *   addition, modular, countdown, sorting, parity, brackets   generated
 *   math                                                      JSON Lines of prompt and answer
 *
 * Prefix: task_. */
#ifndef GEPOLAB_LLM_TASK_H
#define GEPOLAB_LLM_TASK_H

#include "core/config.h"
#include "core/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct task task;

typedef enum task_split { TASK_TRAIN, TASK_HELD_OUT } task_split;

/* A problem's texts; owned, release with problem_fini(). */
typedef struct problem {
  char *prompt; /* what the model is given */
  char *answer; /* what it should say, as warm-up teaches it (without an end token) */
} problem;

/* Reads a `task` section: its kind and that kind's fields; every unknown key is an error. */
gl_status task_new(task **out, const cfg_node *section, uint64_t seed, gl_error *err);
void task_free(task *t);
/* 1 if `kind` names a task. */
int task_is_kind(const char *kind);
/* i-th kind's name, one line about it; NULL beyond the last. */
const char *task_kind_at(size_t i, const char **about);

const char *task_kind(const task *t);
/* Distinct characters of every prompt and answer, sorted, as UTF-8: the alphabet of a char
 * tokenizer. NULL for a task over free text (math). Borrowed. */
const char *task_alphabet(const task *t);
/* Problems of a split; SIZE_MAX / 2 or more means "as many as you like". */
size_t task_size(const task *t, task_split split);
/* Longest prompt and answer in characters, where the task bounds them; 0: unknown. */
size_t task_max_prompt(const task *t);
size_t task_max_answer(const task *t);
/* Problem i (below task_size) of a split. */
gl_status task_problem(const task *t, task_split split, uint64_t i, problem *out, gl_error *err);
void problem_fini(problem *p);
/* The reward of a response to p, in [0, 1]: 1 for a right answer. `finished` is 0 if the response
 * was cut off at the length limit before its end token; such a response is wrong unless the
 * section says `cut_off: score`. */
double task_score(const task *t, const problem *p, const char *response, int finished);

#endif
