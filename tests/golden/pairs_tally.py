"""Writes pairs_tally.txt: pairs of distributions p, q with rewards, and what Theorems 1 and 3 say of them, by NumPy from the definitions.

Run: python3 tests/golden/pairs_tally.py > tests/golden/pairs_tally.txt
Format: sets; for each: outcomes, pairs; for each pair p, q, r; then the sum of KL; then for D = sum q^2 and D = sum q^3 / sum q^2
each: pairs where Theorem 1 holds, largest constant, pairs with Var[p/D] > Var[p/q], largest KL of these, pairs with
Var[A p/D] > Var[A p/q] and pairs in which exactly one of the two is so, for A = r - E_p r, and the same two for A = r - E_q r.

The laws are softmax policies that drift as under training: q is p of some steps before.
"""
import numpy as np


def variance(q, w):
    mean = np.sum(q * w)
    return np.sum(q * (w - mean) ** 2)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


rng = np.random.default_rng(6)
sets = []
for n, scale, lag in [(3, 0.4, 3), (8, 0.8, 5), (27, 0.5, 12), (2, 2.0, 1)]:
    r = rng.random(n).round(3)
    theta, path = rng.normal(0, 1, n), []
    for _ in range(40):
        p = softmax(theta)
        path.append(p)
        theta = theta + scale * (p * (r - p @ r) * n + rng.normal(0, 0.3, n))
    sets.append([(path[t], path[t - lag], r) for t in range(lag, 40)])
print(len(sets))
for pairs in sets:
    n = len(pairs[0][0])
    print(n, len(pairs))
    out = np.zeros((2, 8))
    out[:, 1] = -np.inf
    total = 0.0
    for p, q, r in pairs:
        for law in (p, q, r):
            print(*("%.17g" % x for x in law))
        kl = np.sum(p * (np.log(p) - np.log(q)))
        total += kl
        pq = variance(q, p / q)
        a, b = r - p @ r, r - q @ r
        for k, d in enumerate([np.sum(q**2), np.sum(q**3) / np.sum(q**2)]):
            pd = variance(q, p / d)
            green = pd > pq
            wide = [variance(q, x * p / d) > variance(q, x * p / q) for x in (a, b)]
            out[k, 0] += pq - pd >= np.exp(kl) - (n * n + 1)
            out[k, 1] = max(out[k, 1], np.exp(kl) - pq + pd)
            out[k, 2] += green
            out[k, 3] = max(out[k, 3], kl if green else 0)
            out[k, 4] += wide[0]
            out[k, 5] += green != wide[0]
            out[k, 6] += wide[1]
            out[k, 7] += green != wide[1]
    print("%.17g" % total)
    for row in out:
        print(*("%.17g" % x for x in row))
