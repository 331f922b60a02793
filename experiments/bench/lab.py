"""Monte Carlo of one estimator in vectorised NumPy: what lab.c is measured beside.

Argument: threads. Any request is answered with groups a second of five repetitions. K = 10 arms,
G = 8, GEPO with the self-normalised denominator and the group mean as baseline, no clipping: moments
of the estimate over groups drawn from q.
"""
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = sys.argv[1]

import numpy as np

import serve

K, G, N = 10, 8, 100_000
rng = np.random.default_rng(1)
p = np.arange(1, K + 1) / (K * (K + 1) / 2)
q = p[::-1].copy()
r = (np.arange(K) % 3 == 0).astype(float)
scores = np.eye(K) - p


def groups():
    y = rng.choice(K, size=(N, G), p=q)
    reward = r[y]
    a = reward - reward.mean(1, keepdims=True)
    qy = q[y]
    e = (qy ** 2).sum(1, keepdims=True) / qy.sum(1, keepdims=True)
    c = p[y] / e * a / G
    g = np.einsum("ng,ngk->nk", c, scores[y])
    return g.mean(0), (g ** 2).sum(1).mean()


serve.answer(lambda *request: serve.rates(groups, N))
