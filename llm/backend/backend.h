/* Where a transformer's arithmetic happens: a backend is a table of operations (operations.h) over
 * memory of its own. There are two: the CPU (llm/backend/cpu, float32 and float64) and CUDA
 * (llm/backend/cuda, float32 and bfloat16). The model, generation and the learner are written once,
 * over this table. llm/backend/open makes backends.
 *
 * Numbers. `type` is what activations are stored in and what products read parameters as; `master`
 * is the type of parameters, gradients, optimiser moments, logits and statistics: float64 where
 * type is float64, else float32. Where the two differ (bfloat16) a parameter exists twice: as the
 * master and as a copy in `type`, which the optimiser or `cast` renews after every step. Comments
 * write T for numbers of `type` and M for numbers of `master`. All arrays of an operation lie in
 * the backend's memory, which the host reaches through upload and download only.
 *
 * Errors. Most operations return nothing. The first failure (of a kernel, or of memory that an
 * operation needs for itself) is kept in the backend; operations after it may do nothing; status()
 * returns it. Whoever runs a sequence of operations asks once, at its end.
 *
 * Order. Operations of one backend run one after the other; on a device they may run after the call
 * has returned. status, download and sum_squares wait for all operations before them. One backend
 * is used by one thread at a time.
 *
 * Reproducibility. The same operations on the same values give the same bits on the same kind of
 * device, whatever the number of threads. In operations described as row by row each row of the
 * result depends on its own row of the input alone, bit for bit, however many rows there are;
 * `product` does so where PRODUCT_ROW_BY_ROW is set.
 *
 * Matrices are row-major: "in [n, k]" has n rows of k numbers. Weights are [outputs, inputs], as
 * Hugging Face stores them. Sequences are packed without padding: sequence s has rows
 * [start[s], start[s + 1]) of every matrix with one row for each token. */
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
typedef struct backend_fetch backend_fetch;
typedef struct backend_mark backend_mark;

/* Attention heads: q query heads and kv key/value heads of dim numbers each. A row of qkv is q *
 * dim queries, kv * dim keys, kv * dim values; a row of qk is the q * dim queries and kv * dim keys
 * after norm and rotary embedding. Query head h reads key/value head h / (q / kv) (grouped-query
 * attention), so q is a multiple of kv. */
typedef struct head_shape {
  size_t q, kv, dim;
} head_shape;

static inline int head_shape_is_valid(head_shape s) { /* for asserts */
  return s.kv > 0 && s.dim > 0 && s.q % s.kv == 0;
}

/* The rows of packed sequences: how many rows, of how many sequences, of which the longest has
 * `longest` rows. */
typedef struct packed_rows {
  size_t rows, sequences, longest;
  const int32_t
      *start; /* [sequences + 1] first row of each, then `rows`; in the backend's memory */
} packed_rows;

/* Packed sequences with common beginnings, each of which is there once. before[s] positions of
 * sequence s come before its own rows: they are the first ones of sequence parent[s], of which some
 * may in turn be those of that one's parent. Sequences that share anything are neighbours, a tree;
 * parents come before their children, and the first sequence of a tree has its own rows only.
 * packed_rows.longest counts all positions of a sequence, start its own rows. */
typedef struct shared_rows {
  size_t trees;
  const int32_t *tree;   /* [trees + 1] first sequence of each, then the number of sequences */
  const int32_t *parent; /* [sequences] any number where before is 0 */
  const int32_t *before; /* [sequences] */
} shared_rows;           /* the arrays are in the backend's memory */

/* For every row the tokens that were kept when it was drawn: the sets [rows, shape.words] lie in
 * the backend's memory. */
typedef struct kept_sets {
  kept_shape shape;
  uint32_t *set;
} kept_sets;

/* The sizes a model runs with, from which a backend computes the memory it needs for itself. */
typedef struct run_shape {
  size_t rows;            /* most packed rows of a forward and backward */
  size_t slots, capacity; /* sequences decoded side by side, and positions of each */
  size_t hidden, intermediate, vocabulary;
  head_shape heads;
} run_shape;

/* Flags of product and product_backward_input: the result is added to what `out` holds; a row of
 * the result has the same bits whatever rows are computed with it (forward only). */
enum product_flag { PRODUCT_ADD = 1, PRODUCT_ROW_BY_ROW = 2 };

/* Stochastic rounding of a copy in bfloat16: up or down with the probabilities that make the
 * expected value the master's. Number i of a call is rounded by the upper half of word
 * (first + i) % 4 of block (first + i) / 4 of the stream, so a copy follows from the master and
 * this address alone. Where T is M nothing is rounded. */
typedef struct copy_rounding {
  rng_stream stream;
  uint64_t first;
} copy_rounding;

/* One step of AdamW (Loshchilov & Hutter, arXiv 1711.05101), or of Adam where `coupled` is used. */
typedef struct adamw_step {
  double lr, beta1, beta2, eps;
  double decoupled;              /* weight decay: parameter *= 1 - lr * decoupled */
  double coupled;                /* weight decay: gradient += coupled * parameter */
  double correct1, correct2;     /* bias corrections 1 - beta1^t and 1 - beta2^t of step t >= 1 */
  double scale;                  /* factor on the gradient, from clipping its norm */
  const copy_rounding *rounding; /* NULL: to the nearest, ties to even */
} adamw_step;

/* One step of gradient descent: m = momentum * m + gradient, parameter -= lr * m. */
typedef struct sgd_step {
  double lr, momentum, coupled, scale;
  const copy_rounding *rounding;
} sgd_step;

/* The function that in_ranges runs: rows [first, first + n), with operations of `own` only. */
typedef void (*backend_range)(void *context, size_t first, size_t n, backend *own);

/* A function pointer for every entry of operations.h, where they are described. */
typedef struct backend_ops {
#define OPERATION(result, name, arguments) result(*name) arguments;
#define OPTIONAL_OPERATION(result, name, arguments) result(*name) arguments;
#define HOST_OPERATION(result, name, arguments) result(*name) arguments;
#include "llm/backend/operations.h"
} backend_ops;

struct backend {
  const backend_ops *ops; /* borrowed: lives as long as the backend */
  backend_kind kind;
  number_type type, master;
  size_t element, master_element; /* bytes of a number of type, of master */
  char device[128];               /* for people: "AMD EPYC, 2 threads, avx2" */
  /* The form of the CPU's arithmetic ("avx2"), on which last bits depend, else NULL; a constant. */
  const char *form;
  /* Set by whoever made the backend, before its first operation. 1: CUDA's products of float32 may
   * round their factors to TF32, but for logits and for products asked for row by row. */
  int tf32;
};

/* Which of several devices of one kind a backend gets, where a learner has one replica on each
 * (llm/learner/learner.h); {0, 1} where it is the only one. On the CPU the "devices" share its
 * threads and memory. A backend on a CUDA device other than the first is used only from the thread
 * that made it, because CUDA's current device is the thread's. */
typedef struct backend_place {
  size_t device, devices;
} backend_place;

void backend_free(backend *b); /* NULL is fine */
/* Bytes of this machine's memory: all of it, and what programs can still have; 0 where the system
 * does not tell. */
void backend_host_memory(size_t *total, size_t *available);

#endif
