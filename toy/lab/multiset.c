/* Multisets of responses: counted, and walked through with their probabilities; alias tables. */
#include "toy/lab/multiset.h"

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
