/* The table of a backend's operations, one entry each. This header is included several times.
 * Before each, the including file defines
 *   OPERATION(result, name, arguments)            an operation that every backend has
 *   OPTIONAL_OPERATION(result, name, arguments)   one whose pointer may be NULL in a backend
 *   HOST_OPERATION(result, name, arguments)       one that only the CPU has; NULL elsewhere
 * which are undefined at its end. backend.h declares the pointers of backend_ops from it, backends
 * fill their tables from it, and tests use it to find operations that no case has called.
 *
 * A new operation needs an entry here, a line PROFILE_NAME in profiler.c, a function cpu_NAME in
 * one of the parts of cpu/template.c, a function op_NAME with its line CUDA_OPERATION or
 * CUDA_TYPED_OPERATION in one .cu file, and a case in tests/support/llm_backend_cases.c. The
 * compiler (CPU), the linker (CUDA) and the suite "llm: backend" report what is missing.
 *
 * Notation. "T out [rows, width]" is a row-major matrix of numbers of the backend's `type`, "M"
 * one of its `master` type (backend.h). `rows` is the number of rows: packed tokens in training,
 * one row per decoded response in generation. "+=" means that the result is added to the array;
 * other arrays are overwritten. Arrays must not overlap unless noted. Every pointer except those
 * named `host` is to the backend's memory; all are borrowed for the call.
 *
 * clang-format is off, because it mistakes the first argument for a multiplication. */
/* clang-format off */

/* --- memory --- */

/* Allocates `bytes` zeroed bytes of the backend's memory, to be freed with release; NULL after
 * an error, which status() returns. */
OPERATION(void *, allocate, (backend *b, size_t bytes))
/* NULL is allowed. Operations that already use the memory are not affected. */
OPERATION(void, release, (backend *b, void *memory))
/* Allocates `bytes` bytes, contents undefined, for parameters that no operation reads for a
 * while: in pinned host memory if the backend is a device, else as allocate does. Only copy and
 * download accept it. Free with release_aside; NULL after an error. */
OPERATION(void *, allocate_aside, (backend *b, size_t bytes))
OPERATION(void, release_aside, (backend *b, void *memory)) /* NULL is allowed */
/* Copies of `bytes` bytes. `host` may be changed or freed as soon as upload returns; download
 * returns when `host` is filled. */
OPERATION(void, upload, (backend *b, void *to, const void *host, size_t bytes))
OPERATION(void, download, (backend *b, void *host, const void *from, size_t bytes))
OPERATION(void, copy, (backend *b, void *to, const void *from, size_t bytes))
OPERATION(void, zero, (backend *b, void *memory, size_t bytes))
/* T out [n] from M in [n], rounded to nearest; does nothing if both are the same memory. */
OPERATION(void, cast, (backend *b, void *out, const void *in, size_t n))
/* cast, rounded according to r. */
OPERATION(void, cast_stochastic,
          (backend *b, void *out, const void *in, size_t n, const copy_rounding *r))
/* Waits for all operations so far, and returns the first error since the backend was made. */
OPERATION(gl_status, status, (backend *b, gl_error *err))

/* --- rows (each row's result depends on that row alone) --- */

/* T out [rows, width] = row token[r] of T table [vocabulary, width]. */
OPERATION(void, embed,
          (backend *b, void *out, const void *table, const int32_t *token, size_t rows,
           size_t width))
/* M dtable [vocabulary, width]: its row token[r] += row r of T dout [rows, width], in ascending
 * order of r. */
OPERATION(void, embed_backward,
          (backend *b, void *dtable, const void *dout, const int32_t *token, size_t rows,
           size_t width))
/* T out [n, width] = rows index[0 .. n) of T in. */
OPERATION(void, gather,
          (backend *b, void *out, const void *in, const int32_t *index, size_t n, size_t width))
/* The reverse: row index[r] of T in += row r of T out [n, width], in ascending order of r. index
 * must ascend, with equal numbers adjacent, so nothing needs sorting. */
OPERATION(void, scatter_add,
          (backend *b, void *in, const void *out, const int32_t *index, size_t n, size_t width))
/* RMSNorm after a residual addition: sum = in + add, out = sum * rstd * weight, where rstd = 1 /
 * sqrt(mean of sum^2 + eps). T in, add, sum, out [rows, width]; T weight [width]; M rstd [rows].
 * If add is NULL, sum is `in` and is not written (it may be NULL). sum may be `in`. */
OPERATION(void, norm,
          (backend *b, void *out, void *rstd, void *sum, const void *in, const void *add,
           const void *weight, size_t rows, size_t width, double eps))
/* T din [rows, width] += the gradient through norm; M dweight [width] += its gradient, summed
 * over rows in a fixed order. T dout, in [rows, width], where in is the forward's sum; M rstd
 * [rows]. */
OPERATION(void, norm_backward,
          (backend *b, void *din, void *dweight, const void *dout, const void *in,
           const void *rstd, const void *weight, size_t rows, size_t width))
/* T out [rows, width] += T bias [width], in every row; below, M dbias [width] += the sum of the rows
 * of T dout, in a fixed order. */
OPERATION(void, bias, (backend *b, void *out, const void *bias, size_t rows, size_t width))
OPERATION(void, bias_backward,
          (backend *b, void *dbias, const void *dout, size_t rows, size_t width))
/* M cosine, sine [positions, dim / 2] of the angle by which pair i of a head rotates at a position:
 * position * theta^(-2 i / dim) radians, less for the pairs that `scaling` slows down
 * (rotary_scaling). */
OPERATION(void, rotary_table,
          (backend *b, void *cosine, void *sine, size_t positions, size_t dim, double theta,
           rotary_scaling scaling))
/* Prepares queries and keys for attention: RMSNorm of each head, then the rotary embedding of
 * the row's position. If q_weight and k_weight are NULL there is no norm, and rstd is not used. T qk
 * [rows, (q + kv) * dim] from the first q + kv heads of T qkv [rows, (q
 * + 2 kv) * dim]; T q_weight, k_weight [dim]; cosine, sine of rotary_table; position [rows]; M
 * rstd [rows, q + kv] of the norms. Pairs (i, i + dim / 2) rotate, as in Hugging Face's models. */
OPERATION(void, heads,
          (backend *b, void *qk, void *rstd, const void *qkv, const void *q_weight,
           const void *k_weight, const void *cosine, const void *sine, const int32_t *position,
           size_t rows, head_shape shape, double eps))
/* Writes the queries' and keys' columns of T dqkv [rows, (q + 2 kv) * dim]; the values' columns do
 * not change. M dq_weight, dk_weight [dim] += their gradients. T dqk [rows, (q + kv) * dim] are the
 * gradients of the forward's qk. */
OPERATION(void, heads_backward,
          (backend *b, void *dqkv, void *dq_weight, void *dk_weight, const void *dqk,
           const void *qkv, const void *rstd, const void *q_weight, const void *k_weight,
           const void *cosine, const void *sine, const int32_t *position, size_t rows,
           head_shape shape))
/* T out [rows, width] = silu(gate) * up, where a row of T gate_up [rows, 2 * width] is `width`
 * numbers of gate, then `width` of up; silu(x) = x / (1 + e^-x). */
OPERATION(void, swiglu,
          (backend *b, void *out, const void *gate_up, size_t rows, size_t width))
/* Writes T dgate_up [rows, 2 * width], the gradients of gate_up, from T dout [rows, width], those
 * of swiglu's result. */
OPERATION(void, swiglu_backward,
          (backend *b, void *dgate_up, const void *dout, const void *gate_up, size_t rows,
           size_t width))

/* --- products; flags: of enum product_flag --- */

/* T out [rows, m] (+)= in weight^T; T in [rows, k], weight [m, k]. */
OPERATION(void, product,
          (backend *b, void *out, const void *in, const void *weight, size_t rows, size_t m,
           size_t k, int flags))
/* Products with a packed weight: a copy of its numbers in the backend's own order, made once for
 * all products with these values. packed_numbers: how many numbers of type T the packed weight
 * [m, k] has, SIZE_MAX on overflow. `pack` writes T packed from T weight [m, k].
 * `product_packed` does the same as `product`, with another order of sums. It receives both
 * `weight` and the result of `pack`, and reads the one that suits it; with PRODUCT_ROW_BY_ROW it
 * always reads `packed`. */
HOST_OPERATION(size_t, packed_numbers, (const backend *b, size_t m, size_t k))
HOST_OPERATION(void, pack, (backend *b, void *packed, const void *weight, size_t m, size_t k))
HOST_OPERATION(void, product_packed,
               (backend *b, void *out, const void *in, const void *weight, const void *packed,
                size_t rows, size_t m, size_t k, int flags))
/* Runs a sequence of row-wise operations on rows [0, n), divided into one range of rows per
 * thread, so that no thread waits for another between two operations. `own` is a single-thread
 * backend over the same memory, reserved for the range until it returns. If a thread would have
 * fewer than `least` rows (at least 1), all rows are one range and `own` is b. */
HOST_OPERATION(void, in_ranges,
               (backend *b, size_t n, size_t least, backend_range run, void *context))
/* T din [rows, k] (+)= dout weight; T dout [rows, m], weight [m, k]. */
OPERATION(void, product_backward_input,
          (backend *b, void *din, const void *dout, const void *weight, size_t rows, size_t m,
           size_t k, int flags))
/* M dweight [m, k] += dout^T in; T dout [rows, m], in [rows, k]. */
OPERATION(void, product_backward_weight,
          (backend *b, void *dweight, const void *dout, const void *in, size_t rows, size_t m,
           size_t k))

/* --- attention: causal within each sequence, scores divided by sqrt(dim) --- */

/* T out [rows, q * dim]; M lse [rows, q], the log-sum-exp of a query's scores. Queries and keys
 * from T qk [rows, (q + kv) * dim], values from T qkv [rows, (q + 2 kv) * dim]. A row's result
 * depends only on its own sequence. Memory grows linearly with rows. */
OPERATION(void, attention,
          (backend *b, void *out, void *lse, const void *qk, const void *qkv, packed_rows rows,
           head_shape shape))
/* Writes T dqk [rows, (q + kv) * dim] and the values' columns of T dqkv [rows, (q + 2 kv) *
 * dim]; the other columns of dqkv do not change. T dout [rows, q * dim]; out and lse are the
 * forward's. */
OPERATION(void, attention_backward,
          (backend *b, void *dqk, void *dqkv, const void *dout, const void *out, const void *lse,
           const void *qk, const void *qkv, packed_rows rows, head_shape shape))
/* Attention over sequences with shared prefixes (backend.h): a row attends to all positions of its
 * sequence up to its own. Its result has the same bits as from `attention` on the sequence
 * without sharing. The gradients of shared keys and values are sums over the sequences of a
 * tree, in order. shared.trees is at least 1. */
OPERATION(void, attention_shared,
               (backend *b, void *out, void *lse, const void *qk, const void *qkv,
                packed_rows rows, shared_rows shared, head_shape shape))
OPERATION(void, attention_shared_backward,
               (backend *b, void *dqk, void *dqkv, const void *dout, const void *out,
                const void *lse, const void *qk, const void *qkv, packed_rows rows,
                shared_rows shared, head_shape shape))

/* --- output layer: product, log-probability and entropy in one --- */

/* With z = in weight^T / temperature, T in [rows, k], T weight [vocabulary, k]: M logp [rows], the
 * log-probability of target[r]; M entropy [rows] of softmax(z); M lse [rows], the log-sum-exp of z;
 * all in nats. Where kept.set is not NULL, logp and lse are of softmax(z) renormalised over the kept
 * tokens of the row, whose set contains target[r]; an empty set keeps all tokens. Stores the logits
 * for the backward in `logits` (NULL: does not), logits_bytes(b, rows, vocabulary) bytes. */
OPERATION(void, output,
          (backend *b, void *logp, void *entropy, void *lse, void *logits, const void *in,
           const void *weight, const int32_t *target, kept_sets kept, size_t rows,
           size_t vocabulary, size_t k, double temperature))
/* From M dlogp [rows], the gradients of logp: writes T din [rows, k]; M dweight [vocabulary, k] +=
 * its gradient. kept, lse and logits are the forward's; logits outside a set get no gradient.
 * Computes the logits again if `logits` is NULL; the results have the same bits. */
OPERATION(void, output_backward,
          (backend *b, void *din, void *dweight, const void *dlogp, const void *lse,
           const void *logits, const void *in, const void *weight, const int32_t *target,
           kept_sets kept, size_t rows, size_t vocabulary, size_t k, double temperature))
/* Bytes of the logits that output stores. A backend without this operation stores none. */
OPTIONAL_OPERATION(size_t, logits_bytes, (const backend *b, size_t rows, size_t vocabulary))

/* Splits softmax(z) into the tokens of a row's set and the others: M mass [rows] is the
 * probability of the set, M entropy_kept and entropy_tail [rows] are the entropies of the
 * distribution renormalised over the set and over the others, in nats. A set of all tokens, or
 * an empty one (which keeps all), has mass 1 and entropy_tail NaN. z as in `output`. */
OPERATION(void, kept_parts,
          (backend *b, void *mass, void *entropy_kept, void *entropy_tail, const void *in,
           const void *weight, kept_sets kept, size_t rows, size_t k, double temperature))

/* --- generation (each row's result depends on that row and its slot alone) --- */

/* Stores keys of T qk and values of T qkv (shapes as in attention) in T cache_k and cache_v at
 * (slot[r], position[r]). Each cache has slots * capacity * kv * dim numbers, one slot after the
 * other; the layout within a slot is the backend's own. Rows with slot -1, which pad a recorded
 * decoding step, store nothing. */
OPERATION(void, cache_store,
          (backend *b, void *cache_k, void *cache_v, const void *qk, const void *qkv,
           const int32_t *slot, const int32_t *position, size_t rows, size_t capacity,
           head_shape shape))
/* Copies the first `length` positions of slot `from` to slot `to`. */
OPERATION(void, cache_copy,
          (backend *b, void *cache_k, void *cache_v, size_t from, size_t to, size_t length,
           size_t capacity, head_shape shape))
/* T out [rows, q * dim]: row r's query attends to positions 0 .. position[r] of slot[r]; zeros
 * for slot -1. Queries from T qk [rows, (q + kv) * dim]. */
OPERATION(void, attention_cached,
          (backend *b, void *out, const void *qk, const void *cache_k, const void *cache_v,
           const int32_t *slot, const int32_t *position, size_t rows, size_t capacity,
           head_shape shape))
/* M logits [rows, vocabulary] = in weight^T; T in [rows, k], weight [vocabulary, k]. */
OPERATION(void, logits,
          (backend *b, void *logits, const void *in, const void *weight, size_t rows,
           size_t vocabulary, size_t k))
/* Samples token [rows] from softmax(logits / temperature), truncated according to spec
 * (core/rl/sampling_distribution.h), by inverting the cumulative sum in token order at u = rng_u01_53 of
 * block index[r] of the stream. With greedy != 0: the most probable token, the lowest number on
 * ties. M logq [rows] is its log-probability before truncation, M logq_truncated [rows] after
 * it. */
OPERATION(void, sample,
          (backend *b, int32_t *token, void *logq, void *logq_truncated, const void *logits,
           const uint64_t *index, size_t rows, size_t vocabulary, const sampling_spec *spec,
           rng_stream stream, int greedy))

/* `sample`, never greedy, that also writes the tokens that each row's distribution kept
 * (kept_put(), core/rl/sampling_distribution.h). spec truncates distributions over the vocabulary, which is
 * kept.shape.vocabulary. */
OPERATION(void, sample_kept,
          (backend *b, int32_t *token, void *logq, void *logq_truncated, kept_sets kept,
           const void *logits, const uint64_t *index, size_t rows, const sampling_spec *spec,
           rng_stream stream))
/* Distorts M logits [rows, vocabulary] as a sampler that computes differently from the learner:
 * adds behaviour->noise times a standard normal number, and rounds the sum to bfloat16 if the
 * behaviour requests it. The normal number of token a of row r is number a % 2 of block a / 2 of
 * the stream (seed, RNG_BEHAVIOUR, context[r]). */
OPERATION(void, distort,
          (backend *b, void *logits, const uint64_t *context, size_t rows, size_t vocabulary,
           const sampling_behaviour *behaviour, uint64_t seed))

/* --- optimiser: M param, grad, m, v [n]; T copy [n] of param, which may be param itself --- */

OPERATION(void, adamw,
          (backend *b, void *param, void *copy, const void *grad, void *m, void *v, size_t n,
           const adamw_step *step))
/* m NULL: no momentum. */
OPERATION(void, sgd,
          (backend *b, void *param, void *copy, const void *grad, void *m, size_t n,
           const sgd_step *step))
/* Sum of squares of M x [n], in a fixed order; waits for the result. */
OPERATION(double, sum_squares, (backend *b, const void *x, size_t n))

/* --- the backend itself --- */

/* The backend's memory in bytes: total, and available to allocate, including freed memory. For
 * plans and messages. */
OPERATION(void, memory, (backend *b, size_t *total, size_t *available))
/* Frees the backend; its allocations must have been released before. */
OPERATION(void, free, (backend *b))

/* Records the operations from graph_begin to graph_end instead of running them. graph_run then
 * runs them any number of times on the present contents of the same memory (CUDA graphs). A
 * graph must be freed before its backend. graph_end returns NULL after an error. */
OPTIONAL_OPERATION(void, graph_begin, (backend *b))
OPTIONAL_OPERATION(backend_graph *, graph_end, (backend *b))
OPTIONAL_OPERATION(void, graph_run, (backend *b, backend_graph *g))
OPTIONAL_OPERATION(void, graph_free, (backend *b, backend_graph *g)) /* NULL is allowed */
/* Fused operations: the results equal those of the operations they replace, bit for bit, with
 * row-wise products. heads_store: heads, then cache_store of its results. */
OPTIONAL_OPERATION(void, heads_store,
                   (backend *b, void *qk, void *rstd, void *cache_k, void *cache_v,
                    const void *qkv, const void *q_weight, const void *k_weight,
                    const void *cosine, const void *sine, const int32_t *position,
                    const int32_t *slot, size_t rows, size_t capacity, head_shape shape,
                    double eps))
/* heads_store, then attention_cached of its results; qk and rstd may stay as they are. */
OPTIONAL_OPERATION(void, heads_attention,
                   (backend *b, void *out, void *qk, void *rstd, void *cache_k, void *cache_v,
                    const void *qkv, const void *q_weight, const void *k_weight,
                    const void *cosine, const void *sine, const int32_t *position,
                    const int32_t *slot, size_t rows, size_t capacity, head_shape shape,
                    double eps))
/* T out [rows, width] = swiglu of the product in weight^T; T in [rows, k], weight [2 width, k]. */
OPTIONAL_OPERATION(void, product_swiglu,
                   (backend *b, void *out, const void *in, const void *weight, size_t rows,
                    size_t width, size_t k))
/* For recorded decodes: a step reads the tokens that the previous step sampled on the device. T
 * out [rows, width] = row t of T table, where t is source[r], or drawn[-1 - source[r]] if
 * source[r] is negative. In rows with a slot (slot[r] >= 0) position[r] and index[r] are
 * incremented, and source[r] becomes -1 - r; other rows do not change. */
OPTIONAL_OPERATION(void, embed_next,
                   (backend *b, void *out, const void *table, int32_t *source, int32_t *position,
                    uint64_t *index, const int32_t *slot, const int32_t *drawn, size_t rows,
                    size_t width))
/* A fetch copies up to `bytes` bytes to the host while later operations run. fetch_start starts
 * copying the contents that `from` has after all operations so far. fetch_wait waits for this
 * copy only and returns the host memory, which the fetch owns, or NULL after an error. A fetch
 * makes one copy at a time and must be freed before its backend. fetch_new returns NULL after an
 * error. */
OPTIONAL_OPERATION(backend_fetch *, fetch_new, (backend *b, size_t bytes))
OPTIONAL_OPERATION(void, fetch_start,
                   (backend *b, backend_fetch *f, const void *from, size_t bytes))
OPTIONAL_OPERATION(const void *, fetch_wait, (backend *b, backend_fetch *f))
OPTIONAL_OPERATION(void, fetch_free, (backend *b, backend_fetch *f)) /* NULL is allowed */
/* Maximum bytes of the backend's scratch memory for a model of these sizes; if a backend lacks this
 * operation, its scratch memory is too small to matter in plans. */
OPTIONAL_OPERATION(size_t, scratch, (const backend *b, const run_shape *shape))

/* Time marks between operations of a device (llm/backend/profiler.h). mark_set sets a mark after
 * all operations so far. mark_seconds waits for both marks and returns the seconds between them,
 * 0 after an error. mark_new returns NULL after an error. */
OPTIONAL_OPERATION(backend_mark *, mark_new, (backend *b))
OPTIONAL_OPERATION(void, mark_set, (backend *b, backend_mark *m))
OPTIONAL_OPERATION(double, mark_seconds, (backend *b, backend_mark *from, backend_mark *to))
OPTIONAL_OPERATION(void, mark_free, (backend *b, backend_mark *m)) /* NULL is allowed */

/* clang-format on */
#undef OPERATION
#undef OPTIONAL_OPERATION
#undef HOST_OPERATION
