"""A second simulation of samplers that stream groups and responses, for `sim: units`.

Written from paper/methods.md 10.12 and not from the program: there is no queue of events. Time moves to the
nearest moment at which anything can happen, and all rules are looked at then (activity scanning). Lengths come
from Philox4x32-10 at the addresses that the methods state. Writes units.txt: for every case its cluster, the
number of updates and of dropped units, and for every update its start, how many units it takes, the sum of
their versions, and a sum that tells which units they are and in what order.

    python tests/golden/units.py
"""
import math
import pathlib

GROUP, BATCH, UPDATES, SEED = 8, 64, 60, 11
LENGTH = 8  # the purpose of lengths, RNG_LENGTH
INF = float("inf")


def philox(key, counter):
    k, c = list(key), list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(entity, index):
    words = philox((SEED & 0xFFFFFFFF, SEED >> 32),
                   (index & 0xFFFFFFFF, entity & 0xFFFFFFFF, entity >> 32, LENGTH << 16 | index >> 32))
    return ((words[0] << 21 ^ words[1] >> 11) | 1) * 2.0 ** -53


def between(law, entity, index):
    return law[0] + (law[1] - law[0]) * uniform(entity, index)


class Unit:
    def __init__(self, case, sampler, ordinal, version, number):
        self.sampler, self.ordinal, self.version, self.number = sampler, ordinal, version, number
        size = GROUP if case["unit"] == "group" else 1
        own = sampler << 32 | ordinal
        prompt = own if case["unit"] == "group" else sampler << 32 | ordinal // GROUP
        factor = between(case["prompts"], prompt + (1 << 63), 0) if case["prompts"] else 1.0
        self.lengths = [min(max(math.floor(factor * between(case["lengths"], own, k) + 0.5), 1), 32768)
                        for k in range(size)]
        self.begun = self.ended = 0
        self.arrives = INF


class Sampler:
    def __init__(self, speed):
        self.speed, self.version, self.coming = speed, 0, None
        self.running = []  # [end, unit, begin, length], the times moved by what it stood still since
        self.stands, self.next = None, None  # until when it stands still; weights that came meanwhile
        self.open, self.ordinal = None, 0


def safe(case, take, version, waiting, alive):
    """Whether units that are not taken now can all be trained before they are too stale: all of them in
    the order of their versions, `take` an update from the next one on, where only the next update is
    bound to what waits. If it is not, but would not be with everything there either, it is safe too."""
    def late(there):
        first = sorted(there, key=lambda u: u.version)[:take]
        rest = sorted((u for u in alive if u not in first), key=lambda u: u.version)
        return [u.version for k, u in enumerate(rest) if version + 1 + k // take - u.version > case["window"]]
    return len(late(waiting)) <= len(late(alive))


def simulate(case):
    take = case["batches"] * BATCH // (GROUP if case["unit"] == "group" else 1)
    samplers = [Sampler(v) for v in case["speeds"]]
    weights = []  # (moment, sampler, version) on their way
    flying, waiting, updates, dropped, alive = [], [], [], [], []
    now, version, busy_until, number, counted = 0.0, 0, None, 0, 0
    look = set(range(len(samplers)))  # samplers that may have something to begin

    def take_over(s, v):
        """Decoding goes on with other weights, after the time that this takes."""
        tokens, going = 0.0, [r for r in s.running if (now - r[2]) / (r[0] - r[2]) < 1]
        s.version = v
        if not going or (case["interrupt"] == 0 and (case["kv_cache"] == "keep" or not case["prefill"])):
            return
        seconds = case["interrupt"]
        if case["kv_cache"] == "recompute" and case["prefill"]:
            for end, _, begin, length in reversed(going):
                tokens += case["prompt"]
                tokens += (now - begin) / (end - begin) * length
            seconds = case["interrupt"] + tokens / (case["prefill"] * s.speed)
        for r in going:
            r[0], r[2] = r[0] + seconds, r[2] + seconds
        if seconds > 0:
            s.stands = now + seconds

    def forget(unit):
        nonlocal counted
        counted -= 1
        dropped.append(unit.number)
        alive.remove(unit)
        look.update(range(len(samplers)))

    while len(updates) < UPDATES or busy_until is not None:
        # what ends or arrives
        if busy_until == now:
            version, busy_until = version + 1, None
            if len(updates) == UPDATES:
                break
            weights += [(now + case["delay"], i, version) for i in range(len(samplers))]
        for i, s in enumerate(samplers):
            for r in [r for r in s.running if r[0] == now]:
                s.running.remove(r)
                unit = r[1]
                unit.ended += 1
                look.add(i)
                if unit.ended == len(unit.lengths):
                    unit.arrives = now + case["data_delay"]
                    flying.append(unit)
            if not s.running and s.open is None and s.coming is not None:
                s.version, s.coming = s.coming, None
        for i, s in enumerate(samplers):
            if s.stands == now:
                s.stands = None
                look.add(i)
                if s.next is not None:
                    v, s.next = s.next, None
                    take_over(s, v)
        for moment, i, v in [w for w in weights if w[0] == now]:
            weights.remove((moment, i, v))
            s = samplers[i]
            look.add(i)
            if s.stands is not None:
                s.next = v
                continue
            if case["partial"] == "continue":
                take_over(s, v)
                continue
            if case["partial"] == "wait" and (s.running or s.open):
                s.coming = v
                continue
            if case["partial"] == "drop":
                lost = {r[1].number: r[1] for r in s.running}
                if s.open:
                    lost[s.open.number] = s.open
                for n in sorted(lost, reverse=True):
                    forget(lost[n])
                s.running, s.open = [], None
            s.version = v
        for unit in [u for u in flying if u.arrives == now]:
            flying.remove(unit)
            waiting.append(unit)
        # the learner starts
        if busy_until is None:
            enough = (lambda: sum(sum(u.lengths) for u in waiting) >= case["tokens"]) if case["tokens"] else \
                (lambda: len(waiting) >= take)
            if case["stale"] == "wait":
                if enough() and not safe(case, take, version, waiting, alive):
                    enough = lambda: False
            elif enough():
                for unit in [u for u in waiting if version - u.version > case["window"]]:
                    waiting.remove(unit)
                    forget(unit)
            if enough():
                chosen = []
                while sum(sum(u.lengths) for u in chosen) < case["tokens"] if case["tokens"] else len(chosen) < take:
                    if case["queue"] == "fifo":
                        unit = waiting[0]
                    elif case["queue"] == "lifo":
                        unit = waiting[-1]
                    else:
                        unit = min(waiting, key=lambda u: u.version)  # the first of them to have arrived
                    waiting.remove(unit)
                    chosen.append(unit)
                    alive.remove(unit)
                updates.append((now, chosen))
                busy_until = now + case["step"]
        # samplers start
        for i in sorted(look):
            s = samplers[i]
            while s.stands is None and len(s.running) < case["concurrency"]:
                if s.open is None:
                    if s.coming is not None or counted // take - s.version > case["ahead"]:
                        break
                    s.open = Unit(case, i, s.ordinal, s.version, number)
                    alive.append(s.open)
                    s.ordinal, number, counted = s.ordinal + 1, number + 1, counted + 1
                unit = s.open
                length = unit.lengths[unit.begun]
                s.running.append([now + length / case["tokens_per_s"] / s.speed, unit, now, length])
                unit.begun += 1
                if unit.begun == len(unit.lengths):
                    s.open = None
        look = set()
        moments = [r[0] for s in samplers for r in s.running] + [w[0] for w in weights]
        moments += [s.stands for s in samplers if s.stands is not None]
        moments += [u.arrives for u in flying] + ([busy_until] if busy_until is not None else [])
        # a delay of 0 makes something happen at this same moment
        now = min(moments)
    return updates, dropped


def text(case):
    rest = [f"unit: {case['unit']}, partial: {case['partial']}, sync: push",
            "samplers: [" + ", ".join(f"{{speed: {v}}}" for v in case["speeds"]) + "]",
            "lengths: {distribution: uniform, min: %g, max: %g}" % case["lengths"],
            f"tokens_per_s: {case['tokens_per_s']}, concurrency: {case['concurrency']}",
            f"delay: {case['delay']}, data_delay: {case['data_delay']}"]
    if case["prompts"]:
        rest.append("prompt_lengths: {distribution: uniform, min: %g, max: %g}" % case["prompts"])
    if case["interrupt"]:
        rest.append(f"interrupt: {case['interrupt']}")
    if case["kv_cache"] != "recompute":
        rest.append(f"kv_cache: {case['kv_cache']}")
    if case["prefill"]:
        rest.append(f"prefill_tokens_per_s: {case['prefill']}, prompt_tokens: {case['prompt']}")
    if case["stale"] != "discard":
        rest.append(f"stale: {case['stale']}")
    if case["ahead"] < INF:
        rest.append(f"ahead: {case['ahead']}")
    if min(case["window"], case["ahead"]) < INF:  # where it is not given, it is `ahead`
        rest.append(f"window: {min(case['window'], 1000)}")
    size = f"tokens: {case['tokens']}" if case["tokens"] else f"batches: {case['batches']}"
    rest.append(f"learner: {{step: {case['step']}, queue: {case['queue']}, {size}}}")
    return "{preset: fifo, " + ", ".join(rest) + "}"


def cases():
    plain = dict(unit="group", partial="wait", speeds=[1, 1.137, 0.713], lengths=(1, 400), tokens_per_s=7.3,
                 concurrency=20, delay=3.7, data_delay=1.3, prompts=None, ahead=INF, window=INF, step=11.9,
                 batches=1, tokens=0, queue="fifo", stale="discard", interrupt=0, kv_cache="recompute",
                 prefill=0, prompt=0)
    yield plain
    for unit in ("group", "response"):
        for partial in ("wait", "continue", "drop"):
            for queue in ("fifo", "lifo", "oldest_version"):
                yield {**plain, "unit": unit, "partial": partial, "queue": queue, "window": 3}
    yield {**plain, "concurrency": 3, "unit": "group", "partial": "continue", "window": 1}
    yield {**plain, "concurrency": 3, "unit": "group", "partial": "wait", "ahead": 1, "batches": 2}
    yield {**plain, "concurrency": 64, "ahead": 0, "unit": "response", "partial": "wait"}
    yield {**plain, "concurrency": 50, "ahead": 2, "partial": "continue", "prompts": (0.2, 3)}
    yield {**plain, "unit": "response", "window": 2, "partial": "continue", "prompts": (0.2, 3)}
    slow = {**plain, "queue": "oldest_version", "stale": "wait", "prompts": (0.1, 5)}
    yield {**slow, "ahead": 1, "window": 1}
    yield {**slow, "ahead": 2, "window": 3, "unit": "response"}
    yield {**slow, "ahead": 3, "window": 3, "partial": "continue", "batches": 2, "concurrency": 64}
    yield {**slow, "ahead": 0, "window": 0, "partial": "continue"}
    yield {**plain, "tokens": 9000, "window": 2, "partial": "continue", "prompts": (0.2, 3)}
    yield {**plain, "tokens": 3000, "unit": "response", "queue": "oldest_version", "window": 4}
    changing = {**plain, "partial": "continue", "window": 3}
    yield {**changing, "interrupt": 2.3}
    yield {**changing, "interrupt": 2.3, "kv_cache": "keep", "unit": "response"}
    yield {**changing, "interrupt": 15.1, "kv_cache": "keep", "ahead": 4, "batches": 2}  # longer than an update
    yield {**changing, "prefill": 800.3, "prompt": 31}
    yield {**changing, "prefill": 800.3, "prompt": 31, "interrupt": 0.7, "unit": "response", "concurrency": 50}
    yield {**changing, "prefill": 101.9, "prompt": 17, "ahead": 2, "prompts": (0.2, 3), "concurrency": 64}


def main():
    here = pathlib.Path(__file__).parent
    with open(here / "units.txt", "w") as out:
        for case in cases():
            updates, dropped = simulate(case)
            out.write(f"{text(case)}\n{len(updates)} {len(dropped)}\n")
            for start, chosen in updates:
                order = sum((k + 1) * (100000 * (u.sampler + 1) + u.ordinal) for k, u in enumerate(chosen))
                out.write(f"{start!r} {len(chosen)} {sum(u.version for u in chosen)} {order}\n")


if __name__ == "__main__":
    main()
