/* Writes an algorithm as ten lines of PyTorch. What the lines cannot say is named below them, so
 * that nobody takes them for the whole. */
#include "experiments/policy/torch_lines.h"

#include "experiments/base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct torch {
  FILE *to;
  const policy_algorithm *a;
  const char *without[32]; /* fields that the lines do not follow */
  size_t n_without;
} torch;

static void torch_line(torch *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void torch_line(torch *t, const char *format, ...) {
  va_list arguments;
  fputs("    ", t->to);
  va_start(arguments, format);
  vfprintf(t->to, format, arguments);
  va_end(arguments);
  fputc('\n', t->to);
}

static void torch_without(torch *t, const char *field) {
  for (size_t i = 0; i < t->n_without; ++i)
    if (strcmp(t->without[i], field) == 0) return;
  if (t->n_without < sizeof t->without / sizeof *t->without) t->without[t->n_without++] = field;
}

/* --- advantages --- */

static void torch_baseline(torch *t) {
  const double value = t->a->baseline_value;
  switch (t->a->baseline) {
  case BASELINE_NONE:
    torch_line(t, "A = r");
    return;
  case BASELINE_CONSTANT:
    torch_line(t, "A = r - %.10g", value);
    return;
  case BASELINE_GROUP_MEAN:
    torch_line(t, "A = r - r.mean(1, keepdim=True)");
    break;
  case BASELINE_LEAVE_ONE_OUT:
    torch_line(t, "A = (r - r.mean(1, keepdim=True)) * r.shape[1] / (r.shape[1] - 1)");
    break;
  case BASELINE_LENGTH_WEIGHTED:
    torch_line(t, "T = mask.sum(1).view(n_groups, -1)");
    torch_line(t, "A = r - (T * r).sum(1, keepdim=True) / T.sum(1, keepdim=True)");
    break;
  case BASELINE_OFF_POLICY:
    torch_line(t,
               "w = 2 * ((logp - logq) * mask).sum(1).detach() + mask.sum(1).to(logp.dtype).log()");
    torch_line(t, "w = torch.softmax(w.view(n_groups, -1), 1)");
    torch_line(t, "A = r - (w * r).sum(1, keepdim=True)");
    break;
  case BASELINE_SOFT_MAXIMUM:
    torch_line(
        t, "V = %.10g * torch.exp(rewards.view(n_groups, -1) / %.10g).mean(1, keepdim=True).log()",
        t->a->baseline_temperature, t->a->baseline_temperature);
    torch_line(t, "A = r - V");
    return;
  case BASELINE_RUNNER_UP:
    torch_line(t, "A = torch.zeros_like(r)");
    torch_without(t, "baseline");
    return;
  }
  if (value != 0) torch_line(t, "A = A - (%.10g)", value);
}

static void torch_scale(torch *t) {
  const policy_algorithm *a = t->a;
  const char *unbiased = a->std_ddof == 1 ? "" : ", correction=0";
  switch (a->scale) {
  case SCALE_NONE:
    return;
  case SCALE_GROUP_STD:
    torch_line(t, "A = A / (r.std(1, keepdim=True%s) + %.10g)", unbiased, a->scale_eps);
    return;
  case SCALE_GROUP_MEAN:
    torch_line(t, "A = A / (r.mean(1, keepdim=True) + %.10g)", a->scale_eps);
    return;
  case SCALE_REWARD_STD:
    torch_line(t, "A = A / (rewards.std() + %.10g)", a->scale_eps);
    return;
  case SCALE_NONZERO_SHARE:
    torch_line(t, "A = A * rewards.numel() / (rewards != 0).sum().clamp(min=1)");
    return;
  case SCALE_BATCH_STD:
    torch_line(t, "A = (A - A.mean()) / (A.std() + %.10g)", a->scale_eps);
    return;
  case SCALE_TOKEN_STD:
    torch_line(t, "each = A.reshape(-1, 1).expand_as(mask)[mask]");
    torch_line(t, "A = (A - each.mean()) / (each.var() + %.10g).sqrt()", a->scale_eps);
    return;
  case SCALE_BETA:
    torch_without(t, "scale");
    return;
  }
}

static void torch_advantages(torch *t) {
  const policy_algorithm *a = t->a;
  torch_line(t, "r = rewards.view(n_groups, -1)");
  if (a->reward_kl_coef > 0 && a->reward_kl_of == REWARD_KL_SAMPLER)
    torch_line(t, "r = r - %.10g * ((logp - logq) * mask).sum(1).detach().view(n_groups, -1)",
               a->reward_kl_coef);
  else if (a->reward_kl_coef > 0)
    torch_without(t, "reward_kl_of");
  torch_baseline(t);
  torch_scale(t);
  torch_line(t, "A = A.reshape(-1, 1)");
  if (a->drop_equal) torch_without(t, "drop_equal");
}

/* --- ratios --- */

static void torch_expectation(torch *t) {
  const char *mean = t->a->log_prob == LOG_PROB_MEAN ? " / mask.sum(1)" : "";
  if (t->a->denominator != DENOMINATOR_SELF_NORMALISED || t->a->group_scope != SCOPE_PROMPT)
    torch_without(t, "denominator");
  if (t->a->kappa > 0) torch_without(t, "kappa");
  torch_line(t, "P = (logp * mask).sum(1)%s", mean);
  torch_line(t, "Q = ((logq * mask).sum(1)%s).view(n_groups, -1)", mean);
  torch_line(t, "D = torch.logsumexp(2 * Q, 1) - torch.logsumexp(Q, 1)   # log of sum Q^2 / sum Q");
  torch_line(t, "x = (P.view(n_groups, -1) - D[:, None]).reshape(-1, 1)");
}

static void torch_ratio(torch *t) {
  const policy_algorithm *a = t->a;
  const char *mean = a->log_prob == LOG_PROB_MEAN ? " / mask.sum(1, keepdim=True)" : "";
  if (a->old_policy == OLD_INTERPOLATED) torch_without(t, "old_policy");
  if (a->proximal_decay > 0) torch_without(t, "proximal_decay");
  const char *old = a->old_policy == OLD_PROXIMAL ? "logp.detach()" : "logq";
  if (a->old_policy == OLD_PROXIMAL)
    torch_line(t, "# the first update of a batch: the proximal policy is the learner");
  if (isinf(a->token_log_clamp))
    torch_line(t, "l = (logp - %s) * mask", old);
  else
    torch_line(t, "l = (logp - %s).clamp(-%.10g, %.10g) * mask", old, a->token_log_clamp,
               a->token_log_clamp);
  switch (a->ratio) {
  case RATIO_NONE:
    torch_line(t, "x = 0 * l");
    break;
  case RATIO_TOKEN:
    torch_line(t, "x = l");
    break;
  case RATIO_SEQUENCE:
    torch_line(t, "x = l.sum(1, keepdim=True)%s", mean);
    break;
  case RATIO_SEQUENCE_TOKEN:
    torch_line(t, "x = (l.sum(1, keepdim=True)%s).detach() + l - l.detach()", mean);
    break;
  case RATIO_PREFIX:
    torch_line(t, "x = l.cumsum(1).detach() + l - l.detach()");
    break;
  case RATIO_GROUP_EXPECTATION:
    torch_expectation(t);
    break;
  case RATIO_SELF_NORMALISED:
    if (a->group_scope != SCOPE_PROMPT) torch_without(t, "group_scope");
    torch_line(t, "x = l.sum(1, keepdim=True)%s", mean);
    torch_line(t,
               "x = x - torch.exp(x.view(n_groups, -1)).mean(1).log().repeat_interleave(r.shape[1])"
               ".detach()[:, None]");
    break;
  case RATIO_MIXTURE:
    torch_line(t, "x = l.sum(1, keepdim=True)%s", mean);
    torch_line(t, "x = -torch.log(%.10g + %.10g * torch.exp(-x))", a->mixture, 1 - a->mixture);
    break;
  case RATIO_TOKEN_MIXTURE:
  case RATIO_VTRACE:
  case RATIO_GROUP_MEAN:
    torch_line(t, "x = l");
    torch_without(t, "ratio");
    break;
  }
  if (a->ratio != RATIO_PREFIX && policy_ratio_about(a->ratio)->unit == RATIO_OF_TOKEN) return;
  if (!isinf(a->log_floor)) torch_line(t, "x = x.clamp(min=%.10g)", a->log_floor);
  if (!isinf(a->log_cap)) torch_line(t, "x = x.clamp(max=%.10g)", a->log_cap);
}

/* --- clips --- */

static void torch_ppo(torch *t) {
  const policy_algorithm *a = t->a;
  if (!isinf(a->dual_clip))
    torch_line(t, "v = torch.where(A < 0, u.clamp(max=%.10g), u)", a->dual_clip);
  else
    torch_line(t, "v = u");
  if (a->keep_low == 1 && a->keep_high == 1) {
    torch_line(
        t, "f = torch.where(A < 0, v.clamp(min=%.10g), torch.where(A > 0, v.clamp(max=%.10g), v))",
        fmax(0, 1 - a->eps_low), 1 + a->eps_high);
    return;
  }
  torch_line(t, "low, high = (A < 0) & (v < %.10g), (A > 0) & (v > %.10g)", 1 - a->eps_low,
             1 + a->eps_high);
  torch_line(t, "f = torch.where(low, %.10g, torch.where(high, %.10g, v))",
             a->keep_low * (1 - a->eps_low), a->keep_high * (1 + a->eps_high));
}

static void torch_smooth(torch *t) {
  const policy_algorithm *a = t->a;
  if (a->clip == CLIP_SIGMOID) {
    torch_line(t, "tau = torch.where(A > 0, %.10g, %.10g)", a->tau_positive, a->tau_negative);
    torch_line(t, "f = torch.sigmoid(tau * (u - 1)) * 4 / tau");
    return;
  }
  if (a->clip == CLIP_GAMMA) {
    torch_line(t, "k = torch.where(A >= 0, %.10g, %.10g)", a->gamma_k_positive,
               a->gamma_k_negative);
    torch_line(t, "rate = torch.where(A >= 0, %.10g, %.10g)", a->gamma_rate_positive,
               a->gamma_rate_negative);
    torch_line(t, "f = torch.exp(rate + k * x - rate * u)");
    return;
  }
  torch_line(t, "psi = %.10g * torch.tanh(x / %.10g)", a->tanh_scale, a->tanh_scale);
  torch_line(t, "zeta = (softplus(psi) / %.10g) ** %.10g + (softplus(-psi) / %.10g) ** %.10g",
             a->hazard_width_up, a->hazard_power_up, a->hazard_width_down, a->hazard_power_down);
  torch_line(t, "f = torch.exp(psi - zeta.detach())");
}

/* DPPO's masks, and DCPO's and ASPO's bounds. */
static void torch_by_token(torch *t) {
  const policy_algorithm *a = t->a;
  if (a->clip == CLIP_BINARY_TV) {
    torch_line(t, "d = (torch.exp(logp) - torch.exp(logq)).detach()");
    torch_line(t, "near = torch.where(A > 0, d <= %.10g, d >= -%.10g)", a->eps_high, a->eps_low);
    torch_line(t, isinf(a->cap) ? "f = u * near" : "f = u.clamp(max=%.10g) * near", a->cap);
  } else if (a->clip == CLIP_BINARY_KL) {
    torch_line(t, "p, q = torch.exp(logp).detach(), torch.exp(logq)");
    torch_line(
        t,
        "kl = q * (logq - logp.detach()) + (1 - q) * torch.log((1 - q + 1e-8) / (1 - p + 1e-8))");
    torch_line(t, "near = torch.where(A > 0, (kl <= %.10g) | (p <= q), (kl <= %.10g) | (p >= q))",
               a->eps_high, a->eps_low);
    torch_line(t, isinf(a->cap) ? "f = u * near" : "f = u.clamp(max=%.10g) * near", a->cap);
  } else if (a->clip == CLIP_PROBABILITY) {
    torch_line(t, "q = torch.exp(logq)");
    torch_line(t, "low = (1 + (1 - 4 * %.10g / q).clamp(min=0).sqrt()) / 2", a->eps_low);
    torch_line(t, "high = ((1 + (1 + 4 * %.10g / q).sqrt()) / 2).clamp(max=%.10g)", a->eps_high,
               fmin(a->cap, 1e300));
    torch_line(t, "v = torch.where(A < 0, u.clamp(max=%.10g), u)", fmin(a->dual_clip, 1e300));
    torch_line(t, "f = torch.where(A < 0, torch.maximum(v, low), torch.minimum(v, high))");
  } else {
    torch_line(t, "right = torch.where(u > %.10g, 0.0, (1 / u).clamp(max=%.10g))", 1 + a->eps_high,
               fmin(a->dual_clip, 1e300));
    torch_line(t, "wrong = torch.where(u < %.10g, 0.0, u.clamp(max=%.10g))", 1 - a->eps_low,
               fmin(a->dual_clip, 1e300));
    torch_line(t, "f = torch.where(A > 0, right, wrong)");
  }
}

static void torch_clip(torch *t) {
  const policy_algorithm *a = t->a;
  torch_line(t, "u = torch.exp(x)");
  switch (a->clip) {
  case CLIP_NONE:
    torch_line(t, "f = u");
    break;
  case CLIP_PPO:
    torch_ppo(t);
    break;
  case CLIP_CAP:
    torch_line(t, "f = u.clamp(max=%.10g)", a->cap);
    break;
  case CLIP_CLAMP:
    torch_line(t, "f = u.clamp(%.10g, %.10g)", 1 - a->eps_low, 1 + a->eps_high);
    break;
  case CLIP_SIGNED_CLAMP:
    torch_line(t, "f = torch.where(A >= 0, u.clamp(%.10g, %.10g), u.clamp(%.10g, %.10g))",
               a->positive_low, a->positive_high, a->negative_low, a->negative_high);
    break;
  case CLIP_TOKEN_LOG:
    torch_line(t, "k = torch.where(A >= 0, l.clamp(max=%.10g), l.clamp(min=-%.10g))", a->eps_high,
               a->eps_low);
    torch_line(t, "f = torch.exp((k * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True))");
    break;
  case CLIP_PPO_POWER:
    torch_line(t, "t = torch.arange(1, x.shape[1] + 1, dtype=logp.dtype) ** %.10g", a->clip_power);
    torch_line(t,
               "f = torch.exp(torch.where(A < 0, torch.maximum(x, -%.10g * t), torch.minimum(x, "
               "%.10g * t)))",
               a->eps_low, a->eps_high);
    if (!isinf(a->dual_clip)) torch_without(t, "dual_clip");
    break;
  case CLIP_SIGMOID:
  case CLIP_TANH_HAZARD:
  case CLIP_GAMMA:
    torch_smooth(t);
    break;
  case CLIP_BINARY_TV:
  case CLIP_BINARY_KL:
  case CLIP_PROBABILITY:
  case CLIP_RECIPROCAL:
    torch_by_token(t);
    break;
  case CLIP_SECOND_MOMENT:
    torch_line(t, "f = u");
    torch_without(t, "clip");
    break;
  }
  if (a->token_mask) torch_without(t, "token_mask");
  if (a->balance > 0) torch_without(t, "balance");
}

/* --- weights, averages, divergences --- */

static void torch_mis(torch *t) {
  const policy_algorithm *a = t->a;
  if (a->mis_level == MASK_LEVEL_NONE) return;
  if (a->mask_denominator == MASK_KEPT) torch_without(t, "mask_denominator");
  if (a->correction_of != CORRECTION_LEARNER)
    torch_line(t, "# at the first update: logprox = logp");
  torch_line(t, "l0 = (logp - logq).detach()");
  if (a->mis_level == MASK_LEVEL_TOKEN && a->mis_test == MIS_TV) {
    torch_line(t, "keep = (torch.exp(logp) - torch.exp(logq)).abs().detach() <= %.10g", a->mis_max);
  } else if (a->mis_level == MASK_LEVEL_TOKEN && a->mis_test == MIS_RATIO) {
    torch_line(t, "b = torch.exp(l0)");
    torch_line(t, "keep = (b >= %.10g) & (b <= %.10g)", a->mis_min, fmin(a->mis_max, 1e300));
    if (a->mis_free_low > 0)
      torch_line(t, "keep = keep | (A >= 0) & (b <= %.10g)", a->mis_free_low);
    if (!isinf(a->mis_free_high))
      torch_line(t, "keep = keep | (A <= 0) & (b >= %.10g)", a->mis_free_high);
  } else if (a->mis_level == MASK_LEVEL_SEQUENCE_MAX && a->mis_test == MIS_K3) {
    torch_line(t, "k3 = (torch.exp(l0) - 1 - l0) * mask");
    torch_line(t, "keep = k3.max(1, keepdim=True).values <= %.10g", a->mis_max);
  } else {
    torch_line(t, "keep = True");
    torch_without(t, "mis_level");
  }
  torch_line(t, "term = term * keep");
}

static void torch_tis(torch *t) {
  const policy_algorithm *a = t->a;
  if (a->tis_level == LEVEL_NONE || a->clip == CLIP_GAMMA) return;
  if (a->tis_level == LEVEL_TOKEN && isinf(a->tis_log_clamp) && !a->tis_normalise) {
    torch_line(t, "weight = torch.exp(logp - logq).detach()");
    if (!isinf(a->tis_max)) torch_line(t, "weight = weight.clamp(max=%.10g)", a->tis_max);
    if (a->tis_min > 0) torch_line(t, "weight = weight.clamp(min=%.10g)", a->tis_min);
    torch_line(t, "term = term * weight");
    return;
  }
  torch_without(t, "tis_level");
}

static void torch_masks(torch *t) {
  const policy_algorithm *a = t->a;
  torch_tis(t);
  torch_mis(t);
  if (a->mis2_level != MASK_LEVEL_NONE) torch_without(t, "mis2_level");
  if (!isinf(a->off_policy_mask)) {
    torch_line(
        t,
        "far = (((logq - logp) * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)).detach()");
    torch_line(t, "term = term * ~((A < 0) & (far > %.10g))", a->off_policy_mask);
  }
  if (a->top_entropy < 1) torch_without(t, "top_entropy");
  if (policy_has_entropy_ratio(a)) torch_without(t, "entropy_ratio_high");
  if (a->gate.negative_below > 0) torch_without(t, "gate.negative_below");
  if (!isinf(a->gate.negative_above)) torch_without(t, "gate.negative_above");
  if (!isinf(a->gate.positive_above)) torch_without(t, "gate.positive_above");
}

/* The average of an expression `what` [N, T] (or [N, 1]) over the batch. */
static void torch_average(torch *t, const char *what, char text[256]) {
  enum { SIZE = 256 };
  switch (t->a->aggregate) {
  case AGGREGATE_SEQUENCE_SUM:
    snprintf(text, SIZE, "(%s * mask).sum(1).mean()", what);
    return;
  case AGGREGATE_SEQUENCE_MEAN:
    snprintf(text, SIZE, "((%s * mask).sum(1) / mask.sum(1)).mean()", what);
    return;
  case AGGREGATE_TOKEN_MEAN:
    snprintf(text, SIZE, "(%s * mask).sum() / mask.sum()", what);
    return;
  case AGGREGATE_GROUP_TOKEN_MEAN:
    snprintf(text, SIZE,
             "((%s * mask).sum(1).view(n_groups, -1).sum(1) / mask.sum(1).view(n_groups, -1)"
             ".sum(1)).mean()",
             what);
    return;
  case AGGREGATE_FIXED_LENGTH:
    snprintf(text, SIZE, "(%s * mask).sum(1).mean() / mask.shape[1]", what);
    return;
  case AGGREGATE_LENGTH_POWER:
    snprintf(text, SIZE,
             "((%s * mask).sum(1) * n ** -%.10g).sum() / (n.max() * (n ** -%.10g).sum())", what,
             t->a->length_power, t->a->length_power);
    return;
  case AGGREGATE_TOKEN_SUM:
    snprintf(text, SIZE, "(%s * mask).sum()", what);
    return;
  }
  text[0] = '\0';
}

static void torch_return(torch *t) {
  static const char *const kl[] = {[KL_CPPO] = "torch.exp(q_p) - q_p - 1",
                                   [KL_K1] = "q_p",
                                   [KL_K2] = "q_p ** 2 / 2",
                                   [KL_K3] = "torch.exp(-q_p) + q_p - 1",
                                   [KL_ABS] = "q_p.abs()"};
  const policy_algorithm *a = t->a;
  char average[256], divergence[256];
  if (a->aggregate == AGGREGATE_LENGTH_POWER) torch_line(t, "n = mask.sum(1).to(logp.dtype)");
  const int once = a->aggregate == AGGREGATE_SEQUENCE_SUM && a->ratio_gradient &&
                   policy_ratio_about(a->ratio)->gradient == RATIO_GRADIENT_RESPONSE;
  if (once)
    snprintf(average, sizeof average, "term.mean()");
  else
    torch_average(t, "term", average);
  if (a->ref_kl_coef > 0) torch_without(t, "ref_kl_coef");
  if (a->kl_coef == 0) {
    torch_line(t, "return -%s", average);
    return;
  }
  if (a->kl_share < 1) torch_without(t, "kl_share");
  torch_line(t, "q_p = logq - logp");
  torch_line(t, "kl = %s", kl[a->kl_form]);
  torch_average(t, "kl", divergence);
  torch_line(t, "return -%s + %.10g * %s", average, a->kl_coef, divergence);
}

char *torch_lines(const policy_algorithm *algorithm) {
  char *text = NULL;
  size_t size = 0;
  torch t = {.to = must_have(open_memstream(&text, &size), "lines of PyTorch"), .a = algorithm};
  fputs("def loss(logp, logq, rewards, mask, n_groups):   # [N, T], [N]; mask is a bool tensor\n",
        t.to);
  if (algorithm->objective != OBJECTIVE_POLICY_GRADIENT) {
    torch_line(&t, "raise NotImplementedError");
    torch_without(&t, "objective");
  } else {
    torch_advantages(&t);
    torch_ratio(&t);
    torch_clip(&t);
    torch_line(&t, algorithm->ratio_gradient ? "term = f * A" : "term = f.detach() * A * logp");
    torch_masks(&t);
    torch_return(&t);
  }
  for (size_t i = 0; i < t.n_without; ++i)
    for (size_t f = 0; f < policy_fields_count(); ++f) {
      char value[POLICY_FIELD_TEXT_SIZE];
      if (strcmp(policy_fields_at(f)->name, t.without[i]) != 0) continue;
      torch_line(&t, "# without %s: %s", t.without[i], policy_algorithm_field(algorithm, f, value));
    }
  must_succeed(fclose(t.to) == 0, "lines of PyTorch");
  if (strstr(text, "inf") == NULL && strstr(text, "softplus") == NULL) return text;
  char *whole = NULL;
  FILE *to = must_have(open_memstream(&whole, &size), "lines of PyTorch");
  if (strstr(text, "inf") != NULL) fputs("from math import inf\n", to);
  if (strstr(text, "softplus") != NULL) fputs("from torch.nn.functional import softplus\n", to);
  fprintf(to, "\n%s", text);
  must_succeed(fclose(to) == 0, "lines of PyTorch");
  free(text);
  return whole;
}
