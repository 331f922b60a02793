#!/usr/bin/env python3
"""Gradients of a Qwen3 model's laws renormalised over kept tokens, by autograd in PyTorch.

Takes the tied model of tests/golden/qwen3 and the targets of tied.safetensors; another model of the
same shape keeps top-k 9, then top-p 0.8, of its own law of each target, and the target's own token in
any case. Writes qwen3/replay.safetensors, in float64:

    kept       [targets, vocabulary] 1 where the token was kept
    logp       of the targets, over the kept tokens, at tied.safetensors' temperature
    entropy    of the whole laws
    grad.NAME  gradient of sum coefficient * logp with respect to parameter NAME

    python tests/golden/replay_llm.py
"""
import os

import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen3ForCausalLM

import qwen3

TOP_K, TOP_P = 9, 0.8


def logits_of(model, golden):
    starts = [int(s) for s in golden["starts"]]
    tokens = golden["tokens"].long()
    return torch.cat([model(input_ids=tokens[a:b][None]).logits[0]
                      for a, b in zip(starts, starts[1:])])


def kept_of(law, target):
    order = sorted(range(len(law)), key=lambda a: (-float(law[a]), a))[:TOP_K]
    mass, total, run = 0.0, float(law[order].sum()), []
    for a in order:
        run.append(a)
        mass += float(law[a])
        if mass >= TOP_P * total:
            break
    return sorted(set(run) | {target})


def main():
    golden = load_file(os.path.join(qwen3.HERE, "tied.safetensors"))
    learner = qwen3.double_copy(Qwen3ForCausalLM.from_pretrained(os.path.join(qwen3.HERE, "tied")))
    sampler = qwen3.double_copy(learner.float())
    learner = qwen3.double_copy(learner)
    generator = torch.Generator().manual_seed(41)
    with torch.no_grad():
        for p in sampler.parameters():
            p.add_(0.08 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    rows = golden["target_row"].long()
    target = [int(t) for t in golden["target"]]
    temperature = float(golden["temperature"])
    drawn = torch.softmax(logits_of(sampler, golden).detach()[rows] / temperature, -1)
    z = logits_of(learner, golden)[rows] / temperature
    kept = torch.zeros_like(drawn)
    for j, t in enumerate(target):
        kept[j, kept_of(drawn[j], t)] = 1
    whole = torch.log_softmax(z, -1)
    over = torch.log_softmax(z.masked_fill(kept == 0, -torch.inf), -1)
    logp = over[torch.arange(len(target)), target]
    (golden["coefficient"].double() * logp).sum().backward()
    out = {"kept": kept, "logp": logp, "entropy": -(whole.exp() * whole).sum(-1)}
    out.update({"grad." + n: p.grad for n, p in learner.named_parameters()})
    save_file({k: v.detach().double().contiguous().clone() for k, v in out.items()},
              os.path.join(qwen3.HERE, "replay.safetensors"))
    print("kept of each law:", sorted(int(n) for n in kept.sum(-1)))


if __name__ == "__main__":
    main()
