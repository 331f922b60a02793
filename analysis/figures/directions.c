/* The figure `directions`: what a lower variance costs in bias, over random directions from the
 * learner to the sampler; and the reading of its data from stored results. */
#include "analysis/figures/without_study.h"

#include "analysis/plot/draw.h"
#include "analysis/plot/page.h"
#include "core/base/array.h"
#include "core/base/display_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- stored results --- */

static const char *const stored_names[DIRECTIONS_QUANTITIES] = {
    [DIRECTIONS_BIAS] = "relative_bias",
    [DIRECTIONS_MSE] = "mse_ratio",
    [DIRECTIONS_SCALED_MSE] = "scaled_mse_ratio",
};
static const char is_measured[] = ".relative_bias.median";

static bool directions_key_ends(const char *key, const char *end) {
  const size_t n = strlen(key), m = strlen(end);
  return n >= m && strcmp(key + n - m, end) == 0;
}

bool directions_are_stored(const stored *s) {
  for (size_t i = 0; i < s->n; i++)
    if (s->entry[i].key[0] == '[' && directions_key_ends(s->entry[i].key, is_measured)) return true;
  return false;
}

/* One row of the stored table: "[gepo,8#2]". */
typedef struct stored_row {
  const stored *of;
  const char *key; /* key of one of the row's members */
  size_t prefix;   /* length of "[gepo,8#2]." */
} stored_row;

static gl_status row_text(const stored_row *row, const char *member, const char **out,
                          gl_error *err) {
  char key[600];
  snprintf(key, sizeof key, "%.*s%s", (int)row->prefix, row->key, member);
  *out = stored_value(row->of, key);
  return *out != NULL ? GL_OK
                      : gl_fail(err, GL_EINPUT, "%s: there is no %s; keep all members of a row",
                                row->of->name, shown(key).text);
}

static gl_status row_number(const stored_row *row, const char *member, double *out, gl_error *err) {
  const char *text = NULL;
  char *end = NULL;
  gl_status status = row_text(row, member, &text, err);
  if (status != GL_OK) return status;
  *out = strtod(text, &end);
  if (end != text && *end == '\0') return GL_OK;
  return gl_fail(err, GL_EINPUT, "%s: %.*s%s is no number: %s", row->of->name, (int)row->prefix,
                 row->key, member, shown(text).text);
}

/* Reads median and quantiles of a quantity. A missing key is an error. */
static gl_status row_quantiles(const stored_row *row, directions_quantity q, directions_point *to,
                               gl_error *err) {
  static const char *const levels[] = {"median", "low", "high"};
  double *const number[] = {&to->median[q], &to->low[q], &to->high[q]};
  gl_status status = GL_OK;
  for (size_t i = 0; i < 3 && status == GL_OK; i++) {
    char member[64];
    snprintf(member, sizeof member, "%s.%s", stored_names[q], levels[i]);
    status = row_number(row, member, number[i], err);
  }
  return status;
}

/* Index of a text in a list, to which it is added if it is not there. */
static size_t list_place(arena *m, const char ***list, size_t *n, const char *text) {
  for (size_t i = 0; i < *n; i++)
    if (strcmp((*list)[i], text) == 0) return i;
  const char **to = ARRAY_ADD(*list, *n);
  if (to == NULL)
    m->failed = true;
  else
    *to = arena_text(m, text);
  return *n - 1;
}

static gl_status add_row(directions *d, const stored_row *row, gl_error *err) {
  directions_point to = {.world = d->n_worlds - 1};
  const char *algorithm = NULL;
  gl_status status = row_text(row, "algorithm", &algorithm, err);
  if (status == GL_OK) status = row_number(row, "group_size", &to.group_size, err);
  if (status == GL_OK) status = row_number(row, "kl_exact", &to.kl, err);
  if (status == GL_OK) status = row_number(row, "directions", &to.count, err);
  for (directions_quantity q = 0; q < DIRECTIONS_QUANTITIES && status == GL_OK; q++)
    status = row_quantiles(row, q, &to, err);
  if (status != GL_OK) return status;
  to.algorithm = list_place(&d->memory, &d->algorithms, &d->n_algorithms, algorithm);
  directions_point *place = ARRAY_ADD(d->point, d->n);
  if (place == NULL) return gl_fail_memory(err, "stored results");
  *place = to;
  return arena_check(&d->memory, "stored results", err);
}

/* The reference algorithm of a world: its mean squared error relative to the reference is 1 in all
 * directions. n_algorithms if there is none. */
static size_t find_reference(const directions *d, size_t world) {
  for (size_t a = 0; a < d->n_algorithms; a++) {
    bool is_one = true;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
      const directions_point *at = &d->point[i];
      if (at->algorithm != a || at->world != world) continue;
      is_one = is_one && at->low[DIRECTIONS_MSE] == 1 && at->high[DIRECTIONS_MSE] == 1;
      n++;
    }
    if (n > 0 && is_one) return a;
  }
  return d->n_algorithms;
}

/* Sorts points by KL. Stored keys are sorted as texts, not as numbers. */
static int by_divergence(const void *a, const void *b) {
  const directions_point *x = a, *y = b;
  return (x->kl > y->kl) - (x->kl < y->kl);
}

gl_status directions_add_stored(directions *d, const stored *s, const char *title, gl_error *err) {
  const char **name = ARRAY_ADD(d->worlds, d->n_worlds);
  if (name == NULL) return gl_fail_memory(err, "stored results");
  *name = arena_text(&d->memory, title);
  gl_status status = arena_check(&d->memory, "stored results", err);
  for (size_t i = 0; i < s->n && status == GL_OK; i++) {
    const char *key = s->entry[i].key;
    if (key[0] != '[' || !directions_key_ends(key, is_measured)) continue;
    const stored_row row = {s, key, strlen(key) - strlen(is_measured) + 1};
    status = add_row(d, &row, err);
  }
  if (status != GL_OK) return status;
  if (d->n > 0) qsort(d->point, d->n, sizeof *d->point, by_divergence);
  const size_t reference = find_reference(d, d->n_worlds - 1);
  if (reference == d->n_algorithms || (d->n_worlds > 1 && reference != d->reference))
    return gl_fail(err, GL_EINPUT,
                   "%s: mean squared errors are not over those of %s; draw it by itself, and keep "
                   "the rows of the recipe's first algorithm",
                   s->name,
                   d->n_worlds > 1 ? d->algorithms[d->reference] : "one of its algorithms");
  d->reference = reference;
  return GL_OK;
}

void directions_fini(directions *d) {
  free(d->worlds), free(d->algorithms), free(d->point);
  arena_fini(&d->memory);
  *d = (directions){.n = 0};
}

/* --- the figure --- */

enum { MOST_COLUMNS = 4 };

/* A column of panels. */
typedef struct column {
  size_t world;
  double group_size;
} column;

/* The distinct group sizes, ascending, in memory of the page. */
static double *group_sizes(const directions *d, figure_page *p, size_t *n) {
  double *size = ARENA_ARRAY(&p->memory, double, d->n);
  *n = 0;
  if (size == NULL) return NULL;
  for (size_t i = 0; i < d->n; i++) size[i] = d->point[i].group_size;
  qsort(size, d->n, sizeof *size, order_real);
  for (size_t i = 0; i < d->n; i++)
    if (*n == 0 || size[*n - 1] != size[i]) size[(*n)++] = size[i];
  return size;
}

static const char *group_text(double size, char text[32]) {
  if (isinf(size))
    snprintf(text, 32, "G = ∞");
  else
    snprintf(text, 32, "G = %.0f", size);
  return text;
}

/* Chooses the columns of the page and adds a remark for each world or size that has none. */
static gl_status choose_columns(const directions *d, figure_page *p, column *to, size_t *n,
                                gl_error *err) {
  size_t n_sizes, picked[MOST_COLUMNS];
  const double *size = group_sizes(d, p, &n_sizes);
  gl_status status = arena_check(&p->memory, "a figure", err);
  if (status != GL_OK) return status;
  const size_t all = d->n_worlds > 1 ? d->n_worlds : n_sizes;
  *n = page_pick(all, page_columns(p, MOST_COLUMNS), picked);
  for (size_t i = 0; i < *n; i++)
    to[i] = d->n_worlds > 1 ? (column){picked[i], size[n_sizes - 1]} : (column){0, size[picked[i]]};
  for (size_t i = 0, k = 0; i < all && status == GL_OK; i++) {
    char text[32];
    if (k < *n && picked[k] == i)
      k++;
    else
      status = page_leave_out(p, err, "%.150s",
                              d->n_worlds > 1 ? d->worlds[i] : group_text(size[i], text));
  }
  for (size_t i = 0; i + 1 < n_sizes && d->n_worlds > 1 && status == GL_OK; i++) {
    char text[32];
    status = page_leave_out(p, err, "%s", group_text(size[i], text));
  }
  return status;
}

static void write_directions_panel(figure_page *p, const directions *d, size_t panel, column of,
                                   directions_quantity q) {
  for (size_t a = 0; a < d->n_algorithms; a++) {
    for (size_t i = 0; i < d->n; i++) {
      const directions_point *at = &d->point[i];
      if (at->algorithm == a && at->world == of.world && at->group_size == of.group_size)
        page_point(p, panel, d->algorithms[a], at->kl, at->median[q], at->low[q], at->high[q]);
    }
    page_block_end(p);
  }
}

static void name_directions_panel(figure_panel *to, const directions *d, column of,
                                  directions_quantity q) {
  char size[32];
  const char *reference = d->algorithms[d->reference];
  if (q == DIRECTIONS_BIAS && d->n_worlds > 1)
    snprintf(to->title, sizeof to->title, "%.150s", d->worlds[of.world]);
  else if (q == DIRECTIONS_BIAS)
    snprintf(to->title, sizeof to->title, "%s", group_text(of.group_size, size));
  switch (q) {
  case DIRECTIONS_BIAS:
    snprintf(to->axis, sizeof to->axis, "bias / gradient");
    break;
  case DIRECTIONS_MSE:
    snprintf(to->axis, sizeof to->axis, "MSE / %.60s", reference);
    break;
  case DIRECTIONS_SCALED_MSE:
    snprintf(to->axis, sizeof to->axis, "scaled MSE / %.60s", reference);
    break;
  case DIRECTIONS_QUANTITIES:
    break;
  }
  to->logarithmic = q == DIRECTIONS_MSE;
}

/* Limits the y axis to `most`, or to the largest median if that is larger. Otherwise wide bands
 * would compress the medians. */
static void limit_panel(figure_panel *to, directions_quantity q) {
  static const double most[DIRECTIONS_QUANTITIES] = {
      [DIRECTIONS_BIAS] = 1.5,
      [DIRECTIONS_MSE] = 10,
      [DIRECTIONS_SCALED_MSE] = 3,
  };
  const double end = fmax(most[q], 1.05 * to->largest);
  if (to->high > end) to->high = end;
}

static gl_status remark_directions(figure_page *p, const directions *d, double size,
                                   gl_error *err) {
  char group[32];
  double least = INFINITY, most = 0;
  for (size_t i = 0; i < d->n; i++)
    least = fmin(least, d->point[i].count), most = fmax(most, d->point[i].count);
  gl_status status = page_remark(
      p, err,
      "Medians over %.0f random directions from learner to sampler%s%s; bands: 10 to 90 %% of the "
      "directions, cut off at the panel's edge. Bias: its length over the true gradient's. MSE: "
      "mean squared error over that of %s; below the dotted line it is smaller. Scaled: after the "
      "best factor for each estimate, which a learning rate absorbs",
      most, d->n_worlds > 1 ? ", " : "", d->n_worlds > 1 ? group_text(size, group) : "",
      d->algorithms[d->reference]);
  if (status == GL_OK && least < most)
    status = page_remark(p, err,
                         "A scaled MSE needs an expected gradient that is not 0: the fewest "
                         "directions with one are %.0f",
                         least);
  return status;
}

static gl_status write_directions(const void *data, figure_page *p, gl_error *err) {
  const directions *d = data;
  column of[MOST_COLUMNS];
  size_t n = 0;
  gl_status status = choose_columns(d, p, of, &n, err);
  if (status == GL_OK)
    status = page_open(p, DIRECTIONS_QUANTITIES * n,
                       "panel\talgorithm\tkl\tmedian\tlow_10\thigh_90", err);
  if (status != GL_OK) return status;
  p->wide = p->share = n;
  p->x_logarithmic = true;
  p->all_marks = 1;
  snprintf(p->x_axis, sizeof p->x_axis, "KL(p‖q) [nats]");
  page_set_text(p, "reference", "1");
  for (size_t panel = 0; panel < p->n_panels; panel++) {
    const directions_quantity q = (directions_quantity)(panel / n);
    name_directions_panel(&p->panels[panel], d, of[panel % n], q);
    write_directions_panel(p, d, panel, of[panel % n], q);
    limit_panel(&p->panels[panel], q);
  }
  status = page_set_lines(p, d->algorithms, d->n_algorithms, err);
  return status == GL_OK ? remark_directions(p, d, of[0].group_size, err) : status;
}

gl_status figure_of_directions(const directions *d, const figure_request *q, gl_error *err) {
  const figure line = {"directions", "bias and error against KL over random directions", "curves",
                       1, write_directions};
  gl_status status = figures_check_highlight(q, d->algorithms, d->n_algorithms, err);
  return status == GL_OK ? figures_draw_one(&line, d->n > 0 ? NULL : "there is no measurement",
                                            "there is no direction to draw", d, q, err)
                         : status;
}
