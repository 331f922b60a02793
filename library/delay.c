/* Delay distributions: draws and quantiles. */
#include "sim/delay.h"
#include "library/internal.h"

#include <math.h>
#include <stdlib.h>

struct gepolab_delay {
  delay_dist *dist;
};

static gl_status delay_fill(void *self, const cfg_node *from, const void *more, gl_error *err) {
  gepolab_delay *made = self;
  (void)more;
  return delay_parse(&made->dist, from, "delay", NAN, err);
}

static void delay_release(void *self) {
  gepolab_delay *dist = self;
  delay_free(dist->dist);
  free(dist);
}

gepolab_status gepolab_delay_new(gepolab_delay **out, const char *text, gepolab_error *err) {
  static const library_kind kind = {"the law", sizeof(gepolab_delay), "cluster.delay", delay_fill,
                                    delay_release};
  const library_source source = {.name = "delay", .text = text};
  void *made;
  const gepolab_status status = library_new(&made, &kind, &source, NULL, err);
  *out = made;
  return status;
}

void gepolab_delay_free(gepolab_delay *dist) {
  if (dist != NULL) delay_release(dist);
}

gepolab_status gepolab_delay_quantile(const gepolab_delay *dist, double p, double *out,
                                      gepolab_error *err) {
  if (!(p > 0 && p < 1))
    return library_fail(err, GL_EINPUT, "the quantile of %g: p lies between 0 and 1", p);
  if (dist->dist->kind == DELAY_GILBERT_ELLIOTT)
    return library_fail(err, GL_EINPUT,
                        "a Gilbert-Elliott law has no quantile: its draws depend on one another");
  *out = delay_quantile(dist->dist, p);
  return GEPOLAB_OK;
}

gepolab_status gepolab_delay_draw(const gepolab_delay *dist, uint64_t seed, int64_t first,
                                  int64_t n, double *out, gepolab_error *err) {
  delay_source source = {.stream = rng_stream_at(seed, RNG_DELAY, 0)};
  const int64_t most = (int64_t)1 << 40;
  if (first < 0 || n < 0 || first > most || n > most - first)
    return library_fail(err, GL_EINPUT,
                        "%lld draws from number %lld on: numbers lie between 0 and 2^40",
                        (long long)n, (long long)first);
  if (dist->dist->kind == DELAY_GILBERT_ELLIOTT)
    for (int64_t k = 0; k < first; ++k) (void)delay_draw(dist->dist, &source);
  else
    source.index = (uint64_t)first;
  for (int64_t k = 0; k < n; ++k) out[k] = delay_draw(dist->dist, &source);
  return GEPOLAB_OK;
}
