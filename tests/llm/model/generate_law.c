/* llm/generate: log-probabilities are those of the training forward, and tokens follow the
 * distribution they say they follow. */
#include "tests/support/llm_generate.h"
#include "tests/support/suite.h"

#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

SUITE("llm: distribution of generated responses");

/* Every log-probability of r from token `from` on against the forward's, raw and truncated. */
static void check_dists(const tiny *t, const generate_request *q, const generate_result *r,
                        size_t from, double tolerance) {
  int32_t sequence[64];
  double logp[VOCABULARY], dist[VOCABULARY];
  sampling_rank rank[VOCABULARY];
  for (size_t i = 0; i < q->n_responses; ++i)
    for (size_t k = from; k < r->length[i]; ++k) {
      size_t n = sequence_of(q, r, i, k, sequence), at = i * q->max_tokens + k;
      next_dist(t, sequence, n, VOCABULARY, q->sampling.temperature, logp);
      sampling_truncate(&q->sampling, logp, VOCABULARY, dist, rank);
      ASSERT_CLOSE(r->logq[at], logp[r->token[at]], tolerance);
      ASSERT_CLOSE(r->logq_truncated[at], dist[r->token[at]], tolerance);
    }
}

/* --- log-probabilities --- */

TEST(log_probabilities_are_the_forwards) {
  request_data d;
  generate_request q = make_request(&d);
  for (int truncated = 0; truncated < 2; ++truncated) {
    q.sampling = (sampling_spec){
        .temperature = 1.3, .top_k = truncated ? 5 : 0, .top_p = truncated ? 0.8 : 1};
    const number_type types[] = {NUMBER_F32, NUMBER_F64};
    const double tolerance[] = {1e-5, 1e-12};
    for (size_t k = 0; k < 2; ++k) {
      tiny t = tiny_new(types[k], 1, VOCABULARY, 5);
      generate_result r = generated(&t, &q);
      check_dists(&t, &q, &r, 0, tolerance[k]);
      generate_result_fini(&r);
      tiny_free(&t);
    }
  }
}

TEST(going_on_in_parts_is_the_same_as_one_go) {
  tiny t = tiny_new(NUMBER_F64, 1, VOCABULARY, 6);
  request_data d;
  generate_request q = make_request(&d);
  generate_result whole = generated(&t, &q), parts = result_new(&q);
  static const size_t until[] = {1, 4, 4, 7, MAX_TOKENS};
  for (size_t k = 0; k < sizeof until / sizeof *until; ++k) {
    q.up_to = until[k];
    q.slots = k == 3 ? 3 : 0;
    must_generate(&t, &q, &parts);
    for (size_t i = 0; i < RESPONSES; ++i) {
      size_t n = whole.length[i] < until[k] ? whole.length[i] : until[k], at = i * MAX_TOKENS;
      CU_ASSERT_EQUAL(parts.length[i], n);
      CU_ASSERT_EQUAL(memcmp(parts.token + at, whole.token + at, n * sizeof *parts.token), 0);
      for (size_t x = at; x < at + n; ++x) ASSERT_CLOSE(parts.logq[x], whole.logq[x], 1e-12);
    }
  }
  generate_result_fini(&whole);
  generate_result_fini(&parts);
  tiny_free(&t);
}

TEST(what_is_drawn_after_a_change_has_the_new_dist) {
  tiny old = tiny_new(NUMBER_F64, 1, VOCABULARY, 7), new = tiny_new(NUMBER_F64, 1, VOCABULARY, 8);
  request_data d;
  generate_request q = make_request(&d);
  q.up_to = 4;
  generate_result r = generated(&old, &q), before = generated(&old, &q);
  q.up_to = MAX_TOKENS;
  must_generate(&new, &q, &r);
  check_dists(&new, &q, &r, 4, 1e-12);
  for (size_t i = 0; i < RESPONSES; ++i)
    CU_ASSERT_EQUAL(memcmp(r.logq + i * MAX_TOKENS, before.logq + i * MAX_TOKENS,
                           before.length[i] * sizeof *r.logq),
                    0);
  generate_result_fini(&r);
  generate_result_fini(&before);
  tiny_free(&old);
  tiny_free(&new);
}

TEST(greedy_takes_the_forwards_most_probable_token) {
  tiny t = tiny_new(NUMBER_F64, 1, VOCABULARY, 11);
  request_data d;
  generate_request q = make_request(&d);
  q.greedy = 1;
  generate_result r = generated(&t, &q);
  int32_t sequence[64];
  double logp[VOCABULARY];
  for (size_t i = 0; i < RESPONSES; ++i)
    for (size_t k = 0; k < r.length[i]; ++k) {
      size_t n = sequence_of(&q, &r, i, k, sequence), best = 0;
      next_dist(&t, sequence, n, VOCABULARY, q.sampling.temperature, logp);
      for (size_t v = 1; v < VOCABULARY; ++v)
        if (logp[v] > logp[best]) best = v;
      CU_ASSERT_EQUAL((size_t)r.token[i * MAX_TOKENS + k], best);
      ASSERT_CLOSE(r.logq[i * MAX_TOKENS + k], logp[best], 1e-12);
    }
  generate_result_fini(&r);
  tiny_free(&t);
}

/* --- frequencies --- */

enum { DRAWS = 20000, SMALL = 4, OUTCOMES = SMALL + (SMALL - 1) * SMALL };
/* A right generator fails a chi-square test of these once in a million seeds; the seed is fixed. */
static const double error_rate = 1e-6;

/* Outcome of a response of at most two tokens over four, of which STOP ends it. */
static size_t outcome_of(const generate_result *r, size_t i) {
  size_t a = (size_t)r->token[2 * i];
  if (a == STOP) return a;
  return SMALL + (a < STOP ? a : a - 1) * SMALL + (size_t)r->token[2 * i + 1];
}

/* Probabilities of all outcomes after a prompt, from the forward and the truncation rule. */
static void enumerate(const tiny *t, const sampling_spec *spec, int32_t prompt, double *p) {
  double logp[SMALL], first[SMALL], second[SMALL];
  sampling_rank rank[SMALL];
  for (size_t y = 0; y < OUTCOMES; ++y) p[y] = 0;
  next_dist(t, &prompt, 1, SMALL, spec->temperature, logp);
  sampling_truncate(spec, logp, SMALL, first, rank);
  p[STOP] = exp(first[STOP]);
  for (size_t a = 0; a < SMALL; ++a) {
    if (a == STOP) continue;
    const int32_t sequence[2] = {prompt, (int32_t)a};
    next_dist(t, sequence, 2, SMALL, spec->temperature, logp);
    sampling_truncate(spec, logp, SMALL, second, rank);
    for (size_t b = 0; b < SMALL; ++b)
      p[SMALL + (a < STOP ? a : a - 1) * SMALL + b] = exp(first[a] + second[b]);
  }
}

static void check_frequencies(const sampling_spec *spec) {
  tiny t = tiny_new(NUMBER_F32, 0, SMALL, 9);
  static size_t prompt_of[DRAWS], number[DRAWS];
  const size_t start[2] = {0, 1};
  const int32_t prompt = 1, stop = STOP;
  for (size_t i = 0; i < DRAWS; ++i) number[i] = i;
  const generate_request q = {.n_prompts = 1,
                              .prompt_start = start,
                              .prompt = &prompt,
                              .n_responses = DRAWS,
                              .prompt_of = prompt_of,
                              .number = number,
                              .stream = rng_stream_at(3, RNG_TEST, 1),
                              .sampling = *spec,
                              .max_tokens = 2,
                              .up_to = 2,
                              .stop = &stop,
                              .n_stop = 1,
                              .slots = 500};
  generate_result r = generated(&t, &q);
  double p[OUTCOMES], chi2 = 0;
  size_t count[OUTCOMES] = {0}, cells = 0;
  enumerate(&t, spec, prompt, p);
  for (size_t i = 0; i < DRAWS; ++i) ++count[outcome_of(&r, i)];
  for (size_t y = 0; y < OUTCOMES; ++y) {
    if (p[y] == 0) CU_ASSERT_EQUAL(count[y], 0);
    if (p[y] == 0 || (y < SMALL && y != STOP)) continue;
    double expected = p[y] * DRAWS;
    CU_ASSERT(expected > 5); /* else the test statistic has no chi-square distribution */
    chi2 += ((double)count[y] - expected) * ((double)count[y] - expected) / expected;
    ++cells;
  }
  CU_ASSERT(cells > 2);
  CU_ASSERT(gsl_cdf_chisq_Q(chi2, (double)cells - 1) > error_rate);
  generate_result_fini(&r);
  tiny_free(&t);
}

TEST(tokens_come_as_often_as_their_dist_says) {
  check_frequencies(&(sampling_spec){.temperature = 1, .top_k = 0, .top_p = 1});
  check_frequencies(&(sampling_spec){.temperature = 2, .top_k = 0, .top_p = 1});
}

TEST(truncated_dists_are_what_is_drawn_from) {
  check_frequencies(&(sampling_spec){.temperature = 1.5, .top_k = 3, .top_p = 1});
  check_frequencies(&(sampling_spec){.temperature = 1.5, .top_k = 0, .top_p = 0.7});
  check_frequencies(&(sampling_spec){.temperature = 1.5, .top_k = 3, .top_p = 0.9});
}

/* --- what distributions kept --- */

/* A vocabulary whose sets are lists. Where all tokens are equally probable no list has room. */
TEST(sets_of_a_large_vocabulary_are_lists) {
  enum { LARGE = 1100, EACH = 6 };
  tiny t = tiny_new(NUMBER_F64, 1, LARGE, 9);
  const size_t start[2] = {0, 1}, prompt_of[EACH] = {0}, number[EACH] = {0, 1, 2, 3, 4, 5};
  const int32_t prompt = 1;
  const generate_request q = {.n_prompts = 1,
                              .prompt_start = start,
                              .prompt = &prompt,
                              .n_responses = EACH,
                              .prompt_of = prompt_of,
                              .number = number,
                              .stream = rng_stream_at(3, RNG_TEST, 1),
                              .sampling = {.temperature = 1, .top_k = 5, .top_p = 0.9},
                              .max_tokens = 3,
                              .up_to = 3};
  static double logp[LARGE], dist[LARGE];
  static sampling_rank rank[LARGE];
  kept_shape shape;
  gl_error err = {0};
  CU_ASSERT_FATAL(kept_shape_of(&shape, &q.sampling, LARGE, NULL, &err) == GL_OK && shape.listed);
  generate_result r = result_new(&q);
  r.shape = shape;
  r.kept = ARENA_GRID(&r.memory, uint32_t, EACH, 3 * shape.words);
  CU_ASSERT_PTR_NOT_NULL_FATAL(r.kept);
  must_generate(&t, &q, &r);
  for (size_t i = 0; i < EACH; i += 4) {
    int32_t sequence[64];
    const uint32_t *set = r.kept + (i * 3 + 2) * shape.words;
    next_dist(&t, sequence, sequence_of(&q, &r, i, 2, sequence), LARGE, 1, logp);
    sampling_truncate(&q.sampling, logp, LARGE, dist, rank);
    size_t wrong = 0;
    for (size_t a = 0; a < LARGE; ++a) wrong += kept_has(&shape, set, a) != !isinf(dist[a]);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(kept_has(&shape, set, (size_t)r.token[i * 3 + 2]));
  }
  const size_t n = model_parameters(t.model);
  double *zeros = calloc(n, sizeof *zeros);
  CU_ASSERT_FATAL(zeros != NULL && model_set(t.model, zeros, &err) == GL_OK);
  for (size_t i = 0; i < EACH; ++i) r.length[i] = 0;
  CU_ASSERT_EQUAL(generate(t.model, &q, &r, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "top_k: 5 kept more than 42 tokens"));
  free(zeros);
  generate_result_fini(&r);
  tiny_free(&t);
}
