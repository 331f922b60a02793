"""Moments of delay distributions, means of the largest of several draws and of the longest of rounded lengths
in NumPy and SciPy, sharing no code with gepolab.

Means of largest values are integrals of the quantile function against the beta law of the largest
uniform (gepolab integrates survival functions), or closed forms where there are some: the harmonic
numbers of exponential and the gamma functions of Pareto's law. Lengths are summed over their
probabilities. Writes theory_moments.txt: a line for each case in the order of
tests/sim/delay_moments.c.
"""
import pathlib

import numpy as np
from scipy import integrate, special, stats

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(64)


def pieces(f, ends):
    """Integral by Gauss and Legendre between neighbouring ends."""
    total = 0.0
    for a, b in zip(ends[:-1], ends[1:]):
        total += (b - a) / 2 * np.dot(WEIGHTS, f((a + b) / 2 + (b - a) / 2 * POINTS))
    return total


def largest(isf, n, power=1, bends=()):
    """E[max^power] of n draws: the tail of the largest is exp(-w), that of one draw then follows.
    bends: tails of one draw at which isf bends."""
    def f(w):
        tail = -np.expm1(np.log1p(-np.exp(-w)) / n)
        return isf(tail) ** power * np.exp(-w)
    at = [-np.log(-np.expm1(n * np.log1p(-q))) for q in bends]
    fine = np.concatenate([np.geomspace(1e-12, 1, 60), np.linspace(1, 300, 600)])
    return pieces(f, np.unique(np.concatenate([[1e-300], fine, at])))


def longest(cdf, most, n):
    """Lengths are the draw rounded half up and kept in 1 to most."""
    k = np.arange(1, most + 1)
    below = cdf(k + 0.5)
    below[-1] = 1
    law = np.diff(np.concatenate([[0], below**n]))
    return float(np.dot(k, law))


lognormal = lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu))
clamped = lambda q: np.clip(lognormal(5.8, 0.87).isf(q) - 400, 60, 1800)
mean = lambda law: float(law.mean())
second = lambda law: float(law.var() + law.mean() ** 2)
EULER = special.digamma

rows = [
    # moments
    mean(lognormal(3, 1)), second(lognormal(3, 1)),
    mean(stats.weibull_min(0.7, scale=20)), second(stats.weibull_min(0.7, scale=20)),
    mean(stats.gamma(2.5, scale=8)), second(stats.gamma(2.5, scale=8)),
    mean(stats.pareto(1.5, scale=2)), second(stats.pareto(2.5, scale=2)),
    45.0, 40.0**2 + 45.0**2,
    20.0, (30**3 - 10**3) / (3 * 20),
    largest(clamped, 1, 1, [lognormal(5.8, 0.87).sf(460), lognormal(5.8, 0.87).sf(2200)]),
    largest(clamped, 1, 2, [lognormal(5.8, 0.87).sf(460), lognormal(5.8, 0.87).sf(2200)]),
    # largest of n alike
    largest(lognormal(3, 1).isf, 8),
    12 * (EULER(65) - EULER(1)),
    4 * float(np.exp(special.gammaln(17) + special.gammaln(1 - 1 / 1.3) - special.gammaln(17 - 1 / 1.3))),
    largest(stats.gamma(2.5, scale=8).isf, 1000),
    # three uniform on 10 to 30, and five exponential of mean 12, halved and moved by 5
    integrate.quad(lambda t: 1 - np.clip((t - 10) / 20, 0, 1) ** 3 * (-np.expm1(-max(0, t - 5) / 6)) ** 5,
                   0, 400, points=[5, 10, 30], epsabs=1e-11, epsrel=1e-12, limit=500)[0],
    # longest lengths
    longest(lognormal(6, 1).cdf, 4096, 512),
    longest(stats.uniform(1, 8).cdf, 32768, 64),
    longest(stats.gamma(2.5, scale=80).cdf, 700, 16),
]
out = pathlib.Path(__file__).with_name("theory_moments.txt")
out.write_text("".join(f"{x:.17g}\n" for x in rows))
