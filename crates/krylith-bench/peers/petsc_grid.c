/* PETSc on matrices of structured grids, for `krylith-bench structured`: MatMult, and of ILU(0) in natural order MatLUFactorNumeric
 * and MatSolve, in the formats `aij`, `aij-plain` and `baij`. AIJ takes rows of equal pattern together; `aij-plain` is without that,
 * since on some processors it is faster so.
 *
 * Several ranks hold rows each and factor the block of their own rows and columns: block Jacobi, which is another preconditioner.
 * Of its answer only A x is meant to be compared. */
#include "grid.h"
#include <petscmat.h>

static int rank, ranks;

static void barrier(void) { MPI_Barrier(PETSC_COMM_WORLD); }

static int broadcast(int value) {
    if (MPI_Bcast(&value, 1, MPI_INT, 0, PETSC_COMM_WORLD)) fail("MPI_Bcast");
    return value;
}

typedef struct {
    Mat a, block, factor;
    Vec x, y, own_x, own_y;
    MatFactorInfo info;
} Bench;

static void call_product(void *p) {
    Bench *w = p;
    PetscCallAbort(PETSC_COMM_SELF, MatMult(w->a, w->x, w->y));
}
static void call_apply(void *p) {
    Bench *w = p;
    PetscCallAbort(PETSC_COMM_SELF, MatSolve(w->factor, w->own_x, w->own_y));
}
static void call_factor(void *p) {
    Bench *w = p;
    PetscCallAbort(PETSC_COMM_SELF, MatLUFactorNumeric(w->factor, w->block, &w->info));
}

/* The rows of this rank, which are rows of whole blocks. */
static PetscErrorCode make_matrix(const Grid *g, const Csr *a, int first, int last, Mat *m) {
    PetscFunctionBeginUser;
    int d = g->dof, rows = (last - first) * d, offset = a->row_ptr[first * d];
    PetscCall(MatCreate(PETSC_COMM_WORLD, m));
    PetscCall(MatSetSizes(*m, rows, rows, a->n, a->n));
    if (!strcmp(g->format, "baij")) {
        Blocks b = to_blocks(a, a->values, d, first, last);
        PetscCall(MatSetType(*m, ranks > 1 ? MATMPIBAIJ : MATSEQBAIJ));
        if (ranks > 1) PetscCall(MatMPIBAIJSetPreallocationCSR(*m, d, b.row_ptr, b.col_idx, b.values));
        else PetscCall(MatSeqBAIJSetPreallocationCSR(*m, d, b.row_ptr, b.col_idx, b.values));
        free(b.row_ptr), free(b.col_idx), free(b.values);
        PetscFunctionReturn(0);
    }
    PetscInt *row_ptr = room(sizeof *row_ptr * ((size_t)rows + 1));
    for (int i = 0; i <= rows; i++) row_ptr[i] = a->row_ptr[first * d + i] - offset;
    PetscCall(MatSetBlockSize(*m, d));
    if (!strcmp(g->format, "aij-plain")) PetscCall(PetscOptionsSetValue(NULL, "-mat_no_inode", NULL));
    PetscCall(MatSetType(*m, ranks > 1 ? MATMPIAIJ : MATSEQAIJ));
    if (ranks > 1) PetscCall(MatMPIAIJSetPreallocationCSR(*m, row_ptr, a->col_idx + offset, a->values + offset));
    else PetscCall(MatSeqAIJSetPreallocationCSR(*m, row_ptr, a->col_idx, a->values));
    free(row_ptr);
    PetscFunctionReturn(0);
}

/* Symbolic ILU(0) of the rank's own block, and vectors. */
static PetscErrorCode analyze(Bench *w, int first_row) {
    PetscFunctionBeginUser;
    IS rows, columns;
    double *x;
    PetscInt count;
    PetscCall(MatGetDiagonalBlock(w->a, &w->block));
    PetscCall(MatGetOrdering(w->block, MATORDERINGNATURAL, &rows, &columns));
    PetscCall(MatFactorInfoInitialize(&w->info));
    w->info.fill = 1;
    w->info.levels = 0;
    w->info.zeropivot = 1e-14;
    PetscCall(MatGetFactor(w->block, MATSOLVERPETSC, MAT_FACTOR_ILU, &w->factor));
    PetscCall(MatILUFactorSymbolic(w->factor, w->block, rows, columns, &w->info));
    PetscCall(MatCreateVecs(w->a, &w->x, &w->y));
    PetscCall(MatCreateVecs(w->block, &w->own_x, &w->own_y));
    PetscCall(VecGetLocalSize(w->x, &count));
    PetscCall(VecGetArrayWrite(w->x, &x));
    for (PetscInt i = 0; i < count; i++) x[i] = probe(first_row + i);
    PetscCall(VecRestoreArrayWrite(w->x, &x));
    PetscCall(VecGetArrayWrite(w->own_x, &x));
    for (PetscInt i = 0; i < count; i++) x[i] = probe(first_row + i);
    PetscCall(VecRestoreArrayWrite(w->own_x, &x));
    PetscFunctionReturn(0);
}

/* One rank after the other. */
static PetscErrorCode answer(const Grid *g, Vec v, int64_t place) {
    PetscFunctionBeginUser;
    const double *values;
    PetscInt count;
    PetscCall(VecGetLocalSize(v, &count));
    PetscCall(VecGetArrayRead(v, &values));
    for (int k = 0; k < ranks; k++) {
        if (k == rank) write_answer(g->answer, place, values, (size_t)count);
        barrier();
    }
    PetscCall(VecRestoreArrayRead(v, &values));
    PetscFunctionReturn(0);
}

static PetscErrorCode run(const Grid *g, const Csr *a) {
    PetscFunctionBeginUser;
    int points = a->n / g->dof, first = (int)((int64_t)points * rank / ranks), last = (int)((int64_t)points * (rank + 1) / ranks);
    Bench w;
    PetscCall(make_matrix(g, a, first, last, &w.a));
    barrier();
    double start = now();
    PetscCall(analyze(&w, first * g->dof));
    barrier();
    Kernels k = {.analyze = now() - start, .dot = -1, .axpy = -1};
    call_factor(&w);
    if (g->answer) {
        call_product(&w);
        PetscCall(answer(g, w.y, (int64_t)first * g->dof));
        call_apply(&w);
        PetscCall(answer(g, w.own_y, a->n + (int64_t)first * g->dof));
    }
    k.spmv = piece_seconds(call_product, &w);
    k.apply = piece_seconds(call_apply, &w);
    k.factor = piece_seconds(call_factor, &w);
    if (rank == 0) {
        char version[32];
        snprintf(version, sizeof version, "%d.%d.%d", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
        print_head("petsc", version, &g->task, ranks);
        print_kernels(&k);
    }
    PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
    Grid g = read_grid(argc, argv);
    if (strcmp(g.format, "aij") && strcmp(g.format, "aij-plain") && strcmp(g.format, "baij")) fail("formats: aij, aij-plain, baij");
    int none = 1;
    PetscCall(PetscInitialize(&none, &argv, NULL, NULL));
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    wait_for_all = barrier;
    as_the_first = broadcast;
    Csr a = read_csr(g.task.file);
    if (a.n % g.dof) fail("the rows are no multiple of a block's");
    PetscCall(run(&g, &a));
    PetscCall(PetscFinalize());
    return 0;
}
