/* Tortures build/gepolab: kills it, starves it, damages its files, and looks whether it keeps what
 * ARCHITECTURE.md promises.
 *
 *   gepolab-torture [--seconds N] [--seed S] [--only 'FAMILY[: CASE]'] [--trial N] [--trials N]
 *                   [--gepolab PATH] [--asan PATH] [--clock PATH] [--contract] [--list] [--verbose]
 *
 * Every trial is drawn from (seed, family, number): the line that a failure prints repeats it
 * alone. The folder of a failure is kept, with its commands in the file `commands`. Ends with a
 * table of trials and with 1 if any failed. */
#define _GNU_SOURCE
#include "tests/torture/files.h"
#include "tests/torture/process.h"
#include "tests/torture/torture.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAMILIES = 32 };

typedef struct tally {
  uint64_t trials, failures, skipped;
  double seconds;
  const char *missing; /* why the family is left out */
  char reason[128];    /* of a skipped trial */
} tally;

typedef struct asked {
  double seconds;
  uint64_t trials; /* of each family; 0: as time allows */
  int64_t trial;   /* only this one; -1: all */
  int contract, list;
} asked;

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

static int is_asked(const session *s, const family *f) {
  const size_t n = strlen(f->name);
  if (s->only == NULL) return 1;
  return strncmp(s->only, f->name, n) == 0 && (s->only[n] == '\0' || s->only[n] == ':');
}

static void doctor_print_failure(const session *s, const trial *t) {
  printf("\nFAILED %s%s%s, trial %" PRIu64 ": %s\n", t->family, t->chosen[0] != '\0' ? ": " : "",
         t->chosen, t->number, t->what);
  printf("  again:  build/gepolab-torture --seed %" PRIu64 " --only '%s' --trial %" PRIu64
         " --gepolab %s%s%s%s%s\n",
         s->seed, s->only != NULL ? s->only : t->family, t->number, s->gepolab,
         s->asan[0] != '\0' ? " --asan " : "", s->asan, s->clock[0] != '\0' ? " --clock " : "",
         s->clock);
  printf("  folder: %s (its commands in the file of that name)\n", t->folder);
  fflush(stdout);
}

/* One trial of the family, counted. */
static void try(const session *s, const family *f, tally *count, uint64_t number) {
  trial t;
  const double begun = now_s();
  trial_run(&t, s, f, number);
  count->seconds += now_s() - begun;
  ++count->trials;
  if (t.what[0] != '\0') {
    ++count->failures;
    doctor_print_failure(s, &t);
  } else if (t.skipped[0] != '\0') {
    ++count->skipped;
    snprintf(count->reason, sizeof count->reason, "%s", t.skipped);
  }
  if (s->verbose)
    fprintf(stderr, "%s %" PRIu64 ": %s %.2f s %s\n", f->name, number, t.chosen, now_s() - begun,
            t.what[0] != '\0' ? "FAILED" : t.skipped);
}

/* The family that has had the smallest share of the time; NULL: none is left. */
static const family *next_family(const session *s, tally *count, uint64_t most) {
  const family *next = NULL;
  double least = 0;
  for (const family *f = families; f->name != NULL; ++f) {
    const tally *c = &count[f - families];
    if (!is_asked(s, f) || c->missing != NULL || (most > 0 && c->trials >= most)) continue;
    const double share = c->seconds / f->weight;
    if (next == NULL || share < least) next = f, least = share;
  }
  return next;
}

static void run_all(const session *s, const asked *a, tally *count) {
  const double until = now_s() + a->seconds;
  double spoken = now_s();
  for (const family *f = families; f->name != NULL; ++f)
    if (is_asked(s, f) && f->missing != NULL) count[f - families].missing = f->missing(s);
  while (!stopped && (a->trials > 0 || now_s() < until)) {
    const family *f = next_family(s, count, a->trials);
    if (f == NULL) break;
    try(s, f, &count[f - families], count[f - families].trials);
    if (now_s() - spoken < 60) continue;
    spoken = now_s();
    uint64_t trials = 0, failures = 0;
    for (const family *g = families; g->name != NULL; ++g)
      trials += count[g - families].trials, failures += count[g - families].failures;
    printf("%.0f s left, %" PRIu64 " trials, %" PRIu64 " failures\n", until - now_s(), trials,
           failures);
    fflush(stdout);
  }
}

static int print_table(const session *s, const tally *count) {
  uint64_t failures = 0, trials = 0, skipped = 0;
  double seconds = 0;
  printf("\n%-12s %8s %9s %8s %9s  %s\n", "family", "trials", "failures", "skipped", "seconds",
         "what");
  for (const family *f = families; f->name != NULL; ++f) {
    const tally *c = &count[f - families];
    if (!is_asked(s, f)) continue;
    printf("%-12s %8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %9.1f  %s%s%s\n", f->name, c->trials,
           c->failures, c->skipped, c->seconds, f->about,
           c->missing != NULL || c->skipped > 0 ? "; skipped: " : "",
           c->missing != NULL ? c->missing : c->reason);
    failures += c->failures, trials += c->trials, skipped += c->skipped, seconds += c->seconds;
  }
  printf("%-12s %8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %9.1f  seed %" PRIu64 "\n", "all", trials,
         failures, skipped, seconds, s->seed);
  return failures > 0;
}

/* --- options --- */

static void absolute(char to[TORTURE_PATH], const char *path) {
  char whole[PATH_MAX];
  to[0] = '\0';
  if (realpath(path, whole) != NULL && strlen(whole) < TORTURE_PATH) strcpy(to, whole);
}

static int read_options(session *s, asked *a, int argc, char **argv) {
  static const struct option options[] = {
      {"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'S'},    {"only", 1, NULL, 'o'},
      {"trial", 1, NULL, 't'},   {"trials", 1, NULL, 'n'},  {"gepolab", 1, NULL, 'g'},
      {"asan", 1, NULL, 'a'},    {"clock", 1, NULL, 'c'},   {"contract", 0, NULL, 'C'},
      {"list", 0, NULL, 'l'},    {"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
  int c;
  absolute(s->gepolab, "build/gepolab");
  while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) switch (c) {
    case 's':
      a->seconds = atof(optarg);
      break;
    case 'S':
      s->seed = strtoull(optarg, NULL, 10);
      break;
    case 'o':
      s->only = optarg[0] != '\0' ? optarg : NULL;
      break;
    case 't':
      a->trial = atoll(optarg);
      break;
    case 'n':
      a->trials = strtoull(optarg, NULL, 10);
      break;
    case 'g':
      absolute(s->gepolab, optarg);
      break;
    case 'a':
      absolute(s->asan, optarg);
      break;
    case 'c':
      absolute(s->clock, optarg);
      break;
    case 'C':
      a->contract = 1;
      break;
    case 'l':
      a->list = 1;
      break;
    case 'v':
      s->verbose = 1;
      break;
    default:
      return -1;
    }
  if (optind == argc && s->gepolab[0] != '\0') return 0;
  fprintf(stderr, "gepolab-torture: %s\n", s->gepolab[0] != '\0' ? "only options" : "no gepolab");
  return -1;
}

static int list_families(void) {
  for (const family *f = families; f->name != NULL; ++f) printf("%-12s %s\n", f->name, f->about);
  return 0;
}

int main(int argc, char **argv) {
  session s = {.seed = (uint64_t)time(NULL)};
  asked a = {.seconds = 60, .trial = -1};
  tally count[MOST_FAMILIES] = {{0}};
  char why[TORTURE_TEXT];
  if (read_options(&s, &a, argc, argv) != 0) return 2;
  if (a.list) return list_families();
  if (a.contract) return contract_check(&s, "ARCHITECTURE.md") > 0;
  printf("seed %" PRIu64 ", %.0f s, %s%s%s\n", s.seed, a.seconds, s.gepolab,
         s.asan[0] != '\0' ? ", " : "", s.asan);
  fflush(stdout);
  signal(SIGINT, stop);
  signal(SIGTERM, stop);
  signal(SIGPIPE, SIG_IGN);
  int failed = contract_check(&s, "ARCHITECTURE.md") > 0;
  if (session_begin(&s, why) != 0) {
    fprintf(stderr, "gepolab-torture: undisturbed already: %s (%s is kept)\n", why, s.root);
    session_end(&s, 1);
    return 1;
  }
  if (a.trial < 0) {
    run_all(&s, &a, count);
  } else {
    for (const family *f = families; f->name != NULL; ++f)
      if (is_asked(&s, f)) try(&s, f, &count[f - families], (uint64_t)a.trial);
  }
  failed |= print_table(&s, count);
  session_end(&s, failed);
  return failed;
}
