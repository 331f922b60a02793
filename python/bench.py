"""Time of a loss and its gradient: gepolab on PyTorch's buffers against the same loss in PyTorch eager, same threads.

    python bench.py [--threads N] [--repetitions R]

A batch of 64 groups of 8 responses of 1,024 tokens, float32, padded with masks of varying lengths. Each method is checked for equality
(1e-4 of the largest gradient) before it is timed; medians are printed. Run it on an idle machine.
"""

import argparse
import statistics
import time

import numpy as np
import torch

import gepolab

GROUPS, SIZE, TOKENS = 64, 8, 1024


def advantages(rewards, scaled):
    r = rewards.view(-1, SIZE)
    a = r - r.mean(1, keepdim=True)
    return (a / (r.std(1, keepdim=True) + 1e-4) if scaled else a).reshape(-1, 1)


def sequence_mean(term, mask):
    return -((term * mask).sum(1) / mask.sum(1)).mean()


def grpo(logp, logq, rewards, mask):
    a = advantages(rewards, True)
    ratio = torch.exp(logp - logq)
    return sequence_mean(torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a), mask)


def cispo(logp, logq, rewards, mask):
    a = advantages(rewards, True)
    ratio = torch.exp(logp - logq).clamp(max=5.0).detach()
    return -((ratio * a * logp) * mask).sum() / mask.sum()


def gspo(logp, logq, rewards, mask):
    a = advantages(rewards, True)
    ratio = torch.exp(((logp - logq) * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True))
    return -torch.min(ratio * a, ratio.clamp(1 - 3e-4, 1 + 4e-4) * a).mean()


def gepo(logp, logq, rewards, mask):
    """P over the group's expectation of Q under Q, of geometric means, as the released code."""
    a = advantages(rewards, False)
    n = mask.sum(1)
    p, q = (logp * mask).sum(1) / n, ((logq * mask).sum(1) / n).view(-1, SIZE)
    log_expectation = torch.logsumexp(2 * q, 1) - torch.logsumexp(q, 1)
    ratio = torch.exp(p - log_expectation.repeat_interleave(SIZE)).view(-1, 1)
    return -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()


def m2po(logp, logq, rewards, mask):
    """Tokens leave, largest squared log-ratio first among those a clip could touch, until the mean square is at most tau."""
    a = advantages(rewards, True)
    log_ratio = logp - logq
    with torch.no_grad():
        candidates = mask & (((a > 0) & (log_ratio > 0)) | ((a < 0) & (log_ratio < 0)))
        square = (log_ratio[candidates] ** 2).double()
        order, where = torch.sort(square, descending=True)
        left = order.flip(0).cumsum(0).flip(0) / torch.arange(len(order), 0, -1)
        drop = int((left > 0.04).sum())
        keep = mask.clone()
        flat = candidates.nonzero()[where[:drop]]
        keep[flat[:, 0], flat[:, 1]] = False
    return -(torch.exp(log_ratio) * a * keep).sum() / mask.sum()


PEERS = {
    "gepo": (gepo, "gepo_released"),
    "grpo": (grpo, "{base: grpo, old_policy: sampler}"),
    "gspo": (gspo, "{base: gspo, old_policy: sampler}"),
    "cispo": (cispo, "{base: cispo, old_policy: sampler}"),
    "m2po": (m2po, "m2po"),
}


def median(run, repetitions):
    run()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--threads", type=int, default=torch.get_num_threads())
    words.add_argument("--repetitions", type=int, default=15)
    asked = words.parse_args()
    torch.set_num_threads(asked.threads)
    rng = np.random.default_rng(1)
    n = GROUPS * SIZE
    lengths = torch.tensor(rng.integers(TOKENS // 4, TOKENS + 1, n))
    mask = torch.arange(TOKENS)[None] < lengths[:, None]
    logq = torch.tensor(-rng.exponential(0.6, (n, TOKENS)) - 0.01, dtype=torch.float32)
    logp = (logq + torch.tensor(0.1 * rng.standard_normal((n, TOKENS)), dtype=torch.float32)).clamp(max=-1e-4)
    rewards = torch.tensor(rng.random(n) < 0.5).float()
    tokens = int(mask.sum())
    print(f"{tokens:,} tokens, {asked.threads} threads of PyTorch, medians of {asked.repetitions}")
    print(f"{'row':8}{'PyTorch eager, ms':>20}{'gepolab, ms':>14}{'ratio':>8}{'M tokens/s':>12}")
    for name, (peer, row) in PEERS.items():
        a, b = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        algorithm = gepolab.Algorithm(row)

        def theirs():
            a.grad = None
            peer(a, logq, rewards, mask).backward()

        def ours():
            b.grad = None
            gepolab.loss(rewards, b, logq, algorithm, group_size=SIZE, mask=mask, threads=asked.threads).backward()

        theirs(), ours()
        difference = float((a.grad - b.grad).abs().max() / a.grad.abs().max())
        if not difference < 1e-4:
            print(f"{name:8} differs by {difference:.1e} of the largest gradient: not timed")
            continue
        t, o = median(theirs, asked.repetitions), median(ours, asked.repetitions)
        print(f"{name:8}{1e3 * t:20.2f}{1e3 * o:14.2f}{t / o:8.2f}{tokens / o / 1e6:12.1f}")


if __name__ == "__main__":
    main()
