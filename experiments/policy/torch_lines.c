/* Writes an algorithm as a loss in PyTorch, whose autograd gives the algorithm's coefficients.
 * Lines are written for the algorithm's own fields only, in the order of policy_evaluate():
 * advantages, factors and masks, ratio, clip, averages and divergences. */
#include "experiments/policy/torch_lines.h"

#include "experiments/base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The algorithm and the state of printing. Names in the printed function: A advantage, l log-ratio
 * of a token, x log of the importance ratio, u = exp(x), f clipped ratio. */
typedef struct torch {
  FILE *to;
  const policy_algorithm *a;
  bool kept; /* the line `whole, mask = …` is written: masked tokens count neither in averages nor
                in ratios */
  const char *old; /* expression of the ratio's denominator */
  const char *m;   /* name of the mask of the tokens in a response's ratio: mask or m */
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

/* A call of .clamp() with the bounds that limit: low if it is above `least`, high if it is finite;
 * else "". */
typedef struct clamp_text {
  char text[96];
} clamp_text;
static clamp_text torch_clamp(double low, double least, double high) {
  clamp_text c = {.text = ""};
  if (low > least && isfinite(high))
    snprintf(c.text, sizeof c.text, ".clamp(%.15g, %.15g)", low, high);
  else if (low > least)
    snprintf(c.text, sizeof c.text, ".clamp(min=%.15g)", low);
  else if (isfinite(high))
    snprintf(c.text, sizeof c.text, ".clamp(max=%.15g)", high);
  return c;
}

/* --- advantages --- */

static void torch_baseline(torch *t) {
  const double value = t->a->baseline_value, temperature = t->a->baseline_temperature;
  switch (t->a->baseline) {
  case BASELINE_NONE:
    torch_line(t, "A = r");
    return;
  case BASELINE_CONSTANT:
    torch_line(t, "A = r - %.15g", value);
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
    torch_line(t, "V = torch.logsumexp(rewards.view(n_groups, -1) / %.15g, 1, keepdim=True)",
               temperature);
    torch_line(t, "A = r - %.15g * (V - log(r.shape[1]))", temperature);
    return;
  case BASELINE_RUNNER_UP:
    torch_line(t, "best = r.topk(2, 1)");
    torch_line(t, "A = torch.zeros_like(r).scatter(1, best.indices[:, :1], best.values[:, :1] - "
                  "best.values[:, 1:])");
    return;
  }
  if (value != 0) torch_line(t, "A = A - (%.15g)", value);
}

/* Divides by BNPO's Beta density at each group's mean reward. */
static void torch_beta(torch *t) {
  torch_line(t, "p = rewards.view(n_groups, -1).mean(1)");
  torch_line(t, "flat = n_groups == 1 or p.var() == 0");
  torch_line(t, "k = 0 * p[0] if flat else p.mean() * (1 - p.mean()) / p.var() - 1");
  torch_line(
      t, "a, b = (1 + k * p.mean() / 3).clamp(min=1), (1 + k * (1 - p.mean()) / 3).clamp(min=1)");
  torch_line(t, "d = torch.xlogy(a - 1, p) + torch.xlogy(b - 1, 1 - p)");
  torch_line(t, "d = torch.exp(d + (a + b).lgamma() - a.lgamma() - b.lgamma())");
  torch_line(t, "A = (r - p[:, None]) / d.clamp(min=1e-6)[:, None]");
}

/* Divides the advantages A by the algorithm's scale. */
static void torch_scale(torch *t) {
  const policy_algorithm *a = t->a;
  const char *rows = a->std_ddof == 1 ? "1, keepdim=True" : "1, keepdim=True, correction=0";
  const char *ddof = a->std_ddof == 1 ? "" : "correction=0";
  switch (a->scale) {
  case SCALE_NONE:
    return;
  case SCALE_GROUP_STD:
    torch_line(t, "A = A / (r.std(%s) + %.15g)", rows, a->scale_eps);
    return;
  case SCALE_GROUP_MEAN:
    torch_line(t, "A = A / (r.mean(1, keepdim=True) + %.15g)", a->scale_eps);
    return;
  case SCALE_REWARD_STD:
    torch_line(t, "A = A / (r.std(%s) + %.15g)", ddof, a->scale_eps);
    return;
  case SCALE_NONZERO_SHARE:
    torch_line(t, "A = A * rewards.numel() / (rewards != 0).sum().clamp(min=1)");
    return;
  case SCALE_BATCH_STD:
    torch_line(t, "own = A%s", a->drop_equal ? "[live]" : "");
    torch_line(t, "A = (A - own.mean()) / (own.std(%s) + %.15g)", ddof, a->scale_eps);
    return;
  case SCALE_TOKEN_STD:
    torch_line(t, "own = A.reshape(-1, 1).expand_as(mask)[mask%s]",
               a->drop_equal ? " & alive" : "");
    torch_line(t, "A = (A - own.mean()) / (own.var(%s) + %.15g).sqrt()", ddof, a->scale_eps);
    return;
  case SCALE_BETA:
    torch_beta(t);
    return;
  }
}

static void torch_advantages(torch *t) {
  const policy_algorithm *a = t->a;
  torch_line(t, "r = rewards.view(n_groups, -1)");
  if (a->drop_equal) {
    torch_line(t, "live = (r != r[:, :1]).any(1)   # groups whose rewards differ");
    torch_line(t, "alive = live.repeat_interleave(r.shape[1])[:, None]");
  }
  if (a->reward_kl_coef > 0)
    torch_line(t, "r = r - %.15g * ((logp - %s) * mask).sum(1).detach().view(n_groups, -1)",
               a->reward_kl_coef, a->reward_kl_of == REWARD_KL_SAMPLER ? "logq" : "logref");
  torch_baseline(t);
  torch_scale(t);
  torch_line(t, "A = A.reshape(-1, 1)%s", a->drop_equal ? " * alive" : "");
}

/* --- factors and masks, constant in theta --- */

static bool torch_corrects(const policy_algorithm *a) {
  return a->tis_level != LEVEL_NONE || a->mis_level != MASK_LEVEL_NONE ||
         a->mis2_level != MASK_LEVEL_NONE;
}

/* Whether a correction compares the proximal policy with the sampler. */
static bool torch_corrects_proximal(const policy_algorithm *a) {
  return torch_corrects(a) && a->correction_of == CORRECTION_PROXIMAL &&
         a->old_policy != OLD_INTERPOLATED;
}

/* Defines weight, the truncated importance-sampling factor of each token or response. */
static void torch_tis(torch *t) {
  const policy_algorithm *a = t->a;
  const clamp_text l = torch_clamp(-a->tis_log_clamp, -INFINITY, a->tis_log_clamp),
                   b = torch_clamp(a->tis_min, 0, a->tis_max);
  switch (a->tis_level) {
  case LEVEL_NONE:
    return;
  case LEVEL_TOKEN:
    torch_line(t, "weight = torch.exp(l0%s)%s", l.text, b.text);
    break;
  case LEVEL_SEQUENCE:
    torch_line(t, "weight = torch.exp((l0 * mask).sum(1, keepdim=True)%s)%s", l.text, b.text);
    break;
  case LEVEL_SEQUENCE_MEAN:
    torch_line(t,
               "weight = torch.exp(((l0 * mask).sum(1, keepdim=True) / mask.sum(1, "
               "keepdim=True))%s)%s",
               l.text, b.text);
    break;
  case LEVEL_TOKEN_GEOMETRIC:
    torch_line(t, "each = torch.where(mask, torch.exp(l0%s)%s, 1.0).log()", l.text, b.text);
    torch_line(t, "weight = torch.exp(each.sum(1, keepdim=True) / mask.sum(1, keepdim=True))");
    break;
  case LEVEL_FUTURE:
    torch_line(t, "F = [0 * l0[:, 0]]   # of this and later tokens");
    torch_line(t,
               "for s, m in zip(reversed((l0 * (l0 <= %.15g)).unbind(1)), "
               "reversed(mask.unbind(1))):",
               fmin(log(a->dual_clip), 1e300));
    torch_line(t, "    F.append(torch.where(m, F[-1] * %.15g + s, F[-1]))",
               exp2(-1 / a->future_half_life));
    torch_line(t, "weight = torch.exp(torch.stack(F[:0:-1], 1)%s)%s", l.text, b.text);
    break;
  }
  if (!a->tis_normalise) return;
  const bool by_token = a->tis_level == LEVEL_TOKEN || a->tis_level == LEVEL_FUTURE;
  torch_line(t, "weight = weight / weight%s.mean()", by_token ? "[mask]" : "");
}

/* One of the tests of fields mis_ and mis2_, of the mismatch between learner and sampler. */
typedef struct torch_test {
  policy_mask_level level;
  policy_mis_test test;
  double min, max;            /* bounds of a ratio, for k1 too; k2, k3 and tv have no lower one */
  double free_low, free_high; /* for MIS_RATIO: ratios beyond these pass by the sign of A */
} torch_test;

/* Defines ok: which tokens or responses pass a test. l0 is their log-ratio, l the same clamped.
 * 1e300 stands for infinity, which Python has no literal of. */
static void torch_mis(torch *t, const torch_test *m) {
  static const char *const statistic[] = {[MIS_RATIO] = "l",
                                          [MIS_K1] = "l",
                                          [MIS_K2] = "l ** 2 / 2",
                                          [MIS_K3] = "torch.expm1(l) - l",
                                          [MIS_TV] =
                                              "(torch.exp(l0 + logq) - torch.exp(logq)).abs()"};
  const clamp_text l = torch_clamp(-t->a->mis_log_clamp, -INFINITY, t->a->mis_log_clamp);
  torch_line(t, "l = l0%s", l.text);
  torch_line(t, "s = %s", statistic[m->test]);
  if (m->level == MASK_LEVEL_SEQUENCE || m->level == MASK_LEVEL_SEQUENCE_MEAN)
    torch_line(t, "s = (s * mask).sum(1, keepdim=True)");
  if (m->level == MASK_LEVEL_SEQUENCE_MEAN) torch_line(t, "s = s / mask.sum(1, keepdim=True)");
  if (m->level == MASK_LEVEL_SEQUENCE_MAX)
    torch_line(t, "s = s.masked_fill(~mask, -torch.inf).max(1, keepdim=True).values");
  switch (m->test) {
  case MIS_RATIO:
    torch_line(t, "ok = (torch.exp(s) >= %.15g) & (torch.exp(s) <= %.15g)", fmin(m->min, 1e300),
               fmin(m->max, 1e300));
    if (m->free_low > 0)
      torch_line(t, "ok = ok | (A >= 0) & (torch.exp(s) <= %.15g)", fmin(m->free_low, 1e300));
    if (!isinf(m->free_high))
      torch_line(t, "ok = ok | (A <= 0) & (torch.exp(s) >= %.15g)", m->free_high);
    break;
  case MIS_K1:
    torch_line(t, "ok = (-s >= %.15g) & (-s <= %.15g)", fmin(fmax(log(m->min), -1e300), 1e300),
               fmin(fmax(log(m->max), -1e300), 1e300));
    break;
  case MIS_K2:
  case MIS_K3:
  case MIS_TV:
    torch_line(t, "ok = s <= %.15g", fmin(m->max, 1e300));
    break;
  }
}

/* Defines l0, the log-ratio that is corrected, then weight (torch_tis) and keep, the mismatch mask.
 */
static void torch_corrections(torch *t) {
  const policy_algorithm *a = t->a;
  const torch_test first = {a->mis_level, a->mis_test,     a->mis_min,
                            a->mis_max,   a->mis_free_low, a->mis_free_high};
  const torch_test second = {a->mis2_level, a->mis2_test, a->mis2_min, a->mis2_max, 0, INFINITY};
  if (!torch_corrects(a)) return;
  if (a->correction_of == CORRECTION_LEARNER)
    torch_line(t, "l0 = (logp - logq).detach()");
  else if (a->old_policy == OLD_INTERPOLATED)
    torch_line(t, "l0 = old - logq");
  else
    torch_line(t, "l0 = ((logp if logprox is None else logprox) - logq).detach()");
  torch_tis(t);
  const bool masks = first.level != MASK_LEVEL_NONE || second.level != MASK_LEVEL_NONE;
  if (first.level != MASK_LEVEL_NONE) {
    torch_mis(t, &first);
    torch_line(t, "keep = ok");
  }
  if (second.level != MASK_LEVEL_NONE) {
    torch_mis(t, &second);
    torch_line(t, first.level != MASK_LEVEL_NONE ? "keep = keep & ok" : "keep = ok");
  }
  if (!masks || a->mask_denominator != MASK_KEPT) return;
  t->kept = true;
  t->m = "m";
  torch_line(t, "whole, mask = mask, mask & keep");
  torch_line(t, "m = torch.where(mask.any(1, keepdim=True), mask, whole)");
}

/* --- ratios --- */

/* Defines same, which pairs of responses are in the same group or micro-batch, and over(v), for
 * each response the log of the sum of exp(v) over its group or micro-batch. */
static void torch_scope(torch *t, policy_scope scope) {
  if (scope == SCOPE_PROMPT)
    torch_line(t, "g = torch.arange(len(A)) // r.shape[1]");
  else
    torch_line(t, "g = torch.arange(len(A)) %% -(-len(A) // %zu)", t->a->microbatch);
  torch_line(t, "same = g[:, None] == g");
  torch_line(t,
             "over = lambda v: torch.where(same, v, torch.full_like(v, -torch.inf)).logsumexp(1)");
}

static void torch_expectation(torch *t, const char *mean) {
  const policy_algorithm *a = t->a;
  torch_scope(t, a->group_scope);
  torch_line(t, "P, Q = (logp * %s).sum(1)%s, (%s * %s).sum(1)%s", t->m, mean, t->old, t->m, mean);
  switch (a->denominator) {
  case DENOMINATOR_SELF_NORMALISED:
    torch_line(t, "D = over(2 * Q) - over(Q)");
    break;
  case DENOMINATOR_MEAN:
    torch_line(t, "D = over(Q) - same.sum(1).to(logp.dtype).log()");
    break;
  case DENOMINATOR_EXACT:
    torch_line(t, "D = log_denominator.repeat_interleave(r.shape[1])");
    break;
  case DENOMINATOR_EXPECTED_P:
    torch_line(t, "D = over(Q + P%s) - over(Q)", a->denominator_gradient ? "" : ".detach()");
    break;
  }
  if (a->kappa > 0) {
    torch_line(t, "c = ((torch.expm1(logq - logp) + logp - logq) * %s).sum(1)",
               t->kept ? "whole" : "mask");
    torch_line(t, "D = torch.where(c / %s.sum(1) < %.15g, Q, D)", t->kept ? "whole" : "mask",
               a->kappa);
  }
  torch_line(t, "x = (P - D)[:, None]");
}

static void torch_vtrace(torch *t) {
  const policy_algorithm *a = t->a;
  const clamp_text rho = torch_clamp(0, 0, log(a->rho_bar)), c = torch_clamp(0, 0, log(a->c_bar));
  const char *all = t->kept ? "whole" : "mask";
  torch_line(t, "last = %s & (%s.cumsum(1) == %s.sum(1, keepdim=True))", all, all, all);
  torch_line(t, "later = torch.where(last, l%s, l%s) * %s", rho.text, c.text, all);
  torch_line(t, "x = l%s + later.flip(1).cumsum(1).flip(1) - later", rho.text);
}

/* Defines old, the denominator's log-probabilities, if they are not the sampler's. */
static void torch_old(torch *t) {
  switch (t->a->old_policy) {
  case OLD_SAMPLER:
    return;
  case OLD_PROXIMAL:
    torch_line(t, t->a->proximal_decay > 0 ? "old = logprox   # of the averaged policy"
                                           : "old = logp.detach() if logprox is None else logprox");
    break;
  case OLD_INTERPOLATED:
    torch_line(t, "old = (logq + (1 - 1 / gap.clamp(min=1)) * (logp - logq)).detach()");
    break;
  }
  t->old = "old";
}

/* Defines x, the log of the importance ratio. mean: text that divides a sum over a response by its
 * length, or "". */
static void torch_ratio_of(torch *t, const char *mean) {
  const policy_algorithm *a = t->a;
  switch (a->ratio) {
  case RATIO_NONE:
    torch_line(t, "x = 0 * l");
    break;
  case RATIO_TOKEN:
    torch_line(t, "x = l");
    break;
  case RATIO_SEQUENCE:
    torch_line(t, "x = ((l * %s).sum(1)%s)[:, None]", t->m, mean);
    break;
  case RATIO_SEQUENCE_TOKEN:
    torch_line(t, "x = ((l * %s).sum(1)%s)[:, None].detach() + l - l.detach()", t->m, mean);
    break;
  case RATIO_PREFIX:
    torch_line(t, "x = l.cumsum(1).detach() + l - l.detach()");
    break;
  case RATIO_GROUP_EXPECTATION:
    torch_expectation(t, mean);
    break;
  case RATIO_SELF_NORMALISED:
  case RATIO_GROUP_MEAN:
    torch_scope(t, a->group_scope);
    torch_line(t, "s = (l * %s).sum(1)%s", t->m, mean);
    torch_line(t, "D = over(s%s) - same.sum(1).to(logp.dtype).log()",
               a->denominator_gradient ? "" : ".detach()");
    torch_line(t, a->ratio == RATIO_GROUP_MEAN ? "x = D[:, None] + l - l.detach()"
                                               : "x = (s - D)[:, None]");
    break;
  case RATIO_MIXTURE:
    torch_line(t, "x = ((l * %s).sum(1)%s)[:, None]", t->m, mean);
    torch_line(t, "x = -torch.log(%.15g + %.15g * torch.exp(-x))", a->mixture, 1 - a->mixture);
    break;
  case RATIO_TOKEN_MIXTURE:
    if (a->mixture_anneal)
      torch_line(t, "w = 1 / (1 + torch.exp(%.15g * (gap - %.15g)))", a->mixture_slope,
                 fmin(a->mixture_midpoint, 1e300));
    else
      torch_line(t, "w = %.15g", a->mixture);
    torch_line(t, "x = -torch.log(w + (1 - w) * torch.exp(-l))");
    break;
  case RATIO_VTRACE:
    torch_vtrace(t);
    break;
  }
}

/* Defines l, the log-ratio of each token, and x, the log of the importance ratio within its bounds.
 */
static void torch_ratio(torch *t) {
  const policy_algorithm *a = t->a;
  char mean[48] = "";
  if (a->log_prob == LOG_PROB_MEAN) snprintf(mean, sizeof mean, " / %s.sum(1)", t->m);
  const clamp_text l = torch_clamp(-a->token_log_clamp, -INFINITY, a->token_log_clamp),
                   x = torch_clamp(a->log_floor, -INFINITY, a->log_cap);
  torch_line(t, "l = (logp - %s)%s * %s", t->old, l.text, t->kept ? "whole" : "mask");
  torch_ratio_of(t, mean);
  if (a->clip == CLIP_GAMMA && a->tis_level != LEVEL_NONE)
    torch_line(t, "x = x + torch.where(%s, weight, 1.0).log().sum(1, keepdim=True)", t->m);
  if (a->ratio != RATIO_PREFIX && policy_ratio_about(a->ratio)->unit == RATIO_OF_TOKEN) return;
  if (x.text[0] != '\0') torch_line(t, "x = x%s", x.text);
}

/* --- clips --- */

/* Defines BAPO's bounds, which rise until positive and negative terms are balanced. */
static void torch_balance(torch *t) {
  const policy_algorithm *a = t->a;
  torch_line(t, "def uneven(low, high):");
  torch_line(t, "    s = (torch.where(A > 0, u.clamp(max=high), u.clamp(min=low)) * A)%s.detach()",
             t->kept ? "[m]" : "[mask]");
  torch_line(t, "    wrong = -s[s < 0].sum()");
  torch_line(t, "    return wrong > 0 and s[s > 0].sum() / (wrong + 1e-8) < %.15g",
             fmin(a->balance, 1e300));
  torch_line(t, "while low < %.15g and uneven(low, high):", fmin(a->balance_low, 1e300));
  torch_line(t, "    low = min(low + %.15g, %.15g)", fmin(a->balance_step, 1e300),
             fmin(a->balance_low, 1e300));
  torch_line(t, "while high < %.15g and uneven(low, high):", fmin(a->balance_high, 1e300));
  torch_line(t, "    high = min(high + %.15g, %.15g)", fmin(a->balance_step, 1e300),
             fmin(a->balance_high, 1e300));
}

/* Defines f, the ratio after the pessimistic clip of PPO. */
static void torch_ppo(torch *t) {
  const policy_algorithm *a = t->a;
  const clamp_text dual = torch_clamp(0, 0, a->dual_clip);
  char high[32] = "torch.inf"; /* 1e300 is none of float32 */
  if (isfinite(a->eps_high)) snprintf(high, sizeof high, "%.15g", 1 + a->eps_high);
  torch_line(t, "low, high = %.15g, %s", 1 - fmin(a->eps_low, 1e300), high);
  if (a->balance > 0) torch_balance(t);
  torch_line(t, dual.text[0] != '\0' ? "v = torch.where(A < 0, u%s, u)" : "v = u%s", dual.text);
  if (a->keep_low == 1 && a->keep_high == 1) {
    torch_line(t, "f = torch.where(A < 0, v.clamp(min=max(low, 0)), torch.where(A > 0, "
                  "v.clamp(max=high), v))");
    return;
  }
  torch_line(t,
             "f = torch.where((A < 0) & (v < low), %.15g * low, torch.where((A > 0) & (v > "
             "high), %.15g * high, v))",
             a->keep_low, a->keep_high);
}

/* Defines f by the clips that are smooth functions of the ratio. */
static void torch_smooth(torch *t) {
  const policy_algorithm *a = t->a;
  if (a->clip == CLIP_SIGMOID) {
    torch_line(t, "tau = torch.full_like(A, %.15g).masked_fill(A > 0, %.15g)", a->tau_negative,
               a->tau_positive);
    torch_line(t, "f = torch.sigmoid(tau * (u - 1)) * 4 / tau");
    return;
  }
  if (a->clip == CLIP_GAMMA) {
    torch_line(t, "k = torch.full_like(A, %.15g).masked_fill(A >= 0, %.15g)", a->gamma_k_negative,
               a->gamma_k_positive);
    torch_line(t, "rate = torch.full_like(A, %.15g).masked_fill(A >= 0, %.15g)",
               a->gamma_rate_negative, a->gamma_rate_positive);
    torch_line(t, "f = torch.exp(rate + k * x - rate * u)");
    return;
  }
  torch_line(t, "psi = %.15g * torch.tanh(x / %.15g)", a->tanh_scale, a->tanh_scale);
  torch_line(t, "softplus = torch.nn.functional.softplus");
  torch_line(t, "zeta = (softplus(psi) / %.15g) ** %.15g + (softplus(-psi) / %.15g) ** %.15g",
             fmin(a->hazard_width_up, 1e300), fmin(a->hazard_power_up, 1e300),
             fmin(a->hazard_width_down, 1e300), fmin(a->hazard_power_down, 1e300));
  torch_line(t, "f = torch.exp(psi - zeta.detach())");
}

/* Limits M2PO's second moment, the mean of the squared log-ratios: removes the tokens with the
 * largest ones, or clamps log-ratios at a bound b. */
static void torch_second_moment(torch *t) {
  static const char *const sets[] = {
      [M2_ALL] = "mask", [M2_IMPROVING] = "mask & (A * x > 0)", [M2_CLIPPED] = NULL};
  const policy_algorithm *a = t->a;
  if (a->m2_set == M2_CLIPPED)
    torch_line(t, "some = %s & ((A > 0) & (u > %.15g) | (A < 0) & (u < %.15g))",
               t->kept ? "whole" : "mask", 1 + fmin(a->eps_high, 1e300),
               1 - fmin(a->eps_low, 1e300));
  else
    torch_line(t, "some = %s%s", t->kept ? "whole" : "mask", sets[a->m2_set] + strlen("mask"));
  torch_line(t, "v, at = (x.detach() ** 2)[some].sort(stable=True)");
  torch_line(t, "n = torch.arange(1, len(v) + 1)");
  if (a->m2_form == M2_REMOVE) {
    torch_line(t, "near = torch.ones_like(mask)");
    torch_line(t, "near[some] = (v.cumsum(0) / n <= %.15g)[at.argsort()]", fmin(a->m2_tau, 1e300));
    torch_line(t, "f = u * near");
    return;
  }
  torch_line(t, "k = int((v.cumsum(0) + (len(v) - n) * v < %.15g * len(v)).sum())",
             fmin(a->m2_tau, 1e300));
  torch_line(t, "b = 1e300 if k == len(v) else x.detach()[some].abs()[at[k - 1]].item() if k > 0 "
                "else 0.0");
  torch_line(t, "f = torch.exp(torch.where((A < 0) & (x < -b), -b, torch.where((A > 0) & (x > b), "
                "b, x)))");
}

/* Writes the clips that depend on the token's probability or position: DPPO's masks, and DCPO's and
 * ASPO's bounds. */
static void torch_by_token(torch *t) {
  const policy_algorithm *a = t->a;
  const clamp_text cap = torch_clamp(0, 0, a->cap), dual = torch_clamp(0, 0, a->dual_clip);
  const double high = fmin(a->eps_high, 1e300), low = fmin(a->eps_low, 1e300);
  switch (a->clip) {
  case CLIP_BINARY_TV:
    torch_line(t, "d = (torch.exp(logp) - torch.exp(%s)).detach()", t->old);
    torch_line(t, "near = torch.where(A > 0, d <= %.15g, d >= -%.15g)", high, low);
    torch_line(t, "f = u%s * near", cap.text);
    return;
  case CLIP_BINARY_KL:
    torch_line(t, "p, q = torch.exp(logp).detach(), torch.exp(%s)", t->old);
    torch_line(t,
               "d = q * (%s - logp.detach()) + (1 - q) * torch.log((1 - q + 1e-8) / (1 - p + "
               "1e-8))",
               t->old);
    torch_line(t, "near = torch.where(A > 0, (d <= %.15g) | (p <= q), (d <= %.15g) | (p >= q))",
               high, low);
    torch_line(t, "f = u%s * near", cap.text);
    return;
  case CLIP_PROBABILITY:
    torch_line(t, "q = torch.exp(%s)", t->old);
    torch_line(t, "low = (1 + (1 - 4 * %.15g / q).clamp(min=0).sqrt()) / 2", low);
    torch_line(t, "high = ((1 + (1 + 4 * %.15g / q).sqrt()) / 2)%s", high, cap.text);
    torch_line(t, "f = torch.where(A < 0, torch.maximum(u%s, low), torch.minimum(u, high))",
               dual.text);
    return;
  case CLIP_RECIPROCAL:
    torch_line(t, "right = torch.where(u > %.15g, 0.0, (1 / u)%s)", 1 + high, dual.text);
    torch_line(t, "wrong = torch.where(u < %.15g, 0.0, u%s)", 1 - low, dual.text);
    torch_line(t, "f = torch.where(A > 0, right, wrong)");
    return;
  case CLIP_PPO_POWER:
    torch_line(t, "w = %s.cumsum(1).to(logp.dtype) ** %.15g", t->kept ? "whole" : "mask",
               fmin(a->clip_power, 1e300));
    torch_line(t, "v = torch.maximum(x, -%.15g * w)", low);
    if (!isinf(a->dual_clip)) torch_line(t, "v = torch.minimum(v, %.15g * w)", a->dual_clip);
    torch_line(t, "f = torch.exp(torch.where(A < 0, v, torch.minimum(x, %.15g * w)))", high);
    return;
  case CLIP_NONE: /* torch_clip() writes these */
  case CLIP_PPO:
  case CLIP_CAP:
  case CLIP_CLAMP:
  case CLIP_SIGNED_CLAMP:
  case CLIP_TOKEN_LOG:
  case CLIP_SECOND_MOMENT:
  case CLIP_SIGMOID:
  case CLIP_TANH_HAZARD:
  case CLIP_GAMMA:
    return;
  }
}

/* Defines f, the clipped ratio. */
static void torch_clip(torch *t) {
  const policy_algorithm *a = t->a;
  const clamp_text limits = torch_clamp(a->log_floor, -INFINITY, a->log_cap);
  torch_line(t, "u = torch.exp(x)");
  switch (a->clip) {
  case CLIP_NONE:
    torch_line(t, "f = u");
    break;
  case CLIP_PPO:
    torch_ppo(t);
    break;
  case CLIP_CAP:
    torch_line(t, "f = u%s", torch_clamp(0, 0, a->cap).text);
    break;
  case CLIP_CLAMP:
    torch_line(t, "f = u%s", torch_clamp(1 - a->eps_low, -INFINITY, 1 + a->eps_high).text);
    break;
  case CLIP_SIGNED_CLAMP:
    torch_line(t, "f = torch.where(A >= 0, u%s, u%s)",
               torch_clamp(a->positive_low, -1, a->positive_high).text,
               torch_clamp(a->negative_low, -1, a->negative_high).text);
    break;
  case CLIP_TOKEN_LOG:
    torch_line(t, "k = torch.where(A >= 0, l%s, l%s) * %s",
               torch_clamp(-INFINITY, -INFINITY, a->eps_high).text,
               torch_clamp(-a->eps_low, -INFINITY, INFINITY).text, t->m);
    torch_line(t, "f = torch.exp((k.sum(1, keepdim=True) / %s.sum(1, keepdim=True))%s)", t->m,
               limits.text);
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
  case CLIP_PPO_POWER:
    torch_by_token(t);
    break;
  case CLIP_SECOND_MOMENT:
    torch_second_moment(t);
    break;
  }
  if (a->token_mask)
    torch_line(t, "f = f * ~((A > 0) & (u > %.15g) | (A < 0) & (u < %.15g))",
               1 + fmin(a->mask_high, 1e300), 1 - fmin(a->mask_low, 1e300));
}

/* --- masks of the policy term, averages, divergences --- */

/* Zeroes the terms of responses that the gate drops because of their likelihood. */
static void torch_gate(torch *t) {
  const policy_gate_fields *gate = &t->a->gate;
  const char *all = t->kept ? "whole" : "mask";
  char mean[48] = "";
  if (gate->negative_below == 0 && isinf(gate->negative_above) && isinf(gate->positive_above))
    return;
  if (gate->log_prob == LOG_PROB_MEAN) snprintf(mean, sizeof mean, " / %s.sum(1)", all);
  torch_line(t, "P, Q = (logp * %s).sum(1)%s, (logq * %s).sum(1)%s", all, mean, all, mean);
  if (gate->of == GATE_GROUP_EXPECTATION) {
    torch_scope(t, gate->scope);
    torch_line(t, "Q = over(2 * Q) - over(Q)");
  }
  torch_line(t, "U = torch.exp(P - Q).detach()[:, None]   # the gate's likelihood");
  if (gate->negative_below > 0)
    torch_line(t, "term = term * ~((A < 0) & (U < %.15g))", fmin(gate->negative_below, 1e300));
  if (!isinf(gate->negative_above))
    torch_line(t, "term = term * ~((A < 0) & (U > %.15g))", gate->negative_above);
  if (!isinf(gate->positive_above))
    torch_line(t, "term = term * ~((A > 0) & (U > %.15g))", gate->positive_above);
}

static void torch_masks(torch *t) {
  const policy_algorithm *a = t->a;
  const char *all = t->kept ? "whole" : "mask";
  if (a->tis_level != LEVEL_NONE && a->clip != CLIP_GAMMA) torch_line(t, "term = term * weight");
  if (a->mis_level != MASK_LEVEL_NONE || a->mis2_level != MASK_LEVEL_NONE)
    torch_line(t, "term = term * keep");
  if (!isinf(a->off_policy_mask)) {
    torch_line(t, "far = (((logq - logp) * %s).sum(1) / %s.sum(1)).detach()[:, None]", all, all);
    torch_line(t, "term = term * ~((A < 0) & (far > %.15g))", a->off_policy_mask);
  }
  if (a->top_entropy < 1)
    torch_line(t, "term = term * (entropy >= torch.quantile(entropy[%s], %.15g))", all,
               1 - a->top_entropy);
  if (policy_has_entropy_ratio(a)) {
    torch_line(t, "change = (entropy + 1e-8) / ((entropy if entropy_prox is None else "
                  "entropy_prox) + 1e-8)");
    torch_line(t, "term = term * ((change > %.15g) & (change < %.15g))", a->entropy_ratio_low,
               fmin(a->entropy_ratio_high, 1e300));
  }
  torch_gate(t);
}

/* Writes to text the average over the batch of an expression `what`, whose value has a number for
 * each token [N, T] or response [N, 1]. */
static void torch_average(const torch *t, policy_aggregate aggregate, const char *what,
                          char text[512]) {
  enum { SIZE = 512 };
  const bool drops = t->a->drop_equal && t->a->objective == OBJECTIVE_POLICY_GRADIENT;
  const char *least = drops || t->kept ? ".clamp(min=1)" : "";
  const char *responses = drops ? ".sum() / (live.sum() * r.shape[1]).clamp(min=1)" : ".mean()";
  switch (aggregate) {
  case AGGREGATE_SEQUENCE_SUM:
    snprintf(text, SIZE, "(%s * mask).sum(1)%s", what, responses);
    return;
  case AGGREGATE_SEQUENCE_MEAN:
    snprintf(text, SIZE, "((%s * mask).sum(1) / mask.sum(1)%s)%s", what, least, responses);
    return;
  case AGGREGATE_TOKEN_MEAN:
    snprintf(text, SIZE, "(%s * mask).sum() / mask.sum()%s", what, least);
    return;
  case AGGREGATE_GROUP_TOKEN_MEAN:
    snprintf(text, SIZE,
             "((%s * mask).sum(1).view(n_groups, -1).sum(1) / mask.sum(1).view(n_groups, -1)"
             ".sum(1)%s)%s",
             what, least, drops ? ".sum() / live.sum().clamp(min=1)" : ".mean()");
    return;
  case AGGREGATE_FIXED_LENGTH:
    snprintf(text, SIZE, "(%s * mask).sum(1)%s / mask.shape[1]", what, responses);
    return;
  case AGGREGATE_LENGTH_POWER:
    snprintf(text, SIZE, "((%s * mask).sum(1) * z).sum() / (longest * z.sum().clamp(min=1e-300))",
             what);
    return;
  case AGGREGATE_TOKEN_SUM:
    snprintf(text, SIZE, "(%s * mask).sum()", what);
    return;
  }
  text[0] = '\0';
}

/* Adds kl_coef and ref_kl_coef to an expression of the loss. */
static void torch_divergences(torch *t, policy_aggregate aggregate) {
  static const char *const kl[] = {[KL_CPPO] = "torch.expm1(d) - d",
                                   [KL_K1] = "d",
                                   [KL_K2] = "d ** 2 / 2",
                                   [KL_K3] = "torch.expm1(-d) + d",
                                   [KL_ABS] = "d.abs()"};
  static const char *const ref[] = {[REF_KL_K1] = "d",
                                    [REF_KL_K2] = "d ** 2 / 2",
                                    [REF_KL_K3] = "torch.expm1(-d) + d",
                                    [REF_KL_ABS] = "d.abs()",
                                    [REF_KL_K1_PLUS] = "d",
                                    [REF_KL_K3_PLUS] = "torch.expm1(-d) + d"};
  const policy_algorithm *a = t->a;
  const char *all = t->kept ? "whole" : "mask";
  char average[512];
  torch_average(t, aggregate, "kl", average);
  if (a->kl_coef > 0) {
    torch_line(t, "d = logq - logp");
    torch_line(t, "kl = %s", kl[a->kl_form]);
    if (a->kl_share < 1) {
      torch_line(t, "c = (A - A.expand_as(mask)[%s].mean()) * (logp - logp[%s].mean())", all, all);
      torch_line(t, "c = c.detach().masked_fill(~%s, -torch.inf).flatten()", all);
      torch_line(t,
                 "chosen = torch.zeros_like(c).index_fill(0, c.topk(max(1, int(%.15g * "
                 "%s.sum()))).indices, 1.0)",
                 a->kl_share, all);
      torch_line(t, "kl = kl * chosen.view_as(mask)");
    }
    torch_line(t, "total = total + %.15g * %s", a->kl_coef, average);
  }
  if (a->ref_kl_coef == 0) return;
  torch_line(t, "d = logp - logref");
  torch_line(t, "kl = %s", ref[a->ref_kl_form]);
  if (a->ref_kl_form == REF_KL_K1_PLUS || a->ref_kl_form == REF_KL_K3_PLUS)
    torch_line(t, "kl = kl.detach() + d ** 2 / 2 - d.detach() ** 2 / 2   # the gradient of k2");
  if (a->ref_kl_ratio) torch_line(t, "kl = u * kl");
  torch_line(t, "total = total + %.15g * %s", a->ref_kl_coef, average);
}

/* Writes the return statement: minus the policy term, plus the divergences if the algorithm has
 * any. */
static void torch_return(torch *t, policy_aggregate aggregate, const char *policy_term) {
  const policy_algorithm *a = t->a;
  if (a->kl_coef == 0 && a->ref_kl_coef == 0) {
    torch_line(t, "return -%s", policy_term);
    return;
  }
  torch_line(t, "total = -%s", policy_term);
  torch_divergences(t, aggregate);
  torch_line(t, "return total");
}

static void torch_policy_gradient(torch *t) {
  const policy_algorithm *a = t->a;
  char average[512];
  torch_advantages(t);
  torch_old(t);
  torch_corrections(t);
  torch_ratio(t);
  torch_clip(t);
  torch_line(t, a->ratio_gradient ? "term = f * A" : "term = f.detach() * A * logp");
  torch_masks(t);
  if (a->drop_equal) torch_line(t, "mask = mask & alive");
  if (a->aggregate == AGGREGATE_LENGTH_POWER) {
    torch_line(t, "longest, T = %s.sum(1).max(), mask.sum(1)", t->kept ? "whole" : "mask");
    torch_line(t, "z = (T > 0) * T.clamp(min=1).to(logp.dtype) ** -%.15g", a->length_power);
  }
  /* Where the ratio is that of the response, sequence_sum weights responses equally whatever their
   * length: their terms are averaged over tokens. */
  const bool once = a->aggregate == AGGREGATE_SEQUENCE_SUM && a->ratio_gradient &&
                    policy_ratio_about(a->ratio)->gradient == RATIO_GRADIENT_RESPONSE;
  torch_average(t, once ? AGGREGATE_SEQUENCE_MEAN : a->aggregate, "term", average);
  torch_return(t, a->aggregate, average);
}

/* Writes the objectives that compare scores of right and wrong responses (DisCO, REAL). */
static void torch_scores(torch *t) {
  const policy_algorithm *a = t->a;
  const bool real = a->objective == OBJECTIVE_REAL;
  const clamp_text l = torch_clamp(-a->token_log_clamp, -INFINITY, a->token_log_clamp);
  torch_old(t);
  if (a->ratio == RATIO_TOKEN) torch_line(t, "l = (logp - %s)%s", t->old, l.text);
  torch_line(t, "s = ((%s * mask).sum(1) / mask.sum(1)).view(n_groups, -1)",
             real                      ? "l"
             : a->ratio == RATIO_TOKEN ? "torch.exp(l)"
                                       : "logp");
  torch_line(t, "right = rewards.view(n_groups, -1) == 1");
  torch_line(t, "both = right.any(1) & ~right.all(1)");
  torch_line(t, "s, right = s[both], right[both]");
  if (real) {
    torch_line(t, "zero = torch.zeros_like(s[:, :1])");
    torch_line(t, "worse = torch.cat([(s / %.15g).masked_fill(right, -torch.inf), zero], 1)",
               a->disco_tau);
    torch_line(t, "better = torch.cat([(-s / %.15g).masked_fill(~right, -torch.inf), zero], 1)",
               a->disco_tau);
    torch_line(t, "J = -worse.logsumexp(1) - better.logsumexp(1)");
    torch_return(t, AGGREGATE_TOKEN_MEAN, "J.sum() / n_groups");
    return;
  }
  torch_line(t, "J = (s * right).sum(1) / right.sum(1)");
  if (a->negatives == NEGATIVES_MEAN)
    torch_line(t, "J = J - (s * ~right).sum(1) / (~right).sum(1)");
  else
    torch_line(t,
               "J = J - %.15g * ((s / %.15g).masked_fill(right, -torch.inf).logsumexp(1) - "
               "(~right).sum(1).to(s.dtype).log())",
               a->disco_tau, a->disco_tau);
  torch_line(t, "K = (logq - logp)[mask].mean()");
  torch_line(t, "J = J.sum() / n_groups - %.15g * (K.detach() - %.15g).clamp(min=0) * K",
             a->penalty, fmin(a->penalty_margin, 1e300));
  torch_return(t, AGGREGATE_TOKEN_MEAN, "J");
}

/* --- the whole --- */

/* Writes the function's signature: the common arguments, and those that this algorithm needs
 * beside them. */
static void torch_head(torch *t) {
  const policy_algorithm *a = t->a;
  const char *more[8];
  size_t n = 0;
  if (a->old_policy == OLD_PROXIMAL || torch_corrects_proximal(a))
    more[n++] = a->proximal_decay > 0 ? "logprox" : "logprox=None";
  if (policy_needs_reference(a)) more[n++] = "logref";
  if (policy_needs_version_gap(a)) more[n++] = "gap";
  if (policy_needs_entropy(a)) more[n++] = "entropy";
  if (policy_has_entropy_ratio(a)) more[n++] = "entropy_prox=None";
  if (policy_needs_exact_denominator(a)) more[n++] = "log_denominator";
  fputs("def loss(logp, logq, rewards, mask, n_groups", t->to);
  for (size_t i = 0; i < n; ++i) fprintf(t->to, "%s%s", i == 0 ? ", *, " : ", ", more[i]);
  fputs("):   # [N, T], [N]; mask is a bool tensor\n", t->to);
}

char *torch_lines(const policy_algorithm *algorithm) {
  char *text = NULL;
  size_t size = 0;
  torch t = {.to = must_have(open_memstream(&text, &size), "lines of PyTorch"),
             .a = algorithm,
             .old = "logq",
             .m = "mask"};
  if (algorithm->baseline == BASELINE_SOFT_MAXIMUM) fputs("from math import log\n\n", t.to);
  torch_head(&t);
  if (algorithm->objective == OBJECTIVE_POLICY_GRADIENT)
    torch_policy_gradient(&t);
  else
    torch_scores(&t);
  must_succeed(fclose(t.to) == 0, "lines of PyTorch");
  return text;
}
