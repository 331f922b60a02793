/* The transformer as an enumerable policy: a distribution, its scores, its gradient. */
#include "llm/exact/exact_world.h"
#include "llm/backend/open/open.h"
#include "llm/model/model.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: enumerable world");

#define MODEL                                                                                      \
  "model: {layers: 2, hidden: 8, intermediate: 12, heads: 2, head_dim: 4, initializer_range: 0.5}"

typedef struct fixture {
  cfg_doc *doc;
  exact_world *w;
  enumerable e;
  double *theta;
} fixture;

static gl_status try_world(fixture *f, const char *keys, const char *sampling, gl_error *err) {
  char text[1024];
  *f = (fixture){0};
  snprintf(text, sizeof text, "world: {kind: llm, %s}\nsampling: %s\n", keys, sampling);
  gl_status status = cfg_load_text(&f->doc, text, strlen(text), "r.yaml", err);
  if (status == GL_OK)
    status = exact_world_new(&f->w, cfg_find(cfg_root(f->doc), "world"),
                             cfg_find(cfg_root(f->doc), "sampling"), 1, err);
  return status;
}

static void fixture_init(fixture *f, const char *keys, const char *sampling) {
  ASSERT_OK(try_world(f, keys, sampling, &err));
  f->e = exact_world_enumerable(f->w);
  f->theta = calloc(f->e.n_parameters, sizeof *f->theta);
  ASSERT_OK(exact_world_initial(f->w, 4, f->theta, &err));
}

static void fixture_fini(fixture *f) {
  exact_world_free(f->w);
  cfg_free(f->doc);
  free(f->theta);
}

static double sum_of(const double *row, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += row[i];
  return sum;
}

/* p(y) of every response of prompt x into p[K]; truncated: under the distribution drawn from. */
static void dist(const fixture *f, size_t x, int truncated, double *p) {
  const enumerable *e = &f->e;
  double *logp = calloc(e->max_responses, e->max_length * sizeof *logp);
  ASSERT_OK(truncated ? e->ops->log_probs_truncated(e->self, f->theta, x, logp, &err)
                      : e->ops->log_probs(e->self, f->theta, x, logp, &err));
  for (size_t y = 0; y < e->max_responses; ++y)
    p[y] = exp(sum_of(logp + y * e->max_length, e->ops->length(e->self, x, y)));
  free(logp);
}

static double value_of(const fixture *f) {
  const enumerable *e = &f->e;
  double *p = calloc(e->max_responses, 2 * sizeof *p), *reward = p + e->max_responses, sum = 0;
  for (size_t x = 0; x < e->n_prompts; ++x) {
    dist(f, x, 0, p);
    e->ops->rewards(e->self, x, reward);
    for (size_t y = 0; y < e->max_responses; ++y) sum += p[y] * reward[y] / (double)e->n_prompts;
  }
  free(p);
  return sum;
}

/* --- the distribution --- */

TEST(probabilities_sum_to_one) {
  static const struct {
    const char *keys, *sampling;
  } worlds[] = {
      {MODEL ", vocabulary: 10, horizon: 4, prompts: 3", "{temperature: 0.7}"},
      {MODEL ", vocabulary: 3, horizon: 4, prompts: 5, end_token: true, task: target", "{}"},
      {MODEL ", vocabulary: 5, horizon: 1, prompts: 1", "{top_k: 2}"},
      {MODEL ", vocabulary: 4, horizon: 3, prompts: 20", "{top_p: 0.6, temperature: 1.5}"},
  };
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i) {
    fixture f;
    fixture_init(&f, worlds[i].keys, worlds[i].sampling);
    double *p = calloc(f.e.max_responses, sizeof *p);
    for (size_t x = 0; x < f.e.n_prompts; ++x) {
      dist(&f, x, 0, p);
      ASSERT_CLOSE(sum_of(p, f.e.max_responses), 1, 1e-13);
      if (f.e.ops->log_probs_truncated == NULL) continue;
      size_t outside = 0;
      dist(&f, x, 1, p);
      ASSERT_CLOSE(sum_of(p, f.e.max_responses), 1, 1e-13);
      for (size_t y = 0; y < f.e.max_responses; ++y) outside += p[y] == 0;
      CU_ASSERT(outside > 0);
    }
    CU_ASSERT_EQUAL(f.e.ops->log_probs_truncated != NULL, i >= 2);
    free(p);
    fixture_fini(&f);
  }
}

/* Every response as a sequence of its own behind its prompt's digits, through the model alone. */
TEST(log_probabilities_are_those_of_the_model) {
  fixture f;
  fixture_init(&f, MODEL ", vocabulary: 3, horizon: 3, prompts: 7", "{temperature: 0.6}");
  const model_config c = {.vocabulary = 3,
                          .hidden = 8,
                          .intermediate = 12,
                          .layers = 2,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 4,
                          .rms_eps = 1e-6,
                          .max_positions = 256,
                          .rope_theta = 10000,
                          .tied = 1,
                          .initializer_range = 0.5,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  small_model s;
  ASSERT_OK(backend_new(&s.b, BACKEND_CPU, NUMBER_F64, 1, &err));
  ASSERT_OK(model_new(&s.m, &c, s.b, 0, &err));
  small_model_at_end(&s);
  CU_ASSERT_EQUAL_FATAL(model_parameters(s.m), f.e.n_parameters);
  ASSERT_OK(model_set(s.m, f.theta, &err));
  double logp[27 * 3], alone[3];
  for (size_t x = 0; x < 7; ++x) {
    ASSERT_OK(f.e.ops->log_probs(f.e.self, f.theta, x, logp, &err));
    for (size_t y = 0; y < 27; ++y) {
      const int32_t digit[] = {(int32_t)(y / 9), (int32_t)(y / 3 % 3), (int32_t)(y % 3)};
      const int32_t token[] = {(int32_t)(x / 3), (int32_t)(x % 3), digit[0], digit[1]};
      const size_t start[] = {0, 4}, row[] = {1, 2, 3};
      const packed_tokens rows = {4, 1, 3, start, token, row, digit};
      ASSERT_OK(model_forward(s.m, &rows, 0.6, 0, alone, NULL, &err));
      CU_ASSERT(largest_difference(alone, logp + 3 * y, 3) < 1e-13);
    }
  }
  fixture_fini(&f);
}

/* --- scores --- */

/* Random coefficients, all of them or a few. */
static void scores_add_up(const char *keys, size_t one_in) {
  fixture f;
  fixture_init(&f, keys, "{temperature: 1.2}");
  const size_t k = f.e.max_responses, t = f.e.max_length, n = f.e.n_parameters;
  double *score = calloc(k, n * sizeof *score), *coefficient = calloc(k, t * sizeof *coefficient);
  double *sum = calloc(2 * n, sizeof *sum), *grad = sum + n;
  for (size_t x = 0; x < f.e.n_prompts; ++x) {
    memset(sum, 0, 2 * n * sizeof *sum);
    ASSERT_OK(f.e.ops->sequence_scores(f.e.self, f.theta, x, score, &err));
    for (size_t y = 0; y < k; ++y) {
      const rng_words w = rng_block(rng_stream_at(1, RNG_TEST, x), y);
      const double c = y % one_in == 0 ? 2 * rng_u01(w.v[0]) - 1 : 0;
      for (size_t i = 0; i < t; ++i) /* what stands beyond a response counts nothing */
        coefficient[y * t + i] = i < f.e.ops->length(f.e.self, x, y) ? c : NAN;
      for (size_t j = 0; j < n; ++j) sum[j] += c * score[y * n + j];
    }
    ASSERT_OK(f.e.ops->accumulate_score(f.e.self, f.theta, x, coefficient, grad, &err));
    ASSERT_OK(f.e.ops->accumulate_score(f.e.self, f.theta, x, coefficient, grad, &err));
    for (size_t j = 0; j < n; ++j) grad[j] /= 2; /* it adds */
    CU_ASSERT(largest(sum, n) > 0);
    CU_ASSERT(largest_difference(sum, grad, n) < 1e-11 * largest(sum, n));
  }
  free(score);
  free(coefficient);
  free(sum);
  fixture_fini(&f);
}

/* Rows of token scores of a response add up to its sequence's; beyond its end nothing is written.
 */
TEST(token_scores_add_up_to_the_sequences) {
  fixture f;
  fixture_init(&f, MODEL ", vocabulary: 3, horizon: 3, prompts: 2, end_token: true", "{}");
  const size_t k = f.e.max_responses, t = f.e.max_length, n = f.e.n_parameters;
  double *sequence = calloc(k, n * sizeof *sequence), *token = calloc(k, t * n * sizeof *token);
  double *unit = calloc(k, t * sizeof *unit), *one = calloc(n, sizeof *one);
  ASSERT_OK(f.e.ops->sequence_scores(f.e.self, f.theta, 1, sequence, &err));
  ASSERT_OK(f.e.ops->token_scores(f.e.self, f.theta, 1, token, &err));
  for (size_t y = 0; y < k; ++y) {
    const size_t length = f.e.ops->length(f.e.self, 1, y);
    for (size_t i = length; i < t; ++i) CU_ASSERT_EQUAL(largest(token + (y * t + i) * n, n), 0);
    for (size_t i = 1; i < length; ++i)
      for (size_t j = 0; j < n; ++j) token[y * t * n + j] += token[(y * t + i) * n + j];
    CU_ASSERT(largest_difference(token + y * t * n, sequence + y * n, n) <
              1e-12 * largest(sequence, k * n));
  }
  unit[(k - 1) * t + t - 1] = 1; /* one token, the other way */
  ASSERT_OK(f.e.ops->accumulate_score(f.e.self, f.theta, 1, unit, one, &err));
  CU_ASSERT(largest_difference(one, token + (k * t - 1) * n, n) < 1e-12 * largest(one, n));
  free(sequence);
  free(token);
  free(unit);
  free(one);
  fixture_fini(&f);
}

TEST(scores_of_sequences_and_of_all_together_agree) {
  scores_add_up(MODEL ", vocabulary: 4, horizon: 3, prompts: 3", 1);
  scores_add_up(MODEL ", vocabulary: 4, horizon: 3, prompts: 3", 13);
  scores_add_up(MODEL ", vocabulary: 3, horizon: 3, prompts: 2, end_token: true", 1);
  scores_add_up(MODEL ", vocabulary: 6, horizon: 4, prompts: 1", 400); /* several parts */
}

/* Sum over responses of p r score, by both ways, against central differences of J. */
TEST(the_gradient_of_the_return_is_its_central_difference) {
  fixture f;
  fixture_init(&f, MODEL ", vocabulary: 4, horizon: 3, prompts: 3, reward: graded", "{}");
  const size_t k = f.e.max_responses, t = f.e.max_length, n = f.e.n_parameters;
  double *p = calloc(k, 2 * sizeof *p), *reward = p + k;
  double *score = calloc(k, n * sizeof *score), *coefficient = calloc(k, t * sizeof *coefficient);
  double *sum = calloc(2 * n, sizeof *sum), *whole = sum + n;
  for (size_t x = 0; x < 3; ++x) {
    dist(&f, x, 0, p);
    f.e.ops->rewards(f.e.self, x, reward);
    ASSERT_OK(f.e.ops->sequence_scores(f.e.self, f.theta, x, score, &err));
    for (size_t y = 0; y < k; ++y)
      for (size_t j = 0; j < n; ++j) sum[j] += p[y] * reward[y] / 3 * score[y * n + j];
    for (size_t i = 0; i < k * t; ++i) coefficient[i] = p[i / t] * reward[i / t] / 3;
    ASSERT_OK(f.e.ops->accumulate_score(f.e.self, f.theta, x, coefficient, whole, &err));
  }
  const double size = largest(sum, n), h = 1e-5;
  CU_ASSERT(size > 1e-3);
  CU_ASSERT(largest_difference(sum, whole, n) < 1e-12 * size);
  for (size_t j = 0; j < n; j += 5) {
    const double was = f.theta[j];
    f.theta[j] = was + h;
    const double above = value_of(&f);
    f.theta[j] = was - h;
    const double below = value_of(&f);
    f.theta[j] = was;
    ASSERT_CLOSE(whole[j] / size, (above - below) / (2 * h) / size, 1e-7);
  }
  free(p);
  free(score);
  free(coefficient);
  free(sum);
  fixture_fini(&f);
}

/* --- over what a sampler keeps --- */

/* Sum of coefficients times the replayed log-probabilities of prompt 0; responses that the sampler
 * does not keep are left out, and counted. */
static double replayed_sum(const fixture *f, const double *sampler, double *coefficient,
                           size_t *left_out) {
  const enumerable *e = &f->e;
  const size_t k = e->max_responses, t = e->max_length;
  gl_error err = {0};
  double *logp = calloc(k * t, sizeof *logp), sum = 0, mass = 0;
  must(e->ops->log_probs_replayed(e->self, f->theta, sampler, 0, logp, &err), &err);
  *left_out = 0;
  for (size_t y = 0; y < k; ++y) {
    const double whole = sum_of(logp + y * t, t);
    *left_out += isinf(whole) != 0;
    mass += exp(whole);
    for (size_t i = y * t; i < (y + 1) * t; ++i) {
      coefficient[i] = isinf(logp[i]) ? 0 : sin(1.7 * (double)i);
      sum += isinf(logp[i]) ? 0 : coefficient[i] * logp[i];
    }
  }
  ASSERT_CLOSE(mass, 1, 1e-12);
  free(logp);
  return sum;
}

TEST(replayed_dists_have_the_gradients_of_central_differences) {
  fixture f;
  size_t left_out, few;
  fixture_init(&f, MODEL ", vocabulary: 4, horizon: 3, prompts: 2",
               "{temperature: 0.7, top_k: 3, top_p: 0.8, weights: replay}");
  const size_t n = f.e.n_parameters, k = f.e.max_responses * f.e.max_length;
  double *sampler = calloc(2 * n, sizeof *sampler), *grad = sampler + n;
  double *coefficient = calloc(3 * k, sizeof *coefficient);
  for (size_t j = 0; j < n; ++j) sampler[j] = f.theta[j] + 0.4 * sin(3 * (double)j);
  replayed_sum(&f, sampler, coefficient, &left_out);
  CU_ASSERT(left_out > 20 && left_out < 63);
  ASSERT_OK(
      f.e.ops->accumulate_score_replayed(f.e.self, f.theta, sampler, 0, coefficient, grad, &err));
  const double size = largest(grad, n), h = 1e-5;
  CU_ASSERT(size > 1e-3);
  for (size_t j = 0; j < n; j += 3) {
    const double was = f.theta[j];
    f.theta[j] = was + h;
    const double above = replayed_sum(&f, sampler, coefficient, &few);
    f.theta[j] = was - h;
    const double below = replayed_sum(&f, sampler, coefficient, &few);
    f.theta[j] = was;
    ASSERT_CLOSE(grad[j] / size, (above - below) / (2 * h) / size, 1e-7);
  }
  double *own = coefficient + k,
         *cut = own + k; /* of one policy it is the truncated distribution */
  ASSERT_OK(f.e.ops->log_probs_replayed(f.e.self, f.theta, f.theta, 0, own, &err));
  ASSERT_OK(f.e.ops->log_probs_truncated(f.e.self, f.theta, 0, cut, &err));
  for (size_t i = 0; i < k; ++i) CU_ASSERT(own[i] == cut[i] || fabs(own[i] - cut[i]) < 1e-12);
  free(sampler);
  free(coefficient);
  fixture_fini(&f);
}

/* --- rewards and refusals --- */

TEST(rewards_come_from_a_task_or_a_table) {
  fixture f;
  double reward[9];
  fixture_init(&f, MODEL ", vocabulary: 3, horizon: 2, prompts: 3, task: sum_mod", "{}");
  f.e.ops->rewards(f.e.self, 2, reward);
  for (size_t y = 0; y < 9; ++y) CU_ASSERT_EQUAL(reward[y], (y / 3 + y % 3) % 3 == 2);
  fixture_fini(&f);
  fixture_init(&f, MODEL ", vocabulary: 2, horizon: 1, prompts: 2, rewards: [[1, 2], [3, -4]]",
               "{}");
  f.e.ops->rewards(f.e.self, 1, reward);
  CU_ASSERT(reward[0] == 3 && reward[1] == -4);
  fixture_fini(&f);
}

TEST(a_wrong_section_is_told_with_its_place) {
  static const struct {
    const char *keys, *says;
  } wrong[] = {
      {"vocabulary: 10, horizon: 9", "responses that are enumerated"},
      {"vocabulary: 1, horizon: 1, prompts: 2", "one letter"},
      {"vocabulary: 3, horizon: 2, model: {context: 2}", "a context of 2 is too short"},
      {"vocabulary: 3, horizon: 2, model: {hiden: 2}", "hidden"},
      {"vocabulary: 3, horison: 2", "horizon"},
      {"vocabulary: 2, horizon: 1, rewards: [1]", "a list of 2 numbers"},
      {"vocabulary: 2, horizon: 1, prompts: 3, rewards: [[1, 0]]", "1 lists for 3 prompts"},
      {"vocabulary: 2, horizon: 1, rewards: [1, x]", "a reward must be a number"},
      {"vocabulary: 2, horizon: 1, task: summod", "sum_mod"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    gl_error err = {0};
    fixture f;
    gl_status status = try_world(&f, wrong[i].keys, "{}", &err);
    int right = status == GL_EINPUT && strstr(err.text, wrong[i].says) != NULL &&
                strstr(err.text, "r.yaml:1:") == err.text;
    if (!right) fprintf(stderr, "%s: %s\n", wrong[i].keys, err.text);
    CU_ASSERT(right);
    fixture_fini(&f);
  }
}
