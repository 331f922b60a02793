/* Compares the algorithms of each setting with its leader, seed by seed. */
#include "analysis/verdict.h"

#include "analysis/evaluation_sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MARGIN = 0.01; /* fraction of the leader's score */

/* --- finding --- */

/* The cell's run with that seed; NULL without one. */
static const results_run *run_of_seed(const summary *s, const cell_summary *c, uint64_t seed) {
  for (size_t i = 0; i < c->cell->n; i++) {
    const results_run *run = &s->from->runs[c->cell->first + i];
    if (run->seed == seed && run->status != RUN_FAILED) return run;
  }
  return NULL;
}

/* Compares an algorithm with the leader by the last scores of runs with the same seed. */
static gl_status verdict_compare(const verdicts *v, const cell_summary *leader,
                                 const cell_summary *other, verdict_pair *out, gl_error *err) {
  const summary *s = v->from;
  const double sign = s->from->lower_is_better ? -1 : 1;
  arena work = {0};
  double *difference = ARENA_ARRAY(&work, double, leader->cell->n), better = 0;
  gl_status status = arena_check(&work, "the pairs", err);
  *out = (verdict_pair){.algorithm = other->cell->algorithm, .improvement = NAN};
  for (size_t i = 0; i < leader->cell->n && status == GL_OK; i++) {
    const uint64_t seed = s->from->runs[leader->cell->first + i].seed;
    const results_run *a = run_of_seed(s, leader, seed), *b = run_of_seed(s, other, seed);
    if (a == NULL || b == NULL) continue;
    const double d = sign * (sets_score_ends(a, s->from->lower_is_better).last -
                             sets_score_ends(b, s->from->lower_is_better).last);
    if (isnan(d)) {
      out->without_value++;
      continue;
    }
    better += d > 0 ? 1 : d == 0 ? 0.5 : 0;
    difference[out->pairs++] = d;
  }
  const uint64_t entity = UINT64_C(13) << 60 | (uint64_t)(other->cell - s->from->cells);
  if (status == GL_OK)
    status =
        iqm_bootstrap(difference, &out->pairs, 1,
                      rng_stream_at(BOOTSTRAP_SEED, RNG_BOOTSTRAP, entity), &out->difference, err);
  if (out->pairs > 0) out->improvement = better / (double)out->pairs;
  out->is_distinguishable =
      out->pairs >= BOOTSTRAP_FEWEST && out->difference.low > MARGIN * fabs(leader->last.value);
  arena_fini(&work);
  return status;
}

/* Ranks the algorithms of a setting by their last scores and compares each with the first. */
static gl_status verdict_find(verdicts *v, size_t group, gl_error *err) {
  const summary *s = v->from;
  const results *r = s->from;
  verdict *to = &v->of[group];
  const cell_summary **ranked = ARENA_ARRAY(&v->memory, const cell_summary *, r->n_algorithms);
  to->pair = ARENA_ARRAY(&v->memory, verdict_pair, r->n_algorithms);
  gl_status status = arena_check(&v->memory, "the verdict", err);
  size_t n = 0;
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; a++) {
    const cell_summary *c = cell_of(s, group, a);
    if (c == NULL || isnan(c->last.value)) continue;
    size_t at = n++;
    for (; at > 0 && (r->lower_is_better ? ranked[at - 1]->last.value > c->last.value
                                         : ranked[at - 1]->last.value < c->last.value);
         at--)
      ranked[at] = ranked[at - 1];
    ranked[at] = c;
  }
  if (n > 0) to->leader = ranked[0];
  for (size_t i = 1; i < n && status == GL_OK; i++)
    status = verdict_compare(v, to->leader, ranked[i], &to->pair[to->n_pairs++], err);
  return status;
}

gl_status verdicts_init(verdicts *v, const summary *from, gl_error *err) {
  *v = (verdicts){.from = from};
  v->of = ARENA_ARRAY(&v->memory, verdict, from->from->n_groups);
  gl_status status = arena_check(&v->memory, "the verdict", err);
  for (size_t g = 0; g < from->from->n_groups && status == GL_OK; g++)
    status = verdict_find(v, g, err);
  return status;
}

void verdicts_fini(verdicts *v) {
  arena_fini(&v->memory);
  *v = (verdicts){0};
}

static const verdict_pair *pair_of(const verdict *v, size_t algorithm) {
  for (size_t i = 0; i < v->n_pairs; i++)
    if (v->pair[i].algorithm == algorithm) return &v->pair[i];
  return NULL;
}

bool verdict_reaches(const verdicts *v, const cell_summary *c) {
  const verdict *of = &v->of[c->cell->group];
  const verdict_pair *pair = pair_of(of, c->cell->algorithm);
  return c == of->leader || (pair != NULL && !pair->is_distinguishable);
}

/* --- the tables --- */

static const table_column verdict_columns[] = {
    {"setting", TABLE_TEXT, .head = "setting"}, /* replaced by the axes that vary */
    {"leader", TABLE_TEXT, .head = "leader"},
    {"algorithm", TABLE_TEXT, .head = "next"},
    {"pairs", TABLE_INTEGER, .head = "pairs"},
    TABLE_KEY("without_value", TABLE_INTEGER),
    {"difference", TABLE_INTERVAL, .head = "difference", .format = TABLE_SCORE, .value = "iqm"},
    {"probability_of_improvement", TABLE_REAL, .head = "P(better)", .format = "%.2f"},
    TABLE_KEY("distinguishable", TABLE_JSON),
    {.type = TABLE_TEXT, .head = "distinguishable"}};

/* Heading of the labels: the axis with its unit, but not a list of several. */
static const char *verdict_setting_head(const results *r) {
  return r->axes.n == 1 ? r->axis_label : "setting";
}

static void verdict_put_pair(table *t, const verdicts *v, size_t group, size_t place) {
  const results *r = v->from->from;
  const verdict *of = &v->of[group];
  const verdict_pair *p = &of->pair[place];
  table_row(t);
  if (place > 0) table_hide_row(t);
  table_text(t, *r->groups[group].label ? r->groups[group].label : "");
  if (!*r->groups[group].label) table_shown(t, "–");
  table_text(t, r->algorithms[of->leader->cell->algorithm]);
  table_text(t, r->algorithms[p->algorithm]);
  table_count(t, p->pairs);
  if (p->without_value > 0) table_shown(t, "%zu (%zu no value)", p->pairs, p->without_value);
  table_count(t, p->without_value);
  interval_cell(t, p->difference);
  table_real(t, p->improvement);
  table_json(t, cJSON_CreateBool(p->is_distinguishable));
  if (p->pairs < BOOTSTRAP_FEWEST)
    table_textf(t, "too few seeds");
  else
    table_text(t, p->is_distinguishable ? "yes" : "no");
}

/* Writes a last score, marked if the algorithm leads or is not distinguishable from the leader. */
static void verdict_put_score(table *t, const verdicts *v, size_t group, size_t algorithm) {
  const cell_summary *c = cell_of(v->from, group, algorithm);
  if (c == NULL) {
    table_missing(t);
    return;
  }
  table_real(t, c->last.value);
  if (isnan(c->last.value)) {
    table_shown(t, c->not_finite > 0 ? "not finite" : "–");
    return;
  }
  const bool leads = c == v->of[group].leader;
  table_shown(t, "%.3g%s", c->last.value, leads ? " *" : verdict_reaches(v, c) ? " ~" : "");
  if (leads) table_bold(t);
}

/* Writes a matrix of last scores: a row for each algorithm and a column for each setting, or
 * transposed if there are more settings than algorithms. */
static void put_matrix(table *to, const verdicts *v) {
  const results *r = v->from->from;
  const bool across = r->n_groups <= r->n_algorithms;
  const size_t columns = across ? r->n_groups : r->n_algorithms,
               rows = across ? r->n_algorithms : r->n_groups;
  table_column *head = calloc(columns + 1, sizeof *head);
  if (head == NULL) return;
  head[0] =
      (table_column){.type = TABLE_TEXT, .head = across ? "algorithm" : verdict_setting_head(r)};
  for (size_t i = 0; i < columns; i++)
    head[i + 1] = (table_column){
        .type = TABLE_REAL,
        .head = across ? (*r->groups[i].label ? r->groups[i].label : "last") : r->algorithms[i]};
  table *t = table_rows(table_field(to, NULL), head, columns + 1);
  free(head);
  table_title(t, "Last scores (interquartile means); *: leads, ~: not distinguishable from it.");
  table_gap(t);
  for (size_t i = 0; i < rows; i++) {
    table_row(t);
    table_text(t, across ? r->algorithms[i] : r->groups[i].label);
    for (size_t k = 0; k < columns; k++)
      across ? verdict_put_score(t, v, k, i) : verdict_put_score(t, v, i, k);
  }
}

void verdicts_report(table *to, const verdicts *v) {
  const results *r = v->from->from;
  if (r->n_algorithms < 2) return;
  table_column columns[sizeof verdict_columns / sizeof *verdict_columns];
  memcpy(columns, verdict_columns, sizeof columns);
  columns[0].head = verdict_setting_head(r);
  table *t = table_rows(table_field(to, "verdict"), columns, sizeof columns / sizeof *columns);
  table_title(t,
              "%s: who leads at each setting by its last score, and the next. Difference: "
              "interquartile mean over pairs of one seed [" INTERVAL_WORDS "]; P(better): "
              "probability of improvement. Distinguishable: the interval is beyond %g %% of the "
              "leader's score. Chosen and compared on the same runs; --table contrasts tests "
              "comparisons that were declared.",
              r->study, 100 * MARGIN);
  table_gap(t);
  for (size_t g = 0; g < r->n_groups; g++)
    for (size_t i = 0; i < v->of[g].n_pairs; i++) verdict_put_pair(t, v, g, i);
  put_matrix(to, v);
}
