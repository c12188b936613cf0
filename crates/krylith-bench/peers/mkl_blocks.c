/* Intel MKL on 3 x 3 blocks: product by mkl_sparse_d_mv, triangular solves by mkl_sparse_d_trsv on its BSR format, all with hints and
 * mkl_sparse_optimize. It has no block IC(0): the factor comes from `krylith-bench blocks`, as G and its transpose in
 * M = G G^T with G lower triangular, so that MKL needs no pass for the diagonal blocks.
 *
 * FILE holds A, G and G^T, then x, A x and M^-1 x to compare with. A matrix: block rows, blocks and block size as 64-bit integers, row
 * pointers and block columns as 32-bit integers, blocks by rows as 64-bit floating point. Little-endian, nothing in between. */
#include "peer.h"
#include <mkl.h>
#include <mkl_spblas.h>

enum { EXPECTED_CALLS = 1000 };

static const struct matrix_descr general = {SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_FULL, SPARSE_DIAG_NON_UNIT};
static const struct matrix_descr lower = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_NON_UNIT};
static const struct matrix_descr upper = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_UPPER, SPARSE_DIAG_NON_UNIT};

typedef struct {
    sparse_matrix_t a, g, gt;
    double *x, *y, *between;
} System;

static void check(sparse_status_t status, const char *what) {
    if (status == SPARSE_STATUS_SUCCESS) return;
    fprintf(stderr, "%s: status %d\n", what, (int)status);
    exit(1);
}

static int read_blocks(FILE *f, sparse_matrix_t *handle) {
    int64_t head[3];
    read_exactly(f, head, 8, 3);
    if (head[0] >= INT32_MAX || head[1] >= INT32_MAX / 9) fail("more than 2^31 entries");
    int rows = (int)head[0], size = (int)head[2];
    size_t blocks = (size_t)head[1];
    int *row_ptr = room(4 * ((size_t)rows + 1)), *col_idx = room(4 * blocks);
    double *values = room(8 * blocks * size * size);
    read_exactly(f, row_ptr, 4, (size_t)rows + 1);
    read_exactly(f, col_idx, 4, blocks);
    read_exactly(f, values, 8, blocks * size * size);
    check(mkl_sparse_d_create_bsr(handle, SPARSE_INDEX_BASE_ZERO, SPARSE_LAYOUT_ROW_MAJOR, rows, rows, size, row_ptr, row_ptr + 1,
                                  col_idx, values),
          "mkl_sparse_d_create_bsr");
    return rows * size;
}

static void call_product(void *p) {
    System *s = p;
    check(mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->a, general, s->x, 0.0, s->y), "mkl_sparse_d_mv");
}

static void call_sweeps(void *p) {
    System *s = p;
    check(mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->g, lower, s->x, s->between), "mkl_sparse_d_trsv of G");
    check(mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->gt, upper, s->between, s->y), "mkl_sparse_d_trsv of G^T");
}

/* Largest difference, relative to the largest entry. */
static double difference(int n, const double *x, const double *y) {
    double largest = 0, size = 0;
    for (int i = 0; i < n; i++) {
        if (!(fabs(x[i] - y[i]) <= largest)) largest = fabs(x[i] - y[i]);
        size = fmax(size, fabs(y[i]));
    }
    return largest / size;
}

int main(int argc, char **argv) {
    if (argc != 2) fail("usage: FILE");
    FILE *f = fopen(argv[1], "rb");
    if (!f) fail("the file cannot be opened");
    System s;
    int n = read_blocks(f, &s.a);
    read_blocks(f, &s.g);
    read_blocks(f, &s.gt);
    size_t bytes = 8 * (size_t)n;
    double *product = room(bytes), *sweeps = room(bytes);
    s.x = room(bytes), s.y = room(bytes), s.between = room(bytes);
    read_exactly(f, s.x, 8, (size_t)n);
    read_exactly(f, product, 8, (size_t)n);
    read_exactly(f, sweeps, 8, (size_t)n);
    fclose(f);
    double start = now();
    check(mkl_sparse_set_mv_hint(s.a, SPARSE_OPERATION_NON_TRANSPOSE, general, EXPECTED_CALLS), "hint for A");
    check(mkl_sparse_optimize(s.a), "mkl_sparse_optimize of A");
    /* A status other than success means that MKL has no faster way for this format and goes on with its plain one. */
    int hints = mkl_sparse_set_sv_hint(s.g, SPARSE_OPERATION_NON_TRANSPOSE, lower, EXPECTED_CALLS) == SPARSE_STATUS_SUCCESS &&
                mkl_sparse_set_sv_hint(s.gt, SPARSE_OPERATION_NON_TRANSPOSE, upper, EXPECTED_CALLS) == SPARSE_STATUS_SUCCESS &&
                mkl_sparse_optimize(s.g) == SPARSE_STATUS_SUCCESS && mkl_sparse_optimize(s.gt) == SPARSE_STATUS_SUCCESS;
    double analyze = now() - start;
    call_product(&s);
    double product_difference = difference(n, s.y, product);
    call_sweeps(&s);
    double sweeps_difference = difference(n, s.y, sweeps);
    if (!(product_difference < 1e-12) || !(sweeps_difference < 1e-8)) {
        fprintf(stderr, "other numbers: product %g, sweeps %g\n", product_difference, sweeps_difference);
        return 1;
    }
    MKLVersion v;
    mkl_get_version(&v);
    printf("{\"version\":\"%d.%d.%d\",\"threads\":%d,\"hints\":%s,", v.MajorVersion, v.UpdateVersion, v.MinorVersion,
           mkl_get_max_threads(), hints ? "true" : "false");
    print_number("analyze", analyze, ",");
    print_number("product", least_seconds(call_product, NULL, &s), ",");
    print_number("sweeps", least_seconds(call_sweeps, NULL, &s), "}\n");
    return 0;
}
