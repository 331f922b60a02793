# The new figure is listed, drawn by itself and with all others, and its name is a near one to refuse with.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$GEPOLAB" plot --list | grep -q '^reward  *mean reward against updates'
"$GEPOLAB" sweep quickstart -q -o "$folder/s.db" steps=20 'sweep={algorithm: [grpo, gepo], seed: [1, 2]}'
"$GEPOLAB" plot "$folder/s.db" -o "$folder/one" --figure reward | grep -q 'reward.pdf'
test -s "$folder/one/reward.png"
grep -q "= 'mean reward'" "$folder/one/reward.gp"
"$GEPOLAB" plot "$folder/s.db" -o "$folder/all" | grep -q 'reward.pdf'
! "$GEPOLAB" plot "$folder/s.db" -o "$folder/one" --figure rewards 2> "$folder/refused"
grep -q "did you mean 'reward'" "$folder/refused"
