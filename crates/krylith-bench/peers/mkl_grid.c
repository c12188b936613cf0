/* Intel MKL on matrices of structured grids, for `krylith-bench structured`: products by mkl_sparse_d_mv and triangular solves by
 * mkl_sparse_d_trsv, in the formats `csr` and `bsr`, all with hints and mkl_sparse_optimize; ILU(0) by dcsrilu0.
 *
 * MKL has no ILU(0) of blocks. With `bsr` the factor of dcsrilu0 is laid out in blocks, not timed; the triangles are those of the
 * entries, so both formats solve the same systems. dcsrilu0 wants indices from 1 and runs on one thread. */
#include "grid.h"
#include <mkl.h>
#include <mkl_rci.h>
#include <mkl_spblas.h>

enum { EXPECTED_CALLS = 1000 };

static const struct matrix_descr general = {SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_FULL, SPARSE_DIAG_NON_UNIT};
static const struct matrix_descr unit_lower = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_UNIT};
static const struct matrix_descr upper = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_UPPER, SPARSE_DIAG_NON_UNIT};

typedef struct {
    Csr csr;
    int *row_ptr1, *col_idx1;
    double *lu, *x, *between, *y;
    sparse_matrix_t a, factor;
} System;

static void check(sparse_status_t status, const char *what) {
    if (status == SPARSE_STATUS_SUCCESS) return;
    fprintf(stderr, "%s: status %d\n", what, (int)status);
    exit(1);
}

static void make_handle(const Grid *g, const Csr *a, double *values, sparse_matrix_t *handle) {
    if (!strcmp(g->format, "csr")) {
        check(mkl_sparse_d_create_csr(handle, SPARSE_INDEX_BASE_ZERO, a->n, a->n, a->row_ptr, a->row_ptr + 1, a->col_idx, values),
              "mkl_sparse_d_create_csr");
        return;
    }
    Blocks b = to_blocks(a, values, g->dof, 0, a->n / g->dof);
    check(mkl_sparse_d_create_bsr(handle, SPARSE_INDEX_BASE_ZERO, SPARSE_LAYOUT_ROW_MAJOR, b.rows, b.rows, g->dof, b.row_ptr,
                                  b.row_ptr + 1, b.col_idx, b.values),
          "mkl_sparse_d_create_bsr");
}

static void call_factor(void *p) {
    System *s = p;
    int ipar[128] = {0}, error = 0;
    double dpar[128] = {0};
    ipar[1] = 6;
    ipar[5] = 1;
    dpar[30] = 1e-20;
    dpar[31] = 1e-16;
    dcsrilu0(&s->csr.n, s->csr.values, s->row_ptr1, s->col_idx1, s->lu, ipar, dpar, &error);
    if (error) fail("dcsrilu0 failed");
}

static void call_product(void *p) {
    System *s = p;
    check(mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->a, general, s->x, 0.0, s->y), "mkl_sparse_d_mv");
}

static void call_apply(void *p) {
    System *s = p;
    check(mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->factor, unit_lower, s->x, s->between), "mkl_sparse_d_trsv of L");
    check(mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->factor, upper, s->between, s->y), "mkl_sparse_d_trsv of U");
}

/* Hints are advice: a status other than success means that MKL has no faster way and goes on with its plain one. */
static int analyze(System *s) {
    int hints = mkl_sparse_set_mv_hint(s->a, SPARSE_OPERATION_NON_TRANSPOSE, general, EXPECTED_CALLS) == SPARSE_STATUS_SUCCESS;
    hints &= mkl_sparse_optimize(s->a) == SPARSE_STATUS_SUCCESS;
    hints &= mkl_sparse_set_sv_hint(s->factor, SPARSE_OPERATION_NON_TRANSPOSE, unit_lower, EXPECTED_CALLS) == SPARSE_STATUS_SUCCESS;
    hints &= mkl_sparse_set_sv_hint(s->factor, SPARSE_OPERATION_NON_TRANSPOSE, upper, EXPECTED_CALLS) == SPARSE_STATUS_SUCCESS;
    hints &= mkl_sparse_optimize(s->factor) == SPARSE_STATUS_SUCCESS;
    return hints;
}

int main(int argc, char **argv) {
    Grid g = read_grid(argc, argv);
    int in_blocks = !strcmp(g.format, "bsr");
    if (!in_blocks && strcmp(g.format, "csr")) fail("formats: csr, bsr");
    System s = {.csr = read_csr(g.task.file)};
    int n = s.csr.n;
    if (n % g.dof) fail("the rows are no multiple of a block's");
    s.row_ptr1 = room(4 * ((size_t)n + 1));
    s.col_idx1 = room(4 * (size_t)s.csr.nnz);
    s.lu = room(8 * (size_t)s.csr.nnz);
    for (int i = 0; i <= n; i++) s.row_ptr1[i] = s.csr.row_ptr[i] + 1;
    for (int k = 0; k < s.csr.nnz; k++) s.col_idx1[k] = s.csr.col_idx[k] + 1;
    s.x = room(8 * (size_t)n), s.y = room(8 * (size_t)n), s.between = room(8 * (size_t)n);
    for (int i = 0; i < n; i++) s.x[i] = probe(i);
    call_factor(&s);
    Kernels k = {.factor = -1, .dot = -1, .axpy = -1};
    if (!in_blocks) k.factor = piece_seconds(call_factor, &s);
    make_handle(&g, &s.csr, s.csr.values, &s.a);
    make_handle(&g, &s.csr, s.lu, &s.factor);
    double start = now();
    int hints = analyze(&s);
    k.analyze = now() - start;
    if (g.answer) {
        call_product(&s);
        write_answer(g.answer, 0, s.y, (size_t)n);
        call_apply(&s);
        write_answer(g.answer, n, s.y, (size_t)n);
    }
    k.spmv = piece_seconds(call_product, &s);
    k.apply = piece_seconds(call_apply, &s);
    MKLVersion v;
    mkl_get_version(&v);
    char version[64];
    snprintf(version, sizeof version, "%d.%d.%d%s", v.MajorVersion, v.UpdateVersion, v.MinorVersion, hints ? "" : " (hints refused)");
    print_head("mkl", version, &g.task, mkl_get_max_threads());
    print_kernels(&k);
    return 0;
}
