"""Compares what `krylith-bench peers` wrote with ilupp and SciPy: check_factors.py CASES.json

Factors, entry by entry, with two others: ilupp's, and those of the few lines of `ilu0` and `ic0` below, which follow the
definition. Patterns must be equal, and entries to 1e-12 of the largest of their row (the diagonal included), because an entry that cancels to almost
nothing keeps the rounding of what it was computed from.

Iterates after a few steps, with SciPy's own cg, bicgstab and gmres on a preconditioner that is applied by SciPy's triangular
solves with ilupp's factors; relative in the 2-norm. How much rounding alone does differs widely, above all for BiCGStab. So
SciPy runs again, three times, with each number of A, b and the factors multiplied by 1 or 1 + 2^-52 at random, and a difference
may be as large as 1e-13 or 30 times what that changes.

Answers, with SciPy's spsolve: |x - x*| <= |A^-1| (|b - A x| + |b - A x*|) in the 1-norm, |A^-1| estimated from a
factorization by splu; and |b - A x| <= 1e-8 |b| in the 2-norm.

Every bound is an assertion: a difference beyond it, or a peer that fails, ends in exit status 1.
"""
import json
import lzma
import sys

import ilupp
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.io import mmread

FACTOR, ITERATE, ROUNDING = 1e-12, 1e-13, 30  # the bounds above
random = np.random.default_rng(1)
failures = []


def read(path):
    """The matrix in a file, its columns in order."""
    if path.endswith(".npz"):
        a = sp.load_npz(path)
    else:
        with lzma.open(path) as file:
            a = mmread(file)
    a = sp.csr_matrix(a).astype(float)
    a.sort_indices()
    return a


def ilu0(a):
    """L and U of ILU(0), A = (I + L) U on the pattern, row by row as in Saad, Iterative Methods for Sparse Linear Systems, algorithm 10.4."""
    rows = [dict(zip(a.indices[s:e].tolist(), a.data[s:e].tolist())) for s, e in zip(a.indptr, a.indptr[1:])]
    for i, row in enumerate(rows):
        for k in sorted(k for k in row if k < i):
            row[k] /= rows[k][k]
            for j, u in rows[k].items():
                if j > k and j in row:
                    row[j] -= row[k] * u
    m = sp.csr_matrix(([row[j] for row in rows for j in sorted(row)], a.indices, a.indptr), a.shape)
    return sp.tril(m, -1, "csr"), sp.triu(m, 0, "csr")


def ic0(a):
    """L of IC(0), A = L L^T on the pattern: l_ij = (a_ij - sum l_ik l_jk) / l_jj, row by row."""
    low = sp.tril(a, 0, "csr")
    rows = [dict(zip(low.indices[s:e].tolist(), low.data[s:e].tolist())) for s, e in zip(low.indptr, low.indptr[1:])]
    for i, row in enumerate(rows):
        for j in sorted(row):
            s = row[j] - sum(l * row[k] for k, l in rows[j].items() if k < j and k in row)
            row[j] = s / rows[j][j] if j < i else s**0.5
    return sp.csr_matrix(([row[j] for row in rows for j in sorted(row)], low.indices, low.indptr), a.shape)


def check(what, value, bound):
    """Notes a failure unless value <= bound; a NaN fails."""
    if not value <= bound:
        failures.append(f"{what}: {value:.1e} > {bound:.1e}")
    return value


def difference(f, g, f_diagonal, g_diagonal):
    """The largest difference of entries of two triangles and of their diagonals, which are kept apart, relative to the largest
    entry of the row; infinite if patterns differ."""
    f.sort_indices(), g.sort_indices()
    if not (np.array_equal(f.indptr, g.indptr) and np.array_equal(f.indices, g.indices)):
        return np.inf
    largest = lambda m, diagonal: np.maximum(abs(m).max(axis=1).toarray().ravel(), np.abs(diagonal))
    d = sp.csr_matrix((f.data - g.data, f.indices, f.indptr), f.shape)
    return float(np.max(largest(d, f_diagonal - g_diagonal) / largest(g, g_diagonal)))


def nudged(v):
    """A vector or a matrix, each number as it is or one rounding further from zero."""
    w = v.copy()
    data = w.data if sp.issparse(w) else w
    data[:] *= 1 + 2.0**-52 * random.integers(0, 2, len(data))
    return w


def iterate(method, steps, a, b, lower, upper):
    """SciPy's iterate with M = lower upper."""
    solve = lambda v: sla.spsolve_triangular(upper, sla.spsolve_triangular(lower, v, lower=True), lower=False)
    if method == "gmres":  # SciPy preconditions from the left; A M^-1 y = b, x = M^-1 y does it from the right
        product = sla.LinearOperator(a.shape, matvec=lambda v: a @ solve(v))
        return solve(sla.gmres(product, b, rtol=0, restart=steps, maxiter=1)[0])
    m = sla.LinearOperator(a.shape, matvec=solve)
    return getattr(sla, method)(a, b, M=m, rtol=0, maxiter=steps)[0]


def iterates(case, method, *system):
    """The largest difference to SciPy's iterates, and in brackets the largest that rounding makes."""
    largest = [0, 0]
    for steps in case["steps"]:
        x = iterate(method, steps, *system)
        distance = lambda y: np.linalg.norm(y - x) / np.linalg.norm(x)
        rounding = max(distance(iterate(method, steps, *map(nudged, system))) for _ in range(3))
        ours = distance(np.load(f"{case['folder']}/{method}-{steps}.npy"))
        check(f"{case['name']} {method} {steps}", ours, max(ITERATE, ROUNDING * rounding))
        largest = np.maximum(largest, [ours, rounding])
    return "{:.0e} ({:.0e})".format(*largest)


def strict(m, sign):
    """The entries below (-1) or above (1) the diagonal, stored zeros included."""
    return (sp.tril if sign < 0 else sp.triu)(m, sign, "csr")


def scaled(m, rows=1.0, columns=1.0):
    """Rows and columns times numbers, stored zeros kept."""
    m = sp.csr_matrix(m)
    row = np.repeat(np.arange(m.shape[0]), np.diff(m.indptr))
    data = m.data * (rows * np.ones(m.shape[0]))[row] * (columns * np.ones(m.shape[0]))[m.indices]
    return sp.csr_matrix((data, m.indices, m.indptr), m.shape)


def compare(case):
    """One matrix; the figures of its line in the table."""
    name, folder = case["name"], case["folder"]
    load = lambda what: np.load(f"{folder}/{what}.npy") if what[-1] != "." else sp.load_npz(f"{folder}/{what}npz")
    a, b, line = read(case["matrix"]), load("b"), []
    # Krylith has (I + L) D (I + U), others (I + L) U with D in U.
    d = 1 / load("ilu0-inverse")
    theirs = ilupp.ILU0Preconditioner(a).factors()
    for peer, (l, u) in (("ilupp", theirs), ("definition", ilu0(a))):
        below = difference(load("ilu0-l."), strict(l, -1), np.ones_like(d), np.ones_like(d))
        above = difference(scaled(load("ilu0-u."), rows=d), strict(u, 1), d, u.diagonal())
        line.append(check(f"{name} ilu0 by {peer}", max(below, above), FACTOR))
    if case["symmetric"]:
        # Krylith has (I + L) D (I + L)^T, others L L^T with the root of D in L.
        root = load("ic0-inverse") ** -0.5
        (chol,) = ilupp.IChol0Preconditioner(a).factors()
        for peer, l in (("ilupp", chol), ("definition", ic0(a))):
            below = difference(scaled(load("ic0-l."), columns=root), strict(l, -1), root, l.diagonal())
            line.append(check(f"{name} ic0 by {peer}", below, FACTOR))
        line.append(iterates(case, "cg", a, b, chol.tocsr(), chol.T.tocsr()))
    else:
        line += [""] * 3
    line += [iterates(case, method, a, b, *theirs) for method in ("bicgstab", "gmres")]
    # The answer.
    x, direct = np.load(f"{folder}/answer.npy"), sla.spsolve(a.tocsc(), b)
    lu = sla.splu(a.tocsc())
    inverse = sla.LinearOperator(a.shape, matvec=lu.solve, rmatvec=lambda v: lu.solve(v, "T"))
    norm = lambda v: np.linalg.norm(v, 1)
    bound = 1.1 * sla.onenormest(inverse) * (norm(b - a @ x) + norm(b - a @ direct))
    check(f"{name} residual", np.linalg.norm(b - a @ x) / np.linalg.norm(b), 1e-8 * (1 + 1e-6))
    check(f"{name} answer", norm(x - direct), bound)
    return line + [norm(x - direct) / norm(direct), bound / norm(direct)]


print("| matrix | ILU(0), ilupp | ILU(0), definition | IC(0), ilupp | IC(0), definition | CG | BiCGStab | GMRES | answer | its bound |")
print("|---|---|---|---|---|---|---|---|---|---|")
cases = json.load(open(sys.argv[1]))
for case in cases:
    assert case["outcome"] == "converged", case
    figures = compare(case)
    print("| " + " | ".join([case["name"]] + [f if isinstance(f, str) else f"{f:.0e}" for f in figures]) + " |", flush=True)
print()
for failure in failures:
    print("WRONG:", failure)
print(f"{len(cases)} matrices, {len(failures)} differences beyond rounding")
sys.exit(bool(failures) or not cases)
