#!/bin/sh
# Registers, spills and shared memory of every CUDA kernel, as the assembler gives them for each kind of GPU.
# Needs nvcc and no device.
#
#   tests/kernels/registers.sh FOLDER KIND...     (make check-kernels; KIND: 80, 90a)
#
# Writes FOLDER/kernels.tsv: file, kind, kernel, registers, bytes of local memory, spilled bytes, static shared memory, most threads
# (__launch_bounds__; 1024 without); and for each file and kind FOLDER/KIND/NAME.cubin and NAME.log. Fails if a kernel spills, or has
# local memory and is not in the list below, or is in the list without need; or if the assembler says that it serialises products of
# warpgroups.
set -eu
to=$1
shift
# Part of the mangled name, and bytes of local memory at most: sines of any double need a table there; two kernels spill some words
# for sm_90a, whose devices run attention_wgmma.cu instead.
allowed='
attention_mmaILi128ELi2 8
attention_mma_dqILi128ELi2 16
rotary_angles 40
distort_rows 40
'
# Compiles one file for one kind, if it or a header is newer: registers.sh --one FOLDER KIND FILE. A kernel's bounds are in its PTX.
if [ "$to" = --one ]; then
  folder=$1/$2 kind=$2 file=$3
  name=$(basename "$file" .cu)
  mkdir -p "$folder"
  made=$folder/$name.cubin
  if [ -e "$made" ] && [ -z "$(find "$0" "$file" llm/backend/*.h llm/backend/cuda/*.h llm/backend/cuda/*.cuh -newer "$made")" ]; then exit; fi
  nvcc -std=c++17 -O3 -I. -DGEPOLAB_CUDA_LIB='""' -DGEPOLAB_CUDA_MAJOR='"0"' -gencode "arch=compute_$kind,code=sm_$kind" -Xptxas -v \
    --keep --keep-dir "$folder" -cubin -o "$made" "$file" 2> "$folder/$name.log" || { cat "$folder/$name.log" >&2; rm -f "$made"; exit 1; }
  rm -f "$folder/$name".cpp*.ii "$folder/$name".cudafe*
  exit
fi
mkdir -p "$to"
for kind in "$@"; do
  for file in llm/backend/cuda/*.cu; do
    case $kind/$file in 80/*wgmma*) continue ;; esac
    echo "$to $kind $file"
  done
done > "$to/compiled"
xargs -P "$(nproc)" -L 1 "$0" --one < "$to/compiled"
if grep -liE 'C7510|serializ' "$to"/*/*.log; then echo "kernels: the assembler serialises products of warpgroups" >&2; exit 1; fi
while read -r _ kind file; do
  name=$(basename "$file" .cu)
  awk -v file="$name" -v kind="$kind" -v OFS='\t' '
    FNR == 1 { part_of++ }
    part_of == 1 && /\.entry / { entry = $NF; sub(/\(.*/, "", entry) }
    part_of == 1 && /^\.maxntid/ { gsub(/,/, ""); most[entry] = $2 * ($3 ? $3 : 1) * ($4 ? $4 : 1) }
    part_of == 1 { next }
    /Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; stack = spill = shared = 0 }
    /bytes stack frame/ { stack = $1; spill = $5 }
    /Used [0-9]+ registers/ {
      for (i = 1; i <= NF; i++) { if ($i == "Used") registers = $(i + 1); if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared = $i }
      print file, kind, kernel, registers, stack, spill, shared, kernel in most ? most[kernel] : 1024
    }' "$to/$kind/$name.ptx" "$to/$kind/$name.log"
done < "$to/compiled" > "$to/kernels.tsv"
printf '%s\n' "$allowed" | awk '
  NR == FNR { if (NF == 2) { n++; part[n] = $1; most[n] = $2 } next }
  { kernels++
    for (i = known = 0; i++ < n;) if (index($3, part[i])) { known = i; if ($5 > 0) seen[i] = 1 }
    if ($5 > (known ? most[known] : 0) || ($6 > 0 && !known)) { printf "%s (sm_%s): %s spills %d bytes, %d bytes of local memory\n", $1, $2, $3, $6, $5; bad++ }
    if ($4 == 255) full++ }
  END {
    for (i = 1; i <= n; i++) if (!seen[i]) { printf "%s is in the list of tests/kernels/registers.sh and needs no local memory\n", part[i]; bad++ }
    printf "kernels: %d passed, %d failed: for both kinds of GPU; local memory only where it is listed; %d have all 255 registers\n", kernels, bad, full
    exit bad > 0 }' - "$to/kernels.tsv"
