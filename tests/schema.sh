#!/bin/sh
# Holds `gepolab fields --schema` to the validator of PyPI's check-jsonschema: the schema is one of
# its metaschema, every shipped recipe passes, and ten wrong recipes fail.
#
#   tests/schema.sh BUILD PYTHON
set -eu
build=$1
python=$2
case $build in /*) ;; *) build=$(pwd)/$build ;; esac
check=$build/schema-python/bin/check-jsonschema
if ! [ -x "$check" ]; then
  "$python" -m venv "$build/schema-python"
  "$build/schema-python/bin/python" -m pip install --quiet check-jsonschema
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/gepolab" fields --schema > "$work/schema.json"
"$check" --check-metaschema "$work/schema.json" > /dev/null
"$check" --schemafile "$work/schema.json" experiments/recipes/*.yaml > "$work/said" || {
  cat "$work/said"; echo "schema: a shipped recipe is refused"; exit 1; }
# Each is refused by the program too.
refused=0
while IFS= read -r text; do
  printf '%s\n' "$text" > "$work/wrong.yaml"
  if "$check" --schemafile "$work/schema.json" "$work/wrong.yaml" > /dev/null 2>&1; then
    echo "schema: accepts $text"; exit 1; fi
  if "$build/gepolab" run "$work/wrong.yaml" > /dev/null 2>&1; then
    echo "schema: gepolab accepts $text"; exit 1; fi
  refused=$((refused + 1))
done <<'WRONG'
{world: {kind: bandt}}
{world: {kind: bandit}, stepps: 10}
{world: {kind: bandit}, steps: many}
{world: {kind: bandit}, steps: 0}
{world: {kind: bandit}, train: {groups: 2.5}}
{world: {kind: bandit}, optimizer: {momentum: 1}}
{world: {kind: bandit}, cluster: {preset: areall}}
{world: {kind: bandit}, cluster: {up: {loss: 2}}}
{world: {kind: bandit}, algorithm: {base: gepo, clip: ppoo}}
{world: {kind: bandit}, algorithm: gepoo}
WRONG
echo "schema: $(ls experiments/recipes/*.yaml | wc -l) recipes pass, $refused wrong ones are refused"
