/* The exact laboratory over a transformer: its expectations against a sum over all tuples of
 * responses that shares nothing with it but core/policy, Monte Carlo against both, and the recipes.
 */
#include "llm/exact/exact_world.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/kl_dial.h"

#include <stdlib.h>
#include <string.h>

SUITE("cli: laboratory on a transformer");

enum { G = 3, K = 9, T = 2 };

typedef struct fixture {
  cfg_doc *doc;
  exact_world *w;
  enumerable e;
  double *learner, *sampler;
} fixture;

static void must(gl_status status, const gl_error *err) {
  if (status != GL_OK) fprintf(stderr, "%s\n", err->text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

/* Nine responses of two tokens to each of two prompts; the sampler at KL 0.2 along a random ray. */
static void fixture_init(fixture *f) {
  static const char text[] =
      "world: {kind: llm, vocabulary: 3, horizon: 2, prompts: 2, reward: graded, model: {layers: "
      "1, hidden: 6, intermediate: 8, heads: 1, head_dim: 4, initializer_range: 0.5}}\n";
  double scale;
  *f = (fixture){0};
  ASSERT_OK(cfg_load_text(&f->doc, text, strlen(text), "test", &err));
  ASSERT_OK(exact_world_new(&f->w, cfg_find(cfg_root(f->doc), "world"), NULL, 1, &err));
  f->e = exact_world_enumerable(f->w);
  CU_ASSERT_FATAL(f->e.max_responses == K && f->e.max_length == T);
  const size_t n = f->e.n_parameters;
  f->learner = calloc(n, sizeof *f->learner);
  f->sampler = calloc(n, sizeof *f->sampler);
  double *direction = calloc(n, sizeof *direction);
  ASSERT_OK(exact_world_initial(f->w, 2, f->learner, &err));
  lab_dial_direction(&f->e, f->learner, LAB_RAY_RANDOM, 3, 0, direction);
  const lab_half_line along = {f->learner, direction, lab_dial_most(LAB_RAY_RANDOM)};
  ASSERT_OK(lab_dial_ray(&f->e, &along, 0.2, f->sampler, &scale, &err));
  free(direction);
}

static void fixture_fini(fixture *f) {
  exact_world_free(f->w);
  cfg_free(f->doc);
  free(f->learner);
  free(f->sampler);
}

static policy_algorithm row_of(const char *yaml) {
  policy_algorithm algorithm;
  cfg_doc *doc = NULL;
  char text[256];
  memset(&algorithm, 0, sizeof algorithm);
  snprintf(text, sizeof text, "algorithm: %s\n", yaml);
  ASSERT_OK(cfg_load_text(&doc, text, strlen(text), "test", &err));
  ASSERT_OK(policy_algorithm_parse(&algorithm, cfg_find(cfg_root(doc), "algorithm"), &err));
  cfg_free(doc);
  return algorithm;
}

/* --- brute force --- */

/* Adds prompt x's share of E g: over all K^G tuples, their probability under the sampler times the
 * coefficients that core/policy gives the tuple. Coefficients add up per response and token first,
 * so that one accumulate_score ends it. */
static void add_expectation(const fixture *f, const policy_algorithm *algorithm, size_t x,
                            double *expected) {
  const enumerable *e = &f->e;
  gl_error err = {0};
  double logp[K * T], logq[K * T], reward[K], sum[K * T] = {0}, coefficient[G * T], weight[G * T];
  policy_workspace *ws = policy_workspace_new();
  must(e->ops->log_probs(e->self, f->learner, x, logp, &err), &err);
  must(e->ops->log_probs(e->self, f->sampler, x, logq, &err), &err);
  e->ops->rewards(e->self, x, reward);
  for (size_t tuple = 0; tuple < K * K * K; ++tuple) {
    const size_t y[G] = {tuple / (K * K), tuple / K % K, tuple % K};
    const size_t group_start[] = {0, G}, token_start[] = {0, T, 2 * T, 3 * T};
    double r[G], p[G * T], q[G * T], advantage[G], log_share = 0;
    for (size_t i = 0; i < G; ++i) {
      r[i] = reward[y[i]];
      memcpy(p + i * T, logp + y[i] * T, T * sizeof *p);
      memcpy(q + i * T, logq + y[i] * T, T * sizeof *q);
      log_share += logq[y[i] * T] + logq[y[i] * T + 1];
    }
    const policy_input in = {.n_groups = 1,
                             .n_responses = G,
                             .n_tokens = G * T,
                             .group_start = group_start,
                             .token_start = token_start,
                             .reward = r,
                             .logp = p,
                             .logq = q,
                             .max_length = T};
    policy_output out = {
        .advantage = advantage, .weight = weight, .coefficient = coefficient, .skip_metrics = 1};
    must(policy_evaluate(algorithm, &in, &out, ws, &err), &err);
    for (size_t i = 0; i < G * T; ++i)
      sum[y[i / T] * T + i % T] += exp(log_share) * coefficient[i] / (double)e->n_prompts;
  }
  must(e->ops->accumulate_score(e->self, f->learner, x, sum, expected, &err), &err);
  policy_workspace_free(ws);
}

static const char *const rows[] = {"is", "grpo", "gspo", "{base: gepo, log_prob: sum, clip: none}",
                                   "snis"};
enum { ROWS = sizeof rows / sizeof *rows };

static lab_spec spec_of(const fixture *f, size_t budget) {
  return (lab_spec){.world = &f->e,
                    .theta_learner = f->learner,
                    .theta_sampler = f->sampler,
                    .group_size = G,
                    .budget = budget,
                    .samples = 8192,
                    .seed = 3,
                    .threads = 2};
}

TEST(multisets_agree_with_all_tuples) {
  fixture f;
  fixture_init(&f);
  const lab_spec spec = spec_of(&f, 100000);
  double *expected = calloc(f.e.n_parameters, sizeof *expected);
  for (size_t k = 0; k < ROWS; ++k) {
    const policy_algorithm algorithm = row_of(rows[k]), *one = &algorithm;
    lab_result r;
    double size = 0;
    ASSERT_OK(lab_measure(&r, &one, 1, &spec, &err));
    CU_ASSERT(r.method == LAB_EXACT && r.groups == 2 * 165);
    memset(expected, 0, f.e.n_parameters * sizeof *expected);
    for (size_t x = 0; x < 2; ++x) add_expectation(&f, &algorithm, x, expected);
    for (size_t i = 0; i < f.e.n_parameters; ++i) size = fmax(size, fabs(expected[i]));
    CU_ASSERT(size > 1e-3);
    for (size_t i = 0; i < f.e.n_parameters; ++i)
      ASSERT_CLOSE(r.expected[i] / size, expected[i] / size, 1e-12);
    if (k == 0) CU_ASSERT(r.numbers.bias < 1e-13 && r.numbers.cosine > 1 - 1e-12);
    ASSERT_CLOSE(r.kl, 0.2, 1e-9);
    lab_result_fini(&r);
  }
  free(expected);
  fixture_fini(&f);
}

/* Each coordinate within six standard errors of the exact one: 32 parts give a t-distribution of 31
 * degrees, beyond six with probability 1e-6. */
TEST(monte_carlo_is_within_its_errors) {
  fixture f;
  fixture_init(&f);
  const lab_spec all = spec_of(&f, 100000), drawn = spec_of(&f, 10);
  for (size_t k = 0; k < ROWS; ++k) {
    const policy_algorithm algorithm = row_of(rows[k]), *one = &algorithm;
    lab_result exact, sampled;
    ASSERT_OK(lab_measure(&exact, &one, 1, &all, &err));
    ASSERT_OK(lab_measure(&sampled, &one, 1, &drawn, &err));
    CU_ASSERT(sampled.method == LAB_MONTE_CARLO);
    for (size_t i = 0; i < f.e.n_parameters; ++i)
      CU_ASSERT(fabs(sampled.expected[i] - exact.expected[i]) <=
                6 * sampled.expected_error[i] + 1e-15);
    CU_ASSERT(fabs(sampled.numbers.variance - exact.numbers.variance) <=
              6 * sampled.error.variance);
    lab_result_fini(&exact);
    lab_result_fini(&sampled);
  }
  fixture_fini(&f);
}

/* --- recipes --- */

static cJSON *run(const char *recipe, const char *override, const char *algorithms) {
  cJSON *json = CLI_JSON("bias", recipe, override, algorithms, "--json");
  return json;
}

TEST(importance_sampling_is_unbiased_through_a_network) {
  cJSON *json = run("llm_exact_bias", "group_size=[2, 3]", "algorithms=[is, gspo]");
  CU_ASSERT_EQUAL(cJSON_GetArraySize(json), 24);
  double before = 0;
  for (int i = 0; i < 24; ++i) {
    const cJSON *row = cJSON_GetArrayItem(json, i);
    const char *name = text_at(row, "algorithm");
    CU_ASSERT_STRING_EQUAL(text_at(row, "method"), "exact");
    if (strcmp(name, "is") == 0) {
      CU_ASSERT(number_at(row, "bias") < 1e-13 && number_at(row, "cosine") > 1 - 1e-12);
    } else if (number_at(row, "staleness") > 0) {
      CU_ASSERT(number_at(row, "bias") > 0.1);
    }
    if (number_at(row, "staleness") == 30) {
      CU_ASSERT(number_at(row, "kl_exact") > 0.1);
      before = number_at(row, "return");
    }
  }
  CU_ASSERT(before > 0.6); /* of the learner, after thirty updates */
}

TEST(ten_thousand_responses_are_enumerated) {
  cJSON *json = run("llm_exact_gradient", "samples=256", "algorithms=[is]");
  const cJSON *row = cJSON_GetArrayItem(json, 1);
  CU_ASSERT_STRING_EQUAL(text_at(row, "method"), "monte_carlo");
  ASSERT_CLOSE(number_at(row, "kl_exact"), 0.1, 1e-9);
  CU_ASSERT(number_at(row, "cosine") > 0.5);
}

TEST(what_would_not_fit_is_refused) {
  cli_result r = CLI("bias", "llm_exact_gradient", "world.model.hidden=64");
  CU_ASSERT_EQUAL(r.code, 2);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "too many to keep all scores"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "llm_exact_gradient.yaml:"));
  REFUSED(2, "horizon", "bias", "llm_exact_bias", "world.horizon=40");
  r = CLI("bias", "llm_exact_bias", "learner_probs=[0.5, 0.5]");
  CU_ASSERT_EQUAL(r.code, 2);
}
