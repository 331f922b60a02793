#!/bin/bash
# What there is to run on a machine with a GPU, from the folder that `make gpu-bundle` makes:
#
#   ./run.sh LOGS PART [SECONDS] [PART [SECONDS]]...
#   ./run.sh --seconds PART [SECONDS] [PART [SECONDS]]...
#   ./run.sh --rebuild TREE
#
# PART is one of the table below, where the seconds stand that each may take; --seconds prints their
# sum. More than 560 in one call are refused, for a first look at the device may take 30 more. Each
# part writes LOGS/PART.log, measurements also LOGS/PART.json, sweep LOGS/llm_delay_sweep.db, with
# which the next call goes on. Tests run in one process each; a test that fails is run again with
# synchronous launches and under the memory checker, if the part has time left. A sanitizer part
# fails if it found something or did not get through all tests in its time. Ends with 1 where a part
# failed or there is no CUDA device. Variables: PYTHON (with PyTorch and transformers; default
# python3), SUITES (of tests and sanitizers; default "llm: cuda"), PEER_SHAPE (default 0.6b), JOBS
# (tests at a time, and workers of the sweep; default 8). --rebuild compiles the kernels of a source
# tree with the machine's nvcc and links the programs with them, from the objects of a bundle that
# was made with BUNDLE_OBJECTS=1.
set -u
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
PYTHON=${PYTHON:-python3} SUITES=${SUITES:-llm: cuda} PEER_SHAPE=${PEER_SHAPE:-0.6b} JOBS=${JOBS:-8}
own_path=${LD_LIBRARY_PATH:-}
declare -A seconds=([tests]=90 [decode-0.6b]=60 [train-0.6b]=60 [decode-1.7b]=90 [train-1.7b]=90 [times-0.6b]=60
  [times-1.7b]=90 [repeats]=60 [repeats-0.6b]=60 [profile]=90 [parity]=90 [memcheck]=120 [racecheck]=290 [initcheck]=290
  [synccheck]=120 [chunks]=120 [peer-train]=160 [peer-decode]=400 [step-0.6b]=280 [step-1.7b]=280 [sweep]=540)

[ $# -ge 2 ] || usage
to=$1
shift
# Compiles all kernels at a time, which takes as long as the slowest on a machine of 16 cores.
rebuild() {
  local made=$here/rebuilt f jobs=()
  [ -d "$here/lib" ] || tar -xzf "$here/bundle.tar.gz" -C "$here" || return 1
  mkdir -p "$made" && "$PYTHON" -m tarfile -e "$here/objects.tar.xz" "$made" && cd "$1" || return 1
  for f in llm/backend/cuda/*.cu; do
    nvcc -std=c++17 -O3 -I. -lineinfo -DGEPOLAB_CUDA_LIB='"/usr/local/cuda/lib64"' \
      -DGEPOLAB_CUDA_MAJOR="\"$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')\"" \
      -gencode arch=compute_90a,code=sm_90a -c -o "$made/$(basename "$f").o" "$f" & jobs+=($!)
  done
  for f in "${jobs[@]}"; do wait "$f" || return 1; done
  cd "$here" || return 1
  local with=(-Wl,--whole-archive "$made/host.a" -Wl,--no-whole-archive "$made"/*.cu.o lib/*.so*
    -L/usr/local/cuda/lib64 -lcudart_static -lm -lpthread -ldl -lrt)
  g++ -o gepolab "$made/main.o" "${with[@]}" && g++ -o gepolab-tests -Wl,--whole-archive "$made/tests.a" "${with[@]}"
}
if [ "$to" = --rebuild ]; then PATH=$PATH:/usr/local/cuda/bin; rebuild "$1"; exit; fi
parts=() limits=() all=0
while [ $# -gt 0 ]; do
  limit=${seconds[$1]:-}
  [ -n "$limit" ] || { echo "there is no part '$1'; there are ${!seconds[*]}" >&2; exit 2; }
  parts+=("$1"); shift
  case ${1:-} in [1-9]*) limit=$1; shift ;; esac
  limits+=("$((limit))"); all=$((all + limit))
done
[ "$to" != --seconds ] || { echo $all; exit 0; }
[ $all -le 560 ] || { echo "these parts may take $all s; name fewer, or their seconds: 560 in one call" >&2; exit 2; }
mkdir -p "$to" && logs=$(cd "$to" && pwd) || exit 2

# --- what the program loads ---

[ -d "$here/lib" ] || tar -xzf "$here/bundle.tar.gz" -C "$here" || exit 1

# Folders that hold what is opened when a GPU is used: the toolkit's, or those of PyTorch's packages.
cuda_folders() {
  for f in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib; do [ ! -d "$f" ] || printf ':%s' "$f"; done
  "$PYTHON" -c '
import glob, os, sys
for p in sys.path:
    for f in sorted(glob.glob(os.path.join(p, "nvidia", "*", "lib"))): print(":" + f, end="")' 2>/dev/null
}
LD_LIBRARY_PATH="$here/lib$(cuda_folders)${own_path:+:$own_path}"
PATH=$PATH:/usr/local/cuda/bin
export LD_LIBRARY_PATH PATH
# Python is the machine's own and finds the machine's libraries.
printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec %s "$@"\n' "$own_path" "$PYTHON" > "$here/lib/python"
chmod +x "$here/lib/python"
export GEPOLAB_PYTHON="$here/lib/python" GEPOLAB="$here/gepolab" GEPOLAB_PEER_LOG="$logs/peer.log"
missing=$(ldd "$here/gepolab" "$here/gepolab-tests" 2>&1 | grep -E "not found" | sort -u)
[ -z "$missing" ] || { echo "this machine lacks what the program loads:"; echo "$missing"; exit 1; } >&2
cd "$here" || exit 1
if [ ! -e "$logs/device.log" ]; then
  timeout 20 ./gepolab bench gpu --shape tiny --quick --only train > "$logs/device.log" 2>&1; code=$?
  { timeout 5 nvidia-smi; timeout 5 "$GEPOLAB_PYTHON" --version; } >> "$logs/device.log" 2>&1
  if [ $code != 0 ] || grep -q 'no CUDA device' "$logs/device.log"; then head -5 "$logs/device.log"; rm "$logs/device.log"; exit 1; fi
fi

# --- parts; $1 is the part, $limit its seconds ---

left() { local n=$((begun + limit - SECONDS)); echo $((n > 0 ? n : 0)); }
bench() { # what is left of the part's time
  [ "$(left)" -gt 0 ] && timeout "$(left)" ./gepolab bench gpu "$@" --seconds "${deadline:-$(left)}"
}
# Runs every test of SUITES in a process of its own, JOBS at a time, under the command in $tool, and
# prints a line each: exit status, suite and test. Output of each is in LOGS/$1/.
each_test() {
  mkdir -p "$logs/$1"
  ./gepolab-tests --list | awk -v wanted="$SUITES" '/^[^ ]/ {suite = $0} /^ / && index(suite, wanted) == 1 {print suite "|" $1}' |
    folder="$logs/$1" timeout "$(left)" xargs -d '\n' -P "$JOBS" -I{} bash -c '
      suite=${0%%|*} test=${0#*|}
      $tool ./gepolab-tests "$suite" --test "$test" > "$folder/$test.log" 2>&1; code=$?
      grep -q "no CUDA device" "$folder/$test.log" && code=skipped
      grep -q "before first instrumented API call" "$folder/$test.log" && code=0 # uses no device
      echo "$code $suite|$test"' {}
}
tests() {
  tool="" each_test tests | tee "$logs/tests.txt"
  grep -v '^0 ' "$logs/tests.txt" | cut -d' ' -f2- | while IFS='|' read -r suite test; do
    local rest; rest=$(left)
    [ "$rest" -gt 0 ] || { echo "--- no time to run again: $suite, $test"; continue; }
    echo "--- again: $suite, $test"
    CUDA_LAUNCH_BLOCKING=1 timeout $((rest < 60 ? rest : 60)) compute-sanitizer ./gepolab-tests "$suite" --test "$test"
  done
  ! grep -qv '^0 ' "$logs/tests.txt" && [ -s "$logs/tests.txt" ]
}
sanitize() {
  local all got
  command -v compute-sanitizer > /dev/null || { echo "compute-sanitizer is not installed"; return 1; }
  tool="compute-sanitizer --tool $1 --error-exitcode 9" each_test "$1" > "$logs/$1.txt"
  cat "$logs/$1.txt"
  all=$(./gepolab-tests --list | awk -v wanted="$SUITES" '/^[^ ]/ {suite = $0} /^ / && index(suite, wanted) == 1 {++n} END {print n}')
  got=$(wc -l < "$logs/$1.txt")
  echo "$1: $got of $all tests got through in $limit s, $(grep -vc '^0 ' "$logs/$1.txt") with errors"
  [ "$got" = "$all" ] && ! grep -qv '^0 ' "$logs/$1.txt"
}
both() { local first=$1; shift; "$@"; [ $? = 0 ] && [ "$first" = 0 ]; }
# One training run of a transformer of 27 million parameters, twice: the same numbers to the last bit.
repeats() {
  for n in 1 2; do
    timeout "$(left)" ./gepolab run long_regime_larger sweep=null algorithm=gepo cluster.delay=15 steps=40 eval_every=10 \
      'world.warmup={steps: 40}' --json -q | grep -v '"seconds"' > "$logs/repeats-$n.json" || return 1
  done
  cmp "$logs/repeats-1.json" "$logs/repeats-2.json"
}
# The output layer at four numbers of logits held at a time; one that fails does not stop the next.
chunks() {
  local bad=0
  for n in 4194304 8388608 33554432 134217728; do
    GEPOLAB_CUDA_OUTPUT_CHUNK=$n bench --only train,logp --shape 0.6b repetitions=3 -o "$logs/chunks-$n.json" || bad=1
  done
  return $bad
}
run_part() {
  case $1 in
    tests) tests ;;
    decode-*) bench --only decode --shape "${1#decode-}" -o "$logs/$1.json" ;;
    train-*) bench --only train,shared,logp --shape "${1#train-}" -o "$logs/$1.json" ;;
    times-*) GEPOLAB_CUDA_TIMES=1 bench --only train --shape "${1#times-}" repetitions=2
             both $? env GEPOLAB_CUDA_TIMES=all timeout "$(left)" ./gepolab bench gpu --only decode --shape "${1#times-}" draws=32 repetitions=1 ;;
    repeats) repeats ;;
    repeats-*) bench --only repeats --shape "${1#repeats-}" -o "$logs/$1.json" ;;
    profile) command -v ncu && timeout "$limit" ncu --clock-control none --graph-profiling node --launch-skip 1300 --launch-count 240 \
               --metrics gpu__time_duration.sum,dram__bytes.sum --csv ./gepolab bench gpu --in-process --only decode --shape 0.6b batch=64 draws=8 repetitions=1 ;;
    parity) bench --only parity --shape 0.6b -o "$logs/$1.json" ;;
    memcheck | racecheck | initcheck | synccheck) sanitize "$1" ;;
    chunks) chunks ;;
    # Requests that end late by as much as a peer is waited for leave time to write the file.
    peer-*) deadline=$((limit - 65)) bench --only "limits,$1" --shape "$PEER_SHAPE" -o "$logs/$1-$PEER_SHAPE.json" ;;
    step-*) bench --only step --shape "${1#step-}" -o "$logs/$1.json" ;;
    sweep) timeout -s INT "$limit" ./gepolab sweep recipes/llm_delay_sweep.yaml world.backend=cuda \
             -o "$logs/llm_delay_sweep.db" -j "$JOBS"; both $? ./gepolab analyze "$logs/llm_delay_sweep.db" ;;
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
