#!/usr/bin/env python3
"""Puts the page of tools together.

    bundle.py SOURCE MODULE RESULTS OUTPUT

SOURCE is site/browser, RESULTS the folder of stored results, MODULE the folder with gepolab.js and gepolab.wasm, OUTPUT gets
engine.js      the module as data: the thread's text and the compressed WebAssembly,
tools.js       the scripts of the page,
browser.css    its style,
gepolab.html   all of these in one file, which works without a network and from a disk.
"""
import base64
import gzip
import json
import os
import re
import sys

SCRIPTS = ["app.js", "calculator.js", "lens.js", "dial.js", "log.js", "map.js", "start.js"]
# The studies of the collapse map: what was trained, stored results by method, staleness and learning rate, and scores of each run.
STUDIES = {"long_regime": ("a transformer on sorting, 5,000 updates, 24 starts", "long_regime_outcomes.tsv", "long_regime_evals.tsv"),
           "frontier": ("a transformer on addition", "frontier.tsv", None),
           "frontier_sorting": ("a transformer on sorting", "frontier_sorting.tsv", None),
           "frontier_automaton": ("a policy on automata", "frontier_automaton.tsv", None)}


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as of:
        return of.read()


def engine(source, module):
    """A constant of JavaScript. Inside a page, the text must not end the script element."""
    with open(os.path.join(module, "gepolab.wasm"), "rb") as of:
        wasm = base64.b64encode(gzip.compress(of.read(), 9, mtime=0)).decode()
    thread = read(module, "gepolab.js") + "\n" + read(source, "worker.js")
    return "const GEPOLAB_ENGINE = " + json.dumps({"thread": thread, "wasm": wasm}).replace("</", "<\\/") + ";\n"


def curves(results, name):
    """The scores of each run by method and staleness: {start: [[update, score], ...]}. A weight delay of k s makes data k + 1 updates old."""
    found = {}
    lines = [line.split("\t") for line in read(results, name).splitlines() if not line.startswith("# ")]
    if lines[0] != ["algorithm", "seed", "cluster.delay", "step", "eval_score"]:
        sys.exit(f"bundle.py: {name} has other columns than a run's scores: {lines[0]}")
    for method, seed, delay, step, score in lines[1:]:
        runs = found.setdefault((method, int(delay) + 1 if delay else 0), {})
        runs.setdefault(seed, []).append([int(step), round(float(score), 3)])
    return found


def study(results, name, about, outcomes, scores):
    """A study's cells: method, staleness, and for each learning rate runs, collapsed runs and last score with interval."""
    head, cells, of_runs = {}, {}, curves(results, scores) if scores else {}
    for line in read(results, outcomes).splitlines():
        if line.startswith("# "):
            key, _, value = line[2:].partition(": ")
            head[key] = value
            continue
        key, value = line.split("\t")
        found = re.fullmatch(r"cells\[(.*),([^,]*),(\d+)\]\.doses\[(\d+)\]\.(.*)", key)
        if found:  # a cell's key is method, cluster and staleness in updates
            method, staleness = found[1], int(found[3])
            cells.setdefault((method, staleness), {}).setdefault(int(found[4]), {})[found[5]] = float(value)
    if not cells:
        sys.exit(f"bundle.py: {outcomes} has no cells with a learning rate")

    def dose(of):
        last = [of["last." + part] for part in ("value", "low", "high")] if "last.value" in of else None
        return {"dose": of["dose"], "runs": int(of["runs"]), "falls": int(of["falls"]), "last": last}

    return {"name": name, "about": about, "commit": head["commit"], "date": head["date"], "command": head["command"],
            "cells": [{"method": method, "staleness": staleness, "doses": [dose(doses[k]) for k in sorted(doses)],
                       "curves": of_runs.get((method, staleness))}
                      for (method, staleness), doses in cells.items()]}


def main():
    source, module, results, output = sys.argv[1:5]
    os.makedirs(output, exist_ok=True)
    files = {"engine.js": engine(source, module), "browser.css": read(source, "browser.css"),
             "tools.js": "(() => {\n'use strict';\nconst GEPOLAB_STUDIES = "
             + json.dumps([study(results, name, *of) for name, of in STUDIES.items()]).replace("</", "<\\/") + ";\n" + "\n".join(read(source, name).replace("'use strict';\n", "") for name in SCRIPTS) + "})();\n"}
    page = read(source, "offline.html")
    for mark, text in (("STYLE", files["browser.css"]), ("TOOLS", read(source, "tools.html")), ("ENGINE", files["engine.js"]),
                       ("SCRIPTS", files["tools.js"])):
        page = page.replace(f"<!--{mark}-->", text, 1)
    files["gepolab.html"] = page
    for name, text in files.items():
        with open(os.path.join(output, name), "w", encoding="utf-8") as to:
            to.write(text)


if __name__ == "__main__":
    main()
