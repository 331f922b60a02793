/* Theorems 1 and 3 on pairs from training: the distributions are those that the path went through,
 * every number is that of sums over a bandit's arms written here, and mistakes are told. */
#include "experiments/lab/theory.h"
#include "core/base/json.h"
#include "experiments/lab/training.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("lab: theorems on pairs from training");

enum { ARMS = 4, UPDATES = 24, AGE = 3 };
static const double rewards[ARMS] = {1, 0.6, 0.3, 0};
static const char recipe_text[] =
    "name: pairs\nworld: {kind: bandit, rewards: [1, 0.6, 0.3, 0]}\ngroup_size: [4]\n"
    "training: {updates: 24, groups: 1, record_every: 1, seeds: 1, lr: [0.8], stalenesses: [3]}\n"
    "algorithms: [is]\n";

/* --- by hand --- */

typedef struct path {
  double theta[UPDATES + 1][ARMS], theta_q[UPDATES + 1][ARMS];
} path;

static gl_status keep(void *context, size_t update, const double *theta, const double *theta_q,
                      gl_error *err) {
  (void)err;
  memcpy(((path *)context)->theta[update], theta, ARMS * sizeof *theta);
  memcpy(((path *)context)->theta_q[update], theta_q, ARMS * sizeof *theta);
  return GL_OK;
}

static void softmax(const double *theta, double *p) {
  double sum = 0;
  for (int y = 0; y < ARMS; ++y) sum += p[y] = exp(theta[y]);
  for (int y = 0; y < ARMS; ++y) p[y] /= sum;
}

/* Var_q[w] from its definition. */
static double variance(const double *q, const double *w) {
  double mean = 0, sum = 0;
  for (int y = 0; y < ARMS; ++y) mean += q[y] * w[y];
  for (int y = 0; y < ARMS; ++y) sum += q[y] * (w[y] - mean) * (w[y] - mean);
  return sum;
}

/* The path begins at a uniform policy, for which both weights are the same. */
static int exceeds(double one, double other) {
  return one > other + 1e-9;
}

/* What the pairs say with D = sum q^2. */
typedef struct said {
  double pairs, constant, green, disagree, far, far_green;
} said;

static void hear(said *s, const double *p, const double *q) {
  double kl = 0, d = 0, mean = 0, pq[ARMS], pd[ARMS], apq[ARMS], apd[ARMS];
  for (int y = 0; y < ARMS; ++y) {
    kl += p[y] * (log(p[y]) - log(q[y]));
    d += q[y] * q[y];
    mean += p[y] * rewards[y];
  }
  for (int y = 0; y < ARMS; ++y) {
    pq[y] = p[y] / q[y];
    pd[y] = p[y] / d;
    apq[y] = (rewards[y] - mean) * pq[y];
    apd[y] = (rewards[y] - mean) * pd[y];
  }
  const int green = exceeds(variance(q, pd), variance(q, pq));
  s->pairs += 1;
  s->constant = fmax(s->constant, exp(kl) - variance(q, pq) + variance(q, pd));
  s->green += green;
  s->disagree += green != exceeds(variance(q, apd), variance(q, apq));
  s->far += kl >= 0.01;
  s->far_green += kl >= 0.01 && green;
}

static gl_status read_text(lab_recipe *r, cfg_doc **doc, const char *text, gl_error *err) {
  gl_status status = cfg_load_text(doc, text, strlen(text), "test", err);
  return status == GL_OK ? lab_recipe_read(r, *doc, err) : status;
}

static void check_told(const cJSON *document, const said *s) {
  const cJSON *one = cJSON_GetArrayItem(member_at(document, "training"), 0);
  const cJSON *all = cJSON_GetArrayItem(member_at(document, "together"), 0);
  const cJSON *d = member_at(one, "expected");
  CU_ASSERT_EQUAL(number_at(document, "theorem"), ARMS * ARMS + 1);
  CU_ASSERT_EQUAL(number_at(one, "pairs"), s->pairs);
  CU_ASSERT_EQUAL(number_at(one, "pairs_far"), s->far);
  CU_ASSERT_EQUAL(number_at(d, "share_theorem1_holds"), 1);
  ASSERT_CLOSE(number_at(d, "largest_constant"), s->constant, 1e-12);
  ASSERT_CLOSE(number_at(d, "share_w_varies_more"), s->green / s->pairs, 1e-15);
  ASSERT_CLOSE(number_at(d, "share_w_and_aw_disagree"), s->disagree / s->pairs, 1e-15);
  ASSERT_CLOSE(number_at(d, "share_w_varies_more_far"), s->far_green / s->far, 1e-15);
  /* of one algorithm, all together say the same */
  CU_ASSERT_EQUAL(number_at(all, "pairs"), s->pairs);
  CU_ASSERT_EQUAL(number_at(all, "kl_median"), number_at(one, "kl_median"));
  CU_ASSERT_EQUAL(number_at(all, "aw_expected"), number_at(one, "aw_expected"));
}

TEST(pairs_are_those_of_the_path_and_their_numbers_are_sums_over_arms) {
  lab_recipe r = {0};
  cfg_doc *doc = NULL;
  table *tables = NULL;
  path walked;
  said s = {.constant = -INFINITY};
  gl_error err = {0};
  CU_ASSERT_EQUAL_FATAL(read_text(&r, &doc, recipe_text, &err), GL_OK);
  const lab_path of = {&r, &r.algorithms[0], AGE, 0.8, 1};
  CU_ASSERT_EQUAL_FATAL(lab_train_path(&of, keep, &walked, &err), GL_OK);
  for (int t = AGE; t <= UPDATES; ++t) {
    double p[ARMS], q[ARMS];
    CU_ASSERT_EQUAL(memcmp(walked.theta_q[t], walked.theta[t - AGE], sizeof walked.theta[t]), 0);
    softmax(walked.theta[t], p);
    softmax(walked.theta[t - AGE], q);
    hear(&s, p, q);
  }
  CU_ASSERT(s.far > 0 && s.green > 0 && s.disagree > 0);
  CU_ASSERT_EQUAL_FATAL(theory_training_run(&tables, &r, 2, PROGRESS_SILENT, &err), GL_OK);
  cJSON *document = table_to_json(tables);
  check_told(document, &s);
  cJSON_Delete(document);
  table_free(tables);
  lab_recipe_fini(&r);
  cfg_free(doc);
}

/* --- as a user sees it --- */

TEST(recipes_come_with_the_program_and_threads_change_nothing) {
  static const char small[] = "training.updates=20";
  cli_result one = CLI("theory", "theory_training", small, "training.seeds=1", "training.lr=[1]",
                       "training.stalenesses=[1,4]", "-j", "1", "--json"),
             two = CLI("theory", "theory_training", small, "training.seeds=1", "training.lr=[1]",
                       "training.stalenesses=[1,4]", "-j", "2", "--json"),
             text = CLI("theory", "theory_training_mdp", small, "training.seeds=1",
                        "training.lr=[1]", "training.stalenesses=[1]");
  CU_ASSERT_EQUAL(one.code, 0);
  CU_ASSERT_STRING_EQUAL(one.out, two.out);
  cJSON *document = json_parsed(one.out);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(document, "training")), 10);
  CU_ASSERT_EQUAL(cJSON_GetArraySize(member_at(document, "together")), 2);
  CU_ASSERT_EQUAL(text.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(text.out, "gepo released"));
  CU_ASSERT_PTR_NOT_NULL(
      strstr(text.out, "p/D wider A p/D wider  disagree with E_q r far apart\n"));
  CU_ASSERT_PTR_NULL(strstr(text.out, "nan"));
}

TEST(mistakes_are_told) {
  CU_ASSERT(CLI_GIVES(2, "theory", "theory_training", "training.stalenesses=[0]"));
  CU_ASSERT(CLI_GIVES(2, "theory", "theory_training", "training.stalenesses=[1.5]"));
  CU_ASSERT(CLI_GIVES(2, "theory", "theory_training", "training.updates=30"));
  CU_ASSERT(CLI_GIVES(2, "theory", "theory_training", "-f", "build/no"));
  REFUSED(2, "stalenesses", "theory", "sample_efficiency");
}

/* --- against NumPy (tests/golden/pairs_tally.py) --- */

SUITE("lab: pairs of distributions");

enum { MOST = 64 };

static void read_numbers(FILE *from, double *to, size_t n) {
  for (size_t i = 0; i < n; ++i) CU_ASSERT_EQUAL_FATAL(fscanf(from, "%lf", &to[i]), 1);
}

static void check_denominator(const pairs_tally *t, int k, const double told[8]) {
  CU_ASSERT_EQUAL(t->holds[k], told[0]);
  ASSERT_CLOSE(t->constant[k], told[1], 1e-12 * told[1]);
  CU_ASSERT_EQUAL(t->green[k], told[2]);
  ASSERT_CLOSE(t->highest_green[k], told[3], 1e-12);
  CU_ASSERT_EQUAL(t->wider[k], told[4]);
  CU_ASSERT_EQUAL(t->disagree[k], told[5]);
  CU_ASSERT_EQUAL(t->wider_q[k], told[6]);
  CU_ASSERT_EQUAL(t->disagree_q[k], told[7]);
}

static void check_set(FILE *from) {
  size_t n, pairs;
  double p[MOST], q[MOST], r[MOST], kl, told[8];
  pairs_tally t;
  pairs_tally_init(&t);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%zu %zu", &n, &pairs), 2);
  CU_ASSERT_FATAL(n <= MOST);
  for (size_t i = 0; i < pairs; ++i) {
    read_numbers(from, p, n);
    read_numbers(from, q, n);
    read_numbers(from, r, n);
    pairs_tally_add(&t, p, q, r, n);
  }
  CU_ASSERT(t.pairs == pairs && t.infinite == 0);
  read_numbers(from, &kl, 1);
  ASSERT_CLOSE(t.kl, kl, 1e-12 * kl);
  for (int k = 0; k < LAB_CONSTANTS; ++k) {
    read_numbers(from, told, 8);
    check_denominator(&t, k, told);
  }
  pairs_tally_fini(&t);
}

TEST(counts_are_those_of_numpy) {
  int sets = 0;
  FILE *from = fopen("tests/golden/pairs_tally.txt", "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(from);
  CU_ASSERT_EQUAL_FATAL(fscanf(from, "%d", &sets), 1);
  CU_ASSERT(sets >= 4);
  for (int i = 0; i < sets; ++i) check_set(from);
  fclose(from);
}

/* p/q has no finite variance where q cannot draw what p does: no theorem speaks of such a pair. */
TEST(a_pair_without_a_variance_is_counted_apart) {
  const double p[] = {0.5, 0.5}, q[] = {1, 0}, r[] = {1, 0};
  pairs_tally t;
  pairs_tally_init(&t);
  pairs_tally_add(&t, p, q, r, 2);
  CU_ASSERT(t.pairs == 0 && t.infinite == 1);
  pairs_tally_add(&t, q, p, r, 2);
  CU_ASSERT(t.pairs == 1 && t.infinite == 1 && t.variance[0][0] == 1);
  pairs_tally_fini(&t);
}
