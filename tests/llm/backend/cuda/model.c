/* The model over the CUDA backend against the same model over the CPU's: log-probabilities,
 * gradients, steps of the optimiser, responses. */
#include "llm/backend/open/open.h"
#include "llm/model/generate.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: cuda model");

/* `tensor`: heads of 64 numbers, which go to the tensor cores in bfloat16. */
static model_config config(model_type as, int tensor) {
  return (model_config){.type = as,
                        .scaling = {as == MODEL_LLAMA ? 8 : 0, 1, 4, 60},
                        .vocabulary = 29,
                        .hidden = tensor ? 32 : 12,
                        .intermediate = 40,
                        .layers = 2,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = tensor ? 64 : 6,
                        .max_positions = 80,
                        .rms_eps = 1e-6,
                        .rope_theta = 1000,
                        .initializer_range = tensor ? 0.2 : 0.4,
                        .tied = tensor,
                        .begin = -1,
                        .end = -1,
                        .pad = -1};
}

/* 0 where there is no device. */
static int make_as(model_type as, small_model *s, backend_kind kind, number_type type, int tensor,
                   int recompute) {
  gl_error err = {0};
  const model_config c = config(as, tensor);
  if (backend_new(&s->b, kind, type, 1, &err) != GL_OK) {
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no CUDA device"));
    return 0;
  }
  must(model_new(&s->m, &c, s->b, recompute, &err), &err);
  small_model_at_end(s);
  must(model_initialise(s->m, 5, &err), &err);
  small_model_draw_biases(s->m);
  return 1;
}

static int make(small_model *s, backend_kind kind, number_type type, int tensor, int recompute) {
  return make_as(MODEL_QWEN3, s, kind, type, tensor, recompute);
}

/* The same model on CUDA in `type` and on the CPU in double precision, both with parameters that
 * `type` has, so that they differ by arithmetic alone. */
static int make_both(model_type as, small_model *cuda, small_model *cpu, number_type type,
                     int tensor, int recompute) {
  gl_error err = {0};
  if (!make_as(as, cuda, BACKEND_CUDA, type, tensor, recompute)) return 0;
  make_as(as, cpu, BACKEND_CPU, NUMBER_F64, tensor, recompute);
  const size_t n = model_parameters(cuda->m);
  double *value = calloc(n, sizeof *value);
  must(model_get(cuda->m, value, &err), &err);
  for (size_t i = 0; type == NUMBER_BF16 && i < n; ++i) {
    float x = (float)value[i];
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    value[i] = (double)x;
  }
  must(model_set(cuda->m, value, &err), &err);
  must(model_set(cpu->m, value, &err), &err);
  free(value);
  return 1;
}

/* One forward, backward and step of both. shares: the second sequence goes on after 15 positions of
 * the first, the third after the second. */
static void compare_step(model_type as, number_type type, int tensor, int recompute, int shares,
                         double tolerance) {
  static const size_t lengths[] = {20, 1, 7, 70};
  static const size_t tree[] = {0, 3, 4}, parent[] = {0, 0, 1, 0}, before[] = {0, 15, 16, 0};
  static const shared_tokens shared = {2, tree, parent, before};
  const forward_options how = {.shared = shares ? &shared : NULL, .temperature = 0.9, .keep = 1};
  small_model s[2];
  if (!make_both(as, &s[0], &s[1], type, tensor, recompute)) SKIP("no CUDA device");
  const size_t n = model_parameters(s[0].m);
  const optimizer_spec spec = {OPTIMIZER_SGD, 0.01, 0, 0, 0, 0, 0, 0, 1, LR_CONSTANT, ESS_NONE};
  double *logp[2], *entropy[2], *gradient[2], *value[2], norm[2];
  random_rows r;
  random_rows_init(&r, lengths, 4, 29, 3);
  for (int i = 0; i < 2; ++i) {
    logp[i] = calloc(r.rows.n_targets, sizeof(double));
    entropy[i] = calloc(r.rows.n_targets, sizeof(double));
    gradient[i] = calloc(n, sizeof(double));
    value[i] = calloc(n, sizeof(double));
    model_optimizer *o;
    ASSERT_OK(model_forward_with(s[i].m, &r.rows, &how, logp[i], entropy[i], &err));
    ASSERT_OK(model_backward(s[i].m, r.coefficient, &err));
    ASSERT_OK(model_gradient_get(s[i].m, gradient[i], &err));
    ASSERT_OK(model_optimizer_new(&o, s[i].m, &spec, &err));
    ASSERT_OK(model_optimizer_step(o, 0.01, &norm[i], &err));
    ASSERT_OK(model_get(s[i].m, value[i], &err));
    model_optimizer_free(o);
  }
  CU_ASSERT(largest_difference(logp[0], logp[1], r.rows.n_targets) <=
            tolerance * largest(logp[1], r.rows.n_targets));
  CU_ASSERT(largest_difference(entropy[0], entropy[1], r.rows.n_targets) <=
            tolerance * largest(entropy[1], r.rows.n_targets));
  CU_ASSERT(largest_difference(gradient[0], gradient[1], n) <= tolerance * largest(gradient[1], n));
  ASSERT_CLOSE(norm[0] / norm[1], 1, tolerance);
  CU_ASSERT(largest_difference(value[0], value[1], n) <= tolerance * largest(value[1], n));
  for (int i = 0; i < 2; ++i) {
    free(logp[i]);
    free(entropy[i]);
    free(gradient[i]);
    free(value[i]);
  }
}

TEST(a_step_in_float32_is_the_cpus) {
  for (int as = 0; as < MODEL_TYPES; ++as) compare_step((model_type)as, NUMBER_F32, 0, 0, 0, 1e-4);
}
TEST(a_step_with_recomputation_is_the_cpus) {
  for (int as = 0; as < MODEL_TYPES; ++as) compare_step((model_type)as, NUMBER_F32, 0, 1, 0, 1e-4);
}
TEST(a_step_in_bfloat16_is_the_cpus) {
  for (int as = 0; as < MODEL_TYPES; ++as) compare_step((model_type)as, NUMBER_BF16, 1, 0, 0, 2e-2);
}
TEST(a_step_with_shared_prefixes_is_the_cpus) {
  for (int recompute = 0; recompute < 2; ++recompute) {
    compare_step(MODEL_QWEN3, NUMBER_F32, 0, recompute, 1, 1e-4);
    compare_step(MODEL_QWEN3, NUMBER_BF16, 1, recompute, 1, 2e-2);
  }
}

/* Forward and backward of a model that stores `stores`: log-probabilities, then the gradient. 0
 * where there is no device. */
static int results_of(number_type type, model_stores stores, const random_rows *r, double **out,
                      size_t *n) {
  small_model s;
  if (!make(&s, BACKEND_CUDA, type, 1, (int)stores)) return 0;
  const size_t targets = r->rows.n_targets, parameters = model_parameters(s.m);
  *n = targets + parameters;
  *out = calloc(*n, sizeof **out);
  gl_error err;
  must(model_forward(s.m, &r->rows, 0.9, 1, *out, NULL, &err), &err);
  must(model_backward(s.m, r->coefficient, &err), &err);
  must(model_gradient_get(s.m, *out + targets, &err), &err);
  return 1;
}

TEST(what_a_forward_stores_does_not_change_a_bit) {
  static const number_type types[] = {NUMBER_F32, NUMBER_BF16};
  static const size_t lengths[] = {20, 1, 7, 70};
  random_rows r;
  random_rows_init(&r, lengths, 4, 29, 3);
  for (size_t i = 0; i < 2; ++i) {
    double *want, *got;
    size_t n;
    if (!results_of(types[i], MODEL_STORES_ACTIVATIONS, &r, &want, &n)) SKIP("no CUDA device");
    for (model_stores stores = MODEL_STORES_INPUTS; stores <= MODEL_STORES_LOGITS; ++stores) {
      results_of(types[i], stores, &r, &got, &n);
      CU_ASSERT_EQUAL(memcmp(got, want, n * sizeof *got), 0);
      free(got);
    }
    free(want);
  }
}

/* --- responses --- */

enum { PROMPTS = 3, RESPONSES = 7, MAX_TOKENS = 12 };

static void draw(model *m, int greedy, size_t slots, size_t tokens, generate_result *out) {
  static const size_t start[PROMPTS + 1] = {0, 4, 5, 12};
  static const int32_t prompt[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
  static const size_t prompt_of[RESPONSES] = {0, 0, 1, 2, 2, 2, 1};
  static const size_t number[RESPONSES] = {0, 1, 2, 3, 4, 5, 6};
  static const int32_t stop[3] = {7, 11, 20};
  const generate_request q = {.n_prompts = PROMPTS,
                              .prompt_start = start,
                              .prompt = prompt,
                              .n_responses = RESPONSES,
                              .prompt_of = prompt_of,
                              .number = number,
                              .stream = rng_stream_at(5, RNG_ROLLOUT, 2),
                              .sampling = {.temperature = 0.9, .top_k = 20, .top_p = 0.95},
                              .greedy = greedy,
                              .max_tokens = MAX_TOKENS,
                              .up_to = tokens,
                              .stop = stop,
                              .n_stop = 3,
                              .slots = slots};
  ASSERT_OK(generate_result_init(out, RESPONSES, MAX_TOKENS, &err));
  const size_t vocabulary = model_configuration(m)->vocabulary;
  ASSERT_OK(kept_shape_of(&out->shape, &q.sampling, vocabulary, NULL, &err));
  out->kept = ARENA_GRID(&out->memory, uint32_t, RESPONSES, MAX_TOKENS * out->shape.words);
  CU_ASSERT_PTR_NOT_NULL_FATAL(out->kept);
  ASSERT_OK(generate(m, &q, out, &err));
}

/* 1: both recorded the same sets of kept tokens for response i, each with the token that was drawn;
 * greedy: nothing was recorded. */
static int same_sets(const generate_result *a, const generate_result *b, size_t i, int greedy) {
  const size_t words = a->shape.words;
  int same = 1;
  for (size_t t = i * MAX_TOKENS; t < i * MAX_TOKENS + a->length[i]; ++t) {
    const uint32_t *set = a->kept + t * words;
    same = same && memcmp(set, b->kept + t * words, words * sizeof *set) == 0 &&
           (greedy ? set[0] == 0 : kept_has(&a->shape, set, (size_t)a->token[t]));
  }
  return same;
}

/* Slots are fewer than responses, so that decodes are recorded, run again and refilled. Some
 * responses end by their stop token, which the host learns when the next step is under way. */
static void compare_responses(model_type as) {
  small_model s[2];
  if (!make_both(as, &s[0], &s[1], NUMBER_F32, 0, 0)) SKIP("no CUDA device");
  for (int greedy = 0; greedy < 2; ++greedy) {
    generate_result r[2];
    draw(s[0].m, greedy, 4, MAX_TOKENS, &r[0]);
    draw(s[1].m, greedy, 4, MAX_TOKENS, &r[1]);
    size_t stopped = 0;
    for (size_t i = 0; i < RESPONSES; ++i) {
      stopped += r[1].finished[i] && r[1].length[i] > 1 && r[1].length[i] < MAX_TOKENS;
      CU_ASSERT_EQUAL(r[0].finished[i], r[1].finished[i]);
      CU_ASSERT_EQUAL(r[0].length[i], r[1].length[i]);
      CU_ASSERT(same_sets(&r[0], &r[1], i, greedy));
      for (size_t t = i * MAX_TOKENS; t < i * MAX_TOKENS + r[1].length[i]; ++t) {
        CU_ASSERT_EQUAL(r[0].token[t], r[1].token[t]);
        ASSERT_CLOSE(r[0].logq[t], r[1].logq[t], 1e-4);
        ASSERT_CLOSE(r[0].logq_truncated[t], r[1].logq_truncated[t], 1e-4);
      }
    }
    CU_ASSERT(greedy || as != MODEL_QWEN3 || stopped > 0);
    generate_result_fini(&r[0]);
    generate_result_fini(&r[1]);
  }
}

TEST(responses_are_the_cpus) {
  for (int as = 0; as < MODEL_TYPES; ++as) compare_responses((model_type)as);
}

/* Bit for bit, whether decodes run one row or all: float32, and bfloat16 on tensor cores. */
TEST(a_response_does_not_depend_on_the_number_of_slots) {
  static const size_t slots[] = {1, 3};
  for (int tensor = 0; tensor < 2; ++tensor) {
    small_model s;
    if (!make(&s, BACKEND_CUDA, tensor ? NUMBER_BF16 : NUMBER_F32, tensor, 0))
      SKIP("no CUDA device");
    generate_result all, some;
    draw(s.m, 0, RESPONSES, 5, &all);
    for (size_t k = 0; k < sizeof slots / sizeof *slots; ++k) {
      draw(s.m, 0, slots[k], 5, &some);
      for (size_t i = 0; i < RESPONSES; ++i) {
        const size_t at = i * MAX_TOKENS, n = all.length[i];
        CU_ASSERT_EQUAL(n, some.length[i]);
        CU_ASSERT_EQUAL(memcmp(all.token + at, some.token + at, n * sizeof *all.token), 0);
        CU_ASSERT_EQUAL(memcmp(all.logq + at, some.logq + at, n * sizeof *all.logq), 0);
        CU_ASSERT_EQUAL(memcmp(all.logq_truncated + at, some.logq_truncated + at,
                               n * sizeof *all.logq_truncated),
                        0);
        CU_ASSERT(same_sets(&all, &some, i, 0));
      }
      generate_result_fini(&some);
    }
    generate_result_fini(&all);
  }
}

/* Log-probabilities of generation, in bfloat16, near those of the training forward. */
TEST(responses_in_bfloat16_have_their_log_probabilities) {
  small_model s;
  if (!make(&s, BACKEND_CUDA, NUMBER_BF16, 1, 0)) SKIP("no CUDA device");
  generate_result r;
  draw(s.m, 1, 0, MAX_TOKENS, &r);
  for (size_t i = 0; i < 2; ++i) { /* both answer prompt 0 */
    int32_t token[4 + MAX_TOKENS] = {3, 1, 4, 1};
    const size_t n = r.length[i], start[2] = {0, 4 + n};
    size_t row[MAX_TOKENS];
    double logp[MAX_TOKENS];
    memcpy(token + 4, r.token + i * MAX_TOKENS, n * sizeof *token);
    for (size_t t = 0; t < n; ++t) row[t] = 3 + t;
    const packed_tokens rows = {4 + n, 1, n, start, token, row, token + 4};
    ASSERT_OK(model_forward(s.m, &rows, 0.9, 0, logp, NULL, &err));
    for (size_t t = 0; t < n; ++t) ASSERT_CLOSE(r.logq[i * MAX_TOKENS + t], logp[t], 4e-2);
  }
  generate_result_fini(&r);
}

/* Not-a-number weights, and finite ones whose logits overflow: the device's draw tells both. */
TEST(logits_that_are_not_finite_are_told) {
  static const size_t start[] = {0, 2}, of[] = {0}, number[] = {0};
  static const int32_t prompt[] = {3, 1};
  const number_type types[] = {NUMBER_F32, NUMBER_BF16};
  for (int k = 0; k < 8; ++k) {
    small_model s;
    gl_error err = {0};
    generate_result r = {0};
    if (!make(&s, BACKEND_CUDA, types[k / 4], k / 4, 0)) SKIP("no CUDA device");
    const size_t n = model_parameters(s.m);
    double *theta = calloc(n, sizeof *theta);
    must(model_get(s.m, theta, &err), &err);
    const model_tensor *about;
    for (size_t i = 0; (about = model_tensor_at(s.m, i)) != NULL; ++i)
      for (size_t j = about->offset; j < about->offset + about->rows * about->columns; ++j)
        theta[j] = k % 2 ? NAN : about->rows == 1 ? 1e30 : 1e9 * theta[j];
    must(model_set(s.m, theta, &err), &err);
    free(theta);
    const generate_request q = {
        .n_prompts = 1,
        .prompt_start = start,
        .prompt = prompt,
        .n_responses = 1,
        .prompt_of = of,
        .number = number,
        .stream = rng_stream_at(5, RNG_EVAL, 2),
        .sampling = {.temperature = 1, .top_k = k / 2 % 2 ? 5u : 0u, .top_p = 1},
        .greedy = k / 2 % 2,
        .max_tokens = 3,
        .up_to = 3,
        .slots = 1,
        .must_be_finite = 1};
    must(generate_result_init(&r, 1, 3, &err), &err);
    CU_ASSERT_EQUAL(generate(s.m, &q, &r, &err), GL_ENUMERIC);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "logits are not finite"));
    generate_result_fini(&r);
  }
}
