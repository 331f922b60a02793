/* Runs the measurements of a laboratory recipe and writes them as JSON, text, TSV or records of a
 * study. */
#include "experiments/lab/table.h"

#include "core/base/arena.h"
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/base/thread_pool.h"
#include "core/random/rng.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "experiments/base/provenance.h"
#include "experiments/lab/recipe.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"
#include "toy/lab/multiset.h"
#include "toy/world/measure.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- counted worlds: more responses than can be listed --- */
/* Worlds whose responses are too many to list (counted worlds): groups are sampled. J, its
 * gradient, both KL divergences and the exact denominator come from dynamic programming. The
 * moments of every algorithm's estimate come from `samples` groups per prompt, with jackknife
 * errors. There is no population limit (applicable 0). */

enum { PARTS = 32 }; /* parts of the sampled groups; their spread gives the standard errors */

/* The distributions of one prompt, tables over edges. */
typedef struct dists {
  double *logp, *logq, *drawn; /* drawn: the truncated sampling distribution */
  double log_collision;        /* log E_q q of the distribution q used in the weights */
} dists;

typedef struct work {
  const lab_recipe *recipe;
  const toy_world *world;
  size_t group_size, n_prompts;
  uint64_t entity;
  dists *prompt;        /* [n_prompts] distributions of each prompt */
  lab_summary *summary; /* [(algorithm * n_prompts + x) * PARTS + part] moments */
  gl_error *refusal;    /* same shape as summary: why the algorithm cannot be computed there */
} work;

static size_t cell(const work *w, size_t algorithm, size_t x, size_t part) {
  return (algorithm * w->n_prompts + x) * PARTS + part;
}

/* --- one group --- */

/* The responses are paths in the response tree. */
typedef struct group {
  lab_group of;
  int32_t *token; /* [size * horizon] */
  size_t *edge;   /* [size * horizon] edge of the response tree of each token */
  double *flow;   /* [n_edges] sum of coefficients of the tokens at an edge */
  double *dz;     /* [vocabulary] scratch: derivatives with respect to logits */
  arena memory;
} group;

static void group_fini(group *g) {
  lab_group_fini(&g->of);
  arena_fini(&g->memory);
}

static gl_status group_init(group *g, const work *w, gl_error *err) {
  const response_tree *tree = &w->world->tree;
  *g = (group){.token = NULL};
  g->token = ARENA_GRID(&g->memory, int32_t, w->group_size, tree->horizon);
  g->edge = ARENA_GRID(&g->memory, size_t, w->group_size, tree->horizon);
  g->flow = ARENA_ARRAY(&g->memory, double, tree->n_edges);
  g->dz = ARENA_ARRAY(&g->memory, double, tree->vocabulary);
  gl_status status = arena_check(&g->memory, "a group of responses", err);
  if (status != GL_OK) return status;
  return lab_group_init(&g->of, w->group_size, tree->horizon, w->world->features.n_parameters, err);
}

/* Inverse-CDF sampling: the token whose interval of [0, 1) contains u, or the last with positive
 * probability. */
static size_t invert_matrix(const double *dist, size_t n, double u) {
  size_t last = 0;
  double below = 0;
  for (size_t a = 0; a < n; ++a) {
    const double p = exp(dist[a]);
    if (p > 0) last = a;
    below += p;
    if (u < below) return a;
  }
  return last;
}

/* Samples group number `number` for prompt x; its responses are stored one after the other. */
static void draw(group *g, const work *w, size_t x, uint64_t number) {
  const toy_world *world = w->world;
  const dists *l = &w->prompt[x];
  const size_t v = world->tree.vocabulary;
  const double *seen = w->recipe->weights == LAB_WEIGHTS_TRUNCATED ? l->drawn : l->logq;
  const rng_stream stream =
      rng_stream_at(w->recipe->seed, RNG_MONTECARLO, w->entity << 20 | (uint64_t)x);
  size_t k = 0;
  for (size_t i = 0; i < w->group_size; ++i) {
    int32_t at = 0;
    g->of.token_start[i] = k;
    for (size_t t = 0; at >= 0; ++t, ++k) {
      const uint64_t index = (number * w->group_size + i) * AUTOMATON_MAX_HORIZON + t;
      const rng_words words = rng_block(stream, index);
      const size_t first = (size_t)at * v;
      g->edge[k] = first + invert_matrix(l->drawn + first, v, rng_u01_53(words.v[0], words.v[1]));
      g->token[k] = (int32_t)(g->edge[k] % v);
      g->of.logp[k] = l->logp[g->edge[k]];
      g->of.logq[k] = seen[g->edge[k]];
      at = toy_next(world, g->edge[k], t);
    }
    (void)toy_finish(world, x, g->token + g->of.token_start[i], &g->of.reward[i]);
  }
  g->of.token_start[w->group_size] = k;
}

/* Computes the algorithm's coefficients on the group, and from them its estimate of the
 * gradient. */
static gl_status evaluate_algorithm(group *g, const work *w, size_t x,
                                    const policy_algorithm *algorithm, gl_error *err) {
  const response_tree *tree = &w->world->tree;
  lab_group *of = &g->of;
  gl_status status =
      lab_group_coefficients(of, algorithm, w->prompt[x].log_collision, tree->horizon, err);
  if (status != GL_OK) return status;
  memset(g->flow, 0, tree->n_edges * sizeof *g->flow);
  memset(of->gradient, 0, w->world->features.n_parameters * sizeof *of->gradient);
  for (size_t k = 0; k < of->token_start[of->size]; ++k) g->flow[g->edge[k]] += of->coefficient[k];
  toy_add_flow(w->world, x, g->flow, w->prompt[x].logp, g->dz, of->gradient);
  return GL_OK;
}

/* --- all groups --- */

/* Samples one part of the groups of one prompt and sums the moments of every algorithm's
 * estimate. */
static gl_status run_part(void *context, size_t task, gl_error *err) {
  work *w = context;
  const lab_recipe *r = w->recipe;
  const size_t x = task / PARTS, part = task % PARTS, n = r->n_algorithms;
  lab_sums *sums = MUST_ARRAY(lab_sums, n, "a measurement");
  group g;
  gl_status status = group_init(&g, w, err);
  for (size_t a = 0; a < n && status == GL_OK; ++a)
    status = lab_sums_init(&sums[a], r->view.n_parameters, 0, err);
  const uint64_t first = r->samples * part / PARTS, end = r->samples * (part + 1) / PARTS;
  for (uint64_t k = first; k < end && status == GL_OK; ++k) {
    draw(&g, w, x, k);
    for (size_t a = 0; a < n && status == GL_OK; ++a) {
      gl_error *refusal = &w->refusal[cell(w, a, x, part)];
      if (refusal->status != GL_OK) continue;
      if (evaluate_algorithm(&g, w, x, &r->algorithms[a], refusal) == GL_OK)
        lab_sums_add(&sums[a], &g.of, 1, refusal);
      if (refusal->status == GL_ENOMEM) status = gl_fail(err, GL_ENOMEM, "%s", refusal->text);
    }
  }
  for (size_t a = 0; a < n && status == GL_OK; ++a) {
    const size_t at = cell(w, a, x, part);
    if (w->refusal[at].status != GL_OK) continue;
    status = lab_summary_init(&w->summary[at], r->view.n_parameters, 0, err);
    if (status == GL_OK) lab_summary_from_sums(&w->summary[at], &sums[a]);
  }
  for (size_t a = 0; a < n; ++a) lab_sums_fini(&sums[a]);
  free(sums);
  group_fini(&g);
  return status;
}

static gl_status prepare_prompt(work *w, size_t x, const lab_pair *pair, gl_error *err) {
  const toy_world *world = w->world;
  const size_t edges = world->tree.n_edges;
  dists *l = &w->prompt[x];
  sampling_rank *rank = MUST_ARRAY(sampling_rank, world->tree.vocabulary, "a prompt");
  double *record = MUST_ARRAY(double, edges + 1, "a prompt");
  l->logp = MUST_ARRAY(double, 3 * edges, "a prompt");
  l->logq = l->logp + edges;
  l->drawn = l->logq + edges;
  toy_log_probs(world, pair->learner, x, l->logp);
  toy_log_probs(world, pair->sampler, x, l->logq);
  toy_truncate(world, &world->sampling, l->logq, world->tree.n_nodes, l->drawn, rank);
  memcpy(record + 1, l->logq, edges * sizeof *record);
  gl_status status =
      toy_behaviour_collision(world, (toy_behaviour){record, 1},
                              w->recipe->weights == LAB_WEIGHTS_TRUNCATED, &l->log_collision, err);
  free(rank);
  free(record);
  return status;
}

/* Allocates the results, computes the distributions of every prompt, and records why algorithms
 * cannot be measured here. */
static gl_status prepare(work *w, const lab_pair *pair, gl_error *err) {
  const size_t cells = w->recipe->n_algorithms * w->n_prompts * PARTS;
  w->prompt = MUST_ARRAY(dists, w->n_prompts, "a measurement");
  w->summary = MUST_ARRAY(lab_summary, cells, "a measurement");
  w->refusal = MUST_ARRAY(gl_error, cells, "a measurement");
  gl_status status = GL_OK;
  for (size_t x = 0; x < w->n_prompts && status == GL_OK; ++x)
    status = prepare_prompt(w, x, pair, err);
  for (size_t a = 0; a < w->recipe->n_algorithms; ++a) {
    const char *why = w->group_size == 0 ? "sums over responses have no population limit here"
                                         : lab_cannot_measure(&w->recipe->algorithms[a]);
    for (size_t k = cell(w, a, 0, 0); why != NULL && k < cell(w, a + 1, 0, 0); ++k)
      (void)gl_fail(&w->refusal[k], GL_EINPUT, "%s", why);
  }
  return status;
}

static void release(work *w) {
  const size_t cells = w->recipe->n_algorithms * w->n_prompts * PARTS;
  for (size_t x = 0; x < w->n_prompts; ++x) free(w->prompt[x].logp);
  for (size_t k = 0; k < cells; ++k) lab_summary_fini(&w->summary[k]);
  free(w->prompt);
  free(w->summary);
  free(w->refusal);
}

/* --- results --- */

static gl_status describe_measurement(lab_result *out, const work *w, const lab_pair *pair,
                                      gl_error *err) {
  const enumerable *e = &w->recipe->view;
  *out = (lab_result){
      .applicable = 1,
      .method = w->group_size == 0 ? LAB_POPULATION : LAB_MONTE_CARLO,
      .n_parameters = e->n_parameters,
      .groups = w->group_size == 0 ? 0 : (double)w->recipe->samples * (double)w->n_prompts,
      .expected = MUST_ARRAY(double, e->n_parameters, "a result"),
      .truth = MUST_ARRAY(double, e->n_parameters, "a result"),
      .expected_error = MUST_ARRAY(double, e->n_parameters, "a result")};
  gl_status status = lab_divergence(e, pair->learner, pair->sampler, &out->kl, &out->kl_qp, err);
  return status == GL_OK ? lab_value(e, pair->learner, &out->value, out->truth, err) : status;
}

/* Computes an algorithm's result: the mean over prompts within each part of the samples, then the
 * mean over parts. The spread of the parts gives the standard errors. */
static gl_status conclude(lab_result *out, const work *w, size_t algorithm, gl_error *err) {
  const size_t n = out->n_parameters;
  const lab_summary *parts[PARTS], **at = MUST_ARRAY(const lab_summary *, w->n_prompts, "a result");
  double even[PARTS], *weights = MUST_ARRAY(double, w->n_prompts, "a result");
  lab_summary part[PARTS] = {{0}}, whole = {0};
  gl_status status = GL_OK;
  for (size_t k = 0; k < PARTS && status == GL_OK && out->applicable; ++k) {
    for (size_t x = 0; x < w->n_prompts; ++x) {
      const gl_error *refusal = &w->refusal[cell(w, algorithm, x, k)];
      if (refusal->status != GL_OK && out->applicable) {
        out->applicable = 0;
        snprintf(out->why, sizeof out->why, "%.190s", refusal->text);
      }
      at[x] = &w->summary[cell(w, algorithm, x, k)];
      weights[x] = 1 / (double)w->n_prompts;
    }
    if (!out->applicable) break;
    parts[k] = &part[k];
    even[k] = 1.0 / PARTS;
    status = lab_summary_init(&part[k], n, 0, err);
    if (status == GL_OK) lab_summary_join(&part[k], at, weights, w->n_prompts, SIZE_MAX);
  }
  if (status == GL_OK && out->applicable) status = lab_summary_init(&whole, n, 0, err);
  if (status == GL_OK && out->applicable) {
    lab_summary_join(&whole, parts, even, PARTS, SIZE_MAX);
    memcpy(out->expected, whole.mean, n * sizeof *out->expected);
    lab_summary_numbers(&whole, out->truth, 1e-13, &out->numbers);
    status = lab_result_errors(out, parts, PARTS, 1e-13, err);
  }
  for (size_t k = 0; k < PARTS; ++k) lab_summary_fini(&part[k]);
  lab_summary_fini(&whole);
  free(at);
  free(weights);
  return status;
}

static gl_status lab_counted_measure(lab_result *out, const lab_recipe *recipe, size_t pair,
                                     size_t group_size, uint64_t entity, size_t threads,
                                     gl_error *err) {
  work w = {.recipe = recipe,
            .world = recipe->world,
            .group_size = group_size,
            .n_prompts = recipe->view.n_prompts,
            .entity = entity};
  if (recipe->samples < PARTS && group_size != 0)
    return gl_fail(
        err, GL_EINPUT,
        "responses of this world are not listed, so groups are sampled: `samples` must be "
        "%d or more, or the world `listed: true`",
        PARTS);
  for (size_t a = 0; a < recipe->n_algorithms; ++a) out[a] = (lab_result){0};
  gl_status status = prepare(&w, &recipe->pairs[pair], err);
  if (status == GL_OK && group_size != 0)
    status = pool_try(w.n_prompts * PARTS, threads, run_part, &w, err);
  for (size_t a = 0; a < recipe->n_algorithms && status == GL_OK; ++a) {
    status = describe_measurement(&out[a], &w, &recipe->pairs[pair], err);
    if (status == GL_OK) status = conclude(&out[a], &w, a, err);
  }
  for (size_t a = 0; status != GL_OK && a < recipe->n_algorithms; ++a) lab_result_fini(&out[a]);
  release(&w);
  return status;
}

/* --- all measurements --- */

typedef struct job {
  lab_table *table;
  const policy_algorithm **algorithms;
  size_t inner_threads;
  lab_counter counter;
} job;

static int is_counted(const lab_recipe *r) {
  return r->world != NULL && toy_world_is_counted(r->world);
}

/* Estimates the duration of a cell by the number of responses in all groups that it evaluates, as
 * far as this is known in advance. */
static double cost_of(const lab_recipe *r, size_t cell) {
  const size_t size = r->group_size[cell % r->n_sizes];
  if (is_counted(r) || size == 0) return 1;
  const size_t all = lab_multiset_count(r->view.ops->n_responses(r->view.self, 0), size);
  return (double)(all <= r->budget ? all : r->samples) * (double)size;
}

static gl_status measure_cell(const job *j, size_t i, gl_error *err) {
  const lab_recipe *r = j->table->recipe;
  const lab_pair *pair = &r->pairs[i / r->n_sizes];
  if (is_counted(r))
    return lab_counted_measure(j->table->results + i * r->n_algorithms, r, i / r->n_sizes,
                               r->group_size[i % r->n_sizes], i, j->inner_threads, err);
  const lab_spec spec = {.world = &r->view,
                         .theta_learner = pair->learner,
                         .theta_sampler = pair->sampler,
                         .weights = r->weights,
                         .group_size = r->group_size[i % r->n_sizes],
                         .budget = r->budget,
                         .samples = r->samples,
                         .seed = r->seed,
                         .entity = i,
                         .threads = j->inner_threads,
                         .covariance = r->covariance};
  return lab_measure(j->table->results + i * r->n_algorithms, j->algorithms, r->n_algorithms, &spec,
                     err);
}

static gl_status run_cell(void *context, size_t i, gl_error *err) {
  job *j = context;
  const gl_status status = measure_cell(j, i, err);
  lab_counter_add(&j->counter, cost_of(j->table->recipe, i));
  return status;
}

gl_status lab_table_init(lab_table *t, const lab_recipe *recipe, size_t threads,
                         progress_mode shows, gl_error *err) {
  const size_t cells = recipe->n_pairs * recipe->n_sizes;
  *t = (lab_table){.recipe = recipe, .n = cells * recipe->n_algorithms};
  t->results = MUST_ARRAY(lab_result, t->n, "the measurements");
  job j = {.table = t, .inner_threads = cells >= threads ? 1 : threads};
  j.algorithms = MUST_ARRAY(const policy_algorithm *, recipe->n_algorithms, "the measurements");
  for (size_t r = 0; r < recipe->n_algorithms; ++r) j.algorithms[r] = &recipe->algorithms[r];
  double cost = 0;
  for (size_t i = 0; i < cells; ++i) cost += cost_of(recipe, i);
  const size_t side_by_side = cells >= threads ? threads : 1;
  lab_counter_init(&j.counter, recipe->name, "measurements", cells, cost, side_by_side, shows);
  gl_status status = pool_try(cells, side_by_side, run_cell, &j, err);
  lab_counter_fini(&j.counter);
  free(j.algorithms);
  return status;
}

void lab_table_fini(lab_table *t) {
  for (size_t i = 0; t->results != NULL && i < t->n; ++i) lab_result_fini(&t->results[i]);
  free(t->results);
  *t = (lab_table){0};
}

/* Position in the output: algorithm slowest, then group size, then pair. */
typedef struct place {
  size_t algorithm, size, pair;
} place;

static const lab_result *at(const lab_table *t, place p) {
  const lab_recipe *r = t->recipe;
  return &t->results[(p.pair * r->n_sizes + p.size) * r->n_algorithms + p.algorithm];
}

static int next_place(const lab_table *t, place *p) {
  if (++p->pair < t->recipe->n_pairs) return 1;
  p->pair = 0;
  if (++p->size < t->recipe->n_sizes) return 1;
  p->size = 0;
  return ++p->algorithm < t->recipe->n_algorithms;
}

static const char *method_of(const lab_result *m) {
  return m->applicable ? lab_method_names[m->method] : "not_applicable";
}

/* --- the table --- */

enum { PEOPLE_NUMBERS = 5 }; /* the text table shows the first five of lab_number_names */

static table_column lab_column(const char *name, table_type type, int width, const char *format) {
  return (table_column){.name = name, .type = type, .width = width, .format = format};
}

/* Whether any result is a Monte Carlo estimate. Its numbers are then printed with their standard
 * errors. */
static bool has_sampled(const lab_table *t) {
  place p = {0, 0, 0};
  do
    if (at(t, p)->applicable && at(t, p)->method == LAB_MONTE_CARLO) return true;
  while (next_place(t, &p));
  return false;
}

static int head_width(const char *head, int width) {
  return (int)strlen(head) > width ? (int)strlen(head) : width;
}

static int method_width(const lab_table *t) {
  int wide = sizeof "method" - 1;
  place p = {0, 0, 0};
  do
    if (at(t, p)->applicable) wide = head_width(method_of(at(t, p)), wide);
  while (next_place(t, &p));
  return wide;
}

/* The method that all results have in common, so that no column for it is needed; NULL: the methods
 * differ. */
static const char *only_method(const lab_table *t) {
  place p = {0, 0, 0};
  const char *only = method_of(at(t, p));
  bool is_one = true;
  do is_one = is_one && at(t, p)->applicable && strcmp(method_of(at(t, p)), only) == 0;
  while (next_place(t, &p));
  return is_one ? only : NULL;
}

/* Adds the columns of the text table: at most 80 characters wide, unless names are longer than 15
 * characters or numbers have standard errors. */
static void add_columns(table *to, const lab_table *t) {
  const int wide = lab_recipe_name_width(t->recipe), numbers = has_sampled(t) ? 16 : 9;
  table_add_column(to, lab_column("algorithm", TABLE_TEXT, -wide, NULL), "algorithm");
  table_add_column(to, lab_column("group_size", TABLE_REAL, 3, "%.0f"), "G");
  table_add_column(to, lab_column("kl_exact", TABLE_REAL, 8, "%.4g"), "KL(p||q)");
  table_add_column(to, lab_column("kl_exact_qp", TABLE_REAL, 0, NULL), NULL);
  table_add_column(to, lab_column("method", TABLE_TEXT, -method_width(t), NULL),
                   only_method(t) == NULL ? "method" : NULL);
  table_add_column(to, lab_column("groups", TABLE_REAL, 0, NULL), NULL);
  table_add_column(to, lab_column("return", TABLE_REAL, 0, NULL), NULL);
  table_add_column(to, lab_column("staleness", TABLE_REAL, 0, NULL), NULL);
  table_add_column(to, lab_column("reason", TABLE_TEXT, 0, NULL), NULL);
  for (size_t i = 0; i < LAB_NUMBERS; ++i)
    table_add_column(to,
                     lab_column(lab_number_names[i], TABLE_REAL,
                                head_width(lab_number_names[i], numbers), "%.4g"),
                     i < PEOPLE_NUMBERS ? "%s" : NULL, lab_number_names[i]);
  table_add_column(to, lab_column("expected_gradient", TABLE_NUMBERS, 0, NULL), NULL);
  table_add_column(to, lab_column("true_gradient", TABLE_NUMBERS, 0, NULL), NULL);
  table_add_column(
      to, lab_column("cosine_kept", TABLE_REAL, head_width("cosine_kept", numbers), "%.4g"),
      t->results[0].kept_truth != NULL ? "cosine_kept" : NULL);
  table_add_column(to, lab_column("kept_gradient", TABLE_NUMBERS, 0, NULL), NULL);
  table_add_column(to, lab_column("covariance", TABLE_NUMBERS, 0, NULL), NULL);
  for (size_t i = 0; i < LAB_NUMBERS; ++i) {
    char name[64];
    snprintf(name, sizeof name, "standard_errors/%s", lab_number_names[i]);
    table_add_column(to, lab_column(name, TABLE_REAL, 0, NULL), NULL);
  }
  table_add_column(to, lab_column("standard_errors/expected_gradient", TABLE_NUMBERS, 0, NULL),
                   NULL);
}

/* Adds the next cell: a list of numbers, or a missing value if NULL. */
static void add_list(table *to, const double *value, size_t n) {
  if (value != NULL)
    table_numbers(to, value, n);
  else
    table_missing(to);
}

static void add_lab_result(table *to, const lab_table *t, place p) {
  const lab_result *m = at(t, p);
  const size_t size = t->recipe->group_size[p.size], n = m->n_parameters;
  const double *value = (const double *)&m->numbers, *error = (const double *)&m->error;
  const double staleness = t->recipe->pairs[p.pair].staleness;
  const bool has_errors = m->applicable && m->method == LAB_MONTE_CARLO;
  table_row(to);
  table_text(to, t->recipe->algorithms[p.algorithm].name);
  table_real(to, size == 0 ? NAN : (double)size);
  if (size == 0) table_shown(to, "inf");
  table_real(to, m->kl);
  table_real(to, m->kl_qp);
  table_text(to, method_of(m));
  if (!m->applicable) {
    table_shown(to, "-");
    table_rest(to, "not applicable: %s", m->why);
  }
  table_real(to, m->groups);
  table_real(to, m->value);
  if (isnan(staleness))
    table_missing(to);
  else
    table_real(to, staleness);
  table_text(to, m->applicable ? NULL : m->why);
  for (size_t i = 0; i < LAB_NUMBERS; ++i) {
    table_real(to, m->applicable ? value[i] : NAN);
    if (m->applicable && isfinite(value[i]) && error[i] > 0)
      table_shown(to, "%.4g(%.1g)", value[i], error[i]);
  }
  table_numbers(to, m->expected, m->applicable ? n : 0);
  table_numbers(to, m->truth, n);
  if (m->kept_truth != NULL)
    table_real(to, m->cosine_kept);
  else
    table_missing(to);
  add_list(to, m->kept_truth, n);
  add_list(to, m->covariance, n * n);
  for (size_t i = 0; i < LAB_NUMBERS; ++i)
    if (has_errors)
      table_real(to, error[i]);
    else
      table_missing(to);
  add_list(to, has_errors ? m->expected_error : NULL, n);
}

gl_status lab_table_print(const lab_table *t, bool is_json, gl_error *err) {
  table *to = table_new(NULL, 0);
  place p = {0, 0, 0};
  table_plain(to, 0);
  add_columns(to, t);
  do add_lab_result(to, t, p);
  while (next_place(t, &p));
  gl_status status = report_table(to, TABLE_AS_TEXT, is_json, err);
  if (!is_json && only_method(t) != NULL) printf("method: %s\n", only_method(t));
  for (size_t k = 0; k < t->recipe->n_pairs && !is_json; ++k)
    if (isinf(t->results[k * t->recipe->n_sizes * t->recipe->n_algorithms].kl)) {
      puts("note: the sampler never draws a response that the learner gives; no weight on the "
           "others can make up for it");
      break;
    }
  return status;
}

static void tsv_number(double value, FILE *to) {
  char text[NUMBER_TEXT_SIZE];
  fprintf(to, "\t%s", isfinite(value) ? number_text(value, text) : "");
}

void lab_table_tsv(const lab_table *t, FILE *to) {
  place p = {0, 0, 0};
  fputs("# algorithm\tgroup_size\tkl_exact\tkl_exact_qp\tstaleness\tmethod", to);
  for (size_t i = 0; i < LAB_NUMBERS; ++i) fprintf(to, "\t%s", lab_number_names[i]);
  fputc('\n', to);
  do {
    const lab_result *m = at(t, p);
    const double *value = (const double *)&m->numbers;
    if (p.pair == 0 && (p.size != 0 || p.algorithm != 0)) fputs("\n\n", to);
    shown_write_field(t->recipe->algorithms[p.algorithm].name, to);
    fprintf(to, "\t%zu", t->recipe->group_size[p.size]);
    tsv_number(m->kl, to);
    tsv_number(m->kl_qp, to);
    tsv_number(t->recipe->pairs[p.pair].staleness, to);
    fprintf(to, "\t%s", method_of(m));
    for (size_t i = 0; i < LAB_NUMBERS; ++i) tsv_number(m->applicable ? value[i] : NAN, to);
    fputc('\n', to);
  } while (next_place(t, &p));
}

static bias_record record_of(const lab_table *t, place p) {
  const lab_result *m = at(t, p);
  const lab_recipe *r = t->recipe;
  const lab_numbers *n = &m->numbers;
  const size_t size = r->group_size[p.size];
  bias_record record = {.algorithm = r->algorithms[p.algorithm].name,
                        .method = method_of(m),
                        .group_size = size == 0 ? NAN : (double)size,
                        .kl_exact = m->kl,
                        .kl_exact_qp = m->kl_qp,
                        .staleness = r->pairs[p.pair].staleness,
                        .groups = m->groups};
  double *number[] = {&record.bias,        &record.cosine,  &record.scaled_bias,
                      &record.variance,    &record.mse,     &record.scaled_mse,
                      &record.snr,         &record.iw_mean, &record.iw_variance,
                      &record.aw_variance, &record.ess};
  const double *value = (const double *)n;
  for (size_t i = 0; i < LAB_NUMBERS; ++i) *number[i] = m->applicable ? value[i] : NAN;
  return record;
}

gl_status lab_table_store(const lab_table *t, const char *path, double wall_s, gl_error *err) {
  bias_record *records = MUST_ARRAY(bias_record, t->n, "the records of a study");
  provenance how;
  char finished[PROVENANCE_DATE_SIZE];
  store *s = NULL;
  size_t n = 0;
  place p = {0, 0, 0};
  do records[n++] = record_of(t, p);
  while (next_place(t, &p));
  gl_status status = provenance_init(&how, err);
  const bias_making making = {&how.record, provenance_now(finished), wall_s};
  if (status == GL_OK) status = store_open(&s, path, STORE_WRITE, err);
  if (status == GL_OK) status = store_put_bias(s, t->recipe->name, records, n, &making, err);
  store_close(s);
  provenance_fini(&how);
  free(records);
  return status;
}

/* --- many random directions --- */

static const char *const quantity_names[LAB_QUANTITIES] = {"cosine", "relative_bias", "mse_ratio",
                                                           "scaled_mse_ratio"};
static const char *const level_names[LAB_QUANTILES] = {"median", "low", "high"};
static const double quantile_levels[LAB_QUANTILES] = {0.5, 0.1, 0.9};

static double quantity_of(lab_quantity q, const lab_result *m, const lab_result *reference) {
  double square = 0;
  for (size_t i = 0; i < m->n_parameters; ++i) square += m->truth[i] * m->truth[i];
  switch (q) {
  case LAB_QUANTITY_COSINE:
    return m->numbers.cosine;
  case LAB_QUANTITY_BIAS:
    return m->numbers.bias / sqrt(square);
  case LAB_QUANTITY_MSE:
    return m->numbers.mse / reference->numbers.mse;
  case LAB_QUANTITY_SCALED_MSE:
    return m->numbers.scaled_mse / reference->numbers.scaled_mse;
  case LAB_QUANTITIES:
    break;
  }
  return NAN;
}

static void add_directions_columns(table *to, const lab_table *t) {
  const int wide = lab_recipe_name_width(t->recipe);
  const table_column count = {.type = TABLE_REAL, .width = 10, .format = "%.0f"};
  table_column c = {.name = "algorithm", .type = TABLE_TEXT, .width = -wide};
  table_add_column(to, c, "algorithm");
  c = count, c.name = "group_size", c.width = 6;
  table_add_column(to, c, "G");
  c = (table_column){.name = "kl_exact", .type = TABLE_REAL, .width = 9, .format = "%.3g"};
  table_add_column(to, c, "KL(p||q)");
  c = count, c.name = "directions";
  table_add_column(to, c, "directions");
  for (size_t q = 0; q < LAB_QUANTITIES; ++q)
    for (size_t i = 0; i < LAB_QUANTILES; ++i) {
      char name[64];
      snprintf(name, sizeof name, "%s/%s", quantity_names[q], level_names[i]);
      c = (table_column){.name = name, .type = TABLE_REAL, .width = 16, .format = "%.3f"};
      table_add_column(to, c, i == 0 ? "%s" : NULL, quantity_names[q]);
    }
  static const char *const fractions[] = {"downhill", "mse_lower", "scaled_mse_lower"};
  for (size_t i = 0; i < sizeof fractions / sizeof *fractions; ++i) {
    c = (table_column){.name = fractions[i], .type = TABLE_REAL, .width = 16, .format = "%.3f"};
    table_add_column(to, c, "%s", fractions[i]);
  }
}

/* Collects a quantity over those random directions in which the algorithm and the first algorithm
 * were measured, in ascending order. Returns the number of values. */
static size_t gather(const lab_table *t, lab_quantity q, size_t algorithm, size_t size, size_t kl,
                     double *value) {
  const lab_recipe *r = t->recipe;
  const size_t kls = r->n_pairs / r->directions;
  size_t n = 0;
  for (size_t d = 0; d < r->directions; ++d) {
    const lab_result *row = &t->results[((d * kls + kl) * r->n_sizes + size) * r->n_algorithms];
    if (!row[algorithm].applicable || !row[0].applicable) continue;
    const double x = quantity_of(q, &row[algorithm], &row[0]);
    if (isfinite(x)) value[n++] = x;
  }
  gsl_sort(value, 1, n);
  return n;
}

static double fraction_under(const double *sorted, size_t n, double bound) {
  size_t below = 0;
  while (below < n && sorted[below] < bound) ++below;
  return n > 0 ? (double)below / (double)n : NAN;
}

lab_over_directions lab_directions_measured(const lab_table *t, size_t algorithm, size_t size,
                                            size_t k, double *scratch) {
  const lab_recipe *r = t->recipe;
  lab_over_directions out = {.kl = t->results[(k * r->n_sizes + size) * r->n_algorithms].kl};
  out.n = gather(t, LAB_QUANTITY_COSINE, algorithm, size, k, scratch);
  for (lab_quantity q = 0; q < LAB_QUANTITIES; ++q) {
    const size_t n = gather(t, q, algorithm, size, k, scratch);
    for (size_t i = 0; i < LAB_QUANTILES; ++i)
      out.quantile[q][i] =
          n > 0 ? gsl_stats_quantile_from_sorted_data(scratch, 1, n, quantile_levels[i]) : NAN;
    out.fraction_below[q] = fraction_under(scratch, n, q == LAB_QUANTITY_COSINE ? 0 : 1 - 1e-9);
  }
  return out;
}

/* Adds the row of an algorithm, group size and KL value; columns as in add_directions_columns(). */
static void add_directions_row(table *to, const lab_table *t, size_t algorithm, size_t size,
                               size_t k, double *scratch) {
  const lab_recipe *r = t->recipe;
  const lab_over_directions m = lab_directions_measured(t, algorithm, size, k, scratch);
  table_row(to);
  table_text(to, r->algorithms[algorithm].name);
  table_real(to, r->group_size[size] == 0 ? NAN : (double)r->group_size[size]);
  table_real(to, m.kl);
  table_real(to, (double)m.n);
  for (lab_quantity q = 0; q < LAB_QUANTITIES; ++q)
    for (size_t i = 0; i < LAB_QUANTILES; ++i) table_real(to, m.quantile[q][i]);
  table_real(to, m.fraction_below[LAB_QUANTITY_COSINE]);
  table_real(to, m.fraction_below[LAB_QUANTITY_MSE]);
  table_real(to, m.fraction_below[LAB_QUANTITY_SCALED_MSE]);
}

gl_status lab_directions_print(const lab_table *t, bool is_json, gl_error *err) {
  const lab_recipe *r = t->recipe;
  double *value = MUST_ARRAY(double, r->directions, "the directions");
  table *to = table_new(NULL, 0);
  table_plain(to, 0);
  add_directions_columns(to, t);
  for (size_t a = 0; a < r->n_algorithms; ++a)
    for (size_t s = 0; s < r->n_sizes; ++s)
      for (size_t k = 0; k < r->n_pairs / r->directions; ++k)
        add_directions_row(to, t, a, s, k, value);
  free(value);
  gl_status status = report_table(to, TABLE_AS_TEXT, is_json, err);
  if (!is_json)
    printf("over %zu random directions: medians (10 and 90 %% quantiles with --json); mean squared "
           "errors over those of %s; downhill: fraction with a cosine below 0; mse_lower, "
           "scaled_mse_lower: fraction with a smaller error than %s\n",
           r->directions, r->algorithms[0].name, r->algorithms[0].name);
  return status;
}
