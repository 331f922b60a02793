/* Groups of responses as multisets, in blocks laid out for vectorisation across groups.
 *
 * An estimator depends on a group of G independent samples from K outcomes only through how often
 * each outcome occurs. The K^G tuples therefore reduce to C(K+G-1, G) multisets with multinomial
 * probabilities. A block holds up to LAB_BLOCK groups, one per column: either the next multisets
 * with their probabilities, or random samples with equal weights. Code that processes a block does
 * not depend on which. run_exact() in estimator_moments.c walks the blocks. */
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
  size_t n;       /* number of columns in use */
  double *count;  /* [n_outcomes * LAB_BLOCK] row y: how often outcome y occurs in each group */
  double *weight; /* [LAB_BLOCK] probability of each group; unused columns 0 */
  arena memory;
} lab_block;

/* Returns C(K+G-1, G), or SIZE_MAX on overflow. */
size_t lab_multiset_count(size_t n_outcomes, size_t group_size);

gl_status lab_block_init(lab_block *b, size_t n_outcomes, size_t group_size, gl_error *err);
void lab_block_fini(lab_block *b);

/* Enumerates all multisets of outcomes with probabilities q[K], in lexicographic order. */
typedef struct lab_multisets {
  size_t n_outcomes, group_size;
  size_t *count;         /* [K] the next multiset */
  double *log_q;         /* [K] logarithms of q */
  double *log_factorial; /* [G + 1] log i! */
  int done;
  arena memory;
} lab_multisets;

/* q must sum to 1. Multisets with an outcome of probability 0 get weight 0. */
gl_status lab_multisets_init(lab_multisets *m, const double *q, size_t n_outcomes,
                             size_t group_size, gl_error *err);
void lab_multisets_fini(lab_multisets *m);
/* Fills the block with the next multisets. Returns 0 when none are left. */
int lab_multisets_next(lab_multisets *m, lab_block *b);

/* Constant-time sampling from a fixed distribution: Vose's alias method (IEEE Trans. Software Eng.
 * 17, 1991). One 32-bit word per sample, so probabilities are rounded by at most K * 2^-32. */
typedef struct lab_alias {
  size_t n;
  uint32_t *accept; /* [n] keep the column if the fraction is below this */
  uint32_t *other;  /* [n] the column returned otherwise */
  arena memory;
} lab_alias;

gl_status lab_alias_init(lab_alias *a, const double *q, size_t n, gl_error *err);
void lab_alias_fini(lab_alias *a);
static inline size_t lab_alias_draw(const lab_alias *a, uint32_t word) {
  uint64_t product = (uint64_t)word * a->n;
  size_t column = (size_t)(product >> 32);
  /* Branchless, because the outcome is unpredictable. */
  const uint32_t other = a->other[column];
  const uint32_t keep = 0u - (uint32_t)((uint32_t)product < a->accept[column]);
  return other ^ ((other ^ (uint32_t)column) & keep);
}

/* Samples groups first .. first + n - 1 of a stream into the block. Group g uses the words of the
 * ceil(G / 4) blocks from g * ceil(G / 4) on, so a sample's address is (stream, group, response).
 * Weights are 1 / total. */
void lab_block_draw(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                    size_t n, double total);

/* lab_block_draw() with a chosen implementation, for tests and benchmarks; all give the same
 * counts. Returns 0 and leaves the block unchanged if this machine or these sizes do not support
 * it. */
typedef enum lab_draw_form { LAB_DRAW_PLAIN, LAB_DRAW_AVX2 } lab_draw_form;
int lab_block_draw_as(lab_block *b, const lab_alias *alias, rng_stream stream, uint64_t first,
                      size_t n, double total, lab_draw_form form);

#endif
