#!/bin/sh
# Runs the tasks of GUIDE.md as somebody would who pastes its lines into a shell: the ```sh blocks of
# each section, one after another in a folder of its own, with the program of BUILD. A line that fails
# fails the check, and so does a file that the section's text names in backticks (`windows/window.pdf`)
# and that is not there afterwards.
#
#   tests/guide.sh BUILD [SECTION]
set -eu
build=$(cd "$1" && pwd)
only=${2:-}
guide=$(pwd)/GUIDE.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$build/gepolab" "$work/bin/gepolab"
PATH=$work/bin:$PATH
export PATH GEPOLAB_CACHE="$work/cache"
tasks=0
for n in $(sed -n 's/^## \([0-9][0-9]*\)\. .*/\1/p' "$guide"); do
  [ -z "$only" ] || [ "$n" = "$only" ] || continue
  sed -n "/^## $n\\. /,/^## $((n + 1))\\. /p" "$guide" > "$work/section"
  mkdir "$work/$n"
  awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$work/section" > "$work/lines"
  [ -s "$work/lines" ] || { echo "guide: task $n has no lines to run"; exit 1; }
  (cd "$work/$n" && sh -eu "$work/lines" < /dev/null > "$work/said" 2>&1) || {
    tail -20 "$work/said"; echo "guide: task $n of GUIDE.md fails"; exit 1; }
  if grep -q '[a-z]//[a-z]' "$work/said"; then echo "guide: task $n prints a path with two slashes"; exit 1; fi
  # Text outside the blocks: figures that it promises. A folder has to stand before the name.
  awk '/^```sh$/ {inside = 1} !inside {print} /^```$/ {inside = 0}' "$work/section" |
    grep -oE '`[a-z_]+/[a-z_]+\.(pdf|png|svg|tsv|html)`' | tr -d '`' | sort -u > "$work/promised"
  [ -s "$work/promised" ] || { echo "guide: task $n of GUIDE.md names no figure"; exit 1; }
  while read -r file; do
    [ -s "$work/$n/$file" ] || { echo "guide: task $n of GUIDE.md promises $file, which is not there"; exit 1; }
  done < "$work/promised"
  tasks=$((tasks + 1))
done
[ "$tasks" -gt 0 ] || { echo "guide: GUIDE.md has no task ${only:-at all}"; exit 1; }
echo "guide: $tasks tasks of GUIDE.md run, and give the figures that they name"
