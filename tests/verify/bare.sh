#!/bin/sh
# make check of the last commit in an empty Debian system of the release that runs here: nothing but
# make and git is installed beforehand. Needs root, debootstrap and the archive that apt-get has.
#
#   tests/verify/bare.sh        (in a clone of the commit; a part of make verify)
set -eu
cd "$(dirname "$0")/../.."
if [ "$(id -u)" != 0 ]; then echo "skipped: 1 of 1: an empty system needs root"; exit 0; fi
make --no-print-directory deps PACKAGES=debootstrap
work=$(mktemp -d)
root=$work/root
finish() {
  umount "$root/proc" "$root/dev/shm" "$root/dev/pts" 2> /dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
site=$(apt-get indextargets --format '$(SITE) $(CODENAME)' "Created-By: Packages" | awk -v r="$release" '$2 == r {print $1; exit}')
debootstrap --variant=minbase "$release" "$root" "$site" > "$work/log" 2>&1 || { tail "$work/log"; exit 1; }
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm" "$root/dev/pts" && mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts"
cp -r /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/" 2> /dev/null || true
git clone -q . "$root/gepolab"
chroot "$root" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -euc '
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends make git ca-certificates > /dev/null
  cd /gepolab
  git config --global --add safe.directory /gepolab
  make check'
