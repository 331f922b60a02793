#!/bin/sh
# A toy world that was added is learned in, swept, measured exactly, documented, and the nearest name
# of a misspelt one.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/climb.yaml" <<'YAML'
name: climb
steps: 60
eval_every: 60
world: {kind: ladder, rungs: 3, steepness: 2}
algorithm: reinforce
YAML
# Uniform at first: (0 + 1/4 + 1) / 3; then it climbs.
"$GEPOLAB" run "$folder/climb.yaml" --json -q >"$folder/run.json"
grep -q '"eval_first":[[:space:]]*0.41666666666666' "$folder/run.json"
grep -q '"last":[[:space:]]*0.9' "$folder/run.json"
"$GEPOLAB" sweep "$folder/climb.yaml" 'sweep={world.rungs: [2, 3], seed: [1, 2]}' -o "$folder/climb.db" -q
cat >"$folder/exact.yaml" <<'YAML'
world: {kind: ladder, rungs: 3}
dial: {kind: direction, kl: [0.1]}
group_size: 2
algorithms: [is]
YAML
"$GEPOLAB" bias "$folder/exact.yaml" >/dev/null
"$GEPOLAB" fields world.steepness | grep -q 'power of an arm'
if "$GEPOLAB" run "$folder/climb.yaml" world.kind=lader 2>"$folder/why"; then exit 1; fi
grep -q "did you mean 'ladder'" "$folder/why"
if "$GEPOLAB" run "$folder/climb.yaml" world.steepnes=2 2>"$folder/why"; then exit 1; fi
grep -q "did you mean 'steepness'" "$folder/why"
