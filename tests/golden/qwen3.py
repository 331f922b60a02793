#!/usr/bin/env python3
"""Makes tests/golden/qwen3/: tiny random Qwen3 models as Hugging Face transformers saves them, and
what transformers computes with them. Needs torch, transformers, safetensors (made with 2.15, 5.23,
0.8).

    qwen3.py                       writes the fixture
    qwen3.py --check OURS THEIRS   compares a folder gepolab wrote with the folder it had loaded:
                                   transformers must load it and find every tensor equal bit for bit
                                   and the same logits

Fixture:
    tied/      config.json (as transformers 5 writes it), model.safetensors (F32)
    tied_bf16/ tied_f16/   the same parameters, rounded by torch
    untied/    three layers, one key/value head, an output embedding of its own, in shards, with a
               config.json as transformers 4 wrote it (rope_theta, rope_scaling)
    tied.safetensors, untied.safetensors: in float64,
        tokens, starts           packed sequences of several lengths
        logits                   [rows, vocabulary]
        logits_f32               the same by unchanged transformers in float32, as one padded batch
        target_row, target, coefficient, temperature
        logp, entropy            of the targets at that temperature
        grad.NAME                gradient of sum coefficient * logp with respect to parameter NAME
    optimizer.safetensors        trajectories of torch.optim on given gradients

transformers computes norms and rotary angles in float32 even where the model is double; for the
float64 numbers those two are replaced by the same formulas in double precision.
"""
import json
import math
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "qwen3")
LENGTHS = [7, 1, 12, 3, 9]
TEMPERATURE = 0.7


def norm_in_own_precision(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def slowed(rate, rope):
    """Llama 3's scaling, the formula of transformers' _compute_llama3_parameters."""
    turns = rope["original_max_position_embeddings"] * rate / (2 * math.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    part = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - part) * rate / rope["factor"] + part * rate


def rotary_in_double(self, x, position_ids):
    dim, rope = 2 * len(self.inv_freq), self.config.rope_parameters
    rate = rope["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope["rope_type"] == "llama3":
        rate = slowed(rate, rope)
    assert (rate / self.inv_freq - 1).abs().max() < 1e-6
    angle = position_ids[..., None].double() * rate
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def double_copy(model):
    twin = type(model)(model.config).double()
    twin.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    for module in twin.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = norm_in_own_precision.__get__(module)
        if type(module).__name__.endswith("RotaryEmbedding"):
            module.forward = rotary_in_double.__get__(module)
    return twin


def random_model(seed, config_class=Qwen3Config, model_class=Qwen3ForCausalLM, **sizes):
    config = config_class(max_position_embeddings=64, initializer_range=0.05, bos_token_id=1,
                          eos_token_id=2, pad_token_id=0, **sizes)
    model = model_class(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            noise = torch.randn(p.shape, generator=generator)
            p.copy_(1 + 0.3 * noise if p.dim() == 1 else 0.25 * noise)
    model.tie_weights()
    return model.eval()


def expected(model, seed):
    generator = torch.Generator().manual_seed(seed)
    vocabulary = model.config.vocab_size
    # Not token 0: transformers gives the padding token's embedding no gradient.
    sequences = [torch.randint(1, vocabulary, (n,), generator=generator) for n in LENGTHS]
    longest = max(LENGTHS)
    padded = torch.zeros(len(LENGTHS), longest, dtype=torch.long)
    mask = torch.zeros_like(padded)
    for i, s in enumerate(sequences):
        padded[i, : len(s)] = s
        mask[i, : len(s)] = 1
    single = model(input_ids=padded, attention_mask=mask).logits
    twin = double_copy(model)
    wide = twin(input_ids=padded, attention_mask=mask).logits
    alone = [twin(input_ids=s[None]).logits[0] for s in sequences]
    assert all((wide[i, : len(s)] - a).abs().max() < 1e-12 for i, (s, a) in
               enumerate(zip(sequences, alone)))
    assert (wide - single)[mask.bool()].abs().max() < 1e-4

    logits = torch.cat(alone)
    starts = [0]
    rows, targets = [], []
    for s in sequences:
        for t in range(len(s) - 1):
            if torch.rand((), generator=generator) < 0.8:
                rows.append(starts[-1] + t)
                targets.append(int(s[t + 1]))
        starts.append(starts[-1] + len(s))
    log_law = torch.log_softmax(logits[rows] / TEMPERATURE, -1)
    logp = log_law[torch.arange(len(rows)), targets]
    entropy = -(log_law.exp() * log_law).sum(-1)
    coefficient = torch.randn(len(rows), generator=generator, dtype=torch.float64)
    (coefficient * logp).sum().backward()
    out = {"tokens": torch.cat(sequences), "starts": torch.tensor(starts), "logits": logits,
           "logits_f32": torch.cat([single[i, : len(s)] for i, s in enumerate(sequences)]),
           "target_row": torch.tensor(rows), "target": torch.tensor(targets),
           "coefficient": coefficient, "temperature": torch.tensor([TEMPERATURE], dtype=torch.float64),
           "logp": logp, "entropy": entropy}
    out.update({"grad." + n: p.grad for n, p in twin.named_parameters()})
    return {k: v.detach().double().contiguous().clone() for k, v in out.items()}


def trajectories():
    """20 steps of three parameters' tensors under each of torch's optimisers."""
    generator = torch.Generator().manual_seed(5)
    n, steps = 24, 20
    start = torch.randn(n, generator=generator, dtype=torch.float64)
    gradients = torch.randn(steps, n, generator=generator, dtype=torch.float64)
    kinds = {
        "adamw": lambda p: torch.optim.AdamW([p], lr=0.01, betas=(0.8, 0.97), eps=1e-6,
                                             weight_decay=0.1),
        "adam": lambda p: torch.optim.Adam([p], lr=0.01, betas=(0.8, 0.97), eps=1e-6,
                                           weight_decay=0.1),
        "sgd": lambda p: torch.optim.SGD([p], lr=0.05, momentum=0.7, weight_decay=0.1),
        "plain": lambda p: torch.optim.SGD([p], lr=0.05),
    }
    out = {"start": start, "gradients": gradients}
    for name, make in kinds.items():
        p = torch.nn.Parameter(start.clone())
        optimizer, rows = make(p), []
        for g in gradients:
            p.grad = g.clone()
            optimizer.step()
            rows.append(p.detach().clone())
        out[name] = torch.stack(rows)
    return out


def old_config(folder):
    """config.json as transformers 4 wrote it."""
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    rope = config.pop("rope_parameters")
    theta, scaled = rope.pop("rope_theta"), rope["rope_type"] != "default"
    config.update(rope_theta=theta, rope_scaling=rope if scaled else None, torch_dtype="float32")
    config.pop("dtype", None)
    config.pop("layer_types", None)
    with open(path, "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)


def save(model, folder, here=HERE, **how):
    path = os.path.join(here, folder)
    model.save_pretrained(path, **how)
    os.remove(os.path.join(path, "generation_config.json"))
    for name in os.listdir(path):
        os.chmod(os.path.join(path, name), 0o644)
    return path


def make():
    shutil.rmtree(HERE, ignore_errors=True)
    os.makedirs(HERE)
    tied = random_model(1, vocab_size=37, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                        num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                        tie_word_embeddings=True,
                        rope_parameters={"rope_theta": 1000.0, "rope_type": "default"})
    untied = random_model(2, vocab_size=29, hidden_size=24, intermediate_size=40,
                          num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1,
                          head_dim=8, tie_word_embeddings=False, rms_norm_eps=1e-5)
    save(tied, "tied")
    old_config(save(untied, "untied", max_shard_size="20KB"))
    save_file(expected(tied, 11), os.path.join(HERE, "tied.safetensors"))
    save_file(expected(untied, 12), os.path.join(HERE, "untied.safetensors"))
    save_file(trajectories(), os.path.join(HERE, "optimizer.safetensors"))
    save(tied.bfloat16(), "tied_bf16")
    tied = Qwen3ForCausalLM.from_pretrained(os.path.join(HERE, "tied"), dtype=torch.float32)
    save(tied.half(), "tied_f16")
    for name in os.listdir(HERE):
        if name.endswith(".safetensors"):
            os.chmod(os.path.join(HERE, name), 0o644)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(HERE) for f in fs)
    print(f"{HERE}: {size} bytes")


def check(ours, theirs):
    a = Qwen3ForCausalLM.from_pretrained(ours, dtype="auto")
    b = Qwen3ForCausalLM.from_pretrained(theirs, dtype=a.dtype)
    sa, sb = a.state_dict(), b.state_dict()
    assert sa.keys() == sb.keys(), sa.keys() ^ sb.keys()
    for name in sa:
        assert torch.equal(sa[name].to(sb[name].dtype), sb[name]), name
    tokens = torch.arange(a.config.vocab_size)[None, :20]
    assert torch.equal(a(tokens).logits, b(tokens).logits)
    print(f"{len(sa)} tensors of type {a.dtype} equal bit for bit, logits too")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    else:
        make()
