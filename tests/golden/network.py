"""A second simulation of a cluster whose messages share a network, for `sim: network`.

Written from paper/methods.md 10.13 and not from the program: there is no queue of events and there are no
classes of transfers. Time moves to the nearest moment at which anything can happen; between two moments every
transfer has a rate of its own, found by filling the tightest constraint first. All times are constant, so
nothing is drawn. Writes network.txt: for every case its cluster, the number of updates, how many transfers of
weights and of batches had arrived or were on their last way when the last update ended, and the sums of their
times; then for every update its start, the sum of its batches' versions and a sum that tells which they are.

    python tests/golden/network.py
"""
import math
import pathlib

UPDATES = 40
INF = float("inf")


class Transfer:
    def __init__(self, sampler, asked, batch):
        self.sampler, self.asked, self.batch = sampler, asked, batch
        self.state, self.until, self.left, self.version = "waits", INF, 0.0, None


class Sampler:
    def __init__(self, number, group):
        self.number, self.group = number, group
        self.version, self.ordinal, self.ends, self.batch = 0, 0, None, None
        self.up = self.down = None  # the transfer that has the link
        self.line, self.again, self.sent = [], False, 0
        self.due, self.loading = 0.0, False


class Port:
    def __init__(self, spec):
        self.bandwidth, self.queue = spec["bandwidth"], spec["share"] == "queue"
        self.line, self.active = [], []


class Cluster:
    def __init__(self, case):
        self.case, self.now, self.version, self.busy_until = case, 0.0, 0, None
        self.samplers = []
        for group in case["groups"]:
            self.samplers += [Sampler(len(self.samplers) + k, group) for k in range(group["count"])]
        self.egress, self.ingress = Port(case["egress"]), Port(case["ingress"])
        self.transfers, self.waiting, self.updates = [], [], []
        self.times = {"weights": [], "batches": []}
        self.sites = case["sites"]
        self.down, self.parked, self.interrupted = [0] * len(self.sites), [], 0
        self.outages = sorted([(a, 1, i) for i, s in enumerate(self.sites) for a, _ in s["outages"]] +
                              [(b, -1, i) for i, s in enumerate(self.sites) for _, b in s["outages"]])
        for s in self.samplers:
            s.due = case["delay"] if case["sync"] == "pull" else INF

    # --- a transfer's way ---

    def port(self, t):
        return self.ingress if t.batch else self.egress

    def way(self, t):
        here = t.sampler.group["site"]
        return (here, 0) if t.batch else (0, here)

    def latency(self, a, b):
        return self.sites[a]["latency"][b] if self.sites else 0

    def cut(self, t):
        a, b = self.way(t)
        return a != b and self.sites and (self.down[a] > 0 or self.down[b] > 0)

    def greet(self, t):
        a, b = self.way(t)
        rtt = self.case["rtt"] or self.latency(a, b) + self.latency(b, a)
        t.state, t.until = "greets", self.now + self.case["round_trips"] * rtt
        if t.until == self.now:
            self.reach(t)

    def reach(self, t):
        port = self.port(t)
        t.until = INF
        if self.cut(t):
            t.state = "parked"
            self.parked.append(t)
        elif port.queue and (port.active or port.line):
            t.state = "queues"
            port.line.append(t)
        else:
            self.begin(t)

    def begin(self, t):
        t.state = "flows"
        self.port(t).active.append(t)
        if t.left:
            return  # it goes on
        if t.batch:
            t.left = self.case["rollout_bytes"]
            return
        s = t.sampler
        t.version, s.sent = self.version, s.sent + 1
        full = self.case["full_every"] and s.sent % self.case["full_every"] == 0
        t.left = self.case["weights_bytes"] * (1 if full else self.case["share"])

    def next(self, port):
        while port.line and not port.active:
            t = port.line.pop(0)
            if self.cut(t):
                t.state = "parked"
                self.parked.append(t)
            else:
                self.begin(t)

    def outage(self, change, site):
        self.down[site] += change
        if change < 0:
            again, self.parked = self.parked, []
            for t in again:
                self.reach(t)
            return
        stopped = [t for t in self.transfers if t.state == "flows" and self.cut(t)]
        self.interrupted += len(stopped)
        for t in stopped:
            self.port(t).active.remove(t)
            t.state = "parked"
            if self.case["interrupted"] == "resumed":
                self.parked.append(t)
                continue
            self.transfers.remove(t)
            s = t.sampler
            if t.batch:
                s.up = s.line.pop(0) if s.line else None
                if s.up:
                    self.greet(s.up)
            else:
                s.down, s.again = None, False
                self.ask_weights(s)
        self.next(self.egress)
        self.next(self.ingress)

    def sent(self, t):
        s = t.sampler
        port = self.port(t)
        port.active.remove(t)
        t.left = 0
        self.next(port)
        way = self.latency(*self.way(t))
        way += self.case["data_delay"] if t.batch else self.case["delay"] if self.case["sync"] == "push" else 0
        t.state, t.until = "travels", self.now + way
        self.times["batches" if t.batch else "weights"].append(t.until - t.asked)
        if t.batch:
            s.up = s.line.pop(0) if s.line else None
            if s.up:
                self.greet(s.up)
        else:
            s.down = None
            if s.again:
                s.again = False
                self.ask_weights(s)
        if t.until == self.now:
            self.arrive(t)

    def arrive(self, t):
        s = t.sampler
        self.transfers.remove(t)
        if t.batch:
            self.waiting.append(t.batch)
        elif self.case["sync"] == "pull":
            s.version, s.loading, s.due = t.version, False, self.now + self.case["delay"]
            self.look(s, True)
        elif t.version > s.version:
            s.version = t.version

    def ask_weights(self, s):
        if s.down:
            s.again = s.down.version is not None  # it has begun
            return
        s.down = Transfer(s, self.now, None)
        self.transfers.append(s.down)
        self.greet(s.down)

    def send_batch(self, s):
        t = Transfer(s, self.now, s.batch)
        self.transfers.append(t)
        if s.up:
            s.line.append(t)
        else:
            s.up = t
            self.greet(t)

    # --- rates ---

    def rates(self):
        flows = [t for t in self.transfers if t.state == "flows"]
        limits = [[self.egress.bandwidth, [t for t in flows if not t.batch]],
                  [self.ingress.bandwidth, [t for t in flows if t.batch]]]
        for a, site in enumerate(self.sites):
            for b, bandwidth in enumerate(site["bandwidth"]):
                limits.append([bandwidth, [t for t in flows if self.way(t) == (a, b)]])
        limits += [[t.sampler.group["up" if t.batch else "down"], [t]] for t in flows]
        rate = {}
        while len(rate) < len(flows):
            free = [(c - sum(rate.get(t, 0) for t in ts), [t for t in ts if t not in rate]) for c, ts in limits]
            level, tightest = min(((c / len(ts), ts) for c, ts in free if ts), key=lambda x: x[0])
            for t in tightest:
                rate[t] = level
        return rate

    # --- samplers and learner ---

    def look(self, s, just_loaded=False):
        if s.ends is not None or s.loading:
            return
        if self.case["sync"] == "pull" and s.due <= self.now and not just_loaded:
            s.loading = True
            self.ask_weights(s)
            return
        s.batch = (s.number, s.ordinal, s.version)
        s.ordinal, s.ends = s.ordinal + 1, self.now + s.group["generation"]

    def run(self):
        for s in self.samplers:
            self.look(s)
        while True:
            if self.busy_until is None and len(self.waiting) >= self.case["batches"]:
                n = self.case["batches"]
                self.updates.append((self.now, self.waiting[:n]))
                del self.waiting[:n]
                self.busy_until = self.now + self.case["step"]
            for s in self.samplers:
                self.look(s)
            rate = self.rates()
            ends = {t: self.now + (t.left / r if r < INF else 0) for t, r in rate.items()}
            moments = list(ends.values()) + [t.until for t in self.transfers]
            moments += [s.ends for s in self.samplers if s.ends is not None]
            moments += [o[0] for o in self.outages[:1]]
            moments += [self.busy_until] if self.busy_until is not None else []
            then = min(moments)
            for t, r in rate.items():
                t.left -= r * (then - self.now) if r < INF else t.left
            self.now = then
            if self.busy_until == then:
                self.version, self.busy_until = self.version + 1, None
                if len(self.updates) == UPDATES:
                    return
                if self.case["sync"] == "push":
                    for s in self.samplers:
                        self.ask_weights(s)
            while self.outages and self.outages[0][0] == then:
                self.outage(*self.outages.pop(0)[1:])
            for t in [t for t in self.transfers if t.until <= then]:
                self.reach(t) if t.state == "greets" else self.arrive(t)
            for t in [t for t, end in ends.items() if end <= then * (1 + 1e-13)]:
                self.sent(t)
            for s in self.samplers:
                if s.ends == then:
                    s.ends = None
                    self.send_batch(s)


def bandwidth(x):
    return "" if x == INF else f"bandwidth: {x!r}"  # unlimited where none is given


def text(case):
    groups = ", ".join(f"{{count: {g['count']}, generation: {g['generation']}, up: {{{bandwidth(g['up'])}}}, "
                       f"down: {{{bandwidth(g['down'])}}}"
                       + (f", site: s{g['site']}}}" if case["sites"] else "}") for g in case["groups"])
    ports = ", ".join(f"{k}: {{share: {case[k]['share']}, {bandwidth(case[k]['bandwidth'])}}}"
                      for k in ("egress", "ingress"))
    rest = [ports]
    if case["round_trips"]:
        rtt = f", rtt: {case['rtt']}" if case["rtt"] else ""
        rest.append(f"handshake: {{round_trips: {case['round_trips']}{rtt}}}")
    if case["sites"]:
        rows = ", ".join(f"{{name: s{i}, latency: {s['latency']}, bandwidth: ["
                         + ", ".join("none" if b == INF else repr(b) for b in s["bandwidth"]) + "]"
                         + (f", outages: {s['outages']}" if s["outages"] else "") + "}"
                         for i, s in enumerate(case["sites"]))
        rest.append(f"sites: [{rows}], interrupted: {case['interrupted']}")
    if case["share"] < 1:
        rest.append(f"delta: {{share: {case['share']}, full_every: {case['full_every']}}}")
    return (f"{{preset: fifo, sync: {case['sync']}, samplers: [{groups}], delay: {case['delay']}, "
            f"data_delay: {case['data_delay']}, weights_bytes: {case['weights_bytes']}, "
            f"rollout_bytes: {case['rollout_bytes']}, network: {{{', '.join(rest)}}}, "
            f"learner: {{step: {case['step']}, batches: {case['batches']}}}}}")


def cases():
    groups = [dict(count=3, generation=10.137, up=31.3, down=53.9), dict(count=2, generation=17.713, up=INF, down=INF),
              dict(count=2, generation=23.459, up=11.7, down=83.3)]
    groups = [dict(g, site=i) for i, g in enumerate(groups)]
    free = dict(bandwidth=INF, share="fair")
    plain = dict(sync="push", groups=groups, delay=1.371, data_delay=0.713, weights_bytes=411, rollout_bytes=97,
                 egress=free, ingress=free, round_trips=0, rtt=0, share=1, full_every=0, step=9.379, batches=2,
                 sites=[], interrupted="resumed")
    for share in ("fair", "queue"):
        egress, ingress = dict(bandwidth=207.3, share=share), dict(bandwidth=59.1, share=share)
        yield {**plain, "egress": egress}
        yield {**plain, "ingress": ingress}
        yield {**plain, "egress": egress, "ingress": ingress}
        yield {**plain, "egress": dict(egress, bandwidth=61.7), "batches": 1, "step": 3.117}
        yield {**plain, "egress": egress, "ingress": ingress, "sync": "pull", "delay": 31.337}
        yield {**plain, "egress": egress, "ingress": ingress, "round_trips": 3, "rtt": 0.217}
        yield {**plain, "egress": egress, "share": 0.037, "full_every": 4}
    yield {**plain, "round_trips": 2, "rtt": 0.719}
    far = [dict(latency=[0, 0.311, 1.173], bandwidth=[INF, 47.3, 29.9], outages=[]),
           dict(latency=[0.287, 0, 0.9], bandwidth=[19.7, INF, INF], outages=[[41.3, 77.7], [150.1, 163.9]]),
           dict(latency=[1.211, 0.9, 0], bandwidth=[23.1, INF, INF], outages=[[60.61, 99.17]])]
    near = [dict(s, bandwidth=[INF] * 3) for s in far]
    yield {**plain, "sites": far}
    yield {**plain, "sites": [dict(s, outages=[]) for s in far], "round_trips": 2}
    for share in ("fair", "queue"):
        egress, ingress = dict(bandwidth=107.3, share=share), dict(bandwidth=39.1, share=share)
        for interrupted in ("resumed", "lost"):
            some = {**plain, "egress": egress, "ingress": ingress, "interrupted": interrupted}
            yield {**some, "sites": far}
            yield {**some, "sites": near, "round_trips": 1, "rtt": 0.5}
    yield {**plain, "sites": near, "interrupted": "lost"}
    yield {**plain, "share": 0.13, "full_every": 3, "sync": "pull", "delay": 5.1}


def main():
    here = pathlib.Path(__file__).parent
    with open(here / "network.txt", "w") as out:
        for case in cases():
            c = Cluster(case)
            c.run()
            w, b = c.times["weights"], c.times["batches"]
            out.write(f"{text(case)}\n{len(c.updates)} {len(w)} {math.fsum(w)!r} {len(b)} {math.fsum(b)!r}\n")
            for start, batches in c.updates:
                order = sum((k + 1) * (100000 * (s + 1) + n) for k, (s, n, _) in enumerate(batches))
                out.write(f"{start!r} {sum(v for _, _, v in batches)} {order}\n")


main()
