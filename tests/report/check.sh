#!/bin/sh
# Looks at reports as a browser shows them.
#
#   tests/report/check.sh BUILD
#
# Sweeps small studies into BUILD/report (one alone in its file, two in one file), writes their reports, checks that they are well-formed, and has headless Chromium open
# each at 400 and 1,400 pixels (tests/report/page.py says what is looked at; screenshots stay in
# BUILD/report). Says so and ends well where there is no Chromium and it cannot be installed.
set -eu
build=$1
here=$(dirname "$0")
to=$build/report
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "installing: chromium"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null || true
  browser=$(command -v chromium || true)
fi
if [ -z "$browser" ]; then
  echo "skipped: 1 of 1: no chromium found (apt-get install chromium)"
  exit 0
fi
command -v python3 > /dev/null || { echo "skipped: 1 of 1: no python3 found"; exit 0; }

rm -rf "$to" && mkdir -p "$to"
"$build/gepolab" sweep delay_sweep -q -o "$to/whole.db" steps=40 'sweep.seed=[1,2,3]' \
  'tune=null' > /dev/null
"$build/gepolab" sweep quickstart -q -o "$to/two.db" steps=20 name=first \
  'sweep={algorithm: [grpo, gepo], cluster.down.loss: [0, 0.1], cluster.window: [8, 64], seed: [1, 2]}' > /dev/null
"$build/gepolab" sweep quickstart -q -o "$to/two.db" steps=20 \
  'sweep={seed: [1, 2]}' \
  'name="a study with quite a long name & <b>marks</b> in it, which has to break somewhere"' > /dev/null
for study in whole two; do
  "$build/gepolab" report "$to/$study.db" -o "$to/$study.html" > /dev/null
  if command -v xmllint > /dev/null; then xmllint --noout "$to/$study.html"; fi
  for width in 400 1400; do
    python3 "$here/page.py" "$browser" "$to/$study.html" $width "$to/$study-$width.png"
  done
done

# The page of a diagnosis, which has tables only.
"$build/gepolab" diagnose tests/golden/diagnose.jsonl tests/golden/trainer_logs/verl.jsonl -a grpo -o "$to/diagnose.html" > /dev/null
if command -v xmllint > /dev/null; then xmllint --noout "$to/diagnose.html"; fi
for width in 400 1400; do
  python3 "$here/page.py" "$browser" "$to/diagnose.html" $width "$to/diagnose-$width.png" no-figures
done
