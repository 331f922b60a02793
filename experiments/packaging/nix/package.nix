# nix-build -E 'with import <nixpkgs> {}; callPackage ./experiments/packaging/nix/package.nix {}'
{ lib, stdenv, pkg-config, gsl, openblas, sqlite, libyaml, cjson, random123, xxHash, pcre2, utf8proc, zlib, zstd
, flint, gnuplot, dejavu_fonts, makeWrapper }:

stdenv.mkDerivation {
  pname = "gepolab";
  version = lib.fileContents ../../../VERSION;
  src = lib.cleanSource ../../..;

  nativeBuildInputs = [ pkg-config makeWrapper ];
  buildInputs = [ gsl openblas sqlite libyaml cjson random123 xxHash pcre2 utf8proc zlib zstd flint ];

  enableParallelBuilding = true;
  makeFlags = [ "CUDA=0" "MPICC=" "CC=${stdenv.cc.targetPrefix}cc" "PREFIX=$(out)" "LIBDIR=$(out)/lib" ];

  postInstall = ''
    wrapProgram $out/bin/gepolab --prefix PATH : ${lib.makeBinPath [ gnuplot ]}
  '';

  doInstallCheck = true;
  installCheckPhase = ''
    $out/bin/gepolab --version
    $out/bin/gepolab run quickstart steps=5
  '';

  meta = {
    description = "What network latency does to group-based policy optimisation of language models";
    homepage = "https://github.com/gepolab/gepolab";
    license = lib.licenses.mit;
    platforms = lib.platforms.linux;
    mainProgram = "gepolab";
  };
}
