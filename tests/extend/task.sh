#!/bin/sh
# A task that was added is listed, learned from and measured on.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$GEPOLAB" llm tasks reversal | grep -q 'letters of a word'
cat >"$folder/reversal.yaml" <<'YAML'
name: reversal
world:
  kind: llm
  backend: cpu
  model: {layers: 1, hidden: 16, heads: 2, context: 32}
  task: {kind: reversal, length: 3, reward: graded}
  warmup: {steps: 20, batch: 8, cache: false}
  evaluation: {prompts: 8}
train: {groups: 2, group_size: 4}
YAML
"$GEPOLAB" llm sft "$folder/reversal.yaml" -o "$folder/model" -q >"$folder/out"
"$GEPOLAB" llm eval "$folder/model" -q | grep -q 'held-out problems of reversal'
if "$GEPOLAB" llm info "$folder/reversal.yaml" world.task.length=101 2>/dev/null; then exit 1; fi
