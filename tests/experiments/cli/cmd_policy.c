/* gepolab policy. */
#include "tests/support/cli.h"
#include "tests/support/files.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("cli: policy");

/* gepolab policy against numbers worked out by hand, and its messages. */

static cJSON *evaluate(const char *group, const char *const *arguments) {
  cli_result r = cli_run(group, arguments);
  if (r.code != 0) fprintf(stderr, "%s", r.err);
  CU_ASSERT_EQUAL(r.code, 0);
  cJSON *json = json_parsed(r.out);
  CU_ASSERT_PTR_NOT_NULL_FATAL(json);
  return json;
}
#define EVALUATE(group, ...) evaluate(group, (const char *const[]){"policy", __VA_ARGS__, NULL})

static double at2(const cJSON *json, const char *key, int i, int t) {
  const cJSON *row = cJSON_GetArrayItem(member_at(json, key), i);
  const cJSON *value = cJSON_GetArrayItem(row, t);
  return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static double at1(const cJSON *json, const char *key, int i) {
  const cJSON *value = cJSON_GetArrayItem(member_at(json, key), i);
  return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* Two responses; log P/Q is ln 2 for the first and 0 for the second. */
static const char pair[] = "{\"rewards\": [1, 0], \"logp\": [[-1, -0.30685281944005469], [-2]],"
                           " \"logq\": [[-1, -1], [-2]]}";

/* is: A = r - mean of the others = 1, -1; w = P/Q = 2, 1; c = A w / G. */
TEST(importance_sampling_is_advantage_times_ratio_over_g) {
  cJSON *j = EVALUATE(pair, "--algorithm", "is", "-", "--json");
  ASSERT_CLOSE(at1(j, "advantages", 0), 1, 1e-15);
  ASSERT_CLOSE(at1(j, "advantages", 1), -1, 1e-15);
  ASSERT_CLOSE(at2(j, "weights", 0, 0), 2, 1e-14);
  ASSERT_CLOSE(at2(j, "weights", 0, 1), 2, 1e-14);
  ASSERT_CLOSE(at2(j, "weights", 1, 0), 1, 1e-14);
  ASSERT_CLOSE(at2(j, "coefficients", 0, 0), 1, 1e-14);
  ASSERT_CLOSE(at2(j, "coefficients", 0, 1), 1, 1e-14);
  ASSERT_CLOSE(at2(j, "coefficients", 1, 0), -0.5, 1e-14);
  CU_ASSERT(cJSON_IsNumber(member_at(j, "loss")));
  CU_ASSERT_EQUAL(cJSON_GetArraySize(cJSON_GetArrayItem(member_at(j, "coefficients"), 0)), 2);
  ASSERT_CLOSE(number_at(j, "reward_mean"), 0.5, 1e-15);
  ASSERT_CLOSE(number_at(j, "iw_max"), 2, 1e-14);
}

/* dr_grpo: A = r - group mean = 0.5, -0.5; token ratios 1, 2 and 1, of which 2 is above 1.2 with a
 * positive advantage and so clipped; c = A w / (G max_length) with max_length 4. */
TEST(dr_grpo_clips_tokens_and_divides_by_the_longest_length) {
  const char group[] = "{\"rewards\": [1, 0], \"logp\": [[-1, -0.30685281944005469], [-2]],"
                       " \"logq\": [[-1, -1], [-2]], \"max_length\": 4}";
  cJSON *j = EVALUATE(group, "--algorithm", "dr_grpo", "-", "--json");
  ASSERT_CLOSE(at2(j, "coefficients", 0, 0), 0.5 / 8, 1e-14);
  ASSERT_CLOSE(at2(j, "coefficients", 0, 1), 0, 1e-14);
  ASSERT_CLOSE(at2(j, "coefficients", 1, 0), -0.5 / 8, 1e-14);
  cJSON *open = EVALUATE(group, "--algorithm", "dr_grpo", "clip=none", "-", "--json");
  ASSERT_CLOSE(at2(open, "coefficients", 0, 1), 0.5 * 2 / 8, 1e-14);
}

/* gepo, single tokens, log_prob sum: Q = 1/2, 1/4; E = (1/4 + 1/16) / (3/4) = 5/12; P = 3/8, 1/4:
 * w = 0.9, 0.6; A = 0.5, -0.5; without clipping c = A w / G. */
TEST(gepo_divides_by_the_self_normalised_group_expectation) {
  const char group[] = "{\"rewards\": [1, 0], \"logp\": [[-0.98082925301172623], "
                       "[-1.3862943611198906]], \"logq\": [[-0.69314718055994531], "
                       "[-1.3862943611198906]]}";
  cJSON *j = EVALUATE(group, "-a", "gepo", "log_prob=sum", "clip=none", "-", "--json");
  ASSERT_CLOSE(at2(j, "weights", 0, 0), 0.9, 1e-13);
  ASSERT_CLOSE(at2(j, "weights", 1, 0), 0.6, 1e-13);
  ASSERT_CLOSE(at2(j, "coefficients", 0, 0), 0.5 * 0.9 / 2, 1e-13);
  ASSERT_CLOSE(at2(j, "coefficients", 1, 0), -0.5 * 0.6 / 2, 1e-13);
  cJSON *same = EVALUATE(group, "-a", "{base: gepo, log_prob: sum, clip: none}", "-", "--json");
  CU_ASSERT(cJSON_Compare(member_at(j, "coefficients"), member_at(same, "coefficients"), 1));
}

/* Two equal groups: the batch's coefficients are those of one, halved. */
TEST(several_groups_share_the_average) {
  char two[512];
  snprintf(two, sizeof two, "{\"groups\": [%s, %s]}", pair, pair);
  cJSON *one = EVALUATE(pair, "-a", "is", "-", "--json");
  cJSON *both = EVALUATE(two, "-a", "is", "-", "--json");
  const cJSON *groups = member_at(both, "groups");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(groups), 2);
  for (int g = 0; g < 2; ++g)
    for (int i = 0; i < 2; ++i)
      ASSERT_CLOSE(at2(cJSON_GetArrayItem(groups, g), "coefficients", i, 0),
                   at2(one, "coefficients", i, 0) / 2, 1e-14);
}

typedef struct bad_group {
  const char *text, *place, *says;
} bad_group;

TEST(bad_groups_are_refused_with_place_and_array) {
  const bad_group bad[] = {
      {"{\"rewards\": [1, 0],\n \"logp\": [[-1], [-2]\n", ":3:1:", "not JSON"},
      {"{\"rewards\": [1, 0,], \"logp\": [[-1]], \"logq\": [[-1]]}", ":1:19:", "not JSON"},
      {"rewards: [1]", ":1:1:", "not JSON"},
      {"", ":1:1:", "not JSON"},
      {"{\"logp\": [[-1]], \"logq\": [[-1]]}", ":1:1:", "rewards is missing"},
      {"{\"rewards\": [1], \"logp\": [[-1]]}", ":1:1:", "logq is missing"},
      {"{\"rewards\": [1], \"logq\": [[-1]]}", ":1:1:", "logp is missing"},
      {"{\"rewards\": [1, 0], \"logp\": [[-1]], \"logq\": [[-1]]}", ":1:13:", "rewards has 2"},
      {"{\"rewards\": [1],\n\"logp\": [[-1, -2]],\n\"logq\": [[-1]]}", ":3:10:", "logq[0] has 1"},
      {"{\"rewards\": [1], \"logp\": [[-1]], \"logq\": [[-1], [-1]]}", ":1:42:", "logq has 2"},
      {"{\"rewards\": [1], \"logp\": [-1], \"logq\": [-1]}", ":1:27:", "logp[0]"},
      {"{\"rewards\": [1], \"logp\": [[]], \"logq\": [[]]}", ":1:27:", "logp[0]"},
      {"{\"rewards\": [], \"logp\": [], \"logq\": []}", ":1:25:", "empty"},
      {"{\"rewards\": [1], \"logp\": [[0.5]], \"logq\": [[-1]]}", ":1:28:", "not above 0"},
      {"{\"rewards\": [\"one\"], \"logp\": [[-1]], \"logq\": [[-1]]}", ":1:14:", "rewards[0]"},
      {"{\"rewards\": [1], \"log_probs\": [[-1]]}", ":1:", "did you mean 'logp'?"},
      {"{\"rewrds\": [1], \"logp\": [[-1]], \"logq\": [[-1]]}", ":1:", "'rewards'"},
      {"{\"groups\": []}", ":1:12:", "empty"},
      {"{\"groups\": [{\"rewards\": [1], \"logp\": [[-1]], \"logq\": 3}]}",
       ":1:54:", "groups[0].logq"},
      {"[1]", ":1:1:", "policy input: it must be an object"},
      {"{\"rewards\": [1], \"rewards\": [1]}", ":1:28:", "rewards is given twice"},
      {"{\"groups\": [{\"rewards\": [1], \"logp\": [[-1]], \"logq\": [[-1]]}], \"groups\": []}",
       ":1:74:", "twice"},
      {"{\"logp\": [], \"groups\": []}", ":1:23:", "give one group, or groups"},
      {"{\"max_length\": 0.5}", ":1:16:", "max_length must be a whole number"},
      /* What is no finite number, and what no token was drawn with. */
      {"{\"rewards\": [1], \"logp\": [[-1, NaN]]}", ":1:32:", "logp[0][1] must be a finite"},
      {"{\"rewards\": [1], \"logp\": [[-Infinity]]}", ":1:28:", "logp[0][0] must be a finite"},
      {"{\"rewards\": [1e400]}", ":1:14:", "rewards[0]"},
      {"{\"rewards\": [null]}", ":1:14:", "rewards[0] must be a finite"},
      {"{\"groups\": [{\"logprox\": [[-1], [-1, -1e308]]}]}",
       ":1:37:", "groups[0].logprox[1][1] is -1e+308"},
      {"{\"logref\": [[-1000001]]}", ":1:14:", "logref[0][0]"},
      {"{\"version_gap\": [[0, -1]]}", ":1:22:", "version_gap[0][1] is -1, which is no number of"},
      {"{\"entropy\": [[-1.5]]}", ":1:15:", "entropy[0][0] is -1.5, which is no entropy"},
      {"{\"entropy_prox\": [[-1.5]]}", ":1:20:", "entropy_prox[0][0] is -1.5"},
      {"{\"rewards\": [1], \"logp\": [[0.002]]}",
       ":1:28:", "logp[0][0] must be a number that is not"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    cli_result r = cli_run(bad[i].text, (const char *const[]){"policy", "-a", "is", "-", NULL});
    int good =
        r.code == 2 && strstr(r.err, bad[i].place) != NULL && strstr(r.err, bad[i].says) != NULL;
    if (!good) fprintf(stderr, "%s\n gave %d: %s", bad[i].text, r.code, r.err);
    CU_ASSERT(good);
  }
}

/* Ratios and rewards that double precision cannot hold: errors that name the place, where the
 * answer would have had null for the loss. */
TEST(results_that_are_not_finite_are_refused_by_name) {
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"{\"rewards\": [1, 0], \"logp\": [[-1], [-2, -1]], \"logq\": [[-1], [-2, -900]]}",
       "the weight of response 1, token 0 is inf"},
      {"{\"groups\": [{\"rewards\": [1, 0], \"logp\": [[-1], [-1]], \"logq\": [[-1], [-900]]}]}",
       "the weight of group 0, response 1, token 0 is inf"},
      {"{\"rewards\": [1e308, -1e308], \"logp\": [[-1], [-2]], \"logq\": [[-1], [-1]]}",
       "the advantage of response 0"},
      {"{\"rewards\": [1, 0], \"logp\": [[-900], [-2]], \"logq\": [[-1], [-1]]}",
       "the diagnostic cppo_kl is inf"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    cli_result r =
        cli_run(bad[i].text, (const char *const[]){"policy", "-a", "is", "-", "--json", NULL});
    int good = r.code == 1 && r.out_size == 0 && strstr(r.err, bad[i].says) != NULL;
    if (!good) fprintf(stderr, "%s\n gave %d: %s", bad[i].text, r.code, r.err);
    CU_ASSERT(good);
  }
}

/* Not those whose log-ratios are 0. */
TEST(rewards_that_are_too_large_are_blamed_for_it) {
  const char *const arguments[] = {"policy", "-a", "dr_grpo", "-", NULL};
  cli_result r = cli_run(
      "{\"rewards\": [1e300, -1e300], \"logp\": [[-1], [-2]], \"logq\": [[-1], [-2]]}", arguments);
  CU_ASSERT_EQUAL(r.code, 1);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "aw_variance is inf: the rewards are too large"));
}

/* Single precision can give a probability slightly above 1, and half precision an entropy below 0.
 */
TEST(rounding_is_not_refused) {
  cJSON *j = EVALUATE("{\"rewards\": [1, 0], \"logp\": [[1e-7], [-2]], \"logq\": [[0], [-2]],"
                      " \"entropy\": [[-0.1], [1]]}",
                      "-a", "is", "-", "--json");
  CU_ASSERT_EQUAL(at2(j, "weights", 0, 0), 1);
}

/* 64 groups of 8 responses of 1,024 tokens, 15 MB: far above the 8 MiB that a recipe may have. */
TEST(a_batch_of_half_a_million_tokens_is_read) {
  enum { GROUPS = 64, RESPONSES = 8, TOKENS = 1024 };
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "batch.json");
  FILE *to = fopen(path, "w");
  CU_ASSERT_PTR_NOT_NULL_FATAL(to);
  for (int g = 0; g < GROUPS; ++g) {
    fputs(g == 0 ? "{\"groups\": [{\"rewards\": [1, 0, 0, 0, 0, 0, 0, 0]"
                 : "]}, {\"rewards\": [1, 0, 0, 0, 0, 0, 0, 0]",
          to);
    for (int k = 0; k < 2; ++k) {
      fputs(k == 0 ? ", \"logp\": [[" : "], \"logq\": [[", to);
      for (int i = 0; i < RESPONSES; ++i) {
        if (i > 0) fputs("], [", to);
        for (int t = 0; t < TOKENS; ++t) fprintf(to, "%s-1.5000000000", t > 0 ? ", " : "");
      }
      fputs("]", to);
    }
  }
  fputs("]}]}", to);
  CU_ASSERT_EQUAL(fclose(to), 0);
  cJSON *j = EVALUATE(NULL, "-a", "is", path, "--json");
  const cJSON *groups = member_at(j, "groups");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(groups), GROUPS);
  /* logp = logq: weights 1, so that c = A / G over all responses, and A = 1 for the first. */
  ASSERT_CLOSE(at2(cJSON_GetArrayItem(groups, 63), "coefficients", 0, 1023),
               1.0 / (GROUPS * RESPONSES), 1e-12);
  ASSERT_CLOSE(at2(cJSON_GetArrayItem(groups, 63), "weights", 7, 1023), 1, 1e-12);
}

/* Sparse, so it takes no room on the disk. */
TEST(a_file_above_its_limit_is_refused) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "large.json");
  cli_write(path, "{}", 2);
  CU_ASSERT_EQUAL(truncate(path, (1L << 30) + 1), 0);
  cli_result r = CLI("policy", "-a", "is", path);
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT(strstr(r.err, "1 GiB") != NULL && strstr(r.err, "policy input") != NULL);
}

TEST(a_decoupled_row_asks_for_nothing_it_can_do_without) {
  cJSON *j = EVALUATE(pair, "-a", "decoupled_ppo", "-", "--json");
  CU_ASSERT(cJSON_IsNumber(member_at(j, "loss")));
}

SUITE("cli: policy by hand");

/* gepolab policy on two groups typed by hand against sums written out in plain Python
 * (tests/golden/policy_by_hand.py). */

/* Numbers of `want` at any depth against the same places of `got`. Returns how many agree, or -1 at
 * the first that does not. */
static int compare(const cJSON *want, const cJSON *got) {
  int n = 0;
  const cJSON *w, *g = got == NULL ? NULL : got->child;
  if (cJSON_IsNumber(want))
    return cJSON_IsNumber(got) && fabs(want->valuedouble - got->valuedouble) <= 1e-12 ? 1 : -1;
  cJSON_ArrayForEach(w, want) {
    const cJSON *other = w->string != NULL ? member_at(got, w->string) : g;
    int k = compare(w, other);
    if (k < 0) {
      fprintf(stderr, "differs at %s\n", w->string != NULL ? w->string : "an array's entry");
      return -1;
    }
    n += k;
    if (g != NULL) g = g->next;
  }
  return n;
}

static cJSON *load(const char *path) {
  char *text = files_text(path);
  cJSON *root = text != NULL ? json_parsed(text) : NULL;
  free(text);
  return root;
}

TEST(two_groups_agree_with_sums_written_out) {
  cJSON *root = load("tests/golden/policy_by_hand.json");
  CU_ASSERT_PTR_NOT_NULL_FATAL(root);
  char *input = cJSON_PrintUnformatted(member_at(root, "input"));
  const cJSON *c, *word;
  int cases = 0;
  cJSON_ArrayForEach(c, member_at(root, "cases")) {
    const char *arguments[CLI_MAX_ARGUMENTS] = {"policy", "-", "--json", "--algorithm"};
    int n = 4;
    cJSON_ArrayForEach(word, member_at(c, "arguments")) arguments[n++] = word->valuestring;
    cli_result r = cli_run(input, arguments);
    cJSON *got = json_parsed(r.out);
    CU_ASSERT_EQUAL(r.code, 0);
    /* 11 tokens: a weight and a coefficient each, and 5 advantages */
    CU_ASSERT_EQUAL(compare(member_at(c, "groups"), member_at(got, "groups")), 27);
    CU_ASSERT_EQUAL(compare(member_at(c, "metrics"), got), 12);
    cases++;
  }
  CU_ASSERT_EQUAL(cases, 3);
  free(input);
}
