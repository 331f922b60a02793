/* Logs with one planted cause, and the same logs without it. */
#include "analysis/diagnose/diagnose.h"
#include "tests/support/made_log.h"
#include "tests/support/suite.h"

#include <math.h>

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

static void a_healthy_log_shows_no_cause(void) {
  const made_plan healthy = made_healthy();
  check_none(&healthy);
}

static void every_planted_cause_of_a_token_log_is_named_alone(void) {
  for (int c = CAUSE_MISMATCH; c <= CAUSE_DISCARD; ++c) {
    const made_plan plan = made_with((diagnose_cause)c);
    check_first(&plan, (diagnose_cause)c);
  }
}

/* Alike in all else: each quantity just on the other side of its limit. */
static void logs_within_the_limits_show_nothing(void) {
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

SUITE(diagnosis_suite_of, "analysis: diagnosis", TEST(a_healthy_log_shows_no_cause),
      TEST(every_planted_cause_of_a_token_log_is_named_alone),
      TEST(logs_within_the_limits_show_nothing));
