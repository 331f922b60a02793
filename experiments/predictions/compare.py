#!/usr/bin/env python3
"""Puts the runs' own numbers beside the predictions: writes compared.tsv, which `gepolab list published` prints.

    experiments/predictions/compare.py

Predictions are read from the tables that were committed before; nothing is changed in them. `seen`: whoever made the
prediction had seen the number before.
"""
import csv
import pathlib

HERE = pathlib.Path(__file__).parent
NEMO = "NeMo-RL v0.6, docs/about/performance-summary.md at 7ea279abf"
SECONDS = {
    "DeepSeek V3, 256 H100 in turns": 134, "DeepSeek V3, 512 H100 in turns": 111, "DeepSeek V3, 512 H100, 1 step off": 64.1,
    "Qwen3-235B, 128 H100 in turns": 395, "Qwen3-235B, 256 H100 in turns": 312, "Qwen3-235B, 256 H100, 1 step off": 231,
    "Qwen3-30B-A3B, 32 H100 in turns": 192, "Qwen3-30B-A3B, 32 H100, 1 step off": 152,
    "Qwen3-30B-A3B, 192 H100, 8 steps off": 34.5, "DeepSeek V3, 128 GB200 in turns": 108,
    "DeepSeek V3, 256 GB200 in turns": 98.7, "DeepSeek V3, 256 GB200, 1 step off": 61.7, "Qwen3-235B, 64 GB200 in turns": 286,
    "Qwen3-235B, 128 GB200 in turns": 345, "Qwen3-235B, 128 GB200, 1 step off": 278, "Qwen3-30B-A3B, 16 GB200 in turns": 221,
    "Qwen3-30B-A3B, 16 GB200, 1 step off": 301,
}
MIMO = "Xiaomi's dashboard of MiMo-V2.6, archived in huanghw1989/mimo-rl-telemetry"
# Means of steps 4, 17, 26, 29 (the second after a restart), 5, 18, 27, 30 (the third), and step 15: from comparison.md.
FLASH = {"second step after a restart": ((4, 17, 26, 29), 0.835), "third step after a restart": ((5, 18, 27, 30), 1.20),
         "last step before the restart before 16": ((15,), 1.87)}


VERL = "verl, docs/advance/fully_async.md at 1dda039b9"
ABLATIONS = {"threshold 0.1": 171.30, "threshold 0.3": 146.11, "require_batches 1": 203.47, "require_batches 2": 158.72,
             "require_batches 4": 124.64}


def table(name):
    with open(HERE / f"{name}.tsv") as f:
        return list(csv.DictReader(f, delimiter="\t"))


def nemo():
    turns = None
    for row in table("nemo_rl_06"):
        name, measured = row["case"], SECONDS[row["case"]]
        if name.endswith("in turns"):
            turns = measured
        speed_up = row["quantity"] == "speed_up_over_turns"
        yield [name, "speed-up over turns" if speed_up else "seconds a step", "" if speed_up else "s", row["predicted"], row["least"],
               row["largest"], f"{turns / measured if speed_up else measured:.4g}", "no", NEMO]


def ablations():
    for row in table("verl_ablations"):
        for name, measured in ABLATIONS.items():
            if f", {name}," in row["case"]:
                yield [row["case"], "seconds a step", "s", row["predicted"], row["least"], row["largest"], str(measured), "no", VERL]


def flash():
    rows = {int(r["step"]): r for r in table("mimo_flash") if r["quantity"] == "own_version"}
    for name, (steps, measured) in FLASH.items():
        mean = lambda key: sum(float(rows[s][key]) for s in steps) / len(steps)
        yield [f"MiMo-V2.6 Flash, {name}", "mean staleness", "versions", f"{mean('predicted'):.3f}", f"{mean('least'):.3f}",
               f"{mean('largest'):.3f}", str(measured), "yes", MIMO]


with open(HERE / "compared.tsv", "w") as out:
    out.write("case\tquantity\tunit\tpredicted\tleast\tlargest\tmeasured\tseen\tsource\n")
    for row in [*flash(), *nemo(), *ablations()]:
        out.write("\t".join(row) + "\n")
