/* Lists the settings of a one-at-a-time design. */
#include "experiments/recipe/one_at_a_time.h"

#include "core/config/build.h"
#include "experiments/recipe/set_once.h"

#include <stdint.h>
#include <string.h>

static const char section[] = "sweep.one_at_a_time";

/* --- checking --- */

/* A part of the algorithm may be changed in every algorithm that is listed. */
static gl_status check_path(const cfg_node *fields, size_t own, const cfg_doc *doc, gl_error *err) {
  const set_once who = {.doc = doc, .sets = "sweep.one_at_a_time changes", .beside = "algorithm"};
  const char *path = cfg_key_at(fields, own);
  if (strcmp(path, "seed") == 0 || strcmp(path, "algorithm") == 0)
    return cfg_fail(cfg_at(fields, own), err, "%s '%s', which is an axis of its own: sweep.%s",
                    who.sets, path, path);
  return set_once_check(&who, fields, own, err);
}

static gl_status check_design(const cfg_node *fields, const cfg_doc *doc, gl_error *err) {
  if (cfg_kind_of(fields) != CFG_MAP || cfg_size(fields) == 0)
    return cfg_fail(fields, err,
                    "%s needs fields and their values, the base first, as in {train.group_size: "
                    "[8, 4, 16], sampling.temperature: [1, 0.6]}",
                    section);
  if (cfg_find(cfg_root(doc), "sweep.random") != NULL ||
      cfg_find(cfg_root(doc), "sweep.factorial") != NULL)
    return cfg_fail(fields, err,
                    "a sweep is a one-at-a-time design, a factorial design or a random search; "
                    "keep one");
  gl_status status = GL_OK;
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i) {
    const cfg_node *values = cfg_at(fields, i);
    if (cfg_kind_of(values) != CFG_LIST || cfg_size(values) < 2)
      return cfg_fail(values, err,
                      "%s of %s must be a list of its base value and one or more others",
                      cfg_key_at(fields, i), section);
    status = check_path(fields, i, doc, err);
  }
  return status;
}

/* --- listing --- */

/* The base, but for field `changed`, which has its value number `value`. */
static gl_status put_setting(cfg_doc *list, const cfg_node *fields, size_t changed, size_t value,
                             gl_error *err) {
  gl_status status = cfg_list_add_map(list, err);
  for (size_t i = 0; i < cfg_size(fields) && status == GL_OK; ++i)
    status = cfg_list_put(list, cfg_key_at(fields, i),
                          cfg_at(cfg_at(fields, i), i == changed ? value : 0), err);
  return status;
}

static gl_status put_settings(cfg_doc *list, const cfg_node *fields, gl_error *err) {
  gl_status status = put_setting(list, fields, SIZE_MAX, 0, err);
  for (size_t i = 0; i < cfg_size(fields); ++i)
    for (size_t k = 1; k < cfg_size(cfg_at(fields, i)) && status == GL_OK; ++k)
      status = put_setting(list, fields, i, k, err);
  return status;
}

gl_status one_at_a_time_expand(cfg_doc *doc, gl_error *err) {
  const cfg_node *fields = cfg_find(cfg_root(doc), section);
  if (fields == NULL || cfg_is_null(fields)) return GL_OK;
  /* Messages quote places of the recipe, which cfg_set() may move. */
  gl_error why = {0};
  cfg_doc *list = NULL;
  gl_status status = check_design(fields, doc, &why);
  if (status == GL_OK) status = cfg_list_new(&list, fields, &why);
  if (status == GL_OK) status = put_settings(list, fields, &why);
  if (status == GL_OK) status = cfg_set(doc, section, cfg_root(list), &why);
  cfg_free(list);
  return status == GL_OK ? GL_OK : gl_fail(err, status, "%s", why.text);
}
