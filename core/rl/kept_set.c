/* Sets of tokens that a sampler kept. */
#include "core/rl/kept_set.h"

#include <math.h>
#include <string.h>

static size_t room_of(size_t top_k, size_t vocabulary) {
  return top_k < vocabulary / 2 && 2 * top_k + 32 < vocabulary ? 2 * top_k + 32 : vocabulary;
}

gl_status kept_shape_of(kept_shape *out, const sampling_spec *spec, size_t vocabulary,
                        const cfg_node *sampling, gl_error *err) {
  const cfg_node *place = sampling;
  *out = (kept_shape){.vocabulary = vocabulary};
  if (vocabulary <= KEPT_MOST_BITS) {
    out->words = (vocabulary + 31) / 32;
    return GL_OK;
  }
  out->listed = 1;
  if (spec->top_k == 0 || spec->top_k >= vocabulary) {
    if (sampling != NULL && cfg_find(sampling, "top_p") != NULL)
      place = cfg_find(sampling, "top_p");
    return cfg_fail(place, err,
                    "the tokens that top_p alone keeps of %zu have no bound, and they are recorded "
                    "with every drawn token; bound them with top_k as well (say, top_k: 64)",
                    vocabulary);
  }
  out->words = 1 + room_of(spec->top_k, vocabulary);
  if (out->words <= KEPT_MOST_WORDS) return GL_OK;
  if (sampling != NULL && cfg_find(sampling, "top_k") != NULL) place = cfg_find(sampling, "top_k");
  return cfg_fail(place, err,
                  "top_k: %zu keeps more tokens than are recorded with each drawn one (%d at most "
                  "over %zu tokens); lower it",
                  spec->top_k, (KEPT_MOST_WORDS - 33) / 2, vocabulary);
}

static void put_bits(const double *dist, size_t n, uint32_t *set) {
  for (size_t a = 0; a < n; ++a)
    if (!isinf(dist[a])) set[a / 32] |= (uint32_t)1 << a % 32;
}

static void put_list(const double *dist, size_t n, size_t room, uint32_t *set) {
  size_t count = 0;
  for (size_t a = 0; a < n; ++a) {
    if (isinf(dist[a])) continue;
    if (count == room) {
      set[0] = KEPT_OVERFLOW;
      return;
    }
    set[++count] = (uint32_t)a;
  }
  set[0] = (uint32_t)count;
}

void kept_put(const kept_shape *shape, const double *dist, uint32_t *set) {
  const size_t n = shape->vocabulary;
  memset(set, 0, shape->words * sizeof *set);
  for (size_t a = 0; a < n; ++a)
    if (isnan(dist[a])) return;
  if (shape->listed)
    put_list(dist, n, shape->words - 1, set);
  else
    put_bits(dist, n, set);
}

int kept_has(const kept_shape *shape, const uint32_t *set, size_t token) {
  if (!shape->listed) return (int)(set[token / 32] >> token % 32 & 1);
  if (set[0] >= shape->words) return 0; /* it overflowed, or is damaged */
  const size_t at = kept_from(set, token);
  return at <= set[0] && set[at] == token;
}

size_t kept_count(const kept_shape *shape, const uint32_t *set) {
  if (shape->listed) return set[0] < shape->words ? set[0] : 0;
  size_t n = 0;
  for (size_t w = 0; w < shape->words; ++w) n += (size_t)__builtin_popcount(set[w]);
  return n;
}
