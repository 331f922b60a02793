/* Sets of tokens that a sampler kept: bits, lists, and distributions that have none. */
#include "core/rl/kept_set.h"

#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void a_set_holds_the_tokens_of_its_dist_and_no_others(void) {
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

static void a_list_without_room_says_so(void) {
  const kept_shape shape = shape_of(4, 1, 3000);
  CU_ASSERT_EQUAL(shape.words, 1 + 2 * 4 + 32);
  uint32_t set[41];
  double *dist = dist_of(3000, 5, 3, 41);
  kept_put(&shape, dist, set);
  CU_ASSERT(set[0] == KEPT_OVERFLOW && kept_count(&shape, set) == 0);
  CU_ASSERT_EQUAL(kept_has(&shape, set, 5), 0);
  free(dist);
}

static void a_dist_that_is_not_a_number_keeps_none(void) {
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

static void sets_without_a_bound_are_refused_with_their_place(void) {
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

SUITE(core_kept_set, "core: kept tokens", TEST(a_set_holds_the_tokens_of_its_dist_and_no_others),
      TEST(a_list_without_room_says_so), TEST(a_dist_that_is_not_a_number_keeps_none),
      TEST(sets_without_a_bound_are_refused_with_their_place));
