"""Laboratory, clock, distributions, statistics and readers."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

import gepolab


def test_importance_sampling_has_no_bias_and_gepo_some():
    tables = dict(learner=[0.52, 0.31, 0.17], sampler=[0.27, 0.22, 0.51], reward=[1.0, 0.0, 0.5])
    unbiased = gepolab.bias(gepolab.Algorithm("is", baseline="none"), **tables, group_size=4)
    assert unbiased["bias"] < 1e-15 and unbiased["method"] == "exact"
    assert gepolab.bias("gepo", **tables, group_size=4)["bias"] > 0.01
    value = np.dot(tables["learner"], tables["reward"])
    truth = np.array(tables["learner"]) * (np.array(tables["reward"]) - value)
    assert np.allclose(unbiased["truth"][0], truth, atol=1e-15)
    drawn = gepolab.bias("gepo", **tables, group_size=4, budget=1, samples=200_000)
    exact = gepolab.bias("gepo", **tables, group_size=4)
    assert drawn["method"] == "monte_carlo"
    assert abs(drawn["variance"] - exact["variance"]) < 5 * drawn["variance_error"]


def test_a_fixed_delay_is_a_fixed_staleness():
    cluster = {"preset": "fifo", "samplers": 1, "generation": 1, "delay": 3, "learner": {"step": 1, "eval_pause": 0}}
    run = gepolab.sim({"steps": 50, "cluster": cluster})
    assert run.batches.shape == (50,) and (run.staleness[10:] == 4).all()
    assert run.summary["staleness"]["max"] == 4
    with pytest.raises(ValueError, match="preset"):
        gepolab.sim("cluster: {preset: nosuch}")


def test_recipes_in_files_find_what_they_name_beside_them(tmp_path, monkeypatch):
    (tmp_path / "delays.csv").write_text("3\n3\n")
    (tmp_path / "base.yaml").write_text("steps: 30\ncluster: {preset: fifo, samplers: 1, generation: 1, learner: {step: 1, eval_pause: 0}}\n")
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("include: base.yaml\nsteps: 20\ncluster: {delay: {distribution: empirical, file: delays.csv}}\n")
    assert gepolab.sim(recipe).staleness[-1] == gepolab.sim(str(recipe)).staleness[-1] == 4
    monkeypatch.chdir(tmp_path)
    dist = {"distribution": "empirical", "file": "delays.csv"}
    clock = {"preset": "fifo", "samplers": 1, "generation": 1, "learner": {"step": 1, "eval_pause": 0}, "delay": dist}
    assert gepolab.sim({"steps": 20, "cluster": clock}).staleness[-1] == 4
    with pytest.raises(gepolab.InputError, match="recipe:1:10: .*only a recipe that is a file can include files"):
        gepolab.sim(recipe.read_text())
    with pytest.raises(gepolab.InputError, match="nothing.yaml.*No such file"):
        gepolab.sim(tmp_path / "nothing.yaml")
    with pytest.raises(gepolab.InputError, match="recipe:1:2: unknown key 'stpes' in 'recipe' .did you mean 'steps'"):
        gepolab.sim({"stpes": 20})
    with pytest.raises(gepolab.InputError, match="seed is 1.5, and a whole number is expected"):
        gepolab.sim({"steps": 20}, seed=1.5)


def test_presets_of_ones_own(tmp_path, monkeypatch):
    """A name means its fields, by argument and by the environment; also in a file's recipe; unknown ones are refused."""
    path = tmp_path / "mine.yaml"
    path.write_text("presets: {mine: {base: fifo, samplers: 1, generation: 1, delay: 3s, learner: {step: 1, eval_pause: 0}}}")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("steps: 20\ncluster: {preset: mine}\n")
    stated = {"preset": "fifo", "samplers": 1, "generation": 1, "delay": 3, "learner": {"step": 1, "eval_pause": 0}}
    want = gepolab.sim({"steps": 20, "cluster": stated})
    assert want.staleness[-1] == 4
    for given in ({"steps": 20, "cluster": {"preset": "mine"}}, recipe):
        assert np.array_equal(gepolab.sim(given, presets=path).batches, want.batches)
    assert gepolab.sim({"steps": 20, "cluster": {"preset": "mine", "delay": 0}}, presets=str(path)).staleness[-1] == 1
    with pytest.raises(gepolab.InputError, match="recipe:1:.*'mine'.*--presets FILE"):
        gepolab.sim({"steps": 20, "cluster": {"preset": "mine"}})
    monkeypatch.setenv("GEPOLAB_PRESETS", str(path))
    assert gepolab.sim(recipe).staleness[-1] == 4


def test_laws_have_units():
    slow = {"steps": 20, "cluster": {"preset": "fifo", "samplers": 1, "generation": np.int64(1), "delay": "3 s", "learner": {"step": 1, "eval_pause": 0.0}}}
    assert gepolab.sim(slow).staleness[-1] == 4
    with pytest.raises(gepolab.InputError, match="is neither a number"):
        gepolab.sim({"steps": 20, "cluster": {"delay": object()}})
    assert repr(gepolab.Delay("30m")) == "Delay('30m')"
    assert gepolab.Delay("30m").quantile(0.5) == gepolab.Delay(1800).quantile(0.5) == 1800
    dist = gepolab.Delay({"distribution": "lognormal", "interval": ["1m", "30m"], "confidence": 0.9})
    assert dist.quantile(0.05) == pytest.approx(60)
    with pytest.raises(gepolab.InputError, match="delay:1:1: the text is empty"):
        gepolab.Delay("")
    with pytest.raises(gepolab.InputError, match="first is 0.5, and a whole number is expected"):
        dist.draw(4, first=0.5)


def test_laws_and_statistics():
    dist = gepolab.Delay({"distribution": "lognormal", "interval": [60, 1800], "confidence": 0.9})
    assert dist.quantile(0.05) == pytest.approx(60) and dist.quantile(0.95) == pytest.approx(1800)
    assert np.array_equal(dist.draw(8)[4:], dist.draw(4, first=4))
    value, low, high = gepolab.iqm([1, 2, 3, 4, 100])
    assert low <= value <= high
    assert gepolab.spearman([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])[0] == pytest.approx(1)
    curve = gepolab.survival([1, 2, 2, 3], [True, True, True, False])
    assert np.allclose(curve["survival"], [0.75, 0.25])


@pytest.mark.parametrize("module, call", [
    ("pandas", lambda: gepolab.read("study.db")),
    ("pandas", lambda: gepolab.read_tensorboard("runs")),
    ("torch", lambda: gepolab.__getattr__("loss")),
])  # fmt: skip
def test_what_is_missing_is_named_with_the_way_to_it(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=f"this needs {module}: pip install './python"):
        call()


def test_tensorboard_scalars_become_a_tidy_table(tmp_path):
    pytest.importorskip("tensorboard")
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path / "gepo"))
    for step in range(5):
        writer.add_scalar("eval/score", step / 4, step)
    writer.close()
    table = gepolab.read_tensorboard(tmp_path)
    assert list(table.columns) == ["run", "step", "metric", "value"]
    assert table["run"].unique().tolist() == ["gepo"] and table["value"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    with pytest.raises(gepolab.GepolabError, match="no scalars"):
        (tmp_path / "empty").mkdir()
        gepolab.read_tensorboard(tmp_path / "empty")


@pytest.mark.parametrize("prints, ends, says", [
    ("echo run,score; echo 1,0.5; echo note >&2", 0, None), ("echo run,score", 0, None), ("echo 'gepolab: x.db: cannot be opened' >&2", 1, "x.db: cannot be"),
    ("echo run,score; echo 1,0.5; echo 'gepolab: damaged record' >&2", 1, "damaged record"),
])  # fmt: skip
def test_tables_are_read_as_they_are_printed(monkeypatch, tmp_path, prints, ends, says):
    """Rows that came before a failure are not handed over."""
    pytest.importorskip("pandas")
    program = tmp_path / "gepolab"
    program.write_text(f"#!/bin/sh\n{prints}\nexit {ends}\n")
    program.chmod(0o755)
    monkeypatch.setenv("GEPOLAB", str(program))
    if says is None:
        assert list(gepolab.read("x.db").columns) == ["run", "score"]
    else:
        with pytest.raises(gepolab.GepolabError, match=says):
            gepolab.read("x.db")


@pytest.mark.skipif(not (os.environ.get("GEPOLAB") or shutil.which("gepolab")), reason="no gepolab command")
def test_a_study_is_read_as_pandas(tmp_path):
    import subprocess

    pytest.importorskip("pandas")
    command = os.environ.get("GEPOLAB") or "gepolab"
    study = tmp_path / "study.db"
    subprocess.run([command, "sweep", "quickstart", "steps=20", "sweep={seed: [1, 2]}", "-o", study, "--quiet"], check=True)
    runs = gepolab.read(study)
    summary = json.loads(subprocess.run([command, "analyze", study, "--json"], check=True, capture_output=True).stdout)
    assert len(runs) >= 1 and set(runs["status"]) == {"done"} and summary
    with pytest.raises(gepolab.InputError, match="nosuch"):
        gepolab.read(study, "nosuch")
    with pytest.raises(gepolab.GepolabError, match="nothing.db"):
        gepolab.read(tmp_path / "nothing.db")
