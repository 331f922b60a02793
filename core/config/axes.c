/* Compares the recipes of a study field by field. */
#include "core/config/axes.h"

#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/config/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- table of fields of runs --- */

typedef struct column {
  const char *path;
  const field *field; /* first table entry for the path; NULL: not in any table */
  bool may_be_short;  /* a field's short form may appear at this path */
  uint32_t *value;    /* [n_runs] text numbers; 0: no value */
  field_role role;
  field_kind kind; /* kind of `field`, or else of the values */
  const char *unit, *label;
  bool swept;   /* named by a sweep */
  bool is_axis; /* distinguishes cells */
} column;

/* Equal texts are stored once and known by their number, from 1; 0 stands for no text. Values,
 * cells and runs are compared by such numbers. */
typedef struct comparison {
  const axes_run *runs;
  size_t n_runs;
  arena result; /* texts and memory of the resulting axis table */
  arena scratch;
  const char **text; /* [n_texts]; text[0] is NULL */
  size_t n_texts;
  hash_table texts, paths; /* maps from texts to numbers and from paths to columns */
  column *columns;
  size_t n;
  uint32_t *study;     /* [n_runs] the studies' names */
  uint32_t *algorithm; /* [n_runs] the shown names, made distinct */
  uint32_t *cell;      /* [n_runs] equal for runs of one cell */
  uint32_t *repeat;    /* [n_runs] equal for runs of one cell and seed */
  uint32_t *first;     /* [first_room] per number: 1 + index of the first run with that number */
  size_t first_room;
  gl_error *err;
  gl_status status;
} comparison;

static void axes_out_of_memory(comparison *c) {
  if (c->status == GL_OK) c->status = gl_fail_memory(c->err, "the fields of a study's recipes");
}

static bool is_text(const void *texts, uint64_t number, const void *text) {
  return strcmp(((const char *const *)texts)[number], text) == 0;
}

/* The number of the text, which is copied if it is new; 0 if out of memory. */
static uint32_t number_text_once(comparison *c, const char *text) {
  const uint64_t hash = hash_64_text(HASH_64_START, text);
  const uint64_t *known = hash_table_find(&c->texts, hash, is_text, c->text, text);
  if (known != NULL) return (uint32_t)*known;
  char *copy = c->n_texts < UINT32_MAX ? arena_text(&c->result, text) : NULL;
  const char **added = copy != NULL ? ARRAY_ADD(c->text, c->n_texts) : NULL;
  if (added != NULL) *added = copy;
  if (added != NULL && hash_table_add(&c->texts, hash, c->n_texts - 1))
    return (uint32_t)(c->n_texts - 1);
  axes_out_of_memory(c);
  return 0;
}

static bool has_path(const void *columns, uint64_t i, const void *path) {
  return strcmp(((const column *)columns)[i].path, path) == 0;
}

/* The column for that path, or NULL. */
static column *axes_column(const comparison *c, const char *path) {
  const uint64_t *i =
      hash_table_find(&c->paths, hash_64_text(HASH_64_START, path), has_path, c->columns, path);
  return i != NULL ? &c->columns[*i] : NULL;
}

static bool some_short_form_is_at(const char *path) {
  const field *f;
  for (size_t i = 0; (f = fields_at(i)) != NULL; ++i)
    if (f->shorthand != NULL && strcmp(f->shorthand, path) == 0) return true;
  return false;
}

/* The column for that path, added if needed; NULL if out of memory. */
static column *column_made(comparison *c, const char *path, field_kind kind) {
  column *to = axes_column(c, path);
  if (to != NULL) return to;
  char *own = arena_text(&c->scratch, path);
  uint32_t *value = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs);
  if (!c->scratch.failed && (to = ARRAY_ADD(c->columns, c->n)) != NULL)
    *to = (column){.path = own,
                   .field = fields_named(path),
                   .may_be_short = some_short_form_is_at(path),
                   .value = value,
                   .kind = kind,
                   .unit = ""};
  if (to == NULL || !hash_table_add(&c->paths, hash_64_text(HASH_64_START, path), c->n - 1))
    axes_out_of_memory(c);
  return c->status == GL_OK ? to : NULL;
}

/* --- from JSON to fields --- */

enum { AXIS_PATH_SIZE = 512 };

/* A run as passed to the tables of fields. */
typedef struct one_run {
  const comparison *from;
  size_t run;
} one_run;

static const char *value_in_run(const void *recipe, const char *path, int *stated) {
  const one_run *r = recipe;
  const column *k = axes_column(r->from, path);
  const uint32_t number = k != NULL ? k->value[r->run] : 0;
  *stated = number != 0;
  return r->from->text[number];
}

static field_kind kind_of_json(const cJSON *value) {
  if (cJSON_IsNumber(value)) return VALUE_NUMBER;
  if (cJSON_IsBool(value)) return VALUE_FLAG;
  return cJSON_IsArray(value) ? VALUE_LIST : VALUE_TEXT;
}

/* The number of the text used to compare a value of a field (f NULL: not in any table); 0 if out of
 * memory. */
static uint32_t number_of_value(comparison *c, const field *f, const cJSON *value) {
  char digits[NUMBER_TEXT_SIZE];
  if (cJSON_IsNumber(value)) return number_text_once(c, number_text(value->valuedouble, digits));
  if (cJSON_IsBool(value)) return number_text_once(c, cJSON_IsTrue(value) ? "true" : "false");
  if (cJSON_IsString(value)) {
    const bool is_none =
        f != NULL && f->kind == VALUE_NUMBER && strcmp(value->valuestring, "none") == 0;
    return number_text_once(c, !is_none ? value->valuestring : f->no_limit ? "inf" : "0");
  }
  char *whole = cJSON_PrintUnformatted(value);
  const uint32_t number = whole != NULL ? number_text_once(c, whole) : 0;
  if (whole == NULL) axes_out_of_memory(c);
  cJSON_free(whole);
  return number;
}

static void set_value(comparison *c, size_t run, const char *path, const cJSON *value, bool swept) {
  const field_kind kind = kind_of_json(value);
  column *to = column_made(c, path, kind);
  const uint32_t number = to != NULL ? number_of_value(c, to->field, value) : 0;
  if (number == 0) return;
  if (to->kind != kind) to->kind = VALUE_TEXT; /* numbers in some runs, words in others */
  to->value[run] = number;
  to->swept |= swept;
}

/* A scalar in place of a section sets one of the section's fields (short form). */
static void set_leaf(comparison *c, size_t run, const char *path, const cJSON *value, bool swept) {
  const one_run here = {c, run};
  const column *known = axes_column(c, path);
  const field *f =
      known == NULL || known->may_be_short ? fields_short_form(path, value_in_run, &here) : NULL;
  set_value(c, run, f != NULL ? f->path : path, value, swept);
}

static void set_fields(comparison *c, size_t run, char path[AXIS_PATH_SIZE], const cJSON *value,
                       bool swept) {
  const size_t length = strlen(path);
  if (c->status != GL_OK || cJSON_IsNull(value)) return; /* null means that the field is not set */
  if (!cJSON_IsObject(value) || fields_is_one_value(path)) {
    set_leaf(c, run, path, value, swept);
    return;
  }
  for (const cJSON *m = value->child; m != NULL && c->status == GL_OK; m = m->next) {
    const int n =
        snprintf(path + length, AXIS_PATH_SIZE - length, "%s%s", length > 0 ? "." : "", m->string);
    if (n < 0 || (size_t)n >= AXIS_PATH_SIZE - length)
      c->status = gl_fail(c->err, GL_EIO, "a stored recipe has a path of more than %d characters",
                          AXIS_PATH_SIZE - 1);
    else
      set_fields(c, run, path, m, swept);
    path[length] = '\0';
  }
}

static void read_fields_of(comparison *c, size_t run, const char *text, bool swept) {
  char path[AXIS_PATH_SIZE] = "";
  if (text == NULL || c->status != GL_OK) return;
  cJSON *object = json_tree_of(text);
  if (!cJSON_IsObject(object))
    c->status = gl_fail(c->err, GL_EIO,
                        "a stored recipe or its swept fields are not a JSON object ('%.60s'); is "
                        "the file damaged?",
                        text);
  /* The kind of world determines the meaning of short forms, so it is read first. */
  const cJSON *world = cJSON_GetObjectItemCaseSensitive(object, "world");
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(world, "kind");
  if (c->status == GL_OK && !swept && cJSON_IsString(kind))
    set_value(c, run, "world.kind", kind, false);
  /* names of swept fields are already dotted paths */
  if (c->status == GL_OK) set_fields(c, run, path, object, swept);
  cJSON_Delete(object);
}

static void read_runs(comparison *c) {
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char digits[24];
    read_fields_of(c, i, c->runs[i].recipe, false);
    read_fields_of(c, i, c->runs[i].swept, true);
    c->study[i] = number_text_once(c, c->runs[i].study);
    snprintf(digits, sizeof digits, "%lld", (long long)c->runs[i].meaning);
    column *meaning = column_made(c, "meaning of recipes", VALUE_NUMBER);
    if (meaning != NULL) meaning->value[i] = number_text_once(c, digits);
  }
}

/* The stored value in effect of a field in a run, whatever its origin; NULL: not stored. */
static const cJSON *value_in_effect(const cJSON *in_effect, const char *path) {
  const cJSON *found = NULL;
  for (const cJSON *origin = in_effect->child; origin != NULL && found == NULL;
       origin = origin->next)
    found = cJSON_GetObjectItemCaseSensitive(origin, path);
  return found;
}

/* The number of the text of a field that the run's recipe omits; 0: unknown. A failed run has no
 * record of values in effect, so the default in the tables is used. */
static uint32_t number_of_default(comparison *c, const cJSON *in_effect, size_t run,
                                  const column *k) {
  char room[FIELD_TEXT_SIZE];
  const one_run here = {c, run};
  if (in_effect == NULL) {
    const char *text = fields_default(k->path, value_in_run, &here, room);
    return text != NULL ? number_text_once(c, text) : 0;
  }
  const cJSON *value = k->field != NULL ? value_in_effect(in_effect, k->path) : NULL;
  return value != NULL ? number_of_value(c, k->field, value) : 0;
}

/* Fills in the values in effect where recipes omit a field. Conditions of defaults depend on what
 * recipes state, so all defaults of a run are found before any is filled in. */
static void fill_defaults(comparison *c) {
  uint32_t *found = ARENA_ARRAY(&c->scratch, uint32_t, c->n);
  if (found == NULL) axes_out_of_memory(c);
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    if (c->runs[i].recipe == NULL) continue;
    cJSON *in_effect = c->runs[i].in_effect != NULL ? json_tree_of(c->runs[i].in_effect) : NULL;
    for (size_t k = 0; k < c->n && c->status == GL_OK; ++k)
      found[k] = c->columns[k].value[i] == 0 ? number_of_default(c, in_effect, i, &c->columns[k])
                                             : c->columns[k].value[i];
    for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) c->columns[k].value[i] = found[k];
    cJSON_Delete(in_effect);
  }
}

/* --- roles --- */

static void find_role(column *k) {
  const field *f = k->field;
  k->role = f != NULL                                  ? f->role
            : cfg_path_is_inside(k->path, "algorithm") ? ROLE_ALGORITHM
                                                       : ROLE_AXIS;
  if (k->swept) k->role = ROLE_AXIS; /* then it is not part of the algorithm's name */
  if (f == NULL) return;
  k->kind = f->kind;
  k->unit = f->unit;
  k->label = f->label;
}

/* A field that was tuned in some run gets the role ROLE_CHOSEN, unless a sweep also named it. */
static void mark_chosen(comparison *c) {
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    if (c->runs[i].chosen == NULL) continue;
    cJSON *chosen = json_tree_of(c->runs[i].chosen);
    if (!cJSON_IsObject(chosen))
      c->status = gl_fail(c->err, GL_EIO,
                          "a run's chosen fields '%.60s' are not a JSON object; is the file "
                          "damaged?",
                          c->runs[i].chosen);
    for (const cJSON *m = c->status == GL_OK ? chosen->child : NULL; m != NULL; m = m->next) {
      column *k = axes_column(c, m->string);
      if (k != NULL && !k->swept) k->role = ROLE_CHOSEN;
    }
    cJSON_Delete(chosen);
  }
}

/* Whether two runs with the same number (of a study, cell or repeat) differ in a column. */
static bool differs(comparison *c, const uint32_t *number, const uint32_t *value) {
  memset(c->first, 0, c->n_texts * sizeof *c->first);
  for (size_t i = 0; i < c->n_runs; ++i) {
    uint32_t *first = &c->first[number[i]];
    if (*first == 0)
      *first = (uint32_t)i + 1;
    else if (value[*first - 1] != value[i])
      return true;
  }
  return false;
}

/* Makes room in `first` for all current numbers. */
static void prepare_first(comparison *c) {
  if (!ARRAY_RESERVE(c->first, c->first_room, c->n_texts)) axes_out_of_memory(c);
}

static void mark_axes(comparison *c) {
  prepare_first(c);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    column *of = &c->columns[k];
    of->is_axis = of->role == ROLE_AXIS && (of->swept || differs(c, c->study, of->value));
  }
}

/* --- algorithms --- */

/* Replaces number[i] by a number for the pair (number[i], value[i]). */
static void refine(comparison *c, uint32_t *number, const uint32_t *value) {
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char pair[32];
    snprintf(pair, sizeof pair, "%u/%u", (unsigned)number[i], (unsigned)value[i]);
    number[i] = number_text_once(c, pair);
  }
}

/* Appends " (clip none" or ", clip none" to a label. */
static void append_field(char *label, size_t size, const column *k, const char *value, bool first) {
  size_t used = strlen(label);
  const char *dot = strchr(k->path, '.');
  snprintf(label + used, size - used, "%s%s %s", first ? " (" : ", ",
           dot != NULL ? dot + 1 : k->path, value);
}

/* If a shown name stands for several algorithms of a study, appends what distinguishes them: the
 * fields that differ and that the algorithm states. */
static void name_axes_algorithms(comparison *c) {
  uint32_t *shown = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs); /* numbers of (name, study) */
  bool *differing = ARENA_ARRAY(&c->scratch, bool, c->n), any = false;
  if (c->scratch.failed) axes_out_of_memory(c);
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i)
    c->algorithm[i] = shown[i] = number_text_once(c, c->runs[i].algorithm);
  if (c->status == GL_OK) refine(c, shown, c->study);
  prepare_first(c);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k)
    if (c->columns[k].role == ROLE_ALGORITHM)
      any |= differing[k] = differs(c, shown, c->columns[k].value);
  if (!any || c->status != GL_OK) return;
  bool *ambiguous =
      ARENA_ARRAY(&c->scratch, bool, c->n_texts); /* indexed by the numbers in `shown` */
  if (ambiguous == NULL) axes_out_of_memory(c);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    if (!differing[k]) continue;
    memset(c->first, 0, c->n_texts * sizeof *c->first);
    for (size_t i = 0; i < c->n_runs; ++i) {
      uint32_t *first = &c->first[shown[i]];
      if (*first == 0) *first = (uint32_t)i + 1;
      if (c->columns[k].value[*first - 1] != c->columns[k].value[i]) ambiguous[shown[i]] = true;
    }
  }
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char label[1024];
    int stated = 0;
    if (!ambiguous[shown[i]]) continue;
    snprintf(label, sizeof label - 1, "%s", c->runs[i].algorithm);
    for (size_t k = 0; k < c->n; ++k) {
      uint32_t value = differing[k] ? c->columns[k].value[i] : 0;
      if (value != 0)
        append_field(label, sizeof label - 1, &c->columns[k], c->text[value], !stated++);
    }
    if (stated) strcat(label, ")");
    c->algorithm[i] = number_text_once(c, label);
  }
}

/* --- cells --- */

/* Numbers the cells (study, algorithm and axis values) and the repeats (cell and seed). */
static void number_cells(comparison *c) {
  memcpy(c->cell, c->study, c->n_runs * sizeof *c->cell);
  refine(c, c->cell, c->algorithm);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    /* includes the algorithm's fields, because its label may be truncated */
    if (c->columns[k].is_axis || c->columns[k].role == ROLE_ALGORITHM)
      refine(c, c->cell, c->columns[k].value);
  }
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)c->runs[i].seed);
    c->repeat[i] = number_text_once(c, digits);
  }
  refine(c, c->repeat, c->cell);
  prepare_first(c);
}

/* A field that is not a seed becomes an axis if it would otherwise be averaged over (a tuned field
 * that differs within a cell) or is the only difference between two runs with one seed (a field of
 * provenance). Returns the number of fields that became axes. */
static size_t split_cells(comparison *c) {
  size_t n = 0;
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    column *of = &c->columns[k];
    if (of->is_axis) continue;
    if (of->role == ROLE_CHOSEN)
      of->is_axis = differs(c, c->cell, of->value);
    else if (of->role == ROLE_PROVENANCE)
      of->is_axis = differs(c, c->repeat, of->value);
    n += of->is_axis;
  }
  return n;
}

/* --- result --- */

/* The number that a value stands for: itself, 0 for `none`, the value of a constant distribution;
 * NaN for all other values. */
static double number_in(const char *text, field_kind kind) {
  char *end = NULL;
  if (kind == VALUE_CHOICE || kind == VALUE_FLAG || kind == VALUE_TEXT || kind == VALUE_SECTION)
    return NAN;
  if (strcmp(text, "none") == 0) return 0;
  double value = strtod(text, &end);
  if (end != text && *end == '\0') return value;
  if (kind != VALUE_DIST) return NAN;
  cJSON *dist = json_tree_of(text);
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(dist, "distribution");
  const cJSON *constant = cJSON_GetObjectItemCaseSensitive(dist, "value");
  value = NAN;
  if (cJSON_IsString(name) && strcmp(name->valuestring, "none") == 0) value = 0;
  if (cJSON_IsString(name) && strcmp(name->valuestring, "constant") == 0 &&
      cJSON_IsNumber(constant))
    value = constant->valuedouble;
  cJSON_Delete(dist);
  return value;
}

static int by_column_path(const void *a, const void *b) {
  return strcmp(((const column *)a)->path, ((const column *)b)->path);
}

/* The label in the table of fields ("max delay"), or the last part of the path in words. */
static char *label_of(comparison *c, const column *own) {
  const char *dot = strrchr(own->path, '.');
  char *label = arena_text(&c->result, own->label != NULL ? own->label
                                       : dot != NULL      ? dot + 1
                                                          : own->path);
  for (char *x = label; x != NULL && *x != '\0'; ++x)
    if (*x == '_') *x = ' ';
  return label;
}

/* Axes with equal labels are labelled with their paths instead. */
static void distinguish_labels(axis_table *a) {
  for (size_t i = 0; i < a->n; ++i)
    for (size_t k = 0; k < i; ++k)
      if (strcmp(a->axis[i].label, a->axis[k].label) == 0) {
        a->axis[i].label = a->axis[i].path;
        a->axis[k].label = a->axis[k].path;
      }
}

/* Writes the axes, their values and the shown names of all runs to *out. */
static void fill_axes(comparison *c, axis_table *out) {
  size_t n = 0;
  for (size_t k = 0; k < c->n; ++k) n += c->columns[k].is_axis;
  out->axis = ARENA_ARRAY(&c->result, axis, n);
  out->value = ARENA_GRID(&c->result, axis_value, c->n_runs, n);
  out->algorithm = ARENA_ARRAY(&c->result, const char *, c->n_runs);
  out->same = ARENA_ARRAY(&c->result, size_t, c->n_runs);
  for (size_t k = 0; k < c->n && !c->result.failed; ++k) {
    const column *of = &c->columns[k];
    if (!of->is_axis) continue;
    for (size_t i = 0; i < c->n_runs; ++i) {
      const char *text = c->text[of->value[i]];
      out->value[i * n + out->n] =
          (axis_value){text, text != NULL ? number_in(text, of->kind) : NAN};
    }
    out->axis[out->n++] = (axis){
        arena_text(&c->result, of->path), label_of(c, of), of->unit, of->role, of->kind, of->swept};
  }
  if (c->result.failed) {
    axes_out_of_memory(c);
    return;
  }
  distinguish_labels(out);
  memset(c->first, 0, c->n_texts * sizeof *c->first);
  for (size_t i = 0; i < c->n_runs; ++i) {
    out->algorithm[i] = c->text[c->algorithm[i]];
    uint32_t *first = &c->first[c->repeat[i]];
    if (*first == 0) *first = (uint32_t)i + 1;
    out->same[i] = *first - 1;
  }
}

/* All steps of the comparison. A new axis splits cells, so cells are numbered again until no
 * further field becomes an axis. */
static void axes_compare(comparison *c, axis_table *out) {
  c->study = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs);
  c->algorithm = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs);
  c->cell = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs);
  c->repeat = ARENA_ARRAY(&c->scratch, uint32_t, c->n_runs);
  const bool has_none = ARRAY_ADD(c->text, c->n_texts) != NULL; /* number 0 */
  if (c->scratch.failed || !has_none || c->n_runs >= UINT32_MAX) axes_out_of_memory(c);
  if (c->status == GL_OK) read_runs(c);
  if (c->status == GL_OK) fill_defaults(c);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) find_role(&c->columns[k]);
  if (c->status == GL_OK) mark_chosen(c);
  hash_table_fini(&c->paths); /* sorting moves the columns, which invalidates the map */
  if (c->status == GL_OK && c->n > 0) qsort(c->columns, c->n, sizeof *c->columns, by_column_path);
  if (c->status == GL_OK) mark_axes(c);
  if (c->status == GL_OK) name_axes_algorithms(c);
  do {
    if (c->status == GL_OK) number_cells(c);
  } while (c->status == GL_OK && split_cells(c) > 0);
  if (c->status == GL_OK) fill_axes(c, out);
}

gl_status axes_find(axis_table *out, const axes_run *runs, size_t n_runs, gl_error *err) {
  comparison c = {.runs = runs, .n_runs = n_runs, .err = err};
  *out = (axis_table){0};
  axes_compare(&c, out);
  out->memory = c.result;
  hash_table_fini(&c.texts);
  hash_table_fini(&c.paths);
  arena_fini(&c.scratch);
  free(c.text), free(c.columns), free(c.first);
  if (c.status != GL_OK) axes_fini(out);
  return c.status;
}

void axes_fini(axis_table *a) {
  arena_fini(&a->memory);
  *a = (axis_table){0};
}

size_t axes_index(const axis_table *a, const char *path) {
  size_t i = 0;
  while (i < a->n && strcmp(a->axis[i].path, path) != 0) ++i;
  return i;
}

cJSON *axis_json(cJSON *to, const axis *a, axis_value v) {
  if (v.text == NULL) return cJSON_AddNullToObject(to, a->path);
  char *end = NULL;
  double number = strtod(v.text, &end);
  switch (a->kind) {
  case VALUE_NUMBER:
  case VALUE_DIST:
  case VALUE_LIST:
    if (end != v.text && *end == '\0') return json_add_number(to, a->path, number);
    break;
  case VALUE_FLAG:
    return cJSON_AddBoolToObject(to, a->path, strcmp(v.text, "true") == 0);
  case VALUE_CHOICE:
  case VALUE_TEXT:
  case VALUE_SECTION:
    break;
  }
  if (a->kind == VALUE_DIST || a->kind == VALUE_LIST) {
    cJSON *whole = json_tree_of(v.text); /* NULL for a word such as `none` */
    if (whole != NULL && cJSON_AddItemToObject(to, a->path, whole)) return whole;
    cJSON_Delete(whole);
  }
  return json_add_string(to, a->path, v.text);
}
