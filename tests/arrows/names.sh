#!/bin/sh
# Checks that a static function's name stands once in the tree outside tests, so that a search finds the
# one that is meant. Names that still recur stand in tests/arrows/names.txt, which may only shrink.
#
#   tests/arrows/names.sh [--shrink]      (--shrink takes out of the list what is mended)
set -eu
list=tests/arrows/names.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms=$(sed 's/#.*//' tests/arrows/rooms.txt | awk 'NF {print $1}' | cut -d/ -f1 | sort -u)
# "static … name(" at the beginning of a line, as clang-format leaves it; a declaration and its definition count once.
find $rooms -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | sort | xargs grep -HE '^static [^=;(]*[ *][a-z_0-9A-Z]+\(' |
  sed -E 's/^([^:]*):static [^=;(]*[ *]([a-z_0-9A-Z]+)\(.*/\2 \1/' | grep -v '^__' | sort -u > "$work/all"
awk '{ count[$1]++; in_files[$1] = in_files[$1] " " $2 } END { for (name in count) if (count[name] > 1) print name in_files[name] }' "$work/all" | sort > "$work/recur"
cut -d' ' -f1 "$work/recur" | sort > "$work/now"
touch "$list"
sed '/^#/d; /^$/d' "$list" | sort > "$work/known"
bad=0
for n in $(comm -13 "$work/known" "$work/now"); do bad=1; echo "names: $(grep "^$n " "$work/recur" | sed 's/ / is in /')"; done
[ $bad = 0 ] || echo "names: a static function is named after its file's subject (print_json in cmd_bias.c: bias_print_json)"
comm -23 "$work/known" "$work/now" > "$work/mended"
if [ "${1:-}" = --shrink ]; then
  grep -v -x -F -f "$work/mended" "$list" > "$work/list" || true
  [ ! -s "$work/mended" ] || cp "$work/list" "$list"
elif [ -s "$work/mended" ]; then
  echo "names: unique now, to be taken out of $list (tests/arrows/names.sh --shrink):" $(cat "$work/mended")
fi
[ $bad = 0 ] || exit 1
echo "names: $(wc -l < "$work/all") static functions; $(wc -l < "$work/now") names still stand more than once"
