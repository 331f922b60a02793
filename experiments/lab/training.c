/* Trains each algorithm in an enumerable world and records exact return, bias and variance. */
#include "experiments/lab/training.h"

#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/base/thread_pool.h"
#include "core/random/rng.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state of a training run. The ring buffer holds the last staleness + 1 policies, the newest at
 * `now`. */
typedef struct run {
  lab_path of;
  double *ring; /* [(staleness + 1) * n] parameters */
  double *step; /* [n] the update's direction */
  size_t now;
} run;

/* The parameters of `ago` updates before the present, or the initial ones if fewer updates were
 * made. */
static double *policy_ago(const run *u, size_t updates_done, size_t ago) {
  const size_t slots = u->of.staleness + 1;
  const size_t back = ago < updates_done ? ago : updates_done;
  return u->ring + (u->now + slots - back) % slots * u->of.r->view.n_parameters;
}

/* Maps a number in (0, 1) to a prompt (inverse CDF of the prompt weights). */
static size_t prompt_of(const enumerable *e, double u) {
  size_t x = 0;
  if (e->prompt_weight == NULL) return (size_t)(u * (double)e->n_prompts);
  for (; x + 1 < e->n_prompts && u >= e->prompt_weight[x]; ++x) u -= e->prompt_weight[x];
  return x;
}

/* Adds the algorithm's mean estimate over the update's groups to step[]. Random numbers are
 * addressed by seed, update and group and are the same for every algorithm, so comparisons are
 * paired. */
static gl_status estimate(run *u, size_t update, gl_error *err) {
  const lab_recipe *r = u->of.r;
  const size_t size = r->group_size[0], n = r->view.n_parameters;
  const double *learner_now = policy_ago(u, update, 0);
  const double *sampler = policy_ago(u, update, u->of.staleness);
  gl_status status = GL_OK;
  memset(u->step, 0, n * sizeof *u->step);
  for (size_t g = 0; g < r->training.groups && status == GL_OK; ++g) {
    const rng_stream stream = rng_stream_at(r->seed, RNG_ROLLOUT, u->of.seed << 32 | update);
    const uint64_t block = g * (size + 1);
    lab_tables t;
    lab_alias alias = {0};
    lab_group group = {0};
    const size_t x = prompt_of(&r->view, rng_u01(rng_block(stream, block).v[0]));
    status = lab_tables_init(&t, &r->view, x, learner_now, sampler, r->weights, err);
    if (status != GL_OK) return status;
    status = lab_alias_init(&alias, t.draw, t.n, err);
    if (status == GL_OK) status = lab_group_init(&group, size, t.width, n, err);
    for (size_t i = 0; i < size && status == GL_OK; ++i)
      group.response[i] = lab_alias_draw(&alias, rng_block(stream, block + 1 + i).v[0]);
    if (status == GL_OK) status = lab_group_evaluate(&group, &t, u->of.algorithm, err);
    for (size_t i = 0; i < n && status == GL_OK; ++i)
      u->step[i] += group.gradient[i] / (double)r->training.groups;
    lab_group_fini(&group);
    lab_alias_fini(&alias);
    lab_tables_fini(&t);
  }
  return status;
}

/* The quantities to record along a path, and the destination. */
typedef struct recording {
  const lab_path *of;
  bool whole; /* true: record all quantities; false: only the exact return */
  lab_point *points;
} recording;

/* Records a point of the path: the exact return, and with `whole` also the algorithm's bias,
 * variance and KL. */
static gl_status record(void *context, size_t update, const double *theta, const double *sampler,
                        gl_error *err) {
  const recording *to = context;
  const lab_recipe *r = to->of->r;
  lab_point *p = to->points + update / r->training.every;
  *p = (lab_point){.samples = (double)update * (double)(r->training.groups * r->group_size[0])};
  if (!to->whole) return lab_value(&r->view, theta, &p->value, NULL, err);
  const lab_spec spec = {.world = &r->view,
                         .theta_learner = theta,
                         .theta_sampler = sampler,
                         .weights = r->weights,
                         .group_size = r->group_size[0],
                         .budget = r->budget,
                         .samples = r->samples,
                         .seed = r->seed,
                         .entity = to->of->seed << 20 | update,
                         .threads = 1};
  lab_result m;
  gl_status status = lab_measure(&m, &to->of->algorithm, 1, &spec, err);
  if (status != GL_OK) return status;
  p->value = m.value;
  p->kl = m.kl;
  p->cosine = m.numbers.cosine;
  p->scaled_bias = m.numbers.scaled_bias;
  p->variance = m.numbers.variance;
  p->ascent = m.numbers.cosine > 0;
  lab_result_fini(&m);
  return GL_OK;
}

gl_status lab_train_path(const lab_path *of, lab_path_visit visit, void *context, gl_error *err) {
  const lab_recipe *r = of->r;
  const size_t n = r->view.n_parameters, slots = of->staleness + 1;
  run u = {.of = *of};
  u.ring = MUST_ARRAY(double, slots *n, "a training path");
  u.step = MUST_ARRAY(double, n, "a training path");
  gl_status status = GL_OK;
  memcpy(u.ring, r->pairs[0].learner, n * sizeof *u.ring);
  for (size_t t = 0; t <= r->training.updates && status == GL_OK; ++t) {
    if (t % r->training.every == 0)
      status = visit(context, t, policy_ago(&u, t, 0), policy_ago(&u, t, of->staleness), err);
    if (t == r->training.updates || status != GL_OK) break;
    status = estimate(&u, t, err);
    double *old = policy_ago(&u, t, 0);
    u.now = (u.now + 1) % slots;
    for (size_t i = 0; i < n && status == GL_OK; ++i) {
      double moved = old[i] + of->lr * u.step[i];
      u.ring[u.now * n + i] =
          fmax(-500, fmin(500, moved)); /* limits diverged logits to finite values */
    }
  }
  free(u.ring);
  free(u.step);
  return status;
}

/* --- over seeds, rates and algorithms --- */
static double mean_value(const lab_point *p, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += p[i].value;
  return sum / (double)n;
}

/* Reported seeds are 1, 2, …; tuning seeds are above 2^20. */
gl_status lab_tuned_rate(const lab_recipe *r, const policy_algorithm *algorithm, size_t staleness,
                         lab_counter *counter, double *lr, gl_error *err) {
  const lab_training *t = &r->training;
  const size_t n_points = t->updates / t->every + 1;
  lab_point *path = MUST_ARRAY(lab_point, n_points, "a training path");
  gl_status status = GL_OK;
  double best = -INFINITY;
  *lr = t->lr[0];
  for (size_t k = 0; k < t->n_lr && t->n_lr > 1 && status == GL_OK; ++k) {
    double score = 0;
    for (size_t s = 0; s < t->tuning_seeds && status == GL_OK; ++s) {
      const lab_path of = {r, algorithm, staleness, t->lr[k], (UINT64_C(1) << 20) + s};
      status = lab_train_path(&of, record, &(recording){&of, false, path}, err);
      if (counter != NULL) lab_counter_add(counter, 1);
      if (status == GL_OK) score += mean_value(path, n_points);
    }
    if (score > best) {
      best = score;
      *lr = t->lr[k];
    }
  }
  free(path);
  return status;
}

static void add_point(lab_point *sum, const lab_point *p, double share) {
  sum->samples = p->samples;
  sum->value += share * p->value;
  sum->value_error += share * p->value * p->value; /* holds the sum of squares until the end */
  sum->kl += share * p->kl;
  sum->cosine += share * p->cosine;
  sum->scaled_bias += share * p->scaled_bias;
  sum->variance += share * p->variance;
  sum->ascent += share * p->ascent;
}

/* Data shared by the threads. */
typedef struct job {
  lab_curves *curves;
  lab_counter counter; /* counts training paths */
} job;

/* Chooses an algorithm's learning rate, trains on the reported seeds, and averages over them. */
static gl_status run_algorithm(void *context, size_t algorithm, gl_error *err) {
  job *j = context;
  lab_curves *c = j->curves;
  const lab_recipe *r = c->recipe;
  const double seeds = (double)r->training.seeds;
  lab_point *path = MUST_ARRAY(lab_point, c->n_points, "a training path");
  lab_point *sum = c->points + algorithm * c->n_points;
  gl_status status = lab_tuned_rate(r, &r->algorithms[algorithm], r->training.staleness,
                                    &j->counter, &c->lr[algorithm], err);
  for (size_t s = 0; s < r->training.seeds && status == GL_OK; ++s) {
    const lab_path of = {r, &r->algorithms[algorithm], r->training.staleness, c->lr[algorithm],
                         s + 1};
    status = lab_train_path(&of, record, &(recording){&of, true, path}, err);
    lab_counter_add(&j->counter, 1);
    for (size_t i = 0; i < c->n_points && status == GL_OK; ++i)
      add_point(&sum[i], &path[i], 1 / seeds);
  }
  for (size_t i = 0; i < c->n_points; ++i) {
    const double spread = fmax(0, sum[i].value_error - sum[i].value * sum[i].value);
    sum[i].value_error = seeds > 1 ? sqrt(spread / (seeds - 1)) : 0;
  }
  free(path);
  return status;
}

/* Number of training paths for one algorithm. */
static size_t paths_of(const lab_training *t) {
  return t->seeds + (t->n_lr > 1 ? t->n_lr * t->tuning_seeds : 0);
}

gl_status lab_curves_init(lab_curves *c, const lab_recipe *recipe, size_t threads,
                          progress_mode shows, gl_error *err) {
  *c = (lab_curves){.recipe = recipe,
                    .n_points = recipe->training.updates / recipe->training.every + 1};
  if (recipe->group_size[0] == 0)
    return gl_fail(err, GL_EINPUT, "training draws groups; give a group_size");
  c->points = MUST_ARRAY(lab_point, recipe->n_algorithms * c->n_points, "learning curves");
  c->lr = MUST_ARRAY(double, recipe->n_algorithms, "learning curves");
  job j = {.curves = c};
  const size_t paths = recipe->n_algorithms * paths_of(&recipe->training);
  lab_counter_init(&j.counter, recipe->name, "training paths", paths, (double)paths,
                   threads < recipe->n_algorithms ? threads : recipe->n_algorithms, shows);
  const gl_status status = pool_try(recipe->n_algorithms, threads, run_algorithm, &j, err);
  lab_counter_fini(&j.counter);
  return status;
}

void lab_curves_fini(lab_curves *c) {
  free(c->points);
  free(c->lr);
  *c = (lab_curves){0};
}

/* --- output --- */

static const char *const columns[] = {"samples", "return",      "return_error", "kl_exact",
                                      "cosine",  "scaled_bias", "variance",     "ascent"};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static table *curves_table(const lab_curves *c) {
  table *t = table_new(NULL, 0);
  table_add_column(t, (table_column)TABLE_KEY("algorithm", TABLE_TEXT), NULL);
  table_add_column(t, (table_column)TABLE_KEY("lr", TABLE_REAL), NULL);
  for (size_t k = 0; k < COLUMNS; ++k)
    table_add_column(t, (table_column)TABLE_KEY(columns[k], TABLE_REAL), NULL);
  for (size_t i = 0; i < c->recipe->n_algorithms * c->n_points; ++i) {
    const double *value = (const double *)&c->points[i];
    table_row(t);
    table_text(t, c->recipe->algorithms[i / c->n_points].name);
    table_real(t, c->lr[i / c->n_points]);
    for (size_t k = 0; k < COLUMNS; ++k) table_real(t, value[k]);
  }
  return t;
}

/* Returns the last recorded number of samples up to which the expected direction was an ascent
 * direction in all seeds. */
static double ascends_until(const lab_point *p, size_t n) {
  double samples = NAN;
  for (size_t i = 0; i < n && p[i].ascent == 1; ++i) samples = p[i].samples;
  return samples;
}

/* Builds the printed table, one row per algorithm. */
static table *curves_summary(const lab_curves *c) {
  const table_column of[] = {
      {.type = TABLE_TEXT, .head = "algorithm", .width = -lab_recipe_name_width(c->recipe)},
      {.type = TABLE_REAL, .head = "lr", .width = 8, .format = "%.3g"},
      {.type = TABLE_TEXT, .head = "final return", .width = 16},
      {.type = TABLE_REAL, .head = "mean return", .width = 12, .format = "%.4f"},
      {.type = TABLE_REAL, .head = "max KL", .width = 10, .format = "%.3g"},
      {.type = TABLE_REAL, .head = "min cosine", .width = 10, .format = "%.3f"},
      {.type = TABLE_TEXT, .head = "ascends until", .width = 18}};
  table *t = table_new(of, sizeof of / sizeof *of);
  table_plain(t, 0);
  for (size_t algorithm = 0; algorithm < c->recipe->n_algorithms; ++algorithm) {
    const lab_point *p = c->points + algorithm * c->n_points, *last = p + c->n_points - 1;
    const double until = ascends_until(p, c->n_points);
    double kl = 0, cosine = 1;
    for (size_t i = 0; i < c->n_points; ++i) {
      kl = fmax(kl, p[i].kl);
      cosine = fmin(cosine, p[i].cosine);
    }
    table_row(t);
    table_text(t, c->recipe->algorithms[algorithm].name);
    table_real(t, c->lr[algorithm]);
    table_textf(t, "%8.4f ±%.4f", last->value, last->value_error);
    table_real(t, mean_value(p, c->n_points));
    table_real(t, kl);
    table_real(t, cosine);
    if (until == last->samples)
      table_text(t, "the end");
    else if (isnan(until))
      table_text(t, "never");
    else
      table_textf(t, "%g samples", until);
  }
  return t;
}

gl_status lab_curves_print(const lab_curves *c, bool is_json, gl_error *err) {
  return report_table(is_json ? curves_table(c) : curves_summary(c), TABLE_AS_TEXT, is_json, err);
}

void lab_curves_tsv(const lab_curves *c, FILE *to) {
  fputs("# algorithm", to);
  for (size_t k = 0; k < COLUMNS; ++k) fprintf(to, "\t%s", columns[k]);
  fputc('\n', to);
  for (size_t i = 0; i < c->recipe->n_algorithms * c->n_points; ++i) {
    const double *value = (const double *)&c->points[i];
    if (i > 0 && i % c->n_points == 0) fputs("\n\n", to);
    shown_write_field(c->recipe->algorithms[i / c->n_points].name, to);
    for (size_t k = 0; k < COLUMNS; ++k) {
      char text[NUMBER_TEXT_SIZE];
      fprintf(to, "\t%s", isfinite(value[k]) ? number_text(value[k], text) : "");
    }
    fputc('\n', to);
  }
}
