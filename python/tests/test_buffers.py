"""Every kind of buffer that a caller may hand over is read where it lies, or refused by name."""

import threading

import numpy as np
import pytest

import gepolab

torch = pytest.importorskip("torch")


@pytest.fixture
def numbers(batch):
    del batch["lengths"]
    return batch


def call(numbers, algorithm="gepo", **changes):
    given = {**numbers, **changes}
    return gepolab.policy(given.pop("rewards"), given.pop("logp"), given.pop("logq"), algorithm, group_size=4, **given)


def same(a, b):
    return a.loss == b.loss and np.array_equal(np.asarray(a.coefficient), np.asarray(b.coefficient)) and a.metrics == b.metrics


def in_every_second_place(array):
    """The same numbers in a wider buffer whose other numbers are NaN."""
    wide = np.full((2 * array.shape[0], 3 * array.shape[1]), np.nan)
    wide[::2, 1::3] = array
    return wide[::2, 1::3]


def test_numpy_views_are_read_where_they_lie(numbers):
    want = call(numbers)
    upside_down = {name: np.ascontiguousarray(value[::-1])[::-1] for name, value in numbers.items()}
    assert upside_down["rewards"].strides[0] < 0 and same(call(upside_down), want)
    spread = {name: in_every_second_place(numbers[name]) for name in ("logp", "logq")}
    assert same(call(numbers, **spread), want)
    read_only = {name: value.copy() for name, value in numbers.items()}
    for value in read_only.values():
        value.setflags(write=False)
    assert same(call(read_only), want)
    flat = np.broadcast_to(np.array(3.0), numbers["logp"].shape)  # strides of 0
    assert call(numbers, version_gap=flat).metrics["staleness"] == 3


def test_what_is_given_is_left_as_it_was(numbers):
    kept = {name: value.copy() for name, value in numbers.items()}
    call(numbers)
    assert all(np.array_equal(numbers[name], kept[name]) for name in kept)


def test_tensors_of_any_stride_and_with_a_gradient(numbers):
    want = call(numbers)
    tensors = {name: torch.from_numpy(value) for name, value in numbers.items()}
    turned = {name: value.t().contiguous().t() if value.dim() == 2 else value for name, value in tensors.items()}
    assert not turned["logp"].is_contiguous() and not turned["mask"].is_contiguous() and same(call(turned), want)
    learned = tensors["logp"].clone().requires_grad_()
    got = call(tensors, logp=learned)
    assert same(got, want) and not got.coefficient.requires_grad and learned.grad is None
    assert same(call(tensors, logp=torch.nn.Parameter(tensors["logp"].clone())), want)
    gap = torch.tensor([[2.0]]).expand(8, 9)
    assert call(tensors, version_gap=gap).metrics["staleness"] == 2


@pytest.mark.parametrize("kind", [int, bool, np.int32, np.uint8])
def test_rewards_that_are_whole_numbers_or_booleans_are_converted(numbers, kind):
    right = np.arange(8) % 3 == 0
    want = call(numbers, rewards=right.astype(float))
    assert same(call(numbers, rewards=right.astype(kind)), want)
    assert same(call(numbers, rewards=right.astype(kind).tolist()), want)
    assert same(call(numbers, rewards=torch.from_numpy(right.astype(kind))), want)


def test_types_may_be_mixed(numbers):
    single = {name: value.astype(np.float32) if value.dtype == float else value for name, value in numbers.items()}
    wide = {name: value.astype(float) if value.dtype == np.float32 else value for name, value in single.items()}
    mixed = {**single, "logq": wide["logq"], "rewards": torch.from_numpy(wide["rewards"])}
    got = call(mixed)
    assert got.loss == call(wide).loss and got.coefficient.dtype == np.float32
    assert call(single).loss == got.loss


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused_by_policy_and_widened_by_loss(numbers, half):
    tensors = {name: torch.from_numpy(value) for name, value in numbers.items()}
    with pytest.raises(gepolab.InputError, match=f"logp is {str(half)[6:]}; float32 and float64 are taken"):
        call(tensors, logp=tensors["logp"].to(half))
    p, q = tensors["logp"].to(half).requires_grad_(), tensors["logq"].to(half)
    value = gepolab.loss(tensors["rewards"], p, q, "gepo", group_size=4, mask=tensors["mask"])
    value.backward()
    want = call(tensors, logp=p.detach().float(), logq=q.float(), rewards=tensors["rewards"].float())
    assert p.grad.dtype == half and value.dtype == torch.float32 and value.item() == pytest.approx(want.loss, rel=1e-6)
    assert torch.equal(p.grad, (-want.coefficient).to(half))


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"logp": np.zeros((8, 9), ">f8")}, "logp has bytes in the other order"),
        ({"logp": np.zeros((8, 9), int)}, "logp is int64; float32 and float64 are taken"),
        ({"logq": np.zeros((8, 9), complex)}, "logq is complex128"),
        ({"logq": np.zeros((8, 9), np.longdouble)}, "logq is "),
        ({"logq": np.zeros((8, 9), object)}, "logq is object"),
        ({"logp": np.ma.masked_less(np.full((8, 9), -1.0), 0)}, "logp is a masked array"),
        ({"logq": np.frombuffer(b"\0" * (8 * 72 + 1), np.uint8)[1:].view(np.float64).reshape(8, 9)}, "logq is not aligned"),
        ({"rewards": np.zeros(8, complex)}, "rewards is complex128"),
        ({"logp": torch.zeros(8, 9, device="meta")}, "logp is on meta: move it to the CPU"),
        ({"logp": torch.zeros(8, 9).to_sparse()}, "logp is a torch.sparse_coo tensor"),
        ({"logp": torch._neg_view(torch.ones(8, 9))}, "logp is a .* lazy view"),
        ({"logp": torch.nested.nested_tensor([torch.zeros(9)] * 8)}, "logp is a nested tensor"),
        ({"mask": torch.ones(8, 9, dtype=torch.int64)}, "mask is int64"),
    ],
)
def test_other_buffers_are_refused_by_name(numbers, changes, says):
    with pytest.raises(gepolab.InputError, match=says):
        call(numbers, **changes)


def test_responses_without_tokens_are_refused_in_every_layout(numbers):
    mask = numbers.pop("mask").copy()
    mask[5] = False
    with pytest.raises(gepolab.InputError, match="response 5 has no tokens"):
        call(numbers, mask=mask)
    with pytest.raises(gepolab.InputError, match="response 2 has no tokens"):
        call(numbers, lengths=np.array([3, 9, 0, 4, 5, 2, 7, 9]))
    with pytest.raises(gepolab.InputError, match="response 0 has no tokens"):
        call({**numbers, "logp": np.full(20, -1.0), "logq": np.full(20, -1.0)}, token_start=[0, 0, 2, 4, 6, 8, 10, 12, 20])
    with pytest.raises(gepolab.InputError, match="rewards has shape"):
        gepolab.policy(np.zeros(0), np.zeros((0, 9)), np.zeros((0, 9)), "gepo", group_size=4)
    with pytest.raises(gepolab.InputError):
        gepolab.policy(np.zeros(8), np.zeros((8, 0)), np.zeros((8, 0)), "gepo", group_size=4)


def test_two_threads_take_losses_and_gradients_at_once(numbers):
    tensors = {name: torch.from_numpy(value) for name, value in numbers.items()}
    rows = ("gepo", "m2po")
    want = {row: call(tensors, row) for row in rows}
    wrong = []

    def work(row):
        for _ in range(100):
            p = tensors["logp"].clone().requires_grad_()
            value = gepolab.loss(tensors["rewards"], p, tensors["logq"], row, group_size=4, mask=tensors["mask"])
            value.backward()
            if value.item() != want[row].loss or not torch.equal(p.grad, -want[row].coefficient):
                wrong.append(row)

    threads = [threading.Thread(target=work, args=(row,)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
