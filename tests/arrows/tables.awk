# Names the holes of tables that an enumeration indexes: the build runs it over all sources, headers first.
#
#   awk -f tests/arrows/tables.awk HEADER … SOURCE …
#
# [A] = … , [B] = … must have a line for every enumerator of A's enumeration, but for the one that is the array's
# length or names another one's value. Without designators, TABLE[COUNT] = {…} must have as many lines as COUNT has
# enumerators before it; {0} and {NULL} are no tables. Enumerations made by an X-macro make their tables likewise.

function scrub(text,   at, end) {
  gsub(/\\"/, "", text)
  gsub(/"[^"\n]*"/, "\"\"", text)
  gsub(/'\\?[^\n']'/, "' '", text)
  while ((at = index(text, "/*")) > 0) {
    end = index(substr(text, at + 2), "*/")
    text = substr(text, 1, at - 1) substr(text, at + 2 + end + 1)
  }
  gsub(/\/\/[^\n]*/, "", text)
  gsub(/\\\n/, " ", text)
  gsub(/(^|\n)[ \t]*#[^\n]*/, "\n", text)
  return text
}

# An enumeration: each name's enumeration and place, and which names are only another one's value.
function learn(body, is_header,   n, i, part, name, value) {
  if (body ~ /[A-Z_]+\(/) return
  n = split(body, part, ",")
  if (n > 1 && part[n] ~ /^[ \t\n]*$/) --n
  list[++enums, 0] = n
  for (i = 1; i <= n; ++i) {
    name = part[i]; sub(/=.*/, "", name); gsub(/[ \t\n]/, "", name)
    value = part[i]; if (!sub(/^[^=]*=/, "", value)) value = ""
    gsub(/[ \t\n]/, "", value)
    list[enums, i] = name
    if (is_header) everywhere[name] = enums; else here[name] = enums
    if (value != "") { stated[enums] = 1; alias[enums, value] = 1 }
  }
}

function enumeration(name) { return name in here ? here[name] : name in everywhere ? everywhere[name] : 0 }

# The table's lines, split at commas of its own level, into line[1 …].
function cut(body,   n, depth, i, c, from) {
  n = 0; depth = 0; from = 1
  for (i = 1; i <= length(body); ++i) {
    c = substr(body, i, 1)
    if (c ~ /[{(\[]/) ++depth
    else if (c ~ /[})\]]/) --depth
    else if (c == "," && depth == 0) { line[++n] = substr(body, from, i - from); from = i + 1 }
  }
  if (substr(body, from) !~ /^[ \t\n]*$/) line[++n] = substr(body, from)
  return n
}

function check(file, name, size, body,   n, i, e, first, label, labels, place) {
  n = cut(body)
  first = ""; labels = " "
  for (i = 1; i <= n; ++i)
    if (match(line[i], /^[ \t\n]*\[[A-Z][A-Za-z0-9_ +]*\][ \t\n]*=/)) {
      label = substr(line[i], RSTART, RLENGTH); gsub(/[^A-Za-z0-9_]+/, " ", label)
      labels = labels label " "
      if (first == "") { first = label; sub(/^ /, "", first); sub(/ .*/, "", first) }
    }
  if (first != "") {
    e = enumeration(first)
    for (i = 1; e && i <= list[e, 0]; ++i)
      if (list[e, i] != size && !((e, list[e, i]) in alias) && index(labels, " " list[e, i] " ") == 0) {
        print file ": the table " name " has no line for " list[e, i]; bad = 1
      }
  } else if ((e = enumeration(size)) && !stated[e] && list[e, 0] > 1 && !(n == 1 && line[1] ~ /^[{ \n]*(0|NULL|NAN)[} \n]*$/)) {
    for (place = 1; list[e, place] != size; ++place) continue
    if (place > 1 && n != place - 1) {
      print file ": the table " name " has " n " lines for the " place - 1 " values before " size; bad = 1
    }
  }
}

# The code is clang-format's: "enum NAME {" and "NAME[SIZE] = {" are spelled so.
function scan(file, text,   before, body, depth, i, c, name, size) {
  text = scrub(text)
  for (name in here) delete here[name]
  while (match(text, /(enum [a-z_0-9 ]*|= )\{/)) {
    before = substr(text, RSTART > 120 ? RSTART - 120 : 1, RSTART > 120 ? 120 : RSTART - 1)
    c = substr(text, RSTART, 1)
    text = substr(text, RSTART + RLENGTH)
    if (c == "=" && before !~ /\] $/) continue
    depth = 1
    for (i = 1; depth > 0 && i <= length(text); ++i) {
      if (substr(text, i, 1) == "{") ++depth
      else if (substr(text, i, 1) == "}") --depth
    }
    body = substr(text, 1, i - 2)
    if (c == "e") {
      learn(body, file ~ /\.(h|cuh)$/)
      continue
    }
    text = substr(text, i)
    match(before, /[a-z_0-9]+(\[[^][]*\])+ $/)
    name = size = substr(before, RSTART)
    sub(/\[.*/, "", name); sub(/^[^[]*\[/, "", size); sub(/\].*$/, "", size)
    check(file, name, size, body)
  }
}

FNR == 1 && NR > 1 { scan(last, all); all = "" }
{ last = FILENAME; all = all $0 "\n" }
END { scan(last, all); exit bad }
