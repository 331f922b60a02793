#!/bin/sh
# A file of the new format is recognised by its content, and its series are tabulated like all others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'step 250: train loss 2.5, val loss 2.75\niter 250: loss 2.4\nstep 500: train loss 2.25, val loss 2.5\n' > "$folder/out.txt"
"$GEPOLAB" analyze "$folder/out.txt" | grep -q '^out *train/loss *lower *2 *2.25 *500 *2.25 *500 *0 *2.375'
printf '{"step": 1, "reward": 0.5}\n{"step": 2, "reward": 0.75}\n' > "$folder/lines.jsonl"
"$GEPOLAB" analyze "$folder/lines.jsonl" | grep -q '^lines *reward '
"$GEPOLAB" list formats | grep -q '^nano_gpt *nanoGPT'
"$GEPOLAB" fit "$folder/out.txt" --column delay=reward 2> "$folder/refused" && exit 1
grep -q 'this log has series of steps and no rows' "$folder/refused"
