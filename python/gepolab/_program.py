"""The command `gepolab` of a wheel: runs the program that lies beside this file."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).resolve().parent / "bin" / "gepolab"
    os.execv(program, ["gepolab", *sys.argv[1:]])
