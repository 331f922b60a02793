/* The designs of a sweep: all that reads recipes knows where their paths stand. */
#include "core/config/fields.h"

#include "tests/support/recipes.h"
#include "tests/support/suite.h"

SUITE("core: config designs");

TEST(paths_of_designs_are_one_key_and_have_units) {
  check_resolved("{}", "sweep.cluster.max_delay=[1m, 2m]",
                 "{\"sweep\":{\"cluster.max_delay\":[60,120]}}");
  check_resolved("{}", "sweep.one_at_a_time.cluster.max_delay=[1m, 2m]",
                 "{\"sweep\":{\"one_at_a_time\":{\"cluster.max_delay\":[60,120]}}}");
  check_resolved(
      "{}", "sweep.factorial.factors.A.cluster.max_delay=[1m, 2m]",
      "{\"sweep\":{\"factorial\":{\"factors\":{\"A\":{\"cluster.max_delay\":[60,120]}}}}}");
  check_resolved("{}",
                 "sweep.random.fields.cluster.max_delay={distribution: uniform, from: 1m, to: 2m}",
                 "{\"sweep\":{\"random\":{\"fields\":{\"cluster.max_delay\":{\"distribution\":"
                 "\"uniform\",\"from\":60,\"to\":120}}}}}");
  check_resolved("{}", "tune.fields.cluster.max_delay=[1m, 2m]",
                 "{\"tune\":{\"fields\":{\"cluster.max_delay\":[60,120]}}}");
}

TEST(other_parts_of_designs_are_sections) {
  check_resolved("{}", "sweep.random.draws=3", "{\"sweep\":{\"random\":{\"draws\":3}}}");
  check_resolved("{}", "sweep.factorial.generators.D=ABC",
                 "{\"sweep\":{\"factorial\":{\"generators\":{\"D\":\"ABC\"}}}}");
  check_resolved("{}", "sweep.factorial.blocks.words=[AB]",
                 "{\"sweep\":{\"factorial\":{\"blocks\":{\"words\":[\"AB\"]}}}}");
  check_resolved("{}", "tune.halving.rungs=2", "{\"tune\":{\"halving\":{\"rungs\":2}}}");
}

/* A map below an axis is a range, which becomes a list; that of a design stays one. */
TEST(a_design_is_no_range) {
  check_resolved("{}", "sweep.steps={from: 1, to: 2, n: 2}", "{\"sweep\":{\"steps\":[1,2]}}");
  check_resolved("{}", "sweep.one_at_a_time={from: 1, to: 2, n: 2}",
                 "{\"sweep\":{\"one_at_a_time\":{\"from\":1,\"n\":2,\"to\":2}}}");
  check_resolved("{}", "sweep.random={draws: 2}", "{\"sweep\":{\"random\":{\"draws\":2}}}");
  check_resolved("{}", "sweep.factorial={blocks: 2}", "{\"sweep\":{\"factorial\":{\"blocks\":2}}}");
}

TEST(designs_are_known_by_their_whole_key) {
  CU_ASSERT_PTR_NOT_NULL(cfg_design_named("one_at_a_time"));
  CU_ASSERT_PTR_EQUAL(cfg_design_of("random.draws", 6), cfg_design_named("random"));
  CU_ASSERT_PTR_NULL(cfg_design_of("random.draws", 7));
  CU_ASSERT_PTR_NULL(cfg_design_named("randomly"));
  CU_ASSERT_PTR_NULL(cfg_design_named("rand"));
  CU_ASSERT_PTR_NULL(cfg_design_named(""));
}
