/* Forward and backward: against transformers, against central differences, and against itself with
 * other orders of work. */
#include "llm/model/model.h"
#include "tests/support/llm_model.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

/* --- against transformers --- */

SUITE("llm: model");

/* Logits of every row: each prefix of each sequence is a prompt, whose last row a prefill gives.
 * logits[n_tokens, vocabulary]. */
static void logits_of_all_rows(model *m, const golden_pass *g, double *logits) {
  model_cache *cache;
  ASSERT_OK(model_cache_new(&cache, m, 1, 16, &err));
  const size_t v = g->vocabulary;
  for (size_t s = 0; s < g->rows.n_sequences; ++s)
    for (size_t i = g->start[s]; i < g->start[s + 1]; ++i) {
      const size_t start[2] = {0, i + 1 - g->start[s]}, slot = 0;
      const packed_tokens prompt = {start[1], 1, 0, start, g->token + g->start[s], NULL, NULL};
      ASSERT_OK(model_prefill(cache, &prompt, &slot, &err));
      ASSERT_OK(model_logits_get(cache, 1, logits + i * v, &err));
    }
  model_cache_free(cache);
}

static void compare_logits(const char *folder, const char *expected, number_type type, double tol) {
  small_model s;
  golden_pass g;
  small_model_load(&s, folder, type, 0);
  golden_pass_load(&g, expected);
  const size_t n = g.rows.n_tokens * g.vocabulary;
  double *logits = calloc(n, sizeof *logits);
  logits_of_all_rows(s.m, &g, logits);
  CU_ASSERT(largest_difference(logits, g.logits, n) <= tol * largest(g.logits, n));
  if (type == NUMBER_F32) { /* unchanged transformers in float32, in a padded batch */
    double *single = golden_tensor(g.file, "logits_f32", &(size_t){0});
    CU_ASSERT(largest_difference(logits, single, n) <= tol * largest(single, n));
    free(single);
  }
  free(logits);
  golden_pass_free(&g);
}

static const struct {
  const char *folder, *expected;
} fixtures[] = {{QWEN3 "tied", QWEN3 "tied.safetensors"},
                {QWEN3 "untied", QWEN3 "untied.safetensors"},
                {DECODERS "qwen2", DECODERS "qwen2.safetensors"},
                {DECODERS "llama", DECODERS "llama.safetensors"}};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

TEST(logits_are_those_of_transformers) {
  for (size_t i = 0; i < FIXTURES; ++i) {
    compare_logits(fixtures[i].folder, fixtures[i].expected, NUMBER_F32, 1e-5);
    compare_logits(fixtures[i].folder, fixtures[i].expected, NUMBER_F64, 1e-12);
  }
}

/* Log-probabilities, entropies and every parameter's gradient, each gradient relative to the
 * largest of its tensor. */
static void compare_pass(const char *folder, const char *expected, number_type type, int recompute,
                         double tol, double gradient_tol) {
  gl_error err = {0};
  small_model s;
  golden_pass g;
  small_model_load(&s, folder, type, recompute);
  golden_pass_load(&g, expected);
  const size_t t = g.rows.n_targets, n = model_parameters(s.m);
  double *logp = calloc(2 * t + n, sizeof *logp), *entropy = logp + t, *gradient = entropy + t;
  must(model_forward(s.m, &g.rows, g.temperature, 1, logp, entropy, &err), &err);
  CU_ASSERT(largest_difference(logp, g.logp, t) <= tol * largest(g.logp, t));
  CU_ASSERT(largest_difference(entropy, g.entropy, t) <= tol * largest(g.entropy, t));
  must(model_backward(s.m, g.coefficient, &err), &err);
  must(model_gradient_get(s.m, gradient, &err), &err);
  const model_tensor *p;
  for (size_t i = 0; (p = model_tensor_at(s.m, i)) != NULL; ++i) {
    char name[128];
    size_t count;
    snprintf(name, sizeof name, "grad.%s", p->name);
    double *right = golden_tensor(g.file, name, &count);
    CU_ASSERT_EQUAL(count, p->rows * p->columns);
    const double off = largest_difference(gradient + p->offset, right, count);
    if (!(off <= gradient_tol * largest(right, count)))
      fprintf(stderr, "%s %s: %g of %g\n", folder, name, off, largest(right, count));
    CU_ASSERT(off <= gradient_tol * largest(right, count));
    free(right);
  }
  free(logp);
  golden_pass_free(&g);
}

TEST(gradients_are_those_of_transformers) {
  for (size_t i = 0; i < 2 * FIXTURES; ++i) {
    const char *folder = fixtures[i / 2].folder, *expected = fixtures[i / 2].expected;
    compare_pass(folder, expected, NUMBER_F32, i % 2, 1e-5, 1e-4);
    compare_pass(folder, expected, NUMBER_F64, i % 2, 1e-12, 1e-10);
  }
}

/* Distributions over kept tokens, against autograd in PyTorch (tests/golden/replay_llm.py); sets as
 * bits or as lists. Each gradient relative to the largest of its tensor. */
static void compare_kept_pass(number_type type, int listed, int recompute, double tol,
                              double gradient_tol) {
  gl_error err = {0};
  small_model s;
  golden_pass g;
  safetensors *file;
  size_t count;
  small_model_load(&s, QWEN3 "tied", type, recompute);
  golden_pass_load(&g, QWEN3 "tied.safetensors");
  must(safetensors_open(&file, QWEN3 "replay.safetensors", &err), &err);
  const size_t t = g.rows.n_targets, n = model_parameters(s.m), v = g.vocabulary;
  double *kept = golden_tensor(file, "kept", &count), *right = golden_tensor(file, "logp", &count);
  double *whole = golden_tensor(file, "entropy", &count);
  CU_ASSERT_EQUAL(count, t);
  const kept_shape shape = {v, listed ? v + 1 : (v + 31) / 32, listed};
  uint32_t *set = calloc(t * shape.words, sizeof *set);
  for (size_t i = 0; i < t * v; ++i) kept[i] = kept[i] > 0 ? -1 : -INFINITY;
  for (size_t j = 0; j < t; ++j) kept_put(&shape, kept + j * v, set + j * shape.words);
  double *logp = calloc(2 * t + n, sizeof *logp), *entropy = logp + t, *gradient = entropy + t;
  const kept_tokens over = {&shape, set};
  const forward_options replayed = {.kept = &over, .temperature = g.temperature, .keep = 1};
  must(model_forward_with(s.m, &g.rows, &replayed, logp, entropy, &err), &err);
  CU_ASSERT(largest_difference(logp, right, t) <= tol * largest(right, t));
  CU_ASSERT(largest_difference(logp, g.logp, t) > 0.1); /* it is another distribution */
  CU_ASSERT(largest_difference(entropy, whole, t) <= tol * largest(whole, t));
  must(model_backward(s.m, g.coefficient, &err), &err);
  must(model_gradient_get(s.m, gradient, &err), &err);
  const model_tensor *p;
  for (size_t i = 0; (p = model_tensor_at(s.m, i)) != NULL; ++i) {
    char name[128];
    snprintf(name, sizeof name, "grad.%s", p->name);
    double *slope = golden_tensor(file, name, &count);
    CU_ASSERT_EQUAL(count, p->rows * p->columns);
    const double off = largest_difference(gradient + p->offset, slope, count);
    if (!(off <= gradient_tol * largest(slope, count)))
      fprintf(stderr, "%s: %g of %g\n", name, off, largest(slope, count));
    CU_ASSERT(off <= gradient_tol * largest(slope, count));
    free(slope);
  }
  for (size_t a = 0; a < v; ++a) kept[a] = a == (size_t)g.target[0] ? -INFINITY : -1;
  kept_put(&shape, kept, set); /* a set without its target */
  CU_ASSERT_EQUAL(model_forward_with(s.m, &g.rows, &replayed, logp, entropy, &err), GL_EINTERNAL);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not among the tokens kept"));
  free(kept);
  free(right);
  free(whole);
  free(set);
  free(logp);
  safetensors_free(file);
  golden_pass_free(&g);
}

TEST(gradients_over_kept_tokens_are_those_of_autograd) {
  for (int listed = 0; listed < 2; ++listed) {
    compare_kept_pass(NUMBER_F64, listed, listed, 1e-12, 1e-10);
    compare_kept_pass(NUMBER_F32, listed, 0, 1e-5, 1e-4);
  }
}

/* --- against itself --- */

static const size_t lengths[] = {5, 9, 1, 7, 2};

static double loss_at(model *m, const random_rows *r, double temperature) {
  double logp[128], sum = 0;
  ASSERT_OK(model_forward(m, &r->rows, temperature, 0, logp, NULL, &err));
  for (size_t j = 0; j < r->rows.n_targets; ++j) sum += r->coefficient[j] * logp[j];
  return sum;
}

static void compare_differences(model_type as) {
  small_model s;
  random_rows r;
  double logp[128];
  small_model_make_as(&s, as, NUMBER_F64, 0, 3);
  random_rows_init(&r, lengths, 5, 11, 1);
  const size_t n = model_parameters(s.m);
  double *theta = calloc(2 * n, sizeof *theta), *gradient = theta + n;
  ASSERT_OK(model_get(s.m, theta, &err));
  ASSERT_OK(model_forward(s.m, &r.rows, 1.3, 1, logp, NULL, &err));
  ASSERT_OK(model_backward(s.m, r.coefficient, &err));
  ASSERT_OK(model_gradient_get(s.m, gradient, &err));
  const double h = 1e-5, size = largest(gradient, n);
  for (size_t i = 0; i < n; i += 7) {
    const double was = theta[i];
    theta[i] = was + h;
    ASSERT_OK(model_set(s.m, theta, &err));
    const double above = loss_at(s.m, &r, 1.3);
    theta[i] = was - h;
    ASSERT_OK(model_set(s.m, theta, &err));
    const double below = loss_at(s.m, &r, 1.3);
    theta[i] = was;
    ASSERT_CLOSE(gradient[i] / size, (above - below) / (2 * h) / size, 1e-7);
  }
  free(theta);
}

TEST(gradients_are_central_differences_of_the_whole_model) {
  for (int as = 0; as < MODEL_TYPES; ++as) compare_differences((model_type)as);
}

/* The gradient of rows in parts, each part a range of sequences; gradient[n_parameters]. */
static void gradient_in_parts(model *m, const random_rows *r, size_t part, double *gradient) {
  double logp[128];
  size_t start[9], row[128];
  ASSERT_OK(model_zero_gradient(m, &err));
  for (size_t s = 0, j = 0; s < r->rows.n_sequences; s += part) {
    const size_t end = s + part < r->rows.n_sequences ? s + part : r->rows.n_sequences;
    const size_t base = r->start[s], first = j;
    for (size_t k = s; k <= end; ++k) start[k - s] = r->start[k] - base;
    for (; j < r->rows.n_targets && r->target_after[j] < r->start[end]; ++j)
      row[j - first] = r->target_after[j] - base;
    const packed_tokens some = {start[end - s],  end - s, j - first,        start,
                                r->token + base, row,     r->target + first};
    ASSERT_OK(model_forward(m, &some, 1, 1, logp, NULL, &err));
    ASSERT_OK(model_backward(m, r->coefficient + first, &err));
  }
  ASSERT_OK(model_gradient_get(m, gradient, &err));
}

/* In float32 up to a hundred roundings: norms over small heads enlarge them. */
TEST(gradients_accumulate_over_parts_of_a_batch) {
  const number_type types[] = {NUMBER_F32, NUMBER_F64};
  for (int i = 0; i < 2; ++i) {
    small_model s;
    random_rows r;
    small_model_make(&s, types[i], 0, 4);
    random_rows_init(&r, lengths, 5, 11, 2);
    const size_t n = model_parameters(s.m);
    double *whole = calloc(2 * n, sizeof *whole), *parts = whole + n;
    gradient_in_parts(s.m, &r, 5, whole);
    for (size_t part = 1; part < 4; ++part) {
      gradient_in_parts(s.m, &r, part, parts);
      CU_ASSERT(largest_difference(whole, parts, n) <=
                (types[i] == NUMBER_F32 ? 5e-5 : 1e-13) * largest(whole, n));
    }
    free(whole);
  }
}

TEST(recomputing_gives_the_same_bits_as_keeping) {
  const number_type types[] = {NUMBER_F32, NUMBER_F64};
  for (int i = 0; i < 2 * MODEL_TYPES; ++i) {
    small_model keeping, recomputing;
    random_rows r;
    small_model_make_as(&keeping, (model_type)(i / 2), types[i % 2], 0, 5);
    small_model_make_as(&recomputing, (model_type)(i / 2), types[i % 2], 1, 5);
    random_rows_init(&r, lengths, 5, 11, 3);
    const size_t n = model_parameters(keeping.m);
    double *a = calloc(2 * n, sizeof *a), *b = a + n;
    gradient_in_parts(keeping.m, &r, 5, a);
    gradient_in_parts(recomputing.m, &r, 5, b);
    CU_ASSERT(largest(a, n) > 0);
    CU_ASSERT_EQUAL(memcmp(a, b, n * sizeof *a), 0);
    free(a);
  }
}

TEST(a_row_of_several_targets_is_as_good_as_several_rows) {
  small_model s;
  small_model_make(&s, NUMBER_F64, 0, 6);
  const int32_t token[] = {3, 1, 4}, twice[] = {3, 1, 4, 3, 1, 4}, target[] = {5, 6, 7};
  const size_t start[] = {0, 3}, starts[] = {0, 3, 6};
  const size_t same_row[] = {1, 1, 2}, own_row[] = {1, 4, 5};
  const double coefficient[] = {0.5, -2, 1};
  const packed_tokens one = {3, 1, 3, start, token, same_row, target},
                      two = {6, 2, 3, starts, twice, own_row, target};
  const size_t n = model_parameters(s.m);
  double *a = calloc(2 * n, sizeof *a), *b = a + n, logp[6];
  ASSERT_OK(model_forward(s.m, &one, 1, 1, logp, NULL, &err));
  ASSERT_OK(model_backward(s.m, coefficient, &err));
  ASSERT_OK(model_gradient_get(s.m, a, &err));
  ASSERT_OK(model_zero_gradient(s.m, &err));
  ASSERT_OK(model_forward(s.m, &two, 1, 1, logp + 3, NULL, &err));
  ASSERT_OK(model_backward(s.m, coefficient, &err));
  ASSERT_OK(model_gradient_get(s.m, b, &err));
  CU_ASSERT(largest_difference(logp, logp + 3, 3) < 1e-14);
  CU_ASSERT(largest_difference(a, b, n) < 1e-13 * largest(a, n));
  free(a);
}

/* Four sequences: the second goes on within the first, the third from the whole second, the fourth
 * from what the second has of the first. */
static const int32_t whole_tokens[] = {3, 1, 4, 1, 3, 1, 4, 5, 9, 3, 1, 4, 5, 9, 2, 3, 1, 6};
static const size_t whole_start[] = {0, 4, 9, 15, 18};
static const size_t whole_after[] = {0, 2, 3, 6, 7, 8, 12, 13, 14, 15, 16, 17};
static const int32_t own_tokens[] = {3, 1, 4, 1, 5, 9, 2, 6};
static const size_t own_start[] = {0, 4, 6, 7, 8},
                    own_after[] = {0, 0, 1, 2, 2, 3, 4, 4, 5, 5, 6, 7};
/* Which of the targets of whole sequences each of these is. */
static const size_t own_target[] = {0, 9, 10, 1, 3, 2, 4, 6, 5, 7, 8, 11};
static const size_t one_tree[] = {0, 4}, parents[] = {0, 0, 1, 1}, befores[] = {0, 3, 5, 2};
enum { ALL_TARGETS = 12 };

static gl_status forward_shared(model *m, const packed_tokens *rows, const shared_tokens *shared,
                                int keep, double *logp, gl_error *err) {
  const forward_options o = {.shared = shared, .temperature = 1, .keep = keep};
  return model_forward_with(m, rows, &o, logp, NULL, err);
}

static void check_shared_beginnings(model_type as, number_type type, int recompute,
                                    double tolerance) {
  small_model s;
  int32_t target[ALL_TARGETS], sorted[ALL_TARGETS];
  double c[ALL_TARGETS], d[ALL_TARGETS], logp[ALL_TARGETS], shared_logp[ALL_TARGETS];
  small_model_make_as(&s, as, type, recompute, 6);
  for (size_t j = 0; j < ALL_TARGETS; ++j) {
    target[j] = (int32_t)(j * 5 % 11);
    c[j] = 1 - 0.3 * (double)j;
  }
  for (size_t j = 0; j < ALL_TARGETS; ++j) {
    sorted[j] = target[own_target[j]];
    d[j] = c[own_target[j]];
  }
  const packed_tokens whole = {18, 4, ALL_TARGETS, whole_start, whole_tokens, whole_after, target};
  const packed_tokens own = {8, 4, ALL_TARGETS, own_start, own_tokens, own_after, sorted};
  const shared_tokens shared = {1, one_tree, parents, befores};
  const size_t n = model_parameters(s.m);
  double *a = calloc(2 * n, sizeof *a), *b = a + n;
  ASSERT_OK(model_forward(s.m, &whole, 1, 1, logp, NULL, &err));
  ASSERT_OK(model_backward(s.m, c, &err));
  ASSERT_OK(model_gradient_get(s.m, a, &err));
  ASSERT_OK(model_zero_gradient(s.m, &err));
  ASSERT_OK(forward_shared(s.m, &own, &shared, 1, shared_logp, &err));
  ASSERT_OK(model_backward(s.m, d, &err));
  ASSERT_OK(model_gradient_get(s.m, b, &err));
  for (size_t j = 0; j < ALL_TARGETS; ++j)
    CU_ASSERT(memcmp(&shared_logp[j], &logp[own_target[j]], sizeof *logp) == 0);
  CU_ASSERT(largest_difference(a, b, n) < tolerance * largest(a, n));
  free(a);
}

TEST(shared_beginnings_give_the_bits_and_the_gradient_of_whole_sequences) {
  for (int recompute = 0; recompute < 2; ++recompute) {
    for (int as = 0; as < MODEL_TYPES; ++as)
      check_shared_beginnings((model_type)as, NUMBER_F64, recompute, 1e-13);
    check_shared_beginnings(MODEL_QWEN3, NUMBER_F32, recompute, 1e-5);
  }
}

TEST(wrong_trees_are_refused) {
  static const struct {
    size_t n_trees, tree[3], parent[4], before[4];
  } wrong[] = {
      {1, {0, 3}, {0, 0, 1, 1}, {0, 3, 5, 2}},    /* a sequence of no tree */
      {1, {1, 4}, {0, 0, 1, 1}, {0, 3, 5, 2}},    /* the same, at the beginning */
      {2, {0, 0, 4}, {0, 0, 1, 1}, {0, 3, 5, 2}}, /* a tree of no sequence */
      {2, {0, 2, 4}, {0, 0, 1, 1}, {0, 3, 0, 2}}, /* a parent in another tree */
      {2, {0, 2, 4}, {0, 0, 1, 2}, {0, 3, 5, 2}}, /* a tree that begins with a shared part */
      {1, {0, 4}, {0, 1, 1, 1}, {0, 3, 5, 2}},    /* its own parent */
      {1, {0, 4}, {0, 0, 3, 1}, {0, 3, 5, 2}},    /* a parent that comes later */
      {1, {0, 4}, {0, 0, 1, 1}, {0, 5, 5, 2}},    /* more than the parent has */
      {1, {0, 4}, {0, 0, 1, 1}, {0, 3, 6, 2}},
  };
  gl_error err = {0};
  small_model s;
  double logp[ALL_TARGETS];
  int32_t target[ALL_TARGETS] = {0};
  small_model_make(&s, NUMBER_F32, 0, 6);
  const packed_tokens own = {8, 4, ALL_TARGETS, own_start, own_tokens, own_after, target};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    const shared_tokens shared = {wrong[i].n_trees, wrong[i].tree, wrong[i].parent,
                                  wrong[i].before};
    CU_ASSERT_EQUAL(forward_shared(s.m, &own, &shared, 0, logp, &err), GL_EINTERNAL);
    gl_error_clear(&err);
  }
  /* Positions count what is shared: 40 are the model's context. */
  int32_t token[45] = {0};
  const size_t start[] = {0, 39, 45}, tree[] = {0, 2}, parent[] = {0, 0}, before[] = {0, 35};
  const packed_tokens rows = {45, 2, 0, start, token, NULL, NULL};
  const shared_tokens shared = {1, tree, parent, before};
  CU_ASSERT_EQUAL(forward_shared(s.m, &rows, &shared, 0, logp, &err), GL_EINPUT);
  gl_error_clear(&err);
}

/* Copies of all positions pay where enough rows are saved. */
TEST(a_device_shares_where_that_saves_enough_rows) {
  small_model s;
  const size_t many = (size_t)1 << 40;
  small_model_make(&s, NUMBER_F32, 0, 6);
  CU_ASSERT(model_shares(s.m, 0, many));
  s.b->copies_shared = 1;
  CU_ASSERT(!model_shares(s.m, 1000, 2000));
  CU_ASSERT(model_shares(s.m, many, 1000));
  CU_ASSERT(!model_shares(s.m, many / 1024, many));
}

/* A backend without the operations is not given shared prefixes. */
TEST(a_backend_that_cannot_share_says_so) {
  gl_error err = {0};
  small_model s;
  double logp[ALL_TARGETS];
  int32_t target[ALL_TARGETS] = {0};
  small_model_make(&s, NUMBER_F32, 0, 6);
  CU_ASSERT(model_shares(s.m, 1, 1));
  const backend_ops *all = s.b->ops;
  backend_ops some = *all;
  some.attention_shared = NULL;
  some.attention_shared_backward = NULL;
  s.b->ops = &some;
  CU_ASSERT(!model_shares(s.m, SIZE_MAX, 1));
  const packed_tokens own = {8, 4, ALL_TARGETS, own_start, own_tokens, own_after, target};
  const shared_tokens shared = {1, one_tree, parents, befores};
  CU_ASSERT_EQUAL(forward_shared(s.m, &own, &shared, 0, logp, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  s.b->ops = all;
}

/* --- values --- */

static void compare_copy(int aside) {
  gl_error err = {0};
  small_model s;
  random_rows r;
  double before[128], after[128], again[128];
  small_model_make(&s, NUMBER_F32, 0, 7);
  random_rows_init(&r, lengths, 5, 11, 4);
  const size_t t = r.rows.n_targets;
  model_values *copy;
  must(aside ? model_values_put_aside(&copy, s.m, &err) : model_values_copy(&copy, s.m, &err),
       &err);
  CU_ASSERT_EQUAL(model_values_are_aside(copy), aside);
  must(model_forward(s.m, &r.rows, 1, 0, before, NULL, &err), &err);
  must(model_initialise(s.m, 8, &err), &err);
  must(model_forward(s.m, &r.rows, 1, 0, after, NULL, &err), &err);
  model_use(s.m, copy);
  must(model_forward(s.m, &r.rows, 1, 0, again, NULL, &err), &err);
  CU_ASSERT_EQUAL(memcmp(before, again, t * sizeof *before), 0);
  CU_ASSERT_NOT_EQUAL(memcmp(before, after, t * sizeof *before), 0);
  CU_ASSERT_EQUAL(model_forward(s.m, &r.rows, 1, 1, again, NULL, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  /* Values put aside are used in the gradient's memory. */
  CU_ASSERT_EQUAL(model_zero_gradient(s.m, &err), aside ? GL_EINTERNAL : GL_OK);
  gl_error_clear(&err);
  model_use(s.m, NULL);
  must(model_zero_gradient(s.m, &err), &err);
  must(model_forward(s.m, &r.rows, 1, 0, again, NULL, &err), &err);
  CU_ASSERT_EQUAL(memcmp(after, again, t * sizeof *before), 0);
  model_use(s.m, copy);
  model_values_free(copy, s.m); /* the model's own are in use then */
  must(model_forward(s.m, &r.rows, 1, 0, again, NULL, &err), &err);
  CU_ASSERT_EQUAL(memcmp(after, again, t * sizeof *before), 0);
}

TEST(a_copy_of_the_values_stays_what_it_was) {
  compare_copy(0);
}
TEST(values_put_aside_stay_what_they_were) {
  compare_copy(1);
}

/* Moments of the drawn weights: the mean of n normals has standard error sd / sqrt(n), their
 * variance relative error sqrt(2 / n). */
TEST(first_values_are_normal_and_addressed) {
  small_model s, other;
  small_model_load(&s, QWEN3 "tied", NUMBER_F64, 0);
  small_model_load(&other, QWEN3 "tied", NUMBER_F32, 0);
  const size_t n = model_parameters(s.m);
  double *a = calloc(2 * n, sizeof *a), *b = a + n, sum = 0, square = 0;
  ASSERT_OK(model_initialise(s.m, 9, &err));
  ASSERT_OK(model_initialise(other.m, 9, &err));
  ASSERT_OK(model_get(s.m, a, &err));
  ASSERT_OK(model_get(other.m, b, &err));
  CU_ASSERT(largest_difference(a, b, n) <= 1e-7); /* the same draws, rounded */
  const model_tensor *t = model_tensor_at(s.m, 0), *last = NULL;
  for (size_t i = 0; model_tensor_at(s.m, i) != NULL; ++i) last = model_tensor_at(s.m, i);
  CU_ASSERT_STRING_EQUAL(t->name, "model.embed_tokens.weight");
  CU_ASSERT_STRING_EQUAL(last->name, "model.norm.weight");
  for (size_t i = 0; i < last->columns; ++i) CU_ASSERT_EQUAL(a[last->offset + i], 1);
  const size_t matrices = n - 2 * (2 * 32 + 2 * 16) - 32;
  for (size_t i = 0; i < matrices; ++i) sum += a[i], square += a[i] * a[i];
  const double sd = 0.05, m = (double)matrices;
  CU_ASSERT(fabs(sum / m) < 5 * sd / sqrt(m));
  CU_ASSERT(fabs(square / m / (sd * sd) - 1) < 5 * sqrt(2 / m));
  free(a);
}

/* --- what is refused --- */

TEST(wrong_rows_are_refused) {
  gl_error err = {0};
  small_model s;
  small_model_make(&s, NUMBER_F32, 0, 1);
  int32_t token[64] = {0}, target = 0;
  double logp, coefficient = 1;
  size_t start[] = {0, 3}, row = 1;
  packed_tokens rows = {3, 1, 1, start, token, &row, &target};
  must(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), &err);
  CU_ASSERT_EQUAL(model_backward(s.m, &coefficient, &err), GL_EINTERNAL); /* not kept */
  gl_error_clear(&err);
  token[2] = 11;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), GL_EINPUT);
  gl_error_clear(&err);
  token[2] = -1;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), GL_EINPUT);
  gl_error_clear(&err);
  token[2] = 0;
  target = 11;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), GL_EINPUT);
  gl_error_clear(&err);
  target = 0;
  rows.n_tokens = start[1] = 41;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "context of 40"));
  gl_error_clear(&err);
  rows.n_tokens = start[1] = 3;
  row = 3;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 1, 0, &logp, NULL, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  row = 2;
  CU_ASSERT_EQUAL(model_forward(s.m, &rows, 0, 0, &logp, NULL, &err), GL_EINTERNAL);
  gl_error_clear(&err);
  must(model_forward(s.m, &rows, 1, 1, &logp, NULL, &err), &err);
  must(model_backward(s.m, &coefficient, &err), &err);
  CU_ASSERT_EQUAL(model_backward(s.m, &coefficient, &err), GL_EINTERNAL); /* once only */
}
