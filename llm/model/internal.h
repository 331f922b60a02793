/* Shared by the files of this folder: where parameters are stored, and the memory of a forward and
 * backward pass over packed tokens.
 *
 * Shapes are [rows, columns] of row-major matrices. A matrix over packed tokens has one row per
 * token, `rows` in all. T is the type in which a forward computes (float32, bfloat16 or float64). M
 * is the master type of parameters, gradients and statistics (llm/backend/backend.h). */
#ifndef GEPOLAB_LLM_MODEL_INTERNAL_H
#define GEPOLAB_LLM_MODEL_INTERNAL_H

#include "llm/model/model.h"

/* Limits of a configuration: of each of its sizes, and of the number of layers. */
enum { MODEL_MAX_SIZE = 1 << 30, MODEL_MAX_LAYERS = 4096 };

/* *sum += a * b * c; returns 0 on overflow. */
int model_add_product(size_t *sum, size_t a, size_t b, size_t c);

/* --- parameters --- */

/* Where each group of a layer's parameters starts, as an index into the array of all parameters.
 * qkv holds q_proj, k_proj and v_proj in this order; gate_up holds gate_proj and up_proj. */
typedef struct layer_places {
  size_t qkv, o, gate_up, down;
  size_t input_norm, post_norm, q_norm, k_norm, qkv_bias; /* SIZE_MAX: the type has none */
} layer_places;

/* Values of all n parameters. */
struct model_values {
  void *master; /* M [n], updated by the optimiser; NULL in a copy of the values */
  void *copy;   /* T [n], read by a forward; the same memory as master if M is T */
  void *aside;  /* T [n] in host memory (model_values_put_aside); then copy is NULL */
};

/* --- memory of a pass --- */
/* Takes buffers one after the other from one block. With base NULL the same code measures the
 * block, so planned and actual sizes cannot differ. */
typedef struct device_arena {
  char *base;
  size_t used;
  int overflow;
} device_arena;

/* The next buffer, for n * width numbers of `bytes` bytes each. NULL while the block is measured;
 * also on overflow, which the arena records. */
void *device_arena_take(device_arena *a, size_t n, size_t width, size_t bytes);

/* Activations of one layer, of type T unless noted. rstd: the reciprocal of RMSNorm's root mean
 * square. lse: the log-sum-exp of attention. A backward needs both. */
typedef struct layer_activations {
  void *in;         /* [rows, hidden] the residual stream before attention */
  void *normed;     /* [rows, hidden] input after RMSNorm */
  void *rstd;       /* M [rows] of normed */
  void *qkv;        /* [rows, (heads + 2 kv) dim] queries, keys and values of all heads */
  void *qk;         /* [rows, (heads + kv) dim] queries and keys after norm and rotary embedding */
  void *heads_rstd; /* M [rows, heads + kv] of the norms of queries and keys */
  void *attended;   /* [rows, heads dim] output of attention, before o_proj */
  void *lse;        /* M [rows, heads] */
  void *mid;        /* [rows, hidden] the residual stream before the feed-forward block */
  void *mid_normed; /* [rows, hidden] mid after RMSNorm */
  void *mid_rstd;   /* M [rows] of mid_normed */
  void *gate_up;    /* [rows, 2 intermediate] gate_proj and up_proj */
  void *active;     /* [rows, intermediate] silu(gate) * up */
} layer_activations;

void layer_activations_take(layer_activations *l, device_arena *a, const model_config *c,
                            const backend *b, size_t rows);

/* The activations of a layer from row `first` on, as pointers into l. */
layer_activations layer_activations_from(const layer_activations *l, const model_config *c,
                                         const backend *b, size_t first);

/* The sizes of a pass. */
typedef struct pass_shape {
  size_t rows, sequences, targets;
  int keep;            /* 1: a backward follows, so activations are stored */
  model_stores stores; /* with keep: what is stored */
  size_t trees;        /* number of trees of sequences with shared prefixes; 0: nothing is shared */
  size_t set_words; /* words of each target's set of tokens that top-k and top-p kept; 0: no sets */
} pass_shape;

/* Number of integers in the index arrays of a pass. */
static inline size_t pass_index_numbers(const pass_shape *s) {
  const size_t shared = s->trees > 0 ? s->trees + 1 + 3 * s->sequences + 1 : 0;
  return 2 * s->rows + s->sequences + 1 + (2 + s->set_words) * s->targets + shared;
}

typedef struct pass {
  pass_shape shape;
  size_t longest;
  /* Backend memory, one block, token first. */
  int32_t *token, *position, *start, *row, *target;
  int32_t *tree, *parent, *before, *full; /* NULL if nothing is shared */
  const int32_t *full_host;               /* the same as full, borrowed until the next pass */
  kept_sets kept;                         /* set is NULL if no distribution is truncated */
  void *branch; /* [rows, hidden] output of a block of the layer, not yet added to the stream */
  layer_activations *layer; /* host, [layers]; layers share memory if activations are not stored */
  /* At the tokens that targets follow: */
  void *last, *last_branch, *last_normed; /* [targets, hidden] */
  void *last_rstd;                        /* M [targets] */
  void *logp, *entropy, *lse, *dlogp;     /* M [targets] */
  void *logits; /* as the backend's output() stores them; NULL: not stored */
  /* Gradients of the loss with respect to each. Buffers that are not in use at the same time share
   * memory. */
  void *d_last, *d_last_normed;    /* [targets, hidden] */
  void *d_stream, *d_normed;       /* [rows, hidden] */
  void *d_gate_up, *d_active;      /* feed-forward block (SwiGLU) */
  void *d_qkv, *d_qk, *d_attended; /* attention */
} pass;

static inline packed_rows pass_rows(const pass *p) {
  return (packed_rows){p->shape.rows, p->shape.sequences, p->longest, p->start};
}
static inline shared_rows pass_shared(const pass *p) {
  return (shared_rows){p->shape.trees, p->tree, p->parent, p->before, p->full, p->full_host};
}

/* The cached keys and values of one layer, for a run that fills or reads them. */
typedef struct layer_cache {
  void *k, *v;
  const int32_t *slot;
  size_t capacity;
  int decode; /* 1: attend to the cache instead of the packed tokens */
} layer_cache;

/* The matrices of a layer. */
typedef enum model_kind { MODEL_QKV, MODEL_O, MODEL_GATE_UP, MODEL_DOWN, MODEL_KINDS } model_kind;

struct model {
  model_config c;
  backend *b;
  model_stores stores;
  size_t n, n_matrices; /* number of parameters; weight decay applies to the first n_matrices */
  size_t n_tensors;
  model_tensor *tensor;
  size_t embed, head, norm;       /* where the parameters outside the layers start */
  layer_places *place;            /* [layers] offsets of each layer's parameters */
  struct model_values own;        /* the values that the optimiser changes */
  const struct model_values *use; /* the values that passes read: own, a copy, or guest */
  int rounds; /* 1: the copy of own.master is rounded stochastically, with random numbers of
                 `rounding` */
  rng_stream rounding;
  /* Put-aside values in use: guest_of is the values, guest.copy the memory of the gradient, into
   * which they were copied. */
  struct model_values guest;
  const struct model_values *guest_of;
  char *packed; /* the matrices in use, packed (forward_backward.c); NULL until first needed */
  int packed_is_current; /* 1: they match the values in use */
  void *gradient;        /* M [n]; NULL until first needed */
  void *cosine, *sine;   /* M [max_positions, head_dim / 2] of the rotary embedding */
  void *block;           /* the memory of a pass; grows, never shrinks */
  size_t block_bytes;
  layer_activations *layer; /* [layers] activations of the pass */
  pass pass;
  int kept; /* 1: the pass holds the activations of a forward, so a backward may follow */
  double temperature;
  int32_t *parts; /* backend [parts_room]: targets and sets of model_kept_parts(); grows, never
                     shrinks */
  size_t parts_room;
  int32_t *index; /* the pass's index arrays in host memory */
  size_t index_room;
};

/* Parameters from index `place` on, of type T as a pass reads them; below, their gradients, of type
 * M. */
static inline const void *model_weight(const model *m, size_t place) {
  return (const char *)m->use->copy + place * m->b->element;
}
static inline void *model_gradient_at(const model *m, size_t place) {
  return (char *)m->gradient + place * m->b->master_element;
}
/* The weight of an optional norm, NULL if the type has none. */
static inline const void *model_optional_weight(const model *m, size_t place) {
  return place != SIZE_MAX ? model_weight(m, place) : NULL;
}
static inline head_shape model_heads(const model_config *c) {
  return (head_shape){c->heads, c->kv_heads, c->head_dim};
}

/* Checks the packed tokens (errors as in model_forward()), allocates the pass and uploads its index
 * arrays. shared NULL: no prefixes are shared. */
gl_status model_pass_begin(model *m, const packed_tokens *packed, const shared_tokens *shared,
                           const kept_tokens *kept, int keep, gl_error *err);
/* The norm after a product whose result is added to the residual stream `in`. out, rstd and sum
 * [rows, hidden] are written as by the backend's norm(). */
typedef struct model_norm {
  void *out, *rstd, *sum;
  const void *in;
  void *branch;  /* [rows, hidden] the product */
  size_t weight; /* offset of the norm's parameters */
} model_norm;
/* The inputs and outputs of one layer's run. */
typedef struct layer_run {
  const layer_activations *l;
  void *branch; /* receives the output of the feed-forward block */
  const int32_t *position;
  packed_rows packed;
  shared_rows shared;       /* shared.trees 0: no prefixes are shared */
  const layer_cache *cache; /* NULL: none */
  int flags;                /* flags of the backend's product() */
  int want_branch; /* 0: activations are recomputed, for which the last product is not needed */
  int begun;       /* 1: the previous layer has computed the norm at this layer's beginning */
  const model_norm
      *next; /* the norm that follows the layer, which the layer shall compute; NULL: none */
} layer_run;
/* Runs one layer. Its input is the residual stream `in` plus `add` (NULL: nothing). */
void model_layer(const model *m, size_t layer, const layer_run *run, const void *in,
                 const void *add);
/* Packs the weights in use, if the backend has a packed form and they are not packed yet. Every
 * pass begins with it. Errors: GL_ENOMEM, the backend's. */
gl_status model_pack(model *m, gl_error *err);
/* Must be called after the values change or model_use() chooses others: invalidates everything
 * computed from them. */
void model_changed(model *m);
/* M out [rows, vocabulary] = T in [rows, hidden] times the transpose of the output embedding,
 * row-wise. */
void model_logits(const model *m, void *out, const void *in, size_t rows);
/* Runs the embedding and all layers of the pass. cache: [layers], or NULL. */
void model_layers(model *m, const layer_cache *cache, int flags);
/* Applies the final norm at the tokens that targets follow, into last_normed. */
void model_last_norm(model *m);

/* Allocates the gradient, if needed; its contents are not set. Errors: GL_EINTERNAL while put-aside
 * values are in use, which occupy its memory. */
gl_status model_want_gradient(model *m, gl_error *err);
/* Copy numbers [first, first + n) of an array of M in backend memory from or to the host, as
 * doubles. staging: MODEL_STAGING bytes of host memory. */
void model_upload(const model *m, void *to, size_t first, size_t n, const double *host,
                  void *staging);
void model_download(const model *m, const void *from, size_t first, size_t n, double *host,
                    void *staging);
/* Numbers copied at once, and the size in bytes of the host memory for them. */
enum { MODEL_CHUNK = 1 << 16, MODEL_STAGING = MODEL_CHUNK * 8 };
/* Recomputes the copy of type T after the master changed. Stochastic rounding, if on, uses the
 * random numbers of the last step. */
void model_renew(model *m);

/* Size in bytes of the backend memory of a pass, a cache and the packed weights; SIZE_MAX on
 * overflow. */
size_t model_pass_bytes(const model_config *c, const backend *b, pass_shape shape);
/* Matrix rows of a decode of n tokens: n, or the next power of two if the backend records decodes
 * as CUDA graphs. */
size_t model_cache_rows(const backend *b, size_t n);
size_t model_cache_bytes(const model_config *c, const backend *b, size_t slots, size_t capacity);
size_t model_packed_bytes(const model_config *c, const backend *b);
/* Maximum number of tokens of a prefill that run at once; a longer sequence runs alone. */
enum { MODEL_PREFILL_TOKENS = 4096 };

/* Names of the files in a model's folder. model_join() writes folder/name into path. Errors:
 * GL_EINPUT (too long). */
enum { MODEL_PATH = 4096 };
/* Checks the text of a model.safetensors.index.json without opening a shard; used by the fuzz
 * target. Errors: GL_EINPUT; GL_EINTERNAL if an invalid shard name was accepted. */
gl_status model_index_check(const model *m, const char *text, size_t size, const char *path,
                            gl_error *err);

/* Reads a whole small text file into malloc'd *out, which the caller frees. Errors: GL_EINPUT
 * (longer than `most` bytes, or missing), GL_EIO. */
gl_status model_read_text(char **out, size_t *size, const char *path, size_t most, gl_error *err);

#endif
