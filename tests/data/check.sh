#!/bin/sh
# Runs the lines of pandas, DuckDB and R of experiments/DATA.md on a small real study, and compares
# what they and all exported tables say with `gepolab analyze`.
#
#   tests/data/check.sh BUILD PYTHON
#
# pandas and duckdb are installed into BUILD/data-python where they are missing. Without Rscript the
# lines of R are skipped, and it is said so.
set -eu
build=$1
python=$2
root=$(pwd)
case $build in /*) ;; *) build=$root/$build ;; esac
if ! "$build/data-python/bin/python" -c 'import pandas, duckdb' 2> /dev/null; then
  "$python" -m venv "$build/data-python"
  "$build/data-python/bin/python" -m pip install --quiet pandas duckdb
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$build/gepolab" sweep delay_sweep -q -o study.db steps=60 tune=null 'sweep.seed=[1,2,3]' \
  'sweep.cluster.max_delay=[0,600,1800]' \
  'sweep.algorithm=[gepo,grpo,{base: gepo, clip: none, name: "a, \"quoted\" name"}]'
"$build/gepolab" export study.db --all -o data
"$build/gepolab" export study.db --all -o lines -f jsonl
"$build/gepolab" analyze study.db --json > analyze.json
"$build/data-python/bin/python" "$root/tests/data/check.py" "$root/experiments/DATA.md"
