/* Prints a schedule as text and CSV, the fates of its units, and a comparison with theory. */
#include "experiments/clock/sim_print.h"

#include "core/base/display_text.h"
#include "core/base/json.h"
#include "sim/schedule.h"
#include "sim/trainer_counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

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

static void print_seconds(const schedule *s, const cluster_measurements *m, FILE *to) {
  if (isnan(m->seconds)) return;
  const char *between = *m->source ? " (" : "", *end = *m->source ? ")" : "";
  fprintf(to, "%-20s  %.6g s for %g updates, measured %.6g s: %s%s%s%s\n", "compared_s",
          schedule_seconds(s, m->seconds_of), m->seconds_of, m->seconds, shown(m->name).text,
          between, shown(m->source).text, end);
}

static void print_staleness(const schedule *s, const cluster_spec *spec, FILE *to) {
  const clock_record *c = &s->clock;
  const int64_t bound = cluster_staleness_bound(spec);
  const double trained = s->n_batches > 0 ? (double)s->n_batches : 1;
  fprintf(to, "%-20s  mean %.4g, median %g, p95 %g, max %g\n", "staleness", c->staleness_mean,
          c->staleness_p50, c->staleness_p95, c->staleness_max);
  if (bound < INT64_MAX)
    fprintf(to, "%-20s  %" PRId64 "%s\n", "staleness_bound", bound,
            bound > cluster_window(spec) ? ", twice the window: queue heterorl" : "");
#define PRINT_PART(name, meaning)                                                                  \
  fprintf(to, "%-20s  %.4g %s\n", "  from " #name, (double)s->parts.name / trained, meaning);
  STALENESS_PARTS(PRINT_PART)
#undef PRINT_PART
}

static void print_sources(const schedule *s, const cluster_spec *spec, FILE *to) {
  for (size_t i = 0; i < s->n_sources; ++i) {
    const source_report *of = &s->sources[i];
    const double trained = (double)of->fate[FATE_TRAINED];
    fprintf(to, "%-20s  %s: %" PRIu64 " begun, %.6g trained", i == 0 ? "sources" : "",
            shown(cluster_source_at(spec, i)).text, of->begun, trained);
    for (int f = FATE_STALE; f < FATE_PENDING; ++f)
      if (of->fate[f] > 0)
        fprintf(to, ", %" PRIu64 " %s", of->fate[f], unit_fate_name((unit_fate)f));
    if (trained > 0)
      fprintf(to, "; staleness %.4g, waited %.4g s", (double)of->staleness / trained,
              of->waited_s / trained);
    fputs("\n", to);
  }
}

void schedule_print_table(const schedule *s, const cluster_spec *spec, FILE *to) {
  schedule_number all[SCHEDULE_MOST_NUMBERS];
  const cluster_measurements *measured = cluster_measured(spec);
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
  if (s->restarts.is_on)
    fprintf(to, "%-20s  %.6g, %.6g s down in all, %.6g finished updates made again\n", "restarts",
            s->restarts.n, s->restarts.stopped_s, s->restarts.again);
  if (s->decoding.is_on)
    fprintf(to, "%-20s  %.6g tokens/s of a sampler, %.6g preemptions, %.6g tokens computed again\n",
            "decoding", s->decoding.tokens_per_s, s->decoding.preemptions,
            s->decoding.preempted_tokens);
  if (s->decoding.prefills)
    fprintf(to, "%-20s  %.6g tokens, %.6g of them in the prefix cache\n", "prompts",
            s->decoding.prompts, s->decoding.cached);
  if (s->grader.is_on)
    fprintf(to, "%-20s  %.6g s waited for a place, %.6g places in use, %.6g timed out\n", "grader",
            s->grader.wait_s, s->grader.busy, s->grader.timed_out);
  if (s->gpus.is_on)
    fprintf(to, "%-20s  %.6g between generation and training, %.6g s in all\n", "gpu_switches",
            s->gpus.switches, s->gpus.seconds);
  if (s->environment.is_on)
    fprintf(to, "%-20s  %.6g calls, %.6g s waited for a place, %.6g places in use\n", "environment",
            s->environment.calls, s->environment.wait_s, s->environment.busy);
  print_staleness(s, spec, to);
  print_sources(s, spec, to);
  print_seconds(s, measured, to);
  if (measured->n == 0) return;
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
        "end_s",
        to);
#define PRINT_NAME(name, meaning) fputs(",from_" #name, to);
  STALENESS_PARTS(PRINT_NAME)
#undef PRINT_NAME
  fputs(s->n_sources > 0 ? ",source\n" : "\n", to);
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
      fprintf(to, "%s", number_text(u->end_s, t[5]));
      const staleness_parts from = schedule_split_staleness(s, u, b);
#define PRINT_VERSIONS(name, meaning) fprintf(to, ",%" PRIu64, from.name);
      STALENESS_PARTS(PRINT_VERSIONS)
#undef PRINT_VERSIONS
      if (s->n_sources > 0) fprintf(to, ",%d", s->source_of[b - s->batches] + 1);
      fputs("\n", to);
    }
}

static void print_token_run(void *self, const token_run *run) {
  FILE *to = self;
  char t[3][NUMBER_TEXT_SIZE];
  fprintf(to, "%" PRId64 ",%" PRIu64 ",%" PRIu32 ",%s,%s,%zu,%" PRId64 ",%s\n", run->update->step,
          run->unit->number, run->unit->sampler, number_text(run->unit->start_s, t[0]),
          number_text(run->update->end_s, t[1]), run->response, run->version,
          number_text(run->tokens, t[2]));
}

gl_status schedule_print_tokens(const schedule *s, const cluster_spec *spec, uint64_t seed,
                                FILE *to, gl_error *err) {
  fputs("step,unit,sampler,start_s,end_s,response,version,tokens\n", to);
  return schedule_token_runs(s, spec, seed, print_token_run, to, err);
}

/* --- fates of units --- */

/* Counts all units that were started. */
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

static double unit_mean(double sum, uint64_t n) {
  return n > 0 && sum > 0 ? sum / (double)n : NAN;
}

static double unit_fraction(uint64_t part, uint64_t of) {
  return of > 0 ? (double)part / (double)of : NAN;
}

static int has_prompts(const unit_counts *drawn) {
  uint64_t n = 0;
  for (size_t k = 0; k < PROMPT_CLASSES; ++k) n += drawn->by_prompt[k];
  return n > 0;
}

static void put_fate(table *t, const char *name, const unit_counts *of, uint64_t drawn) {
  table_row(t);
  table_text(t, name), table_integer(t, (int64_t)of->units);
  table_real(t, unit_fraction(of->units, drawn));
  table_shown(t, "%.2f %%", 100 * unit_fraction(of->units, drawn));
  table_real(t, unit_mean(of->tokens, of->units)), table_real(t, unit_mean(of->longest, of->units));
}

static const uint64_t *classes_of(const unit_counts *of, bool by_prompt) {
  return by_prompt ? of->by_prompt : of->by_length;
}

/* Tabulates the classes that have units, with a column per fate. */
static void report_classes(table *d, const schedule *s, const unit_counts *drawn, bool by_prompt,
                           bool for_people) {
  table *t = table_rows(table_field(d, by_prompt ? "by_prompt" : "by_length"), NULL, 0);
  const char *first = by_prompt ? "quarter of prompts" : "longest response";
  table_add_column(t, (table_column){by_prompt ? "quarter" : "from", TABLE_INTEGER, .width = -20},
                   "%s", first);
  if (!by_prompt)
    table_add_column(t, (table_column)TABLE_KEY("to", TABLE_INTEGER), "%s", ""),
        table_hide_head(t, 1);
  table_add_column(t, (table_column){"drawn", TABLE_INTEGER, .width = 10}, "drawn");
  for (int f = 0; f < FATES; ++f)
    table_add_column(t, (table_column){unit_fate_name((unit_fate)f), TABLE_INTEGER, .width = 8},
                     "%s", unit_fate_name((unit_fate)f));
  for (size_t k = 0; k < 3 + FATES && !for_people; ++k) table_hide_head(t, k);
  table_plain(t, 0);
  for (size_t k = 0; k < (by_prompt ? PROMPT_CLASSES : LENGTH_CLASSES); ++k) {
    const uint64_t n = classes_of(drawn, by_prompt)[k];
    const int64_t from = INT64_C(1) << k, to = 2 * from - 1;
    if (n == 0) continue;
    table_row(t);
    table_integer(t, by_prompt ? (int64_t)k + 1 : from);
    if (!by_prompt)
      table_shown(t, "%" PRId64 " to %" PRId64 " tokens", from, to), table_integer(t, to);
    else if (k == 0 || k + 1 == PROMPT_CLASSES)
      table_shown(t, "%zu (%s)", k + 1, k == 0 ? "fastest" : "slowest");
    table_integer(t, (int64_t)n);
    for (int f = 0; f < FATES; ++f) {
      const uint64_t of = classes_of(&s->fate[f], by_prompt)[k];
      table_integer(t, (int64_t)of);
      table_shown(t, "%.2f %%", 100 * unit_fraction(of, n));
    }
  }
}

void unit_fates_report(table *d, const schedule *s, const cluster_spec *spec) {
  const char *units = cluster_unit_names(spec);
  const unit_counts drawn = drawn_of(s);
  const bool has_tokens = drawn.tokens > 0;
  const double weight = unit_mean(s->weight_sum, s->fate[FATE_TRAINED].units);
  table_line(d, "%s", "");
  table *t = table_rows(table_field(d, "fates"), NULL, 0);
  table_add_column(t, (table_column){"fate", TABLE_TEXT, .width = -20}, "%s", units);
  table_add_column(t, (table_column){"units", TABLE_INTEGER, .width = 10}, "number");
  table_add_column(t, (table_column){"share", TABLE_REAL, .width = 9}, "of sampled");
  table_add_column(t, (table_column){"mean_tokens", TABLE_REAL, .format = "%.1f", .width = 11},
                   "tokens");
  table_add_column(t, (table_column){"mean_longest", TABLE_REAL, .format = "%.1f", .width = 11},
                   "longest");
  if (!has_tokens) table_hide_head(t, 3), table_hide_head(t, 4);
  table_plain(t, 0);
  put_fate(t, "drawn", &drawn, drawn.units);
  for (int f = 0; f < FATES; ++f)
    put_fate(t, unit_fate_name((unit_fate)f), &s->fate[f], drawn.units);
  table_put(d, "unit %s, mean_weight %g", units, weight);
  if (s->weight_sum < (double)s->fate[FATE_TRAINED].units)
    table_line(d, "mean weight of trained %s: %.4f", units, weight);
  if (has_tokens) table_line(d, "%s", "");
  report_classes(d, s, &drawn, false, has_tokens);
  if (!has_prompts(&drawn)) return;
  table_line(d, "%s", "");
  report_classes(d, s, &drawn, true, true);
}

/* --- theory --- */

/* The simulated value minus theory's; if theory gives bounds, minus the nearer bound, and 0 between
 * them. */
static double theory_difference(const theory *t, const theory_measured *m, size_t q) {
  const theory_value v = t->value[q];
  if (m->mean[q] < v.low) return m->mean[q] - v.low;
  return m->mean[q] > v.high ? m->mean[q] - v.high : 0;
}

/* The fraction of counted batches with this staleness. */
static double simulated_fraction(const schedule *s, const theory_measured *m, size_t staleness) {
  double with = 0, all = 0;
  for (size_t i = m->first_update; i < s->n_updates; ++i) {
    const schedule_update *u = &s->updates[i];
    for (size_t k = 0; k < u->n_batches; ++k, ++all)
      with += schedule_staleness(s, u, &s->batches[u->first_batch + k]) == (int64_t)staleness;
  }
  return with / all;
}

/* Staleness values with a theoretical fraction below this are omitted, in text and JSON. */
static const double shown_share = 5e-4;

static void report_fractions(table *d, const theory *t, const theory_measured *m,
                             const schedule *s) {
  static const table_column columns[] = {TABLE_KEY("staleness", TABLE_INTEGER),
                                         TABLE_KEY("theory", TABLE_REAL),
                                         TABLE_KEY("simulated", TABLE_REAL)};
  if (t->staleness == NULL) return;
  table *rows = table_rows(table_field(d, "staleness"), columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < t->n_staleness; ++i) {
    if (t->staleness[i] < shown_share) continue;
    const double simulated = simulated_fraction(s, m, i);
    table_row(rows);
    table_count(rows, i), table_real(rows, t->staleness[i]), table_real(rows, simulated);
    table_line(d, "fraction of staleness %-3zu %-19.4f %-19.4f %.2g", i, t->staleness[i], simulated,
               simulated - t->staleness[i]);
  }
}

void sim_theory_report(table *d, const theory *t, const theory_measured *m, const schedule *s) {
  table_put(d, "form %s, range %s, source %s, updates_left_out %zu, updates %zu", t->form, t->range,
            t->source, m->first_update, m->n_updates);
  table_line(d, "%s", "");
  table_line(d, "theory: %s", t->form);
  table_line(d, "  holds for %s", t->range);
  table_line(d, "  source: %s", t->source);
  table_line(d, "  simulated: the last %zu updates; +- is the standard error over %d blocks",
             m->n_updates, THEORY_BLOCKS);
  table_line(d, "%s", "");
  table_line(d, "%-25s %-19s %-19s %s", "", "theory", "simulated", "difference");
  table *all = table_object(table_field(d, "quantities"));
  for (size_t q = 0; q < THEORY_QUANTITIES; ++q) {
    const char *name = sim_theory_quantity_name((theory_quantity)q);
    const theory_value v = t->value[q];
    const double apart = theory_difference(t, m, q);
    char said[64], seen[64];
    if (v.low == v.high)
      snprintf(said, sizeof said, "%.6g", v.low);
    else
      snprintf(said, sizeof said, "%.6g to %.6g", v.low, v.high);
    snprintf(seen, sizeof seen, "%.6g +- %.2g", m->mean[q], m->error[q]);
    table_line(d, "%-25s %-19s %-19s %.2g", name, said, seen, apart);
    table *one = table_object(table_field(all, name));
    table_put(one, "theory_low %g, theory_high %g, simulated %g, standard_error %g, difference %g",
              v.low, v.high, m->mean[q], m->error[q], apart);
  }
  report_fractions(d, t, m, s);
}
