"""The log of groups: what is written reads back, and what cannot be logged is refused."""

import json

import numpy as np
import pytest

from gepolab._group_log import GroupLog


def test_a_line_is_a_policy_input(batch, tmp_path):
    log = GroupLog(tmp_path / "run.jsonl")
    gap = np.full(batch["logp"].shape, 2)
    for step in (3, 4):
        given = dict(group_size=4, mask=batch["mask"], version_gap=gap, step=step, max_length=9)
        assert log.write(batch["rewards"], batch["logp"], batch["logq"], **given) == 2
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 4] and lines[0]["max_length"] == 9
    assert 0 <= lines[0]["time_s"] <= lines[1]["time_s"]
    group = lines[0]["groups"][1]
    assert group["rewards"] == list(batch["rewards"][4:])
    assert [len(row) for row in group["logp"]] == list(batch["lengths"][4:])
    np.testing.assert_allclose(group["logp"][3], batch["logp"][7], rtol=1e-8)
    np.testing.assert_allclose(group["logq"][0], batch["logq"][4][:5], rtol=1e-8)
    assert group["version_gap"][1] == [2, 2]


def test_groups_without_tokens_are_counted(batch, tmp_path):
    log = GroupLog(tmp_path / "run.jsonl")
    mask = batch["mask"].copy()
    mask[2] = False
    assert log.write(batch["rewards"], batch["logp"], batch["logq"], group_size=4, mask=mask) == 1
    assert log.write(batch["rewards"][:4], batch["logp"][:4], batch["logq"][:4], group_size=4, mask=mask[:4]) == 0
    assert log.left_out == 2 and len((tmp_path / "run.jsonl").read_text().splitlines()) == 1


def test_hostile_arrays_are_refused(batch, tmp_path):
    log = GroupLog(tmp_path / "run.jsonl")
    bad = batch["logp"].copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="logp of response 0, token 0, is nan, which is no log-probability"):
        log.write(batch["rewards"], bad, batch["logq"], group_size=4, mask=batch["mask"])
    for wrong in (np.inf, 0.5):  # a sign error is not rounding
        bad[0, 0] = wrong
        with pytest.raises(ValueError, match=f"logq of response 0, token 0, is {wrong:g}, which is no log-probability"):
            log.write(batch["rewards"], batch["logp"], bad, group_size=4, mask=batch["mask"])
    with pytest.raises(ValueError, match="version_gap of response 0, token 0, is -1, which is no number of versions"):
        log.write(batch["rewards"], batch["logp"], batch["logq"], group_size=4, version_gap=np.full(bad.shape, -1))
    with pytest.raises(ValueError, match="entropy of response 0, token 0, is -1.5, which is no entropy"):
        log.write(batch["rewards"], batch["logp"], batch["logq"], group_size=4, entropy=np.full(bad.shape, -1.5))
    for step in ("a", -1, np.nan):
        with pytest.raises(ValueError, match="step is .*, and a number of at least 0 is expected"):
            log.write(batch["rewards"], batch["logp"], batch["logq"], group_size=4, step=step)
    with pytest.raises(ValueError, match="no multiple of group_size 3"):
        log.write(batch["rewards"], batch["logp"], batch["logq"], group_size=3)
    with pytest.raises(ValueError, match="logq has the shape"):
        log.write(batch["rewards"], batch["logp"], batch["logq"][:, :3], group_size=4)
    assert (tmp_path / "run.jsonl").read_bytes() == b""
    with pytest.raises(OSError):
        GroupLog(tmp_path / "no" / "run.jsonl")


def test_rounding_above_zero_is_zero(batch, tmp_path):
    log = GroupLog(tmp_path / "run.jsonl")
    logp = batch["logp"].copy()
    logp[0, 0] = 1e-7
    log.write(batch["rewards"], logp, batch["logq"], group_size=4, mask=batch["mask"])
    assert json.loads((tmp_path / "run.jsonl").read_text())["groups"][0]["logp"][0][0] == 0


def test_a_run_goes_on_in_its_log_and_another_one_gets_its_own(batch, tmp_path):
    given = (batch["rewards"], batch["logp"], batch["logq"])
    first = GroupLog(tmp_path / "run.jsonl")
    first.write(*given, group_size=4, step=0)
    first.write(*given, group_size=4, step=1)
    with open(first.path, "a") as file:
        file.write('{"step": 2, "gro')  # killed while it wrote
    GroupLog(tmp_path / "run.jsonl").write(*given, group_size=4, step=2)
    assert [json.loads(line)["step"] for line in (tmp_path / "run.jsonl").read_text().splitlines()] == [0, 1, 2]
    other = GroupLog(tmp_path / "run.jsonl")
    with pytest.warns(RuntimeWarning, match="run.jsonl has the log of another run; this one is logged in .*run-2.jsonl"):
        other.write(*given, group_size=4, step=0)
    other.write(*given, group_size=4, step=1)
    assert [json.loads(line)["step"] for line in (tmp_path / "run-2.jsonl").read_text().splitlines()] == [0, 1]
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 3
