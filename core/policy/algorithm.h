/* An algorithm as data: its fields (paper/methods.md §3), the table of published algorithms
 * (§4), and how a recipe names one.
 *
 * An algorithm's loss is built from token terms. With l = logp - logold per token (old_policy) and
 * x the logarithm of the algorithm's ratio, the clip turns x into a value f(x); response i's
 * objective is A_i f(x) averaged with `aggregate`, or sg(f(x)) A_i logp where ratio_gradient is
 * off. KL terms are added to the loss, truncation (tis_) and masking (mis_) multiply the policy
 * term.
 */
#ifndef GEPOLAB_CORE_POLICY_ALGORITHM_H
#define GEPOLAB_CORE_POLICY_ALGORITHM_H

#include "core/base/error.h"
#include "core/config/config.h"

#include <stddef.h>

typedef enum policy_objective { OBJECTIVE_POLICY_GRADIENT, OBJECTIVE_DISCO } policy_objective;

typedef enum policy_baseline {
  BASELINE_NONE,
  BASELINE_CONSTANT,
  BASELINE_GROUP_MEAN,
  BASELINE_LEAVE_ONE_OUT
} policy_baseline;

typedef enum policy_scale { SCALE_NONE, SCALE_GROUP_STD, SCALE_BATCH_STD, SCALE_BETA } policy_scale;

typedef enum policy_ratio {
  RATIO_NONE,
  RATIO_TOKEN,
  RATIO_PREFIX,
  RATIO_SEQUENCE,
  RATIO_SEQUENCE_TOKEN,
  RATIO_GROUP_EXPECTATION,
  RATIO_SELF_NORMALISED,
  RATIO_MIXTURE,
  RATIO_VTRACE
} policy_ratio;

typedef enum policy_log_prob { LOG_PROB_SUM, LOG_PROB_MEAN } policy_log_prob;

typedef enum policy_denominator {
  DENOMINATOR_SELF_NORMALISED,
  DENOMINATOR_MEAN,
  DENOMINATOR_EXACT,
  DENOMINATOR_EXPECTED_P
} policy_denominator;

typedef enum policy_scope { SCOPE_PROMPT, SCOPE_MICROBATCH } policy_scope;

typedef enum policy_old { OLD_SAMPLER, OLD_PROXIMAL } policy_old;

typedef enum policy_clip {
  CLIP_NONE,
  CLIP_PPO,
  CLIP_PPO_POWER,
  CLIP_CAP,
  CLIP_CLAMP,
  CLIP_SIGNED_CLAMP,
  CLIP_TOKEN_LOG,
  CLIP_SECOND_MOMENT,
  CLIP_SIGMOID,
  CLIP_TANH_HAZARD,
  CLIP_GAMMA
} policy_clip;

typedef enum policy_m2_form { M2_REMOVE, M2_THRESHOLD } policy_m2_form;
typedef enum policy_m2_set { M2_IMPROVING, M2_CLIPPED, M2_ALL } policy_m2_set;

typedef enum policy_aggregate {
  AGGREGATE_SEQUENCE_SUM,
  AGGREGATE_SEQUENCE_MEAN,
  AGGREGATE_TOKEN_MEAN,
  AGGREGATE_GROUP_TOKEN_MEAN,
  AGGREGATE_FIXED_LENGTH,
  AGGREGATE_LENGTH_POWER
} policy_aggregate;

typedef enum policy_kl_form { KL_CPPO, KL_K1, KL_K2, KL_K3 } policy_kl_form;
typedef enum policy_ref_kl_form { REF_KL_K1, REF_KL_K2, REF_KL_K3 } policy_ref_kl_form;

typedef enum policy_level {
  LEVEL_NONE,
  LEVEL_TOKEN,
  LEVEL_SEQUENCE,
  LEVEL_SEQUENCE_MEAN,
  LEVEL_TOKEN_GEOMETRIC
} policy_level;

typedef enum policy_mis_test { MIS_RATIO, MIS_K1, MIS_K2, MIS_K3 } policy_mis_test;
typedef enum policy_correction_of { CORRECTION_PROXIMAL, CORRECTION_LEARNER } policy_correction_of;
typedef enum policy_mask_denominator { MASK_ALL, MASK_KEPT } policy_mask_denominator;
typedef enum policy_negatives { NEGATIVES_SOFTMAX, NEGATIVES_MEAN } policy_negatives;

/* Bytes of a shown name, its end included. */
enum { POLICY_NAME_SIZE = 128 };

/* Choices are int so that one table (policy_fields.c) reads and prints them all; their values are
 * the enums above. policy_field_at() tells each one's meaning and bounds. */
typedef struct policy_algorithm {
  char name[POLICY_NAME_SIZE]; /* shown name, see policy_algorithm_set_name() */
  char base[32];               /* the published algorithm it started from */
  int has_own_name;            /* the recipe gave `name:` */

  int objective;

  int baseline, scale;
  double baseline_value, scale_eps;
  size_t std_ddof;
  int drop_equal;

  int ratio, log_prob, old_policy, ratio_gradient;
  int denominator, denominator_gradient, group_scope;
  size_t microbatch;
  double kappa, mixture, rho_bar, c_bar;
  double token_log_clamp, log_floor, log_cap;

  int clip;
  double eps_low, eps_high, dual_clip, cap, clip_power;
  double positive_low, positive_high, negative_low, negative_high;
  double tau_positive, tau_negative;
  double tanh_scale, hazard_power_up, hazard_width_up, hazard_power_down, hazard_width_down;
  double gamma_k_positive, gamma_rate_positive, gamma_k_negative, gamma_rate_negative;
  int m2_form, m2_set;
  double m2_tau;
  int token_mask;
  double mask_low, mask_high;

  int aggregate;
  double length_power;

  double kl_coef, ref_kl_coef;
  int kl_form, ref_kl_form;

  int correction_of, tis_level, tis_normalise, mis_level, mis_test, mask_denominator;
  double tis_min, tis_max, tis_log_clamp, mis_min, mis_max;

  int negatives;
  double disco_tau, penalty, penalty_margin;
} policy_algorithm;

/* The published algorithms, in documentation order. */
size_t policy_algorithms_count(void);
const policy_algorithm *policy_algorithms_at(size_t i);
const policy_algorithm *policy_algorithms_find(const char *name); /* NULL if unknown */

/* Reads `algorithm:` of a recipe: an algorithm's name, or a map {base: gepo, clip: none, ...};
 * NULL: grpo. A wrong name or field gets file:line:column and the nearest valid one (GL_EINPUT). */
gl_status policy_algorithm_parse(policy_algorithm *algorithm, const cfg_node *node, gl_error *err);

/* Sets the shown name, the same in every table, figure and file: the recipe's `name:` if it gave
 * one; else the base and every field that differs from it, `gepo(clip=none, denominator=mean)`.
 * Fields of left_out[n_left_out] are not mentioned: a sweep over `algorithm.eps_low` shows that
 * axis beside the name. GL_EINPUT if the name would be longer than POLICY_NAME_SIZE - 1 bytes.
 * policy_algorithm_parse() has called it with nothing left out. */
gl_status policy_algorithm_set_name(policy_algorithm *algorithm, const char *const *left_out,
                                    size_t n_left_out, gl_error *err);
/* GL_EINPUT if the shown name is a published algorithm's whose fields are not this one's. */
gl_status policy_algorithm_check_name(const policy_algorithm *algorithm, gl_error *err);

/* GL_EINPUT, with the algorithm's name, the fields and what to set, if the algorithm's fields do
 * not go together: a combination for which paper/methods.md has no formula (§3.14). Bounds of
 * single fields are policy_algorithm_parse()'s to check. err may be NULL as everywhere.
 */
gl_status policy_algorithm_check(const policy_algorithm *algorithm, gl_error *err);

/* What is known of a published algorithm besides its fields. No member is NULL; "none" where the
 * trainer has no such setting. notes names every field that is gepolab's own choice. */
typedef struct policy_algorithm_info {
  const char *source, *trl, *verl, *areal, *notes;
} policy_algorithm_info;

/* Of published algorithm i, i < policy_algorithms_count(). */
const policy_algorithm_info *policy_algorithms_info(size_t i);

typedef enum policy_field_kind {
  FIELD_CHOICE,
  FIELD_BOOL,
  FIELD_COUNT,
  FIELD_NUMBER
} policy_field_kind;

typedef struct policy_field {
  const char *name;
  policy_field_kind kind;
  size_t offset;              /* in policy_algorithm */
  const char *const *choices; /* FIELD_CHOICE: the values' names; else NULL */
  int n_choices;
  double lo, hi; /* FIELD_NUMBER and FIELD_COUNT: inclusive bounds */
  const char *meaning;
} policy_field;

size_t policy_fields_count(void);
const policy_field *policy_fields_at(size_t i);

enum { POLICY_FIELD_TEXT_SIZE = 40 };
/* The value of field i in an algorithm as a recipe would write it; returns text. */
const char *policy_algorithm_field(const policy_algorithm *algorithm, size_t i,
                                   char text[POLICY_FIELD_TEXT_SIZE]);

#endif
