"""Reads a Matrix Market file once with a Python reader and prints the seconds: read_mtx.py READER FILE THREADS"""
import json
import sys
import time

reader, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if reader == "scipy":
    import scipy.io._fast_matrix_market as module
else:
    import fast_matrix_market as module
import scipy.sparse  # noqa: F401  (its import is not part of reading)

module.PARALLELISM = threads
start = time.perf_counter()
coordinates = module.mmread(path)
middle = time.perf_counter()
rows = coordinates.tocsr()
rows.sort_indices()
end = time.perf_counter()
print(json.dumps({"seconds": end - start, "coordinates_seconds": middle - start, "nnz": int(rows.nnz)}))
