"""Writes the small logs of tests/golden/trainer_logs with the writing code of the trainers themselves.

    python3 tests/golden/trainer_logs.py --verl DIR --prime-rl DIR --areal DIR --miles DIR

Needs numpy, orjson, polars and transformers. Each DIR is a copy of the trainer's source; of the four only the
modules that write the logs are loaded, and what they import beside the standard library, numpy, orjson and polars is
replaced by empty modules:

    verl 0.9.1              verl/utils/tracking.py              FileLogger
    transformers 5.24.0     trainer_callback.py                 TrainerState.save_to_json
    prime-rl 0.8.0, 559b447 src/prime_rl/monitors/file.py       FileMonitor.log_metrics, utils/utils.py sanitize
    AReaL 2.0.0, cbff54d    areal/utils/perf_tracer.py          SessionTracer
    miles 0.1.0, 31f1ca9    miles/dashboard/store.py            MetricStore.flush

All numbers are made up. mimo.json has the shape in which MiMo's dashboard answered api/series in September 2026; no
program that writes it is public.
"""
import argparse
import asyncio
import importlib.util
import json
import math
import os
import pathlib
import shutil
import sys
import types

HERE = pathlib.Path(__file__).with_name("trainer_logs")
START = 1_790_000_000.0
CLOCK = [START]


def tick(seconds):
    CLOCK[0] += seconds
    return CLOCK[0]


class Empty(types.ModuleType):
    """A module in which every name is a function that does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *a, **k: None, "__getattr__": lambda self, n: lambda *a, **k: None})


def load(name, path, *empty):
    for module in empty:
        parts = module.split(".")
        for i in range(len(parts)):
            sys.modules.setdefault(".".join(parts[: i + 1]), Empty(".".join(parts[: i + 1])))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def series(step):
    """A run that learns until step 8 and falls then."""
    reward = 0.1 + 0.1 * step if step <= 8 else 0.9 - 0.2 * (step - 8)
    return reward, 0.4 + 0.05 * step, 1e-3 * 1.5**step


def verl(source):
    module = load("verl_tracking", source / "verl/utils/tracking.py")
    os.environ["VERL_FILE_LOGGER_PATH"] = str(HERE / "verl.jsonl")
    logger = module.FileLogger("project", "experiment")
    import numpy as np

    for step in range(1, 13):
        reward, grad_norm, kl = series(step)
        logger.log(
            {
                "critic/score/mean": np.float32(reward) if step % 2 else reward,
                "critic/rewards/mean": reward - 0.01,
                "actor/grad_norm": float("nan") if step == 11 else grad_norm,
                "actor/pg_clipfrac": 0.01 * step,
                "actor/lr": 1e-6,
                "rollout_corr/k3_kl": kl,
                "rollout_corr/kl": -kl,
                "rollout_corr/rollout_is_eff_sample_size": 1 / (1 + kl),
                "response_length/mean": 200.0 + step,
                "response_length/max": 512,
                "response_length/clip_ratio": 0.25,
                "training/off_policy/trajectory_staleness/mean": np.float64(0.5 * step),
                "training/off_policy/trajectory_staleness_worst/mean": 0.5 * step + 1,
                "training/off_policy/trajectory_staleness_worst/max": step + 1,
                "timing_s/step": 60.0 + step,
                **({"val-core/aime24/acc/mean@8": 0.05 * step} if step % 4 == 0 else {}),
            },
            step,
        )
    logger.finish()


def trainer_state():
    from transformers.trainer_callback import TrainerState

    for name, is_async in ("trainer_state.json", False), ("async/checkpoint-12/trainer_state.json", True):
        state = TrainerState(max_steps=12, num_train_epochs=1, is_world_process_zero=True)
        for step in range(1, 13):
            reward, grad_norm, kl = series(step)
            record = {"loss": 0.01 * step, "grad_norm": grad_norm, "learning_rate": 1e-6, "reward": reward, "kl": kl}
            record |= {"completions/mean_length": 100.0 + step, "clip_ratio/region_mean": 0.02, "entropy": 0.3}
            if is_async:
                record |= {"ratio": 1 + kl, "sample/staleness_mean": 0.25 * step, "sample/staleness_max": float(step)}
                record["sample/time_in_queue_s"] = None if step == 5 else 2.0
            if step == 11:
                record["loss"] = float("nan")
            state.log_history.append({"epoch": step / 12, **record, "step": step})
            if step % 4 == 0:
                state.log_history.append({"epoch": step / 12, "eval_reward": reward / 2, "eval_loss": 0.1, "step": step})
        (HERE / name).parent.mkdir(parents=True, exist_ok=True)
        state.save_to_json(str(HERE / name))
    # an earlier checkpoint of the asynchronous run: the same log, shorter
    state.log_history = [r for r in state.log_history if r["step"] <= 6]
    (HERE / "async/checkpoint-6").mkdir(exist_ok=True)
    state.save_to_json(str(HERE / "async/checkpoint-6/trainer_state.json"))


def prime_rl(source):
    utils = (source / "src/prime_rl/utils/utils.py").read_text()
    sanitize = types.ModuleType("prime_rl.utils.utils")
    exec("import math\nfrom typing import Any\n" + utils[utils.index("def sanitize") : utils.index("def get_free_port")],
         sanitize.__dict__)
    for name in "prime_rl", "prime_rl.utils", "prime_rl.monitors", "prime_rl.configs":
        sys.modules[name] = Empty(name)
    base = types.ModuleType("prime_rl.monitors.base")
    base.Monitor, base.Kind, base.Subset = object, str, str
    sys.modules |= {"prime_rl.utils.utils": sanitize, "prime_rl.monitors.base": base}
    sys.modules["prime_rl.configs.monitors"] = Empty("prime_rl.configs.monitors")
    module = load("prime_rl_file", source / "src/prime_rl/monitors/file.py")
    folder = HERE / "prime_rl/run-a"
    folder.mkdir(parents=True)

    def monitor():
        m = module.FileMonitor()
        m.config = types.SimpleNamespace(path=pathlib.Path("metrics.jsonl"))
        m.logger = types.SimpleNamespace(info=lambda *a: None, warning=lambda *a: None)
        module.time.time = lambda: tick(0.5)
        asyncio.run(m.init(folder))
        return m

    def steps(m, first, last):
        for step in range(first, last + 1):
            reward, grad_norm, kl = series(step)
            tick(60)
            log = lambda **metrics: asyncio.run(m.log_metrics(metrics, step))
            log(**{"optim/lr": 1e-6, "optim/grad_norm": grad_norm, "step": step})
            log(**{"mismatch_kl/all/mean": kl, "entropy/all/mean": 0.3, "loss/mean": math.inf if step == 9 else 0.1})
            log(**{"off_policy/mean": 0.5 * step, "off_policy/max": float(step), "off_policy/dropped": 0.0,
                   "train/agg/effective/agent/reward/mean": reward, "step": step})
            m.file.flush()

    steps(monitor(), 1, 7)
    steps(monitor(), 6, 12)  # restarted from the checkpoint of step 5


def areal(source):
    environ = types.ModuleType("areal.utils.environ")
    environ.rank_in_env_filter = lambda *a, **k: True
    sys.modules["torch"] = torch = Empty("torch")
    torch.profiler = Empty("torch.profiler")
    for name in "areal", "areal.api", "areal.utils":
        sys.modules[name] = Empty(name)
    logging = Empty("areal.utils.logging")
    logging.getLogger = lambda *a, **k: __import__("logging").getLogger("areal")
    sys.modules |= {"areal.utils.environ": environ, "areal.api.cli_args": Empty("areal.api.cli_args"),
                    "areal.utils.logging": logging}
    sys.modules["areal.utils"].logging = logging
    module = load("areal_perf_tracer", source / "areal/utils/perf_tracer.py")
    module.time = types.SimpleNamespace(**{**vars(__import__("time")), "time": lambda: CLOCK[0]})
    Event = module.SessionTraceEvent
    for rank in 0, 1:
        tracer = module.SessionTracer(types.SimpleNamespace(enabled=True, flush_threshold=4),
                                      output_path=str(HERE / f"areal/sessions-r{rank}.jsonl"), rank=rank, role="actor")
        for i in range(12):
            CLOCK[0] = START + 100 * i + rank
            session = tracer.register_session(i // 4)
            tick(0.5)
            tracer.record_event(session, Event.GENERATE_START)
            tick(8 + 2 * i + rank)
            tracer.record_event(session, Event.GENERATE_END)
            if i % 3 == 0:
                tracer.record_event(session, Event.TOOLCALL_START)
                tick(1.5)
                tracer.record_event(session, Event.TOOLCALL_END)
            tracer.record_event(session, Event.REWARD_START)
            tick(0.25)
            tracer.record_event(session, Event.REWARD_END)
            if i < 10:
                tracer.record_event(session, Event.FINALIZED, status="accepted")
            elif i == 10:
                tracer.record_event(session, Event.FINALIZED, status="rejected", reason="stale_weight")
        tracer.flush(force=True)  # the last session is still pending


def miles(source):
    sys.path.insert(0, str(source))
    for name in "miles", "miles.dashboard":
        sys.modules[name] = types.ModuleType(name)
    module = load("miles.dashboard.store", source / "miles/dashboard/store.py")
    store = module.MetricStore(HERE / "miles/dashboard")
    Kind = module.TrajectoryEventKind
    hour = START - START % 3600 + 3600

    def event(ts, kind, sample, turn=-1, version="", detail=""):
        store.append(module.TrajectoryEvent(ts, kind, sample, sample // 4, turn, version, detail))

    for i in range(20):
        t = hour - 1000 + 100.0 * i  # the tenth attempt begins in one hour and ends in the next
        event(t, Kind.ATTEMPT_START, i)
        event(t, Kind.GEN_START, i)
        if i % 2:  # two turns with a tool between them
            event(t, Kind.GEN_START, i, 1, str(i // 5))
            event(t + 5, Kind.GEN_END, i, 1, str(i // 5))
            event(t + 5, Kind.TOOL_START, i, 2, str(i // 5), "agent gap")
            event(t + 8, Kind.TOOL_END, i, 2, str(i // 5), "agent gap")
            event(t + 8, Kind.GEN_START, i, 2, str(i // 5))
            event(t + 150, Kind.GEN_END, i, 2, str(i // 5 + 1))
        event(t + 150, Kind.ATTEMPT_END, i, -1, str(i // 5 + i % 2), "completed")
    event(hour + 1100, Kind.ATTEMPT_START, 20)  # still going
    for step in range(12):
        reward, grad_norm, kl = series(step + 1)
        ts = hour + 60.0 * step
        store.append(module.MetricsRecord(ts, "rollout/step", step, {"rollout/raw_reward": reward}))
        store.append(module.MetricsRecord(ts + 1, "train/step", step, {
            "train/grad_norm": grad_norm, "train/train_rollout_kl": kl, "train/loss": math.nan if step == 3 else 0.1}))
        store.append(module.PhaseEvent("train", ts, -1.0, "node", [0, 1], 0, "train"))
        store.append(module.PhaseEvent("train", ts, ts + 20 + step, "node", [0, 1], 0, "train"))
        store.append(module.PhaseEvent("update_weights", ts + 40, ts + 41.5, "node", [0, 1], 0, "train"))
        store.append(module.DataBufferSample(ts, step))
    store.append(module.MetricsRecord(hour, None, None, {"setup/seconds": 12.0}))
    store.append(module.TopologySnapshot(hour, [module.EngineInfo("a:1", "regular", 0, [["n", 0]], ["u"])]))
    store.flush()


def mimo():
    steps = [s for s in range(1, 13) if s != 9]  # the step list is the one after the last restart
    lists = {
        "partial/avg_staleness": [0.0 if s in (1, 10) else 0.2 * s for s in steps],
        "partial/0/frac": [1 / (1 + 0.1 * s) for s in steps],
        "dynsam/avg@n": [None if s == 5 else series(s)[0] for s in steps],
        "timing_s/step": [5000.0 + 10 * s for s in steps],
    }
    walls = [START + 6000.0 * i for i in range(len(steps))]
    (HERE / "mimo.json").write_text(json.dumps(
        {"run": "flash", "v": "3-1", "run_start": START - 5000, "steps": steps, "walls": walls, "series": lists}))
    folder = HERE / "mimo_archive"
    folder.mkdir()
    (folder / "axis.json").write_text(json.dumps({"run": "flash", "steps": steps, "walls": walls, "run_start": START}))
    (folder / "series.json").write_text(json.dumps(lists))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in "verl", "prime-rl", "areal", "miles":
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    given = parser.parse_args()
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    trainer_state()
    verl(given.verl)
    prime_rl(given.prime_rl)
    areal(given.areal)
    miles(given.miles)
    mimo()
