/* Samplers that do not draw from their policy: distorted logits, mixtures, and what is recorded of
 * the tokens; and the learner's distribution over what a sampler kept. */
#include "tests/support/toy_fixture.h"
#include "toy/lab/estimator_moments.h"
#include "toy/lab/prompt_tables.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

SUITE("toy: behaviour of samplers");

#define LETTERS                                                                                    \
  "world: {kind: sequence, vocabulary: 4, horizon: 3, prompts: 1, task: sum_mod, reward: graded, " \
  "policy: {init: {kind: normal, scale: 1}}}\n"

static size_t number_of(const response_tree *t, const int32_t *token) {
  int32_t at = 0;
  for (size_t i = 0; at >= 0; ++i) at = t->next[(size_t)at * t->vocabulary + (size_t)token[i]];
  return (size_t)~at;
}

/* Sum of a table over the edges of response y. */
static double along(const response_tree *t, const double *edge, size_t y) {
  double sum = 0;
  for (size_t i = 0; i < (size_t)t->length[y]; ++i) sum += edge[t->path[y * t->horizon + i]];
  return sum;
}

static double recorded(const batch *b, const double *logq, size_t i) {
  double sum = 0;
  for (size_t k = b->token_start[i]; k < b->token_start[i + 1]; ++k) sum += logq[k];
  return sum;
}

/* Chi-square of drawn responses against exp of a table's sums; once in a million by chance. */
static void check_drawn(const batch *b, const response_tree *t, const double *dist) {
  double *count = fixture_doubles(t->n_responses), chi = 0;
  for (size_t i = 0; i < b->n_responses; ++i) ++count[number_of(t, b->token + b->token_start[i])];
  for (size_t y = 0; y < t->n_responses; ++y) {
    const double expected = (double)b->n_responses * exp(along(t, dist, y));
    chi += (count[y] - expected) * (count[y] - expected) / expected;
  }
  CU_ASSERT(gsl_cdf_chisq_Q(chi, (double)(t->n_responses - 1)) > 1e-6);
}

TEST(draws_follow_the_distorted_dist_that_the_batch_records) {
  static const char *const behaviours[] = {
      "noise: 0.7", "precision: bfloat16", "temperature_error: 0.5",
      "noise: 0.3, precision: bfloat16, temperature_error: -0.2"};
  for (size_t i = 0; i < 4; ++i)
    for (int by_learner = 0; by_learner < 2; ++by_learner) {
      char text[700];
      snprintf(text, sizeof text,
               LETTERS "sampling: {temperature: 0.9, logq: %s, behaviour: {%s}}\n"
                       "train: {groups: 1, group_size: 20000}",
               by_learner ? "learner" : "sampler", behaviours[i]);
      learner_fixture l = learner_open(text, 3);
      const response_tree *t = &l.toy->world->tree;
      const double *policy = toy_learner_at(l.toy, 0)->logp;
      batch b = learner_draw(&l, 5);
      double apart = 0;
      for (size_t e = 0; e < t->n_edges; ++e) apart += fabs(b.dist[e] - policy[e]);
      CU_ASSERT(apart > 1e-3);
      check_drawn(&b, t, b.dist);
      for (size_t k = 0; k < b.n_responses; ++k) {
        const size_t y = number_of(t, b.token + b.token_start[k]);
        ASSERT_CLOSE(recorded(&b, b.logq, k), along(t, by_learner ? policy : b.dist, y), 1e-12);
      }
      batch_fini(&b);
    }
}

TEST(noise_has_the_address_of_its_batch_and_the_size_it_was_given) {
  const char *text = LETTERS "sampling: {behaviour: {noise: 0.25}}\ntrain: {groups: 1, group_size: "
                             "2}";
  learner_fixture l = learner_open(text, 3);
  const size_t n = l.toy->world->tree.n_edges;
  const double *policy = toy_learner_at(l.toy, 0)->logp;
  batch a = learner_draw(&l, 5), again = learner_draw(&l, 5), other = learner_draw(&l, 6);
  CU_ASSERT_EQUAL(memcmp(a.dist, again.dist, n * sizeof *a.dist), 0);
  CU_ASSERT(memcmp(a.dist, other.dist, n * sizeof *a.dist) != 0);
  double squares = 0, freedom = 0;
  for (uint64_t id = 100; id < 400; ++id) {
    batch b = learner_draw(&l, id);
    for (size_t first = 0; first < n; first += 4, freedom += 3) {
      double mean = 0; /* normalisation takes a constant from each node */
      for (size_t k = first; k < first + 4; ++k) mean += (b.dist[k] - policy[k]) / 4;
      for (size_t k = first; k < first + 4; ++k)
        squares += (b.dist[k] - policy[k] - mean) * (b.dist[k] - policy[k] - mean);
    }
    batch_fini(&b);
  }
  CU_ASSERT(fabs(squares / freedom / 0.0625 - 1) < 4.9 * sqrt(2 / freedom));
  batch_fini(&a);
  batch_fini(&again);
  batch_fini(&other);
}

/* log((1 - share) Q + share U) of whole responses. */
TEST(a_mixture_is_of_whole_responses_and_recorded_with_its_own_probability) {
  static const char *const others[] = {"uniform", "initial"};
  for (size_t k = 0; k < 2; ++k) {
    char text[500];
    snprintf(text, sizeof text,
             LETTERS "sampling: {behaviour_mixture: {with: %s, share: 0.3}}\n"
                     "train: {groups: 1, group_size: 20000}",
             others[k]);
    learner_fixture l = learner_open(text, 3);
    toy_learner *toy = l.toy;
    const response_tree *t = &toy->world->tree;
    double *first = fixture_doubles(t->n_edges);
    memcpy(first, toy_learner_at(toy, 0)->logp, t->n_edges * sizeof *first);
    fixture_normals(toy->theta, t->n_edges, 1, 77);
    ++toy->stamp;
    const double *policy = toy_learner_at(toy, 0)->logp;
    batch b = learner_draw(&l, 5);
    check_drawn(&b, t, b.dist);
    for (size_t i = 0; i < b.n_responses; ++i) {
      const size_t y = number_of(t, b.token + b.token_start[i]);
      const double other = k == 0 ? 1.0 / 64 : exp(along(t, first, y));
      const double mixture = 0.7 * exp(along(t, policy, y)) + 0.3 * other;
      ASSERT_CLOSE(recorded(&b, b.logq, i), log(mixture), 1e-12);
    }
    batch_fini(&b);
  }
}

TEST(a_mixture_needs_whole_batches) {
  learner_fixture l =
      learner_open(LETTERS "sampling: {behaviour_mixture: {with: initial, share: 0.2}}", 3);
  batch b = {0};
  gl_error err = {0};
  const draw_request r = {1, l.toy->update.version, l.n_groups, l.group_size, 0, 0.5, 0, NULL, NULL,
                          0};
  CU_ASSERT_EQUAL(l.learner.ops->draw(l.toy, &r, &b, &err), GL_EINPUT);
  CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "behaviour_mixture"));
  batch_fini(&b);
}

/* --- replay --- */

enum { REPLAYED = 64, PARAMETERS = 84 };

static void golden_row(FILE *from, double *to, size_t n) {
  char word[64];
  for (size_t i = 0; i < n; ++i) {
    CU_ASSERT_FATAL(fscanf(from, "%63s", word) == 1);
    to[i] = strtod(word, NULL);
  }
}

/* Log-probabilities and two gradients by PyTorch (tests/golden/replay.py). */
TEST(replayed_gradients_are_those_of_autograd) {
  world_fixture f =
      world_open("world: {kind: sequence, vocabulary: 4, horizon: 3, prompts: 1, task: "
                 "sum_mod, reward: graded}\n"
                 "sampling: {temperature: 0.8, top_k: 3, top_p: 0.9, weights: replay}",
                 1);
  double theta[PARAMETERS], sampler[PARAMETERS], logs[REPLAYED], first[PARAMETERS],
      second[PARAMETERS], logp[REPLAYED * 3], coefficient[REPLAYED * 3] = {0},
                                                                     grad[PARAMETERS] = {0};
  gl_error err = {0};
  FILE *golden = fopen("tests/golden/replay.txt", "r");
  CU_ASSERT_FATAL(golden != NULL && f.n == PARAMETERS && f.k == REPLAYED);
  golden_row(golden, logs, REPLAYED);
  golden_row(golden, first, PARAMETERS);
  golden_row(golden, second, PARAMETERS);
  fclose(golden);
  for (size_t i = 0; i < PARAMETERS; ++i) theta[i] = sin(1.3 * (double)i + 0.2);
  for (size_t i = 0; i < PARAMETERS; ++i) sampler[i] = 1.2 * cos(0.7 * (double)i);
  CU_ASSERT_EQUAL(f.e.ops->log_probs_replayed(f.e.self, theta, sampler, 0, logp, &err), GL_OK);
  size_t kept = 0;
  for (size_t y = 0; y < REPLAYED; ++y) {
    const double sum = logp[3 * y] + logp[3 * y + 1] + logp[3 * y + 2];
    if (isnan(logs[y])) {
      CU_ASSERT(isinf(sum));
      continue;
    }
    ++kept;
    ASSERT_CLOSE(sum, logs[y], 1e-12);
    for (size_t t = 0; t < 3; ++t) coefficient[3 * y + t] = sin(1 + (double)y + 0.3 * (double)t);
  }
  CU_ASSERT(kept > 8 && kept < 40);
  CU_ASSERT_EQUAL(
      f.e.ops->accumulate_score_replayed(f.e.self, theta, sampler, 0, coefficient, grad, &err),
      GL_OK);
  for (size_t i = 0; i < PARAMETERS; ++i) ASSERT_CLOSE(grad[i], first[i], 1e-10);
  lab_tables t;
  CU_ASSERT_EQUAL(lab_tables_init(&t, &f.e, 0, theta, sampler, LAB_WEIGHTS_REPLAY, &err), GL_OK);
  CU_ASSERT_EQUAL(t.n, kept);
  for (size_t i = 0; i < PARAMETERS; ++i) ASSERT_CLOSE(t.kept_gradient[i], second[i], 1e-10);
  lab_tables_fini(&t);
}

#define OFF_POLICY                                                                                 \
  LETTERS "sampling: {temperature: 0.8, top_k: 3, top_p: 0.8, weights: replay}\n"                  \
          "algorithm: {base: is, kl_coef: 0.1, ref_kl_coef: 0.2}\n"                                \
          "optimizer: {kind: sgd, lr: 1}\ntrain: {groups: 3, group_size: 5}"

/* A learner that drew batch 1, moved away, and is moved by `step` along parameter i. */
static learner_fixture moved(batch *b, size_t i, double step) {
  learner_fixture l = learner_open(OFF_POLICY, 9);
  double away[PARAMETERS];
  *b = learner_draw(&l, 1);
  fixture_normals(away, PARAMETERS, 0.8, 5);
  for (size_t k = 0; k < PARAMETERS; ++k) l.toy->theta[k] += away[k];
  l.toy->theta[i] += step;
  ++l.toy->stamp;
  return l;
}

static double loss_of(size_t i, double step) {
  double metrics[METRIC_COUNT];
  batch b;
  learner_fixture l = moved(&b, i, step);
  learner_update(&l, &b, metrics);
  batch_fini(&b);
  return metrics[METRIC_LOSS];
}

/* Nodes at which the learner would keep other tokens than the sampler did. */
static size_t other_sets(toy_learner *l, const batch *b) {
  const response_tree *t = &l->world->tree;
  double *mine = fixture_doubles(2 * t->n_edges), *theirs = mine + t->n_edges;
  size_t nodes = 0;
  toy_truncate(l->world, &l->world->sampling, toy_learner_at(l, 0)->logp, t->n_nodes, mine,
               l->rank);
  toy_truncate(l->world, &l->world->sampling, b->dist, t->n_nodes, theirs, l->rank);
  for (size_t n = 0; n < t->n_nodes; ++n) {
    int differ = 0;
    for (size_t e = 4 * n; e < 4 * n + 4; ++e) differ |= isinf(mine[e]) != isinf(theirs[e]);
    nodes += (size_t)differ;
  }
  return nodes;
}

TEST(the_replayed_step_is_a_finite_difference_of_the_loss) {
  double before[PARAMETERS], metrics[METRIC_COUNT];
  const double h = 1e-5;
  batch b;
  learner_fixture l = moved(&b, 0, 0);
  CU_ASSERT(other_sets(l.toy, &b) >= 5);
  memcpy(before, l.toy->theta, sizeof before);
  learner_update(&l, &b, metrics);
  for (size_t i = 0; i < PARAMETERS; ++i) {
    const double slope = (loss_of(i, h) - loss_of(i, -h)) / (2 * h);
    ASSERT_CLOSE(before[i] - l.toy->theta[i], slope, 1e-7);
  }
  batch_fini(&b);
}

/* On-policy the replayed ratio is 1, whatever is truncated; the raw one of the learner against the
 * truncated distribution is not. */
TEST(on_policy_replayed_ratios_are_one) {
  double replay[METRIC_COUNT], truncated[METRIC_COUNT];
  static const char *const weights[] = {"replay", "truncated"};
  double *metrics[] = {replay, truncated};
  for (size_t k = 0; k < 2; ++k) {
    char text[500];
    snprintf(text, sizeof text, LETTERS "sampling: {top_p: 0.7, weights: %s}\nalgorithm: is",
             weights[k]);
    learner_fixture l = learner_open(text, 9);
    batch b = learner_draw(&l, 1);
    learner_update(&l, &b, metrics[k]);
    batch_fini(&b);
  }
  ASSERT_CLOSE(replay[METRIC_IW_MEAN], 1, 1e-12);
  ASSERT_CLOSE(replay[METRIC_KL_K3], 0, 1e-12);
  CU_ASSERT(truncated[METRIC_IW_MEAN] < 0.9);
}

/* On-policy the estimator with replayed weights points along the gradient of the kept distribution:
 * what is left of its bias is none of truncation's. */
TEST(on_policy_replay_estimates_the_gradient_of_the_kept_dist) {
  world_fixture f = world_open("world: {kind: bandit, rewards: [0.1, 0.3, 1, 0.7], policy: {init: "
                               "{kind: normal, scale: 1}}}\nsampling: {top_k: 2, weights: replay}",
                               4);
  double theta[4];
  toy_world_initial(f.world, 4, theta);
  const policy_algorithm *is = policy_algorithms_find("is");
  for (int w = LAB_WEIGHTS_RAW; w <= LAB_WEIGHTS_REPLAY; ++w) {
    const lab_spec spec = {.world = &f.e,
                           .theta_learner = theta,
                           .theta_sampler = theta,
                           .weights = (lab_weights)w,
                           .group_size = 3,
                           .budget = 100000};
    lab_result r;
    gl_error err = {0};
    CU_ASSERT_EQUAL_FATAL(lab_measure(&r, &is, 1, &spec, &err), GL_OK);
    CU_ASSERT(r.applicable && r.kept_truth != NULL);
    for (size_t i = 0; i < 4 && w == LAB_WEIGHTS_REPLAY; ++i)
      ASSERT_CLOSE(r.expected[i], r.kept_truth[i], 1e-14);
    /* of one token, with the others' mean as baseline, truncation leaves no drift */
    CU_ASSERT(r.cosine_kept > 1 - 1e-12);
    lab_result_fini(&r);
  }
}

/* --- rates --- */

/* A learner that drew batch 1 and moved away scales its step with the share of P/Q that is left. */
TEST(rates_follow_the_effective_sample_size) {
  static const char *const scalings[] = {"none", "sqrt", "linear"};
  double step[3], rate[3], ess = NAN;
  for (size_t k = 0; k < 3; ++k) {
    char text[500];
    double metrics[METRIC_COUNT], before;
    snprintf(text, sizeof text,
             LETTERS "algorithm: grpo\noptimizer: {kind: sgd, lr: 0.5, ess_scaling: %s}\n"
                     "train: {groups: 2, group_size: 6}",
             scalings[k]);
    learner_fixture l = learner_open(text, 9);
    batch b = learner_draw(&l, 1);
    double away[PARAMETERS], w = 0, w2 = 0;
    fixture_normals(away, PARAMETERS, 0.6, 5);
    for (size_t i = 0; i < PARAMETERS; ++i) l.toy->theta[i] += away[i];
    ++l.toy->stamp;
    for (size_t i = 0; i < b.n_responses; ++i) {
      const size_t y = number_of(&l.toy->world->tree, b.token + b.token_start[i]);
      const double x = exp(along(&l.toy->world->tree, toy_learner_at(l.toy, 0)->logp, y) -
                           recorded(&b, b.logq, i));
      w += x;
      w2 += x * x;
    }
    ess = w * w / (12 * w2);
    size_t moving = 0;
    before = l.toy->theta[0];
    learner_update(&l, &b, metrics);
    step[k] = l.toy->theta[moving] - before;
    rate[k] = metrics[METRIC_LR];
    batch_fini(&b);
  }
  CU_ASSERT(ess < 0.9 && step[0] != 0);
  ASSERT_CLOSE(step[1] / step[0], sqrt(ess), 1e-9);
  ASSERT_CLOSE(step[2] / step[0], ess, 1e-9);
  CU_ASSERT_EQUAL(rate[0], 0.5);
  ASSERT_CLOSE(rate[2], 0.5 * ess, 1e-12);
}
