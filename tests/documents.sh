#!/bin/sh
# Checks that the documents and the code agree about what there is.
#
#   tests/documents.sh [ROOT]
#
# Three checks: every section of paper/methods.md that a comment or the glossary cites (§3.6) is a
# heading there; every relative link of a Markdown file leads to a file; and every file that
# ARCHITECTURE.md names exists. Prints each violation and exits 1 if there was any.
set -eu
cd "${1:-.}"
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

# --- files and folders of ARCHITECTURE.md ---
{ grep -oE '`[a-z]+/[A-Za-z0-9_./]+`' ARCHITECTURE.md || true; } | tr -d '`' | sort -u | while read -r path; do
  case ${path%%/*} in
    core|sim|toy|llm|analysis|experiments|plots|paper|tests)
      [ -e "$path" ] || echo "documents: ARCHITECTURE.md names $path, which does not exist" ;;
  esac
done >> "$work/bad"

cat "$work/bad"
[ ! -s "$work/bad" ] || exit 1
echo "documents: $(wc -l < "$work/cited") citations of sections, links and file names hold"
