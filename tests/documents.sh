#!/bin/sh
# Checks that the documents and the code agree about what there is.
#
#   tests/documents.sh BUILD
#
# Ten checks: every section of paper/methods.md that a comment or the glossary cites (§3.6) is a
# heading there; every relative link of a Markdown file leads to a file; every file that
# ARCHITECTURE.md names exists, and so does every C or CUDA file that a comment names; the tables of
# fields in experiments/RECIPES.md are what `gepolab fields` of BUILD prints (make docs writes them),
# and every field is in one of them; those of columns in experiments/DATA.md are what `gepolab export
# --list` prints, of every table; those of paper/staleness.md are what `gepolab sim --definitions` and
# `list definitions` print, and every function that they name is in the file that they name with it;
# every key that a parser of recipes asks for is a field or named in its text; and no line of a
# document is longer than 160 characters, but for tables, links and figures, or begins with <!--=. Prints each violation and exits 1 if there was any.
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find . -path ./.git -prune -o -path "./build*" -prune -o -type f -print | sed 's|^\./||' > "$work/files"

# --- sections: of lines that name methods.md, and of the glossary, which cites nothing else ---
sed -n 's/^##* \([0-9][0-9.]*[0-9]\|[0-9]\)[. ].*/§\1/p' paper/methods.md | sort -u > "$work/sections"
{ grep -E '\.(c|h|cu|cuh|py|yaml)$' "$work/files" | xargs grep -H 'methods\.md' || true
  sed 's/^/GLOSSARY.md:/' GLOSSARY.md; } |
  awk -F: '{ file = $1; rest = $0
             while (match(rest, /§[0-9]+(\.[0-9]+)?/)) {
               print file, substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH) } }' |
  sort -u > "$work/cited"
[ -s "$work/cited" ] && [ -s "$work/sections" ] || { echo "documents: no section is found or cited"; exit 1; }
while read -r file section; do
  grep -qxF "$section" "$work/sections" ||
    echo "documents: $file cites $section, which paper/methods.md does not have"
done < "$work/cited" > "$work/bad"

# --- links ---
for file in $(grep '\.md$' "$work/files"); do
  { grep -oE '\]\([^)#]+' "$file" || true; } | sed 's/^](//' | grep -v '://' | while read -r link; do
    [ -e "$(dirname "$file")/$link" ] || echo "documents: $file links to $link, which does not exist"
  done
done >> "$work/bad" || true

# --- lines ---
for file in $(grep '\.md$' "$work/files"); do
  { LC_ALL=C.UTF-8 grep -nE '^.{161,}' "$file" || true; } | { grep -vE '^[0-9]+: *(\||!?\[|- \[|<!--)' || true; } |
    sed "s|^\([0-9]*\):.*|documents: $file:\1 is longer than 160 characters: break the line|"
  { grep -n '^<!--=' "$file" || true; } | sed "s|^\([0-9]*\):.*|documents: $file:\1 begins with <!--=, which Markdown reads as HTML|"
done >> "$work/bad"

# --- files and folders of ARCHITECTURE.md ---
{ grep -oE '`[a-z]+/[A-Za-z0-9_./]+`' ARCHITECTURE.md || true; } | tr -d '`' | sort -u | while read -r path; do
  case ${path%%/*} in
    core|sim|toy|llm|analysis|experiments|plots|paper|tests)
      [ -e "$path" ] || echo "documents: ARCHITECTURE.md names $path, which does not exist" ;;
  esac
done >> "$work/bad"

# --- files that comments name: in the comment's folder or one above it (of a test also the tested one's), or by path ---
grep -E '\.(c|h|cu|cuh|cpp)$' "$work/files" | xargs awk '
  function found(name, from,   dir) {
    if (name ~ /^build\// || name == "nccl.h" || name in file) return 1
    if (name ~ /\// && name in tail) return 1
    for (dir = from; sub(/\/[^\/]*$/, "", dir);) if (dir "/" name in file) return 1
    return from ~ /^tests\// && found(name, substr(from, 7))
  }
  BEGIN {
    while ((getline path < "'"$work/files"'") > 0) {
      file[path]
      while (sub(/^[^\/]*\//, "", path)) tail[path]
    }
  }
  FNR == 1 { inside = 0 }
  {
    rest = $0; text = ""
    while (rest != "") {
      if (inside) {
        at = index(rest, "*/"); inside = at == 0
        text = text " " (at ? substr(rest, 1, at - 1) : rest); rest = at ? substr(rest, at + 2) : ""
      } else if (match(rest, /"([^"\\]|\\.)*"|\/\*|\/\//)) {
        what = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
        if (what == "//") { text = text " " rest; rest = "" } else inside = what == "/*"
      } else rest = ""
    }
    while (match(text, /[A-Za-z0-9_.\/<*-]+\.(cuh|cu|c|h)([^A-Za-z0-9_\/]|$)/)) {
      name = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
      sub(/[^a-z]$/, "", name)
      if (name !~ /^[<.]|\*|[A-Z][A-Z]|[a-z]\.[a-z]\./ && !found(name, FILENAME))
        printf "documents: %s:%d names %s, which does not exist\n", FILENAME, FNR, name
    }
  }' >> "$work/bad"

# --- the fields of recipes ---
experiments/write_fields.sh "$build/gepolab" experiments/RECIPES.md > "$work/written" 2> "$work/why" ||
  sed 's/^/documents: /' "$work/why" >> "$work/bad"
cmp -s "$work/written" experiments/RECIPES.md ||
  echo "documents: tables of experiments/RECIPES.md are not what gepolab fields prints: make docs" >> "$work/bad"
"$build/gepolab" fields --format markdown > "$work/fields"
sed -n '/^<!-- gepolab fields/,/^<!-- end/s/^| \(`[^`]*`\) .*/\1/p' "$work/written" | sort -u > "$work/shown"
sed -n 's/^| \(`[^`]*`\) .*/\1/p' "$work/fields" | sort -u | comm -23 - "$work/shown" |
  sed 's/^/documents: no table of experiments\/RECIPES.md has the field /' >> "$work/bad"
# --- the columns of exported tables ---
experiments/write_fields.sh "$build/gepolab" experiments/DATA.md > "$work/written" 2> "$work/why" ||
  sed 's/^/documents: /' "$work/why" >> "$work/bad"
cmp -s "$work/written" experiments/DATA.md ||
  echo "documents: tables of experiments/DATA.md are not what gepolab export --list prints: make docs" >> "$work/bad"
# --- the readings of staleness counters ---
experiments/write_fields.sh "$build/gepolab" paper/staleness.md > "$work/written" 2> "$work/why" ||
  sed 's/^/documents: /' "$work/why" >> "$work/bad"
cmp -s "$work/written" paper/staleness.md ||
  echo "documents: tables of paper/staleness.md are not what gepolab sim --definitions prints: make docs" >> "$work/bad"
grep -oE '[a-z_/]+\.c: [a-z_]+\(\)' paper/staleness.md | tr -d ':()' | sort -u > "$work/functions"
[ -s "$work/functions" ] || echo "documents: no definition in paper/staleness.md names a function" >> "$work/bad"
while read -r file function; do
  grep -q "^[a-z].*\b$function(" "$file" ||
    echo "documents: paper/staleness.md names $function() of $file, which is not there" >> "$work/bad"
done < "$work/functions"

"$build/gepolab" export --list | sed -n 's/^\([a-z_]*\): .*/\1/p' > "$work/tables"
[ -s "$work/tables" ] || echo "documents: gepolab export --list names no table" >> "$work/bad"
while read -r table; do
  grep -qxF "## $table" experiments/DATA.md && grep -qxF "<!-- gepolab columns $table -->" experiments/DATA.md ||
    echo "documents: experiments/DATA.md has no section with the columns of the table $table" >> "$work/bad"
done < "$work/tables"

# --- keys of parsers ---
# Tables of their own document the parameters of delay distributions, the fields of algorithms, and the input
# of gepolab policy.
asks='(cfg_(begin|double|positive|int|count|bool|choice|doubles|string|map|child|section)|read_values|list_of)\(&?[a-z_>.-]+, "[a-z_0-9]+"'
grep -rhoE "$asks" --include=*.c --exclude-dir=plan core/rl llm toy sim experiments |
  sed 's/.*"\(.*\)"/\1/' | sort -u > "$work/keys"
grep -hoE '"[a-z_0-9]+"' sim/delay*.c core/policy/fields.c experiments/tokens/group_file.c | tr -d '"' | sort -u > "$work/elsewhere"
tr -c 'a-z_0-9' '\n' < "$work/fields" | sort -u | sort -u - "$work/elsewhere" > "$work/documented"
comm -23 "$work/keys" "$work/documented" | sed 's/^/documents: no field of core\/config\/fields.c is or names the key /' >> "$work/bad"

# A description of a cluster has a table of its own, too.
grep -rhoE "$asks" --include=*.c experiments/plan | sed 's/.*"\(.*\)"/\1/' | sort -u > "$work/keys"
[ -s "$work/keys" ] || echo "documents: experiments/plan asks for no key" >> "$work/bad"
sed -n '/^## `gepolab plan`/,/^## [^`]/p' experiments/RECIPES.md | tr -c 'a-z_0-9' '\n' | sort -u > "$work/documented"
comm -23 "$work/keys" "$work/documented" | sed 's/^/documents: experiments\/RECIPES.md has no field of a plan named /' >> "$work/bad"

cat "$work/bad"
[ ! -s "$work/bad" ] || exit 1
echo "documents: $(wc -l < "$work/cited") citations of sections, links and file names hold"
