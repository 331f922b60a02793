"""Gradients of laws renormalised over what a sampler kept, by autograd in PyTorch.

A tabular policy over four letters and three positions, temperature 0.8; the sampler keeps top-k 3, then
top-p 0.9. Writes replay.txt: one line of log-probabilities of the 64 responses (nan: not kept), one with the
gradient of a weighted sum of token log-probabilities, one with the gradient of the expected reward.

    python tests/golden/replay.py
"""
import itertools
import math
import pathlib

import torch

torch.set_default_dtype(torch.float64)
V, T, TEMPERATURE, TOP_K, TOP_P = 4, 3, 0.8, 3, 0.9
START = [0, 1, 1 + V]  # number of the first node of each level
N = V + V ** 2 + V ** 3
learner = torch.tensor([math.sin(1.3 * i + 0.2) for i in range(N)], requires_grad=True)
sampler = torch.tensor([1.2 * math.cos(0.7 * i) for i in range(N)])


def node(path):
    return START[len(path)] + sum(a * V ** (len(path) - 1 - t) for t, a in enumerate(path))


def logits(theta, path):
    return theta[node(path) * V:node(path) * V + V] / TEMPERATURE


def kept(path):
    p = torch.softmax(logits(sampler, path), 0).tolist()
    order = sorted(range(V), key=lambda a: (-p[a], a))[:TOP_K]
    mass, run = 0, []
    for a in order:
        run.append(a)
        mass += p[a]
        if mass >= TOP_P * sum(p[b] for b in order):
            break
    return sorted(run)


def tokens(y):
    """Log-probabilities of the response's tokens; None where one is not kept."""
    out = []
    for t in range(T):
        keep = kept(y[:t])
        if y[t] not in keep:
            return None
        z = logits(learner, y[:t])[keep]
        out.append((z - torch.logsumexp(z, 0))[keep.index(y[t])])
    return out


def reward(y):
    off = sum(y) % V
    return 1 - min(off, V - off) / (V // 2)


def line(values):
    return " ".join(f"{float(torch.as_tensor(v).detach()):.17g}" for v in values)


weighted, expected, logs = torch.tensor(0.0), torch.tensor(0.0), []
for y in itertools.product(range(V), repeat=T):
    k = y[0] * 16 + y[1] * 4 + y[2]
    logp = tokens(y)
    logs.append(math.nan if logp is None else sum(logp))
    if logp is None:
        continue
    weighted = weighted + sum(math.sin(1 + k + 0.3 * t) * logp[t] for t in range(T))
    expected = expected + torch.exp(sum(logp)) * reward(y)
first = torch.autograd.grad(weighted, learner, retain_graph=True)[0]
second = torch.autograd.grad(expected, learner)[0]
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(map(line, (logs, first, second))) + "\n")
