"""Compares what `krylith-bench spcg --study check` wrote with Algorithm 2 in Python: check_sparsify.py CASES.json

Needs nothing but Python. Matrices are read from their files here, in coordinate format. For each of 10, 5 and 1 percent: the indicator, wavefronts
and, of the ratio that is taken, the pairs that are dropped. Counts and pairs must be equal, indicators to 1e-12 relative. A difference ends in exit status 1.
"""
import json
import lzma
import sys

TAU, OMEGA = 1.0, 10.0


def lower_triangle(path):
    """Rows below and on the diagonal: one dictionary of columns each."""
    with lzma.open(path, "rt") as file:
        words = file.readline().lower().split()
        assert words[2] == "coordinate" and words[4] in ("symmetric", "general"), words
        line = file.readline()
        while line.startswith("%") or not line.strip():
            line = file.readline()
        n = int(line.split()[0])
        rows = [{} for _ in range(n)]
        for line in file:
            if not line.strip():
                continue
            i, j, v = line.split()
            i, j = int(i) - 1, int(j) - 1
            if j <= i:
                rows[i][j] = float(v)
    return rows


def wavefronts(rows, dropped):
    level = []
    for i, row in enumerate(rows):
        before = [level[j] for j in row if j < i and (i, j) not in dropped]
        level.append(1 + max(before, default=0))
    return max(level)


def algorithm_2(rows):
    """The ratios that were tried, the one that was taken, and its pairs."""
    off = sorted((abs(v), i, j) for i, row in enumerate(rows) for j, v in row.items() if j < i)
    stored = sum(len(row) for row in rows)
    least = min(row.get(i, 0.0) for i, row in enumerate(rows))
    w_a, tried, largest = wavefronts(rows, set()), [], None
    for t in (10, 5, 1):
        pairs = off[: int(stored * t / 100)]
        sums = [0.0] * len(rows)
        for v, i, j in pairs:
            sums[i] += v
            sums[j] += v
        dropped = {(i, j) for _, i, j in pairs}
        largest = largest or (t, dropped)
        indicator = max(sums) / least if least > 0 else float("inf")
        w = wavefronts(rows, dropped)
        tried.append((t, 2 * len(pairs), indicator, w))
        if indicator > TAU:
            continue
        if 100 * (w_a - w) / w_a >= OMEGA or t == 1:
            return w_a, tried, (t, dropped)
    return w_a, tried, largest


failures = 0
for case in json.load(open(sys.argv[1])):
    rows = lower_triangle(case["file"])
    w_a, tried, (percent, dropped) = algorithm_2(rows)
    found = case["sparsification"]
    candidates = found["candidates"]
    same = found["wavefronts"] == w_a and len(candidates) == len(tried)
    for (t, count, indicator, w), own in zip(tried, candidates):
        mine = float("inf") if own["indicator"] is None else own["indicator"]
        same &= (own["percent"], own["dropped"], own["wavefronts"]) == (t, count, w)
        same &= mine == indicator or abs(mine - indicator) <= 1e-12 * abs(indicator)
    same &= candidates[found["taken"]]["percent"] == percent
    same &= {tuple(pair) for pair in case["dropped"]} == dropped
    failures += not same
    name = case["file"].rsplit("/", 1)[-1]
    print(f"{name:24} {percent:3} %, {len(dropped):6} pairs, {w_a} -> {candidates[found['taken']]['wavefronts']} wavefronts: {'equal' if same else 'DIFFERENT'}")
print(f"{failures} different")
sys.exit(failures > 0)
