# A field that was added is documented, in the schema, bounded, has an effect, and is stored.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
recipe='{name: moved, steps: 3, world: {kind: bandit, rewards: [0, 1]}}'
printf '%s\n' "$recipe" > "$folder/moved.yaml"
"$GEPOLAB" fields world.offset | grep -q 'added to every mean reward'
"$GEPOLAB" fields --schema | grep -q '"offset"'
if "$GEPOLAB" run "$folder/moved.yaml" world.offset=far 2> "$folder/why"; then exit 1; fi
grep -q "'world.offset' is text ('far'); it must be a number from -1000000000" "$folder/why"
"$GEPOLAB" run "$folder/moved.yaml" | grep -q 'eval_first  *0.5000'
"$GEPOLAB" run "$folder/moved.yaml" world.offset=2 -o "$folder/s.db" | grep -q 'eval_first  *2.5000'
"$GEPOLAB" run "$folder/moved.yaml" -q -o "$folder/s.db" seed=2
"$GEPOLAB" export "$folder/s.db" -t runs | grep -q 'world.offset'
