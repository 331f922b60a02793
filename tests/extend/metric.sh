#!/bin/sh
# A metric that was added is listed with its meaning, is stored for every update, and is exported under
# its name with the value found by hand.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$GEPOLAB" list metrics | grep -q '^ *response_length_max .*longest response'
# Without an end token every response has the horizon's three tokens.
"$GEPOLAB" run quickstart -q steps=2 world='{kind: sequence, vocabulary: 2, horizon: 3, prompts: 1}' -o "$folder/s.db"
"$GEPOLAB" study export "$folder/s.db" -t steps > "$folder/steps.csv"
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "response_length_max") column = i }
  NR > 1 { ++n; if (column == 0 || $column != 3) exit 1 } END { exit n != 2 }' "$folder/steps.csv"
