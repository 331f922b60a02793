#!/bin/sh
# Installs the wheel of `make wheel` into systems that have Python and none of the libraries, and uses it there:
# the Debian release that runs here and, where its archive can be reached, Ubuntu 24.04. Needs root.
#
#   tests/packaging/wheel.sh FOLDER
set -eu
wheel=$(ls "$(cd "$1" && pwd)"/gepolab-*.whl)
if [ "$(id -u)" != 0 ]; then echo "skipped: 1 of 1: an empty system needs root"; exit 0; fi
work=$(mktemp -d)
finish() {
  for root in "$work"/*/; do umount "$root/proc" 2> /dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
use() { # NAME RELEASE ARCHIVE COMPONENTS [SCRIPT]
  root=$work/$1
  debootstrap --variant=minbase --no-check-gpg --components="$4" --include=python3-minimal,python3-venv,ca-certificates \
    "$2" "$root" "$3" ${5:+"$5"} > "$work/log" 2>&1 || { tail "$work/log"; return 1; }
  mount -t proc proc "$root/proc"
  cp /etc/resolv.conf "$root/etc/" 2> /dev/null || true
  cp "$wheel" "$root/"
  cp /etc/pip.conf "$root/etc/" 2> /dev/null || true
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 $(env | grep -iE '^(https?|no)_proxy=|^PIP_' || true) sh -euc "
    python3 -m venv /venv && /venv/bin/pip install -q --disable-pip-version-check /$(basename "$wheel")
    PATH=/venv/bin:\$PATH
    gepolab --version
    gepolab run quickstart | head -3
    gepolab sim three_continents > /dev/null
    gepolab lab bias four_arms > /dev/null
    gepolab sweep quickstart -q -o /tmp/s.db steps=20 'sweep={seed: [1, 2]}' && gepolab study check /tmp/s.db
    python3 -c 'import gepolab, numpy as np; r = gepolab.policy(np.array([1., 0.]), np.array([[-1, -0.5], [-2, -1]]), np.array([[-1.25, -0.375], [-1.75, -1]]), \"gepo\", group_size=2); print(gepolab.__version__, r.loss)'
    ! ls /usr/lib/*/libgsl.so* 2> /dev/null"
  echo "wheel: installed and used in an empty $1 $2"
}
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
site=$(apt-get indextargets --format '$(SITE) $(CODENAME)' "Created-By: Packages" | awk -v r="$release" '$2 == r {print $1; exit}')
use debian "$release" "$site" main
ubuntu=http://archive.ubuntu.com/ubuntu
if curl -sfI -m 20 "$ubuntu/dists/noble/Release" > /dev/null; then
  use ubuntu noble "$ubuntu" main,universe $([ -e /usr/share/debootstrap/scripts/noble ] || echo /usr/share/debootstrap/scripts/gutsy)
else
  echo "skipped: 1 of 2: the archive of Ubuntu cannot be reached"
fi
