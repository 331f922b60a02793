/* The benchmarks of `gepolab bench` except events (des.c) and GPUs (gpu.c): policy, lab, llm,
 * sweep. */
#include "core/base/json.h"
#include "core/policy/policy.h"
#include "core/random/rng.h"
#include "experiments/base/memory.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/workload.h"
#include "experiments/policy/whatif.h"
#include "experiments/recipe/recipe.h"
#include "experiments/sweep/sweep.h"
#include "llm/backend/open/open.h"
#include "toy/lab/kernel.h"
#include "toy/lab/multiset.h"

#include <cblas.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- policy_evaluate() on a batch as a transformer learner has it, compared with PyTorch --- */

enum { GROUPS = 8, GROUP_SIZE = 8, TOKENS = 512, RESPONSES = GROUPS * GROUP_SIZE, THREADS = 1 };

typedef struct synthetic {
  size_t group_start[GROUPS + 1], token_start[RESPONSES + 1];
  double reward[RESPONSES];
  double *logp, *logq, *coefficient; /* [RESPONSES * TOKENS] */
  const policy_algorithm *algorithm;
  int skip_metrics;
  policy_workspace *workspace;
} synthetic;

static void synthetic_init(synthetic *s) {
  size_t n = (size_t)RESPONSES * TOKENS;
  s->logp = MUST_ARRAY(double, 3 * n, "a batch");
  s->workspace = must_have(policy_workspace_new(), "a workspace");
  s->logq = s->logp + n;
  s->coefficient = s->logq + n;
  for (size_t g = 0; g <= GROUPS; ++g) s->group_start[g] = g * GROUP_SIZE;
  for (size_t i = 0; i <= RESPONSES; ++i) s->token_start[i] = i * TOKENS;
  rng_stream stream = rng_stream_at(1, RNG_TEST, 7);
  for (size_t i = 0; i < RESPONSES; ++i) s->reward[i] = (double)(rng_block(stream, i).v[2] & 1u);
  for (size_t t = 0; t < n; ++t) {
    rng_words w = rng_block(stream, t);
    s->logq[t] = log(rng_u01(w.v[0]));
    s->logp[t] = fmin(0, s->logq[t] + 0.02 * (rng_u01(w.v[1]) - 0.5));
  }
}

static gl_status time_policy_evaluate(void *self, gl_error *err) {
  synthetic *s = self;
  const policy_input in = {.n_groups = GROUPS,
                           .n_responses = RESPONSES,
                           .n_tokens = (size_t)RESPONSES * TOKENS,
                           .group_start = s->group_start,
                           .token_start = s->token_start,
                           .reward = s->reward,
                           .logp = s->logp,
                           .logq = s->logq,
                           .max_length = TOKENS};
  policy_output out = {.coefficient = s->coefficient, .skip_metrics = s->skip_metrics};
  return policy_evaluate(s->algorithm, &in, &out, s->workspace, err);
}

/* M2PO has no peer: it processes tokens in the order of their second moments, work that does not
 * suit PyTorch. */
typedef struct policy_row {
  const char *name;
  int has_peer;
  double aim;
} policy_row;

static gl_status time_policy_measure(bench *b, bench_number **number, const char *name,
                                     const char *what, const char *text, synthetic *s,
                                     gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "%s_%s_per_s", name, what);
  return bench_measure(b, number,
                       (bench_row){key, text, (double)RESPONSES * TOKENS, time_policy_evaluate, s},
                       0.2, err);
}

/* Measures the evaluation of an algorithm with everything that a training step needs, then without
 * the metrics, which PyTorch does not compute. */
static gl_status measure_row(bench *b, const policy_row *row, synthetic *s, peer_process *torch,
                             gl_error *err) {
  char request[64];
  bench_number *number = NULL;
  s->algorithm = policy_algorithms_find(row->name);
  s->skip_metrics = 0;
  gl_status status = time_policy_measure(
      b, &number, row->name, "tokens",
      "policy_evaluate, tokens a second, 64 responses of 512, with metrics", s, err);
  if (status != GL_OK) return status;
  number->aim = row->aim;
  if (!row->has_peer) return GL_OK;
  s->skip_metrics = 1;
  status = time_policy_measure(b, &number, row->name, "loss_tokens",
                               "the same, loss and coefficients alone", s, err);
  if (status != GL_OK) return status;
  snprintf(request, sizeof request, "%s eager", row->name);
  bench_ask(b, number, torch, "pytorch_eager", request, NAN);
  snprintf(request, sizeof request, "%s compiled", row->name);
  bench_ask(b, number, torch, "pytorch_compiled", request, NAN);
  return GL_OK;
}

gl_status bench_policy(bench *b, gl_error *err) {
  static const policy_row rows[] = {
      {"is", 1, NAN}, {"grpo", 1, 60e6}, {"gspo", 1, NAN}, {"gepo", 1, NAN}, {"m2po", 0, 60e6}};
  synthetic s = {.logp = NULL};
  peer_process torch = {.pid = 0};
  gl_status status = GL_OK;
  synthetic_init(&s);
  bench_start_python(b, &torch, "experiments/bench/policy.py", THREADS);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == GL_OK; ++i)
    status = measure_row(b, &rows[i], &s, &torch, err);
  peer_end(&torch);
  policy_workspace_free(s.workspace);
  free(s.logp);
  return status;
}

/* --- the exact laboratory: enumeration, and Monte Carlo beside NumPy --- */

enum { ARMS = 10, GROUP = 8, SAMPLES = 1 << 20 };

typedef struct lab_work {
  double p[ARMS], q[ARMS], reward[ARMS], zero[ARMS], one[ARMS];
  lab_form form;
  lab_alias alias;
  lab_block block;
  lab_scratch scratch;
  lab_moments moments;
} lab_work;

/* GEPO with the self-normalised denominator, as in experiments/bench/lab.py. */
static gl_status work_init(lab_work *w, gl_error *err) {
  *w = (lab_work){.alias = {0}};
  for (size_t y = 0; y < ARMS; ++y) {
    w->p[y] = (double)(y + 1) / (ARMS * (ARMS + 1) / 2.0);
    w->q[ARMS - 1 - y] = w->p[y];
    w->reward[y] = y % 3 == 0;
    w->one[y] = 1;
  }
  w->form = (lab_form){.n = ARMS,
                       .baseline = LAB_BASELINE_MEAN,
                       .denominator = LAB_SELF_NORMALISED,
                       .clip_low = -INFINITY,
                       .clip_high = INFINITY,
                       .reward = w->reward,
                       .extra = w->zero,
                       .w = w->p,
                       .z = w->q,
                       .u = w->one,
                       .v = w->zero};
  gl_status status = lab_block_init(&w->block, ARMS, GROUP, err);
  if (status == GL_OK) status = lab_scratch_init(&w->scratch, ARMS, err);
  if (status == GL_OK) status = lab_moments_init(&w->moments, ARMS, err);
  return status == GL_OK ? lab_alias_init(&w->alias, w->q, ARMS, err) : status;
}

static void work_fini(lab_work *w) {
  lab_alias_fini(&w->alias);
  lab_moments_fini(&w->moments);
  lab_scratch_fini(&w->scratch);
  lab_block_fini(&w->block);
}

/* The work of `gepolab lab bias` per algorithm and pair of policies, including the enumeration. */
static gl_status enumerate(void *self, gl_error *err) {
  lab_work *w = self;
  lab_multisets walk;
  gl_status status = lab_multisets_init(&walk, w->q, ARMS, GROUP, err);
  if (status != GL_OK) return status;
  while (lab_multisets_next(&walk, &w->block))
    lab_kernel(&w->form, &w->block, &w->scratch, &w->moments);
  lab_multisets_fini(&walk);
  return GL_OK;
}

static gl_status time_lab_sample(void *self, gl_error *err) {
  lab_work *w = self;
  (void)err;
  for (uint64_t g = 0; g < SAMPLES; g += LAB_BLOCK) {
    lab_block_draw(&w->block, &w->alias, rng_stream_at(1, RNG_MONTECARLO, 0), g, LAB_BLOCK,
                   SAMPLES);
    lab_kernel(&w->form, &w->block, &w->scratch, &w->moments);
  }
  return GL_OK;
}

static gl_status time_lab_measure(bench *b, lab_work *w, peer_process *numpy, gl_error *err) {
  const double multisets = (double)lab_multiset_count(ARMS, GROUP), tuples = pow(ARMS, GROUP);
  bench_number *number = NULL;
  gl_status status =
      bench_measure(b, &number,
                    (bench_row){"lab_exact_groups_per_s",
                                "multisets a second, enumerated; K = 10, G = 8 has 24,310",
                                multisets, enumerate, w},
                    0.3, err);
  if (status != GL_OK) return status;
  number->aim = multisets / 1.5e-3;
  status = bench_fact(b, "lab_exact_over_tuples", tuples / multisets, NAN,
                      "tuples that brute force would evaluate, for each multiset", err);
  if (status == GL_OK)
    status = bench_measure(b, &number,
                           (bench_row){"lab_monte_carlo_groups_per_s",
                                       "groups a second by Monte Carlo, drawing included, one core",
                                       SAMPLES, time_lab_sample, w},
                           0.3, err);
  if (status == GL_OK) bench_ask(b, number, numpy, "numpy", "groups", 20);
  return status;
}

gl_status bench_lab(bench *b, gl_error *err) {
  lab_work w;
  peer_process numpy;
  gl_status status = work_init(&w, err);
  bench_start_python(b, &numpy, "experiments/bench/lab.py", THREADS);
  if (status == GL_OK) status = time_lab_measure(b, &w, &numpy, err);
  peer_end(&numpy);
  work_fini(&w);
  return status;
}

/* --- the transformer on the CPU, compared with PyTorch --- */

enum { N_SHAPES = 4, RATE_SIDE = 1024 };
/* Minimum seconds of a repetition; a single call may take longer. */
#define LEAST_S 0.3

typedef struct bench_shape {
  const char *name;
  model_config model;
  size_t sequences, length, prompt;
} bench_shape;

#define LLM_MODEL(wide, deep, queries, keys, dim, words, span)                                     \
  {                                                                                                \
    .vocabulary = words, .hidden = wide, .intermediate = 3 * wide, .layers = deep,                 \
    .heads = queries, .kv_heads = keys, .head_dim = dim, .max_positions = span, .rms_eps = 1e-6,   \
    .rope_theta = 10000, .initializer_range = 0.02, .tied = 1, .begin = -1, .end = -1, .pad = -1   \
  }
/* The last one has half as many sequences, so that a repetition takes only seconds. */
static const bench_shape llm_shapes[N_SHAPES] = {
    {"64x2", LLM_MODEL(64, 2, 4, 2, 16, 32, 24), 64, 24, 8},
    {"128x4", LLM_MODEL(128, 4, 4, 2, 32, 64, 32), 64, 32, 8},
    {"256x6", LLM_MODEL(256, 6, 8, 4, 32, 600, 64), 64, 64, 8},
    {"512x8", LLM_MODEL(512, 8, 8, 4, 64, 600, 64), 32, 64, 8}};

/* Multiplications and additions of matrix products per trained token: two in the forward and four
 * in the backward for every weight. */
static double flops_per_token(const model_config *c) {
  const size_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
  const size_t layer = c->hidden * (q + 2 * kv) + q * c->hidden + 3 * c->hidden * c->intermediate;
  return 6 * (double)(c->layers * layer + c->vocabulary * c->hidden);
}

/* --- the machine's rate of products --- */

/* A large product divided in two dimensions among the backend's threads. */
typedef struct rate_job {
  backend *b;
  void *a, *x, *c;
} rate_job;

static gl_status multiply_once(void *self, gl_error *err) {
  const rate_job *j = self;
  j->b->ops->product(j->b, j->c, j->a, j->x, RATE_SIDE, RATE_SIDE, RATE_SIDE, 0);
  return j->b->ops->status(j->b, err);
}

/* *rate is in GFLOP per second. */
static gl_status measure_product(bench *r, backend *b, bench_rate *rate, gl_error *err) {
  const size_t bytes = RATE_SIDE * RATE_SIDE * sizeof(float);
  const double work = 2e-9 * RATE_SIDE * RATE_SIDE * RATE_SIDE;
  rate_job j = {b, b->ops->allocate(b, bytes), b->ops->allocate(b, bytes),
                b->ops->allocate(b, bytes)};
  bench_number *number = NULL;
  gl_status status = b->ops->status(b, err);
  if (status == GL_OK) b->ops->zero(b, j.a, bytes);
  if (status == GL_OK) b->ops->zero(b, j.x, bytes);
  if (status == GL_OK)
    status = bench_measure(r, &number,
                           (bench_row){"llm_product_gflops",
                                       "GFLOP a second, product of side 1024, float32", work,
                                       multiply_once, &j},
                           LEAST_S, err);
  if (status == GL_OK) *rate = number->rate;
  b->ops->release(b, j.a);
  b->ops->release(b, j.x);
  b->ops->release(b, j.c);
  return status;
}

/* --- one shape, compared with PyTorch --- */

/* Sends a request to experiments/bench/llm.py. */
static void time_llm_ask(bench *r, bench_number *number, peer_process *torch, const bench_shape *s,
                         const char *what, const char *name, double aim) {
  const model_config *c = &s->model;
  char request[256];
  snprintf(request, sizeof request, "%s %zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu", what, c->hidden,
           c->layers, c->heads, c->kv_heads, c->head_dim, c->intermediate, c->vocabulary,
           s->sequences, s->length, s->prompt);
  bench_ask(r, number, torch, name, request, aim);
}

/* row.key is the part of the key after the shape's name. */
static gl_status time_llm_measure(bench *r, bench_number **number, const bench_shape *s,
                                  bench_row row, gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "llm_%s_%s", s->name, row.key);
  row.key = key;
  return bench_measure(r, number, row, LEAST_S, err);
}

/* Appends training's fraction of the rate of products alone. */
static gl_status fraction_of_products(bench *r, const bench_shape *s, const bench_rate *trained,
                                      const bench_rate *product, gl_error *err) {
  char key[BENCH_NAME];
  snprintf(key, sizeof key, "llm_%s_train_of_product_rate", s->name);
  return bench_derived(r, key,
                       trained->median * flops_per_token(&s->model) / (1e9 * product->median),
                       meter_heavier(trained->load, product->load), NAN,
                       "fraction of the rate of products that training reaches", err);
}

static gl_status measure_shape(bench *r, const bench_shape *s, backend *b, peer_process *torch,
                               const bench_rate *product, gl_error *err) {
  workload w;
  bench_number *number = NULL;
  const workload_size size = {s->sequences, s->length, s->prompt, .trains = 1};
  gl_status status = workload_init(&w, &s->model, size, NULL, b, err);
  if (status == GL_OK)
    status = time_llm_measure(r, &number, s,
                              (bench_row){"train_tokens_per_s", "tokens a second, training",
                                          (double)(s->sequences * s->length), workload_train, &w},
                              err);
  if (status == GL_OK) {
    time_llm_ask(r, number, torch, s, "train eager", "pytorch_eager", 1.3);
    time_llm_ask(r, number, torch, s, "train compiled", "pytorch_compiled", 1.3);
    status = fraction_of_products(r, s, &number->rate, product, err);
  }
  if (status == GL_OK)
    status = time_llm_measure(r, &number, s,
                              (bench_row){"generate_tokens_per_s", "tokens a second, generation",
                                          (double)(s->sequences * (s->length - s->prompt)),
                                          workload_generate, &w},
                              err);
  if (status == GL_OK) {
    time_llm_ask(r, number, torch, s, "generate transformers", "transformers_generate", 2);
    time_llm_ask(r, number, torch, s, "generate loop", "pytorch_loop", 1.3);
  }
  workload_fini(&w);
  return status;
}

/* --- all --- */

gl_status bench_llm_has(const char *shape, gl_error *err) {
  for (size_t i = 0; i < N_SHAPES; ++i)
    if (strcmp(llm_shapes[i].name, shape) == 0) return GL_OK;
  return gl_fail(err, GL_EINPUT, "no shape '%s'; there are %s, %s, %s and %s", shape,
                 llm_shapes[0].name, llm_shapes[1].name, llm_shapes[2].name, llm_shapes[3].name);
}

gl_status bench_llm(bench *r, gl_error *err) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const size_t threads = cores > 0 ? (size_t)cores : 1;
  bench_rate product = {.median = NAN};
  backend *b = NULL;
  peer_process torch;
  gl_status status = backend_new(&b, BACKEND_CPU, NUMBER_F32, threads, err);
  if (status != GL_OK) return status;
  bench_start_python(r, &torch, "experiments/bench/llm.py", threads);
  status = measure_product(r, b, &product, err);
  for (size_t i = 0; i < N_SHAPES && status == GL_OK; ++i)
    if (r->shape == NULL || strcmp(r->shape, llm_shapes[i].name) == 0)
      status = measure_shape(r, &llm_shapes[i], b, &torch, &product, err);
  peer_end(&torch);
  backend_free(b);
  return status;
}

/* --- delay_sweep and llm_delay_sweep with one worker and with two --- */

typedef struct sweep_work {
  cfg_doc *doc;  /* owned */
  char path[96]; /* the study file, recreated for every run */
  size_t workers, cells;
} sweep_work;

static gl_status time_sweep_run(void *self, gl_error *err) {
  sweep_work *w = self;
  sweep_report report;
  sweep_options options = {.file = w->path,
                           .workers = w->workers,
                           .ranks = {.index = 0, .count = 1},
                           .progress = PROGRESS_SILENT};
  gl_status status = sweep_run(&report, w->doc, &options, err);
  w->cells = report.cells;
  if (status == GL_OK && report.failed > 0)
    status = gl_fail(err, GL_EIO, "%zu runs failed: %.*s", report.failed,
                     (int)strcspn(report.failures, "\n"), report.failures);
  sweep_report_fini(&report);
  unlink(w->path);
  return status;
}

typedef struct sweep_case {
  const char *key, *what, *recipe;
  const char *const *overrides;
  size_t n_overrides, workers;
  double cells, per; /* cells of one run; 3600 if the rate is per hour, else 1 */
} sweep_case;

static gl_status time_sweep_load(sweep_work *w, bench_row *row, const sweep_case *c,
                                 const char *folder, gl_error *err) {
  cfg_doc *doc = NULL;
  gl_status status = recipe_load(&doc, c->recipe, c->overrides, c->n_overrides, err);
  *w = (sweep_work){.doc = doc, .workers = c->workers};
  snprintf(w->path, sizeof w->path, "%s/%s.db", folder, c->key);
  *row = (bench_row){c->key, c->what, c->cells * c->per, time_sweep_run, w};
  return status;
}

/* Measures at most two cases, with interleaved repetitions. */
static gl_status time_sweep_measure(bench *b, bench_number *number[], const sweep_case *cases,
                                    size_t n, const char *folder, gl_error *err) {
  sweep_work w[2] = {{.doc = NULL}};
  bench_row rows[2];
  gl_status status = GL_OK;
  for (size_t i = 0; i < n && status == GL_OK; ++i)
    status = time_sweep_load(&w[i], &rows[i], &cases[i], folder, err);
  if (status == GL_OK) status = bench_measure_in_turns(b, number, rows, n, 0, err);
  for (size_t i = 0; i < n; ++i) {
    if (status == GL_OK && number[i]->rate.n > 0 && (double)w[i].cells != cases[i].cells)
      status = gl_fail(err, GL_EINTERNAL, "%s has %zu cells instead of %g", cases[i].recipe,
                       w[i].cells, cases[i].cells);
    cfg_free(w[i].doc);
  }
  return status;
}

static gl_status measure_all(bench *b, const char *folder, gl_error *err) {
  static const char *const toy[] = {"tune=null", "sweep.seed=[1]"};
  static const char *const llm[] = {"tune=null", "sweep.seed=[1]", "sweep.algorithm=[gepo]",
                                    "sweep.cluster.max_delay=[120, 600]"};
  static const sweep_case workers[] = {{.key = "cells_per_s_j1",
                                        .what = "cells a second of delay_sweep, -j 1",
                                        .recipe = "delay_sweep",
                                        .overrides = toy,
                                        .n_overrides = 2,
                                        .workers = 1,
                                        .cells = 32,
                                        .per = 1},
                                       {.key = "cells_per_s_j2",
                                        .what = "cells a second of delay_sweep, -j 2",
                                        .recipe = "delay_sweep",
                                        .overrides = toy,
                                        .n_overrides = 2,
                                        .workers = 2,
                                        .cells = 32,
                                        .per = 1}};
  static const sweep_case hourly = {.key = "llm_cells_per_hour_j2",
                                    .what = "cells an hour of llm_delay_sweep, -j 2, warmed up",
                                    .recipe = "llm_delay_sweep",
                                    .overrides = llm,
                                    .n_overrides = 4,
                                    .workers = 2,
                                    .cells = 2,
                                    .per = 3600};
  bench_number *number[2] = {NULL}, *llm_number = NULL;
  gl_status status = time_sweep_measure(b, number, workers, 2, folder, err);
  if (status == GL_OK && number[1]->rate.n > 0)
    status = bench_speed_up(b, "speed_up_j2", number[0], number[1], 2,
                            "speed-up of -j 2, measured in turns", err);
  return status == GL_OK ? time_sweep_measure(b, &llm_number, &hourly, 1, folder, err) : status;
}

/* Removes a folder of files. */
static void remove_folder(const char *folder) {
  char path[4096];
  DIR *d = opendir(folder);
  for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
}

/* Warm-ups are cached in the scratch folder. So each call computes them once, in the run that is
 * not counted, and the user's cache does not change. */
gl_status bench_sweep(bench *b, gl_error *err) {
  char folder[] = "/tmp/gepolab-bench-XXXXXX", cache[64];
  const char *kept = getenv("GEPOLAB_CACHE");
  char *before = kept != NULL ? strdup(kept) : NULL;
  if ((kept != NULL && before == NULL) || mkdtemp(folder) == NULL) {
    free(before);
    return gl_fail(err, GL_EIO, "cannot make a folder in /tmp");
  }
  snprintf(cache, sizeof cache, "%s/cache", folder);
  setenv("GEPOLAB_CACHE", cache, 1);
  gl_status status = measure_all(b, folder, err);
  if (before != NULL)
    setenv("GEPOLAB_CACHE", before, 1);
  else
    unsetenv("GEPOLAB_CACHE");
  free(before);
  remove_folder(cache);
  remove_folder(folder);
  return status;
}

/* --- token-level logs --- */

/* `gepolab bench logs`: evaluates a NeMo-RL log of synthetic numbers like `whatif -a grpo -a gepo`,
 * compared with orjson and NumPy computing the same sums. */

/* Responses per prompt; tokens of a padded row, and of the prompt in it. */
enum { LOG_GROUP = 8, LOG_ROW = 4096, LOG_PROMPT = 256 };

typedef struct log_row {
  size_t index, length; /* index of the response, and its length in tokens */
  rng_stream stream;
  double logp[LOG_ROW], logq[LOG_ROW];
} log_row;

/* Lengths are lognormal; most tokens have a probability near 1, as a model's do. Padding of
 * prev_logprobs has numbers too, because NeMo-RL scores whole rows. Everything is in single
 * precision. */
static void draw_row(log_row *r, size_t index) {
  r->index = index;
  r->stream = rng_stream_at(1, RNG_TEST, index);
  const rng_words first = rng_block(r->stream, LOG_ROW);
  const double normal =
      sqrt(-2 * log(rng_u01(first.v[0]))) * cos(6.283185307179586 * rng_u01(first.v[1]));
  const double length = fmin(LOG_ROW - LOG_PROMPT, fmax(8, LOG_ROW / 3.0 * exp(0.8 * normal)));
  r->length = (size_t)length;
  for (size_t t = 0; t < LOG_ROW; ++t) {
    const rng_words w = rng_block(r->stream, t);
    const double scale = rng_u01(w.v[0]) < 0.6 ? 1e-3 : 0.8, q = scale * log(rng_u01(w.v[1]));
    const double p = fmin(0, q * (1 + 0.04 * (rng_u01(w.v[2]) - 0.5)));
    const int in_response = t >= LOG_PROMPT && t < LOG_PROMPT + r->length;
    r->logq[t] = in_response ? (double)(float)q : 0;
    r->logp[t] = (double)(float)p;
  }
}

static void print_doubles(FILE *to, const char *name, const double *value) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(to, "\"%s\": [[", name);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%s%s", t > 0 ? ", " : "", number_text(value[t], text),
            value[t] == 0 ? ".0" : "");
  fputs("]], ", to);
}

static void print_row(FILE *to, const log_row *r) {
  const rng_stream prompt = rng_stream_at(1, RNG_TEST, r->index / LOG_GROUP);
  const rng_words w = rng_block(r->stream, LOG_ROW + 1);
  const double advantage = (double)(float)(rng_u01(w.v[0]) - 0.5);
  double advantages[LOG_ROW];
  for (size_t t = 0; t < LOG_ROW; ++t) advantages[t] = advantage;
  fprintf(
      to,
      "{\"content\": [\"%*s\"], \"rewards\": [%u.0], \"input_lengths\": [%zu], \"token_ids\": [[",
      (int)(4 * r->length), "", w.v[1] & 1u, LOG_PROMPT + r->length);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%u", t > 0 ? ", " : "",
            rng_block(t < LOG_PROMPT ? prompt : r->stream, t).v[3] % 150000u);
  fputs("]], \"token_loss_mask\": [[", to);
  for (size_t t = 0; t < LOG_ROW; ++t)
    fprintf(to, "%s%d", t > 0 ? ", " : "", t >= LOG_PROMPT && t < LOG_PROMPT + r->length);
  fputs("]], \"sample_loss_mask\": [1.0], ", to);
  print_doubles(to, "advantages", advantages);
  print_doubles(to, "generation_logprobs", r->logq);
  print_doubles(to, "prev_logprobs", r->logp);
  fprintf(to, "\"idx\": %zu}\n", r->index);
}

/* Writes whole groups until the file has at least `bytes` bytes; *size: the size of the file. */
static gl_status write_nemo_log(const char *path, double bytes, double *size, gl_error *err) {
  FILE *to = fopen(path, "w");
  log_row *row = MUST_ARRAY(log_row, 1, "a benchmark's log");
  if (to == NULL)
    return gl_fail(err, GL_EIO, "%s: cannot be written: %s; set TMPDIR", path, strerror(errno));
  for (size_t i = 0; i % LOG_GROUP != 0 || (double)ftell(to) < bytes; ++i) {
    draw_row(row, i);
    print_row(to, row);
  }
  *size = (double)ftell(to);
  const int failed = ferror(to);
  free(row);
  if (fclose(to) == 0 && !failed) return GL_OK;
  return gl_fail(err, GL_EIO, "%s: cannot be written: is there room? Set TMPDIR", path);
}

static gl_status time_whatif(void *self, gl_error *err) {
  static const char *const names[] = {"grpo", "gepo"};
  const char *path = self;
  const token_request any = {0};
  whatif *w = MUST_ARRAY(whatif, 1, "whatif");
  gl_status status = whatif_init(w, names, 2, err);
  if (status == GL_OK) status = whatif_read(w, &path, 1, &any, err);
  whatif_fini(w);
  free(w);
  return status;
}

gl_status bench_logs(bench *b, gl_error *err) {
  const char *folder = getenv("TMPDIR");
  char *path = must_textf("a path", "%s/train_data_step1-%ld.jsonl",
                          folder != NULL ? folder : "/tmp", (long)getpid());
  bench_number *number = NULL;
  peer_process python = {.pid = 0};
  double size = 0;
  gl_status status =
      write_nemo_log(path, b->quick ? 1e6 : (double)b->log_mib * 1048576, &size, err);
  bench_start_python(b, &python, "experiments/bench/token_log.py", 1);
  if (status == GL_OK)
    status = bench_measure(b, &number,
                           (bench_row){"logs_nemo_rl",
                                       "B/s of a NeMo-RL log through whatif -a grpo -a gepo", size,
                                       time_whatif, path},
                           b->quick ? 0 : 1, err);
  if (status == GL_OK) bench_ask(b, number, &python, "orjson_numpy", path, 5);
  peer_end(&python);
  remove(path);
  free(path);
  return status;
}
