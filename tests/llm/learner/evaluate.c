/* Evaluation sets of a transformer: each is scored as the evaluation of a world that has what the
 * set says, the first one with the same draws as without sets; wrong ones are refused. */
#include "tests/support/llm_learner_fixture.h"

SUITE("llm: evaluation sets");

#define TINY                                                                                       \
  "kind: llm, backend: cpu, dtype: float64, model: {layers: 1, hidden: 16, heads: 2, context: 24}"
#define SORT "task: {kind: sorting, length: 3, values: 4, reward: graded, cut_off: score}"
#define SAMPLED "kind: sampled, prompts: 12, samples: 2"

/* A learner with parameters that do not depend on the task. */
static llm_fixture moved(const char *world) {
  char text[1200];
  snprintf(text, sizeof text, "world: {" TINY ", %s}\nalgorithm: gepo\n", world);
  llm_fixture f = llm_open(text, 3);
  llm_jitter(&f, 0.3, 0);
  return f;
}

static size_t scores_of(llm_fixture *f, double *score) {
  size_t n = 0;
  gl_error err = {0};
  f->learner.ops->parts(f->llm, &n);
  CU_ASSERT_EQUAL_FATAL(f->learner.ops->evaluate_parts(f->llm, score, &err), GL_OK);
  return n;
}

static double score_in(const char *world) {
  llm_fixture f = moved(world);
  const double score = llm_score(&f);
  return score;
}

/* The tokenizer is the world's, so greedy answers of a set are those of a world with its task that
 * has the same letters. */
TEST(each_set_is_scored_as_the_world_that_it_describes) {
  double score[6];
  llm_fixture f = moved(SORT ", max_tokens: 4, evaluation: {" SAMPLED ", sets: [{name: own}, "
                             "{name: greedy, kind: greedy}, {name: long, kind: greedy, task: "
                             "{length: 5}}, {name: short, kind: greedy, max_tokens: 2}, {name: "
                             "few, kind: greedy, prompts: 3}, {name: again}]}");
  CU_ASSERT_EQUAL_FATAL(scores_of(&f, score), 6);
  CU_ASSERT(score[0] == score_in(SORT ", max_tokens: 4, evaluation: {" SAMPLED "}"));
  CU_ASSERT(score[1] == score_in(SORT ", max_tokens: 4, evaluation: {prompts: 12}"));
  CU_ASSERT(score[2] == score_in("task: {kind: sorting, length: 5, values: 4, reward: graded, "
                                 "cut_off: score}, max_tokens: 6, evaluation: {prompts: 12}"));
  CU_ASSERT(score[3] == score_in(SORT ", max_tokens: 2, evaluation: {prompts: 12}"));
  CU_ASSERT(score[4] == score_in(SORT ", max_tokens: 4, evaluation: {prompts: 3}"));
  CU_ASSERT(score[5] != score[0]); /* the same problems at draws of its own */
  CU_ASSERT(llm_score(&f) == score[0]);
  CU_ASSERT(score[0] > 0);
}

TEST(halves_are_every_other_problem_and_do_not_change_the_whole) {
  double score[3], plain;
  llm_fixture f = moved(SORT ", max_tokens: 4, evaluation: {" SAMPLED ", halves: true}");
  CU_ASSERT_EQUAL_FATAL(scores_of(&f, score), 3);
  plain = score_in(SORT ", max_tokens: 4, evaluation: {" SAMPLED "}");
  CU_ASSERT(score[0] == plain);
  ASSERT_CLOSE(score[0], (score[1] + score[2]) / 2, 1e-14);
  CU_ASSERT(score[1] != score[2]);
}

/* What sets do is not seen by what is trained. */
TEST(training_goes_on_the_same_with_sets_and_without) {
  double metrics[2][METRIC_COUNT], *theta[2];
  for (int sets = 0; sets < 2; ++sets) {
    llm_fixture f =
        moved(sets ? SORT ", evaluation: {halves: true, sets: [{name: a}, {name: b, task: {length: "
                          "4}}]}"
                   : SORT ", evaluation: {prompts: 128}");
    double score[6];
    if (sets) scores_of(&f, score);
    llm_train(&f, 0, 3, metrics[sets]);
    theta[sets] = llm_theta(&f);
    CU_ASSERT(memcmp(metrics[0], metrics[sets], sizeof metrics[0]) == 0);
    CU_ASSERT(memcmp(theta[0], theta[sets], f.n * sizeof **theta) == 0);
  }
}

TEST(threads_and_devices_do_not_change_scores) {
  static const char *const worlds[] = {"devices: 1", "devices: 2"};
  double score[4][6];
  for (size_t i = 0; i < 4; ++i) {
    char text[900];
    snprintf(text, sizeof text,
             "world: {" TINY ", %s, " SORT ", evaluation: {" SAMPLED
             ", halves: true, sets: [{name: a}, {name: b, task: {length: 5}}]}}\nalgorithm: gepo\n",
             worlds[i / 2]);
    llm_fixture f = llm_open_with(text, (llm_choice){.seed = 3, .threads = 1 + i % 2});
    CU_ASSERT_EQUAL_FATAL(scores_of(&f, score[i]), 6);
    CU_ASSERT(memcmp(score[0], score[i], sizeof score[0]) == 0);
  }
}

TEST(a_broken_model_has_no_scores) {
  double score[3] = {0, 0, 0};
  llm_fixture f = moved(SORT ", evaluation: {halves: true}");
  double *theta = llm_theta(&f);
  for (size_t i = 0; i < f.n; ++i) theta[i] = NAN;
  llm_set(&f, theta);
  scores_of(&f, score);
  CU_ASSERT(isnan(score[0]) && isnan(score[1]) && isnan(score[2]));
}

TEST(wrong_sets_are_refused_at_their_place) {
  static const struct {
    const char *set, *says;
  } cases[] = {
      {"{name: a, tsk: {length: 4}}", "did you mean 'task'"},
      {"{name: a, task: {lenght: 4}}", "did you mean 'length'"},
      {"{name: a, task: {kind: sortin}}", "did you mean 'sorting'"},
      {"{name: a, task: parity}", "a map of the fields"},
      {"{name: a, task: {kind: addition}}", "the tokenizer cannot write the evaluation set 'a'"},
      {"{name: a, task: {length: 20, values: 4}}", "do not fit into the model's context"},
      {"{name: a, max_tokens: 24}", "do not fit into the model's context"},
      {"{name: a, task: {held_out: 0}}", "no held-out problems"},
      {"{name: a, samples: 2}", "say kind: sampled"},
      {"{name: a, kind: exact}", "one of greedy, sampled"},
      {"{name: a, prompts: 0}", "from 1"},
      {"{name: a, world: {}}", "unknown key 'world'"},
      {"{name: a}, {name: a}", "that of an earlier set"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[900];
    gl_error err = {0};
    llm_fixture f;
    snprintf(text, sizeof text,
             "world: {" TINY ", " SORT ", evaluation: {sets: [%s]}}\nalgorithm: gepo\n",
             cases[i].set);
    const gl_status status = llm_try(&f, text, (llm_choice){.seed = 1}, 1, &err);
    const int right = status == GL_EINPUT && strncmp(err.text, "r.yaml:1:", 9) == 0 &&
                      strstr(err.text, cases[i].says) != NULL;
    if (!right) fprintf(stderr, "%s\n  %s\n", cases[i].set, err.text);
    CU_ASSERT(right);
    cfg_free(f.doc);
  }
}
