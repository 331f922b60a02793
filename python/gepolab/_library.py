"""libgepolab by ctypes: structures and functions of library/gepolab.h, and errors as exceptions."""

from __future__ import annotations

import ctypes as c
import importlib
import json
import operator
import os
import pathlib
import re
from typing import Any, Mapping

INTERFACE = 6  # GEPOLAB_INTERFACE of the header that the structures below are written after


def needed(module: str, extra: str) -> Any:
    """The module, or an error that says which of the package's extras brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        remedy = f"pip install './python[{extra}]' in a clone, or pip install {error.name}"
        raise ModuleNotFoundError(f"this needs {error.name}: {remedy}", name=error.name) from error


class GepolabError(Exception):
    """What libgepolab refused or could not do; the text says what, where and the remedy."""


class InputError(GepolabError, ValueError):
    """What the caller gave is wrong."""


class NumericError(GepolabError, ArithmeticError):
    """A computation left the domain in which it is defined."""


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 1024)]


class Tokens(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int), ("response_stride", c.c_int64), ("token_stride", c.c_int64)]


class Numbers(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int), ("stride", c.c_int64)]


class Batch(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("n_responses", c.c_int64),
        ("n_groups", c.c_int64),
        ("group_size", c.c_int64),
        ("group_start", c.c_void_p),
        ("columns", c.c_int64),
        ("token_start", c.c_void_p),
        ("length", c.c_void_p),
        ("mask", c.c_void_p),
        ("mask_response_stride", c.c_int64),
        ("mask_token_stride", c.c_int64),
        ("reward", Numbers),
        ("logp", Tokens),
        ("logq", Tokens),
        ("logprox", Tokens),
        ("logref", Tokens),
        ("version_gap", Tokens),
        ("log_denominator", Numbers),
        ("max_length", c.c_int64),
        ("advantage", Numbers),
        ("entropy", Tokens),
        ("entropy_prox", Tokens),
    ]


class Result(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("loss", c.c_double),
        ("coefficient", Tokens),
        ("weight", Tokens),
        ("advantage", Numbers),
        ("metric", c.c_void_p),
    ]


ALGORITHM_INFO = ("name", "source", "trl", "verl", "areal", "notes")


SETTING = ("algorithm", "trainer", "version", "setting", "differs", "place", "basis")


class Setting(c.Structure):
    _fields_ = [(name, c.c_char_p) for name in SETTING]


class AlgorithmInfo(c.Structure):
    _fields_ = [(name, c.c_char_p) for name in ALGORITHM_INFO]


class Table(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("n_prompts", c.c_int64),
        ("n_responses", c.c_int64),
        ("learner", c.c_void_p),
        ("sampler", c.c_void_p),
        ("reward", c.c_void_p),
        ("prompt_weight", c.c_void_p),
    ]


MOMENTS = (
    "groups value kl kl_qp bias cosine scaled_bias variance mse scaled_mse snr iw_mean iw_variance aw_variance ess "
    "bias_error cosine_error variance_error mse_error"
).split()


class Groups(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("group_size", c.c_int64),
        ("budget", c.c_int64),
        ("samples", c.c_int64),
        ("seed", c.c_uint64),
    ]


class Curve(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("at", c.c_void_p),
        ("survival", c.c_void_p),
        ("error", c.c_void_p),
        ("n", c.c_int64),
    ]


class Moments(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("method", c.c_int32),
        ("applicable", c.c_int32),
        ("why", c.c_char * 200),
        *[(name, c.c_double) for name in MOMENTS],
        ("expected", c.c_void_p),
        ("truth", c.c_void_p),
    ]


class Trained(c.Structure):
    _fields_ = [
        *[(name, c.c_int64) for name in ("step", "version", "drawn_at", "sampler")],
        *[(name, c.c_double) for name in ("start_s", "generated_s", "arrived_s", "trained_s", "bytes", "tokens")],
    ]


class Interval(c.Structure):
    _fields_ = [("value", c.c_double), ("low", c.c_double), ("high", c.c_double)]


FUNCTIONS = {
    "gepolab_version": (c.c_char_p, []),
    "gepolab_interface": (c.c_int, []),
    "gepolab_algorithm_own": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.c_char_p, c.POINTER(Error)]),
    "gepolab_algorithm_free": (None, [c.c_void_p]),
    "gepolab_algorithm_name": (c.c_char_p, [c.c_void_p]),
    "gepolab_algorithm_field": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.POINTER(Error)]),
    "gepolab_settings_count": (c.c_size_t, []),
    "gepolab_settings_at": (c.c_int, [c.c_size_t, c.POINTER(Setting), c.POINTER(Error)]),
    "gepolab_algorithms_count": (c.c_size_t, []),
    "gepolab_algorithms_at": (c.c_int, [c.c_size_t, c.POINTER(AlgorithmInfo), c.POINTER(Error)]),
    "gepolab_workspace_new": (c.c_int, [c.POINTER(c.c_void_p), c.POINTER(Error)]),
    "gepolab_workspace_free": (None, [c.c_void_p]),
    "gepolab_workspace_threads": (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(Error)]),
    "gepolab_policy": (c.c_int, [c.c_void_p, c.POINTER(Batch), c.POINTER(Result), c.c_void_p, c.POINTER(Error)]),
    "gepolab_metrics_count": (c.c_size_t, []),
    "gepolab_metric_name": (c.c_char_p, [c.c_size_t]),
    "gepolab_metric_meaning": (c.c_char_p, [c.c_size_t]),
    "gepolab_laboratory": (
        c.c_int,
        [c.c_void_p, c.POINTER(Table), c.POINTER(Groups), c.POINTER(Moments), c.POINTER(Error)],
    ),
    "gepolab_simulate_own": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.c_char_p, c.c_char_p, c.c_uint64, c.POINTER(Error)]),
    "gepolab_simulation_free": (None, [c.c_void_p]),
    "gepolab_simulation_json": (c.c_char_p, [c.c_void_p]),
    "gepolab_simulation_batches": (c.c_int64, [c.c_void_p]),
    "gepolab_simulation_read": (c.c_int64, [c.c_void_p, c.c_int64, c.c_int64, c.POINTER(Trained)]),
    "gepolab_delay_new": (c.c_int, [c.POINTER(c.c_void_p), c.c_char_p, c.POINTER(Error)]),
    "gepolab_delay_free": (None, [c.c_void_p]),
    "gepolab_delay_quantile": (c.c_int, [c.c_void_p, c.c_double, c.POINTER(c.c_double), c.POINTER(Error)]),
    "gepolab_delay_draw": (
        c.c_int,
        [c.c_void_p, c.c_uint64, c.c_int64, c.c_int64, c.c_void_p, c.POINTER(Error)],
    ),
    "gepolab_iqm": (c.c_int, [c.c_void_p, c.c_int64, c.c_uint64, c.POINTER(Interval), c.POINTER(Error)]),
    "gepolab_spearman": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(Interval), c.POINTER(Error)]),
    "gepolab_survival": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(Curve), c.POINTER(Error)]),
}


def _load() -> c.CDLL:
    path = os.environ.get("GEPOLAB_LIBRARY") or str(pathlib.Path(__file__).with_name("libgepolab.so.0"))
    try:
        library = c.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"libgepolab could not be loaded from {path}: {error}. Install the package from a clone (pip install ./python), "
            "or set GEPOLAB_LIBRARY to a libgepolab.so.0; its own libraries (GSL, OpenBLAS, libyaml, cJSON, utf8proc) come "
            "from the system's packages."
        ) from error
    try:
        found = int(library.gepolab_interface())
    except AttributeError as error:
        raise ImportError(f"{path} is no libgepolab ({error})") from error
    if found // 1000 != INTERFACE // 1000 or found < INTERFACE:
        raise ImportError(f"{path} has interface {found}, and this package needs {INTERFACE}: install both from one clone")
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"{path} is older than this package ({error}): install both from one clone") from error
        function.restype = result
        function.argtypes = arguments
    return library


library = _load()

_EXCEPTIONS = {1: InputError, 3: MemoryError, 4: NumericError}


def check(status: int, error: Error) -> None:
    """Raises what a status other than 0 stands for."""
    if status != 0:
        raise _EXCEPTIONS.get(status, GepolabError)(error.text.decode("utf-8", "replace"))


def text_of(value: str, name: str) -> bytes:
    """A text as the library takes it, which ends at the first zero byte."""
    if "\0" in value:
        raise InputError(f"{name} has a zero byte at character {value.index(chr(0))}: leave it out")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} is no text in UTF-8 ({error.reason} at character {error.start})") from error


def whole(value: Any, name: str) -> int:
    """A whole number of any type that stands for one."""
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}, and a whole number is expected") from None


def flow(value: Any) -> str:
    """A value as a recipe has it on one line; "30m" stays a time, and numbers may be NumPy's."""
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return "[" + ", ".join(flow(part) for part in value) + "]"
    if isinstance(value, str) and re.fullmatch(r"[0-9][0-9._]*([eE][+-]?[0-9]+)?\s*[A-Za-z][A-Za-z/]*", value):
        return value
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        raise InputError(f"{value!r} is neither a number, a text, a list nor a dict") from None


class Owned:
    """An opaque object of the library, released with the Python object that holds it."""

    def __init__(self, new: str, free: str, *arguments: object) -> None:
        self._free = getattr(library, free)
        self.pointer = c.c_void_p()
        error = Error()
        check(getattr(library, new)(c.byref(self.pointer), *arguments, c.byref(error)), error)

    def leave(self) -> None:
        """Never releases the object: in a process that was forked, threads that belonged to it do not exist."""
        self.pointer = c.c_void_p()

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._free(self.pointer)
            self.pointer = c.c_void_p()
