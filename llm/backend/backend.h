/* Where a transformer's arithmetic happens: one table of operations, implemented by the CPU
 * (backend_cpu.c, float and double) and by CUDA (backend_cuda.cu, float and bfloat16). The model,
 * generation and the learner are written once, over this table.
 *
 * Numbers. `type` is what activations are stored in and what products read parameters as; `master`
 * is the type of parameters, gradients, moments, logits and statistics: double where type is
 * double, else float. Where type and master differ (bfloat16) a parameter has two forms: the master
 * and a copy in `type`, which `cast` renews after every optimiser step. Pointers named below as
 * T* hold `type`, as M* hold `master`; all live in the backend's memory, which the host reaches
 * through upload and download only.
 *
 * Errors. Operations return nothing: the first failure (a kernel, a scratch allocation) is kept,
 * later operations may do nothing, and status() tells. Whoever runs a sequence of operations asks
 * at its end. Operations run in order; download and status wait for all before them.
 *
 * Reproducibility. The same operations on the same values give the same bits on the same kind of
 * device, whatever the number of threads. Where an operation says "row by row" every result row
 * depends on its own input row alone, however many rows there are; for `product` that is asked for
 * by its flag.
 *
 * Matrices are row-major: "in [n, k]" has n rows of k. Weights are [outputs, inputs] as Hugging
 * Face stores them. Rows of several sequences are packed one after the other: sequence s has rows
 * [start[s], start[s + 1]). */
#ifndef GEPOLAB_LLM_BACKEND_BACKEND_H
#define GEPOLAB_LLM_BACKEND_BACKEND_H

#include "core/base/error.h"
#include "core/random/rng_stream.h"
#include "core/rl/sampling.h"

#ifndef __cplusplus /* kernels that draw include it themselves; it takes long to read as C++ */
#include "core/random/rng.h"
#endif

#include <stddef.h>
#include <stdint.h>

typedef enum backend_kind { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA } backend_kind;
typedef enum number_type { NUMBER_F32, NUMBER_F64, NUMBER_BF16 } number_type;

typedef struct backend backend;
typedef struct backend_graph backend_graph;

/* Attention heads: a row of qkv is q * dim queries, kv * dim keys, kv * dim values; a row of qk is
 * the q * dim queries and kv * dim keys after norm and rotation. Query head h reads key/value head
 * h / (q / kv). */
typedef struct head_shape {
  size_t q, kv, dim;
} head_shape;

/* Packed sequences, start in backend memory. */
typedef struct packed_rows {
  size_t rows, sequences, longest;
  const int32_t *start; /* [sequences + 1] */
} packed_rows;

/* Sizes of a model's run, for plans. */
typedef struct run_shape {
  size_t rows;            /* packed, of a forward and backward */
  size_t slots, capacity; /* sequences decoded side by side, positions of one */
  size_t hidden, intermediate, vocabulary;
  head_shape heads;
} run_shape;

enum { PRODUCT_ADD = 1, PRODUCT_ROW_BY_ROW = 2 }; /* flags of product */

/* Stochastic rounding of the copy in bfloat16: up or down with the probabilities that make the
 * mean the master's value. Number i of a call is rounded by the upper half of word (first + i) % 4
 * of block (first + i) / 4 of the stream, so the copy follows from master and address alone. Where
 * T is M nothing is rounded. */
typedef struct copy_rounding {
  rng_stream stream;
  uint64_t first;
} copy_rounding;

typedef struct adamw_step {
  double lr, beta1, beta2, eps;
  double decoupled;              /* weight decay: parameter *= 1 - lr * decoupled */
  double coupled;                /* weight decay added to the gradient */
  double correct1, correct2;     /* 1 - beta^t */
  double scale;                  /* factor on the gradient: clipping */
  const copy_rounding *rounding; /* NULL: to the nearest, ties to even */
} adamw_step;

typedef struct sgd_step {
  double lr, momentum, coupled, scale;
  const copy_rounding *rounding;
} sgd_step;

typedef struct backend_ops {
  /* --- memory: zeroed; NULL after a failure, which status() explains --- */
  void *(*allocate)(backend *b, size_t bytes);
  void (*release)(backend *b, void *memory); /* NULL is fine */
  /* Memory for what is put aside, contents undefined: the host's, pinned, where the backend's own
   * is a device's; else the same as the two above. Only copy and download know it. */
  void *(*allocate_aside)(backend *b, size_t bytes);
  void (*release_aside)(backend *b, void *memory);
  void (*upload)(backend *b, void *to, const void *host, size_t bytes);
  void (*download)(backend *b, void *host, const void *from, size_t bytes);
  void (*copy)(backend *b, void *to, const void *from, size_t bytes);
  void (*zero)(backend *b, void *memory, size_t bytes);
  /* T out[n] from M in[n]; nothing where they are the same memory. */
  void (*cast)(backend *b, void *out, const void *in, size_t n);
  void (*cast_stochastic)(backend *b, void *out, const void *in, size_t n, const copy_rounding *r);
  gl_status (*status)(backend *b, gl_error *err);

  /* --- rows (all row by row) --- */
  /* T out[rows, width] = table[token[r]]; table T [vocabulary, width]. */
  void (*embed)(backend *b, void *out, const void *table, const int32_t *token, size_t rows,
                size_t width);
  /* M dtable[vocabulary, width] += T dout, in a fixed order. */
  void (*embed_backward)(backend *b, void *dtable, const void *dout, const int32_t *token,
                         size_t rows, size_t width);
  /* T out[n, width] = rows index[0..n) of in; and M/T in[index[r]] += out for its reverse. */
  void (*gather)(backend *b, void *out, const void *in, const int32_t *index, size_t n,
                 size_t width);
  void (*scatter_add)(backend *b, void *in, const void *out, const int32_t *index, size_t n,
                      size_t width);
  /* sum = in + add (add NULL: sum is not written), out = sum / rms(sum) * weight with
   * rms = sqrt(mean square + eps). M rstd[rows] = 1 / rms. T in, add, sum, out [rows, width];
   * T weight[width]. sum may be in. */
  void (*norm)(backend *b, void *out, void *rstd, void *sum, const void *in, const void *add,
               const void *weight, size_t rows, size_t width, double eps);
  /* T din[rows, width] += its gradient through out = norm(in); M dweight[width] += (in a fixed
   * order). in is the forward's sum. */
  void (*norm_backward)(backend *b, void *din, void *dweight, const void *dout, const void *in,
                        const void *rstd, const void *weight, size_t rows, size_t width);
  /* M cosine, sine [positions, dim / 2] of the angles position * theta^(-2 i / dim). */
  void (*rotary_table)(backend *b, void *cosine, void *sine, size_t positions, size_t dim,
                       double theta);
  /* qk [rows, (q + kv) * dim] = rotary(norm per head(qkv)); M rstd[rows, q + kv]; weights T [dim];
   * position[rows]. Rotary in Hugging Face's halves: pair (i, i + dim / 2). */
  void (*heads)(backend *b, void *qk, void *rstd, const void *qkv, const void *q_weight,
                const void *k_weight, const void *cosine, const void *sine, const int32_t *position,
                size_t rows, head_shape shape, double eps);
  /* T dqkv's queries and keys = gradient (written, values untouched); M dq_weight, dk_weight +=. */
  void (*heads_backward)(backend *b, void *dqkv, void *dq_weight, void *dk_weight, const void *dqk,
                         const void *qkv, const void *rstd, const void *q_weight,
                         const void *k_weight, const void *cosine, const void *sine,
                         const int32_t *position, size_t rows, head_shape shape);
  /* T out[rows, width] = silu(gate) * up, gate_up [rows, 2 * width]. */
  void (*swiglu)(backend *b, void *out, const void *gate_up, size_t rows, size_t width);
  void (*swiglu_backward)(backend *b, void *dgate_up, const void *dout, const void *gate_up,
                          size_t rows, size_t width);

  /* --- products --- */
  /* T out[rows, m] (+)= in[rows, k] weight[m, k]^T. */
  void (*product)(backend *b, void *out, const void *in, const void *weight, size_t rows, size_t m,
                  size_t k, int flags);
  /* T din[rows, k] (+)= dout[rows, m] weight[m, k]. */
  void (*product_backward_input)(backend *b, void *din, const void *dout, const void *weight,
                                 size_t rows, size_t m, size_t k, int flags);
  /* M dweight[m, k] += dout[rows, m]^T in[rows, k]. */
  void (*product_backward_weight)(backend *b, void *dweight, const void *dout, const void *in,
                                  size_t rows, size_t m, size_t k);

  /* --- attention: causal within each packed sequence, scores scaled by 1 / sqrt(dim) --- */
  /* T out[rows, q * dim]; M lse[rows, q]: log of the sum of exponentials of the scaled scores.
   * Queries and keys from qk, values from qkv. Row by row. Memory linear in rows. */
  void (*attention)(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                    packed_rows rows, head_shape shape);
  /* T dqk [rows, (q + kv) * dim] and the values' part of dqkv are written. */
  void (*attention_backward)(backend *b, void *dqk, void *dqkv, const void *dout, const void *out,
                             const void *lse, const void *qk, const void *qkv, packed_rows rows,
                             head_shape shape);

  /* --- output: fused product, log-probability and entropy; logits are never held whole --- */
  /* For z = in weight^T / temperature: M logp[rows] of target, M entropy[rows], M lse[rows].
   * T in[rows, k], weight [vocabulary, k]. */
  void (*output)(backend *b, void *logp, void *entropy, void *lse, const void *in,
                 const void *weight, const int32_t *target, size_t rows, size_t vocabulary,
                 size_t k, double temperature);
  /* Given M dlogp[rows]: T din[rows, k] written; M dweight[vocabulary, k] +=. */
  void (*output_backward)(backend *b, void *din, void *dweight, const void *dlogp, const void *lse,
                          const void *in, const void *weight, const int32_t *target, size_t rows,
                          size_t vocabulary, size_t k, double temperature);

  /* --- generation (all row by row) --- */
  /* Keys and values of rows into T cache_k, cache_v at (slot[r], position[r]). Each has
   * slots * capacity * kv * dim numbers, a slot's in one piece; how they lie inside a slot is the
   * backend's own affair. A row of slot -1, which only fills a recorded decode up, stores nothing,
   * and attends to nothing: its attention is zeros. */
  void (*cache_store)(backend *b, void *cache_k, void *cache_v, const void *qk, const void *qkv,
                      const int32_t *slot, const int32_t *position, size_t rows, size_t capacity,
                      head_shape shape);
  /* Copies the first `length` positions of slot `from` to slot `to`. */
  void (*cache_copy)(backend *b, void *cache_k, void *cache_v, size_t from, size_t to,
                     size_t length, size_t capacity, head_shape shape);
  /* T out[rows, q * dim]: row r's query attends to positions 0..position[r] of slot[r]. */
  void (*attention_cached)(backend *b, void *out, const void *qk, const void *cache_k,
                           const void *cache_v, const int32_t *slot, const int32_t *position,
                           size_t rows, size_t capacity, head_shape shape);
  /* M logits[rows, vocabulary] = in weight^T. */
  void (*logits)(backend *b, void *logits, const void *in, const void *weight, size_t rows,
                 size_t vocabulary, size_t k);
  /* Draws token[r] from softmax(logits[r] / temperature) truncated as spec says
   * (core/rl/sampling.h), by inversion of the cumulative sum in token order at u = rng_u01_53 of
   * block index[r] of stream; or, if greedy, takes the most probable, of equals the lowest number.
   * M logq[rows] of the untruncated, M logq_truncated[rows] of the truncated law. */
  void (*sample)(backend *b, int32_t *token, void *logq, void *logq_truncated, const void *logits,
                 const uint64_t *index, size_t rows, size_t vocabulary, const sampling_spec *spec,
                 rng_stream stream, int greedy);

  /* --- optimiser, over n numbers: M param, grad, m, v; T copy (may be param) --- */
  void (*adamw)(backend *b, void *param, void *copy, const void *grad, void *m, void *v, size_t n,
                const adamw_step *step);
  /* m NULL: no momentum. */
  void (*sgd)(backend *b, void *param, void *copy, const void *grad, void *m, size_t n,
              const sgd_step *step);
  /* Sum of squares of M x[n], in a fixed order; waits. */
  double (*sum_squares)(backend *b, const void *x, size_t n);

  /* --- optional, NULL where there is no such thing --- */
  /* Records the operations between begin and end to run them again with other contents of the same
   * memory (CUDA graphs). */
  void (*graph_begin)(backend *b);
  backend_graph *(*graph_end)(backend *b);
  void (*graph_run)(backend *b, backend_graph *g);
  void (*graph_free)(backend *b, backend_graph *g);

  /* Bytes the backend's memory has in all and free now, for plans and messages. What the backend
   * keeps of released memory is free. */
  void (*memory)(backend *b, size_t *total, size_t *available);
  /* Optional (NULL: nothing worth telling): bytes that the backend takes at most for itself, beside
   * what is allocated, while a model of these sizes runs. */
  size_t (*scratch)(const backend *b, const run_shape *shape);
  void (*free)(backend *b);
} backend_ops;

struct backend {
  const backend_ops *ops;
  backend_kind kind;
  number_type type, master;
  size_t element, master_element; /* bytes */
  char device[128];               /* for people: "AMD EPYC, 2 threads, AVX2" */
  /* Set by whoever made the backend, before its first operation: CUDA's products of float32, those
   * asked for row by row and logits excepted, may round what they multiply to TF32. */
  int tf32;
};

/* One of several backends that compute the same thing on devices of one kind
 * (llm/learner/rank_threads.h): which device, of how many. On the CPU they share its threads and
 * memory; a CUDA device other than the first is used from the thread that made its backend. {0, 1}:
 * alone. */
typedef struct backend_place {
  size_t device, devices;
} backend_place;

void backend_free(backend *b); /* NULL is fine */
/* Memory of this machine in bytes: all of it, and what programs can still have. `b` is not looked
 * at: the form of backend_ops.memory. */
void backend_host_memory(backend *b, size_t *total, size_t *available);

#endif
