#!/bin/sh
# Debian's libraries and headers for aarch64, unpacked into a folder. Apt has its own lists, state and cache there:
# the system's packages and architectures stay as they are.
#
#   tests/neon/sysroot.sh FOLDER PACKAGE...
#
# The packages come from the release that runs here, with what they depend on. FOLDER/done is written last.
set -eu
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
rm -rf --one-file-system "$root"
apt=$root/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/state"
: > "$apt/state/status"
get() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User="$(id -un)" \
    -o APT::Install-Recommends=false -o Dir::State="$apt/state" -o Dir::State::status="$apt/state/status" \
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Dir::Log="$apt" -o Debug::NoLocking=true "$@"
}
get update
get --download-only --yes install "$@" > "$apt/log"
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
# Names that the packages' scripts make with update-alternatives.
libraries=$root/usr/lib/aarch64-linux-gnu
for name in libopenblas.so libopenblas.so.0 libblas.so.3 liblapack.so.3; do
  ln -sf "openblas-pthread/$name" "$libraries/$name"
done
ln -sf ../openblas-pthread/pkgconfig/openblas.pc "$libraries/pkgconfig/openblas.pc"
# Absolute links lead into the folder.
find "$root" -type l -lname '/*' | while read -r link; do ln -sfr "$root$(readlink "$link")" "$link"; done
rm -r "$apt"
touch "$root/done"
