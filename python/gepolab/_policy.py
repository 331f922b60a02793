"""Loss, coefficients, weights and diagnostics of a batch, for NumPy and PyTorch."""

from __future__ import annotations

import ctypes as c
import os
import threading
import warnings
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _arrays
from ._library import Batch, Error, InputError, Owned, Result, check, flow, library, text_of, whole

FIELD_SIZE = 40  # GEPOLAB_FIELD_SIZE
Array = Any  # a NumPy array or a PyTorch tensor on the CPU


class Algorithm:
    """A row: a published name ("gepo") or a map as a recipe has it ("{base: gepo, clip: none}", or a dict).

    Keyword arguments change fields: ``Algorithm("gepo", clip="none", eps_high=0.3)``. ``file`` names a file of
    algorithms of your own (``algorithms: {my_gepo: {base: gepo, clip: none}}``), by default ``$GEPOLAB_ALGORITHMS``.
    """

    def __init__(
        self, text: "Union[str, Mapping[str, Any]]" = "grpo", file: "Union[str, os.PathLike[str], None]" = None, **fields: Any
    ) -> None:
        if fields and (not isinstance(text, str) or text.lstrip().startswith("{")):
            raise InputError("give fields either in the map or as keywords, not both")
        if fields:
            text = {"base": text, **fields}
        if not isinstance(text, str):
            text = flow(text)
        self._text = text
        path = file if file is not None else os.environ.get("GEPOLAB_ALGORITHMS") or None
        own = None if path is None else text_of(os.fspath(path), "file")
        self._owned = Owned("gepolab_algorithm_own", "gepolab_algorithm_free", text_of(text, "algorithm"), own)
        #: the name that gepolab's tables and figures show
        self.name: str = library.gepolab_algorithm_name(self._owned.pointer).decode()

    def __repr__(self) -> str:
        return f"Algorithm({self.name!r})"

    def field(self, name: str) -> str:
        """The value of a field ("clip", "eps_low", ...) as a recipe would write it."""
        text, error = c.create_string_buffer(FIELD_SIZE), Error()
        check(library.gepolab_algorithm_field(self._owned.pointer, text_of(name, "field"), text, c.byref(error)), error)
        return text.value.decode()


def algorithms() -> "list[dict[str, str]]":
    """The published rows with their sources and the settings of TRL, verl and AReaL that equal them."""
    from ._library import ALGORITHM_INFO, AlgorithmInfo

    rows = []
    for i in range(library.gepolab_algorithms_count()):
        info, error = AlgorithmInfo(), Error()
        check(library.gepolab_algorithms_at(i, c.byref(info), c.byref(error)), error)
        rows.append({name: getattr(info, name).decode() for name in ALGORITHM_INFO})
    return rows


def settings() -> "list[dict[str, str]]":
    """Which switches of which trainer make a published row, what its code does differently, and where that was read."""
    from ._library import SETTING, Setting

    rows = []
    for i in range(library.gepolab_settings_count()):
        info, error = Setting(), Error()
        check(library.gepolab_settings_at(i, c.byref(info), c.byref(error)), error)
        rows.append({name: getattr(info, name).decode() for name in SETTING})
    return rows


METRICS = [library.gepolab_metric_name(i).decode() for i in range(library.gepolab_metrics_count())]

_cache: "dict[tuple[str, str], Algorithm]" = {}  # by text and file of own algorithms
_local = threading.local()  # a workspace for each thread: one evaluation at a time uses it


LEAST_ESS = 0.3  # POLICY_LEAST_ESS of core/policy/policy.h
_warned: "set[str]" = set()  # algorithms whose effective sample size this process has been warned of


def _warn_of_ess(row: Algorithm, metrics: "dict[str, float]") -> None:
    """Warns once of an algorithm that leaves most of an on-policy group without weight, and names the fix."""
    on_policy = metrics.get("staleness") == 0 or metrics.get("kl_k3", 1) <= 1e-4
    ess = metrics.get("ess", 1)
    if not on_policy or ess >= LEAST_ESS or row.name in _warned:
        return
    _warned.add(row.name)
    if row.field("ratio") == "group_expectation" and row.field("log_prob") == "sum":
        why = "log_prob: sum compares probabilities of whole responses, and one has all of the weight; use gepo_released (log_prob: mean)"
    elif row.field("log_prob") == "sum" and row.field("ratio") in ("sequence", "sequence_token", "self_normalised", "mixture", "group_mean"):
        why = "log_prob: sum compares probabilities of whole responses, and one has all of the weight; set log_prob: mean"
    else:
        why = "compare the sampler's log-probabilities (logq) with the learner's"
    told = f"{row.name}: on-policy, the effective sample size is {ess:.2g} of a group, below {LEAST_ESS}: {why}"
    warnings.warn(told, RuntimeWarning, stacklevel=3)


def _algorithm(algorithm: "Union[str, Mapping[str, Any], Algorithm]") -> Algorithm:
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, Mapping):
        algorithm = flow(algorithm)
    if not isinstance(algorithm, str):
        raise InputError(f"algorithm is {algorithm!r}; a name, a map {{base: NAME, field: value}}, a dict or an Algorithm is expected")
    key = (algorithm, os.environ.get("GEPOLAB_ALGORITHMS", ""))
    if key not in _cache:
        _cache[key] = Algorithm(algorithm)
    return _cache[key]


def _workspace(threads: int) -> Owned:
    if hasattr(_local, "workspace") and _local.process != os.getpid():
        _local.workspace.leave()
        del _local.workspace
    if not hasattr(_local, "workspace"):
        _local.workspace = Owned("gepolab_workspace_new", "gepolab_workspace_free")
        _local.process = os.getpid()
    error = Error()
    check(library.gepolab_workspace_threads(_local.workspace.pointer, threads, c.byref(error)), error)
    workspace: Owned = _local.workspace
    return workspace


@dataclass
class PolicyResult:
    """What one evaluation gives. Arrays are of logp's kind and type, in its layout."""

    loss: float
    coefficient: Array  #: d(-loss)/d logp of every token; 0 where a padded response has none
    weight: Optional[Array]  #: importance ratio before clipping
    advantage: Array  #: of every response
    metrics: "dict[str, float]"  #: diagnostics that the batch can tell (``gepolab list metrics`` explains them); empty if not asked for


def _index(values: Any, name: str, n: int) -> np.ndarray:
    """Sizes or starts as int64; these few are copied where they have another type."""
    array = np.ascontiguousarray(values.detach().cpu().numpy() if _arrays.is_torch(values) else values)
    if array.dtype.kind not in "iu" or array.shape != (n,):
        raise InputError(f"{name} holds {n} whole numbers; this one has shape {array.shape} and type {array.dtype}")
    return array.astype(np.int64, copy=False)


def _say_tokens(batch: Batch, kept: "list[Any]", shape: "tuple[int, ...]", n: int, mask: Any, lengths: Any, starts: Any) -> None:
    """Which tokens the responses have."""
    if len(shape) == 1:
        if starts is None:
            raise InputError("a packed logp (one dimension) needs token_start, the first token of every response and the end")
        kept.append(_index(starts, "token_start", n + 1))
        if kept[-1][-1] > shape[0]:
            raise InputError(f"token_start ends at {kept[-1][-1]}, and logp has {shape[0]} tokens")
        batch.token_start = kept[-1].ctypes.data
        return
    if starts is not None:
        raise InputError("token_start is for a packed logp of one dimension; a padded one takes lengths or mask")
    batch.columns = shape[1]
    if lengths is not None:
        kept.append(_index(lengths, "lengths", n))
        batch.length = kept[-1].ctypes.data
    if mask is not None:
        address, type_name, found, strides = _arrays.facts(mask, "mask", 2)
        if type_name not in ("bool", "uint8", "int8") or found != shape:
            raise InputError(f"mask is {type_name} of shape {found}; bool of shape {shape} is expected")
        batch.mask, batch.mask_response_stride, batch.mask_token_stride = address, *strides


def _say_groups(batch: Batch, kept: "list[Any]", n: int, group_size: "Optional[int]", group_start: Any) -> None:
    if group_start is not None:
        groups = len(group_start) - 1
        kept.append(_index(group_start, "group_start", groups + 1))
        batch.group_start = kept[-1].ctypes.data
    else:
        size = n if group_size is None else whole(group_size, "group_size")
        if size < 1 or n % size:
            raise InputError(f"{n} responses are no whole number of groups of {size}")
        groups = n // size
        batch.group_size = size
    batch.n_groups = groups


def policy(
    rewards: Array,
    logp: Array,
    logq: Array,
    algorithm: "Union[str, Mapping[str, Any], Algorithm]" = "gepo_released",
    *,
    group_size: Optional[int] = None,
    group_start: Optional[Sequence[int]] = None,
    mask: Optional[Array] = None,
    lengths: Optional[Sequence[int]] = None,
    token_start: Optional[Sequence[int]] = None,
    logprox: Optional[Array] = None,
    logref: Optional[Array] = None,
    version_gap: Optional[Array] = None,
    log_denominator: Optional[Array] = None,
    advantages: Optional[Array] = None,
    entropy: Optional[Array] = None,
    entropy_prox: Optional[Array] = None,
    max_length: int = 0,
    weights: bool = True,
    metrics: bool = True,
    threads: int = 1,
) -> PolicyResult:
    """Evaluates an algorithm on a batch, in the caller's own buffers.

    rewards: [N]. logp: log-probabilities under the learner now, padded [N, T] or packed [tokens]; logq: under the sampler
    when it drew them; logprox: under the learner at the batch's first update (decoupled methods); logref: under the
    reference policy (KL terms); version_gap: learner's version minus the token's; entropy: of the learner's policy at each
    token (top_entropy, entropy_ratio_high), entropy_prox: at the batch's first update; advantages: [N], in place of what the algorithm would make of the rewards. float32 or float64 NumPy arrays or
    PyTorch CPU tensors of any stride, never copied; lists, and rewards that are whole numbers or booleans, are converted. Responses of a group are neighbours: `group_size` each (default: one
    group), or `group_start` [groups + 1]. Tokens of a padded batch: `mask` [N, T] of bool, or `lengths` [N], or all; of a
    packed one `token_start` [N + 1]. `weights` and `metrics` say whether these are made; `threads` how many threads work,
    with the same bits for any number.

    Raises InputError (a ValueError) that names array, response and token of what is wrong, and NumericError where a weight
    or coefficient is not finite. Warns (once for an algorithm) where the effective sample size of an on-policy batch is below 0.3. The interpreter's lock is released meanwhile.
    """
    rewards, advantages = _arrays.plain(rewards, "rewards", whole=True), _arrays.plain(advantages, "advantages", whole=True)
    logp, logq, logprox, logref = (_arrays.plain(a, n) for a, n in ((logp, "logp"), (logq, "logq"), (logprox, "logprox"), (logref, "logref")))
    version_gap, entropy = _arrays.plain(version_gap, "version_gap", whole=True), _arrays.plain(entropy, "entropy")
    entropy_prox = _arrays.plain(entropy_prox, "entropy_prox")
    log_denominator, mask = _arrays.plain(log_denominator, "log_denominator"), _arrays.plain(mask, "mask")
    _arrays.check_kind(logp, "logp")
    shape = tuple(logp.shape)
    if len(shape) not in (1, 2):
        raise InputError(f"logp has shape {shape}: [responses, columns] or packed [tokens]")
    n = int(rewards.shape[0]) if hasattr(rewards, "shape") and len(rewards.shape) == 1 else -1
    if n < 1 or (len(shape) == 2 and shape[0] != n):
        raise InputError(f"rewards has shape {getattr(rewards, 'shape', '?')}, and logp has {shape}: one reward a response")
    kept: "list[Any]" = []
    batch = Batch(size=c.sizeof(Batch), n_responses=n, max_length=whole(max_length, "max_length"))
    _say_tokens(batch, kept, shape, n, mask, lengths, token_start)
    _say_groups(batch, kept, n, group_size, group_start)
    batch.reward = _arrays.numbers(rewards, "rewards", n)
    batch.logp = _arrays.tokens(logp, "logp", shape)
    batch.logq = _arrays.tokens(logq, "logq", shape)
    batch.logprox = _arrays.tokens(logprox, "logprox", shape)
    batch.logref = _arrays.tokens(logref, "logref", shape)
    batch.version_gap = _arrays.tokens(version_gap, "version_gap", shape)
    batch.log_denominator = _arrays.numbers(log_denominator, "log_denominator", batch.n_groups)
    batch.advantage = _arrays.numbers(advantages, "advantages", n)
    batch.entropy = _arrays.tokens(entropy, "entropy", shape)
    batch.entropy_prox = _arrays.tokens(entropy_prox, "entropy_prox", shape)

    result = Result(size=c.sizeof(Result))
    coefficient = _arrays.empty_like(logp, shape)
    weight = _arrays.empty_like(logp, shape) if weights else None
    advantage = _arrays.empty_like(logp, (n,))
    metric = np.full(len(METRICS), np.nan)
    result.coefficient = _arrays.tokens(coefficient, "coefficient", shape)
    result.weight = _arrays.tokens(weight, "weight", shape)
    result.advantage = _arrays.numbers(advantage, "advantage", n)
    result.metric = metric.ctypes.data if metrics else None
    error = Error()
    row = _algorithm(algorithm)
    status = library.gepolab_policy(
        row._owned.pointer, c.byref(batch), c.byref(result), _workspace(whole(threads, "threads")).pointer, c.byref(error)
    )
    check(status, error)
    known = {name: float(value) for name, value in zip(METRICS, metric) if value == value}
    _warn_of_ess(row, known)
    return PolicyResult(result.loss, coefficient, weight, advantage, known)
