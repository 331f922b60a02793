#!/bin/sh
# Machine code of kernels whose speed, or whose bits, depend on which instructions the compiler chose. Needs nvdisasm (CUDA's, or
# PyPI's, which is installed into BUILD/kernels/python) and no device; after tests/kernels/registers.sh.
#
#   tests/kernels/machine_code.sh BUILD PYTHON     (make check-kernels)
#
# Writes BUILD/kernels/machine_code.tsv, with the columns of tests/kernels/machine_code.awk.
set -eu
to=$1/kernels
python=$2
# Wide instances (template argument WIDE): loads and stores of 16 bytes at least, others at most. Kernels of optimizer.cu and fold_chunk
# have their last numbers' loads and stores, too.
wide='
adamw_step_elements 4 3 12 13
sgd_step_elements 3 2 9 10
cast_elements 1 0 3 4
squares_parts 1 0 3 1
norm_rows 5 3 0 1
norm_backward_rows 7 2 1 0
bias_rows 2 1 0 0
swiglu_rows 2 1 0 0
swiglu_backward_rows 3 2 0 0
add_runs 3 1 6 0
head_rows_forward 6 2 1 1
head_rows_store 6 4 2 1
head_rows_backward 8 4 2 2
row_dots 2 0 0 1
fold_chunk 2 0 12 4
logit_grad_chunk 1 1 3 0
'
# Kernels with arithmetic in double: all others have none.
double='squares_parts fold_chunk fold_parts finish_parts finish_rows rotary_angles distort_rows draw_tokens draw_kept keep_rows sum_kept count_digits'
nvdisasm=$(PATH=$PATH:/usr/local/cuda/bin command -v nvdisasm || true)
if [ -z "$nvdisasm" ]; then
  [ -x "$to/python/bin/python" ] || "$python" -m venv "$to/python" || true
  "$to/python/bin/python" -m pip install --quiet nvidia-cuda-nvdisasm 2> "$to/pip.log" || true
  nvdisasm=$(find "$to/python" -name nvdisasm -type f 2> /dev/null | head -1)
fi
if [ -z "$nvdisasm" ]; then echo "skipped: 1 of 1: machine code of the kernels: no nvdisasm"; exit 0; fi
while read -r _ kind file; do
  name=$(basename "$file" .cu)
  grep -q "^$name$(printf '\t')" "$to/kernels.tsv" || continue # no kernels
  made=$to/$kind/$name.counts
  if [ ! -e "$made" ] || [ -n "$(find "$0" tests/kernels/machine_code.awk "$to/$kind/$name.cubin" -newer "$made")" ]; then
    "$nvdisasm" -c -ndf "$to/$kind/$name.cubin" > "$to/$kind/$name.sass"
    awk -v file="$name" -v kind="$kind" -f tests/kernels/machine_code.awk "$to/$kind/$name.sass" > "$made"
    rm -f "$to/$kind/$name.sass"
  fi
  cat "$made"
done < "$to/compiled" > "$to/machine_code.tsv"
awk -F'\t' -v wide="$wide" -v double="$double" '
  function refuse(why) { printf "machine code: %s (%s, sm_%s): %s\n", $3, $1, $2, why; bad++ }
  function hold(holds, why) { checks++; if (!holds) refuse(why) }
  function differ(k, why) { printf "machine code: %s (sm_%s): %s\n", substr(k, index(k, SUBSEP) + 1), substr(k, 1, index(k, SUBSEP) - 1), why; bad++ }
  function equal(x, y, why) { checks++; if (!(x in mul) || !(y in mul) || fma[x] != fma[y] || mul[x] != mul[y] || add[x] != add[y]) differ(x, why) }
  # The name of a kernel, without the length before it and what follows.
  function plain(mangled) { sub(/^_Z/, "", mangled); length_of = mangled + 0; sub(/^[0-9]+/, "", mangled); return substr(mangled, 1, length_of) }
  BEGIN {
    n = split(wide, line, "\n")
    for (i = 1; i <= n; i++) if (split(line[i], of, " ") == 5) { known[of[1]] = 1; for (j = 2; j <= 5; j++) bound[of[1], j] = of[j] }
    n = split(double, of, " ")
    for (i = 1; i <= n; i++) doubles[of[i]] = 1
  }
  {
    kernels++
    name = plain($3)
    is_wide = $3 ~ /(If|I4bf16)(S0_)?(4bf16|f)?Lb1E/
    fma[$2, $3] = $14; mul[$2, $3] = $15; add[$2, $3] = $16
    if (is_wide) hold(name in known, "a wide instance without a line in tests/kernels/machine_code.sh")
    if (is_wide && name in known) {
      met[name] = 1
      hold($4 >= bound[name, 2] && $5 >= bound[name, 3], "loads and stores of 16 bytes: " $4 ", " $5)
      hold($6 <= bound[name, 4] && $7 <= bound[name, 5], "other loads and stores: " $6 ", " $7)
    }
    if (!(name in doubles)) hold($13 == 0, $13 " operations in double")
    # products of warpgroups where there are such, of warps elsewhere
    if ($1 == "attention_wgmma") hold($12 > 0 && $11 == 0 && $8 > 0, "products of warpgroups " $12 ", of warps " $11 ", asynchronous copies " $8)
    if ($3 ~ /tensor_tile/) hold(($2 == 80 ? $11 > 0 : $12 > 0 && $11 == 0) && $8 > 0, "products of warpgroups " $12 ", of warps " $11 ", asynchronous copies " $8)
    if (name ~ /^attention_mma/) hold($11 > 0 && $8 > 0, "products of warps " $11 ", asynchronous copies " $8)
    # all keys of a unit are under way before the first is used: 32 keys of DIM numbers, 8 numbers a load, 32 lanes; on sm_80 three
    # quarters, as some units have 13 of 16 there
    if (match($3, /cached_groupI8mma_unitILi[0-9]+E/)) {
      split(substr($3, RSTART, RLENGTH), of, /ILi|E/)
      hold($17 >= of[2] / 8 * ($2 == 80 ? 0.75 : 1), $17 " loads of keys under way, not " of[2] / 8)
    }
    # a thread has 16 logits, which it loads before it looks at them (12 at least: some are used while the last are asked for)
    if (name ~ /^(find_best|sum_weights|begin_rows|count_bins)$/) hold($10 >= 12, $10 " loads of logits under way")
  }
  END {
    for (k in known) if (!met[k]) { printf "machine code: %s is in the list of tests/kernels/machine_code.sh and has no wide instance\n", k; bad++ }
    for (k in mul) {
      split(k, of, SUBSEP)
      at = index(of[2], "Lb0E")
      # the same arithmetic in wide and narrow instances (optimizer.cu and fold_chunk have both in the wide one)
      name = plain(of[2])
      if (at && name in known && name !~ /_step_elements$|fold_chunk/) { other = of[2]; sub(/Lb0E/, "Lb1E", other); equal(k, of[1] SUBSEP other, "other arithmetic than in the wide instance") }
      # attention that prepares its heads: as many products as the kernel that does nothing else
      if (of[2] ~ /cached_groupI8mma_unit.*Lb0E/) {
        raw = of[2]; sub(/Lb0E/, "Lb1E", raw)
        for (h in mul) if (index(h, of[1] SUBSEP "_Z15head_rows_storeI4bf16Lb1E") == 1) heads = mul[h]
        checks++
        if (mul[of[1], raw] - mul[k] != heads) differ(k, "prepares its heads with " mul[of[1], raw] - mul[k] " products, head_rows_store with " heads)
      }
      # a lane has 4 pairs of a head of floats and 8 of bfloat16: 4 more squares are added to products, and no sum of a rotation is
      if (of[2] ~ /^_Z1[57]head_rows_(store|forward)If/) {
        halves = substr(of[2], 1, index(of[2], "E")); sub(/If/, "I4bf16", halves)
        for (h in mul) if (index(h, of[1] SUBSEP halves) == 1) more = fma[h] - fma[k]
        checks++
        if (more != 4) differ(k, more " more fused sums with twice the pairs, not 4: the rotation is fused")
      }
      # twice the rows a block, twice the arithmetic
      if (of[2] ~ /attention_mma(_dq)?ILi[0-9]+ELi1E/) {
        two = of[2]; sub(/ELi1E/, "ELi2E", two)
        exact = of[2] ~ /_dq/
        checks++
        if (exact ? fma[of[1], two] != 2 * fma[k] || add[of[1], two] != 2 * add[k] : mul[of[1], two] != 2 * mul[k]) differ(k, "other arithmetic than with twice the rows")
      }
    }
    printf "instructions: %d passed, %d failed: properties of %d kernels of both kinds of GPU\n", checks - bad, bad, kernels
    exit bad > 0 }' "$to/machine_code.tsv"
