#!/bin/sh
# Whether a bundle can be carried: BUNDLE_TRAVELS KiB travel to a borrowed machine (default 65536), in which the files that git tracks
# here travel too. Prints its size and how much it may have; where it has more, the largest files, and ends with 1.
#
#   experiments/bench/bundle_fits.sh FOLDER
set -eu
tracked=$(git ls-files -z 2> /dev/null | xargs -0 -r stat -c %s 2> /dev/null | awk '{n += $1} END {printf "%d", (n + 1023) / 1024}')
size=$(du -sk --apparent-size "$1" | cut -f1)
room=$((${BUNDLE_TRAVELS:-65536} - tracked))
echo "$1: $size KiB of $room that may travel beside $tracked KiB of tracked files"
[ "$size" -gt "$room" ] || exit 0
du -ak --apparent-size "$1" | sort -rn | sed -n 2,6p >&2
echo "$1: $size KiB are more than $room: what is largest is above; leave something out" >&2
exit 1
