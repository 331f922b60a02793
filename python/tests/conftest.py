"""What the tests share: random batches, the table of agreement with trainers, and a tiny model that needs no download."""

import pathlib
import re

import numpy as np
import pytest

import gepolab


#: lines of the table of agreement with other trainers' losses, printed after the tests
agreement: "list[tuple[str, str, str, str, float, str]]" = []


@pytest.fixture(scope="session")
def table():
    return agreement


#: repositories of tests/golden/methods_agreement.txt that are trainers; the others are those of the papers' authors
TRAINERS = {"TRL": "TRL", "verl": "verl", "AReaL": "AReaL", "prime-rl": "prime-rl", "slime": "slime, miles", "RL": "NeMo-RL", "SkyRL": "SkyRL",
            "ROLL": "ROLL", "OpenRLHF": "OpenRLHF"}  # fmt: skip


def measured():
    """By algorithm and trainer: the largest difference in float64 of all its settings; those that a trainer computes in float32 only where there
    are no others."""
    found: "dict[tuple[str, str], list[tuple[bool, float]]]" = {}
    for trainer, _, kind, row, worst, note in agreement:
        base = re.search(r"base: *(\w+)", row)
        if kind == "float64":
            found.setdefault((base.group(1) if base else row, trainer), []).append(("float32" in note, worst))
    return {key: max(worst for single, worst in lines if single == min(lines)[0]) for key, lines in found.items()}


def stored():
    """The same of tests/golden/methods_agreement.txt, made with the code of other trainers and of authors ("authors")."""
    path = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "methods_agreement.txt"
    found: "dict[tuple[str, str], float]" = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if not line.startswith("#"):
            words = line.split()
            key = (words[0], TRAINERS.get(words[-3], "authors"))
            found[key] = max(found.get(key, 0.0), float(words[-1]))
    return found


def agreement_table():
    """Lines: every published algorithm, a column for each trainer, and the reason where no code was compared."""
    now, before = measured(), stored()
    settings = {(s["algorithm"], s["trainer"]): s for s in gepolab.settings()}
    columns = [*TRAINERS.values(), "authors"]
    width = max(len(row["name"]) for row in gepolab.algorithms())
    yield "largest difference of loss and gradient (float64); * of gradients, stored (tests/golden/methods_agreement.txt)"
    yield "read: read, not run; run: under another row's name, or not in this session; -: the trainer has no such setting"
    yield f"{'':{width}} " + " ".join(f"{name.split(',')[0]:>8}" for name in columns)
    for row in gepolab.algorithms():
        cells = []
        for trainer in columns:
            key = (row["name"], trainer)
            basis = settings[key]["basis"] if key in settings else "-"
            cells.append(f"{now[key]:.1e}" if key in now else f"{before[key]:.1e}*" if key in before else basis.split(",")[0])
        compared = any(cell[0].isdigit() or cell == "run" for cell in cells)
        reason = "" if compared else "  " + ("no trainer has it" if set(cells) == {"-"} else "no code of it was run") + f"; source: {row['source']}"
        yield f"{row['name']:{width}} " + " ".join(f"{cell:>8}" for cell in cells) + reason


def pytest_terminal_summary(terminalreporter):
    if not agreement:
        return
    terminalreporter.section("agreement: loss and gradient, or advantages; largest difference over random batches")
    terminalreporter.write_line(f"{'trainer':8} {'setting':44} {'type':8} {'difference':>10}  row of gepolab")
    for trainer, setting, kind, row, worst, note in sorted(agreement, key=lambda line: (line[0], line[1], line[2] != "float64")):
        terminalreporter.write_line(f"{trainer:8} {setting:44} {kind:8} {worst:10.1e}  {row}{'  [' + note + ']' if note else ''}")
    terminalreporter.section("agreement of every algorithm with every trainer")
    for line in agreement_table():
        terminalreporter.write_line(line)


@pytest.fixture
def batch():
    """Eight responses of two groups: rewards, logp, logq, mask, in float64."""
    rng = np.random.default_rng(3)
    lengths = np.array([3, 9, 1, 4, 5, 2, 7, 9])
    mask = np.arange(9)[None] < lengths[:, None]
    logq = -rng.exponential(0.8, (8, 9)) - 0.05
    logp = np.minimum(logq + 0.1 * rng.standard_normal((8, 9)), -1e-3)
    return {"rewards": (rng.random(8) < 0.5).astype(float), "logp": logp, "logq": logq, "mask": mask, "lengths": lengths}


@pytest.fixture(scope="session")
def tiny():
    """A model of some thousand parameters and a tokenizer of characters, made here."""
    pytest.importorskip("transformers")
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    import torch

    words = {"<pad>": 0, "<eos>": 1, **{ch: i + 2 for i, ch in enumerate("0123456789+=? ")}}
    plain = Tokenizer(models.WordLevel(words, unk_token="?"))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    plain.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="?", padding_side="left")
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )
    return lambda: (LlamaForCausalLM(config), tokenizer)
