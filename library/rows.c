/* Reading, checking and writing rows of tokens. Elements that lie side by side, which nearly all
 * do, have loops of their own. */
#include "library/rows.h"

#include "core/base/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Returns whether a number is not between -FLT_MAX and `most`. */
CLONES static uint32_t widen(const float *from, size_t n, float most, double *to) {
  uint32_t refused = 0;
  for (size_t t = 0; t < n; ++t) {
    to[t] = (double)from[t];
    refused |= ((from[t] <= most) & (from[t] >= -FLT_MAX)) ? 0 : 1;
  }
  return refused;
}

/* The largest float that is not above `most`, and finite. */
static float float_below(double most) {
  if (most >= (double)FLT_MAX) return FLT_MAX;
  const float nearest = (float)most;
  return (double)nearest > most ? nextafterf(nearest, -INFINITY) : nearest;
}

CLONES static void narrow(const double *from, size_t n, float *to) {
  for (size_t t = 0; t < n; ++t) to[t] = (float)from[t];
}

int row_read(const row *from, double most, double *to) {
  if (from->type == GEPOLAB_FLOAT32) {
    const float *at = (const float *)from->data + from->first;
    if (from->stride == 1) return widen(at, from->n, float_below(most), to) == 0;
    for (size_t t = 0; t < from->n; ++t) to[t] = (double)at[(int64_t)t * from->stride];
  } else {
    const double *at = (const double *)from->data + from->first;
    if (from->stride == 1 && from->n > 0) memcpy(to, at, from->n * sizeof *to);
    for (size_t t = 0; t < from->n && from->stride != 1; ++t) to[t] = at[(int64_t)t * from->stride];
  }
  return row_is_within(to, from->n, most);
}

void row_write(const row *to, const double *value) {
  if (to->type == GEPOLAB_FLOAT32) {
    float *at = (float *)to->data + to->first;
    if (to->stride == 1) narrow(value, to->n, at);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t)
      at[(int64_t)t * to->stride] = (float)value[t];
  } else {
    double *at = (double *)to->data + to->first;
    if (to->stride == 1 && to->n > 0) memcpy(at, value, to->n * sizeof *at);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t) at[(int64_t)t * to->stride] = value[t];
  }
}

CLONES static void fill_singles(float *to, size_t n, float value) {
  for (size_t t = 0; t < n; ++t) to[t] = value;
}

CLONES static void fill_doubles(double *to, size_t n, double value) {
  for (size_t t = 0; t < n; ++t) to[t] = value;
}

void row_fill(const row *to, double value) {
  if (to->n == 0) return;
  if (to->type == GEPOLAB_FLOAT32) {
    float *at = (float *)to->data + to->first;
    if (to->stride == 1) fill_singles(at, to->n, (float)value);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t)
      at[(int64_t)t * to->stride] = (float)value;
  } else {
    double *at = (double *)to->data + to->first;
    if (to->stride == 1) fill_doubles(at, to->n, value);
    for (size_t t = 0; t < to->n && to->stride != 1; ++t) at[(int64_t)t * to->stride] = value;
  }
}

CLONES static uint64_t beyond(const double *value, size_t n, double most) {
  uint64_t count = 0;
  for (size_t t = 0; t < n; ++t) count += ((value[t] <= most) & (value[t] >= -DBL_MAX)) ? 0 : 1;
  return count;
}

int row_is_within(const double *value, size_t n, double most) {
  return beyond(value, n, most < DBL_MAX ? most : DBL_MAX) == 0;
}

CLONES static uint64_t outside(const double *value, size_t n, double most) {
  uint64_t count = 0;
  for (size_t t = 0; t < n; ++t) count += ((value[t] <= most) & (value[t] >= -most)) ? 0 : 1;
  return count;
}

int row_fits(const double *value, size_t n, gepolab_type type) {
  return outside(value, n, type == GEPOLAB_FLOAT32 ? (double)FLT_MAX : DBL_MAX) == 0;
}

/* Bytes are counted in bytes, of which 255 rounds fill none. */
enum { LANES = 32, ROUNDS = 255 };

CLONES static size_t marked(const uint8_t *mask, size_t n) {
  size_t count = 0;
  while (n >= LANES) {
    uint8_t lane[LANES] = {0};
    const size_t rounds = n / LANES < ROUNDS ? n / LANES : ROUNDS;
    for (size_t r = 0; r < rounds; ++r, mask += LANES)
      for (size_t l = 0; l < LANES; ++l) lane[l] = (uint8_t)(lane[l] + (mask[l] != 0));
    for (size_t l = 0; l < LANES; ++l) count += lane[l];
    n -= rounds * LANES;
  }
  for (size_t t = 0; t < n; ++t) count += mask[t] != 0;
  return count;
}

size_t row_marked(const uint8_t *mask, int64_t stride, size_t n, size_t *first, size_t *end) {
  *first = 0;
  *end = n;
  for (uint64_t eight = 0; stride == 1 && *end >= sizeof eight; *end -= sizeof eight) {
    memcpy(&eight, mask + *end - sizeof eight, sizeof eight);
    if (eight != 0) break;
  }
  while (*end > 0 && mask[(int64_t)(*end - 1) * stride] == 0) --*end;
  while (*first < *end && mask[(int64_t)*first * stride] == 0) ++*first;
  if (stride == 1) return marked(mask + *first, *end - *first);
  size_t count = 0;
  for (size_t t = *first; t < *end; ++t) count += mask[(int64_t)t * stride] != 0;
  return count;
}
