#include "core/metrics.h"

#include <math.h>
#include <string.h>

/* Group statistics are taken within each group (sample variance, n - 1) and then averaged over the
 * groups of the batch; sequence ratios are one value per response, token ratios one per token. */
static const metric_info table[METRIC_COUNT] = {
    [METRIC_VERSION] = {"version", "updates", "learner version the update started from", ""},
    [METRIC_STALENESS] = {"staleness", "updates",
                          "learner version minus the version that drew the token, token mean", ""},
    [METRIC_STALENESS_MAX] = {"staleness_max", "updates", "largest staleness of a token", ""},
    [METRIC_LOSS] = {"loss", "", "the row's loss, KL terms included", "the row's paper"},
    [METRIC_REWARD_MEAN] = {"reward_mean", "", "mean reward of the responses trained", ""},
    [METRIC_GRAD_NORM] = {"grad_norm", "", "2-norm of the gradient before clipping", ""},
    [METRIC_ENTROPY] = {"entropy", "nat", "mean token entropy of the learner's policy", ""},
    [METRIC_CLIP_FRACTION] = {"clip_fraction", "", "share of tokens whose gradient a clip removed",
                              "1707.06347"},
    [METRIC_KL_K3] = {"kl_k3", "nat",
                      "exp(lp - lq) - (lp - lq) - 1, token mean: unbiased for KL(q||p) per token",
                      "joschu.net/blog/kl-approx"},
    [METRIC_KL_K3_SEQ] = {"kl_k3_seq", "nat", "the same summed over a response's tokens, mean", ""},
    [METRIC_CPPO_KL] = {"cppo_kl", "",
                        "exp(lq - lp) - (lq - lp) - 1, token mean: chi2(q||p) - KL(q||p), not a KL",
                        "Hetero-RL's released code"},
    [METRIC_KL_EXACT] = {"kl_exact", "nat", "KL(p||q) per response by enumeration", ""},
    [METRIC_KL_EXACT_QP] = {"kl_exact_qp", "nat", "KL(q||p) per response by enumeration", ""},
    [METRIC_KL_REF] = {"kl_ref", "nat", "KL(p||reference) per response", ""},
    [METRIC_IW_MEAN] = {"iw_mean", "", "mean of the row's own importance ratio", ""},
    [METRIC_IW_MAX] = {"iw_max", "", "largest of the row's own ratios in the batch", ""},
    [METRIC_IW_VARIANCE] = {"iw_variance", "", "variance of the row's own ratio", ""},
    [METRIC_LOG_IW_MEAN] = {"log_iw_mean", "", "natural logarithm of iw_mean", ""},
    [METRIC_LOG_IW_MAX] = {"log_iw_max", "", "natural logarithm of iw_max", ""},
    [METRIC_LOG_IW_VARIANCE] = {"log_iw_variance", "", "natural logarithm of iw_variance", ""},
    [METRIC_IW_VARIANCE_PQ] = {"iw_variance_pq", "", "variance of P/Q, for every row", ""},
    [METRIC_LOG_IW_VARIANCE_PQ] = {"log_iw_variance_pq", "", "natural logarithm of iw_variance_pq",
                                   ""},
    [METRIC_IW_VARIANCE_GEPO] = {"iw_variance_gepo", "",
                                 "variance of P over the group expectation, for every row",
                                 "2508.17850, its IW-variance figure"},
    [METRIC_LOG_IW_VARIANCE_GEPO] = {"log_iw_variance_gepo", "",
                                     "natural logarithm of iw_variance_gepo", ""},
    [METRIC_ESS] = {"ess", "", "(sum w)^2 / sum w^2 as a fraction of the group", "Kong 1992"},
    [METRIC_AW_VARIANCE] = {"aw_variance", "", "variance of advantage times ratio", "2508.17850"},
    [METRIC_ESTIMATION_ERROR] = {"estimation_error", "", "|mean_i w_i A_i - E_p[A]|, group mean",
                                 "2508.17850"},
    [METRIC_EXACT_RETURN] = {"exact_return", "", "J of the learner before the update", ""},
    [METRIC_RESPONSE_LENGTH] = {"response_length", "tokens", "mean tokens per response", ""},
    [METRIC_LR] = {"lr", "", "learning rate of the step's first optimiser update", ""},
};

const metric_info *metric_about(metric m) {
  return &table[m];
}

metric metric_find(const char *name) {
  metric m = METRIC_VERSION;
  while (m < METRIC_COUNT && strcmp(table[m].name, name) != 0) ++m;
  return m;
}

void metrics_clear(double value[METRIC_COUNT]) {
  for (int m = 0; m < METRIC_COUNT; ++m) value[m] = NAN;
}
