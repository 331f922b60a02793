"""A second simulation of prompts from several sources and of quotas, for `sim: sources`.

Written from paper/methods.md 10.15 and not from the program: there is no queue of events. Time moves to the nearest moment at
which anything can happen, and every sampler is then looked at. Writes sources.txt: for every case its cluster and the number of
updates; for every update its start and a sum that says which groups it takes; for every source how many groups were begun, trained,
dropped and rejected, and the staleness of the trained ones, summed.

    python tests/golden/sources.py
"""
import math
import pathlib

from environment import FAILURE, between as draw
from units import GROUP, INF, between

UPDATES = 60


class Group:
    def __init__(self, case, sampler, ordinal, version, number, now, source):
        own = sampler << 32 | ordinal
        law = case["sources"][source][2]
        self.version, self.number, self.start, self.source = version, number, now, source
        self.lengths = [max(math.floor(between(law, own, k) + 0.5), 1) for k in range(GROUP)]
        self.begun = self.ended = 0
        self.arrives = INF


class Sampler:
    def __init__(self, speed):
        self.speed, self.version, self.running, self.open, self.ordinal = speed, 0, [], None, 0


def next_source(case, take, alive, number):
    total = sum(weight for weight, _, _ in case["sources"])
    parts = [weight / total for weight, _, _ in case["sources"]]
    if case["quotas"]:
        of = [sum(u.source == s for u in alive) for s in range(len(parts))]
        return min(range(len(parts)), key=lambda s: of[s] / round(parts[s] * take))
    chance = draw((0, 1), FAILURE, (7 << 60) + number, 0)
    for s, part in enumerate(parts[:-1]):
        if chance < part:
            return s
        chance -= part
    return len(parts) - 1


def chosen_of(case, take, waiting):
    """The groups of the next update; none: it must wait."""
    line = waiting if case["queue"] == "fifo" else waiting[::-1]
    if not case["quotas"]:
        return line[:take] if len(line) >= take else []
    total = sum(weight for weight, _, _ in case["sources"])
    left = [round(weight / total * take) for weight, _, _ in case["sources"]]
    chosen = []
    for unit in line:
        if left[unit.source] > 0:
            left[unit.source] -= 1
            chosen.append(unit)
    return chosen if len(chosen) == take else []


def simulate(case):
    take = case["take"]
    surplus = math.ceil((case["oversample"] - 1) * take)
    samplers = [Sampler(v) for v in case["speeds"]]
    weights, flying, waiting, updates = [], [], [], []
    counts = [[0] * 5 for _ in case["sources"]]  # begun, trained, dropped, rejected, staleness
    alive, trained = [], []  # alive: begun and neither dropped nor rejected, trained ones included
    now, version, ends, number = 0.0, 0, None, 0

    def drop(unit, how):
        alive.remove(unit)
        counts[unit.source][how] += 1

    def next_update():
        if case["surplus"] == "abort":
            return len(updates) + (len(alive) - take * len(updates)) // (take + surplus)
        return max(len(alive) - surplus, 0) // take

    while True:
        if ends == now:
            version, ends = version + 1, None
            if version == UPDATES:
                return updates, counts
            weights += [(now + case["delay"], i, version) for i in range(len(samplers))]
        for s in samplers:
            for r in [r for r in s.running if r[0] == now]:
                s.running.remove(r)
                r[1].ended += 1
                if r[1].ended == GROUP:
                    r[1].arrives = now + case["data_delay"]
                    flying.append(r[1])
        for w in [w for w in weights if w[0] == now]:
            weights.remove(w)
            samplers[w[1]].version = w[2]
        for unit in [u for u in flying if u.arrives == now]:
            flying.remove(unit)
            if draw((0, 1), FAILURE, (1 << 61) + unit.number, 0) < case["sources"][unit.source][1]:
                drop(unit, 3)
            elif case["surplus"] == "abort" and updates and unit.start < updates[-1][0]:
                drop(unit, 2)
            else:
                waiting.append(unit)
        if ends is None and chosen_of(case, take, waiting):
            for unit in [u for u in waiting if version - u.version > case["window"]]:
                waiting.remove(unit)
                drop(unit, 2)
        chosen = chosen_of(case, take, waiting) if ends is None else []
        if chosen:
            for unit in chosen:
                waiting.remove(unit)
                counts[unit.source][1] += 1
                counts[unit.source][4] += version - unit.version
            updates.append((now, [u.number for u in chosen]))
            ends = now + case["step"]
            if case["surplus"] == "abort":
                started = {u for s in samplers for u in [r[1] for r in s.running] + [s.open] if u}
                for unit in waiting + sorted(started, key=lambda u: u.number):
                    drop(unit, 2)
                waiting = []
                for s in samplers:
                    s.running, s.open = [], None
        for i, s in enumerate(samplers):
            while len(s.running) < case["concurrency"]:
                if s.open is None:
                    if next_update() - s.version > case["ahead"]:
                        break
                    source = next_source(case, take, alive, number)
                    s.open = Group(case, i, s.ordinal, s.version, number, now, source)
                    alive.append(s.open)
                    counts[source][0] += 1
                    s.ordinal, number = s.ordinal + 1, number + 1
                unit = s.open
                s.running.append([now + unit.lengths[unit.begun] / case["tokens_per_s"] / s.speed, unit])
                unit.begun += 1
                if unit.begun == GROUP:
                    s.open = None
        moments = [r[0] for s in samplers for r in s.running] + [w[0] for w in weights]
        moments += [u.arrives for u in flying] + ([ends] if ends is not None else [])
        now = min(moments)


def text(case):
    sources = ", ".join(f"{{name: s{k}, weight: {w}, reject: {reject}, lengths: {{distribution: uniform, min: {law[0]}, max: {law[1]}}}}}"
                        for k, (w, reject, law) in enumerate(case["sources"]))
    speeds = ", ".join(f"{{speed: {v}}}" for v in case["speeds"])
    limits = (f"ahead: {case['ahead']}, " if case["ahead"] < INF else "") + f"window: {min(case['window'], 1000)}, "
    return (f"{{preset: fifo, unit: group, partial: continue, kv_cache: keep, sync: push, samples_per_batch: {GROUP * case['take']}, "
            f"samplers: [{speeds}], lengths: 9, tokens_per_s: {case['tokens_per_s']}, concurrency: {case['concurrency']}, "
            f"delay: {case['delay']}, data_delay: {case['data_delay']}, {limits}oversample: {case['oversample']}, "
            f"surplus: {case['surplus']}, sources: [{sources}], learner: {{batches: 1, step: {case['step']}, queue: {case['queue']}, "
            f"quotas: {str(case['quotas']).lower()}}}}}")


def cases():
    plain = {"take": 8, "speeds": (1, 0.7, 1.6), "tokens_per_s": 40, "concurrency": 20, "delay": 3.17, "data_delay": 1.93, "ahead": 2,
             "window": INF, "oversample": 1, "surplus": "carry", "queue": "fifo", "quotas": True, "step": 4.41,
             "sources": ((4, 0, (50, 400)), (3, 0, (200, 900)), (1, 0, (900, 2500)))}
    rejecting = {**plain, "sources": ((4, 0.2, (50, 400)), (3, 0.45, (200, 900)), (1, 0.7, (900, 2500)))}
    for base in plain, rejecting:
        for quotas in True, False:
            yield {**base, "quotas": quotas}
            yield {**base, "quotas": quotas, "ahead": INF, "window": 3}
            yield {**base, "quotas": quotas, "ahead": 0, "oversample": 1.5, "surplus": "abort"}
            yield {**base, "quotas": quotas, "ahead": 1, "oversample": 1.5, "queue": "lifo"}
    yield {**rejecting, "take": 16, "concurrency": 64, "ahead": 1, "window": 2}
    yield {**rejecting, "speeds": (1,), "concurrency": 8, "ahead": 0, "window": 0}


if __name__ == "__main__":
    with open(pathlib.Path(__file__).parent / "sources.txt", "w") as out:
        for case in cases():
            updates, counts = simulate(case)
            out.write(f"{text(case)}\n{len(updates)} {len(counts)}\n")
            for start, numbers in updates:
                out.write(f"{start!r} {sum((n + 1) ** 2 for n in numbers)}\n")
            for of in counts:
                out.write(" ".join(str(n) for n in of) + "\n")
