"""What needs no PyTorch: kinds of arrays and algorithms that are taken, and what is warned of."""

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
