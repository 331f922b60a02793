"""Runs the code blocks of a document on the exported tables in data/ and lines/ and compares them
with analyze.json (tests/data/check.sh makes all three in the current folder).

    check.py DOCUMENT

Means and rank correlations are computed here once more from the lines of JSON, so that neither
pandas nor DuckDB is compared with itself.
"""
import json
import math
import re
import shutil
import subprocess
import sys

import duckdb
import pandas as pd

DELAY = "cluster.max_delay"


def blocks(document, language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", open(document).read(), re.M | re.S)
    if len(found) != 1 or len(found[0].splitlines()) != 5:
        sys.exit(f"{document}: there are not five lines of {language}")
    return found[0]


def close(a, b, what):
    if not (math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15) or (math.isnan(a) and math.isnan(b))):
        sys.exit(f"{what}: {a} is not {b}")


def ranks(values):
    """From 1, ties at their mean rank."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]


def pearson(x, y):
    mx, my = math.fsum(x) / len(x), math.fsum(y) / len(y)
    xy = math.fsum((a - mx) * (b - my) for a, b in zip(x, y))
    return xy / math.sqrt(math.fsum((a - mx) ** 2 for a in x) * math.fsum((b - my) ** 2 for b in y))


def lines(table):
    return [json.loads(line) for line in open(f"lines/{table}.jsonl")]


class Wanted:
    """What the lines are to say."""

    def __init__(self):
        # Of up to three seeds the interquartile mean is the mean.
        self.best = {(c["algorithm"], c["axes"][DELAY]): (c["best"]["iqm"], c["done"] + c["diverged"])
                     for c in json.load(open("analyze.json"))["cells"]}
        self.rho, self.r = {}, {}
        for algorithm in {name for name, _ in self.best}:
            runs = [r for r in lines("summary") if r["algorithm"] == algorithm]
            steps = [r for r in lines("steps") if r["algorithm"] == algorithm]
            self.rho[algorithm] = pearson(ranks([r["staleness"] for r in runs]),
                                          ranks([r["kl_exact"] for r in runs]))
            self.r[algorithm] = pearson([r["staleness"] for r in steps], [r["kl_exact"] for r in steps])

    def same_best(self, rows, who):
        """rows: algorithm, delay, mean, number of seeds."""
        rows = list(rows)
        if len(rows) != len(self.best):
            sys.exit(f"{who}: {len(rows)} cells, not {len(self.best)}")
        for algorithm, delay, mean, seeds in rows:
            wanted, n = self.best[algorithm, delay]
            close(mean, wanted, f"{who}: best of {algorithm} at {delay}")
            if seeds is not None:
                close(seeds, n, f"{who}: seeds of {algorithm} at {delay}")


def check_pandas(document, wanted):
    names = {}
    exec(blocks(document, "python"), names)
    best, rho = names["best"].reset_index(), names["rho"]
    wanted.same_best(best[["algorithm", DELAY, "mean", "count"]].itertuples(index=False), "pandas")
    for algorithm, value in wanted.rho.items():
        close(rho.loc[(algorithm, "staleness"), "kl_exact"], value, f"pandas: rho of {algorithm}")


def check_views(document, execute, who):
    """The views of study.db against the exported lines; execute: SQL -> rows."""
    def same(view, table, columns):
        found = {tuple(row[:2]): row[2:] for row in execute(f'SELECT "key", {view.index}, {", ".join(columns)} FROM {view}')}
        wanted = {(r["key"], r[view.index]): [r[name] for name in columns.values()] for r in lines(table)}
        if set(found) != set(wanted):
            sys.exit(f"{who}: {view} has other rows than the export of {table}")
        for place, values in wanted.items():
            for name, a, b in zip(columns, found[place], values):
                if not (a == b or (isinstance(a, float) and (math.isinf(a) if b is None else math.isclose(a, b, rel_tol=1e-15)))):
                    sys.exit(f"{who}: {name} of {view} at {place} is {a}, not {b}")

    class View(str):
        index = "step"

    runs, counts = View("runs_v1"), View("staleness_v1")
    runs.index, counts.index = "ordinal", "staleness"
    plain = {name: name for name in ("study", "algorithm", "seed")}
    same(runs, "runs", {**plain, "learning_rate": "optimizer.lr", "status": "status", "code_version": "code_version"})
    same(View("steps_v1"), "steps", {**plain, **{name: name for name in ("time_s", "staleness", "kl_exact", "loss")}})
    same(View("evals_v1"), "evals", {**plain, "time_s": "time_s", "score": "eval_score"})
    same(counts, "staleness", {**plain, "batches": "count"})


def check_sqlite(document, wanted):
    text = re.search(r"^```python3\n(.*?)^```$", open(document).read(), re.M | re.S).group(1)
    names = {}
    exec(text, names)
    if len(names["last"]) != len(wanted.best):
        sys.exit(f"sqlite3: {len(names['last'])} cells, not {len(wanted.best)}")
    for algorithm, delay, mean in names["last"]:
        ends = {}
        for r in lines("evals"):
            if (r["algorithm"], r[DELAY]) == (algorithm, delay):
                ends[r["key"]] = r["eval_score"]  # in the order of steps
        close(mean, math.fsum(ends.values()) / len(ends), f"sqlite3: last score of {algorithm} at {delay}")
    check_views(document, lambda sql: names["study"].execute(sql).fetchall(), "sqlite3")


def check_attached():
    """DuckDB's reader of SQLite comes over the network, or from PyPI's duckdb-extension-sqlite-scanner."""
    db = duckdb.connect()
    try:
        try:
            db.execute("LOAD sqlite")
        except duckdb.Error:
            db.execute("INSTALL sqlite; LOAD sqlite")
    except duckdb.Error:
        print("data: skipped: DuckDB on the study's views (no extension sqlite)")
        return
    db.execute("ATTACH 'study.db' AS study (TYPE sqlite, READ_ONLY)")
    db.execute("USE study")
    check_views(None, lambda sql: db.execute(sql).fetchall(), "DuckDB")


def check_duckdb(db, document, wanted):
    results = []
    for statement in blocks(document, "sql").split(";\n"):
        if statement.strip():
            rows = db.execute(statement).fetchall()
            results += [rows] if statement.startswith("SELECT") else []
    wanted.same_best(results[0], "DuckDB")
    if {name for name, _ in results[1]} != set(wanted.r):
        sys.exit("DuckDB: correlations of other algorithms")
    for algorithm, value in results[1]:
        if not math.isclose(value, wanted.r[algorithm], rel_tol=1e-9):
            sys.exit(f"DuckDB: r of {algorithm}: {value} is not {wanted.r[algorithm]}")
    (rows,), = db.execute("SELECT count(*) FROM 'data/steps.parquet'").fetchall()
    if rows != len(lines("steps")):
        sys.exit(f"DuckDB: {rows} records of steps in the Parquet file, not {len(lines('steps'))}")


R_OUTPUT = """
options(digits = 17)
write.csv(best, "best.r.csv", row.names = FALSE)
write.csv(data.frame(algorithm = names(rho), rho = rho), "rho.r.csv", row.names = FALSE)
told <- read.csv("data/summary.csv", na.strings = "", colClasses = c(is_repeat = "logical"))
stopifnot(is.logical(told$is_repeat), !any(told$is_repeat), is.character(runs$key))
steps <- read.csv("data/steps.csv", na.strings = "")
stopifnot(is.numeric(steps$log_iw_variance_pq), any(steps$log_iw_variance_pq == -Inf, na.rm = TRUE))
"""


def check_r(document, wanted):
    with open("lines.R", "w") as script:
        script.write(blocks(document, "r") + R_OUTPUT)
    subprocess.run(["Rscript", "--vanilla", "lines.R"], check=True)
    best, rho = pd.read_csv("best.r.csv"), pd.read_csv("rho.r.csv")
    for row in best.itertuples(index=False):
        if not math.isclose(row[2], wanted.best[row[0], row[1]][0], rel_tol=1e-12):
            sys.exit(f"R: best of {row[0]} at {row[1]}: {row[2]}")
    if len(best) != len(wanted.best) or set(rho["algorithm"]) != set(wanted.rho):
        sys.exit("R: other cells or algorithms")
    for algorithm, value in rho.itertuples(index=False):
        close(round(value, 12), round(wanted.rho[algorithm], 12), f"R: rho of {algorithm}")


# What pandas and DuckDB make of the types that datapackage.json declares; a column without any value
# has no type to be found.
PANDAS = {"string": "O", "integer": "iuf", "number": "iuf", "boolean": "bO"}
DUCKDB = {"string": ("VARCHAR",), "integer": ("BIGINT",), "number": ("DOUBLE", "BIGINT"),
          "boolean": ("BOOLEAN",)}


def check_types(db, resource):
    name, fields = resource["name"], resource["schema"]["fields"]
    frame = pd.read_csv(f"data/{resource['path']}", keep_default_na=False, na_values=[""])
    described = db.sql(f"DESCRIBE FROM csv('data/{resource['path']}')").fetchall()
    if list(frame.columns) != [f["name"] for f in fields] or list(frame.columns) != [d[0] for d in described]:
        sys.exit(f"{name}: the columns are not those of datapackage.json")
    for field, (_, kind, *_rest) in zip(fields, described):
        if frame[field["name"]].isna().all() or (name, field["name"]) == ("axis_values", "value"):
            continue  # the delays are text that looks like numbers, as DATA.md says
        is_text = pd.api.types.is_string_dtype(frame[field["name"]].dtype)
        pandas_kind = "O" if is_text else frame[field["name"]].dtype.kind
        if pandas_kind not in PANDAS[field["type"]] or kind not in DUCKDB[field["type"]]:
            sys.exit(f"{name}.{field['name']}: declared {field['type']}, read as {pandas_kind} and {kind}")
    return frame


def check_tables(db):
    package = json.load(open("data/datapackage.json"))
    frames = {r["name"]: check_types(db, r) for r in package["resources"]}
    for r in package["resources"]:
        frame = frames[r["name"]]
        if frame.duplicated(r["schema"]["primaryKey"]).any():
            sys.exit(f"{r['name']}: {r['schema']['primaryKey']} is not unique")
        for key in r["schema"].get("foreignKeys", []):
            there = frames[key["reference"]["resource"]][key["reference"]["fields"]]
            if not frame[key["fields"]].dropna().isin(there).all():
                sys.exit(f"{r['name']}.{key['fields']} does not join {key['reference']['resource']}")
    return frames


def check_cells(frame):
    cells = json.load(open("analyze.json"))["cells"]
    if len(cells) != len(frame):
        sys.exit(f"cells: {len(frame)} records, analyze has {len(cells)}")
    for i, cell in enumerate(cells):
        row = frame.iloc[i]
        for name, value in cell.items():
            if isinstance(value, dict) and "iqm" in value:
                for part, suffix in (("iqm", ""), ("low", "_low"), ("high", "_high")):
                    told = value[part] if value[part] is not None else row[name + suffix]
                    close(row[name + suffix], told, f"cells: {name}{suffix} of cell {i + 1}")


def check_infinities(db, frames):
    told = [r["log_iw_variance_pq"] for r in lines("steps")]
    here = frames["steps"]["log_iw_variance_pq"]
    (there,), = db.sql("SELECT count(*) FROM csv('data/steps.csv') "
                       "WHERE log_iw_variance_pq = '-inf'::DOUBLE").fetchall()
    if not 0 < (here == -math.inf).sum() == there or here.isna().sum() + there != told.count(None):
        sys.exit("steps: pandas, DuckDB and the lines of JSON do not agree about infinities")


def main():
    document, wanted = sys.argv[1], Wanted()
    db = duckdb.connect()
    check_pandas(document, wanted)
    check_duckdb(db, document, wanted)  # whose first line says how a table is read
    frames = check_tables(db)
    check_cells(frames["cells"])
    check_infinities(db, frames)
    check_sqlite(document, wanted)
    check_attached()
    told = "pandas, sqlite3 and DuckDB"
    if shutil.which("Rscript"):
        check_r(document, wanted)
        told = "pandas, sqlite3, DuckDB and R"
    else:
        print("skipped: 1 of 1: the lines of R: no Rscript found (apt-get install r-base-core)")
    print(f"data: {told} say of {len(frames)} tables what gepolab analyze says")
    print(f"{len(re.split(', | and ', told))} passed, 0 failed")


main()
