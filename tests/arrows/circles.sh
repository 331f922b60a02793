#!/bin/sh
# Checks that files of a room do not call each other in a circle: A.c calls a function of B.c, and B.c,
# itself or through others, one of A.c. Read from the symbols of BUILD's object files. Files that are
# still in a circle stand in tests/arrows/circles.txt, which may only shrink.
#
#   tests/arrows/circles.sh BUILD             checks
#   tests/arrows/circles.sh BUILD --shrink    takes out of the list what is mended
#   tests/arrows/circles.sh BUILD --show      every circle, with the calls it consists of
set -eu
build=$1
list=tests/arrows/circles.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms=$(sed 's/#.*//' tests/arrows/rooms.txt | awk 'NF {print $1}' | cut -d/ -f1 | sort -u)
(cd "$build" && find $rooms -name '*.o') | sort | while read -r o; do
  s=${o%.o}; case $s in *.cu) ;; *) s=$s.c ;; esac
  if [ -f "$s" ]; then echo "$o"; fi
done > "$work/objects"
[ -s "$work/objects" ] || { echo "circles: no object files in $build: build first"; exit 1; }
(cd "$build" && xargs nm -A < "$work/objects") 2> /dev/null | sed 's/\.o:/ /' | awk 'NF >= 3' > "$work/symbols"
# Lines "FILE CALLED FUNCTION", both of one room.
awk 'function room(path) { sub(/\/[^\/]*$/, "", path); return path }
  pass == 1 { if (NF == 4 && $3 ~ /^[TW]$/) home[$4] = $1; next }
  $(NF - 1) == "U" && ($NF in home) && home[$NF] != $1 && room($1) == room(home[$NF]) { print $1, home[$NF], $NF }' \
  pass=1 "$work/symbols" pass=2 "$work/symbols" | sort -u > "$work/calls"
# Files from which calls lead back to them, with those that they reach and are reached from.
cut -d' ' -f1,2 "$work/calls" | sort -u |
awk '{ if (!($1 in seen)) { seen[$1] = 1; files[++n] = $1 } to[$1] = to[$1] " " $2 }
  function reach(from, set,   queue, head, tail, next_of, k, i) {
    delete set; queue[tail = 1] = from
    for (head = 1; head <= tail; ++head) {
      k = split(to[queue[head]], next_of, " ")
      for (i = 1; i <= k; ++i) if (!(next_of[i] in set)) { set[next_of[i]] = 1; queue[++tail] = next_of[i] }
    }
  }
  END { for (f = 1; f <= n; ++f) { reach(files[f], set); for (g in set) reaches[files[f], g] = 1 }
    for (f = 1; f <= n; ++f) if ((files[f], files[f]) in reaches) {
      line = files[f] ".c:"; for (g = 1; g <= n; ++g) if (g != f && (files[f], files[g]) in reaches && (files[g], files[f]) in reaches) line = line " " files[g] ".c"
      print line } }' | sort > "$work/circles"
cut -d: -f1 "$work/circles" > "$work/now"
touch "$list"
sed '/^#/d; /^$/d' "$list" | sort > "$work/known"
show() { # FILE: its circle, and the calls in it
  sed -n "s|^$1: *|$1 |p" "$work/circles" | tr ' ' '\n' | sort > "$work/circle"
  echo "circles:" $(cat "$work/circle")
  awk 'NR == FNR {sub(/\.c$/, ""); in_it[$1] = 1; next} ($1 in in_it) && ($2 in in_it) {to[$1 ".c -> " $2 ".c:"] = to[$1 ".c -> " $2 ".c:"] " " $3}
    END {for (pair in to) print "  " pair to[pair]}' "$work/circle" "$work/calls" | sort
}
if [ "${2:-}" = --show ]; then
  while read -r f; do grep -q -x "$f" "$work/shown" 2> /dev/null || { show "$f"; cat "$work/circle" >> "$work/shown"; }; done < "$work/now"
  exit 0
fi
bad=0
for f in $(comm -13 "$work/known" "$work/now"); do
  bad=1
  grep -q -x "$f" "$work/shown" 2> /dev/null || { show "$f"; cat "$work/circle" >> "$work/shown"; }
done
[ $bad = 0 ] || echo "circles: move what both need into a file below them"
comm -23 "$work/known" "$work/now" > "$work/mended"
if [ "${2:-}" = --shrink ]; then
  grep -v -x -F -f "$work/mended" "$list" > "$work/list" || true
  [ ! -s "$work/mended" ] || cp "$work/list" "$list"
elif [ -s "$work/mended" ]; then
  echo "circles: mended, to be taken out of $list (tests/arrows/circles.sh $build --shrink):" $(cat "$work/mended")
fi
[ $bad = 0 ] || exit 1
echo "circles: $(wc -l < "$work/calls") functions called from another file of their room; $(wc -l < "$work/now") files still in circles"
