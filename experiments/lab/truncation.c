/* Exact study of truncated sampling: measures each combination of distribution and kind of weights,
 * and how the expected step changes the mass of kept tokens. */
#include "experiments/lab/truncation.h"

#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/lab/table.h"
#include "toy/world/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one prompt under learner and sampler --- */
/* Tables over the edges and nodes of the response tree. */

typedef struct contexts {
  double *logp,
      *drawn;    /* logp: the learner's distribution; drawn: the truncated sampling distribution */
  double *slope; /* derivatives of logits along the expected step */
  double *reach; /* probability that the sampler visits a node */
  double *worth; /* expected reward from a node on, under the sampler */
  double *mass;  /* the learner's mass on the kept tokens */
  sampling_rank *rank;
} contexts;

static void contexts_fini(contexts *c) {
  free(c->logp);
  free(c->rank);
  *c = (contexts){0};
}

static void contexts_init(contexts *c, const toy_world *w) {
  const size_t e = w->tree.n_edges, n = w->tree.n_nodes;
  *c =
      (contexts){.logp = MUST_ARRAY(double, 3 * e + 3 * n, "the contexts of a prompt"),
                 .rank = MUST_ARRAY(sampling_rank, w->tree.vocabulary, "the contexts of a prompt")};
  c->drawn = c->logp + e;
  c->slope = c->drawn + e;
  c->reach = c->slope + e;
  c->worth = c->reach + n;
  c->mass = c->worth + n;
}

static double below(const toy_world *w, size_t x, size_t edge, const double *worth) {
  const int32_t next = w->tree.next[edge];
  return next < 0 ? w->reward[x * w->tree.n_responses + (size_t)~next] : worth[next];
}

/* Fills distributions, masses, and the expected reward below each node. Children have larger
 * indices than their parents. */
static void fill_contexts(contexts *c, const toy_world *w, size_t x, const double *theta_p,
                          const double *theta_q) {
  const response_tree *t = &w->tree;
  const size_t v = t->vocabulary;
  toy_log_probs(w, theta_q, x, c->logp);
  toy_truncate(w, &w->sampling, c->logp, t->n_nodes, c->drawn, c->rank);
  toy_log_probs(w, theta_p, x, c->logp);
  for (size_t n = t->n_nodes; n-- > 0;) {
    c->mass[n] = c->worth[n] = 0;
    for (size_t e = n * v; e < (n + 1) * v; ++e) {
      c->mass[n] += c->drawn[e] > -INFINITY ? exp(c->logp[e]) : 0;
      c->worth[n] += exp(c->drawn[e]) * below(w, x, e, c->worth);
    }
  }
  c->reach[0] = 1;
  for (size_t e = 0; e < t->n_edges; ++e)
    if (t->next[e] >= 0) c->reach[t->next[e]] = c->reach[e / v] * exp(c->drawn[e]);
}

/* --- drift --- */

typedef struct drift {
  double mass, met; /* weighted sum over contexts of the mass of kept tokens, and sum of weights */
  double good, good_met, bad, bad_met;
} drift;

/* Derivative of the learner's mass on the kept tokens of node n along the step. */
static double mass_slope(const contexts *c, const toy_world *w, size_t n) {
  const size_t v = w->tree.vocabulary;
  double mean = 0, inside = 0;
  for (size_t e = n * v; e < (n + 1) * v; ++e) {
    const double moved = exp(c->logp[e]) * c->slope[e] / w->sampling.temperature;
    mean += moved;
    inside += c->drawn[e] > -INFINITY ? moved : 0;
  }
  return inside - c->mass[n] * mean;
}

/* Adds the contexts of prompt x, each weighted with its visit probability; `good` and `bad` as in
 * truncation.h. */
static void add_drift(drift *d, const contexts *c, const toy_world *w, size_t x,
                      const double *step) {
  const double tiny = 1e-14;
  toy_features_logits(&w->features, step, x, c->slope);
  for (size_t n = 0; n < w->tree.n_nodes; ++n) {
    const double met = c->reach[n], gain = c->worth[n] - c->worth[0];
    if (met == 0 || 1 - c->mass[n] < tiny) continue;
    const double slope = mass_slope(c, w, n);
    d->mass += met * c->mass[n];
    d->met += met;
    if (gain > tiny) {
      d->good += met * slope;
      d->good_met += met;
    } else if (gain < -tiny) {
      d->bad += met * slope;
      d->bad_met += met;
    }
  }
}

/* Fills the columns that lab_result does not provide. */
static void fill_row(lab_truncated *row, const lab_recipe *r, const lab_result *m) {
  const toy_world *w = r->world;
  const lab_pair *pair = &r->pairs[0];
  contexts c;
  drift d = {0};
  contexts_init(&c, w);
  for (size_t x = 0; x < w->n_prompts; ++x) {
    fill_contexts(&c, w, x, pair->learner, pair->sampler);
    add_drift(&d, &c, w, x, m->expected);
  }
  double length = 0;
  for (size_t i = 0; i < m->n_parameters; ++i) length += m->expected[i] * m->expected[i];
  length = sqrt(length);
  row->kept_mass = d.met > 0 ? d.mass / d.met : 1;
  row->drift_good = d.good_met > 0 ? d.good / d.good_met / length : NAN;
  row->drift_bad = d.bad_met > 0 ? d.bad / d.bad_met / length : NAN;
  row->cosine_kept = m->kept_truth != NULL ? m->cosine_kept : m->numbers.cosine;
  contexts_fini(&c);
}

/* --- the study --- */

/* Copies the recipe with one distribution and one kind of weights instead of `truncation`. */
static gl_status recipe_of(cfg_doc **out, const cfg_doc *doc, const lab_truncated *row,
                           gl_error *err) {
  char text[3][96];
  snprintf(text[0], sizeof text[0], "sampling.top_p=%.17g", row->top_p);
  snprintf(text[1], sizeof text[1], "sampling.top_k=%zu", row->top_k);
  snprintf(text[2], sizeof text[2], "sampling.weights=%s", row->weights);
  gl_status status = cfg_copy(out, doc, err);
  if (status == GL_OK) cfg_remove(*out, "truncation");
  for (size_t i = 0; i < 3 && status == GL_OK; ++i) status = cfg_override(*out, text[i], err);
  return status;
}

static gl_status measure_dist(lab_truncated *rows, const lab_recipe *plan, const lab_recipe *r,
                              size_t threads, gl_error *err) {
  lab_table measured = {0};
  gl_status status = lab_table_init(&measured, r, threads, PROGRESS_SILENT, err);
  for (size_t a = 0; a < r->n_algorithms && status == GL_OK; ++a) {
    const lab_result *m = &measured.results[a];
    lab_truncated *row = &rows[a];
    const lab_truncated dist = rows[0];
    *row = (lab_truncated){.weights = dist.weights,
                           .top_p = dist.top_p,
                           .top_k = dist.top_k,
                           .algorithm = plan->algorithms[a].name,
                           .applicable = m->applicable,
                           .method = m->method,
                           .bias = m->numbers.bias,
                           .cosine = m->numbers.cosine,
                           .variance = m->numbers.variance};
    memcpy(row->why, m->why, sizeof row->why);
    if (m->applicable) fill_row(row, r, m);
  }
  lab_table_fini(&measured);
  return status;
}

static gl_status check_plan(const lab_recipe *r, const cfg_doc *doc, gl_error *err) {
  const cfg_node *place = cfg_find(cfg_root(doc), "truncation");
  if (place == NULL) return gl_fail(err, GL_EINTERNAL, "a study of truncation without its section");
  if (r->world == NULL || toy_world_is_counted(r->world))
    return cfg_fail(place, err,
                    "truncation is studied where responses are listed: in a bandit, a sequence, or "
                    "an automaton with `listed: true`");
  if (r->training.n_lr > 0)
    return cfg_fail(place, err, "a recipe has either `truncation` or `training`");
  if (r->n_pairs != 1 || r->n_sizes != 1)
    return cfg_fail(place, err,
                    "truncation is studied for one pair of policies and one group size; here are "
                    "%zu and %zu",
                    r->n_pairs, r->n_sizes);
  return GL_OK;
}

gl_status lab_truncation_init(lab_truncation *t, const cfg_doc *doc, size_t threads,
                              progress_mode shows, gl_error *err) {
  *t = (lab_truncation){0};
  gl_status status = lab_recipe_read(&t->recipe, doc, err);
  if (status == GL_OK) status = check_plan(&t->recipe, doc, err);
  if (status != GL_OK) return status;
  const lab_dists *dists = &t->recipe.dists;
  const size_t n = t->recipe.n_algorithms;
  t->n_dists = dists->n_top_p + dists->n_top_k;
  t->n = dists->n_weights * t->n_dists * n;
  t->rows = must_alloc(t->n, sizeof *t->rows, "a study of truncation");
  const size_t cells = dists->n_weights * t->n_dists;
  progress *bar = progress_new(t->recipe.name, "distributions", cells, shows);
  for (size_t k = 0; k < cells && status == GL_OK; ++k) {
    progress_at(bar, k, NULL);
    const size_t dist = k % t->n_dists;
    cfg_doc *own = NULL;
    lab_recipe r = {0};
    lab_truncated *rows = t->rows + k * n;
    rows[0].weights = dists->weights[k / t->n_dists];
    rows[0].top_p = dist < dists->n_top_p ? dists->top_p[dist] : 1;
    rows[0].top_k = dist < dists->n_top_p ? 0 : (size_t)dists->top_k[dist - dists->n_top_p];
    status = recipe_of(&own, doc, rows, err);
    if (status == GL_OK) status = lab_recipe_read(&r, own, err);
    if (status == GL_OK) status = measure_dist(rows, &t->recipe, &r, threads, err);
    lab_recipe_fini(&r);
    cfg_free(own);
  }
  progress_free(bar);
  return status;
}

void lab_truncation_fini(lab_truncation *t) {
  lab_recipe_fini(&t->recipe);
  free(t->rows);
  *t = (lab_truncation){0};
}

/* --- output --- */

static void dist_text(const lab_truncated *row, char text[48]) {
  if (row->top_k != 0)
    snprintf(text, 48, "top_k=%zu", row->top_k);
  else if (row->top_p < 1)
    snprintf(text, 48, "top_p=%g", row->top_p);
  else
    snprintf(text, 48, "all");
}

gl_status lab_truncation_print(const lab_truncation *t, bool is_json, gl_error *err) {
#define NUMBER(NAME, HEAD)                                                                         \
  { .name = NAME, .type = TABLE_REAL, .head = HEAD, .width = 11, .format = "%.4g" }
  const table_column columns[] = {
      {.name = "algorithm",
       .type = TABLE_TEXT,
       .head = "algorithm",
       .width = -lab_recipe_name_width(&t->recipe)},
      {.name = "weights", .type = TABLE_TEXT, .head = "weights", .width = -10},
      {.name = "distribution", .type = TABLE_TEXT, .head = "distribution", .width = -12},
      TABLE_KEY("method", TABLE_TEXT),
      TABLE_KEY("reason", TABLE_TEXT),
      NUMBER("bias", "bias"),
      NUMBER("cosine", "cosine"),
      NUMBER("cosine_kept", "cosine kept"),
      TABLE_KEY("variance", TABLE_REAL),
      NUMBER("kept_mass", "kept mass"),
      NUMBER("drift_good", "drift good"),
      NUMBER("drift_bad", "drift bad")};
#undef NUMBER
  table *to = table_new(columns, sizeof columns / sizeof *columns);
  table_plain(to, 0);
  for (size_t i = 0; i < t->n; ++i) {
    const lab_truncated *row = &t->rows[i];
    const double numbers[] = {row->bias,      row->cosine,     row->cosine_kept, row->variance,
                              row->kept_mass, row->drift_good, row->drift_bad};
    char dist[48];
    dist_text(row, dist);
    table_row(to);
    table_text(to, row->algorithm);
    table_text(to, row->weights);
    table_text(to, dist);
    if (!row->applicable) table_rest(to, "not applicable: %s", row->why);
    table_text(to, row->applicable ? lab_method_names[row->method] : "not_applicable");
    table_text(to, row->applicable ? NULL : row->why);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; ++k)
      table_real(to, row->applicable ? numbers[k] : NAN);
  }
  return report_table(to, TABLE_AS_TEXT, is_json, err);
}
