"""What the peers of `gepolab bench` share: a line with a request in, a line of JSON out."""
import json
import os
import sys
import time

REPETITIONS = 5


def rates(run, amount, least=0.3):
    """amount (work of one run) per second, of each repetition, after a run to warm up. A repetition
    goes on until `least` seconds have passed."""
    run()
    run()  # what is compiled or chosen in the second call
    found = []
    for _ in range(REPETITIONS):
        begun, n, took = time.perf_counter(), 0, 0
        while took < least:
            run()
            n += 1
            took = time.perf_counter() - begun
        found.append(n * amount / took)
    return found


def answer(work):
    """Answers each request with the rates that work(*words) returns, or with why there are none."""
    # What libraries print must not be taken for an answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            result = {"rates": work(*line.split())}
        except Exception as failure:
            text = f"{type(failure).__name__}: {failure}".splitlines()[0]
            result = {"missing": text[:150]}
        print(json.dumps(result), file=out, flush=True)
