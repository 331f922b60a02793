"""Reference values of analysis/statistics from SciPy and NumPy.

    python tests/golden/analysis_statistics.py > tests/golden/analysis_statistics.txt

Each case is three lines, "x N values", "y N values" and "expect ...": interquartile mean and
quantiles 0.1, 0.5, 0.975 of x; Spearman with Bonett-Wright's interval, of the pairs (the shorter
length); Kolmogorov-Smirnov distance.
"""
import warnings

import numpy as np
from scipy import stats

warnings.filterwarnings("ignore")
Z = stats.norm.ppf(0.975)


def fisher(r, variance):
    z = np.arctanh(r)
    return [r, np.tanh(z - Z * np.sqrt(variance)), np.tanh(z + Z * np.sqrt(variance))]


def expect(x, y):
    n = min(len(x), len(y))
    a, b = x[:n], y[:n]
    s = stats.spearmanr(a, b).statistic
    return ([stats.trim_mean(x, 0.25)] + list(np.quantile(x, [0.1, 0.5, 0.975]))
            + fisher(s, (1 + s * s / 2) / (n - 3)) + [stats.ks_2samp(x, y).statistic])


def main():
    rng = np.random.default_rng(2508)
    for nx, ny, ties in [(4, 4, 0), (5, 7, 0), (12, 12, 1), (31, 20, 0), (40, 64, 1), (101, 101, 0)]:
        x = rng.normal(size=nx)
        y = 0.3 + 0.5 * np.resize(x, ny) + rng.standard_t(3, size=ny)
        if ties:
            x, y = np.round(2 * x) / 2, np.round(2 * y) / 2
        for name, v in (("x", x), ("y", y)):
            print(name, len(v), *(float(a).hex() for a in v))
        print("expect", *(float(a).hex() for a in expect(x, y)))


main()
