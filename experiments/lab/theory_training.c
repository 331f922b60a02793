/* Collects the pairs of distributions of training paths, and tells what they say. */
#include "experiments/lab/theory_training.h"

#include "core/base/shown.h"
#include "core/base/thread_pool.h"
#include "experiments/lab/counter.h"
#include "experiments/lab/pairs_tally.h"
#include "experiments/lab/training.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One algorithm at one staleness. */
typedef struct cell {
  double lr;
  pairs_tally tally;
} cell;

typedef struct job {
  const lab_recipe *r;
  cell *cells; /* [n_algorithms * n_ages] */
  lab_counter counter;
} job;

/* --- a path --- */

typedef struct collecting {
  const lab_recipe *r;
  size_t staleness;
  pairs_tally *to;
} collecting;

/* The distribution of prompt x's responses; logp[max_responses * max_length] is room. */
static gl_status dist_of(const enumerable *e, const double *theta, size_t x, double *logp,
                         double *p, gl_error *err) {
  const size_t n = e->ops->n_responses(e->self, x);
  double total = 0;
  gl_status status = e->ops->log_probs(e->self, theta, x, logp, err);
  for (size_t y = 0; y < n && status == GL_OK; ++y) {
    double sum = 0;
    for (size_t t = 0; t < e->ops->length(e->self, x, y); ++t) sum += logp[y * e->max_length + t];
    total += p[y] = exp(sum);
  }
  if (status == GL_OK && !(fabs(total - 1) < 1e-9))
    status = gl_fail(err, GL_ENUMERIC, "the responses to prompt %zu have probability %g together",
                     x, total);
  return status;
}

/* Where fewer updates were made than the staleness, the sampler is younger than it should be. */
static gl_status collect(void *context, size_t update, const double *theta_p, const double *theta_q,
                         gl_error *err) {
  const collecting *c = context;
  const enumerable *e = &c->r->view;
  if (update < c->staleness) return GL_OK;
  const size_t k = e->max_responses;
  double *room = calloc(k, (e->max_length + 3) * sizeof *room);
  if (room == NULL) return gl_fail_memory(err, "the laws of a pair");
  double *p = room, *q = room + k, *reward = room + 2 * k, *logp = room + 3 * k;
  gl_status status = GL_OK;
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    status = dist_of(e, theta_p, x, logp, p, err);
    if (status == GL_OK) status = dist_of(e, theta_q, x, logp, q, err);
    e->ops->rewards(e->self, x, reward);
    if (status == GL_OK)
      status = pairs_tally_add(c->to, p, q, reward, e->ops->n_responses(e->self, x), err);
  }
  free(room);
  return status;
}

static gl_status run_cell(void *context, size_t i, gl_error *err) {
  job *j = context;
  const lab_recipe *r = j->r;
  const policy_algorithm *algorithm = &r->algorithms[i / r->training.n_ages];
  const size_t staleness = (size_t)r->training.ages[i % r->training.n_ages];
  cell *c = &j->cells[i];
  collecting to = {r, staleness, &c->tally};
  gl_status status = lab_tuned_rate(r, algorithm, staleness, &j->counter, &c->lr, err);
  for (size_t s = 0; s < r->training.seeds && status == GL_OK; ++s) {
    status = lab_train_path(r, algorithm, staleness, c->lr, s + 1, collect, &to, err);
    lab_counter_add(&j->counter, 1);
  }
  return status;
}

/* --- the document --- */

static double median_of(double *values, size_t n) {
  if (n == 0) return NAN;
  gsl_sort(values, 1, n);
  return gsl_stats_median_from_sorted_data(values, 1, n);
}

/* Pairs that are really apart: a learner that has converged goes on giving pairs that are not. */
#define FAR_APART 0.01

typedef struct far_pairs {
  double n, green[LAB_CONSTANTS], disagree[LAB_CONSTANTS];
} far_pairs;

/* Before the numbers of the pairs are sorted, each by itself. */
static far_pairs far_pairs_of(const pairs_tally *t) {
  far_pairs f = {0};
  for (size_t i = 0; i < t->pairs; ++i) {
    if (t->kl_of[i] < FAR_APART) continue;
    f.n += 1;
    for (int k = 0; k < LAB_CONSTANTS; ++k) {
      const int green = pairs_varies_more(t->variance[1 + k][i], t->variance[0][i]),
                wider = pairs_varies_more(t->variance[2 + LAB_CONSTANTS + k][i],
                                          t->variance[1 + LAB_CONSTANTS][i]);
      f.green[k] += green;
      f.disagree[k] += green != wider;
    }
  }
  return f;
}

static int put_denominator(cJSON *o, const pairs_tally *t, const far_pairs *far, int k) {
  const double n = (double)t->pairs;
  cJSON *d = cJSON_AddObjectToObject(o, lab_constant_names[k]);
  return d != NULL && json_add_number(d, "share_theorem1_holds", t->holds[k] / n) != NULL &&
         json_add_number(d, "largest_constant", t->constant[k]) != NULL &&
         json_add_number(d, "share_w_varies_more", t->green[k] / n) != NULL &&
         json_add_number(d, "highest_kl_w_varies_more",
                         t->green[k] > 0 ? t->highest_green[k] : NAN) != NULL &&
         json_add_number(d, "share_aw_varies_more", t->wider[k] / n) != NULL &&
         json_add_number(d, "share_w_and_aw_disagree", t->disagree[k] / n) != NULL &&
         json_add_number(d, "share_aw_varies_more_group", t->wider_q[k] / n) != NULL &&
         json_add_number(d, "share_w_and_aw_disagree_group", t->disagree_q[k] / n) != NULL &&
         json_add_number(d, "share_w_varies_more_far", far->green[k] / far->n) != NULL &&
         json_add_number(d, "share_w_and_aw_disagree_far", far->disagree[k] / far->n) != NULL;
}

/* Sorts what the medians are taken of. */
static int put_cell(cJSON *list, const char *algorithm, double staleness, double lr,
                    pairs_tally *t) {
  const far_pairs far = far_pairs_of(t);
  cJSON *o = cJSON_CreateObject();
  if (o == NULL || !cJSON_AddItemToArray(list, o)) {
    cJSON_Delete(o);
    return 0;
  }
  int fine = json_add_string(o, "algorithm", algorithm) != NULL &&
             json_add_number(o, "staleness", staleness) != NULL &&
             json_add_number(o, "lr", lr) != NULL &&
             json_add_number(o, "pairs", (double)t->pairs) != NULL &&
             json_add_number(o, "pairs_far", far.n) != NULL &&
             json_add_number(o, "infinite", (double)t->infinite) != NULL &&
             json_add_number(o, "kl_median", median_of(t->kl_of, t->pairs)) != NULL &&
             json_add_number(o, "kl_max", t->pairs > 0 ? t->kl_of[t->pairs - 1] : NAN) != NULL;
  for (int k = 0; k < PAIRS_VARIANCES && fine; ++k)
    fine = json_add_number(o, pairs_variance_names[k], median_of(t->variance[k], t->pairs)) != NULL;
  for (int k = 0; k < LAB_CONSTANTS && fine; ++k) fine = put_denominator(o, t, &far, k);
  return fine;
}

/* Adds another's pairs. */
static gl_status merge(pairs_tally *to, const pairs_tally *from, gl_error *err) {
  const size_t n = to->pairs + from->pairs;
  for (int k = 0; k <= PAIRS_VARIANCES; ++k) {
    double **list = k < PAIRS_VARIANCES ? &to->variance[k] : &to->kl_of;
    const double *more = k < PAIRS_VARIANCES ? from->variance[k] : from->kl_of;
    double *longer = realloc(*list, (n + 1) * sizeof *longer);
    if (longer == NULL) return gl_fail_memory(err, "pairs of laws");
    *list = longer;
    if (from->pairs > 0) memcpy(longer + to->pairs, more, from->pairs * sizeof *more);
  }
  to->pairs = to->room = n;
  to->infinite += from->infinite;
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    to->holds[k] += from->holds[k];
    to->green[k] += from->green[k];
    to->wider[k] += from->wider[k];
    to->disagree[k] += from->disagree[k];
    to->wider_q[k] += from->wider_q[k];
    to->disagree_q[k] += from->disagree_q[k];
    to->highest_green[k] = fmax(to->highest_green[k], from->highest_green[k]);
    to->constant[k] = fmax(to->constant[k], from->constant[k]);
  }
  return GL_OK;
}

/* All algorithms at one staleness. */
static gl_status put_together(cJSON *list, const job *j, size_t age, gl_error *err) {
  const lab_training *t = &j->r->training;
  pairs_tally all;
  gl_status status = GL_OK;
  pairs_tally_init(&all);
  for (size_t a = 0; a < j->r->n_algorithms && status == GL_OK; ++a)
    status = merge(&all, &j->cells[a * t->n_ages + age].tally, err);
  if (status == GL_OK && !put_cell(list, "all", t->ages[age], NAN, &all))
    status = gl_fail_memory(err, "the numbers");
  pairs_tally_fini(&all);
  return status;
}

static gl_status put_cells(cJSON *list, const job *j, gl_error *err) {
  const lab_training *t = &j->r->training;
  for (size_t i = 0; i < j->r->n_algorithms * t->n_ages; ++i)
    if (!put_cell(list, j->r->algorithms[i / t->n_ages].name, t->ages[i % t->n_ages],
                  j->cells[i].lr, &j->cells[i].tally))
      return gl_fail_memory(err, "the numbers");
  return GL_OK;
}

static gl_status tell(cJSON **out, const job *j, gl_error *err) {
  const double n = (double)j->r->view.max_responses;
  cJSON *o = cJSON_CreateObject(), *list = NULL;
  int fine = o != NULL && json_add_number(o, "outcomes", n) != NULL &&
             json_add_number(o, "theorem", n * n + 1) != NULL;
  cJSON *smallest = fine ? cJSON_AddObjectToObject(o, "smallest") : NULL;
  fine = smallest != NULL;
  for (int k = 0; k < LAB_CONSTANTS && fine; ++k)
    fine = json_add_number(smallest, lab_constant_names[k],
                           lab_theory_smallest_constant(n, (lab_constant)k, NULL)) != NULL;
  cJSON *together = fine ? cJSON_AddArrayToObject(o, "together") : NULL;
  list = together != NULL ? cJSON_AddArrayToObject(o, "training") : NULL;
  gl_status status = list != NULL ? GL_OK : gl_fail_memory(err, "the numbers");
  /* first, for the numbers of each are sorted when it is told of */
  for (size_t age = 0; age < j->r->training.n_ages && status == GL_OK; ++age)
    status = put_together(together, j, age, err);
  if (status == GL_OK) status = put_cells(list, j, err);
  if (status == GL_OK)
    *out = o;
  else
    cJSON_Delete(o);
  return status;
}

/* --- the whole --- */

static gl_status check(const lab_recipe *r, gl_error *err) {
  const lab_training *t = &r->training;
  if (t->n_lr == 0 || t->n_ages == 0)
    return gl_fail(err, GL_EINPUT,
                   "%s: theory takes its pairs of laws from `training` with `stalenesses`, a list",
                   r->name);
  if (r->group_size[0] == 0)
    return gl_fail(err, GL_EINPUT, "%s: training draws groups; give a group_size", r->name);
  for (size_t x = 0; x < r->view.n_prompts; ++x)
    if (r->view.ops->n_responses(r->view.self, x) != r->view.max_responses)
      return gl_fail(err, GL_EINPUT,
                     "%s: the prompts have different numbers of responses, and Theorem 1 is about "
                     "one number n",
                     r->name);
  for (size_t i = 0; i < t->n_ages; ++i)
    if (t->updates / t->every * t->every < (size_t)t->ages[i])
      return gl_fail(err, GL_EINPUT,
                     "%s: of %zu updates, recorded every %zu, none has a batch %g updates old",
                     r->name, t->updates, t->every, t->ages[i]);
  return GL_OK;
}

gl_status theory_training_run(cJSON **out, const lab_recipe *r, size_t threads, progress_mode shows,
                              gl_error *err) {
  job j = {.r = r};
  *out = NULL;
  gl_status status = check(r, err);
  if (status != GL_OK) return status;
  const lab_training *t = &r->training;
  const size_t n = r->n_algorithms * t->n_ages;
  const size_t paths = n * (t->seeds + (t->n_lr > 1 ? t->n_lr * t->tuning_seeds : 0));
  j.cells = calloc(n, sizeof *j.cells);
  if (j.cells == NULL) return gl_fail_memory(err, "pairs of laws");
  for (size_t i = 0; i < n; ++i) pairs_tally_init(&j.cells[i].tally);
  lab_counter_init(&j.counter, r->name, "training paths", paths, (double)paths,
                   threads < n ? threads : n, shows);
  status = pool_try(n, threads, run_cell, &j, err);
  lab_counter_fini(&j.counter);
  if (status == GL_OK) status = tell(out, &j, err);
  for (size_t i = 0; i < n; ++i) pairs_tally_fini(&j.cells[i].tally);
  free(j.cells);
  return status;
}

/* --- text --- */

static double number(const cJSON *o, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);
  if (cJSON_IsRaw(item)) return strtod(item->valuestring, NULL);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void print_number(double value, int columns, FILE *to) {
  if (isnan(value))
    fprintf(to, " %*s", columns, "-");
  else
    fprintf(to, " %*.4g", columns, value);
}

static void print_row(const cJSON *o, int k, FILE *to) {
  static const char *const shares[] = {"share_w_varies_more", "share_aw_varies_more",
                                       "share_w_and_aw_disagree", "share_w_and_aw_disagree_group",
                                       "share_w_and_aw_disagree_far"};
  const cJSON *d = cJSON_GetObjectItemCaseSensitive(o, lab_constant_names[k]);
  shown_write_padded(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "algorithm")), 24,
                     to);
  fprintf(to, " %9g %6g", number(o, "staleness"), number(o, "pairs"));
  print_number(number(o, "kl_median"), 9, to);
  print_number(number(o, "kl_max"), 9, to);
  fprintf(to, " | %8.3f", number(d, "share_theorem1_holds"));
  print_number(number(d, "largest_constant"), 9, to);
  for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i)
    print_number(number(d, shares[i]), 9, to);
  fprintf(to, "  D %s\n", lab_constant_names[k]);
}

static void print_list(const cJSON *list, FILE *to) {
  for (const cJSON *o = list != NULL ? list->child : NULL; o != NULL; o = o->next)
    for (int k = 0; k < LAB_CONSTANTS; ++k) print_row(o, k, to);
}

void theory_training_print(const cJSON *document, FILE *to) {
  static const char *const heads[][10] = {
      {"", "", "", "", "theorem", "largest", "p/D", "A p/D", "they", "with"},
      {"staleness", "pairs", "KL", "max KL", "holds", "c", "wider", "wider", "disagree", "E_q r"}};
  const cJSON *smallest = cJSON_GetObjectItemCaseSensitive(document, "smallest");
  fprintf(to,
          "Pairs of laws from training, on n = %g responses. Theorem 1's constant is n^2 + 1 = %g; "
          "the smallest\nvalid one %.6g with D = E_q q, %.6g with D as computed. Shares of pairs; "
          "in the last column of\nthose with a KL of %g or more.\n\n",
          number(document, "outcomes"), number(document, "theorem"), number(smallest, "expected"),
          number(smallest, "computed"), FAR_APART);
  for (int i = 0; i < 2; ++i)
    fprintf(to, "%-24s %9s %6s %9s %9s | %8s %9s %9s %9s %9s %9s %9s\n", i == 0 ? "" : "algorithm",
            heads[i][0], heads[i][1], heads[i][2], heads[i][3], heads[i][4], heads[i][5],
            heads[i][6], heads[i][7], heads[i][8], heads[i][9], i == 0 ? "they" : "disagree");
  print_list(cJSON_GetObjectItemCaseSensitive(document, "training"), to);
  print_list(cJSON_GetObjectItemCaseSensitive(document, "together"), to);
}
