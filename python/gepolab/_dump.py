"""Dumps of slime and miles (--dump-details DIR) as updates of a log, without PyTorch and without running what a file says.

A .pt file is a zip archive: data.pkl, a pickle of the object in which tensors are references, and a file for each tensor's
numbers. The pickle is read by an unpickler that knows tensors, OrderedDict and plain values, and refuses every other name.

Sources: slime 0.3.1 (624b824) slime/observability/train_data_utils.py and rollout_data_utils.py, miles (31f1ca9)
miles/utils/train_dump_utils.py and miles/ray/rollout/debug_data.py.
"""

from __future__ import annotations

import collections
import io
import json
import os
import pathlib
import pickle
import re
import zipfile
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional

from ._library import InputError, needed

# Bytes of a number in a storage, and how NumPy reads it. bfloat16 is widened.
_STORAGES = {
    "DoubleStorage": (8, "<f8"), "FloatStorage": (4, "<f4"), "HalfStorage": (2, "<f2"), "BFloat16Storage": (2, "bfloat16"),
    "LongStorage": (8, "<i8"), "IntStorage": (4, "<i4"), "ShortStorage": (2, "<i2"), "CharStorage": (1, "<i1"),
    "ByteStorage": (1, "<u1"), "BoolStorage": (1, "?"),
}  # fmt: skip
_MOST_PICKLE = 1 << 30


class _Storage(NamedTuple):
    kind: str
    key: str
    n: int


class _Tensor:
    """Where a tensor's numbers are. They are read when they are asked for: dumps also hold large tensors that nobody needs."""

    def __init__(self, file: "_TorchFile", storage: Any, offset: Any, size: Any, stride: Any) -> None:
        numbers = [offset, *size, *stride]
        if not isinstance(storage, _Storage) or not all(isinstance(n, int) and n >= 0 for n in numbers) or len(size) != len(stride):
            raise InputError(f"{file.path}: a tensor whose storage, size or stride is none")
        last = offset + sum((n - 1) * step for n, step in zip(size, stride))
        if 0 not in size and last >= storage.n:
            raise InputError(f"{file.path}: a tensor of size {tuple(size)} reaches beyond the {storage.n} numbers of its storage {storage.key}")
        self.file, self.storage, self.offset, self.size, self.stride = file, storage, offset, tuple(size), tuple(stride)

    def list(self) -> "list[Any]":
        """The numbers of a tensor of one dimension."""
        if len(self.size) != 1:
            raise InputError(f"{self.file.path}: a tensor has the size {self.size}, and one dimension is expected")
        numbers = self.file.numbers(self.storage)
        n, step = self.size[0], self.stride[0]
        if step == 0 and n > 1 and n > os.path.getsize(self.file.path):
            raise InputError(f"{self.file.path}: a tensor of size {self.size} has more numbers than the file has bytes")
        if step == 0:
            return [numbers[self.offset].item()] * n
        picked: "list[Any]" = numbers[self.offset : self.offset + n * step : step].tolist()
        return picked


class _TorchFile:
    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.zip = zipfile.ZipFile(path)
        except OSError:
            raise
        except Exception as error:  # zipfile raises several kinds for damaged archives
            raise InputError(f"{path}: is no zip file, which torch.save() has written since PyTorch 1.6 ({error})") from error
        names = [name for name in self.zip.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise InputError(f"{path}: has {len(names)} files data.pkl, and what torch.save() writes has one")
        self.prefix = names[0][: -len("data.pkl")]
        if self.prefix + "byteorder" in self.zip.namelist() and self.bytes("byteorder", 16) != b"little":
            raise InputError(f"{path}: was written on a machine with another order of bytes")

    def bytes(self, name: str, most: int) -> bytes:
        try:
            about = self.zip.getinfo(self.prefix + name)
        except KeyError as error:
            raise InputError(f"{self.path}: {name} is missing in the archive") from error
        if about.compress_type != zipfile.ZIP_STORED or about.file_size > most:
            raise InputError(f"{self.path}: {name} is compressed or has {about.file_size} bytes, which torch.save() does not write")
        try:
            return self.zip.read(about)
        except Exception as error:
            raise InputError(f"{self.path}: {name} is damaged ({error})") from error

    def numbers(self, storage: _Storage) -> Any:
        import numpy as np

        size, kind = _STORAGES[storage.kind]
        raw = self.bytes(f"data/{storage.key}", storage.n * size)
        if len(raw) != storage.n * size:
            raise InputError(f"{self.path}: data/{storage.key} has {len(raw)} bytes, and {storage.n * size} are expected")
        if kind == "bfloat16":
            return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        return np.frombuffer(raw, kind)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: _TorchFile, data: Any) -> None:
        super().__init__(data, encoding="utf-8")
        self.file = file

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: _Tensor(self.file, storage, offset, size, stride)
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _STORAGES:
            return name
        raise InputError(f"{self.file.path}: holds {module}.{name}; only tensors and plain values are read, because a pickle can run any program")

    def persistent_load(self, pid: Any) -> _Storage:
        if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and pid[1] in _STORAGES):
            raise InputError(f"{self.file.path}: a reference to {str(pid)[:80]}, and one to the numbers of a tensor is expected")
        _, kind, key, _, n = pid
        if not (isinstance(key, str) and re.fullmatch(r"\d+", key) and isinstance(n, int) and n >= 0):
            raise InputError(f"{self.file.path}: a reference to {str(pid)[:80]}, whose name or length is none")
        return _Storage(kind, key, n)


def _load(path: "str | os.PathLike[str]") -> Any:
    """What torch.save() wrote, with _Tensor for tensors."""
    file = _TorchFile(os.fspath(path))
    try:
        return _Unpickler(file, io.BytesIO(file.bytes("data.pkl", _MOST_PICKLE))).load()
    except InputError:
        raise
    except Exception as error:  # a damaged pickle raises anything
        raise InputError(f"{file.path}: data.pkl is damaged ({type(error).__name__}: {error})") from error


# --- rollouts ---


def _field(record: Any, name: str, where: str) -> Any:
    if not isinstance(record, Mapping):
        raise InputError(f"{where}: is {type(record).__name__}, and a dictionary is expected")
    if name in record:
        return record[name]
    import difflib

    near = difflib.get_close_matches(name, [str(key) for key in record], 1)
    raise InputError(f"{where}: {name} is missing, which slime 0.3.1 and miles write{f' (did you mean {near[0]!r}?)' if near else ''}")


def _list(value: Any, what: str) -> "list[Any]":
    if isinstance(value, _Tensor):
        return value.list()
    if isinstance(value, (list, tuple)):
        return list(value)
    raise InputError(f"{what} is {type(value).__name__}, and a tensor or a list is expected")


def _slime_rows(payload: Any, path: str) -> "list[Any]":
    version = payload["format_version"]
    if version != 2:
        raise InputError(f"{path}: format_version is {version!r}; this reader knows 2, of slime 0.3.1")
    return _list(_field(payload, "samples", path), f"{path}: samples")


_MILES_COLUMNS = {"sample_indices": "sample_index", "tokens": "tokens", "response_lengths": "response_lengths", "loss_masks": "loss_masks",
                  "log_probs": "log_probs", "rollout_log_probs": "rollout_log_probs"}  # fmt: skip


def _miles_rows(payload: Any, path: str) -> "list[Any]":
    if payload.get("cp_size", 1) != 1:
        raise InputError(f"{path}: log-probabilities are spread over {payload['cp_size']} context-parallel ranks, which this reader does not join")
    data = _field(payload, "rollout_data", path)
    if "log_probs" not in data and "rollout_log_probs" not in data:
        return []  # a rank of another pipeline stage
    columns = {to: _list(_field(data, name, path), f"{path}: {name}") for name, to in _MILES_COLUMNS.items()}
    n = len(columns["tokens"])
    if any(len(column) != n for column in columns.values()):
        raise InputError(f"{path}: the lists of a rank have different lengths: { {name: len(column) for name, column in columns.items()} }")
    return [{name: column[i] for name, column in columns.items()} for i in range(n)]


def _rows(path: pathlib.Path) -> "tuple[int, list[Any]]":
    """The rollout's number and its training samples."""
    payload, where = _load(path), str(path)
    number = _field(payload, "rollout_id", where)
    if not isinstance(number, int):
        raise InputError(f"{where}: rollout_id is {number!r}")
    return number, _slime_rows(payload, where) if "format_version" in payload else _miles_rows(payload, where)


def _samples(folder: pathlib.Path, number: int) -> "dict[Any, Any]":
    """The rollout's generated samples by index, with rewards and groups."""
    path = folder / f"{number}.pt"
    if not path.exists():
        raise InputError(f"{path}: is missing; it has the rewards and groups of the rollout (give the folder of --dump-details)")
    samples = _list(_field(_load(path), "samples", str(path)), f"{path}: samples")
    by_index = {_field(sample, "index", str(path)): sample for sample in samples}
    if None in by_index or len(by_index) != len(samples):
        raise InputError(f"{path}: samples have no index of their own, so they cannot be joined with what was trained")
    return by_index


def _reward(sample: Any, key: Optional[str], where: str) -> float:
    metadata = sample.get("metadata") or {}
    value = metadata["raw_reward"] if "raw_reward" in metadata else _field(sample, "reward", where)
    if isinstance(value, Mapping):
        if key is None or key not in value:
            raise InputError(f"{where}: rewards are dictionaries with {', '.join(map(str, value))}; say which one with reward_key")
        value = value[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: a reward is {value!r}")
    return float(value)


def _response(row: Any, where: str) -> "dict[str, list[float]]":
    """log p and log q of the trained tokens."""
    mask = _list(_field(row, "loss_masks", where), f"{where}: loss_masks")
    found = {}
    for name, to in (("log_probs", "logp"), ("rollout_log_probs", "logq")):
        values = _list(_field(row, name, where), f"{where}: {name}")
        if len(values) != len(mask):
            raise InputError(f"{where}: {name} has {len(values)} numbers, and loss_masks {len(mask)}")
        found[to] = [min(float(v), 0.0) if v <= 1e-3 else float(v) for v, m in zip(values, mask) if m]
    return found


def _update(number: int, rows: "Iterable[Any]", samples: "dict[Any, Any]", key: Optional[str], where: str) -> "dict[str, Any]":
    groups: "dict[Any, dict[str, list[Any]]]" = {}
    seen = set()
    for row in rows:
        index = _field(row, "sample_index", where)
        if index in seen:
            continue  # miles: every tensor-parallel rank writes its copy
        seen.add(index)
        if index not in samples:
            raise InputError(f"{where}: sample {index!r} was trained, and is not in the rollout's dump")
        sample, response = samples[index], _response(row, where)
        if not response["logp"]:
            continue
        group = groups.setdefault(_field(sample, "group_index", where), {"rewards": [], "logp": [], "logq": []})
        group["rewards"].append(_reward(sample, key, where))
        for name, values in response.items():
            group[name].append(values)
    if not groups:
        raise InputError(f"{where}: no response has a trained token")
    if None in groups:
        raise InputError(f"{where}: samples have no group_index")
    return {"step": number, "groups": list(groups.values())}


def _natural(path: pathlib.Path) -> "list[Any]":
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _training_files(path: pathlib.Path) -> "list[pathlib.Path]":
    if path.is_file():
        return [path]
    folder = path / "train_data" if (path / "train_data").is_dir() else path
    files = sorted(folder.glob("*.pt"), key=_natural)
    if not files:
        raise InputError(f"{path}: there is no train_data/*.pt in it; give the folder of --dump-details")
    return files


def read_dump(path: "str | os.PathLike[str]", *, reward_key: Optional[str] = None) -> "Iterator[dict[str, Any]]":
    """Rollouts that slime or miles dumped, as updates of a log: ``gepolab.whatif(gepolab.read_dump("dump"))``.

    path: the folder of --dump-details, or a file of its train_data; rewards and groups are from rollout_data beside it. reward_key:
    the key of rewards that are dictionaries (--reward-key of the trainer). One rollout is in memory at a time; where the trainer
    splits a rollout into several optimiser steps, its update has all of them. The learner's log-probabilities are those before
    the rollout's first step. Staleness is unknown: the files have the versions that sampled, and not the learner's.
    ``gepolab.write_log(gepolab.read_dump("dump"), "run.jsonl")`` writes a log that `gepolab whatif` reads.

    Files are read without PyTorch, and nothing in them is run: a file with anything else than tensors and plain values is refused.
    Needs NumPy. Raises InputError (a ValueError) with the file's name for what is no such dump, and OSError for a file that cannot
    be read.
    """
    needed("numpy", "numpy")
    place = pathlib.Path(path)
    pending: "list[Any]" = []
    number, where = -1, ""
    for file in _training_files(place):
        found, rows = _rows(file)
        if pending and found != number:
            yield _update(number, pending, _samples(file.parent.parent / "rollout_data", number), reward_key, where)
            pending = []
        number, where = found, str(file)
        pending += rows
    if pending:
        yield _update(number, pending, _samples(pathlib.Path(where).parent.parent / "rollout_data", number), reward_key, where)


def write_log(records: "Iterable[Mapping[str, Any]]", to: "str | os.PathLike[str]") -> int:
    """Writes updates (as read_dump() gives them) as a log in gepolab's own format; the number of updates. Raises InputError for what is no
    update."""
    n = 0
    with open(to, "w", encoding="utf-8") as file:
        for record in records:
            if not isinstance(record, Mapping) or not {"groups", "rewards"} & record.keys():
                raise InputError(f"update {n + 1} has neither groups nor rewards: an update is a dict as read_dump() gives it")
            file.write(json.dumps(record, allow_nan=False) + "\n")
            n += 1
    return n

