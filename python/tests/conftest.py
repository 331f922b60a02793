"""What the tests share: random batches and, for trainers, a tiny model that needs no download."""

import numpy as np
import pytest


#: lines of the table of agreement with other trainers' losses, printed after the tests
agreement: "list[tuple[str, str, str, str, float, str]]" = []


@pytest.fixture(scope="session")
def table():
    return agreement


def pytest_terminal_summary(terminalreporter):
    if not agreement:
        return
    terminalreporter.section("agreement: loss and gradient, or advantages; largest difference over random batches")
    terminalreporter.write_line(f"{'trainer':8} {'setting':44} {'type':8} {'difference':>10}  row of gepolab")
    for trainer, setting, kind, row, worst, note in sorted(agreement, key=lambda line: (line[0], line[1], line[2] != "float64")):
        terminalreporter.write_line(f"{trainer:8} {setting:44} {kind:8} {worst:10.1e}  {row}{'  [' + note + ']' if note else ''}")


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
