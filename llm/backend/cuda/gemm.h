/* Host side of matrix products by a library: plans that are ready to run, and choices of algorithms
 * that were measured. Nothing here is specific to CUDA. Prefixes: gemm_plans_, product_choices_. */
#ifndef GEPOLAB_LLM_BACKEND_CUDA_GEMM_H
#define GEPOLAB_LLM_BACKEND_CUDA_GEMM_H

#include "core/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* --- plans --- */

/* A bounded table of prepared matrix products (GEMM plans), found by a key that says the shape.
 *
 *
 * The table is divided into sets; a key's hash says which set is its own. A set has room for
 * GEMM_PLANS_WAYS plans, and one more replaces the set's oldest. A plan that is found is the one
 * that was added with this key; so where a plan follows from its key alone, it does not matter
 * which were thrown out and made again. Nothing synchronises: a table belongs to one backend. */

enum { GEMM_PLANS_WAYS = 8 };

typedef struct gemm_plans gemm_plans;

/* A table for sets * GEMM_PLANS_WAYS plans (sets >= 1) of plan_bytes each, with keys of key_bytes,
 * which are compared byte by byte: callers zero the padding. drop(owner, plan) releases what a plan
 * holds when the plan is thrown out. GL_ENOMEM. */
gl_status gemm_plans_new(gemm_plans **out, size_t sets, size_t key_bytes, size_t plan_bytes,
                         void (*drop)(void *owner, void *plan), void *owner, gl_error *err);
/* Drops every plan, then the table. NULL is fine. */
void gemm_plans_free(gemm_plans *t);

/* The plan of a key, or NULL. The pointer is valid until the next gemm_plans_add. */
void *gemm_plans_find(const gemm_plans *t, const void *key);
/* Copies plan and key into the table, which owns the copy and returns it. The key must not be in
 * the table yet. */
void *gemm_plans_add(gemm_plans *t, const void *key, const void *plan);
/* Plans in the table. */
size_t gemm_plans_size(const gemm_plans *t);

/* --- choices --- */

/* Which of a library's algorithms multiplies matrices of a shape fastest, measured once and kept in
 * a file.
 *
 * The algorithm decides about the last bits of a product. So a choice that was made once holds for
 * everybody who uses the file: it is written before its first use, never changed, and where two
 * processes measure the same shape, the choice of whoever wrote first holds for both. A run that is
 * resumed with its file uses the same algorithms. Runs with different files, or none, may
 * differ in last bits.
 *
 * The file is text: a line that says what it was measured on, then a line for each choice: the
 * numbers of its key, the rank of the algorithm in the library's own order, and the nanoseconds
 * that a product took. Whoever appends a line holds a lock on the file meanwhile. A last line
 * without its end, which a process left that was killed, is ignored and replaced. */

enum { PRODUCT_KEY = 12 };

typedef struct product_choice {
  uint64_t key[PRODUCT_KEY]; /* everything that may decide which algorithm is best */
  uint64_t rank;             /* of the algorithm, in the order in which the library offers them */
  uint64_t nanoseconds;      /* of a product; 0: not measured */
} product_choice;

typedef struct product_choices product_choices;

/* The choices of the file, none if it is not there yet. made_for is one line that says what they
 * were measured on, device and library. GL_EINPUT, naming file, line and remedy, if the file was
 * made for something else or is no such file; GL_EIO if it cannot be read; GL_ENOMEM. */
gl_status product_choices_open(product_choices **out, const char *path, const char *made_for,
                               gl_error *err);
void product_choices_free(product_choices *c); /* NULL is fine */

/* The choice of a key, NULL if there is none. Valid until the next product_choices_add. */
const product_choice *product_choices_find(const product_choices *c,
                                           const uint64_t key[PRODUCT_KEY]);
/* Keeps a choice, in the file too. *rank is the one that holds: that of another process, where it
 * was faster to write. Errors as product_choices_open; then nothing was added. */
gl_status product_choices_add(product_choices *c, const product_choice *choice, uint64_t *rank,
                              gl_error *err);

#endif
