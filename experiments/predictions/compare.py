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


MARIN = "marin-community/marin, issues 8936 and 8955"
# Core seconds of 25 updates; the pilot with 4,096 tokens for `ungated`, and its ledger of 5,807,538 tokens; E5.2 v3 for 8 and 16 GPUs.
SNOWBALL = {("in turns", "seconds_a_step"): 1652.8 / 25, ("sync every update", "seconds_a_step"): 1182.2 / 25,
            ("sync every update", "speed_up_over_turns"): 1652.8 / 1182.2,
            ("sync every two updates", "seconds_a_step"): 959.7 / 25,
            ("sync every two updates", "speed_up_over_turns"): 1652.8 / 959.7,
            ("sync every update, ungated", "seconds_a_step"): 1202.4 / 25,
            ("sync every update, ungated", "stale"): 1910321 / 5807538, ("sync every update, ungated", "surplus"): 268189 / 5807538,
            ("8 GPUs generate", "seconds_a_step"): 920.208 / 25, ("16 GPUs generate", "speed_up_over_8"): 1 / (1 - 0.042)}
VERL_V1 = {"sync": 22.79, "colocate_async": 14.72, "separate_async": 14.10}  # hours of 150 steps


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


QUANTITIES = {"seconds_a_step": ("seconds a step", "s"), "speed_up_over_turns": ("speed-up over turns", ""),
              "speed_up_over_8": ("speed-up over 8 GPUs", ""), "stale": ("groups stale, fraction of generated", ""),
              "surplus": ("groups left over, fraction of generated", "")}


def snowball():
    for row in table("marin_snowball"):
        measured = SNOWBALL.get((row["case"].removeprefix("Snowball, "), row["quantity"]))
        if measured is not None:
            yield [row["case"], *QUANTITIES[row["quantity"]], row["predicted"], row["least"], row["largest"], f"{measured:.4g}", "yes", MARIN]


def verl_v1():
    for row in table("verl_v1"):
        hours = VERL_V1[row["case"].removeprefix("verl V1, ")]
        place = "verl, docs/advance/v1_async_trainer.md at 1dda039b9"
        if row["quantity"] == "seconds_a_step":
            values = [f"{float(row[key]) * 150 / 3600:.2f}" for key in ("predicted", "least", "largest")]
            yield [row["case"], "time of 150 steps", "h", *values, str(hours), "yes", place]
        else:
            yield [row["case"], *QUANTITIES[row["quantity"]], row["predicted"], row["least"], row["largest"],
                   f"{VERL_V1['sync'] / hours:.4g}", "yes", place]


def flash():
    rows = {int(r["step"]): r for r in table("mimo_flash") if r["quantity"] == "own_version"}
    for name, (steps, measured) in FLASH.items():
        mean = lambda key: sum(float(rows[s][key]) for s in steps) / len(steps)
        yield [f"MiMo-V2.6 Flash, {name}", "mean staleness", "versions", f"{mean('predicted'):.3f}", f"{mean('least'):.3f}",
               f"{mean('largest'):.3f}", str(measured), "yes", MIMO]


with open(HERE / "compared.tsv", "w") as out:
    out.write("case\tquantity\tunit\tpredicted\tleast\tlargest\tmeasured\tseen\tsource\n")
    for row in [*flash(), *nemo(), *ablations(), *snowball(), *verl_v1()]:
        out.write("\t".join(row) + "\n")
