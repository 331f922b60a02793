/* A diagnosis from beginning to end. */
#include "analysis/diagnose/internal.h"

#include <math.h>
#include <stdlib.h>

gl_status diagnosis_new(diagnosis **out, const diagnose_request *request, gl_error *err) {
  diagnosis *d = calloc(1, sizeof *d);
  *out = d;
  if (d == NULL) return gl_fail_memory(err, "a diagnosis");
  d->request = *request;
  const gl_status status = rows_init(d, err);
  if (status == GL_OK) return GL_OK;
  diagnosis_free(d);
  *out = NULL;
  return status;
}

void diagnosis_free(diagnosis *d) {
  if (d == NULL) return;
  rows_fini(d);
  free(d->update);
  free(d->place);
  free(d->source);
  free(d->cell);
  free(d->scratch);
  free(d->series);
  arena_fini(&d->memory);
  free(d);
}

void diagnosis_set_trainer(diagnosis *d, const char *trainer) {
  d->request.trainer = trainer;
}

gl_status diagnosis_finish(diagnosis *d, gl_error *err) {
  enum { ENTITY_INFORMATIVE = 90 };
  d->informative = (interval){NAN, NAN, NAN};
  if (d->n_updates == 0 && d->n_series == 0)
    return gl_fail(
        err, GL_EINPUT,
        "nothing in the logs says anything about staleness or time; a token-level log, or "
        "series such as staleness, divergence and seconds of a step are needed "
        "(`gepolab diagnose --help`)");
  gl_status status = facts_of_tokens(d, err);
  if (status == GL_OK && d->n_updates > 0)
    status = facts_mean(&d->update[0].informative, d->n_updates, sizeof *d->update / sizeof(double),
                        ENTITY_INFORMATIVE, &d->informative, err);
  if (status == GL_OK) status = facts_of_series(d, err);
  if (status == GL_OK) status = places_finish(d, err);
  if (status == GL_OK) find_causes(d);
  return status;
}
