/* The checksum of the checkpoint that a cell begins from. */
#include "experiments/recipe/starts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void recipe_starts_fini(recipe_starts *s) {
  for (size_t i = 0; i < s->n; ++i) free(s->start[i].folder);
  free(s->start);
  *s = (recipe_starts){0};
}

/* Takes the folder's name. */
static gl_status add_start(recipe_starts *s, char *folder, const cfg_node *at, gl_error *err) {
  gl_error why = {0};
  recipe_start *more = realloc(s->start, (s->n + 1) * sizeof *more);
  if (more == NULL) {
    free(folder);
    return gl_fail_memory(err, "the starts of a study");
  }
  s->start = more;
  more[s->n] = (recipe_start){.folder = folder};
  gl_status status = llm_start_checksum(folder, more[s->n].checksum, &why);
  if (status == GL_OK)
    ++s->n;
  else
    free(folder);
  return status == GL_OK       ? GL_OK
         : status == GL_ENOMEM ? gl_fail(err, status, "%s", why.text)
                               : cfg_fail(at, err, "%s", why.text);
}

/* *at: where the folder's checksum is, in the order in which folders were met. */
static gl_status find_start(recipe_starts *s, char *folder, const cfg_node *place, size_t *at,
                            gl_error *err) {
  for (*at = 0; *at < s->n; ++*at)
    if (strcmp(s->start[*at].folder, folder) == 0) {
      free(folder);
      return GL_OK;
    }
  return add_start(s, folder, place, err);
}

gl_status recipe_pin_start(cfg_doc *doc, const recipe *r, recipe_starts *known, gl_error *err) {
  char *folder, assignment[64 + LLM_CHECKSUM_SIZE];
  size_t i;
  gl_status status = llm_start_folder(&folder, r->world, r->seed, err);
  if (status != GL_OK || folder == NULL) return status;
  const cfg_node *stated = cfg_find(r->world, "model.checksum");
  status = find_start(known, folder, cfg_find(r->world, "model.path"), &i, err);
  if (status != GL_OK) return status;
  const recipe_start *s = &known->start[i];
  if (stated != NULL && strcmp(cfg_text(stated), s->checksum) != 0)
    return cfg_fail(stated, err,
                    "the model in %.300s has the checksum %s; put the model with this one back, or "
                    "take world.model.checksum out to begin from what is there",
                    s->folder, s->checksum);
  if (stated != NULL) return GL_OK;
  snprintf(assignment, sizeof assignment, "world.model.checksum=%s", s->checksum);
  return cfg_override(doc, assignment, err);
}
