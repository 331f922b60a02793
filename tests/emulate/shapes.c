/* The kernels at the shapes of Qwen3 0.6B: how many a step launches, what they do to memory, and
 * whether recordings and early starts keep the rules. Of each kernel a few blocks run
 * (emulate_shapes_only). GEPOLAB_EMULATED_COUNTS=1 in the environment prints the counts. */
#include "emulate_control.h"
#include "experiments/bench/gpu.h"
#include "llm/backend/open/open.h"
#include "llm/model/model.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("llm: emulated shapes");

#ifdef GEPOLAB_EMULATE_RACES
enum { SEES_MEMORY = 1 };
#else
enum { SEES_MEMORY = 0 };
#endif

static backend *device(void) {
  backend *b = NULL;
  gl_error err = {.status = GL_OK};
  const gl_status status = backend_new(&b, BACKEND_AUTO, NUMBER_BF16, 0, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
  return b;
}

/* --- mistakes are found --- */

/* Whether a case is refused, which aborts the process that runs it: a child. */
static int is_refused(enum rule_case which, int clean) {
  int state = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
    emulate_counts(1);
    emulate_rule_case(which, clean);
    _exit(0);
  }
  CU_ASSERT_FATAL(child > 0 && waitpid(child, &state, 0) == child);
  CU_ASSERT(WIFSIGNALED(state) || WEXITSTATUS(state) == 0);
  return WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT;
}

TEST(kernels_that_start_too_early_are_refused) {
  static const struct {
    enum rule_case which;
    int by_memory; /* seen only where loads and stores are */
  } cases[] = {{RULE_WAITS, 0}, {RULE_STREAM, 0}, {RULE_READS_LATE, 1}, {RULE_WRITES_LATE, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    CU_ASSERT_EQUAL(is_refused(cases[i].which, 0), SEES_MEMORY || !cases[i].by_memory);
    CU_ASSERT(!is_refused(cases[i].which, 1));
  }
}

/* The counts of a kernel of a case. */
static emulate_count count_of(enum rule_case which, int clean) {
  const emulate_count *all;
  emulate_counts(1);
  emulate_rule_case(which, clean);
  emulate_counts(0);
  CU_ASSERT_EQUAL_FATAL(emulate_counted(&all), 1);
  return all[0];
}

/* A warp of 32 floats needs 128 bytes: four sectors, one pass. At a stride of eight floats each has
 * a sector of its own, and eight of them the same bank. */
TEST(accesses_are_counted_by_hand) {
  if (!SEES_MEMORY) SKIP("make racecheck sees loads and stores");
  emulate_count c = count_of(RULE_SECTORS, 1);
  CU_ASSERT(c.launches == 1 && c.blocks == 3 && c.read == 3 * 128 && c.written == 3 * 128);
  CU_ASSERT(c.sectors == 3 * 8 && c.least_sectors == 3 * 8);
  c = count_of(RULE_SECTORS, 0);
  CU_ASSERT(c.read == 3 * 128 && c.sectors == 3 * (32 + 4) && c.least_sectors == 3 * 8);
  c = count_of(RULE_BANKS, 1);
  CU_ASSERT(c.passes == 2 && c.least_passes == 2);
  c = count_of(RULE_BANKS, 0);
  CU_ASSERT(c.passes == 16 && c.least_passes == 2);
}

/* --- what a recording refuses --- */

typedef void (*mistake)(backend *b, void *memory);

static void nothing(backend *b, void *memory) {
  b->ops->zero(b, memory, 4);
}
static void waits(backend *b, void *memory) {
  gl_error err = {.status = GL_OK};
  (void)memory;
  b->ops->status(b, &err);
}
static void allocates(backend *b, void *memory) {
  (void)memory;
  b->ops->allocate(b, 8);
}
static void releases(backend *b, void *memory) {
  b->ops->release(b, memory);
}

TEST(a_recording_refuses_what_waits_allocates_or_frees) {
  static const mistake all[] = {nothing, waits, allocates, releases};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    backend *b = device();
    void *memory = b->ops->allocate(b, 8);
    b->ops->graph_begin(b);
    all[i](b, memory);
    backend_graph *g = b->ops->graph_end(b);
    gl_error err = {.status = GL_OK};
    CU_ASSERT_EQUAL(g != NULL, i == 0);
    CU_ASSERT_EQUAL(b->ops->status(b, &err) == GL_OK, i == 0);
    b->ops->graph_free(b, g);
    b->ops->release(b, memory);
    backend_free(b);
  }
}

/* --- the shapes of Qwen3 --- */

enum { BLOCKS = 4, LAYERS = 2, SLOTS = 64, POSITION = 700, CAPACITY = 1024, LENGTH = 512 };

static model *model_of(backend *b) {
  model_config c = gpu_shape_named("0.6b", 0).model;
  model *m = NULL;
  gl_error err = {.status = GL_OK};
  c.layers = LAYERS;
  CU_ASSERT_EQUAL_FATAL(model_new(&m, &c, b, 0, &err), GL_OK);
  return m;
}

extern const char __executable_start[]; /* the linker's: code less this is an address in the file */

static unsigned long in_file(const void *code) {
  return code == NULL ? 0 : (unsigned long)((const char *)code - __executable_start);
}

static double ratio(double x, double least) {
  return least > 0 ? x / least : 1;
}

static void print_counts(const char *what) {
  const emulate_count *c;
  const size_t n = emulate_counted(&c);
  if (getenv("GEPOLAB_EMULATED_COUNTS") == NULL) return;
  fprintf(stderr, "\n%-44s %8s %8s %9s %10s %8s %8s  worst code\n", what, "launches", "blocks",
          "read MB", "written MB", "sectors", "passes");
  for (size_t i = 0; i < n; ++i)
    fprintf(stderr, "%-44.44s %8llu %8llu %9.3f %10.3f %8.3f %8.3f  %#lx %#lx\n", c[i].kernel,
            (unsigned long long)c[i].launches, (unsigned long long)c[i].blocks, c[i].read / 1e6,
            c[i].written / 1e6, ratio(c[i].sectors, c[i].least_sectors),
            ratio(c[i].passes, c[i].least_passes), in_file(c[i].worst[0]), in_file(c[i].worst[1]));
}

/* Sums over the kernels whose names contain the word. */
static emulate_count sum_of(const char *word) {
  const emulate_count *c;
  emulate_count sum = {.kernel = word};
  const size_t n = emulate_counted(&c);
  for (size_t i = 0; i < n; ++i) {
    if (strstr(c[i].kernel, word) == NULL) continue;
    sum.launches += c[i].launches;
    sum.read += c[i].read;
    sum.written += c[i].written;
  }
  return sum;
}

/* Kernels that touch more sectors, or pass over the banks more often, than a twentieth beyond the
 * least that their accesses need. */
static const struct {
  const char *kernel;
  double sectors, passes;
} known[] = {
    {"", 1.05, 1.05},
    /* a lane reads eight floats by two instructions, each of which needs half of every sector */
    {"fold_chunk", 2.01, 1.05},
    {"logit_grad_chunk", 1.7, 1.05},
    {"norm_backward_rows", 1.15, 1.05},
    {"add_runs", 1.5, 1.05},
    {"head_rows_forward", 1.2, 1.05},
    {"head_rows_store", 1.2, 1.05},
    /* and stores eight sums to shared memory one by one, four lanes to a bank, as does the next */
    {"head_rows_backward", 1.15, 4.6},
    {"cached_group", 1.05, 1.55},
    /* four lanes write 16 bytes of a row together, and read its statistics */
    {"attention_mma", 1.2, 1.05},
    /* a lane reads numbers that are adjacent, or far apart; all together less than 1 MB a step */
    {"draw_tokens", 6, 1.05},
    {"count_digits", 2.6, 1.05},
    {"place_digits", 2.9, 1.05},
    {"sum_before", 4.1, 1.05}};

static void check_accesses(void) {
  const emulate_count *c;
  const size_t n = emulate_counted(&c);
  for (size_t i = 0; i < n; ++i) {
    size_t k = sizeof known / sizeof *known - 1;
    while (k > 0 && strstr(c[i].kernel, known[k].kernel) == NULL) --k;
    const int holds = c[i].sectors <= known[k].sectors * c[i].least_sectors &&
                      c[i].passes <= known[k].passes * c[i].least_passes;
    if (!holds)
      fprintf(stderr, "%s: %.3f times the least sectors, %.3f times the least passes\n",
              c[i].kernel, ratio(c[i].sectors, c[i].least_sectors),
              ratio(c[i].passes, c[i].least_passes));
    CU_ASSERT(holds);
  }
}

/* Steps of `rows` sequences at positions from POSITION on: one as it comes, one recorded, and one
 * that runs the recording, which is counted. */
static void count_decoding(model *m, size_t rows) {
  model_cache *k = NULL;
  int32_t token[SLOTS], slot[SLOTS], position[SLOTS], drawn[SLOTS];
  uint64_t index[SLOTS];
  double logq[2][SLOTS];
  const model_draws draws = {
      {.temperature = 1, .top_p = 1}, rng_stream_at(1, RNG_ROLLOUT, 0), 0, {0}};
  ASSERT_OK(model_cache_new(&k, m, SLOTS, CAPACITY, &err));
  const uint64_t before = emulate_allocated_recording();
  for (int step = 0; step < 3; ++step) {
    for (size_t r = 0; r < rows; ++r) {
      token[r] = step == 0 ? 1 : -1 - (int32_t)r;
      slot[r] = (int32_t)r;
      position[r] = POSITION + step;
      index[r] = 1000 * r + (uint64_t)step;
    }
    if (step == 2) emulate_counts(1);
    ASSERT_OK(model_step(k, &(model_step_rows){rows, token, slot, position, index}, &draws, &err));
    emulate_counts(0);
    ASSERT_OK(model_step_take(k, &(model_drawn){drawn, logq[0], logq[1], NULL}, &err));
  }
  CU_ASSERT_EQUAL(emulate_allocated_recording(), before);
  model_cache_free(k);
}

/* Per layer two norms, four products and attention, which prepares its heads with as few rows as
 * these; embedding, the last norm and product, three kernels that draw. */
TEST(decoding_launches_seven_kernels_a_layer) {
  static const size_t rows[] = {1, SLOTS};
  emulate_shapes_only(BLOCKS);
  backend *b = device();
  model *m = model_of(b);
  const double weights = 2.0 * (double)model_parameters(m);
  const double keys = 2.0 * 2 * LAYERS * 8 * 128 * (POSITION + 3); /* and values, a sequence */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char what[32];
    count_decoding(m, rows[i]);
    snprintf(what, sizeof what, "decoding, %zu rows", rows[i]);
    print_counts(what);
    CU_ASSERT_EQUAL(sum_of("").launches, 7 * LAYERS + 6);
    CU_ASSERT_EQUAL(sum_of("product_rows").launches, 4 * LAYERS + 1);
    if (!SEES_MEMORY) continue;
    const double products = sum_of("product_rows").read, cached = sum_of("cached_group").read;
    CU_ASSERT(products >= weights && (rows[i] > 1 || products < 1.05 * weights));
    CU_ASSERT(fabs(cached / (keys * (double)rows[i]) - 1) < 0.25);
    check_accesses();
  }
  model_free(m);
  backend_free(b);
  emulate_shapes_only(0);
}

/* A step of AdamW reads value, gradient and two moments of every parameter, and writes all but the
 * gradient and the copy in bfloat16; the norm reads the gradient once more. */
TEST(training_reads_each_parameter_as_often_as_adamw_needs) {
  enum { TOKENS = 2 * LENGTH };
  static int32_t token[TOKENS];
  static size_t after[TOKENS];
  static double logp[TOKENS], slope[TOKENS];
  const size_t start[] = {0, LENGTH, TOKENS};
  const optimizer_spec adamw = {.kind = OPTIMIZER_ADAMW,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .weight_decay = 0.01,
                                .clip_grad_norm = 1};
  model_optimizer *o = NULL;
  double norm;
  emulate_shapes_only(BLOCKS);
  backend *b = device();
  model *m = model_of(b);
  const double n = (double)model_parameters(m);
  for (size_t i = 0; i < TOKENS; ++i) {
    after[i] = i;
    token[i] = (int32_t)(i * 7919 % 151936);
    slope[i] = 1e-3;
  }
  const packed_tokens packed = {TOKENS, 2, TOKENS, start, token, after, token};
  ASSERT_OK(model_optimizer_new(&o, m, &adamw, &err));
  emulate_counts(1);
  ASSERT_OK(model_zero_gradient(m, &err));
  ASSERT_OK(model_forward(m, &packed, 1, 1, logp, NULL, &err));
  ASSERT_OK(model_backward(m, slope, &err));
  ASSERT_OK(model_optimizer_step(o, 1e-6, &norm, &err));
  emulate_counts(0);
  print_counts("training, two sequences of 512 tokens");
  CU_ASSERT(isfinite(norm));
  /* What experiments/bench/roofline.py counts: 28 kernels a layer; for two chunks of logits and
   * what surrounds the layers 38. Its memory set to zero is not among them. */
  CU_ASSERT_EQUAL(sum_of("").launches, 28 * LAYERS + 38);
  if (SEES_MEMORY) {
    const emulate_count step = sum_of("adam");
    CU_ASSERT(fabs(step.read / (16 * n) - 1) < 0.01 && fabs(step.written / (14 * n) - 1) < 0.01);
    CU_ASSERT(fabs(sum_of("squares").read / (4 * n) - 1) < 0.01);
    check_accesses();
  }
  model_optimizer_free(o);
  model_free(m);
  backend_free(b);
  emulate_shapes_only(0);
}

/* Tiles of llm/backend/cuda/product_rows.cu at sizes that choose each of them: launched, and with
 * as much shared memory as they ask for. A recording of launches (tests/kernels/launches.sh) so has
 * all of them but those for devices of less shared memory or more multiprocessors than this one. */
TEST(row_wise_products_of_all_tiles_are_launched) {
  static const struct {
    size_t rows, m, k; /* numbers of a row: m of a product and of logits, m / 2 gated units */
  } sizes[] = {{1, 1024, 1024},  {16, 1024, 1024},  {32, 1024, 1024}, {64, 1024, 1024},
               {64, 1024, 256},  {64, 12288, 256},  {128, 128, 256},  {128, 1024, 1024},
               {256, 1024, 256}, {128, 65536, 256}, {512, 1024, 256}, {512, 1024, 1024},
               {1, 64, 100},     {32, 64, 100},     {64, 64, 100}};
  enum { N = sizeof sizes / sizeof *sizes };
  emulate_shapes_only(BLOCKS);
  backend *b = device();
  emulate_counts(1);
  for (size_t i = 0; i < N; ++i) {
    const size_t rows = sizes[i].rows, m = sizes[i].m, k = sizes[i].k;
    void *in = b->ops->allocate(b, 2 * rows * k), *weight = b->ops->allocate(b, 2 * m * k);
    void *out = b->ops->allocate(b, 4 * rows * m);
    b->ops->product(b, out, in, weight, rows, m, k, PRODUCT_ROW_BY_ROW);
    b->ops->logits(b, out, in, weight, rows, m, k);
    b->ops->product_swiglu(b, out, in, weight, rows, m / 2, k);
    b->ops->release(b, in);
    b->ops->release(b, weight);
    b->ops->release(b, out);
  }
  emulate_counts(0);
  ASSERT_OK(b->ops->status(b, &err));
  CU_ASSERT_EQUAL(sum_of("product_rows").launches, 3 * N);
  backend_free(b);
  emulate_shapes_only(0);
}
