/* libFuzzer target: tables of probabilities and samples of numbers, as a program may hand them to
 * libgepolab's laboratory and statistics. What is refused has a reason; what is taken gives numbers
 * within what they can be. */
#include "library/gepolab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
  const uint8_t *at;
  size_t left;
} bytes;

static unsigned take(bytes *b) {
  if (b->left == 0) return 1;
  --b->left;
  return *b->at++;
}

/* Small numbers; where the first byte is rare, the bits of any double. */
static double number(bytes *b) {
  const unsigned k = take(b);
  if (k < 250) return (double)k / 16;
  uint64_t bits = 0;
  double value;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | take(b);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* --- the laboratory --- */

enum { MOST_PROMPTS = 3, MOST_ARMS = 5, MOST_GROUP = 4 };

/* Rows that mostly sum to 1. */
static void make_rows(bytes *b, double *p, size_t rows, size_t arms) {
  for (size_t x = 0; x < rows; ++x) {
    double sum = 0;
    for (size_t y = 0; y < arms; ++y) sum += p[x * arms + y] = number(b);
    if (take(b) < 16 || sum == 0) continue;
    for (size_t y = 0; y < arms; ++y) p[x * arms + y] /= sum;
  }
}

static void check_moments(const gepolab_moments *m) {
  if (!m->applicable) {
    if (m->why[0] == '\0') abort();
    return;
  }
  if (m->variance < 0 || m->kl < -1e-9 || (m->method == 0 && !(m->groups >= 1))) abort();
  if (isfinite(m->cosine) && fabs(m->cosine) > 1 + 1e-6) abort();
}

static void fuzz_laboratory(bytes *b) {
  const size_t prompts = 1 + take(b) % MOST_PROMPTS, arms = 2 + take(b) % (MOST_ARMS - 1);
  const int64_t groups[] = {0, 1, 2, MOST_GROUP, -1, INT64_MAX, 1 << 20};
  double learner[MOST_PROMPTS * MOST_ARMS], sampler[MOST_PROMPTS * MOST_ARMS],
      reward[MOST_PROMPTS * MOST_ARMS], weight[MOST_PROMPTS];
  gepolab_table table = GEPOLAB_INIT(gepolab_table);
  gepolab_moments moments = GEPOLAB_INIT(gepolab_moments);
  gepolab_algorithm_info info;
  gepolab_algorithm *algorithm = NULL;
  gepolab_error err = {0};
  if (gepolab_algorithms_at(take(b) % gepolab_algorithms_count(), &info, &err) != GEPOLAB_OK ||
      gepolab_algorithm_new(&algorithm, info.name, &err) != GEPOLAB_OK)
    abort();
  gepolab_groups spec = GEPOLAB_INIT(gepolab_groups);
  spec.group_size = groups[take(b) % 7], spec.samples = take(b) % 2 ? 16 : 0, spec.budget = 100;
  make_rows(b, learner, prompts, arms);
  make_rows(b, sampler, prompts, arms);
  for (size_t i = 0; i < prompts * arms; ++i) reward[i] = number(b);
  make_rows(b, weight, 1, prompts);
  table.n_prompts = (int64_t)prompts;
  table.n_responses = (int64_t)arms;
  table.learner = learner;
  table.sampler = sampler;
  table.reward = reward;
  table.prompt_weight = take(b) % 2 ? weight : NULL;
  moments.expected = calloc(prompts * arms, sizeof(double));
  spec.seed = take(b);
  const gepolab_status status = gepolab_laboratory(algorithm, &table, &spec, &moments, &err);
  if ((status == GEPOLAB_OK) != (err.text[0] == '\0') || status == GEPOLAB_EINTERNAL) abort();
  if (status == GEPOLAB_OK) check_moments(&moments);
  free(moments.expected);
  gepolab_algorithm_free(algorithm);
}

/* --- statistics --- */

enum { MOST_VALUES = 24 };

static void check_interval(gepolab_status status, const gepolab_interval *i,
                           const gepolab_error *err) {
  if ((status == GEPOLAB_OK) != (err->text[0] == '\0') || status == GEPOLAB_EINTERNAL) abort();
  if (status == GEPOLAB_OK && (i->low > i->high || i->value > i->high || i->value < i->low))
    abort();
}

static void fuzz_survival(const double *time, const uint8_t *observed, int64_t n) {
  double at[MOST_VALUES + 1], survival[MOST_VALUES + 1], error[MOST_VALUES + 1];
  gepolab_curve curve = {sizeof curve, at, survival, error, 0};
  gepolab_error err = {0};
  const gepolab_status status = gepolab_survival(time, observed, n, &curve, &err);
  if ((status == GEPOLAB_OK) != (err.text[0] == '\0') || curve.n > n) abort();
  for (int64_t k = 0; k < curve.n && status == GEPOLAB_OK; ++k)
    if (!(survival[k] >= 0 && survival[k] <= 1) || (k > 0 && !(at[k] > at[k - 1]))) abort();
}

static void fuzz_statistics(bytes *b) {
  const int64_t n = take(b) % (MOST_VALUES + 1);
  double x[MOST_VALUES], y[MOST_VALUES];
  uint8_t observed[MOST_VALUES];
  gepolab_interval made = {0, 0, 0};
  gepolab_error err = {0}, other = {0};
  for (int64_t i = 0; i < n; ++i) {
    x[i] = number(b);
    y[i] = number(b);
    observed[i] = (uint8_t)take(b);
  }
  check_interval(gepolab_iqm(x, n, take(b), &made, &err), &made, &err);
  check_interval(gepolab_spearman(x, y, n, &made, &other), &made, &other);
  fuzz_survival(x, observed, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bytes b = {data, size};
  if (take(&b) % 4 == 0)
    fuzz_statistics(&b);
  else
    fuzz_laboratory(&b);
  return 0;
}
