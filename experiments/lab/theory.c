/* `gepolab lab theory`: the paper's theorems on given, random and trained pairs of distributions.
 */
#include "experiments/lab/theory.h"
#include "core/base/thread_pool.h"
#include "core/config/fields.h"
#include "experiments/base/memory.h"
#include "experiments/lab/recipe.h"
#include "experiments/lab/training.h"
#include "toy/lab/theorems.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- pairs of distributions --- */

void pairs_tally_init(pairs_tally *t) {
  *t = (pairs_tally){0};
  for (int k = 0; k < LAB_CONSTANTS; ++k) t->constant[k] = -INFINITY;
}

void pairs_tally_fini(pairs_tally *t) {
  for (int k = 0; k < PAIRS_VARIANCES; ++k) free(t->variance[k]);
  free(t->kl_of);
  *t = (pairs_tally){0};
}

/* Grows the arrays to hold n more pairs. */
static void reserve_pairs(pairs_tally *t, size_t n) {
  size_t room = t->room;
  MUST_RESERVE(t->kl_of, room, n, "pairs of distributions");
  for (int k = 0; k < PAIRS_VARIANCES; ++k) {
    room = t->room;
    MUST_RESERVE(t->variance[k], room, n, "pairs of distributions");
  }
  t->room = room;
}

/* Returns 1 if the first variance is larger by more than rounding error. If q is uniform both
 * weights are equal; if q is nearly deterministic both variances are about 0. */
static int pairs_varies_more(double one, double other) {
  return one > other * (1 + 1e-12) + 1e-15;
}

/* Adds a pair's statistics to the tally. aw_pq and aw are the variances of A w with A = r - E_p r,
 * aw_pq_q and aw_q those with A = r - E_q r. */
static void tally_pair(pairs_tally *t, const lab_weights_stats *w, double theorem, double aw_pq,
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

void pairs_tally_add(pairs_tally *t, const double *p, const double *q, const double *r, size_t n) {
  lab_weights_stats w;
  double pq, group[LAB_CONSTANTS], pq_q, group_q[LAB_CONSTANTS];
  double *a = MUST_ARRAY(double, n, "an advantage");
  reserve_pairs(t, t->pairs + 1);
  lab_theory_discrete(p, q, n, &w);
  lab_theory_advantage(LAB_ADVANTAGE_P, p, q, r, n, a);
  lab_theory_advantage_variance(p, q, a, n, &pq, group);
  lab_theory_advantage(LAB_ADVANTAGE_Q, p, q, r, n, a);
  lab_theory_advantage_variance(p, q, a, n, &pq_q, group_q);
  if (isfinite(w.variance_pq) && isfinite(w.kl))
    tally_pair(t, &w, (double)n * (double)n + 1, pq, group, pq_q, group_q);
  else
    ++t->infinite;
  free(a);
}

static double sorted_median(double *values, size_t n) {
  if (n == 0) return NAN;
  gsl_sort(values, 1, n);
  return gsl_stats_median_from_sorted_data(values, 1, n);
}

/* --- theorems --- */

gl_status theory_read(theory_spec *s, const cfg_doc *doc, gl_error *err) {
  cfg_reader r;
  *s = (theory_spec){0};
  cfg_begin_at(&r, cfg_root(doc), "", "recipe", err);
  (void)cfg_string(&r, "name", "theory");
  (void)field_text(&r, "description");
  s->seed = (uint64_t)field_integer(&r, "seed");
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

/* --- Theorem 1 --- */

static void add_constants(table *list, const theory_spec *s) {
  for (size_t i = 0; i < s->n_outcomes; ++i) {
    const double n = s->outcomes[i];
    double at[LAB_CONSTANTS];
    table_row(list);
    table_real(list, n);
    table_real(list, n * n + 1);
    for (int k = 0; k < LAB_CONSTANTS; ++k)
      table_real(list, lab_theory_smallest_constant(n, (lab_constant)k, &at[k]));
    table_real(list, at[LAB_EXPECTED]);
    table_real(list, lab_theory_smallest_constant(n, LAB_EXPECTED, NULL) / pow(n, 1.5));
  }
}

static gl_status add_crossings(table *list, table *document, gl_error *err) {
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    double d2 = 0, kl = 0;
    lab_weights_stats here;
    gl_status status = lab_theory_gaussian_crossing((lab_constant)k, &d2, &kl, err);
    if (status != GL_OK) return status;
    lab_theory_gaussian(0, &here);
    table_row(list);
    table_text(list, lab_constant_names[k]);
    table_real(list, d2);
    table_real(list, kl);
    table_real(list, here.variance[k]);
    table_line(document, "  D %-9s d^2 = %.6f, KL = %.6f; on-policy variance %.4f against 0",
               lab_constant_names[k], d2, kl, here.variance[k]);
  }
  return GL_OK;
}

/* A family of random pairs of distributions on n outcomes: alpha and apart are the parameters of
 * lab_random_pair. */
typedef struct family {
  const char *name;
  double alpha, apart;
  size_t n;
} family;

/* Output tables of the families: JSON, printed text, Theorem 3. */
typedef struct family_tables {
  table *families, *rows, *variances, *variance_rows;
} family_tables;

/* Theorem 3: medians of the exact variances of A w next to those of w. A mean would be dominated by
 * the few pairs with the smallest q. */
static void add_variances(const family_tables *to, const family *f, const pairs_tally *t) {
  table_row(to->variances);
  table_text(to->variances, f->name);
  table_count(to->variances, f->n);
  for (int k = 0; k < PAIRS_VARIANCES; ++k) {
    const double median = sorted_median(t->variance[k], t->pairs);
    const bool with_advantage = k > LAB_CONSTANTS;
    table_real(to->variances, median);
    if (k == 0 || k == 1 + LAB_CONSTANTS) {
      table_row(to->variance_rows);
      table_text(to->variance_rows, with_advantage ? "  times A" : f->name);
      if (with_advantage)
        table_text(to->variance_rows, "");
      else
        table_textf(to->variance_rows, "%zu", f->n);
    }
    table_real(to->variance_rows, median);
  }
}

/* Samples random pairs of distributions. Rewards are 1 for even outcomes and 0 for odd ones. */
static gl_status draw_pairs(pairs_tally *t, const family *f, const theory_spec *s, size_t number,
                            gl_error *err) {
  double p[64], q[64], r[64];
  gl_status status = GL_OK;
  for (size_t y = 0; y < f->n; ++y) r[y] = y % 2 == 0;
  for (size_t i = 0; i < s->pairs && status == GL_OK; ++i) {
    const lab_random_pair pair = {f->n, f->alpha, f->apart, s->seed,
                                  (uint64_t)(number + 1) << 48 | i};
    status = lab_theory_random_pair(&pair, p, q, err);
    if (status == GL_OK) pairs_tally_add(t, p, q, r, f->n);
  }
  return status;
}

/* Numbers of one denominator, in the order of FAMILY_COLUMNS. */
enum { FAMILY_NUMBERS = 5 };
static void family_numbers(double number[FAMILY_NUMBERS], const pairs_tally *t, int k) {
  const double pairs = (double)t->pairs;
  number[0] = t->constant[k];
  number[1] = t->green[k] / pairs;
  number[2] = t->green[k] > 0 ? t->highest_green[k] : NAN;
  number[3] = t->wider[k] / pairs;
  number[4] = t->disagree[k] / pairs;
}

static void add_family_rows(const family_tables *to, const family *f, const pairs_tally *t) {
  const double kl = t->kl / (double)t->pairs;
  table_row(to->families);
  table_text(to->families, f->name);
  table_count(to->families, f->n);
  table_real(to->families, kl);
  table_count(to->families, f->n * f->n + 1);
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    double number[FAMILY_NUMBERS];
    family_numbers(number, t, k);
    for (size_t i = 0; i < FAMILY_NUMBERS; ++i) table_real(to->families, number[i]);
    table_row(to->rows);
    table_textf(to->rows, k == 0 ? "%s" : "  D %s", k == 0 ? f->name : lab_constant_names[k]);
    if (k == 0)
      table_textf(to->rows, "%zu", f->n), table_textf(to->rows, "%.3f", kl);
    else
      table_text(to->rows, ""), table_text(to->rows, "");
    for (size_t i = 1; i < FAMILY_NUMBERS; ++i) table_real(to->rows, number[i]);
    table_real(to->rows, number[0]);
  }
}

static gl_status add_family(const family_tables *to, const family *f, const theory_spec *s,
                            size_t number, gl_error *err) {
  pairs_tally t;
  pairs_tally_init(&t);
  gl_status status = draw_pairs(&t, f, s, number, err);
  if (status == GL_OK && t.pairs == 0)
    status = gl_fail(err, GL_ENUMERIC, "no random pair of the family '%s' has a finite variance",
                     f->name);
  if (status == GL_OK) {
    add_family_rows(to, f, &t);
    add_variances(to, f, &t);
  }
  pairs_tally_fini(&t);
  return status;
}

static gl_status add_families(const family_tables *to, const theory_spec *s, gl_error *err) {
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
  gl_status status = GL_OK;
  for (size_t i = 0; i < sizeof families / sizeof families[0] && status == GL_OK; ++i)
    status = add_family(to, &families[i], s, i, err);
  return status;
}

/* Peaked token distributions with T independent tokens: V^T responses. */
static gl_status add_products(table *list, const theory_spec *s, gl_error *err) {
  double *p = MUST_ARRAY(double, 2 * 4096, "a token's distributions"), *q = p + 4096;
  gl_status status = GL_OK;
  for (size_t v = 0; v < s->n_vocabularies && status == GL_OK; ++v) {
    const size_t vocabulary = (size_t)s->vocabularies[v];
    const lab_random_pair pair = {vocabulary, 0.3, 0.3, s->seed, UINT64_C(99) << 48 | v};
    status = lab_theory_random_pair(&pair, p, q, err);
    for (size_t i = 0; i < s->n_lengths && status == GL_OK; ++i) {
      lab_weights_stats w;
      lab_theory_product(p, q, vocabulary, (size_t)s->lengths[i], &w);
      table_row(list);
      table_real(list, s->vocabularies[v]);
      table_real(list, s->lengths[i]);
      table_real(list, w.kl);
      table_real(list, w.variance_pq);
      table_real(list, 2 * s->lengths[i] * log10(s->vocabularies[v]));
      for (int k = 0; k < LAB_CONSTANTS; ++k) {
        table_real(list, w.variance[k]);
        table_real(list, w.constant[k]);
      }
    }
  }
  free(p);
  return status;
}

/* --- Theorem 2 --- */

static void print_distribution(table *document, const char *key, const double *p, size_t n) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = must_have(open_memstream(&text, &size), "a line of numbers");
  for (size_t i = 0; i < n; ++i) fprintf(to, " %.6g", p[i]);
  fclose(to);
  table_line(document, "    %-7s%s", key, text);
  free(text);
}

static gl_status add_searches(table *to, table *document, const theory_spec *s, gl_error *err) {
  for (int kind = 0; kind < LAB_ADVANTAGES; ++kind)
    for (size_t n = 2; n <= s->search_outcomes; ++n) {
      lab_worst w;
      gl_status status = lab_theory_search((lab_advantage)kind, n, s->starts, s->seed, &w, err);
      if (status != GL_OK) return status;
      table_row(to);
      table_text(to, lab_advantage_names[kind]);
      table_count(to, n);
      table_count(to, w.violations);
      table_count(to, s->starts);
      table_real(to, w.ratio);
      table_real(to, w.value.left);
      table_real(to, w.value.right);
      table_real(to, w.value.max_advantage);
      table_numbers(to, w.p, n);
      table_numbers(to, w.q, n);
      table_numbers(to, w.reward, n);
      table_numbers(to, w.advantage, n);
      table_line(document, "  A = %-18s n = %zu: ratio %.4g (%zu/%zu above 1), max |A| %.4g",
                 lab_advantage_names[kind], n, w.ratio, w.violations, s->starts,
                 w.value.max_advantage);
      if (w.ratio <= 1) continue;
      print_distribution(document, "p", w.p, n);
      print_distribution(document, "q", w.q, n);
      print_distribution(document, "a", w.advantage, n);
    }
  return GL_OK;
}

/* --- the document --- */

#define PLAIN(NAME, TYPE, HEAD, WIDTH, FORMAT)                                                     \
  { .name = NAME, .type = TYPE, .head = HEAD, .width = WIDTH, .format = FORMAT }
#define COLUMN_COUNT(columns) (sizeof(columns) / sizeof *(columns))

static const table_column constant_columns[] = {
    PLAIN("outcomes", TABLE_REAL, "n", 16, "%.10g"),
    PLAIN("theorem", TABLE_REAL, "theorem n^2+1", 14, "%.6g"),
    PLAIN("expected", TABLE_REAL, "D = E_q q", 16, "%.8g"),
    PLAIN("computed", TABLE_REAL, "D as computed", 16, "%.8g"),
    TABLE_KEY("q_of_worst", TABLE_REAL),
    PLAIN("growth", TABLE_REAL, "c/n^1.5", 10, "%.4f")};
static const table_column crossing_columns[] = {
    TABLE_KEY("denominator", TABLE_TEXT), TABLE_KEY("distance_squared", TABLE_REAL),
    TABLE_KEY("kl", TABLE_REAL), TABLE_KEY("variance_on_policy", TABLE_REAL)};
#define FAMILY_COLUMNS(D)                                                                          \
  TABLE_KEY(D "/largest_constant", TABLE_REAL), TABLE_KEY(D "/share_w_varies_more", TABLE_REAL),   \
      TABLE_KEY(D "/highest_kl_w_varies_more", TABLE_REAL),                                        \
      TABLE_KEY(D "/share_aw_varies_more", TABLE_REAL),                                            \
      TABLE_KEY(D "/share_w_and_aw_disagree", TABLE_REAL)
static const table_column family_columns[] = {
    TABLE_KEY("family", TABLE_TEXT),  TABLE_KEY("outcomes", TABLE_INTEGER),
    TABLE_KEY("kl_mean", TABLE_REAL), TABLE_KEY("theorem", TABLE_INTEGER),
    FAMILY_COLUMNS("expected"),       FAMILY_COLUMNS("computed")};
static const table_column family_row_columns[] = {PLAIN(NULL, TABLE_TEXT, "", -28, NULL),
                                                  PLAIN(NULL, TABLE_TEXT, "n", 3, NULL),
                                                  PLAIN(NULL, TABLE_TEXT, "KL", 6, NULL),
                                                  PLAIN(NULL, TABLE_REAL, "w", 5, "%.3f"),
                                                  PLAIN(NULL, TABLE_REAL, "up to KL", 8, "%.4g"),
                                                  PLAIN(NULL, TABLE_REAL, "A w", 5, "%.3f"),
                                                  PLAIN(NULL, TABLE_REAL, "disagree", 8, "%.3f"),
                                                  PLAIN(NULL, TABLE_REAL, "largest c", 10, "%.4g")};
static const table_column product_columns[] = {
    PLAIN("vocabulary", TABLE_REAL, "V", 5, "%g"),
    PLAIN("length", TABLE_REAL, "T", 4, "%g"),
    PLAIN("kl", TABLE_REAL, "KL", 8, "%.4f"),
    PLAIN("variance_pq", TABLE_REAL, "Var[p/q]", 9, "%.4g"),
    {.name = "log10_theorem",
     .type = TABLE_REAL,
     .head = "log10(n^2+1)",
     .width = 12,
     .format = "%.1f",
     .order = 1},
    PLAIN("expected/variance", TABLE_REAL, "Var[p/E_q q]", 12, "%.4g"),
    PLAIN("expected/constant", TABLE_REAL, "D = E_q q", 9, "%.4g"),
    TABLE_KEY("computed/variance", TABLE_REAL),
    PLAIN("computed/constant", TABLE_REAL, "D computed", 10, "%.4g")};
static const table_column search_columns[] = {
    TABLE_KEY("advantage", TABLE_TEXT),     TABLE_KEY("outcomes", TABLE_INTEGER),
    TABLE_KEY("violations", TABLE_INTEGER), TABLE_KEY("starts", TABLE_INTEGER),
    TABLE_KEY("worst_ratio", TABLE_REAL),   TABLE_KEY("left", TABLE_REAL),
    TABLE_KEY("right", TABLE_REAL),         TABLE_KEY("max_advantage", TABLE_REAL),
    TABLE_KEY("p", TABLE_NUMBERS),          TABLE_KEY("q", TABLE_NUMBERS),
    TABLE_KEY("reward", TABLE_NUMBERS),     TABLE_KEY("a", TABLE_NUMBERS)};
static const table_column variance_columns[] = {
    TABLE_KEY("family", TABLE_TEXT),      TABLE_KEY("outcomes", TABLE_INTEGER),
    TABLE_KEY("w_pq", TABLE_REAL),        TABLE_KEY("w_expected", TABLE_REAL),
    TABLE_KEY("w_computed", TABLE_REAL),  TABLE_KEY("aw_pq", TABLE_REAL),
    TABLE_KEY("aw_expected", TABLE_REAL), TABLE_KEY("aw_computed", TABLE_REAL)};
static const table_column variance_row_columns[] = {
    PLAIN(NULL, TABLE_TEXT, "", -30, NULL), PLAIN(NULL, TABLE_TEXT, "n", 4, NULL),
    PLAIN(NULL, TABLE_REAL, "Var p/q", 11, "%.4g"), PLAIN(NULL, TABLE_REAL, "p/E_q q", 11, "%.4g"),
    PLAIN(NULL, TABLE_REAL, "D computed", 11, "%.4g")};

static table *plain_rows(table *to, const char *name, const table_column *columns, size_t n) {
  table *t = table_rows(table_field(to, name), columns, n);
  table_plain(t, 0);
  return t;
}

static gl_status theory_fill(table *document, const theory_spec *s, gl_error *err) {
  table *one = table_object(table_field(document, "theorem1"));
  table *two =
      table_rows(table_field(document, "theorem2"), search_columns, COLUMN_COUNT(search_columns));
  family_tables families = {
      .variances = table_rows(table_field(document, "theorem3"), variance_columns,
                              COLUMN_COUNT(variance_columns)),
      .variance_rows =
          plain_rows(document, NULL, variance_row_columns, COLUMN_COUNT(variance_row_columns))};
  table_order(document, 1); /* the printed tables of Theorem 2 come first */
  table *constants = plain_rows(one, "constants", constant_columns, COLUMN_COUNT(constant_columns));
  table *crossings = table_rows(table_field(one, "gaussian_crossings"), crossing_columns,
                                COLUMN_COUNT(crossing_columns));
  table_title(constants, "Theorem 1: Var[p/q] - Var[p/D] >= e^KL - c. The smallest valid c on n "
                         "outcomes");
  add_constants(constants, s);
  table_line(one, "%s", "");
  table_line(one, "Unit normals: p/D varies less beyond");
  gl_status status = add_crossings(crossings, one, err);
  if (status != GL_OK) return status;
  table_line(one, "%s", "");
  families.families =
      table_rows(table_field(one, "families"), family_columns, COLUMN_COUNT(family_columns));
  families.rows = plain_rows(one, NULL, family_row_columns, COLUMN_COUNT(family_row_columns));
  table_title(families.rows,
              "Random pairs: fractions in which the group weight varies more than p/q");
  table_line(one, "first rows: D expected; KL: the mean; up to KL: the largest where w does");
  table_title(families.variance_rows,
              "Theorem 3: medians over the random pairs of the exact variances, A = r - E_p r");
  status = add_families(&families, s, err);
  if (status != GL_OK) return status;
  table_line(one, "%s", "");
  table *products = plain_rows(one, "products", product_columns, COLUMN_COUNT(product_columns));
  table_title(products,
              "V^T products of peaked token distributions: needed c for both denominators");
  status = add_products(products, s, err);
  if (status != GL_OK) return status;
  table_line(document, "%s", "");
  table_line(document,
             "Theorem 2: |E_p A - E_q[(p/E_q q) A]| < |p|/|q|. Largest ratio of the sides");
  table_line(document, "found, and how many of the starts end above 1, where it is violated");
  status = add_searches(two, document, s, err);
  table_line(document, "%s", "");
  return status;
}

gl_status theory_run(table **out, const theory_spec *s, gl_error *err) {
  *out = table_document();
  return theory_fill(*out, s, err);
}

/* --- pairs from training paths --- */

/* The tally of the pairs of one algorithm at one staleness, and the learning rate used. */
typedef struct path_pairs {
  double lr;
  pairs_tally tally;
} path_pairs;

typedef struct paths_job {
  const lab_recipe *r;
  path_pairs *cells; /* [n_algorithms * n_ages] */
  lab_counter counter;
} paths_job;

typedef struct collecting {
  const lab_recipe *r;
  size_t staleness;
  pairs_tally *to;
} collecting;

/* Computes the distribution of prompt x's responses. logp[max_responses * max_length] is scratch.
 */
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

/* Adds the pairs of an update, one per prompt. Skips updates before `staleness`: their sampler is
 * less stale than intended. */
static gl_status collect_pairs(void *context, size_t update, const double *theta_p,
                               const double *theta_q, gl_error *err) {
  const collecting *c = context;
  const enumerable *e = &c->r->view;
  if (update < c->staleness) return GL_OK;
  const size_t k = e->max_responses;
  double *room = MUST_ARRAY(double, k *(e->max_length + 3), "a pair of distributions");
  double *p = room, *q = room + k, *reward = room + 2 * k, *logp = room + 3 * k;
  gl_status status = GL_OK;
  for (size_t x = 0; x < e->n_prompts && status == GL_OK; ++x) {
    status = dist_of(e, theta_p, x, logp, p, err);
    if (status == GL_OK) status = dist_of(e, theta_q, x, logp, q, err);
    e->ops->rewards(e->self, x, reward);
    if (status == GL_OK) pairs_tally_add(c->to, p, q, reward, e->ops->n_responses(e->self, x));
  }
  free(room);
  return status;
}

static gl_status run_paths(void *context, size_t i, gl_error *err) {
  paths_job *j = context;
  const lab_recipe *r = j->r;
  const policy_algorithm *algorithm = &r->algorithms[i / r->training.n_ages];
  const size_t staleness = (size_t)r->training.ages[i % r->training.n_ages];
  path_pairs *c = &j->cells[i];
  collecting to = {r, staleness, &c->tally};
  gl_status status = lab_tuned_rate(r, algorithm, staleness, &j->counter, &c->lr, err);
  for (size_t s = 0; s < r->training.seeds && status == GL_OK; ++s) {
    const lab_path path = {r, algorithm, staleness, c->lr, s + 1};
    status = lab_train_path(&path, collect_pairs, &to, err);
    lab_counter_add(&j->counter, 1);
  }
  return status;
}

/* Minimum KL of pairs counted as "far": a converged learner adds many pairs with a KL near 0. */
#define FAR_APART 0.01

typedef struct far_pairs {
  double n, green[LAB_CONSTANTS], disagree[LAB_CONSTANTS];
} far_pairs;

/* Counts the pairs with a KL of FAR_APART or more. Call before sorted_median(), which sorts each
 * list separately, so that equal indices no longer belong to one pair. */
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

#define DENOMINATOR_COLUMNS(D)                                                                     \
  TABLE_KEY(D "/share_theorem1_holds", TABLE_REAL), TABLE_KEY(D "/largest_constant", TABLE_REAL),  \
      TABLE_KEY(D "/share_w_varies_more", TABLE_REAL),                                             \
      TABLE_KEY(D "/highest_kl_w_varies_more", TABLE_REAL),                                        \
      TABLE_KEY(D "/share_aw_varies_more", TABLE_REAL),                                            \
      TABLE_KEY(D "/share_w_and_aw_disagree", TABLE_REAL),                                         \
      TABLE_KEY(D "/share_aw_varies_more_group", TABLE_REAL),                                      \
      TABLE_KEY(D "/share_w_and_aw_disagree_group", TABLE_REAL),                                   \
      TABLE_KEY(D "/share_w_varies_more_far", TABLE_REAL),                                         \
      TABLE_KEY(D "/share_w_and_aw_disagree_far", TABLE_REAL)
static const table_column path_columns[] = {
    TABLE_KEY("algorithm", TABLE_TEXT),   TABLE_KEY("staleness", TABLE_REAL),
    TABLE_KEY("lr", TABLE_REAL),          TABLE_KEY("pairs", TABLE_INTEGER),
    TABLE_KEY("pairs_far", TABLE_REAL),   TABLE_KEY("infinite", TABLE_INTEGER),
    TABLE_KEY("kl_median", TABLE_REAL),   TABLE_KEY("kl_max", TABLE_REAL),
    TABLE_KEY("w_pq", TABLE_REAL),        TABLE_KEY("w_expected", TABLE_REAL),
    TABLE_KEY("w_computed", TABLE_REAL),  TABLE_KEY("aw_pq", TABLE_REAL),
    TABLE_KEY("aw_expected", TABLE_REAL), TABLE_KEY("aw_computed", TABLE_REAL),
    DENOMINATOR_COLUMNS("expected"),      DENOMINATOR_COLUMNS("computed")};
enum { PATH_NUMBERS = 10 };
/* Printed text: one row per denominator. */
static const table_column path_row_columns[] = {PLAIN(NULL, TABLE_TEXT, "algorithm", -24, NULL),
                                                PLAIN(NULL, TABLE_REAL, "staleness", 9, "%g"),
                                                PLAIN(NULL, TABLE_INTEGER, "pairs", 6, NULL),
                                                PLAIN(NULL, TABLE_REAL, "KL", 9, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "max KL", 9, "%.4g"),
                                                PLAIN(NULL, TABLE_TEXT, "|", 1, NULL),
                                                PLAIN(NULL, TABLE_REAL, "holds", 8, "%.3f"),
                                                PLAIN(NULL, TABLE_REAL, "largest c", 9, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "p/D wider", 9, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "A p/D wider", 11, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "disagree", 9, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "with E_q r", 10, "%.4g"),
                                                PLAIN(NULL, TABLE_REAL, "far apart", 9, "%.4g")};

/* Numbers of one denominator, in the order of DENOMINATOR_COLUMNS. */
static void path_numbers(double number[PATH_NUMBERS], const pairs_tally *t, const far_pairs *far,
                         int k) {
  const double n = (double)t->pairs;
  const double all[PATH_NUMBERS] = {
      t->holds[k] / n,        t->constant[k],
      t->green[k] / n,        t->green[k] > 0 ? t->highest_green[k] : NAN,
      t->wider[k] / n,        t->disagree[k] / n,
      t->wider_q[k] / n,      t->disagree_q[k] / n,
      far->green[k] / far->n, far->disagree[k] / far->n};
  memcpy(number, all, sizeof all);
}

/* Adds a tally to the JSON and the printed table, and sorts the tally's lists. */
static void add_pairs(table *list, table *rows, const char *algorithm, double staleness, double lr,
                      pairs_tally *t) {
  static const size_t shown[] = {0, 1, 2, 4, 5, 7, 9}; /* indices of path_numbers() */
  const far_pairs far = far_pairs_of(t);
  const double median = sorted_median(t->kl_of, t->pairs),
               most = t->pairs > 0 ? t->kl_of[t->pairs - 1] : NAN;
  table_row(list);
  table_text(list, algorithm);
  table_real(list, staleness);
  table_real(list, lr);
  table_count(list, t->pairs);
  table_real(list, far.n);
  table_count(list, t->infinite);
  table_real(list, median);
  table_real(list, most);
  for (int k = 0; k < PAIRS_VARIANCES; ++k)
    table_real(list, sorted_median(t->variance[k], t->pairs));
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    double number[PATH_NUMBERS];
    path_numbers(number, t, &far, k);
    for (size_t i = 0; i < PATH_NUMBERS; ++i) table_real(list, number[i]);
    table_row(rows);
    table_text(rows, algorithm);
    table_real(rows, staleness);
    table_count(rows, t->pairs);
    table_real(rows, median);
    table_real(rows, most);
    table_text(rows, "|");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; ++i) table_real(rows, number[shown[i]]);
    table_rest(rows, " D %s", lab_constant_names[k]);
  }
}

/* Appends the pairs of another tally. */
static void merge_pairs(pairs_tally *to, const pairs_tally *from) {
  const size_t n = to->pairs + from->pairs;
  reserve_pairs(to, n);
  for (int k = 0; k <= PAIRS_VARIANCES && from->pairs > 0; ++k) {
    double *list = k < PAIRS_VARIANCES ? to->variance[k] : to->kl_of;
    const double *more = k < PAIRS_VARIANCES ? from->variance[k] : from->kl_of;
    memcpy(list + to->pairs, more, from->pairs * sizeof *more);
  }
  to->pairs = n;
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
}

static table *paths_document(const paths_job *j) {
  const lab_training *t = &j->r->training;
  const size_t n_algorithms = j->r->n_algorithms;
  const double n = (double)j->r->view.max_responses;
  double smallest[LAB_CONSTANTS];
  table *document = table_document();
  table_put(document, "outcomes %g, theorem %g", n, n * n + 1);
  table *object = table_object(table_field(document, "smallest"));
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    smallest[k] = lab_theory_smallest_constant(n, (lab_constant)k, NULL);
    table_real(table_field(object, lab_constant_names[k]), smallest[k]);
  }
  table *together =
      table_rows(table_field(document, "together"), path_columns, COLUMN_COUNT(path_columns));
  table *single =
      table_rows(table_field(document, "training"), path_columns, COLUMN_COUNT(path_columns));
  table_line(
      document,
      "Pairs of policies from training, on n = %g responses. Theorem 1's constant is n^2 + 1 = "
      "%g; the smallest valid one %.6g with D = E_q q, %.6g with D as computed. Fractions of "
      "pairs: for which the theorem holds; for which p/D, and A p/D, vary more than p/q; for which "
      "these two disagree, with A = r - E_p r, with A = r - E_q r, and of pairs with a KL of %g "
      "or more.",
      n, n * n + 1, smallest[LAB_EXPECTED], smallest[LAB_COMPUTED], FAR_APART);
  table_line(document, "%s", "");
  table *single_rows = plain_rows(document, NULL, path_row_columns, COLUMN_COUNT(path_row_columns));
  table *together_rows =
      plain_rows(document, NULL, path_row_columns, COLUMN_COUNT(path_row_columns));
  for (size_t c = 0; c < COLUMN_COUNT(path_row_columns); ++c) table_hide_head(together_rows, c);
  for (size_t age = 0; age < t->n_ages; ++age) {
    pairs_tally all; /* merged first, because add_pairs() sorts the lists of each tally */
    pairs_tally_init(&all);
    for (size_t a = 0; a < n_algorithms; ++a)
      merge_pairs(&all, &j->cells[a * t->n_ages + age].tally);
    add_pairs(together, together_rows, "all", t->ages[age], NAN, &all);
    pairs_tally_fini(&all);
  }
  for (size_t i = 0; i < n_algorithms * t->n_ages; ++i)
    add_pairs(single, single_rows, j->r->algorithms[i / t->n_ages].name, t->ages[i % t->n_ages],
              j->cells[i].lr, &j->cells[i].tally);
  return document;
}

static gl_status check_path_recipe(const lab_recipe *r, gl_error *err) {
  const lab_training *t = &r->training;
  if (t->n_lr == 0 || t->n_ages == 0)
    return gl_fail(
        err, GL_EINPUT,
        "%s: theory takes its pairs of policies from `training` with `stalenesses`, a list",
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

gl_status theory_training_run(table **out, const lab_recipe *r, size_t threads, progress_mode shows,
                              gl_error *err) {
  paths_job j = {.r = r};
  *out = NULL;
  gl_status status = check_path_recipe(r, err);
  if (status != GL_OK) return status;
  const lab_training *t = &r->training;
  const size_t n = r->n_algorithms * t->n_ages;
  const size_t paths = n * (t->seeds + (t->n_lr > 1 ? t->n_lr * t->tuning_seeds : 0));
  j.cells = MUST_ARRAY(path_pairs, n, "pairs of distributions");
  for (size_t i = 0; i < n; ++i) pairs_tally_init(&j.cells[i].tally);
  lab_counter_init(&j.counter, r->name, "training paths", paths, (double)paths,
                   threads < n ? threads : n, shows);
  status = pool_try(n, threads, run_paths, &j, err);
  lab_counter_fini(&j.counter);
  if (status == GL_OK) *out = paths_document(&j);
  for (size_t i = 0; i < n; ++i) pairs_tally_fini(&j.cells[i].tally);
  free(j.cells);
  return status;
}
