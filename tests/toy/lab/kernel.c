/* Which algorithms the exact laboratory factors: those on its list of what it may, no others. */
#include "toy/lab/kernel.h"
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/world/toy_world.h"

#include <string.h>

SUITE("lab: factored kernels");

typedef struct fixture {
  cfg_doc *doc;
  toy_world *world;
  enumerable view;
  double learner[4], sampler[4];
} fixture;

static void fixture_init(fixture *f) {
  static const char text[] = "world: {kind: bandit, rewards: [1, 0, 0.5, 0.2]}\n";
  static const double p[] = {0.55, 0.25, 0.15, 0.05}, q[] = {0.10, 0.20, 0.30, 0.40};
  memset(f, 0, sizeof *f);
  ASSERT_OK(cfg_load_text(&f->doc, text, strlen(text), "test", &err));
  ASSERT_OK(toy_world_new(&f->world, cfg_find(cfg_root(f->doc), "world"), NULL, 1, &err));
  f->view = toy_world_enumerable(f->world);
  CU_ASSERT_EQUAL_FATAL(f->view.n_parameters, 4);
  ASSERT_OK(toy_world_set_probs(f->world, 0, p, 4, f->learner, &err));
  ASSERT_OK(toy_world_set_probs(f->world, 0, q, 4, f->sampler, &err));
}

static void fixture_fini(fixture *f) {
  toy_world_free(f->world);
  cfg_free(f->doc);
}

static int is_factored(const fixture *f, const policy_algorithm *algorithm) {
  lab_tables tables;
  lab_form form = {0};
  gl_error err = {.status = GL_OK};
  int fast = 0;
  policy_workspace *ws = policy_workspace_new();
  CU_ASSERT_EQUAL_FATAL(
      lab_tables_init(&tables, &f->view, 0, f->learner, f->sampler, LAB_WEIGHTS_RAW, &err), GL_OK);
  lab_form_init(&form, &fast, algorithm, &tables, ws, &err);
  lab_form_fini(&form);
  lab_tables_fini(&tables);
  policy_workspace_free(ws);
  return fast;
}

static lab_result measure(const fixture *f, const policy_algorithm *algorithm) {
  const lab_spec spec = {.world = &f->view,
                         .theta_learner = f->learner,
                         .theta_sampler = f->sampler,
                         .group_size = 3,
                         .budget = 1000,
                         .threads = 1};
  lab_result out;
  ASSERT_OK(lab_measure(&out, &algorithm, 1, &spec, &err));
  return out;
}

/* Nobody gives the laboratory entropies: it says so instead of measuring something else. */
TEST(what_needs_entropies_is_not_applicable) {
  policy_algorithm a = *policy_algorithms_find("grpo");
  fixture f;
  fixture_init(&f);
  a.top_entropy = 0.5;
  lab_result r = measure(&f, &a);
  CU_ASSERT_EQUAL(r.applicable, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.why, "top_entropy"));
  lab_result_fini(&r);
  fixture_fini(&f);
}

/* Every field of these is on the list; were one missing, none would be factored. */
TEST(what_is_on_the_list_is_factored) {
  static const char *const names[] = {"reinforce", "is",   "tis",  "snis",  "defensive", "grpo",
                                      "gspo",      "gepo", "eqp",  "cispo", "topr",      "vtrace",
                                      "ctpo",      "mhpo", "sapo", "vespo", "gmpo"};
  fixture f;
  fixture_init(&f);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    CU_ASSERT(is_factored(&f, policy_algorithms_find(names[i])));
  fixture_fini(&f);
}

TEST(a_value_that_is_not_on_the_list_is_not_factored) {
  fixture f;
  fixture_init(&f);
  policy_algorithm a = *policy_algorithms_find("is");
  a.ratio = (policy_ratio)RATIO_COUNT;
  CU_ASSERT(!is_factored(&f, &a));
  lab_result r = measure(&f, &a);
  CU_ASSERT(!r.applicable && strstr(r.why, "ratio") != NULL);
  lab_result_fini(&r);
  for (size_t i = 0; i < policy_fields_count(); i++) {
    const policy_field *field = policy_fields_at(i);
    if (field->kind != POLICY_FIELD_CHOICE) continue;
    a = *policy_algorithms_find("is");
    *(int *)(void *)((char *)&a + field->offset) = field->n_choices;
    CU_ASSERT(!is_factored(&f, &a));
    r = measure(&f, &a);
    CU_ASSERT(!r.applicable && strstr(r.why, field->name) != NULL);
    lab_result_fini(&r);
  }
  a = *policy_algorithms_find("m2po"); /* its choice of tokens looks at the whole group */
  CU_ASSERT(!is_factored(&f, &a));
  fixture_fini(&f);
}

/* On a batch's first update p and the proximal policy are one: all ratios are 1, normalised or not.
 * The kernels only know the sampler's probabilities, so groups have to be enumerated. */
TEST(a_proximal_denominator_is_enumerated) {
  fixture f;
  fixture_init(&f);
  policy_algorithm a = *policy_algorithms_find("snis");
  a.old_policy = OLD_PROXIMAL;
  CU_ASSERT(!is_factored(&f, &a));
  lab_result mine = measure(&f, &a), plain = measure(&f, policy_algorithms_find("reinforce"));
  CU_ASSERT(mine.applicable && plain.applicable);
  ASSERT_CLOSE(mine.numbers.iw_mean, 1, 1e-14);
  for (size_t i = 0; i < 4; i++) ASSERT_CLOSE(mine.expected[i], plain.expected[i], 1e-15);
  lab_result_fini(&mine);
  lab_result_fini(&plain);
  fixture_fini(&f);
}
