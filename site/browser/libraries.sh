#!/bin/sh
# Builds the libraries that the WebAssembly module is linked with, from Debian's source packages.
#
#     libraries.sh FOLDER
#
# FOLDER/sources keeps what was downloaded, FOLDER/include has the headers and FOLDER/lib the archives. Sources are those
# of the running Debian release; where its deb-src entries are switched off, a list of the release's own is used for this
# download and for nothing else. Files are compiled by clang with emscripten's flags: its wrapper takes longer than they do.
set -eu
mkdir -p "$1/sources" "$1/include/cjson" "$1/lib" "$1/obj"
cd "$1"
here=$PWD
FLAGS="$(emcc --cflags) -O2 -DNDEBUG -ffp-contract=off -w"
packages="gsl sqlite3 libyaml cjson libzstd zlib utf8proc pcre2"

fetch() {
  . /etc/os-release
  mkdir -p apt/lists/partial
  for name in "$VERSION_CODENAME" "$VERSION_CODENAME-updates"; do
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $name main"
  done > apt/sources.list
  options="-o Dir::Etc::SourceList=$here/apt/sources.list -o Dir::Etc::SourceParts=/nonexistent -o Dir::State::Lists=$here/apt/lists -o APT::Sandbox::User=root"
  # shellcheck disable=SC2086
  apt-get $options -qq update && (cd sources && apt-get $options -qq source --download-only $packages)
}

# unpacked NAME: sources/NAME, the source without the package's own folder.
unpacked() {
  [ ! -e "sources/$1/.done" ] || return 0
  mkdir -p "sources/$1"
  tar -xf "$(find sources -maxdepth 1 -name "$1_*.orig.tar.*" ! -name '*.asc')" -C "sources/$1" --strip-components=1
  touch "sources/$1/.done"
}

# archive NAME FLAGS FILES…: lib/NAME.a of some C files, which may share a name. What was compiled before an interruption is kept.
archive() {
  name=$1 flags=$2 objects=
  shift 2
  mkdir -p "obj/$name"
  for file; do
    object=obj/$name/$(echo "$file" | tr / - | sed 's/^sources-//; s/\.c$/.o/')
    objects="$objects $object"
    [ ! -e "$object" ] || continue
    # shellcheck disable=SC2086
    clang-14 $FLAGS $flags -c -o "$object.part" "$file"
    mv "$object.part" "$object"
  done
  rm -f "lib/$name.a"
  # shellcheck disable=SC2086
  llvm-ar-14 qcs "lib/$name.a" $objects
}

# The files of GSL that the rooms need; the linker names what is missing. GSL's configuration asks for functions of C that
# both systems have, so that of this machine serves.
gsl() {
  [ -e sources/gsl/config.h ] || (cd sources/gsl && ./configure -q --disable-shared > /dev/null 2>&1)
  make -s -C sources/gsl/gsl header-links > /dev/null
  cp -rLT sources/gsl/gsl include/gsl
  echo '#include <gsl/gsl_cblas.h>' > include/cblas.h # GSL's own CBLAS, in place of OpenBLAS
  files=sources/gsl/version.c
  while read -r folder names; do
    for name in $names; do files="$files sources/gsl/$folder/$name.c"; done
  done << END
blas blas
block init
cblas dasum daxpy dcopy ddot dgemm dgemv dger dnrm2 drot drotg dscal dswap dtrmm dtrmv dtrsm dtrsv idamax xerbla
cdf beta betainv binomial chisq exponential gamma gauss gaussinv geometric lognormal pareto poisson tdist tdistinv weibull
complex math
err error stream strerror
integration cquad qag qk qk15 qk21 qk31 qk41 qk51 qk61 workspace
linalg bidiag householder svd
matrix copy getset init matrix minmax oper rowcol submatrix swap view
multimin convergence fminimizer simplex2
permutation init
randist beta binomial binomial_tpe chisq dirichlet exponential gamma gauss gausszig geometric lognormal pareto poisson tdist weibull
rng mt rng
roots brent convergence fsolver
sort sort sortvec
specfunc beta elementary erfc exp expint gamma gamma_inc log psi trig zeta
statistics covariance mean median quantiles select
sys coerce fdiv infnan pow_int
vector copy init minmax oper subvector swap vector view
END
  # shellcheck disable=SC2086
  archive gsl "-Isources/gsl" $files
}

sqlite() {
  mkdir -p obj/amalgamation
  [ -e obj/amalgamation/sqlite3.c ] || (cd obj/amalgamation && "$here/sources/sqlite3/configure" -q --disable-tcl && make sqlite3.c) > /dev/null 2>&1
  cp obj/amalgamation/sqlite3.h include/
  archive sqlite3 "-O1 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_ENABLE_COLUMN_METADATA" obj/amalgamation/sqlite3.c
}

# The list of files is that of NON-AUTOTOOLS-BUILD in the source.
pcre() {
  p=sources/pcre2/src
  cp $p/config.h.generic $p/config.h
  cp $p/pcre2.h.generic $p/pcre2.h
  cp $p/pcre2.h include/
  cp $p/pcre2_chartables.c.dist $p/pcre2_chartables.c
  # shellcheck disable=SC2046
  archive pcre2 "-O1 -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DSUPPORT_UNICODE -I$p" \
    $(grep -o 'pcre2_[a-z0-9_]*\.c' sources/pcre2/NON-AUTOTOOLS-BUILD | sort -u | grep -v "jit_\|dftables\|fuzz\|dfa_match\|ucptables\|printint" | while read -r file; do
        [ ! -e $p/$file ] || echo $p/$file; done) $p/pcre2_jit_compile.c
}

yaml() {
  part() { sed -n "s/^m4_define(\[YAML_$1\], \([0-9]*\)).*/\1/p" sources/libyaml/configure.ac; }
  cp sources/libyaml/include/yaml.h include/
  archive yaml "-Iinclude -DYAML_VERSION_MAJOR=$(part MAJOR) -DYAML_VERSION_MINOR=$(part MINOR) -DYAML_VERSION_PATCH=$(part PATCH) \
    -DYAML_VERSION_STRING=\"$(part MAJOR).$(part MINOR).$(part PATCH)\"" sources/libyaml/src/*.c
}

[ -e sources/.fetched ] || { fetch && touch sources/.fetched; }
for name in $packages; do unpacked $name; done
gsl
sqlite
pcre
yaml
cp sources/cjson/cJSON.h include/cjson/
archive cjson "" sources/cjson/cJSON.c
cp sources/zlib/zlib.h sources/zlib/zconf.h include/
archive zlib "" $(printf 'sources/zlib/%s.c ' adler32 crc32 inflate inffast inftrees zutil)
cp sources/libzstd/lib/zstd.h sources/libzstd/lib/zstd_errors.h include/
archive zstd "-DZSTD_DISABLE_ASM -Isources/libzstd/lib" sources/libzstd/lib/common/*.c sources/libzstd/lib/decompress/*.c
cp sources/utf8proc/utf8proc.h include/
archive utf8proc "-DUTF8PROC_STATIC" sources/utf8proc/utf8proc.c
# Headers alone: the files of the native build.
for header in xxhash.h Random123; do ln -sfn /usr/include/$header include/$header; done
