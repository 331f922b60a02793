/* The rewards of sequence worlds against their definitions, written another way, and cases worked
 * by hand. */
#include "core/rl/sequence_task.h"
#include "tests/support/toy_fixture.h"

SUITE("toy: tasks");

enum { LONGEST = 8 };

/* Content of response y: its letters without the end token. Returns their number. */
static size_t content(const response_tree *t, size_t y, size_t letters, size_t token[LONGEST]) {
  size_t n = 0;
  for (size_t i = 0; i < (size_t)t->length[y]; ++i) {
    size_t a = (size_t)t->path[y * t->horizon + i] % t->vocabulary;
    if (a < letters) token[n++] = a;
  }
  return n;
}

static double reward_of(const world_fixture *f, size_t x, size_t y) {
  return f->world->reward[x * f->k + y];
}

/* The response with this content, digits '0'..; the end token follows where there is room. */
static size_t response(const world_fixture *f, const char *digits) {
  const response_tree *t = &f->world->tree;
  size_t token[LONGEST], letters = t->vocabulary - (t->has_end ? 1 : 0);
  for (size_t y = 0; y < f->k; ++y) {
    size_t n = content(t, y, letters, token), same = n == strlen(digits);
    for (size_t i = 0; i < n && same; ++i) same = token[i] == (size_t)(digits[i] - '0');
    if (same) return y;
  }
  CU_FAIL_FATAL("no such response");
  return 0;
}

TEST(sum_mod_rewards_the_right_remainder) {
  world_fixture exact = world_open(
      "world: {kind: sequence, vocabulary: 3, horizon: 4, end_token: true, prompts: 7, modulus: 5}",
      1);
  world_fixture graded = world_open("world: {kind: sequence, vocabulary: 3, horizon: 4, end_token: "
                                    "true, prompts: 7, modulus: 5, reward: graded}",
                                    1);
  for (size_t x = 0; x < 7; ++x)
    for (size_t y = 0; y < exact.k; ++y) {
      size_t token[LONGEST], sum = 0, n = content(&exact.world->tree, y, 3, token);
      for (size_t i = 0; i < n; ++i) sum += token[i];
      int off = abs((int)(sum % 5) - (int)(x % 5)), circular = off < 5 - off ? off : 5 - off;
      CU_ASSERT(reward_of(&exact, x, y) == (off == 0));
      ASSERT_CLOSE(reward_of(&graded, x, y), 1 - circular / 2.0, 1e-15);
    }
}

TEST(parity_counts_the_ones) {
  world_fixture f = world_open(
      "world: {kind: sequence, vocabulary: 3, horizon: 3, end_token: true, prompts: 4, task: "
      "parity}",
      1);
  static const struct {
    const char *digits;
    int odd;
  } table[] = {{"", 0}, {"1", 1}, {"11", 0}, {"211", 0}, {"121", 0}, {"111", 1}, {"202", 0}};
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    for (size_t x = 0; x < 4; ++x)
      CU_ASSERT(reward_of(&f, x, response(&f, table[i].digits)) == (table[i].odd == (int)(x % 2)));
}

/* A parity world is hard because no single token tells: under a uniform policy over two letters
 * every proper prefix is worth one half. */
TEST(parity_of_two_letters_is_solved_by_half_of_all_responses) {
  world_fixture f =
      world_open("world: {kind: sequence, vocabulary: 2, horizon: 5, prompts: 2, task: parity}", 1);
  double *theta = fixture_doubles(f.n);
  for (size_t x = 0; x < 2; ++x) ASSERT_CLOSE(world_return(&f, theta, x), 0.5, 1e-14);
}

TEST(sorted_wants_order_and_a_number_of_distinct_letters) {
  world_fixture f = world_open("world: {kind: sequence, vocabulary: 4, horizon: 4, prompts: 5, "
                               "task: sorted, reward: graded}",
                               1);
  static const struct {
    size_t x;
    const char *digits;
    double score;
  } table[] = {
      {0, "0000", 1},           /* one distinct letter is wanted */
      {0, "0123", 1 - 3 / 8.0}, /* three too many of four, half the score */
      {3, "0123", 1},
      {4, "2222", 1}, /* x = 4 wants one again */
      {1, "0022", 1},
      {1, "2200", 0.5 * (2 / 3.0 + 1)}, /* one of three steps descends */
      {1, "3210", 0.5 * (0 + 1 - 2 / 4.0)},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    ASSERT_CLOSE(reward_of(&f, table[i].x, response(&f, table[i].digits)), table[i].score, 1e-15);
  f = world_open("world: {kind: sequence, vocabulary: 4, horizon: 4, prompts: 2, task: sorted, "
                 "end_token: true, reward: graded}",
                 1);
  CU_ASSERT(reward_of(&f, 0, response(&f, "")) == 0);
  CU_ASSERT(reward_of(&f, 0, response(&f, "3")) == 1);
}

/* The hidden sequence is the only response that is exactly right; a graded one counts positions. */
TEST(target_counts_positions_that_match_one_hidden_sequence) {
  world_fixture exact =
      world_open("world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 6, task: target}", 4);
  world_fixture graded = world_open("world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: "
                                    "6, task: target, reward: graded}",
                                    4);
  size_t different = 0, first[LONGEST] = {0};
  for (size_t x = 0; x < 6; ++x) {
    size_t hidden[LONGEST], token[LONGEST], right = 0;
    for (size_t y = 0; y < exact.k; ++y)
      if (reward_of(&exact, x, y) == 1) {
        content(&exact.world->tree, y, 3, hidden);
        ++right;
      }
    CU_ASSERT_FATAL(right == 1);
    for (size_t y = 0; y < graded.k; ++y) {
      size_t n = content(&graded.world->tree, y, 3, token), same = 0;
      for (size_t i = 0; i < n; ++i) same += token[i] == hidden[i];
      ASSERT_CLOSE(reward_of(&graded, x, y), (double)same / 4, 1e-15);
    }
    if (x == 0) memcpy(first, hidden, sizeof first);
    different += memcmp(first, hidden, 4 * sizeof *first) != 0;
  }
  CU_ASSERT(different > 0);
}

TEST(targets_of_every_length_occur_where_responses_can_end) {
  world_fixture f = world_open("world: {kind: sequence, vocabulary: 2, horizon: 3, prompts: 100, "
                               "end_token: true, task: target}",
                               4);
  size_t lengths[4] = {0}, token[LONGEST];
  for (size_t x = 0; x < 100; ++x)
    for (size_t y = 0; y < f.k; ++y)
      if (reward_of(&f, x, y) == 1) ++lengths[content(&f.world->tree, y, 2, token)];
  CU_ASSERT(lengths[0] == 0);
  CU_ASSERT(lengths[1] > 10 && lengths[2] > 10 && lengths[3] > 10);
  CU_ASSERT(lengths[1] + lengths[2] + lengths[3] == 100);
}

/* Longest beginning of the needle (a, b) that occurs in the letters, by trying every place. */
static double longest_beginning(const size_t *token, size_t n, size_t a, size_t b) {
  int one = 0, both = 0;
  for (size_t i = 0; i < n; ++i) {
    one |= token[i] == a;
    both |= i > 0 && token[i - 1] == a && token[i] == b;
  }
  return both ? 1 : one ? 0.5 : 0;
}

/* Exactly one needle explains all rewards of a prompt. */
TEST(needle_rewards_the_longest_beginning_that_occurs) {
  world_fixture f = world_open("world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 4, "
                               "task: needle, reward: graded, end_token: true}",
                               2);
  for (size_t x = 0; x < 4; ++x) {
    size_t explanations = 0;
    for (size_t needle = 0; needle < 9; ++needle) {
      size_t wrong = 0, token[LONGEST];
      for (size_t y = 0; y < f.k; ++y) {
        size_t n = content(&f.world->tree, y, 3, token);
        wrong += reward_of(&f, x, y) != longest_beginning(token, n, needle / 3, needle % 3);
      }
      explanations += wrong == 0;
    }
    CU_ASSERT(explanations == 1);
  }
}
