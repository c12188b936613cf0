/* Intel MKL's dcsrilut, for `krylith-bench ilut`: ilut FILE TOL MAXFIL DPAR31 OUT
 *
 * Writes L (below the diagonal, unit diagonal not stored) and U (with its diagonal) as one matrix in the format of FILE, columns
 * rising in each row. Small pivots are replaced, ipar(31) = 1, by dpar(31) times the size of the row. */
#include "peer.h"
#include <mkl.h>
#include <mkl_rci.h>

/* dcsrilut leaves the entries of a row in the order of its selection. */
static void sort_row(int *columns, double *values, int count) {
    for (int k = 1; k < count; k++) {
        int column = columns[k], at = k;
        double value = values[k];
        for (; at > 0 && columns[at - 1] > column; at--) {
            columns[at] = columns[at - 1];
            values[at] = values[at - 1];
        }
        columns[at] = column;
        values[at] = value;
    }
}

static void write_exactly(FILE *f, const void *from, size_t size, size_t count) {
    if (fwrite(from, size, count, f) != count) fail("the factor cannot be written");
}

int main(int argc, char **argv) {
    if (argc != 6) fail("usage: FILE TOL MAXFIL DPAR31 OUT");
    Csr a = read_csr(argv[1]);
    double tol = atof(argv[2]), dpar[128] = {0};
    int maxfil = atoi(argv[3]), ipar[128] = {0}, error = 0;
    if (maxfil > a.n - 1) maxfil = a.n - 1;
    for (int i = 0; i <= a.n; i++) a.row_ptr[i]++;
    for (int k = 0; k < a.nnz; k++) a.col_idx[k]++;

    size_t room_for = (2 * (size_t)maxfil + 1) * (size_t)a.n;
    double *values = room(8 * room_for);
    int *columns = room(4 * room_for), *rows = room(4 * ((size_t)a.n + 1));
    ipar[1] = 6;
    ipar[5] = 1;
    ipar[30] = 1;
    dpar[30] = atof(argv[4]);
    dcsrilut(&a.n, a.values, a.row_ptr, a.col_idx, values, rows, columns, &tol, &maxfil, ipar, dpar, &error);
    if (error) {
        fprintf(stderr, "dcsrilut: error %d\n", error);
        return 1;
    }

    FILE *f = fopen(argv[5], "wb");
    if (!f) fail("the factor cannot be written");
    int64_t nnz = rows[a.n] - 1, head[2] = {a.n, nnz};
    write_exactly(f, head, 8, 2);
    for (int i = 0; i <= a.n; i++) {
        int64_t start = rows[i] - 1;
        write_exactly(f, &start, 8, 1);
    }
    for (int64_t k = 0; k < nnz; k++) columns[k]--;
    for (int i = 0; i < a.n; i++) sort_row(columns + rows[i] - 1, values + rows[i] - 1, rows[i + 1] - rows[i]);
    write_exactly(f, columns, 4, (size_t)nnz);
    write_exactly(f, values, 8, (size_t)nnz);
    if (fclose(f)) fail("the factor cannot be written");
    return 0;
}
