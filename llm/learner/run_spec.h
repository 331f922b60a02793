/* The section `world` of a recipe of kind llm, read and checked: all settings of a transformer's
 * run that the section determines. Its memory is estimated with memory_need_.
 * Prefix: run_spec_. */
#ifndef GEPOLAB_LLM_LEARNER_RUN_SPEC_H
#define GEPOLAB_LLM_LEARNER_RUN_SPEC_H

#include "core/policy/algorithm.h"
#include "core/rl/evaluation.h"
#include "core/rl/optimizer_settings.h"
#include "core/rl/sampling_distribution.h"
#include "llm/model/model.h"
#include "llm/task/task.h"
#include "llm/text/tokenizer.h"

/* Supervised training before the first update. */
typedef struct warmup_spec {
  size_t steps, batch;
  optimizer_spec optimizer; /* its learning-rate warm-up and decay span `steps` */
  double until;             /* stop when the held-out score reaches this; NaN: never */
  size_t check_every;       /* steps between measurements of that score */
  int cache;                /* 1: store the result in the cache, or load it from there */
} warmup_spec;

typedef struct eval_spec {
  size_t prompts;      /* number of problems, the first ones of the held-out split */
  evaluation_spec how; /* greedy or sampled */
  size_t samples;      /* responses per problem; 1 if greedy */
} eval_spec;

/* The settings of one evaluation set. */
typedef struct set_spec {
  eval_spec eval;
  task *task;         /* owned; NULL: the set has the world's task */
  size_t max_tokens;  /* maximum length of a response */
  const cfg_node *at; /* its position in the recipe; valid while the recipe exists */
} set_spec;

enum { LLM_MOST_DEVICES = 64 };

typedef struct run_spec {
  /* the backend */
  backend_kind backend;
  number_type dtype;
  size_t devices;     /* devices, each with a complete copy of the model (data parallelism) */
  size_t slots;       /* responses decoded side by side; 0: as many as memory allows */
  size_t micro_batch; /* maximum packed tokens of a forward and backward, unless a single response
                         is longer */
  int recompute;
  int rounds_stochastically; /* 1: the bfloat16 copy of the parameters is rounded stochastically
                                after each update */
  int tf32;                  /* 1: CUDA may round the factors of float32 products to TF32 */
  /* the model and its tokens */
  model_config model;
  char *folder;          /* folder of the initial checkpoint; NULL: random parameters */
  char *folder_checksum; /* the checksum that it must have; NULL: any */
  tokenizer *tokenizer;
  char *tokenizer_path; /* NULL for a built-in tokenizer */
  char *before, *after; /* the template's text around a prompt */
  size_t around;        /* number of tokens of the template's text */
  int32_t begin;        /* token at the beginning of every sequence, -1: none */
  int32_t *stop; /* [n_stop] tokens that end a response; stop[0] ends the answers of the warm-up */
  size_t n_stop;
  /* the task and its evaluation */
  task *task;
  size_t max_tokens; /* maximum length of a response, including its stop token */
  sampling_spec sampling;
  kept_shape
      kept; /* shape of the sets of kept tokens that samplers record; no words: none are recorded */
  int kept_for_metrics; /* 1: sets are recorded, but no weights need them */
  char
      *reference; /* folder of the reference policy; NULL: the parameters before the first update */
  int has_reference; /* 1: the section names a reference, so kl_ref is measured with every algorithm
                      */
  warmup_spec warmup;
  eval_spec eval; /* the evaluation, and the defaults of its sets */
  evaluation_sets sets;
  set_spec *set;        /* [sets.n] settings of each evaluation set */
  uint64_t fingerprint; /* hash; differs between sections under which the same parameters are
                           different policies */
} run_spec;

/* Reads the sections (sampling may be NULL), config.json, tokenizer and data set, but no
 * parameters. Relative paths are tried relative to the recipe's file first. Release *s with
 * run_spec_fini() after success. Errors: GL_EINPUT with file:line:column. */
gl_status run_spec_init(run_spec *s, const cfg_node *world, const cfg_node *sampling, uint64_t seed,
                        gl_error *err);
void run_spec_fini(run_spec *s);

/* The number of the training problem that a uniform random number u in (0, 1) selects. */
uint64_t run_spec_pick(const run_spec *s, double u);

/* The tokens of a prompt as the model receives it: begin token, template, text. malloc'd into *out.
 * Errors: GL_EINPUT (no room for a response of max_tokens in the model's context). */
gl_status run_spec_prompt(const run_spec *s, const char *prompt, int32_t **out, size_t *n,
                          gl_error *err);
/* The tokens of an answer for supervised training, with its stop token. malloc'd into *out. Errors:
 * GL_EINPUT (more than max_tokens). */
gl_status run_spec_answer(const run_spec *s, const char *answer, int32_t **out, size_t *n,
                          gl_error *err);
/* 1 if token ends a response. */
int run_spec_is_stop(const run_spec *s, int32_t token);
/* The reward of a response. finished 1: its last token is a stop token. Errors: GL_EINPUT (tokens
 * outside the vocabulary). */
gl_status run_spec_score(const run_spec *s, const problem *p, const int32_t *token, size_t n,
                         int finished, double *score, gl_error *err);

/* --- evaluation sets --- */

/* The spec for evaluation set i: with its task, evaluation and maximum response length. Borrows
 * everything from s; do not release it. */
run_spec run_spec_of_set(const run_spec *s, size_t i);
/* Checks that the initial checkpoint's folder has the checksum stated in the recipe, if one is
 * stated. Errors: GL_EINPUT, GL_EIO. */
gl_status run_spec_check_start(const run_spec *s, gl_error *err);

/* --- memory --- */

/* Memory that a world of kind llm needs on each of its devices, computed before any is allocated.
 * All sizes are bytes of device memory. With the CPU backend they are bytes of this machine's
 * memory, of which each of several replicas may use an equal part. */
typedef struct memory_need {
  size_t parameters, gradients, moments, reference;
  size_t activations; /* of a micro-batch, as `stores` says, or of the prompts if those take more */
  size_t generation;  /* keys, values and logits, during generation */
  size_t scratch;     /* the backend's scratch memory, for both */
  size_t total;
  /* Memory that must stay free for a step beside everything that stays allocated: activations,
   * scratch memory and the cache for the planned number of sequences; and, if that number depends
   * on free memory, the part that generation leaves free (GENERATE_MARGIN). */
  size_t step;
  /* Versions held for a coupled clock are not in the total: bytes per version, and how many fit
   * beside a step. If the backend is a device, further ones go to host memory. */
  size_t one_version, versions;
  model_stores stores; /* what a forward before a backward is to store */
  /* the values from which it was computed */
  size_t micro_batch;     /* tokens: the recipe's, or the longest sequence if that is more */
  size_t slots, capacity; /* sequences side by side; positions per sequence */
  size_t devices;         /* number of devices; each needs this memory */
  size_t device_total, device_free;
} memory_need;

/* responses: per batch. trains: 1 for RL or warm-up, 0 if the model only generates. compares: 1 if
 * updates need a reference policy. */
gl_status memory_need_of(memory_need *out, const run_spec *spec, backend *b, size_t responses,
                         int trains, int compares, gl_error *err);
/* Checks that it fits. Errors: GL_ENOMEM (the message gives needed and free memory and the field to
 * lower). */
gl_status memory_need_check(const memory_need *n, const run_spec *spec, const backend *b,
                            gl_error *err);

/* --- between run_spec.c and spec_text.c --- */

/* Reads tokenizer (`named`, or the default if NULL), template, begin and stop tokens. */
gl_status run_spec_read_language(run_spec *s, const cfg_node *section, const cfg_node *named,
                                 const char *template, const cfg_node *stop, gl_error *err);

#endif
