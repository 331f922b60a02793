/* A schedule as JSON, as a table and as CSV, and its distance to measured staleness. */
#include "sim/schedule_print.h"

#include "core/base/json.h"
#include "core/base/ks.h"
#include "core/base/shown.h"
#include "sim/cluster_spec.h"

#include <gsl/gsl_sort.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

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

/* What both forms print besides staleness. */
typedef schedule_number line;
enum { N_LINES = 12 };

static void lines_of(const schedule *s, line out[N_LINES]) {
  const clock_record *c = &s->clock;
  const line all[N_LINES] = {{"updates", "", (double)s->n_updates},
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
                             {"retransmissions", "", c->retransmissions}};
  for (size_t i = 0; i < N_LINES; ++i) out[i] = all[i];
}

/* What both forms print of a network. */
enum { N_NETWORK_LINES = 17 };

static void network_lines_of(const network_report *n, line out[N_NETWORK_LINES]) {
  const line all[N_NETWORK_LINES] = {{"egress_utilisation", "", n->egress_utilisation},
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
  for (size_t i = 0; i < N_NETWORK_LINES; ++i) out[i] = all[i];
}

size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]) {
  const clock_record *c = &s->clock;
  const line staleness[] = {{"staleness_mean", "", c->staleness_mean},
                            {"staleness_p50", "", c->staleness_p50},
                            {"staleness_p95", "", c->staleness_p95},
                            {"staleness_max", "", c->staleness_max}};
  size_t n = N_LINES;
  lines_of(s, out);
  for (size_t i = 0; i < sizeof staleness / sizeof *staleness; ++i) out[n++] = staleness[i];
  if (s->network.is_on) {
    network_lines_of(&s->network, &out[n]);
    n += N_NETWORK_LINES;
  }
  return n;
}

static int add_network(cJSON *root, const network_report *n) {
  line all[N_NETWORK_LINES];
  network_lines_of(n, all);
  cJSON *to = cJSON_AddObjectToObject(root, "network");
  int ok = to != NULL;
  for (size_t i = 0; i < N_NETWORK_LINES && ok; ++i)
    ok = json_add_number(to, all[i].name, all[i].value) != NULL;
  return ok;
}

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
  line all[N_LINES];
  lines_of(s, all);
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_string(root, "preset", spec->preset) != NULL &&
           add_staleness(root, s);
  for (size_t i = 0; i < N_LINES && ok; ++i)
    ok = json_add_number(root, all[i].name, all[i].value) != NULL;
  if (ok && s->streams)
    ok = json_add_string(root, "unit", cluster_unit_names(spec)) != NULL &&
         json_add_number(root, "slot_utilisation", s->slot_utilisation) != NULL &&
         json_add_number(root, "batches_aborted", (double)s->aborted) != NULL;
  if (ok && s->interrupts)
    ok = json_add_number(root, "interruptions", (double)s->n_interrupts) != NULL &&
         json_add_number(root, "interrupted_s", s->interrupted_s) != NULL &&
         json_add_number(root, "recomputed_tokens", s->recomputed_tokens) != NULL;
  if (ok && s->network.is_on) ok = add_network(root, &s->network);
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

static void print_seconds(const schedule *s, const measured_staleness *m, FILE *to) {
  if (isnan(m->seconds)) return;
  const char *between = *m->source ? " (" : "", *end = *m->source ? ")" : "";
  fprintf(to, "%-20s  %.6g s for %g updates, measured %.6g s: %s%s%s%s\n", "compared_s",
          schedule_seconds(s, m->seconds_of), m->seconds_of, m->seconds, shown(m->name).text,
          between, shown(m->source).text, end);
}

void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to) {
  line all[N_LINES];
  double ks = NAN;
  gl_error err = {0};
  lines_of(s, all);
  fprintf(to, "%-20s  %s\n", "preset", shown(spec->preset).text);
  for (size_t i = 0; i < N_LINES; ++i)
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
  print_seconds(s, &spec->measured, to);
  if (spec->measured.n == 0) return;
  if (schedule_ks(s, spec, &ks, &err) != GL_OK)
    fprintf(to, "%-20s  not available: %s\n", "ks_distance", shown(err.text).text);
  else
    fprintf(to, "%-20s  %.4f to %s%s%s%s\n", "ks_distance", ks, shown(spec->measured.name).text,
            *spec->measured.source ? " (" : "", shown(spec->measured.source).text,
            *spec->measured.source ? ")" : "");
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
