/* Programs beside ours, played by shells: answers are read, and one that is late, dies, says
 * something else or is not there is told and never waited for again. */
#include "experiments/bench/peer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void start(peer_process *p, const char *script) {
  const char *const words[] = {"sh", "-c", script, NULL};
  peer_start(p, words, NULL);
}

static void requests_are_answered_in_turn(void) {
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

static void a_reason_is_an_answer_and_the_peer_goes_on(void) {
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

static void a_peer_that_is_late_is_ended(void) {
  peer_process p;
  start(&p, "sleep 600; echo '{\"rates\": [1]}'");
  fails(&p, 0.1, "no answer within");
}

static void a_peer_that_dies_is_told(void) {
  peer_process p;
  start(&p, "read x; exit 3");
  fails(&p, 20, "ended with code 3");
  start(&p, "read x; kill -9 $$");
  fails(&p, 20, "signal 9");
}

static void other_answers_are_not_taken(void) {
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

static void what_is_not_installed_or_not_here_is_said(void) {
  static const char *const words[] = {"/no/such/python", NULL};
  peer_process p;
  peer_start(&p, words, NULL);
  fails(&p, 20, "not installed");
  peer_start(&p, words, "no/such/script.py");
  fails(&p, 20, "no/such/script.py");
}

static void a_program_is_run_to_its_end(void) {
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

SUITE(peer, "bench: peers", TEST(requests_are_answered_in_turn),
      TEST(a_reason_is_an_answer_and_the_peer_goes_on), TEST(a_peer_that_is_late_is_ended),
      TEST(a_peer_that_dies_is_told), TEST(other_answers_are_not_taken),
      TEST(what_is_not_installed_or_not_here_is_said), TEST(a_program_is_run_to_its_end));
