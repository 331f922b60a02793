"""What `gepolab policy` must print for two groups typed by hand: plain Python, sums written out.

    python tests/golden/policy_by_hand.py > tests/golden/policy_by_hand.json
"""
import json
from math import exp, fsum as total, log, sqrt

GROUPS = [
    dict(rewards=[1, 0, 0.5],
         logp=[[-0.9, -1.6], [-0.35], [-2.1, -0.2, -0.75]],
         logq=[[-1.2, -1.5], [-0.5], [-1.7, -0.25, -1.1]]),
    dict(rewards=[0, 1],
         logp=[[-0.6, -0.8, -0.1, -1.9], [-1.4]],
         logq=[[-0.65, -1.3, -0.15, -1.8], [-1.25]]),
]


def mean(v):
    return total(v) / len(v)


def variance(v):
    return total((x - mean(v)) ** 2 for x in v) / (len(v) - 1)


def sequence_rows(ratios, clip, power):
    """A response's ratio w, clipped to 1 -+ clip as PPO does: c = A w / (groups * G), over T for a
    mean per token; and where no gradient passes, 0. With sequence_mean a response counts once."""
    out = []
    for group, w in zip(GROUPS, ratios):
        n = len(w)
        a = [r - mean(group["rewards"]) for r in group["rewards"]]
        rows = []
        for i in range(n):
            cut = (a[i] > 0 and w[i] > 1 + clip) or (a[i] < 0 and w[i] < 1 - clip)
            share = 1 / len(group["logp"][i]) if power == "mean" else 1
            rows.append([0.0 if cut else a[i] * w[i] * share / (len(GROUPS) * n)]
                        * len(group["logp"][i]))
        out.append(dict(advantages=a, coefficients=rows,
                        weights=[[v] * len(t) for v, t in zip(w, group["logp"])]))
    return out


def gepo(power):
    ratios = []
    for group in GROUPS:
        scale = (lambda t: len(t)) if power == "mean" else (lambda t: 1)
        p = [exp(total(t) / scale(t)) for t in group["logp"]]
        q = [exp(total(t) / scale(t)) for t in group["logq"]]
        e = total(v * v for v in q) / total(q)
        ratios.append([v / e for v in p])
    return ratios


def own_statistics(ratios):
    return dict(iw_mean=mean([mean(w) for w in ratios]), iw_max=max(max(w) for w in ratios),
                iw_variance=mean([variance(w) for w in ratios]),
                ess=mean([total(w) ** 2 / (len(w) * total(v * v for v in w)) for w in ratios]))


def dapo(low, high):
    tokens = sum(len(t) for g in GROUPS for t in g["logp"])
    out = []
    for group in GROUPS:
        r = group["rewards"]
        a = [(x - mean(r)) / (sqrt(variance(r)) + 1e-4) for x in r]
        u = [[exp(p - q) for p, q in zip(ps, qs)] for ps, qs in zip(group["logp"], group["logq"])]
        c = [[0.0 if (x > 0 and v > 1 + high) or (x < 0 and v < 1 - low) else x * v / tokens
              for v in vs] for x, vs in zip(a, u)]
        out.append(dict(advantages=a, weights=u, coefficients=c))
    return out


def shared():
    l = [p - q for g in GROUPS for ps, qs in zip(g["logp"], g["logq"]) for p, q in zip(ps, qs)]
    ratio = [[exp(total(p) - total(q)) for p, q in zip(g["logp"], g["logq"])] for g in GROUPS]
    pq, paper = mean([variance(w) for w in ratio]), mean([variance(w) for w in gepo("sum")])
    responses = sum(len(g["rewards"]) for g in GROUPS)
    return dict(kl_k3=mean([exp(v) - v - 1 for v in l]), cppo_kl=mean([exp(-v) + v - 1 for v in l]),
                kl_k3_seq=total(exp(v) - v - 1 for v in l) / responses,
                response_length=len(l) / responses,
                iw_variance_pq=pq, log_iw_variance_pq=log(pq), iw_variance_gepo=paper,
                reward_mean=mean([r for g in GROUPS for r in g["rewards"]]))


def main():
    cases = [
        dict(arguments=["gepo"], groups=sequence_rows(gepo("sum"), 0.2, "sum"),
             metrics=dict(shared(), **own_statistics(gepo("sum")))),
        dict(arguments=["gepo", "log_prob=mean", "eps_low=0.05", "eps_high=0.05"],
             groups=sequence_rows(gepo("mean"), 0.05, "mean"),
             metrics=dict(shared(), **own_statistics(gepo("mean")))),
        dict(arguments=["dapo"], groups=dapo(0.2, 0.28),
             metrics=dict(shared(), **own_statistics(
                 [[v for row in g["weights"] for v in row] for g in dapo(0.2, 0.28)]))),
    ]
    print(json.dumps(dict(input=dict(groups=GROUPS), cases=cases), indent=1))


if __name__ == "__main__":
    main()
