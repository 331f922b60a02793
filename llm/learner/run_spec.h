/* The `world` section of a recipe where its kind is llm, read and checked: everything about a run
 * of the transformer that the section decides. Prefix: run_spec_. */
#ifndef GEPOLAB_LLM_LEARNER_RUN_SPEC_H
#define GEPOLAB_LLM_LEARNER_RUN_SPEC_H

#include "core/policy/algorithm.h"
#include "core/rl/evaluation.h"
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

/* --- evaluation sets --- */

/* The spec as set i of the evaluation has it: its task, its evaluation, its longest response. It
 * borrows everything from s and is not released. */
run_spec run_spec_of_set(const run_spec *s, size_t i);
/* Whether the folder that the parameters begin from has the checksum that the recipe states, where
 * it states one. GL_EINPUT, GL_EIO. */
gl_status run_spec_check_start(const run_spec *s, gl_error *err);

/* --- memory (memory_need.c) --- */

/* How much memory a world of kind llm needs on each of its devices, computed before any of it is
 * allocated. All sizes are bytes: of the device's memory, or with the CPU backend of this
 * machine's, of which each of several replicas may use its part. */
typedef struct memory_need {
  size_t parameters, gradients, moments, reference;
  size_t activations; /* of a micro-batch, or of prompts where that is more */
  size_t generation;  /* keys, values and logits, while responses are drawn */
  size_t scratch;     /* the backend's own, for both */
  size_t total;
  /* What must stay free for a step beside all that stays allocated: activations, scratch memory and
   * the cache of the planned number of sequences, doubled where that number is chosen by the memory
   * that is free, as generation then takes half of it (llm/model/generate.c). */
  size_t step;
  /* Versions held for a coupled clock are not in the total: bytes of each, and how many fit beside
   * a step. Where the backend is a device, further ones go into the host's memory. */
  size_t one_version, versions;
  /* what it was computed from */
  size_t micro_batch;     /* tokens: the recipe's, or the longest sequence where that is more */
  size_t slots, capacity; /* sequences side by side, positions of one */
  size_t devices;         /* that need this each */
  size_t device_total, device_free;
} memory_need;

/* responses: of a batch. trains: 1 for RL or warm-up, 0 where the model only generates. compares: 1
 * where updates need a reference policy. */
gl_status memory_need_of(memory_need *out, const run_spec *spec, backend *b, size_t responses,
                         int trains, int compares, gl_error *err);
/* GL_ENOMEM naming what is needed, what is there and what to lower, if it does not fit. */
gl_status memory_need_check(const memory_need *n, const run_spec *spec, const backend *b,
                            gl_error *err);

/* --- between run_spec.c and spec_text.c --- */

/* Tokenizer (the one named, or NULL: the default), template, begin and stop tokens. */
gl_status run_spec_read_language(run_spec *s, const cfg_node *section, const cfg_node *named,
                                 const char *template, const cfg_node *stop, gl_error *err);

#endif
