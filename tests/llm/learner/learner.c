/* The transformer learner: its gradient, its micro-batches, its draws, its checkpoints, and that it
 * learns. */
#include "tests/support/llm_learner_fixture.h"

#include <unistd.h>

SUITE("llm: learner");

#define TINY "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, intermediate: 24, context: 24}"
#define SORT "task: {kind: sorting, length: 3, values: 4, reward: graded}, max_tokens: 8"
#define BEGIN "world: {kind: llm, backend: cpu, dtype: float64, " TINY ", "
#define WORLD BEGIN SORT
/* Whose responses are short enough to be often the same. */
#define SHORT BEGIN "task: {kind: sorting, length: 3, values: 3, reward: graded}, max_tokens: 4"

/* --- packs --- */

/* Memory is planned for as many targets as tokens. With a shared prompt of one token each response
 * has two rows of its own and three targets: the third would be within the tokens, and is not
 * within the targets. */
TEST(a_pack_has_no_more_targets_than_tokens_are_planned) {
  static const int32_t prompt[] = {1}, response[3][3] = {{2, 3, 4}, {3, 4, 5}, {4, 5, 6}};
  token_pack p = {0};
  int added[3];
  token_pack_clear(&p, 1);
  token_pack_prompt(&p, prompt, 1);
  for (size_t i = 0; i < 3; ++i) ASSERT_OK(token_pack_add(&p, response[i], 3, 8, &added[i], &err));
  CU_ASSERT(added[0] && added[1] && !added[2]);
  CU_ASSERT(p.n_tokens == 5 && p.n_targets == 6);
  token_pack_fini(&p);
}

/* --- the gradient --- */

static int has_coefficient(const update_table *s, size_t i) {
  int has = 0;
  for (size_t k = s->token_start[i]; k < s->token_start[i + 1]; ++k) has |= s->coefficient[k] != 0;
  return has;
}

/* 1 if both responses have token t and begin with the same t tokens. */
static int same_beginning(const update_table *s, size_t i, size_t j, size_t t) {
  const int32_t *a = s->token + s->token_start[i], *b = s->token + s->token_start[j];
  return s->token_start[j + 1] - s->token_start[j] > t && memcmp(a, b, t * sizeof *a) == 0;
}

/* Counts a row for every token of each prompt but its last, and one for every different beginning
 * of a group's responses, from the empty one to those that lack one token. */
static size_t different_beginnings(const llm_learner *l, int with_gradient) {
  const update_table *s = &l->update.table;
  size_t rows = 0;
  for (size_t g = 0; g < s->n_groups; ++g) {
    int any = 0;
    for (size_t i = s->group_start[g]; i < s->group_start[g + 1]; ++i) {
      if (with_gradient && !has_coefficient(s, i)) continue;
      any = 1;
      for (size_t t = 0; t < s->token_start[i + 1] - s->token_start[i]; ++t) {
        int seen = 0;
        for (size_t j = s->group_start[g]; j < i && !seen; ++j)
          seen = (!with_gradient || has_coefficient(s, j)) && same_beginning(s, i, j, t);
        rows += !seen;
      }
    }
    rows += any ? l->prompts.start[g + 1] - l->prompts.start[g] - 1 : 0;
  }
  return rows;
}

/* The backward of the last update ran each beginning once; returns how many rows that were. */
static size_t check_rows(const llm_learner *l) {
  const size_t all = different_beginnings(l, 0), some = different_beginnings(l, 1);
  size_t rows = 0;
  for (size_t i = 0; i < l->update.table.n_responses; ++i) rows += l->rows[i];
  CU_ASSERT_EQUAL(rows, 3 * some > 2 * all ? all : some);
  return rows;
}

/* A step of plain gradient descent at rate 1 is minus the gradient of the loss that the update
 * reports, by central differences along random directions. */
static void check_gradient(const char *world, const char *algorithm, const char *more,
                           size_t *rows) {
  enum { DIRECTIONS = 4 };
  const double h = 1e-5;
  char text[900];
  snprintf(text, sizeof text,
           "%s}\nsampling: {temperature: 0.8}\noptimizer: {kind: sgd, lr: 1}\nalgorithm: %s%s",
           world, algorithm, more);
  llm_fixture f = llm_open(text, 3);
  llm_jitter(&f, 0.15, 0);
  batch b = llm_draw(&f, 7);
  llm_jitter(&f, 0.03, 1);
  double *theta = llm_theta(&f), *direction = llm_doubles(f.n), metrics[METRIC_COUNT];
  llm_update(&f, &b, metrics);
  double *after = llm_theta(&f);
  CU_ASSERT(metrics[METRIC_GRAD_NORM] > 1e-4);
  for (uint64_t d = 0; d < DIRECTIONS; ++d) {
    double slope = 0, length = 0;
    for (size_t i = 0; i < f.n; ++i) {
      rng_words w = rng_block(rng_stream_at(6, RNG_TEST, d), i);
      /* half of each direction is the gradient itself, so that no slope is lost in rounding */
      direction[i] = rng_u01_53(w.v[0], w.v[1]) - 0.5 + 3 * (theta[i] - after[i]);
      slope += direction[i] * (theta[i] - after[i]);
      length += (theta[i] - after[i]) * (theta[i] - after[i]);
    }
    double up = llm_loss_at(&f, theta, direction, h, &b),
           down = llm_loss_at(&f, theta, direction, -h, &b);
    ASSERT_CLOSE((up - down) / (2 * h), slope, 2e-6);
    ASSERT_CLOSE(sqrt(length), metrics[METRIC_GRAD_NORM], 1e-9);
  }
  *rows = check_rows(f.llm);
  batch_fini(&b);
}

TEST(an_update_goes_down_the_gradient_of_its_loss) {
  size_t rows;
  check_gradient(WORLD, "{base: grpo, clip: none}", "", &rows);
  check_gradient(WORLD, "{base: gspo, clip: none, kl_coef: 0.3}", "", &rows);
  check_gradient(WORLD, "{base: gepo, clip: none}", "", &rows);
  check_gradient(WORLD, "{base: is, log_prob: sum}", "", &rows);
  check_gradient(WORLD, "{base: dr_grpo, clip: none, ref_kl_coef: 0.5}", "", &rows);
}

TEST(equal_beginnings_are_run_once_and_count_as_often_as_they_were_drawn) {
  static const char *const algorithms[] = {"{base: grpo, clip: none}", "{base: gepo, clip: none}",
                                           "{base: is, log_prob: sum}"};
  for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; ++i) {
    size_t rows = 0;
    check_gradient(SHORT, algorithms[i], "\ntrain: {groups: 8, group_size: 32}", &rows);
    CU_ASSERT(rows < 8 * 32 * 4); /* not even the prompts of all */
  }
}

/* Updates once and gives the parameters after it; the set of the update has the scores. shares 0:
 * on a backend that cannot run shared beginnings. */
static double *update_once(llm_fixture *f, const char *world, int shares) {
  char text[900];
  double metrics[METRIC_COUNT];
  snprintf(text, sizeof text, SHORT ", %s}\noptimizer: {kind: sgd, lr: 1}\nalgorithm: gepo\n%s",
           world, "train: {groups: 8, group_size: 16}");
  *f = llm_open(text, 3);
  llm_jitter(f, 0.15, 0);
  batch b = llm_draw(f, 7);
  llm_jitter(f, 0.03, 1);
  llm_update_shared(f, &b, shares, metrics);
  batch_fini(&b);
  return llm_theta(f);
}

TEST(scores_have_the_same_bits_whatever_is_shared) {
  static const char *const worlds[] = {"micro_batch: 1", "micro_batch: 40", "slots: 0"};
  llm_fixture whole, other;
  double *theta = update_once(&whole, "slots: 0", 1);
  const update_table *a = &whole.llm->update.table;
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i) {
    double *moved = update_once(&other, worlds[i], i < 2), worst = 0;
    const update_table *b = &other.llm->update.table;
    CU_ASSERT_EQUAL_FATAL(a->n_tokens, b->n_tokens);
    CU_ASSERT(memcmp(a->logp, b->logp, a->n_tokens * sizeof *a->logp) == 0);
    CU_ASSERT(memcmp(a->entropy, b->entropy, a->n_tokens * sizeof *a->entropy) == 0);
    for (size_t k = 0; k < whole.n; ++k) worst = fmax(worst, fabs(theta[k] - moved[k]));
    CU_ASSERT(worst < 1e-12);
  }
}

/* --- micro-batches and minibatches --- */

/* Parameters after three updates in world `extra` with `train`. */
static double *trained(const char *extra, const char *train, double metrics[METRIC_COUNT]) {
  char text[900];
  snprintf(text, sizeof text,
           WORLD ", %s}\noptimizer: {kind: adam, lr: 0.01}\nalgorithm: gepo\ntrain: %s", extra,
           train);
  llm_fixture f = llm_open(text, 4);
  llm_train(&f, 0, 3, metrics);
  CU_ASSERT(f.llm->update.version == 3);
  double *theta = llm_theta(&f);
  return theta;
}

TEST(micro_batches_of_any_size_give_the_same_step) {
  static const char *const worlds[] = {"micro_batch: 1", "micro_batch: 50",
                                       "micro_batch: 60, recompute: true", "recompute: true"};
  static const char *const trains[] = {"{}", "{minibatches: 2, epochs: 2}"};
  double metrics[METRIC_COUNT], other[METRIC_COUNT];
  char text[900];
  snprintf(text, sizeof text, WORLD "}");
  llm_fixture f = llm_open(text, 4);
  for (size_t t = 0; t < 2; ++t) {
    double *whole = trained("slots: 0", trains[t], metrics);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; ++i) {
      double *parts = trained(worlds[i], trains[t], other);
      double worst = 0;
      for (size_t k = 0; k < f.n; ++k) worst = fmax(worst, fabs(parts[k] - whole[k]));
      CU_ASSERT(worst < 1e-7); /* Adam divides by what may be tiny */
      ASSERT_CLOSE(other[METRIC_LOSS], metrics[METRIC_LOSS], 1e-7);
      ASSERT_CLOSE(other[METRIC_ENTROPY], metrics[METRIC_ENTROPY], 1e-7);
    }
  }
}

/* At a tiny rate nothing moves between the minibatches of a step, so their steps add up. */
TEST(minibatches_and_epochs_add_up) {
  static const char *const trains[] = {"{}", "{minibatches: 2}", "{minibatches: 4, epochs: 2}"};
  static const double factor[] = {1, 2, 8};
  double metrics[METRIC_COUNT], *step[3];
  size_t n = 0;
  for (size_t t = 0; t < 3; ++t) {
    char text[900];
    snprintf(text, sizeof text,
             WORLD "}\noptimizer: {kind: sgd, lr: 1.0e-6}\nalgorithm: gepo\ntrain: %s", trains[t]);
    llm_fixture f = llm_open(text, 4);
    double *before = llm_theta(&f);
    llm_train(&f, 0, 1, metrics);
    CU_ASSERT(f.llm->update.version == 1);
    step[t] = llm_theta(&f);
    n = f.n;
    for (size_t k = 0; k < n; ++k) step[t][k] = (step[t][k] - before[k]) / factor[t];
  }
  for (size_t t = 1; t < 3; ++t) {
    double apart = 0, length = 0;
    for (size_t k = 0; k < n; ++k) {
      apart += (step[t][k] - step[0][k]) * (step[t][k] - step[0][k]);
      length += step[0][k] * step[0][k];
    }
    CU_ASSERT(length > 0 && sqrt(apart) < 1e-4 * sqrt(length));
  }
}

/* --- draws --- */

#define SINGLE "world: {kind: llm, backend: cpu, " TINY ", " SORT

/* 1 if group g of both batches has the same prompt and responses. */
static int same_group(const batch *a, const batch *b, size_t g, size_t group_size) {
  int same = a->prompt[g] == b->prompt[g];
  for (size_t i = g * group_size; i < (g + 1) * group_size; ++i) {
    size_t x = a->token_start[i], y = b->token_start[i], n = a->token_start[i + 1] - x;
    same &= b->token_start[i + 1] - y == n && a->reward[i] == b->reward[i] &&
            memcmp(a->token + x, b->token + y, n * sizeof *a->token) == 0 &&
            memcmp(a->logq + x, b->logq + y, n * sizeof *a->logq) == 0;
  }
  return same;
}

/* The gradient of one response alone is multiplied by the factor of its update. */
TEST(noise_of_weights_multiplies_a_responses_gradient) {
  static const char *const noise[] = {"0", "0.5"};
  double norm[2];
  for (size_t k = 0; k < 2; ++k) {
    char text[600];
    double metrics[METRIC_COUNT];
    snprintf(text, sizeof text,
             WORLD "}\nalgorithm: {base: reinforce, baseline: none}\n"
                   "train: {groups: 1, group_size: 1, weight_noise: %s}",
             noise[k]);
    llm_fixture f = llm_open(text, 4);
    batch b = llm_draw(&f, 3);
    llm_update(&f, &b, metrics);
    norm[k] = metrics[METRIC_GRAD_NORM];
    batch_fini(&b);
  }
  CU_ASSERT(norm[0] > 0);
  CU_ASSERT(fabs(norm[1] / norm[0] / weight_noise_factor(0.5, 4, 0, 0, 0) - 1) < 1e-10);
}

/* Two batches of equal size, one of which counts a quarter: the step goes down the gradient of the
 * weighted mean of the losses that each alone has, by central differences along the step and along
 * a random direction. */
TEST(a_batch_counts_in_the_gradient_by_its_weight) {
  static const char *const algorithms[] = {"{base: grpo, clip: none, ref_kl_coef: 0.5}",
                                           "{base: gepo, clip: none}"};
  const double h = 1e-5, weight[2] = {0.25, 1};
  for (size_t a = 0; a < 2; ++a) {
    char text[900];
    double metrics[METRIC_COUNT], slope[2] = {0}, change[2] = {0};
    gl_error err = {0};
    snprintf(text, sizeof text, WORLD "}\noptimizer: {kind: sgd, lr: 1}\nalgorithm: %s",
             algorithms[a]);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.15, 0);
    batch b[2] = {llm_draw(&f, 7), llm_draw(&f, 8)}, *both[2] = {&b[0], &b[1]};
    llm_jitter(&f, 0.03, 1);
    double *theta = llm_theta(&f), *direction[2] = {llm_doubles(f.n), llm_doubles(f.n)};
    for (size_t k = 0; k < 2; ++k) b[k].loss_weight = weight[k];
    CU_ASSERT(f.learner.ops->update(f.llm, both, 2, metrics, &err) == GL_OK);
    double *after = llm_theta(&f);
    for (size_t i = 0; i < f.n; ++i) {
      const rng_words w = rng_block(rng_stream_at(6, RNG_TEST, a), i);
      direction[0][i] = theta[i] - after[i];
      direction[1][i] = direction[0][i] + 0.1 * (rng_u01_53(w.v[0], w.v[1]) - 0.5);
    }
    for (size_t d = 0; d < 2; ++d) {
      for (size_t i = 0; i < f.n; ++i) slope[d] += direction[d][i] * (theta[i] - after[i]);
      for (size_t k = 0; k < 2; ++k)
        change[d] += weight[k] / 2 *
                     (llm_loss_at(&f, theta, direction[d], h, &b[k]) -
                      llm_loss_at(&f, theta, direction[d], -h, &b[k])) /
                     (2 * h);
      ASSERT_CLOSE(change[d], slope[d], 2e-6);
    }
    CU_ASSERT(slope[0] > 1e-4);
    ASSERT_CLOSE(sqrt(slope[0]), metrics[METRIC_GRAD_NORM], 1e-9);
    for (size_t k = 0; k < 2; ++k) batch_fini(&b[k]);
  }
}

/* The mean log-probability of a batch's tokens at theta + h direction. */
static double mean_logp_at(llm_fixture *f, const double *theta, const double *direction, double h,
                           batch *b) {
  double metrics[METRIC_COUNT], sum = 0, *moved = llm_doubles(f->n);
  for (size_t i = 0; i < f->n; ++i) moved[i] = theta[i] + h * direction[i];
  ASSERT_OK(llm_learner_stand_at(&f->learner, moved, 0, &err));
  llm_update(f, b, metrics);
  for (size_t k = 0; k < b->n_tokens; ++k) sum += f->llm->update.table.logp[k];
  return sum / (double)b->n_tokens;
}

/* What a replayed batch adds to a step is the gradient of its mean log-probability, by central
 * differences, in every optimiser update; metrics describe the other batch alone. Updates of a
 * step are so small that the parameters between them are the same. */
TEST(replay_adds_the_gradient_of_the_mean_log_probability) {
  static const struct {
    const char *text;
    double updates;
  } cases[] = {{WORLD "}", 1},
               {WORLD ", micro_batch: 20}\ntrain: {minibatches: 2, epochs: 3}", 6},
               {WORLD ", devices: 2}\ntrain: {epochs: 2}", 2},
               {WORLD "}\nsampling: {top_k: 3, weights: replay}", 1}};
  const double lr = 1e-8, h = 1e-5;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    char text[900];
    double metrics[2][METRIC_COUNT], slope = 0;
    snprintf(
        text, sizeof text,
        "%s\noptimizer: {kind: sgd, lr: %g}\nalgorithm: {base: gspo, clip: none, kl_coef: 0.3}",
        cases[c].text, lr);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.15, 0);
    batch own = llm_draw(&f, 7), other = llm_draw(&f, 8), replayed = {0};
    const batch_response some[3] = {{&other, 9}, {&own, 2}, {&other, 4}};
    ASSERT_OK(batch_take_responses(&replayed, 0, some, 3, &err));
    llm_jitter(&f, 0.03, 1);
    double *theta = llm_theta(&f), *after[2], *direction = llm_doubles(f.n);
    for (size_t k = 0; k < 2; ++k) {
      ASSERT_OK(llm_learner_stand_at(&f.learner, theta, 0, &err));
      replayed.replay = k == 0 ? 0 : 0.7;
      batch *both[2] = {&own, &replayed};
      ASSERT_OK(f.learner.ops->update(f.llm, both, k + 1, metrics[k], &err));
      after[k] = llm_theta(&f);
    }
    for (size_t i = 0; i < f.n; ++i) {
      const rng_words w = rng_block(rng_stream_at(6, RNG_TEST, c), i);
      direction[i] = (after[1][i] - after[0][i]) / lr + 0.1 * (rng_u01_53(w.v[0], w.v[1]) - 0.5);
      slope += direction[i] * (after[1][i] - after[0][i]) / lr;
    }
    replayed.replay = 0;
    const double change = (mean_logp_at(&f, theta, direction, h, &replayed) -
                           mean_logp_at(&f, theta, direction, -h, &replayed)) /
                          (2 * h);
    CU_ASSERT(slope > 0.01);
    ASSERT_CLOSE(0.7 * cases[c].updates * change, slope, 2e-5);
    CU_ASSERT(metrics[0][METRIC_GRAD_NORM] != metrics[1][METRIC_GRAD_NORM]);
    for (size_t m = 0; m < METRIC_COUNT; ++m)
      if (m != METRIC_GRAD_NORM && m != METRIC_GRAD_COSINE)
        CU_ASSERT(memcmp(&metrics[0][m], &metrics[1][m], sizeof(double)) == 0);
    batch_fini(&own);
    batch_fini(&other);
    batch_fini(&replayed);
  }
}

/* Drawn and trained one by one, the responses of a group are the group, to the last bit. */
TEST(single_responses_of_a_group_are_the_group) {
  static const char *const worlds[] = {WORLD "}", WORLD "}\nsampling: {top_k: 3, weights: replay}"};
  for (size_t w = 0; w < 2; ++w) {
    char text[900];
    double metrics[2][METRIC_COUNT];
    gl_error err = {0};
    snprintf(
        text, sizeof text,
        "%s\noptimizer: {kind: sgd, lr: 1}\nalgorithm: {base: gspo, clip: none, kl_coef: 0.3}\n"
        "train: {groups: 1, group_size: 4}",
        worlds[w]);
    llm_fixture f = llm_open(text, 3);
    llm_jitter(&f, 0.15, 0);
    batch group = llm_draw(&f, 7), other = llm_draw(&f, 8), one[4] = {{0}};
    batch *single[5] = {&one[0], &one[1], &one[2], &one[3], &other};
    for (size_t i = 0; i < 4; ++i) {
      const draw_request r = {7, 0, 1, 1, 0, 1, 0, NULL, NULL, i};
      CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &one[i], &err) == GL_OK);
      CU_ASSERT_EQUAL(one[i].reward[0], group.reward[i]);
      one[i].continues = i > 0;
    }
    llm_jitter(&f, 0.03, 1);
    double *theta = llm_theta(&f);
    CU_ASSERT(f.learner.ops->update(f.llm, (batch *[2]){&group, &other}, 2, metrics[0], &err) ==
              GL_OK);
    double *together = llm_theta(&f);
    llm_set(&f, theta);
    f.llm->update.version = 0;
    CU_ASSERT(f.learner.ops->update(f.llm, single, 5, metrics[1], &err) == GL_OK);
    double *apart = llm_theta(&f), size = 0;
    for (size_t i = 0; i < f.n; ++i) size += fabs(apart[i] - theta[i]);
    CU_ASSERT(size > 0);
    CU_ASSERT_EQUAL(memcmp(apart, together, f.n * sizeof *apart), 0);
    CU_ASSERT_EQUAL(metrics[0][METRIC_LOSS], metrics[1][METRIC_LOSS]);
    for (size_t i = 0; i < 4; ++i) batch_fini(&one[i]);
    batch_fini(&group);
    batch_fini(&other);
  }
}

TEST(a_draw_depends_on_its_address_alone) {
  static const struct {
    const char *extra, *train;
    size_t threads;
  } forms[] = {{"slots: 1", "{}", 1},
               {"slots: 3", "{}", 2},
               {"micro_batch: 10", "{}", 3},
               {"slots: 5", "{groups: 9}", 2},
               {"slots: 0", "{groups: 1}", 1}};
  llm_fixture first = llm_open(SINGLE "}\nsampling: {top_k: 4, top_p: 0.9}", 8);
  batch whole = llm_draw(&first, 3);
  CU_ASSERT(whole.n_tokens < whole.n_responses * 8); /* some end early */
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
    char text[600];
    snprintf(text, sizeof text, SINGLE ", %s}\nsampling: {top_k: 4, top_p: 0.9}\ntrain: %s",
             forms[i].extra, forms[i].train);
    llm_fixture f = llm_open_with(text, (llm_choice){.seed = 8, .threads = forms[i].threads});
    batch b = llm_draw(&f, 3);
    for (size_t g = 0; g < b.n_groups && g < whole.n_groups; ++g)
      CU_ASSERT(same_group(&whole, &b, g, 4));
    batch_fini(&b);
  }
  batch other = llm_draw(&first, 4);
  CU_ASSERT(!llm_same_batch(&whole, &other));
  batch_fini(&other);
  batch_fini(&whole);
}

TEST(a_batch_drawn_in_parts_is_the_batch_drawn_at_once) {
  llm_fixture f = llm_open(SINGLE "}", 8);
  batch whole = llm_draw(&f, 3), parts = {0};
  llm_draw_part(&f, 3, 0, 0, 0.3, &parts);
  llm_draw_part(&f, 3, 0, 0.3, 0.55, &parts);
  llm_draw_part(&f, 3, 0, 0.55, 1, &parts);
  CU_ASSERT(whole.n_tokens == parts.n_tokens);
  for (size_t i = 0; i <= whole.n_responses && whole.n_tokens == parts.n_tokens; ++i)
    CU_ASSERT(whole.token_start[i] == parts.token_start[i]);
  CU_ASSERT(memcmp(whole.token, parts.token, whole.n_tokens * sizeof *whole.token) == 0);
  for (size_t k = 0; k < whole.n_tokens; ++k) ASSERT_CLOSE(whole.logq[k], parts.logq[k], 1e-5);
  batch_fini(&whole);
  batch_fini(&parts);
}

TEST(a_batch_in_flight_takes_new_weights_for_its_rest) {
  llm_fixture f = llm_open(SINGLE "}\noptimizer: {lr: 0.05}\nalgorithm: reinforce", 8);
  batch b = {0};
  double metrics[METRIC_COUNT];
  llm_draw_part(&f, 3, 0, 0, 0.25, &b); /* two tokens of eight */
  llm_train(&f, 10, 12, metrics);
  llm_draw_part(&f, 3, 2, 0.25, 1, &b);
  size_t longest = 0;
  for (size_t i = 0; i < b.n_responses; ++i) {
    size_t from = b.token_start[i], n = b.token_start[i + 1] - from;
    longest = n > longest ? n : longest;
    for (size_t t = 0; t < n; ++t) CU_ASSERT(b.version[from + t] == (t < 2 ? 0 : 2));
  }
  CU_ASSERT(longest > 2);
  llm_update(&f, &b, metrics);
  CU_ASSERT(isfinite(metrics[METRIC_LOSS]));
  batch_fini(&b);
}

/* Every response takes new weights at a token of its own, as if all had taken them there; drawn too
 * far before (`ahead`), or just up to there. */
static void take_new_weights_apart(int ahead) {
  enum { LONGEST = 8, LAST = 6 };
  llm_fixture f = llm_open(SINGLE ", slots: 3}\noptimizer: {lr: 0.05}\nalgorithm: reinforce", 8);
  const size_t n = f.n_groups * f.group_size;
  batch at[LAST + 1] = {{0}}, mixed = {0};
  draw_span *span = calloc(n, sizeof *span);
  size_t *length = calloc(n, sizeof *length), compared = 0;
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  CU_ASSERT_FATAL(span != NULL && length != NULL);
  for (size_t p = 1; p <= LAST; ++p) llm_draw_part(&f, 3, 0, 0, (double)p / LONGEST, &at[p]);
  for (size_t i = 0; i < n; ++i) span[i] = (draw_span){0, ahead ? LONGEST : 1 + i % LAST};
  draw_request r = {3, 0, f.n_groups, f.group_size, 0, 0.75, 0, span, length, 0};
  CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &mixed, &err) == GL_OK);
  llm_train(&f, 10, 12, metrics);
  for (size_t p = 1; p <= LAST; ++p) llm_draw_part(&f, 3, 2, (double)p / LONGEST, 1, &at[p]);
  for (size_t i = 0; i < n; ++i) span[i] = (draw_span){1 + i % LAST, LONGEST};
  r.version = 2;
  r.from = 0.5;
  CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &mixed, &err) == GL_OK);
  memset(span, 0, n * sizeof *span);
  r.to = 1;
  CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &mixed, &err) == GL_OK);
  for (size_t i = 0; i < n; ++i) {
    const batch *b = &at[1 + i % LAST];
    const size_t k = mixed.token_start[i], j = b->token_start[i];
    const size_t tokens = mixed.token_start[i + 1] - k;
    CU_ASSERT_EQUAL_FATAL(b->token_start[i + 1] - j, tokens);
    CU_ASSERT_EQUAL(length[i], tokens);
    CU_ASSERT(memcmp(mixed.token + k, b->token + j, tokens * sizeof *b->token) == 0);
    CU_ASSERT(memcmp(mixed.version + k, b->version + j, tokens * sizeof *b->version) == 0);
    CU_ASSERT(memcmp(mixed.logq + k, b->logq + j, tokens * sizeof *b->logq) == 0);
    CU_ASSERT_EQUAL(mixed.reward[i], b->reward[i]);
    compared += tokens > 1 + i % LAST;
  }
  CU_ASSERT(compared > 2); /* so many have tokens of both versions */
  llm_update(&f, &mixed, metrics);
  CU_ASSERT(isfinite(metrics[METRIC_LOSS]));
  for (size_t p = 0; p <= LAST; ++p) batch_fini(&at[p]);
  batch_fini(&mixed);
  free(span);
  free(length);
}

TEST(responses_take_new_weights_at_tokens_of_their_own) {
  take_new_weights_apart(0);
  take_new_weights_apart(1);
}

/* --- keys and values that are kept --- */

static void keep_cache(llm_fixture *f) {
  gl_error err = {0};
  CU_ASSERT_FATAL(f->learner.ops->keep_cache(f->llm, &err) == GL_OK);
}

/* The same weights go on as if nothing had happened, to the last bit. */
TEST(weights_that_stay_keep_every_bit) {
  llm_fixture f = llm_open(SINGLE ", slots: 5}\nsampling: {top_k: 4}", 8);
  keep_cache(&f);
  batch whole = llm_draw(&f, 3), parts = {0};
  llm_draw_part(&f, 3, 0, 0, 0.125, &parts); /* one token of eight */
  llm_draw_part(&f, 3, 0, 0.125, 0.55, &parts);
  CU_ASSERT(parts.cache_bytes > 0);
  llm_draw_part(&f, 3, 0, 0.55, 1, &parts);
  CU_ASSERT(llm_same_batch(&whole, &parts) && parts.kept_words == whole.kept_words);
  CU_ASSERT(memcmp(whole.logq, parts.logq, whole.n_tokens * sizeof *whole.logq) == 0);
  batch_fini(&whole);
  batch_fini(&parts);
}

/* log p of a token from a cache's first row of logits. */
static double log_probability(model_cache *c, size_t vocabulary, int32_t token) {
  double *z = llm_doubles(vocabulary), sum = 0;
  gl_error err = {0};
  CU_ASSERT_FATAL(model_logits_get(c, 1, z, &err) == GL_OK);
  for (size_t a = 0; a < vocabulary; ++a) sum += exp(z[a] - z[token]);
  return -log(sum);
}

/* One response built by hand: `cut` tokens with old parameters, keys and values left as they are,
 * the others with new ones. The largest difference from what was recorded. */
static double kept_by_hand(llm_fixture *f, const double *old, const double *new, const batch *b,
                           const problem_set *problems, size_t i, size_t cut) {
  model *m = f->llm->model;
  const size_t g = i / f->group_size, v = model_configuration(m)->vocabulary;
  const size_t first = problems->start[g], prompt = problems->start[g + 1] - first;
  const size_t k = b->token_start[i], n = b->token_start[i + 1] - k;
  const size_t start[] = {0, prompt}, slot = 0;
  const packed_tokens packed = {
      .n_tokens = prompt, .n_sequences = 1, .start = start, .token = problems->token + first};
  model_cache *c = NULL;
  gl_error err = {0};
  CU_ASSERT_FATAL(model_cache_new(&c, m, 1, prompt + n, &err) == GL_OK);
  llm_set(f, old);
  CU_ASSERT_FATAL(model_prefill(c, &packed, &slot, &err) == GL_OK);
  double apart = fabs(log_probability(c, v, b->token[k]) - b->logq[k]);
  for (size_t t = 1; t < n; ++t) {
    const int32_t row = 0, position = (int32_t)(prompt + t - 1);
    if (t == cut) llm_set(f, new);
    CU_ASSERT_FATAL(model_decode(c, &b->token[k + t - 1], &row, &position, 1, &err) == GL_OK);
    apart = fmax(apart, fabs(log_probability(c, v, b->token[k + t]) - b->logq[k + t]));
  }
  model_cache_free(c);
  return apart;
}

/* Later tokens attend to the keys and values of the version before; computed again they would be
 * others. Every response changes at a token of its own. */
TEST(later_tokens_attend_to_keys_and_values_of_older_weights) {
  enum { LONGEST = 8, LAST = 6 };
  double apart[2] = {0, 0}, metrics[METRIC_COUNT];
  for (int keeps = 0; keeps < 2; ++keeps) {
    llm_fixture f = llm_open(SINGLE ", slots: 3}\noptimizer: {lr: 0.05}\nalgorithm: reinforce", 8);
    const size_t n = f.n_groups * f.group_size;
    batch b = {0};
    problem_set problems = {0};
    gl_error err = {0};
    draw_span *span = calloc(n, sizeof *span);
    uint64_t *number = calloc(f.n_groups, sizeof *number);
    CU_ASSERT_FATAL(span != NULL && number != NULL);
    if (keeps) keep_cache(&f);
    double *old = llm_theta(&f);
    for (size_t i = 0; i < n; ++i) span[i] = (draw_span){0, i % 2 ? LONGEST : 1 + i % LAST};
    draw_request r = {3, 0, f.n_groups, f.group_size, 0, 0.75, 0, span, NULL, 0};
    CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &b, &err) == GL_OK);
    llm_train(&f, 10, 12, metrics);
    double *new = llm_theta(&f);
    for (size_t i = 0; i < n; ++i) span[i] = (draw_span){1 + i % LAST, LONGEST};
    r = (draw_request){3, 2, f.n_groups, f.group_size, 0.5, 1, 0, span, NULL, 0};
    CU_ASSERT_FATAL(f.learner.ops->draw(f.llm, &r, &b, &err) == GL_OK);
    CU_ASSERT(b.kept_words == 0 && b.cache_bytes == 0);
    for (size_t g = 0; g < f.n_groups; ++g) number[g] = (uint64_t)b.prompt[g];
    CU_ASSERT_FATAL(
        problem_set_init(&problems, &f.llm->spec, TASK_TRAIN, number, f.n_groups, &err) == GL_OK);
    for (size_t i = 0; i < n; ++i)
      apart[keeps] = fmax(apart[keeps], kept_by_hand(&f, old, new, &b, &problems, i, 1 + i % LAST));
    problem_set_fini(&problems);
    batch_fini(&b);
    free(span);
    free(number);
  }
  CU_ASSERT(apart[1] < 1e-5);
  CU_ASSERT(apart[0] > 1e-3);
}

TEST(what_cannot_keep_keys_and_values_says_so) {
  llm_fixture f = llm_open(SINGLE "}\nsampling: {logq: learner}", 8);
  gl_error err = {0};
  CU_ASSERT(f.learner.ops->keep_cache(f.llm, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "logq: sampler"));
}

TEST(a_held_version_draws_what_it_drew) {
  llm_fixture f = llm_open(SINGLE "}\noptimizer: {lr: 0.05}\nalgorithm: reinforce", 8);
  gl_error err = {0};
  double metrics[METRIC_COUNT];
  batch before = llm_draw(&f, 3), held = {0}, missing = {0};
  CU_ASSERT(f.learner.ops->hold(f.llm, &err) == GL_OK);
  llm_train(&f, 10, 12, metrics);
  batch after = llm_draw(&f, 3);
  llm_draw_part(&f, 3, 0, 0, 1, &held);
  CU_ASSERT(llm_same_batch(&before, &held) && !llm_same_batch(&before, &after));
  f.learner.ops->release(f.llm, 1); /* not held */
  f.learner.ops->release(f.llm, 0);
  const draw_request r = {3, 0, f.n_groups, f.group_size, 0, 1, 0, NULL, NULL, 0};
  CU_ASSERT(f.learner.ops->draw(f.llm, &r, &missing, &err) == GL_EINTERNAL);
  batch_fini(&missing);
  batch_fini(&before);
  batch_fini(&held);
  batch_fini(&after);
}

/* --- what an update says --- */

TEST(a_first_update_on_policy_has_ratio_one) {
  llm_fixture f = llm_open(SINGLE ", reference: initial}\nsampling: {temperature: 1.3}\n"
                                  "optimizer: {lr: 0.02}\nalgorithm: grpo",
                           8);
  double m[METRIC_COUNT];
  batch b = llm_draw(&f, 0);
  llm_update(&f, &b, m);
  for (size_t k = 0; k < b.n_tokens; ++k) {
    ASSERT_CLOSE(f.llm->update.table.logp[k], b.logq[k], 1e-5);
    CU_ASSERT(f.llm->update.table.logref[k] == f.llm->update.table.logp[k]);
  }
  CU_ASSERT(fabs(m[METRIC_IW_MEAN] - 1) < 1e-5 && fabs(m[METRIC_IW_MAX] - 1) < 1e-4);
  CU_ASSERT(m[METRIC_CLIP_FRACTION] == 0 && fabs(m[METRIC_KL_K3]) < 1e-8);
  CU_ASSERT(m[METRIC_KL_REF] == 0 && m[METRIC_LR] == 0.02 && m[METRIC_GRAD_NORM] > 0);
  CU_ASSERT(m[METRIC_ENTROPY] > 0.5 && m[METRIC_ENTROPY] < log(8));
  ASSERT_CLOSE(m[METRIC_RESPONSE_LENGTH], (double)b.n_tokens / (double)b.n_responses, 1e-12);
  CU_ASSERT(isnan(m[METRIC_KL_EXACT]) && isnan(m[METRIC_EXACT_RETURN]));
  llm_update(&f, &b, m);
  CU_ASSERT(m[METRIC_KL_K3] > 1e-6 && m[METRIC_KL_REF] > 1e-6 && m[METRIC_IW_MAX] > 1.001);
  batch_fini(&b);
}

TEST(parameters_that_are_no_numbers_are_a_result) {
  llm_fixture f = llm_open(SINGLE "}\nalgorithm: gepo", 8);
  double m[METRIC_COUNT];
  batch b = llm_draw(&f, 0);
  double *theta = llm_theta(&f);
  for (size_t i = 0; i < f.n; ++i) theta[i] = NAN;
  llm_set(&f, theta);
  llm_update(&f, &b, m);
  CU_ASSERT(isnan(m[METRIC_LOSS]) && isnan(m[METRIC_GRAD_NORM]) && f.llm->update.version == 1);
  CU_ASSERT(isfinite(m[METRIC_REWARD_MEAN]));
  CU_ASSERT(isnan(llm_score(&f)));
  batch of_nothing = llm_draw(&f, 1);
  llm_update(&f, &of_nothing, m);
  CU_ASSERT(isnan(m[METRIC_LOSS]));
  batch_fini(&of_nothing);
  batch_fini(&b);
}

TEST(a_batch_of_another_world_is_refused) {
  llm_fixture f = llm_open(SINGLE "}", 8);
  double m[METRIC_COUNT];
  gl_error err = {0};
  batch b = llm_draw(&f, 0), *one = &b;
  int32_t kept = b.token[2];
  b.token[2] = 1000;
  CU_ASSERT(f.learner.ops->update(f.llm, &one, 1, m, &err) == GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another world"));
  b.token[2] = kept;
  b.prompt[1] = -1;
  CU_ASSERT(f.learner.ops->update(f.llm, &one, 1, m, &err) == GL_EINPUT);
  CU_ASSERT(f.llm->update.version == 0);
  batch_fini(&b);
}

/* --- evaluation --- */

static double score_of(const char *evaluation, const char *sampling) {
  char text[900];
  snprintf(text, sizeof text,
           "world: {kind: llm, backend: cpu, dtype: float64, " TINY
           ", task: {kind: sorting, length: 3, values: 4, reward: graded, cut_off: score}, "
           "max_tokens: 4, evaluation: %s}\nsampling: %s\nalgorithm: gepo",
           evaluation, sampling);
  llm_fixture f = llm_open(text, 3);
  llm_jitter(&f, 0.3, 0);
  double score = llm_score(&f);
  return score;
}

TEST(an_evaluation_has_a_dist_of_its_own) {
  const double plain = score_of("{kind: sampled, prompts: 20, samples: 2}", "{}"),
               sharp = score_of("{kind: sampled, prompts: 20, samples: 2, temperature: 0.3}", "{}");
  CU_ASSERT(plain > 0 && sharp > 0 && plain != sharp);
  CU_ASSERT(score_of("{kind: sampled, prompts: 20, samples: 2}", "{temperature: 0.3}") == plain);
  CU_ASSERT(score_of("{kind: sampled, prompts: 20, samples: 2}", "{top_k: 1}") == plain);
  CU_ASSERT(score_of("{kind: sampled, prompts: 20, top_k: 1}", "{}") ==
            score_of("{kind: greedy, prompts: 20}", "{}"));
}

/* --- learning --- */

/* Sorting three digits: from a model that knows a little, by rewards alone; scored by sampling on
 * problems it is not trained on. */
TEST(it_learns_to_sort_from_rewards) {
  llm_fixture f =
      llm_open("world: {kind: llm, backend: cpu, model: {layers: 1, hidden: 32, heads: 2, context: "
               "24}, task: {kind: sorting, length: 3}, evaluation: {kind: sampled, prompts: 100, "
               "samples: 4}, warmup: "
               "{steps: 60, batch: 32, lr: 0.01}}\n"
               "optimizer: {lr: 0.003}\nalgorithm: reinforce\ntrain: {groups: 16, group_size: 8}",
               1);
  double m[METRIC_COUNT], first = llm_score(&f);
  llm_train(&f, 0, 60, m);
  double last = llm_score(&f);
  CU_ASSERT(first > 0.1 && first < 0.4 && last > first + 0.12);
}
