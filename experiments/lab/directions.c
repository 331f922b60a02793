/* Medians, 10 and 90 % quantiles and fractions over the random directions of a dial. */
#include "experiments/lab/directions.h"

#include "core/base/table.h"
#include "experiments/base/memory.h"
#include "experiments/base/print_json.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The quantities of one direction. */
typedef enum quantity {
  QUANTITY_COSINE,     /* of the expected and the true gradient */
  QUANTITY_BIAS,       /* length of the bias over that of the true gradient */
  QUANTITY_MSE,        /* mean squared error over the reference's */
  QUANTITY_SCALED_MSE, /* the same after the best common factor of each */
  QUANTITIES
} quantity;

static const char *const quantity_names[QUANTITIES] = {"cosine", "relative_bias", "mse_ratio",
                                                       "scaled_mse_ratio"};
static const char *const level_names[] = {"median", "low", "high"};
static const double levels[] = {0.5, 0.1, 0.9};
enum { LEVELS = sizeof levels / sizeof *levels };

static double quantity_of(quantity q, const lab_result *m, const lab_result *reference) {
  double square = 0;
  for (size_t i = 0; i < m->n_parameters; ++i) square += m->truth[i] * m->truth[i];
  switch (q) {
  case QUANTITY_COSINE:
    return m->numbers.cosine;
  case QUANTITY_BIAS:
    return m->numbers.bias / sqrt(square);
  case QUANTITY_MSE:
    return m->numbers.mse / reference->numbers.mse;
  case QUANTITY_SCALED_MSE:
    return m->numbers.scaled_mse / reference->numbers.scaled_mse;
  case QUANTITIES:
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
  for (size_t q = 0; q < QUANTITIES; ++q)
    for (size_t i = 0; i < LEVELS; ++i) {
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

/* The directions' values in which both are measured; returns how many. */
static size_t gather(const lab_table *t, quantity q, size_t algorithm, size_t size, size_t kl,
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

static double fraction_below(const double *sorted, size_t n, double bound) {
  size_t below = 0;
  while (below < n && sorted[below] < bound) ++below;
  return n > 0 ? (double)below / (double)n : NAN;
}

static void add_directions_row(table *to, const lab_table *t, size_t algorithm, size_t size,
                               size_t kl, double *value) {
  const lab_recipe *r = t->recipe;
  double below[QUANTITIES];
  table_row(to);
  table_text(to, r->algorithms[algorithm].name);
  table_real(to, r->group_size[size] == 0 ? NAN : (double)r->group_size[size]);
  table_real(to, t->results[(kl * r->n_sizes + size) * r->n_algorithms].kl);
  table_real(to, (double)gather(t, QUANTITY_COSINE, algorithm, size, kl, value));
  for (quantity q = 0; q < QUANTITIES; ++q) {
    const size_t n = gather(t, q, algorithm, size, kl, value);
    for (size_t i = 0; i < LEVELS; ++i)
      table_real(to, n > 0 ? gsl_stats_quantile_from_sorted_data(value, 1, n, levels[i]) : NAN);
    below[q] = fraction_below(value, n, q == QUANTITY_COSINE ? 0 : 1 - 1e-9);
  }
  table_real(to, below[QUANTITY_COSINE]);
  table_real(to, below[QUANTITY_MSE]);
  table_real(to, below[QUANTITY_SCALED_MSE]);
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
