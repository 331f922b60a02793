#!/bin/sh
# Installs the packages of `make deb` into an empty Debian system of the release that runs here, and
# uses them there: the program, its manual, what shells complete, a program in C, Python. Needs root and
# the archive that apt-get has. lintian's errors about the packages are errors here.
#
#   tests/packaging/deb.sh BUILD
set -eu
debs=$(cd "$1/deb" && pwd)
if [ "$(id -u)" != 0 ]; then echo "skipped: 1 of 1: an empty system needs root"; exit 0; fi
lintian --fail-on error --tag-display-limit 0 "$debs"/*.deb
work=$(mktemp -d)
root=$work/root
finish() {
  umount "$root/proc" 2> /dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
site=$(apt-get indextargets --format '$(SITE) $(CODENAME)' "Created-By: Packages" | awk -v r="$release" '$2 == r {print $1; exit}')
debootstrap --variant=minbase "$release" "$root" "$site" > "$work/log" 2>&1 || { tail "$work/log"; exit 1; }
mount -t proc proc "$root/proc"
cp -r /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/" 2> /dev/null || true
mkdir "$root/debs"
cp "$debs"/*.deb "$root/debs/"
cp tests/library/consumer/consumer.c "$root/debs/"
inside() { chroot "$root" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -euc "$1"; }
# Packages of a minimal system leave out manuals; these are what is tested.
rm -f "$root/etc/dpkg/dpkg.cfg.d/docker"
inside 'apt-get update -qq; apt-get install -y -qq --no-install-recommends /debs/*.deb gcc libc6-dev pkg-config bash-completion' > "$work/log" 2>&1 ||
  { tail -20 "$work/log"; exit 1; }
inside 'gepolab --version; gepolab doctor --no-test; gepolab run quickstart -q
  test -s /usr/share/man/man1/gepolab.1.gz; test -s /usr/share/zsh/vendor-completions/_gepolab
  gepolab sim heterorl_trace -f /tmp/figures > /dev/null; ls /tmp/figures/*.pdf
  cc -std=c11 -o /tmp/consumer /debs/consumer.c $(pkg-config --cflags --libs gepolab); /tmp/consumer
  python3 -c "import gepolab, numpy as np; r = gepolab.policy(np.array([1., 0.]), np.array([[-1, -0.5], [-2, -1]]), np.array([[-1.25, -0.375], [-1.75, -1]]), \"gepo\", group_size=2); print(gepolab.__version__, r.loss)"'
inside 'bash -ic "
  . /usr/share/bash-completion/bash_completion
  _completion_loader gepolab || true
  COMP_LINE=\"gepolab run quick\" COMP_POINT=17 COMPREPLY=()
  _gepolab; test \"\${COMPREPLY[0]}\" = quickstart"' 2> /dev/null || { echo "deb: bash does not find the completion"; exit 1; }
inside 'apt-get remove -y -qq gepolab libgepolab0 libgepolab-dev python3-gepolab > /dev/null 2>&1; ! command -v gepolab'
echo "deb: installed into an empty $release, used and removed: $(cd "$debs" && ls *.deb | tr '\n' ' ')"
