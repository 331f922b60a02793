/* Speed of the exact laboratory: enumeration against brute force, Monte Carlo against NumPy. */
#include "experiments/base/seconds.h"
#include "experiments/bench/bench.h"
#include "toy/lab/kernel.h"
#include "toy/lab/multiset.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { ARMS = 10, GROUP = 8, REPEATS = 20, SAMPLES = 1 << 20 };

/* GEPO with the self-normalised denominator, the case of experiments/bench/lab.py. */
static lab_form form_of(double p[ARMS], double q[ARMS], double reward[ARMS], double *zero,
                        double *one) {
  for (size_t y = 0; y < ARMS; ++y) {
    p[y] = (double)(y + 1) / (ARMS * (ARMS + 1) / 2.0);
    q[ARMS - 1 - y] = p[y];
    reward[y] = y % 3 == 0;
    zero[y] = 0;
    one[y] = 1;
  }
  return (lab_form){.n = ARMS,
                    .baseline = LAB_BASELINE_MEAN,
                    .denominator = LAB_SELF_NORMALISED,
                    .clip_low = -INFINITY,
                    .clip_high = INFINITY,
                    .reward = reward,
                    .extra = zero,
                    .w = p,
                    .z = q,
                    .u = one,
                    .v = zero};
}

/* What `gepolab bias` does per algorithm and pair of policies, the walk included. */
static gl_status enumerate(const lab_form *f, const double *q, lab_block *b, lab_scratch *s,
                           lab_moments *m, double *seconds, gl_error *err) {
  const double start = seconds_now();
  for (int i = 0; i < REPEATS; ++i) {
    lab_multisets walk;
    gl_status status = lab_multisets_init(&walk, q, ARMS, GROUP, err);
    if (status != GL_OK) return status;
    while (lab_multisets_next(&walk, b)) lab_kernel(f, b, s, m);
    lab_multisets_fini(&walk);
  }
  *seconds = (seconds_now() - start) / REPEATS;
  return GL_OK;
}

static double sample(const lab_form *f, const lab_alias *alias, lab_block *b, lab_scratch *s,
                     lab_moments *m) {
  const double start = seconds_now();
  for (uint64_t g = 0; g < SAMPLES; g += LAB_BLOCK) {
    lab_block_draw(b, alias, rng_stream_at(1, RNG_MONTECARLO, 0), g, LAB_BLOCK, SAMPLES);
    lab_kernel(f, b, s, m);
  }
  return SAMPLES / (seconds_now() - start);
}

/* Groups per second that the NumPy script prints, or NaN without it, python3 or numpy. */
static double numpy_rate(void) {
  double rate = NAN;
  if (access("experiments/bench/lab.py", R_OK) != 0) return rate;
  FILE *pipe = popen("python3 experiments/bench/lab.py 2>/dev/null", "r");
  if (pipe == NULL) return rate;
  if (fscanf(pipe, "%lf", &rate) != 1) rate = NAN;
  pclose(pipe);
  return rate;
}

gl_status bench_lab(bench_result *r, gl_error *err) {
  double p[ARMS], q[ARMS], reward[ARMS], zero[ARMS], one[ARMS], seconds = 0;
  const lab_form f = form_of(p, q, reward, zero, one);
  const double multisets = (double)lab_multiset_count(ARMS, GROUP), tuples = pow(ARMS, GROUP);
  lab_block b = {0};
  lab_scratch s = {0};
  lab_moments m = {0};
  lab_alias alias = {0};
  gl_status status = lab_block_init(&b, ARMS, GROUP, err);
  if (status == GL_OK) status = lab_scratch_init(&s, ARMS, err);
  if (status == GL_OK) status = lab_moments_init(&m, ARMS, err);
  if (status == GL_OK) status = lab_alias_init(&alias, q, ARMS, err);
  if (status == GL_OK) status = enumerate(&f, q, &b, &s, &m, &seconds, err);
  if (status == GL_OK) {
    const double drawn = sample(&f, &alias, &b, &s, &m), numpy = numpy_rate();
    bench_add(r, "lab_exact_ms", 1e3 * seconds, 1.5, "K = 10, G = 8: 24,310 multisets, one row");
    bench_add(r, "lab_exact_groups_per_s", multisets / seconds, NAN, "multisets enumerated");
    bench_add(r, "lab_exact_over_tuples", tuples / multisets, NAN,
              "tuples that brute force would evaluate, per multiset");
    bench_add(r, "lab_monte_carlo_groups_per_s", drawn, 50 * numpy, "one core, drawing included");
    if (!isnan(numpy))
      bench_add(r, "lab_numpy_groups_per_s", numpy, NAN, "experiments/bench/lab.py, one core");
  }
  lab_alias_fini(&alias);
  lab_moments_fini(&m);
  lab_scratch_fini(&s);
  lab_block_fini(&b);
  return status;
}
