"""Writes the files of tests/golden/token_logs with the writing code of the trainers themselves.

    python3 tests/golden/token_logs.py nemo_rl=DIR prime_rl=DIR areal=DIR slime=DIR miles=DIR

Each DIR is a checkout of the trainer: NVIDIA-NeMo/RL 7ea279a, PrimeIntellect-ai/prime-rl 559b447, areal-project/AReaL
cbff54d, THUDM/slime 624b824, radixark/miles 31f1ca9. Needs torch, numpy and aiofiles. The functions that write are taken from
the checkouts by name and run with made-up numbers; nothing of the checkouts is copied here. Beside each log,
expected-FORMAT.json has the batches that a reader must make of it, written from the tensors and not from the log
(tests/experiments/tokens/formats.c compares them): a list of {"step", "groups": [{"rewards", "logp", …}]}.
"""
import ast
import asyncio
import enum
import json
import math
import pathlib
import random
import sys
import tempfile
import types
from collections import UserDict

import aiofiles
import aiofiles.os
import numpy as np
import torch

HERE = pathlib.Path(__file__).with_name("token_logs")
SOURCE = dict(argument.split("=", 1) for argument in sys.argv[1:])


def tree(trainer, path):
    return ast.parse((pathlib.Path(SOURCE[trainer]) / path).read_text())


def compiled(nodes, names, where):
    """Runs definitions of a checkout with these names in their module."""
    space = {"torch": torch, "np": np, "json": json, "math": math, "Any": object, **names}
    module = ast.Module([ast.parse("from __future__ import annotations").body[0], *nodes], [])
    exec(compile(ast.fix_missing_locations(module), where, "exec"), space)
    return space


def definitions(node, *wanted):
    found = {n.name: n for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and n.name in wanted}
    assert set(found) == set(wanted), (wanted, list(found))
    return [found[name] for name in wanted]


# --- made-up numbers: a step of prompts, responses, masks, rewards and log-probabilities ---


class Step:
    """n_prompts prompts with size responses each; tools: some tokens within responses are not trained."""

    def __init__(self, seed, n_prompts, size, tools=False, dropped=()):
        r = random.Random(seed)
        self.size, self.dropped = size, dropped
        self.prompts = [[r.randrange(1000) for _ in range(r.randrange(2, 6))] for _ in range(n_prompts)]
        self.tokens, self.mask, self.rewards = [], [], []
        for prompt in self.prompts:
            for _ in range(size):
                n = r.randrange(2, 7)
                mask = [0] * len(prompt) + [int(not tools or i == 0 or r.random() < 0.5) for i in range(n)]
                mask[-1] = 1
                self.tokens.append(prompt + [r.randrange(1000) for _ in range(n)])
                self.mask.append(mask)
                self.rewards.append(r.choice([0.0, 1.0, 0.5]))
        draw = lambda: -r.choice([r.random() * 3, r.random() * 1e-3, 6e-8, 0.0])
        as_single = lambda v: float(np.float32(v))
        self.logq = [[as_single(draw()) for _ in t] for t in self.tokens]
        self.logp = [[as_single(min(0.0, q + r.gauss(0, 0.05))) for q in row] for row in self.logq]
        self.entropy = [[as_single(r.random() * 2) for _ in t] for t in self.tokens]

    def padded(self, rows, fill):
        width = max(map(len, rows))
        return torch.tensor([row + [fill] * (width - len(row)) for row in rows])

    def advantages(self):
        rewards = torch.tensor(self.rewards).reshape(-1, self.size)
        return ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)).flatten()

    def group(self, g, **more):
        """A group without what is not trained."""
        rows = [i for i in range(g * self.size, (g + 1) * self.size) if i not in self.dropped]
        kept = lambda values: [[v for v, m in zip(values[i], self.mask[i]) if m] for i in rows]
        advantages = self.advantages().tolist()
        return {"rewards": [self.rewards[i] for i in rows], "advantages": [advantages[i] for i in rows],
                "logp": kept(self.logp), "logq": kept(self.logq), **{k: kept(v) for k, v in more.items()}}  # fmt: skip


def write_expected(name, batches):
    (HERE / f"expected-{name}.json").write_text(json.dumps(batches) + "\n")


# --- NeMo-RL ---


def nemo_classes():
    packed = type("PackedTensor", (), {})
    data = tree("nemo_rl", "nemo_rl/distributed/batched_data_dict.py")
    (whole,) = definitions(data, "BatchedDataDict")
    whole.body = [n for n in whole.body if getattr(n, "name", "") in ("slice", "make_microbatch_iterator", "size")]
    whole.bases = [ast.Name("UserDict", ast.Load())]
    whole.decorator_list = []
    space = compiled([whole], {"UserDict": UserDict, "PackedTensor": packed}, "batched_data_dict.py")
    space["SlicedDataDict"] = type("SlicedDataDict", (space["BatchedDataDict"],), {})
    space["BatchedDataDict"].__class_getitem__ = classmethod(lambda cls, _: cls)
    logger = definitions(tree("nemo_rl", "nemo_rl/utils/logger.py"), "log_batched_dict_as_jsonl")
    import os

    write = compiled(logger, {"os": os, "BatchedDataDict": space["BatchedDataDict"]}, "logger.py")["log_batched_dict_as_jsonl"]
    return type("Logger", (), {"log_batched_dict_as_jsonl": write})


def nemo_statements():
    """The statements of async_grpo_train() that make the dictionary and write it."""
    (loop,) = definitions(tree("nemo_rl", "nemo_rl/algorithms/grpo.py"), "async_grpo_train")
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and "_should_log_nemo_gym_responses" in ast.dump(node.test) and "train_data_step" in ast.dump(node):
            return node.body
    raise AssertionError("NeMo-RL no longer writes train_data_step here")


def write_nemo(folder, number, step, dynamic=False):
    logger = nemo_classes()()
    logger.base_log_dir = str(folder)
    advantages = step.advantages().unsqueeze(-1).expand(len(step.tokens), max(map(len, step.tokens)))
    sample_mask = torch.tensor([float(i not in step.dropped) for i in range(len(step.tokens))])
    names = {
        "logger": logger,
        "step": number - 1,
        "rewards": torch.tensor(step.rewards),
        "input_lengths": torch.tensor([len(t) for t in step.tokens]),
        "flat_messages_content": [f"response \"{i}\"" for i in range(len(step.tokens))],
        "repeated_batch": {"total_reward": torch.tensor([9.0] * (len(step.tokens) + 2 * dynamic))},
        "master_config": types.SimpleNamespace(grpo=types.SimpleNamespace(use_dynamic_sampling=dynamic)),
        "train_data": {
            "input_ids": step.padded(step.tokens, 0),
            "token_mask": step.padded(step.mask, 0),
            "sample_mask": sample_mask,
            "advantages": advantages,
            "generation_logprobs": step.padded(step.logq, 0.0),
            "prev_logprobs": step.padded(step.logp, 0.0),
        },
    }
    compiled(nemo_statements(), names, "grpo.py")


def write_nemo_sync(folder, number, step):
    """grpo_train_sync() with dynamic sampling: the rewards of all samples come first, two of which are not in the batch."""
    (loop,) = definitions(tree("nemo_rl", "nemo_rl/algorithms/grpo_sync.py"), "grpo_train_sync")
    body = next(n.body for n in ast.walk(loop)
                if isinstance(n, ast.If) and "_should_log_nemo_gym_responses" in ast.dump(n.test) and "train_data_step" in ast.dump(n))  # fmt: skip
    logger = nemo_classes()()
    logger.base_log_dir = str(folder)
    width = max(map(len, step.tokens))
    names = {
        "logger": logger, "total_steps": number - 1, "repeated_batch": {}, "rewards": torch.tensor(step.rewards),
        "unfiltered_rewards": torch.tensor([9.0] * (len(step.tokens) + 2)), "input_lengths": torch.tensor([len(t) for t in step.tokens]),
        "token_mask": step.padded(step.mask, 0), "sample_mask": torch.ones(len(step.tokens)),
        "advantages": step.advantages().unsqueeze(-1).expand(len(step.tokens), width), "generation_logprobs": step.padded(step.logq, 0.0),
        "prev_logprobs": step.padded(step.logp, 0.0), "_log_input_ids": step.padded(step.tokens, 0),
        "_log_content": np.array([f"response {i}" for i in range(len(step.tokens))], dtype=object),
        "master_config": types.SimpleNamespace(grpo=types.SimpleNamespace(use_dynamic_sampling=True))}  # fmt: skip
    compiled(body, names, "grpo_sync.py")


def nemo():
    folder = HERE / "nemo_rl"
    steps = {9: Step(1, 2, 3, dropped=(4,)), 10: Step(2, 3, 2, tools=True)}
    for number, step in steps.items():
        write_nemo(folder, number, step)
    write_nemo(HERE / "nemo_rl_dynamic", 4, Step(3, 2, 2), dynamic=True)
    sync = Step(4, 2, 2, tools=True)
    write_nemo_sync(HERE / "nemo_rl_sync", 5, sync)
    write_expected("nemo_rl_sync", [{"step": 5, "groups": [sync.group(g) for g in range(2)]}])
    write_expected("nemo_rl", [{"step": n, "groups": [s.group(g) for g in range(len(s.prompts))]} for n, s in steps.items()])
    dynamic = Step(3, 2, 2)
    write_expected("nemo_rl_dynamic", [{"step": 4, "groups": [dynamic.group(g) for g in range(2)]}])


# --- prime-rl ---


def prime():
    source = tree("prime_rl", "src/prime_rl/trainer/rl/token_export.py")
    loss = compiled(definitions(tree("prime_rl", "src/prime_rl/trainer/rl/loss.py"), "compute_importance_ratio_and_mismatch_kl"),
                    {"Float": {}, "Tensor": torch.Tensor}, "loss.py")  # fmt: skip
    config = type("DefaultLossConfig", (), {"dppo_mask_high": 0.2, "dppo_mask_low": 0.2})
    space = compiled([n for n in source.body if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Assign))],
                     {"atexit": __import__("atexit"), "Path": pathlib.Path, "Tensor": torch.Tensor, "DefaultLossConfig": config, "TrainerConfig": object,
                      "compute_importance_ratio_and_mismatch_kl": loss["compute_importance_ratio_and_mismatch_kl"]}, "token_export.py")  # fmt: skip
    records = []
    for number in (9, 10):
        step = Step(20 + number, 3, 2, tools=number == 10)
        advantages = step.advantages().tolist()
        exporters = [space["TokenExporter"](HERE / "prime_rl", rank) for rank in (0, 1)]
        for rank in (0, 1):
            for micro, i in enumerate(range(rank, len(step.tokens), 2)):
                export_sequence(exporters[rank], number, micro, step, i, advantages[i], config())
        groups = []
        for g in range(3):
            group = step.group(g, entropy=step.entropy)
            del group["rewards"]
            groups.append(group)
        records.append({"step": number, "groups": groups})
    write_expected("prime_rl", records)


def export_sequence(exporter, number, micro, step, i, advantage, config):
    pad = 2
    row = lambda values, fill: torch.tensor([values[i] + [fill] * pad])
    n = len(step.tokens[i])
    batch = {
        "input_ids": row(step.tokens, 0),
        "position_ids": torch.arange(n + pad).unsqueeze(0),
        "loss_mask": row(step.mask, 0).bool(),
        "advantages": torch.tensor([[advantage] * n + [0.0] * pad]),
        "inference_logprobs": row(step.logq, 0.0),
        "rl_weights": None,
        "env_names": ["math"] * n + [""] * pad,
    }
    output = {"logprobs": row(step.logp, -7.0), "entropy": row(step.entropy, 0.5)}
    exporter.export(number, micro, batch, output, [n + pad], config)


# --- AReaL ---


def areal():
    source = tree("areal", "areal/infra/workflow_executor.py")
    dump, versions, split = definitions(source, "_dump_trajectory", "_compute_output_versions", "_split_trajectory_for_dump")
    for node in (versions, split):
        node.decorator_list = []
    import os

    space = compiled([dump, versions, split], {"aiofiles": aiofiles, "os": os, "RTensor": types.SimpleNamespace(localize=lambda t: t)}, "workflow_executor.py")
    tokenizer = types.SimpleNamespace(decode=lambda ids, skip_special_tokens: " ".join(map(str, ids)))
    executor = types.SimpleNamespace(
        _get_dump_dir=lambda is_eval: str(HERE / "areal"), _get_tokenizer=lambda: tokenizer,
        _compute_output_versions=space["_compute_output_versions"], _split_trajectory_for_dump=space["_split_trajectory_for_dump"])  # fmt: skip
    groups = {}
    for task, newest in ((7, 3), (12, 3), (9, 10)):
        step = Step(30 + task, 1, 3, tools=task == 9)
        r = random.Random(task)
        versions = []
        for mask in step.mask:
            v, row = newest - 1, []
            for m in mask:
                v = min(newest, v + int(m and r.random() < 0.3))
                row.append(v if m else -1)
            versions.append(row)
        versions[0][-1] = newest
        attention = [[1] * len(t) for t in step.tokens]
        trajectory = {
            "input_ids": step.padded(step.tokens, 0), "rewards": torch.tensor(step.rewards), "loss_mask": step.padded(step.mask, 0),
            "attention_mask": step.padded(attention, 0), "versions": step.padded(versions, -1)}  # fmt: skip
        done, why = asyncio.run(space["_dump_trajectory"](executor, trajectory, task, False))
        assert done, why
        kept = [[v for v, m in zip(row, mask) if m] for row, mask in zip(versions, step.mask)]
        groups.setdefault(newest, []).append({"rewards": step.rewards, "versions": kept})
    write_expected("areal", [{"groups": g} for g in groups.values()])


# --- slime and miles ---


def sample_class(trainer):
    import dataclasses

    (node,) = definitions(tree(trainer, f"{trainer}/utils/types.py"), "Sample")
    names = {"dataclass": dataclasses.dataclass, "field": dataclasses.field, "dataclasses": dataclasses, "Enum": enum.Enum}
    module = sys.modules.setdefault(f"golden_{trainer}", types.ModuleType(f"golden_{trainer}"))  # dataclasses looks its module up
    return compiled([node], {**names, "__name__": module.__name__}, "types.py")["Sample"]


def rollout(trainer, step):
    """Samples as the rollout engine leaves them."""
    sample = sample_class(trainer)
    made = []
    for i, tokens in enumerate(step.tokens):
        n = len(tokens) - step.mask[i].index(1)
        made.append(sample(
            group_index=i // step.size, index=100 + i, prompt="p", tokens=tokens, response="r", response_length=n, reward=step.rewards[i],
            loss_mask=step.mask[i][-n:], rollout_log_probs=step.logq[i][-n:], weight_versions=[str(4 + i % 2)], status=sample.Status.COMPLETED))  # fmt: skip
    return made


def training(step, samples, picked):
    """The data of a rank: the samples `picked`, as tensors."""
    tail = lambda values, i: torch.tensor(values[i][-samples[i].response_length :])
    return {
        "partition": list(picked), "sample_indices": [samples[i].index for i in picked], "tokens": [torch.tensor(step.tokens[i]) for i in picked],
        "response_lengths": [samples[i].response_length for i in picked], "loss_masks": [tail(step.mask, i).int() for i in picked],
        "rewards": [0.25 for _ in picked], "raw_reward": step.rewards, "log_probs": [tail(step.logp, i) for i in picked],
        "rollout_log_probs": [tail(step.logq, i) for i in picked], "total_lengths": [len(t) for t in step.tokens],
        "weight_versions": [samples[i].weight_versions for i in picked]}  # fmt: skip


class Quiet:
    info = warning = lambda *_: None


def expected_dump(name, steps):
    records = []
    for number, step in steps.items():
        groups = [step.group(g) for g in range(len(step.prompts))]
        records.append({"step": number, "groups": [{key: g[key] for key in ("rewards", "logp", "logq")} for g in groups]})
    write_expected(name, records)


def slime():
    folder = HERE / "slime"
    write = definitions(tree("slime", "slime/observability/train_data_utils.py"), "_build_dump_payload", "_is_per_sample")
    space = compiled(write, {"logger": Quiet, "_LAYOUT_FIELDS": ("micro_batch_indices", "num_microbatches", "global_batch_sizes"), "_WHOLE_BATCH_FIELDS": ("raw_reward",)}, "train_data_utils.py")
    save = compiled(definitions(tree("slime", "slime/observability/rollout_data_utils.py"), "save_debug_rollout_data"), {"Path": pathlib.Path, "logger": Quiet}, "rollout_data_utils.py")
    steps = {9: Step(41, 2, 3), 10: Step(42, 3, 2, tools=True)}
    for number, step in steps.items():
        samples = rollout("slime", step)
        save["save_debug_rollout_data"](f"{folder}/rollout_data/{{rollout_id}}.pt", samples, rollout_id=number, evaluation=False)
        n = len(samples)
        shards = [{"rank": r, "data_parallel_rank": r, "rollout_data": training(step, samples, range(r, n, 2))} for r in (0, 1)]
        (folder / "train_data").mkdir(exist_ok=True)
        torch.save(space["_build_dump_payload"](shards, rollout_id=number, writer_rank=0), folder / "train_data" / f"{number}.pt")
    expected_dump("slime", steps)


def miles():
    folder = HERE / "miles"
    args = types.SimpleNamespace(
        save_debug_train_data=f"{folder}/train_data/{{rollout_id}}_{{rank}}.pt", save_debug_rollout_data=f"{folder}/rollout_data/{{rollout_id}}.pt",
        save_debug_trajectory_data=None, qkv_format="thd")  # fmt: skip
    nothing = lambda *_: None
    save = compiled(definitions(tree("miles", "miles/utils/train_dump_utils.py"), "save_debug_train_data_for_rank"), {"Path": pathlib.Path, "logger": Quiet}, "train_dump_utils.py")
    keep = compiled(definitions(tree("miles", "miles/ray/rollout/debug_data.py"), "save_debug_rollout_data"),
                    {"Path": pathlib.Path, "logger": Quiet, "save_debug_trajectory_data": nothing, "save_dashboard_columns": nothing}, "debug_data.py")  # fmt: skip
    steps = {2: Step(51, 2, 2)}
    for number, step in steps.items():
        samples = rollout("miles", step)
        keep["save_debug_rollout_data"](args, samples, number, False)
        for rank, picked in enumerate(((0, 1), (0, 1), (2, 3))):  # ranks 0 and 1 are two tensor-parallel copies
            save["save_debug_train_data_for_rank"](args, rollout_id=number, rollout_data=training(step, samples, picked), rank=rank)
    expected_dump("miles", steps)


if __name__ == "__main__":
    import shutil

    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    nemo()
    prime()
    areal()
    slime()
    miles()
