/* The decoder of Qwen3, Qwen2 and Llama over a backend: parameters, forward, backward, files.
 *
 *   h = embed(token)
 *   each layer: x = norm(h),  q, k, v = q_proj x, k_proj x, v_proj x
 *               h += o_proj(attention(rotary(norm(q)), rotary(norm(k)), v))
 *               x = norm(h),  h += down_proj(silu(gate_proj x) * (up_proj x))
 *   logits = norm(h) embed^T (tied) or lm_head^T
 *
 * Qwen3 (arXiv 2505.09388) is as above. Qwen2 (2407.10671) and Llama (2407.21783) do not norm q and
 * k; Qwen2 adds biases to q, k and v. Names and layout are Hugging Face's. All parameters are in
 * one array of n numbers. q_proj, k_proj and v_proj are adjacent, as are gate_proj and up_proj, so
 * that each group is one product. Vectors (norm weights, biases) come last, so that weight decay
 * applies to one range. Prefix: model_. */
#ifndef GEPOLAB_LLM_MODEL_MODEL_H
#define GEPOLAB_LLM_MODEL_MODEL_H

#include "core/config/config.h"
#include "core/rl/optimizer_settings.h"
#include "llm/backend/backend.h"

enum { MODEL_UNKNOWN_SIZE = 192 };

/* The types of config.json's model_type that can be computed. */
typedef enum model_type { MODEL_QWEN3, MODEL_QWEN2, MODEL_LLAMA, MODEL_TYPES } model_type;

typedef struct model_config {
  model_type type;
  size_t vocabulary, hidden, intermediate, layers, heads, kv_heads, head_dim, max_positions;
  double rms_eps, rope_theta, initializer_range;
  rotary_scaling scaling;
  int tied;                /* 1: the output embedding is the input embedding */
  int32_t begin, end, pad; /* token numbers, -1: none */
  /* Unknown keys of the config.json, separated by commas; "" if there are none. Shown to the user,
   * never compared or written. */
  char unknown[MODEL_UNKNOWN_SIZE];
} model_config;

/* Read Hugging Face's config.json. A key that requests a feature this model does not compute
 * (another architecture, soft-capped logits, other scaled rotary embeddings than Llama 3's, biases
 * that the type has not, sliding windows, …) is GL_EINPUT; the message names file and key. Keys
 * without effect are ignored. Unknown keys are ignored, too, and listed in out->unknown. */
gl_status model_config_load(model_config *out, const char *path, gl_error *err);
gl_status model_config_parse(model_config *out, const char *json, size_t size, const char *name,
                             gl_error *err);
/* The text of config.json, malloc'd; NULL if out of memory. */
char *model_config_json(const model_config *c);
/* Reads the `model` section of a recipe that describes a model instead of naming a folder:
 * {model_type, layers, hidden, intermediate, heads, kv_heads, head_dim, context, tied, rope_theta,
 * rms_eps, initializer_range}. The tokenizer determines the vocabulary. */
gl_status model_config_read(model_config *out, const cfg_node *section, size_t vocabulary,
                            gl_error *err);
/* Checks that the sizes fit together: heads divisible by kv_heads, even head_dim, no overflow. */
gl_status model_config_check(const model_config *c, gl_error *err);
/* How a type differs from the others: its word in config.json and recipes, the class that
 * transformers computes it with, whether q and k have norms, and q, k and v biases. */
typedef struct model_traits {
  const char *word, *architecture;
  int qk_norm, qkv_bias;
  size_t max_positions; /* the default of max_position_embeddings */
} model_traits;
const model_traits *model_traits_of(const model_config *c);
size_t model_config_parameters(const model_config *c);

typedef struct model_tensor {
  char name[96];                /* Hugging Face's name */
  size_t offset, rows, columns; /* rows is 1 for a vector */
} model_tensor;

typedef struct model model;
/* Values of all parameters: the model's own, a reference policy's, or a held version's; in backend
 * memory, or put aside (model_values_put_aside()). */
typedef struct model_values model_values;

/* What a forward before a backward stores: activations; inputs of layers only, so that the backward
 * computes the other activations again; or activations and logits, if the backend has
 * logits_bytes(). Results have the same bits. */
typedef enum model_stores {
  MODEL_STORES_ACTIVATIONS,
  MODEL_STORES_INPUTS,
  MODEL_STORES_LOGITS
} model_stores;

/* Makes a model with all parameters zero. b is borrowed and must outlive it. Errors: GL_ENOMEM. */
gl_status model_new(model **out, const model_config *config, backend *b, model_stores stores,
                    gl_error *err);
void model_free(model *m);
const model_config *model_configuration(const model *m);
backend *model_backend(const model *m);
size_t model_parameters(const model *m);
/* Tensor i, or NULL if there are fewer. */
const model_tensor *model_tensor_at(const model *m, size_t i);

/* Samples matrices from Normal(0, initializer_range), sets norm weights to one, biases to zero.
 * Tensor i uses the random stream (seed, RNG_INIT, i). */
gl_status model_initialise(model *m, uint64_t seed, gl_error *err);
/* Copy parameter values from or to the host, in the model's order, as doubles. */
gl_status model_get(const model *m, double *host, gl_error *err);
gl_status model_set(model *m, const double *host, gl_error *err);
gl_status model_gradient_get(const model *m, double *host, gl_error *err);
/* Exposed for tests. */
gl_status model_gradient_set(model *m, const double *host, gl_error *err);
/* Loads a folder with config.json and model.safetensors, or model.safetensors.index.json and its
 * shards. Tensor types: F32, F16, BF16, F64. The folder's configuration must equal the model's. */
gl_status model_load(model *m, const char *folder, gl_error *err);
/* Writes config.json and model.safetensors (type F32, BF16 or F64). Tensors are split into shards
 * of at most shard_bytes (0: one file). In an existing folder each file is replaced atomically. */
gl_status model_save(const model *m, const char *folder, number_type type, size_t shard_bytes,
                     gl_error *err);

/* Copies the values in the type that forward and generation read, without a master: for a reference
 * policy or a version that is still sampled from. */
gl_status model_values_copy(model_values **out, model *m, gl_error *err);
/* Copies the values as model_values_copy() does, but puts them aside: in pinned host memory if the
 * backend is a device. model_use() then copies them into the gradient's memory, whose contents are
 * lost, and allocates nothing. */
gl_status model_values_put_aside(model_values **out, model *m, gl_error *err);
/* Whether they are in host memory. Exposed for its test. */
int model_values_are_aside(const model_values *v);
/* Size of one copy in bytes. */
size_t model_values_bytes(const model *m);
void model_values_free(model_values *v, model *m);
/* Copies the values of v to the host, as model_get() does for the model's own. */
gl_status model_values_get(const model_values *v, const model *m, double *host, gl_error *err);
/* Makes forward and generation read v; NULL: the model's own values. A backward always
 * differentiates at the model's own values. While put-aside values are in use no gradient can be
 * computed (GL_EINTERNAL). */
void model_use(model *m, model_values *v);

/* Token sequences packed one after the other, and targets: tokens whose log-probability is wanted.
 * target[j] is the token that follows packed token target_after[j]. Borrowed host memory. */
typedef struct packed_tokens {
  size_t n_tokens, n_sequences, n_targets;
  const size_t *start;        /* [n_sequences + 1] first token of each sequence */
  const int32_t *token;       /* [n_tokens] */
  const size_t *target_after; /* [n_targets] index of the packed token before each target,
                                 ascending; may repeat */
  const int32_t *target;      /* [n_targets] */
} packed_tokens;

/* Prefixes that packed sequences share, so that each is packed and run once. Sequence s has the
 * first before[s] tokens of sequence parent[s], an earlier one of its tree, followed by its own
 * packed tokens, at least one. The sequences of a tree are adjacent, and its first one is complete.
 * Borrowed host memory. */
typedef struct shared_tokens {
  size_t n_trees;
  const size_t *tree;   /* [n_trees + 1] first sequence of each tree, then n_sequences */
  const size_t *parent; /* [n_sequences] ignored if before is 0 */
  const size_t *before; /* [n_sequences] number of shared tokens */
} shared_tokens;

/* The tokens that the sampler kept (after top-k, top-p) when it sampled each target: set
 * [n_targets, shape->words], borrowed host memory. A set contains its target or is empty. */
typedef struct kept_tokens {
  const kept_shape *shape;
  const uint32_t *set;
} kept_tokens;

/* 1 if the backend can run sequences with shared prefixes, and that is expected to take less time
 * for a pass over that many positions of which it saves so many rows. */
int model_shares(const model *m, size_t saved, size_t positions);

/* Computes logp[n_targets] and entropy[n_targets] (NULL: not wanted) of the policy softmax(logits /
 * temperature). keep 1: a model_backward() follows. Errors: GL_EINPUT (token outside the
 * vocabulary, sequence longer than max_positions). */
gl_status model_forward(model *m, const packed_tokens *packed, double temperature, int keep,
                        double *logp, double *entropy, gl_error *err);
/* Further options of a forward. */
typedef struct forward_options {
  /* Prefixes that sequences share. On the CPU results equal those of complete sequences bit for
   * bit; on a device a product's order of sums depends on its number of rows. GL_EINTERNAL if the
   * backend cannot share. NULL: nothing is shared. */
  const shared_tokens *shared;
  /* Renormalises every target's distribution over its kept tokens: logp and model_backward() refer
   * to this distribution, entropy to the whole one. GL_EINTERNAL if a set does not contain its
   * target. NULL: all tokens. */
  const kept_tokens *kept;
  double temperature;
  int keep; /* 1: a model_backward() follows */
} forward_options;
gl_status model_forward_with(model *m, const packed_tokens *packed, const forward_options *o,
                             double *logp, double *entropy, gl_error *err);
/* To be called after a forward, also before its backward. For n of its targets, target[n], splits
 * the whole distribution by a set of tokens, kept->set [n, words], as the backend's kept_parts()
 * does. part: mass [n] of the set, entropy_kept [n], entropy_tail [n]. It costs one more product
 * with the output embedding and changes nothing that a backward reads. */
gl_status model_kept_parts(model *m, const size_t *target, const kept_tokens *kept, size_t n,
                           double *const part[3], gl_error *err);
/* Adds sum_j dlogp[j] * d logp_j / d theta to the gradient, for the last forward with keep. */
gl_status model_backward(model *m, const double *dlogp, gl_error *err);
gl_status model_zero_gradient(model *m, gl_error *err);
/* A sample of the gradient that suffices to compare two gradients: all of it, or, of more than
 * MODEL_SAMPLE numbers, MODEL_SAMPLE numbers in MODEL_SAMPLE_RUNS equally spaced runs. */
enum { MODEL_SAMPLE = 1 << 20, MODEL_SAMPLE_RUNS = 64 };
size_t model_gradient_sample_size(const model *m);
gl_status model_gradient_sample(const model *m, double *host, gl_error *err);
/* The gradient, [model_parameters] of the master type in backend memory, for sums over devices.
 * NULL before the first model_zero_gradient() or optimiser. */
void *model_gradient(model *m);

/* An optimiser's moments over all parameters. Weight decay applies to matrices, not to norm
 * weights and biases. */
typedef struct model_optimizer model_optimizer;
gl_status model_optimizer_new(model_optimizer **out, model *m, const optimizer_spec *spec,
                              gl_error *err);
void model_optimizer_free(model_optimizer *o);
/* From the next step on the bfloat16 copy of the parameters, which forward and generation read, is
 * rounded stochastically. Parameter i after step t uses number i of the stream (seed, RNG_ROUNDING,
 * t). So the copy is a function of the master parameters and the number of steps, and model_read()
 * restores it. Other types are not rounded. */
void model_optimizer_round(model_optimizer *o, uint64_t seed);
/* Makes one step down the gradient, clipped to spec.clip_grad_norm. *norm: the gradient's norm
 * before clipping. If it is not finite, nothing changes and the status is GL_OK: callers test
 * *norm.
 */
gl_status model_optimizer_step(model_optimizer *o, double lr, double *norm, gl_error *err);

/* Write and read parameters and moments (o NULL: no moments) exactly, for checkpoints of a run: a
 * header, the arrays in native byte order, a checksum. Errors of model_read(): GL_EINPUT (damaged
 * file or another configuration; nothing has changed then), GL_EIO. */
gl_status model_write(const model *m, const model_optimizer *o, FILE *to, gl_error *err);
gl_status model_read(model *m, model_optimizer *o, FILE *from, gl_error *err);

/* Size in bytes of the activation memory that the model keeps for its next pass. */
size_t model_kept_bytes(const model *m);

/* The backend memory that a configuration will need, in bytes. */
typedef struct memory_plan {
  size_t parameters, gradients, moments;
  size_t activations;   /* and stored logits, if `stores` says so */
  size_t cache, logits; /* of generation */
  size_t packed;        /* the packed copy of the weights */
  size_t scratch;       /* the backend's scratch memory */
  size_t total;
} memory_plan;
/* The intended use, on which memory depends. */
typedef struct memory_use {
  model_stores stores;
  size_t training_tokens, training_targets; /* size of a micro-batch; 0: no training */
  size_t slots, capacity;                   /* size of the cache; 0: no generation */
  size_t value_copies;                      /* copies of the parameters beside the model's own */
} memory_use;
/* Errors: GL_ENOMEM (the sum overflows). */
gl_status model_memory(memory_plan *out, const model_config *c, const backend *b,
                       const memory_use *use, gl_error *err);

/* --- for generation (llm/model/generate.c) --- */

/* The keys and values of `slots` sequences of up to `capacity` positions, in every layer. */
typedef struct model_cache model_cache;
gl_status model_cache_new(model_cache **out, model *m, size_t slots, size_t capacity,
                          gl_error *err);
void model_cache_free(model_cache *c);
/* Runs packed prompts (without targets) and stores the keys and values of sequence s in slot[s],
 * from position 0 on. The cache's logits become [n_sequences, vocabulary]: those after each
 * sequence's last token. Errors: GL_EINPUT as in model_forward(); GL_EINTERNAL (more sequences than
 * slots, or one longer than the capacity). */
gl_status model_prefill(model_cache *c, const packed_tokens *packed, const size_t *slot,
                        gl_error *err);
/* Copies the keys and values of the first `length` positions of a slot, in all layers. */
gl_status model_cache_copy(model_cache *c, size_t from, size_t to, size_t length, gl_error *err);
/* Size in bytes of all keys and values of a slot with that capacity (SIZE_MAX on overflow); below,
 * copies of a slot to and from the host, in a format that only a cache of the same capacity, model
 * and backend can read. */
size_t model_cache_slot_bytes(const model *m, size_t capacity);
gl_status model_cache_get(model_cache *c, size_t slot, void *to, gl_error *err);
gl_status model_cache_put(model_cache *c, size_t slot, const void *from, gl_error *err);
/* Runs one more token of each of `rows` sequences: token[r] at position[r] of slot[r] (host
 * arrays). Row r of the cache's logits becomes that of the next token. Does not wait for a device:
 * an error there is returned by the next model_sample() or model_logits_get(). */
gl_status model_decode(model_cache *c, const int32_t *token, const int32_t *slot,
                       const int32_t *position, size_t rows, gl_error *err);
/* Copies the first `rows` rows of the last logits, [rows, vocabulary]. */
gl_status model_logits_get(const model_cache *c, size_t rows, double *logits, gl_error *err);
/* The distribution and the random stream that tokens are sampled from. */
typedef struct model_draws {
  sampling_spec sampling; /* logits are divided by its temperature, regardless of the temperature
                             error of its behaviour */
  rng_stream stream;
  int greedy; /* 1: take the most probable token */
  /* If distributions are truncated: the shape of the sets of kept tokens, which are recorded.
   * words = 0: they are not. */
  kept_shape kept;
} model_draws;

/* The rows to sample, host arrays [n]. */
typedef struct model_draw_rows {
  size_t n;
  const size_t *row_of;  /* index of each row in the last logits; NULL: 0, 1, 2, … */
  const uint64_t *index; /* block of the stream for each row */
  /* If the sampling behaviour adds noise to logits or rounds them: the address of each row's noise
   * under the stream's seed (llm/backend/operations.h: distort). NULL: logits are not distorted. */
  const uint64_t *context;
} model_draw_rows;

/* The sampled tokens, host arrays [n]. */
typedef struct model_drawn {
  int32_t *token;
  double *logq;           /* log-probability at the temperature, without truncation */
  double *logq_truncated; /* log-probability after top-k and top-p (paper/methods.md §1.2) */
  uint32_t *kept;         /* [n, draws.kept.words] sets of kept tokens; unused if not recorded */
} model_drawn;

/* Samples a token from each row, as the backend's sample() does. With contexts or sets, greedy is
 * not allowed. */
gl_status model_sample(model_cache *c, const model_draw_rows *rows, const model_draws *draws,
                       const model_drawn *out, gl_error *err);

/* --- steps: a decode of every row and a draw of the token that follows, in one --- */

/* The rows of a step, host arrays [n]: token[r] is decoded at position[r] of slot[r], then the next
 * token is sampled with block index[r] of the stream. A token of -1 - i means the token that row i
 * of the previous step samples, which the host need not know yet. */
typedef struct model_step_rows {
  size_t n;
  const int32_t *token, *slot, *position;
  const uint64_t *index;
} model_step_rows;

/* How many steps may be in progress (started, not yet taken) when the next one starts: 1 if a
 * device runs them while the host continues, else 0. */
size_t model_steps_ahead(const model_cache *c);
/* Starts a step. Sets of kept tokens are recorded only by steps that run while the host continues.
 * Errors: GL_EINTERNAL (rows that do not fit the cache, tokens of a step that does not exist, too
 * many steps in progress, sets that cannot be recorded). Errors on a device are returned by
 * model_step_take(). */
gl_status model_step(model_cache *c, const model_step_rows *rows, const model_draws *draws,
                     gl_error *err);
/* Waits for the oldest step in progress and returns its samples, as model_sample() does. Errors:
 * GL_EINTERNAL (no step in progress). */
gl_status model_step_take(model_cache *c, const model_drawn *out, gl_error *err);

/* The fields of the section `world.model`. */
extern const struct field_table llm_model_fields;

#endif
