/* What a metric is worth as an announcement of falls. */
#include "analysis/announce.h"

#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

announce_rule announce_rule_default(void) {
  return (announce_rule){.window = 8,
                         .false_alarms = 0.1,
                         .lead = {1, 25, 50, 100},
                         .outcome = outcome_rule_default()};
}

enum { RISES, FALLS, SIDES };

/* A run that has a value: its largest watched mean, and the largest of the negated ones. */
typedef struct scored {
  const announce_series *of;
  double top[SIDES];
  size_t start; /* index */
  int alarm;    /* 1: it was judged and raised one */
  int judged;
  double lead; /* updates before the onset; of an announced fall */
} scored;

typedef struct bench {
  const announce_rule *rule;
  scored *run;
  size_t n;
  uint64_t *starts; /* [n_starts] ascending */
  size_t n_starts;
} bench;

/* --- what is watched --- */

/* The mean of the numbers among the last `window` values up to k; NaN where there are fewer updates
 * yet, or no number. */
static double watched(const announce_series *r, size_t window, size_t k) {
  double sum = 0, n = 0;
  if (k + 1 < window) return NAN;
  for (size_t i = k + 1 - window; i <= k; i++) {
    if (isnan(r->value[i])) continue;
    sum += r->value[i];
    n += 1;
  }
  return n > 0 ? sum / n : NAN;
}

/* How many of its updates may be looked at. */
static size_t length_of(const announce_series *r) {
  size_t n = 0;
  while (n < r->n && (!r->fell || r->step[n] < r->onset)) n++;
  return n;
}

static int is_beyond(double value, int side, double threshold) {
  return (side == RISES ? value : -value) > threshold;
}

/* What is watched at the last update until `step`; NaN where there is none. */
static double watched_at(const announce_series *r, size_t window, int64_t step) {
  size_t n = 0;
  while (n < r->n && r->step[n] <= step) n++;
  return n > 0 ? watched(r, window, n - 1) : NAN;
}

/* 1 if the run has a value. */
static int score(scored *s, const announce_series *r, size_t window) {
  int has = 0;
  const size_t n = length_of(r);
  *s = (scored){.of = r, .top = {-INFINITY, -INFINITY}};
  for (size_t k = 0; k < n; k++) {
    const double x = watched(r, window, k);
    if (isnan(x)) continue;
    s->top[RISES] = fmax(s->top[RISES], x);
    s->top[FALLS] = fmax(s->top[FALLS], -x);
    has = 1;
  }
  return has;
}

/* The first update at which the run is beyond the threshold; -1: none. */
static int64_t alarm_of(const announce_series *r, size_t window, int side, double threshold) {
  const size_t n = length_of(r);
  for (size_t k = 0; k < n; k++)
    if (is_beyond(watched(r, window, k), side, threshold)) return r->step[k];
  return -1;
}

static int by_number(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void number_starts(bench *b) {
  for (size_t i = 0; i < b->n; i++) b->starts[i] = b->run[i].of->start;
  qsort(b->starts, b->n, sizeof *b->starts, by_number);
  for (size_t i = 0; i < b->n; i++)
    if (i == 0 || b->starts[i] != b->starts[i - 1]) b->starts[b->n_starts++] = b->starts[i];
  for (size_t i = 0; i < b->n; i++) {
    size_t k = 0;
    while (b->starts[k] != b->run[i].of->start) k++;
    b->run[i].start = k;
  }
}

/* ROC --- */

/* A pair of a fallen and a surviving run, as it counts for the area under the curve. */
static double order_of(const scored *fallen, const scored *survived, int side) {
  const double f = fallen->top[side], s = survived->top[side];
  return f > s ? 1 : (f == s ? 0.5 : 0);
}

/* The area without the runs of one start (n_starts: of all); NaN where a kind of run is missing. */
static double area_without(const bench *b, int side, size_t left_out) {
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < b->n; i++) {
    const scored *f = &b->run[i];
    if (!f->of->fell || f->start == left_out) continue;
    for (size_t j = 0; j < b->n; j++) {
      const scored *s = &b->run[j];
      if (s->of->fell || s->start == left_out) continue;
      sum += order_of(f, s, side);
      pairs += 1;
    }
  }
  return pairs > 0 ? sum / pairs : NAN;
}

static int better_side(const bench *b, size_t left_out) {
  return area_without(b, FALLS, left_out) > area_without(b, RISES, left_out) ? FALLS : RISES;
}

static int descending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Fills top[] with the scores of those runs, descending; how many. */
static size_t scores_of(const bench *b, int fell, int side, size_t left_out, double *top) {
  size_t n = 0;
  for (size_t i = 0; i < b->n; i++)
    if (b->run[i].of->fell == fell && b->run[i].start != left_out) top[n++] = b->run[i].top[side];
  qsort(top, n, sizeof *top, descending);
  return n;
}

static gl_status take_curve(announcement *out, const bench *b, gl_error *err) {
  double *fallen = calloc(b->n + 1, sizeof *fallen), *survived = calloc(b->n + 1, sizeof *survived);
  out->roc_alarms = calloc(b->n + 2, sizeof *out->roc_alarms);
  out->roc_announced = calloc(b->n + 2, sizeof *out->roc_announced);
  const int fine = fallen && survived && out->roc_alarms && out->roc_announced;
  if (fine) {
    const size_t f = scores_of(b, 1, out->falls, b->n_starts, fallen);
    const size_t s = scores_of(b, 0, out->falls, b->n_starts, survived);
    size_t i = 0, j = 0, n = 1; /* the first point is (0, 0) */
    while (i < f || j < s) {
      const double at = j == s || (i < f && fallen[i] > survived[j]) ? fallen[i] : survived[j];
      while (i < f && fallen[i] == at) i++;
      while (j < s && survived[j] == at) j++;
      out->roc_announced[n] = f > 0 ? (double)i / (double)f : 0;
      out->roc_alarms[n++] = s > 0 ? (double)j / (double)s : 0;
    }
    out->n_roc = n;
  }
  free(fallen);
  free(survived);
  return fine ? GL_OK : gl_fail_memory(err, "a ROC curve");
}

/* --- leaving one start out --- */

/* The least threshold beyond which no more than the allowed share of survived[n], descending, lie.
 */
static double threshold_of(const double *survived, size_t n, double allowed) {
  size_t alarms = (size_t)floor(allowed * (double)n + 1e-9);
  return survived[alarms < n ? alarms : n - 1];
}

static void judge(scored *s, const announce_rule *rule, int side, double threshold) {
  const int64_t at = alarm_of(s->of, rule->window, side, threshold);
  s->judged = 1;
  s->alarm = at >= 0;
  s->lead = s->of->fell && at >= 0 ? (double)(s->of->onset - at) : NAN;
}

/* The runs of a start are judged where the others have fallen and surviving runs. */
static gl_status judge_starts(bench *b, gl_error *err) {
  double *top = calloc(b->n + 1, sizeof *top);
  if (top == NULL) return gl_fail_memory(err, "thresholds");
  for (size_t k = 0; k < b->n_starts; k++) {
    const int side = better_side(b, k);
    if (scores_of(b, 1, side, k, top) == 0) continue;
    const size_t n = scores_of(b, 0, side, k, top);
    if (n == 0) continue;
    const double threshold = threshold_of(top, n, b->rule->false_alarms);
    for (size_t i = 0; i < b->n; i++)
      if (b->run[i].start == k) judge(&b->run[i], b->rule, side, threshold);
  }
  free(top);
  return GL_OK;
}

/* --- intervals --- */

/* What the runs of one start add to the quantities, and to pairs with each other start. */
typedef struct start_sums {
  double judged_fallen, announced, judged_survived, alarms;
} start_sums;

typedef struct resampling {
  const bench *b;
  int side;
  double *concordant, *pairs; /* [COMPARISONS][n_starts][n_starts] fallen of one, surviving of the
                                 other */
  start_sums *sums;           /* [n_starts] */
  double *lead;               /* [n_leads] ascending */
  size_t *lead_start, n_leads;
  double *times; /* [n_starts] how often a start was drawn */
} resampling;

enum { OF_SHARE, OF_ALARMS, OF_LEAD, OF_AREAS };
/* The areas: over whole runs, and at each lead. */
enum { OF_RUNS, OF_LEADS, COMPARISONS = OF_LEADS + ANNOUNCE_LEADS };
enum { QUANTITIES = OF_AREAS + COMPARISONS };

static double ratio(double a, double b) {
  return b > 0 ? a / b : NAN;
}

/* The median of the leads, each as often as its start was drawn. */
static double median_lead(const resampling *r) {
  double n = 0, below = 0, lower = NAN;
  for (size_t i = 0; i < r->n_leads; i++) n += r->times[r->lead_start[i]];
  for (size_t i = 0; i < r->n_leads; i++) {
    below += r->times[r->lead_start[i]];
    if (isnan(lower) && below > 0 && below >= n / 2) lower = r->lead[i];
    if (below > n / 2) return (lower + r->lead[i]) / 2;
  }
  return NAN;
}

/* The area of a comparison, each start's runs as often as it was drawn. */
static double area_drawn(const resampling *r, size_t comparison) {
  const size_t n = r->b->n_starts, first = comparison * n * n;
  double concordant = 0, pairs = 0;
  for (size_t i = 0; i < n; i++) {
    if (r->times[i] == 0) continue;
    for (size_t j = 0; j < n; j++) {
      const double times = r->times[i] * r->times[j];
      concordant += times * r->concordant[first + i * n + j];
      pairs += times * r->pairs[first + i * n + j];
    }
  }
  return ratio(concordant, pairs);
}

static void evaluate(const resampling *r, double value[QUANTITIES]) {
  const size_t n = r->b->n_starts;
  start_sums all = {0};
  for (size_t c = 0; c < COMPARISONS; c++) value[OF_AREAS + c] = area_drawn(r, c);
  for (size_t i = 0; i < n; i++) {
    if (r->times[i] == 0) continue;
    all.judged_fallen += r->times[i] * r->sums[i].judged_fallen;
    all.announced += r->times[i] * r->sums[i].announced;
    all.judged_survived += r->times[i] * r->sums[i].judged_survived;
    all.alarms += r->times[i] * r->sums[i].alarms;
  }
  value[OF_SHARE] = ratio(all.announced, all.judged_fallen);
  value[OF_ALARMS] = ratio(all.alarms, all.judged_survived);
  value[OF_LEAD] = median_lead(r);
}

typedef struct lead_of_start {
  double lead;
  size_t start;
} lead_of_start;

static int by_lead(const void *a, const void *b) {
  const double x = ((const lead_of_start *)a)->lead, y = ((const lead_of_start *)b)->lead;
  return (x > y) - (x < y);
}

static gl_status take_leads(resampling *r, gl_error *err) {
  const bench *b = r->b;
  lead_of_start *all = calloc(b->n + 1, sizeof *all);
  if (all == NULL) return gl_fail_memory(err, "lead times");
  for (size_t i = 0; i < b->n; i++)
    if (b->run[i].alarm && b->run[i].of->fell)
      all[r->n_leads++] = (lead_of_start){b->run[i].lead, b->run[i].start};
  qsort(all, r->n_leads, sizeof *all, by_lead);
  for (size_t i = 0; i < r->n_leads; i++) {
    r->lead[i] = all[i].lead;
    r->lead_start[i] = all[i].start;
  }
  free(all);
  return GL_OK;
}

static void add_pair(resampling *r, size_t comparison, const scored *fallen, const scored *survived,
                     double order) {
  const size_t n = r->b->n_starts, at = (comparison * n + fallen->start) * n + survived->start;
  r->concordant[at] += order;
  r->pairs[at] += 1;
}

static void take_sums(resampling *r) {
  const bench *b = r->b;
  for (size_t i = 0; i < b->n; i++) {
    const scored *f = &b->run[i];
    start_sums *sums = &r->sums[f->start];
    if (f->of->fell) {
      sums->judged_fallen += f->judged;
      sums->announced += f->alarm;
    } else {
      sums->judged_survived += f->judged;
      sums->alarms += f->alarm;
    }
    for (size_t j = 0; f->of->fell && j < b->n; j++) {
      const scored *s = &b->run[j];
      if (s->of->fell) continue;
      add_pair(r, OF_RUNS, f, s, order_of(f, s, r->side));
    }
  }
}

/* The surviving runs of its cell, at the update that lies the lead before its onset. How many there
 * are with a value. */
static size_t compare_then(resampling *r, const scored *f, size_t lead) {
  const announce_rule *rule = r->b->rule;
  const int64_t step = f->of->onset - rule->lead[lead];
  const double mine = watched_at(f->of, rule->window, step);
  size_t n = 0;
  for (size_t j = 0; j < r->b->n && !isnan(mine); j++) {
    const scored *s = &r->b->run[j];
    if (s->of->fell || s->of->cell != f->of->cell) continue;
    const double other = watched_at(s->of, rule->window, step);
    if (isnan(other)) continue;
    add_pair(r, OF_LEADS + lead, f, s, mine > other ? 1 : (mine == other ? 0.5 : 0));
    n++;
  }
  return n;
}

static void take_matched(announcement *out, resampling *r) {
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++)
    for (size_t i = 0; i < r->b->n; i++) {
      const size_t pairs = r->b->run[i].of->fell ? compare_then(r, &r->b->run[i], k) : 0;
      out->matched[k].pairs += pairs;
      out->matched[k].fallen += pairs > 0;
    }
}

static void draw_starts(resampling *r, uint64_t replicate) {
  const size_t n = r->b->n_starts;
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(13) << 60);
  memset(r->times, 0, n * sizeof *r->times);
  for (size_t i = 0; i < n; i++) {
    const rng_words w = rng_block(stream, replicate * n + i);
    r->times[(size_t)(rng_u01_53(w.v[0], w.v[1]) * (double)n)] += 1;
  }
}

static interval interval_of(double value, double *replicates) {
  const size_t n = sample_sort(replicates, BOOTSTRAP_REPLICATES);
  return (interval){value, sample_quantile(replicates, n, 0.025),
                    sample_quantile(replicates, n, 0.975)};
}

static void take_intervals(announcement *out, resampling *r, double *replicate) {
  const size_t n = r->b->n_starts;
  interval *of[QUANTITIES] = {[OF_SHARE] = &out->share,
                              [OF_ALARMS] = &out->false_alarms,
                              [OF_LEAD] = &out->lead,
                              [OF_AREAS + OF_RUNS] = &out->auc};
  double value[QUANTITIES], drawn[QUANTITIES];
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) of[OF_AREAS + OF_LEADS + k] = &out->matched[k].auc;
  for (size_t i = 0; i < n; i++) r->times[i] = 1;
  evaluate(r, value);
  for (uint64_t k = 0; n > 1 && k < BOOTSTRAP_REPLICATES; k++) {
    draw_starts(r, k);
    evaluate(r, drawn);
    for (size_t q = 0; q < QUANTITIES; q++) replicate[q * BOOTSTRAP_REPLICATES + k] = drawn[q];
  }
  for (size_t q = 0; q < QUANTITIES; q++)
    *of[q] = n > 1 ? interval_of(value[q], replicate + q * BOOTSTRAP_REPLICATES)
                   : (interval){value[q], NAN, NAN};
}

static gl_status resample(announcement *out, const bench *b, gl_error *err) {
  const size_t n = b->n_starts;
  resampling r = {.b = b,
                  .side = out->falls,
                  .concordant = calloc(COMPARISONS * n * n, sizeof *r.concordant),
                  .pairs = calloc(COMPARISONS * n * n, sizeof *r.pairs),
                  .sums = calloc(n, sizeof *r.sums),
                  .lead = calloc(b->n, sizeof *r.lead),
                  .lead_start = calloc(b->n, sizeof *r.lead_start),
                  .times = calloc(n, sizeof *r.times)};
  double *replicate = calloc(QUANTITIES * BOOTSTRAP_REPLICATES, sizeof *replicate);
  gl_status status = GL_OK;
  if (!r.concordant || !r.pairs || !r.sums || !r.lead || !r.lead_start || !r.times || !replicate)
    status = gl_fail_memory(err, "a bootstrap over starts");
  if (status == GL_OK) status = take_leads(&r, err);
  if (status == GL_OK) {
    take_sums(&r);
    take_matched(out, &r);
    for (size_t i = 0; i < n; i++) {
      out->judged_fallen += (size_t)r.sums[i].judged_fallen;
      out->announced += (size_t)r.sums[i].announced;
      out->judged_survived += (size_t)r.sums[i].judged_survived;
      out->alarms += (size_t)r.sums[i].alarms;
    }
    take_intervals(out, &r, replicate);
  }
  free(r.concordant), free(r.pairs), free(r.sums), free(r.lead), free(r.lead_start), free(r.times);
  free(replicate);
  return status;
}

/* --- one metric --- */

gl_status announcement_of(announcement *out, const announce_series *runs, size_t n,
                          const announce_rule *rule, gl_error *err) {
  const interval unknown = {NAN, NAN, NAN};
  const metric m = out->m;
  *out = (announcement){
      .m = m, .auc = unknown, .share = unknown, .false_alarms = unknown, .lead = unknown};
  for (size_t k = 0; k < ANNOUNCE_LEADS; k++) out->matched[k].auc = unknown;
  bench b = {
      .rule = rule, .run = calloc(n + 1, sizeof *b.run), .starts = calloc(n + 1, sizeof *b.starts)};
  gl_status status =
      b.run != NULL && b.starts != NULL ? GL_OK : gl_fail_memory(err, "announcements");
  for (size_t i = 0; i < n && status == GL_OK; i++) {
    if (!score(&b.run[b.n], &runs[i], rule->window)) continue;
    if (runs[i].fell)
      out->fallen++;
    else
      out->survived++;
    b.n++;
  }
  if (status == GL_OK && out->fallen > 0 && out->survived > 0) {
    number_starts(&b);
    out->falls = better_side(&b, b.n_starts) == FALLS;
    status = judge_starts(&b, err);
    if (status == GL_OK) status = take_curve(out, &b, err);
    if (status == GL_OK) status = resample(out, &b, err);
  }
  free(b.run);
  free(b.starts);
  return status;
}

void announcement_fini(announcement *a) {
  free(a->roc_alarms);
  free(a->roc_announced);
  a->roc_alarms = a->roc_announced = NULL;
  a->n_roc = 0;
}
