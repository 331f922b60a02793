/* The cache of keys and values as the two files see it that work on it: cache.c (prompts, single
 * decodes and draws) and steps.c (steps that feed themselves). */
#ifndef GEPOLAB_LLM_MODEL_CACHE_INTERNAL_H
#define GEPOLAB_LLM_MODEL_CACHE_INTERNAL_H

#include "llm/model/internal.h"

/* Graphs by size, of 2^i rows; and steps that may be under way at a time. */
enum { MODEL_GRAPHS = 32, MODEL_STEPS = 2 };

/* A step of 2^i rows: its kernels are recorded once (a CUDA graph) and replayed. */
typedef struct recorded_step {
  backend_graph *graph;
  const struct model_values *values; /* whose weights it reads */
  int warm; /* as many rows have run before: the backend has the scratch memory they need */
} recorded_step;

/* What the device reads at a step's beginning and renews at once for the next (operations.h:
 * embed_next), and the host's copy of it. Arrays [most]. */
typedef struct step_rows {
  uint64_t *index;
  int32_t *source, *slot, *position;
} step_rows;

typedef struct model_steps {
  size_t ahead; /* steps that run beside the host; 0: a step is over when model_step() returns */
  size_t started, taken;
  size_t rows[MODEL_STEPS], all[MODEL_STEPS]; /* of step i, at i % MODEL_STEPS; all: with fillers */
  /* With ahead > 0: */
  step_rows device, host; /* one block each, index first; host: what the device has when all steps
                             started so far are over */
  int same;               /* the device has what `host` says */
  int fed;                /* the cache's `drawn` is, or will be, that of the step started last */
  model_draws draws;      /* that the graphs were recorded with */
  backend_fetch *fetch[MODEL_STEPS];
  recorded_step recorded[MODEL_GRAPHS];
  /* With ahead = 0, what the last step drew and decoded, host [most]: */
  int32_t *token;
  double *logq, *logq_truncated;
} model_steps;

struct model_cache {
  model *m;
  size_t slots, capacity, most; /* most: rows of a step, at least slots */
  size_t filled;                /* rows of logits that hold something */
  layer_cache *layer;           /* [layers] */
  layer_activations rows;       /* decode's, shared by all layers */
  void *branch, *last, *last_rstd;
  int32_t *token, *slot, *position; /* backend, [most] each, one block, token first */
  uint64_t *index;                  /* backend [most] */
  int32_t *row_of;                  /* backend [most] */
  int32_t *drawn;                   /* backend [most]; what a draw gives is downloaded in one: */
  void *logq;                       /* M [2 rows]: raw, then truncated, not far behind drawn */
  void *logits, *gathered;          /* M [most, vocabulary] */
  uint32_t *kept; /* backend [most, kept_words], made for the first draw with sets */
  size_t kept_words;
  uint64_t *context; /* backend [most], made for the first draw of distorted logits */
  void *block;
  int32_t *prompt_slot; /* backend memory: slot of each of a prefill's tokens; only grows */
  size_t prompt_room;
  int32_t *host; /* [3 most], also row_of */
  uint64_t *host_index;
  void *host_drawn; /* what lies between drawn and logq's end */
  model_steps steps;
};

/* Bytes of a block of step_rows; and its arrays, cut from such a block. */
size_t step_rows_bytes(size_t most);
step_rows step_rows_cut(void *block, size_t most);

/* Host memory and fetches of the steps; and their release, also of what a failure left. */
gl_status model_steps_init(model_cache *k, gl_error *err);
void model_steps_fini(model_cache *k);

/* Runs the layers, the last norm and the output layer over decode's activations, whose `in` has the
 * tokens' embeddings: rows at position[r] of slot[r], in backend memory. */
void model_cache_run(model_cache *k, const int32_t *slot, const int32_t *position, size_t rows);
/* Bytes from `drawn` to the end of the log-probabilities of that many rows. */
size_t model_drawn_bytes(const model_cache *k, size_t rows);
/* Reads what lies there: the first `rows` of a draw of `all` rows. */
void model_drawn_get(const model_cache *k, const void *drawn, size_t rows, size_t all,
                     int32_t *token, double *logq, double *logq_truncated);
/* GL_EINTERNAL for a place that is not in the cache. */
gl_status model_cache_check(const model_cache *k, int32_t token, int32_t slot, int32_t position,
                            gl_error *err);

#endif
