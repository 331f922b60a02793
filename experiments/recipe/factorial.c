/* Lists the combinations of a factorial design. */
#include "experiments/recipe/factorial.h"

#include "core/config/build.h"
#include "core/config/designs.h"
#include "experiments/recipe/set_once.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = 26, MOST_BASE = 12, MOST_WORDS = 6 };

/* Sets of base factors are bits, in the order of the recipe. */
typedef struct factor {
  char letter;
  const cfg_node *fields; /* paths to lists of two values */
  uint32_t word;          /* the base factors whose levels are multiplied */
} factor;

typedef struct design {
  factor factor[LETTERS];
  size_t n, n_base;
  uint32_t block[MOST_WORDS];
  size_t n_blocks;
  const cfg_node *seeds; /* NULL: no blocks */
} design;

static size_t factor_of(const design *d, char letter) {
  size_t i = 0;
  while (i < d->n && d->factor[i].letter != letter) ++i;
  return i;
}

/* --- reading --- */

/* What a factor sets is set nowhere else. */
static gl_status check_path(const design *d, const factor *own, size_t field, const cfg_doc *doc,
                            gl_error *err) {
  char sets[] = "factor ? sets";
  sets[strlen("factor ")] = own->letter;
  const set_once who = {.doc = doc, .sets = sets};
  const cfg_node *at = cfg_at(own->fields, field);
  const char *path = cfg_key_at(own->fields, field);
  if (strcmp(path, "seed") == 0 || strcmp(path, "algorithm") == 0)
    return cfg_fail(at, err, "%s '%s', which is an axis of its own; seeds may be those of blocks",
                    sets, path);
  gl_status status = set_once_check(&who, own->fields, field, err);
  for (const factor *f = d->factor; f < own && status == GL_OK; ++f)
    for (size_t i = 0; i < cfg_size(f->fields) && status == GL_OK; ++i)
      if (cfg_paths_meet(cfg_key_at(f->fields, i), path))
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
    status = check_path(d, f, i, doc, err);
  }
  ++d->n;
  return status;
}

/* The base factors of a word like ABD. */
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
      d->factor[k].word = 3; /* no single bit: not a base factor */
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

/* --- listing --- */

/* 1 if the product of the word's levels is high in a combination, whose bits are the base factors
 * that are high: a product of minus ones is high where their number is even. */
static size_t level(uint32_t word, uint32_t high) {
  size_t low = 0;
  for (uint32_t left = word & ~high; left != 0; left &= left - 1) ++low;
  return low % 2 == 0;
}

static gl_status put_combination(cfg_doc *list, const design *d, uint32_t high, gl_error *err) {
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
  /* Messages quote places of the recipe, which cfg_set() may move. */
  gl_error why = {0};
  design d = {0};
  cfg_doc *list = NULL;
  gl_status status = read_design(&d, doc, node, &why);
  if (status == GL_OK) status = cfg_list_new(&list, node, &why);
  for (uint32_t high = 0; high < UINT32_C(1) << d.n_base && status == GL_OK; ++high)
    status = put_combination(list, &d, high, &why);
  if (status == GL_OK) status = cfg_set(doc, "sweep.factorial", cfg_root(list), &why);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
