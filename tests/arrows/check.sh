#!/bin/sh
# Checks that rooms (folders) use only what tests/arrows/rooms.txt allows them.
#
#   tests/arrows/check.sh [BUILD] [ROOT]
#
# Five checks: the table itself has no circle; every #include "..." of a source file goes to a listed
# room; no two files include each other's headers in a circle (a room's own internal header, named
# internal.h or *_internal.h, is left out); every symbol that an object file of BUILD takes from
# another room comes from a listed one; and no object file parses JSON with cJSON. Prints each
# violation and exits 1 if there was any.
set -eu
build=${1:-build}
root=${2:-.}
cd "$root"
table=tests/arrows/rooms.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms=$(sed 's/#.*//' $table | awk 'NF {print $1}' | cut -d/ -f1 | sort -u)
find $rooms -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' | sort > "$work/files"

# --- the table ---
awk '!/^#/ && NF { for (i = 2; i <= NF; ++i) print $1, $i }' $table > "$work/allowed"
tsort "$work/allowed" > /dev/null 2> "$work/loop" || {
  echo "arrows: the rooms of $table form a circle:"; sed 's/^tsort: //' "$work/loop"; echo failed > "$work/bad"; }

# --- includes: lines "from to" of files ---
xargs grep -H '^ *# *include *"' < "$work/files" |
  sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' > "$work/includes"
awk -v table="$table" -v bad="$work/bad" '
  function room(path) { sub(/\/[^\/]*$/, "", path); return path }
  FILENAME == table { if ($0 !~ /^#/ && NF) { known[$1] = 1; for (i = 2; i <= NF; ++i) may[$1, $i] = 1 } next }
  {
    a = room($1); b = room($2)
    if (!(a in known) && !(a in told)) { told[a] = 1; print "arrows: the room " a " is not in " table; print > bad }
    if (a != b && !((a, b) in may)) { print "arrows: " $1 " includes " $2 ", but " a " may not use " b; print > bad }
  }' $table "$work/includes"

# --- circles of files: NAME.c and NAME.h are one ---
grep -v 'internal\.h$' "$work/includes" |
  sed -E 's/\.(cuh|cu|c|h) / /; s/\.(cuh|cu|c|h)$//' | awk '$1 != $2' | sort -u > "$work/units"
tsort "$work/units" > /dev/null 2> "$work/loop" || {
  echo "arrows: these files include each other's headers in a circle:"; sed 's/^tsort: //' "$work/loop"; echo failed > "$work/bad"; }

# --- symbols of object files ---
(cd "$build" && find $rooms -name '*.o' 2>/dev/null) | sort > "$work/objects" || true
if [ ! -s "$work/objects" ]; then echo "arrows: no object files in $build: build first"; exit 1; fi
# Only objects whose source is still there: a build folder keeps those of files that were renamed.
while read -r o; do
  s=${o%.o}; case $s in *.cu) ;; *) s=$s.c ;; esac
  if [ -f "$s" ]; then echo "$o"; fi
done < "$work/objects" > "$work/present"
(cd "$build" && xargs nm -A < "$work/present") 2>/dev/null |
  sed 's/:/ /' | awk 'NF >= 3' > "$work/symbols"
awk -v table="$table" -v bad="$work/bad" '
  function room(path) { sub(/\/[^\/]*$/, "", path); return path }
  FILENAME == table { if ($0 !~ /^#/ && NF) for (i = 2; i <= NF; ++i) may[$1, $i] = 1; next }
  pass == 1 { if (NF == 4 && $3 ~ /^[TDBRVWC]$/) home[$4] = room($1); next }
  $(NF - 1) == "U" && ($NF in home) {
    a = room($1); b = home[$NF]
    if (a != b && !((a, b) in may) && !((a, b, $NF) in told)) {
      told[a, b, $NF] = 1
      print "arrows: " $1 " uses " $NF ", but " a " may not use " b; print > bad
    }
  }' $table pass=1 "$work/symbols" pass=2 "$work/symbols"

# --- JSON is read by core/base/json.c alone; cJSON writes and holds trees ---
if grep 'U cJSON_Parse' "$work/symbols" > "$work/parsers"; then
  sed 's/\.o:* .*/ may not use cJSON_Parse: read with core\/base\/json.h/; s/^/arrows: /' "$work/parsers"
  echo failed > "$work/bad"
fi

if [ -e "$work/bad" ]; then exit 1; fi
echo "arrows: $(wc -l < "$work/includes") includes and $(wc -l < "$work/present") object files follow $table"
