#!/bin/sh
# A token-level log of the new format is known by its content, listed, evaluated, and refused by field.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
line() { printf '{"prompt_id": %s, "reward": %s, "mask": [0, 1, 1], "p": [0, -1, -2], "q": [0, -1, -%s]}\n' "$@"; }
{ line 1 0 2; line 2 1 2; line 1 1 3; line 2 0 1; } > "$folder/run.jsonl"
"$GEPOLAB" whatif "$folder/run.jsonl" -a grpo | grep -q '^1 update, 2 groups, 4 responses, 8 tokens'
"$GEPOLAB" list formats | grep -q '^pairs *tokens (whatif, policy): a line for each response'
printf '{"prompt_id": 1, "reward": 1, "mask": [1], "p": [-1], "q": [-1, -2]}\n' > "$folder/run.jsonl"
"$GEPOLAB" whatif "$folder/run.jsonl" 2> "$folder/refused" && exit 1
grep -q 'run.jsonl:1:.*: q has more than the 1 elements of mask' "$folder/refused"
