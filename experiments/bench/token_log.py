"""A NeMo-RL train_data_step*.jsonl read with orjson and summed with NumPy: what `gepolab whatif -a grpo -a gepo` is
measured beside.

Argument: threads (unused: orjson and NumPy's loops have one). Requests: PATH. Double precision; for both algorithms the
moments of the weights, their effective sample size, the fraction clipped, the variance of advantage times weight, the
norm of the coefficients, the fraction of idle tokens and the loss; for the batch the k3 divergence of tokens and responses
and the variance of log P/Q. Answers with bytes a second.
"""
import os
import sys
import time

import numpy as np
import orjson

import serve


def responses(path):
    """Reward, prompt, log p and log q of the trained tokens of each line."""
    with open(path, "rb") as file:
        for line in file:
            sample = orjson.loads(line)
            mask = np.array(sample["token_loss_mask"][0], bool)
            logp = np.array(sample["prev_logprobs"][0])[mask]
            logq = np.array(sample["generation_logprobs"][0])[mask]
            prompt = tuple(sample["token_ids"][0][: int(mask.argmax())])
            yield sample["rewards"][0], prompt, logp, logq


def moments(weight, starts, advantage, coefficient, clipped):
    """The numbers that whatif prints for an algorithm: weights [n], groups begin at starts, advantages [n]."""
    size = np.diff(np.append(starts, len(weight)))
    total, square = np.add.reduceat(weight, starts), np.add.reduceat(weight * weight, starts)
    aw = advantage * weight
    mean_aw, square_aw = np.add.reduceat(aw, starts) / size, np.add.reduceat(aw * aw, starts) / size
    return {
        "weight_mean": weight.mean(),
        "weight_max": weight.max(),
        "weight_variance": np.mean(square / size - (total / size) ** 2),
        "ess": np.mean(total * total / square / size),
        "clip_fraction": clipped.mean(),
        "aw_variance": np.mean(square_aw - mean_aw**2),
        "coefficient_norm": np.sqrt(np.square(coefficient).sum()),
        "idle_tokens": np.mean(coefficient == 0),
    }


def whatif(path):
    rewards, prompts, logps, logqs = zip(*responses(path))
    order = {prompt: i for i, prompt in reversed(list(enumerate(prompts)))}
    keys = np.array([order[prompt] for prompt in prompts])
    place = np.argsort(keys, kind="stable")
    reward, keys = np.array(rewards)[place], keys[place]
    group = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))  # first response of each group
    length = np.array([len(logps[i]) for i in place])
    token = np.cumsum(length) - length
    logp, logq = np.concatenate([logps[i] for i in place]), np.concatenate([logqs[i] for i in place])
    size = np.diff(np.append(group, len(reward)))
    mean = np.add.reduceat(reward, group) / size
    deviation = np.sqrt(np.add.reduceat((reward - np.repeat(mean, size)) ** 2, group) / np.maximum(size - 1, 1))
    centred = reward - np.repeat(mean, size)
    ratio = logp - logq
    weight = np.exp(ratio)
    told = {"kl_k3": np.mean(weight - ratio - 1), "kl_k3_seq": np.add.reduceat(weight - ratio - 1, token).mean()}
    sequence = np.add.reduceat(ratio, token)
    told["variance_pq"] = np.mean(np.add.reduceat(np.exp(sequence) ** 2, group) / size - (np.add.reduceat(np.exp(sequence), group) / size) ** 2)

    # grpo: token ratios, clipped to 0.2; mean over tokens, then over responses
    a = np.repeat(centred / (np.repeat(deviation, size) + 1e-4), length)
    scale = np.repeat(1 / length, length) / len(reward)
    low, high = np.clip(weight, 0.8, 1.2) * a, weight * a
    active = high <= low
    told["grpo"] = moments(weight, token, a, np.where(active, high, 0) * scale, ~active)
    told["grpo"]["loss"] = -np.sum(np.minimum(low, high) * scale)

    # gepo: P(y) / (sum Q^2 / sum Q) of whole responses
    p, q = np.add.reduceat(logp, token), np.add.reduceat(logq, token)
    top = np.repeat(np.maximum.reduceat(q, group), size)
    expected = np.log(np.add.reduceat(np.exp(2 * (q - top)), group)) - np.log(np.add.reduceat(np.exp(q - top), group))
    w = np.exp(p - np.repeat(expected, size) - top)
    low, high = np.clip(w, 0.8, 1.2) * centred, w * centred
    active = high <= low
    told["gepo"] = moments(w, group, centred, np.repeat(np.where(active, high, 0) / len(reward), length), ~active)
    told["gepo"]["loss"] = -np.minimum(low, high).mean()
    return told


def work(path):
    size = os.path.getsize(path)
    rates = []
    for _ in range(3):
        begun = time.perf_counter()
        whatif(path)
        rates.append(size / (time.perf_counter() - begun))
    return rates, f"orjson {orjson.__version__}, NumPy {np.__version__}"


if __name__ == "__main__":
    if len(sys.argv) == 3:
        begun = time.perf_counter()
        print(whatif(sys.argv[2]), time.perf_counter() - begun)
    else:
        serve.answer(work)
