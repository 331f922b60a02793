"""Losses of four algorithms and their gradients in PyTorch: what policy.c is measured beside.

Argument: threads. Requests: NAME eager, NAME compiled. 8 groups of 8 responses of 512 tokens, double
precision as in core/policy: advantages, ratios, clip, mean, and d loss / d logp by autograd; no
metrics, of which policy_evaluate() makes some twenty. Answers with tokens a second.
"""
import os
import sys

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import torch

import serve

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)

GROUPS, SIZE, TOKENS = 8, 8, 512
reward = torch.randint(2, (GROUPS, SIZE)).double()
logq = torch.rand(GROUPS, SIZE, TOKENS, dtype=torch.double).log()
logp = (logq + 0.02 * (torch.rand_like(logq) - 0.5)).clamp(max=0).requires_grad_()


def leave_one_out():
    return reward - (reward.sum(1, keepdim=True) - reward) / (SIZE - 1)


def normed():
    centred = reward - reward.mean(1, keepdim=True)
    return centred / (centred.square().sum(1, keepdim=True) / (SIZE - 1)).sqrt().add(1e-4)


def clipped(ratio, a, low, high):
    return torch.minimum(ratio * a, ratio.clamp(1 - low, 1 + high) * a)


def is_(logp):
    return -(leave_one_out() * (logp - logq).sum(2).exp()).mean()


def grpo(logp):
    return -clipped((logp - logq).exp(), normed()[..., None], 0.2, 0.2).mean()


def gspo(logp):
    return -clipped((logp - logq).mean(2).exp(), normed(), 3e-4, 4e-4).mean()


def gepo(logp):
    q = logq.sum(2)
    expected = torch.logsumexp(2 * q, 1, keepdim=True) - torch.logsumexp(q, 1, keepdim=True)
    a = reward - reward.mean(1, keepdim=True)
    return -clipped((logp.sum(2) - expected).exp(), a, 0.2, 0.2).mean()


LOSSES = {"is": is_, "grpo": grpo, "gspo": gspo, "gepo": gepo}


def work(name, how):
    loss = LOSSES[name]
    if how == "compiled":
        torch._dynamo.reset()
        loss = torch.compile(loss)

    def run():
        return torch.autograd.grad(loss(logp), logp)
    return serve.rates(run, GROUPS * SIZE * TOKENS, 0.2)


serve.answer(work)
