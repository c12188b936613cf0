"""The structural rank of matrices, entries that are zero not counted: structural_rank.py FILE.npz ...; one number a line"""

import sys

import scipy.sparse as sp
from scipy.sparse.csgraph import structural_rank

for path in sys.argv[1:]:
    a = sp.csr_matrix(sp.load_npz(path))
    a.eliminate_zeros()
    print(structural_rank(a), flush=True)
