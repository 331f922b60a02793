"""Dumps of slime and miles: the trainers' own files give their numbers, and nothing in a file is run."""

import json
import pathlib
import pickle
import shutil
import zipfile

import pytest

import gepolab
from gepolab._dump import _load

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "token_logs"


@pytest.mark.parametrize("trainer", ["slime", "miles"])
def test_files_that_the_trainers_wrote_give_their_numbers(trainer):
    expected = json.loads((GOLDEN / f"expected-{trainer}.json").read_text())
    assert list(gepolab.read_dump(GOLDEN / trainer)) == expected


def test_a_file_alone_finds_the_rollout_beside_it():
    expected = json.loads((GOLDEN / "expected-slime.json").read_text())
    assert list(gepolab.read_dump(GOLDEN / "slime" / "train_data" / "10.pt")) == [expected[1]]


def test_a_log_of_it_is_one_that_whatif_reads(tmp_path):
    import os

    if not (os.environ.get("GEPOLAB") or shutil.which("gepolab")):
        pytest.skip("no gepolab command")
    assert gepolab.write_log(gepolab.read_dump(GOLDEN / "slime"), tmp_path / "run.jsonl") == 2
    told = gepolab.whatif(tmp_path / "run.jsonl", ["grpo", "gepo"])
    assert told == gepolab.whatif(gepolab.read_dump(GOLDEN / "slime"), ["grpo", "gepo"])
    assert told["updates"] == 2 and told["responses"] == 12 and told["unknown_staleness"] == 2


def test_what_is_no_update_is_not_written(tmp_path):
    with pytest.raises(gepolab.InputError, match="update 1 has neither groups nor rewards"):
        gepolab.write_log([{"foo": 1}], tmp_path / "run.jsonl")


def packed(path, pickled, storages=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("x/data.pkl", pickled)
        for name, raw in storages:
            file.writestr(f"x/data/{name}", raw)
    return path


class Runs:
    """A pickle that would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (pathlib.Path.touch, (pathlib.Path(self.path),))


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_in_a_file_is_run(tmp_path, protocol):
    hostile = packed(tmp_path / "1.pt", pickle.dumps({"rollout_id": Runs(str(tmp_path / "ran"))}, protocol))
    with pytest.raises(gepolab.InputError, match="holds (pathlib|builtins|copyreg|copy_reg|__builtin__).*only tensors and plain values are read"):
        _load(hostile)
    assert not (tmp_path / "ran").exists()


def test_names_that_pickles_can_reach_are_refused(tmp_path):
    for line in (b"cbuiltins\neval\n(V1+1\ntR.", b"cos\nsystem\n(Vtrue\ntR.", b"cnumpy\nload\n.", b"\x82\x01."):
        with pytest.raises(gepolab.InputError):
            _load(packed(tmp_path / "1.pt", line))


def tensor_file(path, size, stride, offset=0, kind="FloatStorage", n=4, raw=b"\0" * 16, key="0"):
    """A file with one tensor, put together by hand: protocol 2, as torch.save() writes."""
    kind_text = f"ctorch\n{kind}\n".encode()
    put = lambda value: pickle.dumps(value, 2)[2:-1]
    reference = b"(" + put("storage") + kind_text + put(key) + put("cpu") + put(n) + b"tQ"
    text = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + reference + put(offset) + put(size) + put(stride) + b"\x89ccollections\nOrderedDict\n)RtR."
    return packed(path, text, [("0", raw)])


def test_tensors_stay_within_their_storage(tmp_path):
    path = tmp_path / "1.pt"
    assert _load(tensor_file(path, (4,), (1,))).list() == [0, 0, 0, 0]
    assert _load(tensor_file(path, (2,), (2,), 1, raw=bytes(range(16)), kind="ByteStorage", n=16)).list() == [1, 3]
    assert _load(tensor_file(path, (2,), (1,), kind="BFloat16Storage", n=2, raw=b"\x80\x3f\x00\xc0")).list() == [1.0, -2.0]
    assert _load(tensor_file(path, (3,), (0,))).list() == [0, 0, 0]
    for size, stride, offset in (((5,), (1,), 0), ((2,), (4,), 0), ((1,), (1,), 4), ((2,), (-1,), 1), ((1 << 62,), (0,), -1), ((2, 2), (1,), 0)):
        with pytest.raises(gepolab.InputError, match="tensor"):
            _load(tensor_file(path, size, stride, offset))
    for change in ({"raw": b"\0" * 8}, {"key": "../0"}, {"key": "1"}, {"n": 1 << 60}, {"kind": "ComplexStorage"}):
        with pytest.raises(gepolab.InputError):
            _load(tensor_file(path, (1,), (1,), **change)).list()


def test_a_tensor_of_a_single_number_repeated_takes_no_memory(tmp_path):
    with pytest.raises(gepolab.InputError, match="more numbers than the file has bytes"):
        _load(tensor_file(tmp_path / "1.pt", (1 << 40,), (0,))).list()


def test_archives_that_torch_does_not_write_are_refused(tmp_path):
    good = pickle.dumps({"rollout_id": 1}, 2)
    with pytest.raises(gepolab.InputError, match="is compressed"):
        _load(packed(tmp_path / "1.pt", good + b" " * 1000, compression=zipfile.ZIP_DEFLATED))
    (tmp_path / "2.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(gepolab.InputError, match="is no zip file"):
        _load(tmp_path / "2.pt")
    whole = (GOLDEN / "slime" / "train_data" / "9.pt").read_bytes()
    for kept in range(0, len(whole), 101):
        (tmp_path / "3.pt").write_bytes(whole[:kept])
        with pytest.raises(gepolab.InputError):
            _load(tmp_path / "3.pt")


def test_damaged_bytes_are_refused_or_read(tmp_path):
    """Any byte changed: an InputError or a value, and no other error."""
    whole = bytearray((GOLDEN / "slime" / "train_data" / "9.pt").read_bytes())
    path = tmp_path / "train_data" / "9.pt"
    shutil.copytree(GOLDEN / "slime" / "rollout_data", tmp_path / "rollout_data")
    path.parent.mkdir()
    for at in range(0, len(whole), 17):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        path.write_bytes(changed)
        try:
            list(gepolab.read_dump(tmp_path))
        except gepolab.InputError:
            pass


def test_missing_and_renamed_fields_are_named(tmp_path):
    from gepolab._dump import _update

    sample = {"index": 1, "group_index": 0, "reward": {"math": 1.0, "format": 0.0}}
    row = {"sample_index": 1, "loss_masks": [0, 1], "log_probs": [-1.0, -2.0], "rollout_log_probs": [-1.0, -2.5]}
    with pytest.raises(gepolab.InputError, match="math, format; say which one with reward_key"):
        _update(1, [row], {1: sample}, None, "9.pt")
    assert _update(1, [row], {1: sample}, "math", "9.pt") == {"step": 1, "groups": [{"rewards": [1.0], "logp": [[-2.0]], "logq": [[-2.5]]}]}
    renamed = {("rollout_logprobs" if k == "rollout_log_probs" else k): v for k, v in row.items()}
    with pytest.raises(gepolab.InputError, match="rollout_log_probs is missing, which slime 0.3.1 and miles write .did you mean 'rollout_logprobs'"):
        _update(1, [renamed], {1: sample}, "math", "9.pt")
    with pytest.raises(gepolab.InputError, match="log_probs has 2 numbers, and loss_masks 3"):
        _update(1, [{**row, "loss_masks": [0, 1, 1]}], {1: sample}, "math", "9.pt")
    with pytest.raises(gepolab.InputError, match="sample 1 was trained, and is not in the rollout's dump"):
        _update(1, [row], {2: sample}, "math", "9.pt")
