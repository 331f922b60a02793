/* A schedule, the fates of its units and theory beside it: as text, CSV and JSON. */
#include "experiments/cli/sim_print.h"

#include "core/base/json.h"
#include "core/base/shown.h"
#include "sim/schedule.h"

#include <inttypes.h>
#include <math.h>

/* --- the schedule --- */

static void print_times(const char *name, const transfer_times *t, FILE *to) {
  if (t->n > 0)
    fprintf(to, "%-20s  mean %.4g, median %.4g, p95 %.4g, max %.4g s, from asking to arrival\n",
            name, t->mean, t->p50, t->p95, t->max);
}

static void print_network(const network_report *n, FILE *to) {
  if (!isnan(n->egress_utilisation))
    fprintf(to, "%-20s  %.6g\n", "egress_utilisation", n->egress_utilisation);
  if (!isnan(n->ingress_utilisation))
    fprintf(to, "%-20s  %.6g\n", "ingress_utilisation", n->ingress_utilisation);
  if (n->deltas > 0)
    fprintf(to, "%-20s  %.6g full, %.6g deltas\n", "weights_sent", n->fulls, n->deltas);
  if (n->outage_s > 0)
    fprintf(to, "%-20s  %.6g s of sites, %.6g transfers interrupted\n", "outages", n->outage_s,
            n->interrupted);
  print_times("weights_time", &n->weights, to);
  print_times("batches_time", &n->batches, to);
}

static void print_seconds(const schedule *s, const measured_staleness *m, FILE *to) {
  if (m == NULL) return;
  const char *between = *m->source ? " (" : "", *end = *m->source ? ")" : "";
  fprintf(to, "%-20s  %.6g s for %g updates, measured %.6g s: %s%s%s%s\n", "compared_s",
          schedule_seconds(s, m->seconds_of), m->seconds_of, m->seconds, shown(m->name).text,
          between, shown(m->source).text, end);
}

void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to) {
  schedule_number all[SCHEDULE_MOST_NUMBERS];
  const measured_staleness *measured = cluster_measured(spec);
  double ks = NAN;
  gl_error err = {0};
  schedule_numbers(s, all);
  fprintf(to, "%-20s  %s\n", "preset", shown(cluster_preset_name(spec)).text);
  for (size_t i = 0; i < SCHEDULE_COMMON_NUMBERS; ++i)
    fprintf(to, "%-20s  %.6g %s\n", all[i].name, all[i].value, all[i].unit);
  if (s->streams) {
    fprintf(to, "%-20s  %.6g\n", "slot_utilisation", s->slot_utilisation);
    fprintf(to, "%-20s  %" PRIu64 "\n", "batches_aborted", s->aborted);
    fprintf(to, "%-20s  %s: what the lines above call batches\n", "unit", cluster_unit_names(spec));
  }
  if (s->interrupts) {
    fprintf(to, "%-20s  %" PRIu64 "\n", "interruptions", s->n_interrupts);
    fprintf(to, "%-20s  %.6g s, of all samplers\n", "interrupted_s", s->interrupted_s);
    fprintf(to, "%-20s  %.6g\n", "recomputed_tokens", s->recomputed_tokens);
  }
  if (s->network.is_on) print_network(&s->network, to);
  fprintf(to, "%-20s  mean %.4g, median %g, p95 %g, max %g\n", "staleness", s->clock.staleness_mean,
          s->clock.staleness_p50, s->clock.staleness_p95, s->clock.staleness_max);
  print_seconds(s, cluster_measured_time(spec), to);
  if (measured == NULL) return;
  if (schedule_ks(s, spec, &ks, &err) != GL_OK)
    fprintf(to, "%-20s  not available: %s\n", "ks_distance", shown(err.text).text);
  else
    fprintf(to, "%-20s  %.4f to %s%s%s%s\n", "ks_distance", ks, shown(measured->name).text,
            *measured->source ? " (" : "", shown(measured->source).text,
            *measured->source ? ")" : "");
}

void schedule_print_csv(const schedule *s, FILE *to) {
  char t[7][NUMBER_TEXT_SIZE];
  fputs("step,sampler,version,staleness,segments,tokens,bytes,start_s,generated_s,arrived_s,"
        "trained_s,"
        "end_s\n",
        to);
  for (size_t i = 0; i < s->n_updates; ++i)
    for (size_t k = 0; k < s->updates[i].n_batches; ++k) {
      const schedule_update *u = &s->updates[i];
      const schedule_batch *b = &s->batches[u->first_batch + k];
      fprintf(to, "%" PRId64 ",%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRIu32 ",%s,%s,%s,%s,%s,%s,",
              u->step, b->sampler, s->segments[b->first_segment].version,
              schedule_staleness(s, u, b), b->n_segments, number_text(b->tokens, t[6]),
              number_text(b->bytes, t[0]), number_text(b->start_s, t[1]),
              number_text(b->generated_s, t[2]), number_text(b->arrived_s, t[3]),
              number_text(b->trained_s, t[4]));
      fprintf(to, "%s\n", number_text(u->end_s, t[5]));
    }
}

/* --- what became of units --- */

/* All units that were begun. */
static unit_counts drawn_of(const schedule *s) {
  unit_counts all = {0};
  for (int f = 0; f < FATES; ++f) {
    const unit_counts *of = &s->fate[f];
    all.units += of->units;
    all.tokens += of->tokens;
    all.longest += of->longest;
    for (size_t k = 0; k < LENGTH_CLASSES; ++k) all.by_length[k] += of->by_length[k];
    for (size_t k = 0; k < PROMPT_CLASSES; ++k) all.by_prompt[k] += of->by_prompt[k];
  }
  return all;
}

static double mean(double sum, uint64_t n) {
  return n > 0 && sum > 0 ? sum / (double)n : NAN;
}

static double share(uint64_t part, uint64_t of) {
  return of > 0 ? (double)part / (double)of : NAN;
}

static int has_prompts(const unit_counts *drawn) {
  uint64_t n = 0;
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) n += drawn->by_prompt[k];
  return n > 0;
}

static int add_fate(cJSON *to, const char *name, const unit_counts *of, uint64_t drawn) {
  cJSON *row = cJSON_CreateObject();
  if (row == NULL || !cJSON_AddItemToArray(to, row)) return 0;
  return json_add_string(row, "fate", name) != NULL &&
         json_add_number(row, "units", (double)of->units) != NULL &&
         json_add_number(row, "share", share(of->units, drawn)) != NULL &&
         json_add_number(row, "mean_tokens", mean(of->tokens, of->units)) != NULL &&
         json_add_number(row, "mean_longest", mean(of->longest, of->units)) != NULL;
}

static const uint64_t *classes_of(const unit_counts *of, int by_prompt) {
  return by_prompt ? of->by_prompt : of->by_length;
}

static int add_class(cJSON *to, const schedule *s, const unit_counts *drawn, size_t k,
                     int by_prompt) {
  cJSON *row = cJSON_CreateObject();
  if (row == NULL || !cJSON_AddItemToArray(to, row)) return 0;
  int ok = by_prompt ? json_add_number(row, "quarter", (double)(k + 1)) != NULL
                     : json_add_number(row, "from", ldexp(1, (int)k)) != NULL &&
                           json_add_number(row, "to", ldexp(1, (int)k + 1) - 1) != NULL;
  ok = ok && json_add_number(row, "drawn", (double)classes_of(drawn, by_prompt)[k]) != NULL;
  for (int f = 0; f < FATES && ok; ++f)
    ok = json_add_number(row, unit_fate_name((unit_fate)f),
                         (double)classes_of(&s->fate[f], by_prompt)[k]) != NULL;
  return ok;
}

static int add_classes(cJSON *to, const schedule *s, const unit_counts *drawn, int by_prompt) {
  cJSON *rows = cJSON_AddArrayToObject(to, by_prompt ? "by_prompt" : "by_length");
  int ok = rows != NULL;
  for (size_t k = 0; k < (by_prompt ? PROMPT_CLASSES : LENGTH_CLASSES) && ok; ++k)
    if (classes_of(drawn, by_prompt)[k] > 0) ok = add_class(rows, s, drawn, k, by_prompt);
  return ok;
}

int selection_to_json(cJSON *to, const schedule *s, const cluster_spec *spec) {
  const unit_counts drawn = drawn_of(s);
  cJSON *fates = cJSON_AddArrayToObject(to, "fates");
  int ok = fates != NULL && json_add_string(to, "unit", cluster_unit_names(spec)) != NULL &&
           add_fate(fates, "drawn", &drawn, drawn.units);
  for (int f = 0; f < FATES && ok; ++f)
    ok = add_fate(fates, unit_fate_name((unit_fate)f), &s->fate[f], drawn.units);
  ok = ok &&
       json_add_number(to, "mean_weight", mean(s->weight_sum, s->fate[FATE_TRAINED].units)) != NULL;
  ok = ok && add_classes(to, s, &drawn, 0);
  return ok && (!has_prompts(&drawn) || add_classes(to, s, &drawn, 1));
}

static void print_fate(const char *name, const unit_counts *of, uint64_t drawn, FILE *to) {
  fprintf(to, "%-20s %10" PRIu64 "  %6.2f %%", name, of->units, 100 * share(of->units, drawn));
  if (of->tokens > 0 && of->units > 0)
    fprintf(to, "  %10.1f  %10.1f", mean(of->tokens, of->units), mean(of->longest, of->units));
  fputc('\n', to);
}

static void print_classes(const schedule *s, const unit_counts *drawn, int by_prompt, FILE *to) {
  fprintf(to, "\n%-20s %10s", by_prompt ? "quarter of prompts" : "longest response", "drawn");
  for (int f = 0; f < FATES; ++f) fprintf(to, " %8s", unit_fate_name((unit_fate)f));
  fputc('\n', to);
  for (size_t k = 0; k < (by_prompt ? PROMPT_CLASSES : LENGTH_CLASSES); ++k) {
    const uint64_t n = classes_of(drawn, by_prompt)[k];
    char name[40];
    if (n == 0) continue;
    if (by_prompt)
      snprintf(name, sizeof name, "%zu%s", k + 1,
               k == 0                    ? " (fastest)"
               : k + 1 == PROMPT_CLASSES ? " (slowest)"
                                         : "");
    else
      snprintf(name, sizeof name, "%.0f to %.0f tokens", ldexp(1, (int)k),
               ldexp(1, (int)k + 1) - 1);
    fprintf(to, "%-20s %10" PRIu64, name, n);
    for (int f = 0; f < FATES; ++f)
      fprintf(to, " %6.2f %%", 100 * share(classes_of(&s->fate[f], by_prompt)[k], n));
    fputc('\n', to);
  }
}

void selection_print_table(const schedule *s, const cluster_spec *spec, FILE *to) {
  const unit_counts drawn = drawn_of(s);
  fprintf(to, "\n%-20s %10s  %8s", cluster_unit_names(spec), "number", "of drawn");
  if (drawn.tokens > 0) fprintf(to, "  %10s  %10s", "tokens", "longest");
  fputc('\n', to);
  print_fate("drawn", &drawn, drawn.units, to);
  for (int f = 0; f < FATES; ++f)
    print_fate(unit_fate_name((unit_fate)f), &s->fate[f], drawn.units, to);
  if (s->weight_sum < (double)s->fate[FATE_TRAINED].units)
    fprintf(to, "mean weight of trained %s: %.4f\n", cluster_unit_names(spec),
            mean(s->weight_sum, s->fate[FATE_TRAINED].units));
  if (drawn.tokens > 0) print_classes(s, &drawn, 0, to);
  if (has_prompts(&drawn)) print_classes(s, &drawn, 1, to);
}

/* --- theory --- */

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
