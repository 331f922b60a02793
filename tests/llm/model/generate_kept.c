/* llm/generate while weights change in the middle of responses: the whole distribution of every
 * token is that of transformers (tests/golden/kept_cache.py), both where keys and values of older
 * weights are kept and where they are computed again. */
#include "llm/model/generate.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

SUITE("llm: kept caches of generation");

enum { SETS = 3 };

/* The fixture, and the model whose weights change: the older sets are held, the last is its own. */
typedef struct changing {
  small_model s;
  model_values *held[SETS]; /* NULL for the last */
  safetensors *file;
  double *keep, *recompute; /* [responses, length, vocabulary] */
  size_t n_responses, length, vocabulary, n_prompts, longest_prompt;
  size_t *prompt_start, *prompt_of, *until; /* until [SETS, responses] */
  int32_t *prompt, *token;                  /* token [responses, length] */
  double temperature;
} changing;

/* --- the fixture --- */

/* A tensor's whole numbers. */
static size_t *sizes(const safetensors *file, const char *name, size_t *n) {
  double *value = golden_tensor(file, name, n);
  size_t *size = calloc(*n + 1, sizeof *size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(size);
  for (size_t i = 0; i < *n; ++i) size[i] = (size_t)value[i];
  free(value);
  return size;
}

static int32_t *tokens(const safetensors *file, const char *name, size_t *n) {
  size_t *size = sizes(file, name, n);
  int32_t *token = calloc(*n + 1, sizeof *token);
  CU_ASSERT_PTR_NOT_NULL_FATAL(token);
  for (size_t i = 0; i < *n; ++i) token[i] = (int32_t)size[i];
  free(size);
  return token;
}

/* Set `set` of the weights, as moved() of kept_cache.py makes it from set 0. */
static void set_weights(model *m, const double *first, size_t set) {
  const size_t n = model_parameters(m);
  double *value = calloc(n, sizeof *value);
  const model_tensor *p;
  CU_ASSERT_PTR_NOT_NULL_FATAL(value);
  for (size_t k = 0; (p = model_tensor_at(m, k)) != NULL; ++k)
    for (size_t i = 0; i < p->rows * p->columns; ++i) {
      const size_t step = (i * (2 * set + 35) + i / 101) % 101;
      const double by = set > 0 ? ((double)step - 50) / 512 : 0;
      value[p->offset + i] = (double)(float)(first[p->offset + i] + by);
    }
  ASSERT_OK(model_set(m, value, &err));
  free(value);
}

static void changing_open(changing *c, number_type type) {
  size_t n;
  *c = (changing){0};
  ASSERT_OK(safetensors_open(&c->file, QWEN3 "kept_cache.safetensors", &err));
  c->prompt_start = sizes(c->file, "prompt_starts", &n);
  c->n_prompts = n - 1;
  for (size_t p = 0; p < c->n_prompts; ++p)
    if (c->prompt_start[p + 1] - c->prompt_start[p] > c->longest_prompt)
      c->longest_prompt = c->prompt_start[p + 1] - c->prompt_start[p];
  c->prompt = tokens(c->file, "prompts", &n);
  c->prompt_of = sizes(c->file, "prompt_of", &c->n_responses);
  c->token = tokens(c->file, "tokens", &n);
  c->length = n / c->n_responses;
  c->until = sizes(c->file, "until", &n);
  CU_ASSERT_EQUAL_FATAL(n, SETS * c->n_responses);
  c->keep = golden_tensor(c->file, "keep", &n);
  c->vocabulary = n / c->n_responses / c->length;
  c->recompute = golden_tensor(c->file, "recompute", &n);
  double *temperature = golden_tensor(c->file, "temperature", &n);
  c->temperature = temperature[0];
  free(temperature);
  small_model_load(&c->s, QWEN3 "tied", type, 0);
  CU_ASSERT_EQUAL_FATAL(model_configuration(c->s.m)->vocabulary, c->vocabulary);
  double *first = calloc(model_parameters(c->s.m), sizeof *first);
  CU_ASSERT_PTR_NOT_NULL_FATAL(first);
  ASSERT_OK(model_get(c->s.m, first, &err));
  for (size_t s = 0; s < SETS; ++s) {
    set_weights(c->s.m, first, s);
    if (s + 1 < SETS) ASSERT_OK(model_values_copy(&c->held[s], c->s.m, &err));
  }
  free(first);
}

static void changing_close(changing *c) {
  for (size_t s = 0; s < SETS; ++s) model_values_free(c->held[s], c->s.m);
  safetensors_free(c->file);
  free(c->keep);
  free(c->recompute);
  free(c->prompt_start);
  free(c->prompt_of);
  free(c->until);
  free(c->prompt);
  free(c->token);
}

/* --- draws that are watched --- */

/* The backend's draw, and what is seen of it: the distribution of token t of response i, and the
 * token that was drawn. The backend's operation has no room for a pointer to them. */
static struct {
  const changing *c;
  void (*draw)(backend *, int32_t *, void *, void *, const void *, const uint64_t *, size_t, size_t,
               const sampling_spec *, rng_stream, int);
  double *dist;   /* [responses, length, vocabulary] */
  int32_t *drawn; /* [responses, length] */
  size_t *times;  /* [responses, length] */
} watched;

static double logit(const void *logits, size_t k) {
  return watched.c->s.b->master == NUMBER_F64 ? ((const double *)logits)[k]
                                              : (double)((const float *)logits)[k];
}

/* Log-probabilities of a row of logits. */
static void take_dist(const void *logits, size_t row, double *dist) {
  const size_t v = watched.c->vocabulary;
  double top = -INFINITY, sum = 0;
  for (size_t a = 0; a < v; ++a) {
    dist[a] = logit(logits, row * v + a) / watched.c->temperature;
    top = fmax(top, dist[a]);
  }
  for (size_t a = 0; a < v; ++a) sum += exp(dist[a] - top);
  for (size_t a = 0; a < v; ++a) dist[a] -= top + log(sum);
}

/* Draws, keeps what was drawn from which distribution, and has the response go on with the
 * fixture's token instead, so that the sequences are those that transformers was given. */
static void draw_watched(backend *b, int32_t *token, void *logq, void *logq_truncated,
                         const void *logits, const uint64_t *index, size_t rows, size_t vocabulary,
                         const sampling_spec *spec, rng_stream stream, int greedy) {
  const changing *c = watched.c;
  watched.draw(b, token, logq, logq_truncated, logits, index, rows, vocabulary, spec, stream,
               greedy);
  for (size_t r = 0; r < rows; ++r)
    for (size_t k = 0; k < c->n_responses * c->length; ++k) {
      if (index[r] != rng_token_index(k / c->length, k % c->length)) continue;
      take_dist(logits, r, watched.dist + k * c->vocabulary);
      watched.drawn[k] = token[r];
      ++watched.times[k];
      token[r] = c->token[k];
    }
}

/* Draws every response, set after set, each up to where it leaves the set. */
static void draw_all(const changing *c, const generate_cache *cache, size_t slots,
                     generate_result *r) {
  gl_error err = {0};
  size_t *number = calloc(c->n_responses, sizeof *number);
  CU_ASSERT_PTR_NOT_NULL_FATAL(number);
  for (size_t i = 0; i < c->n_responses; ++i) number[i] = i;
  must(generate_result_init(r, c->n_responses, c->length, &err), &err);
  r->cache = cache;
  for (size_t s = 0; s < SETS; ++s) {
    const generate_request q = {.n_prompts = c->n_prompts,
                                .prompt_start = c->prompt_start,
                                .prompt = c->prompt,
                                .n_responses = c->n_responses,
                                .prompt_of = c->prompt_of,
                                .number = number,
                                .stream = rng_stream_at(3, RNG_TEST, 9),
                                .sampling = {.temperature = c->temperature, .top_p = 1},
                                .max_tokens = c->length,
                                .up_to = c->length,
                                .limit = c->until + s * c->n_responses,
                                .slots = slots,
                                .must_be_finite = 1};
    model_use(c->s.m, c->held[s]);
    must(generate(c->s.m, &q, r, &err), &err);
  }
  free(number);
}

/* --- against transformers --- */

/* How many tokens have a distribution that is farther than 0.1 from the one in `other`. */
static size_t dists_apart(const changing *c, const double *dist, const double *other) {
  size_t n = 0;
  for (size_t k = 0; k < c->n_responses * c->length; ++k) {
    const size_t at = k * c->vocabulary;
    n += largest_difference(dist + at, other + at, c->vocabulary) > 0.1;
  }
  return n;
}

/* The distributions are those in `right`, to a part of the largest of them; and those of all tokens
 * that a later set drew than the first of their response are not those in `other`. */
static void check_dists(const changing *c, const generate_result *r, const double *right,
                        const double *other, double part) {
  const size_t n = c->n_responses * c->length, v = c->vocabulary;
  const double tolerance = part * largest(right, n * v);
  size_t changed = 0;
  for (size_t i = 0; i < c->n_responses; ++i) {
    size_t first = 0;
    while (c->until[first * c->n_responses + i] == 0) ++first;
    changed += c->length - c->until[first * c->n_responses + i];
    CU_ASSERT_EQUAL(r->length[i], c->length);
  }
  CU_ASSERT_EQUAL(memcmp(r->token, c->token, n * sizeof *r->token), 0);
  CU_ASSERT(largest_difference(watched.dist, right, n * v) <= tolerance);
  for (size_t k = 0; k < n; ++k) {
    CU_ASSERT_EQUAL(watched.times[k], 1);
    ASSERT_CLOSE(r->logq[k], right[k * v + (size_t)watched.drawn[k]], tolerance);
  }
  CU_ASSERT(changed > n / 2);
  CU_ASSERT_EQUAL(dists_apart(c, watched.dist, other), changed);
}

static void compare(number_type type, int keeps, size_t slots, double part) {
  changing c;
  changing_open(&c, type);
  const size_t n = c.n_responses * c.length, capacity = c.longest_prompt + c.length;
  const size_t bytes = generate_cache_bytes(c.s.m, capacity);
  const generate_cache cache = {capacity, bytes, calloc(c.n_responses, bytes)};
  const backend_ops *ops = c.s.b->ops;
  backend_ops watching = *ops;
  generate_result r;
  watched.c = &c;
  watched.draw = ops->sample;
  watched.dist = calloc(n * c.vocabulary, sizeof *watched.dist);
  watched.drawn = calloc(n, sizeof *watched.drawn);
  watched.times = calloc(n, sizeof *watched.times);
  CU_ASSERT_FATAL(cache.kept != NULL && watched.dist != NULL && watched.drawn != NULL &&
                  watched.times != NULL);
  watching.sample = draw_watched;
  c.s.b->ops = &watching;
  draw_all(&c, keeps ? &cache : NULL, slots, &r);
  c.s.b->ops = ops;
  check_dists(&c, &r, keeps ? c.keep : c.recompute, keeps ? c.recompute : c.keep, part);
  generate_result_fini(&r);
  free(cache.kept);
  free(watched.dist);
  free(watched.drawn);
  free(watched.times);
  changing_close(&c);
}

/* With a slot for every response, and with so few that responses wait and change slots. */
static void compare_at_all_slots(int keeps) {
  static const size_t slots[] = {0, 1, 3};
  for (size_t k = 0; k < sizeof slots / sizeof *slots; ++k) {
    compare(NUMBER_F64, keeps, slots[k], 1e-12);
    compare(NUMBER_F32, keeps, slots[k], 1e-5);
  }
}

TEST(kept_keys_and_values_give_the_mixed_dist) {
  compare_at_all_slots(1);
}

TEST(keys_and_values_computed_again_give_the_newest_dist) {
  compare_at_all_slots(0);
}
