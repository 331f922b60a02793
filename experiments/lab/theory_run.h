/* What `gepolab lab theory` computes, as one JSON document that is printed either way. */
#ifndef GEPOLAB_EXPERIMENTS_LAB_THEORY_RUN_H
#define GEPOLAB_EXPERIMENTS_LAB_THEORY_RUN_H

#include "core/base/json.h"
#include "core/config/config.h"

#include <stdint.h>
#include <stdio.h>

typedef struct theory_spec {
  uint64_t seed;
  double *outcomes; /* n of Theorem 1's table, 2 or more */
  size_t n_outcomes;
  double *vocabularies, *lengths; /* products V^T */
  size_t n_vocabularies, n_lengths;
  size_t pairs;           /* random pairs of each family */
  size_t starts;          /* of the search for violations */
  size_t search_outcomes; /* outcomes it searches over: 2 .. this */
} theory_spec;

gl_status theory_read(theory_spec *s, const cfg_doc *doc, gl_error *err);
void theory_fini(theory_spec *s);
/* The document: theorem1 {constants, crossings, families, products}, theorem2 (a list of
 * searches), theorem3 (variances per family). */
gl_status theory_run(cJSON **out, const theory_spec *s, gl_error *err);
void theory_print(const cJSON *document, FILE *to);

#endif
