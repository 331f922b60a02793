# A table of results that was added is listed, exported in every form, part of an export of all, and near a misspelt name.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$GEPOLAB" sweep quickstart -q -o "$folder/s.db" steps=20 'sweep={algorithm: [grpo, gepo], seed: [1, 2]}'
"$GEPOLAB" study export --list | grep -q 'outcomes'
"$GEPOLAB" study export "$folder/s.db" -t outcomes > "$folder/outcomes.csv"
head -1 "$folder/outcomes.csv" | grep -q '^study,algorithm,runs,diverged,best$'
[ "$(wc -l < "$folder/outcomes.csv")" = 3 ]
grep -q '^[a-z]*,gepo,2,0,[01]' "$folder/outcomes.csv"
"$GEPOLAB" study export "$folder/s.db" --all -o "$folder/all"
cmp "$folder/outcomes.csv" "$folder/all/outcomes.csv"
grep -q '"name":[[:space:]]*"outcomes"' "$folder/all/datapackage.json"
