/* From the spans of a clock to the rows and bars of a chart. */
#include "experiments/clock/timeline.h"

#include "analysis/figures/direct.h"
#include "core/base/shown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SAMPLERS = 8, MOST_SITES = 8, MOST_UPDATES = 64, MOST_BARS = 200000 };
/* Rows: the learner, the batches that wait there, its side of a network, and for each sampler
 * these. */
enum {
  ROW_LEARNER,
  ROW_QUEUE,
  ROW_EGRESS,
  ROW_INGRESS,
  FIRST_SITE,
  FIRST_SAMPLER = FIRST_SITE + MOST_SITES,
  OF_SAMPLER = 0,
  OF_PAUSES,
  OF_BATCHES,
  OF_WEIGHTS,
  OF_RELAY,
  EACH
};
enum { MOST_ROWS = FIRST_SAMPLER + EACH * MOST_SAMPLERS };

gl_status timeline_between(const char *text, double between[2], gl_error *err) {
  char *end, *last;
  between[0] = strtod(text, &end);
  between[1] = *end == ',' ? strtod(end + 1, &last) : NAN;
  if (end == text || *end != ',' || last == end + 1 || *last || !isfinite(between[0]) ||
      !isfinite(between[1]))
    return gl_fail(err, GL_EINPUT,
                   "--between needs two simulated times in seconds, as in --between 0,3600, not "
                   "'%s'",
                   shown(text).text);
  if (between[0] >= 0 && between[1] > between[0]) return GL_OK;
  return gl_fail(err, GL_EINPUT, "--between %s: times begin at 0, and the second is the later one",
                 shown(text).text);
}

/* --- collecting --- */

typedef struct collector {
  uint32_t sampler[MOST_SAMPLERS]; /* [n_samplers] those that are shown, ascending */
  size_t n_samplers;
  double from_s, to_s;
  timeline_bar *bars; /* [n], at most MOST_BARS */
  size_t n, capacity;
  int is_full, is_out_of_memory;
} collector;

/* The place of a shown sampler; n_samplers: it is not shown. */
static size_t timeline_place_of(const collector *c, uint32_t sampler) {
  size_t i = 0;
  while (i < c->n_samplers && c->sampler[i] != sampler) i++;
  return i;
}

static size_t sampler_row(const collector *c, uint32_t sampler, size_t which) {
  const size_t place = timeline_place_of(c, sampler);
  return place < c->n_samplers ? FIRST_SAMPLER + EACH * place + which : MOST_ROWS;
}

/* The row and the kind of a span's bar; row MOST_ROWS: it is not shown. */
static timeline_bar timeline_bar_of(const collector *c, const schedule_span *s) {
  const size_t sampler = sampler_row(c, s->sampler, OF_SAMPLER);
  switch (s->kind) {
  case SPAN_GENERATION:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_GENERATION};
  case SPAN_INTERRUPT:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_PAUSES),
                          .kind = TIMELINE_INTERRUPTION};
  case SPAN_GATED:
  case SPAN_FETCH:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_WAITING};
  case SPAN_DOWN:
    return (timeline_bar){.row = sampler, .kind = TIMELINE_DOWN};
  case SPAN_UPLOAD:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_BATCHES), .kind = TIMELINE_BATCHES};
  case SPAN_DOWNLOAD:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_WEIGHTS), .kind = TIMELINE_WEIGHTS};
  case SPAN_UPLOAD_WAITS:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_BATCHES), .kind = TIMELINE_WAITING};
  case SPAN_DOWNLOAD_WAITS:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_WEIGHTS), .kind = TIMELINE_WAITING};
  case SPAN_EGRESS:
    return (timeline_bar){.row = ROW_EGRESS, .kind = TIMELINE_WEIGHTS};
  case SPAN_INGRESS:
    return (timeline_bar){.row = ROW_INGRESS, .kind = TIMELINE_BATCHES};
  case SPAN_RELAY:
    return (timeline_bar){.row = sampler_row(c, s->sampler, OF_RELAY), .kind = TIMELINE_WEIGHTS};
  case SPAN_OUTAGE:
    return (timeline_bar){.row = s->sampler < MOST_SITES ? FIRST_SITE + s->sampler : MOST_ROWS,
                          .kind = TIMELINE_DOWN};
  case SPAN_QUEUED:
    return (timeline_bar){.row = ROW_QUEUE, .kind = TIMELINE_QUEUED};
  case SPAN_IDLE:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_WAITING};
  case SPAN_TRAINING:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_TRAINING};
  case SPAN_EVALUATION:
    return (timeline_bar){.row = ROW_LEARNER, .kind = TIMELINE_EVALUATION};
  }
  return (timeline_bar){.row = MOST_ROWS};
}

static int timeline_make_room(collector *c) {
  if (c->n < c->capacity) return 1;
  const size_t capacity = 2 * c->capacity + 256;
  timeline_bar *longer = realloc(c->bars, capacity * sizeof *longer);
  if (longer == NULL) return 0;
  c->bars = longer;
  c->capacity = capacity;
  return 1;
}

static void timeline_collect(void *self, const schedule_span *s) {
  collector *c = self;
  timeline_bar bar = timeline_bar_of(c, s);
  if (bar.row == MOST_ROWS || s->from_s > c->to_s || s->to_s < c->from_s) return;
  bar.ends = s->end == SPAN_DROPPED ? TIMELINE_DROPPED
             : s->end == SPAN_LOST  ? TIMELINE_LOST
                                    : bar.kind;
  bar.from_s = s->from_s;
  bar.to_s = s->to_s;
  c->is_full |= c->n == MOST_BARS;
  if (!c->is_full && !c->is_out_of_memory) c->is_out_of_memory = !timeline_make_room(c);
  if (!c->is_full && !c->is_out_of_memory) c->bars[c->n++] = bar;
}

/* --- drawing --- */

static void choose_samplers(collector *c, size_t n) {
  c->n_samplers = n < MOST_SAMPLERS ? n : MOST_SAMPLERS;
  for (size_t i = 0; i < c->n_samplers; i++)
    c->sampler[i] = (uint32_t)(c->n_samplers < 2 ? 0 : i * (n - 1) / (c->n_samplers - 1));
}

/* The first updates, with the evaluation that may follow them. */
static void choose_times(collector *c, const schedule *s, const double *between) {
  c->from_s = between != NULL ? between[0] : 0;
  c->to_s = between != NULL               ? between[1]
            : s->n_updates > MOST_UPDATES ? s->updates[MOST_UPDATES].start_s
                                          : s->clock.simulated_s;
}

static gl_status timeline_check(const collector *c, gl_error *err) {
  if (c->is_out_of_memory) return gl_fail_memory(err, "a timeline");
  if (!c->is_full) return GL_OK;
  return gl_fail(err, GL_EINPUT,
                 "more than %d things happen between %g and %g simulated seconds; show less of "
                 "them: --between FROM,TO",
                 MOST_BARS, c->from_s, c->to_s);
}

static gl_status timeline_draw_rows(const collector *c, const cluster_spec *cluster,
                                    const figure_request *q, gl_error *err) {
  const size_t n_samplers = cluster_samplers(cluster);
  char room[MOST_ROWS][40] = {"learner", "queue", "egress", "ingress"}, left_out[80] = "";
  const char *units = cluster_unit_names(cluster);
  const char *rows[MOST_ROWS] = {room[0], room[1], room[2], room[3]};
  for (size_t i = 0; i < MOST_SITES; i++) {
    const char *site = cluster_site_at(cluster, i);
    snprintf(room[FIRST_SITE + i], sizeof room[0], "site %.30s",
             site != NULL ? shown(site).text : "");
    rows[FIRST_SITE + i] = room[FIRST_SITE + i];
  }
  size_t n = FIRST_SAMPLER;
  for (size_t i = 0; i < c->n_samplers; i++, n += EACH) {
    const unsigned number = c->sampler[i] + 1;
    snprintf(room[n + OF_SAMPLER], sizeof room[n], "sampler %u", number);
    snprintf(room[n + OF_PAUSES], sizeof room[n], "pauses of %u", number);
    snprintf(room[n + OF_BATCHES], sizeof room[n], "%s of %u", units, number);
    snprintf(room[n + OF_WEIGHTS], sizeof room[n], "weights to %u", number);
    snprintf(room[n + OF_RELAY], sizeof room[n], "%u sends on", number);
    for (size_t k = 0; k < EACH; k++) rows[n + k] = room[n + k];
  }
  if (n_samplers > c->n_samplers)
    snprintf(left_out, sizeof left_out, "%zu of %zu samplers", n_samplers - c->n_samplers,
             n_samplers);
  return figure_of_timeline(&(timeline){rows, n, c->bars, c->n, c->from_s, c->to_s, left_out}, q,
                            err);
}

gl_status timeline_draw(const schedule *s, const cluster_spec *cluster, uint64_t seed,
                        const double *between, const figure_request *q, gl_error *err) {
  collector c = {.n = 0};
  schedule again;
  const schedule_trace trace = {&c, timeline_collect};
  choose_samplers(&c, cluster_samplers(cluster));
  choose_times(&c, s, between);
  gl_status status = schedule_build_traced(&again, cluster, seed, s->n_updates, &trace, err);
  schedule_fini(&again);
  if (status == GL_OK) status = timeline_check(&c, err);
  if (status == GL_OK) status = timeline_draw_rows(&c, cluster, q, err);
  free(c.bars);
  return status;
}
