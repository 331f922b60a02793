#!/usr/bin/env python3
"""Predicts mean staleness by step for the recipes of this folder.

    experiments/predictions/predict.py build/gepolab

Runs each recipe's clock with five seeds and every setting that is not public, and counts MiMo's two possible readings
of `partial/avg_staleness` from the events (`gepolab sim --schedule tokens`): the mean over trained tokens of the
published version less the version that the token's response was begun with, or less the token's own version. Writes
NAME.tsv: the value with the recipe's own settings (mean over seeds), and the least and largest value over all seeds
and settings.
"""
import csv
import io
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SEEDS = range(1, 6)
SPREADS = {0.8: 6.588, 1.2: 6.188, 1.6: 5.628}  # sigma: mu, for a mean of 1,000 tokens
OVERLAPS = [1, 300]  # seconds of an update; a step takes about 1,000
IN_FLIGHT = {"mimo_flash": [1531], "mimo_pro": [1234, 930, 1538]}  # the recipe's value first
LAGS = 8


def series(gepolab, recipe, seed, sigma, step, slots):
    """By step: (mean from the start, mean by own version), and shares of tokens by lag from the start."""
    text = subprocess.run([gepolab, "sim", str(HERE / f"{recipe}.yaml"), f"seed={seed}",
                           f"cluster.lengths={{law: lognormal, mu: {SPREADS[sigma]}, sigma: {sigma}}}",
                           f"cluster.learner.step={step}", f"cluster.concurrency={slots}", "--schedule", "tokens"],
                          check=True, capture_output=True, text=True).stdout
    sums, first = {}, {}
    for row in csv.DictReader(io.StringIO(text)):
        now, version, tokens = int(row["step"]) - 1, int(row["version"]), float(row["tokens"])
        begun = first.setdefault((row["unit"], row["response"], now), version)
        of = sums.setdefault(now, [0.0, 0.0, 0.0, [0.0] * LAGS])
        of[0] += tokens
        of[1] += tokens * (now - begun)
        of[2] += tokens * (now - version)
        of[3][min(now - begun, LAGS - 1)] += tokens
    return [[of[1] / of[0], of[2] / of[0], *(x / of[0] for x in of[3])] for _, of in sorted(sums.items())]


def main(gepolab):
    for recipe, slots in IN_FLIGHT.items():
        own, every = [], []
        for seed in SEEDS:
            for sigma in SPREADS:
                for step in OVERLAPS:
                    for n in slots:
                        run = series(gepolab, recipe, seed, sigma, step, n)
                        every.append(run)
                        if (sigma, step, n) == (0.8, 1, slots[0]):
                            own.append(run)
        names = ["from_start", "own_version", *(f"share_of_lag_{k}" for k in range(LAGS))]
        lines = ["step\tquantity\tpredicted\tleast\tlargest"]
        for i in range(len(own[0])):
            for k, name in enumerate(names):
                value = sum(run[i][k] for run in own) / len(own)
                seen = [run[i][k] for run in every]
                lines.append(f"{i + 1}\t{name}\t{value:.4f}\t{min(seen):.4f}\t{max(seen):.4f}")
        (HERE / f"{recipe}.tsv").write_text("\n".join(lines) + "\n")


main(sys.argv[1])
