/* The `world` section of a recipe where its kind is llm, read and checked: everything about a run
 * of the transformer that the section decides. Prefix: run_spec_. */
#ifndef GEPOLAB_LLM_LEARNER_RUN_SPEC_H
#define GEPOLAB_LLM_LEARNER_RUN_SPEC_H

#include "core/policy/algorithm.h"
#include "core/rl/evaluation_sets.h"
#include "core/rl/optimizer.h"
#include "core/rl/sampling.h"
#include "llm/model/model.h"
#include "llm/task/task.h"
#include "llm/text/tokenizer.h"

/* Supervised training before the first update. */
typedef struct warmup_spec {
  size_t steps, batch;
  optimizer_spec optimizer; /* its warmup and decay run over `steps` */
  double until;             /* stop once the held-out score is at least this; NaN: never */
  size_t check_every;       /* steps between looks at that score */
  int cache;                /* keep the result, and take it where it has been kept */
} warmup_spec;

typedef struct eval_spec {
  size_t prompts;      /* the first so many problems of the held-out split */
  evaluation_spec how; /* greedy or sampled */
  size_t samples;      /* responses to each problem; 1 where greedy */
} eval_spec;

/* An evaluation set: what it has of its own. */
typedef struct set_spec {
  eval_spec eval;
  task *task;         /* owned; NULL: the world's */
  size_t max_tokens;  /* of a response */
  const cfg_node *at; /* where the recipe says it; valid while the recipe is */
} set_spec;

enum { LLM_MOST_DEVICES = 64 };

typedef struct run_spec {
  /* where the arithmetic happens */
  backend_kind backend;
  number_type dtype;
  size_t devices;     /* that hold the whole model each and share its work (data parallel) */
  size_t slots;       /* responses decoded side by side; 0: as memory allows */
  size_t micro_batch; /* most packed tokens of a forward and backward, longer responses excepted */
  int recompute;
  int rounds_stochastically; /* the bfloat16 copy of the parameters, after each update */
  int tf32;                  /* CUDA may round the factors of float32 products to TF32 */
  /* the model and its language */
  model_config model;
  char *folder; /* of the checkpoint to start from; NULL: parameters are drawn */
  char *start;  /* the checksum that this folder must have; NULL: any */
  tokenizer *tokenizer;
  char *tokenizer_path; /* NULL for a built-in tokenizer */
  char *before, *after; /* the template around a prompt */
  size_t around;        /* their tokens */
  int32_t begin;        /* token in front of everything, -1: none */
  int32_t *stop;        /* [n_stop] tokens that end a response; stop[0] ends a taught answer */
  size_t n_stop;
  /* what is learned and how it is measured */
  task *task;
  size_t max_tokens; /* of a response, its stop token included */
  sampling_spec sampling;
  kept_shape kept; /* of the sets that samplers record of the tokens they kept; no words: none */
  int kept_for_metrics; /* no weights need them */
  char
      *reference; /* folder of the reference policy; NULL: the parameters before the first update */
  int has_reference; /* the section names a reference, so kl_ref is measured whatever the algorithm
                      */
  warmup_spec warmup;
  eval_spec eval; /* the evaluation, and what sets leave out */
  evaluation_sets sets;
  set_spec *set;        /* [sets.n] */
  uint64_t fingerprint; /* differs between sections under which the same parameters mean another
                           policy */
} run_spec;

/* Reads the sections (sampling may be NULL); paths are looked for beside the recipe's file first.
 * Reads config.json, tokenizer and data set, but no parameters. GL_EINPUT names file, line and
 * column of what is wrong. Release *s with run_spec_fini() after success. */
gl_status run_spec_init(run_spec *s, const cfg_node *world, const cfg_node *sampling, uint64_t seed,
                        gl_error *err);
void run_spec_fini(run_spec *s);

/* Number of the training problem that a uniform draw u in (0, 1) picks. */
uint64_t run_spec_pick(const run_spec *s, double u);

/* Tokens of a prompt as the model is given it: begin token, template, text. malloc'd into *out.
 * GL_EINPUT where no room for a response of max_tokens is left in the model's context. */
gl_status run_spec_prompt(const run_spec *s, const char *prompt, int32_t **out, size_t *n,
                          gl_error *err);
/* Tokens of an answer as the model is taught it, with its stop token. malloc'd into *out. GL_EINPUT
 * if they are more than max_tokens. */
gl_status run_spec_answer(const run_spec *s, const char *answer, int32_t **out, size_t *n,
                          gl_error *err);
/* 1 if token ends a response. */
int run_spec_is_stop(const run_spec *s, int32_t token);
/* Reward of a response's tokens; `finished`: its last one is a stop token. GL_EINPUT for tokens
 * outside the vocabulary. */
gl_status run_spec_score(const run_spec *s, const problem *p, const int32_t *token, size_t n,
                         int finished, double *score, gl_error *err);

/* --- evaluation sets (spec_sets.c) --- */

/* The spec as set i of the evaluation has it: its task, its evaluation, its longest response. It
 * borrows everything from s and is not released. */
run_spec run_spec_of_set(const run_spec *s, size_t i);

/* Reads the sets whose names s has, once all else of s is read. A set whose task the tokenizer
 * cannot write, or whose problems do not fit into the model's context, is GL_EINPUT at its place.
 */
gl_status run_spec_read_sets(run_spec *s, const cfg_node *world, uint64_t seed, gl_error *err);
void run_spec_free_sets(run_spec *s);
/* The kinds of evaluation that a transformer has; the first is the default. */
enum { LLM_EVALUATIONS = 2 };
extern const evaluation_kind llm_evaluations[LLM_EVALUATIONS];
/* Bounds the problems of an evaluation of that task by how many there are, and refuses none. */
gl_status run_spec_bound_evaluation(eval_spec *e, const task *of, const cfg_node *at,
                                    gl_error *err);
/* Refuses a longest response that the model's context has no room for behind the longest prompt of
 * the task in s, where the task says how long that is. */
/* The folder that a node names, in a run of that seed; malloc'd, NULL if memory is short. */
char *run_spec_folder(const cfg_node *at, uint64_t seed);
/* Whether the folder has the checksum that the recipe begins from, where it states one. GL_EINPUT,
 * GL_EIO. */
gl_status run_spec_check_start(const run_spec *s, gl_error *err);
/* Whether the folder's model, where gepolab wrote it and its tokens come from no file, was trained
 * with the tokens that the recipe has; GL_EINPUT at the place of `at`, which names the folder. */
gl_status run_spec_check_tokens(const run_spec *s, const cfg_node *at, gl_error *err);
gl_status run_spec_check_room(const run_spec *s, const cfg_node *at, gl_error *err);

/* --- between run_spec.c and spec_text.c --- */

/* Tokenizer (the one named, or NULL: the default), template, begin and stop tokens. */
gl_status run_spec_read_language(run_spec *s, const cfg_node *section, const cfg_node *named,
                                 const char *template, const cfg_node *stop, gl_error *err);

#endif
