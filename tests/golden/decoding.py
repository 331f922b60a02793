"""A second simulation of decoding speed from load, for `sim: decoding`.

Written from paper/methods.md 10.15 and not from the program: every response has its own counter of tokens left, and
time moves in pieces of at most a quarter of a decoding step, with the tokens held in the middle of the piece. There is
neither a queue of events nor the solution of a quadratic; the last piece before a call or an update ends is found by
bisection. A prompt in memory is an object that its responses share. Writes decoding.txt: for every case its cluster, the
number of preemptions, of responses and of updates, the tokens of prompts found in the prefix cache, and when each
response ended, in the order in which they did.

    python tests/golden/decoding.py
"""
import pathlib

from environment import FAILURE, between as draw
from units import between

RESPONSES, GROUP = 160, 8
NEVER = float("inf")


def length(case, ordinal):
    return int(between(case["lengths"], ordinal, 0) + 0.5)


def interpolate(points, n):
    if n <= points[0][0] or len(points) == 1:
        return 1 / points[0][1]
    for (x0, v0), (x1, v1) in zip(points, points[1:]):
        if n <= x1 or (x1, v1) == points[-1]:
            slope = (1 / v1 - 1 / v0) / (x1 - x0)
            return 1 / v0 + slope * (n - x0) if n <= x1 else 1 / v1 + max(slope, 0) * (n - x1)


def step_seconds(case, n, held):
    if "points" in case:
        return interpolate(case["points"], n) + case["cached"] * held
    read = case["parameters"] * 2 / case["bandwidth"]
    arithmetic = 2 * n * case["parameters"] / case["flops"]
    return case["overhead"] + max(read, arithmetic) + case["kv_bytes"] * held / case["bandwidth"]


class Copy:
    """Keys and values of a prompt, computed by one version; lost: no longer in the cache."""
    def __init__(self, group, version):
        self.group, self.version, self.lost = group, version, False


class Response:
    def __init__(self, case, ordinal):
        turns = draw(case["turns"], FAILURE, (5 << 60) + ordinal, 0) if "turns" in case else 1
        self.ordinal, self.turns, self.ended = ordinal, max(int(turns + 0.5), 1), 0
        self.turn = self.left = length(case, ordinal) / self.turns
        self.tokens = 0.0
        self.copy = self.cached = None  # its prompt; the version of its own tokens in the cache


class Learner:
    """Updates of `per` responses, first come, first served, of `step` seconds each."""
    def __init__(self, case):
        self.per, self.step = case.get("per"), case.get("step")
        self.waiting, self.ends, self.version = 0, NEVER, 0

    def advance(self, now):
        if self.ends <= now:
            self.ends, self.version = NEVER, self.version + 1
        if self.per and self.ends == NEVER and self.waiting >= self.per:
            self.waiting, self.ends = self.waiting - self.per, now + self.step


class Cache:
    def __init__(self, case):
        self.rule, self.prompt = case.get("cache", "free"), case["prompt"]
        self.copies, self.version, self.found = [], 0, 0

    def usable(self, version):
        return version is not None and (self.rule == "all" or version == self.version)

    def find(self, group):
        shared = [x for x in self.copies if x.group == group and not x.lost and self.usable(x.version)]
        return shared[0] if shared and self.rule in ("version", "all") else None

    def needs(self, group, holders):
        return 0 if self.find(group) in [r.copy for r in holders if r.copy] else self.prompt

    def take(self, r):
        """Gives the response its prompt and returns the tokens that must be computed."""
        found = self.find(r.ordinal // GROUP)
        r.copy = found or Copy(r.ordinal // GROUP, self.version)
        if not found:
            self.copies.append(r.copy)
        return 0 if found else self.prompt

    def evict(self, holders, others):
        for x in self.copies:
            x.lost = x.lost or x not in [r.copy for r in holders]
        for r in others:
            r.cached = None


def simulate(case):
    limit, prompt, freed = case["kv_tokens"], case["prompt"], case.get("slot") == "freed"
    running, preempted, queue, calls, back, ended = [], [], [], [], [], []  # calls: (end, response)
    now, begun, preemptions, stands, paused = 0.0, 0, 0, 0.0, 0.0  # nothing is decoded before `stands`
    learner, cache = Learner(case), Cache(case)
    away = lambda: [] if freed else queue + [r for _, r in calls]
    held = lambda: (sum(r.tokens for r in running + away()) + prompt * len({r.copy for r in running + away()}))
    read = lambda: sum(prompt + r.tokens for r in running + away())
    by_ordinal = lambda r: r.ordinal
    wait = lambda tokens: max(stands, now) + (tokens / case["prefill"] / case["speed"] if case["prefill"] else 0)
    while learner.version < RESPONSES // learner.per if learner.per else len(ended) < RESPONSES:
        learner.advance(now)
        if learner.version > cache.version and now >= paused:
            cache.version = learner.version
            if case.get("kv_cache") == "recompute":
                for r in running:
                    r.copy.version = cache.version
                stands, paused = wait(held()), now + held() / case["prefill"] / case["speed"]
        while queue and len(calls) < case["places"]:
            r = queue.pop(0)
            calls.append((now + draw(case["time"], FAILURE, (6 << 60) + r.ordinal, r.ended), r))
        while now >= paused:
            while preempted and (not running or held() + cache.needs(preempted[0].ordinal // GROUP, running + away())
                                 + preempted[0].tokens <= 0.99 * limit):
                r = preempted.pop(0)
                running.append(r)
                stands = wait(cache.take(r) + (0 if cache.usable(r.cached) else r.tokens))
                r.cached = None
            if len(running) + len(preempted) + len(away()) == case["concurrency"]:
                break
            if back:
                preempted = sorted(preempted + [back.pop(0)], key=by_ordinal)
                continue
            if preempted or ((running or away()) and held() + cache.needs(begun // GROUP, running + away()) > 0.99 * limit):
                break
            r = Response(case, begun)
            computed = cache.take(r)
            cache.found += prompt - computed
            running.append(r)
            begun += 1
            if cache.rule != "free":
                stands = wait(computed)
        next_call = min([at for at, _ in calls] + [learner.ends] + [paused] * (paused > now))
        if not running or stands > now:
            now = min(next_call, stands if running else NEVER)
        else:
            full = max(limit - held(), 0) / len(running) if len(running) > 1 else float("inf")
            piece = min(0.25, full, min(r.left for r in running))
            seconds = lambda m: m * step_seconds(case, len(running), read() + len(running) * m / 2) / case["speed"]
            if now + seconds(piece) > next_call:
                low, high = 0.0, piece
                for _ in range(60):
                    low, high = ((low + high) / 2, high) if now + seconds((low + high) / 2) < next_call else (low, (low + high) / 2)
                piece, now = low, next_call
            else:
                now += seconds(piece)
            for r in running:
                r.left -= piece
                r.tokens += piece
            done = [r for r in running if r.left < 1e-9]
            running = [r for r in running if r.left >= 1e-9]
            for r in done:
                r.ended += 1
                if r.ended == r.turns:
                    ended.append((now, r.ordinal))
                    learner.waiting += 1
                else:
                    r.left = r.turn
                    r.cached = r.copy.version if freed and cache.rule in ("version", "all") else None
                    queue.append(r)
            if not done and limit - held() < 1e-6 and len(running) > 1:
                last = max(running, key=by_ordinal)
                running.remove(last)
                preempted = sorted(preempted + [last], key=by_ordinal)
                preemptions += 1
                cache.evict(running + away(), running + preempted + queue + [r for _, r in calls] + back)
        for at, r in [x for x in calls if x[0] <= now]:
            calls.remove((at, r))
            (back if freed else running).append(r)
    return preemptions, cache.found, ended[:RESPONSES]


def text(case):
    if "points" in case:
        decoding = (f"running: [{', '.join(str(x) for x, _ in case['points'])}], "
                    f"tokens_per_s: [{', '.join(str(v) for _, v in case['points'])}], "
                    f"cached_token_s: {case['cached']}, kv_tokens: {case['kv_tokens']}")
    else:
        memory = case["parameters"] * 2 + case["kv_tokens"] * case["kv_bytes"]
        decoding = (f"kind: roofline, parameters: {case['parameters']}, kv_bytes: {case['kv_bytes']}, memory_bandwidth: "
                    f"{case['bandwidth']}, flops: {case['flops']}, memory: {memory}, overhead: {case['overhead']}")
    if "cache" in case:
        decoding += f", prefix_cache: {case['cache']}"
    prefill = f"prefill_tokens_per_s: {case['prefill']}, " if case["prefill"] else ""
    return (f"{{preset: fifo, unit: response, partial: continue, kv_cache: {case.get('kv_cache', 'keep')}, sync: push, "
            f"samples_per_batch: {case.get('per', 1)}, "
            f"samplers: [{{speed: {case['speed']}}}], lengths: {{distribution: uniform, min: {case['lengths'][0]}, max: "
            f"{case['lengths'][1]}}}, max_tokens: {case['lengths'][1]}, prompt_tokens: {case['prompt']}, {prefill}"
            f"concurrency: {case['concurrency']}, decoding: {{{decoding}}}, {environment(case)}learner: {{batches: 1, step: {case.get('step', 1e-6)}}}}}")


def environment(case):
    law = lambda x: f"{{distribution: uniform, min: {x[0]}, max: {x[1]}}}"
    return (f"environment: {{turns: {law(case['turns'])}, time: {law(case['time'])}, places: {case['places']}, "
            f"slot: {case['slot']}}}, ") if "turns" in case else ""


def cases():
    measured = {"points": [(1, 90), (8, 80), (24, 40)], "cached": 0, "kv_tokens": 1000000, "prompt": 0, "prefill": 0,
                "lengths": (20, 300), "concurrency": 16, "speed": 1, "places": 0}
    yield measured
    yield {**measured, "concurrency": 40, "speed": 1.7}
    yield {**measured, "cached": 2e-6, "prompt": 50}
    yield {**measured, "cached": 2e-6, "prompt": 50, "kv_tokens": 2500}
    yield {**measured, "cached": 1e-5, "prompt": 30, "kv_tokens": 1200, "prefill": 4000.0, "speed": 0.6}
    roofline = {"parameters": 8000000000, "kv_bytes": 131072, "bandwidth": 3.0e12, "flops": 4.0e13, "overhead": 0.001,
                "kv_tokens": 1000000, "prompt": 100, "prefill": 0, "lengths": (20, 300), "concurrency": 30, "speed": 1, "places": 0}
    yield roofline
    yield {**roofline, "kv_tokens": 4000, "prefill": 9000.0, "bandwidth": 9.0e11}
    turns = {"turns": (0.6, 5.4), "time": (0.5, 9), "places": 4, "slot": "held"}
    yield {**measured, **turns}
    yield {**measured, **turns, "slot": "freed", "places": 12, "cached": 2e-6, "prompt": 50, "prefill": 4000.0}
    yield {**measured, **turns, "cached": 1e-5, "prompt": 30, "kv_tokens": 1500, "places": 6}
    yield {**measured, **turns, "slot": "freed", "cached": 1e-5, "prompt": 30, "kv_tokens": 1200, "prefill": 4000.0,
           "places": 9, "speed": 0.6}
    prompts = {**measured, "cached": 1e-5, "prompt": 211, "prefill": 3000.0, "per": 10, "step": 1.37}
    for rule in "none", "version", "all":
        yield {**prompts, "cache": rule}
        yield {**prompts, "cache": rule, "concurrency": 6, "kv_tokens": 1400, "speed": 1.3}
        yield {**prompts, **turns, "slot": "freed", "places": 9, "cache": rule, "kv_tokens": 1700}
        yield {**prompts, **turns, "places": 6, "cache": rule, "kv_tokens": 2300}
    for rule in "none", "version":
        yield {**prompts, "cache": rule, "kv_cache": "recompute", "speed": 0.8}
        yield {**prompts, "cache": rule, "kv_cache": "recompute", "kv_tokens": 1300, "per": 4, "step": 0.41}


if __name__ == "__main__":
    with open(pathlib.Path(__file__).parent / "decoding.txt", "w") as out:
        for case in cases():
            preemptions, found, ended = simulate(case)
            out.write(f"{text(case)}\n{preemptions} {len(ended)} {len(ended) // case.get('per', 1)} {found}\n")
            for at, ordinal in ended:
                out.write(f"{at!r} {ordinal}\n")
