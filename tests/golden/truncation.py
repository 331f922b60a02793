"""Expected steps under truncated sampling by all pairs of responses in NumPy, sharing no code with
gepolab, and the propositions of paper/methods.md §7.10, which are asserted here.

Nine responses of two letters out of three; tabular logits: node 0, then one node per first letter. No
two tokens of a node are equally likely, so that what is kept does not hang on rounding.
Writes truncation.txt: for every case the expected step (12 numbers), then the kept mass, the drifts
in good and bad contexts and the cosine with the gradient on the kept tokens.
"""
import itertools
import pathlib

import numpy as np

P = np.array([.20, .06, .10, .02, .18, .14, .12, .08, .10]).reshape(3, 3)
Q = np.array([.11, .12, .08, .10, .09, .20, .04, .06, .20]).reshape(3, 3)
R = np.array([[(a + b) % 3 == 0 for b in range(3)] for a in range(3)], float)


def tables(joint):
    """Conditional laws of the four nodes."""
    return np.vstack([joint.sum(1), joint / joint.sum(1, keepdims=True)])


def keep(row, top_k, top_p):
    order = np.argsort(-row, kind="stable")
    if top_k:
        order = order[:top_k]
    if top_p < 1:
        mass, n, total = 0.0, 0, row[order].sum()
        while n == 0 or mass < top_p * total:
            mass += row[order[n]]
            n += 1
        order = order[:n]
    kept = np.zeros(3, bool)
    kept[order] = True
    return kept


def response(node_law, a, b):
    return node_law[0, a] * node_law[1 + a, b]


def score(p, a, b):
    s = np.zeros((4, 3))
    s[0] -= p[0]
    s[0, a] += 1
    s[1 + a] -= p[1 + a]
    s[1 + a, b] += 1
    return s


lines = []
pairs = list(itertools.product(range(3), repeat=2))
for joint_q in (P, Q):
    p, q = tables(P), tables(joint_q)
    for top_k, top_p in ((0, 0.6), (2, 1.0)):
        kept = np.array([keep(row, top_k, top_p) for row in q])
        drawn = np.where(kept, q, 0) / np.where(kept, q, 0).sum(1, keepdims=True)
        mass = (p * kept).sum(1)
        renormalised = p * kept / mass[:, None]
        b = sum(response(drawn, *y) * R[y] for y in pairs)
        worth = np.r_[b, [(drawn[1 + a] * R[a]).sum() for a in range(3)]]
        reach = np.r_[1, drawn[0]]
        # the gradient of the return of the learner's law on the kept tokens, sets held fixed
        J_kept = sum(response(renormalised, *y) * R[y] for y in pairs)
        grad_kept = sum(response(renormalised, *y) * (R[y] - J_kept) *
                        score(renormalised, *y) for y in pairs)
        slope = np.array([kept[n] * renormalised[n] - p[n] for n in range(4)])  # of log mass
        for weights in ("raw", "truncated"):
            for method in ("reinforce", "is"):
                seen = q if weights == "raw" else drawn
                E = np.zeros((4, 3))
                for y, z in itertools.product(pairs, repeat=2):
                    law = response(drawn, *y) * response(drawn, *z)
                    if law == 0:
                        continue
                    for i, j in ((y, z), (z, y)):
                        w = response(p, *i) / response(seen, *i) if method == "is" else 1.0
                        E += law * w * (R[i] - R[j]) * score(p, *i) / 2
                # Proposition 1: on-policy, weight 1.
                if joint_q is P and (method == "reinforce" or weights == "raw"):
                    drift = reach[:, None] * (worth - b)[:, None] * slope
                    assert np.allclose(E, grad_kept + drift, atol=1e-14, rtol=0)
                # Proposition 2: weights of the truncated law.
                if method == "is" and weights == "truncated":
                    side = sum(response(p, *y) * (R[y] - b) * score(p, *y)
                               for y in pairs if response(drawn, *y) > 0)
                    assert np.allclose(E, side, atol=1e-14, rtol=0)
                mass_slope = np.array([p[n] @ (kept[n] * E[n]) - mass[n] * (p[n] @ E[n])
                                       for n in range(4)])
                length = np.linalg.norm(E)
                partial = 1 - mass > 1e-14
                met = reach * partial
                good, bad = met * (worth - b > 1e-14), met * (worth - b < -1e-14)
                lines.append(" ".join(f"{v:.17g}" for v in E.ravel()))
                lines.append(" ".join(f"{v:.17g}" for v in (
                    (met @ mass) / met.sum(), good @ mass_slope / good.sum() / length,
                    bad @ mass_slope / bad.sum() / length,
                    (E * grad_kept).sum() / length / np.linalg.norm(grad_kept))))
        # Proposition 3: weights of the learner's law on the kept tokens, and its scores.
        E = np.zeros((4, 3))
        for y, z in itertools.product(pairs, repeat=2):
            law = response(drawn, *y) * response(drawn, *z)
            for i, j in ((y, z), (z, y)):
                if law > 0:
                    w = response(renormalised, *i) / response(drawn, *i)
                    E += law * w * (R[i] - R[j]) * score(renormalised, *i) / 2
        assert np.allclose(E, grad_kept, atol=1e-14, rtol=0)
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
