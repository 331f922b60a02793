#!/bin/sh
# Checks the recipes of conda-forge, Homebrew, Nix and Spack: each names every library that the Makefile asks
# pkg-config for, and the headers and programs besides, and passes the linter or the parser that is here.
#
#   tests/packaging/recipes.sh
set -u
in=experiments/packaging failed=0 skipped=0
complain() { echo "recipes: $*"; failed=$((failed + 1)); }

for file in conda/meta.yaml homebrew/gepolab.rb nix/package.nix spack/package.py; do
  for name in $(sed -n 's/^PKGS *= //p' mk/packages.mk) random123 xxhash flint gnuplot; do
    case $name in
      yaml-0.1) names='libyaml|yaml' ;;
      libpcre2-8) names='pcre2' ;;
      libutf8proc) names='utf8proc|libutf8proc' ;;
      sqlite3) names='sqlite|libsqlite' ;;
      libcjson) names='cjson' ;;
      libzstd) names='zstd' ;;
      zlib) names='zlib|zlib-api' ;;
      flint) names='flint|flint@3:|libflint' ;;
      xxhash) names='xxhash|xxHash' ;;
      *) names=$name ;;
    esac
    grep -qE "(^|[^a-z0-9_-])($names)([^a-z0-9_-]|\$)" "$in/$file" || complain "$file does not name $name"
  done
done
run() {  # PROGRAM FILE command…: skipped where the program is missing
  program=$1 file=$2
  shift 2
  if ! command -v "$program" > /dev/null; then
    echo "recipes: skipped: no $program, $file was not parsed"
    skipped=$((skipped + 1))
  else
    said=$("$@" 2>&1) || complain "$file: $said"
  fi
}
run nix-instantiate nix/package.nix nix-instantiate --parse "$in/nix/package.nix"
run ruby homebrew/gepolab.rb ruby -wc "$in/homebrew/gepolab.rb"
run rubocop homebrew/gepolab.rb rubocop --only Lint,Layout/IndentationWidth --force-default-config "$in/homebrew/gepolab.rb"
run python3 spack/package.py python3 -c "import ast, sys; ast.parse(open(sys.argv[1]).read())" "$in/spack/package.py"
# conda-build's template functions are replaced by fixed values.
if python3 -c 'import jinja2, yaml' 2> /dev/null; then
  said=$(python3 - "$in/conda/meta.yaml" <<'EOF' 2>&1
import re, sys
import jinja2, yaml
version = re.match(r"(\d+\.\d+\.\d+)", open("VERSION").read())
text = re.sub(r"  # \[.*\]", "", open(sys.argv[1]).read())
made = yaml.safe_load(jinja2.Template(text, undefined=jinja2.StrictUndefined).render(
    load_file_regex=lambda **given: version, compiler=lambda language: language, stdlib=lambda language: language))
assert made["package"]["version"] == version[1]
assert set(made) == {"package", "source", "build", "requirements", "test", "about", "extra"}, set(made)
EOF
  ) || complain "conda/meta.yaml: $said"
else
  echo "recipes: skipped: python3 has no jinja2 and yaml, conda/meta.yaml was not parsed"
  skipped=$((skipped + 1))
fi
echo "recipes: 4 recipes, $failed complaints, skipped: $skipped of 5 parsers"
[ "$failed" = 0 ]
