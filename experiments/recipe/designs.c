/* The designs of a sweep: combinations of a factorial design, settings of a one-at-a-time design,
 * random search; and the fields that `tune` chooses. */
#include "experiments/recipe/designs.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/random/rng.h"
#include "experiments/base/memory.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- fields that tune chooses --- */

static void add_tuned(tuned_fields *t, const char *path, const cfg_node *values) {
  if (t->n == TUNED_FIELDS_MOST) return;
  t->path[t->n] = path;
  t->values[t->n++] = values;
}

tuned_fields tuned_fields_of(const cfg_doc *doc) {
  tuned_fields out = {.n = 0};
  const cfg_node *tune = cfg_find(cfg_root(doc), "tune");
  if (tune == NULL || cfg_kind_of(tune) != CFG_MAP) return out;
  const cfg_node *lr = cfg_find(tune, "lr"), *fields = cfg_find(tune, "fields");
  if (lr != NULL && !cfg_is_null(lr)) add_tuned(&out, "optimizer.lr", lr);
  if (fields == NULL || cfg_kind_of(fields) != CFG_MAP) return out;
  for (size_t i = 0; i < cfg_size(fields); ++i)
    add_tuned(&out, cfg_key_at(fields, i), cfg_at(fields, i));
  return out;
}

/* Returns the field chosen by `tune` that equals `path`, is inside it or contains it; NULL: none.
 */
static const char *tuned_fields_overlap(const cfg_doc *doc, const char *path) {
  const tuned_fields t = tuned_fields_of(doc);
  for (size_t i = 0; i < t.n; ++i)
    if (cfg_paths_overlap(t.path[i], path)) return t.path[i];
  return NULL;
}

/* --- fields set only once --- */

/* Checks that no field is set both by a design and by another part of the recipe. */
typedef struct set_once {
  const cfg_doc *doc;
  const char *sets;   /* start of messages: "sweep.random draws" */
  const char *beside; /* axis that may contain a field of the design and is set first; or NULL */
} set_once;

static bool may_be_beside(const set_once *who, const char *axis) {
  return who->beside != NULL && strcmp(axis, who->beside) == 0;
}

/* Returns GL_EINPUT, at the field's value, if path number `own` of a map is also chosen by `tune`,
 * listed by an axis of the sweep, or overlaps an earlier path of the map. */
static gl_status set_once_check(const set_once *who, const cfg_node *fields, size_t own,
                                gl_error *err) {
  const cfg_node *sweep = cfg_find(cfg_root(who->doc), "sweep"), *at = cfg_at(fields, own);
  const char *path = cfg_key_at(fields, own);
  if (tuned_fields_overlap(who->doc, path) != NULL)
    return cfg_fail(at, err, "%s %s, and tune chooses it; keep one of them (tune=null)", who->sets,
                    path);
  for (size_t i = 0; i < cfg_size(sweep); ++i) {
    const char *axis = cfg_key_at(sweep, i);
    if (!may_be_beside(who, axis) && cfg_paths_overlap(axis, path))
      return cfg_fail(at, err, "%s %s, and sweep.%s lists its values; keep one", who->sets, path,
                      axis);
  }
  for (size_t i = 0; i < own; ++i)
    if (cfg_paths_overlap(cfg_key_at(fields, i), path))
      return cfg_fail(at, err, "%s %s and %s, one inside the other; keep one", who->sets,
                      cfg_key_at(fields, i), path);
  return GL_OK;
}

/* --- factorial designs: reading --- */

enum { LETTERS = 26, MOST_BASE = 12, MOST_WORDS = 6 };

/* Sets of base factors are bit sets in the order of the recipe. */
typedef struct factor {
  char letter;
  const cfg_node *fields; /* maps paths to lists of two values */
  uint32_t word;          /* the base factors whose levels are multiplied */
} factor;

typedef struct design {
  factor factor[LETTERS];
  size_t n, n_base;
  uint32_t block[MOST_WORDS];
  size_t n_blocks;
  const cfg_node *seeds; /* seeds of the blocks; NULL: no blocks */
} design;

static size_t factor_of(const design *d, char letter) {
  size_t i = 0;
  while (i < d->n && d->factor[i].letter != letter) ++i;
  return i;
}

/* Checks that a factor's field is not set anywhere else. */
static gl_status factor_check_path(const design *d, const factor *own, size_t number,
                                   const cfg_doc *doc, gl_error *err) {
  char sets[] = "factor ? sets";
  sets[strlen("factor ")] = own->letter;
  const set_once who = {.doc = doc, .sets = sets};
  const cfg_node *at = cfg_at(own->fields, number);
  const char *path = cfg_key_at(own->fields, number);
  if (strcmp(path, "seed") == 0 || strcmp(path, "algorithm") == 0)
    return cfg_fail(at, err, "%s '%s', which is an axis of its own; seeds may be those of blocks",
                    sets, path);
  gl_status status = set_once_check(&who, own->fields, number, err);
  for (const factor *f = d->factor; f < own && status == GL_OK; ++f)
    for (size_t i = 0; i < cfg_size(f->fields) && status == GL_OK; ++i)
      if (cfg_paths_overlap(cfg_key_at(f->fields, i), path))
        status =
            cfg_fail(at, err, "factors %c and %c set %s and %s, one inside the other; keep one",
                     f->letter, own->letter, cfg_key_at(f->fields, i), path);
  return status;
}

static gl_status read_factor(design *d, const char *letter, const cfg_node *fields,
                             const cfg_doc *doc, gl_error *err) {
  if (strlen(letter) != 1 || *letter < 'A' || *letter > 'Z')
    return cfg_fail(fields, err, "the factor '%s' must be called by one capital letter", letter);
  if (cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0)
    return cfg_fail(fields, err,
                    "factor %s needs its fields and their two values, as in {train.group_size: [8, "
                    "16]}",
                    letter);
  factor *f = &d->factor[d->n];
  *f = (factor){.letter = *letter, .fields = fields};
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i) {
    const cfg_node *levels = cfg_at(fields, i);
    if (cfg_kind_of(levels) != CFG_LIST || cfg_size(levels) != 2)
      return cfg_fail(levels, err, "%s of factor %s must be a list of its low and its high value",
                      cfg_key_at(fields, i), letter);
    status = factor_check_path(d, f, i, doc, err);
  }
  ++d->n;
  return status;
}

/* Parses a word such as ABD to a set of base factors. */
static gl_status read_word(uint32_t *word, const design *d, const cfg_node *at, const char *what,
                           gl_error *err) {
  const char *text = cfg_text(at);
  *word = 0;
  for (size_t i = 0; text != NULL && text[i] != '\0'; ++i) {
    const size_t k = factor_of(d, text[i]);
    if (k == d->n || (d->factor[k].word & (d->factor[k].word - 1)) != 0)
      return cfg_fail(at, err, "%s: '%c' in '%s' is no base factor (one without a generator)", what,
                      text[i], text);
    if (*word & d->factor[k].word)
      return cfg_fail(at, err, "%s: '%s' names %c twice", what, text, text[i]);
    *word |= d->factor[k].word;
  }
  if (text == NULL || (*word & (*word - 1)) == 0)
    return cfg_fail(at, err, "%s must be a word of two or more base factors, as in ABC", what);
  return GL_OK;
}

static gl_status read_generators(design *d, const cfg_node *generators, gl_error *err) {
  const cfg_node *of[LETTERS] = {0};
  for (size_t i = 0; generators != NULL && i < cfg_size(generators); ++i) {
    const char *letter = cfg_key_at(generators, i);
    const size_t k = strlen(letter) == 1 ? factor_of(d, *letter) : d->n;
    if (k == d->n)
      return cfg_fail(cfg_at(generators, i), err, "there is a generator of '%s' and no such factor",
                      letter);
    of[k] = cfg_at(generators, i);
  }
  for (size_t k = 0; k < d->n; ++k)
    if (of[k] == NULL) {
      if (d->n_base == MOST_BASE)
        return cfg_fail(d->factor[k].fields, err,
                        "more than %d base factors are more than %d combinations; give some "
                        "generators",
                        MOST_BASE, 1 << MOST_BASE);
      d->factor[k].word = UINT32_C(1) << d->n_base++;
    } else
      d->factor[k].word = 3; /* not a single bit, so not a base factor */
  gl_status status = GL_OK;
  uint32_t word[LETTERS];
  for (size_t k = 0; k < d->n && status == GL_OK; ++k) {
    char what[48];
    snprintf(what, sizeof what, "the generator of %c", d->factor[k].letter);
    word[k] = d->factor[k].word;
    if (of[k] != NULL) status = read_word(&word[k], d, of[k], what, err);
    for (size_t i = 0; i < k && status == GL_OK; ++i)
      if (of[k] != NULL && word[i] == word[k])
        status = cfg_fail(of[k], err, "%s makes %c and %c one factor", what, d->factor[i].letter,
                          d->factor[k].letter);
  }
  for (size_t k = 0; k < d->n; ++k) d->factor[k].word = word[k];
  return status;
}

static gl_status read_blocks(design *d, const cfg_doc *doc, const cfg_node *blocks, gl_error *err) {
  cfg_reader r;
  if (blocks == NULL) return GL_OK;
  cfg_begin(&r, blocks, "sweep.factorial.blocks", err);
  const cfg_node *words = cfg_child(&r, "words");
  d->seeds = cfg_child(&r, "seeds");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (words == NULL || d->seeds == NULL || cfg_kind_of(words) != CFG_LIST ||
      cfg_kind_of(d->seeds) != CFG_LIST || cfg_size(words) == 0 || cfg_size(words) > MOST_WORDS)
    return cfg_fail(blocks, err,
                    "blocks need words and seeds, as in {words: [ACE, BDF], seeds: [1, 2, 3, 4]}");
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(words) && status == GL_OK; ++i)
    status = read_word(&d->block[d->n_blocks++], d, cfg_at(words, i), "a word of the blocks", err);
  if (status == GL_OK && cfg_size(d->seeds) != (size_t)1 << d->n_blocks)
    return cfg_fail(d->seeds, err, "%zu words make %zu blocks, and there are %zu seeds",
                    d->n_blocks, (size_t)1 << d->n_blocks, cfg_size(d->seeds));
  if (status == GL_OK && cfg_find(cfg_root(doc), "sweep.seed") != NULL)
    return cfg_fail(blocks, err,
                    "seeds are those of the blocks, and sweep.seed lists some; keep one");
  return status;
}

static gl_status read_design(design *d, const cfg_doc *doc, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "sweep.factorial", err);
  const cfg_node *factors = cfg_child(&r, "factors"), *generators = cfg_child(&r, "generators");
  const cfg_node *blocks = cfg_child(&r, "blocks");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (factors == NULL || cfg_kind_of(factors) != CFG_MAP || cfg_size(factors) < 2 ||
      cfg_size(factors) > LETTERS)
    return cfg_fail(node, err,
                    "sweep.factorial needs two factors or more, as in {factors: {A: "
                    "{train.group_size: [8, 16]}, B: {optimizer.lr: [1e-4, 2e-4]}}}");
  if (cfg_find(cfg_root(doc), "sweep.random") != NULL)
    return cfg_fail(node, err, "a sweep is a factorial design or a random search; keep one");
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(factors) && status == GL_OK; ++i)
    status = read_factor(d, cfg_key_at(factors, i), cfg_at(factors, i), doc, err);
  if (status == GL_OK) status = read_generators(d, generators, err);
  return status == GL_OK ? read_blocks(d, doc, blocks, err) : status;
}

/* --- factorial designs: listing --- */

/* Returns 1 if the product of the word's levels is high. `high` is the set of base factors that are
 * high. A product of minus ones is high if their number is even. */
static size_t level(uint32_t word, uint32_t high) {
  size_t low = 0;
  for (uint32_t left = word & ~high; left != 0; left &= left - 1) ++low;
  return low % 2 == 0;
}

static gl_status list_combination(cfg_doc *list, const design *d, uint32_t high, gl_error *err) {
  gl_status status = cfg_list_add_map(list, err);
  for (size_t k = 0; k < d->n && status == GL_OK; ++k) {
    const cfg_node *fields = d->factor[k].fields;
    for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i)
      status = cfg_list_put(list, cfg_key_at(fields, i),
                            cfg_at(cfg_at(fields, i), level(d->factor[k].word, high)), err);
  }
  size_t block = 0;
  for (size_t i = 0; i < d->n_blocks; ++i) block |= level(d->block[i], high) << i;
  if (status == GL_OK && d->seeds != NULL)
    status = cfg_list_put(list, "seed", cfg_at(d->seeds, block), err);
  return status;
}

gl_status factorial_expand(cfg_doc *doc, gl_error *err) {
  const cfg_node *node = cfg_find(cfg_root(doc), "sweep.factorial");
  if (node == NULL || cfg_is_null(node)) return GL_OK;
  /* Errors are collected in `why`: messages quote positions of the recipe, which cfg_set() may
   * move. */
  gl_error why = {0};
  design d = {0};
  cfg_doc *list = NULL;
  gl_status status = read_design(&d, doc, node, &why);
  if (status == GL_OK) status = cfg_list_new(&list, node, &why);
  for (uint32_t high = 0; high < UINT32_C(1) << d.n_base && status == GL_OK; ++high)
    status = list_combination(list, &d, high, &why);
  if (status == GL_OK) status = cfg_set(doc, "sweep.factorial", cfg_root(list), &why);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}

/* --- one-at-a-time designs --- */

static const char one_at_a_time[] = "sweep.one_at_a_time";

/* A field of the algorithm may be changed in every listed algorithm. */
static gl_status oaat_check_path(const cfg_node *fields, size_t own, const cfg_doc *doc,
                                 gl_error *err) {
  const set_once who = {.doc = doc, .sets = "sweep.one_at_a_time changes", .beside = "algorithm"};
  const char *path = cfg_key_at(fields, own);
  if (strcmp(path, "seed") == 0 || strcmp(path, "algorithm") == 0)
    return cfg_fail(cfg_at(fields, own), err, "%s '%s', which is an axis of its own: sweep.%s",
                    who.sets, path, path);
  return set_once_check(&who, fields, own, err);
}

static gl_status check_design(const cfg_node *fields, const cfg_doc *doc, gl_error *err) {
  if (cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0)
    return cfg_fail(fields, err,
                    "%s needs fields and their values, the base first, as in {train.group_size: "
                    "[8, 4, 16], sampling.temperature: [1, 0.6]}",
                    one_at_a_time);
  if (cfg_find(cfg_root(doc), "sweep.random") != NULL ||
      cfg_find(cfg_root(doc), "sweep.factorial") != NULL)
    return cfg_fail(fields, err,
                    "a sweep is a one-at-a-time design, a factorial design or a random search; "
                    "keep one");
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i) {
    const cfg_node *values = cfg_at(fields, i);
    if (cfg_kind_of(values) != CFG_LIST || cfg_size(values) < 2)
      return cfg_fail(values, err,
                      "%s of %s must be a list of its base value and one or more others",
                      cfg_key_at(fields, i), one_at_a_time);
    status = oaat_check_path(fields, i, doc, err);
  }
  return status;
}

/* Appends the base setting, with field `changed` set to its value number `value`. */
static gl_status put_setting(cfg_doc *list, const cfg_node *fields, size_t changed, size_t value,
                             gl_error *err) {
  gl_status status = cfg_list_add_map(list, err);
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i)
    status = cfg_list_put(list, cfg_key_at(fields, i),
                          cfg_at(cfg_at(fields, i), i == changed ? value : 0), err);
  return status;
}

static gl_status put_settings(cfg_doc *list, const cfg_node *fields, gl_error *err) {
  gl_status status = put_setting(list, fields, SIZE_MAX, 0, err);
  for (size_t i = 0; i < cfg_size(fields); ++i)
    for (size_t k = 1; k < cfg_size(cfg_at(fields, i)) && status == GL_OK; ++k)
      status = put_setting(list, fields, i, k, err);
  return status;
}

gl_status one_at_a_time_expand(cfg_doc *doc, gl_error *err) {
  const cfg_node *fields = cfg_find(cfg_root(doc), one_at_a_time);
  if (fields == NULL || cfg_is_null(fields)) return GL_OK;
  /* Errors are collected in `why`: messages quote positions of the recipe, which cfg_set() may
   * move. */
  gl_error why = {0};
  cfg_doc *list = NULL;
  gl_status status = check_design(fields, doc, &why);
  if (status == GL_OK) status = cfg_list_new(&list, fields, &why);
  if (status == GL_OK) status = put_settings(list, fields, &why);
  if (status == GL_OK) status = cfg_set(doc, one_at_a_time, cfg_root(list), &why);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}

/* --- random search: reading --- */

enum { MOST_FIELDS = 32, MOST_ATTEMPTS = 1 << 16, PATH_SIZE = 192 };

typedef enum dist_kind {
  DIST_CHOICE,
  DIST_UNIFORM,
  DIST_LOG_UNIFORM,
  DIST_INTEGER,
  DIST_LOG_INTEGER,
  DIST_NORMAL
} dist_kind;

/* A field and its sampling distribution. */
typedef struct drawn_field {
  const char *path;
  const cfg_node *at, *choice; /* at: node in the recipe; choice: list of DIST_CHOICE */
  dist_kind kind;
  double from, to; /* for DIST_NORMAL mean and standard deviation */
  uint64_t entity;
} drawn_field;

typedef struct search {
  size_t draws, n;
  uint64_t seed;
  drawn_field field[MOST_FIELDS];
  char **drawn; /* [n_drawn] samples as texts */
  size_t n_drawn;
  hash_table place_of; /* index of the texts in `drawn` */
} search;

static gl_status read_choice(drawn_field *f, const cfg_node *list, gl_error *err) {
  f->kind = DIST_CHOICE;
  f->choice = list;
  if (cfg_kind_of(list) == CFG_LIST && cfg_size(list) > 0) return GL_OK;
  return cfg_fail(list, err, "%s: the values to choose from must be a list of at least one",
                  f->path);
}

static gl_status check_bounds(const drawn_field *f, gl_error *err) {
  const int is_integer = f->kind == DIST_INTEGER || f->kind == DIST_LOG_INTEGER;
  const int is_log = f->kind == DIST_LOG_UNIFORM || f->kind == DIST_LOG_INTEGER;
  if (!(f->from < f->to) || !isfinite(f->to - f->from))
    return cfg_fail(
        f->at, err,
        "%s: the distribution goes from %g to %g; 'to' must be above 'from', and their distance "
        "a number",
        f->path, f->from, f->to);
  if (is_log && !(f->from > 0))
    return cfg_fail(f->at, err,
                    "%s: the distribution begins at %g; a logarithmic one begins above 0", f->path,
                    f->from);
  if (is_integer && (floor(f->from) != f->from || floor(f->to) != f->to ||
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
  if (!cfg_has(&r, "distribution") && r.status == GL_OK)
    return cfg_fail(node, err,
                    "%s has no distribution; write {distribution: log_uniform, from: 1e-4, to: "
                    "1e-1}, another of "
                    "uniform, integer, log_integer and normal, or {choice: [4, 8, 16]}",
                    section);
  f->kind = (dist_kind)(DIST_UNIFORM + cfg_choice(&r, "distribution", 0, dists, 5));
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
  s->seed = (uint64_t)field_integer(&r, "seed");
  const cfg_node *fields = cfg_child(&r, "fields");
  if (cfg_end(&r) != GL_OK) return GL_EINPUT;
  if (s->draws == 0 || fields == NULL || cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0)
    return cfg_fail(node, err,
                    "sweep.random needs draws and fields, as in {draws: 32, fields: {optimizer.lr: "
                    "{distribution: log_uniform, from: 1e-4, to: 1e-1}}}");
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

/* --- random search: sampling --- */

/* Rounds x in decimal to a ten-thousandth of the width of its distribution. */
static double draw_rounded(double x, double width) {
  char text[64];
  if (x == 0) return 0;
  const int digits = (int)floor(log10(fabs(x))) - (int)floor(log10(width * 1e-4)) + 1;
  if (digits < 1) return 0;
  snprintf(text, sizeof text, "%.*e", digits > 17 ? 16 : digits - 1, x);
  return strtod(text, NULL);
}

/* The value of the field for a block of random words; for a choice the index of its value. */
static double drawn_value(const drawn_field *f, rng_words w) {
  const double width = f->to - f->from, u = rng_u01_53(w.v[0], w.v[1]);
  double x = 0, ratio;
  switch (f->kind) {
  case DIST_CHOICE:
    return floor(u * (double)cfg_size(f->choice));
  case DIST_UNIFORM:
    x = draw_rounded(f->from + u * width, width);
    break;
  case DIST_LOG_UNIFORM:
    ratio = log(f->to) - log(f->from);
    x = exp(log(f->from) + u * ratio);
    x = draw_rounded(x, x * ratio);
    break;
  case DIST_INTEGER:
    x = f->from + floor(u * (width + 1));
    break;
  case DIST_LOG_INTEGER:
    x = floor(exp(log(f->from) + u * (log(f->to + 1) - log(f->from))));
    break;
  case DIST_NORMAL:
    return draw_rounded(f->from + f->to * rng_normal(w), f->to);
  }
  return fmin(fmax(x, f->from), f->to);
}

/* Samples a value of every field. `attempt` counts the samples that were rejected as equal to
 * earlier ones. */
static void draw_one(const search *s, size_t draw, size_t attempt, double value[MOST_FIELDS]) {
  for (size_t i = 0; i < s->n; ++i) {
    const rng_stream stream = rng_stream_at(s->seed, RNG_SETTING, s->field[i].entity);
    value[i] = drawn_value(&s->field[i], rng_block(stream, (uint64_t)draw << 16 | attempt));
  }
}

static bool is_draw(const void *drawn, uint64_t i, const void *text) {
  return strcmp(((char *const *)drawn)[i], text) == 0;
}

/* Returns true if no earlier sample has these values, and records them. */
static bool remember_draw(search *s, const double value[MOST_FIELDS]) {
  char text[MOST_FIELDS * NUMBER_TEXT_SIZE + 1] = "";
  size_t used = 0;
  for (size_t i = 0; i < s->n; ++i) {
    char number[NUMBER_TEXT_SIZE];
    used += (size_t)snprintf(text + used, sizeof text - used, "%s ", number_text(value[i], number));
  }
  const uint64_t hash = hash_64_text(HASH_64_START, text);
  if (hash_table_find(&s->place_of, hash, is_draw, s->drawn, text) != NULL) return false;
  must_succeed(hash_table_add(&s->place_of, hash, s->n_drawn), "the draws of a sweep");
  *MUST_ADD(s->drawn, s->n_drawn, "the draws of a sweep") = must_copy(text, "a draw");
  return true;
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

/* Number of different samples, if it is small. */
static double possible_draws(const search *s) {
  double n = 1;
  for (size_t i = 0; i < s->n; ++i) {
    const drawn_field *f = &s->field[i];
    const int is_integer = f->kind == DIST_INTEGER || f->kind == DIST_LOG_INTEGER;
    n *= f->kind == DIST_CHOICE ? (double)cfg_size(f->choice)
         : is_integer           ? f->to - f->from + 1
                                : 1e9;
  }
  return n;
}

static gl_status draw_settings(search *s, cfg_doc *list, const cfg_node *node, gl_error *err) {
  gl_status status = GL_OK;
  if (possible_draws(s) < (double)s->draws)
    return cfg_fail(node, err,
                    "sweep.random is to draw %zu different settings, and there are only %.0f; take "
                    "fewer draws, or list the values as axes",
                    s->draws, possible_draws(s));
  for (size_t d = 0; d < s->draws && status == GL_OK; ++d) {
    double value[MOST_FIELDS];
    size_t attempt = 0;
    do draw_one(s, d, attempt, value);
    while (!remember_draw(s, value) && ++attempt < MOST_ATTEMPTS);
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
  search s = {0};
  gl_status status = read_search(&s, doc, node, &why);
  if (status == GL_OK) status = cfg_list_new(&list, node, &why);
  if (status == GL_OK) status = draw_settings(&s, list, node, &why);
  if (status == GL_OK) status = cfg_set(doc, "sweep.random", cfg_root(list), &why);
  for (size_t i = 0; i < s.n_drawn; ++i) free(s.drawn[i]);
  free(s.drawn);
  hash_table_fini(&s.place_of);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
