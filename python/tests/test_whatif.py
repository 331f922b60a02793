"""Logs from Python: JSON Lines, tables and Parquet tell the same; what is no log is refused by name."""

import builtins
import json
import os
import shutil

import numpy as np
import pytest

import gepolab

pytestmark = pytest.mark.skipif(not (os.environ.get("GEPOLAB") or shutil.which("gepolab")), reason="no gepolab command")


@pytest.fixture
def log(batch, tmp_path):
    """Three updates of two groups, with all that a log may have."""
    path = tmp_path / "run.jsonl"
    to = gepolab.GroupLog(path)
    for step in range(3):
        to.write(
            batch["rewards"], batch["logp"] * (1 + 0.02 * step), batch["logq"], group_size=4, mask=batch["mask"], logprox=batch["logq"],
            logref=batch["logp"], entropy=-batch["logq"], version_gap=np.full(batch["logp"].shape, step), step=step, max_length=9,
        )  # fmt: skip
    return path


def test_the_answer_is_that_of_policy(log, batch):
    told = gepolab.whatif(log, ["gepo", "grpo"])
    assert told["updates"] == 3 and told["responses"] == 24 and told["unknown_staleness"] == 0
    assert [row["algorithm"] for row in told["algorithms"]] == ["gepo", "grpo"]
    assert [age["staleness"] for age in told["by_staleness"]] == [0, 1, 2]
    want = [
        gepolab.policy(
            batch["rewards"], batch["logp"] * (1 + 0.02 * step), batch["logq"], "gepo", group_size=4, mask=batch["mask"], logprox=batch["logq"]
        ).metrics["ess"]
        for step in range(3)
    ]  # fmt: skip
    assert told["algorithms"][0]["ess"]["mean"] == pytest.approx(np.mean(want), rel=1e-7)
    assert len(gepolab.whatif(log)["algorithms"]) == len(gepolab.algorithms())


def test_a_table_and_parquet_tell_the_same(log, tmp_path):
    pytest.importorskip("pyarrow")
    want = gepolab.whatif(log)
    table = gepolab.read_log(log)
    assert len(table) == 24 and set(table["update"]) == {1, 2, 3} and table["version_gap"].iloc[-1] == [2, 2, 2, 2, 2, 2, 2, 2, 2]
    assert gepolab.whatif(table) == want
    table.to_parquet(tmp_path / "run.parquet")
    assert gepolab.whatif(tmp_path / "run.parquet") == want
    table["version_gap"] = [row[0] for row in table["version_gap"]]  # one number for a response
    assert gepolab.whatif(table) == want


def test_rows_of_more_than_one_read_of_parquet_stay_together(log, tmp_path):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    many = pandas.concat([gepolab.read_log(log).assign(update=k) for k in range(30)])
    many.to_parquet(tmp_path / "many.parquet")
    told = gepolab.whatif(tmp_path / "many.parquet", ["gepo"])
    assert told["updates"] == 30 and told["groups"] == 60 and told["responses"] == 720  # groups of one name are one group


def test_figures_are_drawn(log, tmp_path):
    gepolab.whatif(log, ["gepo", "grpo"], figures=tmp_path / "figures")
    assert {path.name for path in (tmp_path / "figures").glob("*.pdf")} == {f"whatif_{name}.pdf" for name in ("staleness", "variance", "algorithms")}


def test_what_is_no_log_is_refused(log, tmp_path):
    pytest.importorskip("pandas")
    table = gepolab.read_log(log)
    with pytest.raises(gepolab.InputError, match="'verson_gap' .did you mean 'version_gap'"):
        gepolab.whatif(table.rename(columns={"version_gap": "verson_gap"}))
    with pytest.raises(gepolab.InputError, match="no column 'reward'"):
        gepolab.whatif(table.drop(columns=["reward"]))
    with pytest.raises(gepolab.InputError, match="update 1 do not lie together"):
        gepolab.whatif(table.iloc[[0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7]])
    with pytest.raises(gepolab.InputError, match="update 1: logp is -1.0, and a list"):
        gepolab.whatif(table.assign(logp=-1.0, version_gap=[[0]] * len(table)))
    with pytest.raises(gepolab.InputError, match="did you mean 'gepo'"):
        gepolab.whatif(log, ["gepp"])
    with pytest.raises(OSError):
        gepolab.whatif(tmp_path / "nothing.jsonl")
    hurt = log.read_text().splitlines()
    hurt[1] = hurt[1].replace('"logq"', '"lgq"', 1)
    (tmp_path / "hurt.jsonl").write_text("\n".join(hurt))
    with pytest.raises(gepolab.InputError, match="hurt.jsonl:2:.*unknown key 'lgq'"):
        gepolab.whatif(tmp_path / "hurt.jsonl")
    (tmp_path / "other.jsonl").write_text(json.dumps({"a": 1}) + "\n")
    with pytest.raises(gepolab.InputError, match="other.jsonl:1: is no update of a log"):
        gepolab.read_log(tmp_path / "other.jsonl")


def test_a_program_that_refuses_early_is_heard(batch, tmp_path):
    """The first update is refused while megabytes are still to be written."""
    pandas = pytest.importorskip("pandas")
    rows = [{"update": k, "group": 0, "reward": 1.0, "logp": [0.5] * 1000, "logq": [-0.5] * 1000} for k in range(300)]
    with pytest.raises(gepolab.InputError, match="standard input:1:.*logp"):
        gepolab.whatif(pandas.DataFrame(rows))


def test_without_pyarrow_parquet_is_refused_with_the_remedy(log, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    gepolab.read_log(log).to_parquet(tmp_path / "run.parquet")
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("pyarrow"):
            raise ImportError("No module named 'pyarrow'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(gepolab.GepolabError, match="needs the package pyarrow: pip install pyarrow"):
        gepolab.whatif(tmp_path / "run.parquet")
