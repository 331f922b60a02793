/* Writes an algorithm as formulas: advantage, ratio, clip and loss, in the notation of
 * paper/methods.md §1 to §3. */
#include "experiments/policy/formula_lines.h"

#include "experiments/base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct formulas {
  FILE *to;
  const policy_algorithm *a;
} formulas;

static void formula(formulas *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void formula(formulas *f, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(f->to, format, arguments);
  va_end(arguments);
  fputc('\n', f->to);
}

/* --- advantage --- */

static char *baseline_formula(const policy_algorithm *a) {
  static const char *const of[] = {[BASELINE_NONE] = "r_i",
                                   [BASELINE_CONSTANT] = "r_i",
                                   [BASELINE_GROUP_MEAN] = "r_i − mean_j r_j",
                                   [BASELINE_LEAVE_ONE_OUT] = "r_i − mean_{j≠i} r_j",
                                   [BASELINE_LENGTH_WEIGHTED] = "r_i − Σ_j T_j r_j / Σ_j T_j",
                                   [BASELINE_OFF_POLICY] =
                                       "r_i − Σ_j (P_j/Q_j)² T_j r_j / Σ_j (P_j/Q_j)² T_j"};
  if (a->baseline == BASELINE_SOFT_MAXIMUM)
    return must_textf("a formula", "r_i − %.6g log mean_j exp(r_j/%.6g)", a->baseline_temperature,
                      a->baseline_temperature);
  if (a->baseline == BASELINE_RUNNER_UP) return must_copy("r_max − r_second", "a formula");
  const double value = a->baseline_value;
  return value == 0 ? must_copy(of[a->baseline], "a formula")
                    : must_textf("a formula", "%s %s %.6g", of[a->baseline], value < 0 ? "+" : "−",
                                 fabs(value));
}

static void write_advantage(formulas *f) {
  const policy_algorithm *a = f->a;
  if (a->reward_kl_coef > 0)
    formula(f, "r_i ← r_i − %.6g sg(Σ_t (lp[i,t] − %s[i,t]))", a->reward_kl_coef,
            a->reward_kl_of == REWARD_KL_SAMPLER ? "lq" : "lref");
  char *above = baseline_formula(a);
  const double eps = a->scale_eps;
  switch (a->scale) {
  case SCALE_NONE:
    formula(f, "A_i = %s", above);
    break;
  case SCALE_GROUP_STD:
    formula(f, "A_i = (%s) / (std_j r_j + %.6g)", above, eps);
    break;
  case SCALE_GROUP_MEAN:
    formula(f, "A_i = (%s) / (mean_j r_j + %.6g)", above, eps);
    break;
  case SCALE_REWARD_STD:
    formula(f, "A_i = (%s) / (std r over the batch + %.6g)", above, eps);
    break;
  case SCALE_BATCH_STD:
    formula(f, "a_i = %s,  A_i = (a_i − mean a) / (std a + %.6g) over the batch", above, eps);
    break;
  case SCALE_TOKEN_STD:
    formula(f, "a_i = %s,  A_i = (a_i − mean a) / √(Var a + %.6g) over the batch's tokens", above,
            eps);
    break;
  case SCALE_NONZERO_SHARE:
    formula(f, "A_i = (%s) / (fraction of the batch's rewards that are not 0)", above);
    break;
  case SCALE_BETA:
    formula(f, "A_i = (%s) / max(Beta(mean_j r_j; α, β), 1e-06)", above);
    break;
  }
  if (a->baseline == BASELINE_RUNNER_UP)
    formula(f, "  for the best response of a group, and A_i = 0 for the others");
  free(above);
}

/* --- ratio --- */

/* The old policy's log-probability of a token. */
static const char *old_name(const policy_algorithm *a) {
  return a->old_policy == OLD_SAMPLER ? "lq[i,t]" : "lx[i,t]";
}

/* Writes the log-ratio of a token, or the log-probabilities of a response. */
static void write_log_ratio(formulas *f) {
  const policy_algorithm *a = f->a;
  const char *mean = a->log_prob == LOG_PROB_MEAN ? "(1/T_i) " : "", *old = old_name(a);
  if (a->old_policy == OLD_INTERPOLATED) formula(f, "lx[i,t] = lq[i,t] + α (lp[i,t] − lq[i,t])");
  if (policy_ratio_about(a->ratio)->unit == RATIO_OF_RESPONSE)
    formula(f, "log P_i = %sΣ_t lp[i,t],  log Q_i = %sΣ_t %s", mean, mean, old);
  else
    formula(f, "l[i,t] = lp[i,t] − %s", old);
  if (isfinite(a->token_log_clamp))
    formula(f, "  with −%.6g ≤ lp[i,t] − %s ≤ %.6g", a->token_log_clamp, old, a->token_log_clamp);
}

/* Writes the bounds of the log-ratio of a response or a prefix. */
static void write_limits(formulas *f) {
  const policy_algorithm *a = f->a;
  if (isfinite(a->log_floor))
    formula(f, "  with log u ≥ %s%.6g", a->log_floor < 0 ? "−" : "", fabs(a->log_floor));
  if (isfinite(a->log_cap)) formula(f, "  with log u ≤ %.6g", a->log_cap);
}

static void write_ratio(formulas *f) {
  static const char *const denominators[] = {[DENOMINATOR_SELF_NORMALISED] = "Σ_j Q_j² / Σ_j Q_j",
                                             [DENOMINATOR_MEAN] = "(1/G) Σ_j Q_j",
                                             [DENOMINATOR_EXACT] = "Σ_y q(y)²",
                                             [DENOMINATOR_EXPECTED_P] = "Σ_j Q_j P_j / Σ_j Q_j"};
  const policy_algorithm *a = f->a;
  if (a->ratio != RATIO_NONE) write_log_ratio(f);
  switch (a->ratio) {
  case RATIO_NONE:
    break;
  case RATIO_TOKEN:
    formula(f, "u[i,t] = exp(l[i,t])");
    break;
  case RATIO_PREFIX:
    formula(f, "u[i,t] = exp(Σ_{s≤t} l[i,s])");
    break;
  case RATIO_SEQUENCE:
    formula(f, "u_i = P_i / Q_i");
    break;
  case RATIO_SEQUENCE_TOKEN:
    formula(f, "u[i,t] = sg(P_i / Q_i) · exp(lp[i,t] − sg(lp[i,t]))");
    break;
  case RATIO_GROUP_EXPECTATION:
    formula(f, "D = %s,  u_i = P_i / D", denominators[a->denominator]);
    break;
  case RATIO_SELF_NORMALISED:
    formula(f, "u_i = (P_i / Q_i) / mean_j(P_j / Q_j)");
    break;
  case RATIO_MIXTURE:
    formula(f, "u_i = P_i / (%.6g P_i + %.6g Q_i)", a->mixture, 1 - a->mixture);
    break;
  case RATIO_TOKEN_MIXTURE:
    formula(f, "u[i,t] = p / (λ p + (1−λ) q)");
    break;
  case RATIO_VTRACE:
    formula(f, "u[i,t]: V-trace's products of capped p/q, ρ ≤ %.6g, c ≤ %.6g", a->rho_bar,
            a->c_bar);
    break;
  case RATIO_GROUP_MEAN:
    formula(f, "u_i = mean_j(P_j / Q_j)");
    break;
  }
  write_limits(f);
}

/* --- clip --- */

/* Writes the clipped term of a token or a response without constant factors. u: name of the ratio.
 */
static void write_two_sided(formulas *f, const char *u, const char *term) {
  const policy_algorithm *a = f->a;
  const double low = fmax(0, 1 - a->eps_low), high = 1 + a->eps_high;
  if (a->keep_low != 1 || a->keep_high != 1) {
    formula(f, "%s = A_i %s, beyond %.6g (A < 0) and %.6g (A > 0) the bound times %.6g and %.6g",
            term, u, low, high, a->keep_low, a->keep_high);
    return;
  }
  formula(f, "%s = min(A_i %s, A_i clip(%s, %.6g, %.6g))", term, u, u, low, high);
  if (isfinite(a->dual_clip)) formula(f, "  with %s ≤ %.6g where A_i < 0", u, a->dual_clip);
}

/* Writes M2PO's mask or bound. S is the set of tokens that m2_set names. */
static void write_second_moment(formulas *f, const char *u, const char *term) {
  const policy_algorithm *a = f->a;
  if (a->m2_form == M2_REMOVE) {
    formula(
        f,
        "%s = A_i %s m[i,t],  m = 0 for the largest l² of S until the others' mean is at most %.6g",
        term, u, a->m2_tau);
  } else {
    formula(f, "%s = min(A_i %s, A_i clip(%s, exp(−b), exp(b)))", term, u, u);
    formula(f,
            "  with b the largest |l| of S for which the mean over S of min(l², b²) is below %.6g",
            a->m2_tau);
  }
  switch (a->m2_set) {
  case M2_IMPROVING:
    formula(f, "  with S the tokens with A_i l[i,t] > 0");
    break;
  case M2_CLIPPED:
    formula(f, "  with S the tokens with %s > %.6g (A_i > 0) or %s < %.6g (A_i < 0)", u,
            1 + a->eps_high, u, 1 - a->eps_low);
    break;
  case M2_ALL:
    formula(f, "  with S all tokens");
    break;
  }
}

static void write_shaped(formulas *f, const char *u, const char *term) {
  const policy_algorithm *a = f->a;
  if (a->clip == CLIP_PPO_POWER) {
    formula(f, "%s = min(A_i %s, A_i clip(%s, exp(−%.6g t^%.6g), exp(%.6g t^%.6g)))", term, u, u,
            a->eps_low, a->clip_power, a->eps_high, a->clip_power);
  }
  if (a->clip == CLIP_TOKEN_LOG) {
    formula(f,
            "%s = A_i exp((1/T_i) Σ_t k[i,t]),  k = min(l, %.6g) where A_i ≥ 0, else max(l, −%.6g)",
            term, a->eps_high, a->eps_low);
  }
  if (a->clip == CLIP_SECOND_MOMENT) write_second_moment(f, u, term);
  if (a->clip == CLIP_SIGMOID) {
    formula(f, "%s = A_i (4/τ) σ(τ (%s − 1)),  τ = %.6g where A_i > 0, else %.6g", term, u,
            a->tau_positive, a->tau_negative);
  }
  if (a->clip == CLIP_TANH_HAZARD) {
    formula(f, "ψ = %.6g tanh(log(%s)/%.6g)", a->tanh_scale, u, a->tanh_scale);
    formula(f, "ζ = (softplus(ψ)/%.6g)^%.6g + (softplus(−ψ)/%.6g)^%.6g", a->hazard_width_up,
            a->hazard_power_up, a->hazard_width_down, a->hazard_power_down);
    formula(f, "%s = A_i exp(ψ − sg(ζ))", term);
  }
  if (a->clip == CLIP_GAMMA) {
    formula(f, "%s = A_i exp(λ + k log W − λ W),  W = P_i / Q_i", term);
    formula(f, "  with k = %.6g, λ = %.6g where A_i ≥ 0, else k = %.6g, λ = %.6g",
            a->gamma_k_positive, a->gamma_rate_positive, a->gamma_k_negative,
            a->gamma_rate_negative);
  }
}

/* Writes DPPO's masks and DCPO's bounds, which depend on the token's probability, and ASPO's
 * reciprocal ratio. */
static void write_by_token(formulas *f, const char *u, const char *term) {
  const policy_algorithm *a = f->a;
  char *capped = isfinite(a->cap) ? must_textf("a formula", "min(%s, %.6g)", u, a->cap)
                                  : must_copy(u, "a formula");
  if (a->clip == CLIP_BINARY_TV) {
    formula(f, "%s = A_i %s,  0 where p − q > %.6g (A_i > 0) or q − p > %.6g (A_i < 0)", term,
            capped, a->eps_high, a->eps_low);
  }
  if (a->clip == CLIP_BINARY_KL) {
    formula(f,
            "%s = A_i %s,  0 where KL(Bernoulli(q) ‖ Bernoulli(p)) > %.6g (A_i > 0, p > "
            "q) or > %.6g (A_i < 0, p < q)",
            term, capped, a->eps_high, a->eps_low);
  }
  if (a->clip == CLIP_PROBABILITY) {
    formula(f,
            "%s = min(A_i %s, A_i clip(%s, ½ + ½ √max(0, 1 − %.6g/q), min(½ + ½ √(1 + %.6g/q), "
            "%.6g)))",
            term, u, u, 4 * a->eps_low, 4 * a->eps_high, a->cap);
  }
  if (a->clip == CLIP_RECIPROCAL) {
    formula(f, "%s = A_i min(1/%s, %.6g) where A_i > 0 (0 above %.6g)", term, u, a->dual_clip,
            1 + a->eps_high);
    formula(f, "%s = A_i min(%s, %.6g) where A_i < 0 (0 below %.6g)", term, u, a->dual_clip,
            fmax(0, 1 - a->eps_low));
  }
  free(capped);
}

static void write_clip(formulas *f, const char *u, const char *term) {
  const policy_algorithm *a = f->a;
  switch (a->clip) {
  case CLIP_NONE:
    formula(f, a->ratio == RATIO_NONE ? "%s = A_i" : "%s = A_i %s", term, u);
    return;
  case CLIP_PPO:
    write_two_sided(f, u, term);
    return;
  case CLIP_CAP:
    formula(f, "%s = A_i min(%s, %.6g)", term, u, a->cap);
    return;
  case CLIP_CLAMP:
    formula(f, "%s = A_i clip(%s, %.6g, %.6g)", term, u, fmax(0, 1 - a->eps_low), 1 + a->eps_high);
    return;
  case CLIP_SIGNED_CLAMP:
    formula(f, "%s = A_i clip(%s, %.6g, %.6g) where A_i ≥ 0, else A_i clip(%s, %.6g, %.6g)", term,
            u, a->positive_low, a->positive_high, u, a->negative_low, a->negative_high);
    return;
  case CLIP_BINARY_TV:
  case CLIP_BINARY_KL:
  case CLIP_PROBABILITY:
  case CLIP_RECIPROCAL:
    write_by_token(f, u, term);
    return;
  case CLIP_PPO_POWER:
  case CLIP_TOKEN_LOG:
  case CLIP_SECOND_MOMENT:
  case CLIP_SIGMOID:
  case CLIP_TANH_HAZARD:
  case CLIP_GAMMA:
    write_shaped(f, u, term);
    return;
  }
}

/* --- loss --- */

/* Writes the definitions of factors of a token's term that have no gradient (truncated correction,
 * mask), and returns their names. They follow the clip. */
static const char *write_factors(formulas *f) {
  const policy_algorithm *a = f->a;
  const char *l0 =
      a->correction_of == CORRECTION_LEARNER ? "lp[i,t] − lq[i,t]" : "lx[i,t] − lq[i,t]";
  const bool truncated = a->tis_level == LEVEL_TOKEN, masked = a->mis_level == MASK_LEVEL_TOKEN;
  if (truncated && a->tis_min > 0)
    formula(f, "b[i,t] = sg(clip(exp(%s), %.6g, %.6g))", l0, a->tis_min, a->tis_max);
  else if (truncated && isfinite(a->tis_max))
    formula(f, "b[i,t] = sg(min(exp(%s), %.6g))", l0, a->tis_max);
  else if (truncated)
    formula(f, "b[i,t] = sg(exp(%s))", l0);
  if (masked && a->mis_test == MIS_RATIO)
    formula(f, "m[i,t] = 1 where %.6g ≤ exp(%s) ≤ %.6g, else 0", a->mis_min, l0, a->mis_max);
  else if (masked && a->mis_test == MIS_TV)
    formula(f, "m[i,t] = 1 where |p − q| ≤ %.6g, else 0", a->mis_max);
  else if (masked)
    formula(f, "m[i,t] = 1 where the %s of %s is at most %.6g, else 0",
            a->mis_test == MIS_K1   ? "k1"
            : a->mis_test == MIS_K2 ? "k2"
                                    : "k3",
            l0, a->mis_max);
  return truncated && masked ? "b[i,t] m[i,t] " : truncated ? "b[i,t] " : masked ? "m[i,t] " : "";
}

/* Returns the formula of the batch average. each: formula of a token's term; whole: formula of its
 * sum over a response's tokens. */
static char *averaged(const policy_algorithm *a, const char *each, const char *whole) {
  if (a->aggregate == AGGREGATE_SEQUENCE_MEAN && strcmp(whole, "f_i") == 0)
    return must_copy("mean_i f_i", "a formula");
  const double alpha = a->length_power;
  switch (a->aggregate) {
  case AGGREGATE_SEQUENCE_SUM:
    return must_textf("a formula", "mean_i %s", whole);
  case AGGREGATE_SEQUENCE_MEAN:
    return must_textf("a formula", "mean_i (1/T_i) %s", whole);
  case AGGREGATE_TOKEN_MEAN:
    return must_textf("a formula", "Σ_{i,t} %s / Σ_i T_i", each);
  case AGGREGATE_GROUP_TOKEN_MEAN:
    return must_textf("a formula", "mean over groups of Σ_{i,t} %s / Σ_i T_i", each);
  case AGGREGATE_FIXED_LENGTH:
    return must_textf("a formula", "mean_i (1/L) %s", whole);
  case AGGREGATE_LENGTH_POWER:
    return must_textf("a formula", "Σ_i T_i^{−%.6g} %s / (max_j T_j Σ_j T_j^{−%.6g})", alpha, whole,
                      alpha);
  case AGGREGATE_TOKEN_SUM:
    return must_textf("a formula", "Σ_{i,t} %s", each);
  }
  return must_copy("", "a formula");
}

static void write_loss(formulas *f) {
  static const char *const of_sampler[] = {[KL_CPPO] = "exp(lq − lp) − lq + lp − 1",
                                           [KL_K1] = "lq − lp",
                                           [KL_K2] = "(lp − lq)²/2",
                                           [KL_K3] = "exp(lp − lq) − lp + lq − 1",
                                           [KL_ABS] = "|lp − lq|"};
  const policy_algorithm *a = f->a;
  const policy_ratio_info *about = policy_ratio_about(a->ratio);
  const bool of_response = about->unit == RATIO_OF_RESPONSE && a->ratio != RATIO_SEQUENCE_TOKEN &&
                           a->ratio != RATIO_NONE;
  const bool token_log = a->clip == CLIP_TOKEN_LOG || a->clip == CLIP_GAMMA;
  const char *u = of_response ? "u_i" : "u[i,t]";
  const char *term = of_response || token_log || a->ratio == RATIO_NONE ? "f_i" : "f[i,t]";
  write_clip(f, u, term);
  const char *factors = write_factors(f);
  char *each, *whole;
  if (!a->ratio_gradient) {
    each = must_textf("a formula", "sg(%s) %slp[i,t]", term, factors);
    whole = must_textf("a formula", "Σ_t %s", each);
  } else if (strcmp(term, "f_i") == 0 && factors[0] == '\0') {
    const bool once =
        a->aggregate == AGGREGATE_SEQUENCE_SUM || a->aggregate == AGGREGATE_SEQUENCE_MEAN;
    each = must_copy("f_i", "a formula");
    whole = must_copy(once ? "f_i" : "T_i f_i", "a formula");
  } else {
    each = must_textf("a formula", "%s%s", factors, term);
    whole = must_textf("a formula", "Σ_t %s", each);
  }
  char *average = averaged(a, each, whole);
  if (a->kl_coef > 0)
    formula(f, "loss = −%s + %.6g mean(%s)", average, a->kl_coef, of_sampler[a->kl_form]);
  else
    formula(f, "loss = −%s", average);
  free(average);
  free(each);
  free(whole);
}

static void write_disco(formulas *f) {
  const policy_algorithm *a = f->a;
  if (a->ratio == RATIO_TOKEN) write_log_ratio(f);
  formula(f,
          a->ratio == RATIO_TOKEN ? "h_i = (1/T_i) Σ_t exp(l[i,t])" : "h_i = (1/T_i) Σ_t lp[i,t]");
  if (a->negatives == NEGATIVES_MEAN)
    formula(f, "objective = mean_{R} h − mean_{W} h");
  else
    formula(f, "objective = mean_{R} h − %.6g log mean_{W} exp(h/%.6g)", a->disco_tau,
            a->disco_tau);
  formula(f, "  with R and W the right and wrong responses to a question");
  formula(f, "penalty %.6g max(0, K − %.6g)²/2,  K = mean of lq − lp over tokens", a->penalty,
          a->penalty_margin);
}

/* REAL's loss of a question, methods §4.55. */
static void write_real(formulas *f) {
  const double tau = f->a->disco_tau;
  write_log_ratio(f);
  formula(f, "s_i = (1/T_i) Σ_t l[i,t]");
  formula(f, "loss = mean over groups of log(1 + Σ_{W} exp(s/%.6g)) + log(1 + Σ_{R} exp(−s/%.6g))",
          tau, tau);
  formula(
      f,
      "  with R and W the right and wrong responses to a question; 0 where one of them is empty");
}

/* Fields whose effect the formulas contain. */
static bool is_in_formula(const policy_algorithm *a, const char *field) {
  static const char *const always[] = {"objective",
                                       "baseline",
                                       "baseline_value",
                                       "baseline_temperature",
                                       "scale",
                                       "scale_eps",
                                       "ratio",
                                       "log_prob",
                                       "ratio_gradient",
                                       "old_policy",
                                       "denominator",
                                       "mixture",
                                       "token_log_clamp",
                                       "log_floor",
                                       "log_cap",
                                       "clip",
                                       "eps_low",
                                       "eps_high",
                                       "cap",
                                       "clip_power",
                                       "keep_low",
                                       "keep_high",
                                       "positive_low",
                                       "positive_high",
                                       "negative_low",
                                       "negative_high",
                                       "tau_positive",
                                       "tau_negative",
                                       "aggregate",
                                       "length_power",
                                       "kl_coef",
                                       "kl_form",
                                       "correction_of",
                                       "reward_kl_coef",
                                       "reward_kl_of",
                                       "negatives",
                                       "disco_tau",
                                       "penalty",
                                       "penalty_margin",
                                       "rho_bar",
                                       "c_bar",
                                       "dual_clip",
                                       "std_ddof"};
  for (size_t i = 0; i < sizeof always / sizeof *always; ++i)
    if (strcmp(always[i], field) == 0)
      return strcmp(field, "dual_clip") != 0 || a->clip != CLIP_PPO_POWER;
  if (strncmp(field, "m2_", 3) == 0) return a->clip == CLIP_SECOND_MOMENT;
  if (strncmp(field, "tis_", 4) == 0) return a->tis_level == LEVEL_TOKEN && !a->tis_normalise;
  if (strcmp(field, "mis_level") == 0 || strcmp(field, "mis_test") == 0 ||
      strcmp(field, "mis_min") == 0 || strcmp(field, "mis_max") == 0)
    return a->mis_level == MASK_LEVEL_TOKEN;
  return false;
}

char *formula_lines(const policy_algorithm *algorithm, const policy_algorithm *plain) {
  char *text = NULL;
  size_t size = 0, n_besides = 0;
  formulas f = {.to = must_have(open_memstream(&text, &size), "formulas"), .a = algorithm};
  switch (algorithm->objective) {
  case OBJECTIVE_DISCO:
    write_disco(&f);
    break;
  case OBJECTIVE_REAL:
    write_real(&f);
    break;
  case OBJECTIVE_POLICY_GRADIENT:
    write_advantage(&f);
    write_ratio(&f);
    write_loss(&f);
    break;
  }
  for (size_t i = 0; i < policy_fields_count(); ++i) {
    char own[POLICY_FIELD_TEXT_SIZE], other[POLICY_FIELD_TEXT_SIZE];
    const char *name = policy_fields_at(i)->name;
    const char *value = policy_algorithm_field(algorithm, i, own);
    if (is_in_formula(algorithm, name) ||
        strcmp(value, policy_algorithm_field(plain, i, other)) == 0)
      continue;
    fprintf(f.to, "%s%s: %s", n_besides++ == 0 ? "besides: " : "; ", name, value);
  }
  if (n_besides > 0) fputc('\n', f.to);
  must_succeed(fclose(f.to) == 0, "formulas");
  return text;
}
