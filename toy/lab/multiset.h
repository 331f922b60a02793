/* Groups of responses as multisets, in blocks laid out so that a compiler vectorises across them.
 *
 * A group of G independent draws from K outcomes matters to an estimator only through how often
 * each outcome occurs, so the K^G tuples fall into C(K+G-1, G) multisets with multinomial
 * probabilities. A block holds up to LAB_BLOCK groups, one column each, either the next multisets
 * with their probabilities or random draws with equal weights: what runs over a block does not know
 * which.
 */
#ifndef GEPOLAB_TOY_LAB_MULTISET_H
#define GEPOLAB_TOY_LAB_MULTISET_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/random/rng.h"

#include <stddef.h>
#include <stdint.h>

enum { LAB_BLOCK = 128 };

typedef struct lab_block {
  size_t n_outcomes, group_size;
  size_t n;       /* columns in use */
  double *count;  /* [n_outcomes * LAB_BLOCK] row y: how often y occurs in each group */
  double *weight; /* [LAB_BLOCK] probability of each group; unused columns 0 */
  arena memory;
} lab_block;

/* C(K+G-1, G), or SIZE_MAX where that does not fit. */
size_t lab_multiset_count(size_t n_outcomes, size_t group_size);

gl_status lab_block_init(lab_block *b, size_t n_outcomes, size_t group_size, gl_error *err);
void lab_block_fini(lab_block *b);

/* Walks all multisets of outcomes with probabilities q[K], in lexicographic order. */
typedef struct lab_multisets {
  size_t n_outcomes, group_size;
  size_t *count;         /* [K] the next multiset */
  double *log_q;         /* [K] */
  double *log_factorial; /* [G + 1] */
  int done;
  arena memory;
} lab_multisets;

/* q sums to one; an outcome of probability 0 is left out of the walk by its weight 0. */
gl_status lab_multisets_init(lab_multisets *m, const double *q, size_t n_outcomes,
                             size_t group_size, gl_error *err);
void lab_multisets_fini(lab_multisets *m);
/* Fills the block with the next multisets; 0 when none are left. */
int lab_multisets_next(lab_multisets *m, lab_block *b);

/* Draws from a fixed distribution in constant time: Vose's alias table (IEEE Trans. Software Eng.
 * 17, 1991). One 32-bit word a draw, so probabilities are rounded by at most K * 2^-32. */
typedef struct lab_alias {
  size_t n;
  uint32_t *accept; /* [n] keep the column when the fraction is below this */
  uint32_t *other;  /* [n] */
  arena memory;
} lab_alias;

gl_status lab_alias_init(lab_alias *a, const double *q, size_t n, gl_error *err);
void lab_alias_fini(lab_alias *a);
static inline size_t lab_alias_draw(const lab_alias *a, uint32_t word) {
  uint64_t product = (uint64_t)word * a->n;
  size_t column = (size_t)(product >> 32);
  /* Without a branch: which way it goes is as good as random. */
  const uint32_t other = a->other[column];
  const uint32_t keep = 0u - (uint32_t)((uint32_t)product < a->accept[column]);
  return other ^ ((other ^ (uint32_t)column) & keep);
}

/* Fills the block with groups number first .. first + n - 1 of a stream: group g takes the words of
 * blocks g * ceil(G / 4) on, so that a draw's address is (stream, group, response). Weights are
 * 1 / total. */
void lab_block_draw(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                    size_t n, double total);

/* The same in a named form, for tests and measurements: both give the same counts. Returns 0, with
 * the block as it was, where this machine or these sizes have no such form. */
typedef enum lab_draw_form { LAB_DRAW_PLAIN, LAB_DRAW_AVX2 } lab_draw_form;
int lab_block_draw_as(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                      size_t n, double total, lab_draw_form form);

#endif
