/* Intel MKL: Jacobi by its vector product, ILU(0) by dcsrilu0, ilut(P,TOL) by dcsrilut with maxfil = nnz / n + P, triangular solves and products by its inspector-executor routines, vector operations by its
 * BLAS; CG and BiCGStab written here around them, FGMRES(30) by its reverse-communication routine.
 *
 * Both want indices from 1; that copy of them is `import`. Hints and mkl_sparse_optimize are set-up. dcsrilut leaves the entries of a
 * row in any order; sorting them, which the triangular solves need, is analysis. For CG the preconditioner must be symmetric: it is RᵀR with
 * R = D^-1/2 U from ilut's U, and Rᵀ is stored too, since that is MKL's faster way. A solve also prints where its seconds went. */
#include "peer.h"
#include <mkl.h>
#include <mkl_rci.h>
#include <mkl_spblas.h>

enum { RESTART = 30, EXPECTED_CALLS = 1000 };

static const struct matrix_descr general = {SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_FULL, SPARSE_DIAG_NON_UNIT};
static const struct matrix_descr unit_lower = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_UNIT};
static const struct matrix_descr lower = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_NON_UNIT};
static const struct matrix_descr upper = {SPARSE_MATRIX_TYPE_TRIANGULAR, SPARSE_FILL_MODE_UPPER, SPARSE_DIAG_NON_UNIT};

typedef struct {
    Csr csr;
    int *row_ptr1, *col_idx1;
    int jacobi, ilu0, ilut, symmetric, maxfil;
    double tau;
    /* The factor: of A's pattern, or of one of its own, with indices from 1. */
    double *lu;
    int *lu_rows, *lu_columns;
    /* 1 / D of Jacobi, or NULL. */
    double *inverse;
    double *between, *b, *y;
    /* `transposed` is Rᵀ where the factor is R. */
    sparse_matrix_t a, factor, transposed;
} System;

static void check(sparse_status_t status, const char *what) {
    if (status != SPARSE_STATUS_SUCCESS) fail(what);
}

static double *vector(int n) {
    double *v = room(8 * (size_t)n);
    memset(v, 0, 8 * (size_t)n);
    return v;
}

static void make_handle(const Csr *a, double *values, sparse_matrix_t *handle) {
    check(mkl_sparse_d_create_csr(handle, SPARSE_INDEX_BASE_ZERO, a->n, a->n, a->row_ptr, a->row_ptr + 1, a->col_idx, values),
          "mkl_sparse_d_create_csr");
}

static void factor(void *p) {
    System *s = p;
    int ipar[128] = {0}, error = 0;
    double dpar[128] = {0};
    ipar[1] = 6;
    ipar[5] = 1;
    if (s->ilut) {
        ipar[30] = 1;
        dpar[30] = 1e-4 + s->tau;
        dcsrilut(&s->csr.n, s->csr.values, s->row_ptr1, s->col_idx1, s->lu, s->lu_rows, s->lu_columns, &s->tau, &s->maxfil, ipar, dpar,
                 &error);
        if (error) fail("dcsrilut failed");
        return;
    }
    dpar[30] = 1e-20;
    dpar[31] = 1e-16;
    dcsrilu0(&s->csr.n, s->csr.values, s->row_ptr1, s->col_idx1, s->lu, ipar, dpar, &error);
    if (error) fail("dcsrilu0 failed");
}

static void drop_factor(void *p) {
    System *s = p;
    if (s->factor) mkl_sparse_destroy(s->factor);
    if (s->transposed) mkl_sparse_destroy(s->transposed);
    s->factor = s->transposed = NULL;
}

/* R in place of L and U, whose rows are sorted. */
static void keep_upper(System *s) {
    int kept = 0, first = 0;
    for (int i = 0; i < s->csr.n; i++) {
        int end = s->lu_rows[i + 1] - 1, k = first;
        while (k < end && s->lu_columns[k] - 1 < i) k++;
        if (k == end || !(s->lu[k] > 0)) fail("a pivot is not positive");
        double scale = 1 / sqrt(s->lu[k]);
        s->lu_rows[i] = kept + 1;
        for (; k < end; k++, kept++) {
            s->lu[kept] = scale * s->lu[k];
            s->lu_columns[kept] = s->lu_columns[k];
        }
        first = end;
    }
    s->lu_rows[s->csr.n] = kept + 1;
}

static void make_ilut_handle(System *s) {
    check(mkl_sparse_d_create_csr(&s->factor, SPARSE_INDEX_BASE_ONE, s->csr.n, s->csr.n, s->lu_rows, s->lu_rows + 1, s->lu_columns, s->lu),
          "mkl_sparse_d_create_csr");
}

static void analyze(void *p) {
    System *s = p;
    if (s->ilut) {
        make_ilut_handle(s);
        check(mkl_sparse_order(s->factor), "mkl_sparse_order");
    } else {
        make_handle(&s->csr, s->lu, &s->factor);
    }
    if (s->symmetric) {
        mkl_sparse_destroy(s->factor);
        keep_upper(s);
        make_ilut_handle(s);
        check(mkl_sparse_convert_csr(s->factor, SPARSE_OPERATION_TRANSPOSE, &s->transposed), "mkl_sparse_convert_csr");
        check(mkl_sparse_set_sv_hint(s->transposed, SPARSE_OPERATION_NON_TRANSPOSE, lower, EXPECTED_CALLS), "hint for the transposed");
        check(mkl_sparse_optimize(s->transposed), "mkl_sparse_optimize of the transposed");
    } else {
        check(mkl_sparse_set_sv_hint(s->factor, SPARSE_OPERATION_NON_TRANSPOSE, unit_lower, EXPECTED_CALLS), "hint for L");
    }
    check(mkl_sparse_set_sv_hint(s->factor, SPARSE_OPERATION_NON_TRANSPOSE, upper, EXPECTED_CALLS), "hint for U");
    check(mkl_sparse_optimize(s->factor), "mkl_sparse_optimize of the factor");
}

/* Seconds of parts. */
static struct {
    double factor, analyze, products, preconditioner;
} spent;

static double *inverse_diagonal(const Csr *a) {
    double *inverse = vector(a->n);
    for (int i = 0; i < a->n; i++)
        for (int k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++)
            if (a->col_idx[k] == i) inverse[i] = 1 / a->values[k];
    return inverse;
}

static void set_up(System *s) {
    double start = now();
    make_handle(&s->csr, s->csr.values, &s->a);
    check(mkl_sparse_set_mv_hint(s->a, SPARSE_OPERATION_NON_TRANSPOSE, general, EXPECTED_CALLS), "hint for A");
    check(mkl_sparse_optimize(s->a), "mkl_sparse_optimize of A");
    if (s->jacobi) s->inverse = inverse_diagonal(&s->csr);
    if (s->ilu0 || s->ilut) {
        double analyzed = now() - start;
        start = now();
        factor(s);
        spent.factor = now() - start;
        start = now();
        analyze(s);
        spent.analyze = analyzed + now() - start;
    }
}

static void multiply(System *s, const double *x, double *y) {
    double start = now();
    mkl_sparse_d_mv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->a, general, x, 0.0, y);
    spent.products += now() - start;
}

static void precondition(System *s, const double *r, double *z) {
    if (s->inverse) {
        vdMul(s->csr.n, s->inverse, r, z);
        return;
    }
    if (!s->ilu0 && !s->ilut) {
        cblas_dcopy(s->csr.n, r, 1, z, 1);
        return;
    }
    double start = now();
    if (s->symmetric) mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->transposed, lower, r, s->between);
    else mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->factor, unit_lower, r, s->between);
    mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, s->factor, upper, s->between, z);
    spent.preconditioner += now() - start;
}

static int cg(System *s, const Task *task, double *x, const char **status) {
    int n = s->csr.n, k = 0;
    double *r = vector(n), *z = vector(n), *p = vector(n), *q = vector(n);
    cblas_dcopy(n, s->b, 1, r, 1);
    double goal = task->rtol * cblas_dnrm2(n, r, 1), rz = 1;
    *status = "max_iterations";
    while (k < task->max_iterations) {
        precondition(s, r, z);
        double next = cblas_ddot(n, r, 1, z, 1);
        if (!(next > 0)) {
            *status = "indefinite_preconditioner";
            break;
        }
        cblas_daxpby(n, 1.0, z, 1, k ? next / rz : 0.0, p, 1);
        rz = next;
        multiply(s, p, q);
        double alpha = rz / cblas_ddot(n, p, 1, q, 1);
        cblas_daxpy(n, alpha, p, 1, x, 1);
        cblas_daxpy(n, -alpha, q, 1, r, 1);
        k++;
        if (cblas_dnrm2(n, r, 1) < goal) {
            *status = "converged";
            break;
        }
    }
    return k;
}

static int bicgstab(System *s, const Task *task, double *x, const char **status) {
    int n = s->csr.n, k = 0;
    double *r = vector(n), *shadow = vector(n), *p = vector(n), *ph = vector(n), *v = vector(n), *sh = vector(n), *t = vector(n);
    cblas_dcopy(n, s->b, 1, r, 1);
    cblas_dcopy(n, r, 1, shadow, 1);
    cblas_dcopy(n, r, 1, p, 1);
    double rho = cblas_ddot(n, r, 1, r, 1), goal = task->rtol * sqrt(rho);
    *status = "max_iterations";
    while (k < task->max_iterations) {
        precondition(s, p, ph);
        multiply(s, ph, v);
        double alpha = rho / cblas_ddot(n, shadow, 1, v, 1);
        cblas_daxpy(n, -alpha, v, 1, r, 1);
        precondition(s, r, sh);
        multiply(s, sh, t);
        double omega = cblas_ddot(n, t, 1, r, 1) / cblas_ddot(n, t, 1, t, 1);
        cblas_daxpy(n, alpha, ph, 1, x, 1);
        cblas_daxpy(n, omega, sh, 1, x, 1);
        cblas_daxpy(n, -omega, t, 1, r, 1);
        k++;
        if (cblas_dnrm2(n, r, 1) < goal) {
            *status = "converged";
            break;
        }
        double next = cblas_ddot(n, shadow, 1, r, 1), beta = next / rho * alpha / omega;
        rho = next;
        cblas_daxpy(n, -omega, v, 1, p, 1);
        cblas_daxpby(n, 1.0, r, 1, beta, p, 1);
    }
    return k;
}

/* MKL's own loop; it asks for products (1) and preconditioning (3). */
static int fgmres(System *s, const Task *task, double *x, const char **status) {
    int n = s->csr.n, ipar[128], request = 0, iterations = 0;
    double dpar[128];
    double *w = room(8 * ((size_t)n * (2 * RESTART + 1) + RESTART * (RESTART + 9) / 2 + 1));
    double *b = vector(n);
    cblas_dcopy(n, s->b, 1, b, 1);
    dfgmres_init(&n, x, b, &request, ipar, dpar, w);
    ipar[4] = task->max_iterations;
    ipar[7] = 1;
    ipar[8] = 1;
    ipar[9] = 0;
    ipar[10] = 1;
    ipar[11] = 1;
    ipar[14] = RESTART;
    dpar[0] = task->rtol;
    dpar[1] = 0;
    dfgmres_check(&n, x, b, &request, ipar, dpar, w);
    for (;;) {
        dfgmres(&n, x, b, &request, ipar, dpar, w);
        if (request == 1) multiply(s, w + ipar[21] - 1, w + ipar[22] - 1);
        else if (request == 3) precondition(s, w + ipar[21] - 1, w + ipar[22] - 1);
        else break;
    }
    *status = request == 0 ? "converged" : "max_iterations";
    dfgmres_get(&n, x, b, &request, ipar, dpar, w, &iterations);
    return iterations;
}

static void call_spmv(void *p) { multiply(p, ((System *)p)->b, ((System *)p)->y); }
static void call_apply(void *p) { precondition(p, ((System *)p)->b, ((System *)p)->y); }
static void call_axpy(void *p) { cblas_daxpy(((System *)p)->csr.n, 1e-9, ((System *)p)->b, 1, ((System *)p)->y, 1); }
static volatile double sink;
static void call_dot(void *p) { sink = cblas_ddot(((System *)p)->csr.n, ((System *)p)->b, 1, ((System *)p)->y, 1); }

int main(int argc, char **argv) {
    Task task = read_task(argc, argv);
    System s = {.csr = read_csr(task.file), .ilu0 = !strcmp(task.preconditioner, "ilu0")};
    int n = s.csr.n, quota = 0;
    s.jacobi = !strcmp(task.preconditioner, "jacobi");
    s.ilut = sscanf(task.preconditioner, "ilut(%d,%lf)", &quota, &s.tau) == 2;
    if (!s.jacobi && !s.ilu0 && !s.ilut && strcmp(task.preconditioner, "none")) fail("preconditioners: jacobi, ilu0, ilut(P,TOL), none");
    s.symmetric = s.ilut && !strcmp(task.method, "cg");
    s.maxfil = s.csr.nnz / n + quota;
    if (s.maxfil > n - 1) s.maxfil = n - 1;
    s.b = vector(n);
    s.y = vector(n);
    s.between = vector(n);
    size_t entries = s.ilut ? (2 * (size_t)s.maxfil + 1) * (size_t)n : (size_t)s.csr.nnz;
    s.lu = room(8 * entries);
    if (s.ilut) {
        s.lu_rows = room(4 * ((size_t)n + 1));
        s.lu_columns = room(4 * entries);
    }
    right_hand_side(&s.csr, 0, n, s.b);
    double start = now();
    s.row_ptr1 = room(4 * ((size_t)n + 1));
    s.col_idx1 = room(4 * (size_t)s.csr.nnz);
    for (int i = 0; i <= n; i++) s.row_ptr1[i] = s.csr.row_ptr[i] + 1;
    for (int k = 0; k < s.csr.nnz; k++) s.col_idx1[k] = s.csr.col_idx[k] + 1;
    Solved result = {.import = now() - start};
    start = now();
    set_up(&s);
    result.setup = now() - start;

    MKLVersion v;
    mkl_get_version(&v);
    char version[64];
    snprintf(version, sizeof version, "%d.%d.%d", v.MajorVersion, v.UpdateVersion, v.MinorVersion);
    int threads = mkl_get_max_threads();
    if (task.kernels) {
        Kernels k = {.analyze = -1, .factor = -1, .apply = -1};
        k.spmv = least_seconds(call_spmv, NULL, &s);
        if (s.ilu0 || s.ilut) k.apply = least_seconds(call_apply, NULL, &s);
        k.dot = least_seconds(call_dot, NULL, &s);
        k.axpy = least_seconds(call_axpy, NULL, &s);
        if (s.ilu0 || s.ilut) k.factor = least_seconds(factor, NULL, &s);
        if (s.ilu0 || (s.ilut && !s.symmetric)) k.analyze = least_seconds(analyze, drop_factor, &s);
        print_head("mkl", version, &task, threads);
        print_kernels(&k);
        return 0;
    }
    double *x = vector(n);
    spent.products = spent.preconditioner = 0;
    start = now();
    if (!strcmp(task.method, "cg")) result.iterations = cg(&s, &task, x, &result.status);
    else if (!strcmp(task.method, "bicgstab")) result.iterations = bicgstab(&s, &task, x, &result.status);
    else if (!strcmp(task.method, "fgmres")) result.iterations = fgmres(&s, &task, x, &result.status);
    else fail("methods: cg, bicgstab, fgmres");
    result.solve = now() - start;
    result.residual = relative_residual(&s.csr, x);
    print_head("mkl", version, &task, threads);
    printf("\"kernels\":{");
    print_number("factor", spent.factor, ",");
    print_number("analyze", spent.analyze, ",");
    print_number("products", spent.products, ",");
    print_number("preconditioner", spent.preconditioner, "},");
    print_solved(&result);
    return 0;
}
