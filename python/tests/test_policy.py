"""The Python functions against one another, PyTorch's autograd, and closed forms."""

import json
import os
import random
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

import gepolab

torch = pytest.importorskip("torch")


def call(batch, algorithm, **changes):
    given = {**batch, **changes}
    given.pop("lengths", None) if "mask" in given else None
    return gepolab.policy(given.pop("rewards"), given.pop("logp"), given.pop("logq"), algorithm, group_size=4, **given)


@pytest.mark.parametrize("row", [row["name"] for row in gepolab.algorithms()])
def test_layouts_and_types_agree(batch, row):
    del batch["lengths"]
    extra = {"log_denominator": np.array([-1.0, -1.5])}
    batch["version_gap"] = np.full((8, 9), 3.0)
    batch["logref"] = batch["logq"] - 0.1
    made = gepolab.Algorithm(row)
    if made.field("entropy_ratio_high") != "inf":
        batch["entropy"], batch["entropy_prox"] = np.full((8, 9), 1.5), np.linspace(1.4, 1.6, 72).reshape(8, 9)
    if made.field("old_policy") == "proximal":
        batch["logprox"] = batch["logq"] - 0.02
    want = call(batch, row, **extra)
    turned = {name: np.asfortranarray(value) if value.ndim == 2 else value for name, value in batch.items()}
    assert call(turned, row, **extra).loss == want.loss
    tensors = {name: torch.from_numpy(value) for name, value in batch.items()}
    got = call(tensors, row, log_denominator=torch.from_numpy(extra["log_denominator"]))
    assert got.loss == want.loss
    assert torch.is_tensor(got.coefficient) and np.array_equal(got.coefficient.numpy(), want.coefficient)
    small = {name: value.astype(np.float32) if value.dtype == float else value for name, value in batch.items()}
    single = call(small, row, **extra)
    assert single.coefficient.dtype == np.float32
    if row not in ("m2po",):  # which removes whole tokens by rank, so that rounding may choose another
        assert np.allclose(single.coefficient, want.coefficient, rtol=2e-4, atol=2e-5)


def test_backwards_strides_are_read_where_they_lie(batch):
    del batch["lengths"]
    want = call(batch, "gepo")
    reversed_columns = {name: np.ascontiguousarray(value[..., ::-1])[..., ::-1] for name, value in batch.items()}
    assert reversed_columns["logp"].strides[1] < 0
    assert np.array_equal(call(reversed_columns, "gepo").coefficient, want.coefficient)


def test_packed_equals_padded(batch):
    lengths, mask = batch.pop("lengths"), batch["mask"]
    want = call(batch, "gspo")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    got = gepolab.policy(batch["rewards"], batch["logp"][mask], batch["logq"][mask], "gspo", group_size=4, token_start=starts)
    assert got.loss == want.loss and np.array_equal(got.coefficient, want.coefficient[mask])
    assert (want.coefficient[~mask] == 0).all()


def grpo_by_hand(logp, batch, low=0.2, high=0.2):
    """GRPO in PyTorch: token ratios, PPO's clip, sequence means, advantages by the group's deviation."""
    r = torch.tensor(batch["rewards"]).view(-1, 4)
    a = ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)).view(-1, 1)
    mask = torch.tensor(batch["mask"])
    ratio = (logp - torch.tensor(batch["logq"])).exp()
    term = torch.min(ratio * a, ratio.clamp(1 - low, 1 + high) * a)
    return -((term * mask).sum(1) / mask.sum(1)).mean()


def test_loss_takes_tensors(batch):
    with pytest.raises(gepolab.InputError, match="logp is a ndarray, and a tensor of PyTorch is expected"):
        gepolab.loss(batch["rewards"], batch["logp"], batch["logq"], "grpo", group_size=4)


def test_loss_and_gradient_equal_pytorch(batch):
    del batch["lengths"]
    theirs = torch.tensor(batch["logp"], requires_grad=True)
    want = grpo_by_hand(theirs, batch)
    want.backward()
    ours = torch.tensor(batch["logp"], requires_grad=True)
    algorithm = gepolab.Algorithm("grpo", old_policy="sampler")
    got = gepolab.loss(torch.tensor(batch["rewards"]), ours, torch.tensor(batch["logq"]), algorithm, group_size=4, mask=torch.tensor(batch["mask"]))
    (3 * got).backward()
    assert abs(got.item() - want.item()) < 1e-12
    assert (ours.grad - 3 * theirs.grad).abs().max() < 1e-12


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"logp": np.zeros((8, 9), np.float16)}, "float16"),
        ({"logq": np.zeros((8, 8))}, "logq has shape"),
        ({"rewards": np.zeros(7)}, "one reward a response"),
        ({"mask": np.zeros((8, 9), bool)}, "response 0 has no tokens"),
        ({"mask": np.ones((8, 9))}, "mask is float64"),
        ({"logp": [[0.0], [0.0, 1.0]]}, "logp is a list, and not one of numbers"),
        ({"version_gap": np.zeros(8)}, "version_gap has shape"),
    ],
)
def test_what_is_wrong_is_named(batch, changes, says):
    del batch["lengths"]
    with pytest.raises(ValueError, match=says):
        call(batch, "gepo", **changes)


def test_not_a_number_is_named_by_its_place(batch):
    del batch["lengths"]
    batch["logp"][1, 4] = np.nan
    with pytest.raises(gepolab.InputError, match="logp of response 1, token 4, is nan"):
        call(batch, "gepo")
    batch["logp"][1, 4], batch["logq"][1, 4] = -0.1, -3000.0
    with pytest.raises(gepolab.NumericError, match="response 1"):
        call(batch, "is")


def test_threads_at_once(batch):
    del batch["lengths"]
    want, wrong = call(batch, "m2po").loss, []

    def work():
        for _ in range(300):
            if call(batch, "m2po").loss != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_unknown_rows_and_fields_have_a_neighbour():
    with pytest.raises(ValueError, match="gepo"):
        gepolab.Algorithm("gepa")
    with pytest.raises(ValueError, match="clip"):
        gepolab.Algorithm("gepo", clap="none")
    assert gepolab.Algorithm("gepo", clip="none").name == "gepo(clip=none)"


def test_messages_name_the_argument_and_the_place_in_it():
    with pytest.raises(gepolab.InputError, match=r"^algorithm:1:1: no algorithm 'gepa'"):
        gepolab.policy(np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)), "gepa", group_size=2)
    with pytest.raises(gepolab.InputError, match=r"^algorithm:2:7: 'algorithm.clip' is text \('nome'\)"):
        gepolab.Algorithm("base: gepo\nclip: nome")
    with pytest.raises(gepolab.InputError, match="algorithm has a zero byte at character 4"):
        gepolab.Algorithm("gepo\0clip")
    with pytest.raises(gepolab.InputError, match="algorithm is no text in UTF-8"):
        gepolab.Algorithm("gepo\udcff")


def test_a_row_may_be_a_dict_with_numbers_of_numpy():
    row = gepolab.Algorithm({"base": "grpo", "eps_high": np.float32(0.25), "ref_kl_ratio": np.bool_(True), "scale": None})
    assert row.field("eps_high") == "0.25" and row.field("ref_kl_ratio") == "true"
    assert gepolab.Algorithm("grpo", scale_eps=np.float64(1e-6)).field("scale_eps") == "1e-06"


def test_numbers_that_are_not_whole_are_refused_by_name(batch):
    arguments = [batch[name] for name in ("rewards", "logp", "logq")]
    for name, given in (("group_size", 4.5), ("max_length", 9.5), ("threads", "2")):
        with pytest.raises(gepolab.InputError, match=f"{name} is .*{given}.*, and a whole number is expected"):
            gepolab.policy(*arguments, "grpo", **{"group_size": 4, name: given})
    assert gepolab.policy(*arguments, "grpo", group_size=np.int32(4)).loss == gepolab.policy(*arguments, "grpo", group_size=4).loss


@pytest.mark.parametrize("starts", [[0], [], [[0, 8]], [0.0, 8.0], [0, 0, 8], [4, 8]])
def test_no_groups_and_starts_that_do_not_rise_are_refused(batch, starts):
    arguments = [batch[name] for name in ("rewards", "logp", "logq")]
    with pytest.raises(gepolab.InputError, match="group"):
        gepolab.policy(*arguments, "grpo", group_start=starts)


def test_what_float32_cannot_hold_is_refused_and_float64_can():
    """A weight of e^100: infinite in float32, where its coefficients would train with an infinite gradient."""
    rewards, logp = np.array([1.0, 0.0], np.float32), np.array([[-1.0], [-1.0]], np.float32)
    logq = logp - np.array([[100.0], [0.0]], np.float32)
    for asked in (dict(weights=False, metrics=False), {}):
        with pytest.raises(gepolab.NumericError, match="single precision ends at 3.4e38"):
            gepolab.policy(rewards, logp, logq, "is", group_size=2, **asked)
    wide = gepolab.policy(*(a.astype(float) for a in (rewards, logp, logq)), "is", group_size=2)
    assert np.isfinite(wide.coefficient).all() and wide.weight[0, 0] == pytest.approx(np.exp(100))


def test_threads_within_an_evaluation_change_no_bit():
    rng = np.random.default_rng(4)
    rewards, logq = (rng.random(64) < 0.5).astype(float), -rng.exponential(1, (64, 400)).astype(np.float32) - 0.3
    logp = logq + np.float32(0.2) * rng.random((64, 400), dtype=np.float32)
    for row in ("gepo", "cispo", "m2po"):
        one, three = (gepolab.policy(rewards, logp, logq, row, group_size=8, threads=n) for n in (1, 3))
        assert one.loss == three.loss and one.metrics == three.metrics
        assert (one.coefficient == three.coefficient).all() and (one.weight == three.weight).all()
    assert gepolab.policy(rewards, logp, logq, "gepo", group_size=8, metrics=False).metrics == {}
    with pytest.raises(gepolab.InputError, match="0 threads"):
        gepolab.policy(rewards, logp, logq, "gepo", group_size=8, threads=0)


def test_a_forked_process_evaluates(batch):
    rng = np.random.default_rng(4)
    logq = -rng.exponential(1, (64, 400)) - 0.3
    arguments = ((rng.random(64) < 0.5).astype(float), logq + 0.1, logq, "grpo")
    want = gepolab.policy(*arguments, group_size=8, threads=2).loss
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if gepolab.policy(*arguments, group_size=8, threads=2).loss == want else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_own_algorithms(batch, tmp_path, monkeypatch):
    """A file's name means its fields; by argument and by the environment; what is not in it is refused."""
    path = tmp_path / "mine.yaml"
    path.write_text("algorithms: {mine: {base: gspo, clip: none}}")
    own, stated = gepolab.Algorithm("mine", file=path), gepolab.Algorithm("gspo", clip="none")
    assert own.name == "mine"
    results = [gepolab.policy(batch["rewards"], batch["logp"], batch["logq"], a, group_size=4, mask=batch["mask"]) for a in (own, stated)]
    assert np.array_equal(results[0].coefficient, results[1].coefficient)
    with pytest.raises(gepolab.InputError, match="no algorithm 'mine'"):
        gepolab.Algorithm("mine")
    monkeypatch.setenv("GEPOLAB_ALGORITHMS", str(path))
    assert gepolab.Algorithm("mine", cap=2.0).name == "gspo(clip=none, cap=2)"


needs_command = pytest.mark.skipif(not (os.environ.get("GEPOLAB") or shutil.which("gepolab")), reason="no gepolab command")


def lines_against_library(batch, algorithm, proximal, dtype=torch.float64):
    """`gepolab list algorithms … --torch`, run with tensors of a type, against the library: the largest differences of gradient and loss, relative above 1."""
    rng = np.random.default_rng(11)
    shape = batch["logp"].shape
    longest = int(batch["mask"].sum(1).max())
    more = {"logprox": np.minimum(batch["logq"] + 0.2 * rng.standard_normal(shape), -1e-3), "logref": batch["logq"] - 0.1 * rng.random(shape),
            "gap": rng.integers(0, 5, shape).astype(float), "entropy": 0.1 + 3 * rng.random(shape)}  # fmt: skip
    more["entropy_prox"] = more["entropy"] * np.exp(0.05 * rng.standard_normal(shape))
    if not proximal:
        del more["logprox"], more["entropy_prox"]
    given = {k: np.ascontiguousarray(v[:, :longest]) if v.ndim == 2 else v for k, v in {**batch, **more}.items() if k != "lengths"}
    given["log_denominator"] = np.array([-1.3, -2.0])
    names = {"gap": "version_gap"}
    want = gepolab.policy(given["rewards"], given["logp"], given["logq"], algorithm, group_size=4, mask=given["mask"], weights=False, metrics=False,
                          log_denominator=given["log_denominator"], **{names.get(k, k): given[k] for k in more})  # fmt: skip
    program = os.environ.get("GEPOLAB") or "gepolab"
    lines = subprocess.run([program, "list", "algorithms", algorithm, "--torch"], check=True, capture_output=True, text=True).stdout
    space = {"torch": torch}
    exec(lines, space)
    head = lines[lines.index("def loss(") :].split("\n")[0]
    extra = {k: torch.from_numpy(given[k]).to(dtype) for k in (*more, "log_denominator") if re.search(rf"\b{k}\b", head)}
    logp = torch.tensor(given["logp"], dtype=dtype, requires_grad=True)
    logq, rewards = (torch.from_numpy(given[name]).to(dtype) for name in ("logq", "rewards"))
    mask = torch.from_numpy(given["mask"])
    loss = space["loss"](logp, logq, rewards, mask, len(rewards) // 4, **extra)
    if loss.requires_grad:
        loss.backward()
    gradient = 0 * given["logp"] if logp.grad is None else logp.grad.numpy()
    apart = np.abs(np.where(given["mask"], gradient + want.coefficient, 0)).max() / max(1, np.abs(want.coefficient).max())
    return apart, abs(loss.item() - want.loss) / max(1, abs(want.loss))


@needs_command
@pytest.mark.parametrize("row", [row["name"] for row in gepolab.algorithms()])
def test_the_lines_of_pytorch_have_the_rows_gradient(batch, row):
    for proximal in (True, False):
        if row == "ppo_ewma" and not proximal:
            continue  # it needs the averaged policy
        apart, loss = lines_against_library(batch, row, proximal)
        assert apart < 1e-10 and loss < 1e-9


@needs_command
@pytest.mark.parametrize("algorithm", ["trm", "{base: grpo, eps_high: .inf}", "{base: gmpo, eps_low: .inf, eps_high: .inf}"])
def test_the_lines_of_pytorch_run_in_single_precision(batch, algorithm):
    """Bounds and masks that double precision holds and single precision does not."""
    apart, loss = lines_against_library(batch, algorithm, True, torch.float32)
    assert apart < 1e-4 and loss < 1e-4


def fields_of_algorithms():
    """Field -> its choices, ["true", "false"], or some numbers."""
    program = os.environ.get("GEPOLAB") or "gepolab"
    text = subprocess.run([program, "list", "algorithms", "--fields"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(subprocess.run([program, "list", "algorithms", "--json"], check=True, capture_output=True, text=True).stdout)
    fields = {name: ["0", "0.03", "0.3", "0.9", "1", "1.1", "2.5", "12", ".inf", "-0.4"] for name in rows[0]["fields"]}
    fields.update({name: ["true", "false"] for name, value in rows[0]["fields"].items() if isinstance(value, bool)})
    for name, meaning in re.findall(r"^(\S+)((?:.*\n)(?: .*\n)*)", text, re.M):
        lines = meaning.splitlines()
        first = next((k for k, line in enumerate(lines) if " | " in line), None)
        if first is not None:
            fields[name] = [word.strip() for word in " ".join(lines[first:]).split("|")]
    fields["ratio"] = sorted({row["fields"]["ratio"] for row in rows} | {"group_mean"})
    return fields


@needs_command
def test_combinations_of_fields_have_the_gradient_of_their_lines(batch):
    """120 combinations of a fixed seed; those that are refused, or overflow, are counted."""
    fields, compared = fields_of_algorithms(), 0
    names, rows = sorted(fields), [row["name"] for row in gepolab.algorithms()]
    wordy = [name for name in names if "0.03" not in fields[name]]
    for k in range(120):
        rng = random.Random(k)
        row, changes = rng.choice(rows), {}
        for c in range(rng.randint(1, 4)):
            name = rng.choice(wordy if c % 2 == 0 else names)
            changes[name] = rng.choice(fields[name])
        gate = ", ".join(f"{name[5:]}: {value}" for name, value in changes.items() if name.startswith("gate."))
        plain = "".join(f", {name}: {value}" for name, value in changes.items() if not name.startswith("gate."))
        algorithm = "{base: " + row + plain + (", gate: {" + gate + "}" if gate else "") + "}"
        try:
            apart, loss = lines_against_library(batch, algorithm, rng.random() < 0.5)
        except (gepolab.InputError, gepolab.NumericError):
            continue
        compared += 1
        assert apart < 1e-10 and loss < 1e-9, algorithm
    assert compared > 40
