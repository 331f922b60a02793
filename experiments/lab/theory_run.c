/* Computes and prints what `gepolab lab theory` says of the paper's theorems. */
#include "experiments/lab/theory_run.h"

#include "core/config/fields.h"
#include "experiments/lab/pairs_tally.h"
#include "experiments/lab/recipe.h"
#include "toy/lab/theory.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

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
