#!/bin/sh
# Prints a document with its tables of fields written anew.
#
#   experiments/write_fields.sh GEPOLAB DOCUMENT
#
# Between a line `<!-- gepolab fields WORDS -->` and the next `<!-- end of fields -->` stands what
# GEPOLAB prints for `fields --format markdown WORDS`; all other lines are kept.
set -eu
awk -v gepolab="$1" '
  function fail(why) { print FILENAME ":" FNR ": " why > "/dev/stderr"; failed = 1; exit 1 }
  /^<!-- gepolab fields / {
    if (inside) fail("the table before has no <!-- end of fields -->")
    words = $0
    sub(/^<!-- gepolab fields /, "", words)
    if (!sub(/ -->$/, "", words)) fail("the line does not end with -->")
    print
    command = "\"" gepolab "\" fields --format markdown " words
    while ((command | getline line) > 0) print line
    if (close(command) != 0) fail("gepolab does not know these fields")
    inside = 1
    next
  }
  /^<!-- end of fields -->$/ {
    if (!inside) fail("there is no table that ends here")
    inside = 0
  }
  !inside { print }
  END { if (inside && !failed) fail("the last table has no <!-- end of fields -->") }
' "$2"
