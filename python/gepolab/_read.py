"""Studies as pandas tables, and TensorBoard logs in the form that `gepolab plot` reads."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

from ._library import GepolabError, InputError, needed


def _command() -> str:
    asked = os.environ.get("GEPOLAB") or shutil.which("gepolab")
    if asked is None:
        raise GepolabError("the gepolab command is not on PATH: `make install` of the clone, or set GEPOLAB to the program")
    return asked


def read(study: "str | os.PathLike[str]", table: str = "runs") -> Any:
    """A table of a study (runs, evals, steps, summary, cells, axes, ...) as a pandas DataFrame.

    Columns are those of experiments/DATA.md; the study is checked on the way, and a damaged one is refused. Rows are read as they
    are printed, so that a large study takes little more memory than its table. Needs pandas and the gepolab command. Raises InputError
    (a ValueError) for a table that there is none of and for what is no study. To Parquet: ``gepolab.read("study.db", "steps").to_parquet("steps.parquet")``.
    """
    pandas = needed("pandas", "pandas")
    words = [_command(), "export", os.fspath(study), "--table", table]
    with tempfile.TemporaryFile() as said, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said) as run:
        try:
            read_rows = pandas.read_csv(run.stdout, float_precision="round_trip")
        except pandas.errors.EmptyDataError:
            read_rows = None  # nothing was printed: the program says why
        if run.wait() != 0 or read_rows is None:
            said.seek(0)
            raise (InputError if run.returncode == 2 else GepolabError)(said.read().decode("utf-8", "replace").strip().removeprefix("gepolab: "))
    return read_rows


def read_tensorboard(folder: "str | os.PathLike[str]") -> Any:
    """Scalars of all runs below a folder of TensorBoard logs as a tidy DataFrame: run, step, metric, value.

    ``read_tensorboard("runs").to_csv("runs.csv", index=False)`` is a file that `gepolab analyze` and `plot` read. Where a
    step was written twice, the later value stands. Needs the packages tensorboard and pandas.
    """
    pandas = needed("pandas", "pandas")
    accumulator = needed("tensorboard.backend.event_processing.event_accumulator", "tensorboard")
    root = pathlib.Path(folder)
    rows = []
    for place in sorted({path.parent for path in root.rglob("*tfevents*")}):
        events = accumulator.EventAccumulator(str(place), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        name = str(place.relative_to(root)) if place != root else root.resolve().name
        for tag in events.Tags()["scalars"]:
            last = {event.step: event.value for event in events.Scalars(tag)}
            rows += [(name, step, tag, value) for step, value in sorted(last.items())]
    if not rows:
        raise GepolabError(f"{root} has no scalars of TensorBoard (files named *tfevents*)")
    return pandas.DataFrame(rows, columns=["run", "step", "metric", "value"])
