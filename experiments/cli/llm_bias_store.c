/* Gradients at a run's checkpoints beside measurements of the exact laboratory. */
#include "experiments/cli/llm_bias_store.h"

#include "core/store/bias.h"
#include "experiments/base/provenance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact divergences of a real policy are not known; what does not apply is NaN. */
static bias_record record_of(const llm_bias_table *t, const llm_bias_result *r, size_t algorithm,
                             uint64_t staleness, size_t group_size, double drawn) {
  bias_record to = {.algorithm = t->algorithms[algorithm].name,
                    .method = r->applicable ? "monte_carlo" : "not_applicable",
                    .group_size = (double)group_size,
                    .kl_exact = NAN,
                    .kl_exact_qp = NAN,
                    .staleness = (double)staleness,
                    .groups = r->applicable ? drawn : 0,
                    .iw_mean = r->applicable ? r->iw_mean : NAN,
                    .iw_variance = r->applicable ? r->iw_variance : NAN,
                    .aw_variance = r->applicable ? r->aw_variance : NAN,
                    .ess = r->applicable ? r->ess : NAN};
  double *const number[] = {&to.bias, &to.cosine,     &to.scaled_bias, &to.variance,
                            &to.mse,  &to.scaled_mse, &to.snr};
  static const gradient_number of[] = {GRADIENT_BIAS,     GRADIENT_COSINE, GRADIENT_SCALED_BIAS,
                                       GRADIENT_VARIANCE, GRADIENT_MSE,    GRADIENT_SCALED_MSE,
                                       GRADIENT_SNR};
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i)
    *number[i] = r->applicable ? r->number[of[i]].value : NAN;
  return to;
}

/* Those of checkpoint u. */
static gl_status put_checkpoint(store *s, const llm_bias_table *t, size_t u, bias_record *records,
                                size_t group_size, double drawn, const bias_making *making,
                                gl_error *err) {
  const size_t each = t->n_staleness * t->n_algorithms, size = strlen(t->name) + 48;
  char *study = malloc(size);
  if (study == NULL) return gl_fail_memory(err, "the name of a study");
  snprintf(study, size, "%s after %llu updates", t->name, (unsigned long long)t->at[u]);
  for (size_t i = 0; i < each; ++i)
    records[i] = record_of(t, &t->results[u * each + i], i % t->n_algorithms,
                           t->staleness[i / t->n_algorithms], group_size, drawn);
  gl_status status = store_put_bias(s, study, records, each, making, err);
  free(study);
  return status;
}

gl_status llm_bias_store(const llm_bias_table *t, const char *path, size_t group_size, double drawn,
                         double wall_s, gl_error *err) {
  bias_record *records = calloc(t->n_staleness * t->n_algorithms, sizeof *records);
  provenance how;
  char finished[PROVENANCE_DATE_SIZE];
  store *s = NULL;
  if (records == NULL) return gl_fail_memory(err, "the records of a study");
  gl_status status = provenance_init(&how, err);
  const bias_making making = {&how.record, provenance_now(finished), wall_s / (double)t->n_at};
  if (status == GL_OK) status = store_open(&s, path, STORE_WRITE, err);
  for (size_t u = 0; u < t->n_at && status == GL_OK; ++u)
    status = put_checkpoint(s, t, u, records, group_size, drawn, &making, err);
  store_close(s);
  provenance_fini(&how);
  free(records);
  return status;
}
