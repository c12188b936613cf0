"""Reads a Matrix Market file once with a Python reader and prints the seconds: read_mtx.py READER FILE THREADS"""
import json
import sys
import time

reader, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
import scipy.sparse  # noqa: F401  (imports are not part of reading)

if reader == "scipy":
    import scipy.io._fast_matrix_market as module  # where scipy.io.mmread keeps its number of threads
    from scipy.io import mmread
else:
    import fast_matrix_market as module
    from fast_matrix_market import mmread

module.PARALLELISM = threads
start = time.perf_counter()
coordinates = mmread(path)
middle = time.perf_counter()
rows = coordinates.tocsr()
rows.sort_indices()
end = time.perf_counter()
print(json.dumps({"seconds": end - start, "coordinates_seconds": middle - start, "nnz": int(rows.nnz)}))
