"""Independent losses of every algorithm in PyTorch double precision, differentiated by autograd,
and the diagnostics of metrics_oracle.py.

The rows' fields are written here a second time. Written from the formulas as losses, with detach() where a source stops the
gradient; it shares no closed-form coefficient with the C code.

    python tests/golden/policy_oracle.py > tests/golden/policy_cases.json
"""
import json
import math
import random

import torch

import metrics_oracle

torch.set_default_dtype(torch.float64)
INF = math.inf

GN = dict(baseline="group_mean", scale="group_std")
GM = dict(baseline="group_mean")
LOO = dict(baseline="leave_one_out")
TOK = dict(ratio="token")
SEQ = dict(ratio="sequence", log_prob="mean")
GEPO = dict(GM, ratio="group_expectation", clip="ppo", aggregate="sequence_mean")
REC = dict(GM, aggregate="token_mean", mis_level="token", mis_min=0.8, mis_max=1.2, correction_of="learner")
ROWS = {
    "reinforce": dict(LOO),
    "is": dict(LOO, ratio="sequence"),
    "tis": dict(LOO, ratio="sequence", clip="cap", cap=1, stop=1),
    "snis": dict(LOO, ratio="self_normalised", stop=1),
    "defensive": dict(LOO, ratio="mixture", mixture=0.1, stop=1),
    "grpo": dict(GN, **TOK, clip="ppo", aggregate="sequence_mean"),
    "dr_grpo": dict(GM, **TOK, clip="ppo", aggregate="fixed_length"),
    "dapo": dict(GN, **TOK, clip="ppo", eps_high=0.28, aggregate="token_mean"),
    "gspo": dict(GN, **SEQ, clip="ppo", eps_low=3e-4, eps_high=4e-4, aggregate="sequence_mean"),
    "gepo": dict(GEPO),
    "gepo_released": dict(GEPO, log_prob="mean"),
    "gepo_plus": dict(GEPO, log_prob="mean", kappa=0.01),
    "eqp": dict(GEPO, log_prob="mean", denominator="expected_p", denominator_gradient=True),
    "vtrace": dict(LOO, ratio="vtrace", stop=1),
    "bnpo": dict(GM, scale="beta", **TOK, clip="ppo", eps_high=0.28, dual_clip=10),
    "delta_l": dict(GN, **TOK, clip="ppo", eps_high=0.3, dual_clip=3, aggregate="length_power"),
    "gspo_token": dict(GN, ratio="sequence_token", log_prob="mean", clip="ppo", eps_low=3e-4,
                       eps_high=4e-4, aggregate="sequence_mean"),
    "gmpo": dict(GN, **SEQ, clip="token_log", eps_low=0.4, eps_high=0.4, aggregate="sequence_mean"),
    "cispo": dict(GN, **TOK, clip="clamp", eps_low=10, eps_high=4, aggregate="token_mean", stop=1),
    "topr": dict(ratio="sequence", clip="signed_clamp", aggregate="sequence_mean", stop=1),
    "aipo": dict(GM, **TOK, clip="cap", cap=4, stop=1),
    "decoupled_ppo": dict(GN, **TOK, old_policy="proximal", clip="ppo", aggregate="token_mean",
                          tis_level="token", tis_max=INF),
    "icepop": dict(GN, **TOK, old_policy="proximal", clip="ppo", aggregate="sequence_mean", tis_level="token",
                   tis_max=INF, mis_level="token", mis_min=0.5, mis_max=5),
    "mois": dict(GM, ratio="token_mixture", clip="ppo", aggregate="sequence_mean", mixture_anneal=True),
    "m2po": dict(GN, **TOK, clip="second_moment", aggregate="token_mean"),
    "ctpo": dict(GN, ratio="prefix", clip="ppo_power", eps_low=0.025, eps_high=0.05,
                 aggregate="sequence_mean"),
    "mhpo": dict(GN, **TOK, clip="tanh_hazard", aggregate="sequence_mean"),
    "sapo": dict(GN, **TOK, clip="sigmoid", aggregate="sequence_mean"),
    "vespo": dict(GN, ratio="sequence", clip="gamma", aggregate="token_mean", token_log_clamp=20,
                  log_floor=math.log(1e-8), log_cap=20, stop=1),
    "magistral": dict(GM, scale="batch_std", **TOK, clip="ppo", eps_high=0.28, drop_equal=True,
                      aggregate="group_token_mean"),
    "disco": dict(objective="disco", aggregate="sequence_mean"),
    "disco_b": dict(objective="disco", negatives="mean", aggregate="sequence_mean"),
    "disco_l_ratio": dict(objective="disco", ratio="token", disco_tau=1, aggregate="sequence_mean"),
    "reinforce_plus_plus": dict(scale="token_std", scale_eps=1e-8, **TOK, clip="ppo", aggregate="token_mean"),
    "reinforce_plus_plus_baseline": dict(GM, scale="token_std", scale_eps=1e-8, **TOK, clip="ppo",
                                         aggregate="token_mean"),
    "gpg": dict(GM, scale="nonzero_share", aggregate="token_mean"),
    "opo": dict(baseline="length_weighted", aggregate="token_mean"),
    "grpo_passk": dict(baseline="runner_up", scale="group_std", scale_eps=1e-6, **TOK, clip="ppo",
                       aggregate="token_mean"),
    "kl_cov": dict(GN, **TOK, aggregate="token_mean", kl_form="abs", kl_coef=1, kl_share=2e-3),
    "dppo_tv": dict(GM, **TOK, clip="binary_tv", eps_low=0.15, eps_high=0.15, cap=1e4,
                    token_log_clamp=20, aggregate="fixed_length", stop=1),
    "dppo_kl": dict(GM, **TOK, clip="binary_kl", eps_low=0.05, eps_high=0.05, cap=1e4,
                    token_log_clamp=20, aggregate="fixed_length", stop=1),
    "maxrl": dict(GM, scale="group_mean", scale_eps=1e-6, **TOK, clip="ppo", aggregate="token_mean"),
    "prime_rl": dict(GM, **TOK, clip="binary_tv", cap=INF, aggregate="token_mean", kl_form="k2", kl_coef=2e-3, stop=1),
    "prime_rl_ipo": dict(GM, **TOK, aggregate="token_mean", mis_level="token", mis_test="tv", mis_max=0.1,
                         correction_of="learner", kl_form="k2", kl_coef=2e-3, stop=1),
    "opsm": dict(GN, **TOK, clip="ppo", aggregate="sequence_mean", off_policy_mask=1e-4),
    "raft": dict(aggregate="token_mean"),
    "raft_plus_plus": dict(**TOK, clip="ppo", aggregate="token_mean"),
    "asymre": dict(GM, baseline_value=-0.1),
    "rec_one_side": dict(REC, mis_free_low=0.8, mis_free_high=1.2),
    "rec_two_side": dict(REC),
    "rec_ring": dict(REC, mis_free_low=0.4, mis_free_high=3),
    "rollout_is": dict(REC, **dict(GN, **TOK), stop=1),
    "kimi15": dict(GM, aggregate="sequence_mean", kl_form="k2", kl_coef=0.1),
    "bapo": dict(GN, **TOK, clip="ppo", eps_low=0.4, dual_clip=3, token_log_clamp=20, aggregate="token_mean", balance=1),
    "ce_gppo": dict(GN, **TOK, clip="ppo", keep_low=0.75, aggregate="token_mean", stop=1),
    "gppo": dict(GN, **TOK, clip="ppo", aggregate="token_mean", stop=1),
    "dcpo": dict(GN, **TOK, clip="probability", eps_low=0.16, cap=10, dual_clip=10, aggregate="sequence_mean"),
    "aspo": dict(GN, **TOK, clip="reciprocal", dual_clip=3, aggregate="token_mean", stop=1),
    "trm": dict(GN, **TOK, clip="ppo", aggregate="token_mean", mis_level="sequence_max", mis_test="k3", mis_max=0.05,
                mask_denominator="kept"),
    "a3po": dict(GN, **TOK, old_policy="interpolated", clip="ppo", aggregate="token_mean", tis_level="token", tis_max=INF),
    "fipo": dict(GN, **TOK, clip="ppo", eps_high=0.28, dual_clip=10, token_log_clamp=20, aggregate="token_mean",
                 tis_level="future", tis_min=1, tis_max=1.2, correction_of="learner"),
    "vcpo": dict(baseline="off_policy", ratio="sequence", clip="cap", cap=8, aggregate="sequence_mean", stop=1),
    "opmd": dict(baseline="soft_maximum", aggregate="token_mean"),
    "tba": dict(GM, reward_kl_coef=1e-2, reward_kl_of="reference"),
    "real": dict(objective="real", **TOK, disco_tau=0.5),
    "erc": dict(GN, **TOK, old_policy="proximal", clip="ppo", eps_high=0.28, dual_clip=10, token_log_clamp=20, aggregate="token_mean",
                entropy_ratio_low=0.95, entropy_ratio_high=1.05),
    "ppo_ewma": dict(GN, **TOK, old_policy="proximal", proximal_decay=0.889, clip="ppo", aggregate="token_mean", tis_level="token", tis_max=INF),
}
DEFAULTS = dict(
    objective="policy_gradient", baseline="none", baseline_value=0, scale="none", scale_eps=1e-4,
    std_ddof=1, drop_equal=False, ratio="none", log_prob="sum", old_policy="sampler", stop=0,
    denominator="self_normalised", denominator_gradient=False, group_scope="prompt", microbatch=8,
    kappa=0, mixture=0.1, rho_bar=1, c_bar=1, token_log_clamp=INF, log_floor=-INF, log_cap=INF,
    clip="none", eps_low=0.2, eps_high=0.2, dual_clip=INF, cap=1, clip_power=0.5, positive_low=1,
    positive_high=1, negative_low=0, negative_high=1, tau_positive=1, tau_negative=1.05,
    tanh_scale=1.5, hazard_power_up=1.5, hazard_width_up=1, hazard_power_down=2, hazard_width_down=0.8,
    gamma_k_positive=2, gamma_rate_positive=3, gamma_k_negative=3, gamma_rate_negative=2,
    m2_form="remove", m2_set="improving", m2_tau=0.04, token_mask=False, mask_low=0.2, mask_high=0.2,
    aggregate="sequence_sum", length_power=0.75, kl_coef=0, kl_share=1, kl_form="cppo", ref_kl_coef=0,
    ref_kl_form="k3", ref_kl_ratio=False, mis2_level="none", mis2_test="ratio", mis2_min=0, mis2_max=3,
    mis_log_clamp=INF, off_policy_mask=INF, top_entropy=1, correction_of="proximal", tis_level="none", tis_min=0, tis_max=2,
    tis_log_clamp=INF, tis_normalise=False, mis_level="none", mis_test="ratio", mis_min=0, mis_max=3,
    mask_denominator="all", negatives="softmax", disco_tau=10, penalty=1e3, penalty_margin=1e-4,
    mixture_anneal=False, mixture_midpoint=8, mixture_slope=1, baseline_temperature=1, reward_kl_coef=0,
    reward_kl_of="sampler", keep_low=1, keep_high=1, balance=0, balance_step=0.05, balance_low=0.9, balance_high=3,
    future_half_life=32, mis_free_low=0, mis_free_high=INF, entropy_ratio_low=0, entropy_ratio_high=INF, proximal_decay=0,
    **{"gate.negative_below": 0, "gate.negative_above": INF, "gate.positive_above": INF, "gate.of": "group_expectation",
       "gate.scope": "prompt", "gate.log_prob": "mean"})


def advantages(f, groups):
    rs = [torch.tensor([r["reward"] for r in g]) for g in groups]
    keep = [not (f["drop_equal"] and bool((r == r[0]).all())) for r in rs]
    raw = rs
    if f["reward_kl_coef"]:
        other = "logref" if f["reward_kl_of"] == "reference" else "logq"
        rs = [r - f["reward_kl_coef"] * torch.tensor([sum(y["logp"]) - sum(y[other]) for y in g]) for r, g in zip(rs, groups)]
    means = torch.stack([r.mean() for r in rs])
    out = []
    if f["scale"] == "beta":
        p = torch.stack([torch.tensor(0.0) if len(r) == 1 else r.mean() for r in rs])
        m, v = (p.mean(), p.var()) if len(p) > 1 else (torch.tensor(0.0), torch.tensor(1.0))
        a = b = torch.tensor(1.0)
        if v > 0:
            k = m * (1 - m) / v - 1
            a, b = torch.clamp(1 + k * m / 3, min=1), torch.clamp(1 + k * (1 - m) / 3, min=1)
        for r, pg in zip(rs, p):
            ld = torch.special.xlogy(a - 1, pg) + torch.special.xlogy(b - 1, 1 - pg)
            dens = pg ** (a - 1) * (1 - pg) ** (b - 1) / torch.exp(
                torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))
            out.append((r - pg) * torch.clamp(1 / dens, 0, 1e6))
        return out, keep
    for r, g, given in zip(rs, groups, raw):
        n = len(r)
        if f["baseline"] == "constant":
            a = r - f["baseline_value"]
        elif f["baseline"] == "group_mean":
            a = r - r.mean()
        elif f["baseline"] == "length_weighted":
            size = torch.tensor([float(len(y["logp"])) for y in g])
            a = r - (size * r).sum() / size.sum()
        elif f["baseline"] == "off_policy":
            w = torch.tensor([2 * (sum(y["logp"]) - sum(y["logq"])) + math.log(len(y["logp"])) for y in g])
            a = r - (torch.softmax(w, 0) * r).sum()
        elif f["baseline"] == "soft_maximum":
            t = f["baseline_temperature"]
            top = given.max()
            a = r - (top + t * torch.log(torch.exp((given - top) / t).mean()))
        elif f["baseline"] == "runner_up":
            a = torch.zeros(n)
            if n > 1:
                (first, second), (best, _) = torch.topk(r, 2)
                a[best] = first - second
        elif f["baseline"] == "leave_one_out" and n > 1:
            a = torch.stack([r[i] - (r.sum() - r[i]) / (n - 1) for i in range(n)])
        else:
            a = r.clone()
        if bool((r == r[0]).all()) and f["baseline"] in ("group_mean", "leave_one_out", "length_weighted", "off_policy") and n > 1:
            a = torch.zeros(n)
        if f["baseline"] in ("group_mean", "leave_one_out", "length_weighted", "off_policy"):
            a = a - f["baseline_value"]
        if f["scale"] == "group_mean":
            a = a / (float(r.mean() + f["scale_eps"]) or 1.0)
        if f["scale"] == "group_std":
            sd = r.std(correction=f["std_ddof"]) if n > 1 else 0.0
            a = a / (float(sd + f["scale_eps"]) or 1.0)  # 0: nothing to divide by
        out.append(a)
    if f["scale"] == "batch_std":
        allv = torch.cat([a for a, k in zip(out, keep) if k] or [torch.zeros(1)])
        sd = allv.std(correction=f["std_ddof"]) if len(allv) > 1 else 0.0
        out = [(a - allv.mean()) / (sd + f["scale_eps"]) for a in out]
    if f["scale"] == "reward_std":
        every = torch.cat(rs)
        sd = every.std(correction=f["std_ddof"]) if len(every) > 1 else 0.0
        out = [a / (sd + f["scale_eps"]) for a in out]
    if f["scale"] == "token_std":
        each = [torch.cat([x.repeat(len(y["logp"])) for x, y in zip(a, g)]) for a, g in zip(out, groups)]
        every = torch.cat([a for a, k in zip(each, keep) if k] or [torch.zeros(1)])
        var = every.var(correction=f["std_ddof"]) if len(every) > 1 else 0.0
        out = [(a - every.mean()) * (var + f["scale_eps"]) ** -0.5 for a in out]
    if f["scale"] == "nonzero_share":
        every = torch.cat(rs)
        out = [a * len(every) / max(1, int(torch.count_nonzero(every))) for a in out]
    return [a if k else a * 0 for a, k in zip(out, keep)], keep


def clip_value(f, x, a, t, q=None):
    """Objective multiplier of log-ratio x, as the sources write it."""
    u, c = torch.exp(x), f["clip"]
    if c == "none":
        return u
    if c == "ppo":
        low, high = f["bounds"] or (1 - f["eps_low"], 1 + f["eps_high"])
        lim = torch.clamp(u, low, high)
        v = torch.minimum(u, lim) if a >= 0 else torch.maximum(u, lim)
        v = torch.where(v != u, v * (f["keep_high"] if a > 0 else f["keep_low"]), v)
        return torch.clamp(v, max=f["dual_clip"]) if a < 0 else v
    if c == "probability":  # DCPO's get_clip_low_high and its dual clip
        low = (1 + torch.sqrt(torch.clamp(1 - 4 * f["eps_low"] / q, min=0))) / 2
        high = torch.clamp((1 + torch.sqrt(1 + 4 * f["eps_high"] / q)) / 2, max=f["cap"])
        v = torch.minimum(u, high) if a > 0 else torch.maximum(u, low) if a < 0 else u
        return torch.clamp(v, max=f["dual_clip"]) if a < 0 else v
    if c == "reciprocal":  # ASPO
        if a < 0:
            return torch.where(u < 1 - f["eps_low"], 0 * u, torch.clamp(u, max=f["dual_clip"]))
        inverse = torch.clamp(1 / u, max=f["dual_clip"])
        return torch.where(u > 1 + f["eps_high"], 0 * u, inverse) if a > 0 else inverse
    if c == "ppo_power":
        w = t ** f["clip_power"]
        if a >= 0:
            return torch.exp(torch.clamp(x, max=f["eps_high"] * w))
        return torch.exp(torch.clamp(x, min=-f["eps_low"] * w, max=f["dual_clip"] * w))
    if c in ("cap", "binary_tv", "binary_kl"):
        return torch.clamp(u, max=f["cap"])
    if c == "clamp":
        return torch.clamp(u, 1 - f["eps_low"], 1 + f["eps_high"])
    if c == "signed_clamp":
        s = "positive" if a >= 0 else "negative"
        return torch.clamp(u, f[s + "_low"], f[s + "_high"])
    if c == "sigmoid":
        tau = f["tau_positive"] if a > 0 else f["tau_negative"]
        return 4 / tau * torch.sigmoid(tau * (u - 1))
    if c == "tanh_hazard":
        psi = f["tanh_scale"] * torch.tanh(x / f["tanh_scale"])
        sp = torch.nn.functional.softplus
        zeta = ((sp(psi) / f["hazard_width_up"]) ** f["hazard_power_up"]
                + (sp(-psi) / f["hazard_width_down"]) ** f["hazard_power_down"])
        return torch.exp(psi - zeta.detach())
    if c == "gamma":
        s = "positive" if a >= 0 else "negative"
        k, lam = f["gamma_k_" + s], f["gamma_rate_" + s]
        return torch.exp(lam + k * x - lam * u)
    raise KeyError(c)


def clip_acts(f, x, a, v):
    """Where a hard clip changed the ratio; PPO's kinds leave A = 0 alone, soft clips never "act"."""
    if f["clip"] in ("none", "sigmoid", "tanh_hazard", "gamma"):
        return torch.zeros_like(v.detach())
    if a == 0 and f["clip"] in ("ppo", "ppo_power", "second_moment", "probability"):
        return torch.zeros_like(v.detach())
    if f["clip"] == "reciprocal":
        return (v.detach() == 0).double()
    return (v.detach() != torch.exp(x.detach())).double()


def m2(f, xs, advs):
    """Masks (remove) or bound (threshold) over all tokens, official wording."""
    items = [(float(x) ** 2, i) for i, (x, a) in enumerate(zip(xs, advs)) if
             f["m2_set"] == "all"
             or (f["m2_set"] == "improving" and ((a > 0 and x > 0) or (a < 0 and x < 0)))
             or (f["m2_set"] == "clipped" and ((a > 0 and math.exp(x) > 1 + f["eps_high"])
                                               or (a < 0 and math.exp(x) < 1 - f["eps_low"])))]
    items.sort()
    mask = [1.0] * len(xs)
    if f["m2_form"] == "remove":
        while items and sum(m for m, _ in items) / len(items) > f["m2_tau"]:
            mask[items.pop()[1]] = 0.0
        return mask, INF
    d, n = [m for m, _ in items], len(items)
    if n == 0 or sum(d) / n <= f["m2_tau"]:
        return mask, INF
    ok = [abs(float(xs[items[k][1]])) for k in range(n)
          if sum(d[:k + 1]) + (n - k - 1) * d[k] < f["m2_tau"] * n]
    return mask, max(ok, default=0.0)


def near(f, lp, lq, a):
    """DPPO's mask of a response, as verl writes it."""
    p, q = torch.exp(lp.detach()), torch.exp(lq)
    if f["clip"] == "binary_tv":
        ok = (p - q <= f["eps_high"]) if a > 0 else (p - q >= -f["eps_low"])
    else:
        kl = q * (lq - lp.detach()) + (1 - q) * torch.log((1 - q + 1e-8) / (1 - p + 1e-8))
        ok = ((kl <= f["eps_high"]) | (p <= q)) if a > 0 else ((kl <= f["eps_low"]) | (p >= q))
    return ok.double().tolist()


def balanced(f, case, L, adv, count):
    """BAPO's bounds: the loop of its released code over the batch's tokens."""
    rows = [(float(adv[g][i]), torch.exp(l.detach()), k) for g, ls in enumerate(L) for i, (l, k) in enumerate(zip(ls, count[g]))]

    def ratio(low, high):
        pos = sum((torch.clamp(u, max=high) * a * k).sum() for a, u, k in rows if a > 0)
        neg = -sum((torch.clamp(u, min=low) * a * k).sum() for a, u, k in rows if a < 0)
        return INF if neg <= 0 else float(pos / (neg + 1e-8))

    low, high = 1 - f["eps_low"], 1 + f["eps_high"]
    while ratio(low, high) < f["balance"] and low < f["balance_low"]:
        low = min(low + f["balance_step"], f["balance_low"])
    while ratio(low, high) < f["balance"] and high < f["balance_high"]:
        high = min(high + f["balance_step"], f["balance_high"])
    return low, high


def mask(level, test, lo, hi, x, tv, free=None):
    """0/1 of every token by one of the two tests."""
    one = torch.ones(len(x))
    if level == "none":
        return one
    stat = {"ratio": x, "k1": -x, "k2": x * x / 2, "k3": torch.exp(x) - 1 - x, "tv": tv}[test]
    stat = {"token": lambda: stat, "sequence": lambda: stat.sum() * one, "sequence_mean": lambda: stat.mean() * one,
            "sequence_max": lambda: stat.max() * one}[level]()
    if test == "ratio":
        stat = torch.exp(stat)
        ok = (stat >= lo) & (stat <= hi)
        if free is not None:
            a, low, high = free
            ok = ok | ((a >= 0) & (stat <= low)) | ((a <= 0) & (stat >= high))
        return ok.double()
    if test == "k1":
        return ((stat >= (math.log(lo) if lo > 0 else -INF)) & (stat <= math.log(hi))).double()
    return (stat <= hi).double()


def factors(f, l0, q, a):
    n, x = len(l0), l0
    tv = (torch.exp(q + l0) - torch.exp(q)).abs()
    b = torch.ones(n)

    def cut(v):
        v = torch.clamp(v, -f["tis_log_clamp"], f["tis_log_clamp"])
        return torch.clamp(torch.exp(v), f["tis_min"], f["tis_max"])

    lv = f["tis_level"]
    if lv == "token":
        b = cut(x)
    elif lv in ("sequence", "sequence_mean"):
        b = b * cut(x.sum() if lv == "sequence" else x.mean())
    elif lv == "token_geometric":
        b = b * torch.exp(torch.log(cut(x)).mean())
    elif lv == "future":
        gamma = 2.0 ** (-1 / f["future_half_life"])
        seen = torch.where(x > math.log(f["dual_clip"]), 0 * x, x)
        b = cut(torch.stack([sum(gamma ** (s - t) * seen[s] for s in range(t, n)) for t in range(n)]))
    x = torch.clamp(x, -f["mis_log_clamp"], f["mis_log_clamp"])
    k = (mask(f["mis_level"], f["mis_test"], f["mis_min"], f["mis_max"], x, tv,
              (a, f["mis_free_low"], f["mis_free_high"]))
         * mask(f["mis2_level"], f["mis2_test"], f["mis2_min"], f["mis2_max"], x, tv))
    return b, k


def vtrace_recursion(f, u):
    """Discounted-free recursion backward: A_t = rho_t * (prefix products), from the definition."""
    T, w = len(u), []
    for t in range(T):
        v = min(f["rho_bar"], u[t])
        if t < T - 1:
            for s in range(t + 1, T - 1):
                v *= min(f["c_bar"], u[s])
            v *= min(f["rho_bar"], u[T - 1])
        w.append(v)
    return torch.tensor(w)


def aggregation(f, case, keep, kept):
    """z(g, i), the weight of a token of response i of group g."""
    lengths = [[len(r["logp"]) for r in g] for g in case["groups"]]
    longest = max(max(t) for t in lengths)
    groups = sum(keep)
    tokens = sum(sum(k) for k, on in zip(kept, keep) if on)
    powers = sum(k ** -f["length_power"] for kg, on in zip(kept, keep) if on for k in kg if k)

    def z(g, i):
        n, k = groups * len(lengths[g]), kept[g][i]
        if not keep[g] or k == 0:
            return 0.0
        return {"sequence_sum": lambda: 1 / n, "sequence_mean": lambda: 1 / (n * k),
                "token_mean": lambda: 1 / tokens,
                "group_token_mean": lambda: 1 / (groups * sum(kept[g])),
                "fixed_length": lambda: 1 / (n * (case["max_length"] or longest)),
                "length_power": lambda: k ** -f["length_power"] / (longest * powers),
                "token_sum": lambda: 1.0}[f["aggregate"]]()
    return z


def all_factors(f, lp, lq, lx, adv):
    fac = [[factors(f, ((x if f["correction_of"] == "proximal" else p) - q).detach(), q, a)
            for p, q, x, a in zip(*z)] for z in zip(lp, lq, lx, adv)]
    if f["tis_normalise"]:
        first = None if f["tis_level"] in ("token", "future") else 1  # one factor for each response
        m = torch.cat([b[:first] for g in fac for b, _ in g]).mean()
        fac = [[(b / m, k) for b, k in g] for g in fac]
    return fac


def log_denominator(f, case, scope, p, q):
    lse = torch.logsumexp
    d = {"self_normalised": lambda: lse(2 * q, 0) - lse(q, 0),
         "mean": lambda: lse(q, 0) - math.log(len(scope)),
         "exact": lambda: torch.tensor(case["log_denominator"][scope[0][0]]),
         "expected_p": lambda: lse(p + q, 0) - lse(q, 0)}[f["denominator"]]()
    return d if f["denominator_gradient"] else d.detach()


def normalised(f, case, X, P, Q, drift):
    """Group expectation, self-normalisation and the group's mean ratio, scope by scope; drift: CPPO's term of a response."""
    flat = [(g, i) for g in range(len(X)) for i in range(len(X[g]))]
    if f["group_scope"] == "prompt":
        scopes = [[(g, i) for i in range(len(X[g]))] for g in range(len(X))]
    else:
        parts = -(-len(flat) // f["microbatch"])
        scopes = [flat[k::parts] for k in range(parts)]
    new = [list(g) for g in X]
    for sc in scopes:
        p, q, x = (torch.stack([V[g][i] for g, i in sc]) for V in (P, Q, X))
        if f["ratio"] == "group_mean":
            for g, i in sc:
                new[g][i] = torch.log(torch.exp(x.detach()).mean())
            continue
        if f["ratio"] == "self_normalised":
            d = torch.logsumexp(x, 0) - math.log(len(sc))
            d = d if f["denominator_gradient"] else d.detach()
        else:
            d = log_denominator(f, case, sc, p, q)
        for (g, i), pi, qi, xi in zip(sc, p, q, x):
            near = f["kappa"] > 0 and drift(g, i) < f["kappa"]
            new[g][i] = xi - d if f["ratio"] == "self_normalised" else pi - (qi if near else d)
    return new


def response_ratios(f, case, lp, lq, old, L, count):
    """Log-ratio of every response, before log_floor and log_cap; count: 0 for tokens it leaves out."""
    red = (lambda v, k: (v * k).sum() / max(1.0, float(k.sum()))) if f["log_prob"] == "mean" else (lambda v, k: (v * k).sum())
    P, Q, X = ([[red(v, k) for v, k in zip(*g)] for g in zip(V, count)] for V in (lp, old, L))
    if f["ratio"] in ("group_expectation", "self_normalised", "group_mean"):
        def drift(g, i):
            l = (lp[g][i] - lq[g][i]).detach()
            return float((torch.exp(-l) + l - 1).mean())
        return normalised(f, case, X, P, Q, drift)
    if f["ratio"] == "mixture":
        a = f["mixture"]
        if a == 1:
            return [[0 * x for x in g] for g in X]
        if a > 0:
            return [[-torch.logaddexp(math.log(a) + 0 * x, math.log1p(-a) - x) for x in g] for g in X]
    return X


def masked(f, x, a):
    u = torch.exp(x.detach())
    if not f["token_mask"] or a == 0:
        return torch.zeros_like(u).bool()
    return (u > 1 + f["mask_high"]) if a > 0 else (u < 1 - f["mask_low"])


OWN_TOKEN = ("sequence_token", "group_mean")  # one ratio of a response, the gradient of each token's own p


def response_term(f, a, p, l, free, omega, kept, count):
    """Objective of a response whose ratio is one number: the term, its log-ratio, the clip's act."""
    lim = lambda v: torch.clamp(v, f["log_floor"], f["log_cap"])
    x = lim(free)
    if f["clip"] == "token_log":
        lt = torch.clamp(l, max=f["eps_high"]) if a >= 0 else torch.clamp(l, min=-f["eps_low"])
        hit = bool(((lt != l) & (count > 0)).any())
        val = torch.exp(lim((lt * count).sum() / max(1.0, float(count.sum()))))
    else:
        # GSPO-token's limits are put on the sum, whose gradient is the token's own.
        own = lim(free.detach() + l - l.detach()) if f["ratio"] in OWN_TOKEN else x
        val = clip_value(f, own, a, 1)
        hit = bool(clip_acts(f, own, a, val).any())
    if bool(masked(f, x, a)):
        val, hit = val * 0, True
    if f["stop"]:
        term = (omega * val.detach() * a * p).sum()
    else:
        term = (omega * val * a).sum()
        if f["aggregate"] == "sequence_sum" and f["ratio"] not in OWN_TOKEN:
            term = term / max(kept, 1)
    return term, [float(x.detach())], [float(hit)]


def dropped(f, case, adv, lp, lq):
    """Which responses the gate takes out of the policy term, by definition, one at a time."""
    red = torch.mean if f["gate.log_prob"] == "mean" else torch.sum
    P, Q = ([[float(torch.exp(red(v.detach()))) for v in g] for g in V] for V in (lp, lq))
    flat = [(g, i) for g in range(len(P)) for i in range(len(P[g]))]
    parts = -(-len(flat) // f["microbatch"])

    def likelihood(g, i):
        if f["gate.of"] == "sampler":
            return P[g][i] / Q[g][i]
        scope = [(g, j) for j in range(len(P[g]))]
        if f["gate.scope"] == "microbatch":
            scope = flat[flat.index((g, i)) % parts::parts]
        q = [Q[h][j] for h, j in scope]
        return P[g][i] * sum(q) / sum(v * v for v in q)

    out = set()
    for g, i in flat:
        a = float(adv[g][i])
        if a < 0 and f["gate.negative_below"] > 0 and likelihood(g, i) < f["gate.negative_below"]:
            out.add((g, i))
        if a < 0 and f["gate.negative_above"] < INF and likelihood(g, i) > f["gate.negative_above"]:
            out.add((g, i))
        if a > 0 and f["gate.positive_above"] < INF and likelihood(g, i) > f["gate.positive_above"]:
            out.add((g, i))
    return out


def token_ratio(f, l, gap):
    if f["ratio"] == "token_mixture":
        share = torch.full_like(l, f["mixture"])
        if f["mixture_anneal"]:
            share = 1 / (1 + torch.exp(f["mixture_slope"] * (gap - f["mixture_midpoint"])))
        return torch.log(torch.exp(l) / (share * torch.exp(l) + (1 - share)))
    if f["ratio"] == "none":
        return l.detach() * 0
    if f["ratio"] == "token":
        return l
    if f["ratio"] == "prefix":
        return torch.clamp(torch.cumsum(l.detach(), 0) + l - l.detach(), f["log_floor"], f["log_cap"])
    return torch.log(vtrace_recursion(f, [math.exp(v) for v in l.tolist()]))


def token_term(f, a, p, l, omega, stays, bound, gap, old):
    """The same for token ratios; stays and bound are M2PO's."""
    x = token_ratio(f, l, gap)
    if f["clip"] == "second_moment":
        # The bound is itself a token's ratio: at equality the gradient stays (act() of the
        # formulas), which clamp() leaves to its own convention.
        over = x > bound if a >= 0 else x < -bound
        v = torch.where(over, torch.tensor(math.exp(bound if a >= 0 else -bound)), torch.exp(x))
    else:
        v = clip_value(f, x, a, torch.arange(1.0, len(l) + 1), torch.exp(old))
    mask = masked(f, x, a).double()
    hits = torch.maximum(torch.maximum(clip_acts(f, x, a, v), 1 - stays), mask)
    v = v * (1 - mask)
    if f["stop"] or f["ratio"] == "none":
        v = v.detach() * p
    return (omega * stays * v * a).sum(), x.detach().tolist(), hits.tolist()


def evaluate(f, case):
    groups = case["groups"]
    lp = [[torch.tensor(r["logp"], requires_grad=True) for r in g] for g in groups]
    lq, lx, lr = ([[torch.tensor(r[key]) for r in g] for g in groups]
                  for key in ("logq", "logprox", "logref"))
    old = lx if f["old_policy"] == "proximal" else lq
    if f["old_policy"] == "interpolated":  # AReaL's compute_prox_logp_approximations, loglinear
        share = [[torch.tensor([min(max((d - 1) / d, 0), 1) if d > 0 else 0.0 for d in map(float, r["version_gap"])]) for r in g]
                 for g in groups]
        old = lx = [[q + s * (p.detach() - q) for p, q, s in zip(*z)] for z in zip(lp, lq, share)]
    L = [[torch.clamp(p - o, -f["token_log_clamp"], f["token_log_clamp"]) for p, o in zip(*z)]
         for z in zip(lp, old)]
    if f["objective"] == "disco":
        return disco(f, lp, lq, lr, L, groups)
    if f["objective"] == "real":
        return real(f, lp, lq, lr, L, groups)
    adv, keep = advantages(f, groups)
    fac = all_factors(f, lp, lq, lx, adv)
    kept = [[float(k.sum()) if f["mask_denominator"] == "kept" else float(len(k)) for _, k in g]
            for g in fac]
    z = aggregation(f, case, keep, kept)
    gone = dropped(f, case, adv, lp, lq)
    count = [[k if f["mask_denominator"] == "kept" and bool(k.any()) else torch.ones_like(k) for _, k in g] for g in fac]
    f = dict(f, bounds=balanced(f, case, L, adv, count) if f["balance"] else None)
    X = response_ratios(f, case, lp, lq, old, L, count)
    if f["clip"] == "gamma":
        X = [[x + (torch.log(b) * c).sum() for x, (b, _), c in zip(*v)] for v in zip(X, fac, count)]
        fac = [[(torch.ones_like(b), k) for b, k in g] for g in fac]
    flat = [(g, i) for g in range(len(groups)) for i in range(len(groups[g]))]
    entropy = [[torch.tensor(r["entropy"]) for r in g] for g in groups]
    bound_of_entropy = torch.quantile(torch.cat([e for g in entropy for e in g]), 1 - f["top_entropy"])
    stays, bound, at = [1.0] * sum(len(l) for g in L for l in g), INF, 0
    if f["clip"] == "second_moment":
        stays, bound = m2(f, [v for g in L for l in g for v in l.tolist()],
                          [float(adv[g][i]) for g, i in flat for _ in L[g][i]])
    if f["clip"] in ("binary_tv", "binary_kl"):
        stays = [v for g, i in flat for v in near(f, lp[g][i], old[g][i], adv[g][i])]
    share = kl_tokens(f, [(adv[g][i], v) for g, i in flat for v in lp[g][i].tolist()])
    obj, loss, logs, acts, left_out = torch.tensor(0.0), torch.tensor(0.0), [], [], []
    for g, i in flat:
        a, p, l, (b, k) = adv[g][i], lp[g][i], L[g][i], fac[g][i]
        far = float((lq[g][i] - p.detach()).mean()) > f["off_policy_mask"]
        omega = z(g, i) * b * k * (0.0 if a < 0 and far else 1.0)
        if f["top_entropy"] < 1:
            omega = omega * (entropy[g][i] >= bound_of_entropy)
        change = (entropy[g][i] + 1e-8) / (torch.tensor(groups[g][i]["entropy_prox"]) + 1e-8)
        omega = omega * ((change > f["entropy_ratio_low"]) & (change < f["entropy_ratio_high"]))
        if f["ratio"] in ("none", "token", "prefix", "vtrace", "token_mixture"):
            term, x, hit = token_term(f, a, p, l, omega, torch.tensor(stays[at:at + len(l)]), bound,
                                      torch.tensor([float(v) for v in groups[g][i]["version_gap"]]), old[g][i])
        else:
            term, x, hit = response_term(f, a, p, l, X[g][i], omega, kept[g][i], count[g][i])
        if (g, i) in gone:
            term, hit = term * 0, [1.0] * len(hit)
        left_out += [(g, i) in gone] * len(hit)
        wanted = torch.tensor(share[at:at + len(l)])
        at, logs, acts = at + len(l), logs + [x], acts + hit
        if a != 0:
            obj = obj + term
        counted = k if f["mask_denominator"] == "kept" else 1.0
        ratio = 1.0
        if f["ref_kl_ratio"]:
            ratio = torch.exp(l if f["ratio"] == "token" else torch.clamp(X[g][i], f["log_floor"], f["log_cap"]))
        loss = loss + divergence(f, p, lq[g][i], lr[g][i], z(g, i) * counted, wanted, ratio)
    return finish(loss - obj, lp, adv, logs, acts, left_out, lq)


def kl_tokens(f, tokens):
    """1 for the tokens that kl_share chooses of (advantage, logp), as verl's kl_cov does."""
    if f["kl_share"] >= 1:
        return [1.0] * len(tokens)
    a, p = (torch.tensor([float(t[k]) for t in tokens]) for k in (0, 1))
    cov = (a - a.mean()) * (p - p.mean())
    out = [0.0] * len(tokens)
    order = sorted(range(len(tokens)), key=lambda k: (-float(cov[k]), -float(p[k]), k))  # topk() leaves open which of equal ones
    for k in order[:max(1, int(len(tokens) * f["kl_share"]))]:
        out[k] = 1.0
    return out


def divergence(f, p, q, ref, weight, wanted=1.0, ratio=1.0):
    l, d = p - q, p - ref
    kl = wanted * {"cppo": torch.expm1(-l) + l, "k1": -l, "k2": l * l / 2, "k3": torch.expm1(l) - l,
                   "abs": l.abs()}[f["kl_form"]]
    form, plus = (f["ref_kl_form"][:2], True) if f["ref_kl_form"].endswith("_plus") else (f["ref_kl_form"], False)
    rf = {"k1": d, "k2": d * d / 2, "k3": torch.expm1(-d) + d, "abs": d.abs()}[form]
    if plus:  # verl's straight-through: the value of one, the gradient of k2
        rf = d * d / 2 - (d * d / 2).detach() + rf.detach()
    rf = ratio * rf
    total = torch.tensor(0.0)
    if f["kl_coef"]:
        total = total + f["kl_coef"] * (weight * kl).sum()
    if f["ref_kl_coef"]:
        total = total + f["ref_kl_coef"] * (weight * rf).sum()
    return total


def real(f, lp, lq, lr, L, groups):
    """Red-RL/REAL 1c30726, compute_policy_loss_real: two log-sum-exps with a zero, of scores over tau."""
    total, n, advs, zero = torch.tensor(0.0), sum(len(p) for g in lp for p in g), [], torch.zeros(1)
    for g, lg in zip(groups, L):
        s = torch.stack([l.mean() for l in lg])
        r = torch.tensor([y["reward"] for y in g])
        j = torch.tensor(0.0)
        if 0 < int((r == 1).sum()) < len(r):
            t = s / f["disco_tau"]
            j = -torch.logsumexp(torch.cat([t[r == 0], zero]), 0) - torch.logsumexp(torch.cat([-t[r == 1], zero]), 0)
            advs.append(torch.autograd.grad(j, s, retain_graph=True)[0])
        else:
            advs.append(torch.zeros(len(r)))
        total = total + j / len(groups)
    loss = -total
    for pg, qg, rg in zip(lp, lq, lr):
        for p, q, ref in zip(pg, qg, rg):
            loss = loss + divergence(f, p, q, ref, 1 / n)
    return finish(loss, lp, advs, [l.tolist() for lg in L for l in lg], [0.0], None, None)


def disco(f, lp, lq, lr, L, groups):
    total, n, advs = torch.tensor(0.0), sum(len(p) for g in lp for p in g), []
    drift = sum((q - p).sum() for pg, qg in zip(lp, lq) for p, q in zip(pg, qg)) / n
    logs = []
    for g, pg, lg in zip(groups, lp, L):
        ratio = f["ratio"] == "token"
        s = torch.stack([(torch.exp(l) if ratio else p).mean() for p, l in zip(pg, lg)])
        logs += [(l.detach() if ratio else l.detach() * 0).tolist() for l in lg]
        r = torch.tensor([y["reward"] for y in g])
        pos, neg = s[r == 1], s[r == 0]
        j = torch.tensor(0.0)
        if len(pos) and len(neg):
            t = f["disco_tau"]
            lost = (t * (torch.logsumexp(neg / t, 0) - math.log(len(neg)))
                    if f["negatives"] == "softmax" else neg.mean())
            j = pos.mean() - lost
            advs.append(torch.autograd.grad(j, s, retain_graph=True)[0])
        else:
            advs.append(torch.zeros(len(r)))
        total = total + j / len(groups)
    push = f["penalty"] * max(0.0, float(drift.detach()) - f["penalty_margin"])
    loss = -total + push * drift
    for pg, qg, rg in zip(lp, lq, lr):
        for p, q, ref in zip(pg, qg, rg):
            loss = loss + divergence(f, p, q, ref, 1 / n)
    return finish(loss, lp, advs, logs, [0.0], None, None)


def finish(loss, lp, adv, logs, acts, left_out, lq):
    """lq: the sampler's log-probabilities, or None where the method has no advantages."""
    leaves = [p for g in lp for p in g]
    grads = torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * len(leaves)
    c = [(-g if g is not None else torch.zeros_like(p)) for g, p in zip(grads, leaves)]
    each = iter(logs)
    units = [[(float(a), next(each)) for a in g] for g in adv]
    moves = [] if lq is None else [(float(a), (p - q).tolist()) for ag, pg, qg in zip(adv, lp, lq)
                                   for a, p, q in zip(ag, pg, qg)]
    metrics, mean_aw = metrics_oracle.own(units, acts, left_out, moves)
    return dict(loss=float(loss.detach()), advantages=[a for g in units for a, _ in g],
                log_weights=[x for v in logs for x in v], mean_aw=mean_aw, metrics=metrics,
                coefficients=[float(w) for v in c for w in v])


def make_case(rng, sizes, spread, kind):
    groups = []
    for n in sizes:
        g = []
        for i in range(n):
            t = 1 if kind == "single" else rng.randint(1, 5)
            q = [-rng.uniform(0.05, 2) for _ in range(t)]
            step = lambda: rng.gauss(0, spread)
            r = 1.0 if kind == "equal" or (kind == "mixed" and not groups) else float(rng.random() < 0.5) if i > 1 else float(i)
            g.append(dict(reward=r, version_gap=[rng.randint(0, 5) for _ in range(t)], logq=q, logp=[v + step() for v in q],
                          logprox=[v + step() / 2 for v in q], logref=[v + step() for v in q]))
        groups.append(g)
    if kind == "extreme":
        for g in groups:
            for r, total in zip(g, (700.0, -700.0)):
                r["logp"] = [v + total / len(r["logq"]) for v in r["logq"]]
    return dict(groups=groups, max_length=0 if kind == "mixed" else 9, log_denominator=[-rng.uniform(1, 4) for _ in sizes])


VARIANTS = [
    ("grpo", dict(baseline=b)) for b in ("none", "constant", "leave_one_out")] + [
    ("grpo", dict(baseline="constant", baseline_value=0.4)), ("grpo", dict(std_ddof=0)),
    ("grpo", dict(scale="batch_std")), ("grpo", dict(scale="none")), ("is", dict(log_prob="mean")),
    ("grpo", dict(kl_coef=0.1)), ("gepo", dict(kl_coef=0.3, kl_form="k3")),
    ("dapo", dict(kl_coef=0.3, kl_form="k2")), ("dapo", dict(kl_coef=0.3, kl_form="k1")),
    ("is", dict(kl_coef=0.3, ref_kl_coef=0.2)), ("grpo", dict(ref_kl_coef=0.2, ref_kl_form="k1")),
    ("grpo", dict(ref_kl_coef=0.2, ref_kl_form="k2")),
    ("gepo", dict(clip="none")), ("gepo", dict(denominator="mean")), ("gepo", dict(log_prob="mean")),
    ("gepo", dict(denominator="exact")), ("gepo", dict(group_scope="microbatch", microbatch=3)),
    ("eqp", dict(group_scope="microbatch", microbatch=3)), ("eqp", dict(denominator_gradient=False)),
    ("eqp", dict(clip="none", log_prob="sum")), ("snis", dict(ratio_gradient=True, denominator_gradient=True)),
    ("snis", dict(ratio_gradient=True)), ("tis", dict(ratio_gradient=True)),
    ("defensive", dict(ratio_gradient=True, mixture=0.5)), ("cispo", dict(token_mask=True)),
    ("m2po", dict(m2_form="threshold")), ("m2po", dict(m2_set="all")), ("m2po", dict(m2_set="clipped")),
    ("m2po", dict(m2_set="all", m2_form="threshold", m2_tau=1e-9)), ("vtrace", dict(rho_bar=2, c_bar=1.5)),
    ("ctpo", dict(dual_clip=0.05, token_log_clamp=20, log_cap=10, aggregate="token_mean", clip_power=0)),
    ("gspo", dict(aggregate="token_mean", log_cap=0.02)), ("topr", dict(baseline="constant", baseline_value=0.5)),
    ("gmpo", dict(tis_level="token_geometric", tis_max=1.1)), ("aipo", dict(ratio_gradient=True, cap=1.1)),
    ("vespo", dict(tis_level="token", tis_max=1.2)), ("decoupled_ppo", dict(mis_level="token", mis_max=1.2)),
    ("grpo", dict(ratio="prefix", log_floor=-0.1))] + [
    ("grpo", dict(aggregate=a)) for a in ("sequence_sum", "token_mean", "group_token_mean", "fixed_length",
                                          "length_power")] + [
    (r, dict(tis_level=lv, tis_max=1.2, tis_min=0.8)) for r in ("grpo", "gspo", "is") for lv in
    ("token", "sequence", "sequence_mean")] + [
    ("grpo", dict(tis_level="sequence", tis_log_clamp=0.1, tis_normalise=True, correction_of="learner"))] + [
    (r, dict(mis_level=lv, mis_test=t, mis_min=0.9 if t in ("ratio", "k1") else 0,
             mis_max=1.1 if t in ("ratio", "k1") else 0.01, mask_denominator=m, kl_coef=0.1))
    for r in ("grpo", "gspo") for lv in ("token", "sequence", "sequence_mean")
    for t in ("ratio", "k1", "k2", "k3") for m in ("all", "kept")] + [
    ("mhpo", dict(tanh_scale=0.7, hazard_power_up=2.5, hazard_width_up=1.3, hazard_power_down=1.2,
                  hazard_width_down=0.5)),
    ("vespo", dict(gamma_k_positive=1.5, gamma_rate_positive=2.5, gamma_k_negative=0.5,
                   gamma_rate_negative=1, token_log_clamp=0.4)),
    ("vespo", dict(log_cap=0.1, log_floor=-0.2, token_mask=True)),
    ("topr", dict(positive_low=0.9, positive_high=1.2, negative_low=0.8, negative_high=0.95,
                  baseline="constant", baseline_value=0.5)),
    ("topr", dict(ratio_gradient=True, negative_low=0.5, negative_high=1.1, baseline="group_mean")),
    ("sapo", dict(tau_positive=2, tau_negative=0.5)), ("sapo", dict(ratio_gradient=False)),
    ("delta_l", dict(length_power=0.3)), ("delta_l", dict(length_power=1, dual_clip=1.3)),
    ("bnpo", dict(dual_clip=1.25)), ("cispo", dict(token_mask=True, mask_low=0.1, mask_high=0.3)),
    ("cispo", dict(eps_low=0.1, eps_high=0.15, ratio_gradient=True)),
    ("gmpo", dict(token_mask=True, mask_low=0.05, mask_high=0.1, eps_low=0.2, eps_high=0.1)),
    ("gspo", dict(token_mask=True, mask_low=0.01, mask_high=0.02, clip="none")),
    ("disco", dict(disco_tau=0.3, penalty=50, penalty_margin=0.01)),
    ("disco", dict(kl_coef=0.1, ref_kl_coef=0.2, penalty=0)),
    ("disco_b", dict(ratio="token", old_policy="proximal", kl_coef=0.1, kl_form="k3")),
    ("disco_l_ratio", dict(token_log_clamp=0.3, penalty_margin=0.01)),
    ("gepo_plus", dict(kappa=0.1)), ("gepo_plus", dict(kappa=0.05, ratio_gradient=False, clip="cap", cap=1.5)),
    ("m2po", dict(m2_tau=0.005)), ("m2po", dict(m2_set="clipped", m2_form="threshold", m2_tau=0.2, eps_low=0.1,
                                              eps_high=0.1)),
    ("m2po", dict(ratio_gradient=False, m2_set="all", mis_level="token", mis_max=1.2)),
    ("ctpo", dict(clip_power=1, log_cap=0.2, log_floor=-0.3)), ("ctpo", dict(token_log_clamp=0.2, clip="cap", cap=1.4)),
    ("ctpo", dict(ratio_gradient=False, old_policy="proximal")),
    ("grpo", dict(dual_clip=1.3, eps_low=0.1, eps_high=0.35)), ("grpo", dict(token_log_clamp=0.15, clip="none")),
    ("grpo", dict(clip="ppo_power", eps_low=0.1, eps_high=0.05, clip_power=0.3, dual_clip=0.2)),
    ("grpo", dict(ratio_gradient=False)), ("grpo", dict(old_policy="proximal")), ("grpo", dict(scale_eps=0.5)),
    ("grpo", dict(std_ddof=0, scale_eps=0, baseline="leave_one_out")), ("grpo", dict(drop_equal=True)),
    ("grpo", dict(drop_equal=True, kl_coef=0.1, ref_kl_coef=0.1, aggregate="length_power")),
    ("dapo", dict(drop_equal=True)), ("magistral", dict(drop_equal=False, scale_eps=0.3)), ("magistral", dict(std_ddof=0)),
    ("is", dict(log_cap=0.1, log_floor=-0.2)), ("is", dict(token_log_clamp=0.2)), ("is", dict(old_policy="proximal")),
    ("gepo", dict(log_cap=0.5, log_floor=-0.1, clip="none")), ("gepo", dict(token_log_clamp=0.1)),
    ("gepo", dict(old_policy="proximal", denominator="mean", group_scope="microbatch", microbatch=4)),
    ("gepo", dict(denominator="exact", ratio_gradient=False, clip="none")),
    ("gepo", dict(denominator="expected_p", clip="none")), ("gepo", dict(denominator="expected_p", ratio_gradient=False)),
    ("gepo", dict(denominator="expected_p", denominator_gradient=True)),
    ("eqp", dict(clip="none", log_cap=0.05, log_floor=-0.05)), ("eqp", dict(clip="none", old_policy="proximal")),
    ("eqp", dict(log_prob="sum", group_scope="microbatch", microbatch=2, clip="none", scale="group_std")),
    ("snis", dict(ratio_gradient=True, denominator_gradient=True, log_cap=0.1, token_log_clamp=0.3)),
    ("snis", dict(group_scope="microbatch", microbatch=3)), ("snis", dict(log_prob="mean", clip="cap", cap=1.1)),
    ("defensive", dict(mixture=0.4)), ("defensive", dict(ratio_gradient=True, log_cap=0.2, log_prob="mean")),
    ("defensive", dict(mixture=0)), ("defensive", dict(mixture=1)), ("tis", dict(cap=1.5)),
    ("gspo_token", dict(clip="none", log_cap=0.02, log_floor=-0.03)), ("gspo_token", dict(token_log_clamp=0.2, clip="none")),
    ("gspo_token", dict(ratio_gradient=False)), ("gspo", dict(clip="sigmoid")), ("gspo", dict(clip="tanh_hazard")),
    ("gspo", dict(clip="clamp", eps_low=0.01, eps_high=0.02)), ("gmpo", dict(log_cap=0.02, log_floor=-0.02)),
    ("gmpo", dict(token_log_clamp=0.1)), ("vtrace", dict(rho_bar=0.9, c_bar=0.8, token_log_clamp=0.5)),
    ("vtrace", dict(clip="cap", cap=0.7)), ("reinforce", dict(tis_level="token_geometric", tis_min=0.9, tis_max=1.05)),
    ("grpo", dict(tis_level="token_geometric", tis_min=0.9, tis_max=1.05, tis_log_clamp=0.2)),
    ("decoupled_ppo", dict(tis_level="sequence_mean", tis_max=1.1, correction_of="learner", tis_normalise=True))] + [
    ("gspo", dict(aggregate=a, mis_level="token", mis_max=1.1, mask_denominator="kept", clip="none")) for a in
    ("sequence_sum", "token_mean", "group_token_mean", "fixed_length", "length_power")] + [
    ("gspo", dict(kl_coef=0.2, kl_form=k, ref_kl_coef=0.1, ref_kl_form=r)) for k, r in
    (("cppo", "k3"), ("k1", "k1"), ("k2", "k2"), ("k3", "k3"))] + [
    (r, {"gate.negative_below": 0.95, "gate.positive_above": 1.05, **more}) for r in
    ("grpo", "gspo", "tis", "gspo_token", "decoupled_ppo", "eqp", "snis", "gepo") for more in
    ({}, {"gate.scope": "microbatch", "microbatch": 3}, {"gate.of": "sampler"}, {"gate.log_prob": "sum"})] + [
    ("dr_grpo", {"gate.negative_below": 1.1}), ("grpo", {"gate.negative_above": 1}), ("gspo", {"gate.negative_above": 0.95, "gate.of": "sampler"}), ("dr_grpo", {"gate.positive_above": 0.9, "kl_coef": 0.1}),
    ("m2po", {"gate.of": "sampler", "gate.negative_below": 1}),
    ("mois", dict(mixture_anneal=False, mixture=0.4)), ("mois", dict(mixture_midpoint=2, mixture_slope=0.7)),
    ("mois", dict(clip="cap", cap=1.05, ratio_gradient=False, mixture_midpoint=1)),
    ("mois", dict(clip="none", token_log_clamp=0.3, mixture_midpoint=3)),
    ("mois", dict(mixture_midpoint=3, mis_level="token", mis_max=1.2, aggregate="token_mean"))] + [
    ("gspo", dict(kl_coef=0.2, kl_form=k, ref_kl_coef=0.1, ref_kl_form=r)) for k, r in
    (("abs", "abs"), ("abs", "k1_plus"), ("k3", "k3_plus"))] + [
    (r, dict(scale=s)) for r in ("grpo", "reinforce") for s in ("reward_std", "token_std", "nonzero_share")] + [
    ("grpo", dict(baseline=b, scale=s)) for b, s in (
        ("length_weighted", "none"), ("length_weighted", "group_std"), ("runner_up", "none"), ("runner_up", "group_std"),
        ("runner_up", "reward_std"))] + [
    ("magistral", dict(scale="token_std", std_ddof=0)), ("grpo", dict(aggregate="token_sum")),
    ("gspo", dict(aggregate="token_sum")), ("kl_cov", dict(kl_share=0.3)), ("kl_cov", dict(kl_share=0.5, kl_coef=0.1, kl_form="k3")),
    ("dppo_tv", dict(eps_low=0.05, eps_high=0.1)), ("dppo_tv", dict(cap=1.1)), ("dppo_kl", dict(eps_low=0.005, eps_high=0.01)),
    ("dppo_kl", dict(cap=1.05, old_policy="proximal", mis_level="token", mis_max=1.2)),
    ("grpo", dict(ref_kl_coef=0.2, ref_kl_ratio=True)), ("gspo", dict(ref_kl_coef=0.2, ref_kl_ratio=True)),
    ("is", dict(ref_kl_coef=0.2, ref_kl_ratio=True, log_cap=0.1, log_floor=-0.2)),
    ("cispo", dict(ref_kl_coef=0.3, ref_kl_ratio=True, ref_kl_form="k3_plus", token_log_clamp=0.2)),
    ("gspo", dict(ref_kl_coef=0.2, ref_kl_ratio=True, mis_level="token", mis_max=1.1, mask_denominator="kept")),
    ("gspo_token", dict(aggregate="sequence_sum")), ("grpo", dict(top_entropy=0.2)), ("gspo", dict(top_entropy=0.5, kl_coef=0.1)), ("vespo", dict(top_entropy=0.8)),
    ("grpo", dict(off_policy_mask=0.05)), ("gspo", dict(off_policy_mask=0.02, clip="none")),
    ("vespo", dict(off_policy_mask=0.05, kl_coef=0.1)), ("grpo", dict(off_policy_mask=0, mis_level="token", mis_max=1.2))] + [
    ("grpo", dict(mis_level="sequence_max", mis_test=t, mis_max=0.02, mask_denominator="kept")) for t in ("k2", "k3")] + [
    (r, dict(mis_level="token", mis_test="k1", mis_min=0.8, mis_max=1.25, mis2_level=lv, mis2_test=t, mis2_max=hi,
             mis2_min=lo, mask_denominator=m))
    for r, m in (("grpo", "kept"), ("gspo", "kept"), ("dapo", "all"))
    for lv, t, lo, hi in (("token", "k2", 0, 0.02), ("sequence", "ratio", 0.8, 1.3), ("sequence_mean", "k1", 0.9, 1.2),
                          ("sequence_max", "k3", 0, 0.1))] + [
    ("grpo", dict(mis2_level="sequence_mean", mis2_test="k3", mis2_max=0.02)),
    ("grpo", dict(mis_level="sequence", mis_log_clamp=0.1, mis_min=0.8, mis_max=1.2)),
    ("vespo", dict(mis_level="token", mis_max=1.1, tis_level="token", tis_max=1.05, mask_denominator="kept")),
    ("gmpo", dict(mis_level="token", mis_max=1.1, mask_denominator="kept")),
    ("gepo", dict(mis_level="token", mis_max=1.1, mask_denominator="kept", clip="none"))] + [
    ("dapo", dict(tis_level=lv, tis_max=1.2, tis_normalise=True)) for lv in ("token", "sequence", "token_geometric")] + [
    ("gspo", dict(ratio="group_mean", clip="none")), ("gspo", dict(ratio="group_mean", eps_low=0.02, eps_high=0.02)),
    ("is", dict(ratio="group_mean", group_scope="microbatch", microbatch=3)),
    ("is", dict(ratio="group_mean", ratio_gradient=True, log_cap=0.05, aggregate="token_mean"))] + [
    ("maxrl", dict(scale_eps=0.5)), ("maxrl", dict(baseline="leave_one_out")), ("grpo", dict(scale="group_mean")),
    ("asymre", dict(baseline_value=0.3)), ("grpo", dict(baseline="leave_one_out", baseline_value=-0.2)),
    ("opo", dict(baseline_value=0.1)), ("vcpo", dict(baseline_value=0.1)), ("vcpo", dict(cap=1.1)),
    ("grpo", dict(baseline="off_policy")), ("opmd", dict(baseline_temperature=0.3, reward_kl_coef=0.2)),
    ("real", dict(disco_tau=0.1, token_log_clamp=0.3)), ("real", dict(old_policy="proximal", kl_coef=0.1, kl_form="k3")),
    ("erc", dict(entropy_ratio_low=0.5, entropy_ratio_high=2)), ("erc", dict(entropy_ratio_low=0, entropy_ratio_high=1.5, top_entropy=0.7)),
    ("erc", dict(ratio_gradient=False, entropy_ratio_high=INF)), ("gspo", dict(old_policy="proximal", entropy_ratio_low=0.3, entropy_ratio_high=3)),
    ("ppo_ewma", dict(tis_max=1.1, proximal_decay=0.5)),
    ("grpo", dict(baseline="soft_maximum")), ("grpo", dict(reward_kl_coef=0.1)),
    ("grpo", dict(reward_kl_coef=0.1, reward_kl_of="reference", scale="none", drop_equal=True)),
    ("tba", dict(reward_kl_coef=0.3, baseline="leave_one_out")), ("tba", dict(reward_kl_of="sampler", scale="batch_std")),
    ("ce_gppo", dict(keep_low=0.5, keep_high=0.25)), ("ce_gppo", dict(keep_low=0, keep_high=0, dual_clip=1.3)),
    ("gppo", dict(ratio="prefix", keep_high=0.5)), ("gppo", dict(ratio="sequence", keep_low=0.5, log_prob="mean")),
    ("bapo", dict(eps_high=0.05, balance=2, balance_step=0.01)), ("bapo", dict(eps_low=0.6, balance_low=0.95, balance=1.5)),
    ("bapo", dict(balance=3, balance_high=1.3, mis_level="token", mis_max=1.2, mask_denominator="kept")),
    ("bapo", dict(balance=0)), ("bapo", dict(balance=1.5, balance_step=0.02, eps_high=0.05)), ("bapo", dict(ratio_gradient=False, dual_clip=INF, balance=5)),
    ("dcpo", dict(eps_low=0.02, eps_high=0.01)), ("dcpo", dict(cap=1.05, dual_clip=1.2, old_policy="proximal")),
    ("dcpo", dict(ratio_gradient=False, eps_low=0.3)), ("aspo", dict(dual_clip=1.1, eps_low=0.1, eps_high=0.3)),
    ("aspo", dict(old_policy="proximal", mis_level="token", mis_max=1.2)), ("aspo", dict(token_mask=True, mask_low=0.05)),
    ("a3po", dict(ratio="sequence", log_prob="mean")), ("a3po", dict(clip="none", tis_max=1.05, mis_level="token", mis_max=1.1)),
    ("grpo", dict(old_policy="interpolated", ratio_gradient=False)),
    ("fipo", dict(future_half_life=1, tis_min=0.5, tis_max=3)), ("fipo", dict(dual_clip=1.2, future_half_life=2, tis_min=0)),
    ("fipo", dict(tis_min=0, tis_max=2, tis_normalise=True, correction_of="proximal", future_half_life=3)),
    ("gspo", dict(tis_level="future", tis_max=1.1, future_half_life=4)),
    ("prime_rl_ipo", dict(mis_max=0.02, mask_denominator="kept")), ("prime_rl", dict(eps_low=0.02, eps_high=0.05))] + [
    ("grpo", dict(mis_level=lv, mis_test="tv", mis_max=0.05, mis2_level="token", mis2_test="tv", mis2_max=0.1))
    for lv in ("token", "sequence", "sequence_mean", "sequence_max")] + [
    (r, dict(mis_level=lv, mis_min=0.9, mis_max=1.1, mis_free_low=lo, mis_free_high=hi, mask_denominator=m))
    for r in ("rec_ring", "grpo") for lv in ("token", "sequence_mean") for lo, hi in ((0.85, INF), (0, 1.15), (0.7, 1.3))
    for m in ("all", "kept")]


def short(value):
    """Fifteen significant digits: enough for comparisons to 1e-10, and a smaller file."""
    if isinstance(value, dict):
        return {k: short(v) for k, v in value.items()}
    if isinstance(value, list):
        return [short(v) for v in value]
    return float(f"{value:.15g}") if isinstance(value, float) else value


def main():
    rng = random.Random(20250819)
    shapes = [([4, 3], 0.3, "plain"), ([5], 0.05, "plain"), ([3, 4], 0.3, "single"), ([4], 0.3, "equal"),
              ([1], 0.3, "plain"), ([3, 4, 2], 0.8, "plain"), ([3], 0.1, "extreme"),
              ([3, 1, 4], 0.4, "mixed"), ([3, 1, 4], 0.1, "extreme")]
    inputs = [make_case(rng, *s) for s in shapes]
    chance = random.Random(2506)  # a generator of its own: entropies came later than the rest
    for case in inputs:
        for g in case["groups"]:
            for r in g:
                r["entropy"] = [chance.uniform(0, 3) for _ in r["logp"]]
    chance = random.Random(2512)
    for r in (r for case in inputs for g in case["groups"] for r in g):
        r["entropy_prox"] = [v * math.exp(chance.choice([0.02, 0.5]) * chance.gauss(0, 1)) for v in r["entropy"]]
    rounded = json.loads(json.dumps(inputs), parse_float=lambda s: round(float(s), 6))
    cases = []
    for name, change in [(r, {}) for r in ROWS] + VARIANTS:
        f = dict(DEFAULTS, **ROWS[name])
        stop = 1 - change["ratio_gradient"] if "ratio_gradient" in change else f["stop"]
        f.update(change, stop=stop)
        for k, case in enumerate(rounded):
            if change and k not in (0, 5, 7):
                continue
            cases.append(dict(algorithm=name, change=change, input=k, **evaluate(f, case)))
    for case in rounded:
        case["metrics"] = metrics_oracle.common(case)
    text = json.dumps(short(dict(metrics=metrics_oracle.OWN, inputs=rounded, cases=cases)),
                      separators=(",", ":"))
    # JSON lacks these: a number too large reads as infinity.
    text = text.replace("NaN", "null").replace("Infinity", "1e999")
    print(text.replace('},{"algorithm"', '},\n{"algorithm"'))


if __name__ == "__main__":
    main()
