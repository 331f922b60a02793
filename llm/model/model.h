/* The Qwen3 decoder over a backend: parameters, forward, backward, files.
 *
 *   h = embed(token)
 *   each layer: h += o_proj(attention(rotary(norm(q)), rotary(norm(k)), v)) of norm(h)
 *               h += down_proj(silu(gate_proj) * up_proj) of norm(h)
 *   logits = norm(h) embed^T (tied) or lm_head^T
 *
 * (Qwen3 technical report, arXiv 2505.09388; names and layout are Hugging Face's.) All parameters
 * live in one array of n numbers; q_proj, k_proj, v_proj lie one after the other, as do gate_proj
 * and up_proj, so that each group is one product; norm weights come last, so that what decays is
 * one range. Prefix: model_. */
#ifndef GEPOLAB_LLM_MODEL_MODEL_H
#define GEPOLAB_LLM_MODEL_MODEL_H

#include "core/config/config.h"
#include "core/rl/optimizer.h"
#include "llm/backend/backend.h"

enum { MODEL_UNKNOWN_SIZE = 192 };

typedef struct model_config {
  size_t vocabulary, hidden, intermediate, layers, heads, kv_heads, head_dim, max_positions;
  double rms_eps, rope_theta, initializer_range;
  int tied;                /* output embedding is the input's */
  int32_t begin, end, pad; /* token numbers, -1: none */
  /* Keys of the config.json it was read from whose meaning is not known here, separated by commas;
   * "" where there was none. Shown to the user, never compared or written. */
  char unknown[MODEL_UNKNOWN_SIZE];
} model_config;

/* config.json of Hugging Face. A key that asks for what this model does not compute (another
 * architecture, soft-capped logits, scaled rotary embeddings, biases, sliding windows, …) is
 * GL_EINPUT naming file and key; keys that change nothing are passed over; any other key is passed
 * over too, and named in out->unknown. */
gl_status model_config_load(model_config *out, const char *path, gl_error *err);
gl_status model_config_parse(model_config *out, const char *json, size_t size, const char *name,
                             gl_error *err);
/* config.json text, malloc'd; NULL if memory is short. */
char *model_config_json(const model_config *c);
/* The `model` section of a recipe where it describes a model rather than naming a folder:
 * {layers, hidden, intermediate, heads, kv_heads, head_dim, context, tied, rope_theta, rms_eps,
 * initializer_range}; the vocabulary comes from the tokenizer. */
gl_status model_config_read(model_config *out, const cfg_node *section, size_t vocabulary,
                            gl_error *err);
/* Sizes that fit together (heads divisible by kv_heads, even head_dim, nothing overflowing). */
gl_status model_config_check(const model_config *c, gl_error *err);
size_t model_config_parameters(const model_config *c);

typedef struct model_tensor {
  char name[96];                /* Hugging Face's */
  size_t offset, rows, columns; /* rows 1 for a vector */
} model_tensor;

typedef struct model model;
/* A set of parameter values of a model, in backend memory: the model's own, a reference, a held
 * version. */
typedef struct model_values model_values;

/* A model whose parameters are all zero. b is borrowed and must outlive it. recompute: a forward
 * that a backward follows keeps only each layer's input, and the backward computes the other
 * activations again (less memory, more time; the results are the same). GL_ENOMEM. */
gl_status model_new(model **out, const model_config *config, backend *b, int recompute,
                    gl_error *err);
void model_free(model *m);
const model_config *model_configuration(const model *m);
backend *model_backend(const model *m);
size_t model_parameters(const model *m);
/* Tensor i, or NULL beyond the last. */
const model_tensor *model_tensor_at(const model *m, size_t i);

/* Normal(0, initializer_range) matrices, unit norm weights; tensor i draws from
 * (seed, RNG_INIT, i). */
gl_status model_initialise(model *m, uint64_t seed, gl_error *err);
/* Parameter values from and to the host, in the model's order, as doubles. */
gl_status model_get(const model *m, double *host, gl_error *err);
gl_status model_set(model *m, const double *host, gl_error *err);
gl_status model_gradient_get(const model *m, double *host, gl_error *err);
gl_status model_gradient_set(model *m, const double *host, gl_error *err);
/* A folder with config.json and model.safetensors, or model.safetensors.index.json and its shards;
 * F32, F16, BF16 (and F64) tensors. The folder's config must equal the model's. */
gl_status model_load(model *m, const char *folder, gl_error *err);
/* Writes config.json and model.safetensors (type F32, BF16 or F64), in shards where one would be
 * larger than shard_bytes (0: never); a folder that exists is replaced file by file, atomically. */
gl_status model_save(const model *m, const char *folder, number_type type, size_t shard_bytes,
                     gl_error *err);

/* Copies of the values in the type that forward and generation read, without a master: for a
 * reference policy or a version that is still being sampled from. */
gl_status model_values_copy(model_values **out, model *m, gl_error *err);
/* The same, put aside: where the backend is a device, in pinned memory of the host. model_use()
 * then copies them into the gradient's memory, whose contents are lost, and takes no other memory.
 */
gl_status model_values_put_aside(model_values **out, model *m, gl_error *err);
int model_values_are_aside(const model_values *v);
/* Bytes of one copy. */
size_t model_values_bytes(const model *m);
void model_values_free(model_values *v, model *m);
/* A copy's values to the host, as model_get gives the model's own. */
gl_status model_values_get(const model_values *v, const model *m, double *host, gl_error *err);
/* From now on forward and generation read v; NULL: the model's own values. A backward is always of
 * the model's own values, and no gradient can be had while values that were put aside are in use
 * (GL_EINTERNAL). */
void model_use(model *m, model_values *v);

/* Token sequences packed one after the other, and the tokens whose log-probability is wanted:
 * target[j], as the token that follows packed token target_after[j]. Borrowed host memory. */
typedef struct packed_tokens {
  size_t n_tokens, n_sequences, n_targets;
  const size_t *start;        /* [n_sequences + 1] */
  const int32_t *token;       /* [n_tokens] */
  const size_t *target_after; /* [n_targets], ascending; a token may have several */
  const int32_t *target;      /* [n_targets] */
} packed_tokens;

/* What packed sequences have in common, so that it is packed and run once: the tokens of sequence s
 * are the first before[s] of sequence parent[s], an earlier one of its tree, and then those packed
 * for it, one at least. The sequences of a tree stand side by side, and its first one is whole.
 * Borrowed host memory. */
typedef struct shared_tokens {
  size_t n_trees;
  const size_t *tree;   /* [n_trees + 1] first sequence of each, then n_sequences */
  const size_t *parent; /* [n_sequences] any number where before is 0 */
  const size_t *before; /* [n_sequences] */
} shared_tokens;

/* What a sampler kept when it drew each target of packed sequences: set [n_targets,
 * shape->words], borrowed host memory. Each holds its target or nothing. */
typedef struct kept_tokens {
  const kept_shape *shape;
  const uint32_t *set;
} kept_tokens;

/* Whether sequences may share beginnings: 1 where the backend can run them. */
int model_shares(const model *m);

/* logp[n_targets], entropy[n_targets] (NULL: not wanted) of the policy softmax(logits /
 * temperature). keep: a model_backward follows. GL_EINPUT for tokens outside the vocabulary or a
 * sequence longer than max_positions. */
gl_status model_forward(model *m, const packed_tokens *packed, double temperature, int keep,
                        double *logp, double *entropy, gl_error *err);
/* What a forward may have besides. */
typedef struct forward_options {
  /* Sequences share beginnings, and their targets have the bits that they have in whole sequences;
   * GL_EINTERNAL where the backend cannot. NULL: none does. */
  const shared_tokens *shared;
  /* Every target's distribution is renormalised over the tokens that were kept: logp is of that
   * distribution, and so is what model_backward() differentiates; entropy is of the whole
   * distribution. GL_EINTERNAL for a set that does not hold its target. NULL: over all tokens. */
  const kept_tokens *kept;
  double temperature;
  int keep; /* a model_backward() follows */
} forward_options;
gl_status model_forward_with(model *m, const packed_tokens *packed, const forward_options *o,
                             double *logp, double *entropy, gl_error *err);
/* After a forward, whose backward may still follow: what the whole distribution before each of n of
 * its targets, target[n], gives to the tokens of a set and to the others, kept->set [n, words].
 * part: mass [n], entropy_kept [n] and entropy_tail [n], as the backend's kept_parts() has them. It
 * is one more product with the output embedding and changes nothing that a backward reads. */
gl_status model_kept_parts(model *m, const size_t *target, const kept_tokens *kept, size_t n,
                           double *const part[3], gl_error *err);
/* Adds sum_j dlogp[j] * d logp_j / d theta to the gradient, for the last kept forward. */
gl_status model_backward(model *m, const double *dlogp, gl_error *err);
gl_status model_zero_gradient(model *m, gl_error *err);
/* What is read of the gradient where comparing it with another is enough: all of it, or, of more
 * than MODEL_SAMPLE numbers, MODEL_SAMPLE in MODEL_SAMPLE_RUNS runs that begin at equal distances.
 */
enum { MODEL_SAMPLE = 1 << 20, MODEL_SAMPLE_RUNS = 64 };
size_t model_gradient_sample_size(const model *m);
gl_status model_gradient_sample(const model *m, double *host, gl_error *err);
/* The gradient, [model_parameters] of the backend's master type in its memory, for sums over
 * devices; NULL before the first model_zero_gradient() or optimiser. */
void *model_gradient(model *m);

/* Moments of an optimiser over all parameters; matrices decay, norm weights do not. */
typedef struct model_optimizer model_optimizer;
gl_status model_optimizer_new(model_optimizer **out, model *m, const optimizer_spec *spec,
                              gl_error *err);
void model_optimizer_free(model_optimizer *o);
/* From the next step on the bfloat16 copy of the parameters, which forward and generation read, is
 * rounded stochastically. Parameter i after step t uses number i of the stream (seed, RNG_ROUNDING,
 * t), so that the copy is a function of the master parameters and the number of steps, and
 * model_read() restores it. No effect on other types, which are not rounded. */
void model_optimizer_round(model_optimizer *o, uint64_t seed);
/* One step down the gradient, clipped to spec.clip_grad_norm; *norm is the gradient's norm before
 * clipping. Where that is not finite nothing changes. */
gl_status model_optimizer_step(model_optimizer *o, double lr, double *norm, gl_error *err);

/* Writes and reads parameters and moments (o may be NULL: none) exactly, for checkpoints of a run:
 * a header, the arrays in native byte order, a checksum. model_read() gives GL_EINPUT for damage or
 * another configuration, and then has changed nothing; GL_EIO. */
gl_status model_write(const model *m, const model_optimizer *o, FILE *to, gl_error *err);
gl_status model_read(model *m, model_optimizer *o, FILE *from, gl_error *err);

/* Bytes of activations that the model keeps for its next pass. */
size_t model_kept_bytes(const model *m);

/* What a configuration will need, in bytes of backend memory. */
typedef struct memory_plan {
  size_t parameters, gradients, moments, activations, cache, logits;
  size_t packed;  /* the weights in the order in which products read them */
  size_t scratch; /* the backend's own */
  size_t total;
} memory_plan;
/* What it will be used for. */
typedef struct memory_use {
  int recompute;
  size_t training_tokens, training_targets; /* of one micro-batch; 0: no training */
  size_t slots, capacity;                   /* of the cache; 0: no generation */
  size_t value_copies;                      /* copies of the parameters beside the model's own */
} memory_use;
/* GL_ENOMEM where the sum overflows. */
gl_status model_memory(memory_plan *out, const model_config *c, const backend *b,
                       const memory_use *use, gl_error *err);

/* --- for generation (llm/model/generate.c) --- */

/* Keys and values of `slots` sequences of up to `capacity` positions in every layer. */
typedef struct model_cache model_cache;
gl_status model_cache_new(model_cache **out, model *m, size_t slots, size_t capacity,
                          gl_error *err);
void model_cache_free(model_cache *c);
/* Runs packed prompts (without targets) and keeps the keys and values of sequence s in slot[s] from
 * position 0 on. The cache's logits become [n_sequences, vocabulary]: those that follow each
 * sequence's last token. GL_EINPUT as model_forward(); GL_EINTERNAL for more sequences than slots
 * or one longer than the capacity. */
gl_status model_prefill(model_cache *c, const packed_tokens *packed, const size_t *slot,
                        gl_error *err);
/* Copies keys and values of the first `length` positions of a slot in all layers. */
gl_status model_cache_copy(model_cache *c, size_t from, size_t to, size_t length, gl_error *err);
/* Bytes of all keys and values of a slot of that capacity, SIZE_MAX where they overflow; and copies
 * of a slot's to the host and from it, in a form that only a cache of the same capacity, model and
 * backend reads. */
size_t model_cache_slot_bytes(const model *m, size_t capacity);
gl_status model_cache_get(model_cache *c, size_t slot, void *to, gl_error *err);
gl_status model_cache_put(model_cache *c, size_t slot, const void *from, gl_error *err);
/* Runs one more token of each of `rows` sequences: token[r] at position[r] of slot[r] (host
 * arrays). Row r of the cache's logits becomes that of the token that follows. Does not wait for a
 * device: a failure there is returned by the next model_sample() or model_logits_get(). */
gl_status model_decode(model_cache *c, const int32_t *token, const int32_t *slot,
                       const int32_t *position, size_t rows, gl_error *err);
/* The first `rows` rows of the last logits, [rows, vocabulary]. */
gl_status model_logits_get(const model_cache *c, size_t rows, double *logits, gl_error *err);
/* The distribution and the stream that tokens are sampled from. */
typedef struct model_draws {
  sampling_spec sampling; /* its temperature is what logits are divided by, whatever error its
                             behaviour names */
  rng_stream stream;
  int greedy; /* the most probable token */
} model_draws;

/* Rows to sample, host arrays [n]. */
typedef struct model_draw_rows {
  size_t n;
  const size_t *row_of;  /* of the last logits; NULL: row r for token r */
  const uint64_t *index; /* blocks of the stream */
  /* Where the sampling's behaviour adds noise to logits or rounds them: the address of each row's
   * noise among those of the stream's seed (operations.h: distort). NULL: logits are as they are.
   */
  const uint64_t *context;
} model_draw_rows;

/* What was sampled, host arrays [n]. */
typedef struct model_drawn {
  int32_t *token;
  double *logq;           /* log-probability at the temperature */
  double *logq_truncated; /* after top-k and top-p (paper/methods.md, section 1.2) */
  /* Where distributions are truncated: sets [n, shape.words] of the tokens that were kept; NULL:
   * they are not wanted. */
  kept_shape shape;
  uint32_t *kept;
} model_drawn;

/* Samples a token from each row, as the backend's sample() says; with contexts or sets never
 * greedily. */
gl_status model_sample(model_cache *c, const model_draw_rows *rows, const model_draws *draws,
                       const model_drawn *out, gl_error *err);

/* --- steps: a decode of every row and a draw of the token that follows, in one --- */

/* The rows of a step, host arrays [n]: token[r], decoded at position[r] of slot[r], after which the
 * next token is drawn at block index[r] of the stream. A token of -1 - i stands for what row i of
 * the step before draws, which the host need not know yet. */
typedef struct model_step_rows {
  size_t n;
  const int32_t *token, *slot, *position;
  const uint64_t *index;
} model_step_rows;

/* How many steps may have been started and not yet been taken when the next one is started: 1 where
 * a device runs them beside the host, else 0. */
size_t model_steps_ahead(const model_cache *c);
/* Starts a step. GL_EINTERNAL for rows that do not fit the cache, tokens of a step that there was
 * not, or too many steps under way. What fails on a device is returned by model_step_take(). */
gl_status model_step(model_cache *c, const model_step_rows *rows, const model_draws *draws,
                     gl_error *err);
/* Waits for the oldest step that was started and not taken, and gives what its rows drew, as
 * model_sample() does. GL_EINTERNAL where there is none. */
gl_status model_step_take(model_cache *c, int32_t *token, double *logq, double *logq_truncated,
                          gl_error *err);

/* The fields of the section `world.model`. */
extern const struct field_table llm_model_fields;

#endif
