#!/bin/bash
# What there is to run on a machine with a GPU, from the folder that `make gpu-bundle` makes:
#
#   ./run.sh LOGS [tests | memcheck | racecheck | initcheck | synccheck | bench | sweep]...
#
# Without a part, all of them, in this order. Each writes LOGS/PART.log, bench also bench.json, sweep
# llm_delay_sweep.db: where that was cut short, put it beside run.sh and the next call goes on with it.
# Ends with 1 where a part failed or there is no CUDA device. Variables: PYTHON (with PyTorch and
# transformers; default python3), SUITES (of tests and sanitizers; default "cuda"), LIMIT
# (seconds a part may take; default 540), JOBS (of the sweep; default 4).
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1" && logs=$(cd "$1" && pwd) || exit 2
shift
PYTHON=${PYTHON:-python3} SUITES=${SUITES:-cuda} LIMIT=${LIMIT:-540} JOBS=${JOBS:-4}
own_path=${LD_LIBRARY_PATH:-}

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
cat > "$here/lib/python" <<END
#!/bin/sh
LD_LIBRARY_PATH='$own_path' exec $PYTHON "\$@"
END
chmod +x "$here/lib/python"
export GEPOLAB_PYTHON="$here/lib/python" GEPOLAB="$here/gepolab"

missing=$(ldd "$here/gepolab" "$here/gepolab-tests" 2>&1 | grep -E 'not found|version' | sort -u)
[ -z "$missing" ] || { echo "this machine lacks what the program loads:"; echo "$missing"; exit 1; } >&2
cd "$here" || exit 1
about=$(./gepolab bench gpu --shape tiny --quick --only logp --no-peer 2>&1) ||
  { echo "$about" | tee "$logs/device.log"; exit 1; }
case $about in
  *"no CUDA device"*) echo "$about" | tail -1 | tee "$logs/device.log"; exit 1;;
esac
{ echo "$about"; nvidia-smi; "$GEPOLAB_PYTHON" --version; } > "$logs/device.log" 2>&1

# --- parts ---

suites() { # suites COMMAND...: the command on every suite, until one fails; none may be skipped
  local log="$logs/.suite"
  local bad_suite=
  for s in $SUITES; do
    "$@" ./gepolab-tests "$s" > "$log" 2>&1; local code=$?
    cat "$log"
    if [ $code != 0 ] || grep -q 'skipped: no CUDA device' "$log"; then bad_suite=1; fi
    rm "$log"
    [ -z "${bad_suite:-}" ] || return 1
  done
}
sanitize() {
  local tool
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer) || return 1
  suites timeout "$LIMIT" "$tool" --tool "$1" --error-exitcode 9
}
part() {
  case $1 in
    tests) suites timeout "$LIMIT" ;;
    memcheck | racecheck | initcheck | synccheck) sanitize "$1" ;;
    bench) timeout "$LIMIT" ./gepolab bench gpu -o "$logs/bench.json" --peer-log "$logs/peer.log" ;;
    sweep)
      [ -e "$logs/llm_delay_sweep.db" ] || [ ! -e llm_delay_sweep.db ] || cp llm_delay_sweep.db "$logs"
      timeout -s INT "$LIMIT" ./gepolab sweep recipes/llm_delay_sweep.yaml world.backend=cuda \
        -o "$logs/llm_delay_sweep.db" -j "$JOBS" && ./gepolab analyze "$logs/llm_delay_sweep.db" ;;
    *) echo "there is no part '$1'" ; return 2 ;;
  esac
}

[ $# -gt 0 ] || set -- tests memcheck racecheck initcheck synccheck bench sweep
bad=0
for p in "$@"; do
  begun=$SECONDS
  part "$p" > "$logs/$p.log" 2>&1; code=$?
  echo "$p: $([ $code = 0 ] && echo passed || echo "failed ($code)"), $((SECONDS - begun)) s"
  [ $code = 0 ] || { bad=1; tail -5 "$logs/$p.log"; }
done
exit $bad
