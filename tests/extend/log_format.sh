#!/bin/sh
# A file of the new format is recognised by its content, and its series are tabulated like all others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '{"best_metric": null, "log_history": [{"step": 1, "reward": 0.5},\n {"step": 2, "reward": 0.75}]}' > "$folder/state.json"
"$GEPOLAB" analyze "$folder/state.json" | grep -q '^trainer *reward *higher *2 *0.75 *2 *0.75 *2 *0 *0.625'
printf '{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.75}\n' > "$folder/lines.jsonl"
"$GEPOLAB" analyze "$folder/lines.jsonl" | grep -q '^lines *reward '
"$GEPOLAB" fit "$folder/state.json" --column delay=reward 2> "$folder/refused" && exit 1
grep -q 'this is a log and no table' "$folder/refused"
