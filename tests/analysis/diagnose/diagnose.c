/* Logs with one planted cause, and the same logs without it. */
#include "analysis/diagnose/diagnose.h"
#include "tests/support/made_log.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

SUITE("analysis: diagnosis");

static diagnosis *diagnosed(const made_plan *plan) {
  const diagnose_request request = {.trainer = "gepolab"};
  diagnosis *d = NULL;
  ASSERT_OK(diagnosis_new(&d, &request, &err));
  for (size_t u = 0; u < plan->updates; ++u) {
    made_update m = made_update_of(plan, u);
    m.batch.in = &m.in;
    ASSERT_OK(diagnosis_add_batch(d, &m.batch, &err));
    made_update_fini(&m);
  }
  ASSERT_OK(diagnosis_finish(d, &err));
  return d;
}

static void check_first(const made_plan *plan, diagnose_cause cause) {
  diagnosis *d = diagnosed(plan);
  const diagnose_finding *found = NULL;
  const size_t n = diagnosis_findings(d, &found);
  CU_ASSERT_EQUAL_FATAL(n, 1);
  CU_ASSERT_STRING_EQUAL(diagnose_cause_name(found[0].cause), diagnose_cause_name(cause));
  CU_ASSERT(found[0].severity > 1 && found[0].measured.low > 0);
  diagnosis_free(d);
}

static void check_none(const made_plan *plan) {
  diagnosis *d = diagnosed(plan);
  const diagnose_finding *found = NULL;
  CU_ASSERT_EQUAL(diagnosis_findings(d, &found), 0);
  diagnosis_free(d);
}

TEST(a_healthy_log_shows_no_cause) {
  const made_plan healthy = made_healthy();
  check_none(&healthy);
}

TEST(every_planted_cause_of_a_token_log_is_named_alone) {
  for (int c = CAUSE_MISMATCH; c <= CAUSE_DISCARD; ++c) {
    const made_plan plan = made_with((diagnose_cause)c);
    check_first(&plan, (diagnose_cause)c);
  }
}

/* Alike in all else: each quantity just on the other side of its limit. */
TEST(logs_within_the_limits_show_nothing) {
  made_plan p = made_healthy();
  p.floor = 1.5e-3; /* E exp(|l|) - 1 is about sqrt(2 v / pi) = 0.044, v = 0.003 */
  check_none(&p);
  p = made_with(CAUSE_AGE);
  p.slope = 0.003; /* mean lag of about 3: 0.009 nats */
  check_none(&p);
  p = made_with(CAUSE_RATE);
  p.slope = 0.005;
  check_none(&p);
  p = made_with(CAUSE_SMALL_BATCH);
  p.groups = 5;
  check_none(&p);
  p = made_with(CAUSE_DISCARD);
  p.dropped_length = 1; /* as many are dropped, and they are as long as the others */
  check_none(&p);
}

/* --- what is not a number --- */

static char *section_text(const diagnosis *d, diagnose_section section) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  table *t = table_document();
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  ASSERT_OK(diagnosis_section(t, d, section, &err));
  ASSERT_OK(table_write(t, TABLE_AS_TEXT, to, &err));
  fclose(to);
  table_free(t);
  return text;
}

static void check_text(const diagnosis *d, diagnose_section section, const char *has) {
  char *text = section_text(d, section);
  if (strstr(text, has) == NULL) fprintf(stderr, "no '%s' in\n%s\n", has, text);
  CU_ASSERT_PTR_NOT_NULL(strstr(text, has));
  free(text);
}

/* A token that is not finite is left out and counted; one whose ratio overflows, too. */
TEST(tokens_that_are_not_finite_are_counted_on_the_page) {
  const made_plan plan = made_healthy();
  const diagnose_request request = {.trainer = "gepolab"};
  const diagnose_finding *found = NULL;
  diagnosis *d = NULL;
  ASSERT_OK(diagnosis_new(&d, &request, &err));
  for (size_t u = 0; u < plan.updates; ++u) {
    made_update m = made_update_of(&plan, u);
    m.batch.in = &m.in;
    m.memory[0] = u == 0 ? -INFINITY : u == 1 ? NAN : u == 2 ? -2000 : m.memory[0];
    ASSERT_OK(diagnosis_add_batch(d, &m.batch, &err));
    made_update_fini(&m);
  }
  ASSERT_OK(diagnosis_finish(d, &err));
  check_text(d, DIAGNOSE_READ, "tokens left out: log-probability not finite");
  CU_ASSERT_EQUAL(diagnosis_findings(d, &found), 0);
  diagnosis_free(d);
}

/* Rewards that are missing are not zeros. */
TEST(a_log_without_rewards_has_no_small_batch) {
  made_plan plan = made_with(CAUSE_SMALL_BATCH);
  const diagnose_request request = {.trainer = "prime_rl"};
  const diagnose_finding *found = NULL;
  diagnosis *d = NULL;
  plan.groups = 12;
  ASSERT_OK(diagnosis_new(&d, &request, &err));
  for (size_t u = 0; u < plan.updates; ++u) {
    made_update m = made_update_of(&plan, u);
    double *advantage = calloc(m.in.n_responses, sizeof *advantage);
    CU_ASSERT_PTR_NOT_NULL_FATAL(advantage);
    for (size_t i = 0; i < m.in.n_responses; ++i) {
      advantage[i] = m.in.reward[i] - 0.5;
      ((double *)(uintptr_t)m.in.reward)[i] = NAN;
    }
    m.in.advantage = advantage;
    m.batch.in = &m.in;
    ASSERT_OK(diagnosis_add_batch(d, &m.batch, &err));
    free(advantage);
    made_update_fini(&m);
  }
  ASSERT_OK(diagnosis_finish(d, &err));
  CU_ASSERT_EQUAL(diagnosis_findings(d, &found), 0);
  check_text(d, DIAGNOSE_WEIGHTS, "responses with a signal in an update");
  diagnosis_free(d);
}

TEST(nothing_added_is_refused) {
  const diagnose_request request = {.trainer = NULL};
  gl_error why = {0};
  diagnosis *d = NULL;
  ASSERT_OK(diagnosis_new(&d, &request, &err));
  CU_ASSERT_EQUAL(diagnosis_finish(d, &why), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "nothing in the logs"));
  diagnosis_free(d);
}
