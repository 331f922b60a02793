"""A second simulation of decoding speed from load, for `sim: decoding`.

Written from paper/methods.md 10.15 and not from the program: every response has its own counter of tokens left, and
time moves in pieces of at most a quarter of a decoding step, with the tokens held in the middle of the piece. There is
neither a queue of events nor the solution of a quadratic. Writes decoding.txt: for every case its cluster, the number of
preemptions, and when each response ended, in the order in which they did.

    python tests/golden/decoding.py
"""
import pathlib

from units import between

RESPONSES = 160


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


def simulate(case):
    limit, prompt = case["kv_tokens"], case["prompt"]
    running, waiting, ended = [], [], []  # [tokens left, tokens there are, ordinal]; running in the order of beginning
    now, begun, preemptions, stall = 0.0, 0, 0, 0.0
    held = lambda: sum(prompt + r[1] for r in running)
    while len(ended) < RESPONSES:
        while waiting and (not running or held() + prompt + waiting[0][1] <= 0.99 * limit):
            back = waiting.pop(0)
            running.append(back)
            running.sort(key=lambda r: r[2])
            if case["prefill"]:
                stall += (prompt + back[1]) / case["prefill"] / case["speed"]
        while not waiting and len(running) < case["concurrency"]:
            if running and held() + prompt > 0.99 * limit:
                break
            running.append([float(length(case, begun)), 0.0, begun])
            begun += 1
        now, stall = now + stall, 0.0
        full = (limit - held()) / len(running) if len(running) > 1 else float("inf")
        piece = min(0.25, full, min(r[0] for r in running))
        now += piece * step_seconds(case, len(running), held() + len(running) * piece / 2) / case["speed"]
        for r in running:
            r[0] -= piece
            r[1] += piece
        done = [r for r in running if r[0] < 1e-9]
        if done:
            ended += [(now, r[2]) for r in done]
            running = [r for r in running if r[0] >= 1e-9]
        elif limit - held() < 1e-6 and len(running) > 1:
            last = max(running, key=lambda r: r[2])
            running.remove(last)
            waiting.insert(0, last)
            waiting.sort(key=lambda r: r[2])
            preemptions += 1
    return preemptions, ended[:RESPONSES]


def text(case):
    if "points" in case:
        decoding = (f"running: [{', '.join(str(x) for x, _ in case['points'])}], "
                    f"tokens_per_s: [{', '.join(str(v) for _, v in case['points'])}], "
                    f"cached_token_s: {case['cached']}, kv_tokens: {case['kv_tokens']}")
    else:
        memory = case["parameters"] * 2 + case["kv_tokens"] * case["kv_bytes"]
        decoding = (f"kind: roofline, parameters: {case['parameters']}, kv_bytes: {case['kv_bytes']}, memory_bandwidth: "
                    f"{case['bandwidth']}, flops: {case['flops']}, memory: {memory}, overhead: {case['overhead']}")
    prefill = f"prefill_tokens_per_s: {case['prefill']}, " if case["prefill"] else ""
    return (f"{{preset: fifo, unit: response, partial: continue, kv_cache: keep, sync: push, samples_per_batch: 1, "
            f"samplers: [{{speed: {case['speed']}}}], lengths: {{law: uniform, min: {case['lengths'][0]}, max: "
            f"{case['lengths'][1]}}}, max_tokens: {case['lengths'][1]}, prompt_tokens: {case['prompt']}, {prefill}"
            f"concurrency: {case['concurrency']}, decoding: {{{decoding}}}, learner: {{batches: 1, step: 1e-6}}}}")


def cases():
    measured = {"points": [(1, 90), (8, 80), (24, 40)], "cached": 0, "kv_tokens": 1000000, "prompt": 0, "prefill": 0,
                "lengths": (20, 300), "concurrency": 16, "speed": 1}
    yield measured
    yield {**measured, "concurrency": 40, "speed": 1.7}
    yield {**measured, "cached": 2e-6, "prompt": 50}
    yield {**measured, "cached": 2e-6, "prompt": 50, "kv_tokens": 2500}
    yield {**measured, "cached": 1e-5, "prompt": 30, "kv_tokens": 1200, "prefill": 4000.0, "speed": 0.6}
    roofline = {"parameters": 8000000000, "kv_bytes": 131072, "bandwidth": 3.0e12, "flops": 4.0e13, "overhead": 0.001,
                "kv_tokens": 1000000, "prompt": 100, "prefill": 0, "lengths": (20, 300), "concurrency": 30, "speed": 1}
    yield roofline
    yield {**roofline, "kv_tokens": 4000, "prefill": 9000.0, "bandwidth": 9.0e11}


if __name__ == "__main__":
    with open(pathlib.Path(__file__).parent / "decoding.txt", "w") as out:
        for case in cases():
            preemptions, ended = simulate(case)
            out.write(f"{text(case)}\n{preemptions} {len(ended)}\n")
            for at, ordinal in ended:
                out.write(f"{at!r} {ordinal}\n")
