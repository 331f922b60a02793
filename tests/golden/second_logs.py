"""Writes a second set of trainers' logs, of runs with other settings than those of token_logs.py and trainer_logs.py.

    python3 tests/golden/second_logs.py TO nemo_rl=DIR prime_rl=DIR areal=DIR slime=DIR miles=DIR verl=DIR

With SMALL=1 and TO = tests/golden/second_logs it writes the small files that tests read: those on which readers
failed that were written on the first set. The same checkouts and versions as in token_logs.py and trainer_logs.py, whose functions take the writing code out of
them; TRL 1.16.0 is imported and trains. Numbers are made up but those of TRL. Written below TO:

    nemo_rl/exp_001, exp_002  24 steps of 8 prompts x 8, tools, padding to 64, agent_ref, filtered samples, resumed at step 17;
                              beside them the validation's val_data_step*.jsonl
    nemo_rl_ppo               ppo.py: an advantage for each token
    nemo_rl_distillation      distillation.py: no log-probabilities at all
    prime_rl/run              token exports of 12 ranks, some without sequences; weights of other losses; FileMonitor's
                              metrics of a trainer and an orchestrator that is two steps ahead
    areal/rollout             sequences of several turns, tasks appended to after a restart, a run without versions
    areal_sessions            4 ranks, several generations a session, failed and rejected ones
    verl.jsonl                legacy fully_async: validation before step 1, arrays, texts, truth values
    trl                       GRPOTrainer on a tiny model, logging every second step, checkpoints, resumed
    miles/dashboard           flat trajectories, aborted and carried-on attempts, streams of GPUs
    slime, miles_dump         bfloat16, partial rollouts of several versions, rewards in dictionaries, removed samples
"""
import asyncio
import dataclasses
import importlib
import json
import math
import os
import pathlib
import random
import shutil
import sys
import types

TO = pathlib.Path(sys.argv.pop(1))
import numpy as np
import token_logs as tokens
import torch
import trainer_logs as trainers

SMALL = "SMALL" in os.environ
SOURCE = {name: pathlib.Path(path) for name, path in tokens.SOURCE.items()}


class Step:
    """Prompts with `size` responses of two turns each: the answer of a tool between them is not trained."""

    def __init__(self, seed, prompts, size, lag, longest=40):
        r = random.Random(seed)
        self.size, self.dropped = size, {i for i in range(prompts * size) if r.random() < 0.04}
        self.tokens, self.mask, self.rewards, self.logq, self.logp = [], [], [], [], []
        for g in range(prompts):
            prompt, chance = [r.randrange(2, 32000) for _ in range(r.randrange(4, 12))], r.random()
            for _ in range(size):
                first, tool, second = r.randrange(2, longest), r.randrange(0, 6), r.randrange(1, longest)
                mask = [0] * len(prompt) + [1] * first + [0] * tool + [1] * second
                self.mask.append(mask)
                self.tokens.append(prompt + [r.randrange(2, 32000) for _ in range(len(mask) - len(prompt))])
                self.rewards.append(float(r.random() < chance) - (0.1 if second > 30 else 0.0))
                q = [-r.expovariate(1.5) * m for m in mask]
                single = lambda values: np.asarray(values, np.float32).tolist()
                self.logq.append(single(q))
                self.logp.append(single([min(0.0, v + r.gauss(0, 0.02 + 0.01 * lag)) if m else 0.0 for v, m in zip(q, mask)]))
        self.entropy = [[abs(v) for v in row] for row in self.logq]

    def padded(self, rows, fill, to=64):
        width = -(-max(map(len, rows)) // to) * to
        return torch.tensor([row + [fill] * (width - len(row)) for row in rows])

    def advantages(self):  # leave-one-out
        r = torch.tensor(self.rewards).reshape(-1, self.size)
        return (r - (r.sum(1, keepdim=True) - r) / (self.size - 1)).flatten()


# --- NeMo-RL ---


def nemo_write(folder, name, path, function, names):
    tree = tokens.tree("nemo_rl", path)
    (loop,) = tokens.definitions(tree, function)
    import ast

    for node in ast.walk(loop):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for i, n in enumerate(body):
            if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "log_data" and "train_data_step" in ast.dump(node):
                logger = tokens.nemo_classes()()
                logger.base_log_dir = str(folder)
                last = next(k for k in range(i, len(body)) if "train_data_step" in ast.dump(body[k]))
                tokens.compiled(body[i : last + 1], {"logger": logger, **names}, path)
                return
    raise AssertionError(f"{path} no longer writes train_data_step here")


def nemo_names(step, number, ppo=False):
    n, width = len(step.tokens), step.padded(step.tokens, 0).shape[1]
    advantages = step.advantages().unsqueeze(-1).expand(n, width)
    if ppo:
        advantages = advantages * torch.linspace(0.5, 1.5, width)
    data = {
        "input_ids": step.padded(step.tokens, 0), "token_mask": step.padded(step.mask, 0), "advantages": advantages,
        "sample_mask": torch.tensor([float(i not in step.dropped) for i in range(n)]),
        "generation_logprobs": step.padded(step.logq, 0.0), "prev_logprobs": step.padded(step.logp, 0.0)}  # fmt: skip
    texts = [f"turn {i}: \u2713 \\ \"quoted\"" for i in range(n)]
    return {
        "total_steps": number - 1, "step": number - 1, "rewards": torch.tensor(step.rewards), "train_data": data,
        "input_lengths": torch.tensor([len(t) for t in step.tokens]), "flat_messages": {"content": texts}, "flat_messages_content": texts,
        "repeated_batch": {"agent_ref": [{"type": "responses_api_agents", "name": f"agent_{i % 2}"} for i in range(n)]},
        "master_config": types.SimpleNamespace(grpo=types.SimpleNamespace(use_dynamic_sampling=False))}  # fmt: skip


def nemo(steps=0 if SMALL else 24, prompts=8, size=8):
    for number in range(1, steps + 1):
        step = Step(100 + number, prompts, size, number % 4)
        nemo_write(TO / "nemo_rl/exp_001", "grpo", "nemo_rl/algorithms/grpo.py", "grpo_train", nemo_names(step, number))
        if number >= steps * 2 // 3:  # a second job resumes from a checkpoint and trains the steps again
            step = Step(200 + number, prompts, size, number % 4)
            nemo_write(TO / "nemo_rl/exp_002", "grpo", "nemo_rl/algorithms/grpo.py", "grpo_train", nemo_names(step, number))
    logger = tokens.nemo_classes()()
    logger.base_log_dir = str(TO / "nemo_rl/exp_001")
    if not SMALL:
        logger.log_batched_dict_as_jsonl({"content": ["a", "b"], "rewards": [1.0, 0.0]}, "val_data_step10.jsonl")
    for number in (1,) if SMALL else (1, 2, 3):
        step = Step(300 + number, 4, 2, number)
        nemo_write(TO / "nemo_rl_ppo", "ppo", "nemo_rl/algorithms/ppo.py", "async_ppo_train", nemo_names(step, number, ppo=True))
        nemo_write(TO / "nemo_rl_distillation", "distillation", "nemo_rl/algorithms/distillation.py", "distillation_train", nemo_names(step, number))


# --- prime-rl ---


def prime(steps=2 if SMALL else 12, ranks=3 if SMALL else 12):
    import ast

    source = tokens.tree("prime_rl", "src/prime_rl/trainer/rl/token_export.py")
    loss = tokens.compiled(tokens.definitions(tokens.tree("prime_rl", "src/prime_rl/trainer/rl/loss.py"), "compute_importance_ratio_and_mismatch_kl"),
                           {"Float": {}, "Tensor": torch.Tensor}, "loss.py")  # fmt: skip
    config = type("DefaultLossConfig", (), {"dppo_mask_high": 0.2, "dppo_mask_low": 0.2})
    custom = type("CustomLossConfig", (), {})  # is_masked is null with another loss
    from collections.abc import Mapping, Sequence

    space = tokens.compiled([n for n in source.body if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.Assign))],
                            {"atexit": __import__("atexit"), "Path": pathlib.Path, "Tensor": torch.Tensor, "DefaultLossConfig": config,
                             "TrainerConfig": object, "Mapping": Mapping, "Sequence": Sequence,
                             "compute_importance_ratio_and_mismatch_kl": loss["compute_importance_ratio_and_mismatch_kl"]}, "token_export.py")  # fmt: skip
    exporters = [space["TokenExporter"](TO / "prime_rl/run", rank) for rank in range(ranks)]
    for number in range(1, steps + 1):
        step = Step(400 + number, *((2, 3, 1, 6) if SMALL else (6, 8, number % 3)))
        advantages = step.advantages().tolist()
        order = list(range(len(step.tokens)))
        random.Random(number).shuffle(order)  # the packer orders by length, so a prompt's responses are on any rank
        for k in range(0, len(order), 2):  # two sequences packed into a micro-batch
            rank = (k // 2) % (ranks - 1)  # the last rank has only padding
            export_packed(exporters[rank], number, k // 2 // ranks, step, order[k : k + 2], advantages, custom() if number % 2 else config(), k == 4)
        for e in exporters:
            e.mark_stable()


def export_packed(exporter, number, micro, step, picked, advantages, config, distils):
    join = lambda rows, fill: torch.tensor([[v for i in picked for v in rows[i]] + [fill] * 3])
    lengths = [len(step.tokens[i]) for i in picked]
    n = sum(lengths)
    rl = torch.ones(1, n + 3)
    if distils:  # the second sequence is of another model: cross-entropy, without log-probabilities of a sampler
        rl[0, lengths[0] :] = 0.0
    batch = {
        "input_ids": join(step.tokens, 0), "position_ids": torch.arange(n + 3).unsqueeze(0), "loss_mask": join(step.mask, 0).bool(),
        "advantages": torch.tensor([[a for i in picked for a in [advantages[i]] * len(step.tokens[i])] + [0.0] * 3]),
        "inference_logprobs": join(step.logq, 0.0), "rl_weights": rl if distils else None, "ce_weights": 1 - rl if distils else None,
        "env_names": [e for k, i in enumerate(picked) for e in [("math", "code")[k]] * len(step.tokens[i])] + [""] * 3}  # fmt: skip
    output = {"logprobs": join(step.logp, -7.0), "entropy": join(step.entropy, 0.5)}
    exporter.export(number, micro, batch, output, lengths[:-1] + [lengths[-1] + 3], config)


def monitor():
    """An orchestrator that is two steps ahead of the trainer; both append to one file."""
    source = SOURCE["prime_rl"]
    trainers.HERE = TO / "monitor_golden"
    trainers.prime_rl(source)
    shutil.rmtree(trainers.HERE)
    module = sys.modules["prime_rl_file"]
    folder = TO / "prime_rl/run"
    folder.mkdir(parents=True, exist_ok=True)

    def new():
        m = module.FileMonitor()
        m.config = types.SimpleNamespace(path=pathlib.Path("metrics.jsonl"))
        m.logger = types.SimpleNamespace(info=lambda *a: None, warning=lambda *a: None)
        module.time.time = lambda: trainers.tick(0.5)
        asyncio.run(m.init(folder))
        return m

    trainer, orchestrator, r = new(), new(), random.Random(5)
    for step in range(1, 9 if SMALL else 41):
        trainers.tick(r.lognormvariate(3.5, 0.2))
        for m, s, metrics in (
            (orchestrator, step + 2, {"off_policy/mean": 1 + r.random(), "off_policy/max": 3.0, "off_policy/dropped": float(r.random() < 0.2),
                                      "train/agg/effective/agent/reward/mean": 0.3 + 0.01 * step + 0.03 * r.random(), "train/math/effective/agent/reward/mean": 0.4,
                                      "time/wait_for_batch": 5 * r.random(), "train/agg/effective/agent/num_output_tokens/mean": 900.0, "note": "text"}),
            (trainer, step, {"optim/lr": 1e-6, "optim/grad_norm": 0.1 + 0.02 * r.random(), "mismatch_kl/all/mean": 0.001 + 1e-4 * r.random(),
                             "time/step": 30.0 + r.random(), "time/broadcast_weights": 2.0, "time/forward_backward": 20.0, "perf/mfu": math.nan, "step": step})):  # fmt: skip
            asyncio.run(m.log_metrics(metrics, s))
        if step % 10 == 0:
            asyncio.run(orchestrator.log_metrics({"eval/aime/avg@8": 0.1 + 0.01 * step}, step))
    trainer.file.close(), orchestrator.file.close()


# --- AReaL ---


def areal():
    source = tokens.tree("areal", "areal/infra/workflow_executor.py")
    nodes = tokens.definitions(source, "_dump_trajectory", "_compute_output_versions", "_split_trajectory_for_dump")
    for node in nodes[1:]:
        node.decorator_list = []
    space = tokens.compiled(nodes, {"aiofiles": tokens.aiofiles, "os": os, "RTensor": types.SimpleNamespace(localize=lambda t: t)}, "workflow_executor.py")

    def dump(folder, task, step, versions, is_eval=False):
        executor = types.SimpleNamespace(
            _get_dump_dir=lambda e: str(folder / ("eval-rollout" if e else "rollout")), logger=tokens.Quiet, inference_engine=types.SimpleNamespace(get_version=lambda: 6),
            _get_tokenizer=lambda: types.SimpleNamespace(decode=lambda ids, skip_special_tokens: "\u00e9" * len(ids)),
            _compute_output_versions=space["_compute_output_versions"], _split_trajectory_for_dump=space["_split_trajectory_for_dump"])  # fmt: skip
        data = {"input_ids": step.padded(step.tokens, 0), "rewards": torch.tensor(step.rewards), "loss_mask": step.padded(step.mask, 0),
                "attention_mask": step.padded([[1] * len(t) for t in step.tokens], 0), "original_rewards": torch.tensor(step.rewards) + 1}  # fmt: skip
        if versions is not None:
            data["versions"] = step.padded(versions, -1)
        done, why = asyncio.run(space["_dump_trajectory"](executor, data, task, is_eval))
        assert done, why

    r = random.Random(9)
    n = 4 if SMALL else 8
    for task in range(6 if SMALL else 96):
        step, newest = Step(500 + task, 1, n, 0, longest=20), task // (2 if SMALL else 8)
        rows = []
        for mask in step.mask:
            v, row = max(0, newest - r.randrange(0, 3)), []
            for m in mask:
                v = min(newest, v + int(r.random() < 0.02))
                row.append(v if m else -1)
            rows.append(row)
        rows[0][-1] = newest
        dump(TO / "areal", task, step, rows)
        if task == (3 if SMALL else 40):  # after a restart the task is generated again, by the same version
            again = Step(600, 1, n, 0, longest=20)
            dump(TO / "areal", task, again, [[newest if m else -1 for m in mask] for mask in again.mask])
    dump(TO / "areal", 7, Step(700, 1, 4, 0), None, is_eval=True)
    for task in range(1 if SMALL else 3):
        dump(TO / "areal_without_versions", task, Step(710 + task, 1, 4, 0), None)


def sessions():
    trainers.HERE = TO / "sessions_golden"
    (trainers.HERE / "areal").mkdir(parents=True)
    trainers.areal(SOURCE["areal"])
    shutil.rmtree(trainers.HERE)
    module, r = sys.modules["areal_perf_tracer"], random.Random(3)
    Event = module.SessionTraceEvent
    for rank in range(4):
        tracer = module.SessionTracer(types.SimpleNamespace(enabled=True, flush_threshold=16), output_path=str(TO / f"areal_sessions/sessions-r{rank}.jsonl"), rank=rank, role="rollout")
        for i in range(120):
            trainers.CLOCK[0] = trainers.START + 30 * i + rank
            session = tracer.register_session(4 * i + rank)
            for turn in range(r.randrange(1, 4)):
                trainers.tick(0.1)
                tracer.record_event(session, Event.GENERATE_START)
                trainers.tick(r.lognormvariate(2.5, 0.6))
                tracer.record_event(session, Event.GENERATE_END)
                tracer.record_event(session, Event.TOOLCALL_START)
                trainers.tick(r.expovariate(1))
                tracer.record_event(session, Event.TOOLCALL_END)
            if i % 11 == 0:
                tracer.record_event(session, Event.FINALIZED, status="failed", reason="timeout, \"late\"")
            elif i % 7 == 0:
                tracer.record_event(session, Event.FINALIZED, status="rejected")
            else:
                tracer.record_event(session, Event.REWARD_START)
                trainers.tick(0.2)
                tracer.record_event(session, Event.REWARD_END)
                tracer.record_event(session, Event.FINALIZED, status="accepted")
        tracer.flush(force=True)


# --- verl, TRL ---


def verl():
    module = trainers.load("verl_second", SOURCE["verl"] / "verl/utils/tracking.py")
    os.environ["VERL_FILE_LOGGER_PATH"] = str(TO / "verl.jsonl")
    logger, r = module.FileLogger("project", "experiment"), random.Random(4)
    logger.log({"val-core/gsm8k/acc/mean@4": 0.31, "val-aux/num_turns/mean": np.int32(2)}, 0)  # val_before_train
    for step in range(1, 13 if SMALL else 61):
        stale = r.randrange(0, 60)
        logger.log(
            {
                "critic/rewards/mean": np.float64(0.3 + 0.005 * step + 0.02 * r.random()), "critic/rewards/max": 1, "actor/grad_norm": 0.2 + 0.05 * r.random(),
                "actor/ppo_kl": np.float32(1e-3 * r.random()), "actor/pg_clipfrac": 0.01, "actor/entropy": 0.4, "rollout_corr/kl": 2e-3 + 1e-3 * r.random(),
                "rollout_corr/k3_kl": 1e-3 + 5e-4 * r.random(), "rollout_corr/rollout_is_eff_sample_size": 0.9, "rollout_corr/rollout_is_max": 1.9, "rollout_corr/log_ppl_abs_diff": 0.01,
                "training/rollout_probs_diff_mean": 0.01, "training/rollout_probs_diff_max": 0.4, "training/global_step": step, "training/epoch": step // 20,
                "fully_async/count/staleness_samples": stale, "fully_async/count/stale_samples_processed": 10 * step, "fully_async/count/stale_trajectory_processed": 4 * step,
                "fully_async/count/current_param_version": step // 4, "fully_async/count/dropped_stale_samples": 0, "fully_async/partial/total_partial_num": 3,
                "fully_async/partial/partial_ratio": 0.1, "fully_async/trainer/idle_ratio": 0.2, "fully_async/rollouter/idle_ratio": 0.05, "fully_async/processing_time/avg": 40.0,
                "timing_s/step": 50 + 5 * r.random(), "timing_s/gen": 30.0, "timing_s/update_actor": 20.0, "timing_s/param_sync": 3.0, "perf/throughput": 900.0,
                "response_length/mean": 800.0, "response_length/clip_ratio": 0.02, "prompt_length/mean": np.array([1.0, 2.0]), "tag": "a", "is_last": step == 60,
                **({"val-core/gsm8k/acc/mean@4": 0.3 + 0.005 * step} if step % 20 == 0 else {})},  # fmt: skip
            step,
        )
    logger.finish()


def trl():
    """A run of TRL itself: 8 steps, stopped after 4 and resumed."""
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    for name in [n for n in sys.modules if n.split(".")[0] == "trl"]:
        del sys.modules[name]
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<pad>", "<eos>", *"0123456789+="])}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=14, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, eos_token_id=1, pad_token_id=0))
    model.save_pretrained(TO / "trl/model")  # TRL loads the reference from there
    model.config._name_or_path = str(TO / "trl/model")
    data = Dataset.from_list([{"prompt": f"{a}+{b}=", "answer": str(a + b)[-1]} for a in range(5) for b in range(5)])

    def reward_digit(completions, answer, **_):
        return [float(a in c) for c, a in zip(completions, answer)]

    def reward_short(completions, **_):
        return [None if i % 3 == 0 else -0.1 * len(c) for i, c in enumerate(completions)]

    config = lambda steps: GRPOConfig(output_dir=str(TO / "trl"), max_steps=steps, num_generations=4, per_device_train_batch_size=8, max_completion_length=6, logging_steps=2, save_steps=2,
                                      eval_strategy="steps", eval_steps=4, num_generations_eval=2, num_iterations=2, beta=0.04, report_to=[], use_cpu=True, bf16=False, learning_rate=1e-3,
                                      logging_first_step=True, disable_tqdm=True)  # fmt: skip
    trainer = lambda steps: GRPOTrainer(model=model, reward_funcs=[reward_digit, reward_short], args=config(steps), train_dataset=data, eval_dataset=data.select(range(4)), processing_class=tokenizer)
    trainer(4).train()
    again = trainer(8)
    again.train(resume_from_checkpoint=True)
    again.save_state()
    for path in (TO / "trl").rglob("*"):
        if path.is_file() and (path.name != "trainer_state.json" or SMALL and path.parent.name == "checkpoint-2"):
            path.unlink()


# --- miles, slime ---


def miles_dashboard():
    trainers.HERE = TO / "miles_golden"
    trainers.miles(SOURCE["miles"])
    shutil.rmtree(trainers.HERE)
    module, r = sys.modules["miles.dashboard.store"], random.Random(6)
    store, Kind = module.MetricStore(TO / "miles/dashboard"), module.TrajectoryEventKind
    hour = trainers.START - trainers.START % 3600
    for i in range(20 if SMALL else 400):
        t, version = hour + 12.0 * i, i // (4 if SMALL else 40)
        event = lambda ts, kind, turn=-1, v=version, detail="": store.append(module.TrajectoryEvent(ts, kind, i, i // 8 if i % 50 else -1, turn, str(v), detail))
        event(t, Kind.ATTEMPT_START, v="")
        length = r.lognormvariate(4, 0.7)
        event(t + 0.5, Kind.GEN_START, 1)
        event(t + 0.5 + length, Kind.GEN_END, 1)
        if i % 10 == 3:  # aborted at an update of the weights, and carried on
            event(t + 0.6 + length, Kind.ATTEMPT_END, detail="aborted")
            event(t + 30 + length, Kind.ATTEMPT_START, v="")
            event(t + 31 + length, Kind.GEN_START, 2, version + 1)
            event(t + 61 + length, Kind.GEN_END, 2, version + 1)
            event(t + 61 + length, Kind.ATTEMPT_END, v=version + 1, detail="truncated")
        else:
            event(t + 0.6 + length, Kind.ATTEMPT_END, detail=("completed", "failed")[i % 25 == 0])
    for step in range(8 if SMALL else 40):
        ts = hour + 120.0 * step
        store.append(module.MetricsRecord(ts, "rollout/step", step, {"rollout/raw_reward": 0.2 + 0.01 * step + 0.02 * r.random(), "rollout/zero_std/count_0": 3, "rollout/response_len/mean": 55.0,
                                                                       "perf/rollout_time": 80.0, "perf/train_wait_time": 80.0, "perf/train_time": 33.0 + step % 3,
                                                                       "perf/update_weights_time": 3.0, "perf/step_time": 113.0 + step % 3, "rollout/text": "x"}))  # fmt: skip
        store.append(module.MetricsRecord(ts + 100, "train/step", 2 * step, {"train/grad_norm": 0.3, "train/ppo_kl": 0.001, "train/pg_clipfrac": 0.0, "train/train_rollout_logprob_abs_diff": 0.01}))
        store.append(module.MetricsRecord(ts + 110, "train/step", 2 * step + 1, {"train/grad_norm": 0.3, "train/ppo_kl": 0.002, "train/pg_clipfrac": 0.01}))
        for name, t0, t1 in (("train", 80, 110), ("update_weights", 110, 113), ("train_wait", 0, 80)):
            store.append(module.PhaseEvent(name, ts + t0, ts + t1, "node", [0, 1, 2, 3], 0, "train"))
        store.append(module.GpuSample(ts, "node", 0, 90, 70000, 600))
        store.append(module.EngineSample(ts, "a:1", "sglang:num_running_reqs", {"model": "m"}, 12.0))
        store.append(module.DataBufferSample(ts, step % 3))
    store.flush()


def dumps():
    """bfloat16 log-probabilities, partial rollouts, rewards in dictionaries, a removed sample."""
    for trainer in "slime", "miles":
        folder = TO / (trainer if trainer == "slime" else "miles_dump")
        made = []
        for number in (3, 4):
            step = Step(800 + number, 4, 4, 1, longest=12)
            samples = tokens.rollout(trainer, step)
            for i, s in enumerate(samples):
                s.reward = {"acc": step.rewards[i], "format": 1.0}
                s.weight_versions = [str(number - 1)] * 2 + [str(number)]
                s.metadata = {"dataset": "math", "spans": (1, 2)}
                s.remove_sample = i == 5
                if s.remove_sample:
                    s.loss_mask = [0] * s.response_length
                    step.mask[i] = [0] * len(step.mask[i])
            step.dropped = {5}
            data = lambda picked: narrow(tokens.training(step, samples, picked))
            if trainer == "slime":
                write = tokens.definitions(tokens.tree("slime", "slime/observability/train_data_utils.py"), "_build_dump_payload", "_is_per_sample")
                space = tokens.compiled(write, {"logger": tokens.Quiet, "_LAYOUT_FIELDS": ("micro_batch_indices", "num_microbatches", "global_batch_sizes"), "_WHOLE_BATCH_FIELDS": ("raw_reward",)}, "x")
                save = tokens.compiled(tokens.definitions(tokens.tree("slime", "slime/observability/rollout_data_utils.py"), "save_debug_rollout_data"), {"Path": pathlib.Path, "logger": tokens.Quiet}, "x")
                save["save_debug_rollout_data"](f"{folder}/rollout_data/{{rollout_id}}.pt", samples, rollout_id=number, evaluation=False)
                save["save_debug_rollout_data"](f"{folder}/rollout_data/{{rollout_id}}.pt", {"aime": {"samples": samples[:2]}}, rollout_id=number, evaluation=True)
                shards = [{"rank": q, "data_parallel_rank": q, "rollout_data": data(range(q, 16, 4))} for q in range(4)]
                (folder / "train_data").mkdir(exist_ok=True)
                torch.save(space["_build_dump_payload"](shards, rollout_id=number, writer_rank=0), folder / f"train_data/{number}.pt")
            else:
                args = types.SimpleNamespace(save_debug_train_data=f"{folder}/train_data/{{rollout_id}}_{{rank}}.pt", save_debug_rollout_data=f"{folder}/rollout_data/{{rollout_id}}.pt",
                                             save_debug_trajectory_data=None, qkv_format="bshd")  # fmt: skip
                nothing = lambda *_: None
                keep = tokens.compiled(tokens.definitions(tokens.tree("miles", "miles/ray/rollout/debug_data.py"), "save_debug_rollout_data"),
                                       {"Path": pathlib.Path, "logger": tokens.Quiet, "save_debug_trajectory_data": nothing, "save_dashboard_columns": nothing}, "x")  # fmt: skip
                save = tokens.compiled(tokens.definitions(tokens.tree("miles", "miles/utils/train_dump_utils.py"), "save_debug_train_data_for_rank"), {"Path": pathlib.Path, "logger": tokens.Quiet}, "x")
                keep["save_debug_rollout_data"](args, samples, number, False)
                for q in range(4):
                    save["save_debug_train_data_for_rank"](args, rollout_id=number, rollout_data=data(range(4 * q, 4 * q + 4)), rank=q)
            made.append({"step": number, "n": 15, "rewards": [r for i, r in enumerate(step.rewards) if i != 5]})
        (TO / f"expected-{folder.name}.json").write_text(json.dumps(made) + "\n")


def narrow(data):
    for name in "log_probs", "rollout_log_probs":
        data[name] = [t.bfloat16() for t in data[name]]
    return data


if __name__ == "__main__":
    parts = {"nemo": nemo, "prime": prime, "areal": areal, "dumps": dumps, "monitor": monitor, "verl": verl, "miles": miles_dashboard, "trl": trl, "sessions": sessions}
    TO.mkdir(parents=True, exist_ok=True)
    if SMALL:
        del parts["dumps"], parts["sessions"]
    for name, part in parts.items():
        if os.environ.get("ONLY", name) == name:
            part()
