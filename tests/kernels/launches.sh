#!/bin/sh
# Registers and shared memory of every kernel against its launches: what a device would refuse, and how many blocks a multiprocessor
# runs. Launches are those of the emulated device in its suites, and for attention_wgmma.cu those of its code for the host. Needs nvcc
# and no device; after tests/kernels/registers.sh.
#
#   tests/kernels/launches.sh BUILD     (make check-kernels)
#
# Kernels of the emulated device have no static shared memory. So whether more than 48 KiB was asked for is known of dynamic shared
# memory alone; cuda_allow_shared() adds the static.
#
# Writes BUILD/kernels/launches.tsv: kernel, file, kind, registers, most threads of a launch, static and dynamic shared memory, blocks
# per multiprocessor, what limits them (registers, threads, blocks, shared), grid. Fails if a launch has more threads than registers or
# __launch_bounds__ allow, more shared memory than the kind of device, more than 48 KiB without asking for it, or too large a grid; and
# if a kernel was never launched and is not in the first list below, or a line of the lists is not needed.
set -eu
build=$1
to=$build/kernels
# Kernels that no suite launches: a pattern of mangled names, and why.
unseen='
attention_rows.*Li8E heads of 129 to 256 numbers
cached_groupI8mma_unitILi128ELi4EELb1E four query heads of 128 numbers to a key head, prepared by attention
cast_elementsIfLb0E addresses that are no multiple of 16
embed_next_rowsI(f|4bf16)E rows that are no multiple of 16 bytes
plain_productIf4bf16E gradients of weights without cuBLASLt
product_rowsI11tensor_tileILj128ELj128ELj1ELj3E devices with 99 KiB for a block
product_rowsI11tensor_tileILj64ELj8ELj1ELj8E devices with 99 KiB for a block
product_rowsI11tensor_tileILj64ELj128ELj1ELj3E clusters on more multiprocessors than the emulated device has
'
# Kernels that need more than sm_80 has: has_room() in product_rows.cu lets other devices alone launch them.
roomy='
product_rowsI11tensor_tileILj128ELj128ELj1ELj6E
product_rowsI11tensor_tileILj128ELj256ELj2ELj4E
product_rowsI11tensor_tileILj128ELj64ELj1ELj8E
product_rowsI11tensor_tileILj64ELj128ELj2ELj8E
'
rm -f "$to/emulated.tsv"
GEPOLAB_EMULATED_LAUNCHES=$to/emulated.tsv "$build/tests-emulated" > "$to/emulated.log" 2>&1 ||
  { tail -20 "$to/emulated.log" >&2; exit 1; }
# The code for the host is that of every kind of device; machine code for none is needed.
for file in llm/backend/cuda/attention_wgmma.cu llm/backend/cuda/operation.cu tests/kernels/wgmma_launches.cu; do
  nvcc -std=c++17 -I. -gencode arch=compute_90a,code=compute_90a -c -o "$to/$(basename "$file" .cu).o" "$file"
done
wrapped=$(for f in __cudaRegisterFunction cudaFuncGetAttributes cudaFuncSetAttribute cudaLaunchKernelExC; do printf ' -Xlinker --wrap=%s' $f; done)
nvcc $wrapped -o "$to/wgmma_launches" "$to/attention_wgmma.o" "$to/operation.o" "$to/wgmma_launches.o" -ldl
nm "$build/tests-emulated" | awk '
  function number(hex,  i, n) {
    for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return n
  }
  NR == FNR && $3 == "__executable_start" { base = number($1) }
  NR == FNR && $2 ~ /[tT]/ { sub(/^_ZL/, "_Z", $3); address[++n] = number($1); name[n] = $3; next }
  FNR == 1 { for (i = 1; i <= n; i++) of[address[i] - base] = name[i] }
  FNR != NR { $1 = of[number($1)]; print }' OFS='\t' - "$to/emulated.tsv" > "$to/launched.tsv"
"$to/wgmma_launches" >> "$to/launched.tsv"
awk -F'\t' -v OFS='\t' -v unseen="$unseen" -v roomy="$roomy" -v table="$to/launches.tsv" '
  function refuse(why) { printf "launches: %s (%s, sm_%s): %s\n", $3, $1, $2, why; bad++ }
  function least(blocks, why) { if (blocks < fit) { fit = blocks; by = why } }
  function listed(name, list, n, used,  i) {
    for (i = 1; i <= n; i++) if (name ~ list[i]) { used[i] = 1; return 1 }
    return 0
  }
  # The first words of the lines of text.
  function words(text, list,  i, n, line, word, all) {
    all = split(text, line, "\n")
    for (i = 1; i <= all; i++) if (split(line[i], word, " ") > 0) list[++n] = word[1]
    return n
  }
  function unused(list, n, used, what,  i) {
    for (i = 1; i <= n; i++) if (!used[i]) { printf "launches: %s is in a list of tests/kernels/launches.sh and %s\n", list[i], what; bad++ }
  }
  BEGIN {
    rooms = words(roomy, room)
    never = words(unseen, alone)
    print "kernel", "file", "kind", "registers", "threads", "static_shared", "dynamic_shared", "blocks_per_multiprocessor", "limited_by", "grid_x", "grid_y", "grid_z" > table
  }
  NR == FNR { for (i = 2; i <= 7; i++) if ($i + 0 > most[$1, i]) most[$1, i] = $i + 0; seen[$1] = 1; next }
  { kernels++
    if (!($3 in seen)) {
      if (!listed($3, alone, never, used_alone)) refuse("never launched by a suite")
      print $3, $1, $2, $4, "", $7, "", "", "never launched", "", "", "" > table
      next
    }
    launched++
    threads = most[$3, 2]; dynamic = most[$3, 3]; asked = most[$3, 4]
    per_block = ($2 == 80 ? 163 : 227) * 1024; shared = $7 + dynamic
    warps = int((threads + 31) / 32); of_warp = int(($4 * 32 + 255) / 256) * 256
    if (threads > $8) refuse(threads " threads, bounds of " $8)
    if (of_warp * warps > 65536) refuse(threads " threads with " $4 " registers each")
    if (shared > per_block && !listed($3, room, rooms, used_room)) refuse(shared " bytes of shared memory")
    if (dynamic > 48 * 1024 && !asked) refuse(dynamic " bytes of shared memory, and more than 48 KiB was not asked for")
    if (most[$3, 5] > 2147483647 || most[$3, 6] > 65535 || most[$3, 7] > 65535) refuse("grid " most[$3, 5] " x " most[$3, 6] " x " most[$3, 7])
    fit = 32; by = "blocks"
    least(int(64 / warps), "threads")
    least(int(int(65536 / of_warp / 4) * 4 / warps), "registers")
    least(int((per_block + 1024) / (int((shared + 1024 + 127) / 128) * 128)), "shared")
    if (fit == 0) by = "shared, launched where there is room"
    limited[by]++
    if (fit == 1) single++
    print $3, $1, $2, $4, threads, $7, dynamic, fit, by, most[$3, 5], most[$3, 6], most[$3, 7] > table }
  END {
    unused(alone, never, used_alone, "is launched")
    unused(room, rooms, used_room, "fits")
    printf "launches: %d passed, %d failed: kernels of both kinds of GPU; limited by registers %d, threads %d, shared memory %d; %d run one block a multiprocessor; never launched, as listed: %d (%d lines)\n", launched, bad, limited["registers"], limited["threads"], limited["shared"], single, kernels - launched, never
    exit bad > 0 }' "$to/launched.tsv" "$to/kernels.tsv"
