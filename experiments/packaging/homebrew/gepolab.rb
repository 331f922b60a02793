# Formula for Homebrew on Linux; a release adds `url` and `sha256` of its archive.
class Gepolab < Formula
  desc "Measure what network latency does to group-based policy optimisation"
  homepage "https://github.com/gepolab/gepolab"
  license "MIT"
  head "https://github.com/gepolab/gepolab.git", branch: "main"

  depends_on "pkgconf" => :build
  depends_on "cjson"
  depends_on "flint"
  depends_on "gnuplot"
  depends_on "gsl"
  depends_on "libyaml"
  depends_on :linux
  depends_on "openblas"
  depends_on "pcre2"
  depends_on "random123"
  depends_on "sqlite"
  depends_on "utf8proc"
  depends_on "xxhash"
  depends_on "zlib"
  depends_on "zstd"

  def install
    system "make", "CUDA=0", "MPICC="
    system "make", "install", "CUDA=0", "MPICC=", "PREFIX=#{prefix}", "LIBDIR=#{lib}"
  end

  test do
    assert_match "gepolab", shell_output("#{bin}/gepolab --version")
    system bin/"gepolab", "run", "quickstart", "steps=5"
  end
end
