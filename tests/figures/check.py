#!/usr/bin/env python3
"""Reads figures as they are printed (make check-figures).

    check.py WIDTH_CM FOLDER...

For every PDF in the folders, with pdfinfo, pdffonts and pdftotext of poppler-utils: no page is wider
than WIDTH_CM; all text is in DejaVu Sans, 7 points high or more; no two words overlap; no word
stands out of the page. Every script there draws its figure again with plain gnuplot.
"""
import glob
import html
import os
import re
import subprocess
import sys
import tempfile
import shutil

# DejaVu Sans is 1.163 times its size high, from the highest accent to the lowest descender.
LINE = 1.163
LEAST_POINTS, LARGEST_POINTS = 6.99, 12
WORD = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>')


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def words_of(pdf):
    for found in WORD.findall(run("pdftotext", "-bbox", pdf, "-")):
        yield tuple(map(float, found[:4])) + (html.unescape(found[4]),)


def size_of(word):
    """Of horizontal text the height of its box, of turned text the width."""
    x0, y0, x1, y1, _ = word
    sizes = [s / LINE for s in (y1 - y0, x1 - x0) if s / LINE <= LARGEST_POINTS]
    return max(sizes, default=LARGEST_POINTS)


def overlap(a, b):
    """Boxes are higher than the letters in them, so a quarter of a line may overlap."""
    slack = 0.25 * LEAST_POINTS * LINE
    return (min(a[2], b[2]) - max(a[0], b[0]) > slack) and (min(a[3], b[3]) - max(a[1], b[1]) > slack)


def complaints(pdf, width_cm):
    width, height = map(float, re.search(r"Page size:\s+([\d.]+) x ([\d.]+)", run("pdfinfo", pdf)).groups())
    if width > width_cm / 2.54 * 72 + 1:
        yield f"is {width * 2.54 / 72:.2f} cm wide"
    for line in run("pdffonts", pdf).splitlines()[2:]:
        if "DejaVuSans" not in line:
            yield f"uses a font of its own: {line.split()[0]}"
    words = list(words_of(pdf))
    if not words:
        yield "has no text"
    for word in words:
        if size_of(word) < LEAST_POINTS:
            yield f"has text of {size_of(word):.1f} points: {word[4]!r}"
        if word[0] < -1 or word[1] < -2 or word[2] > width + 1 or word[3] > height + 2:
            yield f"has text outside the page: {word[4]!r}"
    for i, a in enumerate(words):
        for b in words[:i]:
            if overlap(a, b):
                yield f"has overlapping words: {a[4]!r} and {b[4]!r}"


def draws_itself(script):
    """Whether plain gnuplot makes the same three files from script and data in a folder of their own."""
    name = os.path.splitext(os.path.basename(script))[0]
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".gp", ".tsv"):
            shutil.copy(os.path.splitext(script)[0] + ending, folder)
        done = subprocess.run(["gnuplot", name + ".gp"], cwd=folder, capture_output=True, text=True)
        made = [os.path.exists(os.path.join(folder, name + e)) for e in (".pdf", ".png", ".svg")]
        return done.returncode == 0 and all(made)


def main():
    width_cm, folders = float(sys.argv[1]), sys.argv[2:]
    figures = sorted(sum((glob.glob(os.path.join(f, "**/*.pdf"), recursive=True) for f in folders), []))
    wrong = 0
    for pdf in figures:
        found = list(complaints(pdf, width_cm))
        if not draws_itself(os.path.splitext(pdf)[0] + ".gp"):
            found.append("is not drawn again by plain gnuplot")
        for complaint in found:
            print(f"{pdf} {complaint}")
        wrong += bool(found)
    print(f"{len(figures)} figures at {width_cm:g} cm: {wrong} with complaints")
    print(f"figures: {len(figures) - wrong} passed, {wrong} failed")
    return 1 if wrong or not figures else 0


if __name__ == "__main__":
    sys.exit(main())
