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
  BASELINE_LEAVE_ONE_OUT,
  BASELINE_LENGTH_WEIGHTED,
  BASELINE_RUNNER_UP
} policy_baseline;

typedef enum policy_scale {
  SCALE_NONE,
  SCALE_GROUP_STD,
  SCALE_BATCH_STD,
  SCALE_BETA,
  SCALE_REWARD_STD,
  SCALE_TOKEN_STD,
  SCALE_NONZERO_SHARE
} policy_scale;

typedef enum policy_ratio {
  RATIO_NONE,
  RATIO_TOKEN,
  RATIO_PREFIX,
  RATIO_SEQUENCE,
  RATIO_SEQUENCE_TOKEN,
  RATIO_GROUP_EXPECTATION,
  RATIO_SELF_NORMALISED,
  RATIO_MIXTURE,
  RATIO_TOKEN_MIXTURE,
  RATIO_VTRACE,
  RATIO_GROUP_MEAN
} policy_ratio;
enum { RATIO_COUNT = RATIO_GROUP_MEAN + 1 }; /* one more than the last */

/* Whose ratio it is: one number for each token, or one for each response. */
typedef enum policy_ratio_unit { RATIO_OF_TOKEN, RATIO_OF_RESPONSE } policy_ratio_unit;

/* What ratio_gradient: true differentiates. */
typedef enum policy_ratio_gradient {
  RATIO_GRADIENT_NONE,      /* nothing: the ratio is a constant, ratio_gradient must be false */
  RATIO_GRADIENT_OWN_TOKEN, /* a token's term through the log-probability of that token alone */
  RATIO_GRADIENT_RESPONSE   /* through the log-probabilities of all tokens of the response */
} policy_ratio_gradient;

/* Whether the ratio of one response depends on the other responses of its group. */
typedef enum policy_ratio_coupling {
  RATIO_ALONE,                 /* it does not */
  RATIO_COUPLED_BY_P,          /* it does, through a denominator that contains P */
  RATIO_COUPLED_BY_RATIOS,     /* it does, through their ratios, of which no derivative is taken */
  RATIO_COUPLED_BY_DENOMINATOR /* as the field `denominator` says */
} policy_ratio_coupling;

/* What a ratio is: the one place where the formulas, the checks, the exact laboratory and `gepolab
 * algorithms --fields` look it up (the table is in core/policy/ratio.c). */
typedef struct policy_ratio_info {
  const char *name, *meaning;
  policy_ratio_unit unit;
  policy_ratio_gradient gradient;
  policy_ratio_coupling coupling;
  int clamped; /* made of the tokens' log-ratios, which token_log_clamp limits; 0: of P and Q */
  int limited; /* log_floor and log_cap limit its logarithm */
} policy_ratio_info;

/* NULL where `ratio` is not one of the enum. */
const policy_ratio_info *policy_ratio_about(policy_ratio ratio);

typedef enum policy_log_prob { LOG_PROB_SUM, LOG_PROB_MEAN } policy_log_prob;

typedef enum policy_denominator {
  DENOMINATOR_SELF_NORMALISED,
  DENOMINATOR_MEAN,
  DENOMINATOR_EXACT,
  DENOMINATOR_EXPECTED_P
} policy_denominator;

typedef enum policy_scope { SCOPE_PROMPT, SCOPE_MICROBATCH } policy_scope;

typedef enum policy_gate_of { GATE_GROUP_EXPECTATION, GATE_SAMPLER } policy_gate_of;

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
  CLIP_GAMMA,
  CLIP_BINARY_TV,
  CLIP_BINARY_KL
} policy_clip;

typedef enum policy_m2_form { M2_REMOVE, M2_THRESHOLD } policy_m2_form;
typedef enum policy_m2_set { M2_IMPROVING, M2_CLIPPED, M2_ALL } policy_m2_set;

typedef enum policy_aggregate {
  AGGREGATE_SEQUENCE_SUM,
  AGGREGATE_SEQUENCE_MEAN,
  AGGREGATE_TOKEN_MEAN,
  AGGREGATE_GROUP_TOKEN_MEAN,
  AGGREGATE_FIXED_LENGTH,
  AGGREGATE_LENGTH_POWER,
  AGGREGATE_TOKEN_SUM
} policy_aggregate;

typedef enum policy_kl_form { KL_CPPO, KL_K1, KL_K2, KL_K3, KL_ABS } policy_kl_form;
typedef enum policy_ref_kl_form {
  REF_KL_K1,
  REF_KL_K2,
  REF_KL_K3,
  REF_KL_ABS,
  REF_KL_K1_PLUS,
  REF_KL_K3_PLUS
} policy_ref_kl_form;

typedef enum policy_level {
  LEVEL_NONE,
  LEVEL_TOKEN,
  LEVEL_SEQUENCE,
  LEVEL_SEQUENCE_MEAN,
  LEVEL_TOKEN_GEOMETRIC
} policy_level;

/* Of what a mask's test is asked. */
typedef enum policy_mask_level {
  MASK_LEVEL_NONE,
  MASK_LEVEL_TOKEN,
  MASK_LEVEL_SEQUENCE,
  MASK_LEVEL_SEQUENCE_MEAN,
  MASK_LEVEL_SEQUENCE_MAX
} policy_mask_level;

typedef enum policy_mis_test { MIS_RATIO, MIS_K1, MIS_K2, MIS_K3 } policy_mis_test;
typedef enum policy_correction_of { CORRECTION_PROXIMAL, CORRECTION_LEARNER } policy_correction_of;
typedef enum policy_mask_denominator { MASK_ALL, MASK_KEPT } policy_mask_denominator;
typedef enum policy_negatives { NEGATIVES_SOFTMAX, NEGATIVES_MEAN } policy_negatives;

/* Bytes of a shown name, its end included. */
enum { POLICY_NAME_SIZE = 128 };

/* Which responses take no part in the policy term, by the sign of their advantage and by how
 * probable the learner finds them (paper/methods.md §3.15). */
typedef struct policy_gate_fields {
  double negative_below; /* A < 0: those whose likelihood is below; 0: none */
  double positive_above; /* A > 0: those whose likelihood is above; infinite: none */
  policy_gate_of of;
  policy_scope scope;
  policy_log_prob log_prob;
} policy_gate_fields;

/* One table (core/policy/fields.c) reads, checks and prints all fields; policy_fields_at() tells
 * each one's meaning and bounds. */
typedef struct policy_algorithm {
  char name[POLICY_NAME_SIZE]; /* shown name, see policy_algorithm_set_name() */
  char base[32];               /* the published algorithm it started from */
  int has_own_name;            /* the recipe gave `name:` */

  policy_objective objective;

  policy_baseline baseline;
  policy_scale scale;
  double baseline_value, scale_eps;
  size_t std_ddof;
  int drop_equal;

  policy_ratio ratio;
  policy_log_prob log_prob;
  policy_old old_policy;
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
  double tis_min, tis_max, tis_log_clamp;
  double mis_min, mis_max, mis2_min, mis2_max, mis_log_clamp;
  double off_policy_mask, top_entropy;

  policy_negatives negatives;
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

/* GL_EINPUT, with the algorithm's name, the fields and what to set, if a choice holds none of its
 * values, or the fields do not go together: a combination for which paper/methods.md has no formula
 * (§3.14). Bounds of single fields are policy_algorithm_parse()'s to check. err may be NULL as
 * everywhere.
 */
gl_status policy_algorithm_check(const policy_algorithm *algorithm, gl_error *err);

/* GL_EINPUT, with the field and the remedy, if groups of `group_size` responses leave the algorithm
 * nothing to learn from: one response has no group mean, no others and no deviation. */
gl_status policy_algorithm_check_group_size(const policy_algorithm *algorithm, size_t group_size,
                                            gl_error *err);

/* Whether the coefficients of one response depend on the other responses of its group through the
 * ratio; and whether that denominator contains P, so that denominator_gradient has a meaning. The
 * algorithm must have passed policy_algorithm_check(). */
int policy_couples_group(const policy_algorithm *algorithm);
int policy_denominator_contains_p(const policy_algorithm *algorithm);
/* Whether the ratio needs to know how old each token is (policy_input.version_gap). */
int policy_needs_version_gap(const policy_algorithm *algorithm);
/* Whether the ratio needs more than P and Q: the world's own sum_y q(y)^2, which only a world that
 * enumerates its responses has. */
int policy_needs_exact_denominator(const policy_algorithm *algorithm);

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
  size_t offset;                    /* in policy_algorithm */
  const char *(*choice)(int value); /* FIELD_CHOICE: name of a value in [0, n_choices); else NULL */
  int n_choices;
  double lo, hi; /* FIELD_NUMBER and FIELD_COUNT: inclusive bounds */
  const char *meaning;
} policy_field;

enum { POLICY_MOST_CHOICES = 32 }; /* n_choices is at most this */

size_t policy_fields_count(void);
const policy_field *policy_fields_at(size_t i);

enum { POLICY_FIELD_TEXT_SIZE = 40 };
/* The value of field i in an algorithm as a recipe would write it; returns text. */
const char *policy_algorithm_field(const policy_algorithm *algorithm, size_t i,
                                   char text[POLICY_FIELD_TEXT_SIZE]);

/* The fields of the section `algorithm` beside those. */
extern const struct field_table policy_fields;

#endif
