/* Reads `algorithm:` of a recipe. */
#include "core/policy/algorithm.h"

#include <stdio.h>
#include <string.h>

static gl_status unknown_algorithm(const cfg_node *node, gl_error *err) {
  const char *names[64];
  size_t n = policy_algorithms_count();
  for (size_t i = 0; i < n; i++) names[i] = policy_algorithms_at(i)->name;
  char near[CFG_HINT_SIZE];
  return cfg_fail(node, err, "no algorithm '%s'; `gepolab algorithms` lists them%s", cfg_text(node),
                  cfg_hint(cfg_text(node), names, n, near));
}

static void read_field(policy_algorithm *algorithm, const policy_field *f, const char *key,
                       cfg_reader *r) {
  void *at = (char *)algorithm + f->offset;
  const char *names[POLICY_MOST_CHOICES];
  switch (f->kind) {
  case FIELD_CHOICE:
    for (int i = 0; i < f->n_choices; i++) names[i] = f->choice(i);
    *(int *)at = cfg_choice(r, key, *(int *)at, names, f->n_choices);
    break;
  case FIELD_BOOL:
    *(int *)at = cfg_bool(r, key, *(int *)at);
    break;
  case FIELD_COUNT:
    *(size_t *)at = cfg_count(r, key, *(size_t *)at, (size_t)f->lo, (size_t)f->hi);
    break;
  case FIELD_NUMBER:
    *(double *)at = cfg_double(r, key, *(double *)at, f->lo, f->hi);
    break;
  }
}

/* Fields `gate.NAME` are keys of a map `gate`. */
static const char gate_section[] = "gate.";

static const char *key_in_gate(const policy_field *f) {
  const size_t n = sizeof gate_section - 1;
  return strncmp(f->name, gate_section, n) == 0 ? f->name + n : NULL;
}

static void read_fields(policy_algorithm *algorithm, cfg_reader *r) {
  cfg_reader gate;
  cfg_begin(&gate, cfg_child(r, "gate"), "algorithm.gate", r->err);
  if (r->status != GL_OK) gate.status = r->status;
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *f = policy_fields_at(i);
    const char *key = key_in_gate(f);
    if (key != NULL)
      read_field(algorithm, f, key, &gate);
    else
      read_field(algorithm, f, f->name, r);
  }
  if (cfg_end(&gate) != GL_OK && r->status == GL_OK) r->status = gate.status;
}

/* The recipe's `name:`, if it gives one, else a name made of what was changed. */
static gl_status read_name(policy_algorithm *algorithm, const cfg_node *map, gl_error *err) {
  const cfg_node *node = cfg_find(map, "name");
  gl_error why = {0};
  algorithm->has_own_name = node != NULL && !cfg_is_null(node);
  if (!algorithm->has_own_name) {
    gl_status status = policy_algorithm_set_name(algorithm, NULL, 0, &why);
    return status == GL_OK ? GL_OK : cfg_fail(map, err, "%s", why.text);
  }
  const char *name = cfg_text(node);
  if (name[0] == '\0') return cfg_fail(node, err, "the algorithm's name is empty");
  if (strlen(name) >= sizeof algorithm->name)
    return cfg_fail(node, err, "the algorithm's name is longer than %zu characters",
                    sizeof algorithm->name - 1);
  snprintf(algorithm->name, sizeof algorithm->name, "%s", name);
  if (policy_algorithm_check_name(algorithm, &why) != GL_OK)
    return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}

gl_status policy_algorithm_parse(policy_algorithm *algorithm, const cfg_node *node, gl_error *err) {
  const policy_algorithm *base = policy_algorithms_find("grpo");
  const cfg_node *name = node;
  gl_error why = {0};
  cfg_reader r;
  *algorithm = *base;
  if (node == NULL) return GL_OK;
  if (cfg_kind_of(node) == CFG_LIST)
    return cfg_fail(node, err,
                    "algorithm is a list; give an algorithm's name or a map {base: NAME, ...}");
  if (cfg_kind_of(node) == CFG_MAP) name = cfg_find(node, "base");
  if (name == NULL)
    return cfg_fail(node, err,
                    "algorithm has no 'base'; name the algorithm whose fields it changes: "
                    "algorithm.base=grpo on the command line, {base: grpo, ...} in a recipe");
  base = policy_algorithms_find(cfg_text(name));
  if (cfg_kind_of(name) != CFG_SCALAR || base == NULL) return unknown_algorithm(name, err);
  *algorithm = *base;
  if (cfg_kind_of(node) != CFG_MAP) return GL_OK;
  cfg_begin(&r, node, "algorithm", err);
  cfg_string(&r, "base", NULL);
  cfg_string(&r, "name", NULL);
  read_fields(algorithm, &r);
  gl_status status = cfg_end(&r);
  if (status == GL_OK) status = read_name(algorithm, node, err);
  if (status != GL_OK) return status;
  if (policy_algorithm_check(algorithm, &why) != GL_OK) return cfg_fail(node, err, "%s", why.text);
  return GL_OK;
}
