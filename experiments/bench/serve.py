"""What the peers of `gepolab bench` share: a line with a request in, a line of JSON out."""
import json
import os
import sys
import time
import traceback

REPETITIONS = 5


def rates(run, amount, least=0.3, repetitions=REPETITIONS):
    """amount (work of one run) per second, of each repetition, after a run to warm up. A repetition
    goes on until `least` seconds have passed."""
    run()
    run()  # what is compiled or chosen in the second call
    found = []
    for _ in range(repetitions):
        begun, n, took = time.perf_counter(), 0, 0
        while n == 0 or took < least:
            run()
            n += 1
            took = time.perf_counter() - begun
        found.append(n * amount / took)
    return found


def answer(work):
    """Answers each request with what work(*words) returns, rates or rates and a note, or with why there
    are none."""
    # What libraries print must not be taken for an answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            found = work(*line.split())
            result = dict(zip(("rates", "note"), found if isinstance(found, tuple) else (found,)))
        except Exception as failure:
            traceback.print_exc()
            text = f"{type(failure).__name__}: {failure}".splitlines()[0]
            result = {"missing": text[:150]}
        print(json.dumps(result), file=out, flush=True)
