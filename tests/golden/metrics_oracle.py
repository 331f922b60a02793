"""The diagnostics of paper/methods.md §5 by their textbook formulas, in NumPy's extended precision.

exp(1400) is an ordinary number there, so plain means and variances of plain weights serve where the
C code must stay in log space: nothing of its method is shared. policy_oracle.py calls own() for
every case and common() for every input.
"""
import numpy as np

F = np.longdouble
assert np.finfo(F).maxexp > 10000, "needs a long double with a 15-bit exponent (x86-64)"

OWN = ["clip_fraction", "iw_mean", "iw_max", "iw_variance", "log_iw_mean", "log_iw_max",
       "log_iw_variance", "ess", "aw_variance", "clipped_positive", "clipped_negative",
       "log_ratio_positive", "log_ratio_negative"]


def number(x):
    with np.errstate(over="ignore"):
        return float(x)


def log(x):
    with np.errstate(divide="ignore"):
        return np.log(F(x))


def mean_of_valid(values):
    """A group of one has no variance: it is left out; no group left: not a number."""
    values = [v for v in values if not np.isnan(v)]
    return sum(values, F(0)) / len(values) if values else F("nan")


def variance(x):
    if (x == x[0]).all():  # the mean of equal numbers need not be that number
        return F(0) if len(x) > 1 else F("nan")
    return x.var(ddof=1) if len(x) > 1 else F("nan")


def deviation(x):
    return np.sqrt(variance(np.array(x, F)))


# What is averaged over a response's tokens, whose deviation within a group is told.
MEANS = dict(gm_ratio_spread=lambda r: np.array(r["logp"], F) - np.array(r["logq"], F),
             gm_p_spread=lambda r: np.array(r["logp"], F))


def clipped_of_sign(groups, clipped, gated, sign):
    """The share of the units of that sign of advantage that are clipped and not gated."""
    signs = [np.sign(a) for g in groups for a, x in g for _ in x]
    if gated is None or sign not in signs:
        return F("nan")
    return F(np.mean([c > 0 and not out for c, out, s in zip(clipped, gated, signs) if s == sign]))


def moved(moves, sign):
    """The mean over the tokens of the responses with that sign of advantage of logp - logq."""
    steps = [F(l) for a, tokens in moves if np.sign(a) == sign for l in tokens]
    return F(np.mean(steps)) if steps else F("nan")


def own(groups, clipped, gated, moves):
    """moves: (A_i, [logp - logq of each token]) of every response. groups[g][i] = (A_i, log-ratios of response i: one per token, or one for a response ratio);
    clipped, gated: 0/1 per unit; gated None: the method has no clip by response. Returns the values named in OWN and mean_i A_i w_i of every group."""
    w = [[np.exp(np.array(x, F)) for _, x in g] for g in groups]
    aw = [[F(a) * v for (a, _), v in zip(g, ws)] for g, ws in zip(groups, w)]
    flat = [np.concatenate(v) for v in w]
    mean = mean_of_valid([v.mean() for v in flat])
    top = max(v.max() for v in flat)
    spread = mean_of_valid([variance(v) for v in flat])
    ess = mean_of_valid([v.sum() ** 2 / (len(v) * (v * v).sum()) for v in flat])
    products = mean_of_valid([variance(np.concatenate(v)) for v in aw])
    values = [np.mean(clipped), mean, top, spread, log(mean), log(top), log(spread), ess, products,
              clipped_of_sign(groups, clipped, gated, 1), clipped_of_sign(groups, clipped, gated, -1),
              moved(moves, 1), moved(moves, -1)]
    return [number(v) for v in values], [number(np.mean([v.mean() for v in g])) for g in aw]


def common(case):
    """What does not depend on the row."""
    rs = [r for g in case["groups"] for r in g]
    tokens = {k: np.concatenate([np.array(r[k], F) for r in rs])
              for k in ("logp", "logq", "logref", "version_gap")}
    l, d = tokens["logp"] - tokens["logq"], tokens["logp"] - tokens["logref"]
    k3 = np.expm1(l) - l
    pq, gepo = [], []
    spreads = {k: mean_of_valid([deviation([np.mean(f(r)) for r in g]) for g in case["groups"]])
               for k, f in MEANS.items()}
    for g in case["groups"]:
        p, q = (np.array([np.exp(np.array(r[k], F).sum()) for r in g]) for k in ("logp", "logq"))
        pq.append(variance(p / q))
        gepo.append(variance(p / ((q * q).sum() / q.sum())))
    pq, gepo = mean_of_valid(pq), mean_of_valid(gepo)
    values = dict(
        reward_mean=np.mean([r["reward"] for r in rs]), response_length=len(l) / len(rs),
        kl_k3=k3.mean(), kl_k3_seq=k3.sum() / len(rs), cppo_kl=(np.expm1(-l) + l).mean(),
        kl_ref=(np.expm1(-d) + d).mean(), staleness=tokens["version_gap"].mean(),
        staleness_max=tokens["version_gap"].max(), iw_variance_pq=pq, log_iw_variance_pq=log(pq),
        iw_variance_gepo=gepo, log_iw_variance_gepo=log(gepo), m2_log_ratio=(l * l).mean(),
        **spreads)
    return {k: number(v) for k, v in values.items()}
