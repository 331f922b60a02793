/* Refuses fields that are set twice. */
#include "experiments/recipe/set_once.h"

#include "core/config/designs.h"
#include "experiments/recipe/tuned_fields.h"

#include <string.h>

static int may_be_beside(const set_once *who, const char *axis) {
  return who->beside != NULL && strcmp(axis, who->beside) == 0;
}

gl_status set_once_check(const set_once *who, const cfg_node *fields, size_t own, gl_error *err) {
  const cfg_node *sweep = cfg_find(cfg_root(who->doc), "sweep"), *at = cfg_at(fields, own);
  const char *path = cfg_key_at(fields, own);
  if (tuned_fields_meet(who->doc, path) != NULL)
    return cfg_fail(at, err, "%s %s, and tune chooses it; keep one of them (tune=null)", who->sets,
                    path);
  for (size_t i = 0; i < cfg_size(sweep); ++i) {
    const char *axis = cfg_key_at(sweep, i);
    if (!may_be_beside(who, axis) && cfg_paths_meet(axis, path))
      return cfg_fail(at, err, "%s %s, and sweep.%s lists its values; keep one", who->sets, path,
                      axis);
  }
  for (size_t i = 0; i < own; ++i)
    if (cfg_paths_meet(cfg_key_at(fields, i), path))
      return cfg_fail(at, err, "%s %s and %s, one inside the other; keep one", who->sets,
                      cfg_key_at(fields, i), path);
  return GL_OK;
}
