"""When weights that samplers hand on in a tree of relays have come, for `sim: network`.

Written from paper/methods.md 10.13 and not from the program, as a recurrence instead of a simulation: a node
sends shards in the order in which they can go (a handshake after they came), each after the one before, in the
time that the slower of the two ends takes; a shard arrives a latency later. A sampler then generates for 5000 s
and its batch travels to the learner, after a handshake of its own. Writes relay.txt: for every case its cluster,
the sum and the largest of the samplers' times from publishing to the last shard, the time that the learner sends,
and the time from publishing to the arrival of the last batch.

    python tests/golden/relay.py
"""
import math
import pathlib


def latencies(case, a, b):
    """One way from node a to node b (0: the learner), and back."""
    groups = [g for g in case["groups"] for _ in range(g["count"])]
    site = [0] + [g["site"] for g in groups]
    return case["sites"][site[a]]["latency"][site[b]], case["sites"][site[b]]["latency"][site[a]]


def times(case):
    groups = [g for g in case["groups"] for _ in range(g["count"])]
    n, fanout, shards = len(groups), case["fanout"], case["shards"]
    size = case["weights"] / shards
    ready = {0: [0.0] * shards}  # of a node, when each shard has come
    sending = 0.0
    for node in range(n + 1):
        children = [c for c in range(fanout * node + 1, fanout * node + fanout + 1) if c <= n]
        sends = [(ready[node][k] + case["trips"] * sum(latencies(case, node, child)), k, child)
                 for k in range(shards) for child in children]
        free = 0.0
        for can_go, k, child in sorted(sends):
            speed = min(groups[child - 1]["down"], case["egress"] if node == 0 else groups[node - 1]["up"])
            free = max(free, can_go) + size / speed
            ready.setdefault(child, []).append(free + latencies(case, node, child)[0])
            sending += size / speed if node == 0 else 0
    came = [max(ready[i]) for i in range(1, n + 1)]
    batches = [came[i - 1] + 5000 + case["trips"] * sum(latencies(case, i, 0)) + latencies(case, i, 0)[0]
               for i in range(1, n + 1)]
    return came, sending, max(batches)


def text(case):
    groups = ", ".join(f"{{count: {g['count']}, site: s{g['site']}, up: {{bandwidth: {g['up']}}}, "
                       f"down: {{bandwidth: {g['down']}}}}}" for g in case["groups"])
    sites = ", ".join(f"{{name: s{i}, latency: {s['latency']}}}" for i, s in enumerate(case["sites"]))
    return (f"{{preset: sync, samplers: [{groups}], generation: 5000, weights_bytes: {case['weights']}, network: "
            f"{{egress: {{bandwidth: {case['egress']}}}, sites: [{sites}], handshake: {{round_trips: {case['trips']}}}, "
            f"relay: {{kind: tree, fanout: {case['fanout']}, shards: {case['shards']}}}}}, learner: {{step: 9}}}}")


def cases():
    groups = [dict(count=5, site=0, up=31.3, down=53.9), dict(count=7, site=1, up=47.1, down=29.7),
              dict(count=9, site=2, up=11.7, down=83.3)]
    sites = [dict(latency=[0, 0.311, 1.173]), dict(latency=[0.287, 0, 0.9]), dict(latency=[1.211, 0.917, 0])]
    for fanout in (1, 2, 3, 5, 40):
        for shards in (1, 4, 17):
            for trips in (0, 2):
                yield dict(groups=groups, sites=sites, fanout=fanout, shards=shards, trips=trips, weights=411.0,
                           egress=61.7)


def main():
    here = pathlib.Path(__file__).parent
    with open(here / "relay.txt", "w") as out:
        for case in cases():
            came, sending, trained = times(case)
            out.write(f"{text(case)}\n{math.fsum(came)!r} {max(came)!r} {sending!r} {trained!r}\n")


main()
