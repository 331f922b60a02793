"""Writes dose.txt: Firth's penalised logistic regression.

An independent computation: the penalised likelihood is maximised by SciPy over (a, b) from several
starts.
Run: python3 tests/golden/dose.py > tests/golden/dose.txt
Format: a case is one line: name n; then n lines `x runs falls`; then `a b loglik`.
"""
import numpy as np
from scipy.optimize import minimize

CASES = {
    "separated": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [0, 0, 4, 4]),
    "overlapping": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [0, 1, 2, 4]),
    "weak": ([-9.0, -8.0, -7.0, -6.0], [4, 4, 4, 4], [1, 0, 1, 2]),
    "rare": ([-9.2, -8.1, -7.0], [8, 8, 8], [0, 0, 1]),
    "large": ([-9.0, -8.5, -8.0, -7.5, -7.0], [40, 40, 40, 40, 40], [1, 6, 17, 33, 39]),
}


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


def main():
    for name, (x, n, k) in CASES.items():
        x, n, k = (np.array(v, float) for v in (x, n, k))
        a, b, best = fit(x, n, k)
        print(name, len(x))
        for row in zip(x, n, k):
            print("%.17g %d %d" % (row[0], row[1], row[2]))
        print("%.12g %.12g %.12g" % (a, b, best))


main()
