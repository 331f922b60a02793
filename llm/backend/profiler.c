/* The table of operations that replaces a backend's own: each entry calls the backend's operation
 * between two time marks. */
#include "llm/backend/profiler.h"

#include "core/base/seconds.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of operations whose marks have not been read yet. */
enum { ON_THE_WAY = 512 };

typedef struct pending {
  backend_mark *from, *to; /* owned */
  size_t operation;
} pending;

struct backend_profile {
  backend_ops ops; /* first member; the backend's ops points here */
  const backend_ops *real;
  backend *b;
  int inside;    /* > 0 inside an operation: nested calls count as part of it */
  int recording; /* between graph_begin and graph_end, where nothing runs */
  size_t least_free;
  double begun; /* used on the CPU */
  pending pending[ON_THE_WAY];
  size_t n_pending;
  backend_work work[BACKEND_OPERATIONS];
};

static backend_profile *profiler_of(const backend *b) {
  return (backend_profile *)(uintptr_t)b->ops;
}

/* --- time --- */

/* mark_seconds returns 0 after an error, so such operations add no time. */
static void read_marks(backend_profile *w) {
  for (size_t i = 0; i < w->n_pending; ++i) {
    const double s = w->real->mark_seconds(w->b, w->pending[i].from, w->pending[i].to);
    if (s > 0) w->work[w->pending[i].operation].seconds += s;
  }
  w->n_pending = 0;
}

static void profile_before(backend_profile *w) {
  if (w->inside++ > 0 || w->recording) return;
  if (w->real->mark_set == NULL) {
    w->begun = seconds_now();
    return;
  }
  if (w->n_pending == ON_THE_WAY) read_marks(w);
  w->real->mark_set(w->b, w->pending[w->n_pending].from);
}

static void profile_after(backend_profile *w, size_t operation, double flops, double bytes) {
  if (--w->inside > 0 || w->recording) return;
  backend_work *x = &w->work[operation];
  ++x->calls;
  x->flops += flops;
  x->bytes += bytes;
  if (w->real->mark_set == NULL) {
    x->seconds += seconds_now() - w->begun;
    return;
  }
  pending *p = &w->pending[w->n_pending++];
  p->operation = operation;
  w->real->mark_set(w->b, p->to);
}

/* --- operations that are not timed --- */

static void profile_memory(backend_profile *w) {
  size_t total, available;
  w->real->memory(w->b, &total, &available);
  if (available < w->least_free) w->least_free = available;
}

static void *profile_allocate(backend *b, size_t bytes) {
  backend_profile *w = profiler_of(b);
  void *memory = w->real->allocate(b, bytes);
  profile_memory(w);
  return memory;
}

static double profile_sum_squares(backend *b, const void *x, size_t n) {
  backend_profile *w = profiler_of(b);
  profile_before(w);
  const double sum = w->real->sum_squares(b, x, n);
  profile_after(w, BACKEND_OPERATION_sum_squares, 2 * (double)n, (double)(n * b->master_element));
  return sum;
}

static void profile_graph_begin(backend *b) {
  backend_profile *w = profiler_of(b);
  w->recording = 1;
  w->real->graph_begin(b);
}

static backend_graph *profile_graph_end(backend *b) {
  backend_profile *w = profiler_of(b);
  backend_graph *g = w->real->graph_end(b);
  w->recording = 0;
  return g;
}

/* --- all operations --- */

/* The kind of each operation. TIMED: with the names of its arguments and its floating-point
 * operations and bytes, written in terms of its arguments, of E and M (bytes of a number of the
 * backend's type, and of its master type), and of the widths below. OWN: there is a function above.
 * PASSED: called unchanged. The compiler reports an operation that is missing here. */
#define E (double)b->element
#define M (double)b->master_element
#define N(x) (double)(x)
#define QKV(s) N(((s).q + 2 * (s).kv) * (s).dim)
#define QK(s) N(((s).q + (s).kv) * (s).dim)
#define Q(s) N((s).q *(s).dim)
/* Number of pairs of a query and a key that it attends to in causal attention, as if all sequences
 * had the same length. */
#define PAIRS(p) (N((p).rows) * (N((p).rows) / N((p).sequences + ((p).sequences == 0)) + 1) / 2)
/* clang-format off */
#define PROFILE_allocate OWN
#define PROFILE_release PASSED
#define PROFILE_allocate_aside PASSED
#define PROFILE_release_aside PASSED
#define PROFILE_upload TIMED, (b, to, host, bytes), 0, N(bytes)
#define PROFILE_download TIMED, (b, host, from, bytes), 0, N(bytes)
#define PROFILE_copy TIMED, (b, to, from, bytes), 0, 2 * N(bytes)
#define PROFILE_zero TIMED, (b, memory, bytes), 0, N(bytes)
#define PROFILE_cast TIMED, (b, out, in, n), 0, (E + M) * N(n)
#define PROFILE_cast_stochastic TIMED, (b, out, in, n, r), 0, (E + M) * N(n)
#define PROFILE_status PASSED
#define PROFILE_embed TIMED, (b, out, table, token, rows, width), 0, 2 * E * N(rows) * N(width)
#define PROFILE_embed_backward TIMED, (b, dtable, dout, token, rows, width), 0, (E + 2 * M) * N(rows) * N(width)
#define PROFILE_gather TIMED, (b, out, in, index, n, width), 0, 2 * E * N(n) * N(width)
#define PROFILE_scatter_add TIMED, (b, in, out, index, n, width), 0, 3 * E * N(n) * N(width)
#define PROFILE_norm TIMED, (b, out, rstd, sum, in, add, weight, rows, width, eps), 0, (add != NULL ? 4 : 2) * E * N(rows) * N(width)
#define PROFILE_norm_backward TIMED, (b, din, dweight, dout, in, rstd, weight, rows, width), 0, 4 * E * N(rows) * N(width)
#define PROFILE_bias TIMED, (b, out, bias, rows, width), 0, 2 * E * N(rows) * N(width)
#define PROFILE_bias_backward TIMED, (b, dbias, dout, rows, width), 0, E * N(rows) * N(width)
#define PROFILE_rotary_table TIMED, (b, cosine, sine, positions, dim, theta, scaling), 0, M * N(positions) * N(dim)
#define PROFILE_heads TIMED, (b, qk, rstd, qkv, q_weight, k_weight, cosine, sine, position, rows, shape, eps), 0, 2 * E * N(rows) * QK(shape)
#define PROFILE_heads_backward TIMED, (b, dqkv, dq_weight, dk_weight, dqk, qkv, rstd, q_weight, k_weight, cosine, sine, position, rows, shape), 0, 3 * E * N(rows) * QK(shape)
#define PROFILE_swiglu TIMED, (b, out, gate_up, rows, width), 0, 3 * E * N(rows) * N(width)
#define PROFILE_swiglu_backward TIMED, (b, dgate_up, dout, gate_up, rows, width), 0, 5 * E * N(rows) * N(width)
#define PRODUCT(a, b, c) 2 * N(a) * N(b) * N(c), E * (N(a) * N(b) + N(a) * N(c) + N(b) * N(c))
#define PROFILE_product TIMED, (b, out, in, weight, rows, m, k, flags), PRODUCT(rows, m, k)
#define PROFILE_packed_numbers PASSED
#define PROFILE_pack TIMED, (b, packed, weight, m, k), 0, 2 * E * N(m) * N(k)
#define PROFILE_product_packed TIMED, (b, out, in, weight, packed, rows, m, k, flags), PRODUCT(rows, m, k)
#define PROFILE_in_ranges TIMED, (b, n, least, run, context), 0, 0
#define PROFILE_product_backward_input TIMED, (b, din, dout, weight, rows, m, k, flags), PRODUCT(rows, m, k)
#define PROFILE_product_backward_weight TIMED, (b, dweight, dout, in, rows, m, k), PRODUCT(rows, m, k) + (2 * M - E) * N(m) * N(k)
#define PROFILE_attention TIMED, (b, out, lse, qk, qkv, rows, shape), 4 * PAIRS(rows) * Q(shape), E * N(rows.rows) * (QKV(shape) + Q(shape))
#define PROFILE_attention_backward TIMED, (b, dqk, dqkv, dout, out, lse, qk, qkv, rows, shape), 8 * PAIRS(rows) * Q(shape), 2 * E * N(rows.rows) * (QKV(shape) + Q(shape))
#define PROFILE_attention_shared TIMED, (b, out, lse, qk, qkv, rows, shared, shape), 4 * PAIRS(rows) * Q(shape), E * N(rows.rows) * (QKV(shape) + Q(shape))
#define PROFILE_attention_shared_backward TIMED, (b, dqk, dqkv, dout, out, lse, qk, qkv, rows, shared, shape), 8 * PAIRS(rows) * Q(shape), 2 * E * N(rows.rows) * (QKV(shape) + Q(shape))
#define PROFILE_output TIMED, (b, logp, entropy, lse, logits, in, weight, target, kept, rows, vocabulary, k, temperature), 2 * N(rows) * N(vocabulary) * N(k), E * (N(rows) + N(vocabulary)) * N(k)
#define PROFILE_output_backward TIMED, (b, din, dweight, dlogp, lse, logits, in, weight, target, kept, rows, vocabulary, k, temperature), 4 * N(rows) * N(vocabulary) * N(k), (2 * E * N(rows) + (E + 2 * M) * N(vocabulary)) * N(k)
#define PROFILE_cache_store TIMED, (b, cache_k, cache_v, qk, qkv, slot, position, rows, capacity, shape), 0, 4 * E * N(rows) * N(shape.kv * shape.dim)
#define PROFILE_cache_copy TIMED, (b, cache_k, cache_v, from, to, length, capacity, shape), 0, 4 * E * N(length) * N(shape.kv * shape.dim)
#define PROFILE_attention_cached TIMED, (b, out, qk, cache_k, cache_v, slot, position, rows, capacity, shape), 0, 0
#define PROFILE_logits TIMED, (b, logits, in, weight, rows, vocabulary, k), 2 * N(rows) * N(vocabulary) * N(k), E * (N(rows) + N(vocabulary)) * N(k) + M * N(rows) * N(vocabulary)
#define PROFILE_kept_parts TIMED, (b, mass, entropy_kept, entropy_tail, in, weight, kept, rows, k, temperature), 2 * N(rows) * N(kept.shape.vocabulary) * N(k), E * (N(rows) + N(kept.shape.vocabulary)) * N(k)
#define PROFILE_sample_kept TIMED, (b, token, logq, logq_truncated, kept, logits, index, rows, spec, stream), 0, M * N(rows) * N(kept.shape.vocabulary)
#define PROFILE_distort TIMED, (b, logits, context, rows, vocabulary, behaviour, seed), 0, 2 * M * N(rows) * N(vocabulary)
#define PROFILE_sample TIMED, (b, token, logq, logq_truncated, logits, index, rows, vocabulary, spec, stream, greedy), 0, M * N(rows) * N(vocabulary)
#define PROFILE_adamw TIMED, (b, param, copy, grad, m, v, n, step), 0, (7 * M + (copy != param ? E : 0)) * N(n)
#define PROFILE_sgd TIMED, (b, param, copy, grad, m, n, step), 0, ((m != NULL ? 5 : 3) * M + (copy != param ? E : 0)) * N(n)
#define PROFILE_sum_squares OWN
#define PROFILE_memory PASSED
#define PROFILE_free PASSED
#define PROFILE_graph_begin OWN
#define PROFILE_graph_end OWN
#define PROFILE_graph_run TIMED, (b, g), 0, 0
#define PROFILE_graph_free PASSED
#define PROFILE_heads_store TIMED, (b, qk, rstd, cache_k, cache_v, qkv, q_weight, k_weight, cosine, sine, position, slot, rows, capacity, shape, eps), 0, 2 * E * N(rows) * QKV(shape)
#define PROFILE_heads_attention TIMED, (b, out, qk, rstd, cache_k, cache_v, qkv, q_weight, k_weight, cosine, sine, position, slot, rows, capacity, shape, eps), 0, E * N(rows) * QKV(shape)
#define PROFILE_product_swiglu TIMED, (b, out, in, weight, rows, width, k), PRODUCT(rows, 2 * N(width), k)
#define PROFILE_embed_next TIMED, (b, out, table, source, position, index, slot, drawn, rows, width), 0, 2 * E * N(rows) * N(width)
#define PROFILE_fetch_new PASSED
#define PROFILE_fetch_start TIMED, (b, f, from, bytes), 0, N(bytes)
#define PROFILE_fetch_wait PASSED
#define PROFILE_fetch_free PASSED
#define PROFILE_logits_bytes PASSED
#define PROFILE_scratch PASSED
#define PROFILE_mark_new PASSED
#define PROFILE_mark_set PASSED
#define PROFILE_mark_seconds PASSED
#define PROFILE_mark_free PASSED
/* clang-format on */

/* Defines the function of each timed operation. */
#define DEFINE(name, arguments, ...) DEFINE_KIND(name, arguments, __VA_ARGS__)
#define DEFINE_KIND(name, arguments, kind, ...) DEFINE_##kind(name, arguments, __VA_ARGS__)
#define DEFINE_OWN(name, arguments, ...)
#define DEFINE_PASSED(name, arguments, ...)
#define DEFINE_TIMED(name, arguments, names, flops, bytes, ...)                                    \
  static void profile_##name arguments {                                                           \
    backend_profile *w = profiler_of(b);                                                           \
    profile_before(w);                                                                             \
    w->real->name names;                                                                           \
    profile_after(w, BACKEND_OPERATION_##name, flops, bytes);                                      \
  }
#define OPERATION(result, name, arguments) DEFINE(name, arguments, PROFILE_##name, )
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION OPERATION
#include "llm/backend/operations.h"

/* Replaces the operations that the backend has, and that have a function above, by that
 * function. */
static void fill_profiler_table(backend_profile *w) {
#define FILL(name, ...) FILL_KIND(name, __VA_ARGS__)
#define FILL_KIND(name, kind, ...) FILL_##kind(name)
#define FILL_PASSED(name)
#define FILL_OWN(name)                                                                             \
  if (w->real->name != NULL) w->ops.name = profile_##name;
#define FILL_TIMED FILL_OWN
#define OPERATION(result, name, arguments) FILL(name, PROFILE_##name, )
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION OPERATION
#include "llm/backend/operations.h"
}

static const char *const names[] = {
#define OPERATION(result, name, arguments) #name,
#define OPTIONAL_OPERATION OPERATION
#define HOST_OPERATION OPERATION
#include "llm/backend/operations.h"
};

/* --- begin and end --- */

static gl_status make_marks(backend_profile *w, gl_error *err) {
  for (size_t i = 0; i < ON_THE_WAY; ++i) {
    w->pending[i].from = w->real->mark_new(w->b);
    w->pending[i].to = w->real->mark_new(w->b);
    if (w->pending[i].from == NULL || w->pending[i].to == NULL) {
      gl_status status = w->real->status(w->b, err);
      return status != GL_OK ? status : gl_fail_memory(err, "the marks of operations");
    }
  }
  return GL_OK;
}

gl_status backend_profile_begin(backend_profile **out, backend *b, profile_kind kind,
                                gl_error *err) {
  gl_status status = GL_OK;
  backend_profile *w = *out = calloc(1, sizeof *w);
  if (w == NULL) return gl_fail_memory(err, "the profile of operations");
  w->ops = *b->ops;
  w->real = b->ops;
  w->b = b;
  w->least_free = SIZE_MAX;
  if (kind != PROFILE_MEMORY) {
    fill_profiler_table(w);
    if (kind == PROFILE_TIMES_UNRECORDED) {
      w->ops.graph_begin = NULL;
      w->ops.in_ranges = NULL;
    }
    if (w->real->mark_new != NULL) status = make_marks(w, err);
  }
  w->ops.allocate = profile_allocate;
  b->ops = &w->ops;
  if (status == GL_OK) return GL_OK;
  backend_profile_end(w);
  *out = NULL;
  return status;
}

void backend_profile_end(backend_profile *w) {
  if (w == NULL) return;
  if (w->n_pending > 0) read_marks(w);
  for (size_t i = 0; i < ON_THE_WAY && w->real->mark_free != NULL; ++i) {
    w->real->mark_free(w->b, w->pending[i].from);
    w->real->mark_free(w->b, w->pending[i].to);
  }
  w->b->ops = w->real;
  free(w);
}

void backend_profile_clear(backend_profile *w) {
  read_marks(w);
  memset(w->work, 0, sizeof w->work);
}

/* --- reading --- */

static int longer(const void *a, const void *b) {
  const backend_work *x = a, *y = b;
  const int order = (x->seconds < y->seconds) - (x->seconds > y->seconds);
  return order != 0 ? order : strcmp(x->operation, y->operation);
}

size_t backend_profile_read(backend_profile *w, backend_work *work) {
  size_t n = 0;
  read_marks(w);
  for (size_t i = 0; i < BACKEND_OPERATIONS; ++i) {
    if (w->work[i].calls == 0) continue;
    work[n] = w->work[i];
    work[n++].operation = names[i];
  }
  qsort(work, n, sizeof *work, longer);
  return n;
}

size_t backend_profile_peak(backend_profile *w) {
  size_t total, available;
  w->real->memory(w->b, &total, &available);
  profile_memory(w);
  return total - w->least_free;
}
