"""SciPy and ilupp on one system, for `krylith-bench incomplete`: outcome.py FOLDER X RTOL MAX_ITERATIONS METHOD PRECONDITIONER

FOLDER holds A.npz and b.npy. METHOD is cg or gmres (restart 50), PRECONDITIONER ichol0, icholt (both ilupp's) or spilu, each
followed by its arguments in brackets if they are not the default ones. Iterations of GMRES are inner ones. Where SciPy calls x converged and the
residual recomputed from A and x is larger than RTOL |b|, it goes on from x; `rounds` counts its solves. x goes to the file X.
One line of JSON tells what SciPy says; whether x is an answer is not judged here.
"""

import importlib.metadata
import json
import sys
import warnings

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as sla

RESTART = 50
ROUNDS = 20  # the tolerance may be out of reach


def build(name, a):
    """The preconditioner, and the version of who made it."""
    name, _, rest = name.partition("(")
    arguments = [float(word) for word in rest.rstrip(")").split(",") if word]
    if name == "spilu":
        factor = sla.spilu(a.tocsc(), *arguments)
        return sla.LinearOperator(a.shape, factor.solve), f"SciPy {scipy.__version__}"
    import ilupp

    version = f"SciPy {scipy.__version__}, ilupp {importlib.metadata.version('ilupp')}"
    if name == "ichol0":
        return ilupp.IChol0Preconditioner(a), version
    if name == "icholt":
        fill, threshold = (int(arguments[0]), arguments[1]) if arguments else (0, 0.0)
        return ilupp.ICholTPreconditioner(a, add_fill_in=fill, threshold=threshold), version
    sys.exit(f"there is no preconditioner {name} here")


def solve(method, a, b, m, rtol, max_iterations):
    """x, what SciPy said, iterations, rounds: from 0, and from x again as long as SciPy calls that converged and it is not."""
    count = 0

    def counted(_):
        nonlocal count
        count += 1

    x = np.zeros_like(b)
    for rounds in range(1, ROUNDS + 1):
        left = max_iterations - count
        common = {"x0": x, "rtol": rtol, "atol": 0.0, "M": m, "callback": counted}
        if method == "gmres":
            outer = -(-left // RESTART)
            x, info = sla.gmres(a, b, restart=RESTART, maxiter=outer, callback_type="pr_norm", **common)
        else:
            x, info = sla.cg(a, b, maxiter=left, **common)
        said = "converged" if info == 0 else "max_iterations" if info > 0 else "breakdown"
        residual = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
        if info != 0 or not residual > rtol or count >= max_iterations:
            break
    return x, said, count, rounds


def main():
    folder, path, rtol, max_iterations, method, preconditioner = sys.argv[1:]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    a = sp.csr_matrix(sp.load_npz(f"{folder}/A.npz"))
    b = np.load(f"{folder}/b.npy")
    line = {"version": f"SciPy {scipy.__version__}", "iterations": 0, "rounds": 0, "detail": ""}
    try:
        m, line["version"] = build(preconditioner, a)
        # ilupp takes the root of a negative pivot without a word.
        if not np.isfinite(m @ b).all():
            raise ArithmeticError("the factor is not finite")
    except (RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        print(json.dumps(line | {"said": "setup_failed", "detail": str(error)}))
        return
    x, said, iterations, rounds = solve(method, a, b, m, float(rtol), int(max_iterations))
    np.save(path, x)
    print(json.dumps(line | {"said": said, "iterations": iterations, "rounds": rounds}))


main()
