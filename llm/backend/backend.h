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

/* A function pointer for every entry of operations.h, where they are described. */
typedef struct backend_ops {
#define OPERATION(result, name, arguments) result(*name) arguments;
#define OPTIONAL_OPERATION(result, name, arguments) result(*name) arguments;
#include "llm/backend/operations.h"
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
/* Bytes of this machine's memory: all of it, and what programs can still have; 0 where the system
 * does not tell. */
void backend_host_memory(size_t *total, size_t *available);

#endif
