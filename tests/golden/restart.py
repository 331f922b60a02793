"""A second simulation of restarts with a grader and with GPUs that samplers and learner share, for `sim: restarts`.

Written from paper/methods.md 10.15 and not from the program: responses have seconds that are left, and time moves to the
nearest moment at which anything ends (no queue of events). Lengths and times of grading come from Philox at the addresses
that the methods state. Writes restart.txt: for every case its cluster, the restarts, lost, timed-out and repeated counts, the
mean wait for the grader, the seconds of switches, and for every update its times and its units (sampler, ordinal, version).

    python tests/golden/restart.py
"""
import pathlib

from environment import FAILURE, LENGTH, between

UPDATES, INF = 40, float("inf")
GENERATE, SWITCH, TRAIN = "generate", "switch", "train"


class Unit:
    def __init__(self, case, sampler, ordinal, number, version):
        tokens = int(between(case["lengths"], LENGTH, sampler << 32 | ordinal, 0) + 0.5)
        self.sampler, self.ordinal, self.number, self.version, self.newest = sampler, ordinal, number, version, version
        self.left = tokens / 1000 / case["speeds"][sampler]


class Job:
    def __init__(self, case):
        self.case, self.now, self.number, self.version = case, 0.0, 0, 0
        n = len(case["speeds"])
        self.ordinal, self.decoding, self.has = [0] * n, [[] for _ in range(n)], [0] * n
        self.to_grade, self.graded, self.waiting = [], [], []  # graded: [unit, seconds left, whether it times out]
        self.updates, self.gpus, self.switch_left, self.target, self.train_left = [], GENERATE, None, None, None
        self.lost = self.timed_out = self.switches = self.restarts = self.again = 0
        self.switch_s, self.waits = 0.0, []
        self.at, self.down_left = list(case["at"]), None

    def shares(self, s):
        return self.case["colocated"] and s in self.case["shared"]

    def stands(self, s):
        return self.shares(s) and self.gpus != GENERATE

    def switch(self, to):
        self.gpus, self.target = SWITCH, to
        self.switch_left = self.case["colocated"][0 if to == TRAIN else 1]
        self.switches += 1

    # what can begin now
    def begin(self):
        case, take = self.case, self.case["take"]
        if self.train_left is None:
            if not case["colocated"] or self.gpus == TRAIN:
                if len(self.waiting) >= take:
                    units, self.waiting = self.waiting[:take], self.waiting[take:]
                    self.updates.append([self.now, None, units])
                    self.train_left = case["step"]
                elif case["colocated"]:
                    self.switch(GENERATE)
            elif self.gpus == GENERATE and len(self.waiting) >= take * case["high"]:
                self.switch(TRAIN)
        for s in range(len(case["speeds"])):
            if self.stands(s):
                continue
            self.has[s] = self.version
            for u in self.decoding[s]:
                u.newest = self.version
            while len(self.decoding[s]) < case["concurrency"]:
                self.decoding[s].append(Unit(case, s, self.ordinal[s], self.number, self.has[s]))
                self.ordinal[s] += 1
                self.number += 1
        while self.to_grade and len(self.graded) < case["places"]:
            u, since = self.to_grade.pop(0)
            self.waits.append(since)
            seconds = between(case["grading"], FAILURE, (3 << 60) + u.number, 0)
            self.graded.append([u, min(seconds, case["timeout"]), seconds > case["timeout"]])

    def nearest(self):
        if self.down_left is not None:
            return self.down_left
        times = [self.at[0] - self.now] if self.at else []
        times += [u.left for s, own in enumerate(self.decoding) if not self.stands(s) for u in own]
        times += [g[1] for g in self.graded]
        times += [x for x in (self.switch_left, self.train_left) if x is not None]
        return min(times)

    def move(self, seconds):
        self.now += seconds
        if self.down_left is not None:
            self.down_left -= seconds
            return
        for s, own in enumerate(self.decoding):
            for u in own:
                u.left -= 0 if self.stands(s) else seconds
        for g in self.graded:
            g[1] -= seconds
        self.to_grade = [(u, waited + seconds) for u, waited in self.to_grade]
        if self.switch_left is not None:
            self.switch_left -= seconds
            self.switch_s += seconds
        if self.train_left is not None:
            self.train_left -= seconds

    # what ends now
    def end(self):
        tiny = 1e-9
        for s, own in enumerate(self.decoding):
            if not self.stands(s):
                for u in [u for u in own if u.left < tiny]:
                    own.remove(u)
                    self.to_grade.append((u, 0.0))
        for g in [g for g in self.graded if g[1] < tiny]:
            self.graded.remove(g)
            self.timed_out += g[2]
            if not g[2]:
                self.waiting.append(g[0])
        if self.switch_left is not None and self.switch_left < tiny:
            self.gpus, self.switch_left = self.target, None
        if self.train_left is not None and self.train_left < tiny:
            self.train_left = None
            self.updates[-1][1] = self.now
            self.version += 1
            if self.case["colocated"] and not (self.case["idle"] and len(self.waiting) >= self.case["take"] * self.case["low"]):
                self.switch(GENERATE)

    def restart(self):
        case, keeps = self.case, self.case["keeps"]
        self.at.pop(0)
        self.restarts += 1
        self.down_left = case["down"]
        if self.train_left is not None:
            self.lost += len(self.updates.pop()[2])
            self.train_left = None
        back = self.version - self.version % case["checkpoint"]
        self.again += self.version - back
        for update in self.updates[back:]:
            self.lost += len(update[2])
        self.updates, self.version = self.updates[:back], back
        if keeps == "responses":
            return
        self.lost += sum(map(len, self.decoding)) + len(self.to_grade) + len(self.graded)
        self.decoding, self.to_grade, self.graded = [[] for _ in self.decoding], [], []
        kept = [u for u in self.waiting if keeps == "queue" and u.newest <= back]
        self.lost += len(self.waiting) - len(kept)
        self.waiting, self.gpus, self.switch_left = kept, GENERATE, None

    def run(self):
        while self.version < UPDATES:
            if self.down_left is None:
                self.begin()
            self.move(self.nearest())
            if self.down_left is not None:
                self.down_left = None if self.down_left < 1e-9 else self.down_left
                while self.at and self.at[0] < self.now:  # restarts of a job that is down
                    self.at.pop(0)
                continue
            self.end()
            if self.at and abs(self.at[0] - self.now) < 1e-9:
                self.restart()
        return self


def text(case):
    law = lambda x: f"{{distribution: uniform, min: {x[0]}, max: {x[1]}}}"
    samplers = ", ".join(f"{{speed: {v}, colocated: {'true' if case['colocated'] and i in case['shared'] else 'false'}}}"
                         for i, v in enumerate(case["speeds"]))
    shared = (f"colocated: {{to_training: {case['colocated'][0]}, to_generation: {case['colocated'][1]}, switch: "
              f"{'idle' if case['idle'] else 'always'}, high: {case['high']}, low: {case['low']}}}, " if case["colocated"] else "")
    timeout = f", timeout: {case['timeout']}" if case["timeout"] < INF else ""
    return (f"{{preset: fifo, unit: response, partial: continue, samples_per_batch: 1, samplers: [{samplers}], lengths: "
            f"{law(case['lengths'])}, tokens_per_s: 1000, max_tokens: 1000000, concurrency: {case['concurrency']}, grader: {{places: {case['places']}, "
            f"time: {law(case['grading'])}{timeout}}}, {shared}restarts: {{at: {case['at']}, down: {case['down']}, keeps: "
            f"{case['keeps']}, checkpoint_every: {case['checkpoint']}}}, learner: {{batches: {case['take']}, step: {case['step']}}}}}")


def cases():
    usual = {"speeds": [1, 1.3, 0.7], "shared": (), "lengths": (5000, 90000), "concurrency": 4, "places": 3, "grading": (2, 21),
             "timeout": INF, "take": 6, "step": 13.37, "colocated": None, "idle": False, "high": 1, "low": 1, "down": 47.11,
             "at": [101.3, 222.2, 240.1, 500.7, 777.77, 1003.9], "keeps": "nothing", "checkpoint": 1}
    for shared in ({}, {"colocated": (3.3, 2.1), "shared": (0, 1, 2)},
                   {"colocated": (3.3, 2.1), "shared": (1, 2), "idle": True, "high": 2, "low": 1.5}):
        for keeps in ("nothing", "queue", "responses"):
            yield {**usual, **shared, "keeps": keeps}
            yield {**usual, **shared, "keeps": keeps, "timeout": 17.5, "places": 2, "at": [60.1 + 83.77 * i for i in range(14)]}
        yield {**usual, **shared, "keeps": "queue", "checkpoint": 3}


if __name__ == "__main__":
    with open(pathlib.Path(__file__).parent / "restart.txt", "w") as out:
        for case in cases():
            job = Job(case).run()
            out.write(f"{text(case)}\n{job.restarts} {job.lost} {job.timed_out} {job.again} {job.switches} "
                      f"{sum(job.waits) / len(job.waits)!r} {job.switch_s!r}\n")
            for start, end, units in job.updates:
                out.write(f"{start!r} {end!r} {' '.join(f'{u.sampler} {u.ordinal} {u.version}' for u in units)}\n")
