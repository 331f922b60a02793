/* The table of metrics: name, unit, meaning and source of each. */
#include "core/base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WITHIN "; sample statistic within a group (over tokens for token ratios), mean over groups"

static const metric_info table[METRIC_COUNT] = {
    [METRIC_VERSION] = {"version", "updates", "learner version the update started from",
                        "schedule"},
    [METRIC_STALENESS] = {"staleness", "versions",
                          "learner version minus batch version, token mean", "schedule"},
    [METRIC_STALENESS_MAX] = {"staleness_max", "versions", "largest staleness of a token",
                              "schedule"},
    [METRIC_LOSS] = {"loss", "", "the algorithm's loss; where factors are constant, -sum c logp",
                     "policy"},
    [METRIC_REWARD_MEAN] = {"reward_mean", "", "mean reward of the batch", "policy"},
    [METRIC_GRAD_NORM] = {"grad_norm", "", "Euclidean norm of the gradient before clipping",
                          "learner"},
    [METRIC_ENTROPY] = {"entropy", "nat", "token entropy of the learner's policy", "learner"},
    [METRIC_CLIP_FRACTION] = {"clip_fraction", "",
                              "share of tokens (responses for sequence ratios) whose clip acts",
                              "policy"},
    [METRIC_KL_K3] = {"kl_k3", "nat", "exp(l) - l - 1 of l = logp - logq, token mean: KL(q||p)",
                      "Schulman's k3"},
    [METRIC_KL_K3_SEQ] = {"kl_k3_seq", "nat", "kl_k3 summed over a response, mean over responses",
                          "Schulman's k3"},
    [METRIC_CPPO_KL] = {"cppo_kl", "", "exp(-l) + l - 1, token mean: chi2(q||p) - KL(q||p)",
                        "released GEPO code"},
    [METRIC_KL_EXACT] = {"kl_exact", "nat", "KL(p||q) per response, enumerable worlds", "world"},
    [METRIC_KL_EXACT_QP] = {"kl_exact_qp", "nat", "KL(q||p) per response, enumerable worlds",
                            "world"},
    [METRIC_KL_REF] = {"kl_ref", "nat",
                       "KL(p||reference); exp(-d) + d - 1 token mean where estimated",
                       "policy or world"},
    [METRIC_IW_MEAN] = {"iw_mean", "", "mean of the algorithm's own ratio" WITHIN, "policy"},
    [METRIC_IW_MAX] = {"iw_max", "", "largest own ratio of the batch", "policy"},
    [METRIC_IW_VARIANCE] = {"iw_variance", "",
                            "variance (ddof 1) of the algorithm's own ratio" WITHIN, "policy"},
    [METRIC_LOG_IW_MEAN] = {"log_iw_mean", "", "natural logarithm of iw_mean", "policy"},
    [METRIC_LOG_IW_MAX] = {"log_iw_max", "", "natural logarithm of iw_max", "policy"},
    [METRIC_LOG_IW_VARIANCE] = {"log_iw_variance", "", "natural logarithm of iw_variance",
                                "policy"},
    [METRIC_IW_VARIANCE_PQ] =
        {"iw_variance_pq", "",
         "variance (ddof 1) of P/Q with true sequence probabilities, within a "
         "group, mean over groups",
         "policy"},
    [METRIC_LOG_IW_VARIANCE_PQ] = {"log_iw_variance_pq", "", "natural logarithm of iw_variance_pq",
                                   "policy"},
    [METRIC_IW_VARIANCE_GEPO] =
        {"iw_variance_gepo", "",
         "variance (ddof 1) of P/(sum Q^2 / sum Q) with true sequence "
         "probabilities, within a group, mean over groups, for every algorithm",
         "2508.17850"},
    [METRIC_LOG_IW_VARIANCE_GEPO] = {"log_iw_variance_gepo", "",
                                     "natural logarithm of iw_variance_gepo", "policy"},
    [METRIC_ESS] = {"ess", "", "(sum w)^2 / (n sum w^2) of the algorithm's own ratio" WITHIN,
                    "policy"},
    [METRIC_AW_VARIANCE] = {"aw_variance", "",
                            "variance (ddof 1) of advantage times own ratio" WITHIN, "policy"},
    [METRIC_ESTIMATION_ERROR] =
        {"estimation_error", "",
         "|mean of w A - E_p[A]| in enumerable worlds, mean over groups (of "
         "unequal rewards where A is divided by their deviation)",
         "2508.17850"},
    [METRIC_EXACT_RETURN] = {"exact_return", "", "J of the learner before the update", "world"},
    [METRIC_RESPONSE_LENGTH] = {"response_length", "tokens", "mean tokens per response", "policy"},
    [METRIC_LR] = {"lr", "", "learning rate of the update", "learner"},
    [METRIC_STALENESS_UPDATES] =
        {"staleness_updates", "optimiser updates",
         "optimiser updates between the parameters that drew a token and those it trains, mean "
         "over tokens and epochs: a version is minibatches x epochs updates, and the k-th update "
         "of a step adds k - 1",
         "schedule"},
    [METRIC_GRAD_COSINE] = {"grad_cosine", "",
                            "cosine of the gradient with that of the optimiser update before, mean "
                            "over the step's updates",
                            "2603.01501"},
    [METRIC_M2_LOG_RATIO] = {"m2_log_ratio", "", "mean over tokens of (logp - logq)^2",
                             "2510.01161"},
    [METRIC_KEPT_MASS] =
        {"kept_mass", "",
         "probability that the learner gives the tokens that top-k and top-p kept, mean over drawn "
         "tokens",
         "learner"},
    [METRIC_KEPT_MASS_Q] = {"kept_mass_q", "",
                            "the same of the sampler: exp(logq - logq truncated), mean over drawn "
                            "tokens",
                            "learner"},
    [METRIC_ENTROPY_KEPT] = {"entropy_kept", "nat",
                             "entropy of the learner's law over the tokens that the sampler kept, "
                             "mean over drawn tokens",
                             "learner"},
    [METRIC_ENTROPY_TAIL] =
        {"entropy_tail", "nat",
         "entropy of the learner's law over the tokens that the sampler did not "
         "keep, mean over drawn tokens that have some",
         "learner"},
    [METRIC_GM_RATIO_SPREAD] =
        {"gm_ratio_spread", "nat",
         "standard deviation (ddof 1) within a group of a response's mean logp - logq, the "
         "logarithm of the geometric mean of its ratios; mean over groups",
         "policy"},
    [METRIC_GM_P_SPREAD] =
        {"gm_p_spread", "nat",
         "standard deviation (ddof 1) within a group of a response's mean logp, the logarithm of "
         "the geometric mean of its probabilities; mean over groups",
         "policy"},
    [METRIC_CLIPPED_POSITIVE] = {"clipped_positive", "",
                                 "share of the tokens (responses for sequence ratios) with A > 0 "
                                 "whose clip acts, gated ones not counted as clipped",
                                 "policy"},
    [METRIC_CLIPPED_NEGATIVE] = {"clipped_negative", "", "the same with A < 0", "policy"},
    [METRIC_GATED_POSITIVE] =
        {"gated_positive", "",
         "share of the tokens (responses for sequence ratios) with A > 0 that "
         "the gate leaves out",
         "policy"},
    [METRIC_GATED_NEGATIVE] = {"gated_negative", "", "the same with A < 0", "policy"},
    [METRIC_GROUPS_DRAWN] = {"groups_drawn", "groups",
                             "groups that dynamic sampling drew for the update's batches, those it "
                             "left out included",
                             "2503.14476"},
    [METRIC_GROUPS_KEPT] = {"groups_kept", "groups",
                            "groups of the update's batches whose rewards differ, under dynamic "
                            "sampling",
                            "2503.14476"},
};

static const char *const labels[METRIC_COUNT] = {
    [METRIC_VERSION] = "version",
    [METRIC_STALENESS] = "staleness",
    [METRIC_STALENESS_MAX] = "largest staleness",
    [METRIC_LOSS] = "loss",
    [METRIC_REWARD_MEAN] = "mean reward",
    [METRIC_GRAD_NORM] = "gradient norm",
    [METRIC_ENTROPY] = "token entropy",
    [METRIC_CLIP_FRACTION] = "clipped share",
    [METRIC_KL_K3] = "KL(q‖p) per token, k3",
    [METRIC_KL_K3_SEQ] = "KL(q‖p), k3",
    [METRIC_CPPO_KL] = "CPPO's KL",
    [METRIC_KL_EXACT] = "KL(p‖q)",
    [METRIC_KL_EXACT_QP] = "KL(q‖p)",
    [METRIC_KL_REF] = "KL to the reference",
    [METRIC_IW_MEAN] = "mean own weight",
    [METRIC_IW_MAX] = "largest own weight",
    [METRIC_IW_VARIANCE] = "variance of own weight",
    [METRIC_LOG_IW_MEAN] = "ln mean own weight",
    [METRIC_LOG_IW_MAX] = "ln largest own weight",
    [METRIC_LOG_IW_VARIANCE] = "ln variance of own weight",
    [METRIC_IW_VARIANCE_PQ] = "variance of P/Q",
    [METRIC_LOG_IW_VARIANCE_PQ] = "ln variance of P/Q",
    [METRIC_IW_VARIANCE_GEPO] = "variance of GEPO's weight",
    [METRIC_LOG_IW_VARIANCE_GEPO] = "ln variance of GEPO's weight",
    [METRIC_ESS] = "effective sample size",
    [METRIC_AW_VARIANCE] = "variance of weight × advantage",
    [METRIC_ESTIMATION_ERROR] = "estimation error",
    [METRIC_EXACT_RETURN] = "exact return",
    [METRIC_RESPONSE_LENGTH] = "response length",
    [METRIC_LR] = "learning rate",
    [METRIC_STALENESS_UPDATES] = "staleness",
    [METRIC_GRAD_COSINE] = "cosine of consecutive gradients",
    [METRIC_M2_LOG_RATIO] = "M₂ of log-ratios",
    [METRIC_KEPT_MASS] = "kept mass",
    [METRIC_KEPT_MASS_Q] = "sampler's kept mass",
    [METRIC_ENTROPY_KEPT] = "entropy of the kept law",
    [METRIC_ENTROPY_TAIL] = "entropy of the tail",
    [METRIC_GM_RATIO_SPREAD] = "spread of mean log-ratios",
    [METRIC_GM_P_SPREAD] = "spread of mean log p",
    [METRIC_CLIPPED_POSITIVE] = "clipped share, A > 0",
    [METRIC_CLIPPED_NEGATIVE] = "clipped share, A < 0",
    [METRIC_GATED_POSITIVE] = "gated share, A > 0",
    [METRIC_GATED_NEGATIVE] = "gated share, A < 0",
    [METRIC_GROUPS_DRAWN] = "groups drawn",
    [METRIC_GROUPS_KEPT] = "groups kept"};

const char *metric_label(metric m) {
  return labels[m];
}

const char *metric_axis(metric m, char text[METRIC_AXIS_SIZE]) {
  const char *unit = table[m].unit;
  if (strcmp(unit, "nat") == 0) unit = "nats";
  if (strcmp(unit, "optimiser updates") == 0) unit = "updates";
  snprintf(text, METRIC_AXIS_SIZE, *unit ? "%s [%s]" : "%s%s", labels[m], unit);
  return text;
}

const metric_info *metric_about(metric m) {
  return &table[m];
}

metric metric_find(const char *name) {
  for (int m = 0; m < METRIC_COUNT; ++m)
    if (strcmp(table[m].name, name) == 0) return (metric)m;
  return METRIC_COUNT;
}

metric_direction metric_better(metric m) {
  switch (m) {
  case METRIC_REWARD_MEAN:
  case METRIC_EXACT_RETURN:
  case METRIC_ESS:
    return METRIC_HIGHER_IS_BETTER;
  case METRIC_STALENESS:
  case METRIC_STALENESS_MAX:
  case METRIC_STALENESS_UPDATES:
  case METRIC_LOSS:
  case METRIC_KL_K3:
  case METRIC_KL_K3_SEQ:
  case METRIC_CPPO_KL:
  case METRIC_KL_EXACT:
  case METRIC_KL_EXACT_QP:
  case METRIC_KL_REF:
  case METRIC_IW_MAX:
  case METRIC_IW_VARIANCE:
  case METRIC_LOG_IW_MAX:
  case METRIC_LOG_IW_VARIANCE:
  case METRIC_IW_VARIANCE_PQ:
  case METRIC_LOG_IW_VARIANCE_PQ:
  case METRIC_IW_VARIANCE_GEPO:
  case METRIC_LOG_IW_VARIANCE_GEPO:
  case METRIC_AW_VARIANCE:
  case METRIC_ESTIMATION_ERROR:
  case METRIC_M2_LOG_RATIO:
    return METRIC_LOWER_IS_BETTER;
  case METRIC_VERSION:
  case METRIC_GRAD_NORM:
  case METRIC_ENTROPY:
  case METRIC_CLIP_FRACTION:
  case METRIC_IW_MEAN:
  case METRIC_LOG_IW_MEAN:
  case METRIC_RESPONSE_LENGTH:
  case METRIC_LR:
  case METRIC_GRAD_COSINE:
  case METRIC_KEPT_MASS:
  case METRIC_KEPT_MASS_Q:
  case METRIC_ENTROPY_KEPT:
  case METRIC_ENTROPY_TAIL:
  case METRIC_GM_RATIO_SPREAD:
  case METRIC_GM_P_SPREAD:
  case METRIC_CLIPPED_POSITIVE:
  case METRIC_CLIPPED_NEGATIVE:
  case METRIC_GATED_POSITIVE:
  case METRIC_GATED_NEGATIVE:
  case METRIC_GROUPS_DRAWN:
  case METRIC_GROUPS_KEPT:
  case METRIC_COUNT:
    return METRIC_NEITHER_IS_BETTER;
  }
  return METRIC_NEITHER_IS_BETTER;
}

void metrics_clear(double value[METRIC_COUNT]) {
  for (int m = 0; m < METRIC_COUNT; ++m) value[m] = NAN;
}
