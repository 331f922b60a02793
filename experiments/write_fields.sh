#!/bin/sh
# Prints a document with its tables written anew.
#
#   experiments/write_fields.sh GEPOLAB DOCUMENT
#
# Between a line `<!-- gepolab fields WORDS -->` and the next `<!-- end of fields -->` stands what
# GEPOLAB prints for `fields --format markdown WORDS`; between `<!-- gepolab columns TABLE -->` and
# `<!-- end of columns -->` what it prints for `export --list --format markdown --table TABLE`; between
# `<!-- gepolab presets -->` and `<!-- end of presets -->` what it prints for `presets --format
# markdown`; between `<!-- gepolab definitions WORDS -->` and `<!-- end of definitions -->` what it
# prints for `sim WORDS --definitions --format markdown`, without WORDS for `list definitions --format
# markdown`. All other lines are kept.
set -eu
awk -v gepolab="$1" '
  function fail(why) { print FILENAME ":" FNR ": " why > "/dev/stderr"; failed = 1; exit 1 }
  function write_table(what, command,   words, line) {
    if (inside != "") fail("the table before has no <!-- end of " inside " -->")
    words = $0
    sub(/^<!-- gepolab [a-z]*/, "", words)
    if (!sub(/ -->$/, "", words)) fail("the line does not end with -->")
    print
    command = "\"" gepolab "\" " command " " words
    while ((command | getline line) > 0) print line
    if (close(command) != 0) fail("gepolab does not know these " what)
    inside = what
  }
  /^<!-- gepolab fields / { write_table("fields", "fields --format markdown"); next }
  /^<!-- gepolab columns / { write_table("columns", "export --list --format markdown --table"); next }
  /^<!-- gepolab presets -->$/ { write_table("presets", "presets --format markdown"); next }
  /^<!-- gepolab definitions -->$/ { write_table("definitions", "list definitions --format markdown"); next }
  /^<!-- gepolab definitions / {
    write_table("definitions", "sim --definitions --format markdown")
    next
  }
  /^<!-- end of (fields|columns|presets|definitions) -->$/ {
    if ($4 != inside) fail("there is no table of " $4 " that ends here")
    inside = ""
  }
  inside == "" { print }
  END { if (inside != "" && !failed) fail("the last table has no <!-- end of " inside " -->") }
' "$2"
