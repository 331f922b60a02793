/* Evaluation sets of toy worlds: what they leave out is the evaluation's, what they change is as in
 * a world that has it itself. */
#include "tests/support/toy_fixture.h"

SUITE("toy: evaluation sets");

#define SEQUENCE "kind: sequence, vocabulary: 3, horizon: 3, prompts: 4"

/* A learner whose parameters are not the first ones. */
static learner_fixture moved(const char *text) {
  learner_fixture l = learner_open(text, 5);
  fixture_normals(l.toy->theta, l.toy->world->features.n_parameters, 1, 1);
  ++l.toy->stamp;
  return l;
}

/* All scores of the evaluation into score, which has room for them; how many. */
static size_t scores_of(learner_fixture *l, double *score) {
  size_t n = 0;
  gl_error err = {0};
  l->learner.ops->parts(l->toy, &n);
  CU_ASSERT_EQUAL_FATAL(l->learner.ops->evaluate_parts(l->toy, score, &err), GL_OK);
  return n;
}

static double score_in(const char *world) {
  char text[600];
  snprintf(text, sizeof text, "world: {%s}\nalgorithm: gepo\n", world);
  learner_fixture l = moved(text);
  const double score = learner_score(&l);
  return score;
}

TEST(each_set_is_scored_as_the_world_that_it_describes) {
  double score[8];
  learner_fixture l = moved(
      "world: {" SEQUENCE ", task: sum_mod, evaluation: {temperature: 0.7, sets: [{name: own}, "
      "{name: sharp, temperature: 0.2, top_k: 2}, {name: greedy, kind: greedy}, {name: other, "
      "world: {task: sorted}}, {name: two, prompts: [1, 3]}, {name: one, prompts: [1]}, {name: "
      "last, prompts: [3]}]}}\nalgorithm: gepo\n");
  CU_ASSERT_EQUAL_FATAL(scores_of(&l, score), 7);
  CU_ASSERT(score[0] == score_in(SEQUENCE ", task: sum_mod, evaluation: {temperature: 0.7}"));
  CU_ASSERT(score[1] ==
            score_in(SEQUENCE ", task: sum_mod, evaluation: {temperature: 0.2, top_k: 2}"));
  CU_ASSERT(score[2] == score_in(SEQUENCE ", task: sum_mod, evaluation: greedy"));
  CU_ASSERT(score[3] == score_in(SEQUENCE ", task: sorted, evaluation: {temperature: 0.7}"));
  ASSERT_CLOSE(score[4], (score[5] + score[6]) / 2, 1e-14);
  CU_ASSERT(score[5] != score[6] && score[0] != score[3]);
  CU_ASSERT(learner_score(&l) == score[0]); /* the first is the run's */
}

TEST(halves_are_every_other_prompt) {
  double score[9];
  learner_fixture l = moved("world: {" SEQUENCE ", evaluation: {halves: true, sets: [{name: all}, "
                            "{name: even, prompts: [0, 2]}, {name: odd, prompts: [1, 3]}]}}\n"
                            "algorithm: gepo\n");
  CU_ASSERT_EQUAL_FATAL(scores_of(&l, score), 9);
  CU_ASSERT(score[1] == score[3] && score[2] == score[6] && score[1] != score[2]);
  ASSERT_CLOSE(score[0], (score[1] + score[2]) / 2, 1e-14);
}

TEST(rewards_of_a_counted_world_may_have_more_states) {
  double score[2];
  learner_fixture l = moved(
      "world: {kind: automaton, vocabulary: 3, horizon: 4, prompts: 2, automaton: count, modulus: "
      "2, evaluation: {sets: [{name: own}, {name: five, world: {modulus: 5}}]}}\n"
      "algorithm: gepo\n");
  CU_ASSERT_EQUAL_FATAL(scores_of(&l, score), 2);
  CU_ASSERT(score[1] == score_in("kind: automaton, vocabulary: 3, horizon: 4, prompts: 2, "
                                 "automaton: count, modulus: 5"));
}

TEST(sets_that_do_not_fit_are_refused_at_their_place) {
  static const struct {
    const char *set, *says;
  } cases[] = {{"{name: a, promts: [0]}", "did you mean 'prompts'"},
               {"{name: a, prompts: [4]}", "from 0 to 3"},
               {"{name: a, prompts: [0, 0]}", "each once"},
               {"{name: a, prompts: [0.5]}", "whole numbers"},
               {"{name: a, prompts: []}", "at least one number"},
               {"{name: a, kind: sampled}", "one of exact, greedy"},
               {"{name: a, kind: greedy, top_k: 2}", "changes nothing in a greedy"},
               {"{name: a, world: {kind: bandit}}", "leave kind out"},
               {"{name: a, world: {policy: {kind: tabular}}}", "leave policy out"},
               {"{name: a, world: parity}", "a map of the fields"},
               {"{name: a, world: {horizon: 4}}", "change rewards or the task, not sizes"},
               {"{name: a, world: {tsk: parity}}", "did you mean 'task'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[600];
    gl_error err = {0};
    learner_fixture l;
    snprintf(text, sizeof text,
             "world: {" SEQUENCE ", evaluation: {sets: [%s]}}\nalgorithm: gepo\n", cases[i].set);
    const gl_status status = learner_try(&l, text, 1, &err);
    const int right = status == GL_EINPUT && strncmp(err.text, "r.yaml:1:", 9) == 0 &&
                      strstr(err.text, cases[i].says) != NULL;
    if (!right) fprintf(stderr, "%s\n  %s\n", cases[i].set, err.text);
    CU_ASSERT(right);
    learner_close(&l);
  }
}

TEST(one_prompt_cannot_be_halved) {
  gl_error err = {0};
  learner_fixture l;
  CU_ASSERT_EQUAL(learner_try(&l,
                              "world: {kind: bandit, arms: 3, evaluation: {halves: true}}\n"
                              "algorithm: gepo\n",
                              1, &err),
                  GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "to be halved"));
  learner_close(&l);
}
