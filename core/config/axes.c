/* Comparing the recipes of a study field by field. */
#include "core/config/axes.h"

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_tree.h"
#include "core/config/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- texts --- */
/* Equal texts are kept once and known by their number, from 1; 0 stands for no text. */

typedef struct texts {
  char **text; /* [n + 1]; text[0] is NULL */
  size_t n, room;
  uint32_t *slot; /* [slots] a hash table of numbers; slots is a power of two */
  size_t slots;
} texts;

static void texts_free(texts *t) {
  if (t == NULL) return;
  for (size_t i = 1; i <= t->n; ++i) free(t->text[i]);
  free(t->text), free(t->slot), free(t);
}

static size_t slot_of(const texts *t, const char *text) {
  size_t i = (size_t)hash_64(HASH_64_START, text, strlen(text)) & (t->slots - 1);
  while (t->slot[i] != 0 && strcmp(t->text[t->slot[i]], text) != 0) i = (i + 1) & (t->slots - 1);
  return i;
}

static int grow_texts(texts *t) {
  size_t room = t->room ? 2 * t->room : 256;
  char **text = realloc(t->text, (room + 1) * sizeof *text);
  if (text == NULL) return 0;
  t->text = text;
  t->text[0] = NULL;
  uint32_t *slot = calloc(4 * room, sizeof *slot);
  if (slot == NULL) return 0;
  free(t->slot);
  t->slot = slot;
  t->slots = 4 * room;
  t->room = room;
  for (size_t i = 1; i <= t->n; ++i) t->slot[slot_of(t, t->text[i])] = (uint32_t)i;
  return 1;
}

/* The number of the text, which is copied where it is new; 0 if memory is short. */
static uint32_t number_of(texts *t, const char *text) {
  if (t->n == t->room && !grow_texts(t)) return 0;
  size_t at = slot_of(t, text);
  if (t->slot[at] != 0) return t->slot[at];
  char *copy = t->n < UINT32_MAX ? strdup(text) : NULL;
  if (copy == NULL) return 0;
  t->text[++t->n] = copy;
  return t->slot[at] = (uint32_t)t->n;
}

/* --- the runs as a table of fields --- */

typedef struct column {
  const char *path;
  uint32_t *value; /* [n_runs] numbers of texts; 0: no value */
  field_role role;
  field_kind kind; /* of a field that the table of fields does not have: of its values */
  const char *unit, *label;
  int swept;   /* a sweep named it */
  int is_axis; /* tells cells apart */
} column;

typedef struct comparison {
  const axes_run *runs;
  size_t n_runs;
  texts *texts;
  column *columns;
  size_t n, room;
  uint32_t *study;     /* [n_runs] numbers of the studies' names */
  uint32_t *algorithm; /* [n_runs] of the shown names, made distinct */
  uint32_t *cell;      /* [n_runs] equal for runs of one cell */
  uint32_t *draw;      /* [n_runs] equal for runs of one cell and seed */
  uint32_t *first;     /* scratch, by number: 1 + the first run of that number */
  gl_error *err;
  gl_status status;
} comparison;

static void out_of_memory(comparison *c) {
  if (c->status == GL_OK) c->status = gl_fail_memory(c->err, "the fields of a study's recipes");
}

static uint32_t keep(comparison *c, const char *text) {
  uint32_t number = number_of(c->texts, text);
  if (number == 0) out_of_memory(c);
  return number;
}

static size_t column_index(const comparison *c, const char *path) {
  size_t i = 0;
  while (i < c->n && strcmp(c->columns[i].path, path) != 0) ++i;
  return i;
}

/* The column of that path, made if needed; NULL if memory is short. */
static column *column_of(comparison *c, const char *path, field_kind kind) {
  size_t i = column_index(c, path);
  if (i < c->n) return &c->columns[i];
  if (c->n == c->room) {
    size_t room = 2 * c->room + 32;
    column *more = realloc(c->columns, room * sizeof *more);
    if (more == NULL) {
      out_of_memory(c);
      return NULL;
    }
    c->columns = more;
    c->room = room;
  }
  uint32_t own = keep(c, path);
  uint32_t *value = calloc(c->n_runs, sizeof *value);
  if (own == 0 || value == NULL) {
    free(value);
    out_of_memory(c);
    return NULL;
  }
  c->columns[c->n] =
      (column){.path = c->texts->text[own], .value = value, .kind = kind, .unit = ""};
  return &c->columns[c->n++];
}

/* --- from JSON to fields --- */

enum { PATH_SIZE = 512 };

/* A run as the table of fields asks for it. */
typedef struct one_run {
  const comparison *from;
  size_t run;
} one_run;

static const char *value_in_run(const void *recipe, const char *path, int *stated) {
  const one_run *r = recipe;
  size_t i = column_index(r->from, path);
  uint32_t number = i < r->from->n ? r->from->columns[i].value[r->run] : 0;
  *stated = number != 0;
  return *stated ? r->from->texts->text[number] : NULL;
}

/* What is compared as a whole, whatever it holds. */
static int is_whole(const char *path) {
  const field *f = fields_named(path);
  return f != NULL && (f->kind == VALUE_DIST || f->kind == VALUE_LIST);
}

static field_kind kind_of(const cJSON *value) {
  if (cJSON_IsNumber(value)) return VALUE_NUMBER;
  if (cJSON_IsBool(value)) return VALUE_FLAG;
  return cJSON_IsArray(value) ? VALUE_LIST : VALUE_TEXT;
}

static void set_text(comparison *c, size_t run, const char *path, field_kind kind, const char *text,
                     int swept) {
  column *to = column_of(c, path, kind);
  uint32_t number = keep(c, text);
  if (to == NULL || number == 0) return;
  if (to->kind != kind) to->kind = VALUE_TEXT; /* sometimes a number, sometimes a word */
  to->value[run] = number;
  to->swept |= swept;
}

/* The text by which a value of that field is compared; *whole: memory that it may need, which the
 * caller frees. NULL if memory is short. */
static const char *text_of_value(const char *path, const cJSON *value,
                                 char digits[NUMBER_TEXT_SIZE], char **whole) {
  const field *f = fields_named(path);
  *whole = NULL;
  if (cJSON_IsNumber(value)) return number_text(value->valuedouble, digits);
  if (cJSON_IsBool(value)) return cJSON_IsTrue(value) ? "true" : "false";
  if (!cJSON_IsString(value)) return *whole = cJSON_PrintUnformatted(value);
  const bool is_zero =
      f != NULL && f->kind == VALUE_NUMBER && strcmp(value->valuestring, "none") == 0;
  return is_zero ? "0" : value->valuestring;
}

static void set_value(comparison *c, size_t run, const char *path, const cJSON *value, int swept) {
  char digits[NUMBER_TEXT_SIZE], *whole;
  const char *text = text_of_value(path, value, digits, &whole);
  if (text != NULL)
    set_text(c, run, path, kind_of(value), text, swept);
  else
    out_of_memory(c);
  cJSON_free(whole);
}

/* A scalar in the place of a section states one of the section's fields. */
static void set_leaf(comparison *c, size_t run, const char *path, const cJSON *value, int swept) {
  const one_run here = {c, run};
  const field *f = fields_short_form(path, value_in_run, &here);
  set_value(c, run, f != NULL ? f->path : path, value, swept);
}

static void set_fields(comparison *c, size_t run, char path[PATH_SIZE], const cJSON *value,
                       int swept) {
  size_t length = strlen(path);
  if (c->status != GL_OK || cJSON_IsNull(value)) return; /* as if it were not there */
  if (!cJSON_IsObject(value) || is_whole(path)) {
    set_leaf(c, run, path, value, swept);
    return;
  }
  for (const cJSON *m = value->child; m != NULL && c->status == GL_OK; m = m->next) {
    int n = snprintf(path + length, PATH_SIZE - length, "%s%s", length > 0 ? "." : "", m->string);
    if (n < 0 || (size_t)n >= PATH_SIZE - length)
      c->status = gl_fail(c->err, GL_EIO, "a stored recipe has a path of more than %d characters",
                          PATH_SIZE - 1);
    else
      set_fields(c, run, path, m, swept);
    path[length] = '\0';
  }
}

/* The kind of world and of task decide what a short form means, so they are read first. */
static void set_kinds(comparison *c, size_t run, const cJSON *recipe) {
  const cJSON *world = cJSON_GetObjectItemCaseSensitive(recipe, "world");
  const cJSON *kind = cJSON_GetObjectItemCaseSensitive(world, "kind");
  if (cJSON_IsString(kind)) set_value(c, run, "world.kind", kind, 0);
}

static void read_object(comparison *c, size_t run, const char *text, int swept) {
  char path[PATH_SIZE] = "";
  if (text == NULL || c->status != GL_OK) return;
  cJSON *object = json_tree_of(text);
  if (!cJSON_IsObject(object))
    c->status = gl_fail(c->err, GL_EIO,
                        "a stored recipe or its swept fields are not a JSON object ('%.60s'); is "
                        "the file damaged?",
                        text);
  if (c->status == GL_OK && !swept) set_kinds(c, run, object);
  /* The swept fields' names are dotted paths already. */
  if (c->status == GL_OK) set_fields(c, run, path, object, swept);
  cJSON_Delete(object);
}

static void read_runs(comparison *c) {
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char digits[24];
    read_object(c, i, c->runs[i].recipe, 0);
    read_object(c, i, c->runs[i].swept, 1);
    c->study[i] = keep(c, c->runs[i].study);
    snprintf(digits, sizeof digits, "%lld", (long long)c->runs[i].meaning);
    set_text(c, i, "meaning of recipes", VALUE_NUMBER, digits, 0);
  }
}

/* What the study says that the field was in that run, whatever its origin; NULL: nothing. */
static const cJSON *value_in_effect(const cJSON *in_effect, const char *path) {
  const cJSON *found = NULL;
  for (const cJSON *origin = in_effect->child; origin != NULL && found == NULL;
       origin = origin->next)
    found = cJSON_GetObjectItemCaseSensitive(origin, path);
  return found;
}

/* The number of the text of a field that the run's recipe leaves out; 0: it is not known. */
static uint32_t default_of(comparison *c, const cJSON *in_effect, size_t run, const char *path) {
  char room[FIELD_TEXT_SIZE], digits[NUMBER_TEXT_SIZE], *whole = NULL;
  const one_run here = {c, run};
  const cJSON *value =
      in_effect != NULL && fields_named(path) != NULL ? value_in_effect(in_effect, path) : NULL;
  const char *text = value != NULL       ? text_of_value(path, value, digits, &whole)
                     : in_effect != NULL ? NULL
                                         : fields_default(path, value_in_run, &here, room);
  if (value != NULL && text == NULL) out_of_memory(c);
  const uint32_t number = text != NULL ? keep(c, text) : 0;
  cJSON_free(whole);
  return number;
}

/* A field that some recipes leave out has there what was in effect; where the study does not say
 * it, the default of the tables. Their conditions look at what recipes state, so all defaults are
 * found before any is filled in. */
static void fill_defaults(comparison *c) {
  uint32_t *found = calloc(c->n * c->n_runs + 1, sizeof *found);
  if (found == NULL) out_of_memory(c);
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    if (c->runs[i].recipe == NULL) continue;
    cJSON *in_effect = c->runs[i].in_effect != NULL ? json_tree_of(c->runs[i].in_effect) : NULL;
    for (size_t k = 0; k < c->n && c->status == GL_OK; ++k)
      if (c->columns[k].value[i] == 0)
        found[k * c->n_runs + i] = default_of(c, in_effect, i, c->columns[k].path);
    cJSON_Delete(in_effect);
  }
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k)
    for (size_t i = 0; i < c->n_runs; ++i)
      if (c->columns[k].value[i] == 0) c->columns[k].value[i] = found[k * c->n_runs + i];
  free(found);
}

/* --- roles --- */

static void describe(column *k) {
  const field *f = fields_named(k->path);
  k->role = f != NULL                                  ? f->role
            : cfg_path_is_inside(k->path, "algorithm") ? ROLE_ALGORITHM
                                                       : ROLE_AXIS;
  if (k->swept) k->role = ROLE_AXIS; /* and then no part of the algorithm's name */
  if (f == NULL) return;
  k->kind = f->kind;
  k->unit = f->unit;
  k->label = f->label;
}

/* What was chosen for its cell in some run is chosen, unless a sweep named it too. */
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
      size_t k = column_index(c, m->string);
      if (k < c->n && !c->columns[k].swept) c->columns[k].role = ROLE_CHOSEN;
    }
    cJSON_Delete(chosen);
  }
}

/* Looks for two runs of one number (of a study, cell or draw) that differ in a column. */
static int differs(comparison *c, const uint32_t *number, const uint32_t *value) {
  memset(c->first, 0, (c->texts->n + 1) * sizeof *c->first);
  for (size_t i = 0; i < c->n_runs; ++i) {
    uint32_t *first = &c->first[number[i]];
    if (*first == 0)
      *first = (uint32_t)i + 1;
    else if (value[*first - 1] != value[i])
      return 1;
  }
  return 0;
}

/* Room in `first` for all numbers that are known now. */
static void prepare_first(comparison *c) {
  uint32_t *more = realloc(c->first, (c->texts->n + 1) * sizeof *more);
  if (more == NULL)
    out_of_memory(c);
  else
    c->first = more;
}

static void find_axes(comparison *c) {
  prepare_first(c);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    column *of = &c->columns[k];
    of->is_axis = of->role == ROLE_AXIS && (of->swept || differs(c, c->study, of->value));
  }
}

/* --- algorithms --- */

/* number[i] becomes a number for the pair (number[i], value[i]). */
static void refine(comparison *c, uint32_t *number, const uint32_t *value) {
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char pair[32];
    snprintf(pair, sizeof pair, "%u/%u", (unsigned)number[i], (unsigned)value[i]);
    number[i] = keep(c, pair);
  }
}

/* Appends " (clip none" or ", clip none" to a label. */
static void append_field(char *label, size_t size, const column *k, const char *value, int first) {
  size_t used = strlen(label);
  const char *dot = strchr(k->path, '.');
  snprintf(label + used, size - used, "%s%s %s", first ? " (" : ", ",
           dot != NULL ? dot + 1 : k->path, value);
}

/* A shown name that stands for several algorithms of a study is followed by what tells them apart:
 * the fields that differ and that this one states. */
static void name_algorithms(comparison *c) {
  uint32_t *shown = calloc(c->n_runs + 1, sizeof *shown), *name = NULL;
  int *apart = calloc(c->n + 1, sizeof *apart);
  if (shown == NULL || apart == NULL) out_of_memory(c);
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i)
    c->algorithm[i] = shown[i] = keep(c, c->runs[i].algorithm);
  if (c->status == GL_OK) refine(c, shown, c->study);
  prepare_first(c);
  int any = 0;
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k)
    if (c->columns[k].role == ROLE_ALGORITHM)
      any |= apart[k] = differs(c, shown, c->columns[k].value);
  /* Which names are such: those in which some field differs. */
  if (any && c->status == GL_OK) name = calloc(c->texts->n + 1, sizeof *name);
  if (any && name == NULL) out_of_memory(c);
  for (size_t k = 0; k < c->n && name != NULL; ++k) {
    if (!apart[k]) continue;
    memset(c->first, 0, (c->texts->n + 1) * sizeof *c->first);
    for (size_t i = 0; i < c->n_runs; ++i) {
      uint32_t *first = &c->first[shown[i]];
      if (*first == 0) *first = (uint32_t)i + 1;
      if (c->columns[k].value[*first - 1] != c->columns[k].value[i]) name[shown[i]] = 1;
    }
  }
  for (size_t i = 0; i < c->n_runs && name != NULL && c->status == GL_OK; ++i) {
    char label[1024];
    int stated = 0;
    if (!name[shown[i]]) continue;
    snprintf(label, sizeof label - 1, "%s", c->runs[i].algorithm);
    for (size_t k = 0; k < c->n; ++k) {
      uint32_t value = apart[k] ? c->columns[k].value[i] : 0;
      if (value != 0)
        append_field(label, sizeof label - 1, &c->columns[k], c->texts->text[value], !stated++);
    }
    if (stated) strcat(label, ")");
    c->algorithm[i] = keep(c, label);
  }
  free(shown), free(apart), free(name);
}

/* --- cells --- */

static void number_cells(comparison *c) {
  memcpy(c->cell, c->study, c->n_runs * sizeof *c->cell);
  refine(c, c->cell, c->algorithm);
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    /* The algorithm's fields too: its label may be cut short. */
    if (c->columns[k].is_axis || c->columns[k].role == ROLE_ALGORITHM)
      refine(c, c->cell, c->columns[k].value);
  }
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)c->runs[i].seed);
    c->draw[i] = keep(c, digits);
  }
  refine(c, c->draw, c->cell);
  prepare_first(c);
}

/* What would be averaged over, or taken for the same run, although it is no seed, tells cells
 * apart after all. Returns how many there were. */
static size_t split_cells(comparison *c) {
  size_t n = 0;
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    column *of = &c->columns[k];
    if (of->is_axis) continue;
    if (of->role == ROLE_CHOSEN)
      of->is_axis = differs(c, c->cell, of->value);
    else if (of->role == ROLE_PROVENANCE)
      of->is_axis = differs(c, c->draw, of->value);
    n += of->is_axis != 0;
  }
  return n;
}

/* --- the answer --- */

static double number_in(const char *text, field_kind kind) {
  char *end = NULL;
  if (kind == VALUE_CHOICE || kind == VALUE_FLAG || kind == VALUE_TEXT || kind == VALUE_SECTION)
    return NAN;
  if (strcmp(text, "none") == 0) return 0;
  double value = strtod(text, &end);
  if (end != text && *end == '\0') return value;
  if (kind != VALUE_DIST) return NAN;
  cJSON *dist = json_tree_of(text);
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(dist, "law");
  const cJSON *constant = cJSON_GetObjectItemCaseSensitive(dist, "value");
  value = NAN;
  if (cJSON_IsString(name) && strcmp(name->valuestring, "none") == 0) value = 0;
  if (cJSON_IsString(name) && strcmp(name->valuestring, "constant") == 0 &&
      cJSON_IsNumber(constant))
    value = constant->valuedouble;
  cJSON_Delete(dist);
  return value;
}

static int compare_columns(const void *a, const void *b) {
  return strcmp(((const column *)a)->path, ((const column *)b)->path);
}

/* "max delay" of the table of fields, else the path's last part in words; the path itself where two
 * axes would be called the same. */
static char *label_of(const comparison *c, size_t k) {
  const column *own = &c->columns[k];
  const char *dot = strrchr(own->path, '.');
  char *label = strdup(own->label != NULL ? own->label : dot != NULL ? dot + 1 : own->path);
  for (char *x = label; x != NULL && *x != '\0'; ++x)
    if (*x == '_') *x = ' ';
  return label;
}

static void unify_labels(axis_table *a, gl_error *err, gl_status *status) {
  for (size_t i = 0; i < a->n && *status == GL_OK; ++i)
    for (size_t k = 0; k < i; ++k)
      if (strcmp(a->axis[i].label, a->axis[k].label) == 0) {
        char *one = strdup(a->axis[i].path), *other = strdup(a->axis[k].path);
        if (one == NULL || other == NULL) *status = gl_fail_memory(err, "the names of axes");
        if (*status != GL_OK) {
          free(one), free(other);
          return;
        }
        free(a->axis[i].label), free(a->axis[k].label);
        a->axis[i].label = one;
        a->axis[k].label = other;
      }
}

static void give_axes(comparison *c, axis_table *out) {
  size_t n = 0;
  for (size_t k = 0; k < c->n; ++k) n += c->columns[k].is_axis != 0;
  out->axis = calloc(n + 1, sizeof *out->axis);
  out->value = calloc(n * c->n_runs + 1, sizeof *out->value);
  out->algorithm = calloc(c->n_runs + 1, sizeof *out->algorithm);
  out->same = calloc(c->n_runs + 1, sizeof *out->same);
  out->n_runs = c->n_runs;
  if (out->axis == NULL || out->value == NULL || out->algorithm == NULL || out->same == NULL) {
    out_of_memory(c);
    return;
  }
  for (size_t k = 0; k < c->n && c->status == GL_OK; ++k) {
    const column *of = &c->columns[k];
    if (!of->is_axis) continue;
    axis *to = &out->axis[out->n];
    *to = (axis){strdup(of->path), label_of(c, k), of->unit, of->role, of->kind, of->swept};
    if (to->path == NULL || to->label == NULL) out_of_memory(c);
    for (size_t i = 0; i < c->n_runs; ++i) {
      const char *text = c->texts->text[of->value[i]];
      out->value[i * n + out->n] =
          (axis_value){text, text != NULL ? number_in(text, of->kind) : NAN};
    }
    ++out->n;
  }
  memset(c->first, 0, (c->texts->n + 1) * sizeof *c->first);
  for (size_t i = 0; i < c->n_runs && c->status == GL_OK; ++i) {
    out->algorithm[i] = c->texts->text[c->algorithm[i]];
    uint32_t *first = &c->first[c->draw[i]];
    if (*first == 0) *first = (uint32_t)i + 1;
    out->same[i] = *first - 1;
  }
  if (c->status == GL_OK) unify_labels(out, c->err, &c->status);
}

static void comparison_begin(comparison *c, const axes_run *runs, size_t n, gl_error *err) {
  *c = (comparison){.runs = runs, .n_runs = n, .err = err};
  c->texts = calloc(1, sizeof *c->texts);
  c->study = calloc(n + 1, sizeof *c->study);
  c->algorithm = calloc(n + 1, sizeof *c->algorithm);
  c->cell = calloc(n + 1, sizeof *c->cell);
  c->draw = calloc(n + 1, sizeof *c->draw);
  c->first = calloc(1, sizeof *c->first);
  if (!c->texts || !c->study || !c->algorithm || !c->cell || !c->draw || !c->first ||
      n >= UINT32_MAX || !grow_texts(c->texts))
    out_of_memory(c);
}

gl_status axes_find(axis_table *out, const axes_run *runs, size_t n_runs, gl_error *err) {
  comparison c;
  *out = (axis_table){0};
  comparison_begin(&c, runs, n_runs, err);
  if (c.status == GL_OK) read_runs(&c);
  if (c.status == GL_OK) fill_defaults(&c);
  if (c.status == GL_OK && c.n > 0) qsort(c.columns, c.n, sizeof *c.columns, compare_columns);
  for (size_t k = 0; k < c.n && c.status == GL_OK; ++k) describe(&c.columns[k]);
  if (c.status == GL_OK) mark_chosen(&c);
  if (c.status == GL_OK) find_axes(&c);
  if (c.status == GL_OK) name_algorithms(&c);
  do {
    if (c.status == GL_OK) number_cells(&c);
  } while (c.status == GL_OK && split_cells(&c) > 0);
  if (c.status == GL_OK) give_axes(&c, out);
  out->memory = c.texts;
  for (size_t k = 0; k < c.n; ++k) free(c.columns[k].value);
  free(c.columns), free(c.study), free(c.algorithm), free(c.cell), free(c.draw), free(c.first);
  return c.status;
}

void axes_fini(axis_table *a) {
  for (size_t i = 0; a->axis != NULL && i < a->n; ++i)
    free(a->axis[i].path), free(a->axis[i].label);
  free(a->axis), free(a->value), free(a->algorithm), free(a->same);
  texts_free(a->memory);
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
