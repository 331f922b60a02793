/* Numbers with units in sections that the table of fields does not know. */
#include "core/config/quantities.h"

#include "core/config/internal.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 256 };

typedef struct search {
  cfg_doc *doc;
  const cfg_quantity *table;
  size_t n;
  gl_error *err;
  char path[PATH_SIZE];
} search;

static const char *unit_at(const search *s) {
  for (size_t i = 0; i < s->n; ++i)
    if (strcmp(s->table[i].path, s->path) == 0) return s->table[i].unit;
  return NULL;
}

/* Whether something at or below the path may have a unit. */
static int leads_on(const search *s) {
  for (size_t i = 0; i < s->n; ++i)
    if (cfg_path_is_inside(s->table[i].path, s->path)) return 1;
  return 0;
}

static gl_status resolve(search *s, cfg_node *node, const char *unit, const cfg_node *around);

static gl_status resolve_entry(search *s, cfg_node *map, const cfg_entry *e, const char *unit) {
  const size_t length = strlen(s->path);
  const char *inner = unit != NULL && cfg_part_has_unit(e->key, map) ? unit : NULL;
  const int n =
      snprintf(s->path + length, PATH_SIZE - length, "%s%s", length > 0 ? "." : "", e->key);
  gl_status status = GL_OK;
  /* A path that does not fit is longer than all of the table. */
  if (n > 0 && (size_t)n < PATH_SIZE - length && (inner != NULL || leads_on(s)))
    status = resolve(s, e->value, inner != NULL ? inner : unit_at(s), map);
  s->path[length] = '\0';
  return status;
}

/* unit: of the node; NULL: it has none. around: the map that it is a value of. */
static gl_status resolve(search *s, cfg_node *node, const char *unit, const cfg_node *around) {
  gl_status status = GL_OK;
  if (unit != NULL) node->unit = unit;
  if (node->kind == CFG_SCALAR)
    return unit != NULL ? cfg_convert(s->doc, node, unit, s->path, s->err) : GL_OK;
  for (size_t i = 0; i < node->n && status == GL_OK; ++i)
    status = node->kind == CFG_LIST ? resolve(s, node->entry[i].value, unit, around)
                                    : resolve_entry(s, node, &node->entry[i], unit);
  return status;
}

gl_status cfg_resolve_quantities(cfg_doc *doc, const cfg_quantity *table, size_t n, gl_error *err) {
  gl_error why = {0};
  search s = {.doc = doc, .table = table, .n = n, .err = &why};
  gl_status status = resolve(&s, doc->root, NULL, NULL);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
