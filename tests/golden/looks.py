#!/usr/bin/env python3
"""How far apart the colours of figures are, for eyes with and without colour blindness, and in grey.

    python3 tests/golden/looks.py > tests/golden/looks.txt

Reads the colours of analysis/plot/line_styles.c (and the grey of lines in the background), has colorspacious
1.1.2 simulate complete deuteranomaly, protanomaly and tritanomaly (Machado et al. 2009), and writes
distances in CAM02-UCS, where 1 is about a just noticeable difference. Lines:

    light COLOUR L*                      lightness in CIELab, which is what a grey print keeps
    apart VISION COLOUR COLOUR DISTANCE  for every two colours
"""
import re
from itertools import combinations

import numpy as np
from colorspacious import cspace_converter

source = open("analysis/plot/line_styles.c", encoding="utf-8").read()
colours = list(dict.fromkeys(re.findall(r'"#([0-9a-f]{6})"', source)))
rgb = np.array([[int(c[i:i + 2], 16) / 255 for i in (0, 2, 4)] for c in colours])
to_lab = cspace_converter("sRGB1", "CIELab")
to_ucs = cspace_converter("sRGB1", "CAM02-UCS")
for colour, lab in zip(colours, to_lab(rgb)):
    print(f"light #{colour} {lab[0]:.3f}")
for vision in ("normal", "deuteranomaly", "protanomaly", "tritanomaly"):
    seen = rgb
    if vision != "normal":
        space = {"name": "sRGB1+CVD", "cvd_type": vision, "severity": 100}
        seen = np.clip(cspace_converter(space, "sRGB1")(rgb), 0, 1)
    ucs = to_ucs(seen)
    for a, b in combinations(range(len(colours)), 2):
        print(f"apart {vision} #{colours[a]} #{colours[b]} {np.linalg.norm(ucs[a] - ucs[b]):.3f}")
