/* Samplers of a transformer that do not draw from their policy, what is recorded of their tokens,
 * and a learner whose distribution is renormalised over what they kept. */
#include "core/base/hash.h"
#include "tests/support/llm_learner_fixture.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

SUITE("llm: behaviour of samplers");

#define TINY "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, intermediate: 24, context: 24}"
#define SORT "task: {kind: sorting, length: 3, values: 4, reward: graded}, max_tokens: 8"
#define SHORT "task: {kind: sorting, length: 3, values: 3, reward: graded}, max_tokens: 4"
#define BEGIN "world: {kind: llm, backend: cpu, dtype: float64, " TINY ", "

/* --- the learner's own distribution of a batch's tokens --- */

/* Prompt of response i and its first t tokens, into sequence[64]; returns how many. */
static size_t beginning(const llm_fixture *f, const batch *b, size_t i, size_t t,
                        int32_t *sequence) {
  problem_set set;
  gl_error err = {0};
  const uint64_t number = (uint64_t)b->prompt[i / f->group_size];
  CU_ASSERT_FATAL(problem_set_init(&set, &f->llm->spec, TASK_TRAIN, &number, 1, &err) == GL_OK);
  const size_t n = set.start[1];
  memcpy(sequence, set.token, n * sizeof *sequence);
  memcpy(sequence + n, b->token + b->token_start[i], t * sizeof *sequence);
  problem_set_fini(&set);
  return n + t;
}

/* log softmax of every token after a sequence, at a temperature. */
static void dist_after(llm_fixture *f, const int32_t *sequence, size_t n, double temperature,
                       double *logp) {
  const size_t start[2] = {0, n}, v = f->llm->spec.model.vocabulary;
  gl_error err = {0};
  for (size_t a = 0; a < v; ++a) {
    const size_t last = n - 1;
    const int32_t target = (int32_t)a;
    const packed_tokens rows = {n, 1, 1, start, sequence, &last, &target};
    CU_ASSERT_FATAL(model_forward(f->llm->model, &rows, temperature, 0, logp + a, NULL, &err) ==
                    GL_OK);
  }
}

static const uint32_t *set_of(const llm_fixture *f, const batch *b, size_t k) {
  (void)f;
  return b->kept + k * b->kept_words;
}

/* --- replay --- */

#define REPLAY "sampling: {temperature: 0.8, top_k: 4, top_p: 0.8, weights: replay}\n"

/* Counts the tokens whose set is not the one that the parameters of now would keep; `recorded`:
 * they are those that drew, and their truncated distribution is what was recorded. */
static size_t other_sets(llm_fixture *f, const batch *b, int recorded) {
  const kept_shape *shape = &f->llm->spec.kept;
  double logp[64], dist[64];
  sampling_rank rank[64];
  int32_t sequence[64];
  uint32_t set[2];
  size_t others = 0;
  CU_ASSERT_FATAL(shape->words <= 2 && shape->vocabulary <= 64);
  for (size_t i = 0; i < b->n_responses; ++i)
    for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) {
      const size_t n = beginning(f, b, i, k - b->token_start[i], sequence);
      dist_after(f, sequence, n, f->llm->spec.sampling.temperature, logp);
      sampling_truncate(&f->llm->spec.sampling, logp, shape->vocabulary, dist, rank);
      kept_put(shape, dist, set);
      others += memcmp(set, set_of(f, b, k), shape->words * sizeof *set) != 0;
      if (recorded) ASSERT_CLOSE(b->logq_trunc[k], dist[b->token[k]], 1e-11);
    }
  return others;
}

TEST(a_batch_has_the_sets_of_the_dists_it_was_drawn_from) {
  llm_fixture f = llm_open(BEGIN SORT "}\n" REPLAY, 3);
  llm_jitter(&f, 0.15, 0);
  batch b = llm_draw(&f, 7);
  size_t kept = 0;
  CU_ASSERT_EQUAL(b.kept_words, f.llm->spec.kept.words);
  CU_ASSERT_EQUAL(other_sets(&f, &b, 1), 0);
  for (size_t k = 0; k < b.n_tokens; ++k) kept += kept_count(&f.llm->spec.kept, set_of(&f, &b, k));
  CU_ASSERT(kept > b.n_tokens && kept <= 4 * b.n_tokens);
  batch_fini(&b);
}

/* A step of plain gradient descent at rate 1 is minus the gradient of the loss that the update
 * reports, by central differences along random directions, where sampler and learner would keep
 * different tokens. */
static void check_gradient(const char *world, const char *algorithm) {
  enum { DIRECTIONS = 3 };
  const double h = 1e-5;
  char text[900];
  snprintf(text, sizeof text,
           "%s}\n" REPLAY "optimizer: {kind: sgd, lr: 1}\nalgorithm: %s\n"
           "train: {groups: 6, group_size: 12}",
           world, algorithm);
  llm_fixture f = llm_open(text, 3);
  llm_jitter(&f, 0.15, 0);
  batch b = llm_draw(&f, 7);
  llm_jitter(&f, 0.05, 1);
  CU_ASSERT(other_sets(&f, &b, 0) >= 5);
  double *theta = llm_theta(&f), *direction = llm_doubles(f.n), metrics[METRIC_COUNT];
  llm_update(&f, &b, metrics);
  double *after = llm_theta(&f);
  CU_ASSERT(metrics[METRIC_GRAD_NORM] > 1e-4);
  for (uint64_t d = 0; d < DIRECTIONS; ++d) {
    double slope = 0;
    for (size_t i = 0; i < f.n; ++i) {
      const rng_words w = rng_block(rng_stream_at(6, RNG_TEST, d), i);
      direction[i] = rng_u01_53(w.v[0], w.v[1]) - 0.5 + 3 * (theta[i] - after[i]);
      slope += direction[i] * (theta[i] - after[i]);
    }
    const double up = llm_loss_at(&f, theta, direction, h, &b);
    const double down = llm_loss_at(&f, theta, direction, -h, &b);
    ASSERT_CLOSE((up - down) / (2 * h), slope, 2e-6);
  }
  batch_fini(&b);
}

TEST(the_replayed_step_is_a_finite_difference_of_the_loss) {
  check_gradient(BEGIN SHORT, "{base: grpo, clip: none}");
  check_gradient(BEGIN SORT, "{base: gepo, clip: none, kl_coef: 0.3}");
  check_gradient(BEGIN SORT, "{base: is, log_prob: sum, ref_kl_coef: 0.5}");
  check_gradient(BEGIN SHORT ", micro_batch: 30", "{base: is, log_prob: sum}");
}

/* On-policy the replayed ratio is 1 whatever is truncated; the truncated one is not. */
TEST(on_policy_replayed_ratios_are_one) {
  static const char *const weights[] = {"replay", "truncated"};
  double metrics[2][METRIC_COUNT];
  for (size_t k = 0; k < 2; ++k) {
    char text[900];
    snprintf(text, sizeof text,
             BEGIN SORT "}\nsampling: {top_p: 0.7, weights: %s}\nalgorithm: {base: is, log_prob: "
                        "sum}",
             weights[k]);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.15, 0);
    batch b = llm_draw(&f, 7);
    llm_update(&f, &b, metrics[k]);
    batch_fini(&b);
  }
  ASSERT_CLOSE(metrics[0][METRIC_IW_MEAN], 1, 1e-10);
  ASSERT_CLOSE(metrics[0][METRIC_KL_K3], 0, 1e-10);
  CU_ASSERT(metrics[1][METRIC_IW_MEAN] < 0.9);
}

/* Updates once and gives the parameters after it. shares 0: on a backend that cannot run shared
 * beginnings; `apart`: every third token was drawn from a distribution that kept more than it did.
 */
static double *update_once(llm_fixture *f, const char *world, int shares, int apart) {
  char text[900];
  double metrics[METRIC_COUNT];
  snprintf(text, sizeof text,
           BEGIN SHORT ", %s}\n" REPLAY "optimizer: {kind: sgd, lr: 1}\nalgorithm: gepo\n"
                       "train: {groups: 8, group_size: 16}",
           world);
  *f = llm_open(text, 3);
  llm_jitter(f, 0.15, 0);
  batch b = llm_draw(f, 7);
  llm_jitter(f, 0.05, 1);
  for (size_t k = 0; k < b.n_tokens && apart; k += 3) b.kept[k * b.kept_words] |= 0x7f;
  llm_update_shared(f, &b, shares, metrics);
  batch_fini(&b);
  return llm_theta(f);
}

/* Responses that are equal but for what their samplers kept are different targets; whatever else is
 * shared leaves every bit of the scores. */
TEST(scores_have_the_same_bits_whatever_is_shared) {
  static const char *const worlds[] = {"micro_batch: 1", "micro_batch: 40", "slots: 0"};
  for (int apart = 0; apart < 2; ++apart) {
    llm_fixture whole, other;
    double *theta = update_once(&whole, "slots: 0", 1, apart);
    const update_table *a = &whole.llm->update.table;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i) {
      double *moved = update_once(&other, worlds[i], i < 2, apart), worst = 0;
      const update_table *b = &other.llm->update.table;
      CU_ASSERT_EQUAL_FATAL(a->n_tokens, b->n_tokens);
      CU_ASSERT(memcmp(a->logp, b->logp, a->n_tokens * sizeof *a->logp) == 0);
      CU_ASSERT(memcmp(a->entropy, b->entropy, a->n_tokens * sizeof *a->entropy) == 0);
      for (size_t k = 0; k < whole.n; ++k) worst = fmax(worst, fabs(theta[k] - moved[k]));
      CU_ASSERT(worst < 1e-12);
    }
  }
}

/* Two equal responses, one of which was drawn from a distribution that kept one token more. */
TEST(equal_tokens_with_different_sets_are_different_targets) {
  const int32_t prompt[] = {3, 4, 5}, response[] = {6, 7};
  const kept_shape shape = {40, 2, 0};
  const uint32_t few[] = {0xc0, 0, 0x80, 0}, more[] = {0xc0, 0, 0x81, 0};
  for (int shares = 0; shares < 2; ++shares)
    for (int differ = 0; differ < 2; ++differ) {
      token_pack p = {0};
      gl_error err = {0};
      int added;
      token_pack_clear(&p, shares);
      token_pack_keep(&p, &shape);
      token_pack_prompt(&p, prompt, 3);
      CU_ASSERT(token_pack_add_kept(&p, response, few, 2, 99, &added, &err) == GL_OK && added);
      CU_ASSERT(token_pack_add_kept(&p, response, differ ? more : few, 2, 99, &added, &err) ==
                GL_OK);
      CU_ASSERT_EQUAL(token_pack_finish(&p, &err), GL_OK);
      CU_ASSERT_EQUAL(p.n_tokens, 4);
      CU_ASSERT_EQUAL(p.n_targets, differ ? 3 : 2);
      CU_ASSERT_EQUAL(p.target_of[0], p.target_of[2]);
      CU_ASSERT_EQUAL(p.target_of[1] != p.target_of[3], differ);
      CU_ASSERT_EQUAL(p.kept[p.target_of[3] * 2], differ ? 0x81 : 0x80);
      CU_ASSERT_EQUAL(p.kept[p.target_of[0] * 2], 0xc0);
      token_pack_fini(&p);
    }
}

/* Drawn in parts, from a held version or on two devices, a batch is the same with its sets. */
TEST(sets_do_not_depend_on_how_a_batch_is_drawn) {
  static const char *const worlds[] = {"slots: 0", "devices: 2", "slots: 3"};
  llm_fixture f = llm_open(BEGIN SORT "}\n" REPLAY, 3);
  batch whole = llm_draw(&f, 7);
  for (size_t i = 0; i < 3; ++i) {
    char text[900];
    snprintf(text, sizeof text, BEGIN SORT ", %s}\n" REPLAY, worlds[i]);
    llm_fixture g = llm_open(text, 3);
    batch b = {0};
    llm_draw_part(&g, 7, 0, 0, 0.4, &b);
    llm_draw_part(&g, 7, 0, 0.4, 1, &b);
    CU_ASSERT(llm_same_batch(&whole, &b) && b.kept_words == whole.kept_words &&
              memcmp(b.kept, whole.kept, b.n_tokens * b.kept_words * sizeof *b.kept) == 0);
    batch_fini(&b);
  }
  batch_fini(&whole);
}

TEST(a_batch_without_its_sets_is_refused) {
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  llm_fixture f = llm_open(BEGIN SORT "}\n" REPLAY, 3);
  llm_fixture raw = llm_open(BEGIN SORT "}\nsampling: {temperature: 0.8, top_k: 4, top_p: 0.8}", 3);
  batch mine = llm_draw(&f, 7), other = llm_draw(&raw, 7), *one = &other;
  CU_ASSERT(llm_same_batch(&mine, &other) && other.kept_words == mine.kept_words);
  other.kept_words = 0;
  CU_ASSERT_EQUAL(f.learner.ops->update(f.llm, &one, 1, metrics, &err), GL_EINPUT);
  uint32_t *set = mine.kept;
  set[mine.token[0] / 32] &= ~((uint32_t)1 << mine.token[0] % 32);
  one = &mine;
  CU_ASSERT(kept_count(&f.llm->spec.kept, set) > 0);
  CU_ASSERT_EQUAL(f.learner.ops->update(f.llm, &one, 1, metrics, &err), GL_EINPUT);
  batch_fini(&mine);
  batch_fini(&other);
}

/* --- what the learner gives to what samplers kept --- */

/* kept_mass, entropy_kept and entropy_tail of a batch by sums over the vocabulary, from the sets of
 * its tokens and the distribution that the parameters of now have before each. */
static void sum_parts(llm_fixture *f, const batch *b, double out[3]) {
  const kept_shape *shape = &f->llm->spec.kept;
  double logp[64], with_tail = 0;
  int32_t sequence[64];
  out[0] = out[1] = out[2] = 0;
  for (size_t i = 0; i < b->n_responses; ++i)
    for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) {
      const size_t n = beginning(f, b, i, k - b->token_start[i], sequence);
      double mass[2] = {0}, plogp[2] = {0};
      dist_after(f, sequence, n, f->llm->spec.sampling.temperature, logp);
      for (size_t a = 0; a < shape->vocabulary; ++a) {
        const int kept = kept_has(shape, set_of(f, b, k), a);
        mass[kept] += exp(logp[a]);
        plogp[kept] += exp(logp[a]) * logp[a];
      }
      out[0] += mass[1];
      out[1] += log(mass[1]) - plogp[1] / mass[1];
      if (mass[0] == 0) continue;
      out[2] += log(mass[0]) - plogp[0] / mass[0];
      ++with_tail;
    }
  out[0] /= (double)b->n_tokens;
  out[1] /= (double)b->n_tokens;
  out[2] /= with_tail;
}

/* A learner with a stale batch; apart: every third token was drawn from a distribution that kept
 * more. */
static batch watched_batch(llm_fixture *f, const char *world, const char *weights, int apart) {
  char text[900];
  snprintf(text, sizeof text,
           "%s}\nsampling: {temperature: 0.8, top_k: 4, top_p: 0.8, weights: %s}\n"
           "optimizer: {kind: sgd, lr: 1}\nalgorithm: {base: gepo, clip: none}\n"
           "train: {groups: 8, group_size: 16}",
           world, weights);
  *f = llm_open(text, 3);
  llm_jitter(f, 0.15, 0);
  batch b = llm_draw(f, 7);
  llm_jitter(f, 0.05, 1);
  for (size_t k = 0; k < b.n_tokens && apart; k += 3) b.kept[k * b.kept_words] |= 0x7f;
  return b;
}

TEST(the_learners_mass_and_entropies_of_what_was_kept_are_sums) {
  static const char *const weights[] = {"raw", "truncated", "replay"};
  static const struct {
    const char *world;
    double tolerance;
  } worlds[] = {
      {BEGIN SORT, 1e-12},
      {BEGIN SHORT ", micro_batch: 40", 1e-12},
      {BEGIN SHORT ", devices: 2", 1e-12},
      {"world: {kind: llm, backend: cpu, dtype: float32, " TINY ", " SHORT, 1e-6},
  };
  for (size_t w = 0; w < 3; ++w)
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i)
      for (int apart = 0; apart < 2; ++apart) {
        llm_fixture f;
        double metrics[METRIC_COUNT], right[3];
        batch b = watched_batch(&f, worlds[i].world, weights[w], apart);
        sum_parts(&f, &b, right);
        llm_update(&f, &b, metrics);
        ASSERT_CLOSE(metrics[METRIC_KEPT_MASS], right[0], worlds[i].tolerance);
        ASSERT_CLOSE(metrics[METRIC_ENTROPY_KEPT], right[1], worlds[i].tolerance);
        ASSERT_CLOSE(metrics[METRIC_ENTROPY_TAIL], right[2], worlds[i].tolerance);
        CU_ASSERT(right[0] < 0.99 && fabs(right[0] - metrics[METRIC_KEPT_MASS_Q]) > 1e-4);
        batch_fini(&b);
      }
}

/* A batch without sets, as older programs left it in checkpoints, has no such metrics and is
 * trained to the same bits: what is only looked at changes nothing. */
TEST(watching_changes_no_bit_of_a_step) {
  static const char *const weights[] = {"raw", "truncated"};
  static const char *const worlds[] = {BEGIN SHORT, BEGIN SHORT ", micro_batch: 40",
                                       BEGIN SHORT ", recompute: true"};
  for (size_t w = 0; w < 2; ++w)
    for (size_t i = 0; i < 3; ++i) {
      double metrics[2][METRIC_COUNT], *theta[2];
      size_t n = 0;
      for (int watched = 0; watched < 2; ++watched) {
        llm_fixture f;
        batch b = watched_batch(&f, worlds[i], weights[w], 1);
        if (!watched) b.kept_words = 0;
        llm_update(&f, &b, metrics[watched]);
        theta[watched] = llm_theta(&f);
        n = f.n;
        batch_fini(&b);
      }
      CU_ASSERT(isnan(metrics[0][METRIC_KEPT_MASS]) && metrics[1][METRIC_KEPT_MASS] > 0);
      CU_ASSERT(metrics[1][METRIC_GRAD_NORM] > 1e-6);
      CU_ASSERT_EQUAL(memcmp(theta[0], theta[1], n * sizeof *theta[0]), 0);
      static const int same[] = {METRIC_LOSS, METRIC_GRAD_NORM, METRIC_ENTROPY, METRIC_KEPT_MASS_Q};
      for (size_t k = 0; k < 4; ++k)
        CU_ASSERT_EQUAL(memcmp(&metrics[0][same[k]], &metrics[1][same[k]], sizeof(double)), 0);
    }
}

/* Of a large vocabulary sets are recorded only for weights that need them; without truncation
 * nothing is. */
TEST(what_is_not_recorded_has_no_metrics) {
  static const struct {
    const char *tokenizer, *sampling;
    int sets;
  } worlds[] = {
      {"", "{temperature: 0.8}", 0},
      {"tokenizer: {kind: char, unused: 2000}, ", "{top_k: 4}", 0},
      {"tokenizer: {kind: char, unused: 2000}, ", "{top_p: 0.7}", 0},
      {"tokenizer: {kind: char, unused: 2000}, ", "{top_k: 4, weights: replay}", 1},
      {"", "{top_p: 0.7}", 1},
  };
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i) {
    char text[900];
    double metrics[METRIC_COUNT];
    snprintf(text, sizeof text, BEGIN "%s" SHORT "}\nsampling: %s", worlds[i].tokenizer,
             worlds[i].sampling);
    llm_fixture f = llm_open(text, 3);
    batch b = llm_draw(&f, 7);
    llm_update(&f, &b, metrics);
    CU_ASSERT_EQUAL(b.kept_words > 0, worlds[i].sets);
    CU_ASSERT_EQUAL(!isnan(metrics[METRIC_KEPT_MASS]), worlds[i].sets);
    CU_ASSERT_EQUAL(!isnan(metrics[METRIC_ENTROPY_KEPT]), worlds[i].sets);
    CU_ASSERT_EQUAL(!isnan(metrics[METRIC_KEPT_MASS_Q]), i > 0);
    batch_fini(&b);
  }
}

/* --- distorted distributions --- */

/* How often each different response came, against what was recorded of it: chi-square of the
 * responses expected at least five times, all others together. It fails by chance once in a
 * million. */
static void check_drawn(const batch *b) {
  double chi = 0, rest_expected = (double)b->n_responses, rest = (double)b->n_responses;
  size_t cells = 0;
  unsigned char *seen = calloc(b->n_responses, 1);
  for (size_t i = 0; i < b->n_responses; ++i) {
    const size_t n = b->token_start[i + 1] - b->token_start[i];
    double count = 0, logq = 0;
    if (seen[i]) continue;
    for (size_t j = i; j < b->n_responses; ++j) {
      if (b->token_start[j + 1] - b->token_start[j] != n ||
          memcmp(b->token + b->token_start[i], b->token + b->token_start[j],
                 n * sizeof *b->token) != 0)
        continue;
      ++count;
      seen[j] = 1;
    }
    for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) logq += b->logq_trunc[k];
    const double expected = (double)b->n_responses * exp(logq);
    if (expected < 5) continue;
    chi += (count - expected) * (count - expected) / expected;
    rest -= count;
    rest_expected -= expected;
    ++cells;
  }
  CU_ASSERT(cells >= 4);
  if (rest_expected > 5)
    chi += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
  else
    --cells;
  CU_ASSERT(gsl_cdf_chisq_Q(chi, (double)cells) > 1e-6);
  free(seen);
}

/* Responses of one or two tokens, so that each comes often. */
#define TWO "task: {kind: sorting, length: 3, values: 3, reward: graded}, max_tokens: 2"

TEST(draws_follow_the_distorted_dist_that_the_batch_records) {
  static const char *const behaviours[] = {
      "behaviour: {noise: 0.7}", "behaviour: {precision: bfloat16}",
      "behaviour: {temperature_error: 0.5}",
      "top_p: 0.8, behaviour: {noise: 0.5, precision: bfloat16, temperature_error: -0.2}"};
  for (size_t i = 0; i < 4; ++i) {
    char text[900];
    snprintf(text, sizeof text,
             BEGIN TWO "}\nsampling: {temperature: 0.5, %s}\ntrain: {groups: 1, group_size: 4000}",
             behaviours[i]);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.25, 0);
    batch b = llm_draw(&f, 5);
    double policy[64], apart = 0;
    int32_t sequence[64];
    check_drawn(&b);
    dist_after(&f, sequence, beginning(&f, &b, 0, 0, sequence), 0.5, policy);
    for (size_t k = 0; k < b.n_responses; ++k)
      apart = fmax(apart, fabs(b.logq[b.token_start[k]] - policy[b.token[b.token_start[k]]]));
    CU_ASSERT(apart > 1e-4); /* it is not the policy's distribution */
    batch_fini(&b);
  }
}

/* All of the distribution of a first token, from what many responses recorded of it: the policy's
 * logits with the noise of their address, rounded, at the wrong temperature. */
TEST(recorded_dists_are_the_distorted_ones) {
  llm_fixture f = llm_open(BEGIN TWO "}\nsampling: {temperature: 0.5, behaviour: {noise: 0.4, "
                                     "precision: bfloat16, temperature_error: 0.25}}\n"
                                     "train: {groups: 1, group_size: 500}",
                           3);
  const size_t v = f.llm->spec.model.vocabulary;
  double z[64], sum = 0;
  int32_t sequence[64];
  llm_jitter(&f, 0.25, 0);
  batch b = llm_draw(&f, 5), other = llm_draw(&f, 6);
  const size_t n = beginning(&f, &b, 0, 0, sequence), start[2] = {0, n}, slot = 0;
  const packed_tokens rows = {n, 1, 0, start, sequence, NULL, NULL};
  gl_error err = {0};
  model_cache *cache;
  CU_ASSERT_FATAL(model_cache_new(&cache, f.llm->model, 1, 20, &err) == GL_OK);
  CU_ASSERT_FATAL(model_prefill(cache, &rows, &slot, &err) == GL_OK);
  CU_ASSERT_FATAL(model_logits_get(cache, 1, z, &err) == GL_OK);
  model_cache_free(cache);
  const uint64_t id = 5;
  uint64_t hash = hash_64(HASH_64_START, &id, sizeof id);
  hash = hash_64(hash, sequence, n * sizeof *sequence);
  for (size_t a = 0; a < v; ++a) {
    double pair[2];
    rng_normal_pair(rng_block(rng_stream_at(3, RNG_BEHAVIOUR, hash), a / 2), 0.4, pair);
    z[a] = sampling_to_bfloat16(z[a] + pair[a % 2]) / (0.5 * 1.25);
    sum += exp(z[a]);
  }
  for (size_t i = 0; i < b.n_responses; ++i)
    ASSERT_CLOSE(b.logq[b.token_start[i]], z[b.token[b.token_start[i]]] - log(sum), 1e-12);
  CU_ASSERT(other.logq[0] != z[other.token[0]] - log(sum));
  batch_fini(&b);
  batch_fini(&other);
}

/* logq: learner records the policy of the version: on-policy its ratios are 1, though tokens come
 * from another distribution, the very one that the sampler would record. */
TEST(a_learner_records_its_own_dist) {
  static const char *const who[] = {"sampler", "learner"};
  double metrics[2][METRIC_COUNT];
  batch b[2];
  for (size_t k = 0; k < 2; ++k) {
    char text[900];
    snprintf(text, sizeof text,
             BEGIN SORT "}\nsampling: {temperature: 0.8, top_k: 5, weights: truncated, logq: %s, "
                        "behaviour: {noise: 0.5}}\nalgorithm: {base: is, log_prob: sum}",
             who[k]);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.15, 0);
    b[k] = llm_draw(&f, 7);
    double logp[64];
    int32_t sequence[64];
    for (size_t i = 0; i < 6; ++i) {
      const size_t last = b[k].token_start[i + 1] - 1, t = last - b[k].token_start[i];
      dist_after(&f, sequence, beginning(&f, &b[k], i, t, sequence), 0.8, logp);
      double mass = 0;
      for (size_t a = 0; a < f.llm->spec.model.vocabulary && k == 1; ++a)
        mass += kept_has(&f.llm->spec.kept, set_of(&f, &b[k], last), a) ? exp(logp[a]) : 0;
      const double own = logp[b[k].token[last]];
      if (k == 0) CU_ASSERT(fabs(b[k].logq[last] - own) > 1e-6);
      if (k == 1) ASSERT_CLOSE(b[k].logq[last], own, 1e-11);
      if (k == 1) ASSERT_CLOSE(b[k].logq_trunc[last], own - log(mass), 1e-11);
    }
    llm_update(&f, &b[k], metrics[k]);
  }
  CU_ASSERT_EQUAL_FATAL(b[0].n_tokens, b[1].n_tokens);
  CU_ASSERT_EQUAL(memcmp(b[0].token, b[1].token, b[0].n_tokens * sizeof *b[0].token), 0);
  batch_fini(&b[0]);
  batch_fini(&b[1]);
}

TEST(a_learner_that_records_whole_dists_has_ratio_one) {
  double metrics[METRIC_COUNT];
  llm_fixture f = llm_open(BEGIN SORT "}\nsampling: {top_p: 0.8, logq: learner, behaviour: {noise: "
                                      "0.5}}\nalgorithm: {base: is, log_prob: sum}",
                           3);
  batch b = {0};
  llm_draw_part(&f, 7, 0, 0, 0.4, &b);
  llm_draw_part(&f, 7, 0, 0.4, 1, &b);
  CU_ASSERT_EQUAL(b.kept_words, f.llm->spec.kept.words);
  llm_update(&f, &b, metrics);
  ASSERT_CLOSE(metrics[METRIC_IW_MEAN], 1, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_KEPT_MASS_Q], metrics[METRIC_KEPT_MASS], 1e-12);
  batch_fini(&b);
}

TEST(scores_know_nothing_of_samplers) {
  static const char *const samplings[] = {"{}", "{behaviour: {noise: 3, temperature_error: 4}}",
                                          "{behaviour_mixture: {with: uniform, share: 0.9}}"};
  double score[3];
  for (size_t i = 0; i < 3; ++i) {
    char text[900];
    snprintf(text, sizeof text, BEGIN SORT ", warmup: {steps: 60}}\nsampling: %s", samplings[i]);
    llm_fixture f = llm_open(text, 3);
    score[i] = llm_score(&f);
  }
  CU_ASSERT(score[0] > 0.1);
  CU_ASSERT(score[1] == score[0] && score[2] == score[0]);
}

/* --- mixtures --- */

/* Log-probabilities of response i under the model's present parameters. */
static double whole_logp(llm_fixture *f, const batch *b, size_t i, double temperature) {
  double logp[64], sum = 0;
  int32_t sequence[64];
  for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) {
    const size_t n = beginning(f, b, i, k - b->token_start[i], sequence);
    dist_after(f, sequence, n, temperature, logp);
    sum += logp[b->token[k]];
  }
  return sum;
}

TEST(a_mixture_is_of_whole_responses_and_recorded_with_its_own_probability) {
  static const char *const others[] = {"uniform", "initial"};
  for (size_t k = 0; k < 2; ++k) {
    char text[900];
    snprintf(text, sizeof text,
             BEGIN TWO "}\nsampling: {temperature: 0.5, behaviour: {temperature_error: 0.3}, "
                       "behaviour_mixture: {with: %s, share: 0.3}}\n"
                       "train: {groups: 1, group_size: 4000}",
             others[k]);
    llm_fixture f = llm_open(text, 3);
    double *first = llm_theta(&f);
    llm_jitter(&f, 0.3, 0);
    double *now = llm_theta(&f);
    batch b = llm_draw(&f, 5);
    check_drawn(&b);
    for (size_t i = 0; i < 60; ++i) {
      double sum = 0, other = -log((double)f.llm->spec.model.vocabulary) *
                              (double)(b.token_start[i + 1] - b.token_start[i]);
      for (size_t t = b.token_start[i]; t < b.token_start[i + 1]; ++t) sum += b.logq[t];
      const double mine = whole_logp(&f, &b, i, 0.5 * 1.3);
      if (k == 1) {
        llm_set(&f, first);
        other = whole_logp(&f, &b, i, 0.5);
        llm_set(&f, now);
      }
      ASSERT_CLOSE(sum, log(0.7 * exp(mine) + 0.3 * exp(other)), 1e-10);
    }
    batch_fini(&b);
  }
}

TEST(a_mixture_needs_whole_batches) {
  llm_fixture f =
      llm_open(BEGIN SORT "}\nsampling: {behaviour_mixture: {with: initial, share: 0.2}}", 3);
  batch b = {0};
  gl_error err = {0};
  const draw_request r = {1, f.llm->update.version, f.n_groups, f.group_size, 0, 0.5, 0, NULL, NULL,
                          0};
  CU_ASSERT_EQUAL(f.learner.ops->draw(f.llm, &r, &b, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "behaviour_mixture"));
  batch_fini(&b);
  batch whole = llm_draw(&f, 1); /* the learner goes on */
  CU_ASSERT(whole.n_responses == f.n_groups * f.group_size);
  batch_fini(&whole);
}

/* A held version draws the mixture that it drew while it was current; so does a learner that was
 * saved and loaded. */
TEST(a_mixture_outlives_updates_and_files) {
  static const char text[] =
      BEGIN SORT "}\nsampling: {behaviour_mixture: {with: initial, share: 0.4}}\n"
                 "optimizer: {kind: sgd, lr: 0.5}\nalgorithm: gepo";
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  llm_fixture f = llm_open(text, 3), g = llm_open(text, 3);
  llm_train(&f, 0, 2, metrics);
  CU_ASSERT_FATAL(f.learner.ops->hold(f.llm, &err) == GL_OK);
  batch before = llm_draw(&f, 9), again = {0}, loaded;
  FILE *file = tmpfile();
  CU_ASSERT_FATAL(file != NULL && f.learner.ops->save(f.llm, file, &err) == GL_OK);
  rewind(file);
  CU_ASSERT_FATAL(g.learner.ops->load(g.llm, file, &err) == GL_OK);
  fclose(file);
  loaded = llm_draw(&g, 9);
  llm_train(&f, 2, 3, metrics);
  llm_draw_part(&f, 9, 2, 0, 1, &again);
  CU_ASSERT(llm_same_batch(&before, &again));
  CU_ASSERT(llm_same_batch(&before, &loaded));
  batch_fini(&before);
  batch_fini(&again);
  batch_fini(&loaded);
}

/* --- what is refused --- */

TEST(what_cannot_be_is_refused_by_name) {
  static const struct {
    const char *sampling, *says;
  } wrong[] = {
      {"{behaviour: {noise: 1}, behaviour_mixture: {with: initial, share: 0.2}}",
       "behaviour.noise is only known where tokens are sampled"},
      {"{behaviour: {precision: bfloat16}, behaviour_mixture: {share: 0.2}}",
       "behaviour.precision is only known"},
      {"{top_k: 3, behaviour_mixture: {share: 0.2}}", "no weights under truncation"},
      {"{logq: learner, behaviour_mixture: {share: 0.2}}", "needs logq: sampler"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char text[900];
    llm_fixture f;
    gl_error err = {0};
    snprintf(text, sizeof text, BEGIN SORT "}\nsampling: %s", wrong[i].sampling);
    CU_ASSERT_EQUAL(llm_try(&f, text, (llm_choice){.seed = 1}, 1, &err), GL_EINPUT);
    const int right =
        strstr(err.text, wrong[i].says) != NULL && strstr(err.text, "r.yaml:2:") == err.text;
    if (!right) fprintf(stderr, "%s\n", err.text);
    CU_ASSERT(right);
    cfg_free(f.doc);
  }
}
