#!/bin/sh
# Checks libgepolab as a stranger's build meets it: the exported names are those of
# library/symbols.txt, and a program that has only the header and the library, through pkg-config, as C
# and as C++ where there is a C++ compiler, says what `gepolab policy` says.
#
#   tests/library/consumer/check.sh BUILD CC
set -eu
build=$(cd "$1" && pwd)
cc=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for form in so.0 a; do
  nm $([ $form = a ] || echo -D) --defined-only "$build/libgepolab.$form" |
    awk '$2 ~ /^[A-Z]$/ && $2 != "A" {sub(/@.*/, "", $3); print $3}' | sort > "$work/names"
  diff library/symbols.txt "$work/names" > "$work/difference" || {
    echo "library: libgepolab.$form exports other names than library/symbols.txt ('<' is missing, '>' is new):"
    grep '^[<>]' "$work/difference"
    echo "A name that goes needs a new major number of the interface, a new one a new minor number (library/gepolab.h)."
    exit 1; }
done

# As if installed: header, library and gepolab.pc below one prefix.
mkdir -p "$work/lib/pkgconfig" "$work/include"
cp library/gepolab.h "$work/include/"
cp "$build/libgepolab.so.0" "$build/libgepolab.a" "$work/lib/"
ln -s libgepolab.so.0 "$work/lib/libgepolab.so"
sed "s|^prefix=.*|prefix=$work|" "$build/gepolab.pc" > "$work/lib/pkgconfig/gepolab.pc"
export PKG_CONFIG_PATH="$work/lib/pkgconfig"
source=tests/library/consumer/consumer.c
strict='-Wall -Wextra -Wpedantic -Werror'
$cc -std=c11 $strict $(pkg-config --cflags gepolab) -o "$work/shared" $source $(pkg-config --libs gepolab)
$cc -std=c11 $strict -I"$work/include" -o "$work/static" $source "$work/lib/libgepolab.a" \
  $(pkg-config --static --libs-only-l gepolab | sed 's/-lgepolab//')
LD_LIBRARY_PATH="$work/lib" "$work/shared" > "$work/shared.txt"
"$work/static" > "$work/static.txt"
cmp "$work/shared.txt" "$work/static.txt"
if command -v g++ > /dev/null; then
  g++ -std=c++17 -x c++ $strict -Wno-missing-field-initializers -I"$work/include" -o "$work/plus" $source \
    -x none "$work/lib/libgepolab.so"
  LD_LIBRARY_PATH="$work/lib" "$work/plus" | cmp - "$work/shared.txt"
fi
# The programs in the header's comments print what the comments say.
awk -v to="$work/example_" '/^(\/\*| \*) Example: / { name = $3; sub(/\.$/, "", name); code = to name ".c"; said = to name ".txt"; on = code }
  /^ \* prints$/ { on = said; next }
  /^ \*\/$/ { on = "" }
  on != "" && /^ \*     / { print substr($0, 8) > on }' library/gepolab.h
for code in "$work"/example_*.c; do
  name=${code%.c}
  $cc -std=c11 $strict -I"$work/include" -o "$name" "$code" "$work/lib/libgepolab.so"
  LD_LIBRARY_PATH="$work/lib" "$name" > "$name.got"
  diff "$name.txt" "$name.got" || { echo "library: the example ${name##*_} of library/gepolab.h prints something else ('>')"; exit 1; }
done
[ "$(ls "$work"/example_*.c | wc -l)" -ge 6 ] || { echo "library: library/gepolab.h has lost examples"; exit 1; }
echo '{"rewards": [1, 0], "logp": [[-1, -0.5], [-2]], "logq": [[-1.25, -0.375], [-1.75]]}' |
  "$build/gepolab" policy -a gepo clip=none - > "$work/command.txt"
{ awk 'NR == 1 {print $2, $3}' "$work/command.txt"; awk '$1 ~ /^[0-9]+$/ {print "coefficient", $6}' "$work/command.txt"; } |
  cmp - "$work/shared.txt"
echo "library: $(wc -l < library/symbols.txt) names exported; the shared and the static library say what \`gepolab policy\` says"
