/* Measurement: the machine's other load, repetitions and their statistics, and other programs for
 * comparison (peers). */
#include "experiments/bench/bench.h"

#include "core/base/array.h"
#include "core/base/json.h"
#include "experiments/base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- processor time of the machine, of others and of ourselves --- */

enum { STAT_TEXT = 65536 };

/* --- texts of the system --- */

gl_status meter_read_machine(meter_reading *out, const char *text, double ticks_per_s,
                             gl_error *err) {
  enum { USER, NICE, SYSTEM, IDLE, WAITING, INTERRUPTS, SOFT_INTERRUPTS, STEAL, N };
  double ticks[N];
  size_t cores = 0;
  if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[USER], &ticks[NICE],
             &ticks[SYSTEM], &ticks[IDLE], &ticks[WAITING], &ticks[INTERRUPTS],
             &ticks[SOFT_INTERRUPTS], &ticks[STEAL]) != N)
    return gl_fail(err, GL_EINPUT, "/proc/stat does not begin with the times of all cores");
  for (const char *line = strstr(text, "\ncpu"); line != NULL; line = strstr(line + 1, "\ncpu"))
    ++cores;
  if (cores == 0 || !(ticks_per_s > 0))
    return gl_fail(err, GL_EINPUT, "/proc/stat names no core, or ticks have no length");
  out->cores = (double)cores;
  out->steal_s = ticks[STEAL] / ticks_per_s;
  out->busy_s =
      (ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[INTERRUPTS] + ticks[SOFT_INTERRUPTS]) /
      ticks_per_s;
  return GL_OK;
}

/* The process name, in parentheses, may contain anything, so fields are counted from the last
 * parenthesis. */
double meter_read_process(const char *text, double ticks_per_s) {
  double user, system, children_user, children_system;
  const char *rest = strrchr(text, ')');
  if (rest == NULL || sscanf(rest, ") %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %lf",
                             &user, &system, &children_user, &children_system) != 4)
    return NAN;
  return (user + system + children_user + children_system) / ticks_per_s;
}

/* --- now --- */

static int meter_read_text(const char *path, char text[STAT_TEXT]) {
  FILE *from = fopen(path, "r");
  if (from == NULL) return 0;
  const size_t n = fread(text, 1, STAT_TEXT - 1, from);
  text[n] = '\0';
  fclose(from);
  return n > 0;
}

static double used_by(int who) {
  struct rusage r;
  if (getrusage(who, &r) != 0) return NAN;
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
         1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

meter_reading meter_now(pid_t child) {
  char text[STAT_TEXT], path[64];
  const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
  meter_reading r = {.busy_s = NAN, .steal_s = NAN, .cores = NAN, .wall_s = seconds_now()};
  if (meter_read_text("/proc/stat", text)) (void)meter_read_machine(&r, text, ticks_per_s, NULL);
  r.own_s = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
  if (child > 0) {
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)child);
    r.own_s += meter_read_text(path, text) ? meter_read_process(text, ticks_per_s) : 0;
  }
  return r;
}

/* --- between two readings --- */

static double meter_fraction_of(double seconds, double whole) {
  return isnan(seconds) || !(whole > 0) ? NAN : fmin(fmax(seconds, 0) / whole, 1);
}

void meter_add(meter_reading *sum, const meter_reading *before, const meter_reading *after) {
  sum->wall_s += after->wall_s - before->wall_s;
  sum->busy_s += after->busy_s - before->busy_s;
  sum->steal_s += after->steal_s - before->steal_s;
  sum->own_s += after->own_s - before->own_s;
  sum->cores = after->cores;
}

meter_load meter_load_of(const meter_reading *sum) {
  const double whole = sum->wall_s * sum->cores;
  return (meter_load){meter_fraction_of(sum->busy_s - sum->own_s, whole),
                      meter_fraction_of(sum->steal_s, whole)};
}

meter_load meter_between(const meter_reading *before, const meter_reading *after) {
  meter_reading sum = {0};
  meter_add(&sum, before, after);
  return meter_load_of(&sum);
}

int meter_is_quiet(meter_load load) {
  return load.others + load.steal <= METER_MOST; /* false for NaN */
}

meter_load meter_heavier(meter_load a, meter_load b) {
  const double x = a.others + a.steal, y = b.others + b.steal;
  if (isnan(x)) return a;
  return isnan(y) || y > x ? b : a;
}

/* --- peers: other programs that are measured for comparison --- */

enum { ANSWER_TEXT = 4096, NOT_STARTED = 127 };

/* --- processes --- */

/* Runs the peer's program in the child process, with the socket as its standard input and
 * output. */
static _Noreturn void become(const char *const *words, int line, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(NOT_STARTED);
  setpgid(0, 0);
  const char *log = getenv("GEPOLAB_PEER_LOG");
  const int errors = open(log != NULL ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (errors >= 0) dup2(errors, STDERR_FILENO);
  dup2(line, STDIN_FILENO);
  dup2(line, STDOUT_FILENO);
  execvp(words[0], (char *const *)words);
  _exit(NOT_STARTED);
}

static void peer_begin(peer_process *p, const char *const *words) {
  int ends[2];
  const pid_t parent = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    snprintf(p->why, sizeof p->why, "no socket: %s", strerror(errno));
    return;
  }
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) become(words, ends[1], parent);
  close(ends[1]);
  if (pid < 0) {
    snprintf(p->why, sizeof p->why, "no process: %s", strerror(errno));
    close(ends[0]);
    return;
  }
  setpgid(pid, pid);
  *p = (peer_process){.pid = pid, .line = ends[0]};
}

/* Ends the process and returns its exit status. */
static int peer_finish(peer_process *p, int force) {
  int how = 0;
  if (force) {
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL); /* it may not yet be the leader of a process group */
  }
  close(p->line);
  while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) continue;
  p->pid = 0;
  return how;
}

/* Explains why the process has ended. */
static void explain(char *why, const char *name, int how) {
  if (WIFEXITED(how) && WEXITSTATUS(how) == NOT_STARTED)
    snprintf(why, PEER_TEXT, "%.80s is not installed", name);
  else if (WIFSIGNALED(how))
    snprintf(why, PEER_TEXT, "%.80s was ended by signal %d", name, WTERMSIG(how));
  else
    snprintf(why, PEER_TEXT, "%.80s ended with code %d", name, WEXITSTATUS(how));
}

/* Reads until a newline (whole 0) or the end of the stream, at most size - 1 bytes; further ones
 * are dropped. Returns 1: read; 0: the stream ended first; -1: timeout. */
static int read_answer(int line, char *text, size_t size, double seconds, int whole) {
  const double end = seconds_now() + seconds;
  size_t used = 0;
  text[0] = '\0';
  for (;;) {
    const double left = end - seconds_now();
    struct pollfd p = {.fd = line, .events = POLLIN};
    char more[512];
    if (left <= 0) return -1;
    const int ready = poll(&p, 1, left < 1e6 ? (int)(1000 * left) + 1 : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return -1;
    const ssize_t got = read(line, more, sizeof more);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return whole;
    for (ssize_t i = 0; i < got; ++i) {
      if (!whole && more[i] == '\n') return 1;
      if (used + 1 < size) text[used++] = more[i];
      text[used] = '\0';
    }
  }
}

/* --- a script that answers --- */

/* Suspends the process and its children, and waits until it is suspended. A running peer would
 * disturb measurements of other programs: libraries like PyTorch need seconds to load, and their
 * idle threads spin. (If the process has ended, the next request detects it.) */
static void peer_hold(const peer_process *p) {
  siginfo_t seen;
  kill(-p->pid, SIGSTOP);
  while (waitid(P_PID, (id_t)p->pid, &seen, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR)
    continue;
}

static void let_go_on(const peer_process *p) {
  kill(-p->pid, SIGCONT);
}

void peer_start(peer_process *p, const char *const *words, const char *script) {
  *p = (peer_process){.pid = 0};
  if (script != NULL && access(script, R_OK) != 0)
    snprintf(p->why, sizeof p->why, "%.100s is not here", script);
  else
    peer_begin(p, words);
  if (p->pid != 0) peer_hold(p);
}

void peer_end(peer_process *p) {
  if (p->pid != 0) (void)peer_finish(p, 1);
}

static void peer_copy_text(char to[PEER_TEXT], const cJSON *from, const char *key) {
  const cJSON *item = cJSON_GetObjectItem(from, key);
  if (cJSON_IsString(item)) snprintf(to, PEER_TEXT, "%s", item->valuestring);
}

/* Parses a line; returns 1 if it was an answer. */
static int understand(peer_answer *a, const char *text) {
  cJSON *answer = json_tree_of(text);
  const cJSON *rates = cJSON_GetObjectItem(answer, "rates"), *rate = NULL;
  peer_copy_text(a->missing, answer, "missing");
  peer_copy_text(a->note, answer, "note");
  cJSON_ArrayForEach(rate, rates) {
    if (a->n < PEER_MOST_RATES && cJSON_IsNumber(rate) && rate->valuedouble > 0)
      a->rates[a->n++] = rate->valuedouble;
  }
  cJSON_Delete(answer);
  return a->n > 0 || a->missing[0] != '\0';
}

void peer_ask(peer_process *p, const char *request, double seconds, peer_answer *a) {
  char text[ANSWER_TEXT];
  *a = (peer_answer){.n = 0};
  if (p->pid != 0) {
    const int sent = snprintf(text, sizeof text, "%s\n", request);
    let_go_on(p);
    const ssize_t written = send(p->line, text, (size_t)sent, MSG_NOSIGNAL);
    const int got = written != sent ? 0 : read_answer(p->line, text, sizeof text, seconds, 0);
    if (got == 1 && understand(a, text)) {
      peer_hold(p);
      return;
    }
    const int how = peer_finish(p, got != 0);
    if (got < 0)
      snprintf(p->why, sizeof p->why, "no answer within %.0f s", seconds);
    else if (got > 0)
      snprintf(p->why, sizeof p->why, "the answer was not understood");
    else
      explain(p->why, "the program", how);
  }
  snprintf(a->missing, sizeof a->missing, "%s", p->why);
}

/* --- a program that runs to its end --- */

double peer_run(const char *const *words, double seconds, char *text, size_t size, char *why) {
  peer_process p = {.pid = 0};
  const double begun = seconds_now();
  why[0] = '\0';
  peer_begin(&p, words);
  if (p.pid == 0) {
    snprintf(why, PEER_TEXT, "%s", p.why);
    return NAN;
  }
  const int got = read_answer(p.line, text, size, seconds, 1);
  const int how = peer_finish(&p, got < 0);
  const double took = seconds_now() - begun;
  if (got < 0)
    snprintf(why, PEER_TEXT, "not done within %.0f s", seconds);
  else if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
    explain(why, words[0], how);
  return why[0] == '\0' ? took : NAN;
}

/* --- measuring, and arithmetic of measurements --- */

/* A peer that does not answer is killed this long after the benchmark's time limit. */
#define GRACE_S 30.0

/* --- the arithmetic --- */

bench_rate bench_rate_of(double *rates, size_t n, meter_load load) {
  if (n == 0)
    return (bench_rate){
        .median = NAN, .low = NAN, .high = NAN, .load = load, .own_s = NAN, .least_s = NAN};
  qsort(rates, n, sizeof *rates, order_real);
  return (bench_rate){.median = (rates[(n - 1) / 2] + rates[n / 2]) / 2,
                      .low = rates[0],
                      .high = rates[n - 1],
                      .n = n,
                      .load = load,
                      .own_s = NAN,
                      .least_s = NAN};
}

double bench_ratio(const bench_number *number, const bench_peer *peer, int takes_busy,
                   int *withheld) {
  *withheld = 0;
  if (number->rate.n == 0 || peer->rate.n == 0) return NAN;
  *withheld =
      !takes_busy && (!meter_is_quiet(number->rate.load) || !meter_is_quiet(peer->rate.load));
  return *withheld ? NAN : number->rate.median / peer->rate.median;
}

size_t bench_withheld(const bench *b) {
  size_t n = 0;
  for (size_t i = 0; i < b->n; ++i)
    for (size_t k = 0; k < b->numbers[i].n_peers; ++k) {
      int withheld;
      (void)bench_ratio(&b->numbers[i], &b->numbers[i].peer[k], b->takes_busy, &withheld);
      n += (size_t)withheld;
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

gl_status bench_derived(bench *b, const char *key, double value, meter_load load, double aim,
                        const char *what, gl_error *err) {
  return bench_fact(b, key, meter_is_quiet(load) || b->takes_busy ? value : NAN, aim, what, err);
}

static int time_is_up(const bench *b) {
  return seconds_now() >= b->end;
}

/* Records that there was no time left to measure a rate. */
static void late(char missing[PEER_TEXT]) {
  snprintf(missing, PEER_TEXT, "no time left");
}

static void measured(bench *b, const bench_number *number, const bench_peer *peer,
                     meter_load load) {
  b->load = meter_heavier(b->load, load);
  if (b->report != NULL) b->report(number, peer);
}

/* Measures one repetition: number of calls, and calls per second. */
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

/* The accumulated results of one row's repetitions. */
typedef struct turns {
  double rates[BENCH_REPETITIONS], calls;
  double least_s; /* minimum processor seconds per call */
  meter_reading sum;
} turns;

/* Makes repetition i of a row, and adds its processor time and the machine's load. */
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

gl_status bench_measure(bench *b, bench_number **out, bench_row row, double least, gl_error *err) {
  return bench_measure_in_turns(b, out, &row, 1, least, err);
}

/* Maximum relative difference of the processor time for the same work, for two rates to be
 * compared. */
static const double SAME_SPEED = 0.15;

gl_status bench_speed_up(bench *b, const char *key, const bench_number *one,
                         const bench_number *many, double aim, const char *what, gl_error *err) {
  const double times = many->rate.median / one->rate.median;
  const int same = fabs(log(many->rate.own_s / one->rate.own_s)) <= log1p(SAME_SPEED);
  const meter_load load = meter_heavier(one->rate.load, many->rate.load);
  return bench_derived(b, key, same ? times : NAN, load, aim, what, err);
}

gl_status bench_cost_ratio(bench *b, const char *key, const bench_number *of,
                           const bench_number *than, double aim, const char *what, gl_error *err) {
  const meter_load load = meter_heavier(of->rate.load, than->rate.load);
  return bench_derived(b, key, of->rate.least_s / than->rate.least_s, load, aim, what, err);
}

/* --- others --- */

static bench_peer *append_peer(bench_number *number, const char *name, double aim) {
  if (number->n_peers == BENCH_MOST_PEERS) return NULL;
  bench_peer *peer = &number->peer[number->n_peers++];
  *peer = (bench_peer){.name = name, .aim = aim, .rate = bench_rate_of(NULL, 0, (meter_load){0})};
  return peer;
}

/* 1 if the peer is to be measured; otherwise records the reason. */
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
    if (i > 0) rates[n++] = amount / took; /* the first run is a warm-up */
  }
  const meter_reading after = meter_now(0);
  if (peer->missing[0] != '\0') return;
  const meter_load load = meter_between(&before, &after);
  peer->rate = bench_rate_of(rates, n, load);
  measured(b, number, peer, load);
}
