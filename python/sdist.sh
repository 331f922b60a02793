#!/bin/sh
# Writes a source package from the last commit: everything that `pip install` needs to build libgepolab and
# the Python files, with pyproject.toml at its top.
#
#   python/sdist.sh PYTHON OUTPUT
set -eu
python=$1
mkdir -p "$2"
output=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
git archive HEAD | tar -x -C "$work/tree"
"$python" -m venv "$work/env"
"$work/env/bin/python" -m pip install -q -U --disable-pip-version-check build setuptools wheel
cd "$work/tree"
cp python/setup.py setup.py
sed -e 's|^readme = .*|readme = "python/README.md"|' \
  -e 's|^packages = \["gepolab"\]|packages = ["gepolab"]\npackage-dir = {"" = "python"}|' python/pyproject.toml > pyproject.toml
echo 'global-include *' > MANIFEST.in
"$work/env/bin/python" -m build -q --sdist --no-isolation -o "$output" .
ls "$output"/gepolab-*.tar.gz
