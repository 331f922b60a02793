"""Writes dose.txt: Firth's penalised logistic regression, with profile intervals of a dose.

An independent computation: the penalised likelihood is maximised by SciPy over (a, b) from several
starts, the profile over lines through (x, share) by bounded minimisation from several brackets.
Run: python3 tests/golden/dose.py > tests/golden/dose.txt
Format: a case is one line: name n; then n lines `x runs falls`; then `a b loglik`; then for the
shares 0.1 and 0.5 a line `share value low high` (inf where the profile stays within the bound for
3 units beyond the doses).
"""
import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar

CASES = {
    "separated": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [0, 0, 4, 4]),
    "overlapping": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [0, 1, 2, 4]),
    "weak": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [1, 0, 1, 2]),
    "rare": ([-9.2, -8.1, -7.0], [8, 8, 8], [0, 0, 1]),
    "large": ([-9.0, -8.5, -8.0, -7.5, -7.0], [40, 40, 40, 40, 40], [1, 6, 17, 33, 39]),
}
BOUND = 1.920729410347062


def loglik(a, b, x, n, k):
    """Of one line, or of many: a and b numbers or arrays."""
    eta = np.asarray(a)[..., None] + np.asarray(b)[..., None] * x
    value = -np.sum(k * np.logaddexp(0, -eta) + (n - k) * np.logaddexp(0, eta), axis=-1)
    # w = n p (1 - p), in logarithms so that steep lines keep their weights
    lw = np.log(n) - np.logaddexp(0, -eta) - np.logaddexp(0, eta)
    i, j = np.triu_indices(len(x), 1)
    terms = lw[..., i] + lw[..., j] + 2 * np.log(np.abs(x[i] - x[j]))
    return value + 0.5 * np.logaddexp.reduce(terms, axis=-1)


def fit(x, n, k):
    best = None
    for b0 in (-2, 0, 1, 3, 8):
        m = x.mean()
        r = minimize(lambda t: -loglik(t[0] - t[1] * m, t[1], x, n, k), [0.0, b0],
                     method="Nelder-Mead", options=dict(xatol=1e-11, fatol=1e-14, maxiter=20000))
        if best is None or r.fun < best[0]:
            best = (r.fun, r.x[0] - r.x[1] * m, r.x[1])
    return best[1], best[2], -best[0]


def profile(at, logit, x, n, k):
    f = lambda b: -loglik(logit - b * at, b, x, n, k)
    grid = np.concatenate([-np.geomspace(1e-4, 400, 600)[::-1], [0], np.geomspace(1e-4, 400, 600)])
    i = int(np.argmin(f(grid)))
    r = minimize_scalar(f, bounds=(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]),
                        method="bounded", options=dict(xatol=1e-12))
    return -min(r.fun, f(grid[i]))


def main():
    for name, (x, n, k) in CASES.items():
        x, n, k = (np.array(v, float) for v in (x, n, k))
        a, b, best = fit(x, n, k)
        print(name, len(x))
        for row in zip(x, n, k):
            print("%.17g %d %d" % (row[0], row[1], row[2]))
        print("%.12g %.12g %.12g" % (a, b, best))
        for share in (0.1, 0.5):
            logit = np.log(share / (1 - share))
            at = (logit - a) / b
            g = lambda t: best - profile(t, logit, x, n, k) - BOUND
            ends = []
            for end in (x.min() - 3, x.max() + 3):
                if (end - at) * (1 if end > x.mean() else -1) <= 0:
                    ends.append(np.sign(end - x.mean()) * np.inf)
                    continue
                grid = np.linspace(at, end, 400)[1:]
                found = next((i for i, t in enumerate(grid) if g(t) > 0), None)
                if found is None:
                    ends.append(np.sign(end - x.mean()) * np.inf)
                else:
                    ends.append(brentq(g, at if found == 0 else grid[found - 1], grid[found],
                                       xtol=1e-9))
            print("%.17g %.10g %.10g %.10g" % (share, at, ends[0], ends[1]))


main()
