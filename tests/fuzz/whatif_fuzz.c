/* libFuzzer target: no text may make the reader of recorded runs misbehave; every batch it takes is
 * evaluated or refused by each algorithm, and the moments are of the finite values only. */
#include "experiments/policy/whatif.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_moments(const whatif_moments *m, size_t most) {
  if (m->n + m->n_infinite > most) abort();
  if (m->n == 0 ? !isnan(m->least) || !isnan(m->most)
                : !isfinite(m->least) || !isfinite(m->most) || m->least > m->most)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  whatif *w = calloc(1, sizeof *w);
  gl_error err = {0};
  if (w == NULL || whatif_init(w, NULL, 0, &err) != GL_OK) abort();
  const token_request request = {0};
  const gl_status status = whatif_read_text(w, (const char *)data, size, "log", &request, &err);
  if ((status == GL_OK) != (err.text[0] == '\0')) abort();
  if (status == GL_OK && w->n_batches == 0) abort();
  for (size_t i = 0; i < w->n_rows; ++i) {
    if (status == GL_OK && w->row[i].n + w->row[i].n_refused != w->n_batches) abort();
    for (int q = 0; q < WHATIF_QUANTITIES; ++q) check_moments(&w->row[i].of[q], w->row[i].n);
  }
  whatif_fini(w);
  free(w);
  return 0;
}
