/* Performance profiles, optimality gaps and probabilities of improvement. */
#include "analysis/profiles.h"

#include "analysis/evaluation_sets.h"
#include "core/random/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The scores of a cell: score[first .. first + n - 1]. */
typedef struct cell_scores {
  size_t first, n, without; /* without: runs that have no last score */
} cell_scores;

typedef struct profile_work {
  const results *from;
  double *score, *drawn; /* [n_runs] scores, and a bootstrap sample of them */
  cell_scores *cell;     /* [n_groups][n_algorithms] */
  size_t n_quantities;
  double *value, *replicate; /* [n_quantities], [n_quantities][BOOTSTRAP_REPLICATES] */
} profile_work;

static const cell_scores *profile_cell(const profile_work *w, size_t group, size_t algorithm) {
  return &w->cell[group * w->from->n_algorithms + algorithm];
}

/* Collects the last scores of all runs, cell by cell. Returns their number. */
static size_t collect_scores(profile_work *w) {
  const results *r = w->from;
  size_t n = 0;
  for (size_t g = 0; g < r->n_groups; g++)
    for (size_t a = 0; a < r->n_algorithms; a++) {
      const results_cell *from = results_cell_at(r, g, a);
      cell_scores *to = &w->cell[g * r->n_algorithms + a];
      *to = (cell_scores){.first = n};
      for (size_t i = 0; i < from->n; i++) {
        const results_run *run = &r->runs[from->first + i];
        const double score = sets_score_ends(run, r->lower_is_better).last;
        if (run->status == RUN_FAILED) continue;
        if (isnan(score))
          to->without++;
        else
          w->score[n++] = score;
      }
      to->n = n - to->first;
    }
  return n;
}

/* --- quantities of one sample of scores --- */

static double probability_above(const double *x, size_t n, const double *y, size_t m) {
  double u = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < m; k++) u += x[i] > y[k] ? 1 : x[i] == y[k] ? 0.5 : 0;
  return u / ((double)n * (double)m);
}

static double improvement_of(const profile_work *w, const double *score, size_t a, size_t b) {
  double sum = 0, n = 0;
  for (size_t g = 0; g < w->from->n_groups; g++) {
    const cell_scores *x = profile_cell(w, g, a), *y = profile_cell(w, g, b);
    if (x->n == 0 || y->n == 0) continue;
    sum += probability_above(score + x->first, x->n, score + y->first, y->n);
    n += 1;
  }
  return n > 0 ? sum / n : NAN;
}

/* Writes an algorithm's optimality gap and profile to value[1 + PROFILE_POINTS]. */
static void profile_values(const profile_work *w, const profiles *p, const double *score, size_t a,
                           double *value) {
  double n = 0;
  for (size_t i = 0; i <= PROFILE_POINTS; i++) value[i] = 0;
  for (size_t g = 0; g < w->from->n_groups; g++) {
    const cell_scores *c = profile_cell(w, g, a);
    for (size_t i = c->first; i < c->first + c->n; i++, n++) {
      value[0] += fmin(score[i], p->goal);
      for (size_t k = 0; k < PROFILE_POINTS; k++) value[1 + k] += score[i] > p->at[k];
    }
  }
  for (size_t i = 0; i <= PROFILE_POINTS; i++) value[i] /= n; /* NaN without runs */
  value[0] = p->goal - value[0];
}

static void all_values(const profile_work *w, const profiles *p, const double *score,
                       double *value) {
  for (size_t a = 0; a < p->n; a++, value += 1 + PROFILE_POINTS)
    profile_values(w, p, score, a, value);
  for (size_t a = 0; a < p->n; a++)
    for (size_t b = 0; b < p->n; b++) *value++ = improvement_of(w, score, a, b);
}

/* --- bootstrap --- */

static void draw_scores(profile_work *w, uint64_t replicate, size_t n) {
  const rng_stream stream = rng_stream_at(1, RNG_BOOTSTRAP, UINT64_C(15) << 60);
  const size_t cells = w->from->n_groups * w->from->n_algorithms;
  for (size_t c = 0; c < cells; c++)
    for (size_t i = 0; i < w->cell[c].n; i++) {
      const size_t at = w->cell[c].first + i;
      const rng_words words = rng_block(stream, replicate * n + at);
      const double u = rng_u01_53(words.v[0], words.v[1]);
      w->drawn[at] = w->score[w->cell[c].first + (size_t)(u * (double)w->cell[c].n)];
    }
}

/* Whether draws of the algorithm's runs say how its numbers vary: it has BOOTSTRAP_FEWEST runs, and
 * no setting with a single one, which every draw repeats. */
static bool has_interval(const profile_work *w, size_t a) {
  size_t runs = 0;
  for (size_t g = 0; g < w->from->n_groups; g++) {
    const size_t n = profile_cell(w, g, a)->n;
    if (n == 1) return false;
    runs += n;
  }
  return runs >= BOOTSTRAP_FEWEST;
}

static interval interval_of(profile_work *w, size_t quantity, bool is_known) {
  double *drawn = w->replicate + quantity * BOOTSTRAP_REPLICATES;
  if (!is_known) return (interval){w->value[quantity], NAN, NAN};
  const size_t n = sample_sort(drawn, BOOTSTRAP_REPLICATES);
  return (interval){w->value[quantity], sample_quantile(drawn, n, 0.025),
                    sample_quantile(drawn, n, 0.975)};
}

static void count_profile_runs(const profile_work *w, profiles *p) {
  for (size_t a = 0; a < p->n; a++)
    for (size_t g = 0; g < w->from->n_groups; g++) {
      p->of[a].runs += profile_cell(w, g, a)->n;
      p->of[a].without_score += profile_cell(w, g, a)->without;
      p->of[a].settings += profile_cell(w, g, a)->n > 0;
    }
}

/* Computes all quantities and their intervals from a bootstrap that resamples the scores within
 * each cell. */
static void compute_profiles(profile_work *w, profiles *p, size_t n, double *sample) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++) low = fmin(low, w->score[i]), high = fmax(high, w->score[i]);
  for (size_t k = 0; k < PROFILE_POINTS; k++)
    p->at[k] = low + (high - low) * (double)k / (PROFILE_POINTS - 1);
  all_values(w, p, w->score, w->value);
  for (uint64_t r = 0; r < BOOTSTRAP_REPLICATES; r++) {
    draw_scores(w, r, n);
    all_values(w, p, w->drawn, sample);
    for (size_t q = 0; q < w->n_quantities; q++)
      w->replicate[q * BOOTSTRAP_REPLICATES + r] = sample[q];
  }
  size_t q = 0;
  for (size_t a = 0; a < p->n; a++) {
    const bool is_known = has_interval(w, a);
    p->of[a].gap = interval_of(w, q++, is_known);
    for (size_t k = 0; k < PROFILE_POINTS; k++) p->of[a].above[k] = interval_of(w, q++, is_known);
  }
  for (size_t i = 0; i < p->n * p->n; i++)
    p->improvement[i] = interval_of(w, q++, has_interval(w, i / p->n) && has_interval(w, i % p->n));
  count_profile_runs(w, p);
}

gl_status profiles_of(profiles *out, const results *r, double goal, gl_error *err) {
  arena work = {0};
  const size_t n = r->n_algorithms, quantities = n * (1 + PROFILE_POINTS) + n * n;
  *out = (profiles){.goal = goal, .algorithms = r->algorithms, .n = n};
  if (r->lower_is_better)
    return gl_fail(err, GL_EINPUT, "%s: profiles are of scores that are better when higher",
                   r->study);
  out->of = ARENA_ARRAY(&out->memory, profile_of, n);
  out->improvement = ARENA_GRID(&out->memory, interval, n, n);
  profile_work w = {.from = r,
                    .n_quantities = quantities,
                    .score = ARENA_ARRAY(&work, double, r->n_runs),
                    .drawn = ARENA_ARRAY(&work, double, r->n_runs),
                    .cell = ARENA_GRID(&work, cell_scores, r->n_groups, n),
                    .value = ARENA_ARRAY(&work, double, quantities),
                    .replicate = ARENA_GRID(&work, double, quantities, BOOTSTRAP_REPLICATES)};
  double *sample = ARENA_ARRAY(&work, double, quantities);
  gl_status status = arena_check(&work, "profiles", err);
  if (status == GL_OK) status = arena_check(&out->memory, "profiles", err);
  const size_t scores = status == GL_OK ? collect_scores(&w) : 0;
  if (status == GL_OK && scores == 0)
    status = gl_fail(err, GL_EINPUT, "%s: no run has a score", r->study);
  if (status == GL_OK) compute_profiles(&w, out, scores, sample);
  arena_fini(&work);
  return status;
}

void profiles_fini(profiles *p) {
  arena_fini(&p->memory);
  *p = (profiles){.n = 0};
}

/* --- tables --- */

static void report_profiles(table *to, const profiles *p, const char *name) {
  char head[PROFILE_POINTS][24];
  size_t without = 0;
  enum { BEFORE = 5 };
  table_column columns[BEFORE + PROFILE_POINTS] = {
      {"algorithm", TABLE_TEXT, .head = "algorithm"},
      {"runs", TABLE_INTEGER, .head = "runs"},
      TABLE_KEY("without_score", TABLE_INTEGER),
      {"settings", TABLE_INTEGER, .head = "settings"},
      {"optimality_gap", TABLE_INTERVAL, .head = "optimality gap", .format = "%.3f"}};
  char key[PROFILE_POINTS][24];
  for (size_t k = 0; k < PROFILE_POINTS; k++) {
    snprintf(head[k], sizeof head[k], "> %.3g", p->at[k]);
    snprintf(key[k], sizeof key[k], "above_%zu", k);
    columns[BEFORE + k] = (table_column){key[k], TABLE_INTERVAL, .format = "%.2f"};
    if (k > 0 && k + 1 < PROFILE_POINTS && k % 2 == 1) columns[BEFORE + k].head = head[k];
  }
  table *t = table_rows(table_field(to, "profiles"), columns, BEFORE + PROFILE_POINTS);
  for (size_t a = 0; a < p->n; a++) {
    table_row(t);
    table_text(t, p->algorithms[a]);
    table_count(t, p->of[a].runs), table_count(t, p->of[a].without_score);
    table_count(t, p->of[a].settings);
    without += p->of[a].without_score;
    interval_cell(t, p->of[a].gap);
    for (size_t k = 0; k < PROFILE_POINTS; k++) interval_cell(t, p->of[a].above[k]);
  }
  table_title(
      t,
      "%s: last scores over all settings. Optimality gap: %.3g less the mean of scores up to "
      "it; then the fraction of runs above a score [95 %%, bootstrap within settings]. Runs "
      "left out, not finite at their end: %zu",
      name, p->goal, without);
}

static const table_column improvement_columns[] = {
    {"of", TABLE_TEXT, .head = "algorithm"},
    {"over", TABLE_TEXT, .head = "over"},
    {"probability", TABLE_INTERVAL, .head = "better with probability", .format = "%.2f"}};

void profiles_report(table *to, const profiles *p, const char *name) {
  table_real(table_field(to, "best"), p->goal);
  table_numbers(table_field(to, "at"), p->at, PROFILE_POINTS);
  report_profiles(to, p, name);
  if (p->n < 2) return;
  table_line(to, "%s", "");
  table *t = table_rows(table_field(to, "improvement"), improvement_columns, 3);
  for (size_t a = 0; a < p->n; a++)
    for (size_t b = 0; b < p->n; b++) {
      if (a == b) continue;
      table_row(t);
      if (a > b) table_hide_row(t); /* redundant: P(b > a) = 1 - P(a > b) */
      table_text(t, p->algorithms[a]), table_text(t, p->algorithms[b]);
      interval_cell(t, p->improvement[a * p->n + b]);
    }
  table_title(t,
              "Probability of improvement: mean over settings of the fraction of pairs of runs in "
              "which the first has the higher last score, ties by half");
}
