/* Parses YAML into a tree from libyaml's events, with the position of every value, and checks all
 * limits. */
#include "core/config/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct anchor {
  const char *name;
  const cfg_node *node; /* NULL while the anchored value is being read */
} anchor;

typedef struct composer {
  yaml_parser_t yaml;
  yaml_event_t event; /* current event; freed by the next advance() */
  cfg_doc *doc;
  const cfg_source *source;
  cfg_input in;
  anchor anchors[CFG_MAX_ANCHORS];
  size_t n_anchors;
  gl_error *err;
} composer;

static gl_status compose(composer *c, size_t depth, cfg_node **out);

/* --- positions and libyaml errors --- */

static cfg_position place_of_mark(const composer *c, yaml_mark_t mark) {
  size_t shift = mark.line == 0 ? c->in.first_column : 0;
  return (cfg_position){c->source, mark.line + 1, mark.column + 1 + shift};
}

static cfg_position here(const composer *c) {
  return place_of_mark(c, c->event.start_mark);
}

/* The position of a byte: for invalid bytes, which have no libyaml mark. */
static cfg_position place_of_byte(const composer *c, size_t offset) {
  cfg_position at = {c->source, 1, 1 + c->in.first_column};
  for (size_t i = 0; i < offset && i < c->in.size; ++i) {
    if (c->in.text[i] == '\n')
      at = (cfg_position){c->source, at.line + 1, 1};
    else if (((unsigned char)c->in.text[i] & 0xc0) != 0x80) /* not a continuation byte of UTF-8 */
      ++at.column;
  }
  return at;
}

/* The byte at a mark, which counts characters; 0 at the end. */
static char byte_at(const composer *c, yaml_mark_t mark) {
  size_t i = 0;
  for (size_t line = 0; line < mark.line && i < c->in.size; ++i) line += c->in.text[i] == '\n';
  for (size_t column = 0; i < c->in.size; ++i) {
    if (((unsigned char)c->in.text[i] & 0xc0) == 0x80) continue;
    if (column++ == mark.column) return c->in.text[i];
  }
  return 0;
}

/* Reports libyaml's error with its position and a hint. */
static gl_status not_yaml(composer *c) {
  const yaml_parser_t *y = &c->yaml;
  if (y->error == YAML_MEMORY_ERROR) return gl_fail_memory(c->err, "a recipe");
  if (y->error == YAML_READER_ERROR) {
    cfg_position at = place_of_byte(c, y->problem_offset);
    unsigned byte =
        y->problem_offset < c->in.size ? (unsigned char)c->in.text[y->problem_offset] : 0;
    return cfg_fail_at(&at, c->err,
                       "byte 0x%02x is not text; a recipe is YAML in UTF-8 without control "
                       "characters (is this another kind of file?)",
                       byte);
  }
  cfg_position at = place_of_mark(c, y->problem_mark), end = place_of_byte(c, c->in.size);
  if (at.line > end.line) at = end; /* libyaml adds a line break at the end of every text */
  if (byte_at(c, y->problem_mark) == '\t')
    return cfg_fail_at(&at, c->err, "a tab where YAML allows none; indent with spaces");
  if (y->context == NULL)
    return cfg_fail_at(&at, c->err, "not valid YAML: %s; check quotes, brackets and indentation",
                       y->problem);
  cfg_position begin = place_of_mark(c, y->context_mark);
  return cfg_fail_at(&at, c->err,
                     "not valid YAML: %s %s (begun at line %zu, column %zu); check quotes, "
                     "brackets and indentation",
                     y->problem, y->context, begin.line, begin.column);
}

static gl_status advance(composer *c) {
  yaml_event_delete(&c->event);
  if (yaml_parser_parse(&c->yaml, &c->event)) return GL_OK;
  memset(&c->event, 0, sizeof c->event);
  return not_yaml(c);
}

/* --- composing --- */

static gl_status remember_anchor(composer *c, const yaml_char_t *name, size_t *slot) {
  *slot = SIZE_MAX;
  if (name == NULL) return GL_OK;
  cfg_position at = here(c);
  if (c->n_anchors == CFG_MAX_ANCHORS)
    return cfg_fail_at(&at, c->err, "more than %d anchors; a recipe may have that many",
                       CFG_MAX_ANCHORS);
  const char *copy = cfg_strdup(c->doc, (const char *)name, strlen((const char *)name));
  if (copy == NULL) return gl_fail_memory(c->err, "a recipe");
  *slot = c->n_anchors;
  c->anchors[c->n_anchors++] = (anchor){copy, NULL};
  return GL_OK;
}

/* The depth of a tree: 1 for a scalar. */
static size_t levels_of(const cfg_node *node) {
  size_t deepest = 0;
  for (size_t i = 0; i < node->n; ++i) {
    size_t below = levels_of(node->entry[i].value);
    if (below > deepest) deepest = below;
  }
  return deepest + 1;
}

static gl_status too_deep(const composer *c, const cfg_position *at) {
  return cfg_fail_at(at, c->err, "nested deeper than the %d levels a recipe may have",
                     CFG_MAX_DEPTH);
}

static gl_status compose_alias(composer *c, size_t depth, cfg_node **out) {
  const char *name = (const char *)c->event.data.alias.anchor;
  cfg_position at = here(c);
  const char *known[CFG_MAX_ANCHORS];
  for (size_t i = c->n_anchors; i-- > 0;) {
    known[i] = c->anchors[i].name;
    if (strcmp(known[i], name) != 0) continue;
    if (c->anchors[i].node == NULL)
      return cfg_fail_at(&at, c->err,
                         "alias *%s is inside the value it names, a cycle; "
                         "use it only after that value has ended",
                         name);
    if (depth + levels_of(c->anchors[i].node) > CFG_MAX_DEPTH + 1) return too_deep(c, &at);
    *out = cfg_node_copy(c->doc, c->anchors[i].node, c->err);
    return *out == NULL ? GL_EINPUT : GL_OK;
  }
  const char *near = cfg_nearest(name, known, c->n_anchors);
  return cfg_fail_at(&at, c->err, "alias *%s has no anchor &%s before it%s%s%s", name, name,
                     near == NULL ? "" : " (did you mean '*", near == NULL ? "" : near,
                     near == NULL ? "" : "'?)");
}

static gl_status compose_scalar(composer *c, cfg_node *node) {
  const char *text = (const char *)c->event.data.scalar.value;
  size_t length = c->event.data.scalar.length;
  if (memchr(text, '\0', length) != NULL)
    return cfg_fail(node, c->err, "the text holds a NUL character; leave it out");
  node->plain = c->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  node->text = cfg_strdup(c->doc, text, length);
  return node->text == NULL ? gl_fail_memory(c->err, "a recipe") : GL_OK;
}

static gl_status compose_list(composer *c, cfg_node *list, size_t depth) {
  for (;;) {
    gl_status status = advance(c);
    if (status != GL_OK) return status;
    if (c->event.type == YAML_SEQUENCE_END_EVENT) return GL_OK;
    cfg_node *value;
    status = compose(c, depth + 1, &value);
    if (status == GL_OK) status = cfg_append(c->doc, list, NULL, (cfg_position){0}, value, c->err);
    if (status != GL_OK) return status;
  }
}

/* The key of a merge, identified by its address: "<<" in quotes is an ordinary key. */
static const char merge_key[] = "<<";

static gl_status compose_key(composer *c, const char **key, cfg_position *at) {
  *at = here(c);
  if (c->event.type != YAML_SCALAR_EVENT)
    return cfg_fail_at(at, c->err, "a key must be plain text, not a list, a map or an alias");
  const char *text = (const char *)c->event.data.scalar.value;
  size_t length = c->event.data.scalar.length;
  if (length == 0) return cfg_fail_at(at, c->err, "a key is missing before ':'");
  if (length > CFG_MAX_KEY)
    return cfg_fail_at(at, c->err, "the key is longer than the %d bytes a key may have",
                       CFG_MAX_KEY);
  if (memchr(text, '\0', length) != NULL)
    return cfg_fail_at(at, c->err, "the key holds a NUL character; leave it out");
  if (c->event.data.scalar.tag != NULL || c->event.data.scalar.anchor != NULL)
    return cfg_fail_at(at, c->err, "a key takes no tag and no anchor; write it plainly");
  if (c->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, merge_key) == 0) {
    *key = merge_key;
    return GL_OK;
  }
  *key = cfg_strdup(c->doc, text, length);
  return *key == NULL ? gl_fail_memory(c->err, "a recipe") : GL_OK;
}

/* Sorts by key, and equal keys in the order of the file. */
static int by_key_then_place(const void *a, const void *b) {
  const cfg_entry *const *x = a, *const *y = b;
  int order = strcmp((*x)->key, (*y)->key);
  return order != 0 ? order : (*x < *y ? -1 : *x > *y);
}

static gl_status refuse_duplicates(composer *c, const cfg_node *map) {
  const cfg_entry **order = calloc(map->n + 1, sizeof *order);
  if (order == NULL) return gl_fail_memory(c->err, "a recipe");
  for (size_t i = 0; i < map->n; ++i) order[i] = &map->entry[i];
  qsort(order, map->n, sizeof *order, by_key_then_place);
  const cfg_entry *first = NULL, *again = NULL; /* earliest repetition in the file */
  for (size_t i = 1; i < map->n; ++i)
    if (strcmp(order[i - 1]->key, order[i]->key) == 0 && (again == NULL || order[i] < again))
      first = order[i - 1], again = order[i];
  free(order);
  if (again == NULL) return GL_OK;
  return cfg_fail_at(&again->key_at, c->err,
                     "key '%s' is twice in this map, first at line %zu, column %zu; keep one",
                     again->key, first->key_at.line, first->key_at.column);
}

/* --- merge keys (YAML 1.1) --- */
/* `<<: *a` adds the entries of *a that the map does not have; in `<<: [*a, *b]` the earlier map has
 * priority. Merged entries keep their order and are inserted at the merge key. */

typedef struct candidate {
  cfg_entry entry;
  size_t rank; /* 0: the map's own; otherwise 1 + index of the merged map */
  size_t at;   /* position in the result */
} candidate;

static int by_key_and_rank(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  int order = strcmp(x->entry.key, y->entry.key);
  return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_order(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

/* The i-th map of a merge's value, a map or a list of maps. */
static const cfg_node *merged_map(const cfg_node *value, size_t i) {
  return value->kind == CFG_LIST ? value->entry[i].value : value;
}

static size_t merged_maps(const cfg_node *value) {
  return value->kind == CFG_LIST ? value->n : 1;
}

static gl_status check_merge(composer *c, const cfg_entry *merge) {
  const cfg_node *value = merge->value;
  for (size_t i = 0; i < merged_maps(value); ++i)
    if (merged_map(value, i)->kind != CFG_MAP)
      return cfg_fail_at(&merge->key_at, c->err,
                         "the merge key << has %s here%s; give it a map or a list of maps, as in "
                         "<<: *name or <<: [*one, *other]",
                         cfg_describe(merged_map(value, i)),
                         value->kind == CFG_LIST ? " in its list" : "");
  return GL_OK;
}

/* Writes to `to` the map's own entries and, at its merge key, those of the maps that it merges;
 * returns their number. Equal keys stay, each with its rank. If `to` is NULL, only counts. */
static size_t collect_entries(const cfg_node *map, candidate *to) {
  size_t n = 0;
  for (size_t i = 0; i < map->n; ++i) {
    const cfg_entry *e = &map->entry[i];
    if (e->key != merge_key) {
      if (to != NULL) to[n] = (candidate){.entry = *e, .rank = 0, .at = n};
      ++n;
      continue;
    }
    for (size_t m = 0; m < merged_maps(e->value); ++m)
      for (size_t k = 0; k < merged_map(e->value, m)->n; ++k, ++n)
        if (to != NULL)
          to[n] = (candidate){
              .entry = merged_map(e->value, m)->entry[k],
              .rank = m + 1,
              .at = n,
          };
  }
  return n;
}

static gl_status expand_merge(composer *c, cfg_node *map) {
  const cfg_entry *merge = cfg_entry_of(map, merge_key, 2);
  if (merge == NULL || merge->key != merge_key) return GL_OK;
  gl_status status = check_merge(c, merge);
  if (status != GL_OK) return status;
  const size_t n = collect_entries(map, NULL);
  candidate *all = calloc(n + 1, sizeof *all);
  if (all == NULL) return gl_fail_memory(c->err, "a recipe");
  collect_entries(map, all);
  qsort(all, n, sizeof *all, by_key_and_rank);
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i)
    if (kept == 0 || strcmp(all[kept - 1].entry.key, all[i].entry.key) != 0) all[kept++] = all[i];
  qsort(all, kept, sizeof *all, by_order);
  map->n = map->capacity = 0; /* drops the merge's own entries */
  for (size_t i = 0; i < kept && status == GL_OK; ++i)
    status =
        cfg_append(c->doc, map, all[i].entry.key, all[i].entry.key_at, all[i].entry.value, c->err);
  free(all);
  return status;
}

static gl_status compose_map(composer *c, cfg_node *map, size_t depth) {
  for (;;) {
    const char *key;
    cfg_position key_at;
    cfg_node *value;
    gl_status status = advance(c);
    if (status != GL_OK) return status;
    if (c->event.type == YAML_MAPPING_END_EVENT) {
      status = refuse_duplicates(c, map);
      return status == GL_OK ? expand_merge(c, map) : status;
    }
    status = compose_key(c, &key, &key_at);
    if (status == GL_OK) status = advance(c);
    if (status == GL_OK) status = compose(c, depth + 1, &value);
    if (status == GL_OK) status = cfg_append(c->doc, map, key, key_at, value, c->err);
    if (status != GL_OK) return status;
  }
}

/* The value that the current event starts. */
typedef struct beginning {
  cfg_kind kind;
  const yaml_char_t *anchor, *tag;
  int block;
} beginning;

static beginning begin_value(const composer *c) {
  const yaml_event_t *e = &c->event;
  if (e->type == YAML_SEQUENCE_START_EVENT)
    return (beginning){CFG_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag,
                       e->data.sequence_start.style != YAML_FLOW_SEQUENCE_STYLE};
  if (e->type == YAML_MAPPING_START_EVENT)
    return (beginning){CFG_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag,
                       e->data.mapping_start.style != YAML_FLOW_MAPPING_STYLE};
  return (beginning){CFG_SCALAR, e->data.scalar.anchor, e->data.scalar.tag, 0};
}

/* Reads the value that the current event starts; afterwards the current event is its last one. */
static gl_status compose(composer *c, size_t depth, cfg_node **out) {
  cfg_position at = here(c);
  if (depth > CFG_MAX_DEPTH) return too_deep(c, &at);
  if (c->event.type == YAML_ALIAS_EVENT) return compose_alias(c, depth, out);
  beginning b = begin_value(c);
  if (b.tag != NULL)
    return cfg_fail_at(&at, c->err,
                       "the tag %.40s is not supported; write the plain value, in "
                       "quotes if it is to be text",
                       (const char *)b.tag);
  if (b.block && c->in.form == CFG_ASSIGNED)
    return cfg_fail_at(&at, c->err,
                       "on the command line write a list as [a, b] and a map as "
                       "{key: value}, and put quotes around text that holds ': '");
  size_t slot;
  gl_status status = remember_anchor(c, b.anchor, &slot);
  if (status != GL_OK) return status;
  cfg_node *node = cfg_node_new(c->doc, b.kind, at, c->err);
  if (node == NULL) return c->err == NULL ? GL_EINPUT : c->err->status;
  if (b.kind == CFG_SCALAR)
    status = compose_scalar(c, node);
  else
    status = b.kind == CFG_LIST ? compose_list(c, node, depth) : compose_map(c, node, depth);
  if (status == GL_OK && slot != SIZE_MAX) c->anchors[slot].node = node;
  *out = node;
  return status;
}

/* Reads one document, and checks that nothing follows it. */
static gl_status compose_document(composer *c, cfg_node **out) {
  gl_status status = advance(c); /* stream start */
  if (status == GL_OK) status = advance(c);
  if (status != GL_OK) return status;
  cfg_position at = here(c);
  if (c->event.type == YAML_STREAM_END_EVENT) {
    if (c->in.form == CFG_RECIPE)
      return cfg_fail_at(&at, c->err,
                         "the recipe is empty; write a map of keys, such as "
                         "'steps: 100'");
    if (c->in.form == CFG_VALUE) return cfg_fail_at(&at, c->err, "the text is empty");
    *out = cfg_node_new(c->doc, CFG_SCALAR, at, c->err);
    if (*out == NULL) return c->err->status;
    (*out)->plain = 1;
    return GL_OK;
  }
  status = advance(c);
  if (status == GL_OK) status = compose(c, 1, out);
  if (status == GL_OK) status = advance(c); /* document end */
  if (status == GL_OK) status = advance(c);
  if (status != GL_OK) return status;
  at = here(c);
  if (c->event.type != YAML_STREAM_END_EVENT)
    return cfg_fail_at(&at, c->err,
                       "a second YAML document begins here; a recipe is one document, "
                       "put the others into files of their own");
  return GL_OK;
}

gl_status cfg_parse(cfg_doc *doc, const cfg_source *source, const cfg_input *in, cfg_node **out,
                    gl_error *err) {
  gl_error local = {0};
  composer *c = calloc(1, sizeof *c);
  if (c == NULL || !yaml_parser_initialize(&c->yaml)) {
    free(c);
    return gl_fail_memory(err, "a recipe");
  }
  c->doc = doc;
  c->source = source;
  c->in = *in;
  c->err = &local;
  if (c->in.size >= 3 && memcmp(c->in.text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
    c->in.text += 3, c->in.size -= 3;
  yaml_parser_set_encoding(&c->yaml, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&c->yaml, (const unsigned char *)c->in.text, c->in.size);
  *out = NULL;
  gl_status status = compose_document(c, out);
  yaml_event_delete(&c->event);
  yaml_parser_delete(&c->yaml);
  free(c);
  return status == GL_OK ? GL_OK : gl_fail(err, local.status, "%s", local.text);
}

/* --- loading --- */

gl_status cfg_parse_named(cfg_doc *doc, const cfg_input *in, const char *name, const char *path,
                          cfg_node **out, gl_error *err) {
  const cfg_source *source = cfg_source_new(doc, name, NULL, path);
  if (source == NULL) return gl_fail_memory(err, "a recipe");
  cfg_position top = {source, 1, 1};
  if (in->size > CFG_MAX_BYTES)
    return cfg_fail_at(&top, err, "larger than the %d MiB a recipe may have; is it a recipe?",
                       CFG_MAX_BYTES >> 20);
  return cfg_parse(doc, source, in, out, err);
}

gl_status cfg_load_into(cfg_doc *doc, const char *text, size_t size, const char *name,
                        const char *path, cfg_node **root, gl_error *err) {
  gl_status status =
      cfg_parse_named(doc, &(cfg_input){text, size, CFG_RECIPE, 0}, name, path, root, err);
  if (status != GL_OK) return status;
  if ((*root)->kind != CFG_MAP)
    return cfg_fail(*root, err,
                    "the recipe is %s; at its top it must be a map of keys, such as "
                    "'steps: 100'%s",
                    cfg_describe(*root),
                    (*root)->kind == CFG_SCALAR && strchr((*root)->text, '=') != NULL
                        ? "; key=value is for the command line, and a file has key: value"
                        : "");
  return GL_OK;
}

gl_status cfg_load_text_of(cfg_doc **out, const char *text, size_t size, const char *name,
                           const char *path, gl_error *err) {
  *out = NULL;
  cfg_doc *doc = cfg_doc_new();
  if (doc == NULL) return gl_fail_memory(err, "a recipe");
  gl_status status = cfg_load_into(doc, text, size, name, path, &doc->root, err);
  if (status == GL_OK)
    *out = doc;
  else
    cfg_free(doc);
  return status;
}

gl_status cfg_load_text(cfg_doc **out, const char *text, size_t size, const char *name,
                        gl_error *err) {
  return cfg_load_text_of(out, text, size, name, NULL, err);
}

/* Writes a name in path's folder similar to the missing one to found; "" if there is none. Names
 * are compared without ".yaml", which would make all of them similar. */
static void nearest_file(const char *path, char *found, size_t size) {
  enum { MOST = 512 };
  char folder[1024], stem[1024], *names[MOST];
  const char *slash = strrchr(path, '/'), *wanted = slash == NULL ? path : slash + 1;
  size_t n = 0, length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
  *found = '\0';
  if (length >= sizeof folder) return;
  memcpy(folder, path, length);
  folder[length] = '\0';
  DIR *dir = opendir(length == 0 ? "." : folder);
  if (dir == NULL) return;
  for (struct dirent *e = readdir(dir); e != NULL && n < MOST; e = readdir(dir)) {
    size_t name_length = strlen(e->d_name);
    if (name_length < 6 || strcmp(e->d_name + name_length - 5, ".yaml") != 0) continue;
    if ((names[n] = strndup(e->d_name, name_length - 5)) != NULL) ++n;
  }
  closedir(dir);
  snprintf(stem, sizeof stem, "%s", wanted);
  if (strlen(stem) > 5 && strcmp(stem + strlen(stem) - 5, ".yaml") == 0)
    stem[strlen(stem) - 5] = '\0';
  const char *near = cfg_nearest(stem, (const char *const *)names, n);
  if (near != NULL) snprintf(found, size, " (did you mean '%s%s.yaml'?)", folder, near);
  for (size_t i = 0; i < n; ++i) free(names[i]);
}

static gl_status fail_to_read(const char *path, int reason, gl_error *err) {
  char near[1400] = "";
  const char *remedy = "give the path of a file that may be read";
  if (reason == ENOENT || reason == ENOTDIR) nearest_file(path, near, sizeof near);
  if (reason == EISDIR) remedy = "give the path of a file inside this folder";
  gl_status status = reason == EIO ? GL_EIO : GL_EINPUT;
  return gl_fail(err, status, "%.300s:1:1: cannot be read: %s; %s%s", path, strerror(reason),
                 remedy, near);
}

gl_status cfg_load_file(cfg_doc **out, const char *path, gl_error *err) {
  *out = NULL;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return fail_to_read(path, errno, err);
  char *text = malloc(CFG_MAX_BYTES + 1); /* one byte more than allowed, to detect larger files */
  if (text == NULL) {
    fclose(file);
    return gl_fail_memory(err, "a recipe's text");
  }
  errno = 0;
  size_t size = fread(text, 1, CFG_MAX_BYTES + 1, file);
  int reason = ferror(file) ? (errno != 0 ? errno : EIO) : 0;
  fclose(file);
  gl_status status = reason != 0 ? fail_to_read(path, reason, err)
                                 : cfg_load_text_of(out, text, size, path, path, err);
  free(text);
  return status;
}
