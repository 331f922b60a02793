/* Objects that are made of text, as recipes have it: an algorithm, a distribution, a simulation. */
#include "library/internal.h"

#include "core/policy/algorithm.h"
#include "core/rl/fields.h"
#include "sim/cluster.h"
#include "toy/lab/fields.h"

#include <stdlib.h>
#include <string.h>

/* The tables of the fields that a recipe's clock needs, and of what stands beside it at the top. */
static void library_use_fields(void) {
  const field_table *const tables[] = {&study_fields, &policy_fields, &design_fields,
                                       &rl_fields,    &sim_fields,    &lab_fields};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i) fields_add(tables[i]);
}

static gl_status load(cfg_doc **doc, const cfg_node **from, const library_kind *kind,
                      const library_source *source, gl_error *err) {
  gl_status status = GL_OK;
  library_use_fields();
  if (source->text == NULL && source->file == NULL)
    return gl_fail(err, GL_EINPUT, "the text of %s is NULL", source->name);
  if (source->file != NULL)
    status = cfg_load_file(doc, source->file, err);
  else if (kind->path == NULL)
    status = cfg_load_text(doc, source->text, strlen(source->text), source->name, err);
  else
    status = cfg_load_value(doc, kind->path, source->text, strlen(source->text), source->name, err);
  if (status == GL_OK && kind->path == NULL) status = cfg_include(*doc, NULL, err);
  if (status == GL_OK) status = cfg_resolve(*doc, err);
  if (status != GL_OK) return status;
  *from = kind->path != NULL ? cfg_find(cfg_root(*doc), kind->path) : cfg_root(*doc);
  return GL_OK;
}

gepolab_status library_new(void **out, const library_kind *kind, const library_source *source,
                           const void *more, gepolab_error *err) {
  gl_error own = {0};
  cfg_doc *doc = NULL;
  const cfg_node *from = NULL;
  *out = NULL;
  void *made = calloc(1, kind->size);
  gl_status status = made == NULL ? gl_fail_memory(&own, kind->what) : GL_OK;
  if (status == GL_OK) status = load(&doc, &from, kind, source, &own);
  if (status == GL_OK) status = kind->fill(made, from, more, &own);
  cfg_free(doc);
  if (status == GL_OK) {
    *out = made;
    return GEPOLAB_OK;
  }
  if (made != NULL) kind->release(made);
  return library_failed(err, &own);
}
