/* Draws the settings of a random search. */
#include "experiments/recipe/random_search.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/build.h"
#include "core/config/fields.h"
#include "core/random/normal.h"
#include "experiments/recipe/set_once.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 32, MOST_ATTEMPTS = 1 << 16, PATH_SIZE = 192 };

typedef enum dist_kind {
  DIST_CHOICE,
  DIST_UNIFORM,
  DIST_LOG_UNIFORM,
  DIST_INTEGER,
  DIST_LOG_INTEGER,
  DIST_NORMAL
} dist_kind;

/* The distribution of one field. */
typedef struct drawn_field {
  const char *path;
  const cfg_node *at, *choice; /* where it stands; the list of DIST_CHOICE */
  dist_kind kind;
  double from, to; /* mean and standard deviation of DIST_NORMAL */
  uint64_t entity;
} drawn_field;

typedef struct search {
  size_t draws, n;
  uint64_t seed;
  drawn_field field[MOST_FIELDS];
  char **known; /* [slots] what was drawn, as text: a hash table; slots is a power of two */
  size_t slots;
} search;

/* --- reading --- */

static gl_status read_choice(drawn_field *f, const cfg_node *list, gl_error *err) {
  f->kind = DIST_CHOICE;
  f->choice = list;
  if (cfg_kind_of(list) == CFG_LIST && cfg_size(list) > 0) return GL_OK;
  return cfg_fail(list, err, "%s: the values to choose from must be a list of at least one",
                  f->path);
}

static gl_status check_bounds(const drawn_field *f, gl_error *err) {
  const int is_whole = f->kind == DIST_INTEGER || f->kind == DIST_LOG_INTEGER;
  const int is_log = f->kind == DIST_LOG_UNIFORM || f->kind == DIST_LOG_INTEGER;
  if (!(f->from < f->to) || !isfinite(f->to - f->from))
    return cfg_fail(f->at, err,
                    "%s: the law goes from %g to %g; 'to' must be above 'from', and their distance "
                    "a number",
                    f->path, f->from, f->to);
  if (is_log && !(f->from > 0))
    return cfg_fail(f->at, err, "%s: the law begins at %g; a logarithmic one begins above 0",
                    f->path, f->from);
  if (is_whole && (floor(f->from) != f->from || floor(f->to) != f->to ||
                   fmax(fabs(f->from), fabs(f->to)) > 0x1p52))
    return cfg_fail(
        f->at, err,
        "%s: whole numbers are drawn, so 'from' and 'to' must be whole and at most 2^52", f->path);
  return GL_OK;
}

static gl_status read_dist(drawn_field *f, const cfg_node *node, gl_error *err) {
  static const char *const dists[] = {"uniform", "log_uniform", "integer", "log_integer", "normal"};
  char section[PATH_SIZE];
  cfg_reader r;
  f->at = node;
  f->entity = hash_64(HASH_64_START, f->path, strlen(f->path));
  if (cfg_kind_of(node) == CFG_LIST) return read_choice(f, node, err);
  snprintf(section, sizeof section, "sweep.random.fields.%s", f->path);
  cfg_begin(&r, node, section, err);
  const cfg_node *choice = cfg_child(&r, "choice");
  if (choice != NULL) return cfg_end(&r) == GL_OK ? read_choice(f, choice, err) : GL_EINPUT;
  if (!cfg_has(&r, "law") && r.status == GL_OK)
    return cfg_fail(node, err,
                    "%s has no law; write {law: log_uniform, from: 1e-4, to: 1e-1}, another of "
                    "uniform, integer, log_integer and normal, or {choice: [4, 8, 16]}",
                    section);
  f->kind = (dist_kind)(DIST_UNIFORM + cfg_choice(&r, "law", 0, dists, 5));
  const int is_normal = f->kind == DIST_NORMAL;
  f->from = cfg_double(&r, is_normal ? "mean" : "from", NAN, -DBL_MAX, DBL_MAX);
  f->to = is_normal ? cfg_positive(&r, "sd", NAN) : cfg_double(&r, "to", NAN, -DBL_MAX, DBL_MAX);
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (isnan(f->from) || isnan(f->to))
    return cfg_fail(node, err, "%s needs %s", section, is_normal ? "mean and sd" : "from and to");
  return is_normal ? GL_OK : check_bounds(f, err);
}

static gl_status read_search(search *s, const cfg_doc *doc, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "sweep.random", err);
  s->draws = field_count(&r, "draws");
  s->seed = (uint64_t)field_whole(&r, "seed");
  const cfg_node *fields = cfg_child(&r, "fields");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (s->draws == 0 || fields == NULL || cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0)
    return cfg_fail(node, err,
                    "sweep.random needs draws and fields, as in {draws: 32, fields: {optimizer.lr: "
                    "{law: log_uniform, from: 1e-4, to: 1e-1}}}");
  if (cfg_size(fields) > MOST_FIELDS)
    return cfg_fail(fields, err, "sweep.random draws at most %d fields", MOST_FIELDS);
  const set_once who = {.doc = doc, .sets = "sweep.random draws"};
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i) {
    drawn_field *f = &s->field[s->n];
    f->path = cfg_key_at(fields, i);
    if (strcmp(f->path, "seed") == 0)
      return cfg_fail(cfg_at(fields, i), err,
                      "sweep.random draws no seeds; runs are averaged over those of an axis, as in "
                      "seed: [1, 2, 3]");
    status = set_once_check(&who, fields, i, err);
    if (status == GL_OK) status = read_dist(f, cfg_at(fields, i), err);
    ++s->n;
  }
  return status;
}

/* --- drawing --- */

/* x to a ten-thousandth of the width of its distribution around it, in decimal digits. */
static double rounded(double x, double width) {
  char text[64];
  if (x == 0) return 0;
  const int digits = (int)floor(log10(fabs(x))) - (int)floor(log10(width * 1e-4)) + 1;
  if (digits < 1) return 0;
  snprintf(text, sizeof text, "%.*e", digits > 17 ? 16 : digits - 1, x);
  return strtod(text, NULL);
}

/* The number of the field that a block of random words stands for; of a choice, which of its
 * values.
 */
static double drawn_value(const drawn_field *f, rng_words w) {
  const double width = f->to - f->from, u = rng_u01_53(w.v[0], w.v[1]);
  double x = 0, ratio;
  switch (f->kind) {
  case DIST_CHOICE:
    return floor(u * (double)cfg_size(f->choice));
  case DIST_UNIFORM:
    x = rounded(f->from + u * width, width);
    break;
  case DIST_LOG_UNIFORM:
    ratio = log(f->to) - log(f->from);
    x = exp(log(f->from) + u * ratio);
    x = rounded(x, x * ratio);
    break;
  case DIST_INTEGER:
    x = f->from + floor(u * (width + 1));
    break;
  case DIST_LOG_INTEGER:
    x = floor(exp(log(f->from) + u * (log(f->to + 1) - log(f->from))));
    break;
  case DIST_NORMAL:
    return rounded(f->from + f->to * rng_normal(w), f->to);
  }
  return fmin(fmax(x, f->from), f->to);
}

static void draw_one(const search *s, size_t draw, size_t attempt, double value[MOST_FIELDS]) {
  for (size_t i = 0; i < s->n; ++i) {
    const rng_stream stream = rng_stream_at(s->seed, RNG_SETTING, s->field[i].entity);
    value[i] = drawn_value(&s->field[i], rng_block(stream, (uint64_t)draw << 16 | attempt));
  }
}

/* Whether these values are new; they are known from then on. *failed where memory is short. */
static int remember(search *s, const double value[MOST_FIELDS], int *failed) {
  char text[MOST_FIELDS * NUMBER_TEXT_SIZE + 1] = "";
  size_t used = 0;
  for (size_t i = 0; i < s->n; ++i) {
    char number[NUMBER_TEXT_SIZE];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s ", number_text(value[i], number));
  }
  size_t at = (size_t)hash_64(HASH_64_START, text, used) & (s->slots - 1);
  for (; s->known[at] != NULL; at = (at + 1) & (s->slots - 1))
    if (strcmp(s->known[at], text) == 0) return 0;
  s->known[at] = strdup(text);
  *failed |= s->known[at] == NULL;
  return 1;
}

static gl_status put_draw(cfg_doc *list, const search *s, const double value[MOST_FIELDS],
                          gl_error *err) {
  gl_status status = cfg_list_add_map(list, err);
  for (size_t i = 0; i < s->n && status == GL_OK; ++i) {
    const drawn_field *f = &s->field[i];
    status = f->kind == DIST_CHOICE
                 ? cfg_list_put(list, f->path, cfg_at(f->choice, (size_t)value[i]), err)
                 : cfg_list_put_number(list, f->path, value[i], f->at, err);
  }
  return status;
}

/* The number of different draws where that is small. */
static double possible_draws(const search *s) {
  double n = 1;
  for (size_t i = 0; i < s->n; ++i) {
    const drawn_field *f = &s->field[i];
    const int is_whole = f->kind == DIST_INTEGER || f->kind == DIST_LOG_INTEGER;
    n *= f->kind == DIST_CHOICE ? (double)cfg_size(f->choice)
         : is_whole             ? f->to - f->from + 1
                                : 1e9;
  }
  return n;
}

static gl_status draw_all(search *s, cfg_doc *list, const cfg_node *node, gl_error *err) {
  gl_status status = GL_OK;
  int failed = 0;
  if (possible_draws(s) < (double)s->draws)
    return cfg_fail(node, err,
                    "sweep.random is to draw %zu different settings, and there are only %.0f; take "
                    "fewer draws, or list the values as axes",
                    s->draws, possible_draws(s));
  for (size_t d = 0; d < s->draws && status == GL_OK; ++d) {
    double value[MOST_FIELDS];
    size_t attempt = 0;
    do draw_one(s, d, attempt, value);
    while (!remember(s, value, &failed) && ++attempt < MOST_ATTEMPTS);
    if (failed) return gl_fail_memory(err, "the draws of a sweep");
    status =
        attempt < MOST_ATTEMPTS
            ? put_draw(list, s, value, err)
            : cfg_fail(node, err,
                       "sweep.random found nothing new for draw %zu of %zu in %d attempts; take "
                       "fewer draws",
                       d + 1, s->draws, MOST_ATTEMPTS);
  }
  return status;
}

gl_status random_search_draw(cfg_doc *doc, gl_error *err) {
  const cfg_node *sweep = cfg_find(cfg_root(doc), "sweep");
  const cfg_node *node =
      sweep != NULL && cfg_kind_of(sweep) == CFG_MAP ? cfg_find(sweep, "random") : NULL;
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  gl_error why = {0};
  cfg_doc *list = NULL;
  search s = {.slots = 16};
  gl_status status = read_search(&s, doc, node, &why);
  while (s.slots < 2 * s.draws) s.slots *= 2;
  if (status == GL_OK && (s.known = calloc(s.slots, sizeof *s.known)) == NULL)
    status = gl_fail_memory(&why, "the draws of a sweep");
  if (status == GL_OK) status = cfg_list_new(&list, node, &why);
  if (status == GL_OK) status = draw_all(&s, list, node, &why);
  if (status == GL_OK) status = cfg_set(doc, "sweep.random", cfg_root(list), &why);
  for (size_t i = 0; s.known != NULL && i < s.slots; ++i) free(s.known[i]);
  free(s.known);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
