"""Builds libgepolab with the system's compiler and puts it beside the Python files.

`pip install ./python` in a clone: `make library` of the folder above does the work, so a C compiler and
the Debian packages that `make deps` installs are needed.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def version() -> str:
    text = (ROOT / "VERSION").read_text().strip()
    return text.replace("-dev", ".dev0")


class BuildWithLibrary(build_py):
    """Makes the library, then copies it with the modules."""

    def run(self) -> None:
        super().run()
        build = os.environ.get("GEPOLAB_BUILD", "build")
        try:
            subprocess.run(["make", "-C", str(ROOT), "library", f"BUILD={build}"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"libgepolab could not be built ({error}). It needs make, a C compiler and the Debian packages "
                f"that `make -C {ROOT} deps` installs."
            ) from error
        built = ROOT / build / "libgepolab.so.0" if not os.path.isabs(build) else pathlib.Path(build) / "libgepolab.so.0"
        shutil.copy(built, pathlib.Path(self.build_lib) / "gepolab" / "libgepolab.so.0")


class WithLibrary(Distribution):
    """The wheel holds machine code, so it is one of this platform."""

    def has_ext_modules(self) -> bool:
        return True


setup(version=version(), cmdclass={"build_py": BuildWithLibrary}, distclass=WithLibrary)
