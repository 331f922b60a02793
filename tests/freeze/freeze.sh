#!/bin/sh
# Compares what the program does with hashes under git, so that a change of its structure is known to
# change nothing else.
#
#   tests/freeze/freeze.sh BUILD [PART …]      (all parts; `make freeze PART="policy clock"`)
#
# GEPOLAB   the program (default: BUILD/gepolab)
# KEEP=1    writes the hashes of the parts that were run instead of comparing
# AGAINST   a folder with the outputs of another program (its BUILD/freeze), of which a difference is shown
# JOBS      how many run side by side (2)
# ONLY      of all jobs those whose line holds this word (nothing is kept then, and nothing missing is told)
#
# Parts, each a file of hashes, tests/freeze/PART.sha256, and a folder of outputs, BUILD/freeze/PART:
#   policy       losses, weights and coefficients of every algorithm on a battery of groups; whatif
#   clock        schedules, summaries, theory, replicas and timelines
#   commands     help, catalogues, and what is said of arguments and recipes that are refused
#   checkpoints  bytes of checkpoints and final states of runs in small exact worlds
#   recipes      exported tables of every shipped recipe, shortened; tables of the laboratory
#   figures      data and scripts of their figures
#   exports      what analyses, exports and reports say of their studies, in every format
#   library      what libgepolab exports, and what programs that use it print
# The same with -llm (checkpoints-llm, recipes-llm, figures-llm, exports-llm) are of transformers, whose
# bits are those of the Makefile's own flags alone (OPT=-O3, gcc): the others are the same at -O0.
#
# What is not hashed, because it must vary, is taken out by `normalised` below, and by nothing else.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
build=$1; shift
mkdir -p "$build/freeze"
FREEZE=$(cd "$build/freeze" && pwd)
GEPOLAB=$(realpath "${GEPOLAB:-$build/gepolab}")
[ -x "$GEPOLAB" ] || { echo "freeze: there is no program $GEPOLAB" >&2; exit 1; }
# The CPU backend gives AVX2's bits on wider machines, too; of OpenBLAS one kernel is asked for.
export FREEZE GEPOLAB LC_ALL=C TZ=UTC OPENBLAS_CORETYPE=Haswell OPENBLAS_NUM_THREADS=1 COLUMNS=100
export HOME="$FREEZE/scratch/home" XDG_CACHE_HOME="$FREEZE/scratch/home/cache" GEPOLAB_CACHE="$FREEZE/scratch/home/cache/gepolab" GEPOLAB_PYTHON=/nonexistent
unset GEPOLAB_CUDA_TIMES MAKEFLAGS MFLAGS MAKELEVEL 2> /dev/null || true
. tests/figures/recipes.sh
. tests/freeze/parts.sh

if [ "${1:-}" = --job ]; then # one line of a part's jobs
  FREEZE_PARTS=$2
  cd "$FREEZE/scratch"
  eval "$3"
  exit 0
fi

all="policy clock commands checkpoints checkpoints-llm recipes recipes-llm figures figures-llm exports exports-llm library"
parts=${*:-$all}
for part in $parts; do
  case " $all " in *" $part "*) ;; *) echo "freeze: there is no part $part: $all" >&2; exit 1 ;; esac
done
rm -rf "$FREEZE/scratch"
mkdir -p "$HOME" "$FREEZE/scratch/bin"
for part in $parts; do rm -rf "${FREEZE:?}/$part"; mkdir -p "$FREEZE/$part"; done
# Drawing is gnuplot's: data and scripts are ours.
printf '#!/bin/sh\nexit 0\n' > "$FREEZE/scratch/bin/gnuplot"
chmod +x "$FREEZE/scratch/bin/gnuplot"
PATH=$FREEZE/scratch/bin:$PATH
python3 tests/freeze/groups.py "$FREEZE/scratch"
[ -e "$FREEZE/scratch/golden" ] || ln -s "$here/tests/golden" "$FREEZE/scratch/golden"
ln -s "$here/paper" "$FREEZE/scratch/paper"
ln -s "$here" "$FREEZE/scratch/source"

FREEZE_PARTS=" $parts "
jobs | grep -F -e "${ONLY:-}" > "$FREEZE/scratch/jobs" || { echo "freeze: no job" >&2; exit 1; }
xargs -d '\n' -P "${JOBS:-2}" -n 1 "$0" "$build" --job "$FREEZE_PARTS" < "$FREEZE/scratch/jobs" || {
  echo "freeze: a job failed, which says why above" >&2; exit 1; }

different=0
for part in $parts; do
  kept=tests/freeze/$part.sha256
  (cd "$FREEZE/$part" && find . -type f | sed 's|^\./||' | sort | xargs -r -d '\n' sha256sum) > "$FREEZE/scratch/$part.sha256"
  if [ -n "${KEEP:-}" ]; then
    [ -z "${ONLY:-}" ] || { echo "freeze: KEEP needs all jobs of a part" >&2; exit 1; }
    cp "$FREEZE/scratch/$part.sha256" "$kept"
    echo "freeze: $part: $(wc -l < "$kept") outputs kept"
    continue
  fi
  [ -e "$kept" ] || { echo "freeze: $part has no hashes: make freeze PART=$part KEEP=1" >&2; exit 1; }
  awk -v only="${ONLY:-}" 'NR == FNR {kept[$2] = $1; next} {now[$2] = 1}
    !($2 in kept) {print "new", $2} ($2 in kept) && kept[$2] != $1 {print "other", $2}
    END {if (only == "") for (name in kept) if (!(name in now)) print "missing", name}' \
    "$kept" "$FREEZE/scratch/$part.sha256" | sort > "$FREEZE/scratch/$part.differs"
  if [ -s "$FREEZE/scratch/$part.differs" ]; then
    different=1
    echo "freeze: $part: $(wc -l < "$FREEZE/scratch/$part.differs") of $(wc -l < "$kept") outputs differ:"
    shown=0
    while read -r how name; do
      shown=$((shown + 1))
      [ $shown -le 40 ] || { echo "  … all: $FREEZE/scratch/$part.differs"; break; }
      echo "  $how $name"
      if [ -n "${AGAINST:-}" ] && [ $shown -le 12 ]; then
        if [ "$how" = other ] && [ -e "$AGAINST/$part/$name" ]; then
          diff -a "$AGAINST/$part/$name" "$FREEZE/$part/$name" | cut -c 1-240 | head -"${LINES_SHOWN:-8}" | sed 's/^/      /' || true
        fi
      fi
    done < "$FREEZE/scratch/$part.differs"
  else
    echo "freeze: $part: $(wc -l < "$FREEZE/scratch/$part.sha256") outputs as they were"
  fi
done
[ $different = 0 ]
