#!/usr/bin/env python3
"""Golden numbers of tests/analysis/contrasts.c, from SciPy and from listing all signs.

  python3 tests/golden/contrasts.py > tests/golden/contrasts.txt

McNemar's exact test is SciPy's two-sided binomial test. The signed-rank test is counted over all
2^n signs, and compared with scipy.stats.wilcoxon where there are no ties. Newcombe's method 10 is
written down anew from table I of the paper (1998).
"""
import itertools
import math
import random

from scipy import stats


def signed_rank(d):
    d = [x for x in d if x != 0]
    ranks = stats.rankdata([abs(x) for x in d])
    total, positive = sum(ranks), sum(r for r, x in zip(ranks, d) if x > 0)
    least = min(positive, total - positive)
    hits = sum(1 for signs in itertools.product((0, 1), repeat=len(d))
               if sum(r for r, s in zip(ranks, signs) if s) <= least + 1e-9)
    return min(1.0, 2 * hits / 2 ** len(d))


def wilson(k, n):
    interval = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


def newcombe(e, f, g, h):
    n = e + f + g + h
    p1, p2 = (e + f) / n, (e + g) / n
    (l1, u1), (l2, u2) = wilson(e + f, n), wilson(e + g, n)
    product = (e + f) * (g + h) * (e + g) * (f + h)
    cross = e * h - f * g
    if product == 0:
        phi = 0.0
    elif cross > n / 2:
        phi = (cross - n / 2) / math.sqrt(product)
    elif cross >= 0:
        phi = 0.0
    else:
        phi = cross / math.sqrt(product)
    below = math.sqrt((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2)
    above = math.sqrt((u1 - p1) ** 2 - 2 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2)
    return (p1 - p2), (p1 - p2) - below, (p1 - p2) + above


def main():
    for b, c in ((0, 0), (1, 0), (6, 0), (5, 5), (9, 2), (3, 14), (24, 0)):
        p = 1.0 if b + c == 0 else stats.binomtest(b, b + c).pvalue
        print(f"mcnemar {b} {c} {p:.17g}")
    for cells in ((36, 12, 2, 0), (20, 12, 2, 16), (0, 24, 0, 0), (12, 0, 0, 12), (5, 9, 2, 8),
                  (1, 3, 14, 6)):
        print("newcombe", *cells, *(f"{x:.17g}" for x in newcombe(*cells)))
    draw = random.Random(5)
    for n in (1, 5, 12, 15):
        for tied in (False, True):
            d = [round(draw.gauss(0.4, 1), 0 if tied else 9) for _ in range(n)]
            p = signed_rank(d) if any(d) else 1.0
            if not tied and n > 1:
                assert abs(p - stats.wilcoxon(d, mode="exact").pvalue) < 1e-12
            print("ranks", n, *(f"{x:.17g}" for x in d), f"{p:.17g}")


main()
