"""SciPy and PyAMG on one system after the other, for `krylith-bench profile`: race.py SECONDS RTOL

Each line of standard input names a folder with A.npz and b.npy, and contestants; each is answered by a line of
JSON with one object per contestant: seconds of set-up and solve, the relative residual of x as recomputed here in extended
precision, and what went wrong. A contestant runs in a process of its own, which ends after SECONDS, at a limit of memory or in a
crash without harm to the next; the clock runs from the matrix in the storage it takes to x.

| contestant | what |
|---|---|
| `spsolve` | SuperLU, default options |
| `spilu` | `spilu` with default options and GMRES(50) |
| `pyamg-sa` `pyamg-rs` | smoothed aggregation, Ruge-Stüben; with CG for a symmetric matrix and GMRES for another |
| `extended` | SuperLU, x refined with residuals in extended precision: is 1e-8 to be had? Not for a race |
"""

import json
import os
import resource
import select
import signal
import sys
import time
import warnings

import numpy as np
import pyamg
import scipy.sparse as sp
import scipy.sparse.linalg as sla

MEMORY = 16 << 30
ROUNDS = 30  # of refinement


def residual(a, x, b):
    """b - A x, every product and sum in extended precision."""
    products = a.data.astype(np.longdouble) * x[a.indices]
    sums = np.zeros(len(b), np.longdouble)
    filled = np.flatnonzero(np.diff(a.indptr))
    sums[filled] = np.add.reduceat(products, a.indptr[filled]) if len(filled) else 0
    return b.astype(np.longdouble) - sums


def relative(a, x, b):
    if not np.isfinite(x).all():
        return None
    return float(np.sqrt(np.sum(residual(a, x, b) ** 2) / np.sum(b.astype(np.longdouble) ** 2)))


def extended(a, b, rtol):
    """The best x in double precision along a refinement in extended precision."""
    factor = sla.splu(a.tocsc())
    x, best, least = np.zeros(len(b), np.longdouble), np.zeros(len(b)), 1.0
    for _ in range(ROUNDS):
        x = x + factor.solve(residual(a, x, b).astype(np.float64))
        rounded = x.astype(np.float64)
        reached = relative(a, rounded, b)
        if reached is None or reached > 0.9 * least and reached <= rtol:
            break
        if reached < least:
            best, least = rounded, reached
    return best


def contestant(name, a, b, rtol):
    """What to call under the clock; conversions of storage are made before."""
    symmetric = abs(a - a.T).max() <= 8 * np.finfo(float).eps * abs(a).max()
    if name == "spsolve":
        c = a.tocsc()
        return lambda: sla.spsolve(c, b)
    if name == "spilu":
        c = a.tocsc()

        def solve():
            factor = sla.spilu(c)
            m = sla.LinearOperator(a.shape, factor.solve)
            return sla.gmres(a, b, rtol=rtol, atol=0.0, restart=50, maxiter=200, M=m)[0]

        return solve
    if name in ("pyamg-sa", "pyamg-rs"):
        build = pyamg.smoothed_aggregation_solver if name == "pyamg-sa" else pyamg.ruge_stuben_solver
        accelerate = sla.cg if symmetric else sla.gmres

        def solve():
            m = build(a).aspreconditioner()
            return accelerate(a, b, rtol=rtol, atol=0.0, maxiter=1000 if symmetric else 50, M=m)[0]

        return solve
    if name == "extended":
        return lambda: extended(a, b, rtol)
    sys.exit(f"there is no contestant {name} here")


def race(name, a, b, rtol):
    """In the child."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        solve = contestant(name, a, b, rtol)
        start = time.perf_counter()
        x = solve()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "residual": relative(a, x, b)}
    except Exception as error:  # any failure of a library is a result here
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def within(seconds, name, a, b, rtol):
    """Run a contestant in a child process; return its result, or why it has none."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # PyAMG prints there
        os.write(write, json.dumps(race(name, a, b, rtol)).encode())
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], seconds)
    text = os.read(read, 65536) if ready else b""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    return json.loads(text) if text else {"error": "crash" if ready else "time limit"}


def main():
    seconds, rtol = map(float, sys.argv[1:])
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for line in sys.stdin:
        folder, *names = line.split()
        a = sp.csr_matrix(sp.load_npz(f"{folder}/A.npz"))
        a.sort_indices()
        b = np.load(f"{folder}/b.npy")
        print(json.dumps({name: within(seconds, name, a, b, rtol) for name in names}), flush=True)


main()
