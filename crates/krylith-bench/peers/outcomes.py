"""Solves with every square matrix of a catalogue and judges what was said in exact arithmetic.

    outcomes.py KRYLITH CATALOGUE [--rhs ones|random] [--seconds 60] [--threads 2] [--json FILE]

Independent of Krylith: matrices are read here, b is made here, and every number of `f64` is an integer times a power of two, so that sums of
products are integers. Judged are, for A, x and b as they are in the files:

  converged      ‖b − A x‖ ≤ rtol ‖b‖, squared
  singular       Aᵀ(y + y_low) = 0 and |(y + y_low)ᵀb| > rtol ‖y + y_low‖ ‖b‖, squared
  least_squares  as singular, where the level is `exact`. Where it is `rounding`, ‖D⁻¹Aᵀy‖ ≤ ‖D⁻¹γ|A|ᵀ|y|‖ with γⱼ = (2 kⱼ + 6) 2⁻⁵², kⱼ the entries of column j and D their
                 largest. What is left of b − A x without its part along y is at most rtol times what is left of b, and 16 · 2⁻⁵² ‖b‖
"""

import argparse
import array
import collections
import json
import lzma
import math
import pathlib
import random
import subprocess
import tempfile
from fractions import Fraction

RTOL = 1e-8
LEAST_ROWS = 100
# Every finite number is an integer times 2**-BITS.
BITS = 1074


def integer(value):
    """value · 2**BITS"""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (BITS + 1 - denominator.bit_length())


def read(path):
    """Rows of a Matrix Market file as lists of (column, value), values as they are read by the command."""
    with lzma.open(path, "rt") as file:
        head = file.readline().lower().split()
        symmetric = head[4] in ("symmetric", "skew-symmetric")
        sign = -1.0 if head[4] == "skew-symmetric" else 1.0
        pattern = head[3] == "pattern"
        line = file.readline()
        while line.startswith("%") or not line.strip():
            line = file.readline()
        rows, columns, _ = map(int, line.split())
        entries = [collections.defaultdict(float) for _ in range(rows)]
        for line in file:
            words = line.split()
            if not words:
                continue
            i, j = int(words[0]) - 1, int(words[1]) - 1
            value = 1.0 if pattern else float(words[2])
            entries[i][j] += value
            if symmetric and i != j:
                entries[j][i] += sign * value
    return columns, [sorted(row.items()) for row in entries]


def product(rows, x):
    """A x, each entry exact, in units of 2**-(2 BITS); x as integers."""
    return [sum(integer(v) * x[j] for j, v in row) for row in rows]


def square(vector):
    return sum(v * v for v in vector)


def transposed_product(rows, columns, y):
    sums, sizes, counts, largest = [0] * columns, [0] * columns, [0] * columns, [0] * columns
    for row, yi in zip(rows, y):
        for j, v in row:
            if v == 0.0:
                continue
            v = integer(v)
            sums[j] += v * yi
            sizes[j] += abs(v * yi)
            counts[j] += 1
            largest[j] = max(largest[j], abs(v))
    return sums, sizes, counts, largest


def ratio(a, b):
    """a / b as a float."""
    try:
        return float(Fraction(a, b)) if b else math.inf
    except OverflowError:
        return math.inf


def wrong_certificate(rows, columns, b, null):
    """Why the null vector proves nothing."""
    low = null.get("y_low") or [0.0] * len(null["y"])
    y = [integer(high) + integer(low) for high, low in zip(null["y"], low)]
    sums, sizes, counts, largest = transposed_product(rows, columns, y)
    if null["level"] == "exact" and any(sums):
        return "exact, and Aᵀy is not zero"
    if null["level"] == "rounding":
        # Quotients with 200 bits behind the point, as integers.
        terms = [j for j in range(columns) if largest[j]]
        left = sum(((sums[j] << 200) // largest[j]) ** 2 for j in terms) << 104
        bound = sum(((2 * counts[j] + 6) * (sizes[j] << 200) // largest[j]) ** 2 for j in terms)
        if left > bound:
            return f"rounding, and ‖D⁻¹Aᵀy‖² is {ratio(left, bound):.1e} of what rounding leaves"
    along = sum(y * b for y, b in zip(y, b))
    if along**2 <= Fraction(RTOL) ** 2 * square(y) * square(b):
        return "|yᵀb| is within the tolerance"
    return None


def wrong(rows, columns, b, x, report):
    """Why what the report says is not true."""
    outcome = report["outcome"]
    if outcome not in ("converged", "singular", "least_squares"):
        return None
    b = [integer(v) for v in b]
    unit = 1 << BITS
    r = [bi * unit - v for bi, v in zip(b, product(rows, [integer(v) for v in x]))]
    if outcome == "converged":
        met = square(r) <= Fraction(RTOL) ** 2 * square(b) * unit**2
        return None if met else f"residual {math.sqrt(ratio(square(r), square(b) * unit**2)):e}"
    null = report["certificate"]["null_vector"]
    if null is None or outcome == "singular" and null["level"] != "exact":
        return "without a certificate"
    why = wrong_certificate(rows, columns, b, null)
    if why or outcome == "singular":
        return why
    y = [integer(v) for v in null["y"]]
    without = lambda v: Fraction(square(v)) - Fraction(sum(p * q for p, q in zip(y, v)) ** 2, square(y))
    left, of_b, size = without(r) / unit**2, without(b), square(b)
    bound = RTOL * math.sqrt(ratio(of_b.numerator, of_b.denominator * size)) + 16 * 2.0**-52
    reached = math.sqrt(ratio(left.numerator, left.denominator * size))
    return None if reached <= bound * 1.001 else f"{reached:e} of b is left besides y, {bound:e} may be"


def write(path, vector):
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix array real general\n{len(vector)} 1\n")
        file.writelines(f"{v!r}\n" for v in vector)


def read_vector(path):
    with open(path) as file:
        lines = [line for line in file if not line.startswith("%")]
    return [float(line) for line in lines[1:]]


def solve(arguments, path, folder):
    columns, rows = read(path)
    if len(rows) != columns or columns < LEAST_ROWS:
        return None
    if arguments.rhs == "ones":
        b = [math.fsum(v for _, v in row) for row in rows]
    else:
        numbers = random.Random(path.name)
        b = [numbers.uniform(-1.0, 1.0) for _ in rows]
    names = {name: folder / name for name in ("b.mtx", "x.mtx", "report.json")}
    write(names["b.mtx"], b)
    command = [arguments.krylith, "solve", path, "-b", names["b.mtx"], "-x", names["x.mtx"], "--json", names["report.json"]]
    try:
        command = [*map(str, command), "--threads", str(arguments.threads)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        return {"outcome": "no time"}
    report = json.loads(names["report.json"].read_text())
    found = {key: report.get(key) for key in ("outcome", "solver", "preconditioner", "relative_residual", "iterations")}
    found["seconds"] = report["seconds"]["total"] if "seconds" in report else None
    found["rungs"] = len(report.get("rungs", []))
    null = (report.get("certificate") or {}).get("null_vector")
    found["level"] = null["level"] if null else None
    found["wrong"] = wrong(rows, columns, b, read_vector(names["x.mtx"]), report)
    if null and found["wrong"] is None and null["level"] != "nearly":
        found["confirmed"] = wrong_certificate(rows, columns, [integer(v) for v in b], null) is None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("krylith")
    parser.add_argument("catalogue", type=pathlib.Path)
    parser.add_argument("--rhs", choices=["ones", "random"], default="ones")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    results, outcomes = {}, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(arguments.catalogue.glob("*/*.mtx.xz")):
            found = solve(arguments, path, pathlib.Path(folder))
            if found is None:
                continue
            results[path.name.split(".")[0]] = found
            outcomes[found["outcome"]] += 1
            if found["outcome"] != "converged" or found["wrong"]:
                print(path.name.split(".")[0], json.dumps(found), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    certificates = [found["confirmed"] for found in results.values() if "confirmed" in found]
    print(f"{len(results)} matrices:", ", ".join(f"{count} {name}" for name, count in outcomes.most_common()))
    print(f"certificates confirmed: {sum(certificates)} of {len(certificates)}")
    print(f"wrong words: {sum(bool(found.get('wrong')) for found in results.values())}")


if __name__ == "__main__":
    main()
