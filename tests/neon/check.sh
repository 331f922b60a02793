#!/bin/sh
# Runs suites of the aarch64 tests under qemu: the CPU backend's forms, what depends on the processor's arithmetic
# (libm, fused products, sums in lanes), and the program itself.
#
#   tests/neon/check.sh FOLDER        (make check-neon; FOLDER/sysroot has the libraries)
#   SUITES='llm: backend' tests/neon/check.sh FOLDER
set -u
at=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" "%s" "$@"\n' "$at/sysroot" "$at/gepolab" > "$work/gepolab"
chmod +x "$work/gepolab"
export GEPOLAB="$work/gepolab"
failed=0
run() {  # words of gepolab-tests
  said=$work/said
  qemu-aarch64-static -L "$at/sysroot" "$at/gepolab-tests" "$@" > "$said" 2>&1
  code=$?
  if [ $code != 0 ]; then cat "$said"; failed=1; fi
  awk -v name="$*" '$1 == "tests" { tests = $3; passed = $4; bad = $5 } /^skipped: / { skipped = $2 }
    END { printf "neon: %s: %d tests, %d passed, %d failed, %d skipped\n", name, tests, passed, bad, skipped }' "$said"
  return $code
}
if [ -z "${SUITES:-}" ]; then
  # A form that the processor lacks is skipped, which is a failure here.
  run --test neon_is_close_to_plain && grep -q '^skipped: 0 of 1' "$work/said" || { echo "neon: neon_is_close_to_plain did not run"; failed=1; }
fi
while read -r suite; do
  [ -z "$suite" ] || run "$suite"
done <<END
${SUITES:-llm: backend gradients
llm: backend profiled
llm: backend sampling
llm: kernels
llm: packed weights
core: exponentials of many numbers
core: random numbers
core: tasks on threads
core: batches
policy: golden
policy: advantages
policy: limits of methods
toy: worlds and policies
toy: trees, exact quantities, optimisers
library: policy
cli: policy by hand}
END
exit $failed
