"""Writes announce.txt: runs with a metric, and what it is worth as an announcement of falls, by NumPy and SciPy, for
analysis/collapse_prediction.c.

Run: python3 tests/golden/announce.py > tests/golden/announce.txt
Format: cases; for each: window, allowed share of false alarms, four leads, runs; for each run: start, cell, fell, onset,
updates, then step and value of each ("nan" where it has none); then side (1: falls), AUC, judged falls, announced, judged
survivors, alarms, median lead; then low and high of the 95 % intervals of AUC, announced share, false alarms, lead; then
for each lead: falls and pairs that are compared within their cells, the share of pairs in which the fall is higher, low
and high.

Nothing of the program's method is shared: the area is SciPy's Mann-Whitney U, sliding means are NumPy's windows, the
bootstrap draws lists of runs, and 20,000 times.
"""
import warnings

import numpy as np
from scipy.stats import mannwhitneyu

warnings.simplefilter("ignore")  # means of windows without a number


def made(rng, starts, each, down):
    """Runs whose metric drifts before most falls, with gaps."""
    runs = []
    for start in range(starts):
        level = rng.normal(0, 0.3)
        for cell in range(each):
            n = int(rng.integers(30, 60))
            fell = bool(rng.random() < 0.45)
            step = np.arange(1, n + 1) * 2
            value = level + rng.normal(0, 0.5, n)
            onset = -1
            if fell:
                onset = int(step[int(rng.integers(n // 2, n))])
                lead = int(rng.integers(4, 30)) if rng.random() < 0.8 else 0
                value += np.where(step > onset - lead, 0.15 * (step - (onset - lead)), 0)
                value[step >= onset] = 50  # must not be looked at
            value[rng.random(n) < 0.1] = np.nan
            if down:
                value = -value
            runs.append((100 + start, fell, onset, step, value.round(4), cell % 4))
    return runs


def before(run):
    _, fell, onset, step, value, _ = run
    keep = step < onset if fell else np.ones(len(step), bool)
    return step[keep], value[keep]


def watched(run, window):
    step, value = before(run)
    if len(value) < window:
        return step[:0], value[:0]
    means = np.nanmean(np.lib.stride_tricks.sliding_window_view(value, window), axis=1)
    good = ~np.isnan(means)
    return step[window - 1:][good], means[good]


def top(run, window, sign):
    return np.max(sign * watched(run, window)[1])


def area(runs, window, sign):
    f = [top(r, window, sign) for r in runs if r[1]]
    s = [top(r, window, sign) for r in runs if not r[1]]
    return mannwhitneyu(f, s).statistic / (len(f) * len(s)) if f and s else np.nan


def side(runs, window):
    return -1 if area(runs, window, -1) > area(runs, window, 1) else 1


def judge(runs, window, allowed):
    """(run, step of its alarm or None) of all that are judged."""
    out = []
    for start in sorted({r[0] for r in runs}):
        others = [r for r in runs if r[0] != start]
        survivors = [r for r in others if not r[1]]
        if not survivors or len(survivors) == len(others):
            continue
        sign = side(others, window)
        scores = np.sort([top(r, window, sign) for r in survivors])[::-1]
        threshold = scores[min(int(np.floor(allowed * len(scores) + 1e-9)), len(scores) - 1)]
        for r in runs:
            if r[0] == start:
                step, mean = watched(r, window)
                beyond = np.flatnonzero(sign * mean > threshold)
                out.append((r, int(step[beyond[0]]) if len(beyond) else None))
    return out


def quantities(judged, runs, tops):
    """tops: of every run, by its identity, on the side of all."""
    f = np.array([tops[id(r)] for r in runs if r[1]])
    s = np.array([tops[id(r)] for r in runs if not r[1]])
    pairs = (f[:, None] > s[None, :]) + 0.5 * (f[:, None] == s[None, :])
    falls = [j for j in judged if j[0][1]]
    rest = [j for j in judged if not j[0][1]]
    leads = [r[2] - at for r, at in falls if at is not None]
    return [pairs.mean() if pairs.size else np.nan,
            np.mean([at is not None for _, at in falls]) if falls else np.nan,
            np.mean([at is not None for _, at in rest]) if rest else np.nan,
            np.median(leads) if leads else np.nan]


def then(run, window, at):
    """The mean of the last window until that update; nan where there is none."""
    _, _, _, step, value, _ = run
    last = value[step <= at][-window:]
    return np.nanmean(last) if len(last) == window else np.nan


def matched(runs, window, lead):
    """Of each pair of a fall and a survivor of its cell: both runs, and 1, 0.5 or 0."""
    out = []
    for f in (r for r in runs if r[1]):
        mine = then(f, window, f[2] - lead)
        for s in (r for r in runs if not r[1] and r[5] == f[5]):
            other = then(s, window, f[2] - lead)
            if not np.isnan(mine) and not np.isnan(other):
                out.append((f, s, float(mine > other) + 0.5 * float(mine == other)))
    return out


leads = (1, 7, 20, 64)
cases = [(made(np.random.default_rng(3), 6, 9, False), 4, 0.1), (made(np.random.default_rng(5), 8, 6, True), 3, 0.25),
         (made(np.random.default_rng(8), 5, 12, False), 1, 0.0)]
print(len(cases))
for runs, window, allowed in cases:
    sign = side(runs, window)
    judged = judge(runs, window, allowed)
    falls = [j for j in judged if j[0][1]]
    rest = [j for j in judged if not j[0][1]]
    tops = {id(r): top(r, window, sign) for r in runs}
    value = quantities(judged, runs, tops)
    assert abs(value[0] - area(runs, window, sign)) < 1e-12
    print(window, allowed, *leads, len(runs))
    for start, fell, onset, step, v, cell in runs:
        print(start, cell, int(fell), onset, len(step), *(f"{s} {x:g}" for s, x in zip(step, v)))
    print(int(sign < 0), "%.17g" % value[0], len(falls), sum(j[1] is not None for j in falls), len(rest),
          sum(j[1] is not None for j in rest), "%.17g" % value[3])
    starts = sorted({r[0] for r in runs})
    rng, drawn = np.random.default_rng(1), []
    for _ in range(20000):
        pick = rng.choice(starts, len(starts))
        drawn.append(quantities([j for p in pick for j in judged if j[0][0] == p],
                                [r for p in pick for r in runs if r[0] == p], tops))
    low, high = np.nanquantile(np.array(drawn), [0.025, 0.975], axis=0)
    print(*("%.6g %.6g" % ends for ends in zip(low, high)))
    for lead in leads:
        pairs = matched(runs, window, lead)
        rng, drawn = np.random.default_rng(2), []
        for _ in range(20000):
            times = dict(zip(starts, rng.multinomial(len(starts), np.full(len(starts), 1 / len(starts)))))
            weight = np.array([times[f[0]] * times[s[0]] for f, s, _ in pairs])
            order = np.array([o for _, _, o in pairs])
            drawn.append((weight * order).sum() / weight.sum() if weight.sum() > 0 else np.nan)
        ends = np.nanquantile(drawn, [0.025, 0.975]) if pairs else [np.nan, np.nan]
        print(len({id(f) for f, _, _ in pairs}), len(pairs), "%.17g" % (np.mean([o for _, _, o in pairs]) if pairs else np.nan),
              "%.6g %.6g" % tuple(ends))
