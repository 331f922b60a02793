/* Reads a section of a tree with type and bounds checks, and refuses unknown keys. */
#include "core/config/config.h"
#include "core/config/internal.h"
#include "core/config/units.h"

#include "core/base/json.h"

#include <cjson/cJSON.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- messages --- */

/* Writes "a, b, c", truncated to the size of text. */
static const char *listed(const char *const *names, size_t n, char *text, size_t size) {
  size_t used = 0;
  *text = '\0';
  for (size_t i = 0; i < n; ++i) {
    size_t length = strlen(names[i]);
    if (used + length + 8 > size) {
      snprintf(text + used, size - used, ", ...");
      break;
    }
    used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  return text;
}

/* --- recording --- */

typedef enum origin { STATED, NULL_STATED, DEFAULT, PRESET, COMPUTED, N_ORIGINS } origin;
static const char *const origin_names[N_ORIGINS] = {"stated", "null", "default", "preset",
                                                    "computed"};

typedef struct record {
  cJSON *of[N_ORIGINS]; /* one object of paths and values per origin */
  bool failed;
} record;
static _Thread_local record *recording; /* NULL: not recording */

void cfg_record_begin(void) {
  cJSON_free(cfg_record_end());
  recording = calloc(1, sizeof *recording);
  for (size_t i = 0; recording != NULL && i < N_ORIGINS; ++i)
    recording->failed |= (recording->of[i] = cJSON_CreateObject()) == NULL;
}

char *cfg_record_end(void) {
  record *all = recording;
  recording = NULL;
  if (all == NULL) return NULL;
  cJSON *whole = cJSON_CreateObject();
  bool good = whole != NULL && !all->failed;
  for (size_t i = 0; i < N_ORIGINS; ++i) {
    if (good && all->of[i]->child != NULL)
      good = cJSON_AddItemToObject(whole, origin_names[i], all->of[i]);
    else
      cJSON_Delete(all->of[i]);
  }
  char *text = good ? cJSON_PrintUnformatted(whole) : NULL;
  cJSON_Delete(whole);
  free(all);
  return text;
}

/* Records a value and takes ownership of json; json NULL: out of memory. */
static void record_note(const cfg_reader *r, const char *key, cJSON *json) {
  char path[FIELD_PATH_SIZE];
  snprintf(path, sizeof path, "%s%s%s", r->path, *r->path != '\0' ? "." : "", key);
  const field *f = fields_of_item(path), *list = fields_named(r->path);
  const bool is_item = list != NULL && list->items[0] != NULL && r->map != NULL;
  const char *known = f != NULL ? f->path : cfg_path_is_inside(path, "algorithm") ? path : NULL;
  bool is_new = known != NULL && !is_item && r->status == GL_OK;
  for (size_t i = 0; i < N_ORIGINS && is_new; ++i)
    is_new = cJSON_GetObjectItemCaseSensitive(recording->of[i], known) == NULL;
  recording->failed |= json == NULL;
  if (!is_new || json == NULL) {
    cJSON_Delete(json);
    return;
  }
  const cfg_entry *e = r->map != NULL ? cfg_entry_of(r->map, key, strlen(key)) : NULL;
  const origin from = e != NULL && !cfg_is_null(e->value) ? STATED
                      : e != NULL                         ? NULL_STATED
                                                          : (origin)r->origin;
  if (from == N_ORIGINS) { /* a field without a default */
    cJSON_Delete(json);
    return;
  }
  recording->failed |= !cJSON_AddItemToObject(recording->of[from], known, json);
}

static double record_number(const cfg_reader *r, const char *key, double value) {
  char text[NUMBER_TEXT_SIZE];
  if (recording != NULL && !isnan(value))
    record_note(r, key,
                isinf(value) ? cJSON_CreateString(number_text(value, text))
                             : cJSON_CreateRaw(number_text(value, text)));
  return value;
}

static const char *recorded_value_text(const cfg_reader *r, const char *key, const char *text) {
  if (recording != NULL && text != NULL) record_note(r, key, cJSON_CreateString(text));
  return text;
}

/* Records a distribution or a list as written; a section is recorded through its fields. */
static const cfg_node *record_node(const cfg_reader *r, const char *key, const cfg_node *node) {
  char path[FIELD_PATH_SIZE];
  if (recording == NULL || node == NULL) return node;
  snprintf(path, sizeof path, "%s%s%s", r->path, *r->path != '\0' ? "." : "", key);
  const field *f = fields_of_item(path);
  if (f == NULL || f->kind == VALUE_SECTION) return node;
  char *text = cfg_canonical(node);
  record_note(r, key, text != NULL ? cJSON_CreateRaw(text) : NULL);
  free(text);
  return node;
}

/* --- begin and end --- */

void cfg_begin(cfg_reader *r, const cfg_node *map_or_null, const char *section, gl_error *err) {
  cfg_begin_at(r, map_or_null, section, section, err);
}

void cfg_begin_at(cfg_reader *r, const cfg_node *map_or_null, const char *path, const char *section,
                  gl_error *err) {
  *r = (cfg_reader){.section = section, .path = path, .err = err, .origin = COMPUTED};
  if (map_or_null == NULL || cfg_is_null(map_or_null)) return;
  char own[FIELD_HINT_SIZE] = "";
  if (map_or_null->kind == CFG_SCALAR) fields_in_section(path, map_or_null->text, own);
  if (map_or_null->kind == CFG_MAP)
    r->map = map_or_null;
  else
    r->status = cfg_fail(map_or_null, err, "'%s' is %s; it must be a map of keys%s%s", section,
                         cfg_describe(map_or_null), *own != '\0' ? "; write " : "", own);
}

void cfg_of(cfg_reader *r, const char *path, const char *kind) {
  r->kind_of = path;
  r->kind = kind;
}

void cfg_defaults(cfg_reader *r, const void *set) {
  r->defaults = set;
}

/* Whether the reader's section is the top of a recipe. */
static bool is_top(const cfg_reader *r) {
  return *r->path == '\0' && strcmp(r->section, "recipe") == 0;
}

/* Writes the field that the user of an unknown key probably meant, "optimizer.lr": that of an
 * alias, or the one of the same name in another section. written: the dotted name from
 * written_below(). "" if there is none, or if the key is no alias and one edit away from a name of
 * this section. */
static const char *suggested_field(const cfg_reader *r, const char *key, const char *written,
                                   char text[FIELD_HINT_SIZE]) {
  char path[FIELD_PATH_SIZE], head[CFG_MAX_KEY + 1];
  const bool is_root = is_top(r);
  *text = '\0';
  snprintf(head, sizeof head, "%.*s", (int)strcspn(r->path, "."), r->path);
  if (!is_root && (fields_named(head) == NULL || fields_is_one_value(r->path))) return text;
  snprintf(path, sizeof path, "%s%s%.64s", r->path, is_root ? "" : ".", key);
  const bool is_near = cfg_nearest_within(1, key, r->asked, r->n_asked) != NULL;
  if (is_near && *fields_alias(key, path, text) == '\0') return text;
  *text = '\0';
  if (strcmp(key, written) != 0 &&
      (*fields_alias(written, NULL, text) != '\0' || fields_absent(written) != NULL))
    return text;
  return is_near ? fields_alias(key, path, text) : fields_elsewhere(key, path, text);
}

/* Writes the dotted name that the key begins: "trainer.total_epochs" for one override of that. */
static const char *written_below(const cfg_entry *e, char text[FIELD_PATH_SIZE]) {
  size_t used = (size_t)snprintf(text, FIELD_PATH_SIZE, "%.64s", e->key);
  for (const cfg_node *v = e->value; v->kind == CFG_MAP && v->n == 1; v = v->entry[0].value) {
    if (used + strlen(v->entry[0].key) + 2 > FIELD_PATH_SIZE) break;
    used += (size_t)snprintf(text + used, FIELD_PATH_SIZE - used, ".%s", v->entry[0].key);
  }
  return text;
}

/* Writes a hint if the key exists in this section under other settings, as world.model exists for
 * kind llm; if an override has changed the kind, that the rest of the section is of the former. */
static const char *of_another_kind(const cfg_reader *r, const cfg_entry *e, char text[]) {
  char path[FIELD_PATH_SIZE], of[64] = "says of which";
  snprintf(path, sizeof path, "%s.%.64s", r->path, e->key);
  *text = '\0';
  const field *f = *r->path != '\0' ? fields_of_item(path) : NULL;
  if (f == NULL) return text;
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS && f->when[i].path != NULL; ++i)
    if (strcmp(f->when[i].path + strcspn(f->when[i].path, "."), ".kind") == 0 &&
        f->when[i].is != NULL)
      snprintf(of, sizeof of, "says of which: %.40s", f->when[i].is);
  snprintf(text, FIELD_HINT_SIZE, " of this kind (`gepolab list fields %.160s` %s)", path, of);
  const cfg_entry *kind = cfg_entry_of(r->map, "kind", 4);
  const size_t used = strlen(text);
  char whole[FIELD_HINT_SIZE];
  if (kind != NULL && cfg_overridden(kind->value) != NULL && cfg_overridden(e->value) == NULL)
    snprintf(text + used, FIELD_HINT_SIZE - used,
             ", for an override changed the kind alone: replace the whole section, "
             "'%.40s={kind: %.40s, ...}'",
             r->path, cfg_text(kind->value));
  else if (*fields_whole_section(path, whole) != '\0')
    snprintf(text + used, FIELD_HINT_SIZE - used, ": replace the whole section, %.99s", whole);
  return text;
}

/* Whether the reader's section, if it is the document's, has the first key of the path: recipes of
 * other commands have other sections. */
static bool is_read_here(const cfg_reader *r, const char *path) {
  const size_t length = strcspn(path, ". =(");
  if (*r->path != '\0') return true;
  for (size_t k = 0; k < r->n_asked; ++k)
    if (strlen(r->asked[k]) == length && strncmp(r->asked[k], path, length) == 0) return true;
  return false;
}

/* Leaves a suggestion that the document has room for: the path itself; else the document's own
 * field of the same last word, as group_size for train.group_size; else none. */
static const char *suggested_here(const cfg_reader *r, const char *key, const char *written,
                                  char text[FIELD_HINT_SIZE]) {
  char path[FIELD_PATH_SIZE];
  suggested_field(r, key, written, text);
  if (*text != '\0' && is_read_here(r, text)) return text;
  snprintf(path, sizeof path, "%.*s", (int)strcspn(*text != '\0' ? text : written, " "),
           *text != '\0' ? text : written);
  const char *dot = strrchr(path, '.');
  *text = '\0';
  if (*r->path == '\0' && dot != NULL && is_read_here(r, dot + 1))
    snprintf(text, FIELD_HINT_SIZE, "%s", dot + 1);
  return text;
}

gl_status cfg_end(cfg_reader *r) {
  if (r->status != GL_OK || r->map == NULL) return r->status;
  for (size_t i = 0; i < r->map->n; ++i) {
    const cfg_entry *e = &r->map->entry[i];
    size_t k = 0;
    while (k < r->n_asked && strcmp(r->asked[k], e->key) != 0) ++k;
    if (k < r->n_asked) continue;
    if (is_top(r) && r->n_asked < CFG_READER_MAX_KEYS) /* a key that cfg_include() has replaced */
      r->asked[r->n_asked++] = "include";
    char near[CFG_HINT_SIZE], all[600], other[FIELD_HINT_SIZE], written[FIELD_PATH_SIZE];
    if (*suggested_here(r, e->key, written_below(e, written), other) != '\0')
      return r->status = cfg_fail_at(&e->key_at, r->err, "unknown key '%.64s' in '%s'; write %s",
                                     e->key, r->section, other);
    if (fields_absent(written) != NULL)
      return r->status = cfg_fail_at(&e->key_at, r->err, "unknown key '%.64s' in '%s': %s", e->key,
                                     r->section, fields_absent(written));
    const char *hint = of_another_kind(r, e, other);
    if (*hint == '\0') hint = cfg_hint(e->key, r->asked, r->n_asked, near);
    r->status =
        cfg_fail_at(&e->key_at, r->err, "unknown key '%.64s' in '%s'%s; it knows: %s", e->key,
                    r->section, hint, listed(r->asked, r->n_asked, all, sizeof all));
    return r->status;
  }
  return GL_OK;
}

/* Adds the key to the known keys and returns its value; NULL: the default applies. */
static const cfg_node *ask(cfg_reader *r, const char *key) {
  if (r->status != GL_OK) return NULL;
  size_t k = 0;
  while (k < r->n_asked && strcmp(r->asked[k], key) != 0) ++k;
  if (k == r->n_asked) {
    if (r->n_asked == CFG_READER_MAX_KEYS) {
      r->status = gl_fail(r->err, GL_EINTERNAL, "section '%s' has more keys than its reader holds",
                          r->section);
      return NULL;
    }
    r->asked[r->n_asked++] = key;
  }
  if (r->map == NULL) return NULL;
  const cfg_entry *e = cfg_entry_of(r->map, key, strlen(key));
  return e == NULL || cfg_is_null(e->value) ? NULL : e->value;
}

const cfg_node *cfg_child(cfg_reader *r, const char *key) {
  return record_node(r, key, ask(r, key));
}

int cfg_has(const cfg_reader *r, const char *key) {
  if (r->map == NULL) return 0;
  const cfg_entry *e = cfg_entry_of(r->map, key, strlen(key));
  return e != NULL && !cfg_is_null(e->value);
}

/* --- numbers --- */

/* Whether text is a number with a comma for its decimal point, 0,05, and no list, 1,2. */
static bool is_decimal_comma(const char *text) {
  const char *comma = strchr(text, ',');
  return comma != NULL && comma == text + 1 && text[0] == '0' && strchr(comma + 1, ',') == NULL &&
         comma[1] == '0';
}

/* Whether text is a number with one comma between thousands, 1,000. */
static bool reader_has_thousands(const char *text) {
  const size_t first = strspn(text, "0123456789");
  return first > 0 && first <= 3 && text[0] != '0' && text[first] == ',' &&
         strspn(text + first + 1, "0123456789") == 3 && text[first + 4] == '\0';
}

bool cfg_is_like_range(const char *text) {
  const size_t first = strspn(text, "0123456789");
  const char *rest = text + first + 1;
  return strstr(text, "..") != NULL || (first > 0 && text[first] == '-' && *rest != '\0' &&
                                        rest[strspn(rest, "0123456789")] == '\0');
}

/* Reports "'cluster.window' is text ('x'); it must be …", with the field's unit if any. */
static void refuse_value(cfg_reader *r, const char *key, const cfg_node *node, const char *wanted) {
  char shown[64] = "", own[96] = "";
  const char *what = cfg_describe(node);
  if (node->kind == CFG_SCALAR) snprintf(shown, sizeof shown, " ('%.40s')", node->text);
  if (node->unit != NULL)
    snprintf(own, sizeof own, ", in %s (as in %s)", node->unit, units_example(node->unit));
  else if (node->kind == CFG_SCALAR && node->plain && cfg_value_of(node).kind == CFG_NOT_NUMBER &&
           cfg_is_quantity(node->text))
    snprintf(own, sizeof own, ", and it takes no unit");
  char more[160] = "", *end = NULL;
  const double percent = node->kind == CFG_SCALAR ? strtod(node->text, &end) : 0;
  if (node->kind == CFG_SCALAR && strstr(wanted, "whole number") != NULL &&
      (strcmp(node->text, "none") == 0 || strcmp(node->text, "inf") == 0))
    snprintf(more, sizeof more, "; null: the default");
  else if (node->kind == CFG_LIST && strchr(wanted, '[') == NULL && strstr(wanted, "list") == NULL)
    snprintf(more, sizeof more, "; several values are an axis of a sweep: sweep.%.40s%s%.24s=[...]",
             r->path, *r->path != '\0' ? "." : "", key);
  else if (end != NULL && end != node->text && strcmp(end, "%") == 0)
    snprintf(more, sizeof more, "; %.20s is %g", node->text, percent / 100);
  else if (end != NULL && *end == ',' && is_decimal_comma(node->text) &&
           strstr(wanted, "number") != NULL)
    snprintf(more, sizeof more, "; a decimal point is a point: %.*s.%.30s",
             (int)strcspn(node->text, ","), node->text, strchr(node->text, ',') + 1);
  else if (node->kind == CFG_SCALAR && cfg_is_like_range(node->text))
    snprintf(more, sizeof more, "; a range is a map: '{from: 1, to: 5, n: 5}'");
  else if (end != NULL && reader_has_thousands(node->text) && strstr(wanted, "number") != NULL)
    snprintf(more, sizeof more, "; thousands are separated by _ or not at all: %.*s_%.40s",
             (int)strcspn(node->text, ","), node->text, strchr(node->text, ',') + 1);
  else if (end != NULL && end != node->text && *end == ',' && strstr(wanted, "number") != NULL)
    snprintf(more, sizeof more,
             "; several values are an axis of a sweep: sweep.%.40s%s%.24s=[%.40s]", r->path,
             *r->path != '\0' ? "." : "", key, node->text);
  else if (end != NULL && end != node->text && *end == '\0' && !node->plain)
    snprintf(more, sizeof more, "; a number has no quotes around it");
  r->status = cfg_fail(node, r->err, "'%s.%s' is %s%s; it must be %s%s%s", r->section, key, what,
                       shown, wanted, own, more);
}

static const char *bounds_text(double lo, double hi, int open, char text[128]) {
  char a[NUMBER_TEXT_SIZE], b[NUMBER_TEXT_SIZE];
  int below = lo > -DBL_MAX, above = hi < DBL_MAX;
  number_text(lo, a);
  number_text(hi, b);
  if (below && hi == FIELD_BELOW_1)
    snprintf(text, 128, "a number of at least %s and below 1", a);
  else if (below && above)
    snprintf(text, 128, "a number from %s to %s", a, b);
  else if (below)
    snprintf(text, 128, open ? "a number above %s" : "a number of at least %s", a);
  else if (above)
    snprintf(text, 128, "a number of at most %s", b);
  else
    snprintf(text, 128, "a number");
  return text;
}

static double bounded(cfg_reader *r, const char *key, const cfg_node *node, double fallback,
                      double lo, double hi, int open) {
  char wanted[128];
  cfg_value v = cfg_value_of(node);
  if (v.kind == CFG_TOO_LARGE) {
    refuse_value(r, key, node, "a number that a double can hold, or inf");
    return fallback;
  }
  if (v.kind != CFG_NOT_NUMBER && (open ? v.real > lo : v.real >= lo) && v.real <= hi)
    return v.real;
  refuse_value(r, key, node, bounds_text(lo, hi, open, wanted));
  return fallback;
}

double cfg_double(cfg_reader *r, const char *key, double fallback, double lo, double hi) {
  const cfg_node *node = ask(r, key);
  return record_number(r, key,
                       node == NULL ? fallback : bounded(r, key, node, fallback, lo, hi, 0));
}

double cfg_positive(cfg_reader *r, const char *key, double fallback) {
  const cfg_node *node = ask(r, key);
  return record_number(r, key,
                       node == NULL ? fallback : bounded(r, key, node, fallback, 0, DBL_MAX, 1));
}

size_t cfg_doubles(cfg_reader *r, const char *key, double **out, double lo, double hi) {
  *out = NULL;
  const cfg_node *node = record_node(r, key, ask(r, key));
  if (node == NULL) return 0;
  if (node->kind == CFG_MAP || (node->kind == CFG_LIST && node->n == 0)) {
    refuse_value(r, key, node, "a number or a list of at least one number");
    return 0;
  }
  size_t n = node->kind == CFG_LIST ? node->n : 1;
  double *values = calloc(n, sizeof *values);
  if (values == NULL) {
    r->status = gl_fail_memory(r->err, "a list of numbers");
    return 0;
  }
  for (size_t i = 0; i < n && r->status == GL_OK; ++i)
    values[i] = bounded(r, key, node->kind == CFG_LIST ? node->entry[i].value : node, 0, lo, hi, 0);
  if (r->status != GL_OK) {
    free(values);
    return 0;
  }
  *out = values;
  return n;
}

static int64_t bounded_integer(cfg_reader *r, const char *key, const cfg_node *node,
                               int64_t fallback, int64_t lo, int64_t hi) {
  cfg_value v = cfg_value_of(node);
  uint64_t most = v.negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
  if (v.kind == CFG_INTEGER && v.magnitude <= most) {
    int64_t value = (int64_t)v.magnitude;
    if (v.negative) value = v.magnitude == most ? INT64_MIN : -value;
    if (value >= lo && value <= hi) return value;
  }
  char wanted[128];
  snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)lo, (long long)hi);
  refuse_value(r, key, node, wanted);
  return fallback;
}

int64_t cfg_int(cfg_reader *r, const char *key, int64_t fallback, int64_t lo, int64_t hi) {
  const cfg_node *node = ask(r, key);
  const int64_t value = node == NULL ? fallback : bounded_integer(r, key, node, fallback, lo, hi);
  if (recording != NULL && value != INT64_MAX) { /* INT64_MAX: no limit */
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    record_note(r, key, cJSON_CreateRaw(text));
  }
  return value;
}

static size_t bounded_count(cfg_reader *r, const char *key, const cfg_node *node, size_t fallback,
                            size_t lo, size_t hi) {
  cfg_value v = cfg_value_of(node);
  int minus = v.negative && v.magnitude != 0;
  if (v.kind == CFG_INTEGER && !minus && v.magnitude >= lo && v.magnitude <= hi)
    return (size_t)v.magnitude;
  char wanted[128];
  if (hi == SIZE_MAX)
    snprintf(wanted, sizeof wanted, "a whole number of at least %zu", lo);
  else
    snprintf(wanted, sizeof wanted, "a whole number from %zu to %zu", lo, hi);
  refuse_value(r, key, node, wanted);
  return fallback;
}

size_t cfg_count(cfg_reader *r, const char *key, size_t fallback, size_t lo, size_t hi) {
  const cfg_node *node = ask(r, key);
  const size_t value = node == NULL ? fallback : bounded_count(r, key, node, fallback, lo, hi);
  record_number(r, key, value == SIZE_MAX ? NAN : (double)value);
  return value;
}

/* --- words --- */

/* Reads true or false. The error about another word of YAML 1.1, such as yes or off, names the one
 * that was meant. */
static int truth_of(cfg_reader *r, const char *key, const cfg_node *node, int fallback) {
  static const char *const yes[] = {"yes", "Yes", "YES", "on", "On", "ON", "y", "1", "true"};
  static const char *const no[] = {"no", "No", "NO", "off", "Off", "OFF", "n", "0", "false"};
  int value = cfg_boolean_of(node);
  if (value >= 0) return value;
  const char *wanted = "true or false";
  for (size_t i = 0; node->kind == CFG_SCALAR && i < sizeof yes / sizeof *yes; ++i) {
    if (strcmp(node->text, yes[i]) == 0) wanted = "true or false (did you mean 'true'?)";
    if (strcmp(node->text, no[i]) == 0) wanted = "true or false (did you mean 'false'?)";
  }
  if (strncmp(wanted, "true or false (", 15) != 0 && node->kind == CFG_SCALAR) {
    static const char *const both[] = {"true", "false"};
    char near[CFG_HINT_SIZE], text[160];
    snprintf(text, sizeof text, "true or false%s", cfg_hint(node->text, both, 2, near));
    refuse_value(r, key, node, text);
  } else
    refuse_value(r, key, node, wanted);
  return fallback;
}

int cfg_bool(cfg_reader *r, const char *key, int fallback) {
  const cfg_node *node = ask(r, key);
  const int value = node == NULL ? fallback : truth_of(r, key, node, fallback);
  if (recording != NULL) record_note(r, key, cJSON_CreateBool(value));
  return value;
}

const char *cfg_string(cfg_reader *r, const char *key, const char *fallback) {
  const cfg_node *node = ask(r, key);
  if (node == NULL) return recorded_value_text(r, key, fallback);
  if (node->kind == CFG_SCALAR) return recorded_value_text(r, key, node->text);
  refuse_value(r, key, node, "text");
  return fallback;
}

/* "; one of your own is defined in a file: --presets FILE" where the field names a set that users
 * may define; otherwise "". */
static void own_hint(const char *path, char *text, size_t size) {
  const own_kind *kind;
  text[0] = '\0';
  for (size_t i = 0; (kind = fields_own_at(i)) != NULL; ++i) {
    const size_t n = strlen(kind->section);
    if (strncmp(path, kind->section, n) == 0 && path[n] == '.' &&
        strcmp(path + n + 1, kind->base) == 0)
      snprintf(text, size, "; one of your own is defined in a file: --%s FILE", kind->key);
  }
}

static int word_index(cfg_reader *r, const char *key, const cfg_node *node, int fallback,
                      const char *const *names, int n) {
  for (int i = 0; node->kind == CFG_SCALAR && i < n; ++i)
    if (strcmp(node->text, names[i]) == 0) return i;
  char near[CFG_HINT_SIZE] = "", all[500], wanted[800], path[FIELD_PATH_SIZE],
       other[FIELD_HINT_SIZE], own[100];
  snprintf(path, sizeof path, "%s%s%s", r->path, *r->path != '\0' ? "." : "", key);
  if (node->kind == CFG_SCALAR && *fields_value_elsewhere(path, node->text, other) != '\0') {
    r->status = cfg_fail(node, r->err, "'%s.%s' has no value '%.40s'; write %s", r->section, key,
                         node->text, other);
    return fallback;
  }
  if (node->kind == CFG_SCALAR) cfg_hint(node->text, names, (size_t)n, near);
  own_hint(path, own, sizeof own);
  snprintf(wanted, sizeof wanted, "one of %s%s%s", listed(names, (size_t)n, all, sizeof all), near,
           own);
  refuse_value(r, key, node, wanted);
  return fallback;
}

int cfg_choice(cfg_reader *r, const char *key, int fallback, const char *const *names, int n) {
  const cfg_node *node = ask(r, key);
  const int i = node == NULL ? fallback : word_index(r, key, node, fallback, names, n);
  if (i >= 0 && i < n) recorded_value_text(r, key, names[i]);
  return i;
}

/* --- fields of the tables --- */

/* A placeholder for fields that are in no table. */
static const field unknown = {.path = "", .lo = -INFINITY, .hi = INFINITY, .unit = ""};

static const field *field_of(cfg_reader *r, const char *key) {
  char path[FIELD_PATH_SIZE];
  snprintf(path, sizeof path, "%s%s%s", r->path, *r->path != '\0' ? "." : "", key);
  const field *f = fields_of_kind(path, r->kind_of, r->kind);
  if (f != NULL) return f;
  if (r->status == GL_OK)
    r->status = gl_fail(r->err, GL_EINTERNAL, "no table of fields has '%s'", path);
  return &unknown;
}

static const void *field_preset(cfg_reader *r, const field *f) {
  const bool has = f->presets != NULL && r->defaults != NULL;
  r->origin = has ? PRESET : f->fallback != NULL ? DEFAULT : N_ORIGINS;
  return has ? (const char *)r->defaults + f->member : NULL;
}

static double field_number_of(const char *text) {
  return text != NULL ? strtod(text, NULL) : 0;
}

double field_default(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  const void *preset = field_preset(r, f);
  return preset != NULL ? *(const double *)preset : field_number_of(f->fallback);
}

double field_noted(cfg_reader *r, const char *key, double value) {
  const field *f = field_of(r, key);
  r->origin = COMPUTED;
  if (value == field_default(r, key)) (void)field_preset(r, f);
  if (r->origin == DEFAULT && strcmp(f->fallback, "none") == 0)
    recorded_value_text(r, key, f->fallback);
  else
    record_number(r, key, value);
  return value;
}

/* Whether the recipe states that a field which may be without limit has none. */
static bool states_no_limit(cfg_reader *r, const char *key, const field *f) {
  const cfg_node *node = f->no_limit ? ask(r, key) : NULL;
  if (node == NULL || node->kind != CFG_SCALAR) return false;
  const cfg_value v = cfg_value_of(node);
  if (strcmp(node->text, "none") != 0 && (v.kind == CFG_NOT_NUMBER || v.real < INFINITY))
    return false;
  record_number(r, key, INFINITY);
  return true;
}

static double field_read_real(cfg_reader *r, const char *key, const field *f, double fallback) {
  if (states_no_limit(r, key, f)) return INFINITY;
  return f->number == NUMBER_POSITIVE ? cfg_positive(r, key, fallback)
                                      : cfg_double(r, key, fallback, f->lo, f->hi);
}

double field_real(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  (void)field_preset(r, f);
  return field_read_real(r, key, f, field_number_of(f->fallback));
}

double field_real_or(cfg_reader *r, const char *key, double fallback) {
  r->origin = COMPUTED;
  return field_read_real(r, key, field_of(r, key), fallback);
}

static int64_t field_read_integer(cfg_reader *r, const char *key, const field *f,
                                  int64_t fallback) {
  if (states_no_limit(r, key, f)) return INT64_MAX;
  return cfg_int(r, key, fallback, (int64_t)f->lo, isinf(f->hi) ? INT64_MAX : (int64_t)f->hi);
}

int64_t field_integer(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  const void *preset = field_preset(r, f);
  return field_read_integer(
      r, key, f, preset != NULL ? *(const int64_t *)preset : (int64_t)field_number_of(f->fallback));
}

int64_t field_integer_or(cfg_reader *r, const char *key, int64_t fallback) {
  r->origin = COMPUTED;
  return field_read_integer(r, key, field_of(r, key), fallback);
}

static size_t field_read_count(cfg_reader *r, const char *key, const field *f, size_t fallback) {
  if (states_no_limit(r, key, f)) return SIZE_MAX;
  return cfg_count(r, key, fallback, (size_t)f->lo, isinf(f->hi) ? SIZE_MAX : (size_t)f->hi);
}

size_t field_count(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  const void *preset = field_preset(r, f);
  return field_read_count(
      r, key, f, preset != NULL ? *(const size_t *)preset : (size_t)field_number_of(f->fallback));
}

size_t field_count_or(cfg_reader *r, const char *key, size_t fallback) {
  r->origin = COMPUTED;
  return field_read_count(r, key, field_of(r, key), fallback);
}

bool field_flag(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  const void *preset = field_preset(r, f);
  return cfg_bool(r, key,
                  preset != NULL ? *(const int *)preset
                                 : f->fallback != NULL && strcmp(f->fallback, "true") == 0);
}

static int field_read_choice(cfg_reader *r, const char *key, const field *f, int fallback) {
  const char *words[FIELD_MOST_CHOICES];
  size_t n = 0;
  while (n < FIELD_MOST_CHOICES && (words[n] = field_choice_at(f, n)) != NULL) ++n;
  return cfg_choice(r, key, fallback, words, (int)n);
}

int field_choice(cfg_reader *r, const char *key) {
  const field *f = field_of(r, key);
  const void *preset = field_preset(r, f);
  int fallback = preset != NULL ? *(const int *)preset : 0;
  const char *word;
  for (size_t i = 0; preset == NULL && f->fallback != NULL && (word = field_choice_at(f, i)); ++i)
    if (strcmp(word, f->fallback) == 0) fallback = (int)i;
  return field_read_choice(r, key, f, fallback);
}

int field_choice_or(cfg_reader *r, const char *key, int fallback) {
  r->origin = COMPUTED;
  return field_read_choice(r, key, field_of(r, key), fallback);
}

const char *field_text(cfg_reader *r, const char *key) {
  r->origin = DEFAULT;
  return cfg_string(r, key, field_of(r, key)->fallback);
}

size_t field_numbers(cfg_reader *r, const char *key, double **out) {
  const field *f = field_of(r, key);
  return cfg_doubles(r, key, out, f->lo, f->hi);
}
