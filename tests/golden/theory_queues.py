"""Staleness by theory, computed in another way in NumPy and SciPy, sharing no code with gepolab.

Closed tandem: the generator matrix of its Markov chain, solved; staleness by the rates of the
transitions at which a batch begins. Poisson batches: the law of the number at the learner from the
embedded chain of departures, whose arrivals during an update are integrated numerically; staleness
as a convolution of SciPy's laws. Constant times: all times of a run, in fractions, by max-plus
recursion. Writes theory_queues.txt: lines in the order of tests/sim/closed_forms.c.
"""
import pathlib
from fractions import Fraction

import numpy as np
from scipy import integrate, stats

rows = []


def closed(generation, step, ahead):
    n, mu, sigma = ahead + 1, 1 / generation, 1 / step
    q = np.zeros((n + 1, n + 1))  # state: batches at the learner
    begins = np.zeros(ahead + 1)
    for i in range(n):
        q[i, i + 1] = mu
        q[i + 1, i] = sigma
    q -= np.diag(q.sum(1))
    law = np.linalg.lstsq(np.vstack([q.T, np.ones(n + 1)]), np.r_[np.zeros(n + 1), 1], rcond=None)[0]
    for i in range(n):
        if i + 1 < n:
            begins[i + 1] += mu * law[i]  # the sampler ends a batch and begins the next
    begins[n - 1] += sigma * law[n]  # it stood still; the learner ends an update
    rows.extend([begins.sum() * 64, *(begins / begins.sum())])


def at_learner(rate, service, size=600):
    """The law of the number that a departure leaves behind, service: a frozen SciPy law."""
    arrivals = np.array([integrate.quad(
        lambda p: stats.poisson.pmf(k, rate * service.ppf(p)), 0, 1, limit=400, epsabs=1e-13)[0]
        for k in range(60)])
    arrivals = np.r_[arrivals, np.zeros(size)]
    chain = np.zeros((size, size))
    for i in range(size):
        first = max(i - 1, 0)
        chain[i, first:] = arrivals[:size - first]
    chain /= chain.sum(1, keepdims=True)
    a = np.vstack([chain.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(a, np.r_[np.zeros(size), 1], rcond=None)[0]


def poisson(rates, delays, service, shares):
    rate, k = sum(rates), np.arange(600)
    queue = at_learner(rate, service)
    law = np.zeros(600)
    for r in rates:
        others = stats.geom.pmf(k + 1, r / rate)
        one = np.convolve(np.convolve(stats.poisson.pmf(k - 1, rate * delays), others)[:600], queue)[:600]
        law += r / rate * one
    rows.append(float(np.dot(k, law)))
    rows.extend(law[:shares])


def constant(n, b, g, u, s, d, updates=400):
    g, u, s, d = map(Fraction, (g, u, s, d))
    back, versions = [], []  # when version j + 1 is at the samplers; of every batch its version
    free, stale, round_ = Fraction(0), [], 0
    for j in range(updates):
        while len(versions) < (j + 1) * b:
            versions += [sum(t <= round_ * g for t in back)] * n
            round_ += 1
        last = (j + 1) * b - 1
        free = max(free, (last // n + 1) * g + u) + s
        back.append(free + d)
        stale += [j - v for v in versions[j * b:(j + 1) * b]]
    rows.append(float(np.mean(stale[-240 * b:])))


closed(20, 12, 1)
closed(12, 20, 4)
closed(15, 15, 3)
poisson([1 / 40] * 3, 50, stats.expon(scale=8), 12)
poisson([1 / 40, 1 / 40, 1 / 20], 15, stats.gamma(2, scale=3), 0)
for case in [(1, 1, 7, 2, 5, 31), (6, 2, 9, 1, 3, 40), (2, 6, 5, 3, 14, 22), (4, 4, 8, 0, 7, 100)]:
    constant(*case)
out = pathlib.Path(__file__).with_name("theory_queues.txt")
out.write_text("".join(f"{x:.17g}\n" for x in rows))
