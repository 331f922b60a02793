/* An algorithm as data: its fields (paper/methods.md §3), the table of published algorithms (§4),
 * and how a recipe names one.
 *
 * An algorithm's loss is a sum of token terms. Let l = logp - logold per token (old_policy selects
 * logold) and let x be the logarithm of the algorithm's ratio. The clip maps x to a value f(x).
 * Response i's objective is A_i f(x) averaged with `aggregate`, or sg(f(x)) A_i logp if
 * ratio_gradient is false. KL terms are added to the loss; truncation (tis_) and masking (mis_)
 * factors multiply the policy term. */
#ifndef GEPOLAB_CORE_POLICY_ALGORITHM_H
#define GEPOLAB_CORE_POLICY_ALGORITHM_H

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/config/user_defined.h"

#include <stddef.h>

/* Each enumeration of choices is written once as a list X(VALUE, "name in recipes"). The enum and
 * its table of names are both generated from the list, so neither can lack an entry. */
#define POLICY_VALUE(value, ...) value
#define POLICY_ONE(...) 1

#define POLICY_OBJECTIVES(X)                                                                       \
  X(OBJECTIVE_POLICY_GRADIENT, "policy_gradient"), X(OBJECTIVE_DISCO, "disco"),                    \
      X(OBJECTIVE_REAL, "real")
typedef enum policy_objective { POLICY_OBJECTIVES(POLICY_VALUE) } policy_objective;

#define POLICY_BASELINES(X)                                                                        \
  X(BASELINE_NONE, "none"), X(BASELINE_CONSTANT, "constant"),                                      \
      X(BASELINE_GROUP_MEAN, "group_mean"), X(BASELINE_LEAVE_ONE_OUT, "leave_one_out"),            \
      X(BASELINE_LENGTH_WEIGHTED, "length_weighted"), X(BASELINE_RUNNER_UP, "runner_up"),          \
      X(BASELINE_OFF_POLICY, "off_policy"), X(BASELINE_SOFT_MAXIMUM, "soft_maximum")
typedef enum policy_baseline { POLICY_BASELINES(POLICY_VALUE) } policy_baseline;

#define POLICY_SCALES(X)                                                                           \
  X(SCALE_NONE, "none"), X(SCALE_GROUP_STD, "group_std"), X(SCALE_BATCH_STD, "batch_std"),         \
      X(SCALE_BETA, "beta"), X(SCALE_REWARD_STD, "reward_std"), X(SCALE_TOKEN_STD, "token_std"),   \
      X(SCALE_NONZERO_SHARE, "nonzero_share"), X(SCALE_GROUP_MEAN, "group_mean")
typedef enum policy_scale { POLICY_SCALES(POLICY_VALUE) } policy_scale;

/* Each value has an entry, with its name, in the table of core/policy/ratio.c. */
#define POLICY_RATIOS(X)                                                                           \
  X(RATIO_NONE), X(RATIO_TOKEN), X(RATIO_PREFIX), X(RATIO_SEQUENCE), X(RATIO_SEQUENCE_TOKEN),      \
      X(RATIO_GROUP_EXPECTATION), X(RATIO_SELF_NORMALISED), X(RATIO_MIXTURE),                      \
      X(RATIO_TOKEN_MIXTURE), X(RATIO_VTRACE), X(RATIO_GROUP_MEAN)
typedef enum policy_ratio { POLICY_RATIOS(POLICY_VALUE) } policy_ratio;
enum { RATIO_COUNT = sizeof((char[]){POLICY_RATIOS(POLICY_ONE)}) };

/* Whether there is one ratio per token or one per response. */
typedef enum policy_ratio_unit { RATIO_OF_TOKEN, RATIO_OF_RESPONSE } policy_ratio_unit;

/* The quantity that ratio_gradient: true differentiates. */
typedef enum policy_ratio_gradient {
  RATIO_GRADIENT_NONE,      /* nothing: the ratio is a constant, ratio_gradient must be false */
  RATIO_GRADIENT_OWN_TOKEN, /* each token's term, through its own log-probability only */
  RATIO_GRADIENT_RESPONSE   /* through the log-probabilities of all tokens of the response */
} policy_ratio_gradient;

/* Whether the ratio of one response depends on the other responses of its group. */
typedef enum policy_ratio_coupling {
  RATIO_ALONE,                 /* it does not */
  RATIO_COUPLED_BY_P,          /* yes, through a denominator that contains P */
  RATIO_COUPLED_BY_RATIOS,     /* yes, through their ratios, which are treated as constants */
  RATIO_COUPLED_BY_DENOMINATOR /* depends on the field `denominator` */
} policy_ratio_coupling;

/* Properties of a ratio. Formulas, checks, the exact laboratory and `gepolab list algorithms
 * --fields` all use this table (core/policy/ratio.c). */
typedef struct policy_ratio_info {
  const char *name, *meaning;
  policy_ratio_unit unit;
  policy_ratio_gradient gradient;
  policy_ratio_coupling coupling;
  int clamped; /* computed from token log-ratios, which token_log_clamp limits; 0: from P and Q */
  int limited; /* log_floor and log_cap limit the logarithm of the ratio */
} policy_ratio_info;

/* Returns NULL if `ratio` is not a value of the enum. */
const policy_ratio_info *policy_ratio_about(policy_ratio ratio);

#define POLICY_LOG_PROBS(X) X(LOG_PROB_SUM, "sum"), X(LOG_PROB_MEAN, "mean")
typedef enum policy_log_prob { POLICY_LOG_PROBS(POLICY_VALUE) } policy_log_prob;

#define POLICY_DENOMINATORS(X)                                                                     \
  X(DENOMINATOR_SELF_NORMALISED, "self_normalised"), X(DENOMINATOR_MEAN, "mean"),                  \
      X(DENOMINATOR_EXACT, "exact"), X(DENOMINATOR_EXPECTED_P, "expected_p")
typedef enum policy_denominator { POLICY_DENOMINATORS(POLICY_VALUE) } policy_denominator;

#define POLICY_SCOPES(X) X(SCOPE_PROMPT, "prompt"), X(SCOPE_MICROBATCH, "microbatch")
typedef enum policy_scope { POLICY_SCOPES(POLICY_VALUE) } policy_scope;

#define POLICY_GATE_OF(X) X(GATE_GROUP_EXPECTATION, "group_expectation"), X(GATE_SAMPLER, "sampler")
typedef enum policy_gate_of { POLICY_GATE_OF(POLICY_VALUE) } policy_gate_of;

#define POLICY_OLD_POLICIES(X)                                                                     \
  X(OLD_SAMPLER, "sampler"), X(OLD_PROXIMAL, "proximal"), X(OLD_INTERPOLATED, "interpolated")
typedef enum policy_old { POLICY_OLD_POLICIES(POLICY_VALUE) } policy_old;

#define POLICY_CLIPS(X)                                                                            \
  X(CLIP_NONE, "none"), X(CLIP_PPO, "ppo"), X(CLIP_PPO_POWER, "ppo_power"), X(CLIP_CAP, "cap"),    \
      X(CLIP_CLAMP, "clamp"), X(CLIP_SIGNED_CLAMP, "signed_clamp"),                                \
      X(CLIP_TOKEN_LOG, "token_log"), X(CLIP_SECOND_MOMENT, "second_moment"),                      \
      X(CLIP_SIGMOID, "sigmoid"), X(CLIP_TANH_HAZARD, "tanh_hazard"), X(CLIP_GAMMA, "gamma"),      \
      X(CLIP_BINARY_TV, "binary_tv"), X(CLIP_BINARY_KL, "binary_kl"),                              \
      X(CLIP_PROBABILITY, "probability"), X(CLIP_RECIPROCAL, "reciprocal")
typedef enum policy_clip { POLICY_CLIPS(POLICY_VALUE) } policy_clip;

#define POLICY_M2_FORMS(X) X(M2_REMOVE, "remove"), X(M2_THRESHOLD, "threshold")
typedef enum policy_m2_form { POLICY_M2_FORMS(POLICY_VALUE) } policy_m2_form;
#define POLICY_M2_SETS(X) X(M2_IMPROVING, "improving"), X(M2_CLIPPED, "clipped"), X(M2_ALL, "all")
typedef enum policy_m2_set { POLICY_M2_SETS(POLICY_VALUE) } policy_m2_set;

#define POLICY_AGGREGATES(X)                                                                       \
  X(AGGREGATE_SEQUENCE_SUM, "sequence_sum"), X(AGGREGATE_SEQUENCE_MEAN, "sequence_mean"),          \
      X(AGGREGATE_TOKEN_MEAN, "token_mean"), X(AGGREGATE_GROUP_TOKEN_MEAN, "group_token_mean"),    \
      X(AGGREGATE_FIXED_LENGTH, "fixed_length"), X(AGGREGATE_LENGTH_POWER, "length_power"),        \
      X(AGGREGATE_TOKEN_SUM, "token_sum")
typedef enum policy_aggregate { POLICY_AGGREGATES(POLICY_VALUE) } policy_aggregate;

#define POLICY_KL_FORMS(X)                                                                         \
  X(KL_CPPO, "cppo"), X(KL_K1, "k1"), X(KL_K2, "k2"), X(KL_K3, "k3"), X(KL_ABS, "abs")
typedef enum policy_kl_form { POLICY_KL_FORMS(POLICY_VALUE) } policy_kl_form;
#define POLICY_REF_KL_FORMS(X)                                                                     \
  X(REF_KL_K1, "k1"), X(REF_KL_K2, "k2"), X(REF_KL_K3, "k3"), X(REF_KL_ABS, "abs"),                \
      X(REF_KL_K1_PLUS, "k1_plus"), X(REF_KL_K3_PLUS, "k3_plus")
typedef enum policy_ref_kl_form { POLICY_REF_KL_FORMS(POLICY_VALUE) } policy_ref_kl_form;

#define POLICY_LEVELS(X)                                                                           \
  X(LEVEL_NONE, "none"), X(LEVEL_TOKEN, "token"), X(LEVEL_SEQUENCE, "sequence"),                   \
      X(LEVEL_SEQUENCE_MEAN, "sequence_mean"), X(LEVEL_TOKEN_GEOMETRIC, "token_geometric"),        \
      X(LEVEL_FUTURE, "future")
typedef enum policy_level { POLICY_LEVELS(POLICY_VALUE) } policy_level;

/* The unit that a mask's test applies to. */
#define POLICY_MASK_LEVELS(X)                                                                      \
  X(MASK_LEVEL_NONE, "none"), X(MASK_LEVEL_TOKEN, "token"), X(MASK_LEVEL_SEQUENCE, "sequence"),    \
      X(MASK_LEVEL_SEQUENCE_MEAN, "sequence_mean"), X(MASK_LEVEL_SEQUENCE_MAX, "sequence_max")
typedef enum policy_mask_level { POLICY_MASK_LEVELS(POLICY_VALUE) } policy_mask_level;

#define POLICY_MIS_TESTS(X)                                                                        \
  X(MIS_RATIO, "ratio"), X(MIS_K1, "k1"), X(MIS_K2, "k2"), X(MIS_K3, "k3"), X(MIS_TV, "tv")
typedef enum policy_mis_test { POLICY_MIS_TESTS(POLICY_VALUE) } policy_mis_test;
#define POLICY_CORRECTION_OF(X) X(CORRECTION_PROXIMAL, "proximal"), X(CORRECTION_LEARNER, "learner")
typedef enum policy_correction_of { POLICY_CORRECTION_OF(POLICY_VALUE) } policy_correction_of;
#define POLICY_MASK_DENOMINATORS(X) X(MASK_ALL, "all"), X(MASK_KEPT, "kept")
typedef enum policy_mask_denominator {
  POLICY_MASK_DENOMINATORS(POLICY_VALUE)
} policy_mask_denominator;
#define POLICY_REWARD_KL_OF(X) X(REWARD_KL_SAMPLER, "sampler"), X(REWARD_KL_REFERENCE, "reference")
typedef enum policy_reward_kl_of { POLICY_REWARD_KL_OF(POLICY_VALUE) } policy_reward_kl_of;
#define POLICY_NEGATIVES(X) X(NEGATIVES_SOFTMAX, "softmax"), X(NEGATIVES_MEAN, "mean")
typedef enum policy_negatives { POLICY_NEGATIVES(POLICY_VALUE) } policy_negatives;

/* Size of a shown name in bytes, including the terminating 0. */
enum { POLICY_NAME_SIZE = 128 };

/* The negative clip and its counterpart: drops responses from the policy term by the sign of their
 * advantage and the learner's likelihood ratio U (paper/methods.md §3.15). */
typedef struct policy_gate_fields {
  double negative_below; /* drops responses with A < 0 and U below this; 0: off */
  double negative_above; /* drops responses with A < 0 and U above this; infinite: off */
  double positive_above; /* drops responses with A > 0 and U above this; infinite: off */
  policy_gate_of of;
  policy_scope scope;
  policy_log_prob log_prob;
} policy_gate_fields;

/* All fields are read, checked and printed by one table (core/policy/fields.c). policy_fields_at()
 * returns the meaning and bounds of each. */
typedef struct policy_algorithm {
  char name[POLICY_NAME_SIZE]; /* shown name, see policy_algorithm_set_name() */
  char base[32];               /* the published algorithm that the recipe started from */
  int has_own_name;            /* the recipe gave `name:` */

  policy_objective objective;

  policy_baseline baseline;
  policy_scale scale;
  double baseline_value, baseline_temperature, scale_eps;
  size_t std_ddof;
  int drop_equal;
  double reward_kl_coef;
  policy_reward_kl_of reward_kl_of;

  policy_ratio ratio;
  policy_log_prob log_prob;
  policy_old old_policy;
  double proximal_decay;
  int ratio_gradient;
  policy_denominator denominator;
  int denominator_gradient;
  policy_scope group_scope;
  size_t microbatch;
  double kappa, mixture, rho_bar, c_bar;
  int mixture_anneal;
  double mixture_midpoint, mixture_slope;
  double token_log_clamp, log_floor, log_cap;

  policy_clip clip;
  double eps_low, eps_high, dual_clip, cap, clip_power;
  double keep_low, keep_high;
  double balance, balance_step, balance_low, balance_high;
  double positive_low, positive_high, negative_low, negative_high;
  double tau_positive, tau_negative;
  double tanh_scale, hazard_power_up, hazard_width_up, hazard_power_down, hazard_width_down;
  double gamma_k_positive, gamma_rate_positive, gamma_k_negative, gamma_rate_negative;
  policy_m2_form m2_form;
  policy_m2_set m2_set;
  double m2_tau;
  int token_mask;
  double mask_low, mask_high;

  policy_gate_fields gate;

  policy_aggregate aggregate;
  double length_power;

  double kl_coef, kl_share, ref_kl_coef;
  policy_kl_form kl_form;
  policy_ref_kl_form ref_kl_form;
  int ref_kl_ratio;

  policy_correction_of correction_of;
  policy_level tis_level;
  int tis_normalise;
  policy_mask_level mis_level, mis2_level;
  policy_mis_test mis_test, mis2_test;
  policy_mask_denominator mask_denominator;
  double tis_min, tis_max, tis_log_clamp, future_half_life;
  double mis_free_low, mis_free_high;
  double mis_min, mis_max, mis2_min, mis2_max, mis_log_clamp;
  double off_policy_mask, top_entropy, entropy_ratio_low, entropy_ratio_high;

  policy_negatives negatives;
  double disco_tau, penalty, penalty_margin;
} policy_algorithm;

/* The published algorithms, in documentation order. */
enum { POLICY_MOST_ALGORITHMS = 128 }; /* upper bound of policy_algorithms_count() */
size_t policy_algorithms_count(void);
const policy_algorithm *policy_algorithms_at(size_t i);
/* Upper case does not matter; NULL if unknown. */
const policy_algorithm *policy_algorithms_find(const char *name);
/* Writes the i-th algorithm that the user has defined (core/config/user_defined.h, key
 * "algorithms") to *out, under the user's name. */
gl_status policy_algorithms_own(policy_algorithm *out, const cfg_own *own, size_t i, gl_error *err);

/* Reads `algorithm:` of a recipe: the name of an algorithm, or a map {base: gepo, clip: none, ...}.
 * NULL means grpo. Errors: GL_EINPUT for a wrong name or field, with file:line:column and the
 * nearest valid name. */
gl_status policy_algorithm_parse(policy_algorithm *algorithm, const cfg_node *node, gl_error *err);
/* policy_algorithm_parse() for callers that do not identify algorithms by name: a name that would
 * be too long ends in "…)" and is no error. */
gl_status policy_algorithm_parse_alone(policy_algorithm *algorithm, const cfg_node *node,
                                       gl_error *err);

/* Sets the shown name, which is the same in all tables, figures and files: the recipe's `name:` if
 * there is one, otherwise the base and every field that differs from it, as in `gepo(clip=none,
 * denominator=mean)`. Fields in left_out[n_left_out] are omitted: a sweep over `algorithm.eps_low`
 * shows that axis separately. policy_algorithm_parse() has already called this with an empty list.
 * Errors: GL_EINPUT if the name is longer than POLICY_NAME_SIZE - 1 bytes. */
gl_status policy_algorithm_set_name(policy_algorithm *algorithm, const char *const *left_out,
                                    size_t n_left_out, gl_error *err);

/* Checks that the fields are compatible. Errors: GL_EINPUT if a choice has an invalid value or
 * paper/methods.md has no formula for the combination (§3.14). The message names the algorithm, the
 * fields and the fix. Bounds of single fields are checked by policy_algorithm_parse(). err may be
 * NULL, as everywhere. */
gl_status policy_algorithm_check(const policy_algorithm *algorithm, gl_error *err);

/* Errors: GL_EINPUT, with the field and the fix, if groups of `group_size` responses give the
 * algorithm no signal. A single response has no group mean, no other responses and no deviation. */
gl_status policy_algorithm_check_group_size(const policy_algorithm *algorithm, size_t group_size,
                                            gl_error *err);

/* policy_couples_group: whether the ratio makes one response's coefficients depend on the other
 * responses of its group. policy_denominator_contains_p: whether that denominator contains P, so
 * that denominator_gradient has an effect. The algorithm must have passed policy_algorithm_check().
 */
int policy_couples_group(const policy_algorithm *algorithm);
int policy_denominator_contains_p(const policy_algorithm *algorithm);
/* Whether the algorithm needs the reference policy's log-probabilities (policy_input.logref). */
int policy_needs_reference(const policy_algorithm *algorithm);
/* Whether the algorithm needs the entropies of the learner's policy (policy_input.entropy). */
int policy_needs_entropy(const policy_algorithm *algorithm);
/* Whether entropy_ratio_low or entropy_ratio_high masks tokens. */
int policy_has_entropy_ratio(const policy_algorithm *algorithm);
/* Whether the algorithm needs each token's staleness (policy_input.version_gap). */
int policy_needs_version_gap(const policy_algorithm *algorithm);
/* Whether the ratio needs the exact sum_y q(y)^2, which only a world that enumerates its responses
 * can supply. */
int policy_needs_exact_denominator(const policy_algorithm *algorithm);

/* Documentation of a published algorithm. No member is NULL. notes lists every field whose value is
 * gepolab's own choice. Settings of trainers: core/policy/trainer_settings.h. */
typedef struct policy_algorithm_info {
  const char *source, *notes;
} policy_algorithm_info;

/* Information on published algorithm i, i < policy_algorithms_count(). */
const policy_algorithm_info *policy_algorithms_info(size_t i);

typedef enum policy_field_kind {
  POLICY_FIELD_CHOICE,
  POLICY_FIELD_FLAG,
  POLICY_FIELD_COUNT,
  POLICY_FIELD_NUMBER
} policy_field_kind;

typedef struct policy_field {
  const char *name;
  policy_field_kind kind;
  size_t offset; /* of the member in policy_algorithm */
  const char *(*choice)(
      int value); /* POLICY_FIELD_CHOICE: name of a value in [0, n_choices); otherwise NULL */
  int n_choices;
  double lo, hi; /* POLICY_FIELD_NUMBER and POLICY_FIELD_COUNT: inclusive bounds */
  const char *meaning;
} policy_field;

enum { POLICY_MOST_CHOICES = 32 }; /* upper bound of n_choices */

enum { POLICY_MOST_FIELDS = 128 }; /* upper bound of policy_fields_count() */
size_t policy_fields_count(void);
const policy_field *policy_fields_at(size_t i);

enum { POLICY_FIELD_TEXT_SIZE = 40 };
/* Writes the value of field i as a recipe would; returns text. */
const char *policy_algorithm_field(const policy_algorithm *algorithm, size_t i,
                                   char text[POLICY_FIELD_TEXT_SIZE]);

/* The remaining fields of the recipe section `algorithm`. */
extern const struct field_table policy_fields, policy_own;

#endif
