# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack.package import *


class Gepolab(MakefilePackage):
    """What network latency does to group-based policy optimisation of language models:
    a simulator of delays, exact laboratories, small learners, and the analysis of their runs."""

    homepage = "https://github.com/gepolab/gepolab"
    git = "https://github.com/gepolab/gepolab.git"

    license("MIT")

    version("main", branch="main")

    variant("mpi", default=False, description="Sweeps over machines")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("gsl")
    depends_on("openblas")
    depends_on("sqlite")
    depends_on("libyaml")
    depends_on("cjson")
    depends_on("random123")
    depends_on("xxhash")
    depends_on("pcre2")
    depends_on("utf8proc")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("flint@3:")
    depends_on("gnuplot", type="run")
    depends_on("mpi", when="+mpi")

    conflicts("platform=darwin", msg="resources are embedded as ELF")

    @property
    def build_targets(self):
        mpicc = self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else ""
        return ["CUDA=0", f"MPICC={mpicc}", f"PREFIX={self.prefix}", f"LIBDIR={self.prefix.lib}"]

    @property
    def install_targets(self):
        return ["install"] + self.build_targets
