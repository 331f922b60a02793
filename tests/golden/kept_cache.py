#!/usr/bin/env python3
"""Laws of tokens drawn while weights change in the middle of a response, by transformers.

Three sets of weights of the tied model of tests/golden/qwen3: its own, and two with every number
moved by a known amount (moved() below), so that whoever reads the fixture can make them again.
Responses are given token by token; each goes over to the next set at places of its own. Token t is
drawn by the set in use at t, after that set has run what the model has not run yet: the prompt, or
the token before.

    keep       a response's keys and values stay those of the sets that computed them
               (transformers' DynamicCache, handed from one set's model to the next)
    recompute  before each token of a set, all keys and values are that set's own

Writes qwen3/kept_cache.safetensors, in float64 (whole numbers too):

    prompts, prompt_starts     tokens of the prompts, one after the other
    prompt_of                  [responses]
    tokens                     [responses, length]
    until                      [sets, responses] set s draws a response's tokens up to there
    temperature
    keep, recompute            [responses, length, vocabulary] log-probabilities of every next token

    python tests/golden/kept_cache.py
"""
import os

import torch
from safetensors.torch import save_file
from transformers import DynamicCache, Qwen3ForCausalLM

import qwen3

SETS, LENGTH, TEMPERATURE = 3, 9, 0.8
PROMPT_LENGTHS = [5, 1, 8]
PROMPT_OF = [0, 0, 1, 2, 0, 2, 1]
# Where each response leaves a set: in the middle of it, after one token, at once (so it begins with
# the next set, or has no token of this one), at its end (all of it is drawn by one set).
UNTIL = [[3, 5, 1, 4, 0, 4, 9],
         [6, 5, 2, 8, 4, 7, 9],
         [LENGTH] * len(PROMPT_OF)]
SAME = 4  # tokens that responses 0 and 1, and 3 and 5, begin with alike


def moved(values, s):
    """Set s of a tensor's float32 numbers: number i moves by a multiple of 1/512, by at most 50 of
    them; the sum is rounded to float32, so that models in float32 have the same weights."""
    i = torch.arange(values.numel(), dtype=torch.int64)
    step = (((i * (2 * s + 35) + i // 101) % 101) - 50).double() / 512
    return (values.double() + (step if s > 0 else 0 * step).reshape(values.shape)).float()


def models():
    all_sets = []
    for s in range(SETS):
        model = Qwen3ForCausalLM.from_pretrained(os.path.join(qwen3.HERE, "tied"),
                                                 dtype=torch.float32).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(moved(p, s))
        model.tie_weights()
        all_sets.append(qwen3.double_copy(model).eval())
    return all_sets


def set_at(response, t):
    return next(s for s in range(SETS) if t < UNTIL[s][response])


def law(logits):
    return torch.log_softmax(logits / TEMPERATURE, -1)


def keep_rows(model, response, prompt, tokens):
    """Each set's model runs only what the cache lacks, over whatever the cache has."""
    cache, rows, fresh = DynamicCache(), [], prompt
    for t in range(LENGTH):
        out = model[set_at(response, t)](input_ids=fresh[None], past_key_values=cache,
                                         use_cache=True)
        rows.append(law(out.logits[0, -1]))
        fresh = tokens[t : t + 1]
    assert cache.get_seq_length() == len(prompt) + LENGTH - 1
    return torch.stack(rows)


def recompute_rows(model, response, prompt, tokens):
    return torch.stack([law(model[set_at(response, t)](
        input_ids=torch.cat((prompt, tokens[:t]))[None], use_cache=False).logits[0, -1])
        for t in range(LENGTH)])


def main():
    model = models()
    vocabulary = model[0].config.vocab_size
    generator = torch.Generator().manual_seed(61)
    prompts = [torch.randint(0, vocabulary, (n,), generator=generator) for n in PROMPT_LENGTHS]
    tokens = torch.randint(0, vocabulary, (len(PROMPT_OF), LENGTH), generator=generator)
    tokens[1, :SAME] = tokens[0, :SAME]
    tokens[5, :SAME] = tokens[3, :SAME]
    with torch.no_grad():
        keep, anew = (torch.stack([rows(model, i, prompts[p], tokens[i])
                                   for i, p in enumerate(PROMPT_OF)])
                      for rows in (keep_rows, recompute_rows))
    apart = (keep - anew).abs().amax(-1)
    for i in range(len(PROMPT_OF)):
        first = set_at(i, 0)
        for t in range(LENGTH):
            if set_at(i, t) == first:
                assert apart[i, t] < 1e-12, (i, t)
            else:  # with keys and values of two sets it is another law
                assert apart[i, t] > 1e-2, (i, t, float(apart[i, t]))
    starts = [0]
    for p in prompts:
        starts.append(starts[-1] + len(p))
    out = {"prompts": torch.cat(prompts), "prompt_starts": torch.tensor(starts),
           "prompt_of": torch.tensor(PROMPT_OF), "tokens": tokens, "until": torch.tensor(UNTIL),
           "temperature": torch.tensor([TEMPERATURE], dtype=torch.float64),
           "keep": keep, "recompute": anew}
    path = os.path.join(qwen3.HERE, "kept_cache.safetensors")
    save_file({k: v.double().contiguous().clone() for k, v in out.items()}, path)
    os.chmod(path, 0o644)
    later = apart[apart > 1e-9]
    print(f"{path}: {os.path.getsize(path)} bytes; {len(later)} of {apart.numel()} laws differ, by "
          f"{float(later.min()):.3g} to {float(later.max()):.3g}")


if __name__ == "__main__":
    main()
