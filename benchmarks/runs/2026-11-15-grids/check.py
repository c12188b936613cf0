"""Every grid in grids.json against the matrix file itself, read here: the set of offsets, the size, the fullness.

    python3 check.py FOLDER-OF-THE-CATALOGUE grids.json
"""
import json
import lzma
import sys
from math import prod

folder, results = sys.argv[1:]
right = wrong = 0
for result in json.load(open(results)):
    grid = result.get("grid")
    if not grid:
        continue
    n, d = (grid["extents"] + [1, 1])[:3], grid["dof"]
    with lzma.open(f"{folder}/{result['file']}", "rt") as file:
        symmetric = file.readline().split()[4] != "general"
        lines = (line.split() for line in file if line.strip() and not line.startswith("%"))
        rows = int(next(lines)[0])
        entries = {(int(line[0]) - 1, int(line[1]) - 1) for line in lines}
    if symmetric:
        entries |= {(j, i) for i, j in entries}

    def point(p):
        return p % n[0], p // n[0] % n[1], p // n[0] // n[1]

    used = {tuple(b - a for a, b in zip(point(i // d), point(j // d))) for i, j in entries} | {(0, 0, 0)}
    places = sum(prod(m - abs(o) for m, o in zip(n, offset)) for offset in used) * d * d
    same = (
        used == {tuple(offset) for offset in grid["offsets"]}
        and prod(n) * d == rows
        and abs(len(entries) / places - grid["fullness"]) < 1e-12
    )
    right, wrong = right + same, wrong + (not same)
    if not same:
        print("WRONG", result["file"])
print(f"{right} right, {wrong} wrong")
sys.exit(wrong > 0)
