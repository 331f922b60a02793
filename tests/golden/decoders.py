#!/usr/bin/env python3
"""Makes tests/golden/decoders/: tiny random Llama and Qwen2 models as Hugging Face transformers saves
them, and what transformers computes with them, as qwen3.py does for Qwen3 (with the same versions).

    decoders.py                       writes the fixture
    decoders.py --check OURS THEIRS   as qwen3.py --check

Fixture:
    llama/   no biases, Llama 3's scaling of the rotary embedding with pairs in each of its three ranges,
             an output embedding of its own, config.json as transformers 4 wrote it (rope_scaling)
    qwen2/   biases of q, k and v, a tied output embedding, config.json as transformers 5 writes it
    llama.safetensors, qwen2.safetensors   as qwen3/tied.safetensors
"""
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

import qwen3

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "decoders")


def make():
    shutil.rmtree(HERE, ignore_errors=True)
    os.makedirs(HERE)
    llama = qwen3.random_model(
        3, LlamaConfig, LlamaForCausalLM, vocab_size=31, hidden_size=32, intermediate_size=48,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        tie_word_embeddings=False, rms_norm_eps=1e-5,
        rope_parameters={"rope_theta": 1000.0, "rope_type": "llama3", "factor": 8.0,
                         "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 60})
    qwen2 = qwen3.random_model(
        4, Qwen2Config, Qwen2ForCausalLM, vocab_size=29, hidden_size=24, intermediate_size=40,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True)
    names = [n for n, _ in qwen2.named_parameters() if n.endswith(".bias")]
    assert len(names) == 6 and not any(n.endswith(".bias") for n, _ in llama.named_parameters())
    qwen3.old_config(qwen3.save(llama, "llama", HERE))
    qwen3.save(qwen2, "qwen2", HERE)
    for name, model, seed in (("llama", llama, 13), ("qwen2", qwen2, 14)):
        path = os.path.join(HERE, name + ".safetensors")
        save_file(qwen3.expected(model, seed), path)
        os.chmod(path, 0o644)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(HERE) for f in fs)
    print(f"{HERE}: {size} bytes")


def check(ours, theirs):
    a = AutoModelForCausalLM.from_pretrained(ours, dtype="auto")
    b = AutoModelForCausalLM.from_pretrained(theirs, dtype=a.dtype)
    sa, sb = a.state_dict(), b.state_dict()
    assert type(a) is type(b) and sa.keys() == sb.keys(), sa.keys() ^ sb.keys()
    for name in sa:
        assert torch.equal(sa[name].to(sb[name].dtype), sb[name]), name
    tokens = torch.arange(a.config.vocab_size)[None, :20]
    assert torch.equal(a(tokens).logits, b(tokens).logits)
    print(f"{type(a).__name__}: {len(sa)} tensors of type {a.dtype} equal bit for bit, logits too")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    else:
        make()
