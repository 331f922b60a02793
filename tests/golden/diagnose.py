"""Reference values of `gepolab diagnose`, from NumPy.

    python tests/golden/diagnose.py

Writes diagnose.jsonl, a made-up log in gepolab's format whose tokens have known lags, and diagnose.txt, lines
"NAME value low high": divergence by lag, floor and slope, staleness by several counters. The block bootstrap is
that of analysis/diagnose/facts.c, written again: blocks of ceil(n^(1/3)) updates that wrap around, starts
from Philox4x32-10, percentiles of 2,000 replicates.
"""
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
BOOTSTRAP, REPLICATES = 12, 2000


def philox(key, counter):
    k, c = list(key), list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def bootstrap(rows, statistic, entity):
    """Statistics of the columns' totals: value, low, high for each."""
    rows = np.asarray(rows, dtype=float)
    n = len(rows)
    length = int(np.ceil(np.cbrt(n)))
    blocks = -(-n // length)
    out = []
    for r in range(REPLICATES):
        picked = []
        for b in range(blocks):
            index = r * blocks + b
            word = philox((1, 0), (index // 4, entity, 0, BOOTSTRAP << 16))[index % 4]
            start = word * n >> 32
            size = min(length, n - b * length)
            picked += [(start + j) % n for j in range(size)]
        out.append(statistic(rows[picked].sum(axis=0)))
    value, sample = np.array(statistic(rows.sum(axis=0))), np.array(out)
    return [(v, *np.nanquantile(sample[:, j], [0.025, 0.975])) for j, v in enumerate(value)]


def made_log():
    rng = np.random.default_rng(27)
    log = []
    for u in range(20):
        groups = []
        for _ in range(3):
            g = {"rewards": [], "logp": [], "logq": [], "version_gap": []}
            for i in range(4):
                n = int(rng.integers(3, 8))
                start = int(min(u, rng.integers(0, 5)))
                lag = np.maximum(start - np.arange(n) // 3, 0)  # versions change within a response
                variance = 2 * (0.004 + 0.003 * lag)
                q = -rng.uniform(0.7, 3, n)
                p = np.minimum(q + rng.normal(-variance / 2, np.sqrt(variance)), -1e-6)
                g["rewards"].append(int(i < 2))
                g["logp"].append([round(float(x), 6) for x in p])
                g["logq"].append([round(float(x), 6) for x in q])
                g["version_gap"].append([int(x) for x in lag])
            groups.append(g)
        log.append({"step": u + 1, "groups": groups})
    return log


def sums(l, p, q):
    d = np.abs(np.exp(p) - np.exp(q))
    return [len(l), l.sum(), (l * l).sum(), (np.exp(l) - l - 1).sum(), d.sum(), (d > 0.2).sum(), np.exp(np.abs(l)).sum()]


def means(t):
    n, mean = t[0], t[1] / t[0]
    return [-mean, t[3] / n, np.sqrt(max(t[2] / n - mean * mean, 0)), t[4] / n, t[5] / n, t[6] / n]


def parts(t):
    n, x, xx, y, xy, n0, y0 = t
    slope = (n * xy - x * y) / (n * xx - x * x)
    floor = y0 / n0 if n0 > 0 else max((y - slope * x) / n, 0)
    floor = min(floor, y / n)
    return [floor, slope, y / n - floor, floor * n / y, 1 - floor * n / y]


def ratio(t):
    return [t[0] / t[1]]


def main():
    log = made_log()
    (HERE / "diagnose.jsonl").write_text("".join(json.dumps(r) + "\n" for r in log))
    every, lines, of_lag, tokens, oldest, newest, start = [], [], {}, [], [], [], []
    for record in log:
        responses = [(np.array(p), np.array(q), np.array(v, dtype=float)) for g in record["groups"]
                     for p, q, v in zip(g["logp"], g["logq"], g["version_gap"])]
        p, q, lag = (np.concatenate([r[k] for r in responses]) for k in range(3))
        l, k3 = p - q, np.exp(p - q) - (p - q) - 1
        every.append(sums(l, p, q))
        lines.append([len(l), lag.sum(), (lag * lag).sum(), k3.sum(), (lag * k3).sum(), (lag == 0).sum(), k3[lag == 0].sum()])
        for v in np.unique(lag):
            of_lag.setdefault(int(v), []).append(sums(l[lag == v], p[lag == v], q[lag == v]))
        tokens.append([lag.mean(), 1])
        oldest.append([np.mean([r[2].max() for r in responses]), 1])
        newest.append([np.mean([r[2].min() for r in responses]), 1])
        start.append([np.mean([r[2][0] for r in responses]), 1])
    out = []
    names = ["k1", "k3", "spread", "difference", "far", "factor"]
    out += list(zip(("all." + n for n in names), bootstrap(every, means, 100)))
    out += list(zip(["floor", "slope", "age", "mismatch_fraction", "age_fraction"], bootstrap(lines, parts, 101)))
    for k, (name, rows) in enumerate([("tokens", tokens), ("start", start), ("newest", newest), ("oldest", oldest)]):
        out.append(("staleness." + name, bootstrap(rows, ratio, 103 + k)[0]))
    for lag, rows in sorted(of_lag.items()):
        out += list(zip((f"lag{lag}.{n}" for n in names), bootstrap(rows, means, 111 + lag)))
    (HERE / "diagnose.txt").write_text("".join(f"{n} {v:.17g} {lo:.17g} {hi:.17g}\n" for n, (v, lo, hi) in out))


main()
