/* All quantities measured at an update. The table's names are the columns of the store, the keys of
 * JSON and the titles of axes. `gepolab list metrics` prints it. Values are doubles, NaN if a
 * quantity does not apply.
 *
 * To add a metric, append an entry to METRICS and assign values[METRIC_ID] where it is computed. */
#ifndef GEPOLAB_CORE_BASE_METRICS_H
#define GEPOLAB_CORE_BASE_METRICS_H

#define METRIC_WITHIN                                                                              \
  "; sample statistic within a group (over tokens for token ratios), mean over groups"

/* X(ID, name, unit, label, better, meaning, source, misread): name is in snake case and must never
 * change; unit is "" if dimensionless; label is the title of an axis; better is HIGHER, LOWER or
 * NEITHER; misread is a conclusion that the number does not allow ("": none known). Entries from
 * STALENESS_UPDATES on are in the order in which they were added, so that columns of older studies
 * keep their positions. */
#define METRICS(X)                                                                                 \
  X(VERSION, "version", "updates", "version", NEITHER, "learner version the update started from",  \
    "schedule", "")                                                                                \
  X(STALENESS, "staleness", "versions", "staleness", LOWER,                                        \
    "learner version minus batch version, token mean", "schedule",                                 \
    "a batch that is trained in several steps is older at the last one: "                          \
    "staleness_updates counts that; trainers define it otherwise (sim --definitions)")             \
  X(STALENESS_MAX, "staleness_max", "versions", "largest staleness", LOWER,                        \
    "largest staleness of a token", "schedule",                                                    \
    "one slow response sets it, and a bound on it leaves the mean free")                           \
  X(LOSS, "loss", "", "loss", LOWER,                                                               \
    "the algorithm's loss; where factors are constant, -sum c logp", "policy",                     \
    "where factors are constant its gradient is right and its value means nothing; "               \
    "training that works does not lower it")                                                       \
  X(REWARD_MEAN, "reward_mean", "", "mean reward", HIGHER, "mean reward of the batch", "policy",   \
    "of the sampler's older policy at the training temperature, not the learner's "                \
    "score; discarded batches are missing")                                                        \
  X(GRAD_NORM, "grad_norm", "", "gradient norm", NEITHER,                                          \
    "Euclidean norm of the gradient before clipping", "learner",                                   \
    "also small where the policy is nearly deterministic; aggregations of different "              \
    "scale are not comparable")                                                                    \
  X(ENTROPY, "entropy", "nat", "token entropy", NEITHER, "token entropy of the learner's policy",  \
    "learner", "falls in healthy training, too")                                                   \
  X(CLIP_FRACTION, "clip_fraction", "", "clipped fraction", NEITHER,                               \
    "fraction of tokens (responses for sequence ratios) whose clip acts", "policy",                \
    "0 does not mean on-policy; a group expectation's ratio is clipped on-policy, too")            \
  X(KL_K3, "kl_k3", "nat", "KL(q‖p) per token, k3", LOWER,                                         \
    "exp(l) - l - 1 of l = logp - logq, token mean: KL(q||p)", "Schulman's k3",                    \
    "of the sampler's responses, hence KL(q||p) and not KL(p||q); a few large ratios "             \
    "dominate it")                                                                                 \
  X(KL_K3_SEQ, "kl_k3_seq", "nat", "KL(q‖p), k3", LOWER,                                           \
    "kl_k3 summed over a response, mean over responses", "Schulman's k3",                          \
    "grows with the length of responses")                                                          \
  X(CPPO_KL, "cppo_kl", "", "CPPO's KL", LOWER,                                                    \
    "exp(-l) + l - 1, token mean: chi2(q||p) - KL(q||p)", "released GEPO code",                    \
    "no KL divergence and not bounded by one")                                                     \
  X(KL_EXACT, "kl_exact", "nat", "KL(p‖q)", LOWER, "KL(p||q) per response, enumerable worlds",     \
    "world", "")                                                                                   \
  X(KL_EXACT_QP, "kl_exact_qp", "nat", "KL(q‖p)", LOWER,                                           \
    "KL(q||p) per response, enumerable worlds", "world", "")                                       \
  X(KL_REF, "kl_ref", "nat", "KL to the reference", LOWER,                                         \
    "KL(p||reference); exp(-d) + d - 1 token mean where estimated", "policy or world",             \
    "off-policy the estimate has no weight that would correct for the sampler")                    \
  X(IW_MEAN, "iw_mean", "", "mean own weight", NEITHER,                                            \
    "mean of the algorithm's own ratio" METRIC_WITHIN, "policy",                                   \
    "1 on average for P/Q only, and a sample misses the rare large weights that make "             \
    "it so")                                                                                       \
  X(IW_MAX, "iw_max", "", "largest own weight", LOWER, "largest own ratio of the batch", "policy", \
    "grows with the number of responses")                                                          \
  X(IW_VARIANCE, "iw_variance", "", "variance of own weight", LOWER,                               \
    "variance (ddof 1) of the algorithm's own ratio" METRIC_WITHIN, "policy",                      \
    "ratios of different algorithms are not comparable: iw_variance_pq is the same "               \
    "quantity for all")                                                                            \
  X(LOG_IW_MEAN, "log_iw_mean", "", "ln mean own weight", NEITHER, "natural logarithm of iw_mean", \
    "policy", "")                                                                                  \
  X(LOG_IW_MAX, "log_iw_max", "", "ln largest own weight", LOWER, "natural logarithm of iw_max",   \
    "policy", "")                                                                                  \
  X(LOG_IW_VARIANCE, "log_iw_variance", "", "ln variance of own weight", LOWER,                    \
    "natural logarithm of iw_variance", "policy", "")                                              \
  X(IW_VARIANCE_PQ, "iw_variance_pq", "", "variance of P/Q", LOWER,                                \
    "variance (ddof 1) of P/Q with true sequence probabilities, within a group, mean over groups", \
    "policy", "a sample misses rare large weights: far off-policy it is too small")                \
  X(LOG_IW_VARIANCE_PQ, "log_iw_variance_pq", "", "ln variance of P/Q", LOWER,                     \
    "natural logarithm of iw_variance_pq", "policy", "")                                           \
  X(IW_VARIANCE_GEPO, "iw_variance_gepo", "", "variance of GEPO's weight", LOWER,                  \
    "variance (ddof 1) of P/(sum Q^2 / sum Q) with true sequence probabilities, within a group, "  \
    "mean over groups, for every algorithm",                                                       \
    "2508.17850", "small variance does not mean a small error: the weight is biased")              \
  X(LOG_IW_VARIANCE_GEPO, "log_iw_variance_gepo", "", "ln variance of GEPO's weight", LOWER,       \
    "natural logarithm of iw_variance_gepo", "policy", "")                                         \
  X(ESS, "ess", "", "effective sample size", HIGHER,                                               \
    "(sum w)^2 / (n sum w^2) of the algorithm's own ratio" METRIC_WITHIN, "policy",                \
    "of the sample: high also where no response was drawn that now matters; own ratios "           \
    "of different algorithms are not comparable")                                                  \
  X(AW_VARIANCE, "aw_variance", "", "variance of weight × advantage", LOWER,                       \
    "variance (ddof 1) of advantage times own ratio" METRIC_WITHIN, "policy", "")                  \
  X(ESTIMATION_ERROR, "estimation_error", "", "estimation error", LOWER,                           \
    "|mean of w A - E_p[A]| in enumerable worlds, mean over groups (of unequal rewards where A "   \
    "is divided by their deviation)",                                                              \
    "2508.17850", "of the mean advantage, not of the gradient: `gepolab lab bias` has that")       \
  X(EXACT_RETURN, "exact_return", "", "exact return", HIGHER,                                      \
    "J of the learner before the update", "world", "")                                             \
  X(RESPONSE_LENGTH, "response_length", "tokens", "response length", NEITHER,                      \
    "mean tokens per response", "policy",                                                          \
    "of the responses that reached the learner: discarding stale ones favours short "              \
    "ones")                                                                                        \
  X(LR, "lr", "", "learning rate", NEITHER, "learning rate of the update", "learner", "")          \
  X(STALENESS_UPDATES, "staleness_updates", "optimiser updates", "staleness", LOWER,               \
    "optimiser updates between the parameters that drew a token and those it trains, mean over "   \
    "tokens and epochs: a version is minibatches x epochs updates, and the k-th update of a step " \
    "adds k - 1",                                                                                  \
    "schedule", "")                                                                                \
  X(GRAD_COSINE, "grad_cosine", "", "cosine of consecutive gradients", NEITHER,                    \
    "cosine of the gradient with that of the optimiser update before, mean over the step's "       \
    "updates",                                                                                     \
    "2603.01501", "near 0 for noisy gradients of many parameters, whatever training does")         \
  X(M2_LOG_RATIO, "m2_log_ratio", "", "M₂ of log-ratios", LOWER,                                   \
    "mean over tokens of (logp - logq)^2", "2510.01161",                                           \
    "contains the square of the mean log-ratio: it is no variance")                                \
  X(KEPT_MASS, "kept_mass", "", "kept mass", NEITHER,                                              \
    "probability that the learner gives the tokens that top-k and top-p kept, mean over drawn "    \
    "tokens",                                                                                      \
    "learner", "")                                                                                 \
  X(KEPT_MASS_Q, "kept_mass_q", "", "sampler's kept mass", NEITHER,                                \
    "the same of the sampler: exp(logq - logq truncated), mean over drawn tokens", "learner", "")  \
  X(ENTROPY_KEPT, "entropy_kept", "nat", "entropy of kept tokens", NEITHER,                        \
    "entropy of the learner's distribution over the tokens that the sampler kept, mean over "      \
    "drawn tokens",                                                                                \
    "learner", "")                                                                                 \
  X(ENTROPY_TAIL, "entropy_tail", "nat", "entropy of the tail", NEITHER,                           \
    "entropy of the learner's distribution over the tokens that the sampler did not keep, mean "   \
    "over drawn tokens that have some",                                                            \
    "learner", "")                                                                                 \
  X(GM_RATIO_SPREAD, "gm_ratio_spread", "nat", "spread of mean log-ratios", NEITHER,               \
    "standard deviation (ddof 1) within a group of a response's mean logp - logq, the logarithm "  \
    "of the geometric mean of its ratios; mean over groups",                                       \
    "policy", "")                                                                                  \
  X(GM_P_SPREAD, "gm_p_spread", "nat", "spread of mean log p", NEITHER,                            \
    "standard deviation (ddof 1) within a group of a response's mean logp, the logarithm of the "  \
    "geometric mean of its probabilities; mean over groups",                                       \
    "policy", "")                                                                                  \
  X(CLIPPED_POSITIVE, "clipped_positive", "", "clipped fraction, A > 0", NEITHER,                  \
    "fraction of the tokens (responses for sequence ratios) with A > 0 whose clip acts, gated "    \
    "ones not counted as clipped",                                                                 \
    "policy", "")                                                                                  \
  X(CLIPPED_NEGATIVE, "clipped_negative", "", "clipped fraction, A < 0", NEITHER,                  \
    "the same with A < 0", "policy", "")                                                           \
  X(GATED_POSITIVE, "gated_positive", "", "gated fraction, A > 0", NEITHER,                        \
    "fraction of the tokens (responses for sequence ratios) with A > 0 that the gate leaves out",  \
    "policy", "")                                                                                  \
  X(GATED_NEGATIVE, "gated_negative", "", "gated fraction, A < 0", NEITHER, "the same with A < 0", \
    "policy", "")                                                                                  \
  X(GROUPS_DRAWN, "groups_drawn", "groups", "groups drawn", NEITHER,                               \
    "groups that dynamic sampling drew for the update's batches, those it left out included",      \
    "2503.14476", "")                                                                              \
  X(GROUPS_KEPT, "groups_kept", "groups", "groups kept", NEITHER,                                  \
    "groups of the update's batches whose rewards differ, under dynamic sampling", "2503.14476",   \
    "")                                                                                            \
  X(PASS_AT_G, "pass_at_g", "", "pass@G", HIGHER,                                                  \
    "fraction of the batch's groups with a right response, where rewards are 0 and 1: pass@k of "  \
    "the sampler with k = group_size",                                                             \
    "2107.03374", "of training batches and the sampler's policy, not of an evaluation")            \
  X(DISTINCT_RIGHT, "distinct_right", "responses", "different right responses", HIGHER,            \
    "different right responses of a group (sequences of tokens), mean over groups, where rewards " \
    "are 0 and 1",                                                                                 \
    "learner", "two spellings of one answer are two responses")                                    \
  X(LOG_RATIO_NEGATIVE, "log_ratio_negative", "nat", "log-ratio, A < 0", NEITHER,                  \
    "mean logp - logq over the tokens of responses with A < 0: below 0, the policy has moved "     \
    "away from wrong responses since they were drawn",                                             \
    "policy", "0 on-policy, whatever the method does")                                             \
  X(LOG_RATIO_POSITIVE, "log_ratio_positive", "nat", "log-ratio, A > 0", NEITHER,                  \
    "the same with A > 0", "policy", "0 on-policy, whatever the method does")                      \
  X(STALENESS_WITHIN, "staleness_within", "optimiser updates", "staleness within a step", LOWER,   \
    "optimiser updates that the step itself makes before the one that trains a token, mean over "  \
    "tokens and epochs: the part of staleness_updates that is not there when the step begins",     \
    "schedule", "0 with one minibatch and one epoch, however old the data are")

#define METRIC_ENUMERATOR(ID, ...) METRIC_##ID,
typedef enum metric { METRICS(METRIC_ENUMERATOR) METRIC_COUNT } metric;

/* Which of two values of a metric is better. */
typedef enum metric_direction {
  METRIC_HIGHER_IS_BETTER,
  METRIC_LOWER_IS_BETTER,
  METRIC_NEITHER_IS_BETTER /* describes a run and has no best value */
} metric_direction;

typedef struct metric_info {
  const char *name, *unit, *label;
  metric_direction better;
  const char *meaning, *source, *misread;
} metric_info;

/* The entry of the table; m below METRIC_COUNT. */
const metric_info *metric_about(metric m);
enum { METRIC_AXIS_SIZE = 80 };
/* Writes the label with its unit, "KL(p‖q) [nats]"; returns text. */
const char *metric_axis(metric m, char text[METRIC_AXIS_SIZE]);
/* The metric of that name, or METRIC_COUNT. */
metric metric_find(const char *name);
metric_direction metric_better(metric m);

/* Sets all METRIC_COUNT values to NaN. */
void metrics_clear(double value[METRIC_COUNT]);

#endif
