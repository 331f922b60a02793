/* Truncation of a distribution by top-k and top-p, the sections `sampling` and `optimizer`, and
 * schedules of the learning rate, against cases worked by hand. */
#include "core/rl/sampling_distribution.h"

#include "core/random/rng.h"
#include "core/rl/optimizer_settings.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

SUITE("core: sampling and learning rates");

enum { MAX_TOKENS = 8 };

/* Truncates probabilities p[n] and compares with expected probabilities, 0 meaning outside. */
static void check_dist(size_t top_k, double top_p, size_t n, const double *p,
                       const double *expected) {
  sampling_spec spec = {.temperature = 1, .top_k = top_k, .top_p = top_p};
  sampling_rank rank[MAX_TOKENS];
  double logp[MAX_TOKENS] = {0}, out[MAX_TOKENS];
  for (size_t i = 0; i < n; ++i) logp[i] = log(p[i]);
  sampling_truncate(&spec, logp, n, out, rank);
  for (size_t i = 0; i < n; ++i) {
    if (expected[i] == 0) CU_ASSERT(out[i] == -INFINITY);
    if (expected[i] != 0) ASSERT_CLOSE(exp(out[i]), expected[i], 1e-14);
  }
}

static const double skewed[] = {0.15, 0.5, 0.05, 0.3};

TEST(top_k_keeps_the_most_probable_tokens) {
  check_dist(1, 1, 4, skewed, (double[]){0, 1, 0, 0});
  check_dist(2, 1, 4, skewed, (double[]){0, 0.625, 0, 0.375});
  check_dist(3, 1, 4, skewed, (double[]){0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95});
  check_dist(4, 1, 4, skewed, skewed);
  check_dist(9, 1, 4, skewed, skewed);
}

TEST(top_p_keeps_the_shortest_run_that_reaches_its_share) {
  check_dist(0, 0.4, 4, skewed, (double[]){0, 1, 0, 0});
  check_dist(0, 0.6, 4, skewed, (double[]){0, 0.625, 0, 0.375});
  check_dist(0, 0.9, 4, skewed, (double[]){0.15 / 0.95, 0.5 / 0.95, 0, 0.3 / 0.95});
  check_dist(0, 1, 4, skewed, skewed);
  check_dist(0, 1e-300, 4, skewed, (double[]){0, 1, 0, 0});
}

/* Of {0.5, 0.3} the first is 0.625: enough for a share of 0.6, though 0.5 alone is not. */
TEST(top_p_is_a_share_of_what_top_k_left) {
  check_dist(2, 0.6, 4, skewed, (double[]){0, 1, 0, 0});
}

TEST(tokens_tied_with_the_kth_stay) {
  const double even[] = {0.25, 0.25, 0.25, 0.25}, pair[] = {0.2, 0.3, 0.3, 0.2};
  check_dist(1, 1, 4, even, even);
  check_dist(2, 1, 4, pair, (double[]){0, 0.5, 0.5, 0});
  check_dist(1, 1, 4, pair, (double[]){0, 0.5, 0.5, 0});
  check_dist(3, 1, 4, pair, pair);
}

TEST(impossible_tokens_stay_impossible_and_undefined_dists_undefined) {
  check_dist(3, 1, 4, (double[]){0, 0.5, 0.5, 0}, (double[]){0, 0.5, 0.5, 0});
  sampling_spec spec = {.temperature = 1, .top_k = 1, .top_p = 1};
  sampling_rank rank[2];
  double out[2], logp[2] = {NAN, 0};
  sampling_truncate(&spec, logp, 2, out, rank);
  CU_ASSERT(isnan(out[0]) && out[1] == 0);
}

TEST(only_a_dist_that_can_change_counts_as_truncated) {
  CU_ASSERT(!sampling_truncates(&(sampling_spec){.top_p = 1}, 4));
  CU_ASSERT(!sampling_truncates(&(sampling_spec){.top_p = 1, .top_k = 4}, 4));
  CU_ASSERT(sampling_truncates(&(sampling_spec){.top_p = 1, .top_k = 3}, 4));
  CU_ASSERT(sampling_truncates(&(sampling_spec){.top_p = 0.99}, 4));
}

/* --- against the plain way: sort everything --- */

static int by_probability(const void *a, const void *b) {
  const sampling_rank *x = a, *y = b;
  if (x->logp != y->logp) return x->logp > y->logp ? -1 : 1;
  return x->token < y->token ? -1 : x->token > y->token;
}

static void truncate_by_full_sort(const sampling_spec *spec, const double *logp, size_t n,
                                  double *out, sampling_rank *rank) {
  for (size_t i = 0; i < n; ++i) rank[i] = (sampling_rank){logp[i], i};
  qsort(rank, n, sizeof *rank, by_probability);
  size_t keep = spec->top_k != 0 && spec->top_k < n ? spec->top_k : n;
  while (keep < n && rank[keep].logp == rank[keep - 1].logp) ++keep;
  double kept = 0;
  for (size_t i = 0; i < keep; ++i) kept += exp(rank[i].logp);
  if (spec->top_p < 1) {
    double mass = 0, wanted = spec->top_p * kept;
    size_t run = 0;
    while (run < keep && (run == 0 || mass < wanted)) mass += exp(rank[run++].logp);
    keep = run;
    kept = mass;
  }
  for (size_t i = 0; i < n; ++i) out[i] = -INFINITY;
  for (size_t i = 0; i < keep; ++i) out[rank[i].token] = rank[i].logp - log(kept);
}

/* Log-probabilities of six kinds: bell-shaped; flat; few values, so ties; most impossible; so small
 * that probabilities lose digits; nearly all in one token. */
static void fill_dist(double *logp, size_t n, size_t kind, rng_stream s) {
  double greatest = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const rng_words w = rng_block(s, i);
    const double u = rng_u01_53(w.v[0], w.v[1]), bell = rng_normal(w);
    const double z[] = {
        3 * bell, 0, floor(5 * u), u < 0.9 ? -INFINITY : bell, bell - 720, i == n / 3 ? 60 : bell};
    logp[i] = z[kind];
    greatest = fmax(greatest, logp[i]);
  }
  if (kind == 4 || greatest == -INFINITY) return;
  for (size_t i = 0; i < n; ++i) sum += exp(logp[i] - greatest);
  for (size_t i = 0; i < n; ++i) logp[i] -= greatest + log(sum);
}

static size_t dist_differences(const sampling_spec *spec, const double *logp, size_t n) {
  sampling_rank *rank = calloc(n, sizeof *rank);
  double *plain = calloc(n, 2 * sizeof *plain), *out = plain != NULL ? plain + n : NULL;
  CU_ASSERT_FATAL(rank != NULL && plain != NULL);
  truncate_by_full_sort(spec, logp, n, plain, rank);
  sampling_truncate(spec, logp, n, out, rank);
  size_t differ = 0;
  for (size_t i = 0; i < n; ++i) differ += memcmp(&plain[i], &out[i], sizeof *out) != 0;
  free(rank);
  free(plain);
  return differ;
}

TEST(dists_are_bit_for_bit_those_of_a_full_sort) {
  static const size_t sizes[] = {1, 2, 3, 24, 25, 26, 100, 1000, 5003};
  static const double shares[] = {1, 0.9, 0.5, 1e-3, 1e-300, 0.999, 1 - 1e-12, 1 - 0x1p-53};
  const size_t n_sizes = sizeof sizes / sizeof *sizes, n_shares = sizeof shares / sizeof *shares;
  double *logp = calloc(5003, sizeof *logp);
  CU_ASSERT_FATAL(logp != NULL);
  size_t dists = 0, wrong = 0;
  for (size_t a = 0; a < n_sizes; ++a)
    for (size_t kind = 0; kind < 6; ++kind) {
      const size_t n = sizes[a], counts[] = {0, 1, 2, 20, n / 2, n - n / 10};
      fill_dist(logp, n, kind, rng_stream_at(11, RNG_EVAL, 8 * a + kind));
      for (size_t b = 0; b < n_shares; ++b)
        for (size_t c = 0; c < 6; ++c, ++dists) {
          const sampling_spec spec = {.temperature = 1, .top_k = counts[c], .top_p = shares[b]};
          if (!sampling_truncates(&spec, n)) continue;
          if (dist_differences(&spec, logp, n) > 0) ++wrong;
        }
    }
  CU_ASSERT(dists == n_sizes * 6 * n_shares * 6 && wrong == 0);
  free(logp);
}

/* Orders that a partition could take badly, and shares that fall exactly between two tokens, where
 * the rounding of the whole sum decides. */
TEST(rising_falling_and_even_dists_are_those_of_a_full_sort_too) {
  enum { N = 4096 };
  double logp[3][N];
  size_t wrong = 0;
  for (size_t i = 0; i < N; ++i) {
    logp[0][i] = -1e-3 * (double)i;
    logp[1][N - 1 - i] = logp[0][i];
    logp[2][i] = -log(N);
  }
  for (size_t dist = 0; dist < 3; ++dist)
    for (size_t k = 1; k < N; k += 37) {
      const sampling_spec share = {.temperature = 1, .top_p = (double)k / N};
      const sampling_spec count = {.temperature = 1, .top_p = 1, .top_k = k};
      wrong += dist_differences(&share, logp[dist], N) > 0;
      wrong += dist_differences(&count, logp[dist], N) > 0;
    }
  CU_ASSERT(wrong == 0);
}

/* --- sections --- */

typedef gl_status parse_section(const cfg_node *section, gl_error *err);

static gl_status parse_sampling(const cfg_node *section, gl_error *err) {
  sampling_spec spec;
  return sampling_parse(&spec, section, err);
}

static gl_status parse_optimizer(const cfg_node *section, gl_error *err) {
  optimizer_spec spec;
  return optimizer_parse(&spec, section, "bandit", err);
}

typedef struct wrong_section {
  const char *text, *place, *says;
} wrong_section;

static void refuse_all(parse_section *parse, const wrong_section *table, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    cfg_doc *doc = NULL;
    gl_error err = {0};
    const char *text = table[i].text;
    CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err) == GL_OK);
    gl_status status = parse(cfg_find(cfg_root(doc), "s"), &err);
    int ok = status == GL_EINPUT && strstr(err.text, table[i].says) != NULL &&
             strncmp(err.text, table[i].place, strlen(table[i].place)) == 0;
    if (!ok) fprintf(stderr, "'%s' gave %d '%s'\n", text, status, err.text);
    CU_ASSERT(ok);
    cfg_free(doc);
  }
}

TEST(wrong_sampling_sections_are_refused_at_their_place) {
  static const wrong_section table[] = {
      {"s: {temperature: 0}", "r.yaml:1:18: ", "above 0"},
      {"s: {temperature: inf}", "r.yaml:1:18: ", "above 0"},
      {"s: {temprature: 1}", "r.yaml:1:5: ", "did you mean 'temperature'"},
      {"s: {top_k: -1}", "r.yaml:1:12: ", "at least 0"},
      {"s: {top_k: 1.5}", "r.yaml:1:12: ", "whole number"},
      {"s: {top_p: 0}", "r.yaml:1:12: ", "keep no token"},
      {"s: {top_p: 1.1}", "r.yaml:1:12: ", "from 0 to 1"},
      {"s:\n  top_p: .nan", "r.yaml:2:10: ", "from 0 to 1"},
      {"s: {weights: truncate}", "r.yaml:1:14: ", "did you mean 'truncated'"},
      {"s: [1]", "r.yaml:1:4: ", "must be a map"},
  };
  refuse_all(parse_sampling, table, sizeof table / sizeof *table);
}

TEST(wrong_optimizer_sections_are_refused_at_their_place) {
  static const wrong_section table[] = {
      {"s: {kind: adm}", "r.yaml:1:11: ", "did you mean 'adam'"},
      {"s: {lr: -1}", "r.yaml:1:9: ", "from 0"},
      {"s: {lr: fast}", "r.yaml:1:9: ", "is text"},
      {"s: {momentum: 1}", "r.yaml:1:15: ", "a number of at least 0 and below 1"},
      {"s: {beta2: 1}", "r.yaml:1:12: ", "below 1"},
      {"s: {momentum: 0.9}", "r.yaml:1:15: ", "has no effect with kind: adam"},
      {"s: {kind: sgd, beta1: 0.1}", "r.yaml:1:23: ", "has no effect with kind: sgd"},
      {"s: {kind: sgd, beta2: 0.1}", "r.yaml:1:23: ", "(optimizer.beta2=null)"},
      {"s: {kind: sgd, eps: 0.1}", "r.yaml:1:21: ", "give another kind"},
      {"s: {eps: 0}", "r.yaml:1:10: ", "above 0"},
      {"s: {wieght_decay: 0}", "r.yaml:1:5: ", "did you mean 'weight_decay'"},
      {"s: {clip_grad_norm: -2}", "r.yaml:1:21: ", "from 0"},
      {"s: {warmup: 0.5}", "r.yaml:1:13: ", "whole number"},
      {"s: {decay: cosin}", "r.yaml:1:12: ", "did you mean 'cosine'"},
  };
  refuse_all(parse_optimizer, table, sizeof table / sizeof *table);
}

TEST(absent_sections_take_their_defaults) {
  sampling_spec s;
  ASSERT_OK(sampling_parse(&s, NULL, &err));
  CU_ASSERT(s.temperature == 1 && s.top_k == 0 && s.top_p == 1 && s.weights == SAMPLING_RAW);
  optimizer_spec o;
  ASSERT_OK(optimizer_parse(&o, NULL, "llm", &err));
  CU_ASSERT(o.kind == OPTIMIZER_ADAM && o.lr == 1e-5 && o.beta1 == 0.9 && o.beta2 == 0.999);
  CU_ASSERT(o.eps == 1e-8 && o.weight_decay == 0 && o.clip_grad_norm == 0 && o.warmup == 0);
  CU_ASSERT(o.decay == LR_CONSTANT && o.momentum == 0);
}

TEST(the_rate_rises_over_the_warm_up_and_then_decays) {
  optimizer_spec o = {.lr = 2, .warmup = 4, .decay = LR_CONSTANT};
  const double rise[] = {0.5, 1, 1.5, 2, 2, 2};
  for (uint64_t step = 0; step < 6; ++step)
    ASSERT_CLOSE(optimizer_lr(&o, step, 8), rise[step], 1e-15);
  o.decay = LR_LINEAR;
  const double linear[] = {0.5, 1, 1.5, 2, 2, 1.5, 1, 0.5, 0, 0};
  for (uint64_t step = 0; step < 10; ++step)
    ASSERT_CLOSE(optimizer_lr(&o, step, 8), linear[step], 1e-15);
  o.decay = LR_COSINE;
  const double half = sqrt(0.5), cosine[] = {2, 1 + half, 1, 1 - half, 0, 0};
  for (uint64_t step = 0; step < 6; ++step)
    ASSERT_CLOSE(optimizer_lr(&o, step + 4, 8), cosine[step], 1e-15);
}

TEST(a_run_of_unknown_or_no_more_length_than_its_warm_up_never_decays_early) {
  optimizer_spec o = {.lr = 1, .warmup = 2, .decay = LR_LINEAR};
  CU_ASSERT(optimizer_lr(&o, 1000, 0) == 1);
  CU_ASSERT(optimizer_lr(&o, 0, 2) == 0.5 && optimizer_lr(&o, 1, 2) == 1);
  CU_ASSERT(optimizer_lr(&o, 0, 1) == 0.5);
  CU_ASSERT(optimizer_lr(&o, 2, 2) == 0);
}

/* --- sets of kept tokens --- */

SUITE("core: kept tokens");

static kept_shape shape_of(size_t top_k, double top_p, size_t vocabulary) {
  const sampling_spec dist = {.temperature = 1, .top_k = top_k, .top_p = top_p};
  kept_shape shape;
  ASSERT_OK(kept_shape_of(&shape, &dist, vocabulary, NULL, &err));
  CU_ASSERT_EQUAL(shape.vocabulary, vocabulary);
  return shape;
}

/* A distribution of `n` of the tokens, every `step`-th from `first` on. */
static double *dist_of(size_t vocabulary, size_t first, size_t step, size_t n) {
  double *dist = calloc(vocabulary, sizeof *dist);
  CU_ASSERT_PTR_NOT_NULL_FATAL(dist);
  for (size_t a = 0; a < vocabulary; ++a) dist[a] = -INFINITY;
  for (size_t k = 0; k < n; ++k) dist[first + k * step] = -log((double)n);
  return dist;
}

TEST(a_set_holds_the_tokens_of_its_dist_and_no_others) {
  static const struct {
    size_t vocabulary, top_k, first, step, n;
    int listed;
  } cases[] = {{7, 0, 2, 1, 3, 0},
               {32, 0, 31, 1, 1, 0},
               {33, 0, 0, 32, 2, 0},
               {1024, 0, 3, 17, 60, 0},
               {1025, 8, 1024, 1, 1, 1},
               {1025, 8, 0, 1, 48, 1},
               {150000, 50, 11, 999, 132, 1},
               {5000, 2000, 0, 1, 4032, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const size_t v = cases[i].vocabulary;
    const kept_shape shape = shape_of(cases[i].top_k, 0.5, v);

    double *dist = dist_of(v, cases[i].first, cases[i].step, cases[i].n);
    uint32_t *set = malloc(shape.words * sizeof *set);
    memset(set, 0xa5, shape.words * sizeof *set); /* what was there before is nothing */
    kept_put(&shape, dist, set);
    CU_ASSERT_EQUAL(shape.listed, cases[i].listed);
    CU_ASSERT_EQUAL(kept_count(&shape, set), cases[i].n);
    size_t wrong = 0;
    for (size_t a = 0; a < v; ++a) wrong += kept_has(&shape, set, a) != !isinf(dist[a]);
    CU_ASSERT_EQUAL(wrong, 0);
    free(set);
    free(dist);
  }
}

TEST(a_list_without_room_says_so) {
  const kept_shape shape = shape_of(4, 1, 3000);
  CU_ASSERT_EQUAL(shape.words, 1 + 2 * 4 + 32);
  uint32_t set[41];
  double *dist = dist_of(3000, 5, 3, 41);
  kept_put(&shape, dist, set);
  CU_ASSERT(set[0] == KEPT_OVERFLOW && kept_count(&shape, set) == 0);
  CU_ASSERT_EQUAL(kept_has(&shape, set, 5), 0);
  free(dist);
}

TEST(a_dist_that_is_not_a_number_keeps_none) {
  const kept_shape shapes[] = {shape_of(3, 1, 40), shape_of(3, 1, 4000)};
  for (size_t i = 0; i < 2; ++i) {
    uint32_t set[64];
    double *dist = dist_of(shapes[i].vocabulary, 0, 1, 3);
    dist[39] = NAN;
    kept_put(&shapes[i], dist, set);
    CU_ASSERT_EQUAL(kept_count(&shapes[i], set), 0);
    free(dist);
  }
}

TEST(sets_without_a_bound_are_refused_with_their_place) {
  static const struct {
    const char *sampling, *says, *place;
  } wrong[] = {
      {"{top_p: 0.9, weights: replay}", "bound them with top_k", "r.yaml:1:19"},
      {"{top_k: 2000, top_p: 0.9, weights: replay}", "bound them with top_k", "r.yaml:1:32"},
      {"{top_k: 60000, weights: replay}", "(2031 at most over 150000 tokens)", "r.yaml:1:19"}};
  for (size_t i = 0; i < 3; ++i) {
    char text[200];
    cfg_doc *doc;
    sampling_spec dist;
    kept_shape shape;
    gl_error err = {0};
    snprintf(text, sizeof text, "sampling: %s\n", wrong[i].sampling);
    CU_ASSERT_FATAL(cfg_load_text(&doc, text, strlen(text), "r.yaml", &err) == GL_OK);
    const cfg_node *section = cfg_find(cfg_root(doc), "sampling");
    CU_ASSERT_FATAL(sampling_parse(&dist, section, &err) == GL_OK);
    const size_t vocabulary = i == 1 ? 2000 : 150000;
    CU_ASSERT_EQUAL(kept_shape_of(&shape, &dist, vocabulary, section, &err), GL_EINPUT);
    const int right = strstr(err.text, wrong[i].says) != NULL &&
                      strncmp(err.text, wrong[i].place, strlen(wrong[i].place)) == 0;
    if (!right) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT(right);
    cfg_free(doc);
  }
}
