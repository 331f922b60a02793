"""Builds libgepolab with the system's compiler and puts it beside the Python files.

`pip install ./python` in a clone: `make library` of the folder above does the work, so a C compiler and
the Debian packages that `make deps` installs are needed. With GEPOLAB_PROGRAM (python/wheel.sh) the program,
the licences of the libraries in the wheel and a command `gepolab` are in the wheel, too.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE if (HERE / "Makefile").exists() else HERE.parent  # the top of a source package, or of a clone
PROGRAM = os.environ.get("GEPOLAB_PROGRAM")


def version() -> str:
    text = (ROOT / "VERSION").read_text().strip()
    return text.replace("-dev", ".dev0")


class BuildWithLibrary(build_py):
    """Makes the library, then copies it with the modules."""

    def run(self) -> None:
        super().run()
        build = os.environ.get("GEPOLAB_BUILD", "build")
        try:
            if not PROGRAM:  # with it, the library is beside it
                subprocess.run(["make", "-C", str(ROOT), "library", f"BUILD={build}"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"libgepolab could not be built ({error}). It needs make, a C compiler and the Debian packages "
                f"that `make -C {ROOT} deps` installs."
            ) from error
        built = ROOT / build / "libgepolab.so.0" if not os.path.isabs(build) else pathlib.Path(build) / "libgepolab.so.0"
        package = pathlib.Path(self.build_lib) / "gepolab"
        shutil.copy(built, package / "libgepolab.so.0")
        if PROGRAM:
            (package / "bin").mkdir(exist_ok=True)
            shutil.copy(PROGRAM, package / "bin" / "gepolab")
            shutil.copy(os.environ["GEPOLAB_LICENCES"], package / "LICENCES")


class AnyPython(bdist_wheel):
    """The library is loaded by ctypes: a wheel serves every Python 3 of its platform."""

    def get_tag(self) -> "tuple[str, str, str]":
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    """The wheel holds machine code, so it is one of this platform."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    version=version(),
    entry_points={"console_scripts": ["gepolab = gepolab._program:main"]} if PROGRAM else {},
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython},
    distclass=WithLibrary,
)
