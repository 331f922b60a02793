/* A schedule in numbers, as JSON, and its distance to measured staleness. */
#include "sim/summary.h"

#include "core/base/json.h"
#include "core/base/ks.h"
#include "sim/cluster_spec.h"

#include <assert.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance,
                      gl_error *err) {
  const measured_staleness *measured = &spec->measured;
  *distance = NAN;
  if (measured->n == 0 || s->n_updates == 0) return GL_OK;
  const size_t n = measured->updates < s->n_updates ? (size_t)measured->updates : s->n_updates;
  double *ours = calloc(n, sizeof *ours);
  if (ours == NULL) return gl_fail_memory(err, "the staleness of a schedule");
  for (size_t i = 0; i < n; ++i)
    ours[i] = (double)schedule_staleness(s, &s->updates[i], &s->batches[s->updates[i].first_batch]);
  gsl_sort(ours, 1, n);
  *distance = ks_distance((ks_sample){.value = ours, .n = n},
                          (ks_sample){.count = measured->count, .n = measured->n});
  free(ours);
  return GL_OK;
}

enum { STALENESS_NUMBERS = 4, NETWORK_NUMBERS = 17 };

size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]) {
  const clock_record *c = &s->clock;
  const network_report *n = &s->network;
  const schedule_number all[] = {{"updates", "", (double)s->n_updates},
                                 {"simulated_s", "s", c->simulated_s},
                                 {"learner_utilisation", "", c->learner_utilisation},
                                 {"sampler_utilisation", "", c->sampler_utilisation},
                                 {"samples_per_s", "1/s", c->samples_per_s},
                                 {"batches_generated", "", c->batches_generated},
                                 {"batches_trained", "", c->batches_trained},
                                 {"batches_dropped", "", c->batches_dropped},
                                 {"batches_lost", "", c->batches_lost},
                                 {"bytes_up", "B", c->bytes_up},
                                 {"bytes_down", "B", c->bytes_down},
                                 {"retransmissions", "", c->retransmissions},
                                 {"staleness_mean", "", c->staleness_mean},
                                 {"staleness_p50", "", c->staleness_p50},
                                 {"staleness_p95", "", c->staleness_p95},
                                 {"staleness_max", "", c->staleness_max},
                                 {"egress_utilisation", "", n->egress_utilisation},
                                 {"ingress_utilisation", "", n->ingress_utilisation},
                                 {"weights_full", "", n->fulls},
                                 {"weights_delta", "", n->deltas},
                                 {"weights_arrived", "", n->weights.n},
                                 {"weights_mean", "s", n->weights.mean},
                                 {"weights_p50", "s", n->weights.p50},
                                 {"weights_p95", "s", n->weights.p95},
                                 {"weights_max", "s", n->weights.max},
                                 {"batches_arrived", "", n->batches.n},
                                 {"batches_mean", "s", n->batches.mean},
                                 {"batches_p50", "s", n->batches.p50},
                                 {"batches_p95", "s", n->batches.p95},
                                 {"batches_max", "s", n->batches.max},
                                 {"sites", "", n->sites},
                                 {"outage_s", "s", n->outage_s},
                                 {"interrupted", "", n->interrupted}};
  static_assert(sizeof all / sizeof *all ==
                    SCHEDULE_COMMON_NUMBERS + STALENESS_NUMBERS + NETWORK_NUMBERS,
                "as many numbers as are counted");
  const size_t used =
      SCHEDULE_COMMON_NUMBERS + STALENESS_NUMBERS + (n->is_on ? NETWORK_NUMBERS : 0);
  memcpy(out, all, used * sizeof *out);
  return used;
}

static int summary_add_numbers(cJSON *to, const schedule_number *all, size_t n) {
  int ok = 1;
  for (size_t i = 0; i < n && ok; ++i) ok = json_add_number(to, all[i].name, all[i].value) != NULL;
  return ok;
}

static int add_staleness(cJSON *root, const schedule *s) {
  const clock_record *c = &s->clock;
  cJSON *to = cJSON_AddObjectToObject(root, "staleness");
  int ok = to != NULL && json_add_number(to, "mean", c->staleness_mean) != NULL &&
           json_add_number(to, "max", c->staleness_max) != NULL &&
           json_add_number(to, "p50", c->staleness_p50) != NULL &&
           json_add_number(to, "p95", c->staleness_p95) != NULL;
  cJSON *histogram = ok ? cJSON_AddArrayToObject(to, "histogram") : NULL;
  ok = histogram != NULL;
  for (size_t i = 0; i < s->n_staleness && ok; ++i)
    ok = json_add_number(histogram, NULL, (double)s->staleness[i]) != NULL;
  return ok;
}

gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out,
                           gl_error *err) {
  double ks = NAN;
  *out = NULL;
  gl_status status = schedule_ks(s, spec, &ks, err);
  if (status != GL_OK) return status;
  schedule_number all[SCHEDULE_MOST_NUMBERS];
  schedule_numbers(s, all);
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_string(root, "preset", spec->preset) != NULL &&
           add_staleness(root, s);
  ok = ok && summary_add_numbers(root, all, SCHEDULE_COMMON_NUMBERS);
  if (ok && s->streams)
    ok = json_add_string(root, "unit", cluster_unit_names(spec)) != NULL &&
         json_add_number(root, "slot_utilisation", s->slot_utilisation) != NULL &&
         json_add_number(root, "batches_aborted", (double)s->aborted) != NULL;
  if (ok && s->interrupts)
    ok = json_add_number(root, "interruptions", (double)s->n_interrupts) != NULL &&
         json_add_number(root, "interrupted_s", s->interrupted_s) != NULL &&
         json_add_number(root, "recomputed_tokens", s->recomputed_tokens) != NULL;
  if (ok && s->network.is_on) {
    cJSON *to = cJSON_AddObjectToObject(root, "network");
    ok = to != NULL && summary_add_numbers(to, all + SCHEDULE_COMMON_NUMBERS + STALENESS_NUMBERS,
                                           NETWORK_NUMBERS);
  }
  const measured_staleness *m = &spec->measured;
  if (ok && m->n > 0) ok = json_add_number(root, "ks_distance", ks) != NULL;
  if (ok && !isnan(m->seconds))
    ok = json_add_number(root, "measured_s", m->seconds) != NULL &&
         json_add_number(root, "compared_s", schedule_seconds(s, m->seconds_of)) != NULL;
  if (ok && (m->n > 0 || !isnan(m->seconds)))
    ok = json_add_string(root, "compared_with", m->name) != NULL &&
         json_add_string(root, "compared_source", m->source) != NULL;
  if (!ok) {
    cJSON_Delete(root);
    return gl_fail_memory(err, "JSON");
  }
  *out = root;
  return GL_OK;
}

double schedule_seconds(const schedule *s, double updates) {
  const size_t from = s->n_updates / 2, n = s->n_updates - from;
  if (s->n_updates == 0) return NAN;
  const double began = from > 0 ? s->updates[from - 1].end_s : 0;
  return (s->updates[s->n_updates - 1].end_s - began) / (double)n * updates;
}
