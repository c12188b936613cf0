/* PETSc: CG, BiCGStab and GMRES(30) with ICC(k), ILU(k) or Jacobi; several ranks take block Jacobi with a block each. A preconditioner
 * that ends in `+baij:D` works on a matrix of dense blocks of D rows, `ilu0+baij:4`.
 *
 * Norms are those of the unpreconditioned residual: asked for in CG, natural to the others preconditioned from the right.
 * Filling the matrix object is `import`; KSPSetUp with the blocks is set-up. */
#include "peer.h"
#include <petscksp.h>

/* Rows of blocks, each by rows. */
typedef struct {
    int rows;
    int *row_ptr, *col_idx;
    double *values;
} Blocks;

/* The block rows from `first` to `last` of a matrix whose blocks are full. */
static Blocks to_blocks(const Csr *a, const double *values, int d, int first, int last) {
    size_t blocks = ((size_t)a->row_ptr[last * d] - (size_t)a->row_ptr[first * d]) / ((size_t)d * d);
    Blocks b = {.rows = last - first, .row_ptr = room(4 * ((size_t)(last - first) + 1)), .col_idx = room(4 * blocks)};
    b.values = room(8 * blocks * d * d);
    b.row_ptr[0] = 0;
    for (int i = first; i < last; i++) {
        int begin = a->row_ptr[i * d], length = a->row_ptr[i * d + 1] - begin, at = b.row_ptr[i - first];
        if (length % d) fail("the blocks are not full");
        for (int k = 0; k < length / d; k++) {
            int column = a->col_idx[begin + k * d];
            if (column % d) fail("the blocks are not full");
            b.col_idx[at + k] = column / d;
            for (int r = 0; r < d; r++) {
                int from = a->row_ptr[i * d + r] + k * d;
                if (a->col_idx[from] != column || a->row_ptr[i * d + r + 1] - a->row_ptr[i * d + r] != length) fail("the blocks are not full");
                memcpy(b.values + ((size_t)(at + k) * d + r) * d, values + from, 8 * (size_t)d);
            }
        }
        b.row_ptr[i - first + 1] = at + length / d;
    }
    return b;
}

static int rank, ranks;

static void barrier(void) { MPI_Barrier(PETSC_COMM_WORLD); }

static int broadcast(int value) {
    if (MPI_Bcast(&value, 1, MPI_INT, 0, PETSC_COMM_WORLD)) fail("MPI_Bcast");
    return value;
}

/* Rows of a block, 1 for a matrix by rows; what tells of it is cut off. */
static int cut_blocks(Task *task) {
    char *at = strstr(task->preconditioner, "+baij:");
    if (!at) return 1;
    int size = atoi(at + strlen("+baij:"));
    if (size < 1 || size > 8) fail("blocks have 1 to 8 rows");
    *at = 0;
    return size;
}

static PetscErrorCode make_matrix(const Csr *a, int blocks, int first, int last, Mat *m) {
    PetscFunctionBeginUser;
    if (blocks > 1) {
        Blocks b = to_blocks(a, a->values, blocks, first / blocks, last / blocks);
        PetscCall(MatCreate(PETSC_COMM_WORLD, m));
        PetscCall(MatSetSizes(*m, last - first, last - first, a->n, a->n));
        PetscCall(MatSetType(*m, ranks > 1 ? MATMPIBAIJ : MATSEQBAIJ));
        if (ranks > 1) PetscCall(MatMPIBAIJSetPreallocationCSR(*m, blocks, b.row_ptr, b.col_idx, b.values));
        else PetscCall(MatSeqBAIJSetPreallocationCSR(*m, blocks, b.row_ptr, b.col_idx, b.values));
        free(b.row_ptr), free(b.col_idx), free(b.values);
        PetscFunctionReturn(0);
    }
    if (ranks == 1) {
        PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, a->n, a->n, a->row_ptr, a->col_idx, a->values, m));
        PetscFunctionReturn(0);
    }
    int rows = last - first, offset = a->row_ptr[first];
    PetscInt *row_ptr = room(sizeof *row_ptr * ((size_t)rows + 1));
    for (int i = 0; i <= rows; i++) row_ptr[i] = a->row_ptr[first + i] - offset;
    PetscCall(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, rows, rows, a->n, a->n, row_ptr, a->col_idx + offset,
                                        a->values + offset, m));
    free(row_ptr);
    PetscFunctionReturn(0);
}

/* icc1: kind "icc", one level. */
static void split_level(const char *name, char *kind, char *level) {
    size_t length = strlen(name);
    snprintf(kind, 32, "%s", name);
    snprintf(level, 8, "0");
    if (length > 3 && name[length - 1] >= '0' && name[length - 1] <= '9') {
        snprintf(level, 8, "%s", name + length - 1);
        kind[length - 1] = 0;
    }
}

static PetscErrorCode make_solver(const Task *task, Mat m, KSP *ksp) {
    PetscFunctionBeginUser;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
    PetscCall(KSPSetOperators(*ksp, m, m));
    PetscCall(KSPSetTolerances(*ksp, task->rtol, 1e-300, 1e10, task->max_iterations));
    if (!strcmp(task->method, "cg")) {
        PetscCall(KSPSetType(*ksp, KSPCG));
        PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
    } else if (!strcmp(task->method, "bicgstab") || !strcmp(task->method, "gmres")) {
        PetscCall(KSPSetType(*ksp, task->method[0] == 'b' ? KSPBCGS : KSPGMRES));
        PetscCall(KSPSetPCSide(*ksp, PC_RIGHT));
        if (task->method[0] == 'g') PetscCall(KSPGMRESSetRestart(*ksp, 30));
    } else {
        fail("methods: cg, bicgstab, gmres");
    }
    char kind[64], level[8];
    split_level(task->preconditioner, kind, level);
    int blocks = ranks > 1 && (!strcmp(kind, "icc") || !strcmp(kind, "ilu"));
    PetscCall(PetscOptionsSetValue(NULL, "-pc_type", blocks ? "bjacobi" : kind));
    if (blocks) PetscCall(PetscOptionsSetValue(NULL, "-sub_pc_type", kind));
    PetscCall(PetscOptionsSetValue(NULL, blocks ? "-sub_pc_factor_levels" : "-pc_factor_levels", level));
    PetscCall(KSPSetFromOptions(*ksp));
    PetscFunctionReturn(0);
}

static PetscErrorCode residual_on_first(const Csr *a, Vec x, double *residual) {
    PetscFunctionBeginUser;
    Vec all;
    VecScatter scatter;
    PetscCall(VecScatterCreateToZero(x, &scatter, &all));
    PetscCall(VecScatterBegin(scatter, x, all, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, x, all, INSERT_VALUES, SCATTER_FORWARD));
    if (rank == 0) {
        const double *values;
        PetscCall(VecGetArrayRead(all, &values));
        *residual = relative_residual(a, values);
        PetscCall(VecRestoreArrayRead(all, &values));
    }
    PetscCall(VecScatterDestroy(&scatter));
    PetscCall(VecDestroy(&all));
    PetscFunctionReturn(0);
}

typedef struct {
    Mat a, block, factor;
    PC pc;
    Vec b, y;
    IS rows, columns;
    MatFactorInfo info;
    int icc;
} Bench;

static void call_spmv(void *p) { PetscCallAbort(PETSC_COMM_SELF, MatMult(((Bench *)p)->a, ((Bench *)p)->b, ((Bench *)p)->y)); }
static void call_apply(void *p) { PetscCallAbort(PETSC_COMM_SELF, PCApply(((Bench *)p)->pc, ((Bench *)p)->b, ((Bench *)p)->y)); }
static void call_axpy(void *p) { PetscCallAbort(PETSC_COMM_SELF, VecAXPY(((Bench *)p)->y, 1e-9, ((Bench *)p)->b)); }
static void call_dot(void *p) {
    PetscScalar dot;
    PetscCallAbort(PETSC_COMM_SELF, VecDot(((Bench *)p)->b, ((Bench *)p)->y, &dot));
}
static void drop_factor(void *p) { PetscCallAbort(PETSC_COMM_SELF, MatDestroy(&((Bench *)p)->factor)); }
static void call_analyze(void *p) {
    Bench *w = p;
    MatFactorType type = w->icc ? MAT_FACTOR_ICC : MAT_FACTOR_ILU;
    PetscCallAbort(PETSC_COMM_SELF, MatGetFactor(w->block, MATSOLVERPETSC, type, &w->factor));
    if (w->icc) PetscCallAbort(PETSC_COMM_SELF, MatICCFactorSymbolic(w->factor, w->block, w->rows, &w->info));
    else PetscCallAbort(PETSC_COMM_SELF, MatILUFactorSymbolic(w->factor, w->block, w->rows, w->columns, &w->info));
}
static void call_factor(void *p) {
    Bench *w = p;
    if (w->icc) PetscCallAbort(PETSC_COMM_SELF, MatCholeskyFactorNumeric(w->factor, w->block, &w->info));
    else PetscCallAbort(PETSC_COMM_SELF, MatLUFactorNumeric(w->factor, w->block, &w->info));
}

static PetscErrorCode measure(const Task *task, Mat m, KSP ksp, Vec b, Kernels *k) {
    PetscFunctionBeginUser;
    Bench w = {.a = m, .b = b};
    char kind[64], level[8];
    split_level(task->preconditioner, kind, level);
    PetscCall(KSPGetPC(ksp, &w.pc));
    PetscCall(VecDuplicate(b, &w.y));
    k->spmv = least_seconds(call_spmv, NULL, &w);
    k->apply = least_seconds(call_apply, NULL, &w);
    k->dot = least_seconds(call_dot, NULL, &w);
    k->axpy = least_seconds(call_axpy, NULL, &w);
    k->analyze = k->factor = -1;
    w.icc = !strcmp(kind, "icc");
    if (w.icc || !strcmp(kind, "ilu")) {
        PetscCall(MatGetDiagonalBlock(m, &w.block));
        PetscCall(MatGetOrdering(w.block, MATORDERINGNATURAL, &w.rows, &w.columns));
        PetscCall(MatFactorInfoInitialize(&w.info));
        w.info.fill = 1;
        w.info.levels = atof(level);
        w.info.zeropivot = 1e-14;
        k->analyze = least_seconds(call_analyze, drop_factor, &w);
        k->factor = least_seconds(call_factor, NULL, &w);
    }
    PetscFunctionReturn(0);
}

static PetscErrorCode run(const Task *task, const Csr *a, int blocks) {
    PetscFunctionBeginUser;
    if (a->n % blocks) fail("the rows are no multiple of a block's");
    int64_t points = a->n / blocks;
    int first = blocks * (int)(points * rank / ranks), last = blocks * (int)(points * (rank + 1) / ranks);
    Mat m;
    Vec x, b;
    KSP ksp;
    barrier();
    double start = now();
    PetscCall(make_matrix(a, blocks, first, last, &m));
    if (!strcmp(task->method, "cg")) PetscCall(MatSetOption(m, MAT_SPD, PETSC_TRUE));
    barrier();
    Solved s = {.import = now() - start};
    PetscCall(MatCreateVecs(m, &x, &b));
    double *values;
    PetscCall(VecGetArrayWrite(b, &values));
    right_hand_side(a, first, last, values);
    PetscCall(VecRestoreArrayWrite(b, &values));
    PetscCall(VecSet(x, 0));

    barrier();
    start = now();
    PetscCall(make_solver(task, m, &ksp));
    PetscCall(KSPSetUp(ksp));
    PetscCall(KSPSetUpOnBlocks(ksp));
    barrier();
    s.setup = now() - start;

    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR);
    if (task->kernels) {
        Kernels k = {0};
        PetscCall(measure(task, m, ksp, b, &k));
        if (rank == 0) {
            print_head("petsc", version, task, ranks);
            print_kernels(&k);
        }
        PetscFunctionReturn(0);
    }
    start = now();
    PetscCall(KSPSolve(ksp, b, x));
    barrier();
    s.solve = now() - start;
    KSPConvergedReason reason;
    PetscCall(KSPGetIterationNumber(ksp, &s.iterations));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    s.status = reason > 0 ? "converged" : KSPConvergedReasons[reason];
    PetscCall(residual_on_first(a, x, &s.residual));
    if (rank == 0) {
        print_head("petsc", version, task, ranks);
        print_solved(&s);
    }
    PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
    Task task = read_task(argc, argv);
    int none = 1, blocks = cut_blocks(&task);
    PetscCall(PetscInitialize(&none, &argv, NULL, NULL));
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    wait_for_all = barrier;
    as_the_first = broadcast;
    Csr a = read_csr(task.file);
    PetscCall(run(&task, &a, blocks));
    PetscCall(PetscFinalize());
    return 0;
}
