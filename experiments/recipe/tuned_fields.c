/* Finds what a recipe's `tune` chooses. */
#include "experiments/recipe/tuned_fields.h"

#include "core/config/designs.h"

static void add(tuned_fields *t, const char *path, const cfg_node *values) {
  if (t->n == TUNED_FIELDS_MOST) return;
  t->path[t->n] = path;
  t->values[t->n++] = values;
}

tuned_fields tuned_fields_of(const cfg_doc *doc) {
  tuned_fields out = {.n = 0};
  const cfg_node *tune = cfg_find(cfg_root(doc), "tune");
  if (tune == NULL || cfg_kind_of(tune) != CFG_MAP) return out;
  const cfg_node *lr = cfg_find(tune, "lr"), *fields = cfg_find(tune, "fields");
  if (lr != NULL && !cfg_is_null(lr)) add(&out, "optimizer.lr", lr);
  if (fields == NULL || cfg_kind_of(fields) != CFG_MAP) return out;
  for (size_t i = 0; i < cfg_size(fields); ++i) add(&out, cfg_key_at(fields, i), cfg_at(fields, i));
  return out;
}

const char *tuned_fields_meet(const cfg_doc *doc, const char *path) {
  const tuned_fields t = tuned_fields_of(doc);
  for (size_t i = 0; i < t.n; ++i)
    if (cfg_paths_meet(t.path[i], path)) return t.path[i];
  return NULL;
}
