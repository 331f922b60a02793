/* Reads the contrasts that a recipe declares. */
#include "experiments/sweep/contrasts.h"

#include "core/config/fields.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CONTRASTS = 1000 };

static gl_status contrasts_read_field(contrast_field *out, const cfg_node *arm, size_t i,
                                      gl_error *err) {
  const char *path = cfg_key_at(arm, i);
  const cfg_node *value = cfg_at(arm, i);
  if (strcmp(path, "algorithm") != 0 && fields_named(path) == NULL)
    return cfg_fail(
        value, err,
        "contrasts: there is no field %s; an arm names `algorithm` and paths of fields, "
        "as in {algorithm: gepo, cluster.preset: fifo}",
        path);
  if (cfg_kind_of(value) != CFG_SCALAR || cfg_is_null(value))
    return cfg_fail(value, err, "contrasts: %s of an arm must be one value", path);
  *out = (contrast_field){path, cfg_text(value)};
  return GL_OK;
}

static gl_status read_arm(contrast_arm *out, const cfg_node *arm, const cfg_node *at,
                          const char *key, gl_error *err) {
  if (arm == NULL || cfg_kind_of(arm) != CFG_MAP || cfg_size(arm) == 0)
    return cfg_fail(arm != NULL ? arm : at, err,
                    "contrasts: `%s` must be a map of fields to values, as in {algorithm: gepo, "
                    "cluster.preset: fifo}",
                    key);
  if (cfg_size(arm) > CONTRAST_FIELDS)
    return cfg_fail(arm, err, "contrasts: `%s` names more than %d fields", key, CONTRAST_FIELDS);
  gl_status status = GL_OK;
  for (out->n = 0; out->n < cfg_size(arm) && status == GL_OK; out->n++)
    status = contrasts_read_field(&out->field[out->n], arm, out->n, err);
  return status;
}

static gl_status read_contrast(contrast *out, const cfg_node *node, gl_error *err) {
  cfg_reader r;
  cfg_begin(&r, node, "contrasts", err);
  out->name = cfg_string(&r, "name", "");
  out->measure = (contrast_measure)cfg_choice(&r, "measure", CONTRAST_FALL, contrast_measure_names,
                                              CONTRAST_MEASURES);
  const cfg_node *of = cfg_child(&r, "of"), *against = cfg_child(&r, "against");
  gl_status status = cfg_end(&r);
  if (status == GL_OK && *out->name == '\0')
    status = cfg_fail(node, err, "contrasts: each needs a name");
  if (status == GL_OK) status = read_arm(&out->of, of, node, "of", err);
  return status == GL_OK ? read_arm(&out->against, against, node, "against", err) : status;
}

gl_status declared_contrasts_read(declared_contrasts *out, const cfg_doc *doc, gl_error *err) {
  *out = (declared_contrasts){0};
  const cfg_node *list = cfg_find(cfg_root(doc), "contrasts");
  if (list == NULL || cfg_is_null(list)) return GL_OK;
  if (cfg_kind_of(list) != CFG_LIST || cfg_size(list) == 0 || cfg_size(list) > MOST_CONTRASTS)
    return cfg_fail(list, err,
                    "contrasts must be a list of 1 to %d, as in [{name: gate, of: {algorithm: "
                    "gepo}, against: {algorithm: gspo}}]",
                    MOST_CONTRASTS);
  out->contrast = calloc(cfg_size(list), sizeof *out->contrast);
  if (out->contrast == NULL) return gl_fail_memory(err, "the contrasts");
  gl_status status = GL_OK;
  for (; out->n < cfg_size(list) && status == GL_OK; out->n++) {
    const cfg_node *node = cfg_at(list, out->n);
    status = read_contrast(&out->contrast[out->n], node, err);
    for (size_t i = 0; i < out->n && status == GL_OK; i++)
      if (strcmp(out->contrast[i].name, out->contrast[out->n].name) == 0)
        status = cfg_fail(node, err, "two contrasts have the name '%s'", out->contrast[i].name);
  }
  return status;
}

void declared_contrasts_fini(declared_contrasts *d) {
  free(d->contrast);
  *d = (declared_contrasts){0};
}

static int contrasts_is_swept(const sweep_cells *cells, const char *algorithm) {
  for (size_t i = 0; i < cells->n_cells; i++)
    if (strcmp(cells->cells[i].algorithm, algorithm) == 0) return 1;
  return 0;
}

gl_status declared_contrasts_check(const cfg_doc *doc, const sweep_cells *cells, gl_error *err) {
  declared_contrasts d = {0};
  gl_status status = declared_contrasts_read(&d, doc, err);
  for (size_t i = 0; i < d.n && status == GL_OK; i++) {
    const contrast_arm *arms[] = {&d.contrast[i].of, &d.contrast[i].against};
    for (size_t k = 0; k < 2 * CONTRAST_FIELDS && status == GL_OK; k++) {
      const contrast_arm *arm = arms[k / CONTRAST_FIELDS];
      const size_t f = k % CONTRAST_FIELDS;
      if (f >= arm->n || strcmp(arm->field[f].path, "algorithm") != 0 ||
          contrasts_is_swept(cells, arm->field[f].value))
        continue;
      status = cfg_fail(cfg_at(cfg_find(cfg_root(doc), "contrasts"), i), err,
                        "the contrast '%s' names the algorithm '%s', which the sweep does not have",
                        d.contrast[i].name, arm->field[f].value);
    }
  }
  declared_contrasts_fini(&d);
  return status;
}
