#!/bin/sh
# Every .cu file as another compiler reads it, for the device and for the host: warnings are errors. Needs a clang that is at least 18,
# CUDA's headers and no device.
#
#   tests/kernels/clang.sh FOLDER     (make check-kernels; CLANGXX: the compiler)
set -eu
to=$1
for clang in ${CLANGXX:-clang++-21 clang++-20 clang++-19 clang++-18 clang++}; do
  version=$("$clang" -dumpversion 2> /dev/null || echo 0)
  [ "${version%%.*}" -lt 18 ] || break
done
if [ "${version%%.*}" -lt 18 ]; then echo "skipped: 1 of 1: kernels as clang reads them: no clang++ of at least 18"; exit 0; fi
cuda=$(nvcc --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
mkdir -p "$to/clang"
# A header that clang includes and CUDA 13 no longer has; and a function that clang does not know.
echo '__device__ float4 __ldcg(const float4 *);' > "$to/clang/texture_fetch_functions.h"
for file in llm/backend/cuda/*.cu; do echo "$file"; done |
  xargs -P "$(nproc)" -I FILE "$clang" -x cuda -fsyntax-only --cuda-gpu-arch=sm_90a --cuda-path="$cuda" -std=c++17 -I. -isystem "$to/clang" \
    -DGEPOLAB_CUDA_LIB='""' -DGEPOLAB_CUDA_MAJOR='"0"' -Wall -Wextra -Wshadow -Wno-unknown-cuda-version -Werror -ferror-limit=3 -ftemplate-backtrace-limit=2 FILE ||
  { echo "clang: $clang $version refuses what it named above" >&2; exit 1; }
echo "clang: $(ls llm/backend/cuda/*.cu | wc -l) passed, 0 failed: files without a warning, for sm_90a and the host ($clang $version)"
