#include "core/sampling.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

gl_status sampling_parse(sampling_spec *spec, const cfg_node *section, gl_error *err) {
  static const char *const weights[] = {"raw", "truncated"};
  cfg_reader r;
  cfg_begin(&r, section, "sampling", err);
  spec->temperature = cfg_positive(&r, "temperature", 1);
  spec->top_k = cfg_count(&r, "top_k", 0, 0, SIZE_MAX);
  spec->top_p = cfg_double(&r, "top_p", 1, 0, 1);
  spec->weights = (sampling_weights)cfg_choice(&r, "weights", SAMPLING_RAW, weights, 2);
  gl_status status = cfg_end(&r);
  if (status != GL_OK) return status;
  if (spec->top_p == 0)
    return cfg_fail(cfg_find(section, "top_p"), err,
                    "top_p 0 would keep no token; give a share above 0, up to 1");
  return GL_OK;
}

int sampling_truncates(const sampling_spec *spec, size_t n) {
  return (spec->top_k != 0 && spec->top_k < n) || spec->top_p < 1;
}

static int by_probability(const void *a, const void *b) {
  const sampling_rank *x = a, *y = b;
  if (x->logp != y->logp) return x->logp > y->logp ? -1 : 1;
  return x->token < y->token ? -1 : x->token > y->token;
}

void sampling_truncate(const sampling_spec *spec, const double *logp, size_t n, double *out,
                       sampling_rank *rank) {
  int ordered = sampling_truncates(spec, n);
  for (size_t i = 0; ordered && i < n; ++i) {
    rank[i] = (sampling_rank){logp[i], i};
    if (isnan(logp[i])) ordered = 0;
  }
  if (!ordered) {
    memcpy(out, logp, n * sizeof *out);
    return;
  }
  qsort(rank, n, sizeof *rank, by_probability);
  size_t keep = spec->top_k != 0 && spec->top_k < n ? spec->top_k : n;
  while (keep < n && rank[keep].logp == rank[keep - 1].logp) ++keep;
  double kept = 0;
  for (size_t i = 0; i < keep; ++i) kept += exp(rank[i].logp);
  if (spec->top_p < 1) {
    double mass = 0, wanted = spec->top_p * kept;
    size_t run = 0;
    while (run < keep && (run == 0 || mass < wanted)) mass += exp(rank[run++].logp);
    keep = run;
    kept = mass;
  }
  for (size_t i = 0; i < n; ++i) out[i] = -INFINITY;
  for (size_t i = 0; i < keep; ++i) out[rank[i].token] = rank[i].logp - log(kept);
}
