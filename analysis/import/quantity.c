/* The names of metrics in other programs' logs. */
#include "analysis/import/quantity.h"

#include "analysis/import/series.h"

#include <string.h>
#include <strings.h>

/* Components of names that stand for one of gepolab's metrics. */
static const struct {
  const char *component;
  metric known;
} foreign[] = {
    /* the released code of GEPO */
    {"step_diff", METRIC_STALENESS},
    {"ratio_pEqQ", METRIC_IW_VARIANCE_GEPO},
    /* TRL */
    {"reward", METRIC_REWARD_MEAN},
    {"kl", METRIC_KL_REF},
    {"learning_rate", METRIC_LR},
    {"completion_length", METRIC_RESPONSE_LENGTH},
    {"clip_ratio", METRIC_CLIP_FRACTION},
    /* verl */
    {"ppo_kl", METRIC_KL_K3},
    {"pg_loss", METRIC_LOSS},
    {"pg_clipfrac", METRIC_CLIP_FRACTION},
    {"response_length", METRIC_RESPONSE_LENGTH},
};
enum { N_FOREIGN = sizeof foreign / sizeof *foreign };

/* First components, and whole names, of scores. */
static const char *const evaluations[] = {"eval", "evaluation", "test",
                                          "val",  "validation", "benchmark"};
static const char *const scores[] = {"eval_score",   "score",       "accuracy",
                                     "acc",          "pass@1",      "pass_rate",
                                     "success_rate", "exact_match", "mean_score"};

static int is_component(const char *at, size_t n, const char *word) {
  return strlen(word) == n && strncasecmp(at, word, n) == 0;
}

static metric known_component(const char *at, size_t n) {
  for (int m = 0; m < METRIC_COUNT; m++)
    if (is_component(at, n, metric_about((metric)m)->name)) return (metric)m;
  for (size_t i = 0; i < N_FOREIGN; i++)
    if (is_component(at, n, foreign[i].component)) return foreign[i].known;
  return METRIC_COUNT;
}

/* The metric of the last component that is known. */
static metric known_metric(const char *name) {
  metric found = METRIC_COUNT;
  for (const char *at = name;;) {
    const size_t n = strcspn(at, "/");
    const metric here = known_component(at, n);
    if (here < METRIC_COUNT) found = here;
    if (at[n] == '\0') return found;
    at += n + 1;
  }
}

static int is_evaluation(const char *name) {
  const size_t n = strcspn(name, "/");
  for (size_t i = 0; i < sizeof evaluations / sizeof *evaluations; i++)
    if (name[n] == '/' && is_component(name, n, evaluations[i])) return 1;
  return 0;
}

static int is_score_word(const char *name) {
  const char *slash = strrchr(name, '/');
  const char *last = slash ? slash + 1 : name;
  for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
    if (is_component(last, strlen(last), scores[i])) return 1;
  return 0;
}

quantity quantity_of(const char *name) {
  const metric known = known_metric(name);
  const int evaluation = is_evaluation(name), word = is_score_word(name);
  quantity q = {.known = evaluation ? METRIC_COUNT : known, .better = METRIC_HIGHER_IS_BETTER};
  if (known < METRIC_COUNT) q.better = metric_better(known);
  /* A loss of an evaluation is no score. */
  q.is_score =
      (evaluation || (word && known == METRIC_COUNT)) && q.better == METRIC_HIGHER_IS_BETTER;
  q.is_guessed = known == METRIC_COUNT && !q.is_score;
  return q;
}

int quantity_is_named(const char *heading) {
  static const char *const phases[] = {"train",  "training", "rollout", "actor",
                                       "critic", "timing",   "perf"};
  const size_t n = strcspn(heading, "/");
  for (size_t i = 0; heading[n] == '/' && i < sizeof phases / sizeof *phases; i++)
    if (is_component(heading, n, phases[i])) return 1;
  return !quantity_of(heading).is_guessed;
}
