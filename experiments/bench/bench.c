/* Measuring, and the arithmetic of what was measured. */
#include "experiments/bench/bench.h"

#include "experiments/base/seconds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A peer that does not come back is ended so long after the end of the benchmark's time. */
#define GRACE_S 30.0

/* --- the arithmetic --- */

static int bench_ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

bench_rate bench_rate_of(double *rates, size_t n, meter_load load) {
  if (n == 0)
    return (bench_rate){
        .median = NAN, .low = NAN, .high = NAN, .load = load, .own_s = NAN, .least_s = NAN};
  qsort(rates, n, sizeof *rates, bench_ascending);
  return (bench_rate){.median = (rates[(n - 1) / 2] + rates[n / 2]) / 2,
                      .low = rates[0],
                      .high = rates[n - 1],
                      .n = n,
                      .load = load,
                      .own_s = NAN,
                      .least_s = NAN};
}

double bench_ratio(const bench_number *number, const bench_peer *peer, int takes_busy,
                   int *kept_back) {
  *kept_back = 0;
  if (number->rate.n == 0 || peer->rate.n == 0) return NAN;
  *kept_back =
      !takes_busy && (!meter_is_quiet(number->rate.load) || !meter_is_quiet(peer->rate.load));
  return *kept_back ? NAN : number->rate.median / peer->rate.median;
}

size_t bench_kept_back(const bench *b) {
  size_t n = 0;
  for (size_t i = 0; i < b->n; ++i)
    for (size_t k = 0; k < b->numbers[i].n_peers; ++k) {
      int kept_back;
      (void)bench_ratio(&b->numbers[i], &b->numbers[i].peer[k], b->takes_busy, &kept_back);
      n += (size_t)kept_back;
    }
  return n;
}

/* --- ours --- */

static gl_status bench_append(bench *b, bench_number **out, const char *key, const char *what,
                              gl_error *err) {
  if (b->n == BENCH_MOST_NUMBERS)
    return gl_fail(err, GL_EINTERNAL, "more than %d numbers to measure", BENCH_MOST_NUMBERS);
  *out = &b->numbers[b->n++];
  **out = (bench_number){
      .what = what, .aim = NAN, .rate = bench_rate_of(NULL, 0, (meter_load){0}), .value = NAN};
  snprintf((*out)->key, sizeof(*out)->key, "%s", key);
  return GL_OK;
}

gl_status bench_named(bench *b, bench_number **out, const char *key, const char *what,
                      gl_error *err) {
  for (size_t i = 0; i < b->n; ++i) {
    *out = &b->numbers[i];
    if (strcmp((*out)->key, key) == 0) return GL_OK;
  }
  return bench_append(b, out, key, what, err);
}

gl_status bench_fact(bench *b, const char *key, double value, double aim, const char *what,
                     gl_error *err) {
  bench_number *number = NULL;
  gl_status status = bench_append(b, &number, key, what, err);
  if (status != GL_OK) return status;
  number->kind = BENCH_FACT;
  number->value = value;
  number->aim = aim;
  return GL_OK;
}

gl_status bench_derived(bench *b, const char *key, double value, meter_load one, meter_load other,
                        double aim, const char *what, gl_error *err) {
  const int quiet = meter_is_quiet(one) && meter_is_quiet(other);
  return bench_fact(b, key, quiet || b->takes_busy ? value : NAN, aim, what, err);
}

static int time_is_up(const bench *b) {
  return seconds_now() >= b->end;
}

/* Notes it as the reason why there is no rate. */
static void late(char missing[PEER_TEXT]) {
  snprintf(missing, PEER_TEXT, "no time left");
}

static void measured(bench *b, const bench_number *number, const bench_peer *peer,
                     meter_load load) {
  b->load = meter_heavier(b->load, load);
  if (b->tell != NULL) b->tell(number, peer);
}

/* Calls, and calls per second, of one repetition. */
static gl_status repeat(double *rate, double *calls, double least, bench_task task, void *self,
                        gl_error *err) {
  const double begun = seconds_now();
  double took = 0;
  gl_status status = GL_OK;
  *calls = 0;
  do {
    status = task(self, err);
    ++*calls;
    took = seconds_now() - begun;
  } while (status == GL_OK && took < least);
  *rate = *calls / took;
  return status;
}

/* What the repetitions of one row have come to. */
typedef struct turns {
  double rates[BENCH_REPETITIONS], calls;
  double least_s; /* processor seconds for one call */
  meter_reading sum;
} turns;

static gl_status take_turn(turns *t, size_t i, const bench_row *row, double least, gl_error *err) {
  double calls;
  const meter_reading before = meter_now(0);
  gl_status status = repeat(&t->rates[i], &calls, least, row->task, row->self, err);
  const meter_reading after = meter_now(0);
  t->rates[i] *= row->amount;
  t->calls += calls;
  const double own_s = (after.own_s - before.own_s) / calls;
  t->least_s = i == 0 ? own_s : fmin(t->least_s, own_s);
  meter_add(&t->sum, &before, &after);
  return status;
}

static size_t repetitions_of(const bench *b) {
  if (b->quick) return 1;
  return b->repetitions > 0 && b->repetitions < BENCH_REPETITIONS ? b->repetitions
                                                                  : BENCH_REPETITIONS;
}

gl_status bench_measure_in_turns(bench *b, bench_number *out[], const bench_row *rows, size_t n,
                                 double least, gl_error *err) {
  turns t[BENCH_MOST_ROWS] = {{.calls = 0}};
  gl_status status = GL_OK;
  for (size_t k = 0; k < n && status == GL_OK; ++k)
    status = bench_append(b, &out[k], rows[k].key, rows[k].what, err);
  if (status == GL_OK && time_is_up(b)) {
    for (size_t k = 0; k < n; ++k) late(out[k]->missing);
    return GL_OK;
  }
  for (size_t k = 0; k < n && status == GL_OK; ++k) status = rows[k].task(rows[k].self, err);
  const size_t repetitions = repetitions_of(b);
  for (size_t i = 0; i < repetitions; ++i)
    for (size_t k = 0; k < n && status == GL_OK; ++k)
      status = take_turn(&t[k], i, &rows[k], b->quick ? 0 : least, err);
  for (size_t k = 0; k < n && status == GL_OK; ++k) {
    const meter_load load = meter_load_of(&t[k].sum);
    out[k]->rate = bench_rate_of(t[k].rates, repetitions, load);
    out[k]->rate.own_s = t[k].sum.own_s / (t[k].calls * rows[k].amount);
    out[k]->rate.least_s = t[k].least_s / rows[k].amount;
    measured(b, out[k], NULL, load);
  }
  return status;
}

gl_status bench_measure(bench *b, bench_number **out, const char *key, const char *what,
                        double amount, double least, bench_task task, void *self, gl_error *err) {
  const bench_row row = {key, what, amount, task, self};
  return bench_measure_in_turns(b, out, &row, 1, least, err);
}

gl_status bench_speed_up(bench *b, const char *key, const bench_number *one,
                         const bench_number *many, double aim, const char *what, gl_error *err) {
  const double times = many->rate.median / one->rate.median;
  const int same = fabs(log(many->rate.own_s / one->rate.own_s)) <= log1p(BENCH_SAME_SPEED);
  return bench_derived(b, key, same ? times : NAN, one->rate.load, many->rate.load, aim, what, err);
}

gl_status bench_cost_ratio(bench *b, const char *key, const bench_number *of,
                           const bench_number *than, double aim, const char *what, gl_error *err) {
  return bench_derived(b, key, of->rate.least_s / than->rate.least_s, of->rate.load,
                       than->rate.load, aim, what, err);
}

/* --- others --- */

static bench_peer *append_peer(bench_number *number, const char *name, double aim) {
  if (number->n_peers == BENCH_MOST_PEERS) return NULL;
  bench_peer *peer = &number->peer[number->n_peers++];
  *peer = (bench_peer){.name = name, .aim = aim, .rate = bench_rate_of(NULL, 0, (meter_load){0})};
  return peer;
}

/* 1 if it is to be measured; else the reason is noted. */
static int may_measure(const bench *b, const bench_number *number, bench_peer *peer) {
  if (b->least_peer_s > 0 || (number->rate.n != 0 && !time_is_up(b))) return 1;
  late(peer->missing);
  return 0;
}

void bench_beside(bench_number *number, const char *name, double rate, double aim,
                  const char *note) {
  bench_peer *peer = append_peer(number, name, aim);
  if (peer == NULL) return;
  peer->rate = bench_rate_of(&rate, 1, (meter_load){0});
  snprintf(peer->note, sizeof peer->note, "%s", note);
}

void bench_start_python(const bench *b, peer_process *p, const char *script, size_t threads) {
  char text[24];
  snprintf(text, sizeof text, "%zu", threads);
  const char *const words[] = {b->python, "-u", script, text, NULL};
  if (b->python != NULL)
    peer_start(p, words, script);
  else
    *p = (peer_process){.why = "not asked for"};
}

void bench_ask(bench *b, bench_number *number, peer_process *p, const char *name,
               const char *request, double aim) {
  bench_peer *peer = append_peer(number, name, aim);
  if (peer == NULL || !may_measure(b, number, peer)) return;
  peer_answer a;
  const meter_reading before = meter_now(p->pid);
  peer_ask(p, request, fmax(b->end - seconds_now(), b->least_peer_s) + GRACE_S, &a);
  const meter_reading after = meter_now(p->pid);
  const meter_load load = meter_between(&before, &after);
  peer->rate = bench_rate_of(a.rates, a.n, load);
  memcpy(peer->missing, a.missing, sizeof peer->missing);
  memcpy(peer->note, a.note, sizeof peer->note);
  if (a.n > 0) measured(b, number, peer, load);
}

void bench_run_program(bench *b, bench_number *number, const char *path, const char *name,
                       double amount, double aim, int (*check)(const char *text)) {
  const char *const words[] = {path, NULL};
  double rates[BENCH_REPETITIONS];
  char text[4096];
  bench_peer *peer = append_peer(number, name, aim);
  if (peer == NULL || !may_measure(b, number, peer)) return;
  const meter_reading before = meter_now(0);
  size_t n = 0;
  for (size_t i = 0; i <= BENCH_REPETITIONS && peer->missing[0] == '\0'; ++i) {
    const double took =
        peer_run(words, b->end - seconds_now() + GRACE_S, text, sizeof text, peer->missing);
    if (peer->missing[0] == '\0' && !check(text))
      snprintf(peer->missing, sizeof peer->missing, "its answer was not understood");
    if (i > 0) rates[n++] = amount / took; /* the first run warms up */
  }
  const meter_reading after = meter_now(0);
  if (peer->missing[0] != '\0') return;
  const meter_load load = meter_between(&before, &after);
  peer->rate = bench_rate_of(rates, n, load);
  measured(b, number, peer, load);
}
