#!/bin/sh
# Builds the Debian packages gepolab, libgepolab0, libgepolab-dev and python3-gepolab of the last
# commit (of the files as they are, where there is no git) into BUILD/deb. `make deb` calls it.
#
#   experiments/packaging/deb.sh BUILD
set -eu
mkdir -p "$1"
out=$(cd "$1" && pwd)/deb
version=$(sed 's/-/~/' VERSION)
tree=$out/gepolab-$version
rm -rf "$out"
mkdir -p "$tree"
if git rev-parse --verify -q HEAD > /dev/null 2>&1; then
  git archive HEAD | tar -x -C "$tree"
  date=$(git log -1 --format=%cD)
  # The tree is no repository: the program is told its commit.
  git rev-parse HEAD > "$tree/COMMIT"
else
  tar -c --exclude='./build*' --exclude=./.git . | tar -x -C "$tree"
  date=$(date -R -r VERSION)
fi
cp -r "$tree/experiments/packaging/debian" "$tree/debian"
cat > "$tree/debian/changelog" <<END
gepolab ($version) unstable; urgency=medium

  * What changed is in CHANGELOG.md.

 -- The gepolab authors <gepolab@example.org>  $date
END
cd "$tree"
dpkg-buildpackage --no-sign --build=binary > "$out/log" 2>&1 || { tail -40 "$out/log" >&2; exit 1; }
rm -rf "$tree"
ls "$out"/*.deb
