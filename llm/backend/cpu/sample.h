/* Samples tokens from logits with the distribution of core/rl/sampling_distribution.h (temperature,
 * top-k, top-p), and distorts logits (`sampling.behaviour`). Part of template.c, compiled once per
 * number type and instruction set. */

/* The arguments of `sample` (operations.h). A task is one row. */
typedef struct sample_job {
  const REAL *logits;
  const uint64_t *index;
  int32_t *token;
  REAL *logq, *logq_truncated;
  size_t vocabulary;
  const sampling_spec *spec;
  rng_stream stream;
  int greedy;
  kept_sets kept; /* result: the tokens that the distribution keeps; set NULL: not requested */
  cpu *owner;
} sample_job;

/* logp [n] = log-probabilities of softmax(factor * z [n]), in double precision except for the
 * exponentials, as in the output layer. */
static void sample_dist(double *restrict logp, const REAL *restrict z, size_t n, REAL factor) {
  const kernel_group g = {0};
  const double lse = softmax_stats_lse(row_stats(g, z, n, factor), (double)factor);
  SIMD
  for (size_t i = 0; i < n; ++i) logp[i] = (double)factor * (double)z[i] - lse;
}

enum { SAMPLE_BLOCK = 32 }; /* tokens that the search can skip at once */

/* The token at which the cumulative sum of probabilities exceeds u. If rounding keeps the sum below
 * u: the last token of positive probability. If probabilities are NaN: the last token. */
static size_t sample_invert(const double *logp, size_t n, double u) {
  REAL p[SAMPLE_BLOCK];
  size_t last = n - 1;
  double below = 0;
  for (size_t first = 0; first < n; first += SAMPLE_BLOCK) {
    const size_t high = smaller(SAMPLE_BLOCK, n - first);
    double sum = 0;
    SIMD_SUM(sum)
    for (size_t a = 0; a < high; ++a) {
      p[a] = ROW_EXP((REAL)logp[first + a]);
      sum += (double)p[a];
    }
    const int here = u < below + sum;
    double passed = below;
    for (size_t a = 0; a < high && (here || sum > 0); ++a) {
      if (p[a] > 0) last = first + a;
      passed += (double)p[a];
      if (here && u < passed) return last;
    }
    if (here) return last;
    below += sum;
  }
  return last;
}

/* The token of greatest probability; the first one on ties. */
static size_t sample_greatest(const double *logp, size_t n) {
  size_t best = 0;
  for (size_t a = 1; a < n; ++a)
    if (logp[a] > logp[best]) best = a;
  return best;
}

static void sample_task(void *context, size_t r, size_t worker) {
  const sample_job *job = context;
  const size_t n = job->vocabulary;
  sampling_rank *rank = job->owner->worker[worker];
  double *const logp = (double *)(void *)(rank + n), *const truncated = logp + n;
  sample_dist(logp, job->logits + r * n, n, (REAL)(1 / job->spec->temperature));
  const double *dist = logp;
  if (sampling_truncates(job->spec, n)) {
    sampling_truncate(job->spec, logp, n, truncated, rank);
    dist = truncated;
  }
  if (job->kept.set != NULL)
    kept_put(&job->kept.shape, dist, job->kept.set + r * job->kept.shape.words);
  size_t token;
  if (job->greedy) {
    token = sample_greatest(dist, n);
  } else {
    const rng_words w = rng_block(job->stream, job->index[r]);
    token = sample_invert(dist, n, rng_u01_53(w.v[0], w.v[1]));
  }
  job->token[r] = (int32_t)token;
  job->logq[r] = (REAL)logp[token];
  job->logq_truncated[r] = (REAL)dist[token];
}

static void sample_run(cpu *c, sample_job *job, size_t rows) {
  assert(rows == 0 || job->vocabulary > 0);
  job->owner = c;
  if (cpu_reserve(c, job->vocabulary * (sizeof(sampling_rank) + 2 * sizeof(double)), 0))
    pool_run(c->pool, sample_task, job, rows);
}

static void cpu_sample(backend *b, int32_t *token, void *logq, void *logq_truncated, const void *z,
                       const uint64_t *index, size_t rows, size_t vocabulary,
                       const sampling_spec *spec, rng_stream stream, int greedy) {
  sample_job job = {.logits = z,
                    .index = index,
                    .token = token,
                    .logq = logq,
                    .logq_truncated = logq_truncated,
                    .vocabulary = vocabulary,
                    .spec = spec,
                    .stream = stream,
                    .greedy = greedy};
  sample_run((cpu *)b, &job, rows);
}

static void cpu_sample_kept(backend *b, int32_t *token, void *logq, void *logq_truncated,
                            kept_sets kept, const void *z, const uint64_t *index, size_t rows,
                            const sampling_spec *spec, rng_stream stream) {
  sample_job job = {.logits = z,
                    .index = index,
                    .token = token,
                    .logq = logq,
                    .logq_truncated = logq_truncated,
                    .vocabulary = kept.shape.vocabulary,
                    .spec = spec,
                    .stream = stream,
                    .kept = kept};
  sample_run((cpu *)b, &job, rows);
}

/* The arguments of `distort` (operations.h). A task is one row. */
typedef struct distort_job {
  REAL *logits;
  const uint64_t *context;
  size_t vocabulary;
  const sampling_behaviour *behaviour;
  uint64_t seed;
} distort_job;

static void distort_task(void *context, size_t r, size_t worker) {
  const distort_job *job = context;
  const sampling_behaviour *by = job->behaviour;
  REAL *const z = job->logits + r * job->vocabulary;
  const rng_stream stream = rng_stream_at(job->seed, RNG_BEHAVIOUR, job->context[r]);
  double pair[2] = {0, 0};
  (void)worker;
  for (size_t a = 0; a < job->vocabulary; ++a) {
    if (by->noise > 0 && a % 2 == 0) rng_normal_pair(rng_block(stream, a / 2), by->noise, pair);
    const double moved = (double)z[a] + pair[a % 2];
    z[a] = (REAL)(by->rounds_to_bfloat16 ? sampling_to_bfloat16(moved) : moved);
  }
}

static void cpu_distort(backend *b, void *logits, const uint64_t *context, size_t rows,
                        size_t vocabulary, const sampling_behaviour *behaviour, uint64_t seed) {
  cpu *c = (cpu *)b;
  distort_job job = {logits, context, vocabulary, behaviour, seed};
  pool_run(c->pool, distort_task, &job, rows);
}
