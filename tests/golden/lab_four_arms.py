"""Moments of estimators on four arms by all 4^4 tuples in NumPy, sharing no code with gepolab.

Writes lab_four_arms.txt: a line per row with bias, cosine and variance.
"""
import itertools
import pathlib
import numpy as np

p = np.array([0.55, 0.25, 0.15, 0.05])
q = np.array([0.10, 0.20, 0.30, 0.40])
r = np.array([1, 0, 0.5, 0.2])
G = 4
scores = np.eye(4) - p
truth = scores.T @ (p * r)

def importance(y): return p[y] / q[y], (r[y] - r[y].mean()) * G / (G - 1)
def self_normalised(y): w, a = importance(y); return w / w.mean(), a
def gepo(y): return p[y] / ((q[y] ** 2).sum() / q[y].sum()), r[y] - r[y].mean()
def gepo_mean(y): return p[y] / q[y].mean(), r[y] - r[y].mean()
def gepo_exact(y): return p[y] / (q ** 2).sum(), r[y] - r[y].mean()

lines = []
for rule in (importance, self_normalised, gepo, gepo_mean, gepo_exact):
    mean, square = np.zeros(4), 0.0
    for t in itertools.product(range(4), repeat=G):
        y = np.array(t)
        w, a = rule(y)
        g = (w * a) @ scores[y] / G
        mean += q[y].prod() * g
        square += q[y].prod() * (g @ g)
    bias = np.linalg.norm(mean - truth)
    cosine = mean @ truth / np.linalg.norm(mean) / np.linalg.norm(truth)
    lines.append(f"{bias:.17g} {cosine:.17g} {square - mean @ mean:.17g}")
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
