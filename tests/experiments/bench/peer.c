/* Programs beside ours, played by shells: answers are read, and one that is late, dies, says
 * something else or is not there is told and never waited for again. */
#include "experiments/bench/bench.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

SUITE("bench: peers");

static void start(peer_process *p, const char *script) {
  const char *const words[] = {"sh", "-c", script, NULL};
  peer_start(p, words, NULL);
}

TEST(requests_are_answered_in_turn) {
  peer_process p;
  peer_answer a;
  start(&p,
        "while read a b; do echo \"{\\\"rates\\\": [$a, 2.5], \\\"note\\\": \\\"$b\\\"}\"; done");
  peer_ask(&p, "3 first", 20, &a);
  CU_ASSERT_EQUAL(a.n, 2);
  CU_ASSERT_EQUAL(a.rates[0], 3);
  CU_ASSERT_EQUAL(a.rates[1], 2.5);
  CU_ASSERT_STRING_EQUAL(a.note, "first");
  CU_ASSERT_STRING_EQUAL(a.missing, "");
  peer_ask(&p, "4 second", 20, &a);
  CU_ASSERT_EQUAL(a.rates[0], 4);
  CU_ASSERT_STRING_EQUAL(a.note, "second");
  peer_end(&p);
}

TEST(a_reason_is_an_answer_and_the_peer_goes_on) {
  peer_process p;
  peer_answer a;
  start(&p, "read x; echo '{\"missing\": \"no torch\"}'; read x; echo '{\"rates\": [1]}'");
  peer_ask(&p, "a", 20, &a);
  CU_ASSERT_EQUAL(a.n, 0);
  CU_ASSERT_STRING_EQUAL(a.missing, "no torch");
  peer_ask(&p, "b", 20, &a);
  CU_ASSERT_EQUAL(a.n, 1);
  peer_end(&p);
}

/* What the system says of a process: its state, a letter, and its processor time in ticks. */
static char look_at(pid_t pid, double *ticks) {
  char path[64], text[1024] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *from = fopen(path, "r");
  if (from == NULL) return '?';
  text[fread(text, 1, sizeof text - 1, from)] = '\0';
  fclose(from);
  const char *rest = strrchr(text, ')');
  *ticks = meter_read_process(text, 1);
  return rest != NULL && strlen(rest) > 2 ? rest[2] : '?';
}

/* A signal reaches a process that the machine is not running at the moment only when it runs. */
static int comes_to_stand_still(pid_t pid) {
  double ticks;
  for (int i = 0; i < 500 && look_at(pid, &ticks) != 'T'; ++i)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  return look_at(pid, &ticks) == 'T';
}

/* 1 if the process got no processor time while this one used 50 ms of it, as a measurement does. */
static int takes_nothing_beside_us(pid_t pid) {
  double before = NAN, after = NAN;
  const clock_t begun = clock();
  (void)look_at(pid, &before);
  while (clock() - begun < CLOCKS_PER_SEC / 20) continue;
  (void)look_at(pid, &after);
  return before == after;
}

/* The shell works on and on by itself, as Python does while it loads a library, and so does what it
 * has started. Between requests both stand still. */
TEST(a_peer_runs_only_while_it_is_asked) {
  peer_process p;
  peer_answer a;
  start(&p, "while :; do :; done & while read x; do echo \"{\\\"rates\\\": [1], \\\"note\\\": "
            "\\\"$!\\\"}\"; done; while :; do :; done");
  CU_ASSERT(comes_to_stand_still(p.pid));
  CU_ASSERT(takes_nothing_beside_us(p.pid));
  for (int i = 0; i < 2; ++i) {
    peer_ask(&p, "a", 20, &a);
    CU_ASSERT_EQUAL(a.n, 1);
    const pid_t started = (pid_t)strtol(a.note, NULL, 10);
    CU_ASSERT(comes_to_stand_still(p.pid) && comes_to_stand_still(started));
    CU_ASSERT(takes_nothing_beside_us(p.pid) && takes_nothing_beside_us(started));
  }
  peer_end(&p);
}

/* Asks twice; both times the reason must hold those words. */
static void fails(peer_process *p, double seconds, const char *words) {
  peer_answer a;
  const pid_t pid = p->pid;
  for (int i = 0; i < 2; ++i) {
    peer_ask(p, "a", seconds, &a);
    CU_ASSERT_EQUAL(a.n, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.missing, words));
    CU_ASSERT_EQUAL(p->pid, 0);
  }
  if (pid != 0) CU_ASSERT(kill(pid, 0) != 0 && errno == ESRCH);
  peer_end(p);
}

TEST(a_peer_that_is_late_is_ended) {
  peer_process p;
  start(&p, "sleep 600; echo '{\"rates\": [1]}'");
  fails(&p, 0.1, "no answer within");
}

TEST(a_peer_that_dies_is_told) {
  peer_process p;
  start(&p, "read x; exit 3");
  fails(&p, 20, "ended with code 3");
  start(&p, "read x; kill -9 $$");
  fails(&p, 20, "signal 9");
}

TEST(other_answers_are_not_taken) {
  static const char *const answers[] = {
      "hello", "{}", "[1, 2]", "{\"rates\": []}", "{\"rates\": [0, -1]}", "{\"rates\": \"fast\"}"};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; ++i) {
    char script[128];
    peer_process p;
    snprintf(script, sizeof script, "read x; echo '%s'; read x", answers[i]);
    start(&p, script);
    fails(&p, 20, "not understood");
  }
}

TEST(what_is_not_installed_or_not_here_is_said) {
  static const char *const words[] = {"/no/such/python", NULL};
  peer_process p;
  peer_start(&p, words, NULL);
  fails(&p, 20, "not installed");
  peer_start(&p, words, "no/such/script.py");
  fails(&p, 20, "no/such/script.py");
}

TEST(a_program_is_run_to_its_end) {
  static const char *const good[] = {"sh", "-c", "echo one; echo two", NULL};
  static const char *const bad[] = {"sh", "-c", "echo one; exit 4", NULL};
  static const char *const slow[] = {"sh", "-c", "exec sleep 600", NULL};
  static const char *const none[] = {"/no/such/program", NULL};
  char text[64], why[PEER_TEXT];
  CU_ASSERT(peer_run(good, 20, text, sizeof text, why) > 0);
  CU_ASSERT_STRING_EQUAL(text, "one\ntwo\n");
  CU_ASSERT_STRING_EQUAL(why, "");
  CU_ASSERT(isnan(peer_run(bad, 20, text, sizeof text, why)));
  CU_ASSERT_PTR_NOT_NULL(strstr(why, "code 4"));
  CU_ASSERT(isnan(peer_run(slow, 0.1, text, sizeof text, why)));
  CU_ASSERT_PTR_NOT_NULL(strstr(why, "not done within"));
  CU_ASSERT(isnan(peer_run(none, 20, text, sizeof text, why)));
  CU_ASSERT_PTR_NOT_NULL(strstr(why, "not installed"));
}
