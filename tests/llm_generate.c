/* llm/generate: a response is a function of parameters, prompt and address; its log-probabilities
 * are those of the training forward; tokens follow the law they say they follow. */
#include "llm/generate.h"
#include "tests/suite.h"

#include <gsl/gsl_cdf.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 7, STOP = 2, PROMPTS = 5, RESPONSES = 24, MAX_TOKENS = 10 };

/* --- a tiny model and a request -----------------------------------------------------------------
 */

typedef struct tiny {
  backend *backend;
  model *model;
} tiny;

static tiny tiny_new(number_type type, size_t threads, size_t vocabulary, uint64_t seed) {
  tiny t = {0};
  gl_error err = {0};
  const model_config c = {.vocabulary = vocabulary,
                          .hidden = 16,
                          .intermediate = 24,
                          .layers = 2,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 4,
                          .max_positions = 32,
                          .rms_eps = 1e-6,
                          .rope_theta = 10000,
                          .initializer_range = 0.4,
                          .tied = 0,
                          .begin = -1,
                          .end = -1,
                          .pad = -1};
  int good = backend_new(&t.backend, BACKEND_CPU, type, threads, &err) == GL_OK &&
             model_new(&t.model, &c, t.backend, 0, &err) == GL_OK &&
             model_initialise(t.model, seed, &err) == GL_OK;
  if (!good) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_FATAL(good);
  return t;
}

static void tiny_free(tiny *t) {
  model_free(t->model);
  backend_free(t->backend);
}

typedef struct request_data {
  size_t prompt_start[PROMPTS + 1];
  int32_t prompt[64];
  size_t prompt_of[RESPONSES], number[RESPONSES];
} request_data;

static const int32_t stop_tokens[] = {STOP};

/* Five prompts of 1 to 9 tokens; 24 responses spread over them unevenly, one prompt with none. */
static generate_request make_request(request_data *d) {
  static const size_t lengths[PROMPTS] = {3, 1, 9, 4, 6};
  size_t n = 0;
  for (size_t p = 0; p < PROMPTS; ++p) {
    d->prompt_start[p] = n;
    for (size_t k = 0; k < lengths[p]; ++k, ++n)
      d->prompt[n] = (int32_t)((n * n + 3 * p + 1) % VOCABULARY);
  }
  d->prompt_start[PROMPTS] = n;
  for (size_t i = 0; i < RESPONSES; ++i) {
    d->prompt_of[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : i % 4 == 0 ? 1 : 4;
    d->number[i] = i;
  }
  return (generate_request){.n_prompts = PROMPTS,
                            .prompt_start = d->prompt_start,
                            .prompt = d->prompt,
                            .n_responses = RESPONSES,
                            .prompt_of = d->prompt_of,
                            .number = d->number,
                            .stream = rng_stream_at(11, RNG_ROLLOUT, 5),
                            .sampling = {.temperature = 0.8, .top_p = 1},
                            .max_tokens = MAX_TOKENS,
                            .up_to = MAX_TOKENS,
                            .stop = stop_tokens,
                            .n_stop = 1};
}

static generate_result result_new(const generate_request *q) {
  generate_result r;
  CU_ASSERT_EQUAL_FATAL(generate_result_init(&r, q->n_responses, q->max_tokens, NULL), GL_OK);
  return r;
}

static void must_generate(const tiny *t, const generate_request *q, generate_result *r) {
  gl_error err = {0};
  gl_status status = generate(t->model, q, r, &err);
  if (status != GL_OK) fprintf(stderr, "%s\n", err.text);
  CU_ASSERT_EQUAL_FATAL(status, GL_OK);
}

static generate_result generated(const tiny *t, const generate_request *q) {
  generate_result r = result_new(q);
  must_generate(t, q, &r);
  return r;
}

/* Whether response i of a is response j of b, bit for bit. */
static int same_response(const generate_result *a, size_t i, const generate_result *b, size_t j) {
  size_t n = a->length[i], x = i * MAX_TOKENS, y = j * MAX_TOKENS;
  return n == b->length[j] && a->finished[i] == b->finished[j] &&
         memcmp(a->token + x, b->token + y, n * sizeof *a->token) == 0 &&
         memcmp(a->logq + x, b->logq + y, n * sizeof *a->logq) == 0 &&
         memcmp(a->logq_truncated + x, b->logq_truncated + y, n * sizeof *a->logq) == 0;
}

static int same_result(const generate_result *a, const generate_result *b) {
  int same = 1;
  for (size_t i = 0; i < RESPONSES; ++i) same = same && same_response(a, i, b, i);
  return same;
}

/* --- what the forward says ----------------------------------------------------------------------
 */

/* log softmax of every token after sequence[n]: one forward with a target for each. */
static void next_law(const tiny *t, const int32_t *sequence, size_t n, size_t vocabulary,
                     double temperature, double *logp) {
  for (size_t v = 0; v < vocabulary; ++v) {
    const size_t start[2] = {0, n}, last = n - 1;
    const int32_t target = (int32_t)v;
    const token_rows rows = {n, 1, 1, start, sequence, &last, &target};
    CU_ASSERT_EQUAL_FATAL(model_forward(t->model, &rows, temperature, 0, &logp[v], NULL, NULL),
                          GL_OK);
  }
}

/* Prompt and the first n tokens of response i, into sequence; returns the length. */
static size_t sequence_of(const generate_request *q, const generate_result *r, size_t i, size_t n,
                          int32_t *sequence) {
  size_t from = q->prompt_start[q->prompt_of[i]], prompt = q->prompt_start[q->prompt_of[i] + 1];
  memcpy(sequence, q->prompt + from, (prompt - from) * sizeof *sequence);
  memcpy(sequence + (prompt - from), r->token + i * q->max_tokens, n * sizeof *sequence);
  return prompt - from + n;
}

/* Every log-probability of r from token `from` on against the forward's, raw and truncated. */
static void check_laws(const tiny *t, const generate_request *q, const generate_result *r,
                       size_t from, double tolerance) {
  int32_t sequence[64];
  double logp[VOCABULARY], law[VOCABULARY];
  sampling_rank rank[VOCABULARY];
  for (size_t i = 0; i < q->n_responses; ++i)
    for (size_t k = from; k < r->length[i]; ++k) {
      size_t n = sequence_of(q, r, i, k, sequence), at = i * q->max_tokens + k;
      next_law(t, sequence, n, VOCABULARY, q->sampling.temperature, logp);
      sampling_truncate(&q->sampling, logp, VOCABULARY, law, rank);
      ASSERT_CLOSE(r->logq[at], logp[r->token[at]], tolerance);
      ASSERT_CLOSE(r->logq_truncated[at], law[r->token[at]], tolerance);
    }
}

/* --- a function of its address ------------------------------------------------------------------
 */

static void a_response_does_not_depend_on_the_number_of_slots(void) {
  static const size_t slots[] = {1, 2, 3, 5, 8, 16, 23, 64, 0};
  const number_type types[] = {NUMBER_F32, NUMBER_F64};
  request_data d;
  generate_request q = make_request(&d);
  for (size_t k = 0; k < 2; ++k) {
    tiny t = tiny_new(types[k], 1, VOCABULARY, 1);
    q.slots = RESPONSES;
    generate_result all = generated(&t, &q);
    for (size_t s = 0; s < sizeof slots / sizeof *slots; ++s) {
      q.slots = slots[s];
      generate_result some = generated(&t, &q);
      CU_ASSERT(same_result(&all, &some));
      generate_result_fini(&some);
    }
    generate_result_fini(&all);
    tiny_free(&t);
  }
}

static void a_response_does_not_depend_on_order_or_company(void) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 2);
  request_data d, e;
  generate_request q = make_request(&d), turned = make_request(&e);
  generate_result straight = generated(&t, &q);
  for (size_t i = 0; i < RESPONSES; ++i) {
    size_t j = (i * 7 + 3) % RESPONSES;
    e.prompt_of[i] = d.prompt_of[j];
    e.number[i] = d.number[j];
  }
  turned.slots = 4;
  generate_result other = generated(&t, &turned);
  for (size_t i = 0; i < RESPONSES; ++i)
    CU_ASSERT(same_response(&other, i, &straight, (i * 7 + 3) % RESPONSES));
  generate_result_fini(&other);
  for (size_t i = 0; i < RESPONSES; i += 5) { /* each alone */
    turned.n_responses = 1;
    e.prompt_of[0] = d.prompt_of[i];
    e.number[0] = d.number[i];
    other = generated(&t, &turned);
    CU_ASSERT(same_response(&other, 0, &straight, i));
    generate_result_fini(&other);
  }
  generate_result_fini(&straight);
  tiny_free(&t);
}

static void a_response_does_not_depend_on_threads(void) {
  request_data d;
  const generate_request q = make_request(&d);
  generate_result one = {0};
  for (size_t threads = 1; threads <= 3; ++threads) {
    tiny t = tiny_new(NUMBER_F32, threads, VOCABULARY, 3);
    generate_result r = generated(&t, &q);
    if (threads == 1)
      one = r;
    else
      CU_ASSERT(same_result(&one, &r));
    if (threads > 1) generate_result_fini(&r);
    tiny_free(&t);
  }
  generate_result_fini(&one);
}

static void other_addresses_give_other_responses(void) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 4);
  request_data d;
  generate_request q = make_request(&d);
  generate_result a = generated(&t, &q);
  q.stream.entity += 1;
  generate_result b = generated(&t, &q);
  size_t differ = 0;
  for (size_t i = 0; i < RESPONSES; ++i) differ += (size_t)!same_response(&a, i, &b, i);
  CU_ASSERT(differ > RESPONSES / 2);
  generate_result_fini(&a);
  generate_result_fini(&b);
  tiny_free(&t);
}

/* --- log-probabilities --------------------------------------------------------------------------
 */

static void log_probabilities_are_the_forwards(void) {
  request_data d;
  generate_request q = make_request(&d);
  for (int truncated = 0; truncated < 2; ++truncated) {
    q.sampling = (sampling_spec){1.3, truncated ? 5 : 0, truncated ? 0.8 : 1, SAMPLING_RAW};
    const number_type types[] = {NUMBER_F32, NUMBER_F64};
    const double tolerance[] = {1e-5, 1e-12};
    for (size_t k = 0; k < 2; ++k) {
      tiny t = tiny_new(types[k], 1, VOCABULARY, 5);
      generate_result r = generated(&t, &q);
      check_laws(&t, &q, &r, 0, tolerance[k]);
      generate_result_fini(&r);
      tiny_free(&t);
    }
  }
}

static void going_on_in_parts_is_the_same_as_one_go(void) {
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

static void what_is_drawn_after_a_change_has_the_new_law(void) {
  tiny old = tiny_new(NUMBER_F64, 1, VOCABULARY, 7), new = tiny_new(NUMBER_F64, 1, VOCABULARY, 8);
  request_data d;
  generate_request q = make_request(&d);
  q.up_to = 4;
  generate_result r = generated(&old, &q), before = generated(&old, &q);
  q.up_to = MAX_TOKENS;
  must_generate(&new, &q, &r);
  check_laws(&new, &q, &r, 4, 1e-12);
  for (size_t i = 0; i < RESPONSES; ++i)
    CU_ASSERT_EQUAL(memcmp(r.logq + i * MAX_TOKENS, before.logq + i * MAX_TOKENS,
                           before.length[i] * sizeof *r.logq),
                    0);
  generate_result_fini(&r);
  generate_result_fini(&before);
  tiny_free(&old);
  tiny_free(&new);
}

/* --- frequencies --------------------------------------------------------------------------------
 */

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
  next_law(t, &prompt, 1, SMALL, spec->temperature, logp);
  sampling_truncate(spec, logp, SMALL, first, rank);
  p[STOP] = exp(first[STOP]);
  for (size_t a = 0; a < SMALL; ++a) {
    if (a == STOP) continue;
    const int32_t sequence[2] = {prompt, (int32_t)a};
    next_law(t, sequence, 2, SMALL, spec->temperature, logp);
    sampling_truncate(spec, logp, SMALL, second, rank);
    for (size_t b = 0; b < SMALL; ++b)
      p[SMALL + (a < STOP ? a : a - 1) * SMALL + b] = exp(first[a] + second[b]);
  }
}

static void check_frequencies(const sampling_spec *spec) {
  tiny t = tiny_new(NUMBER_F32, 0, SMALL, 9);
  static size_t prompt_of[DRAWS], number[DRAWS];
  const size_t start[2] = {0, 1};
  const int32_t prompt = 1;
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
                              .stop = stop_tokens,
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
    CU_ASSERT(expected > 5); /* else the test statistic has no chi-square law */
    chi2 += ((double)count[y] - expected) * ((double)count[y] - expected) / expected;
    ++cells;
  }
  CU_ASSERT(cells > 2);
  CU_ASSERT(gsl_cdf_chisq_Q(chi2, (double)cells - 1) > error_rate);
  generate_result_fini(&r);
  tiny_free(&t);
}

static void tokens_come_as_often_as_their_law_says(void) {
  check_frequencies(&(sampling_spec){1, 0, 1, SAMPLING_RAW});
  check_frequencies(&(sampling_spec){2, 0, 1, SAMPLING_RAW});
}

static void truncated_laws_are_what_is_drawn_from(void) {
  check_frequencies(&(sampling_spec){1.5, 3, 1, SAMPLING_RAW});
  check_frequencies(&(sampling_spec){1.5, 0, 0.7, SAMPLING_RAW});
  check_frequencies(&(sampling_spec){1.5, 3, 0.9, SAMPLING_RAW});
}

/* --- ends ---------------------------------------------------------------------------------------
 */

static void a_stop_token_ends_a_response_and_stays(void) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 10);
  request_data d;
  generate_request q = make_request(&d);
  static const int32_t two[] = {STOP, 5};
  size_t ended = 0, cut = 0;
  q.n_stop = 0;
  generate_result endless = generated(&t, &q);
  q.stop = two;
  for (q.n_stop = 1; q.n_stop <= 2; ++q.n_stop) {
    generate_result r = generated(&t, &q);
    for (size_t i = 0; i < RESPONSES; ++i) {
      size_t n = r.length[i], at = i * MAX_TOKENS, first = 0;
      while (first < MAX_TOKENS && endless.token[at + first] != STOP &&
             (q.n_stop == 1 || endless.token[at + first] != 5))
        ++first;
      CU_ASSERT_EQUAL(n, first < MAX_TOKENS ? first + 1 : MAX_TOKENS);
      CU_ASSERT_EQUAL(r.finished[i], first < MAX_TOKENS);
      CU_ASSERT_EQUAL(memcmp(endless.token + at, r.token + at, n * sizeof *r.token), 0);
      ended += r.finished[i] != 0;
      cut += !r.finished[i];
    }
    generate_result_fini(&r);
  }
  CU_ASSERT(ended > 0 && cut > 0);
  generate_result_fini(&endless);
  tiny_free(&t);
}

static void greedy_takes_the_forwards_most_probable_token(void) {
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
      next_law(&t, sequence, n, VOCABULARY, q.sampling.temperature, logp);
      for (size_t v = 1; v < VOCABULARY; ++v)
        if (logp[v] > logp[best]) best = v;
      CU_ASSERT_EQUAL((size_t)r.token[i * MAX_TOKENS + k], best);
      ASSERT_CLOSE(r.logq[i * MAX_TOKENS + k], logp[best], 1e-12);
    }
  generate_result_fini(&r);
  tiny_free(&t);
}

static void nothing_to_draw_changes_nothing(void) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 12);
  request_data d;
  generate_request q = make_request(&d);
  generate_result r = generated(&t, &q), again = generated(&t, &q);
  must_generate(&t, &q, &again);
  CU_ASSERT(same_result(&r, &again));
  q.n_responses = 0;
  must_generate(&t, &q, &again);
  CU_ASSERT(same_result(&r, &again));
  generate_result_fini(&r);
  generate_result_fini(&again);
  tiny_free(&t);
}

/* --- refusals -----------------------------------------------------------------------------------
 */

static void refuses(const tiny *t, const generate_request *q, const char *says) {
  gl_error err = {0};
  generate_result r = result_new(q);
  CU_ASSERT_EQUAL(generate(t->model, q, &r, &err), GL_EINPUT);
  if (strstr(err.text, says) == NULL) fprintf(stderr, "'%s' lacks '%s'\n", err.text, says);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
  for (size_t i = 0; i < q->n_responses; ++i) CU_ASSERT_EQUAL(r.length[i], 0);
  generate_result_fini(&r);
}

static void what_cannot_be_drawn_is_refused_with_the_reason(void) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 13);
  request_data d;
  generate_request good = make_request(&d), q = good;
  q.max_tokens = q.up_to = 24; /* the third prompt has 9 of the 32 positions */
  refuses(&t, &q, "32 positions");
  q = good;
  q.up_to = MAX_TOKENS + 1;
  refuses(&t, &q, "no more than");
  q = good;
  d.number[3] = (size_t)1 << 28;
  refuses(&t, &q, "number");
  d.number[3] = 3;
  d.prompt[4] = VOCABULARY;
  refuses(&t, &q, "vocabulary");
  d.prompt[4] = -1;
  refuses(&t, &q, "prompt 2");
  d.prompt[4] = 0;
  d.prompt_start[1] = 0;
  refuses(&t, &q, "empty");
  d.prompt_start[1] = 3;
  static const int32_t wrong[] = {VOCABULARY};
  q.stop = wrong;
  refuses(&t, &q, "stop token");
  q = good;
  q.sampling.temperature = 0;
  refuses(&t, &q, "temperature");
  tiny_free(&t);
}

SUITE(llm_generate, "llm: generation", TEST(a_response_does_not_depend_on_the_number_of_slots),
      TEST(a_response_does_not_depend_on_order_or_company),
      TEST(a_response_does_not_depend_on_threads), TEST(other_addresses_give_other_responses),
      TEST(log_probabilities_are_the_forwards), TEST(going_on_in_parts_is_the_same_as_one_go),
      TEST(what_is_drawn_after_a_change_has_the_new_law),
      TEST(tokens_come_as_often_as_their_law_says), TEST(truncated_laws_are_what_is_drawn_from),
      TEST(a_stop_token_ends_a_response_and_stays),
      TEST(greedy_takes_the_forwards_most_probable_token), TEST(nothing_to_draw_changes_nothing),
      TEST(what_cannot_be_drawn_is_refused_with_the_reason));
