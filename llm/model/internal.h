/* What the files of the model share: where parameters lie, and the memory that a forward and
 * backward pass over packed tokens needs.
 *
 * Shapes are [rows, columns] of row-major matrices; a matrix over packed tokens has one row for
 * each token, `rows` of them. T is the type that a forward computes in (float32, bfloat16 or
 * float64), M the master type of parameters, gradients and statistics (llm/backend/backend.h). */
#ifndef GEPOLAB_LLM_MODEL_INTERNAL_H
#define GEPOLAB_LLM_MODEL_INTERNAL_H

#include "llm/model/model.h"

/* Bounds of a configuration: of each of its sizes, and of the number of layers. */
enum { MODEL_MAX_SIZE = 1 << 30, MODEL_MAX_LAYERS = 4096 };

/* *sum += a * b * c; 0 where that is more than a size_t. */
int model_add_product(size_t *sum, size_t a, size_t b, size_t c);

/* --- parameters --- */

/* Where each group of a layer's parameters starts, as an index into the array of all parameters.
 * qkv holds q_proj, k_proj and v_proj one after the other; gate_up holds gate_proj and up_proj. */
typedef struct layer_places {
  size_t qkv, o, gate_up, down;
  size_t input_norm, post_norm, q_norm, k_norm;
} layer_places;

/* Values of all n parameters. */
struct model_values {
  void *master; /* M [n], what the optimiser updates; NULL in a copy of the values */
  void *copy;   /* T [n], what a forward reads; the same memory as master where M is T */
  void *aside;  /* T [n] in other memory (model_values_put_aside); copy is NULL then */
};

/* --- memory of a pass --- */
/* Buffers are cut one after the other from one block. The same code that cuts them measures the
 * block, with base NULL, so that plan and use cannot differ. */
typedef struct device_arena {
  char *base;
  size_t used;
  int overflow;
} device_arena;

/* The next buffer, for n * width numbers of `bytes` bytes each. NULL while the block is measured,
 * and on overflow, which is noted. */
void *device_arena_take(device_arena *a, size_t n, size_t width, size_t bytes);

/* Activations of one layer; of type T unless said otherwise. rstd is one over the root mean square
 * that RMSNorm divides by, lse the logarithm of attention's sum of exponentials: a backward needs
 * both. */
typedef struct layer_activations {
  void *in;         /* [rows, hidden] the residual stream before attention */
  void *normed;     /* [rows, hidden] */
  void *rstd;       /* M [rows] */
  void *qkv;        /* [rows, (heads + 2 kv) dim] */
  void *qk;         /* [rows, (heads + kv) dim] */
  void *heads_rstd; /* M [rows, heads + kv] */
  void *attended;   /* [rows, heads dim] */
  void *lse;        /* M [rows, heads] */
  void *mid;        /* [rows, hidden] the residual stream before the feed-forward part */
  void *mid_normed; /* [rows, hidden] */
  void *mid_rstd;   /* M [rows] */
  void *gate_up;    /* [rows, 2 intermediate] */
  void *active;     /* [rows, intermediate] */
} layer_activations;

void layer_activations_take(layer_activations *l, device_arena *a, const model_config *c,
                            const backend *b, size_t rows);

/* The same activations from row `first` on. */
layer_activations layer_activations_from(const layer_activations *l, const model_config *c,
                                         const backend *b, size_t first);

/* What a pass works on. */
typedef struct pass_shape {
  size_t rows, sequences, targets;
  int keep;      /* a backward follows, so activations must stay */
  int recompute; /* with keep: keep each layer's input only */
  size_t trees;  /* of sequences that share beginnings; 0: none does */
  size_t kept;   /* words of the set of kept tokens of each target; 0: there are no sets */
} pass_shape;

/* Numbers in the index arrays of a pass. */
static inline size_t pass_index_numbers(const pass_shape *s) {
  const size_t shared = s->trees > 0 ? s->trees + 1 + 2 * s->sequences : 0;
  return 2 * s->rows + s->sequences + 1 + (2 + s->kept) * s->targets + shared;
}

typedef struct pass {
  pass_shape shape;
  size_t longest;
  /* Backend memory, one block, token first. */
  int32_t *token, *position, *start, *row, *target;
  int32_t *tree, *parent, *before; /* NULL where nothing is shared */
  kept_sets kept;                  /* set NULL where nothing is left out */
  void
      *branch; /* [rows, hidden] output of a layer's part that is still to be added to the stream */
  layer_activations *layer; /* host, [layers]; layers share memory where they are not kept */
  /* At the tokens that targets follow: */
  void *last, *last_branch, *last_normed; /* [targets, hidden] */
  void *last_rstd;                        /* M [targets] */
  void *logp, *entropy, *lse, *dlogp;     /* M [targets] */
  /* Gradients of the loss by each of these. Buffers that are not in use at the same time share
   * memory. */
  void *d_last, *d_last_normed;    /* [targets, hidden] */
  void *d_stream, *d_normed;       /* [rows, hidden] */
  void *d_gate_up, *d_active;      /* feed-forward part (SwiGLU) */
  void *d_qkv, *d_qk, *d_attended; /* attention */
} pass;

static inline packed_rows pass_rows(const pass *p) {
  return (packed_rows){p->shape.rows, p->shape.sequences, p->longest, p->start};
}
static inline shared_rows pass_shared(const pass *p) {
  return (shared_rows){p->shape.trees, p->tree, p->parent, p->before};
}

/* Cuts a pass's buffers; layer[layers] is the caller's. */
void pass_take(pass *p, device_arena *a, const model_config *c, const backend *b, pass_shape shape,
               layer_activations *layer);

/* Keys and values of one layer, for a run that fills or reads them. */
typedef struct layer_cache {
  void *k, *v;
  const int32_t *slot;
  size_t capacity;
  int decode; /* attend to the cache, not to the packed tokens */
} layer_cache;

/* The kinds of matrices in a layer that products read. */
typedef enum model_kind { MODEL_QKV, MODEL_O, MODEL_GATE_UP, MODEL_DOWN, MODEL_KINDS } model_kind;

struct model {
  model_config c;
  backend *b;
  int recompute;
  size_t n, n_matrices; /* parameters; weight decay acts on the first n_matrices */
  size_t n_tensors;
  model_tensor *tensor;
  size_t embed, head, norm; /* where the parameters that belong to no layer start */
  layer_places *place;      /* [layers] */
  struct model_values own;
  const struct model_values *use;
  int rounds; /* the copy of own's master is rounded stochastically, with draws from `rounding` */
  rng_stream rounding;
  /* Values that were put aside and are in use: guest.copy is the gradient's memory, into which they
   * were copied, and guest_of the values themselves. */
  struct model_values guest;
  const struct model_values *guest_of;
  char *packed;          /* the matrices in use, packed (forward.c); NULL until they are needed */
  int packed_is_current; /* 1: they have the values in use */
  void *gradient;        /* M [n]; NULL until it is needed */
  void *cosine, *sine;   /* M [max_positions, head_dim / 2] */
  void *block;           /* the arena's memory, which only grows */
  size_t block_bytes;
  layer_activations *layer; /* [layers], of the pass */
  pass pass;
  int kept; /* the pass holds the activations of a forward, so a backward may follow */
  double temperature;
  int32_t *parts; /* backend [parts_room]: targets and sets of model_kept_parts(); only grows */
  size_t parts_room;
  int32_t *index; /* host memory through which a pass's index arrays, then numbers, are copied */
  size_t index_room;
};

/* Parameters from index `place` on, of type T as the pass reads them; and their gradients, M. */
static inline const void *model_weight(const model *m, size_t place) {
  return (const char *)m->use->copy + place * m->b->element;
}
static inline void *model_gradient_at(const model *m, size_t place) {
  return (char *)m->gradient + place * m->b->master_element;
}
static inline head_shape model_heads(const model_config *c) {
  return (head_shape){c->heads, c->kv_heads, c->head_dim};
}

/* Checks the packed tokens (GL_EINPUT as model_forward()), makes room for the pass and uploads its
 * index arrays. shared NULL: every sequence is whole. */
gl_status model_pass_begin(model *m, const packed_tokens *packed, const shared_tokens *shared,
                           const kept_tokens *kept, int keep, gl_error *err);
/* The norm after a product whose result is added to the residual stream `in`: out, rstd and sum as
 * the backend's norm() writes them, [rows, hidden]. */
typedef struct model_norm {
  void *out, *rstd, *sum;
  const void *in;
  void *branch;  /* [rows, hidden] the product */
  size_t weight; /* where its parameters start */
} model_norm;
/* What a layer works on and with. */
typedef struct layer_run {
  const layer_activations *l;
  void *branch; /* receives the feed-forward part's output */
  const int32_t *position;
  packed_rows packed;
  shared_rows shared;       /* shared.trees 0: every sequence is whole */
  const layer_cache *cache; /* NULL: none */
  int flags;                /* of the backend's product() */
  int want_branch;        /* 0: recomputing activations, for which the last product is not needed */
  int begun;              /* the norm at the layer's beginning has been done by the layer before */
  const model_norm *next; /* the norm that follows the layer, to be done by it; NULL: none */
} layer_run;
/* Runs one layer. Its input is the residual stream `in`, to which `add` (NULL: nothing) is still to
 * be added. */
void model_layer(const model *m, size_t layer, const layer_run *run, const void *in,
                 const void *add);
/* Packs the weights in use, where the backend has a packed form and they are not packed yet. Every
 * pass begins with it. GL_ENOMEM; a backend's failure. */
gl_status model_pack(model *m, gl_error *err);
/* After the values in use changed, or which of them are: what was computed from them is void. */
void model_changed(model *m);
/* T out [rows, outputs] = T in [rows, inputs] times a matrix of a layer, transposed; flags as
 * product(). */
void model_product(const model *m, size_t layer, model_kind kind, void *out, const void *in,
                   size_t rows, int flags);
/* model_product() of a matrix with `hidden` outputs into norm->branch, then the norm; in one, where
 * the backend can and flags ask for products row by row. */
void model_product_norm(const model *m, size_t layer, model_kind kind, const void *in, size_t rows,
                        int flags, const model_norm *norm);
/* The product with the gates and units, into gate_up, then the gated unit, into `active`. In one as
 * above; gate_up is not written then. */
void model_product_swiglu(const model *m, size_t layer, void *active, void *gate_up, const void *in,
                          size_t rows, int flags);
/* M out [rows, vocabulary] = T in [rows, hidden] times the output embedding, row by row. */
void model_logits(const model *m, void *out, const void *in, size_t rows);
/* Runs the embedding and all layers of the pass; cache[layers], or NULL without one. */
void model_layers(model *m, const layer_cache *cache, int flags);
/* The final norm at the tokens that targets follow, into last_normed. */
void model_last_norm(model *m);

/* Allocates the gradient's memory where it is not there yet; its contents are not set. GL_EINTERNAL
 * while values that were put aside are in use there. */
gl_status model_want_gradient(model *m, gl_error *err);
/* Copies numbers [first, first + n) of an array of M in backend memory from or to the host, as
 * doubles; staging is MODEL_STAGING bytes of host memory. */
void model_upload(const model *m, void *to, size_t first, size_t n, const double *host,
                  void *staging);
void model_download(const model *m, const void *from, size_t first, size_t n, double *host,
                    void *staging);
/* Numbers copied at once, and the host memory that takes in bytes. */
enum { MODEL_CHUNK = 1 << 16, MODEL_STAGING = MODEL_CHUNK * 8 };
/* Computes the copy of type T anew after the master changed; stochastic rounding, where it is on,
 * uses the draws of the last step. */
void model_renew(model *m);

/* Bytes of backend memory that a pass, a cache and the packed weights take; SIZE_MAX where that
 * overflows. */
size_t model_pass_bytes(const model_config *c, const backend *b, pass_shape shape);
/* Matrix rows of a decode of n tokens: n, or where the backend records decodes (CUDA graphs) the
 * next power of two. */
size_t model_cache_rows(const backend *b, size_t n);
size_t model_cache_bytes(const model_config *c, const backend *b, size_t slots, size_t capacity);
size_t model_packed_bytes(const model_config *c, const backend *b);
/* Most tokens of a prefill that run at once; a longer sequence runs alone. */
enum { MODEL_PREFILL_TOKENS = 4096 };

/* Names of the files in a model's folder. model_join() writes folder/name into path; GL_EINPUT
 * where that is too long. */
enum { MODEL_PATH = 4096 };
#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"
gl_status model_join(char path[MODEL_PATH], const char *folder, const char *name, gl_error *err);
/* Whether the text of a model.safetensors.index.json can be read; no shard is opened. For the fuzz
 * target of that file. GL_EINPUT; GL_EINTERNAL if it took a name for a shard's that is none. */
gl_status model_index_check(const model *m, const char *text, size_t size, const char *path,
                            gl_error *err);

/* A whole small text file into malloc'd *out (the caller frees); GL_EINPUT beyond `most` bytes or
 * where there is none, GL_EIO where it cannot be read. */
gl_status model_read_text(char **out, size_t *size, const char *path, size_t most, gl_error *err);

#endif
