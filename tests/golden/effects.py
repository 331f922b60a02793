"""Writes effects.txt: least squares by NumPy's lstsq, for analysis/effects.c.

Run: python3 tests/golden/effects.py > tests/golden/effects.txt
Format: n k; n lines of k columns of x and y; then k lines of b and its variance.
"""
import numpy as np

rng = np.random.default_rng(7)
n, k = 14, 5
x = np.column_stack([np.ones(n), rng.choice([-1.0, 1.0], (n, 3)), rng.normal(size=n).round(3)])
y = (x @ [1, 2, -0.5, 0, 3] + rng.normal(size=n)).round(6)
b, rss, rank, _ = np.linalg.lstsq(x, y, rcond=None)
assert rank == k
variance = rss[0] / (n - k) * np.diag(np.linalg.inv(x.T @ x))
print(n, k)
for row, out in zip(x, y):
    print(*("%.17g" % v for v in row), "%.17g" % out)
for pair in zip(b, variance):
    print("%.15g %.15g" % pair)
