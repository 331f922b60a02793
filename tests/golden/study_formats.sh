#!/bin/sh
# Makes the studies of older formats and what the programs that wrote them export:
#
#   tests/golden/study_formats.sh 1 GEPOLAB        of version 0.1.0 (format 1)
#   tests/golden/study_formats.sh 2 GEPOLAB        of a build between 0.1.0 and 0.2.0 (format 2)
#   tests/golden/study_formats.sh 3 GEPOLAB        of a build between 0.1.0 and 0.2.0 (format 3)
#   tests/golden/study_formats.sh 4 GEPOLAB        of a build between 0.1.0 and 0.2.0 (format 4)
#   tests/golden/study_formats.sh 5 GEPOLAB        of a build between 0.1.0 and 0.2.0 (format 5)
#
# GEPOLAB is the program built from a commit that has the format: 36da96f is 0.1.0, d1ddf82 the last
# one of format 2, b7f3130 the last one of format 3, c32c642 one of format 4,
# b090f7c one of format 5. Writes
# tests/golden/study_formatN.db, and tests/golden/study_formatN.txt, in which a line "# TABLE" stands
# before each exported table.
# Both files hold the same sweep, study_formats.yaml.
set -eu
cd "$(dirname "$0")"
format=$1
program=$2
db=study_format$format.db
rm -f "$db"
"$program" sweep study_formats.yaml -o "$db" --quiet
sqlite3 "$db" VACUUM
test "$(sqlite3 "$db" 'PRAGMA user_version')" = "$format"
for table in runs steps evals staleness clock tuned; do
  echo "# $table"
  "$program" export "$db" --table "$table" --format csv
done > "study_format$format.txt"
