"""What needs no PyTorch: kinds of arrays and algorithms that are taken, and what is warned of."""

import os
import shutil
import warnings

import numpy as np
import pytest

import gepolab
from gepolab import _policy


def test_gepo_on_policy_at_500_tokens_warns_once_and_names_gepo_released(monkeypatch):
    monkeypatch.setattr(_policy, "_warned", set())
    logp = np.repeat([[-0.31], [-0.27], [-0.33], [-0.281], [-0.36], [-0.3], [-0.32], [-0.29]], 500, axis=1)
    rewards = np.array([1.0, 0, 1, 0, 1, 0, 1, 0])
    with pytest.warns(RuntimeWarning, match="gepo: on-policy, the effective sample size is 0.13 .*use gepo_released"):
        weight = gepolab.policy(rewards, logp, logp, "gepo", group_size=8).weight[:, 0]
    assert weight[1] == pytest.approx(1, abs=0.01) and weight[3] == pytest.approx(0.004, abs=1e-3) and np.delete(weight, [1, 3]).max() < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gepolab.policy(rewards, logp, logp, "gepo", group_size=8)  # said once
        assert gepolab.policy(rewards, logp, logp, group_size=8).metrics["ess"] > 0.9  # gepo_released


def test_lists_whole_numbers_and_booleans_are_taken():
    logp, logq = [[-1.0, -0.5], [-2.0, -0.1]], [[-1.1, -0.4], [-1.9, -0.3]]
    want = gepolab.policy(np.array([1.0, 0.0]), np.array(logp), np.array(logq), "grpo")
    for rewards in ([1, 0], [1.0, 0.0], (True, False), np.array([1, 0]), np.array([True, False]), np.array([1, 0], np.uint8)):
        got = gepolab.policy(rewards, logp, logq, "grpo", mask=[[True, True], [True, True]])
        assert got.loss == want.loss and np.array_equal(got.coefficient, want.coefficient)
    for wrong in (["a", "b"], [None, 1], [[1], [1, 2]]):
        with pytest.raises(gepolab.InputError, match="rewards is a list, and not one of numbers"):
            gepolab.policy(wrong, logp, logq, "grpo")
    with pytest.raises(gepolab.InputError, match="rewards has shape"):
        gepolab.policy([1, 0, 0], logp, logq, "grpo")


def test_a_dict_is_an_algorithm_everywhere():
    changed = {"base": "gepo", "clip": "none"}
    given = (np.array([1.0, 0.0]), np.array([[-1.0], [-2.0]]), np.array([[-1.1], [-1.9]]))
    want = gepolab.policy(*given, "{base: gepo, clip: none}")
    assert gepolab.policy(*given, changed).loss == want.loss
    tables = dict(learner=[0.5, 0.3, 0.2], sampler=[0.2, 0.3, 0.5], reward=[1, 0, 0], group_size=4)
    assert gepolab.bias(changed, **tables)["bias"] == gepolab.bias("{base: gepo, clip: none}", **tables)["bias"]
    with pytest.raises(gepolab.InputError, match="algorithm is 3; a name"):
        gepolab.policy(*given, 3)


@pytest.mark.skipif(not (os.environ.get("GEPOLAB") or shutil.which("gepolab")), reason="no gepolab command")
def test_whatif_and_sim_take_dicts_and_names(tmp_path):
    log = gepolab.GroupLog(tmp_path / "run.jsonl")
    log.write([1, 0], [[-1.0], [-2.0]], [[-1.1], [-1.9]], group_size=2, step=0)
    told = gepolab.whatif(log.path, [{"base": "gepo", "clip": "none"}, gepolab.Algorithm("grpo", eps_high=0.28), "gspo"])
    assert [row["algorithm"] for row in told["algorithms"]] == ["gepo(clip=none)", "grpo(eps_high=0.28)", "gspo"]
    assert gepolab.whatif(log.path, "gspo")["algorithms"][0]["algorithm"] == "gspo"
    assert len(gepolab.sim("quickstart").staleness) == 200
    with pytest.raises(gepolab.InputError, match="quikstart"):
        gepolab.sim("quikstart")


def test_what_is_no_recipe_or_number_is_named():
    with pytest.raises(gepolab.InputError, match="recipe is a list; YAML text"):
        gepolab.sim([1])
    with pytest.raises(gepolab.InputError, match="p is 'x', and a number between 0 and 1"):
        gepolab.Delay(3).quantile("x")
