/* Speed of the exact laboratory: enumeration, and Monte Carlo beside NumPy. */
#include "experiments/bench/bench.h"
#include "toy/lab/kernel.h"
#include "toy/lab/multiset.h"

#include <math.h>

enum { ARMS = 10, GROUP = 8, SAMPLES = 1 << 20, THREADS = 1 };

typedef struct lab_work {
  double p[ARMS], q[ARMS], reward[ARMS], zero[ARMS], one[ARMS];
  lab_form form;
  lab_alias alias;
  lab_block block;
  lab_scratch scratch;
  lab_moments moments;
} lab_work;

/* GEPO with the self-normalised denominator, the case of experiments/bench/lab.py. */
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

/* What `gepolab bias` does per algorithm and pair of policies, the walk included. */
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
  gl_status status = bench_measure(b, &number, "lab_exact_groups_per_s",
                                   "multisets a second, enumerated; K = 10, G = 8 has 24,310",
                                   multisets, 0.3, enumerate, w, err);
  if (status != GL_OK) return status;
  number->aim = multisets / 1.5e-3;
  status = bench_fact(b, "lab_exact_over_tuples", tuples / multisets, NAN,
                      "tuples that brute force would evaluate, for each multiset", err);
  if (status == GL_OK)
    status = bench_measure(b, &number, "lab_monte_carlo_groups_per_s",
                           "groups a second by Monte Carlo, drawing included, one core", SAMPLES,
                           0.3, time_lab_sample, w, err);
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
