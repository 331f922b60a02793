/* The arithmetic of the transformer. A backend is a table of operations (operations.h) over its own
 * memory. There are two: the CPU (llm/backend/cpu, float32 and float64) and CUDA (llm/backend/cuda,
 * float32 and bfloat16). Model, generation and learner are written once, over this table.
 * llm/backend/open makes backends.
 *
 * Numbers. `type` is the type of activations, and of parameters as products read them. `master` is
 * the type of parameters, gradients, optimiser moments, logits and statistics: float64 if type is
 * float64, else float32. If the two differ (bfloat16) a parameter is stored twice: as the master,
 * and as a copy in `type`, which the optimiser or `cast` updates after every step. Comments write T
 * for numbers of `type` and M for numbers of `master`. All arrays of an operation are in the
 * backend's memory, which the host accesses only with upload and download.
 *
 * Errors. Most operations return nothing. The backend stores the first error (of a kernel, or of
 * memory that an operation needs for itself). Later operations may do nothing. status() returns the
 * error. Callers check once, at the end of a sequence of operations.
 *
 * Order. Operations of one backend run one after the other; on a device they may run after the call
 * has returned. status, download and sum_squares wait for all earlier operations. A backend is used
 * by one thread at a time.
 *
 * Reproducibility. The same operations on the same values give the same bits on the same kind of
 * device, for any number of threads. In row-wise operations each row of the result depends only on
 * its own row of the input, bit for bit, however many rows there are. `product` is row-wise if
 * PRODUCT_ROW_BY_ROW is set.
 *
 * Matrices are row-major: "in [n, k]" has n rows of k numbers. Weights are [outputs, inputs], as
 * Hugging Face stores them. Sequences are packed without padding: sequence s has rows [start[s],
 * start[s + 1]) of every matrix with one row per token. */
#ifndef GEPOLAB_LLM_BACKEND_BACKEND_H
#define GEPOLAB_LLM_BACKEND_BACKEND_H

#include "core/base/error.h"
#include "core/random/rng_purposes.h"
#include "core/rl/sampling_distribution.h"

/* core/random/rng.h compiles slowly as C++, so .cu files that need it include it themselves. */
#ifndef __cplusplus
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

/* Attention heads: q query heads and kv key/value heads of dim numbers each. A row of qkv has q *
 * dim queries, kv * dim keys, kv * dim values. A row of qk has the q * dim queries and kv * dim
 * keys after norm and rotary embedding. Query head h reads key/value head h / (q / kv)
 * (grouped-query attention), so q is a multiple of kv. */
typedef struct head_shape {
  size_t q, kv, dim;
} head_shape;

/* Llama 3's scaling of the rotary embedding. Pairs of a head that rotate fewer than `low` times
 * within `positions` positions are slowed down by `factor`; those that rotate more than `high`
 * times keep their speed; between these limits the speed is interpolated (rotary_speed in
 * kernels.h). factor 0: not scaled. */
typedef struct rotary_scaling {
  double factor, low, high, positions;
} rotary_scaling;

static inline int head_shape_is_valid(head_shape s) { /* for asserts */
  return s.kv > 0 && s.dim > 0 && s.q % s.kv == 0;
}

/* Numbers of rows and of packed sequences; `longest` is the number of rows of the longest sequence.
 */
typedef struct packed_rows {
  size_t rows, sequences, longest;
  const int32_t
      *start; /* [sequences + 1] first row of each, then `rows`; in the backend's memory */
} packed_rows;

/* Packed sequences with shared prefixes, each stored once. Before its own rows, sequence s has
 * before[s] positions: the first positions of sequence parent[s], some of which may be stored with
 * ancestors of parent[s]. Sequences that share a prefix form a tree and are adjacent. Parents
 * precede their children, and the first sequence of a tree has no parent. packed_rows.longest
 * counts all positions of a sequence, packed_rows.start only its own rows. */
typedef struct shared_rows {
  size_t trees;
  const int32_t *tree;   /* [trees + 1] first sequence of each tree, then the number of sequences */
  const int32_t *parent; /* [sequences] ignored if before is 0 */
  const int32_t *before; /* [sequences] */
  const int32_t *full;   /* [sequences + 1] first row of each if no row was shared */
  const int32_t *full_host; /* the same, in host memory */
} shared_rows;              /* the other arrays are in the backend's memory */

/* For every row, the set of tokens that top-k and top-p kept when the row's token was sampled: set
 * [rows, shape.words], in the format of core/rl/sampling_distribution.h, in the backend's
 * memory. */
typedef struct kept_sets {
  kept_shape shape;
  uint32_t *set;
} kept_sets;

/* The sizes of a model's run, from which a backend computes its scratch memory. */
typedef struct run_shape {
  size_t rows;            /* maximum packed rows of a forward and backward */
  size_t slots, capacity; /* sequences decoded side by side; positions of each */
  size_t hidden, intermediate, vocabulary;
  head_shape heads;
} run_shape;

/* Flags of product and product_backward_input. PRODUCT_ADD: the result is added to `out`.
 * PRODUCT_ROW_BY_ROW: a row's bits do not depend on the other rows (forward only). */
enum product_flag { PRODUCT_ADD = 1, PRODUCT_ROW_BY_ROW = 2 };

/* Stochastic rounding of a copy to bfloat16: up or down with probabilities such that the expected
 * value is the master's. Number i of a call is rounded with the upper half of word (first + i) % 4
 * of block (first + i) / 4 of the stream. So a copy depends only on the master, the stream and
 * `first`. If T is M nothing is rounded. */
typedef struct copy_rounding {
  rng_stream stream;
  uint64_t first;
} copy_rounding;

/* One step of AdamW (Loshchilov & Hutter, arXiv 1711.05101), or of Adam with `coupled` weight
 * decay. */
typedef struct adamw_step {
  double lr, beta1, beta2, eps;
  double decoupled;              /* weight decay: parameter *= 1 - lr * decoupled */
  double coupled;                /* weight decay: gradient += coupled * parameter */
  double correct1, correct2;     /* bias corrections 1 - beta1^t and 1 - beta2^t of step t >= 1 */
  double scale;                  /* factor on the gradient, from clipping by norm */
  const copy_rounding *rounding; /* NULL: round to nearest, ties to even */
} adamw_step;

/* One step of gradient descent: m = momentum * m + gradient, parameter -= lr * m. `coupled` and
 * `scale` act on the gradient as in adamw_step. */
typedef struct sgd_step {
  double lr, momentum, coupled, scale;
  const copy_rounding *rounding;
} sgd_step;

/* The function that in_ranges runs: processes rows [first, first + n), using only operations of
 * `own`. */
typedef void (*backend_range)(void *context, size_t first, size_t n, backend *own);

/* A function pointer for every entry of operations.h, where they are described. */
typedef struct backend_ops {
#define OPERATION(result, name, arguments) result(*name) arguments;
#define OPTIONAL_OPERATION(result, name, arguments) result(*name) arguments;
#define HOST_OPERATION(result, name, arguments) result(*name) arguments;
#include "llm/backend/operations.h"
} backend_ops;

struct backend {
  const backend_ops *ops; /* borrowed; constant during the backend's life */
  backend_kind kind;
  number_type type, master;
  size_t element, master_element; /* bytes of a number of type; of master */
  char device[128];               /* for messages: "AMD EPYC, 2 threads, avx2" */
  /* Instruction set of the CPU's kernels ("avx2"), a string constant; the last bits of results
   * depend on it. NULL for devices. */
  const char *form;
  /* To be set after making the backend, before its first operation. 1: CUDA's products of float32
   * may round their factors to TF32, except logits and row-wise products. */
  int tf32;
  /* 1: attention_shared copies all positions, which takes time (model_shares). Set by the backend;
   * tests change it. */
  int copies_shared;
};

/* The device of a backend, if a learner has one replica on each of several devices
 * (llm/learner/learner.h); {0, 1} for a single device. On the CPU the "devices" share threads and
 * memory. A backend on a CUDA device other than the first is used only from the thread that made
 * it, because CUDA's current device is per thread. */
typedef struct backend_place {
  size_t device, devices;
} backend_place;

void backend_free(backend *b); /* NULL is allowed */
/* This machine's memory in bytes: total, and available to programs; 0 if the system does not report
 * it. */
void backend_host_memory(size_t *total, size_t *available);

#endif
