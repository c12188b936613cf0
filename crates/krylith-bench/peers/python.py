"""SciPy, ilupp and PyAMG: python.py PEER and then the call of every driver (README.md). One thread.

SciPy's CG and BiCGStab judge by the 2-norm of the unpreconditioned residual. ilupp and PyAMG give the preconditioner; what they take
to build it is set-up. `import` is the way from the arrays to a csr_matrix.
"""

import json
import os
import sys
import time

import numpy as np
import scipy
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, bicgstab, cg


def read(path):
    with open(path, "rb") as f:
        n, nnz = np.fromfile(f, np.int64, 2)
        row_ptr = np.fromfile(f, np.int64, n + 1)
        col_idx, values = np.fromfile(f, np.int32, nnz), np.fromfile(f, np.float64, nnz)
        b = np.fromfile(f, np.float64, n)
        if len(b) not in (0, n):
            sys.exit("the right-hand side in the matrix file is too short")
        return n, row_ptr, col_idx, values, b if len(b) else None


def preconditioner(peer, name, a):
    """A LinearOperator or None, and the version of who made it."""
    if name == "none":
        return None, scipy.__version__
    if peer == "scipy" and name == "jacobi":
        inverse = 1 / a.diagonal()
        return LinearOperator(a.shape, lambda r: inverse * r), scipy.__version__
    if peer == "ilupp":
        import importlib.metadata

        import ilupp

        build = {"ic0": ilupp.IChol0Preconditioner, "ilu0": ilupp.ILU0Preconditioner}[name]
        return build(a), importlib.metadata.version("ilupp")
    if peer == "pyamg":
        import pyamg

        build = {"sa": pyamg.smoothed_aggregation_solver, "rs": pyamg.ruge_stuben_solver}[name]
        return build(a).aspreconditioner(), pyamg.__version__
    sys.exit(f"{peer} has no preconditioner {name} here")


def least_seconds(call):
    """At least 20 calls and 0.3 s, but no more than 5 s once there are 3."""
    began, least, calls = time.perf_counter(), float("inf"), 0
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        least, calls, spent = min(least, end - start), calls + 1, end - began
        if calls >= 20 and spent >= 0.3 or calls >= 3 and spent > 5:
            return least


def kernels(a, b, m, build):
    """Of SciPy the operations on A and vectors, of others their preconditioner."""
    if m is not None:
        return {"apply": least_seconds(lambda: m @ b), "factor": least_seconds(build)}
    y = a @ b
    return {
        "spmv": least_seconds(lambda: a @ b),
        "dot": least_seconds(lambda: b @ y),
        "axpy": least_seconds(lambda: scipy.linalg.blas.daxpy(b, y, a=1e-9)),
    }


def main():
    peer, path, mode, config, rtol, max_iterations = sys.argv[1:]
    method, name = config.split("+")
    n, row_ptr, col_idx, values, given = read(path)
    start = time.perf_counter()
    a = scipy.sparse.csr_matrix((values, col_idx, row_ptr.astype(np.int32)), shape=(n, n))
    imported = time.perf_counter() - start
    b = a @ np.ones(n) if given is None else given
    start = time.perf_counter()
    m, version = preconditioner(peer, name, a)
    setup = time.perf_counter() - start
    problem = os.path.basename(path).split(".")[0]
    line = {"peer": peer, "version": version, "config": config, "problem": problem, "threads": 1}
    line["rhs"] = "ones" if given is None else "file"
    if mode == "kernels":
        figures = kernels(a, b, m, lambda: preconditioner(peer, name, a))
        print(json.dumps(line | {"status": "measured", "kernels": figures}))
        return
    iterations = 0

    def count(_):
        nonlocal iterations
        iterations += 1

    solver = {"cg": cg, "bicgstab": bicgstab}[method]
    start = time.perf_counter()
    x, info = solver(a, b, rtol=float(rtol), atol=0.0, maxiter=int(max_iterations), M=m, callback=count)
    solve = time.perf_counter() - start
    residual = float(np.linalg.norm(b - a @ x) / np.linalg.norm(b))
    status = "converged" if info == 0 else "max_iterations" if info > 0 else "breakdown"
    figures = {"import_seconds": imported, "setup_seconds": setup, "solve_seconds": solve}
    residual = residual if np.isfinite(residual) else None
    print(json.dumps(line | figures | {"iterations": iterations, "relative_residual": residual, "status": status}))


main()
