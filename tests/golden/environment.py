"""A second simulation of environments between turns, for `sim: environment`.

Written from paper/methods.md 10.15 and not from the program: every response is an object with a state and a moment at
which the state ends, and time moves to the nearest of these moments (no queue of events, no events to be ignored).
Lengths, turns and times of calls come from Philox at the addresses that the methods state. Writes environment.txt: for
every case its cluster, the calls that have begun, the mean wait for a place, and when each response ended with its
sampler and ordinal.

    python tests/golden/environment.py
"""
import pathlib

from units import SEED, philox

RESPONSES = 150
LENGTH, FAILURE = 8, 10
INF = float("inf")


def uniform(purpose, entity, index):
    words = philox((SEED, 0), (index, entity & 0xFFFFFFFF, entity >> 32, purpose << 16))
    return ((words[0] << 21 ^ words[1] >> 11) | 1) * 2.0 ** -53


def between(law, purpose, entity, index):
    return law[0] + (law[1] - law[0]) * uniform(purpose, entity, index)


class Response:
    def __init__(self, case, sampler, ordinal, number):
        tokens = int(between(case["lengths"], LENGTH, sampler << 32 | ordinal, 0) + 0.5)
        self.sampler, self.ordinal, self.number = sampler, ordinal, number
        self.turns = max(int(between(case["turns"], FAILURE, (5 << 60) + number, 0) + 0.5), 1)
        self.turn = tokens / 10 / case["speeds"][sampler] / self.turns
        self.ended = 0
        self.state, self.until, self.since = "decodes", None, None


def simulate(case):
    frees = case["slot"] == "freed"
    under_way, queue, done, waits = [], [], [], []
    back = [[] for _ in case["speeds"]]
    ordinal, number, now = [0] * len(case["speeds"]), 0, 0.0
    while len(done) < RESPONSES:
        while queue and sum(r.state == "calls" for r in under_way) < case["places"]:
            r = queue.pop(0)
            waits.append(now - r.since)
            r.state = "calls"
            r.until = now + between(case["time"], FAILURE, (6 << 60) + r.number, r.ended)
        for s in range(len(case["speeds"])):
            slots = lambda: sum(r.sampler == s and (r.state == "decodes" or (not frees)) for r in under_way)
            while slots() < case["concurrency"]:
                if back[s]:
                    r = back[s].pop(0)
                else:
                    r = Response(case, s, ordinal[s], number)
                    ordinal[s], number = ordinal[s] + 1, number + 1
                    under_way.append(r)
                r.state, r.until = "decodes", now + r.turn
        now = min(r.until for r in under_way if r.until is not None)
        for r in [r for r in under_way if r.until == now]:
            r.until = None
            if r.state == "decodes":
                r.ended += 1
                if r.ended == r.turns:
                    under_way.remove(r)
                    done.append((now, r.sampler, r.ordinal))
                else:
                    r.state, r.since = "queues", now
                    queue.append(r)
            elif frees:
                r.state = "back"
                back[r.sampler].append(r)
            else:
                r.state, r.until = "decodes", now + r.turn
    return waits, done[:RESPONSES]


def text(case):
    law = lambda x: f"{{distribution: uniform, min: {x[0]}, max: {x[1]}}}"
    samplers = ", ".join(f"{{speed: {v}}}" for v in case["speeds"])
    return (f"{{preset: fifo, unit: response, samples_per_batch: 1, samplers: [{samplers}], lengths: {law(case['lengths'])}, "
            f"tokens_per_s: 10, concurrency: {case['concurrency']}, environment: {{turns: {law(case['turns'])}, time: "
            f"{law(case['time'])}, places: {case['places']}, slot: {case['slot']}}}, learner: {{batches: 1, step: 1e-9, publish_every: 1000000}}}}")


def cases():
    usual = {"speeds": [1, 1.3, 0.7], "lengths": (50, 900), "turns": (0.6, 6.4), "time": (2, 40), "concurrency": 4,
             "places": 5, "slot": "held"}
    yield usual
    yield {**usual, "slot": "freed"}
    yield {**usual, "places": 1000}
    yield {**usual, "places": 1000, "slot": "freed"}
    yield {**usual, "places": 1}
    yield {**usual, "places": 9, "slot": "freed", "concurrency": 9, "speeds": [0.4]}


if __name__ == "__main__":
    with open(pathlib.Path(__file__).parent / "environment.txt", "w") as out:
        for case in cases():
            waits, done = simulate(case)
            out.write(f"{text(case)}\n{len(waits)} {sum(waits) / len(waits)!r} {len(done)}\n")
            for at, sampler, ordinal in done:
                out.write(f"{at!r} {sampler} {ordinal}\n")
