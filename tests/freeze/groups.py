"""Writes the inputs of `gepolab policy` and `gepolab whatif` that tests/freeze compares, the same on every machine.

    python3 tests/freeze/groups.py FOLDER

FOLDER/groups/NAME.json: those of tests/golden/policy_*.json, and random ones (every number from a generator of
64 bits that is written out below, and printed with six decimals). FOLDER/cases: a line for each case of
policy_cases.json: algorithm, input, and its fields that differ. FOLDER/log.jsonl, FOLDER/log_short.jsonl: logs of runs.
"""
import json
import os
import sys


class Draws:
    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return self.state >> 33

    def whole(self, low, high):
        return low + self.bits() % (high - low + 1)

    def between(self, low, high):
        return round(low + (high - low) * self.bits() / 2**31, 6)


LOGS = ("logp", "logq", "logprox", "logref")


def golden_groups(groups):
    """Groups of policy_cases.json, lists of responses, as `gepolab policy` reads them: a token's logarithms all
    less by what keeps them below 0, which leaves ratios as they are."""
    out = []
    for group in groups:
        one = {"rewards": [r["reward"] for r in group]}
        for field in LOGS:
            one[field] = [[round(v - max(0, *(r[f][t] for f in LOGS)), 6) for t, v in enumerate(r[field])] for r in group]
        for field in ("entropy", "version_gap"):
            one[field] = [r[field] for r in group]
        out.append(one)
    return out


def drawn(draws, groups, responses, tokens, spread, rewards="binary", fields=("logprox", "logref", "version_gap")):
    """Groups whose logp and logq lie up to `spread` apart; `responses` and `tokens` are ranges."""
    out = []
    for _ in range(groups):
        n = draws.whole(*responses)
        group = {"rewards": [], "logp": [], "logq": []}
        for field in fields:
            group[field] = []
        for i in range(n):
            t = draws.whole(*tokens)
            logp = [draws.between(-3, -0.05) for _ in range(t)]
            group["logp"].append(logp)
            group["logq"].append([min(round(p + draws.between(-spread, spread), 6), 0) for p in logp])
            for field in fields:
                group[field].append([draws.whole(0, 6) for _ in logp] if field == "version_gap" else
                                    [min(round(p + draws.between(-spread / 2, spread / 2), 6), 0) for p in logp])
            group["rewards"].append({"binary": i % 2 if n > 1 else 1, "equal": 1, "zero": 0, "graded": draws.between(-1, 2)}[rewards])
        out.append(group)
    return {"max_length": 64, "groups": out}


def inputs():
    by_hand = json.load(open("tests/golden/policy_by_hand.json"))
    yield "by_hand", by_hand["input"]
    for i, case in enumerate(json.load(open("tests/golden/policy_cases.json"))["inputs"]):
        one = {k: case[k] for k in ("max_length",) if case.get(k)}
        one["groups"] = golden_groups(case["groups"])
        for k, v in enumerate(case.get("log_denominator") or []):
            one["groups"][k]["log_denominator"] = v
        yield "case%d" % i, one
    draws = Draws(20261123)
    yield "even", drawn(draws, 4, (4, 4), (5, 5), 0.3)
    yield "ragged", drawn(draws, 5, (2, 9), (1, 17), 0.4, "graded")
    yield "one_token", drawn(draws, 3, (4, 6), (1, 1), 0.5)
    yield "equal_rewards", drawn(draws, 3, (4, 4), (2, 6), 0.3, "equal")
    yield "zero_rewards", drawn(draws, 2, (3, 3), (2, 6), 0.3, "zero")
    yield "masked", drawn(draws, 4, (4, 8), (3, 12), 2.5, "graded")  # ratios beyond every clip, gate and mask
    yield "extreme", drawn(draws, 3, (4, 4), (2, 8), 60)
    yield "on_policy", drawn(draws, 3, (4, 4), (3, 9), 0)
    yield "long", drawn(draws, 2, (3, 4), (200, 300), 0.05, "graded")
    yield "bare", drawn(draws, 2, (4, 4), (2, 6), 0.3, fields=())
    yield "one_response", drawn(draws, 2, (1, 1), (2, 6), 0.3, "graded")


def log(draws, updates, fields):
    for u in range(updates):
        one = drawn(draws, 2, (4, 4), (3, 8), 0.02 + u % 13 / 40, fields=fields)
        for group in one["groups"]:
            if "version_gap" in group:
                group["version_gap"] = [[u % 13] * len(t) for t in group["logp"]]
        yield json.dumps({"step": u, "time_s": 30.5 * u, "groups": one["groups"]})


def words(value):
    return "inf" if value == float("inf") else json.dumps(value) if not isinstance(value, str) else value


def main(folder):
    os.makedirs(folder + "/groups", exist_ok=True)
    for name, value in inputs():
        with open("%s/groups/%s.json" % (folder, name), "w") as f:
            json.dump(value, f)
    with open(folder + "/cases", "w") as f:
        for case in json.load(open("tests/golden/policy_cases.json"))["cases"]:
            change = ["%s=%s" % (k, words(v)) for k, v in sorted(case["change"].items())]
            if change:
                print("\t".join([case["algorithm"], "case%d" % case["input"]] + change), file=f)
    for name, updates, fields in (("log", 60, ("logprox", "logref", "version_gap")), ("log_short", 5, ())):
        with open("%s/%s.jsonl" % (folder, name), "w") as f:
            f.write("\n".join(log(Draws(7), updates, fields)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
