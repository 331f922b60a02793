"""Exact quantities of automaton worlds by listing every response in NumPy, sharing no code with
gepolab: expected reward and its gradient, both KL divergences, the mean kept mass of a token, and
the expected advantage under a truncated law.

Writes automaton.txt: for each world one line of numbers, then one line with the gradient. The
parameters are sin(1 + i) for the learner and cos(2 + i) for the sampler, so that no file of them is
needed. Parameters: a weight per last letter (0: none yet) and letter, then a weight per prompt,
last letter and letter.
"""
import itertools
import pathlib

import numpy as np


def balanced(letters, depth):
    def run(word):
        opened = deepest = 0
        for a in word:
            if a == 0:
                opened += 1
            elif a == 1:
                opened -= 1
            if opened < 0:
                return False
            deepest = max(deepest, opened)
        return opened == 0 and deepest == depth
    return run


def contains(wanted):
    def run(word):
        return any(list(word[i:i + len(wanted)]) == wanted for i in range(len(word)))
    return run


def count(letter, modulus, wanted):
    return lambda word: sum(a == letter for a in word) % modulus == wanted


# letters, horizon, end token, prompts, reward of (prompt, word), temperature, top_k, top_p
WORLDS = [
    (3, 5, False, 2, lambda x: count(1, 2, x), 1.0, 2, 1.0),
    (3, 4, True, 3, lambda x: count(2, 3, x), 0.7, 0, 0.8),
    (4, 4, True, 1, lambda x: contains([1, 1, 2]), 1.0, 3, 0.9),
    (3, 6, False, 2, lambda x: balanced(3, 1 + x % 2), 1.3, 0, 0.6),
]


def keep(p, top_k, top_p):
    """Which tokens top-k, then top-p keep of p; no ties here."""
    order = np.argsort(-p, kind="stable")
    if 0 < top_k < len(p):
        order = order[:top_k]
    if top_p < 1:
        mass, total, n = 0.0, p[order].sum(), 0
        while n == 0 or mass < top_p * total:
            mass += p[order[n]]
            n += 1
        order = order[:n]
    kept = np.zeros(len(p), bool)
    kept[order] = True
    return kept


def responses(letters, horizon, has_end):
    tokens = letters + (1 if has_end else 0)
    for n in range(1, horizon + 1):
        for word in itertools.product(range(letters), repeat=n - 1):
            for last in range(tokens):
                if n == horizon or last == letters:
                    yield word + (last,)


lines = []
for letters, horizon, has_end, prompts, reward_of, temperature, top_k, top_p in WORLDS:
    tokens = letters + (1 if has_end else 0)
    shared = (tokens + 1) * tokens
    n = shared * (1 + prompts)

    def logits(theta, x):
        both = theta[:shared] + theta[shared * (1 + x):shared * (2 + x)]
        return both.reshape(tokens + 1, tokens) / temperature

    theta_p, theta_q = np.sin(1.0 + np.arange(n)), np.cos(2.0 + np.arange(n))
    value = kl = kl_qp = kept_mass = truncated = 0.0
    gradient = np.zeros(n)
    for x in range(prompts):
        zp, zq = logits(theta_p, x), logits(theta_q, x)
        p = np.exp(zp - np.log(np.exp(zp).sum(1, keepdims=True)))
        q = np.exp(zq - np.log(np.exp(zq).sum(1, keepdims=True)))
        kept = np.array([keep(row, top_k, top_p) for row in q])
        mass = (q * kept).sum(1)
        J = 0.0
        expected_kept = expected_length = expected_truncated = 0.0
        scores = []
        for y in responses(letters, horizon, has_end):
            last, py, qy, ty, score, masses = 0, 1.0, 1.0, 1.0, np.zeros((tokens + 1, tokens)), 0.0
            for a in y:
                py *= p[last, a]
                qy *= q[last, a]
                ty *= q[last, a] / mass[last] if kept[last, a] else 0.0
                score[last] -= p[last] / temperature
                score[last, a] += 1 / temperature
                masses += mass[last]
                last = a + 1
            r = float(reward_of(x)([a for a in y if a < letters]))
            J += py * r
            kl += py * np.log(py / qy) / prompts
            kl_qp += qy * np.log(qy / py) / prompts
            expected_kept += ty * masses
            expected_length += ty * len(y)
            expected_truncated += ty * r
            scores.append((py, r, score))
        for py, r, score in scores:
            g = py * (r - J) * score.ravel() / prompts
            gradient[:shared] += g
            gradient[shared * (1 + x):shared * (2 + x)] += g
        value += J / prompts
        kept_mass += expected_kept / expected_length / prompts
        truncated += expected_truncated / prompts
    lines.append(" ".join(f"{v:.17g}" for v in (value, kl, kl_qp, kept_mass, truncated)))
    lines.append(" ".join(f"{v:.17g}" for v in gradient))
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
