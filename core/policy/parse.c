#include "core/policy/algorithm.h"

#include <stdio.h>
#include <string.h>

static gl_status unknown_row(const cfg_node *node, gl_error *err) {
  const char *names[64];
  size_t n = policy_rows_count();
  for (size_t i = 0; i < n; i++) names[i] = policy_rows_at(i)->name;
  char near[CFG_HINT_SIZE];
  return cfg_fail(node, err, "no algorithm '%s'; `gepolab algorithms` lists them%s", cfg_text(node),
                  cfg_hint(cfg_text(node), names, n, near));
}

static void read_field(policy_row *row, const policy_field *f, cfg_reader *r) {
  void *at = (char *)row + f->offset;
  switch (f->kind) {
  case FIELD_CHOICE:
    *(int *)at = cfg_choice(r, f->name, *(int *)at, f->choices, f->n_choices);
    break;
  case FIELD_BOOL:
    *(int *)at = cfg_bool(r, f->name, *(int *)at);
    break;
  case FIELD_COUNT:
    *(size_t *)at = cfg_count(r, f->name, *(size_t *)at, (size_t)f->lo, (size_t)f->hi);
    break;
  case FIELD_NUMBER:
    *(double *)at = cfg_double(r, f->name, *(double *)at, f->lo, f->hi);
    break;
  }
}

gl_status policy_row_parse(policy_row *row, const cfg_node *node, gl_error *err) {
  const policy_row *base = policy_rows_find("grpo");
  const cfg_node *name = node;
  gl_error why = {0};
  cfg_reader r;
  *row = *base;
  if (node == NULL) return GL_OK;
  if (cfg_kind_of(node) == CFG_LIST)
    return cfg_fail(node, err, "algorithm is a list; give a row's name or a map {base: ROW, ...}");
  if (cfg_kind_of(node) == CFG_MAP) name = cfg_find(node, "base");
  if (name == NULL) return cfg_fail(node, err, "algorithm has no 'base'; name the row it changes");
  base = policy_rows_find(cfg_text(name));
  if (cfg_kind_of(name) != CFG_SCALAR || base == NULL) return unknown_row(name, err);
  *row = *base;
  if (cfg_kind_of(node) != CFG_MAP) return GL_OK;
  cfg_begin(&r, node, "algorithm", err);
  cfg_string(&r, "base", NULL);
  const char *shown = cfg_string(&r, "name", base->name);
  for (size_t i = 0; i < policy_fields_count(); i++) read_field(row, policy_fields_at(i), &r);
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  if (strlen(shown) >= sizeof row->name)
    return cfg_fail(node, err, "name is longer than %zu characters", sizeof row->name - 1);
  snprintf(row->name, sizeof row->name, "%s", shown);
  if (policy_row_check(row, &why) != GL_OK) return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}
