/* Delay laws: draws and quantiles. */
#include "sim/delay.h"
#include "library/internal.h"

#include <math.h>
#include <stdlib.h>

struct gepolab_delay {
  delay_law *law;
};

gepolab_status gepolab_delay_new(gepolab_delay **out, const char *text, gepolab_error *err) {
  gl_error own = {0};
  cfg_doc *doc = NULL;
  const cfg_node *value = NULL;
  *out = NULL;
  gepolab_delay *made = calloc(1, sizeof *made);
  gl_status status = made == NULL ? gl_fail_memory(&own, "the law") : GL_OK;
  if (status == GL_OK) status = library_value(&doc, &value, "delay", text, &own);
  if (status == GL_OK) status = delay_parse(&made->law, value, "delay", NAN, &own);
  cfg_free(doc);
  if (status != GL_OK) {
    free(made);
    return library_failed(err, &own);
  }
  *out = made;
  return GEPOLAB_OK;
}

void gepolab_delay_free(gepolab_delay *law) {
  if (law == NULL) return;
  delay_free(law->law);
  free(law);
}

gepolab_status gepolab_delay_quantile(const gepolab_delay *law, double p, double *out,
                                      gepolab_error *err) {
  if (!(p > 0 && p < 1))
    return library_fail(err, GL_EINPUT, "the quantile of %g: p lies between 0 and 1", p);
  if (law->law->kind == DELAY_GILBERT_ELLIOTT)
    return library_fail(err, GL_EINPUT,
                        "a Gilbert-Elliott law has no quantile: its draws depend on one another");
  *out = delay_quantile(law->law, p);
  return GEPOLAB_OK;
}

gepolab_status gepolab_delay_draw(const gepolab_delay *law, uint64_t seed, int64_t first, int64_t n,
                                  double *out, gepolab_error *err) {
  delay_source source = {.stream = rng_stream_at(seed, RNG_DELAY, 0)};
  const int64_t most = (int64_t)1 << 40;
  if (first < 0 || n < 0 || first > most || n > most - first)
    return library_fail(err, GL_EINPUT,
                        "%lld draws from number %lld on: numbers lie between 0 and 2^40",
                        (long long)n, (long long)first);
  if (law->law->kind == DELAY_GILBERT_ELLIOTT)
    for (int64_t k = 0; k < first; ++k) (void)delay_draw(law->law, &source);
  else
    source.index = (uint64_t)first;
  for (int64_t k = 0; k < n; ++k) out[k] = delay_draw(law->law, &source);
  return GEPOLAB_OK;
}
