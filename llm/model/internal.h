/* What the files of the model share: where parameters lie, and the memory a pass over rows needs.
 */
#ifndef GEPOLAB_LLM_MODEL_INTERNAL_H
#define GEPOLAB_LLM_MODEL_INTERNAL_H

#include "llm/model/model.h"

/* Largest size of a configuration, and most layers. */
enum { MODEL_MAX_SIZE = 1 << 30, MODEL_MAX_LAYERS = 4096 };

/* --- parameters --------------------------------------------------------------------------------
 */

/* Where each group of a layer's parameters starts, in numbers. qkv holds q_proj, k_proj, v_proj,
 * one after the other; gate_up holds gate_proj and up_proj. */
typedef struct layer_places {
  size_t qkv, o, gate_up, down;
  size_t input_norm, post_norm, q_norm, k_norm;
} layer_places;

struct model_values {
  void *master; /* M [n]; NULL in a copy of the values */
  void *copy;   /* T [n]; the same memory as master where the types are the same */
  void *aside;  /* T [n] put aside, copy NULL */
};

/* --- memory of a pass --------------------------------------------------------------------------
 *
 * Buffers are cut one after the other from one block. The same code that cuts them measures the
 * block, with base NULL, so that plan and use cannot differ. */
typedef struct arena {
  char *base;
  size_t used;
  int overflow;
} arena;

/* n * width numbers of so many bytes. */
void *arena_take(arena *a, size_t n, size_t width, size_t bytes);

/* Activations of one layer over rows; T unless said otherwise. */
typedef struct layer_activations {
  void *in;         /* [rows, hidden] the stream before attention */
  void *normed;     /* [rows, hidden] */
  void *rstd;       /* M [rows] */
  void *qkv;        /* [rows, (heads + 2 kv) dim] */
  void *qk;         /* [rows, (heads + kv) dim] */
  void *heads_rstd; /* M [rows, heads + kv] */
  void *attended;   /* [rows, heads dim] */
  void *lse;        /* M [rows, heads] */
  void *mid;        /* [rows, hidden] the stream before the gated unit */
  void *mid_normed; /* [rows, hidden] */
  void *mid_rstd;   /* M [rows] */
  void *gate_up;    /* [rows, 2 intermediate] */
  void *active;     /* [rows, intermediate] */
} layer_activations;

void layer_activations_take(layer_activations *l, arena *a, const model_config *c, const backend *b,
                            size_t rows);

/* A pass over packed rows. */
typedef struct pass_shape {
  size_t rows, sequences, targets;
  int keep;      /* a backward follows */
  int recompute; /* with keep: keep each layer's input only */
} pass_shape;

typedef struct pass {
  pass_shape shape;
  size_t longest;
  int32_t *token, *position, *start, *row, *target; /* backend; one block, token first */
  void *branch;             /* [rows, hidden] what the stream is going to be added to */
  layer_activations *layer; /* host, [layers]; layers share memory where they are not kept */
  /* At the targets' rows: */
  void *last, *last_branch, *last_normed; /* [targets, hidden] */
  void *last_rstd;                        /* M [targets] */
  void *logp, *entropy, *lse, *dlogp;     /* M [targets] */
  /* Gradients; those of one stage share memory with those of another. */
  void *d_last, *d_last_normed;    /* [targets, hidden] */
  void *d_stream, *d_normed;       /* [rows, hidden] */
  void *d_gate_up, *d_active;      /* gated unit */
  void *d_qkv, *d_qk, *d_attended; /* attention */
} pass;

/* Cuts a pass's buffers; layer[layers] is the caller's. */
void pass_take(pass *p, arena *a, const model_config *c, const backend *b, pass_shape shape,
               layer_activations *layer);

/* Keys and values of one layer, for a run that fills or reads them. */
typedef struct layer_cache {
  void *k, *v;
  const int32_t *slot;
  size_t capacity;
  int decode; /* attend to the cache, not to the packed rows */
} layer_cache;

struct model {
  model_config c;
  backend *b;
  int recompute;
  size_t n, n_matrices; /* parameters; the first n_matrices decay */
  size_t n_tensors;
  model_tensor *tensor;
  size_t embed, head, norm; /* places of what belongs to no layer */
  layer_places *place;      /* [layers] */
  struct model_values own;
  const struct model_values *use;
  int rounds; /* the copy of own's master is rounded stochastically, with draws from `rounding` */
  rng_stream rounding;
  /* Values put aside that are in use: guest.copy is the gradient's memory, guest_of whose they are.
   */
  struct model_values guest;
  const struct model_values *guest_of;
  void *gradient;      /* M [n]; NULL until it is needed */
  void *cosine, *sine; /* M [max_positions, head_dim / 2] */
  void *block;         /* the arena's memory, only growing */
  size_t block_bytes;
  layer_activations *layer; /* [layers], of the pass */
  pass pass;
  int kept; /* the pass holds a forward that can go backward */
  double temperature;
  int32_t *index; /* host staging of a pass's index arrays, then of numbers */
  size_t index_room;
};

/* Parameters in T as the pass reads them; gradients. */
static inline const void *model_weight(const model *m, size_t place) {
  return (const char *)m->use->copy + place * m->b->element;
}
static inline void *model_gradient_at(const model *m, size_t place) {
  return (char *)m->gradient + place * m->b->master_element;
}
static inline head_shape model_heads(const model_config *c) {
  return (head_shape){c->heads, c->kv_heads, c->head_dim};
}

/* Checks rows, makes room for the pass and uploads its index arrays. */
gl_status model_pass_begin(model *m, const packed_tokens *packed, int keep, gl_error *err);
/* One layer over the rows of l. in, add: what norm adds (add NULL: in is the stream already).
 * branch receives what the stream is to be added to next. last: whether that is wanted. */
typedef struct layer_run {
  const layer_activations *l;
  void *branch;
  const int32_t *position;
  packed_rows packed;
  const layer_cache *cache; /* NULL: none */
  int flags;                /* of product */
  int want_branch;
} layer_run;
void model_layer(const model *m, size_t layer, const layer_run *run, const void *in,
                 const void *add);
/* All layers of the pass; cache[layers] or NULL. */
void model_layers(model *m, const layer_cache *cache, int flags);
/* The final norm of the pass's target rows into last_normed. */
void model_last_norm(model *m);

/* Makes sure of the gradient's memory. GL_EINTERNAL while values put aside are in use there. */
gl_status model_want_gradient(model *m, gl_error *err);
/* Host numbers [first, first + n) of an array of M in backend memory. */
void model_upload(const model *m, void *to, size_t first, size_t n, const double *host,
                  void *staging);
void model_download(const model *m, const void *from, size_t first, size_t n, double *host,
                    void *staging);
/* Numbers moved through the host at once, and the bytes that takes. */
enum { MODEL_CHUNK = 1 << 16, MODEL_STAGING = MODEL_CHUNK * 8 };
/* Renews the copy in T after the master changed, rounded as the last step had it. */
void model_renew(model *m);

/* What pass and cache take, in bytes, SIZE_MAX where that overflows. */
size_t model_pass_bytes(const model_config *c, const backend *b, pass_shape shape);
/* Rows a decode of n runs over: recorded ones are rounded up to a power of two. */
size_t model_cache_rows(const backend *b, size_t n);
size_t model_cache_bytes(const model_config *c, const backend *b, size_t slots, size_t capacity);
/* Rows of a prefill run at once, at least its longest sequence. */
enum { MODEL_PREFILL_TOKENS = 4096 };

/* A model's folder: its files, and folder/name. GL_EINPUT where that is too long. */
enum { MODEL_PATH = 4096 };
#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"
gl_status model_join(char path[MODEL_PATH], const char *folder, const char *name, gl_error *err);
/* Whether a model.safetensors.index.json could be loaded from, its shards unseen: for its fuzz
 * target. GL_EINTERNAL would be a bug. */
gl_status model_index_check(const model *m, const char *text, size_t size, const char *path,
                            gl_error *err);

/* A whole small text file into malloc'd *out (the caller frees); GL_EINPUT beyond `most` bytes or
 * where there is none, GL_EIO where it cannot be read. */
gl_status model_read_text(char **out, size_t *size, const char *path, size_t most, gl_error *err);

#endif
