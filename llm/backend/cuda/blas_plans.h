/* Host side of matrix products by a library: prepared plans, and measured choices of algorithms.
 * Nothing here is specific to CUDA. Prefixes: gemm_plans_, product_choices_. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_BLAS_PLANS_H
#define GEPOLAB_LLM_BACKEND_CUDA_BLAS_PLANS_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* --- plans --- */

/* A bounded table of prepared matrix products (GEMM plans), found by a key that describes the
 * shape.
 *
 * The table is divided into sets; a key's hash selects its set. A set has room for GEMM_PLANS_WAYS
 * plans; a further one replaces the oldest. If a plan follows from its key, evicting and recreating
 * it makes no difference. There is no synchronisation: a table belongs to one backend. */

enum { GEMM_PLANS_WAYS = 8 };

typedef struct gemm_plans gemm_plans;

/* Makes a table for sets * GEMM_PLANS_WAYS plans (sets >= 1) of plan_bytes each, with keys of
 * key_bytes. Keys are compared byte by byte, so callers zero the padding. drop(owner, plan) frees
 * the contents of an evicted plan. Errors: GL_ENOMEM. */
gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err);
/* Drops every plan, then frees the table. NULL is allowed. */
void gemm_plans_free(gemm_plans *t);

/* The plan of a key, or NULL. The pointer is valid until the next gemm_plans_add. */
void *gemm_plans_find(const gemm_plans *t, const void *key);
/* Copies plan and key into the table and returns the copy, which the table owns. The key must not
 * be in the table yet. */
void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan);
/* Number of plans in the table. Exposed for its test. */
size_t gemm_plans_size(const gemm_plans *t);

/* --- choices --- */

/* The fastest of a library's algorithms for a shape, measured once and stored in a file.
 *
 * The algorithm affects the last bits of a product. So a choice applies to every user of the file:
 * it is written before its first use and never changed. If two processes measure the same shape,
 * both use the choice written first. A run that is resumed with its file uses the same algorithms.
 * Runs with different files, or none, may differ in last bits.
 *
 * The file is text: a line that describes device and library, then a line for each choice: the
 * numbers of its key, the rank of the algorithm in the library's order, and the time of a product
 * in nanoseconds. A process holds a lock on the file while it appends. An incomplete last line,
 * left by a killed process, is ignored and replaced. */

enum { PRODUCT_KEY = 12 };

typedef struct product_choice {
  uint64_t key[PRODUCT_KEY]; /* everything that may determine the best algorithm */
  uint64_t rank;        /* the algorithm's index in the order in which the library offers them */
  uint64_t nanoseconds; /* time of one product; 0: not measured */
} product_choice;

typedef struct product_choices product_choices;

/* Opens the file's choices; none if it does not exist yet. made_for: one line that describes device
 * and library. Errors: GL_EINPUT with file, line and advice (the file was made for another device
 * or library, or is not a file of choices), GL_EIO, GL_ENOMEM. */
gl_status product_choices_open(product_choices **out, const char *path, const char *made_for,
                               gl_error *err);
void product_choices_free(product_choices *c); /* NULL is allowed */

/* The choice for a key, NULL if there is none. Valid until the next product_choices_add. */
const product_choice *product_choices_find(const product_choices *c,
                                           const uint64_t key[PRODUCT_KEY]);
/* Stores a choice, also in the file. *rank becomes the rank to use: that of another process if it
 * stored a choice for this key first. Errors as in product_choices_open; nothing is added then. */
gl_status product_choices_add(product_choices *c, const product_choice *choice, uint64_t *rank,
                              gl_error *err);

#endif
