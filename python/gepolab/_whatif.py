"""Logs of a run: what every algorithm would have done with them, and the same log as a table or in Parquet.

The schema is in experiments/DATA.md, "The log of a run".
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from ._library import GepolabError, InputError, flow
from ._policy import Algorithm
from ._read import _command

# Columns of a table of responses: name, whether it is needed, and what it is of.
_OF_UPDATE = ("step", "time_s", "max_length")
_OF_TOKENS = ("logp", "logq", "logprox", "logref", "entropy", "entropy_prox", "version_gap")
_NEEDED = ("update", "group", "reward", "logp", "logq")
_COLUMNS = ("update", "group", "reward", *_OF_UPDATE, "log_denominator", *_OF_TOKENS)


def _check_columns(names: "Iterable[str]", where: str) -> None:
    given = list(names)
    for name in given:
        if name not in _COLUMNS and not re.fullmatch(r"__index_level_\d+__", name):  # pandas' labels of rows
            near = difflib.get_close_matches(name, _COLUMNS, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise InputError(f"{where} has a column {name!r}{hint}; a log has {', '.join(_COLUMNS)}: leave others out")
    for name in _NEEDED:
        if name not in given:
            raise InputError(f"{where} has no column {name!r}; a log needs {', '.join(_NEEDED)}")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _plain(value: Any) -> Any:
    """What json.dumps takes: lists and numbers of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def _tokens(row: "dict[str, Any]", name: str, where: str) -> "list[Any]":
    value = _plain(row[name])
    if name == "version_gap" and not isinstance(value, list):
        return [value] * len(_plain(row["logp"]))  # one number for all tokens of the response
    if not isinstance(value, list):
        raise InputError(f"{where}: {name} is {value!r}, and a list with a number for each token is expected")
    return value


def _line(rows: "list[dict[str, Any]]", where: str) -> str:
    """One update, whose rows are its responses."""
    groups: "dict[Any, dict[str, Any]]" = {}
    update: "dict[str, Any]" = {name: _plain(rows[0][name]) for name in _OF_UPDATE if not _is_missing(rows[0].get(name))}
    for row in rows:
        group = groups.setdefault(row["group"], {"rewards": []})
        group["rewards"].append(_plain(row["reward"]))
        for name in _OF_TOKENS:
            if not _is_missing(row.get(name)):
                group.setdefault(name, []).append(_tokens(row, name, where))
        if not _is_missing(row.get("log_denominator")):
            group["log_denominator"] = _plain(row["log_denominator"])
    if "max_length" in update:
        update["max_length"] = int(update["max_length"])
    return json.dumps({**update, "groups": list(groups.values())}) + "\n"


def _lines_of_rows(rows: "Iterable[dict[str, Any]]", name: str) -> "Iterator[str]":
    """Lines of JSON, one for each run of rows with the same `update`."""
    seen: "set[Any]" = set()
    now: "list[dict[str, Any]]" = []
    for row in rows:
        if now and row["update"] != now[0]["update"]:
            yield _line(now, f"{name}, update {now[0]['update']}")
            now = []
        if not now:
            if row["update"] in seen:
                raise InputError(f"{name}: the rows of update {row['update']} do not lie together: sort the table by update")
            seen.add(row["update"])
        now.append(row)
    if now:
        yield _line(now, f"{name}, update {now[0]['update']}")


def _parquet_rows(path: str) -> "Iterator[dict[str, Any]]":
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise GepolabError(f"{path} is Parquet, which needs the package pyarrow: pip install pyarrow ({error})") from error
    with parquet.ParquetFile(path) as file:
        _check_columns(file.schema_arrow.names, path)
        for batch in file.iter_batches(batch_size=256):
            yield from batch.to_pylist()


def _is_parquet(path: str) -> bool:
    if os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _is_table(log: Any) -> bool:
    return hasattr(log, "columns") and hasattr(log, "to_dict")


def _table_rows(log: Any) -> "list[dict[str, Any]]":
    _check_columns([str(name) for name in log.columns], "the table")
    rows: "list[dict[str, Any]]" = log.to_dict("records")
    return rows


def _source(log: Any) -> "tuple[Optional[str], Callable[[], Iterator[str]]]":
    """A path that the program reads itself, or what makes the lines that it is given."""
    if _is_table(log):
        return None, lambda: _lines_of_rows(_table_rows(log), "the table")
    if isinstance(log, (list, tuple)) or hasattr(log, "__next__"):
        return None, lambda: (json.dumps(record, allow_nan=False) + "\n" for record in log)
    path = os.fspath(log)
    if _is_parquet(path):
        return None, lambda: _lines_of_rows(_parquet_rows(path), path)
    return path, lambda: iter(())


def _run(arguments: "list[str]", log: Any) -> str:
    path, lines = _source(log)
    command = [_command(), "whatif", "-" if path is None else path, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        try:
            try:
                for line in lines():
                    program.stdin.write(line)
                program.stdin.flush()
            except BrokenPipeError:
                pass  # the program has refused a line, and says which
            out, why = program.communicate()
        except BaseException:
            program.kill()
            raise
    if program.returncode != 0:
        raise (InputError if program.returncode == 2 else GepolabError)(why.strip().removeprefix("gepolab: "))
    return out


def whatif(log: Any, algorithms: "Union[str, Mapping[str, Any], Algorithm, Sequence[Union[str, Mapping[str, Any], Algorithm]]]" = (), *, figures: "Optional[str | os.PathLike[str]]" = None) -> "dict[str, Any]":
    """What algorithms (names, maps or dicts; default: all) would have done with the batches of a recorded run, as `gepolab whatif --json` tells it.

    log: the path of a log in any format that `gepolab whatif` reads, a folder of such files, Parquet, updates as read_dump() gives them,
    or a table of responses (a pandas DataFrame) with the columns of experiments/DATA.md, "The log of a run". The answer has `algorithms` and `by_staleness`, lists of dicts:
    ``pandas.json_normalize(told["algorithms"])`` is a table of them. With `figures` a folder of that name gets the figures
    whatif_staleness, whatif_variance and whatif_algorithms.

    Needs the gepolab command; Parquet needs pyarrow. Raises InputError (a ValueError) for what is no log, naming the line or
    the update, and OSError for a file that cannot be read.
    """
    if isinstance(algorithms, (str, Mapping, Algorithm)):
        algorithms = [algorithms]
    texts = [a._text if isinstance(a, Algorithm) else a if isinstance(a, str) else flow(a) for a in algorithms]
    chosen = [word for text in texts for word in ("-a", text)]
    told: "dict[str, Any]" = json.loads(_run([*chosen, "--json"], log))
    if told.get("incomplete"):
        warnings.warn(f"{log}: last line incomplete, left out", RuntimeWarning, stacklevel=2)
    if told.get("restarts"):
        warnings.warn(f"{log}: steps go back {told['restarts']} times: several runs are pooled here", RuntimeWarning, stacklevel=2)
    for row in told["algorithms"]:
        if row.get("warning"):
            warnings.warn(f"{row['algorithm']}: {row['warning']}", RuntimeWarning, stacklevel=2)
    if figures is not None:
        if hasattr(log, "__next__"):
            raise InputError("figures read the log again: give a list of updates, or write_log() and its path")
        _run([*chosen, "--figures", os.fspath(figures)], log)
    return told


def read_log(log: "str | os.PathLike[str]") -> Any:
    """A log in JSON Lines as a pandas DataFrame with a row for each response, the form that Parquet has.

    ``gepolab.read_log("run.jsonl").to_parquet("run.parquet")`` writes what ``gepolab.whatif("run.parquet")`` reads.
    """
    import pandas

    rows: "list[dict[str, Any]]" = []
    with open(log, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    rows += _rows_of(json.loads(line), number)
                except json.JSONDecodeError as error:
                    if line.endswith("\n") or not rows:
                        raise InputError(f"{os.fspath(log)}:{number}: is no update of a log ({error!r})") from error
                    warnings.warn(f"{os.fspath(log)}:{number}: last line incomplete, left out", RuntimeWarning, stacklevel=2)
                except (ValueError, KeyError, TypeError, IndexError) as error:
                    raise InputError(f"{os.fspath(log)}:{number}: is no update of a log ({error!r})") from error
    if not rows:
        raise InputError(f"{os.fspath(log)}: there is no record in it")
    return pandas.DataFrame(rows)


def _rows_of(record: "dict[str, Any]", update: int) -> "list[dict[str, Any]]":
    of_update = {name: record[name] for name in _OF_UPDATE if name in record}
    rows = []
    for number, group in enumerate(record.get("groups", [record])):
        for i, reward in enumerate(group["rewards"]):
            tokens = {name: group[name][i] for name in _OF_TOKENS if name in group}
            more = {"log_denominator": group["log_denominator"]} if "log_denominator" in group else {}
            rows.append({"update": update, **of_update, "group": number, "reward": reward, **more, **tokens})
    return rows
