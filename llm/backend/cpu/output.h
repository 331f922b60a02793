/* The output layer: product with the output embedding, log-probabilities and entropies, and their
 * backward. For generation: logits (sample.h samples tokens from them). Part of template.c,
 * compiled once per number type and instruction set.
 *
 * Forward: a task computes OUTPUT_ROWS rows for OUTPUT_SPAN tokens of the vocabulary, and keeps
 * each row's running softmax statistics. The statistics of the spans are joined in order at the
 * end. Backward: the logits of some rows are recomputed and turned into their gradients, which two
 * products then use. Columns are tokens of the vocabulary. The output embedding is packed first
 * (product.h), so that a logit has the same bits as in generation, which reads packed weights. An
 * embedding too large for that is multiplied row-wise (vector.h).
 *
 * If a row's distribution is renormalised over the tokens that its sampler kept, the logits of all
 * others are replaced by NOT_KEPT, whose exponential is zero. */

enum {
  OUTPUT_ROWS = 48,     /* rows per task */
  OUTPUT_COLUMNS = 512, /* logits of a row stored at a time */
  OUTPUT_SPAN = 8192,   /* vocabulary tokens of a forward task */
  OUTPUT_HELD = 1 << 24 /* maximum number of logit gradients that the backward stores at a time */
};

typedef struct output_job {
  panels packed; /* the output embedding; data is NULL if it was not packed */
  const REAL *in, *weight, *lse, *dlogp;
  const int32_t *target;
  REAL *logp, *entropy, *lse_to, *dlogits;
  softmax_stats *stats; /* [rows, spans], over all tokens; for kept_parts over those not kept */
  softmax_stats *kept_stats; /* [rows, spans], over the kept tokens; NULL: no sets */
  double *target_logit;      /* [rows] the target's logit */
  kept_sets kept;            /* sets of these rows; set NULL: none */
  size_t rows, vocabulary, k, spans;
  REAL factor;
  cpu *owner;
} output_job;

/* Packs the output embedding into c->packed if it is not too large. Returns 0 after an error. */
static int pack_output(cpu *c, output_job *job) {
  const size_t numbers = panels_numbers(job->k, job->vocabulary);
  job->packed = (panels){.n = job->k, .columns = job->vocabulary};
  if (numbers > PACKED_MOST) return 1;
  if (!cpu_reserve_packed(c, numbers * sizeof(REAL))) return 0;
  job->packed.data = c->packed;
  cpu_pack(&c->base, c->packed, job->weight, job->vocabulary, job->k);
  return 1;
}

/* z [rows, columns] = the logits of rows from `first` on for tokens from v on. Rows of z are z_row
 * numbers apart. v is a multiple of OUTPUT_COLUMNS. scratch: LEFT numbers. */
static void output_logits(const output_job *job, REAL *z, size_t z_row, size_t first, size_t rows,
                          size_t v, size_t columns, REAL *scratch) {
  const size_t k = job->k;
  if (job->packed.data != NULL)
    gemm_panels(job->in + first * k, k, 1, &job->packed, v, z, z_row, rows, columns, k, 0, scratch);
  else
    gemm_dot(job->in + first * k, k, job->weight + v * k, k, z, z_row, rows, columns, k, 0);
}

/* Far below every logit, but finite, so that differences are defined. */
static const REAL NOT_KEPT = (REAL)-1e30;

/* Replaces logits of tokens outside the row's set by NOT_KEPT, unless the set is empty, which keeps
 * all tokens. z [columns] are the logits of tokens from v on. */
static void leave_kept(const output_job *job, size_t row, REAL *z, size_t v, size_t columns) {
  const kept_shape *shape = &job->kept.shape;
  const uint32_t *set = job->kept.set + row * shape->words;
  if (kept_count(shape, set) == 0) return;
  if (!shape->listed) {
    for (size_t i = 0; i < columns; ++i)
      if ((set[(v + i) / 32] >> (v + i) % 32 & 1) == 0) z[i] = NOT_KEPT;
    return;
  }
  size_t i = 0;
  for (size_t at = kept_from(set, v); at <= set[0] && set[at] < v + columns; ++at) {
    for (; i < set[at] - v; ++i) z[i] = NOT_KEPT;
    ++i;
  }
  for (; i < columns; ++i) z[i] = NOT_KEPT;
}

/* Computes the statistics of a block of rows over a span of the vocabulary. */
static void output_task(void *context, size_t task, size_t worker) {
  const output_job *job = context;
  const kernel_group g = {0};
  const size_t span = task % job->spans, first = task / job->spans * OUTPUT_ROWS;
  const size_t rows = smaller(OUTPUT_ROWS, job->rows - first);
  const size_t end = smaller(job->vocabulary, (span + 1) * OUTPUT_SPAN);
  REAL *const scratch = job->owner->worker[worker], *const z = scratch + LEFT;
  for (size_t r = 0; r < rows; ++r) {
    job->stats[(first + r) * job->spans + span] = (softmax_stats){.greatest = -INFINITY};
    if (job->kept_stats != NULL)
      job->kept_stats[(first + r) * job->spans + span] = (softmax_stats){.greatest = -INFINITY};
  }
  for (size_t v = span * OUTPUT_SPAN; v < end; v += OUTPUT_COLUMNS) {
    const size_t columns = smaller(OUTPUT_COLUMNS, end - v);
    output_logits(job, z, columns, first, rows, v, columns, scratch);
    for (size_t r = 0; r < rows; ++r) {
      softmax_stats *all = &job->stats[(first + r) * job->spans + span];
      const softmax_stats some = row_stats(g, z + r * columns, columns, job->factor);
      *all = softmax_stats_join(*all, some, (double)job->factor);
      const size_t target = (size_t)job->target[first + r];
      if (target >= v && target < v + columns)
        job->target_logit[first + r] = (double)z[r * columns + target - v];
      if (job->kept_stats == NULL) continue;
      leave_kept(job, first + r, z + r * columns, v, columns);
      softmax_stats *kept = &job->kept_stats[(first + r) * job->spans + span];
      const softmax_stats few = row_stats(g, z + r * columns, columns, job->factor);
      *kept = softmax_stats_join(*kept, few, (double)job->factor);
    }
  }
}

/* Joins the statistics of row r over all spans. */
static softmax_stats all_spans(const softmax_stats *stats, size_t r, size_t spans, double factor) {
  softmax_stats all = stats[r * spans];
  for (size_t s = 1; s < spans; ++s) all = softmax_stats_join(all, stats[r * spans + s], factor);
  return all;
}

/* Runs the forward of a job: fills in logp, entropy and lse_to. If keeps is 1, logp and lse_to are
 * of the distribution renormalised over job->kept. */
static void output_run(cpu *c, output_job *job, int keeps) {
  const size_t stats = job->rows * job->spans * sizeof *job->stats;
  const size_t own = (LEFT + OUTPUT_ROWS * OUTPUT_COLUMNS) * sizeof(REAL);
  if (!cpu_reserve(c, own, (keeps ? 2 : 1) * stats + job->rows * sizeof(double)) ||
      !pack_output(c, job))
    return;
  char *shared = c->shared;
  job->stats = c->shared;
  if (keeps) job->kept_stats = (softmax_stats *)(void *)(shared += stats);
  job->target_logit = (double *)(void *)(shared + stats);
  pool_run(c->pool, output_task, job, divide_up(job->rows, OUTPUT_ROWS) * job->spans);
  const double factor = (double)job->factor;
  for (size_t r = 0; r < job->rows; ++r) {
    const softmax_stats all = all_spans(job->stats, r, job->spans, factor);
    const softmax_stats dist = keeps ? all_spans(job->kept_stats, r, job->spans, factor) : all;
    job->logp[r] = (REAL)softmax_stats_logp(dist, job->target_logit[r], factor);
    job->entropy[r] = (REAL)softmax_stats_entropy(all);
    job->lse_to[r] = (REAL)softmax_stats_lse(dist, factor);
  }
}

static void cpu_output(backend *b, void *logp, void *entropy, void *lse, void *logits,
                       const void *in, const void *weight, const int32_t *target, kept_sets kept,
                       size_t rows, size_t vocabulary, size_t k, double temperature) {
  cpu *c = (cpu *)b;
  assert(temperature > 0 && logits == NULL);
  (void)logits;
  output_job job = {.in = in,
                    .weight = weight,
                    .target = target,
                    .logp = logp,
                    .entropy = entropy,
                    .lse_to = lse,
                    .rows = rows,
                    .vocabulary = vocabulary,
                    .k = k,
                    .spans = divide_up(vocabulary, OUTPUT_SPAN),
                    .factor = (REAL)(1 / temperature),
                    .kept = kept,
                    .owner = c};
  output_run(c, &job, kept.set != NULL);
}

/* --- the two parts of a distribution --- */

/* Splits a row: z [columns] keeps the logits of the kept tokens, tail [columns] receives the
 * others. All other elements of both arrays become NOT_KEPT. */
static void part_row(const output_job *job, size_t row, REAL *z, REAL *tail, size_t v,
                     size_t columns) {
  memcpy(tail, z, columns * sizeof *tail);
  leave_kept(job, row, z, v, columns);
  for (size_t i = 0; i < columns; ++i)
    if (z[i] != NOT_KEPT) tail[i] = NOT_KEPT;
}

/* Computes the statistics of the kept tokens (job->kept_stats) and of the others (job->stats), for
 * a block of rows over a span of the vocabulary. */
static void parts_task(void *context, size_t task, size_t worker) {
  const output_job *job = context;
  const kernel_group g = {0};
  const size_t span = task % job->spans, first = task / job->spans * OUTPUT_ROWS;
  const size_t rows = smaller(OUTPUT_ROWS, job->rows - first);
  const size_t end = smaller(job->vocabulary, (span + 1) * OUTPUT_SPAN);
  const double factor = (double)job->factor;
  REAL *const scratch = job->owner->worker[worker], *const z = scratch + LEFT;
  REAL tail[OUTPUT_COLUMNS];
  for (size_t v = span * OUTPUT_SPAN; v < end; v += OUTPUT_COLUMNS) {
    const size_t columns = smaller(OUTPUT_COLUMNS, end - v);
    output_logits(job, z, columns, first, rows, v, columns, scratch);
    for (size_t r = 0; r < rows; ++r) {
      const size_t at = (first + r) * job->spans + span;
      REAL *const row = z + r * columns;
      part_row(job, first + r, row, tail, v, columns);
      const softmax_stats few = row_stats(g, row, columns, job->factor);
      const softmax_stats rest = row_stats(g, tail, columns, job->factor);
      const int begins = v == span * OUTPUT_SPAN;
      job->kept_stats[at] = begins ? few : softmax_stats_join(job->kept_stats[at], few, factor);
      job->stats[at] = begins ? rest : softmax_stats_join(job->stats[at], rest, factor);
    }
  }
}

static void cpu_kept_parts(backend *b, void *mass, void *entropy_kept, void *entropy_tail,
                           const void *in, const void *weight, kept_sets kept, size_t rows,
                           size_t k, double temperature) {
  cpu *c = (cpu *)b;
  assert(temperature > 0);
  output_job job = {.in = in,
                    .weight = weight,
                    .rows = rows,
                    .vocabulary = kept.shape.vocabulary,
                    .k = k,
                    .spans = divide_up(kept.shape.vocabulary, OUTPUT_SPAN),
                    .factor = (REAL)(1 / temperature),
                    .kept = kept,
                    .owner = c};
  const size_t stats = rows * job.spans, own = (LEFT + OUTPUT_ROWS * OUTPUT_COLUMNS) * sizeof(REAL);
  if (!cpu_reserve(c, own, 2 * stats * sizeof *job.stats) || !pack_output(c, &job)) return;
  job.stats = c->shared;
  job.kept_stats = job.stats + stats;
  pool_run(c->pool, parts_task, &job, divide_up(rows, OUTPUT_ROWS) * job.spans);
  const double factor = (double)job.factor;
  for (size_t r = 0; r < rows; ++r) {
    const softmax_stats rest = all_spans(job.stats, r, job.spans, factor);
    const softmax_parts p = softmax_parts_of(all_spans(job.kept_stats, r, job.spans, factor), rest,
                                             rest.greatest <= (double)NOT_KEPT, factor);
    ((REAL *)mass)[r] = (REAL)p.mass;
    ((REAL *)entropy_kept)[r] = (REAL)p.entropy;
    ((REAL *)entropy_tail)[r] = (REAL)p.entropy_rest;
  }
}

/* --- backward --- */

/* Computes the gradients of a block of rows' logits for OUTPUT_COLUMNS tokens, into dlogits [rows,
 * vocabulary]. */
static void dlogits_task(void *context, size_t task, size_t worker) {
  const output_job *job = context;
  const kernel_group g = {0};
  const size_t parts = divide_up(job->vocabulary, OUTPUT_COLUMNS);
  const size_t v = task % parts * OUTPUT_COLUMNS, first = task / parts * OUTPUT_ROWS;
  const size_t rows = smaller(OUTPUT_ROWS, job->rows - first);
  const size_t columns = smaller(OUTPUT_COLUMNS, job->vocabulary - v);
  REAL *const z = job->dlogits + first * job->vocabulary + v;
  output_logits(job, z, job->vocabulary, first, rows, v, columns, job->owner->worker[worker]);
  for (size_t r = 0; r < rows; ++r) {
    if (job->kept.set != NULL) leave_kept(job, first + r, z + r * job->vocabulary, v, columns);
    row_logp_backward(g, z + r * job->vocabulary, columns, (size_t)job->target[first + r] - v,
                      job->factor, job->lse[first + r], job->factor * job->dlogp[first + r]);
  }
}

static void cpu_output_backward(backend *b, void *din, void *dweight, const void *dlogp,
                                const void *lse, const void *logits, const void *in,
                                const void *weight, const int32_t *target, kept_sets kept,
                                size_t rows, size_t vocabulary, size_t k, double temperature) {
  cpu *c = (cpu *)b;
  assert(temperature > 0 && logits == NULL);
  (void)logits;
  const size_t at_once = smaller(
      rows, larger(OUTPUT_ROWS, OUTPUT_HELD / larger(1, vocabulary) / OUTPUT_ROWS * OUTPUT_ROWS));
  /* The products below use the workers' scratch memory, and pack their factors where the output
   * embedding was. They do not use the shared memory, which stores the gradients of the logits. */
  if (!cpu_reserve(c, LEFT * sizeof(REAL), at_once * vocabulary * sizeof(REAL))) return;
  for (size_t r = 0; r < rows; r += at_once) {
    output_job job = {.in = (const REAL *)in + r * k,
                      .weight = weight,
                      .target = target + r,
                      .lse = (const REAL *)lse + r,
                      .dlogp = (const REAL *)dlogp + r,
                      .dlogits = c->shared,
                      .rows = smaller(at_once, rows - r),
                      .vocabulary = vocabulary,
                      .k = k,
                      .factor = (REAL)(1 / temperature),
                      .owner = c};
    if (kept.set != NULL) job.kept = (kept_sets){kept.shape, kept.set + r * kept.shape.words};
    if (!pack_output(c, &job)) return;
    pool_run(c->pool, dlogits_task, &job,
             divide_up(job.rows, OUTPUT_ROWS) * divide_up(vocabulary, OUTPUT_COLUMNS));
    cpu_product_backward_input(b, (REAL *)din + r * k, job.dlogits, weight, job.rows, vocabulary, k,
                               0);
    cpu_product_backward_weight(b, dweight, job.dlogits, job.in, job.rows, vocabulary, k);
  }
}

/* --- logits --- */

static void cpu_logits(backend *b, void *out, const void *in, const void *weight, size_t rows,
                       size_t vocabulary, size_t k) {
  cpu_product(b, out, in, weight, rows, vocabulary, k, PRODUCT_ROW_BY_ROW);
}
