/* Expands the `sweep` section of a recipe to the cells of its grid. */
#include "experiments/sweep/grid.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"
#include "core/config/fields.h"
#include "core/store/store.h"
#include "experiments/base/memory.h"
#include "experiments/recipe/recipe.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_cells = 1000000;
static const char cells_memory[] = "the cells of the sweep"; /* for out-of-memory messages */

static int sets_several(const sweep_axis *swept) {
  return cfg_design_named(swept->path) != NULL;
}

/* --- the grid --- */

/* Rejects an override of a path that an axis sets: the axis would replace it in every cell. */
static gl_status refuse_lost_override(const cfg_doc *doc, const char *path, gl_error *err) {
  const cfg_node *stated = cfg_find(cfg_root(doc), path);
  const cfg_node *lost = stated != NULL ? cfg_overridden(stated) : NULL;
  if (lost == NULL) return GL_OK;
  return cfg_fail(lost, err,
                  "the sweep sets '%s' in every cell, which would undo this. Change the axis "
                  "(sweep.%s=[…], or sweep.%s=null for none), or make what is set here an axis of "
                  "its own, as in sweep.algorithm.clip=[none]",
                  path, path, path);
}

/* The same check for an axis that sets several fields. Its values were already expanded to maps
 * from paths to values. */
static gl_status refuse_lost_draws(const cfg_doc *doc, const char *path, const cfg_node *draws,
                                   gl_error *err) {
  const cfg_node *first = cfg_at(draws, 0);
  if (cfg_kind_of(first) != CFG_MAP)
    return cfg_fail(draws, err, "sweep.%s is %s and no list", path, cfg_design_named(path)->form);
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(first) && status == GL_OK; ++i)
    status = refuse_lost_override(doc, cfg_key_at(first, i), err);
  return status;
}

gl_status sweep_grid_read(sweep_grid *grid, const cfg_doc *doc, gl_error *err) {
  *grid = (sweep_grid){0};
  const cfg_node *sweep = cfg_find(cfg_root(doc), "sweep");
  static const char *const often[] = {"algorithm", "seed"};
  for (size_t i = 0; i < 2 && (sweep == NULL || cfg_is_null(sweep)); ++i) {
    const cfg_node *list = cfg_find(cfg_root(doc), often[i]);
    if (list != NULL && cfg_kind_of(list) == CFG_LIST)
      return cfg_fail(list, err,
                      "'%s' is a list; its values are an axis of the sweep: sweep.%s=[...]",
                      often[i], often[i]);
  }
  if (sweep == NULL || cfg_is_null(sweep))
    return cfg_fail(
        cfg_root(doc), err,
        "the recipe has no sweep; add `sweep: {seed: [1, 2, 3]}`, or use `gepolab run`");
  if (cfg_kind_of(sweep) != CFG_MAP || cfg_size(sweep) == 0)
    return cfg_fail(sweep, err,
                    "the sweep is empty; it maps dotted paths to lists of values, as in `sweep: "
                    "{seed: [1, 2, 3]}`");
  if (cfg_size(sweep) > SWEEP_MAX_AXES)
    return cfg_fail(sweep, err, "a sweep has at most %d axes", SWEEP_MAX_AXES);
  for (size_t i = 0; i < cfg_size(sweep); ++i) {
    const cfg_node *values = cfg_at(sweep, i);
    char own[FIELD_HINT_SIZE];
    const char *path = cfg_key_at(sweep, i);
    if (cfg_kind_of(values) == CFG_SCALAR && cfg_is_like_range(cfg_text(values)))
      return cfg_fail(values, err,
                      "sweep.%s must be a list or a range: 'sweep.%s={from: 1, to: 5, n: 5}'", path,
                      fields_suggested(path, own));
    if (cfg_kind_of(values) == CFG_SCALAR && cfg_text(values)[0] != '\0')
      return cfg_fail(values, err, "sweep.%s must be a list, in brackets: sweep.%s=[%.80s]", path,
                      fields_suggested(path, own), cfg_text(values));
    if (strchr(path, '.') == NULL && fields_of_item(path) == NULL &&
        cfg_design_named(path) == NULL && *fields_elsewhere(path, NULL, own) != '\0' &&
        strstr(own, " or ") == NULL && strncmp(own, "sweep.", 6) != 0)
      return cfg_fail(values, err, "recipes have no field '%s'; write sweep.%.*s=[...]", path,
                      (int)strcspn(own, " "), own);
    if (cfg_kind_of(values) != CFG_LIST || cfg_size(values) == 0)
      return cfg_fail(values, err,
                      "sweep.%s must be a list of at least one value, as in [1, 2, 3], or a range, "
                      "as in {from: 1, to: 3, n: 3}",
                      path);
    const sweep_axis swept = {path, values};
    gl_status status = sets_several(&swept) ? refuse_lost_draws(doc, path, values, err)
                                            : refuse_lost_override(doc, path, err);
    if (status != GL_OK) return status;
    grid->axes[grid->n_axes++] = swept;
  }
  return GL_OK;
}

/* "10 × 20 × 300", truncated to size. */
static const char *factors_text(const sweep_grid *grid, char *text, size_t size) {
  size_t used = 0;
  *text = '\0';
  for (size_t i = 0; i < grid->n_axes && used + 1 < size; ++i)
    used += (size_t)snprintf(text + used, size - used, "%s%zu", i > 0 ? " \xc3\x97 " : "",
                             cfg_size(grid->axes[i].values));
  return text;
}

static gl_status count_cells(const sweep_grid *grid, size_t *n, gl_error *err) {
  double product = 1;
  char factors[160];
  for (size_t i = 0; i < grid->n_axes; ++i) product *= (double)cfg_size(grid->axes[i].values);
  *n = (size_t)fmin(product, (double)max_cells);
  if (product <= (double)max_cells) return GL_OK;
  return cfg_fail(grid->axes[0].values, err,
                  "the sweep has %s = %.0f cells, and a study at most %zu; list fewer values, draw "
                  "settings instead (sweep.random), or make several studies of it",
                  factors_text(grid, factors, sizeof factors), product, max_cells);
}

/* Computes the index of each axis' value in cell `ordinal`; the last axis varies fastest. */
static void cell_position(const sweep_grid *grid, size_t ordinal, size_t at[SWEEP_MAX_AXES]) {
  for (size_t i = grid->n_axes; i-- > 0;) {
    size_t values = cfg_size(grid->axes[i].values);
    at[i] = ordinal % values;
    ordinal /= values;
  }
}

/* --- fields --- */
/* An axis sets one field; the axis of a random search or a design sets several. */

enum { MAX_FIELDS = 2 * SWEEP_MAX_AXES, MAX_HOLES = MAX_FIELDS + TUNED_FIELDS_MOST };

typedef struct swept_field {
  const char *path;
  size_t axis; /* the axis that sets the field */
  char **text; /* [values of the axis] canonical text; owned */
  char *key;   /* the path as a JSON string; owned */
} swept_field;

static const cfg_node *field_value_at(const sweep_grid *grid, const swept_field *f, size_t at) {
  const cfg_node *value = cfg_at(grid->axes[f->axis].values, at);
  if (!sets_several(&grid->axes[f->axis])) return value;
  for (size_t i = 0; i < cfg_size(value); ++i)
    if (strcmp(cfg_key_at(value, i), f->path) == 0) return cfg_at(value, i);
  return value;
}

static int has_own_column(const char *path) {
  return strcmp(path, "algorithm") == 0 || strcmp(path, "seed") == 0;
}

/* --- state of an expansion --- */
/* In a large grid most cells differ from earlier ones only in the seed, or in a field that most
 * sections do not depend on. So the recipe is parsed once for each combination of the other fields'
 * values, each different section is checked once (recipe_check()), and the canonical text is not
 * generated from a tree but filled into a template. */

/* Properties shared by cells that differ only in their seeds. */
typedef struct combination {
  char algorithm[POLICY_NAME_SIZE];
  double lr;
  size_t steps;
  int is_llm, known;
  size_t choice; /* index of the choice; n_choices: none was made */
  uint64_t seed; /* used if seeds are not an axis */
} combination;

/* A parsed algorithm and its shown name, cached: formatting the fields of algorithms to compare
 * them dominates the cost of parsing a cell, and a sweep has few algorithms. */
enum { MAX_NAMED = 64 };
typedef struct named_algorithm {
  policy_algorithm read;
  char name[POLICY_NAME_SIZE];
} named_algorithm;

typedef struct expansion {
  const sweep_grid *grid;
  const sweep_expansion *how;
  sweep_cells *out;
  cfg_doc *base;
  swept_field field[MAX_FIELDS];
  size_t n_fields;
  size_t sorted[MAX_FIELDS]; /* indices of the fields listed in `swept`, by path */
  size_t n_sorted;
  size_t order[MAX_FIELDS]; /* order of setting fields: sections before their members */
  size_t seeds;             /* axis of the seeds, or SIZE_MAX */
  uint64_t *seed;           /* [values of the axis of seeds, or 1] the seeds as numbers */
  char *seed_known;         /* [length of seed] 1: seed[i] was read */
  combination *combination; /* [cells / values of the axis of seeds] */
  tuned_fields tuned;       /* the fields that `tune` chooses for these cells; n = 0: none */
  char **chosen;            /* [n_choices * tuned.n] canonical text of the chosen values; owned */
  int nested; /* 1: templates cannot be used (a field is inside another, or a cell has a
                 checkpoint's checksum) */
  cfg_template *plain, *open; /* template of the cell's text; the same with holes for the tuned
                                 fields, which are the last ones */
  recipe_worlds known;
  recipe_starts starts;
  named_algorithm *named; /* [MAX_NAMED] of which n_named are set */
  size_t n_named;
  gl_error *err;
} expansion;

static int compare_paths(const expansion *x, size_t a, size_t b) {
  return strcmp(x->field[a].path, x->field[b].path);
}

/* Inserts i into a list of n indices sorted by `before`; lists are short. */
static void insert(size_t *list, size_t n, size_t i,
                   int (*compare)(const expansion *, size_t, size_t), const expansion *x) {
  for (; n > 0 && compare(x, list[n - 1], i) > 0; --n) list[n] = list[n - 1];
  list[n] = i;
}

static int compare_lengths(const expansion *x, size_t a, size_t b) {
  const size_t n = strlen(x->field[a].path), m = strlen(x->field[b].path);
  return (n > m) - (n < m);
}

/* The path as a JSON string; owned. */
static char *json_key(const char *path) {
  cJSON *name = must_have(cJSON_CreateString(path), cells_memory);
  char *key = must_have(cJSON_PrintUnformatted(name), cells_memory);
  cJSON_Delete(name);
  return key;
}

/* The canonical text of a node; owned. */
static char *cell_text(const cfg_node *node) {
  return must_have(cfg_canonical(node), cells_memory);
}

static gl_status cells_add_field(expansion *x, const char *path, size_t of) {
  const size_t values = cfg_size(x->grid->axes[of].values), i = x->n_fields;
  if (i == MAX_FIELDS)
    return cfg_fail(x->grid->axes[of].values, x->err, "a sweep sets at most %d fields", MAX_FIELDS);
  swept_field *f = &x->field[x->n_fields++];
  *f = (swept_field){.path = path,
                     .axis = of,
                     .text = MUST_ARRAY(char *, values, cells_memory),
                     .key = json_key(path)};
  for (size_t k = 0; k < values; ++k) f->text[k] = cell_text(field_value_at(x->grid, f, k));
  for (size_t k = 0; k < i; ++k) x->nested |= cfg_paths_overlap(path, x->field[k].path);
  insert(x->order, i, i, compare_lengths, x);
  if (!has_own_column(path)) insert(x->sorted, x->n_sorted++, i, compare_paths, x);
  return GL_OK;
}

static gl_status cells_add_fields(expansion *x) {
  static const char start[] = "world.model.path";
  gl_status status = GL_OK;
  x->seeds = SIZE_MAX;
  for (size_t i = 0; i < x->grid->n_axes && status == GL_OK; ++i) {
    const sweep_axis *swept = &x->grid->axes[i];
    if (strcmp(swept->path, "seed") == 0) x->seeds = i;
    if (!sets_several(swept)) status = cells_add_field(x, swept->path, i);
    const cfg_node *first = sets_several(swept) ? cfg_at(swept->values, 0) : NULL;
    for (size_t k = 0; first != NULL && k < cfg_size(first) && status == GL_OK; ++k)
      status = cells_add_field(x, cfg_key_at(first, k), i);
  }
  /* a cell that starts from a checkpoint contains its checksum, which needs the cell's own tree */
  x->nested |= cfg_find(cfg_root(x->base), start) != NULL;
  for (size_t k = 0; k < x->n_fields; ++k) x->nested |= cfg_paths_overlap(x->field[k].path, start);
  for (size_t k = 0; k < x->n_fields; ++k)
    for (size_t i = 0; i < x->tuned.n; ++i)
      x->nested |= cfg_path_is_inside(x->tuned.path[i], x->field[k].path);
  return status;
}

/* --- a cell from its tree --- */

static gl_status cells_set_fields(const expansion *x, cfg_doc *doc,
                                  const size_t at[SWEEP_MAX_AXES]) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < x->n_fields && status == GL_OK; ++i) {
    const swept_field *f = &x->field[x->order[i]];
    status = cfg_set(doc, f->path, field_value_at(x->grid, f, at[f->axis]), x->err);
  }
  return status;
}

/* Writes the algorithm's shown name, without the fields that the sweep varies or `tune` chooses. */
static gl_status name_algorithm(expansion *x, const policy_algorithm *algorithm,
                                char name[POLICY_NAME_SIZE]) {
  static const char section[] = "algorithm.";
  const char *own[MAX_HOLES];
  size_t n = 0;
  for (size_t i = 0; i < x->n_named; ++i) /* a mismatch in padding bytes only costs time */
    if (memcmp(&x->named[i].read, algorithm, sizeof *algorithm) == 0) {
      memcpy(name, x->named[i].name, POLICY_NAME_SIZE);
      return GL_OK;
    }
  for (size_t i = 0; i < x->n_fields; ++i)
    if (strncmp(x->field[i].path, section, sizeof section - 1) == 0)
      own[n++] = x->field[i].path + sizeof section - 1;
  for (size_t i = 0; i < x->tuned.n; ++i)
    if (strncmp(x->tuned.path[i], section, sizeof section - 1) == 0)
      own[n++] = x->tuned.path[i] + sizeof section - 1;
  policy_algorithm shown = *algorithm;
  gl_status status = policy_algorithm_set_name(&shown, own, n, x->err);
  snprintf(name, POLICY_NAME_SIZE, "%s", shown.name);
  if (status != GL_OK || x->n_named == MAX_NAMED) return status;
  named_algorithm *known = &x->named[x->n_named++];
  memcpy(&known->read, algorithm, sizeof *algorithm);
  memcpy(known->name, name, POLICY_NAME_SIZE);
  return GL_OK;
}

static size_t choice_of(const sweep_expansion *how, const char *algorithm) {
  size_t i = 0;
  while (i < how->n_choices && strcmp(how->choices[i].algorithm, algorithm) != 0) ++i;
  return i;
}

static gl_status set_choice(const expansion *x, cfg_doc *doc, size_t choice) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < x->tuned.n && status == GL_OK; ++i)
    status = cfg_set(doc, x->tuned.path[i], x->how->choices[choice].value[i], x->err);
  return status;
}

/* Sets every tuned field to this value, a placeholder in a text. */
static gl_status mark_tuned(const expansion *x, cfg_doc *doc, const char *value) {
  gl_status status = GL_OK;
  for (size_t i = 0; i < x->tuned.n && status == GL_OK; ++i) {
    char *assignment = must_textf(cells_memory, "%s=%s", x->tuned.path[i], value);
    status = cfg_override(doc, assignment, x->err);
    free(assignment);
  }
  return status;
}

/* Parses the recipe at that position, checks it if requested, and stores the properties common to
 * all its seeds. */
static gl_status cells_read_cell(expansion *x, cfg_doc *doc, const size_t at[SWEEP_MAX_AXES],
                                 combination *c, uint64_t *seed) {
  recipe r;
  gl_status status = cells_set_fields(x, doc, at);
  if (status == GL_OK) status = recipe_read(&r, doc, x->err);
  if (status == GL_OK) status = name_algorithm(x, &r.algorithm, c->algorithm);
  if (status != GL_OK) return status;
  c->choice = choice_of(x->how, c->algorithm);
  if (c->choice < x->how->n_choices) {
    status = set_choice(x, doc, c->choice);
    if (status == GL_OK) status = recipe_read(&r, doc, x->err);
  } else if (x->how->n_choices > 0 && x->tuned.n > 0) {
    status = gl_fail(x->err, GL_EINTERNAL, "nothing was chosen for %s", c->algorithm);
  }
  if (status == GL_OK) status = recipe_pin_start(doc, &r, &x->starts, x->err);
  if (status == GL_OK) status = recipe_read(&r, doc, x->err);
  if (status == GL_OK && x->how->check) status = recipe_check(&r, &x->known, x->err);
  if (status != GL_OK) return status;
  c->lr = recipe_lr(&r);
  c->is_llm = recipe_is_llm(&r);
  c->steps = r.steps;
  c->known = 1;
  *seed = r.seed;
  return GL_OK;
}

/* --- the texts of a cell --- */

/* Writes the prefix of a cell's identity: the version of what recipes mean. Returns its length. */
static size_t meaning_text(char *to, size_t size) {
  return (size_t)snprintf(to, size, "meaning %d: ", RECIPE_MEANING);
}

/* Writes {"cluster.max_delay":600}, sorted by path, without a terminating null. Returns the length;
 * only counts if `to` is NULL. */
static size_t put_swept(const expansion *x, const size_t at[SWEEP_MAX_AXES], char *to) {
  size_t n = 0;
  for (size_t i = 0; i < x->n_sorted; ++i) {
    const swept_field *f = &x->field[x->sorted[i]];
    const char *const parts[] = {i == 0 ? "{" : ",", f->key, ":", f->text[at[f->axis]]};
    for (size_t k = 0; k < 4; ++k) {
      const size_t length = strlen(parts[k]);
      if (to != NULL) memcpy(to + n, parts[k], length);
      n += length;
    }
  }
  if (to != NULL) memcpy(to + n, x->n_sorted == 0 ? "{}" : "}", x->n_sorted == 0 ? 2 : 1);
  return n + (x->n_sorted == 0 ? 2 : 1);
}

/* Allocates identity, recipe and swept of a cell as one block, because there may be a million
 * cells. size: bytes of the recipe. Returns the destination of its text. */
static char *make_texts(const expansion *x, sweep_cell *cell, const size_t at[SWEEP_MAX_AXES],
                        size_t size) {
  char meaning[48];
  const size_t before = meaning_text(meaning, sizeof meaning), swept = put_swept(x, at, NULL);
  char *all = must_resize(NULL, before + size + 1 + swept + 1, 1, cells_memory);
  memcpy(all, meaning, before);
  put_swept(x, at, all + before + size + 1);
  all[before + size + 1 + swept] = '\0';
  cell->identity = all;
  cell->recipe = all + before;
  cell->swept = all + before + size + 1;
  return all + before;
}

/* Sets cell->place, which identifies the cell within its study. If all fields are stated, it is the
 * key; if `tune` chooses some, it is the hash of the recipe with these fields open. open, size: the
 * text of that recipe. */
static void set_place(sweep_cell *cell, const char *open, size_t size) {
  const size_t before = (size_t)(cell->recipe - cell->identity);
  char *identity = must_resize(NULL, before + size, 1, cells_memory);
  memcpy(identity, cell->identity, before);
  memcpy(identity + before, open, size);
  hash_hex(identity, before + size, cell->place);
  free(identity);
}

/* Generates the texts from the cell's tree, from which chosen fields may be removed. */
static gl_status texts_of_tree(expansion *x, sweep_cell *cell, cfg_doc *doc,
                               const size_t at[SWEEP_MAX_AXES]) {
  char *text = cell_text(cfg_root(doc));
  const size_t size = strlen(text);
  memcpy(make_texts(x, cell, at, size), text, size + 1);
  free(text);
  hash_hex(cell->identity, strlen(cell->identity), cell->key);
  memcpy(cell->place, cell->key, sizeof cell->place);
  if (x->tuned.n == 0) return GL_OK;
  gl_status status = mark_tuned(x, doc, "null");
  if (status != GL_OK) return status;
  text = cell_text(cfg_root(doc));
  set_place(cell, text, strlen(text));
  free(text);
  return GL_OK;
}

/* Generates the texts from the templates. */
static void texts_of_template(expansion *x, sweep_cell *cell, const combination *c,
                              const size_t at[SWEEP_MAX_AXES]) {
  const char *value[MAX_HOLES];
  for (size_t i = 0; i < x->n_fields; ++i) value[i] = x->field[i].text[at[x->field[i].axis]];
  const bool chosen = c->choice < x->how->n_choices;
  for (size_t i = 0; i < x->tuned.n && chosen; ++i)
    value[x->n_fields + i] = x->chosen[c->choice * x->tuned.n + i];
  const cfg_template *t = chosen && x->tuned.n > 0 ? x->open : x->plain;
  cfg_template_write(t, value, make_texts(x, cell, at, cfg_template_size(t, value)));
  hash_hex(cell->identity, strlen(cell->identity), cell->key);
  memcpy(cell->place, cell->key, sizeof cell->place);
  if (x->tuned.n == 0) return;
  for (size_t i = 0; i < x->tuned.n; ++i) value[x->n_fields + i] = "null";
  const size_t size = cfg_template_size(x->open, value);
  char *open = must_resize(NULL, size + 1, 1, cells_memory);
  cfg_template_write(x->open, value, open);
  set_place(cell, open, size);
  free(open);
}

/* Writes {"optimizer.lr":0.1}: the chosen values, in the order of `tune`. */
static void set_chosen(const expansion *x, sweep_cell *cell, const combination *c) {
  size_t size = 0;
  if (c->choice == x->how->n_choices || x->tuned.n == 0) return;
  FILE *to = must_have(open_memstream(&cell->chosen, &size), cells_memory);
  for (size_t i = 0; i < x->tuned.n; ++i) {
    char *key = json_key(x->tuned.path[i]);
    fprintf(to, "%s%s:%s", i == 0 ? "{" : ",", key, x->chosen[c->choice * x->tuned.n + i]);
    free(key);
  }
  fputc('}', to);
  must_succeed(fclose(to) == 0, cells_memory);
}

/* --- expanding the grid --- */

/* Index of the combination at a position, ignoring the axis of seeds. */
static size_t combination_at(const expansion *x, const size_t at[SWEEP_MAX_AXES]) {
  size_t number = 0;
  for (size_t i = 0; i < x->grid->n_axes; ++i)
    if (i != x->seeds) number = number * cfg_size(x->grid->axes[i].values) + at[i];
  return number;
}

/* Parses a seed in an otherwise empty recipe, so that it gives the same result or error as
 * recipe_read(). */
static gl_status cells_read_seed(const expansion *x, size_t value, uint64_t *seed) {
  static const char empty[] = "{}";
  cfg_doc *doc = NULL;
  cfg_reader r;
  gl_status status = cfg_load_text(&doc, empty, sizeof empty - 1, "seed", x->err);
  if (status == GL_OK)
    status = cfg_set(doc, "seed", cfg_at(x->grid->axes[x->seeds].values, value), x->err);
  if (status == GL_OK) {
    cfg_begin_at(&r, cfg_root(doc), "", "recipe", x->err);
    *seed = (uint64_t)field_integer(&r, "seed");
    status = cfg_end(&r);
  }
  cfg_free(doc);
  return status;
}

/* Fills in a cell: its recipe's text, algorithm, seed and steps. *slow: 1 if its recipe was built
 * and parsed, 0 if its values were only written into a text that has places for them
 * (make_templates()). */
static gl_status cells_fill_cell(expansion *x, sweep_cell *cell, int *slow) {
  size_t at[SWEEP_MAX_AXES];
  cell_position(x->grid, cell->ordinal, at);
  combination *c = &x->combination[combination_at(x, at)];
  const size_t seed = x->seeds == SIZE_MAX ? 0 : at[x->seeds];
  gl_status status = GL_OK;
  cfg_doc *doc = NULL;
  *slow = !c->known || x->nested;
  if (!*slow && x->seeds != SIZE_MAX && !x->seed_known[seed]) {
    status = cells_read_seed(x, seed, &x->seed[seed]);
    x->seed_known[seed] = status == GL_OK;
  }
  if (*slow) {
    status = cfg_copy(&doc, x->base, x->err);
    if (status == GL_OK) status = cells_read_cell(x, doc, at, c, &c->seed);
    x->seed[seed] = c->seed;
    x->seed_known[seed] = status == GL_OK;
  }
  if (status == GL_OK && x->nested)
    status = texts_of_tree(x, cell, doc, at);
  else if (status == GL_OK)
    texts_of_template(x, cell, c, at);
  cfg_free(doc);
  if (status != GL_OK) return status;
  memcpy(cell->algorithm, c->algorithm, sizeof cell->algorithm);
  cell->source = x->out->source;
  cell->seed = x->seeds == SIZE_MAX ? c->seed : x->seed[seed];
  cell->steps = c->steps;
  cell->is_llm = c->is_llm;
  cell->lr = c->lr;
  set_chosen(x, cell, c);
  return GL_OK;
}

/* Makes the templates of the cells' texts from the first cell. */
static gl_status make_templates(expansion *x) {
  const size_t first[SWEEP_MAX_AXES] = {0};
  const char *path[MAX_HOLES];
  cfg_doc *doc = NULL;
  if (x->nested) return GL_OK;
  for (size_t i = 0; i < x->n_fields; ++i) path[i] = x->field[i].path;
  for (size_t i = 0; i < x->tuned.n; ++i) path[x->n_fields + i] = x->tuned.path[i];
  gl_status status = cfg_copy(&doc, x->base, x->err);
  if (status == GL_OK) status = cells_set_fields(x, doc, first);
  if (status == GL_OK) status = cfg_template_new(&x->plain, doc, path, x->n_fields, x->err);
  if (status == GL_OK && x->tuned.n > 0) {
    status = mark_tuned(x, doc, "0");
    if (status == GL_OK)
      status = cfg_template_new(&x->open, doc, path, x->n_fields + x->tuned.n, x->err);
  }
  cfg_free(doc);
  return status;
}

/* The fields that `tune` chooses in the grid's cells. None in the grid of tuning runs, where they
 * are axes. */
static tuned_fields cells_open_fields(const cfg_doc *doc, const sweep_grid *grid) {
  tuned_fields t = tuned_fields_of(doc);
  for (size_t i = 0; i < grid->n_axes && t.n > 0; ++i)
    if (strcmp(grid->axes[i].path, t.path[0]) == 0) t.n = 0;
  return t;
}

/* Generates the texts of the chosen values. */
static void write_choices(expansion *x) {
  const size_t n = x->how->n_choices * x->tuned.n;
  x->chosen = MUST_ARRAY(char *, n, cells_memory);
  for (size_t i = 0; i < n; ++i)
    x->chosen[i] = cell_text(x->how->choices[i / x->tuned.n].value[i % x->tuned.n]);
}

/* Copies the recipe without keys that do not belong to a cell: the sweep, descriptions of the
 * study, and keys that do not affect results. */
static gl_status cell_base(cfg_doc **out, const cfg_doc *doc, gl_error *err) {
  static const char *const not_in_cells[] = {"sweep", "tune", "contrasts", "description",
                                             "checkpoint"};
  gl_status status = cfg_copy(out, doc, err);
  for (size_t i = 0; i < sizeof not_in_cells / sizeof not_in_cells[0] && status == GL_OK; ++i)
    cfg_remove(*out, not_in_cells[i]);
  return status;
}

static void cells_allocate(expansion *x, size_t n) {
  const size_t seeds = x->seeds == SIZE_MAX ? 1 : cfg_size(x->grid->axes[x->seeds].values);
  const char *source = cfg_source_path(cfg_root(x->base));
  x->out->source = source != NULL ? must_copy(source, cells_memory) : NULL;
  x->out->cells = MUST_ARRAY(sweep_cell, n, cells_memory);
  x->combination = MUST_ARRAY(combination, n / seeds, cells_memory);
  x->seed = MUST_ARRAY(uint64_t, seeds, cells_memory);
  x->seed_known = MUST_ARRAY(char, seeds, cells_memory);
  x->named = MUST_ARRAY(named_algorithm, MAX_NAMED, cells_memory);
}

static void expansion_fini(expansion *x) {
  for (size_t i = 0; i < x->n_fields; ++i) {
    const size_t values = cfg_size(x->grid->axes[x->field[i].axis].values);
    for (size_t k = 0; x->field[i].text != NULL && k < values; ++k) free(x->field[i].text[k]);
    free(x->field[i].text);
    cJSON_free(x->field[i].key);
  }
  cfg_template_free(x->plain);
  cfg_template_free(x->open);
  for (size_t i = 0; x->chosen != NULL && i < x->how->n_choices * x->tuned.n; ++i)
    free(x->chosen[i]);
  free(x->chosen);
  cfg_free(x->base);
  free(x->combination);
  free(x->seed);
  free(x->seed_known);
  free(x->named);
  recipe_worlds_fini(&x->known);
  recipe_starts_fini(&x->starts);
}

gl_status sweep_cell_recipe(cfg_doc **out, const sweep_cell *cell, gl_error *err) {
  return cfg_load_text_of(out, cell->recipe, strlen(cell->recipe), cell->key, cell->source, err);
}

/* --- all cells --- */

static int cells_compare_keys(const void *a, const void *b) {
  return strcmp((*(const sweep_cell *const *)a)->key, (*(const sweep_cell *const *)b)->key);
}

static gl_status refuse_equal_cells(const sweep_cells *s, const cfg_node *place, gl_error *err) {
  const sweep_cell **sorted = MUST_ARRAY(const sweep_cell *, s->n_cells, cells_memory);
  for (size_t i = 0; i < s->n_cells; ++i) sorted[i] = &s->cells[i];
  qsort(sorted, s->n_cells, sizeof *sorted, cells_compare_keys);
  gl_status status = GL_OK;
  for (size_t i = 1; i < s->n_cells && status == GL_OK; ++i)
    if (cells_compare_keys(&sorted[i - 1], &sorted[i]) == 0)
      status =
          cfg_fail(place, err,
                   "the sweep has the same cell twice (algorithm %s, seed %llu, %s); list "
                   "every value once",
                   sorted[i]->algorithm, (unsigned long long)sorted[i]->seed, sorted[i]->swept);
  free(sorted);
  return status;
}

static gl_status refuse_equal_name(const cfg_node *at, const cfg_node *before, gl_error *err) {
  policy_algorithm one, other;
  gl_status status = policy_algorithm_parse(&one, at, err);
  if (status == GL_OK) status = policy_algorithm_parse(&other, before, err);
  if (status == GL_OK && strcmp(one.name, other.name) == 0)
    return cfg_fail(at, err,
                    "two algorithms of the sweep are shown as '%s'; list each once, or give one of "
                    "them a `name:` of its own",
                    one.name);
  return status;
}

static gl_status cells_refuse_equal_names(const sweep_grid *grid, gl_error *err) {
  for (size_t a = 0; a < grid->n_axes; ++a) {
    if (strcmp(grid->axes[a].path, "algorithm") != 0) continue;
    const cfg_node *list = grid->axes[a].values;
    for (size_t i = 0; i < cfg_size(list); ++i)
      for (size_t k = 0; k < i; ++k) {
        const gl_status status = refuse_equal_name(cfg_at(list, i), cfg_at(list, k), err);
        if (status != GL_OK) return status;
      }
  }
  return GL_OK;
}

static gl_status interrupted(gl_error *err) {
  return gl_fail(err, GL_EINTERRUPTED,
                 "interrupted while the cells of the sweep were listed; nothing was run");
}

static gl_status fill_cells(expansion *x, size_t n) {
  enum { PAUSE = 1024 }; /* cells made from templates take one or two microseconds */
  gl_status status = GL_OK;
  int slow = 1;
  for (size_t i = 0; i < n && status == GL_OK; ++i) {
    if ((slow || i % PAUSE == 0) && x->how->tick != NULL && x->how->tick(x->how->self, i, n))
      return interrupted(x->err);
    x->out->n_cells = i + 1;
    x->out->cells[i].ordinal = i;
    status = cells_fill_cell(x, &x->out->cells[i], &slow);
  }
  return status;
}

gl_status sweep_expand(sweep_cells *out, const cfg_doc *doc, const sweep_grid *grid,
                       const sweep_expansion *how, gl_error *err) {
  *out = (sweep_cells){0};
  expansion x = {
      .grid = grid, .how = how, .out = out, .tuned = cells_open_fields(doc, grid), .err = err};
  size_t n = 0;
  gl_status status = count_cells(grid, &n, err);
  if (status == GL_OK && how->check) status = cells_refuse_equal_names(grid, err);
  if (status == GL_OK) status = cell_base(&x.base, doc, err);
  if (status == GL_OK) status = cells_add_fields(&x);
  if (status == GL_OK) write_choices(&x);
  if (status == GL_OK) status = make_templates(&x);
  if (status == GL_OK) cells_allocate(&x, n);
  if (status == GL_OK) status = fill_cells(&x, n);
  expansion_fini(&x);
  if (status == GL_OK && how->check) status = refuse_equal_cells(out, grid->axes[0].values, err);
  if (status != GL_OK) sweep_cells_fini(out);
  return status;
}

void sweep_cells_fini(sweep_cells *s) {
  for (size_t i = 0; i < s->n_cells; ++i) {
    free(s->cells[i].identity);
    free(s->cells[i].chosen);
  }
  free(s->cells);
  free(s->source);
  *s = (sweep_cells){0};
}

bool sweep_cell_repeats(const sweep_cells *s, size_t i) {
  for (size_t k = 0; k < i; ++k)
    if (strcmp(s->cells[k].swept, s->cells[i].swept) == 0) return true;
  return false;
}

/* --- declared contrasts --- */

enum { MOST_CONTRASTS = 1000 };

/* Whether the path is a field of an algorithm, such as algorithm.ref_kl_coef. */
static bool is_algorithm_field(const char *path) {
  static const char section[] = "algorithm.";
  size_t i = policy_fields_count();
  if (strncmp(path, section, sizeof section - 1) != 0) return false;
  while (i > 0 && strcmp(policy_fields_at(i - 1)->name, path + sizeof section - 1) != 0) --i;
  return i > 0;
}

static gl_status contrasts_read_field(contrast_field *out, const cfg_node *arm, size_t i,
                                      gl_error *err) {
  const char *path = cfg_key_at(arm, i);
  const cfg_node *value = cfg_at(arm, i);
  if (strcmp(path, "algorithm") != 0 && fields_named(path) == NULL && !is_algorithm_field(path))
    return cfg_fail(
        value, err,
        "contrasts: there is no field %s; an arm names `algorithm` and paths of fields, "
        "as in {algorithm: gepo, cluster.preset: fifo}",
        path);
  if (cfg_kind_of(value) != CFG_SCALAR || cfg_is_null(value))
    return cfg_fail(value, err, "contrasts: %s of an arm must be one value", path);
  *out = (contrast_field){path, cfg_text(value)};
  return GL_OK;
}

static gl_status read_arm(contrast_arm *out, const cfg_node *arm, const cfg_node *at,
                          const char *key, gl_error *err) {
  if (arm == NULL || cfg_kind_of(arm) != CFG_MAP || cfg_size(arm) == 0)
    return cfg_fail(arm != NULL ? arm : at, err,
                    "contrasts: `%s` must be a map of fields to values, as in {algorithm: gepo, "
                    "cluster.preset: fifo}",
                    key);
  if (cfg_size(arm) > CONTRAST_FIELDS)
    return cfg_fail(arm, err, "contrasts: `%s` names more than %d fields", key, CONTRAST_FIELDS);
  gl_status status = GL_OK;
  for (out->n = 0; out->n < cfg_size(arm) && status == GL_OK; ++out->n)
    status = contrasts_read_field(&out->field[out->n], arm, out->n, err);
  return status;
}

static gl_status read_contrast(contrast *out, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "contrasts", err);
  out->name = cfg_string(&r, "name", "");
  out->measure = (contrast_measure)cfg_choice(&r, "measure", CONTRAST_COLLAPSE,
                                              contrast_measure_names, CONTRAST_MEASURES);
  const cfg_node *of = cfg_child(&r, "of"), *against = cfg_child(&r, "against");
  gl_status status = cfg_end(&r);
  if (status == GL_OK && *out->name == '\0')
    status = cfg_fail(node, err, "contrasts: each needs a name");
  if (status == GL_OK) status = read_arm(&out->of, of, node, "of", err);
  return status == GL_OK ? read_arm(&out->against, against, node, "against", err) : status;
}

gl_status declared_contrasts_read(declared_contrasts *out, const cfg_doc *doc, gl_error *err) {
  *out = (declared_contrasts){0};
  const cfg_node *list = cfg_find(cfg_root(doc), "contrasts");
  if (list == NULL || cfg_is_null(list)) return GL_OK;
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0 || cfg_size(list) > MOST_CONTRASTS)
    return cfg_fail(list, err,
                    "contrasts must be a list of 1 to %d, as in [{name: gate, of: {algorithm: "
                    "gepo}, against: {algorithm: gspo}}]",
                    MOST_CONTRASTS);
  out->contrast = MUST_ARRAY(contrast, cfg_size(list), "the contrasts");
  gl_status status = GL_OK;
  for (; out->n < cfg_size(list) && status == GL_OK; ++out->n) {
    const cfg_node *node = cfg_at(list, out->n);
    status = read_contrast(&out->contrast[out->n], node, err);
    for (size_t i = 0; i < out->n && status == GL_OK; ++i)
      if (strcmp(out->contrast[i].name, out->contrast[out->n].name) == 0)
        status = cfg_fail(node, err, "two contrasts have the name '%s'", out->contrast[i].name);
  }
  return status;
}

void declared_contrasts_fini(declared_contrasts *d) {
  free(d->contrast);
  *d = (declared_contrasts){0};
}

static bool contrasts_is_swept(const sweep_cells *cells, const char *algorithm) {
  for (size_t i = 0; i < cells->n_cells; ++i)
    if (strcmp(cells->cells[i].algorithm, algorithm) == 0) return true;
  return false;
}

gl_status declared_contrasts_check(const cfg_doc *doc, const sweep_cells *cells, gl_error *err) {
  declared_contrasts d = {0};
  gl_status status = declared_contrasts_read(&d, doc, err);
  for (size_t i = 0; i < d.n && status == GL_OK; ++i) {
    const contrast_arm *arms[] = {&d.contrast[i].of, &d.contrast[i].against};
    for (size_t k = 0; k < 2 * CONTRAST_FIELDS && status == GL_OK; ++k) {
      const contrast_arm *arm = arms[k / CONTRAST_FIELDS];
      const size_t f = k % CONTRAST_FIELDS;
      if (f >= arm->n || strcmp(arm->field[f].path, "algorithm") != 0 ||
          contrasts_is_swept(cells, arm->field[f].value))
        continue;
      status = cfg_fail(cfg_at(cfg_find(cfg_root(doc), "contrasts"), i), err,
                        "the contrast '%s' names the algorithm '%s', which the sweep does not have",
                        d.contrast[i].name, arm->field[f].value);
    }
  }
  declared_contrasts_fini(&d);
  return status;
}

/* --- when contrasts were written --- */

/* State of declared_contrasts_origins(): contrasts to look for in the recipes of a study. */
typedef struct origin_search {
  declared_contrasts *of;
  gl_status status;
  gl_error *err;
} origin_search;

/* Marks the contrasts that this recipe of the study declares. */
static int find_in_recipe(void *self, const char *json) {
  origin_search *s = self;
  declared_contrasts known = {0};
  cfg_doc *doc = NULL;
  s->status = cfg_load_text(&doc, json, strlen(json), "the study's recipe", s->err);
  if (s->status == GL_OK) s->status = declared_contrasts_read(&known, doc, s->err);
  for (size_t i = 0; i < s->of->n && s->status == GL_OK; ++i) {
    contrast *c = &s->of->contrast[i];
    if (c->origin == CONTRAST_ORIGIN_UNKNOWN) c->origin = CONTRAST_AFTERWARDS;
    for (size_t k = 0; k < known.n; ++k)
      if (contrast_is_same(c, &known.contrast[k])) c->origin = CONTRAST_DECLARED;
  }
  declared_contrasts_fini(&known);
  cfg_free(doc);
  return s->status == GL_OK;
}

gl_status declared_contrasts_origins(declared_contrasts *d, store *from, const char *study,
                                     gl_error *err) {
  origin_search s = {d, GL_OK, err};
  const gl_status status = store_recipes(from, study, find_in_recipe, &s, err);
  return status == GL_OK ? s.status : status;
}

gl_status declared_contrasts_forget_later(cfg_doc *doc, store *of, const char *study,
                                          gl_error *err) {
  declared_contrasts d = {0};
  study_progress p = {0};
  char *kept = NULL;
  size_t size = 0, n = 0;
  gl_status status = declared_contrasts_read(&d, doc, err);
  if (status == GL_OK && d.n > 0) status = store_progress(of, study, &p, err);
  const int begun = p.done + p.diverged + p.superseded > 0;
  if (status == GL_OK && begun) status = declared_contrasts_origins(&d, of, study, err);
  if (status == GL_OK && begun) {
    FILE *to = must_have(open_memstream(&kept, &size), "the contrasts");
    fputs("contrasts=[", to);
    for (size_t i = 0; i < d.n; ++i) {
      if (d.contrast[i].origin != CONTRAST_DECLARED) continue;
      char *one = must_have(cfg_canonical(cfg_at(cfg_find(cfg_root(doc), "contrasts"), i)),
                            "the contrasts");
      fprintf(to, "%s%s", n++ > 0 ? "," : "", one);
      free(one);
    }
    fputc(']', to);
    must_succeed(fclose(to) == 0, "the contrasts");
    if (n == 0)
      cfg_remove(doc, "contrasts");
    else if (n < d.n)
      status = cfg_override(doc, kept, err);
  }
  free(kept);
  declared_contrasts_fini(&d);
  return status;
}
