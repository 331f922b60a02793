"""Writes the batches of a training run as `gepolab whatif` reads them: JSON Lines, one line for each loss that was computed.

The schema is in experiments/DATA.md, "The log of a run".
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from typing import Any, Optional, Sequence, Union

import numpy as np

from ._library import InputError


def _array(value: Any) -> "Optional[np.ndarray]":
    """Any buffer as float64; tensors of a device and of half precision too."""
    if value is None:
        return None
    if hasattr(value, "detach"):
        value = value.detach().to("cpu")
        value = value.double() if value.is_floating_point() else value
        value = value.numpy()
    return np.asarray(value)


MOST_LOG, LEAST_ENTROPY = 1e-3, -1.0  # POLICY_MOST_LOG and POLICY_LEAST_ENTROPY of core/policy/policy.h

# Of arrays with a number for each token: the least and largest number, and what it is.
_RANGES = {
    "logp": (-math.inf, MOST_LOG, "log-probability"),
    "logq": (-math.inf, MOST_LOG, "log-probability"),
    "logprox": (-math.inf, MOST_LOG, "log-probability"),
    "logref": (-math.inf, MOST_LOG, "log-probability"),
    "version_gap": (0, math.inf, "number of versions"),
    "entropy": (LEAST_ENTROPY, math.inf, "entropy"),
}


def _check_tokens(name: str, value: "np.ndarray", kept: "np.ndarray") -> None:
    """Refuses kept numbers that are not finite or beyond what the array can have, naming the first."""
    least, most, meaning = _RANGES[name]
    wrong = np.argwhere(kept & ~(np.isfinite(value) & (value >= least) & (value <= most)))
    if len(wrong):
        i, column = wrong[0]
        raise InputError(f"{name} of response {i}, token {kept[i, :column].sum()}, is {value[i, column]:g}, which is no {meaning}")


def _step(value: Any) -> "Union[int, float]":
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"step is {value!r}, and a number of at least 0 is expected")
    return int(number) if number.is_integer() else number


def _texts(values: "np.ndarray", kept: "np.ndarray") -> str:
    """The kept numbers as a list, in the nine digits that give a float32 back."""
    return "[" + ",".join(f"{x:.9g}" for x in values[kept]) + "]"


def _starts(n: int, group_size: Optional[int], group_start: "Optional[Sequence[int]]") -> "list[int]":
    """Where the groups of n responses begin, and the end."""
    if (group_size is None) == (group_start is None):
        raise InputError("give either group_size or group_start")
    if group_size is not None:
        if group_size < 1 or n % group_size:
            raise InputError(f"{n} responses are no multiple of group_size {group_size}")
        return list(range(0, n + 1, group_size))
    starts = [int(start) for start in group_start or ()]
    if len(starts) < 2 or starts[0] != 0 or starts[-1] != n or any(a >= b for a, b in zip(starts, starts[1:])):
        raise InputError(f"group_start {starts} does not rise from 0 to the {n} responses")
    return starts


def _last_line(path: str) -> "tuple[bytes, int]":
    """The last line that is whole, and where it ends; b"" and 0 for none."""
    with open(path, "rb") as file:
        at, tail = os.path.getsize(path), b""
        while at > 0 and tail.count(b"\n") < 2:
            start = max(0, at - (1 << 20))
            file.seek(start)
            tail, at = file.read(at - start) + tail, start
    end = tail.rfind(b"\n") + 1
    return tail[tail.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end], at + end


class GroupLog:
    """A log of groups of responses: GroupLog("run.jsonl").write(rewards, logp, logq, group_size=8, mask=mask, step=3).

    Lines are appended, each with one write and whole, so that a run that was stopped and goes on (with a later step) has one log. A
    run that begins where the file has another one's lines gets a file of its own, run-2.jsonl, with a warning; `path` is where it
    writes. Log-probabilities
    are (responses, tokens) with a mask, groups lie together (group_size responses each, or group_start as in policy()). A group with a response without any token is left out, as there is
    nothing to evaluate of it; `left_out` counts them.
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = os.fspath(path)
        self.left_out = 0
        self._began = time.monotonic()
        self._is_new = True
        with open(self.path, "ab"):  # a path that cannot be written to is told before the run
            pass

    def write(
        self, rewards: Any, logp: Any, logq: Any, *, group_size: Optional[int] = None, group_start: "Optional[Sequence[int]]" = None,
        mask: Any = None, logprox: Any = None, logref: Any = None, entropy: Any = None, version_gap: Any = None,
        step: Optional[float] = None, max_length: int = 0,
    ) -> int:  # fmt: skip
        """Appends a line; the number of groups in it, 0 where there was none to write."""
        reward, p = _array(rewards), _array(logp)
        if reward is None or p is None or p.ndim != 2 or reward.shape != p.shape[:1]:
            raise InputError("rewards (n,) and logp (n, tokens) are needed")
        starts = _starts(len(reward), group_size, group_start)
        kept = np.ones(p.shape, bool) if mask is None else np.asarray(_array(mask)).astype(bool)
        given = {"logp": p, "logq": _array(logq), "logprox": _array(logprox), "logref": _array(logref)}
        given.update({"version_gap": _array(version_gap), "entropy": _array(entropy)})
        fields = {name: value for name, value in given.items() if value is not None}
        for name, value in {**fields, "mask": kept}.items():
            if value.shape != p.shape:
                raise InputError(f"{name} has the shape {value.shape}, and logp {p.shape}")
        for name, value in fields.items():
            _check_tokens(name, value, kept)
            if _RANGES[name][1] == MOST_LOG:
                fields[name] = np.minimum(value, 0.0)  # rounding of a probability of 1
        if not np.isfinite(reward).all():
            raise InputError("rewards has a number that is not finite")
        step = None if step is None else _step(step)
        groups = []
        for first, end in zip(starts, starts[1:]):
            rows = range(first, end)
            if not all(kept[i].any() for i in rows):
                self.left_out += 1
                continue
            lists = [f'"{name}":[' + ",".join(_texts(value[i], kept[i]) for i in rows) + "]" for name, value in fields.items()]
            groups.append('{"rewards":' + json.dumps([float(reward[i]) for i in rows]) + "," + ",".join(lists) + "}")
        if not groups:
            return 0
        head = {"time_s": round(time.monotonic() - self._began, 6), **({} if step is None else {"step": step})}
        if max_length > 0:
            head["max_length"] = int(max_length)
        if self._is_new:
            self._is_new = False
            self._leave_other_runs(step)
        line = json.dumps(head)[:-1] + ',"groups":[' + ",".join(groups) + "]}\n"
        with open(self.path, "ab") as to:
            to.write(line.encode())
        return len(groups)

    def _leave_other_runs(self, step: Optional[float]) -> None:
        """Goes on behind earlier steps of this run, without a line that was cut off; else takes a free name."""
        size = os.path.getsize(self.path)
        if size == 0:
            return
        last, end = _last_line(self.path)
        before = json.loads(last).get("step") if last.strip() else None
        if step is not None and before is not None and step > before:
            os.truncate(self.path, end)
            return
        taken, number = self.path, 2
        stem, ending = os.path.splitext(self.path)
        while os.path.exists(self.path) and os.path.getsize(self.path) > 0:
            self.path = f"{stem}-{number}{ending}"
            number += 1
        warnings.warn(f"{taken} has the log of another run; this one is logged in {self.path}", RuntimeWarning, stacklevel=3)
