#!/bin/sh
# Writes C that says which commit the program is built from.
#
#   experiments/write_commit.sh FILE.c [COMPILER OF CUDA]
#
# Three constants: source_commit, in hex; source_dirty, 1 where files that the program is made of
# differ from that commit, else 0; source_cuda, the CUDA Toolkit's release. Without git, in a tarball,
# and where the tree lies in somebody else's repository, they are "" and -1; a file COMMIT beside the
# Makefile, as packages are built with, then says the commit. The file is left alone
# where it says so already, so that only a new commit is compiled.
set -eu
to=$1
nvcc=${2:-}
commit= dirty=-1 cuda=
top=$(git rev-parse --show-toplevel 2>/dev/null) || top=
if [ -n "$top" ] && [ "$top" -ef . ]; then
  commit=$(git rev-parse --verify -q HEAD) || commit=
  made_of="Makefile mk VERSION core sim toy llm analysis plots library experiments"
  if [ -n "$commit" ] && changed=$(git --no-optional-locks status --porcelain -- $made_of); then
    if [ -n "$changed" ]; then dirty=1; else dirty=0; fi
  fi
elif [ -f COMMIT ]; then
  commit=$(head -n 1 COMMIT | tr -cd 0-9a-f)
fi
if [ -n "$nvcc" ]; then cuda=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'); fi
mkdir -p "$(dirname "$to")"
cat > "$to.$$" <<END
/* Made by experiments/write_commit.sh. */
extern const char source_commit[], source_cuda[];
extern const int source_dirty;
const char source_commit[] = "$commit";
const int source_dirty = $dirty;
const char source_cuda[] = "$cuda";
END
if cmp -s "$to.$$" "$to"; then rm "$to.$$"; else mv "$to.$$" "$to"; fi
