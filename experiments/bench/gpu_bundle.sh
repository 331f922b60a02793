#!/bin/bash
# What there is to run on a machine with a GPU, from the folder that `make gpu-bundle` makes:
#
#   ./run.sh LOGS PART [SECONDS] [PART [SECONDS]]...
#
# PART is one of the table below, where the seconds stand that each may take. More than 590 in one
# call are refused. Each part writes LOGS/PART.log, measurements also LOGS/PART.json, sweep
# LOGS/llm_delay_sweep.db, with which the next call goes on. A sanitizer that finds nothing until its
# time is over has passed. Ends with 1 where a part failed or there is no CUDA device. Variables:
# PYTHON (with PyTorch and transformers; default python3), SUITES (of tests and sanitizers; default
# "llm: cuda"), PEER_SHAPE (default 0.6b), JOBS (of the sweep; default 4).
set -u
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
PYTHON=${PYTHON:-python3} SUITES=${SUITES:-llm: cuda} PEER_SHAPE=${PEER_SHAPE:-0.6b} JOBS=${JOBS:-4}
own_path=${LD_LIBRARY_PATH:-}
declare -A seconds=([tests]=240 [parity]=150 [memcheck]=120 [ours-0.6b]=280 [ours-1.7b]=280 [chunks]=280
  [peer-train]=290 [peer-decode]=290 [profile]=200 [racecheck]=290 [initcheck]=290 [synccheck]=290
  [step-0.6b]=280 [step-1.7b]=280 [sweep]=540)

[ $# -ge 2 ] || usage
mkdir -p "$1" && logs=$(cd "$1" && pwd) || exit 2
shift
parts=() limits=() all=0
while [ $# -gt 0 ]; do
  limit=${seconds[$1]:-}
  [ -n "$limit" ] || { echo "there is no part '$1'; there are ${!seconds[*]}" >&2; exit 2; }
  parts+=("$1"); shift
  case ${1:-} in [1-9]*) limit=$1; shift ;; esac
  limits+=("$((limit))"); all=$((all + limit))
done
[ $all -le 590 ] || { echo "these parts may take $all s; name fewer, or their seconds: 590 in one call" >&2; exit 2; }

# --- what the program loads ---

[ -d "$here/lib" ] || tar -xzf "$here/lib.tar.gz" -C "$here" || exit 1

# Folders that hold what is opened when a GPU is used: the toolkit's, or those of PyTorch's packages.
cuda_folders() {
  for f in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib; do [ ! -d "$f" ] || printf ':%s' "$f"; done
  "$PYTHON" -c '
import glob, os, sys
for p in sys.path:
    for f in sorted(glob.glob(os.path.join(p, "nvidia", "*", "lib"))): print(":" + f, end="")' 2>/dev/null
}
LD_LIBRARY_PATH="$here/lib$(cuda_folders)${own_path:+:$own_path}"
export LD_LIBRARY_PATH
# Python is the machine's own and finds the machine's libraries.
printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec %s "$@"\n' "$own_path" "$PYTHON" > "$here/lib/python"
chmod +x "$here/lib/python"
export GEPOLAB_PYTHON="$here/lib/python" GEPOLAB="$here/gepolab" GEPOLAB_PEER_LOG="$logs/peer.log"
missing=$(ldd "$here/gepolab" "$here/gepolab-tests" 2>&1 | grep -E 'not found|version' | sort -u)
[ -z "$missing" ] || { echo "this machine lacks what the program loads:"; echo "$missing"; exit 1; } >&2
cd "$here" || exit 1
if [ ! -e "$logs/device.log" ]; then
  ./gepolab bench gpu --shape tiny --quick --only train > "$logs/device.log" 2>&1; code=$?
  { nvidia-smi; "$GEPOLAB_PYTHON" --version; } >> "$logs/device.log" 2>&1
  if [ $code != 0 ] || grep -q 'no CUDA device' "$logs/device.log"; then head -5 "$logs/device.log"; rm "$logs/device.log"; exit 1; fi
fi

# --- parts; $1 is the part, $limit its seconds ---

tests() { timeout "$limit" "$@" ./gepolab-tests "$SUITES" && ! grep -q 'skipped: no CUDA device' "$log"; }
bench() { # what is left of the part's time
  local left=$((begun + limit - SECONDS))
  [ $left -gt 0 ] && timeout $left ./gepolab bench gpu "$@" --seconds $left
}
tool_named() { command -v "$1" || ls /usr/local/cuda/bin/"$1"; }
sanitize() {
  local tool code
  tool=$(tool_named compute-sanitizer) || return 1
  tests "$tool" --tool "$1" --error-exitcode 9; code=$?
  [ $code != 124 ] || { echo "nothing found in $limit s" && ! grep -qE '=+ (Error|Invalid|Race|Uninit|Barrier)' "$log"; }
}
run_part() {
  case $1 in
    tests) tests ;;
    parity) bench --only parity --shape 0.6b -o "$logs/$1.json" ;;
    memcheck | racecheck | initcheck | synccheck) sanitize "$1" ;;
    ours-*) GEPOLAB_CUDA_TIMES=1 bench --only train,decode,logp --shape "${1#ours-}" -o "$logs/$1.json" &&
            GEPOLAB_CUDA_TIMES=all bench --only decode --shape "${1#ours-}" draws=32 -o "$logs/$1-unrecorded.json" ;;
    chunks) for n in 8388608 33554432 134217728; do
              GEPOLAB_CUDA_OUTPUT_CHUNK=$n bench --only train,logp --shape 0.6b repetitions=3 -o "$logs/$1-$n.json" || return 1
            done ;;
    peer-*) bench --only "limits,$1" --shape "$PEER_SHAPE" -o "$logs/$1-$PEER_SHAPE.json" ;;
    profile) timeout "$limit" "$(tool_named nsys)" profile -o "$logs/layer" --stats=true -f true \
               ./gepolab bench gpu --in-process --only train --shape 0.6b layers=1 repetitions=1 ;;
    step-*) GEPOLAB_CUDA_TIMES=1 bench --only step --shape "${1#step-}" -o "$logs/$1.json" ;;
    sweep) timeout -s INT "$limit" ./gepolab sweep recipes/llm_delay_sweep.yaml world.backend=cuda \
             -o "$logs/llm_delay_sweep.db" -j "$JOBS" && ./gepolab analyze "$logs/llm_delay_sweep.db" ;;
  esac
}

bad=0
for i in "${!parts[@]}"; do
  part=${parts[$i]} limit=${limits[$i]} log="$logs/${parts[$i]}.log" begun=$SECONDS
  run_part "$part" > "$log" 2>&1; code=$?
  echo "$part: $([ $code = 0 ] && echo passed || echo "failed ($code)"), $((SECONDS - begun)) s"
  [ $code = 0 ] || { bad=1; tail -5 "$log"; }
done
exit $bad
