/* Lists of maps made by the program, and canonical texts with holes. */
#include "core/config/build.h"

#include "core/config/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- lists of maps --- */

gl_status cfg_list_new(cfg_doc **out, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  *out = NULL;
  cfg_doc *doc = cfg_doc_new();
  if (doc == NULL) return gl_fail_memory(err, "a list of values");
  cfg_node *like = cfg_node_copy(doc, at, &why); /* the place outlives at's doc */
  if (like != NULL) doc->root = cfg_node_new(doc, CFG_LIST, like->at, &why);
  if (doc->root == NULL) {
    cfg_free(doc);
    return gl_fail(err, why.status, "%s", why.text);
  }
  *out = doc;
  return GL_OK;
}

gl_status cfg_list_add_map(cfg_doc *list, gl_error *err) {
  cfg_node *map = cfg_node_new(list, CFG_MAP, list->root->at, err);
  if (map == NULL) return GL_EINPUT;
  return cfg_append(list, list->root, NULL, (cfg_place){0}, map, err);
}

/* Takes the value, which belongs to the list's doc. */
static gl_status put(cfg_doc *list, const char *key, cfg_node *value, gl_error *err) {
  assert(list->root->kind == CFG_LIST && list->root->n > 0);
  cfg_node *map = list->root->entry[list->root->n - 1].value;
  assert(cfg_entry_of(map, key, strlen(key)) == NULL);
  const char *own = cfg_strdup(list, key, strlen(key));
  if (own == NULL) return gl_fail_memory(err, "a list of values");
  return cfg_append(list, map, own, value->at, value, err);
}

gl_status cfg_list_put(cfg_doc *list, const char *key, const cfg_node *value, gl_error *err) {
  cfg_node *copy = cfg_node_copy(list, value, err);
  return copy != NULL ? put(list, key, copy, err) : GL_EINPUT;
}

gl_status cfg_list_put_number(cfg_doc *list, const char *key, double value, const cfg_node *at,
                              gl_error *err) {
  const cfg_source *own = list->root->at.source, *source = at->at.source;
  const int same = own != NULL && source != NULL && strcmp(own->name, source->name) == 0;
  cfg_place place = same ? at->at : list->root->at;
  place.source = own; /* that of `at` may be gone before the list */
  cfg_node *number = cfg_number_node(list, place, value, err);
  if (number == NULL) return GL_EINPUT;
  number->unit = at->unit;
  return put(list, key, number, err);
}

/* --- templates --- */

typedef struct hole {
  size_t begin, end; /* of the value in the text */
  size_t index;      /* of its path */
} hole;

struct cfg_template {
  char *text;
  size_t size, n;
  hole hole[]; /* [n] in the order of the text */
};

static int by_place(const void *a, const void *b) {
  const hole *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

gl_status cfg_template_new(cfg_template **out, const cfg_doc *doc, const char *const *paths,
                           size_t n, gl_error *err) {
  cfg_template *t = calloc(1, sizeof *t + n * sizeof *t->hole);
  cfg_mark *marks = calloc(n + 1, sizeof *marks);
  *out = NULL;
  int found = t != NULL && marks != NULL;
  for (size_t i = 0; found && i < n; ++i) {
    marks[i].node = cfg_find(doc->root, paths[i]);
    if (marks[i].node != NULL) continue;
    free(t), free(marks);
    return gl_fail(err, GL_EINTERNAL, "a template of a recipe without %s", paths[i]);
  }
  if (found) t->text = cfg_canonical_marked(doc->root, marks, n);
  if (!found || t->text == NULL) {
    free(t), free(marks);
    return gl_fail_memory(err, "the text of a recipe");
  }
  t->size = strlen(t->text);
  t->n = n;
  for (size_t i = 0; i < n; ++i) t->hole[i] = (hole){marks[i].begin, marks[i].end, i};
  qsort(t->hole, n, sizeof *t->hole, by_place);
  free(marks);
  for (size_t i = 0; i < n; ++i) {
    const size_t before = i > 0 ? t->hole[i - 1].end : 0;
    if (t->hole[i].begin < t->hole[i].end && before <= t->hole[i].begin) continue;
    cfg_template_free(t);
    return gl_fail(err, GL_EINTERNAL, "a template of a recipe has a hole inside another");
  }
  *out = t;
  return GL_OK;
}

void cfg_template_free(cfg_template *t) {
  if (t != NULL) free(t->text);
  free(t);
}

size_t cfg_template_size(const cfg_template *t, const char *const *values) {
  size_t size = t->size;
  for (size_t i = 0; i < t->n; ++i)
    size = size - (t->hole[i].end - t->hole[i].begin) + strlen(values[t->hole[i].index]);
  return size;
}

void cfg_template_write(const cfg_template *t, const char *const *values, char *to) {
  size_t at = 0;
  for (size_t i = 0; i < t->n; ++i) {
    const hole *h = &t->hole[i];
    const size_t before = h->begin - at, length = strlen(values[h->index]);
    memcpy(to, t->text + at, before);
    memcpy(to + before, values[h->index], length);
    to += before + length;
    at = h->end;
  }
  memcpy(to, t->text + at, t->size - at + 1);
}
