/* llm/generate: a response is a function of parameters, prompt and address, and ends where it
 * should. */
#include "llm/model/generate.h"
#include "tests/support/llm_generate.h"
#include "tests/support/suite.h"

#include <string.h>

SUITE("llm: generation");

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

/* --- a function of its address --- */

TEST(a_response_does_not_depend_on_the_number_of_slots) {
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

TEST(a_response_does_not_depend_on_order_or_company) {
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

/* --- equal beginnings --- */

static void (*real_embed)(backend *, void *, const void *, const int32_t *, size_t, size_t);
static size_t rows_run; /* tokens that went through the model */

static void counting_embed(backend *b, void *out, const void *table, const int32_t *token,
                           size_t rows, size_t width) {
  rows_run += rows;
  real_embed(b, out, table, token, rows, width);
}

/* Tokens of all prompts that are asked for, and one row for every different beginning of the
 * responses to one prompt, from one token to those that lack one. */
static size_t different_beginnings(const generate_request *q, const generate_result *r) {
  size_t rows = 0;
  for (size_t i = 0; i < q->n_responses; ++i)
    for (size_t n = 0; n < r->length[i]; ++n) {
      int seen = 0;
      for (size_t j = 0; j < i && !seen; ++j)
        seen =
            q->prompt_of[i] == q->prompt_of[j] && r->length[j] > n &&
            memcmp(r->token + i * MAX_TOKENS, r->token + j * MAX_TOKENS, n * sizeof *r->token) == 0;
      if (!seen) rows += n == 0 ? generate_prompt_length(q, i) : 1;
    }
  return rows;
}

/* At low temperatures many responses are the same for a while; greedy ones are to their end. With
 * few slots some wait and begin when others are far. */
TEST(equal_beginnings_are_decoded_once_and_change_no_bit) {
  static const double temperatures[] = {0.1, 0.3, 1};
  request_data d;
  generate_request q = make_request(&d);
  for (size_t k = 0; k < 4; ++k) {
    tiny t = tiny_new(NUMBER_F32, 1 + k % 2, VOCABULARY, 16);
    q.greedy = k == 3;
    q.sampling.temperature = temperatures[k % 3];
    const backend_ops *ops = t.backend->ops;
    backend_ops counting = *ops;
    real_embed = ops->embed;
    counting.embed = counting_embed;
    t.backend->ops = &counting;
    rows_run = 0;
    q.slots = 0;
    generate_result all = generated(&t, &q);
    CU_ASSERT_EQUAL(rows_run, different_beginnings(&q, &all));
    t.backend->ops = ops;
    for (q.slots = 1; q.slots <= 9; q.slots += 4) {
      generate_result some = generated(&t, &q);
      CU_ASSERT(same_result(&all, &some));
      generate_result_fini(&some);
    }
    size_t tokens = 0;
    for (size_t i = 0; i < RESPONSES; ++i)
      tokens += generate_prompt_length(&q, i) + all.length[i] - 1;
    CU_ASSERT(2 * rows_run < tokens);
    generate_result_fini(&all);
    tiny_free(&t);
  }
}

TEST(a_response_does_not_depend_on_threads) {
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

TEST(other_addresses_give_other_responses) {
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

/* More prompts than one prefill takes. */
TEST(many_long_prompts_are_run_in_parts) {
  enum { MANY = 320, LENGTH = 28 };
  static int32_t prompt[MANY * LENGTH];
  static size_t start[MANY + 1], which[MANY];
  request_data d;
  generate_request q = make_request(&d);
  tiny t = tiny_new(NUMBER_F32, 0, VOCABULARY, 14);
  for (size_t i = 0; i < MANY * LENGTH; ++i)
    prompt[i] = (int32_t)(rng_block(rng_stream_at(1, RNG_TEST, 2), i).v[0] % VOCABULARY);
  for (size_t i = 0; i <= MANY; ++i) start[i] = i * LENGTH;
  for (size_t i = 0; i < MANY; ++i) which[i] = i;
  q.n_prompts = q.n_responses = MANY;
  q.prompt = prompt;
  q.prompt_start = start;
  q.prompt_of = q.number = which;
  q.max_tokens = q.up_to = 4;
  generate_result all = generated(&t, &q);
  q.slots = 7;
  generate_result few = generated(&t, &q);
  const size_t n = MANY * q.max_tokens;
  CU_ASSERT_EQUAL(memcmp(all.token, few.token, n * sizeof *all.token), 0);
  CU_ASSERT_EQUAL(memcmp(all.logq, few.logq, n * sizeof *all.logq), 0);
  generate_result_fini(&all);
  generate_result_fini(&few);
  tiny_free(&t);
}

TEST(slots_follow_memory_unless_they_are_given) {
  tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 15);
  const model_config *c = model_configuration(t.model);
  size_t before = 0, slots = 0;
  for (size_t bytes = 1024; bytes < (size_t)1 << 24; bytes *= 2) {
    slots = 0;
    CU_ASSERT_EQUAL(generate_slots(&slots, c, t.backend, 100, POSITIONS, bytes, NULL), GL_OK);
    CU_ASSERT(slots >= before && slots <= 100);
    before = slots;
  }
  CU_ASSERT_EQUAL(before, 100);
  /* one slot more leaves less than the margin free */
  const size_t bytes = (size_t)1 << 18;
  memory_plan fits, over;
  slots = 0;
  CU_ASSERT_EQUAL(generate_slots(&slots, c, t.backend, 100, POSITIONS, bytes, NULL), GL_OK);
  CU_ASSERT(slots > 1 && slots < 100);
  model_memory(&fits, c, t.backend, &(memory_use){.slots = slots, .capacity = POSITIONS}, NULL);
  model_memory(&over, c, t.backend, &(memory_use){.slots = slots + 1, .capacity = POSITIONS}, NULL);
  const size_t most = bytes - bytes / GENERATE_MARGIN, own = fits.parameters + fits.packed;
  CU_ASSERT(fits.total - own <= most && over.total - own > most);
  slots = 0;
  CU_ASSERT_EQUAL(generate_slots(&slots, c, t.backend, 100, POSITIONS, 1, NULL), GL_OK);
  CU_ASSERT_EQUAL(slots, 0);
  slots = 30;
  CU_ASSERT_EQUAL(generate_slots(&slots, c, t.backend, 100, POSITIONS, 1, NULL), GL_OK);
  CU_ASSERT_EQUAL(slots, 30);
  slots = 30;
  CU_ASSERT_EQUAL(generate_slots(&slots, c, t.backend, 8, POSITIONS, 1, NULL), GL_OK);
  CU_ASSERT_EQUAL(slots, 8);
  tiny_free(&t);
}

/* --- ends --- */

TEST(a_stop_token_ends_a_response_and_stays) {
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

TEST(nothing_to_draw_changes_nothing) {
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

/* --- refusals --- */

static void refuses(const tiny *t, const generate_request *q, const char *says) {
  gl_error err = {0};
  generate_result r = result_new(q);
  CU_ASSERT_EQUAL(generate(t->model, q, &r, &err), GL_EINPUT);
  if (strstr(err.text, says) == NULL) fprintf(stderr, "'%s' lacks '%s'\n", err.text, says);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
  for (size_t i = 0; i < q->n_responses; ++i) CU_ASSERT_EQUAL(r.length[i], 0);
  generate_result_fini(&r);
}

TEST(what_cannot_be_drawn_is_refused_with_the_reason) {
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

/* Norms of 1e30 and matrices a billion times as large: finite weights whose products overflow.
 * nans: not-a-number weights. */
static void spoil(const tiny *t, int nans) {
  const size_t n = model_parameters(t->model);
  double *theta = calloc(n, sizeof *theta);
  CU_ASSERT_PTR_NOT_NULL_FATAL(theta);
  ASSERT_OK(model_get(t->model, theta, &err));
  const model_tensor *about;
  for (size_t i = 0; (about = model_tensor_at(t->model, i)) != NULL; ++i)
    for (size_t k = about->offset; k < about->offset + about->rows * about->columns; ++k)
      theta[k] = nans ? NAN : about->rows == 1 ? 1e30 : 1e9 * theta[k];
  ASSERT_OK(model_set(t->model, theta, &err));
  free(theta);
}

/* An evaluation asks for finite numbers and gets an error that names prompt and token; training,
 * which records a divergence, gets its tokens. */
TEST(logits_that_are_not_finite_are_an_error_where_asked_for) {
  request_data d;
  generate_request q = make_request(&d);
  for (int k = 0; k < 4; ++k) {
    gl_error err = {0};
    generate_result r = result_new(&q);
    tiny t = tiny_new(NUMBER_F32, 1, VOCABULARY, 13);
    spoil(&t, k % 2);
    q.greedy = k / 2;
    q.must_be_finite = 1;
    q.first_prompt = 1000;
    CU_ASSERT_EQUAL(generate(t.model, &q, &r, &err), GL_ENUMERIC);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "logits are not finite: token 0 of"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "prompt 100"));
    generate_result_fini(&r);
    q.must_be_finite = 0;
    r = result_new(&q);
    must_generate(&t, &q, &r);
    CU_ASSERT_FALSE(isfinite(r.logq[0]));
    generate_result_fini(&r);
    tiny_free(&t);
  }
}
