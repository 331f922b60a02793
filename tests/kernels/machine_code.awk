# Counts instructions of the kernels in nvdisasm's output; a line each: file, kind, kernel, loads and stores of 16 bytes, other loads
# and stores, asynchronous copies, most loads (of 16 bytes, of any) that are in flight before one of them is used, products of warps and
# of warpgroups, operations in double, fused multiply-additions, products and sums in float, and most
# loads of 16 bytes that are in flight before the first product of warps.
function finish() {
  if (kernel == "") return
  reset()
  print file, kind, kernel, n["LDG16"] + 0, n["STG16"] + 0, n["LDG"] + 0, n["STG"] + 0, n["LDGSTS"] + 0, most16, most, n["HMMA"] + 0, n["HGMMA"] + 0,
    n["double"] + 0, n["FFMA"] + 0, n["FMUL"] + 0, n["FADD"] + 0,
    before == "" ? most16 : before
}
# Loads that are under way have been waited for.
function reset() {
  if (under_way > most) most = under_way
  if (under_way16 > most16) most16 = under_way16
  under_way = under_way16 = 0
  split("", pending)
}
BEGIN { OFS = "\t" }
/^\.text\./ {
  finish()
  kernel = substr($1, 7)
  sub(/:$/, "", kernel)
  split("", n)
  split("", pending)
  most = most16 = under_way = under_way16 = 0
  before = ""
  next
}
kernel != "" && /^[ \t]*\/\*[0-9a-f]+\*\// {
  sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, "")
  sub(/^@!?U?P[0-9T]+[ \t]+/, "")
  sub(/[ \t]*;.*$/, "")
  if (match($0, /[ \t]/) == 0) next
  code = substr($0, 1, RSTART - 1)
  rest = substr($0, RSTART + 1)
  kinds = split(code, part, ".")
  name = part[1]
  wide = 0
  for (i = 2; i <= kinds; i++) if (part[i] == "128") wide = 1
  if (name == "LDG" || name == "STG") n[name (wide ? "16" : "")]++
  else if (name ~ /^D(ADD|MUL|FMA|SETP|MNMX)$/) n["double"]++
  else n[name]++
  gsub(/UR[0-9]+/, "", rest)
  # what is read: every register but the first operand, which most instructions write
  operands = split(rest, operand, ",")
  for (i = name ~ /^(ST|RED|BAR)/ ? 1 : 2; i <= operands; i++) {
    text = operand[i]
    while (match(text, /R[0-9]+/)) {
      if (substr(text, RSTART, RLENGTH) in pending) reset()
      text = substr(text, RSTART + RLENGTH)
    }
  }
  if (name == "HMMA" && before == "") before = under_way16 > most16 ? under_way16 : most16
  if (name == "LDG" && match(operand[1], /R[0-9]+/)) {
    first = substr(operand[1], RSTART + 1, RLENGTH - 1)
    size = wide ? 4 : code ~ /\.64/ ? 2 : 1
    for (i = 0; i < size; i++) pending["R" (first + i)] = 1
    under_way++
    under_way16 += wide
  }
}
END { finish() }
