"""Writes the compressed files of tests/golden/compressed with the programs gzip, pigz (if there) and zstd.

    python3 tests/golden/compressed.py

Each holds the text below, or that text in two parts (two members, two frames). tests/core/base/compressed.c
compares what core/base/compressed.c reads with the text, which it builds itself.
"""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).with_name("compressed")
TEXT = "".join(f"line {i}: {'x' * (i * 37 % 101)}\n" for i in range(1, 201)) + "the last line has no end"
HALF = len(TEXT) // 2


def packed(program, text):
    return subprocess.run(program, input=text.encode(), capture_output=True, check=True).stdout


for name, program in {"gz": ["gzip", "-n", "-9"], "zst": ["zstd", "-q", "-19", "--no-check", "-c"]}.items():
    (HERE / f"text.{name}").write_bytes(packed(program, TEXT))
    (HERE / f"parts.{name}").write_bytes(packed(program, TEXT[:HALF]) + packed(program, TEXT[HALF:]))
(HERE / "checked.zst").write_bytes(packed(["zstd", "-q", "--check", "-c"], TEXT))
