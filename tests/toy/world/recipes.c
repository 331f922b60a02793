/* Wrong recipes of toy worlds: each is refused at its place, with the reason and the nearest name.
 */
#include "tests/support/toy_fixture.h"

SUITE("toy: wrong recipes");

typedef struct wrong {
  const char *text, *place, *says;
} wrong;

#define BANDIT "world: {kind: bandit, "
#define SEQUENCE "world: {kind: sequence, "

static const wrong recipes[] = {
    {"world: {kind: bandid}", "1:15: ", "did you mean 'bandit'"},
    {"world: {kind: [bandit]}", "1:15: ", "is a list"},
    {"world: bandit", "1:8: ", "must be a map"},
    {BANDIT "arm: 3}", "1:23: ", "did you mean 'arms'"},
    {BANDIT "arms: 0}", "1:29: ", "from 1 to"},
    {BANDIT "contexts: -1}", "1:33: ", "from 1 to"},
    {BANDIT "rewards: []}", "1:32: ", "a number per arm"},
    {BANDIT "rewards: 3}", "1:32: ", "a number per arm"},
    {BANDIT "rewards: [1, high]}", "1:36: ", "finite number"},
    {BANDIT "rewards: [1, .inf]}", "1:36: ", "finite number"},
    {BANDIT "rewards: [[1, 2], [3]]}", "1:41: ", "list of 2 numbers"},
    {BANDIT "rewards: [[1, 2], 3]}", "1:41: ", "list of 2 numbers"},
    {BANDIT "rewards: [1, 2], arms: 3}", "1:46: ", "rewards has 2"},
    {BANDIT "rewards: [[1], [2]], contexts: 3}", "1:54: ", "rewards has 2 lists"},
    {BANDIT "rewards: {distribution: gaussian}}", "1:47: ", "uniform, normal, bernoulli"},
    {BANDIT "rewards: {distributon: normal}}", "1:33: ", "did you mean 'distribution'"},
    {BANDIT "rewards: {distribution: normal, sd: -1}}", "1:59: ", "from 0"},
    {BANDIT "arms: 200000, contexts: 1000000}", "1:8: ", "fewer prompts"},
    {BANDIT "rewards: {distribution: uniform, low: 2, high: 1}}",
     "1:61: ", "must not be above high"},
    {BANDIT "noise: bernouli}", "1:30: ", "did you mean 'bernoulli'"},
    {BANDIT "noise: -0.5}", "1:30: ", "0 or more"},
    {BANDIT "rewards: [2, 0], noise: bernoulli}", "1:47: ", "[0, 1]"},
    {BANDIT "evaluation: gready}", "1:35: ", "did you mean 'greedy'"},
    {BANDIT "evaluation: sampled}", "1:35: ", "one of exact, greedy"},
    {BANDIT "evaluation: {kind: gready}}", "1:42: ", "did you mean 'greedy'"},
    {BANDIT "evaluation: {topk: 1}}", "1:36: ", "did you mean 'top_k'"},
    {BANDIT "evaluation: {temperature: 0}}", "1:49: ", "above 0"},
    {BANDIT "evaluation: {top_p: 0}}", "1:43: ", "would keep no token"},
    {BANDIT "evaluation: {kind: greedy, top_k: 2}}", "1:57: ", "changes nothing in a greedy"},
    {BANDIT "evaluation: [exact]}", "1:35: ", "must be a map"},
    {SEQUENCE "vocabulry: 3}", "1:25: ", "did you mean 'vocabulary'"},
    {SEQUENCE "vocabulary: 0}", "1:37: ", "from 1 to"},
    {SEQUENCE "vocabulary: 10, horizon: 12}", "1:50: ", "smaller"},
    {SEQUENCE "vocabulary: 200000, prompts: 1000}", "1:37: ", "smaller"},
    {SEQUENCE "vocabulary: 1000, prompts: 1000000, horizon: 1}", "1:8: ", "fewer prompts"},
    {SEQUENCE "end_token: maybe}", "1:36: ", "true or false"},
    {SEQUENCE "task: partiy}", "1:31: ", "did you mean 'parity'"},
    {SEQUENCE "reward: grade}", "1:33: ", "did you mean 'graded'"},
    {SEQUENCE "needle_length: 5}", "1:40: ", "from 1 to 4"},
    {SEQUENCE "modulus: 0}", "1:34: ", "from 1 to"},
    {SEQUENCE "arms: 3}", "1:25: ", "unknown key 'arms'"},
    {SEQUENCE "policy: {kind: tabula}}", "1:40: ", "did you mean 'tabular'"},
    {SEQUENCE "policy: {featurs: []}}", "1:34: ", "did you mean 'features'"},
    {SEQUENCE "policy: {features: [last]}}", "1:44: ", "use kind: loglinear"},
    {SEQUENCE "policy: {kind: loglinear, features: []}}", "1:61: ", "empty list"},
    {SEQUENCE "policy: {kind: loglinear, features: [last, promt*sum]}}",
     "1:68: ", "did you mean 'prompt'"},
    {SEQUENCE "policy: {kind: loglinear, features: [last*]}}", "1:62: ", "'' is no feature"},
    {SEQUENCE "policy: {kind: loglinear, features: [{last: 1}]}}", "1:62: ", "is no feature"},
    {SEQUENCE "policy: {kind: loglinear, features: [prompt*last*last*last*last*last*last*last*sum"
              "]}}",
     "1:62: ", "up to 8"},
    {SEQUENCE "prompts: 1000, policy: {kind: loglinear, features: [prompt*last*last*last*last*last"
              "*last*last]}}",
     "1:76: ", "fewer or smaller"},
    {SEQUENCE "policy: {kind: loglinear, features: randon}}", "1:61: ", "did you mean 'random'"},
    {SEQUENCE "policy: {kind: loglinear, features: random, dimension: 0}}", "1:80: ", "from 1"},
    {SEQUENCE "prompts: 4000, policy: {kind: loglinear, features: random, dimension: 60000}}",
     "1:76: ", "fewer or smaller"},
    {SEQUENCE "policy: {kind: loglinear, features: [[1], [2]]}}", "1:61: ", "340"},
    {BANDIT "arms: 2, policy: {kind: loglinear, features: [[1, 2], [3]]}}",
     "1:77: ", "list of 2 features"},
    {BANDIT "arms: 2, policy: {kind: loglinear, features: [[1], [x]]}}", "1:75: ", "finite number"},
    {SEQUENCE "policy: {hash: -1}}", "1:40: ", "from 0 to"},
    {SEQUENCE "policy: {reference: intial}}", "1:45: ", "did you mean 'initial'"},
    {SEQUENCE "policy: {init: {kind: normale}}}", "1:47: ", "did you mean 'normal'"},
    {SEQUENCE "policy: {init: {scale: -1}}}", "1:48: ", "from 0"},
    {BANDIT "policy: {init: {kind: probs}}}", "1:38: ", "a list of 10 probabilities"},
    {BANDIT "arms: 2, policy: {init: {kind: probs, probs: [0.5]}}}", "1:68: ", "one per response"},
    {BANDIT "arms: 2, policy: {init: {kind: probs, probs: [1, 0]}}}", "1:72: ", "above 0"},
    {BANDIT "arms: 2, policy: {init: {kind: probs, probs: [0.5, 0.6]}}}", "1:68: ", "sum to 1.1"},
    {BANDIT "arms: 2, contexts: 2, policy: {init: {kind: probs, probs: [[1, 1]]}}}",
     "1:81: ", "1 lists for 2 prompts"},
    {BANDIT "arms: 2}\nsampling: {topk: 3}", "2:12: ", "did you mean 'top_k'"},
    {BANDIT "arms: 2}\noptimizer: {kind: sgdd}", "2:19: ", "did you mean 'sgd'"},
    {BANDIT "arms: 2}\noptimizer:\n  lr: quick", "3:7: ", "is text"},
};

TEST(every_wrong_toy_recipe_is_refused_at_its_place) {
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; ++i) {
    const wrong *w = recipes + i;
    learner_fixture f;
    gl_error err = {0};
    char place[64];
    snprintf(place, sizeof place, "r.yaml:%s", w->place);
    gl_status status = learner_try(&f, w->text, 1, &err);
    int ok = status == GL_EINPUT && strncmp(err.text, place, strlen(place)) == 0 &&
             strstr(err.text, w->says) != NULL;
    if (!ok)
      fprintf(stderr, "'%s' wanted '%s..%s', gave '%s'\n", w->text, place, w->says, err.text);
    CU_ASSERT(ok);
    learner_close(&f);
  }
}

TEST(impossible_training_shapes_are_refused) {
  static const wrong table[] = {
      {"{groups: 0}", "", "1 or more"},
      {"{group_size: 0}", "", "1 or more"},
      {"{epochs: 0}", "", "1 or more"},
      {"{groups: 2, minibatches: 3}", "", "only 2 groups"},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    char text[128];
    learner_fixture f;
    gl_error err = {0};
    snprintf(text, sizeof text, "world: {kind: bandit}\ntrain: %s", table[i].text);
    CU_ASSERT(learner_try(&f, text, 1, &err) == GL_EINPUT);
    CU_ASSERT(strstr(err.text, table[i].says) != NULL);
    learner_close(&f);
  }
}

TEST(kinds_of_worlds_are_known_by_name) {
  const char *about = NULL;
  CU_ASSERT(toy_is_kind("bandit") && toy_is_kind("sequence"));
  CU_ASSERT_STRING_EQUAL(toy_kind_at(0, &about), "bandit");
  CU_ASSERT(about != NULL && strlen(about) > 10);
  for (size_t i = 0; toy_kind_at(i, NULL) != NULL; ++i)
    CU_ASSERT(toy_is_kind(toy_kind_at(i, NULL)));
  CU_ASSERT(!toy_is_kind("llm") && !toy_is_kind("") && !toy_is_kind(NULL));
}
