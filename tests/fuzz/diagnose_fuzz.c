/* libFuzzer target: no text may make a diagnosis misbehave. A log that is read gives a page in
 * every form; a finding's interval is beyond its limit. */
#include "analysis/diagnose/diagnose.h"
#include "experiments/tokens/token_log.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_page(const diagnosis *d) {
  static const table_format forms[] = {TABLE_AS_TEXT, TABLE_AS_HTML, TABLE_AS_JSON};
  FILE *to = fopen("/dev/null", "w");
  gl_error err = {0};
  if (to == NULL) abort();
  for (int s = 0; s < DIAGNOSE_SECTIONS; ++s) {
    table *t = table_document();
    if (diagnosis_section(t, d, (diagnose_section)s, &err) != GL_OK) abort();
    for (size_t f = 0; f < sizeof forms / sizeof *forms; ++f)
      if (table_write(t, forms[f], to, &err) != GL_OK) abort();
    table_free(t);
  }
  fclose(to);
}

static gl_status add_all(diagnosis *d, token_log *log, gl_error *err) {
  const token_batch *b = NULL;
  gl_status status = GL_OK;
  while (status == GL_OK && (status = token_log_next(log, &b, err)) == GL_OK && b != NULL) {
    const diagnose_batch batch = {.in = &b->input,
                                  .step = b->step,
                                  .n_dropped = (double)b->n_untrained,
                                  .dropped_tokens = NAN,
                                  .dropped_tokens_squared = NAN};
    status = diagnosis_add_batch(d, &batch, err);
  }
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const token_request request = {0};
  const diagnose_request asked = {.algorithm = policy_algorithms_find("gspo")};
  const diagnose_finding *found = NULL;
  token_log *log = NULL;
  diagnosis *d = NULL;
  gl_error err = {0};
  if (diagnosis_new(&d, &asked, &err) != GL_OK) abort();
  gl_status status = token_log_open_text(&log, (const char *)data, size, "log", &request, &err);
  if (status == GL_OK) status = add_all(d, log, &err);
  if (status == GL_OK) status = diagnosis_finish(d, &err);
  if ((status == GL_OK) != (err.text[0] == '\0')) abort();
  if (status == GL_OK) {
    const size_t n = diagnosis_findings(d, &found);
    for (size_t i = 0; i < n; ++i)
      if (!(found[i].severity >= 1)) abort();
    write_page(d);
  }
  token_log_close(log);
  diagnosis_free(d);
  return 0;
}
