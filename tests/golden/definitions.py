"""The staleness counters of trainers, counted from the events of simulated runs, sharing no code with gepolab.

    tests/golden/definitions.py build/gepolab

The events are what `gepolab sim --schedule tokens` prints: tokens of a response that one version generated. Every
counter is written out on its own, as its system computes it, with exact fractions where tokens are not involved.
Writes definitions.txt: a line for each case and counter, in the order of tests/sim/trainer_counters.c.
"""
import csv
import io
import pathlib
import subprocess
import sys
from fractions import Fraction as F

CASES = [  # cluster, seed, updates, publish_every, optimiser updates of an update, keys and values kept
    ("{preset: sync, samplers: 2}", 1, 20, 1, 1, False),
    ("{preset: fifo, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, delay: 30, learner: {step: 9}}", 2, 60, 1, 4, False),
    ("{preset: areal, samplers: 3, generation: {distribution: lognormal, mu: 3, sigma: 1}, lengths: {distribution: lognormal, mu: 4, sigma: 1}, "
     "prompt_lengths: {distribution: lognormal, mu: 0, sigma: 0.5}, tokens_per_s: 20, delay: 3, learner: {step: 9}}", 3, 60, 1, 1, False),
    ("{preset: areal, samplers: 3, unit: group, concurrency: 24, lengths: {distribution: lognormal, mu: 6, sigma: 0.8}, tokens_per_s: 40, "
     "delay: 2, kv_cache: keep, learner: {batches: 1, step: 5}}", 4, 80, 1, 2, True),
    ("{preset: verl_async, samplers: [{count: 2}, {count: 1, speed: 0.4}], concurrency: 16, lengths: {distribution: lognormal, mu: 6, "
     "sigma: 0.8}, tokens_per_s: 40, kv_cache: recompute, learner: {batches: 1, step: 4}}", 5, 80, 4, 1, False),
    ("{preset: pipelinerl, samplers: 2, unit: response, concurrency: 32, lengths: {distribution: lognormal, mu: 6, sigma: 0.8}, "
     "tokens_per_s: 40, kv_cache: recompute, learner: {batches: 1, step: 6}}", 6, 40, 1, 3, False),
    ("{preset: fifo, samplers: 2, unit: group, partial: wait, concurrency: 32, lengths: 300, tokens_per_s: 40, "
     "learner: {batches: 1, step: 3}}", 7, 50, 1, 1, False),
]


def events(gepolab, cluster, seed, updates):
    """[(step, end_s, [(start_s, {response: [(version, tokens), ...]}), ...]), ...]"""
    text = subprocess.run([gepolab, "sim", "quickstart", f"seed={seed}", f"steps={updates}", "train={groups: 8, group_size: 8}",
                           f"cluster={cluster}", "--schedule", "tokens"], check=True, capture_output=True, text=True).stdout
    steps = {}
    for row in csv.DictReader(io.StringIO(text)):
        step = steps.setdefault(int(row["step"]), (float(row["end_s"]), {}))
        unit = step[1].setdefault(int(row["unit"]), (float(row["start_s"]), {}))
        unit[1].setdefault(int(row["response"]), []).append((int(row["version"]), float(row["tokens"])))
    return [(number, end, list(units.values())) for number, (end, units) in sorted(steps.items())]


def mean(values):
    values = list(values)
    return F(sum(values), len(values))


def counters(steps, every, optimiser, keeps):
    ends = [end for _, end, _ in steps]
    samples = [0]
    for _, _, units in steps:
        samples.append(samples[-1] + sum(len(u) for _, u in units))
    series = [[] for _ in range(20)]
    for number, _, units in steps:
        learner = number - 1
        synced = learner // every  # publications so far
        iteration = synced * every * optimiser  # of the collection
        begun = [(start, next(iter(u.values()))[0][0], u) for start, u in units]
        rollouts = [(v0, [v for v, _ in runs], runs) for _, v0, u in begun for runs in u.values()]

        def by_mean(values):
            values = list(values)
            return mean(values), max(values)

        def by_token(value):
            weights = [(value(v0, versions, v), tokens) for v0, versions, runs in rollouts for v, tokens in runs]
            return sum(x * w for x, w in weights) / sum(w for _, w in weights), max(x for x, _ in weights)

        ours = by_token(lambda v0, vs, v: (learner - v) * optimiser)
        stale = sum(1 for _, vs, _ in rollouts if synced - vs[-1] // every >= 1)
        lag = samples[synced * every] - samples[min(v0 for _, v0, _ in begun)]
        now = [
            by_mean(learner - v0 for _, v0, _ in begun),
            (ours[0] + (optimiser - 1) / 2, ours[1] + optimiser - 1),
            by_mean(synced - v0 // every for v0, _, _ in rollouts),
            by_mean(synced - vs[-1] // every for _, vs, _ in rollouts),
            by_mean(synced - vs[0] // every for _, vs, _ in rollouts),
            by_mean(vs[-1] // every - vs[0] // every + 1 for _, vs, _ in rollouts),
            (stale, stale),
            by_token(lambda v0, vs, v: synced - v // every),
            by_token(lambda v0, vs, v: synced - 1 - v // every),
            by_mean(learner - v0 for v0, _, _ in rollouts),
            by_mean(vs[-1] - v0 for v0, vs, _ in rollouts),
            by_mean((learner - v0) - (vs[-1] - v0) for v0, vs, _ in rollouts),
            by_mean(learner - sum(1 for end in ends if end <= start) for start, _, _ in begun),
            (lag, lag),
            by_mean(synced - min(runs[-1][0] for runs in u.values()) // every for _, _, u in begun),
            by_mean(iteration - vs[0] * optimiser for _, vs, _ in rollouts),
            by_mean(iteration - vs[0 if keeps else -1] * optimiser for _, vs, _ in rollouts),
            by_mean(iteration - vs[-1] * optimiser for _, vs, _ in rollouts),
            by_token(lambda v0, vs, v: synced - v // every),
            by_token(lambda v0, vs, v: synced - vs[0] // every),
        ]
        for of, value in zip(series, now, strict=True):
            of.append(value)
    return [(sum(m for m, _ in of) / len(of), max(x for _, x in of)) for of in series]


lines = []
for cluster, seed, updates, every, optimiser, keeps in CASES:
    steps = events(sys.argv[1], cluster, seed, updates)
    assert len(steps) == updates
    lines += [f"{float(m)!r} {float(x)!r}" for m, x in counters(steps, every, optimiser, keeps)]
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
