"""The exact laboratory, the clock of a cluster, delay distributions and statistics."""

from __future__ import annotations

import ctypes as c
import json
import numbers
import os
import pathlib
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

import numpy as np

from ._library import MOMENTS, Curve, Error, Groups, InputError, Interval, Moments, Owned, Table, Trained, check, flow, library, text_of, whole
from ._policy import Algorithm, _algorithm
from ._read import _command

_METHODS = {0: "exact", 1: "monte_carlo", 2: "population"}


def bias(
    algorithm: "Union[str, Mapping[str, Any], Algorithm]",
    learner: Any,
    sampler: Any,
    reward: Any,
    *,
    group_size: int = 8,
    prompt_weight: Any = None,
    budget: int = 1_000_000,
    samples: int = 100_000,
    seed: int = 1,
) -> "dict[str, Any]":
    """Bias, variance and MSE of the algorithm's gradient estimate from one group, on given probabilities.

    learner, sampler: [K] or [prompts, K] probabilities of the responses; reward likewise. The policy is a softmax of one
    logit a response. Up to `budget` multisets a prompt are enumerated, beyond it `samples` groups are drawn. group_size 0:
    an infinite group. Returns numbers by name, with `method`, and the vectors `expected` and `truth`; raises InputError
    where the algorithm has no such estimate.
    """
    p, q, r = (np.ascontiguousarray(np.atleast_2d(a), dtype=np.float64) for a in (learner, sampler, reward))
    if p.shape != q.shape or p.shape != r.shape or p.ndim != 2:
        raise InputError(f"learner, sampler and reward have shapes {p.shape}, {q.shape}, {r.shape}, which should be equal")
    weight = None if prompt_weight is None else np.ascontiguousarray(prompt_weight, dtype=np.float64)
    if weight is not None and weight.shape != (p.shape[0],):
        raise InputError(f"prompt_weight has shape {weight.shape}, and there are {p.shape[0]} prompts")
    table = Table(c.sizeof(Table), p.shape[0], p.shape[1], p.ctypes.data, q.ctypes.data, r.ctypes.data,
                  None if weight is None else weight.ctypes.data)
    expected, truth = np.zeros_like(p), np.zeros_like(p)
    out = Moments(size=c.sizeof(Moments), expected=expected.ctypes.data, truth=truth.ctypes.data)
    error = Error()
    groups = Groups(c.sizeof(Groups), whole(group_size, "group_size"), whole(budget, "budget"), whole(samples, "samples"),
                    whole(seed, "seed"))
    row = _algorithm(algorithm)
    status = library.gepolab_laboratory(row._owned.pointer, c.byref(table), c.byref(groups), c.byref(out), c.byref(error))
    check(status, error)
    if not out.applicable:
        raise InputError(out.why.decode())
    answer: "dict[str, Any]" = {name: getattr(out, name) for name in MOMENTS}
    answer.update(method=_METHODS[out.method], expected=expected, truth=truth)
    return answer


@dataclass
class Simulation:
    """A cluster's clock: the summary, and every trained batch as a row of a structured array."""

    summary: "dict[str, Any]"
    batches: np.ndarray

    @property
    def staleness(self) -> np.ndarray:
        """Of every trained batch, in learner updates."""
        return np.asarray(self.batches["version"] - self.batches["drawn_at"])


def sim(
    recipe: "Union[str, pathlib.Path, dict[str, Any]]", seed: int = 1, presets: "Union[str, os.PathLike[str], None]" = None
) -> Simulation:
    """Runs the clock of a recipe: YAML text, the path of a file, a dict with `cluster`, `train` and `steps`, or the name of one
    of the program's own ("quickstart"), which needs the gepolab command.

    Files that a recipe names (`include`, measured delays) are looked for beside it; those of a text or dict, which cannot include
    others, in the current folder. ``presets`` names a file of presets of clusters of your own (``presets: {mine: {base: areal,
    samplers: 8}}``), by default ``$GEPOLAB_PRESETS``.
    """
    given, path = recipe, None
    if isinstance(given, dict):
        given = flow(given)
    elif isinstance(given, pathlib.Path) or (isinstance(given, str) and "\n" not in given and given.endswith((".yaml", ".yml"))):
        path = text_of(os.fspath(given), "recipe")
    elif isinstance(given, str) and re.fullmatch(r"\w+", given):
        asked = subprocess.run([_command(), "recipes", given], capture_output=True, text=True)
        if asked.returncode != 0:
            raise InputError(asked.stderr.strip().removeprefix("gepolab: "))
        given = asked.stdout
    elif not isinstance(given, str):
        raise InputError(f"recipe is a {type(given).__name__}; YAML text, the path of a file, a dict or a recipe's name is expected")
    text = None if path is not None else text_of(str(given), "recipe")
    file = presets if presets is not None else os.environ.get("GEPOLAB_PRESETS") or None
    own = None if file is None else text_of(os.fspath(file), "presets")
    owned = Owned("gepolab_simulate_own", "gepolab_simulation_free", text, path, own, whole(seed, "seed"))
    n = library.gepolab_simulation_batches(owned.pointer)
    batches = (Trained * n)()
    library.gepolab_simulation_read(owned.pointer, 0, n, batches)
    summary = json.loads(library.gepolab_simulation_json(owned.pointer))
    return Simulation(summary, np.ctypeslib.as_array(batches).copy())


class Delay:
    """A delay distribution: seconds, a time with its unit ("30m"), or a map as a recipe has it ("{distribution: gamma, mean: 90, sd: 30}", or a dict)."""

    def __init__(self, distribution: "Union[float, str, dict[str, Any]]") -> None:
        text = flow(distribution) if isinstance(distribution, dict) else str(distribution)
        self._text = text
        self._owned = Owned("gepolab_delay_new", "gepolab_delay_free", text_of(text, "delay"))

    def __repr__(self) -> str:
        return f"Delay({self._text!r})"

    def quantile(self, p: float) -> float:
        """The p-quantile in seconds, for p between 0 and 1."""
        out, error = c.c_double(), Error()
        if not isinstance(p, numbers.Real):
            raise InputError(f"p is {p!r}, and a number between 0 and 1 is expected")
        check(library.gepolab_delay_quantile(self._owned.pointer, float(p), c.byref(out), c.byref(error)), error)
        return out.value

    def draw(self, n: int, seed: int = 1, first: int = 0) -> np.ndarray:
        """Draws number first to first + n - 1: the same seed and number give the same draw."""
        out, error = np.empty(max(whole(n, "n"), 0)), Error()
        start = whole(first, "first")
        check(library.gepolab_delay_draw(self._owned.pointer, whole(seed, "seed"), start, n, out.ctypes.data, c.byref(error)), error)
        return out


def _values(values: Any) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64).ravel()


def iqm(values: Any, seed: int = 1) -> "tuple[float, float, float]":
    """Interquartile mean with its 95 % bootstrap interval: value, low, high. NaN values are left out; all three are NaN where none is left."""
    x, out, error = _values(values), Interval(), Error()
    check(library.gepolab_iqm(x.ctypes.data, len(x), whole(seed, "seed"), c.byref(out), c.byref(error)), error)
    return out.value, out.low, out.high


def spearman(x: Any, y: Any) -> "tuple[float, float, float]":
    """Spearman's rank correlation with its 95 % interval: value, low, high."""
    a, b, out, error = _values(x), _values(y), Interval(), Error()
    if len(a) != len(b):
        raise InputError(f"x has {len(a)} values and y {len(b)}")
    check(library.gepolab_spearman(a.ctypes.data, b.ctypes.data, len(a), c.byref(out), c.byref(error)), error)
    return out.value, out.low, out.high


def survival(time: Any, observed: Optional[Any] = None) -> "dict[str, np.ndarray]":
    """Kaplan-Meier estimate: runs that fell at `time` (observed true) or were watched until then. Arrays by name."""
    t = _values(time)
    seen = np.ones(len(t), np.uint8) if observed is None else np.ascontiguousarray(observed, dtype=bool).astype(np.uint8)
    if seen.shape != t.shape:
        raise InputError(f"time has {len(t)} values and observed shape {seen.shape}")
    at, share, deviation = np.empty(len(t)), np.empty(len(t)), np.empty(len(t))
    curve, error = Curve(c.sizeof(Curve), at.ctypes.data, share.ctypes.data, deviation.ctypes.data), Error()
    check(library.gepolab_survival(t.ctypes.data, seen.ctypes.data, len(t), c.byref(curve), c.byref(error)), error)
    return {"time": at[: curve.n], "survival": share[: curve.n], "error": deviation[: curve.n]}
