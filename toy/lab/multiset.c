/* Multisets of responses: counted, walked through with their probabilities, or drawn at random. */
#include "toy/lab/multiset.h"

#include "core/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t lab_multiset_count(size_t n_outcomes, size_t group_size) {
  if (n_outcomes == 0) return group_size == 0;
  size_t k = n_outcomes - 1 < group_size ? n_outcomes - 1 : group_size;
  size_t top = n_outcomes + group_size - 1 - k;
  size_t count = 1;
  for (size_t i = 1; i <= k; ++i) {
    if (__builtin_mul_overflow(count, top + i, &count)) return SIZE_MAX;
    count /= i; /* exact: a product of i consecutive numbers */
  }
  return count;
}

gl_status lab_block_init(lab_block *b, size_t n_outcomes, size_t group_size, gl_error *err) {
  *b = (lab_block){.n_outcomes = n_outcomes, .group_size = group_size};
  b->count = calloc(n_outcomes, LAB_BLOCK * sizeof *b->count);
  b->weight = calloc(LAB_BLOCK, sizeof *b->weight);
  if (b->count == NULL || b->weight == NULL) {
    lab_block_fini(b);
    return gl_fail_memory(err, "a block of groups");
  }
  return GL_OK;
}

void lab_block_fini(lab_block *b) {
  free(b->count);
  free(b->weight);
  *b = (lab_block){0};
}

gl_status lab_multisets_init(lab_multisets *m, const double *q, size_t n_outcomes,
                             size_t group_size, gl_error *err) {
  *m = (lab_multisets){.n_outcomes = n_outcomes, .group_size = group_size};
  m->count = calloc(n_outcomes, sizeof *m->count);
  m->log_q = calloc(n_outcomes, sizeof *m->log_q);
  m->log_factorial = calloc(group_size + 1, sizeof *m->log_factorial);
  if (m->count == NULL || m->log_q == NULL || m->log_factorial == NULL) {
    lab_multisets_fini(m);
    return gl_fail_memory(err, "the multisets of a group");
  }
  for (size_t y = 0; y < n_outcomes; ++y) m->log_q[y] = log(q[y]);
  for (size_t g = 2; g <= group_size; ++g)
    m->log_factorial[g] = m->log_factorial[g - 1] + log((double)g);
  m->count[0] = group_size;
  return GL_OK;
}

void lab_multisets_fini(lab_multisets *m) {
  free(m->count);
  free(m->log_q);
  free(m->log_factorial);
  *m = (lab_multisets){0};
}

static double probability(const lab_multisets *m) {
  double log_probability = m->log_factorial[m->group_size];
  for (size_t y = 0; y < m->n_outcomes; ++y)
    if (m->count[y] != 0)
      log_probability += (double)m->count[y] * m->log_q[y] - m->log_factorial[m->count[y]];
  return exp(log_probability);
}

/* The next composition of G into K parts, (G,0,..,0) first and (0,..,0,G) last: the rightmost
 * nonzero part but the last gives one to its neighbour, which also gets back what stood last. */
static void advance(lab_multisets *m) {
  size_t last = m->n_outcomes - 1, y = last;
  while (y > 0 && m->count[y - 1] == 0) --y;
  if (y == 0) {
    m->done = 1;
    return;
  }
  size_t tail = m->count[last];
  m->count[last] = 0;
  --m->count[y - 1];
  m->count[y] = tail + 1;
}

int lab_multisets_next(lab_multisets *m, lab_block *b) {
  size_t n = 0;
  for (; n < LAB_BLOCK && !m->done; ++n) {
    for (size_t y = 0; y < m->n_outcomes; ++y) b->count[y * LAB_BLOCK + n] = (double)m->count[y];
    b->weight[n] = probability(m);
    advance(m);
  }
  b->n = n;
  for (; n < LAB_BLOCK; ++n) {
    /* Unused columns repeat a real group, so that nothing computed on them is undefined. */
    for (size_t y = 0; y < m->n_outcomes; ++y)
      b->count[y * LAB_BLOCK + n] = y == 0 ? (double)m->group_size : 0;
    b->weight[n] = 0;
  }
  return b->n != 0;
}

gl_status lab_alias_init(lab_alias *a, const double *q, size_t n, gl_error *err) {
  *a = (lab_alias){.n = n};
  a->accept = calloc(n, sizeof *a->accept);
  a->other = calloc(n, sizeof *a->other);
  double *left = calloc(n, sizeof *left);
  size_t *stack = calloc(n, sizeof *stack);
  if (a->accept == NULL || a->other == NULL || left == NULL || stack == NULL) {
    free(left);
    free(stack);
    lab_alias_fini(a);
    return gl_fail_memory(err, "an alias table");
  }
  size_t small = 0, large = n; /* two stacks growing towards each other */
  for (size_t y = 0; y < n; ++y) {
    left[y] = q[y] * (double)n;
    a->accept[y] = UINT32_MAX;
    a->other[y] = (uint32_t)y;
    stack[left[y] < 1 ? small++ : --large] = y;
  }
  while (small > 0 && large < n) {
    size_t poor = stack[--small], rich = stack[large++];
    a->accept[poor] = (uint32_t)(left[poor] * 0x1p32);
    a->other[poor] = (uint32_t)rich;
    left[rich] -= 1 - left[poor];
    stack[left[rich] < 1 ? small++ : --large] = rich;
  }
  free(left);
  free(stack);
  return GL_OK;
}

void lab_alias_fini(lab_alias *a) {
  free(a->accept);
  free(a->other);
  *a = (lab_alias){0};
}

/* rng_block() for LANES addresses at once, index first + lane * step: one round of Philox4x32 for
 * all lanes, ten times over. The same words as one by one. */
enum { LANES = 16 };

INLINE void philox_lanes(rng_stream stream, uint64_t first, uint64_t step,
                         uint32_t out[4][LAB_BLOCK], size_t at) {
  uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
  uint32_t k0 = (uint32_t)stream.seed, k1 = (uint32_t)(stream.seed >> 32);
  for (size_t l = 0; l < LANES; ++l) {
    const uint64_t index = first + l * step;
    c0[l] = (uint32_t)index;
    c1[l] = (uint32_t)stream.entity;
    c2[l] = (uint32_t)(stream.entity >> 32);
    c3[l] = stream.purpose << 16 | (uint32_t)(index >> 32 & 0xffffu);
  }
  for (int round = 0; round < 10; ++round, k0 += PHILOX_W32_0, k1 += PHILOX_W32_1)
    for (size_t l = 0; l < LANES; ++l) {
      const uint64_t a = (uint64_t)PHILOX_M4x32_0 * c0[l], b = (uint64_t)PHILOX_M4x32_1 * c2[l];
      c0[l] = (uint32_t)(b >> 32) ^ c1[l] ^ k0;
      c2[l] = (uint32_t)(a >> 32) ^ c3[l] ^ k1;
      c1[l] = (uint32_t)b;
      c3[l] = (uint32_t)a;
    }
  memcpy(out[0] + at, c0, sizeof c0);
  memcpy(out[1] + at, c1, sizeof c1);
  memcpy(out[2] + at, c2, sizeof c2);
  memcpy(out[3] + at, c3, sizeof c3);
}

/* Words of one block of each of LAB_BLOCK groups. */
CLONES static void draw_words(rng_stream stream, uint64_t first, uint64_t step,
                              uint32_t out[4][LAB_BLOCK]) {
  for (size_t g = 0; g < LAB_BLOCK; g += LANES)
    philox_lanes(stream, first + g * step, step, out, g);
}

void lab_block_draw(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                    size_t n, double total) {
  const size_t blocks = (b->group_size + 3) / 4;
  uint32_t words[4][LAB_BLOCK];
  memset(b->count, 0, b->n_outcomes * LAB_BLOCK * sizeof *b->count);
  for (size_t i = 0; i < b->group_size; ++i) {
    if (i % 4 == 0) draw_words(stream, first * blocks + i / 4, blocks, words);
    for (size_t g = 0; g < n; ++g)
      b->count[lab_alias_draw(alias, words[i % 4][g]) * LAB_BLOCK + g] += 1;
  }
  for (size_t g = 0; g < n; ++g) b->weight[g] = 1 / total;
  b->n = n;
  for (size_t g = n; g < LAB_BLOCK; ++g) {
    b->count[g] = (double)b->group_size;
    b->weight[g] = 0;
  }
}
