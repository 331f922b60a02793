/* The toy learner's step: its gradient, its minibatches, its exact metrics, and that it learns. */
#include "tests/support/toy_fixture.h"

/* --- batches made by hand --- */

SUITE("toy: learning");

/* One group of the given responses to prompt x under the sampler's log-probabilities over edges. */
static batch batch_of(const toy_world *w, size_t x, const size_t *response, size_t n,
                      const double *logq) {
  const response_tree *t = &w->tree;
  size_t lengths[8];
  batch b = {0};
  gl_error err = {0};
  CU_ASSERT_FATAL(n <= 8);
  for (size_t i = 0; i < n; ++i) lengths[i] = (size_t)t->length[response[i]];
  CU_ASSERT_FATAL(batch_init(&b, 1, 1, n, lengths, &err) == GL_OK);
  CU_ASSERT_FATAL(batch_reserve_dists(&b, t->n_edges, false, &err) == GL_OK);
  memcpy(b.dist, logq, t->n_edges * sizeof *logq);
  b.prompt[0] = (int64_t)x;
  for (size_t i = 0; i < n; ++i) {
    b.reward[i] = w->reward[x * t->n_responses + response[i]];
    for (size_t k = 0; k < lengths[i]; ++k) {
      size_t edge = (size_t)t->path[response[i] * t->horizon + k], at = b.token_start[i] + k;
      b.token[at] = (int32_t)(edge % t->vocabulary);
      b.logq[at] = b.logq_trunc[at] = logq[edge];
    }
  }
  return b;
}

static double log_response(const response_tree *t, const double *edge, size_t y) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)t->length[y]; ++i) sum += edge[t->path[y * t->horizon + i]];
  return sum;
}

/* --- the gradient --- */

/* E[theta' - theta] over all groups of prompt x under the sampler's distribution, added to mean. */
static void add_expected_step(learner_fixture *l, const double *theta, size_t x, const double *logq,
                              double *mean) {
  toy_learner *toy = l->toy;
  const size_t k = toy->world->tree.n_responses, n = toy->world->features.n_parameters;
  size_t tuples = 1, response[8];
  double metrics[METRIC_COUNT];
  for (size_t i = 0; i < l->group_size; ++i) tuples *= k;
  for (size_t tuple = 0; tuple < tuples; ++tuple) {
    double logp = 0;
    for (size_t i = 0, rest = tuple; i < l->group_size; ++i, rest /= k) {
      response[i] = rest % k;
      logp += log_response(&toy->world->tree, logq, response[i]);
    }
    batch b = batch_of(toy->world, x, response, l->group_size, logq);
    memcpy(toy->theta, theta, n * sizeof *theta);
    ++toy->stamp;
    learner_update(l, &b, metrics);
    for (size_t j = 0; j < n; ++j)
      mean[j] += exp(logp) * (toy->theta[j] - theta[j]) / (double)toy->world->n_prompts;
    batch_fini(&b);
  }
}

/* The gradient of J as the sum over responses of p r grad log p. */
static void exact_gradient(const world_fixture *f, const double *theta, double *grad) {
  double *score = fixture_doubles(f->k * f->n), *logp = fixture_doubles(f->k);
  gl_error err = {0};
  for (size_t x = 0; x < f->e.n_prompts; ++x) {
    CU_ASSERT(f->e.ops->sequence_scores(f->e.self, theta, x, score, &err) == GL_OK);
    world_log_responses(f, theta, x, 0, logp);
    for (size_t y = 0; y < f->k; ++y)
      for (size_t j = 0; j < f->n; ++j)
        grad[j] += exp(logp[y]) * f->world->reward[x * f->k + y] * score[y * f->n + j] /
                   (double)f->e.n_prompts;
  }
}

/* The mean step of plain gradient ascent at rate 1 is the gradient itself, exactly. */
static void check_unbiased(const char *text, int off_policy) {
  learner_fixture l = learner_open(text, 3);
  world_fixture f = world_open(text, 3);
  const size_t edges = f.world->tree.n_edges;
  double *theta = fixture_doubles(4 * f.n + edges), *behaviour = theta + f.n;
  double *mean = theta + 2 * f.n, *grad = theta + 3 * f.n, *logq = theta + 4 * f.n, size = 0;
  fixture_normals(theta, f.n, 0.7, 1);
  fixture_normals(behaviour, f.n, 0.7, off_policy ? 2 : 1);
  for (size_t x = 0; x < f.e.n_prompts; ++x) {
    toy_log_probs(f.world, behaviour, x, logq);
    add_expected_step(&l, theta, x, logq, mean);
  }
  exact_gradient(&f, theta, grad);
  for (size_t j = 0; j < f.n; ++j) {
    ASSERT_CLOSE(mean[j], grad[j], 1e-12);
    size += fabs(grad[j]);
  }
  CU_ASSERT(size > 0.05);
}

static const char *const gradient_worlds[] = {
    "world: {kind: bandit, rewards: [1, 0.2, 0.5]}\ntrain: {groups: 1, group_size: 3}\n",
    "world: {kind: sequence, vocabulary: 2, horizon: 2, end_token: true, prompts: 2, task: target, "
    "reward: graded, policy: {kind: loglinear}}\nsampling: {temperature: 0.7}\n"
    "train: {groups: 1, group_size: 2}\n",
};

/* The step on two batches of one group each is, by hand, the mean of the steps on each alone, a
 * batch's step times its weight. */
TEST(a_batch_counts_in_the_step_by_its_weight) {
  static const char *const algorithms[] = {"grpo", "{base: gepo, ref_kl_coef: 0.5}",
                                           "{base: gspo, kl_coef: 0.2}"};
  const double weight[2] = {0.25, 1};
  for (size_t a = 0; a < 3; ++a) {
    char text[600];
    double metrics[METRIC_COUNT], size = 0;
    gl_error err = {0};
    snprintf(text, sizeof text,
             "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2, task: target, reward: "
             "graded, policy: {kind: loglinear}}\ntrain: {groups: 1, group_size: 6}\n"
             "optimizer: {kind: sgd, lr: 1}\nalgorithm: %s",
             algorithms[a]);
    learner_fixture l = learner_open(text, 3);
    const size_t n = l.toy->world->features.n_parameters;
    double *theta = fixture_doubles(4 * n), *alone[2] = {theta + n, theta + 2 * n};
    fixture_normals(theta, n, 0.7, 1);
    memcpy(l.toy->theta, theta, n * sizeof *theta);
    ++l.toy->stamp;
    batch b[2] = {learner_draw(&l, 1), learner_draw(&l, 4)}, *both[2] = {&b[0], &b[1]};
    fixture_normals(theta, n, 0.7, 2);
    for (size_t k = 0; k < 2; ++k) {
      memcpy(l.toy->theta, theta, n * sizeof *theta);
      ++l.toy->stamp;
      learner_update(&l, &b[k], metrics);
      for (size_t i = 0; i < n; ++i) alone[k][i] = l.toy->theta[i] - theta[i];
      b[k].loss_weight = weight[k];
    }
    memcpy(l.toy->theta, theta, n * sizeof *theta);
    ++l.toy->stamp;
    CU_ASSERT(l.learner.ops->update(l.toy, both, 2, metrics, &err) == GL_OK);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_CLOSE(l.toy->theta[i] - theta[i],
                   (weight[0] * alone[0][i] + weight[1] * alone[1][i]) / 2, 1e-14);
      size += fabs(alone[0][i]);
    }
    CU_ASSERT(size > 0.01);
    for (size_t k = 0; k < 2; ++k) batch_fini(&b[k]);
  }
}

/* Single responses have the addresses of their group's: what each is drawn as is what it is in the
 * group. Those of a group that an update takes are one group of it, here without the second. */
TEST(single_responses_are_trained_as_the_part_of_their_group_that_is_there) {
  static const char *const algorithms[] = {
      "grpo", "gepo", "{base: reinforce, baseline: leave_one_out}", "{base: gspo, kl_coef: 0.2}"};
  for (size_t a = 0; a < 4; ++a) {
    char text[600];
    double metrics[2][METRIC_COUNT], size = 0;
    gl_error err = {0};
    snprintf(text, sizeof text,
             "world: {kind: sequence, vocabulary: 3, horizon: 4, prompts: 3, end_token: true, "
             "task: target, reward: graded, policy: {kind: loglinear}}\noptimizer: {kind: sgd, "
             "lr: 1}\nalgorithm: %s\ntrain: {groups: 1, group_size: 4}",
             algorithms[a]);
    learner_fixture l = learner_open(text, 3);
    const size_t n = l.toy->world->features.n_parameters;
    double *theta = fixture_doubles(2 * n), *after = theta + n;
    fixture_normals(l.toy->theta, n, 0.7, 1);
    ++l.toy->stamp;
    batch group = learner_draw(&l, 6), other = learner_draw(&l, 7), one[4] = {{0}}, three;
    size_t length[4];
    for (size_t i = 0; i < 4; ++i) {
      const draw_request r = {6, 0, 1, 1, 0, 1, 0, NULL, NULL, i};
      const size_t k = group.token_start[i];
      CU_ASSERT_FATAL(l.learner.ops->draw(l.toy, &r, &one[i], &err) == GL_OK);
      length[i] = group.token_start[i + 1] - k;
      CU_ASSERT_EQUAL_FATAL(one[i].n_tokens, length[i]);
      CU_ASSERT(one[i].prompt[0] == group.prompt[0] && one[i].reward[0] == group.reward[i]);
      CU_ASSERT_EQUAL(memcmp(one[i].token, group.token + k, length[i] * sizeof *group.token), 0);
      CU_ASSERT_EQUAL(memcmp(one[i].logq, group.logq + k, length[i] * sizeof *group.logq), 0);
    }
    length[1] = length[2], length[2] = length[3];
    CU_ASSERT_FATAL(batch_init(&three, 6, 1, 3, length, &err) == GL_OK);
    CU_ASSERT_FATAL(batch_reserve_dists(&three, group.n_dist, false, &err) == GL_OK);
    memcpy(three.dist, group.dist, group.n_dist * sizeof *three.dist);
    three.prompt[0] = group.prompt[0];
    for (size_t i = 0, from = 0; i < 3; ++i, from = i + 1) {
      const size_t to = three.token_start[i], k = group.token_start[from];
      three.reward[i] = group.reward[from];
      memcpy(three.token + to, group.token + k, length[i] * sizeof *three.token);
      memcpy(three.logq + to, group.logq + k, length[i] * sizeof *three.logq);
      memcpy(three.logq_trunc + to, group.logq_trunc + k, length[i] * sizeof *three.logq_trunc);
    }
    fixture_normals(theta, n, 0.7, 2);
    memcpy(l.toy->theta, theta, n * sizeof *theta);
    ++l.toy->stamp;
    CU_ASSERT(l.learner.ops->update(l.toy, (batch *[2]){&three, &other}, 2, metrics[0], &err) ==
              GL_OK);
    memcpy(after, l.toy->theta, n * sizeof *theta);
    memcpy(l.toy->theta, theta, n * sizeof *theta);
    ++l.toy->stamp;
    l.toy->update.version = 0;
    one[2].continues = one[3].continues = 1;
    CU_ASSERT(l.learner.ops->update(l.toy, (batch *[4]){&one[0], &one[2], &one[3], &other}, 4,
                                    metrics[1], &err) == GL_OK);
    for (size_t i = 0; i < n; ++i) {
      CU_ASSERT_EQUAL(l.toy->theta[i], after[i]);
      size += fabs(after[i] - theta[i]);
    }
    CU_ASSERT(size > 0.01);
    CU_ASSERT_EQUAL(metrics[0][METRIC_LOSS], metrics[1][METRIC_LOSS]);
    ASSERT_CLOSE(metrics[0][METRIC_KL_EXACT], metrics[1][METRIC_KL_EXACT], 1e-12);
    for (size_t i = 0; i < 4; ++i) batch_fini(&one[i]);
    batch_fini(&group);
    batch_fini(&other);
    batch_fini(&three);
  }
}

TEST(a_group_of_another_prompt_is_not_continued) {
  learner_fixture l = learner_open("world: {kind: bandit, contexts: 5, arms: 3}\nalgorithm: grpo\n"
                                   "train: {groups: 1, group_size: 2}",
                                   3);
  batch b[2] = {learner_draw(&l, 1)};
  double metrics[METRIC_COUNT];
  gl_error err = {0};
  for (uint64_t id = 2; b[1].prompt == NULL; ++id) {
    b[1] = learner_draw(&l, id);
    if (b[1].prompt[0] == b[0].prompt[0]) batch_fini(&b[1]);
  }
  b[1].continues = 1;
  CU_ASSERT_EQUAL(l.learner.ops->update(l.toy, (batch *[2]){&b[0], &b[1]}, 2, metrics, &err),
                  GL_EINTERNAL);
  for (size_t k = 0; k < 2; ++k) batch_fini(&b[k]);
}

/* Each minibatch takes the weights of its own groups: with a weight of 0 for one batch, the step of
 * two minibatches is that on the other batch alone. */
TEST(minibatches_keep_the_weights_of_their_groups) {
  char text[600];
  double metrics[METRIC_COUNT], size = 0;
  gl_error err = {0};
  for (size_t kept = 0; kept < 2; ++kept) {
    const char *const train[] = {"train: {groups: 1, group_size: 2}",
                                 "train: {groups: 2, group_size: 2, minibatches: 2}"};
    learner_fixture l[2];
    batch b[2];
    for (size_t k = 0; k < 2; ++k) {
      snprintf(text, sizeof text,
               "world: {kind: bandit, rewards: [1, 0.2, 0.5]}\noptimizer: {kind: sgd, lr: "
               "1}\nalgorithm: {base: reinforce, baseline: none}\n%s",
               train[k]);
      l[k] = learner_open(text, 3);
    }
    for (size_t k = 0; k < 2; ++k) b[k] = learner_draw(&l[0], 3 + k);
    b[1 - kept].loss_weight = 0;
    CU_ASSERT(l[1].learner.ops->update(l[1].toy, (batch *[2]){&b[0], &b[1]}, 2, metrics, &err) ==
              GL_OK);
    learner_update(&l[0], &b[kept], metrics);
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_CLOSE(l[1].toy->theta[i], l[0].toy->theta[i], 1e-14);
      size += fabs(l[0].toy->theta[i]);
    }
    for (size_t k = 0; k < 2; ++k) {
      batch_fini(&b[k]);
    }
  }
  CU_ASSERT(size > 0.01);
}

TEST(the_expected_reinforce_step_on_policy_is_the_exact_gradient) {
  for (size_t i = 0; i < 2; ++i) {
    char text[600];
    snprintf(text, sizeof text, "%soptimizer: {kind: sgd, lr: 1}\nalgorithm: reinforce",
             gradient_worlds[i]);
    check_unbiased(text, 0);
  }
}

TEST(the_expected_importance_weighted_step_off_policy_is_the_exact_gradient) {
  for (size_t i = 0; i < 2; ++i) {
    char text[600];
    snprintf(text, sizeof text, "%soptimizer: {kind: sgd, lr: 1}\nalgorithm: is",
             gradient_worlds[i]);
    check_unbiased(text, 1);
  }
}

/* The proximal policy is the learner's at the start of the step, so that a first update has a
 * proximal ratio of 1 and is never clipped: what remains of a decoupled row is the importance
 * weight p / q, however far the sampler is. */
TEST(a_first_decoupled_update_is_weighted_and_never_clipped) {
  char text[600];
  snprintf(text, sizeof text,
           "%soptimizer: {kind: sgd, lr: 1}\nalgorithm: {base: decoupled_ppo, baseline: "
           "leave_one_out, scale: none}",
           gradient_worlds[0]);
  check_unbiased(text, 1);
}

/* The proximal policy of ppo_ewma: after update k its parameters are the mean of those after
 * updates 0 .. k with weights decay^(k - j), and the next update scores its tokens under it. */
TEST(the_averaged_policy_is_the_mean_of_its_definition) {
  enum { ARMS = 3, UPDATES = 5 };
  const double decay = 0.7;
  learner_fixture l = learner_open(
      "world: {kind: bandit, rewards: [1, 0, 0.5]}\noptimizer: {kind: sgd, lr: 2}\n"
      "algorithm: {base: ppo_ewma, proximal_decay: 0.7, baseline: leave_one_out, scale: none}",
      5);
  double theta[UPDATES + 1][ARMS], metrics[METRIC_COUNT], apart = 0;
  CU_ASSERT_FATAL(l.toy->average != NULL && l.toy->world->features.n_parameters == ARMS);
  for (size_t k = 0; k <= UPDATES; ++k) {
    double mean[ARMS] = {0}, weights = 0, all = 0;
    memcpy(theta[k], l.toy->theta, sizeof theta[k]);
    for (size_t j = 0; j <= k; ++j) {
      const double weight = pow(decay, (double)(k - j));
      weights += weight;
      for (size_t a = 0; a < ARMS; ++a) mean[a] += weight * theta[j][a];
    }
    for (size_t a = 0; a < ARMS; ++a) {
      mean[a] /= weights;
      ASSERT_CLOSE(l.toy->average[a], mean[a], 1e-14);
      apart = fmax(apart, fabs(mean[a] - theta[k][a]));
      all += exp(mean[a]);
    }
    batch b = learner_draw(&l, k);
    learner_update(&l, &b, metrics);
    const update_table *t = &l.toy->update.table;
    for (size_t i = 0; i < t->n_tokens; ++i)
      ASSERT_CLOSE(t->logprox[i], mean[t->token[i]] - log(all), 1e-13);
    batch_fini(&b);
  }
  CU_ASSERT(apart > 1e-3);
}

/* --- learning --- */

/* Gain in J over 40 updates of batches that are `lag` updates old. */
static double gain(const char *row, size_t lag, uint64_t seed) {
  enum { UPDATES = 40, MAX_LAG = 8 };
  char text[400];
  snprintf(text, sizeof text,
           "world: {kind: sequence, vocabulary: 3, horizon: 3, prompts: 2, task: needle, policy: "
           "{kind: loglinear}}\noptimizer: {lr: 0.05}\nalgorithm: %s",
           row);
  learner_fixture l = learner_open(text, seed);
  batch waiting[MAX_LAG + 1] = {{0}};
  double before = learner_score(&l), metrics[METRIC_COUNT];
  for (size_t u = 0; u < UPDATES + lag; ++u) {
    waiting[u % (lag + 1)] = learner_draw(&l, u);
    if (u < lag) continue;
    batch *oldest = &waiting[(u - lag) % (lag + 1)];
    learner_update(&l, oldest, metrics);
    size_t started_at = u - lag, stale = started_at < lag ? started_at : lag;
    CU_ASSERT(metrics[METRIC_STALENESS] == (double)stale);
    batch_fini(oldest);
  }
  double after = learner_score(&l);
  for (size_t i = 0; i <= lag; ++i) batch_fini(&waiting[i]);
  return after - before;
}

TEST(every_row_learns_on_policy) {
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    double up = gain(policy_algorithms_at(i)->name, 0, 1);
    if (!(up > 0.1)) fprintf(stderr, "%s gained %g\n", policy_algorithms_at(i)->name, up);
    CU_ASSERT(up > 0.1);
  }
}

TEST(every_row_learns_from_batches_four_updates_old) {
  for (size_t i = 0; i < policy_algorithms_count(); ++i) {
    double up = gain(policy_algorithms_at(i)->name, 4, 1);
    if (!(up > 0.1)) fprintf(stderr, "%s gained %g\n", policy_algorithms_at(i)->name, up);
    CU_ASSERT(up > 0.1);
  }
}

/* --- minibatches and epochs --- */

/* At a vanishing rate the parameters hardly move within a step, so that its update is the sum over
 * its minibatches of each one's mean over groups: with equal parts, minibatches * epochs times the
 * update from the whole batch. */
static void check_epochs(const char *row) {
  static const size_t shapes[][2] = {{1, 1}, {2, 1}, {4, 3}, {8, 2}};
  double whole[64] = {0}, start[64];
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    char text[500];
    snprintf(text, sizeof text,
             "world: {kind: bandit, arms: 4, contexts: 3, policy: {init: {kind: normal}}}\n"
             "optimizer: {kind: sgd, lr: 1e-7}\nalgorithm: %s\n"
             "train: {groups: 8, group_size: 4, minibatches: %zu, epochs: %zu}",
             row, shapes[i][0], shapes[i][1]);
    learner_fixture l = learner_open(text, 2);
    double metrics[METRIC_COUNT], size = 0;
    const size_t n = l.toy->world->features.n_parameters, steps = shapes[i][0] * shapes[i][1];
    batch b = learner_draw(&l, 1); /* sampler, reference and learner all differ */
    fixture_normals(start, n, 1, 4);
    memcpy(l.toy->theta, start, n * sizeof *start);
    ++l.toy->stamp;
    learner_update(&l, &b, metrics);
    CU_ASSERT(l.toy->optimizer.steps == steps && l.toy->update.version == 1);
    for (size_t j = 0; j < n; ++j) {
      double moved = l.toy->theta[j] - start[j];
      if (i == 0) whole[j] = moved;
      size += fabs(whole[j]);
      CU_ASSERT(fabs(moved - (double)steps * whole[j]) < 1e-5 * 1e-7);
    }
    CU_ASSERT(size > 0.01 * 1e-7);
    batch_fini(&b);
  }
}

TEST(each_epoch_uses_every_group_once) {
  check_epochs("reinforce");
  check_epochs("decoupled_ppo");
  check_epochs("{base: gepo, log_prob: sum, denominator: exact, ref_kl_coef: 0.5, kl_coef: 0.1}");
}

/* Each epoch's order is a permutation of its own, and so is each version's. */
TEST(groups_meet_in_another_order_each_epoch) {
  learner_fixture l = learner_open("world: {kind: bandit, arms: 4}\n"
                                   "train: {groups: 8, group_size: 2, minibatches: 2}",
                                   2);
  size_t before[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  double metrics[METRIC_COUNT];
  for (uint64_t u = 0; u < 3; ++u) {
    batch b = learner_draw(&l, u);
    learner_update(&l, &b, metrics);
    unsigned seen = 0;
    for (size_t g = 0; g < 8; ++g) seen |= 1u << l.toy->update.order[g];
    CU_ASSERT(seen == 0xff && memcmp(before, l.toy->update.order, sizeof before) != 0);
    memcpy(before, l.toy->update.order, sizeof before);
    batch_fini(&b);
  }
}

/* The schedule counts learner steps, not the optimiser updates within them. */
TEST(the_learning_rate_follows_the_version) {
  learner_fixture l = learner_open("world: {kind: bandit}\noptimizer: {lr: 0.8, warmup: 4, decay: "
                                   "linear}\ntrain: {minibatches: 4, epochs: 2, updates: 8}",
                                   2);
  const double expected[] = {0.2, 0.4, 0.6, 0.8, 0.8, 0.6, 0.4, 0.2, 0};
  double metrics[METRIC_COUNT];
  for (uint64_t u = 0; u < 9; ++u) {
    batch b = learner_draw(&l, u);
    learner_update(&l, &b, metrics);
    ASSERT_CLOSE(metrics[METRIC_LR], expected[u], 1e-15);
    batch_fini(&b);
  }
}

/* Seven groups in three parts: 2, 2 and 3 groups, all used. */
TEST(uneven_minibatches_are_allowed) {
  learner_fixture l = learner_open("world: {kind: bandit, arms: 4, contexts: 3}\n"
                                   "train: {groups: 7, group_size: 4, minibatches: 3, epochs: 2}",
                                   2);
  double metrics[METRIC_COUNT];
  batch b = learner_draw(&l, 1);
  learner_update(&l, &b, metrics);
  CU_ASSERT(l.toy->optimizer.steps == 6 && isfinite(metrics[METRIC_GRAD_NORM]));
  batch_fini(&b);
}

/* Two batches trained together are the batch that holds both groups. */
TEST(several_batches_train_as_one) {
  const char *text = "world: {kind: bandit, rewards: [1, 0, 0.5]}\noptimizer: {kind: sgd, lr: 1}\n"
                     "algorithm: reinforce\ntrain: {groups: 1, group_size: 2}";
  learner_fixture a = learner_open(text, 1), c = learner_open(text, 1), d = learner_open(text, 1);
  const double *logq = toy_learner_at(a.toy, 0)->logp;
  batch first = batch_of(a.toy->world, 0, (size_t[]){0, 1}, 2, logq);
  batch second = batch_of(a.toy->world, 0, (size_t[]){2, 1}, 2, logq);
  batch *both[] = {&first, &second};
  double metrics[METRIC_COUNT], one[METRIC_COUNT], two[METRIC_COUNT];
  gl_error err = {0};
  learner_update(&c, &first, one);
  learner_update(&d, &second, two);
  CU_ASSERT(a.learner.ops->update(a.toy, both, 2, metrics, &err) == GL_OK);
  for (size_t j = 0; j < 3; ++j)
    ASSERT_CLOSE(a.toy->theta[j], (c.toy->theta[j] + d.toy->theta[j]) / 2, 1e-15);
  ASSERT_CLOSE(metrics[METRIC_REWARD_MEAN], 0.375, 1e-15);
  batch_fini(&first);
  batch_fini(&second);
}

/* --- exact metrics --- */

/* What the metrics of one prompt should be, as sums over the list of responses. */
typedef struct facts {
  double kl, kl_qp, kl_ref, entropy, length, mean;
} facts;

static facts enumerate(const toy_world *w, size_t x, const double *logp, const double *logq,
                       const double *logref) {
  facts f = {0};
  for (size_t y = 0; y < w->tree.n_responses; ++y) {
    double lp = log_response(&w->tree, logp, y), lq = log_response(&w->tree, logq, y);
    f.kl += exp(lp) * (lp - lq);
    f.kl_qp += exp(lq) * (lq - lp);
    f.kl_ref += exp(lp) * (lp - log_response(&w->tree, logref, y));
    f.entropy -= exp(lp) * lp;
    f.length += exp(lp) * (double)w->tree.length[y];
    f.mean += exp(lp) * w->reward[x * w->tree.n_responses + y];
  }
  return f;
}

TEST(exact_metrics_agree_with_enumeration_under_mixed_versions) {
  learner_fixture l = learner_open(
      "world: {kind: sequence, vocabulary: 2, horizon: 4, prompts: 3, end_token: true, task: "
      "target, reward: graded, policy: {kind: loglinear, init: {kind: normal, scale: 1}}}\n"
      "sampling: {temperature: 0.9}\noptimizer: {lr: 0.4}\ntrain: {groups: 5, group_size: 4}",
      6);
  toy_learner *toy = l.toy;
  const size_t edges = toy->world->tree.n_edges;
  double metrics[METRIC_COUNT];
  batch mixed = {0};
  learner_draw_part(&l, 50, 0, 0.5, &mixed);
  for (uint64_t u = 0; u < 3; ++u) {
    batch b = learner_draw(&l, u);
    learner_update(&l, &b, metrics);
    batch_fini(&b);
  }
  learner_draw_part(&l, 50, 0.5, 1, &mixed);
  batch b = learner_draw(&l, 3);
  learner_update(&l, &b, metrics);
  batch_fini(&b);
  facts sum = {0};
  double entropy = 0, stale = 0;
  CU_ASSERT_FATAL(toy_learner_slots(toy, &mixed) * edges == mixed.n_dist);
  for (size_t g = 0; g < mixed.n_groups; ++g) {
    size_t x = (size_t)mixed.prompt[g];
    facts f = enumerate(toy->world, x, toy_learner_at(toy, x)->logp,
                        mixed.dist + toy->slot[x] * edges, toy->logref + x * edges);
    sum.kl += f.kl / 5;
    sum.kl_qp += f.kl_qp / 5;
    sum.kl_ref += f.kl_ref / 5;
    entropy += f.entropy / f.length / 5;
  }
  for (size_t x = 0; x < 3; ++x) {
    const double *logp = toy_learner_at(toy, x)->logp;
    sum.mean += enumerate(toy->world, x, logp, logp, logp).mean / 3;
  }
  for (size_t k = 0; k < mixed.n_tokens; ++k)
    stale += (double)(4 - mixed.version[k]) / (double)mixed.n_tokens;
  learner_update(&l, &mixed, metrics);
  CU_ASSERT(sum.kl > 1e-3 && sum.kl_ref > 1e-3);
  ASSERT_CLOSE(metrics[METRIC_KL_EXACT], sum.kl, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_KL_EXACT_QP], sum.kl_qp, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_KL_REF], sum.kl_ref, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_ENTROPY], entropy, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_EXACT_RETURN], sum.mean, 1e-12);
  ASSERT_CLOSE(metrics[METRIC_STALENESS], stale, 1e-12);
  CU_ASSERT(metrics[METRIC_STALENESS_MAX] == 4);
  batch_fini(&mixed);
}

TEST(on_policy_divergences_are_zero) {
  learner_fixture l = learner_open("world: {kind: sequence, prompts: 3}", 1);
  double metrics[METRIC_COUNT];
  batch b = learner_draw(&l, 1);
  learner_update(&l, &b, metrics);
  static const metric zero[] = {METRIC_KL_EXACT, METRIC_KL_EXACT_QP, METRIC_KL_REF, METRIC_KL_K3,
                                METRIC_STALENESS};
  for (size_t i = 0; i < sizeof zero / sizeof *zero; ++i) CU_ASSERT(metrics[zero[i]] == 0);
  ASSERT_CLOSE(metrics[METRIC_ENTROPY], log(4), 1e-14);
  batch_fini(&b);
}

/* p = (0.8, 0.2), rewards (1, 0), one group holding both arms, on policy.
 *   reinforce: A = (1, -1) (leave-one-out), w = 1, E_p[A] = (0.8 - 0.5) / 0.5: |0 - 0.6|.
 *   gepo: A = (0.5, -0.5), E = (0.64 + 0.04) / 1, mean of A w = 0.5 * 0.5 * 0.6 / 0.68,
 *   E_p[A] = 0.8 - 0.5. */
TEST(the_estimation_error_is_what_the_hand_finds) {
  static const char *const rows[] = {"reinforce", "{base: gepo, log_prob: sum}"};
  const double expected[] = {0.6, 0.3 - 0.25 * 0.6 / 0.68};
  for (size_t i = 0; i < 2; ++i) {
    char text[300];
    snprintf(text, sizeof text,
             "world: {kind: bandit, rewards: [1, 0], policy: {init: {kind: probs, probs: [0.8, "
             "0.2]}}}\ntrain: {groups: 1, group_size: 2}\nalgorithm: %s",
             rows[i]);
    learner_fixture l = learner_open(text, 1);
    double metrics[METRIC_COUNT];
    batch b = batch_of(l.toy->world, 0, (size_t[]){0, 1}, 2, toy_learner_at(l.toy, 0)->logp);
    learner_update(&l, &b, metrics);
    ASSERT_CLOSE(metrics[METRIC_ESTIMATION_ERROR], expected[i], 1e-12);
    batch_fini(&b);
  }
}

/* p = (0.5, 0.3, 0.2) and top_k 2: q~ = (0.625, 0.375). A group holding both kept arms has weights
 * p/q~ = 0.8 or p/q = 1, and under the exact denominator (0.5 + 0.3) / 2 over sum q~^2 = 0.53125 or
 * sum q^2 = 0.38. */
TEST(weights_see_the_dist_that_the_recipe_names) {
  static const struct {
    const char *weights, *row;
    double mean;
  } table[] = {{"raw", "is", 1},
               {"truncated", "is", 0.8},
               {"raw", "{base: gepo, log_prob: sum, denominator: exact}", 0.4 / 0.38},
               {"truncated", "{base: gepo, log_prob: sum, denominator: exact}", 0.4 / 0.53125}};
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    char text[400];
    snprintf(text, sizeof text,
             "world: {kind: bandit, rewards: [1, 0, 0], policy: {init: {kind: probs, probs: [0.5, "
             "0.3, 0.2]}}}\nsampling: {top_k: 2, weights: %s}\nalgorithm: %s\n"
             "train: {groups: 1, group_size: 20}",
             table[i].weights, table[i].row);
    learner_fixture l = learner_open(text, 1);
    double metrics[METRIC_COUNT], p = 0;
    batch b = learner_draw(&l, 1);
    for (size_t k = 0; k < 20; ++k) p += (b.token[k] == 0 ? 0.5 : 0.3) / 20;
    double expected = i < 2 ? table[i].mean : table[i].mean * p / 0.4;
    learner_update(&l, &b, metrics);
    ASSERT_CLOSE(metrics[METRIC_IW_MEAN], expected, 1e-12);
    CU_ASSERT(metrics[METRIC_KL_EXACT] == 0); /* between the policies themselves */
    batch_fini(&b);
  }
}

/* The reference pulls: with no reward to gain, the KL to it falls. */
TEST(the_reference_policy_attracts) {
  learner_fixture l = learner_open(
      "world: {kind: bandit, rewards: [0, 0, 0, 0], policy: {reference: uniform, init: {kind: "
      "probs, probs: [0.7, 0.1, 0.1, 0.1]}}}\nalgorithm: {base: reinforce, ref_kl_coef: 1}",
      1);
  double metrics[METRIC_COUNT], first = 0;
  for (uint64_t u = 0; u < 30; ++u) {
    batch b = learner_draw(&l, u);
    learner_update(&l, &b, metrics);
    if (u == 0) first = metrics[METRIC_KL_REF];
    batch_fini(&b);
  }
  ASSERT_CLOSE(first, 0.7 * log(2.8) + 0.3 * log(0.4), 1e-12);
  CU_ASSERT(metrics[METRIC_KL_REF] < first / 4);
}
