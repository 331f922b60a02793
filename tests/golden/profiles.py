"""Writes tests/golden/profiles.txt: scores and what rliable's formulas make of them, in NumPy.

    python3 tests/golden/profiles.py > tests/golden/profiles.txt

Formulas of rliable 1.2 (metrics.py optimality_gap, probability_of_improvement; library.py
run_score_distribution), rewritten: scores [runs, tasks].
"""
import numpy as np

GAMMA, POINTS = 0.8, 11
rng = np.random.default_rng(20261126)
scores = {
    "a": np.round(rng.beta(4, 2, (6, 3)), 2),
    "b": np.round(rng.beta(3, 3, (5, 3)), 2),
    "c": np.round(rng.beta(2, 4, (6, 3)), 2),
}
for name, s in scores.items():
    for seed, row in enumerate(s, 1):
        for task, value in enumerate(row, 1):
            print("score", name, task, seed, value)
everything = np.concatenate([s.ravel() for s in scores.values()])
taus = np.linspace(everything.min(), everything.max(), POINTS)
for name, s in scores.items():
    print("gap", name, GAMMA, repr(float(GAMMA - np.mean(np.minimum(s, GAMMA)))))
    for k, tau in enumerate(taus):
        print("above", name, k, repr(float(np.mean(np.mean(s > tau, axis=0)))))
for x, sx in scores.items():
    for y, sy in scores.items():
        u = [(np.sum(sx[:, t][:, None] > sy[:, t]) + 0.5 * np.sum(sx[:, t][:, None] == sy[:, t]))
             / (len(sx) * len(sy)) for t in range(sx.shape[1])]
        print("improvement", x, y, repr(float(np.mean(u))))
