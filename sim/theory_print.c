/* Theory beside a schedule: what the schedule measured in the long run, and both in two forms. */
#include "sim/theory_print.h"

#include "core/base/json.h"
#include "sim/cluster_spec.h"

#include <inttypes.h>
#include <math.h>

/* --- measuring --- */

/* One block's value of every quantity. */
static int measure_block(double value[THEORY_QUANTITIES], const schedule *s,
                         const cluster_spec *spec, size_t first, size_t n) {
  const schedule_update *u = &s->updates[first];
  const double seconds = u[n - 1].end_s - u[-1].end_s;
  double stale = 0, trained = 0, generated = 0, batches = 0;
  for (size_t i = 0; i < n; ++i) {
    trained += u[i].end_s - u[i].start_s;
    for (size_t k = 0; k < u[i].n_batches; ++k, ++batches) {
      const schedule_batch *b = &s->batches[u[i].first_batch + k];
      stale += (double)schedule_staleness(s, &u[i], b);
      generated += b->generated_s - b->start_s;
    }
  }
  if (!(seconds > 0)) return 0;
  value[THEORY_STALENESS] = stale / batches;
  value[THEORY_SAMPLES_PER_S] = batches * (double)spec->samples_per_batch / seconds;
  value[THEORY_LEARNER_UTILISATION] = trained / seconds;
  value[THEORY_SAMPLER_UTILISATION] = generated / (seconds * (double)spec->n_samplers);
  return 1;
}

gl_status sim_theory_measure(theory_measured *out, const schedule *s, const cluster_spec *spec,
                             gl_error *err) {
  double sum[THEORY_QUANTITIES] = {0}, squares[THEORY_QUANTITIES] = {0};
  *out = (theory_measured){.first_update = 0};
  if (s->n_updates < THEORY_LEAST_UPDATES)
    return gl_fail(err, GL_EINPUT,
                   "theory is about the long run, and %zu updates are too few to measure it; give "
                   "the recipe at least %d steps",
                   s->n_updates, THEORY_LEAST_UPDATES);
  const size_t n = (s->n_updates - s->n_updates / 5) / THEORY_BLOCKS;
  out->n_updates = n * THEORY_BLOCKS;
  out->first_update = s->n_updates - out->n_updates;
  for (size_t b = 0; b < THEORY_BLOCKS; ++b) {
    double value[THEORY_QUANTITIES] = {0};
    if (!measure_block(value, s, spec, out->first_update + b * n, n))
      return gl_fail(err, GL_EINPUT, "the clock stands still: its updates take no time");
    for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
      const double step = value[q] - sum[q];
      sum[q] += step / (double)(b + 1); /* Welford: the mean so far */
      squares[q] += step * (value[q] - sum[q]);
    }
  }
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    out->mean[q] = sum[q];
    out->error[q] = sqrt(squares[q] / (THEORY_BLOCKS - 1) / THEORY_BLOCKS);
  }
  return GL_OK;
}

/* --- printing --- */

const char *sim_theory_quantity_name(theory_quantity q) {
  switch (q) {
  case THEORY_STALENESS:
    return "staleness_mean";
  case THEORY_SAMPLES_PER_S:
    return "samples_per_s";
  case THEORY_LEARNER_UTILISATION:
    return "learner_utilisation";
  case THEORY_SAMPLER_UTILISATION:
    return "sampler_utilisation";
  case THEORY_QUANTITIES:
    break;
  }
  return "";
}

/* The simulated value less theory's; beyond bounds, less the nearer one. */
static double difference(const theory *t, const theory_measured *m, size_t q) {
  const theory_value v = t->value[q];
  if (m->mean[q] < v.low) return m->mean[q] - v.low;
  return m->mean[q] > v.high ? m->mean[q] - v.high : 0;
}

/* The share of the counted batches that have this staleness. */
static double simulated_share(const schedule *s, const theory_measured *m, size_t staleness) {
  double with = 0, all = 0;
  for (size_t i = m->first_update; i < s->n_updates; ++i) {
    const schedule_update *u = &s->updates[i];
    for (size_t k = 0; k < u->n_batches; ++k, ++all)
      with += schedule_staleness(s, u, &s->batches[u->first_batch + k]) == (int64_t)staleness;
  }
  return with / all;
}

/* Shares below this are in neither form. */
static const double shown_share = 5e-4;

static int add_shares(cJSON *to, const theory *t, const theory_measured *m, const schedule *s) {
  if (t->staleness == NULL) return 1;
  cJSON *list = cJSON_AddArrayToObject(to, "staleness");
  int ok = list != NULL;
  for (size_t i = 0; i < t->n_staleness && ok; ++i) {
    if (t->staleness[i] < shown_share) continue;
    cJSON *one = cJSON_CreateObject();
    ok = one != NULL && cJSON_AddItemToArray(list, one) &&
         json_add_number(one, "staleness", (double)i) != NULL &&
         json_add_number(one, "theory", t->staleness[i]) != NULL &&
         json_add_number(one, "simulated", simulated_share(s, m, i)) != NULL;
  }
  return ok;
}

int sim_theory_to_json(cJSON *to, const theory *t, const theory_measured *m, const schedule *s) {
  int ok = json_add_string(to, "form", t->form) != NULL &&
           json_add_string(to, "range", t->range) != NULL &&
           json_add_string(to, "source", t->source) != NULL &&
           json_add_number(to, "updates_left_out", (double)m->first_update) != NULL &&
           json_add_number(to, "updates", (double)m->n_updates) != NULL;
  cJSON *quantities = ok ? cJSON_AddObjectToObject(to, "quantities") : NULL;
  ok = quantities != NULL;
  for (size_t q = 0; q < THEORY_QUANTITIES && ok; ++q) {
    cJSON *one = cJSON_AddObjectToObject(quantities, sim_theory_quantity_name((theory_quantity)q));
    ok = one != NULL && json_add_number(one, "theory_low", t->value[q].low) != NULL &&
         json_add_number(one, "theory_high", t->value[q].high) != NULL &&
         json_add_number(one, "simulated", m->mean[q]) != NULL &&
         json_add_number(one, "standard_error", m->error[q]) != NULL &&
         json_add_number(one, "difference", difference(t, m, q)) != NULL;
  }
  return ok && add_shares(to, t, m, s);
}

void sim_theory_print_table(const theory *t, const theory_measured *m, const schedule *s,
                            FILE *to) {
  fprintf(to, "\ntheory: %s\n  holds for %s\n  source: %s\n", t->form, t->range, t->source);
  fprintf(to, "  simulated: the last %zu updates; +- is the standard error over %d blocks\n\n",
          m->n_updates, THEORY_BLOCKS);
  fprintf(to, "%-20s  %-24s  %-24s  %s\n", "", "theory", "simulated", "difference");
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    char said[64], seen[64];
    if (t->value[q].low == t->value[q].high)
      snprintf(said, sizeof said, "%.6g", t->value[q].low);
    else
      snprintf(said, sizeof said, "%.6g to %.6g", t->value[q].low, t->value[q].high);
    snprintf(seen, sizeof seen, "%.6g +- %.2g", m->mean[q], m->error[q]);
    fprintf(to, "%-20s  %-24s  %-24s  %.2g\n", sim_theory_quantity_name((theory_quantity)q), said,
            seen, difference(t, m, q));
  }
  for (size_t i = 0; t->staleness != NULL && i < t->n_staleness; ++i)
    if (t->staleness[i] >= shown_share)
      fprintf(to, "share of staleness %-3zu %-24.4f  %-24.4f  %.2g\n", i, t->staleness[i],
              simulated_share(s, m, i), simulated_share(s, m, i) - t->staleness[i]);
}
