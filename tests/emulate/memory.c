/* Memory of the CUDA backend on a device whose size a test sets: what counts as free, what is tried
 * before memory runs out, whether the plan of a run covers what it takes, and where held versions
 * of a model are kept. */
#include "emulate_control.h"
#include "llm/backend/open/open.h"
#include "llm/learner/run_spec.h"
#include "llm/model/internal.h"
#include "tests/support/llm_learner_fixture.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

SUITE("llm: emulated cuda memory");

static backend *device(void) {
  backend *b;
  ASSERT_OK(backend_new(&b, BACKEND_CUDA, NUMBER_F32, 0, &err));
  return b;
}

static size_t in_use(backend *b) {
  size_t total, available;
  b->ops->memory(b, &total, &available);
  return total - available;
}

/* --- accounting --- */

TEST(released_memory_counts_as_free) {
  backend *b = device();
  const size_t before = in_use(b), size = (size_t)3 << 20;
  void *memory = b->ops->allocate(b, size);
  CU_ASSERT_EQUAL(in_use(b), before + size);
  b->ops->release(b, memory);
  CU_ASSERT_EQUAL(in_use(b), before);
  backend_free(b);
}

enum { ROWS = 4, WIDTH = 2000 };

/* Makes the backend take scratch memory for ROWS * WIDTH floats. */
static void take_scratch(backend *b, float *x[5]) {
  b->ops->norm_backward(b, x[0], x[1], x[2], x[3], x[4], x[1], ROWS, WIDTH);
}

static void arrays(backend *b, float *x[5]) {
  for (int i = 0; i < 5; ++i) x[i] = b->ops->allocate(b, ROWS * WIDTH * sizeof *x[i]);
}

/* Scratch memory is not the pool's, so what the pool keeps unused is missing until it is given
 * back. */
TEST(memory_that_is_kept_but_not_used_is_given_back_before_it_runs_out) {
  backend *b = device();
  float *x[5];
  arrays(b, x);
  emulate_memory_limit(in_use(b) + ((size_t)64 << 10));
  b->ops->release(b, b->ops->allocate(b, (size_t)48 << 10));
  take_scratch(b, x); /* 31 KiB and an eighth */
  ASSERT_OK(b->ops->status(b, &err));
  for (int i = 0; i < 5; ++i) b->ops->release(b, x[i]);
  backend_free(b);
  emulate_memory_limit(SIZE_MAX);
}

TEST(scratch_that_no_graph_needs_is_released) {
  backend *b = device();
  float *x[5];
  arrays(b, x);
  b->ops->norm_backward(b, x[0], x[1], x[2], x[3], x[4], x[1], 1, 8);
  b->ops->graph_begin(b);
  b->ops->norm_backward(b, x[0], x[1], x[2], x[3], x[4], x[1], 1, 8);
  backend_graph *g = b->ops->graph_end(b);
  const size_t before = emulate_allocations();
  take_scratch(b, x);
  CU_ASSERT_EQUAL(emulate_allocations(), before + 1); /* the graph's stays */
  b->ops->graph_free(b, g);
  CU_ASSERT_EQUAL(emulate_allocations(), before);
  ASSERT_OK(b->ops->status(b, &err));
  for (int i = 0; i < 5; ++i) b->ops->release(b, x[i]);
  backend_free(b);
}

TEST(pinned_memory_is_used_again) {
  const size_t before = emulate_host_blocks();
  backend *b = device();
  const size_t start = emulate_host_blocks();
  void *first = b->ops->allocate_aside(b, 1000);
  b->ops->release_aside(b, first);
  CU_ASSERT_PTR_EQUAL(b->ops->allocate_aside(b, 1000), first);
  void *second = b->ops->allocate_aside(b, 1000);
  CU_ASSERT_PTR_NOT_EQUAL(second, first);
  b->ops->release_aside(b, first);
  CU_ASSERT_EQUAL(emulate_host_blocks(), start + 2);
  void *larger = b->ops->allocate_aside(b, 2000); /* the spare one of another size goes */
  CU_ASSERT_EQUAL(emulate_host_blocks(), start + 2);
  b->ops->release_aside(b, larger);
  b->ops->release_aside(b, second);
  b->ops->release_aside(b, NULL);
  backend_free(b);
  CU_ASSERT_EQUAL(emulate_host_blocks(), before);
}

TEST(pinned_memory_that_no_host_has_is_refused) {
  backend *b = device();
  gl_error err = {.status = GL_OK};
  CU_ASSERT_PTR_NULL(b->ops->allocate_aside(b, (size_t)1 << 55));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "host memory"));
  backend_free(b);
}

/* The copy to memory that was put aside is still under way when it is downloaded; so is the one
 * before a copy from one such memory to another. */
TEST(what_was_put_aside_is_read_after_it_has_arrived) {
  enum { N = 300 };
  backend *b = device();
  float host[N], got[N];
  float *x = b->ops->allocate(b, sizeof host);
  float *aside = b->ops->allocate_aside(b, sizeof host);
  float *other = b->ops->allocate_aside(b, sizeof host);
  for (int version = 0; version < 3; ++version) {
    for (int i = 0; i < N; ++i) host[i] = (float)(i + 1000 * version);
    b->ops->upload(b, x, host, sizeof host);
    b->ops->copy(b, aside, x, sizeof host);
    if (version > 0) b->ops->copy(b, other, aside, sizeof host);
    b->ops->download(b, got, version > 0 ? other : aside, sizeof got);
    CU_ASSERT_EQUAL(memcmp(host, got, sizeof host), 0);
  }
  ASSERT_OK(b->ops->status(b, &err));
  b->ops->release_aside(b, other);
  b->ops->release_aside(b, aside);
  b->ops->release(b, x);
  backend_free(b);
}

/* Some virtual devices have no memory pools. */
TEST(a_device_without_pools_is_used) {
  emulate_pools(0);
  const size_t blocks = emulate_allocations();
  backend *b = device();
  gl_error err = {.status = GL_OK};
  const size_t before = in_use(b), size = (size_t)3 << 20;
  const float host[3] = {3, 4, 12};
  float *x = b->ops->allocate(b, size), zero[2];
  CU_ASSERT_PTR_NOT_NULL_FATAL(x);
  CU_ASSERT_EQUAL(in_use(b), before + size);
  b->ops->download(b, zero, x, sizeof zero);
  CU_ASSERT(zero[0] == 0 && zero[1] == 0);
  b->ops->upload(b, x, host, sizeof host);
  CU_ASSERT_EQUAL(b->ops->sum_squares(b, x, 3), 169);
  b->ops->graph_begin(b);
  b->ops->zero(b, x, sizeof *x);
  void *during = b->ops->allocate(b, 1000);
  b->ops->release(b, during);
  backend_graph *g = b->ops->graph_end(b);
  b->ops->graph_run(b, g);
  CU_ASSERT_EQUAL(b->ops->sum_squares(b, x, 3), 160);
  b->ops->graph_free(b, g);
  emulate_memory_limit(in_use(b) + ((size_t)1 << 20));
  CU_ASSERT_PTR_NULL(b->ops->allocate(b, (size_t)2 << 20));
  CU_ASSERT_EQUAL(b->ops->status(b, &err), GL_ENOMEM);
  emulate_memory_limit(SIZE_MAX);
  b->ops->release(b, x);
  backend_free(b);
  CU_ASSERT_EQUAL(emulate_allocations(), blocks);
  emulate_pools(1);
}

/* --- the plan and the versions of a run --- */

#define RUN_OF(micro_batch, dtype)                                                                 \
  "world: {kind: llm, backend: cuda, dtype: " dtype ", micro_batch: " micro_batch                  \
  ", model: {layers: 1, "                                                                          \
  "hidden: 16, heads: 2, context: 24}, task: {kind: sorting, length: 3, values: 4}, "              \
  "evaluation: {prompts: 8}}\noptimizer: {lr: 0.05}\nalgorithm: {base: gepo, ref_kl_coef: 0.1}\n"  \
  "train: {groups: 2, group_size: 3, updates: 9}"
#define RUN(dtype) RUN_OF("64", dtype)
static const char *const runs[] = {RUN("float32"), RUN("bfloat16"),
                                   RUN("bfloat16, stochastic_rounding: true")};
enum { RUNS = 3 };

/* Passes over shared prefixes, by an operation that counts them. */
static size_t shared_passes;
static const backend_ops *counted;
static void count_shared(backend *b, void *out, void *lse, const void *qk, const void *qkv,
                         packed_rows rows, shared_rows shared, head_shape shape) {
  ++shared_passes;
  counted->attention_shared(b, out, lse, qk, qkv, rows, shared, shape);
}

/* Shares prompts, for which the runs are too small otherwise. */
TEST(the_plan_covers_what_a_run_takes) {
  for (size_t i = 0; i < 2; ++i) {
    backend *other = device(), *idle = device(); /* one measures, one stands for the run's own */
    const size_t before = in_use(other);
    backend_free(idle);
    const size_t alone = in_use(other);
    double metrics[METRIC_COUNT];
    emulate_memory_peak();
    llm_fixture f = llm_open(runs[i], 5);
    memory_need need;
    ASSERT_OK(memory_need_of(&need, &f.llm->spec, f.llm->backend, 6, 1, 1, &err));
    backend_ops counting = *(counted = f.llm->backend->ops);
    counting.attention_shared = count_shared;
    f.llm->backend->ops = &counting;
    f.llm->backend->copies_shared = 0;
    shared_passes = 0;
    llm_train(&f, 0, 2, metrics);
    f.llm->backend->ops = counted;
    CU_ASSERT(shared_passes >= 2);
    llm_score(&f);
    const size_t peak = emulate_memory_peak() - before;
    CU_ASSERT(peak <= need.total);
    /* Scratch memory is planned for draws with top-k over all slots, which this run does not make.
     */
    CU_ASSERT(peak > need.total - need.activations - need.generation - need.scratch);
    CU_ASSERT_EQUAL(need.stores, MODEL_STORES_LOGITS);
    CU_ASSERT(need.one_version == need.reference);
    CU_ASSERT(need.one_version == f.n * f.llm->backend->element);
    test_release_now();
    CU_ASSERT_EQUAL(in_use(other), alone);
    backend_free(other);
  }
}

TEST(logits_are_stored_where_a_quarter_of_what_is_left_suffices) {
  llm_fixture f = llm_open(RUN_OF("4096", "float32"), 5);
  memory_need plain, need;
  ASSERT_OK(memory_need_of(&need, &f.llm->spec, f.llm->backend, 6, 1, 1, &err));
  f.llm->spec.recompute = 1;
  ASSERT_OK(memory_need_of(&plain, &f.llm->spec, f.llm->backend, 6, 1, 1, &err));
  CU_ASSERT_EQUAL(plain.stores, MODEL_STORES_INPUTS);
  f.llm->spec.recompute = 0;
  emulate_memory_limit(in_use(f.llm->backend) + need.total - need.generation);
  ASSERT_OK(memory_need_of(&plain, &f.llm->spec, f.llm->backend, 6, 1, 1, &err));
  CU_ASSERT_EQUAL(need.stores, MODEL_STORES_LOGITS);
  CU_ASSERT_EQUAL(plain.stores, MODEL_STORES_ACTIVATIONS);
  CU_ASSERT(plain.activations < need.activations);
  emulate_memory_limit(SIZE_MAX);
}

/* The gradient of a pass that is to store 2.4 MB of logits, with `room` bytes free before it. */
static double *gradient_in(size_t room, size_t *n) {
  static const model_config c = {.type = MODEL_QWEN3,
                                 .vocabulary = 5000,
                                 .hidden = 8,
                                 .intermediate = 8,
                                 .layers = 1,
                                 .heads = 2,
                                 .kv_heads = 2,
                                 .head_dim = 8,
                                 .max_positions = 128,
                                 .rms_eps = 1e-6,
                                 .rope_theta = 1e4,
                                 .initializer_range = 0.2,
                                 .begin = -1,
                                 .end = -1,
                                 .pad = -1};
  static const size_t lengths[] = {120};
  gl_error err;
  model *m;
  random_rows r;
  setenv("GEPOLAB_CUDA_OUTPUT_CHUNK", "4096", 1);
  backend *b = device();
  unsetenv("GEPOLAB_CUDA_OUTPUT_CHUNK");
  must(model_new(&m, &c, b, MODEL_STORES_LOGITS, &err), &err);
  must(model_initialise(m, 5, &err), &err);
  random_rows_init(&r, lengths, 1, 5000, 3);
  double *logp = calloc(r.rows.n_targets, sizeof *logp);
  double *gradient = calloc(*n = model_parameters(m), sizeof *gradient);
  if (room < SIZE_MAX) emulate_memory_limit(in_use(b) + room);
  must(model_forward(m, &r.rows, 1, 1, logp, NULL, &err), &err);
  must(model_backward(m, r.coefficient, &err), &err);
  must(model_gradient_get(m, gradient, &err), &err);
  CU_ASSERT((model_kept_bytes(m) > 2300000) == (room == SIZE_MAX));
  emulate_memory_limit(SIZE_MAX);
  free(logp);
  model_free(m);
  backend_free(b);
  return gradient;
}

TEST(a_pass_without_the_memory_for_its_logits_does_without) {
  size_t n;
  double *want = gradient_in(SIZE_MAX, &n), *got = gradient_in((size_t)2 << 20, &n);
  CU_ASSERT_EQUAL(memcmp(got, want, n * sizeof *got), 0);
  free(want);
  free(got);
}

/* Limits the device to what a step needs beside what is in use, and `halves` halves of a version.
 */
static void leave_room(llm_fixture *f, size_t halves) {
  const size_t step = f->llm->replica[0].step_bytes - model_kept_bytes(f->llm->model);
  emulate_memory_limit(in_use(f->llm->backend) + step +
                       halves * model_values_bytes(f->llm->model) / 2);
}

static void hold(llm_fixture *f) {
  ASSERT_OK(f->learner.ops->hold(f->llm, &err));
}

static int is_aside(const llm_fixture *f, size_t i) {
  return model_values_are_aside(f->llm->replica[0].held[i].values);
}

/* Whether both learners draw the same with versions 0, 1 and 2, and with 3, their own. */
static int draw_the_same(llm_fixture *a, llm_fixture *b) {
  int same = 1;
  for (int64_t v = 0; v <= 3; ++v) {
    batch of_a = {0}, of_b = {0};
    llm_draw_part(a, 40, v, 0, 1, &of_a);
    llm_draw_part(b, 40, v, 0, 1, &of_b);
    same = same && llm_same_batch(&of_a, &of_b);
    batch_fini(&of_a);
    batch_fini(&of_b);
  }
  return same;
}

/* Saves one learner and loads its state into the other. */
static void carry_over(llm_fixture *from, llm_fixture *to) {
  char *bytes = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&bytes, &size);
  ASSERT_OK(from->learner.ops->save(from->llm, f, &err));
  fclose(f);
  f = fmemopen(bytes, size, "rb");
  ASSERT_OK(to->learner.ops->load(to->llm, f, &err));
  fclose(f);
  free(bytes);
}

/* One learner has room for everything; the other has room for one version and a half beside a step,
 * so that it must put versions aside. */
static void compare_places(const char *text) {
  double metrics[METRIC_COUNT];
  llm_fixture roomy = llm_open(text, 5), small = llm_open(text, 5), later = llm_open(text, 5);
  llm_fixture *both[] = {&roomy, &small};
  leave_room(&small, 3);
  for (uint64_t u = 0; u < 3; ++u) {
    hold(&small);
    llm_train(&small, u, u + 1, metrics);
  }
  CU_ASSERT(!is_aside(&small, 0) && is_aside(&small, 1) && is_aside(&small, 2));
  emulate_memory_limit(SIZE_MAX);
  for (uint64_t u = 0; u < 3; ++u) {
    hold(&roomy);
    llm_train(&roomy, u, u + 1, metrics);
  }
  CU_ASSERT(!is_aside(&roomy, 0) && !is_aside(&roomy, 1) && !is_aside(&roomy, 2));
  CU_ASSERT(draw_the_same(&roomy, &small));
  carry_over(&small, &later);
  CU_ASSERT(draw_the_same(&small, &later));
  /* Where the gradient was does not show in the next step. */
  for (size_t i = 0; i < 2; ++i) llm_train(both[i], 3, 4, metrics);
  double *a = llm_theta(&roomy), *b = llm_theta(&small);
  CU_ASSERT(memcmp(a, b, roomy.n * sizeof *a) == 0);
  small.learner.ops->release(small.llm, 0);
  leave_room(&small, 3);
  hold(&small); /* there is room again */
  CU_ASSERT(!is_aside(&small, 2));
  small.learner.ops->release(small.llm, 1); /* one that is aside */
  emulate_memory_limit(SIZE_MAX);
}

TEST(held_versions_draw_the_same_wherever_they_are) {
  const size_t blocks = emulate_allocations(), host = emulate_host_blocks();
  for (size_t i = 0; i < RUNS; ++i) compare_places(runs[i]);
  test_release_now();
  CU_ASSERT_EQUAL(emulate_allocations(), blocks);
  CU_ASSERT_EQUAL(emulate_host_blocks(), host);
}
