/* The names of everything that is measured at an update: columns of the store, keys of JSON, axis
 * labels of figures. One table (metrics.c) says each one's meaning, unit and source; `gepolab
 * metrics` prints it. Values are doubles, NaN where a quantity does not apply.
 */
#ifndef GEPOLAB_CORE_BASE_METRICS_H
#define GEPOLAB_CORE_BASE_METRICS_H

typedef enum metric {
  METRIC_VERSION,   /* learner version the update started from */
  METRIC_STALENESS, /* learner version - batch version, in versions, token mean */
  METRIC_STALENESS_MAX,
  METRIC_LOSS,
  METRIC_REWARD_MEAN,
  METRIC_GRAD_NORM,
  METRIC_ENTROPY,
  METRIC_CLIP_FRACTION,
  METRIC_KL_K3,
  METRIC_KL_K3_SEQ,
  METRIC_CPPO_KL,
  METRIC_KL_EXACT,    /* KL(p||q) per response, enumerable worlds */
  METRIC_KL_EXACT_QP, /* KL(q||p) */
  METRIC_KL_REF,      /* KL(p||reference) where there is a reference policy */
  METRIC_IW_MEAN,
  METRIC_IW_MAX,
  METRIC_IW_VARIANCE,
  METRIC_LOG_IW_MEAN,
  METRIC_LOG_IW_MAX,
  METRIC_LOG_IW_VARIANCE,
  METRIC_IW_VARIANCE_PQ,
  METRIC_LOG_IW_VARIANCE_PQ,
  METRIC_IW_VARIANCE_GEPO,
  METRIC_LOG_IW_VARIANCE_GEPO,
  METRIC_ESS,
  METRIC_AW_VARIANCE,
  METRIC_ESTIMATION_ERROR,
  METRIC_EXACT_RETURN,    /* J of the learner before the update, enumerable worlds */
  METRIC_RESPONSE_LENGTH, /* mean tokens per response */
  METRIC_LR,
  /* From here on in the order in which they came, so that the columns of older studies keep their
   * places. */
  METRIC_STALENESS_UPDATES, /* staleness counted in optimiser updates */
  METRIC_GRAD_COSINE,       /* with the gradient of the update before */
  METRIC_M2_LOG_RATIO,      /* mean square of a token's log-ratio */
  METRIC_KEPT_MASS,         /* the learner's probability of the tokens that the sampler kept */
  METRIC_KEPT_MASS_Q,       /* the sampler's own */
  METRIC_ENTROPY_KEPT, /* of the learner's distribution over these tokens, and over the others */
  METRIC_ENTROPY_TAIL,
  METRIC_GM_RATIO_SPREAD, /* deviations within a group of a response's mean log-ratio, mean logp */
  METRIC_GM_P_SPREAD,
  METRIC_CLIPPED_POSITIVE, /* shares clipped and gated by the sign of the advantage */
  METRIC_CLIPPED_NEGATIVE,
  METRIC_GATED_POSITIVE,
  METRIC_GATED_NEGATIVE,
  METRIC_GROUPS_DRAWN, /* by dynamic sampling, for the batches of the update; */
  METRIC_GROUPS_KEPT,  /* those of the batches whose rewards differ */
  METRIC_COUNT
} metric;

typedef struct metric_info {
  const char *name; /* final: snake_case */
  const char *unit; /* "" where dimensionless */
  const char *meaning;
  const char *source;
} metric_info;

/* Entry of the table; m below METRIC_COUNT. */
const metric_info *metric_about(metric m);
/* What people call it, as the axis of a figure is named: "KL(p‖q)"; and with its unit, in brackets:
 * "KL(p‖q) [nats]". */
const char *metric_label(metric m);
enum { METRIC_AXIS_SIZE = 80 };
const char *metric_axis(metric m, char text[METRIC_AXIS_SIZE]);
/* The metric of that name, or METRIC_COUNT. */
metric metric_find(const char *name);

/* Which of two values of a metric is the better one. */
typedef enum metric_direction {
  METRIC_HIGHER_IS_BETTER,
  METRIC_LOWER_IS_BETTER,
  METRIC_NEITHER_IS_BETTER /* it describes a run and has no best value */
} metric_direction;
metric_direction metric_better(metric m);

/* All METRIC_COUNT values to NaN. */
void metrics_clear(double value[METRIC_COUNT]);

#endif
