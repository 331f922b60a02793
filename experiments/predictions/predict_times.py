#!/usr/bin/env python3
"""Predicts seconds a step from a run's public settings and data sheets alone.

    experiments/predictions/predict_times.py build/gepolab FAMILY

A family is a table of runs below: model, devices, batch, mean and longest length, how devices are divided. Generation
follows cluster.decoding by the roofline of the data sheet times an efficiency; an update takes its operations over the
peak of its devices times an efficiency (MFU). Both efficiencies, the time to hand weights over and the spread of
lengths are assumed, the same for all runs, and were fixed before any run was simulated: EFFICIENCY. Writes FAMILY.yaml, the
clusters at the assumed values, and FAMILY.tsv: the prediction (mean over three seeds), and the least and largest value
over seeds and over each assumption at its bounds, alone and all together.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SEEDS = (1, 2, 3)
STEPS = 16

# assumption: (least favourable, assumed, most favourable)
EFFICIENCY = {
    "bandwidth": (0.4, 0.6, 0.8),  # of the data sheet's memory bandwidth, in decoding
    "flops": (0.25, 0.4, 0.5),     # of its operations per second, in decoding
    "mfu": (0.08, 0.15, 0.25),     # of its operations per second, in an update (mixtures of experts)
    "refit": (30, 10, 3),          # seconds to hand over the weights
    "sigma": (1.1, 0.8, 0.6),      # spread of log lengths
}

# peak operations per second in bf16 without sparsity, bytes per second, bytes: data sheets of H100 SXM and GB200
DEVICES = {"H100": (9.89e14, 3.35e12, 80e9), "GB200": (2.5e15, 8.0e12, 186e9)}

# parameters, active parameters, bytes of keys and values a token: the models' config.json
MODELS = {
    "Qwen3-30B-A3B": (30.5e9, 3.3e9, 48 * 4 * 128 * 2 * 2),
    "Qwen3-235B-A22B": (235e9, 22e9, 94 * 4 * 128 * 2 * 2),
    "DeepSeek-V3": (671e9, 37e9, 61 * 576 * 2),
    # marin#6044: 26 layers, 5 heads of keys and values of 128; the sliding window of most layers is left out
    "Snowball-67B-A2B": (67.1e9, 2.01e9, 26 * 5 * 128 * 2 * 2),
    # transformers, configuration_qwen3_5_moe.py: full attention in every fourth of 40 layers, 2 heads of 256
    "Qwen3.5-35B-A3B": (35e9, 3e9, 10 * 2 * 256 * 2 * 2),
}


def mean_of_clamped(mu, sigma, most):
    """Mean of a log-normal whose values above `most` are `most`."""
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    z = (math.log(most) - mu) / sigma
    return math.exp(mu + sigma * sigma / 2) * phi(z - sigma) + most * (1 - phi(z))


def mu_for(mean, sigma, most):
    low, high = math.log(mean) - 10, math.log(most) + 10
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_of_clamped(middle, sigma, most) < mean else (low, middle)
    return low


def cluster_of(run, e):
    """The cluster of a run with the efficiencies e, in the form of a recipe."""
    peak, bandwidth, memory = DEVICES[run["device"]]
    parameters, active, kv = MODELS[run["model"]]
    gpus = run["generate"]  # devices that generate
    engines = gpus // run["engine"]
    tokens = run["prompts"] * run["group"] * run["mean"]
    step = tokens * run["passes"] * active / (run["train"] * peak * e["mfu"]) + e["refit"] / run.get("updates_a_sync", 1)
    decoding = {"kind": "roofline", "parameters": parameters, "active_parameters": active, "kv_bytes": kv,
                "memory_bandwidth": run["engine"] * bandwidth * e["bandwidth"], "flops": run["engine"] * peak * e["flops"],
                "memory": run["engine"] * memory * run["utilisation"], "overhead": 0.002}
    c = {"preset": run["preset"], "unit": "group", "samplers": engines,
         "concurrency": math.ceil(run["prompts"] * run["group"] * run.get("under_way", 1) / engines),
         "lengths": {"law": "lognormal", "mu": round(mu_for(run["mean"], e["sigma"], run["longest"]), 4), "sigma": e["sigma"]},
         "max_tokens": run["longest"], "decoding": decoding,
         "learner": {"batches": 1, "step": round(step, 2)}}
    c.update(run.get("rules", {}))
    return c


def simulate(gepolab, run, e, seed, steps=STEPS):
    cluster = run["cluster"] if "cluster" in run else cluster_of(run, e)
    recipe = {"name": "prediction", "description": "prediction", "steps": steps, "seed": seed,
              "train": {"groups": run["prompts"], "group_size": run["group"]}, "world": {"kind": "bandit"},
              "cluster": {**cluster, "compare": {"seconds": 1}}}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        json.dump(recipe, f)
        f.flush()
        out = subprocess.run([gepolab, "sim", f.name, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def seconds(gepolab, run, e, seed, steps=STEPS):
    return simulate(gepolab, run, e, seed, steps)["compared_s"]


def settings():
    """The assumed values; then each at its bounds; then all at their bounds."""
    usual = {k: v[1] for k, v in EFFICIENCY.items()}
    yield usual
    for key, (slow, _, fast) in EFFICIENCY.items():
        yield {**usual, key: slow}
        yield {**usual, key: fast}
    yield {k: v[0] for k, v in EFFICIENCY.items()}
    yield {k: v[2] for k, v in EFFICIENCY.items()}


def nemo(name, model, device, gpus, engine, mean, longest, prompts, group, passes, generate=None, ahead=None, **more):
    run = {"name": name, "model": model, "device": device, "engine": engine, "mean": mean, "longest": longest,
           "prompts": prompts, "group": group, "passes": passes, "preset": "sync", "generate": gpus, "train": gpus,
           "utilisation": 0.6}
    if ahead is not None:
        run.update(preset="nemo_rl", generate=generate, train=gpus - generate, utilisation=0.8, under_way=ahead,
                   rules={"ahead": ahead, "partial": "continue"})
    run.update(more)
    return run


# NeMo-RL v0.6: docs/about/performance-summary.md and examples/configs/recipes/llm/performance at 7ea279abf. Passes: an update
# takes 6 operations a parameter and token, log-probabilities of the policy and of the reference 2 each, recomputed activations 2.
NEMO = [
    nemo("DeepSeek V3, 256 H100 in turns", "DeepSeek-V3", "H100", 256, 32, 701, 1536, 32, 16, 12),
    nemo("DeepSeek V3, 512 H100 in turns", "DeepSeek-V3", "H100", 512, 32, 697, 1536, 32, 16, 12),
    nemo("DeepSeek V3, 512 H100, 1 step off", "DeepSeek-V3", "H100", 512, 32, 710, 1536, 32, 16, 12, 256, 1),
    nemo("Qwen3-235B, 128 H100 in turns", "Qwen3-235B-A22B", "H100", 128, 16, 5698, 8192, 16, 32, 12),
    nemo("Qwen3-235B, 256 H100 in turns", "Qwen3-235B-A22B", "H100", 256, 16, 5713, 8192, 16, 32, 12),
    nemo("Qwen3-235B, 256 H100, 1 step off", "Qwen3-235B-A22B", "H100", 256, 8, 5721, 8192, 16, 32, 12, 128, 1),
    nemo("Qwen3-30B-A3B, 32 H100 in turns", "Qwen3-30B-A3B", "H100", 32, 2, 3203, 4096, 64, 32, 10),
    nemo("Qwen3-30B-A3B, 32 H100, 1 step off", "Qwen3-30B-A3B", "H100", 32, 2, 3201, 4096, 64, 32, 10, 16, 1),
    nemo("Qwen3-30B-A3B, 192 H100, 8 steps off", "Qwen3-30B-A3B", "H100", 192, 2, 3206, 4096, 64, 32, 10, 64, 8),
    nemo("DeepSeek V3, 128 GB200 in turns", "DeepSeek-V3", "GB200", 128, 32, 711, 1536, 32, 16, 12),
    nemo("DeepSeek V3, 256 GB200 in turns", "DeepSeek-V3", "GB200", 256, 32, 700, 1536, 32, 16, 12),
    nemo("DeepSeek V3, 256 GB200, 1 step off", "DeepSeek-V3", "GB200", 256, 16, 708, 1536, 32, 16, 12, 128, 1),
    nemo("Qwen3-235B, 64 GB200 in turns", "Qwen3-235B-A22B", "GB200", 64, 8, 5709, 8192, 16, 32, 12),
    nemo("Qwen3-235B, 128 GB200 in turns", "Qwen3-235B-A22B", "GB200", 128, 8, 5693, 8192, 16, 32, 12),
    nemo("Qwen3-235B, 128 GB200, 1 step off", "Qwen3-235B-A22B", "GB200", 128, 8, 5705, 8192, 16, 32, 12, 64, 1),
    nemo("Qwen3-30B-A3B, 16 GB200 in turns", "Qwen3-30B-A3B", "GB200", 16, 1, 3199, 4096, 64, 32, 10),
    nemo("Qwen3-30B-A3B, 16 GB200, 1 step off", "Qwen3-30B-A3B", "GB200", 16, 1, 3197, 4096, 64, 32, 10, 8, 1),
]

# verl, docs/advance/fully_async.md at 1dda039b9, 128 GPUs of 64 and 64: what published_verl has at threshold 0.5, whose lengths, decoding
# speed and learner it keeps. `learner predicted`: from training in turns; `learner of 0.5`: the time of an update in the run with
# threshold 0.5, which published_verl has read. Weights are shared after 512 prompts. (1 + s) n - 1 is no whole number for the
# thresholds 0.1 and 0.3, and the prediction is linear between those of its neighbours.
LEARNERS = {"learner predicted": 62.265, "learner of 0.5": 28.29}


def verl(name, minibatches, ahead, learner):
    """An update of `minibatches` times 32 prompts; 512 prompts make a step of the document."""
    n = 16 // minibatches
    return {"name": name, "per_step": n, "prompts": 32 * minibatches, "group": 16, "preset": "verl_async",
            "cluster": {"preset": "verl_async", "samplers": 1, "concurrency": 4096, "max_tokens": 28672,
                        "lengths": {"law": "lognormal", "mu": 8.4026, "sigma": 0.8}, "tokens_per_s": 161.2145,
                        "ahead": ahead, "learner": {"batches": 1, "publish_every": n, "step": learner * minibatches / 4}}}


VERL = [verl(f"verl 7B, 128 GPUs, ahead {ahead}, {name}", 4, ahead, of) for name, of in LEARNERS.items() for ahead in (3, 4, 5)]
VERL += [verl(f"verl 7B, 128 GPUs, require_batches {r}, {name}", r, 24 // r - 1, of) for name, of in LEARNERS.items() for r in (1, 2, 4)]


def ablations(gepolab):
    """Ranges over seeds and over spreads of lengths of 0.6 to 1.1."""
    lines, of = ["case\tquantity\tpredicted\tleast\tlargest"], {}
    for run in VERL:
        times = []
        for sigma, mu in ((0.8, 8.4026), (0.6, 8.8679), (1.1, 7.7048)):  # one response of a hundred reaches the longest length
            run["cluster"]["lengths"] = {"law": "lognormal", "mu": mu, "sigma": sigma}
            times.append([run["per_step"] * seconds(gepolab, run, None, seed, 20 * run["per_step"]) for seed in SEEDS[:1 if sigma != 0.8 else 3]])
        of[run["name"]] = (statistics.mean(times[0]), min(map(min, times)), max(map(max, times)))
    for name in LEARNERS:
        at = {a: of[f"verl 7B, 128 GPUs, ahead {a}, {name}"] for a in (3, 4, 5)}
        for s, low, share in ((0, 3, 0), (0.1, 3, 0.4), (0.3, 4, 0.2), (0.5, 4, 1)):
            value = [(1 - share) * x + share * y for x, y in zip(at[low], at[low + 1])]
            lines.append(f"verl 7B, 128 GPUs, threshold {s}, {name}\tseconds_a_step\t" + "\t".join(f"{x:.2f}" for x in value))
        for r in (1, 2, 4):
            value = of[f"verl 7B, 128 GPUs, require_batches {r}, {name}"]
            lines.append(f"verl 7B, 128 GPUs, require_batches {r}, {name}\tseconds_a_step\t" + "\t".join(f"{x:.2f}" for x in value))
    (HERE / "verl_ablations.tsv").write_text("\n".join(lines) + "\n")



def seen(name, model, gpus, train, engine, mean, longest, prompts, group, preset, per_step, rules=None, **more):
    """Of `gpus` that generate; a step of the run is per_step updates of `prompts`, and an update takes log-probabilities of its
    policy and recomputed activations beside its 6 operations: no reference."""
    return {"name": name, "model": model, "device": "H100", "engine": engine, "mean": mean, "longest": longest, "prompts": prompts,
            "group": group, "passes": 10, "preset": preset, "generate": gpus, "train": train, "per_step": per_step,
            "utilisation": 0.6 if gpus == train else 0.8, "rules": rules or {}, **more}


# marin#8936 and #8955 (Apache-2.0): 32 GPUs train, one engine of 8 generates, 25 updates of 32 prompts x 4, at most 4,096 tokens; lengths
# are what 3,200 responses consumed. MarinSkyRL is a fork of SkyRL. An update may be one behind. `ungated` is the trainer before it
# looked at staleness before it begins a group: 64 workers (the least that its ppo_base_config.yaml advises are one or two batches), and
# stale groups are discarded.
SNOWBALL = [seen(f"Snowball, {name}", "Snowball-67B-A2B", gpus, 32, 8, mean, 4096, 32, 4, preset, 1, rules, under_way=way, **more)
            for name, gpus, mean, preset, way, rules, more in (
                ("in turns", 8, 1197, "sync", 1, None, {}),
                ("sync every update", 8, 1150, "skyrl_03", 2, {"ahead": 1, "window": 1}, {}),
                ("sync every two updates", 8, 1184, "skyrl_03", 2, {"ahead": 1, "window": 1}, {"updates_a_sync": 2}),
                ("sync every update, ungated", 8, 1134, "skyrl_03", 2, {"ahead": None, "window": 1}, {"ledger": True}),
                ("8 GPUs generate", 8, 1072, "skyrl_03", 2, {"ahead": 1, "window": 1}, {}),
                ("16 GPUs generate", 16, 1117, "skyrl_03", 2, {"ahead": 1, "window": 1}, {"against": "Snowball, 8 GPUs generate"}))]
# verl, docs/advance/v1_async_trainer.md at 1dda039b9 (Apache-2.0), lines 247-261: four nodes, 64 prompts a step, mini-batches of 16, engines
# of 4. Responses a prompt are not given: tokens a second x time over the mean length are 8.1 of them. Devices are not given: H100.
VERL_V1 = [seen(f"verl V1, {name}", "Qwen3.5-35B-A3B", gpus, train, 4, mean, 32768, prompts, 8, preset, 64 // prompts, under_way=way, **more)
           for name, gpus, train, mean, prompts, preset, way, more in (
               ("sync", 32, 32, 12720, 64, "sync", 1, {}),
               ("colocate_async", 32, 32, 12854, 64, "verl_v1_colocate", 2, {}),
               ("separate_async", 16, 16, 12288, 16, "verl_v1", 8, {"updates_a_sync": 4}))]

FAMILIES = {"nemo_rl_06": NEMO, "marin_snowball": SNOWBALL, "verl_v1": VERL_V1}


def main(gepolab, family):
    lines = ["case\tquantity\tpredicted\tleast\tlargest"]
    clusters, previous, of = [], None, {}
    for run in FAMILIES[family]:
        n = run.get("per_step", 1)
        results = [[simulate(gepolab, run, e, seed, 25 if run.get("ledger") else STEPS * n) for seed in SEEDS] for e in settings()]
        every = of[run["name"]] = [[n * r["compared_s"] for r in of_one] for of_one in results]
        all_of = [x for of_one in every for x in of_one]
        lines.append(f"{run['name']}\tseconds_a_step\t{statistics.mean(every[0]):.2f}\t{min(all_of):.2f}\t{max(all_of):.2f}")
        if run["preset"] == "sync":
            previous = every
        elif previous:
            ratio = [statistics.mean(p) / statistics.mean(q) for p, q in zip(of[run["against"]] if "against" in run else previous, every)]
            quantity = "speed_up_over_8" if "against" in run else "speed_up_over_turns"
            lines.append(f"{run['name']}\t{quantity}\t{ratio[0]:.3f}\t{min(ratio):.3f}\t{max(ratio):.3f}")
        if run.get("ledger"):  # fractions of the groups that were generated
            left = lambda r: r["batches_generated"] - r["batches_trained"] - r["batches_dropped"]
            for quantity, count in (("stale", lambda r: r["batches_dropped"]), ("surplus", left)):
                part = [[count(r) / r["batches_generated"] for r in of_one] for of_one in results]
                all_of = [x for of_one in part for x in of_one]
                lines.append(f"{run['name']}\t{quantity}\t{statistics.mean(part[0]):.3f}\t{min(all_of):.3f}\t{max(all_of):.3f}")
        print(lines[-1], flush=True)
        clusters.append((run, cluster_of(run, next(settings()))))
    (HERE / f"{family}.tsv").write_text("\n".join(lines) + "\n")
    text = "".join(f"  - {json.dumps({'case': run['name'], 'groups': run['prompts'], 'group_size': run['group'], **c})}\n"
                   for run, c in clusters)
    (HERE / f"{family}.clusters.yaml").write_text(
        f"# The clusters behind {family}.tsv at the assumed values; written by predict_times.py.\nclusters:\n{text}")


if __name__ == "__main__":
    ablations(sys.argv[1]) if sys.argv[2] == "verl_ablations" else main(sys.argv[1], sys.argv[2])
