"""Judges with SciPy what `krylith-bench outcomes` calls converged: check_answers.py FOLDER ANSWERS OUTCOMES.json [RTOL]

FOLDER holds the Matrix Market files, ANSWERS what `--answers` kept, OUTCOMES.json what `--output` kept; RTOL is 1e-8 unless
given. Nothing of Krylith is used: SciPy reads the matrix, and b - A x is summed here.

Two checks, each ending in an exit status of 1 if it fails for any answer:

* b is A times ones, to the rounding of a sum of k products in any order: |b - A 1| <= k u (|A| 1) in every row of k entries,
  u = 2^-53; or, where the result says `random`, it is the outputs of SplitMix64 started at 0, scaled to [-1, 1), bit for bit.
  So the system solved is the one in the file.
* |b - A x| <= RTOL |b| (1 + 1e-6) in the 2-norm, with b - A x summed in extended precision (64 bits of mantissa), so that
  rounding on this side plays no part. The solver recomputes its residuals in double precision; what rounding does there
  depends on |A| |x| / |b| and is printed at the end. Where it is more than 1e-6 of RTOL, an answer right at the limit could
  fail here although the solver computed correctly: the message then gives both residuals.
"""
import json
import lzma
import os
import sys

import numpy as np
from scipy.io import mmread

SLACK = 1e-6
folder, answers, outcomes = sys.argv[1:4]
rtol = float(sys.argv[4]) if len(sys.argv) > 4 else 1e-8


def read(path):
    """The matrix in a file, duplicates added."""
    with (lzma.open(path) if path.endswith(".xz") else open(path, "rb")) as file:
        return mmread(file, spmatrix=False).tocsr().astype(float)


def residual(a, x, b):
    """b - A x, every product and sum in extended precision."""
    products = a.data.astype(np.longdouble) * x[a.indices]
    sums = np.zeros(a.shape[0], dtype=np.longdouble)
    full = np.diff(a.indptr) > 0
    sums[full] = np.add.reduceat(products, a.indptr[:-1][full])
    return b - sums


def norm(v):
    """The 2-norm; scaled, since squares may leave the range of numbers."""
    scale = np.max(np.abs(v), initial=0)
    return scale * np.sqrt(np.sum((v / scale) ** 2)) if scale > 0 else scale


def random_vector(n):
    """Outputs of SplitMix64 started at 0, their upper 53 bits scaled to [-1, 1)."""
    with np.errstate(over="ignore"):
        z = np.uint64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return 2 * ((z >> np.uint64(11)).astype(float) / 2.0**53) - 1


def same_system(a, b, rhs):
    """b = A 1 to rounding, or the random vector."""
    if rhs == "random":
        return np.array_equal(b, random_vector(a.shape[0]))
    bound = np.diff(a.indptr) * 2.0**-53 * (abs(a) @ np.ones(a.shape[1]))
    return np.all(np.abs(residual(a, np.ones(a.shape[1]), b)) <= bound)


assert np.finfo(np.longdouble).nmant >= 63, "this machine has no extended precision"
checked, wrong, largest, slack, name = 0, 0, (0, ""), (0, ""), None
for result in json.load(open(outcomes))["rows"]:
    if result["outcome"] != "converged":
        continue
    rhs = result.get("rhs", "ones")
    kept = result["file"] + (".random" if rhs == "random" else "")
    if name != kept:
        name = kept
        a, b = read(os.path.join(folder, result["file"])), np.load(os.path.join(answers, name + ".b.npy"))
        if not same_system(a, b, rhs):
            print(f"WRONG: {name}: b is not that of `{rhs}`")
            wrong += 1
    x = np.load(os.path.join(answers, f"{name}.{result['way']}.npy"))
    size = norm(b) or 1
    exact, plain = (float(norm(r) / size) for r in (residual(a, x, b), b - a @ x))
    checked += 1
    what = f"{name} {result['way']}"
    largest, slack = max(largest, (exact, what)), max(slack, (abs(plain - exact) / rtol, what))
    if not exact <= rtol * (1 + SLACK):
        print(f"WRONG: {what}: {exact:.9e} (plain {plain:.9e}, reported {result['relative_residual']:.9e})")
        wrong += 1
print(f"{checked} answers called converged; {wrong} wrong")
print(f"largest |b - A x| / |b|: {largest[0]:.9e} ({largest[1]})")
print(f"largest difference to double precision, in units of RTOL: {slack[0]:.1e} ({slack[1]})")
sys.exit(wrong > 0 or checked == 0)
