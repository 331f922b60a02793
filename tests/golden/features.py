"""Writes features.txt: series of a metric and what analysis/import/curve_features.c says of them, by NumPy and SciPy.

Run: python3 tests/golden/features.py > tests/golden/features.txt
Format: cases; for each: ends, until, onset ("nan": none), values, then step and value of each; then how many are looked at,
growth, trend, peak, jump ("nan" where there is none).
"""
import warnings

import numpy as np
from scipy.stats import spearmanr

warnings.simplefilter("ignore")


def features(step, value, onset, ends, until):
    step, value = step[~np.isnan(value)], value[~np.isnan(value)]
    end = min(until, np.inf if np.isnan(onset) else onset - 1)
    looked = (step >= step[0]) & (step <= end)
    stop = step[looked][-1]
    growth = trend = peak = jump = np.nan
    head = value[(step >= step[0]) & (step < step[0] + ends)]
    tail = value[(step > stop - ends) & (step <= stop)]
    if len(head) > 1 and len(tail) > 1 and stop - step[0] >= 2 * ends - 1:
        growth = np.median(tail) / np.median(head)
        peak = value[looked].max() / np.median(value[looked])
        borders = np.linspace(step[0], stop, 21)
        medians = [np.median(value[(step >= a) & (step <= b)]) for a, b in zip(borders[:-1], borders[1:])]
        trend = spearmanr(np.arange(20), medians).statistic
    if not np.isnan(onset):
        near = value[(step >= onset - ends) & (step <= onset + ends)]
        jump = near.max() / np.median(value[step < onset - ends])
    return int(looked.sum()), growth, trend, peak, jump


rng = np.random.default_rng(4)
cases = []
for n, onset, ends, until, gaps in [(160, np.nan, 20, np.inf, 0), (160, 121, 20, np.inf, 0.1), (300, np.nan, 25, 193, 0.2), (30, np.nan, 20, np.inf, 0)]:
    step = np.arange(1.0, n + 1)
    value = np.exp(0.02 * step + rng.normal(0, 0.4, n))
    if not np.isnan(onset):
        value[int(onset):int(onset) + 5] *= 9
    value[rng.random(n) < gaps] = np.nan
    cases.append((step, value.round(5), onset, ends, until))
print(len(cases))
for step, value, onset, ends, until in cases:
    print(ends, until, onset, len(step), *(f"{s:g} {v:g}" for s, v in zip(step, value)))
    print(*("%.17g" % x for x in features(step, np.array([float(f"{v:g}") for v in value]), onset, ends, until)))
