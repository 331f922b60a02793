/* Statistics of a schedule, as a list of numbers and as JSON, and its distance from measured
 * staleness. */
#include "sim/schedule.h"

#include "core/base/json.h"
#include "core/base/ks.h"
#include "sim/clock.h"

#include <assert.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void schedule_fini(schedule *s) {
  free(s->updates);
  free(s->batches);
  free(s->segments);
  free(s->staleness);
  free(s->source_of);
  *s = (schedule){0};
}

const char *unit_fate_name(unit_fate fate) {
  switch (fate) {
  case FATE_TRAINED:
    return "trained";
  case FATE_STALE:
    return "stale";
  case FATE_EVICTED:
    return "evicted";
  case FATE_ABORTED:
    return "aborted";
  case FATE_LOST:
    return "lost";
  case FATE_REJECTED:
    return "rejected";
  case FATE_PENDING:
    return "pending";
  case FATES:
    break;
  }
  return "";
}

/* --- clock statistics --- */

static void clock_fill_record(sim_clock *c) {
  schedule *s = c->out;
  double busy = 0, sum = 0, span = c->now, n = (double)c->spec->n_samplers;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    const sampler *p = &c->samplers[i];
    busy += p->busy_s + (p->state == SAMPLER_GENERATING ? span - p->begun_s : 0);
    if (c->spec->colocated == NULL || p->state == SAMPLER_GENERATING)
      busy += interrupt_rest(c, (uint32_t)i);
  }
  for (size_t i = 0; i < s->n_staleness; ++i) sum += (double)i * (double)s->staleness[i];
  double trained = (double)s->n_batches;
  s->clock = (clock_record){
      .simulated_s = span,
      .learner_utilisation = span > 0 ? c->learner.busy_s / span : 0,
      .sampler_utilisation = span > 0 ? busy / (span * n) : 0,
      .samples_per_s = span > 0 ? trained * (double)c->spec->unit_responses / span : 0,
      .bytes_up = c->stats.bytes_up,
      .bytes_down = c->stats.bytes_down,
      .staleness_mean = trained > 0 ? sum / trained : 0,
      .staleness_max = (double)s->n_staleness - 1,
      .staleness_p50 = schedule_staleness_quantile(s, 0.5),
      .staleness_p95 = schedule_staleness_quantile(s, 0.95),
      .batches_generated = (double)c->ledger.generated,
      .batches_trained = trained,
      .batches_dropped = (double)(s->fate[FATE_STALE].units + s->fate[FATE_EVICTED].units +
                                  s->fate[FATE_ABORTED].units + s->fate[FATE_REJECTED].units),
      .batches_lost = (double)s->fate[FATE_LOST].units,
      .retransmissions = c->stats.retransmissions,
  };
}

static void clock_fill_counts(sim_clock *c) {
  schedule *s = c->out;
  const buffer *b = &c->buffer;
  s->waited_s = c->stats.waited_s;
  for (uint32_t i = b->oldest; i != BUFFER_NONE; i = b->pool[i].newer)
    s->waited_s += c->now - b->pool[i].facts.arrived_s;
  s->waiting_integral_s = c->stats.waiting_integral_s;
  s->begun = c->ledger.begun;
  s->pending = buffer_in_use(b);
  s->sampler_bytes = sizeof(sampler) + (c->stream.engines != NULL ? sizeof(engine) : 0) +
                     (c->interrupts.of != NULL ? sizeof(interruption) : 0);
  s->batch_bytes = buffer_bytes(b) + stream_bytes(c);
  s->event_bytes = fel_bytes(&c->events);
  s->events = c->events.near.inserted - fel_size(&c->events);
  s->unit_responses = c->spec->unit_responses;
}

static void clock_fill_interrupts(sim_clock *c) {
  const interruptions *t = &c->interrupts;
  if (!t->by_weights) return;
  double rest = 0;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) rest += interrupt_weights_rest(c, (uint32_t)i);
  c->out->interrupts = true;
  c->out->n_interrupts = t->n;
  c->out->interrupted_s = t->seconds - rest;
  c->out->recomputed_tokens = t->tokens;
}

/* Utilisation of decoding slots: decoding seconds over the seconds of all slots. */
static void clock_fill_slots(sim_clock *c) {
  double used = 0, slots = 0;
  if (c->stream.engines == NULL) return;
  for (size_t i = 0; i < c->spec->n_samplers; ++i) {
    const engine *e = &c->stream.engines[i];
    slots += (double)c->samplers[i].group->responses.concurrency;
    used += e->slot_s;
    for (uint32_t r = e->first; r != UINT32_MAX; r = c->stream.running[r].next)
      if (turns_hold_slot(c, r))
        used += interrupt_decoded_to(c, (uint32_t)i) - c->stream.running[r].begun_s;
  }
  c->out->streams = true;
  c->out->aborted = c->out->fate[FATE_ABORTED].units;
  c->out->slot_utilisation = c->now > 0 ? fmin(used / (slots * c->now), 1) : 0; /* rounding */
}

static void clock_fill_restarts(sim_clock *c) {
  const restart_state *s = &c->restarts;
  const double rest = s->is_down ? c->now - s->since_s : 0;
  c->out->restarts = (restart_report){c->spec->restarts != NULL, (double)s->n, s->stopped_s + rest,
                                      (double)s->again};
}

static void clock_fill_decoding(sim_clock *c) {
  const streaming *t = &c->stream;
  c->out->decoding = (decoding_report){c->spec->decoding != NULL,
                                       t->decoded_s > 0 ? t->decoded_tokens / t->decoded_s : 0,
                                       (double)t->preemptions,
                                       t->preempted_tokens,
                                       c->spec->decoding != NULL &&
                                           c->spec->decoding->prefix_cache != PREFIX_CACHE_FREE,
                                       t->prompts,
                                       t->cached_prompts};
}

static void clock_fill_grader(sim_clock *c) {
  const grader_state *g = &c->grader;
  c->out->grader =
      (grader_report){c->spec->grader != NULL, g->begun > 0 ? g->waited_s / (double)g->begun : 0,
                      c->now > 0 ? g->busy_s / c->now : 0, (double)g->timed_out};
}

/* Removes all events, and subtracts what gradings and switches under way would take after the end.
 */
static gl_status clock_subtract_rest(sim_clock *c, gl_error *err) {
  sim_event e;
  if (c->spec->grader == NULL && c->spec->colocated == NULL) return GL_OK;
  while (fel_size(&c->events) > 0) {
    if (!fel_pop(&c->events, &e)) return gl_fail_memory(err, "events");
    learner_subtract_rest(c, &e);
  }
  return GL_OK;
}

gl_status clock_summarise(sim_clock *c, gl_error *err) {
  gl_status status = schedule_count_staleness(c->out, err);
  if (status != GL_OK) return status;
  clock_fill_record(c);
  clock_fill_counts(c);
  status = clock_subtract_rest(c, err);
  if (status != GL_OK) return status;
  ledger_count_pending(c);
  clock_fill_slots(c);
  clock_fill_interrupts(c);
  clock_fill_restarts(c);
  clock_fill_decoding(c);
  clock_fill_grader(c);
  turns_report(c);
  c->out->gpus =
      (gpu_report){c->spec->colocated != NULL, (double)c->learner.switches, c->learner.switch_s};
  transfer_report(c);
  return GL_OK;
}

/* --- as numbers and JSON --- */

gl_status schedule_ks(const schedule *s, const cluster_spec *spec, double *distance,
                      gl_error *err) {
  const cluster_measurements *measured = &spec->measured;
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

enum { STALENESS_NUMBERS = 9, NETWORK_NUMBERS = 17 };

/* Appends numbers that only some clusters have; returns how many there are then. */
static size_t add_sections(const schedule *s, schedule_number *out, size_t n) {
  if (s->restarts.is_on) {
    out[n++] = (schedule_number){"restarts", "", s->restarts.n};
    out[n++] = (schedule_number){"restarts_s", "s", s->restarts.stopped_s};
    out[n++] = (schedule_number){"updates_again", "", s->restarts.again};
  }
  if (s->decoding.is_on) {
    out[n++] = (schedule_number){"decoding_tokens_per_s", "tokens/s", s->decoding.tokens_per_s};
    out[n++] = (schedule_number){"preemptions", "", s->decoding.preemptions};
    out[n++] = (schedule_number){"preempted_tokens", "", s->decoding.preempted_tokens};
  }
  if (s->decoding.prefills) {
    out[n++] = (schedule_number){"prompt_tokens", "", s->decoding.prompts};
    out[n++] = (schedule_number){"cached_prompt_tokens", "", s->decoding.cached};
  }
  if (s->grader.is_on) {
    out[n++] = (schedule_number){"grader_wait_s", "s", s->grader.wait_s};
    out[n++] = (schedule_number){"grader_places", "", s->grader.busy};
    out[n++] = (schedule_number){"grader_timed_out", "", s->grader.timed_out};
  }
  if (s->gpus.is_on) {
    out[n++] = (schedule_number){"gpu_switches", "", s->gpus.switches};
    out[n++] = (schedule_number){"gpu_switch_s", "s", s->gpus.seconds};
  }
  if (s->environment.is_on) {
    out[n++] = (schedule_number){"environment_wait_s", "s", s->environment.wait_s};
    out[n++] = (schedule_number){"environment_places", "", s->environment.busy};
    out[n++] = (schedule_number){"environment_calls", "", s->environment.calls};
  }
  return n;
}

size_t schedule_numbers(const schedule *s, schedule_number out[SCHEDULE_MOST_NUMBERS]) {
  const clock_record *c = &s->clock;
  const network_report *n = &s->network;
  const double trained = (double)s->n_batches;
#define PART_NUMBER(part, meaning)                                                                 \
  {"staleness_" #part, "", trained > 0 ? (double)s->parts.part / trained : 0},
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
                                 STALENESS_PARTS(PART_NUMBER) /* means over trained batches */
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
#undef PART_NUMBER
  static_assert(sizeof all / sizeof *all ==
                    SCHEDULE_COMMON_NUMBERS + STALENESS_NUMBERS + NETWORK_NUMBERS,
                "as many numbers as are counted");
  size_t used = SCHEDULE_COMMON_NUMBERS + STALENESS_NUMBERS + (n->is_on ? NETWORK_NUMBERS : 0);
  memcpy(out, all, used * sizeof *out);
  return add_sections(s, out, used);
}

static int summary_add_numbers(cJSON *to, const schedule_number *all, size_t n) {
  int ok = 1;
  for (size_t i = 0; i < n && ok; ++i) ok = json_add_number(to, all[i].name, all[i].value) != NULL;
  return ok;
}

static int add_part(cJSON *to, const char *name, uint64_t versions, double trained) {
  cJSON *part = cJSON_AddObjectToObject(to, name);
  return part != NULL && json_add_number(part, "versions", (double)versions) != NULL &&
         json_add_number(part, "mean", trained > 0 ? (double)versions / trained : 0) != NULL;
}

static int add_staleness_parts(cJSON *staleness, const schedule *s) {
  cJSON *to = cJSON_AddObjectToObject(staleness, "from");
  int ok = to != NULL;
#define JSON_PART(name, meaning)                                                                   \
  ok = ok && add_part(to, #name, s->parts.name, (double)s->n_batches);
  STALENESS_PARTS(JSON_PART)
#undef JSON_PART
  return ok;
}

static int add_sources(cJSON *root, const schedule *s, const cluster_spec *spec) {
  cJSON *list = cJSON_AddArrayToObject(root, "sources");
  int ok = list != NULL;
  for (size_t i = 0; i < s->n_sources && ok; ++i) {
    const source_report *of = &s->sources[i];
    cJSON *to = cJSON_CreateObject();
    ok = to != NULL && cJSON_AddItemToArray(list, to) &&
         json_add_string(to, "name", spec->sources[i].name) != NULL &&
         json_add_number(to, "begun", (double)of->begun) != NULL;
    for (int f = 0; f < FATE_PENDING && ok; ++f)
      ok = json_add_number(to, unit_fate_name((unit_fate)f), (double)of->fate[f]) != NULL;
    const double trained = (double)of->fate[FATE_TRAINED];
    ok = ok && json_add_number(to, "staleness_mean", (double)of->staleness / trained) != NULL &&
         json_add_number(to, "waited_mean_s", of->waited_s / trained) != NULL;
  }
  return ok;
}

static int add_staleness(cJSON *root, const schedule *s, const cluster_spec *spec) {
  const int64_t bound = cluster_staleness_bound(spec);
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
  if (ok && bound < INT64_MAX) ok = json_add_number(to, "bound", (double)bound) != NULL;
  return ok && add_staleness_parts(to, s);
}

gl_status schedule_to_json(const schedule *s, const cluster_spec *spec, cJSON **out,
                           gl_error *err) {
  double ks = NAN;
  *out = NULL;
  gl_status status = schedule_ks(s, spec, &ks, err);
  if (status != GL_OK) return status;
  schedule_number all[SCHEDULE_MOST_NUMBERS], sections[SCHEDULE_MOST_NUMBERS];
  schedule_numbers(s, all);
  cJSON *root = cJSON_CreateObject();
  int ok = root != NULL && json_add_string(root, "preset", spec->preset) != NULL &&
           add_staleness(root, s, spec);
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
  if (ok) ok = summary_add_numbers(root, sections, add_sections(s, sections, 0));
  if (ok && s->n_sources > 0) ok = add_sources(root, s, spec);
  const cluster_measurements *m = &spec->measured;
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
