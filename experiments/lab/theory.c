/* `gepolab lab theory`: the paper's theorems on given, random and trained pairs of distributions.
 */
#include "experiments/lab/theory.h"
#include "core/base/shown.h"
#include "core/base/thread_pool.h"
#include "core/config/fields.h"
#include "experiments/lab/recipe.h"
#include "experiments/lab/training.h"
#include "toy/lab/theory.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- pairs of distributions --- */

const char *const pairs_variance_names[PAIRS_VARIANCES] = {"w_pq",  "w_expected",  "w_computed",
                                                           "aw_pq", "aw_expected", "aw_computed"};

void pairs_tally_init(pairs_tally *t) {
  *t = (pairs_tally){0};
  for (int k = 0; k < LAB_CONSTANTS; ++k) t->constant[k] = -INFINITY;
}

void pairs_tally_fini(pairs_tally *t) {
  for (int k = 0; k < PAIRS_VARIANCES; ++k) free(t->variance[k]);
  free(t->kl_of);
  *t = (pairs_tally){0};
}

static gl_status grow(double **list, size_t n, gl_error *err) {
  double *longer = realloc(*list, n * sizeof *longer);
  if (longer == NULL) return gl_fail_memory(err, "pairs of laws");
  *list = longer;
  return GL_OK;
}

/* Room for one more pair. */
static gl_status make_room(pairs_tally *t, gl_error *err) {
  gl_status status = GL_OK;
  if (t->pairs < t->room) return GL_OK;
  const size_t n = t->room > 0 ? 2 * t->room : 64;
  for (int k = 0; k < PAIRS_VARIANCES && status == GL_OK; ++k)
    status = grow(&t->variance[k], n, err);
  if (status == GL_OK) status = grow(&t->kl_of, n, err);
  if (status == GL_OK) t->room = n;
  return status;
}

/* By more than rounding: where q is uniform both weights are the same, and where it is nearly
 * certain both variances are 0. */
int pairs_varies_more(double one, double other) {
  return one > other * (1 + 1e-12) + 1e-15;
}

static void count(pairs_tally *t, const lab_weights_stats *w, double theorem, double aw_pq,
                  const double aw[LAB_CONSTANTS], double aw_pq_q,
                  const double aw_q[LAB_CONSTANTS]) {
  const size_t i = t->pairs++;
  t->kl += w->kl;
  t->kl_of[i] = w->kl;
  t->variance[0][i] = w->variance_pq;
  t->variance[1 + LAB_CONSTANTS][i] = aw_pq;
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    const int green = pairs_varies_more(w->variance[k], w->variance_pq),
              wider = pairs_varies_more(aw[k], aw_pq),
              wider_q = pairs_varies_more(aw_q[k], aw_pq_q);
    t->variance[1 + k][i] = w->variance[k];
    t->variance[2 + LAB_CONSTANTS + k][i] = aw[k];
    t->holds[k] += w->constant[k] <= theorem;
    t->green[k] += green;
    t->wider[k] += wider;
    t->disagree[k] += green != wider;
    t->wider_q[k] += wider_q;
    t->disagree_q[k] += green != wider_q;
    if (green) t->highest_green[k] = fmax(t->highest_green[k], w->kl);
    t->constant[k] = fmax(t->constant[k], w->constant[k]);
  }
}

gl_status pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r,
                          size_t n, gl_error *err) {
  lab_weights_stats w;
  double pq, group[LAB_CONSTANTS], pq_q, group_q[LAB_CONSTANTS];
  double *a = calloc(n, sizeof *a);
  gl_status status = a != NULL ? make_room(t, err) : gl_fail_memory(err, "an advantage");
  if (status == GL_OK) {
    lab_theory_discrete(p, q, n, &w);
    lab_theory_advantage(LAB_ADVANTAGE_P, p, q, r, n, a);
    lab_theory_advantage_variance(p, q, a, n, &pq, group);
    lab_theory_advantage(LAB_ADVANTAGE_Q, p, q, r, n, a);
    lab_theory_advantage_variance(p, q, a, n, &pq_q, group_q);
    if (isfinite(w.variance_pq) && isfinite(w.kl))
      count(t, &w, (double)n * (double)n + 1, pq, group, pq_q, group_q);
    else
      ++t->infinite;
  }
  free(a);
  return status;
}

/* --- theorems --- */

gl_status theory_read(theory_spec *s, const cfg_doc *doc, gl_error *err) {
  cfg_reader r;
  *s = (theory_spec){0};
  cfg_begin_at(&r, cfg_root(doc), "", "recipe", err);
  (void)cfg_string(&r, "name", "theory");
  (void)field_text(&r, "description");
  s->seed = (uint64_t)field_whole(&r, "seed");
  s->n_outcomes = field_numbers(&r, "outcomes", &s->outcomes);
  s->n_vocabularies = field_numbers(&r, "vocabularies", &s->vocabularies);
  s->n_lengths = field_numbers(&r, "lengths", &s->lengths);
  s->pairs = field_count(&r, "pairs");
  s->starts = field_count(&r, "starts");
  s->search_outcomes = field_count(&r, "search_outcomes");
  return cfg_end(&r);
}

void theory_fini(theory_spec *s) {
  free(s->outcomes);
  free(s->vocabularies);
  free(s->lengths);
  *s = (theory_spec){0};
}

/* Theorem 1 --- */

static cJSON *object_in(cJSON *array) {
  cJSON *o = cJSON_CreateObject();
  if (o != NULL && cJSON_AddItemToArray(array, o)) return o;
  cJSON_Delete(o);
  return NULL;
}

static int add_constants(cJSON *to, const theory_spec *s) {
  cJSON *list = cJSON_AddArrayToObject(to, "constants");
  for (size_t i = 0; i < s->n_outcomes; ++i) {
    const double n = s->outcomes[i];
    cJSON *o = list != NULL ? object_in(list) : NULL;
    double at[LAB_CONSTANTS];
    if (o == NULL) return 0;
    json_add_number(o, "outcomes", n);
    json_add_number(o, "theorem", n * n + 1);
    for (int k = 0; k < LAB_CONSTANTS; ++k)
      json_add_number(o, lab_constant_names[k],
                      lab_theory_smallest_constant(n, (lab_constant)k, &at[k]));
    json_add_number(o, "q_of_worst", at[LAB_EXPECTED]);
    json_add_number(o, "growth", lab_theory_smallest_constant(n, LAB_EXPECTED, NULL) / pow(n, 1.5));
  }
  return list != NULL;
}

static gl_status add_crossings(cJSON *to, gl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(to, "gaussian_crossings");
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    double d2 = 0, kl = 0;
    lab_weights_stats here;
    cJSON *o = list != NULL ? object_in(list) : NULL;
    gl_status status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl, err);
    if (status != GL_OK) return status;
    if (o == NULL) return gl_fail_memory(err, "the numbers");
    lab_theory_gaussian(0, &here);
    json_add_string(o, "denominator", lab_constant_names[k]);
    json_add_number(o, "distance_squared", d2);
    json_add_number(o, "kl", kl);
    json_add_number(o, "variance_on_policy", here.variance[k]);
  }
  return GL_OK;
}

/* A family of random pairs. */
typedef struct family {
  const char *name;
  double alpha, apart;
  size_t n;
} family;

/* Theorem 3: medians of the exact variances of A w next to those of w. A mean would be that of the
 * few pairs with the smallest q. */
static gl_status add_variances(cJSON *list, const family *f, const pairs_tally *t, gl_error *err) {
  cJSON *o = object_in(list);
  if (o == NULL) return gl_fail_memory(err, "the numbers");
  json_add_string(o, "family", f->name);
  json_add_number(o, "outcomes", (double)f->n);
  for (int k = 0; k < PAIRS_VARIANCES; ++k) {
    gsl_sort(t->variance[k], 1, t->pairs);
    json_add_number(o, pairs_variance_names[k],
                    gsl_stats_median_from_sorted_data(t->variance[k], 1, t->pairs));
  }
  return GL_OK;
}

/* Random pairs with rewards 1 and 0 in turn. */
static gl_status draw_pairs(pairs_tally *t, const family *f, const theory_spec *s, size_t number,
                            gl_error *err) {
  double p[64], q[64], r[64];
  gl_status status = GL_OK;
  for (size_t y = 0; y < f->n; ++y) r[y] = y % 2 == 0;
  for (size_t i = 0; i < s->pairs && status == GL_OK; ++i) {
    status = lab_theory_random_pair(f->n, f->alpha, f->apart, s->seed,
                                    (uint64_t)(number + 1) << 48 | i, p, q, err);
    if (status == GL_OK) status = pairs_tally_add(t, p, q, r, f->n, err);
  }
  return status;
}

static gl_status tell_family(cJSON *list, cJSON *variances, const family *f, const pairs_tally *t,
                             gl_error *err) {
  cJSON *o = object_in(list);
  if (o == NULL) return gl_fail_memory(err, "the numbers");
  const double pairs = (double)t->pairs;
  json_add_string(o, "family", f->name);
  json_add_number(o, "outcomes", (double)f->n);
  json_add_number(o, "kl_mean", t->kl / pairs);
  json_add_number(o, "theorem", (double)(f->n * f->n + 1));
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    cJSON *d = cJSON_AddObjectToObject(o, lab_constant_names[k]);
    if (d == NULL) return gl_fail_memory(err, "the numbers");
    json_add_number(d, "largest_constant", t->constant[k]);
    json_add_number(d, "share_w_varies_more", t->green[k] / pairs);
    json_add_number(d, "highest_kl_w_varies_more", t->green[k] > 0 ? t->highest_green[k] : NAN);
    json_add_number(d, "share_aw_varies_more", t->wider[k] / pairs);
    json_add_number(d, "share_w_and_aw_disagree", t->disagree[k] / pairs);
  }
  return add_variances(variances, f, t, err);
}

static gl_status add_family(cJSON *list, cJSON *variances, const family *f, const theory_spec *s,
                            size_t number, gl_error *err) {
  pairs_tally t;
  pairs_tally_init(&t);
  gl_status status = draw_pairs(&t, f, s, number, err);
  if (status == GL_OK && t.pairs == 0)
    status = gl_fail(err, GL_ENUMERIC, "no random pair of the family '%s' has a finite variance",
                     f->name);
  if (status == GL_OK) status = tell_family(list, variances, f, &t, err);
  pairs_tally_fini(&t);
  return status;
}

static gl_status add_families(cJSON *to, cJSON *variances, const theory_spec *s, gl_error *err) {
  static const family families[] = {{"bernoulli, independent", 1, -1, 2},
                                    {"bernoulli, near", 1, 0.3, 2},
                                    {"dirichlet 1, independent", 1, -1, 16},
                                    {"dirichlet 1, near", 1, 0.3, 16},
                                    {"peaked (dirichlet 0.1), near", 0.1, 0.3, 64},
                                    {"peaked (dirichlet 0.1), far", 0.1, 1.5, 64},
                                    {"dirichlet 10, near", 10, 0.1, 64},
                                    {"dirichlet 0.1, independent", 0.1, -1, 4},
                                    {"dirichlet 0.1, independent", 0.1, -1, 16},
                                    {"dirichlet 0.1, independent", 0.1, -1, 64}};
  cJSON *list = cJSON_AddArrayToObject(to, "families");
  gl_status status = list != NULL ? GL_OK : gl_fail_memory(err, "the numbers");
  for (size_t i = 0; i < sizeof families / sizeof families[0] && status == GL_OK; ++i)
    status = add_family(list, variances, &families[i], s, i, err);
  return status;
}

/* Peaked token distributions, T of them independent: V^T responses. */
static gl_status add_products(cJSON *to, const theory_spec *s, gl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(to, "products");
  double *p = calloc(4096, 2 * sizeof *p), *q = p != NULL ? p + 4096 : NULL;
  gl_status status = list == NULL || p == NULL ? gl_fail_memory(err, "the numbers") : GL_OK;
  for (size_t v = 0; v < s->n_vocabularies && status == GL_OK; ++v) {
    const size_t vocabulary = (size_t)s->vocabularies[v];
    status =
        lab_theory_random_pair(vocabulary, 0.3, 0.3, s->seed, UINT64_C(99) << 48 | v, p, q, err);
    for (size_t i = 0; i < s->n_lengths && status == GL_OK; ++i) {
      lab_weights_stats w;
      cJSON *o = object_in(list);
      if (o == NULL) status = gl_fail_memory(err, "the numbers");
      lab_theory_product(p, q, vocabulary, (size_t)s->lengths[i], &w);
      json_add_number(o, "vocabulary", s->vocabularies[v]);
      json_add_number(o, "length", s->lengths[i]);
      json_add_number(o, "kl", w.kl);
      json_add_number(o, "variance_pq", w.variance_pq);
      json_add_number(o, "log10_theorem", 2 * s->lengths[i] * log10(s->vocabularies[v]));
      for (int k = 0; k < LAB_CONSTANTS; ++k) {
        cJSON *d = cJSON_AddObjectToObject(o, lab_constant_names[k]);
        json_add_number(d, "variance", w.variance[k]);
        json_add_number(d, "constant", w.constant[k]);
      }
    }
  }
  free(p);
  return status;
}

/* Theorems 2 and 3 --- */

static gl_status add_searches(cJSON *to, const theory_spec *s, gl_error *err) {
  for (int kind = 0; kind < LAB_ADVANTAGES; ++kind)
    for (size_t n = 2; n <= s->search_outcomes; ++n) {
      lab_worst w;
      gl_status status = lab_theory_search((lab_advantage)kind, n, s->starts, s->seed, &w, err);
      cJSON *o = status == GL_OK ? object_in(to) : NULL;
      if (status != GL_OK) return status;
      if (o == NULL) return gl_fail_memory(err, "the numbers");
      json_add_string(o, "advantage", lab_advantage_names[kind]);
      json_add_number(o, "outcomes", (double)n);
      json_add_number(o, "violations", (double)w.violations);
      json_add_number(o, "starts", (double)s->starts);
      json_add_number(o, "worst_ratio", w.ratio);
      json_add_number(o, "left", w.value.left);
      json_add_number(o, "right", w.value.right);
      json_add_number(o, "max_advantage", w.value.max_advantage);
      json_add_numbers(o, "p", w.p, n);
      json_add_numbers(o, "q", w.q, n);
      json_add_numbers(o, "reward", w.reward, n);
      json_add_numbers(o, "a", w.advantage, n);
    }
  return GL_OK;
}

gl_status theory_run(cJSON **out, const theory_spec *s, gl_error *err) {
  cJSON *document = cJSON_CreateObject();
  cJSON *one = document != NULL ? cJSON_AddObjectToObject(document, "theorem1") : NULL;
  cJSON *two = document != NULL ? cJSON_AddArrayToObject(document, "theorem2") : NULL;
  cJSON *three = document != NULL ? cJSON_AddArrayToObject(document, "theorem3") : NULL;
  gl_status status = one == NULL || two == NULL || three == NULL || !add_constants(one, s)
                         ? gl_fail_memory(err, "the numbers")
                         : GL_OK;
  if (status == GL_OK) status = add_crossings(one, err);
  if (status == GL_OK) status = add_families(one, three, s, err);
  if (status == GL_OK) status = add_products(one, s, err);
  if (status == GL_OK) status = add_searches(two, s, err);
  if (status != GL_OK) {
    cJSON_Delete(document);
    document = NULL;
  }
  *out = document;
  return status;
}

/* --- text --- */

static double number(const cJSON *o, const char *key) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);
  double value = NAN;
  if (cJSON_IsRaw(item)) value = strtod(item->valuestring, NULL);
  return cJSON_IsNumber(item) ? item->valuedouble : value;
}

static const char *word(const cJSON *o, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
  return text != NULL ? text : "";
}

/* A number in so many columns; a dash where there is none. */
static void print_cell(double value, int columns, FILE *to) {
  if (isfinite(value))
    fprintf(to, " %*.4g", columns, value);
  else
    fprintf(to, " %*s", columns, isinf(value) ? "inf" : "-");
}

static void print_list(const cJSON *o, const char *key, FILE *to) {
  const cJSON *item;
  fprintf(to, "    %-7s", key);
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(o, key))
      fprintf(to, " %.6g", cJSON_IsRaw(item) ? strtod(item->valuestring, NULL) : item->valuedouble);
  fputc('\n', to);
}

static void print_theorem1(const cJSON *one, FILE *to) {
  const cJSON *o;
  fprintf(to,
          "Theorem 1: Var[p/q] - Var[p/D] >= e^KL - c. The smallest valid c on n outcomes\n"
          "%16s %14s %16s %16s %10s\n",
          "n", "theorem n^2+1", "D = E_q q", "D as computed", "c/n^1.5");
  cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(one, "constants")) fprintf(
      to, "%16.10g %14.6g %16.8g %16.8g %10.4f\n", number(o, "outcomes"), number(o, "theorem"),
      number(o, "expected"), number(o, "computed"), number(o, "growth"));
  fprintf(to, "\nUnit normals: p/D varies less beyond\n");
  cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(one, "gaussian_crossings"))
      fprintf(to, "  D %-9s d^2 = %.6f, KL = %.6f; on-policy variance %.4f against 0\n",
              word(o, "denominator"), number(o, "distance_squared"), number(o, "kl"),
              number(o, "variance_on_policy"));
  fprintf(to,
          "\nRandom pairs (shares in which the group weight varies more than p/q)\n"
          "%-30s %4s %8s | %9s %9s %9s %9s | %9s\n",
          "", "n", "mean KL", "w", "up to KL", "A w", "disagree", "largest c");
  cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(
                            one, "families")) for (int k = 0; k < LAB_CONSTANTS; ++k) {
    const cJSON *d = cJSON_GetObjectItemCaseSensitive(o, lab_constant_names[k]);
    fprintf(to, "%-30s %4g %8.3f | %9.3f", word(o, "family"), number(o, "outcomes"),
            number(o, "kl_mean"), number(d, "share_w_varies_more"));
    print_cell(number(d, "highest_kl_w_varies_more"), 9, to);
    fprintf(to, " %9.3f %9.3f | %9.4g  D %s\n", number(d, "share_aw_varies_more"),
            number(d, "share_w_and_aw_disagree"), number(d, "largest_constant"),
            lab_constant_names[k]);
  }
  fprintf(to,
          "\nV^T products of peaked token laws: needed c for both denominators\n"
          "%6s %6s %9s %12s %14s %12s %12s %14s\n",
          "V", "T", "KL", "Var[p/q]", "Var[p/E_q q]", "D = E_q q", "D computed", "log10 (n^2+1)");
  cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(one, "products")) {
    const cJSON *d = cJSON_GetObjectItemCaseSensitive(o, "expected");
    const cJSON *e = cJSON_GetObjectItemCaseSensitive(o, "computed");
    fprintf(to, "%6g %6g %9.4f", number(o, "vocabulary"), number(o, "length"), number(o, "kl"));
    print_cell(number(o, "variance_pq"), 12, to);
    print_cell(number(d, "variance"), 14, to);
    print_cell(number(d, "constant"), 12, to);
    print_cell(number(e, "constant"), 12, to);
    fprintf(to, " %14.1f\n", number(o, "log10_theorem"));
  }
}

static void print_theorem3(const cJSON *three, FILE *to) {
  const cJSON *o;
  fprintf(to,
          "\nTheorem 3: medians over the random pairs of the exact variances, A = r - E_p r\n"
          "%-30s %4s %11s %11s %11s | %11s %11s %11s\n",
          "", "n", "Var p/q", "p/E_q q", "D computed", "Var A p/q", "A p/E_q q", "D computed");
  cJSON_ArrayForEach(o, three) {
    fprintf(to, "%-30s %4g", word(o, "family"), number(o, "outcomes"));
    for (int k = 0; k < PAIRS_VARIANCES; ++k) {
      if (k == 1 + LAB_CONSTANTS) fputs(" |", to);
      print_cell(number(o, pairs_variance_names[k]), 11, to);
    }
    fputc('\n', to);
  }
}

void theory_print(const cJSON *document, FILE *to) {
  const cJSON *o;
  print_theorem1(cJSON_GetObjectItemCaseSensitive(document, "theorem1"), to);
  fprintf(to,
          "\nTheorem 2: |E_p A - E_q[(p/E_q q) A]| < |p|/|q|. Largest ratio of the sides found; "
          "above 1 it is violated\n");
  cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(document, "theorem2")) {
    fprintf(to, "  A = %-18s n = %g: ratio %.6g (%g of %g starts above 1), max |A| = %.4g\n",
            word(o, "advantage"), number(o, "outcomes"), number(o, "worst_ratio"),
            number(o, "violations"), number(o, "starts"), number(o, "max_advantage"));
    if (number(o, "worst_ratio") <= 1) continue;
    print_list(o, "p", to);
    print_list(o, "q", to);
    print_list(o, "a", to);
  }
  print_theorem3(cJSON_GetObjectItemCaseSensitive(document, "theorem3"), to);
}

/* --- pairs of training paths --- */

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

/* --- text of the training paths --- */

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

static void print_paths(const cJSON *list, FILE *to) {
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
  print_paths(cJSON_GetObjectItemCaseSensitive(document, "training"), to);
  print_paths(cJSON_GetObjectItemCaseSensitive(document, "together"), to);
}
