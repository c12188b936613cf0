/* hypre: PCG, BiCGSTAB and GMRES(30) with BoomerAMG: HMIS coarsening, extended+i interpolation with 4 entries a row, one
 * aggressive level, l1-scaled symmetric Gauss-Seidel. `boomeramg:0.25` gives the strong threshold. With approximate inverses:
 * `fsai:5:3:1e-3` gives the most steps, entries a step and the tolerance of the adaptive FSAI, `parasails:0.1:1:0.05` the
 * threshold, the levels and the filter of ParaSails for symmetric definite matrices.
 *
 * Assembling the ParCSR matrix is `import`; the preconditioner's setup and that of the Krylov method are set-up. PCG is told to judge
 * by the 2-norm of the residual; the other two do so anyway, preconditioned from the right. */
#include "peer.h"
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>

static int rank, ranks;

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

typedef struct {
    int first, rows;
    HYPRE_BigInt *ids;
    HYPRE_IJMatrix ij;
    HYPRE_IJVector ij_b, ij_x;
    HYPRE_ParCSRMatrix a;
    HYPRE_ParVector b, x;
} System;

static HYPRE_ParVector make_vector(const System *s, const double *values, HYPRE_IJVector *ij) {
    HYPRE_ParVector vector;
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, s->first, s->first + s->rows - 1, ij);
    HYPRE_IJVectorSetObjectType(*ij, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(*ij);
    HYPRE_IJVectorSetValues(*ij, s->rows, s->ids, values);
    HYPRE_IJVectorAssemble(*ij);
    HYPRE_IJVectorGetObject(*ij, (void **)&vector);
    return vector;
}

static System make_system(const Csr *a) {
    int first = (int)((int64_t)a->n * rank / ranks), last = (int)((int64_t)a->n * (rank + 1) / ranks);
    System s = {.first = first, .rows = last - first};
    HYPRE_Int *lengths = room(sizeof *lengths * (size_t)s.rows);
    s.ids = room(sizeof *s.ids * (size_t)s.rows);
    for (int i = 0; i < s.rows; i++) {
        lengths[i] = a->row_ptr[first + i + 1] - a->row_ptr[first + i];
        s.ids[i] = first + i;
    }
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last - 1, first, last - 1, &s.ij);
    HYPRE_IJMatrixSetObjectType(s.ij, HYPRE_PARCSR);
    HYPRE_IJMatrixSetRowSizes(s.ij, lengths);
    HYPRE_IJMatrixInitialize(s.ij);
    HYPRE_IJMatrixSetValues(s.ij, s.rows, lengths, s.ids, a->col_idx + a->row_ptr[first], a->values + a->row_ptr[first]);
    HYPRE_IJMatrixAssemble(s.ij);
    HYPRE_IJMatrixGetObject(s.ij, (void **)&s.a);
    double *values = room(8 * (size_t)s.rows);
    right_hand_side(a, first, last, values);
    s.b = make_vector(&s, values, &s.ij_b);
    memset(values, 0, 8 * (size_t)s.rows);
    s.x = make_vector(&s, values, &s.ij_x);
    return s;
}

typedef struct {
    HYPRE_Solver solver;
    HYPRE_PtrToSolverFcn solve, set_up;
} Preconditioner;

static Preconditioner make_amg(double threshold) {
    HYPRE_Solver amg;
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetTol(amg, 0);
    HYPRE_BoomerAMGSetPrintLevel(amg, 0);
    HYPRE_BoomerAMGSetCoarsenType(amg, 10);
    HYPRE_BoomerAMGSetInterpType(amg, 6);
    HYPRE_BoomerAMGSetPMaxElmts(amg, 4);
    HYPRE_BoomerAMGSetAggNumLevels(amg, 1);
    HYPRE_BoomerAMGSetRelaxType(amg, 8);
    HYPRE_BoomerAMGSetStrongThreshold(amg, threshold);
    return (Preconditioner){amg, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSolve, (HYPRE_PtrToSolverFcn)HYPRE_BoomerAMGSetup};
}

static Preconditioner make_fsai(int steps, int entries, double tolerance) {
    HYPRE_Solver fsai;
    HYPRE_FSAICreate(&fsai);
    HYPRE_FSAISetMaxIterations(fsai, 1);
    HYPRE_FSAISetTolerance(fsai, 0);
    HYPRE_FSAISetZeroGuess(fsai, 1);
    HYPRE_FSAISetOmega(fsai, 1);
    HYPRE_FSAISetMaxSteps(fsai, steps);
    HYPRE_FSAISetMaxStepSize(fsai, entries);
    HYPRE_FSAISetKapTolerance(fsai, tolerance);
    HYPRE_FSAISetPrintLevel(fsai, getenv("PEER_VERBOSE") ? 1 : 0);
    return (Preconditioner){fsai, (HYPRE_PtrToSolverFcn)HYPRE_FSAISolve, (HYPRE_PtrToSolverFcn)HYPRE_FSAISetup};
}

static Preconditioner make_parasails(double threshold, int levels, double filter) {
    HYPRE_Solver parasails;
    HYPRE_ParaSailsCreate(MPI_COMM_WORLD, &parasails);
    HYPRE_ParaSailsSetParams(parasails, threshold, levels);
    HYPRE_ParaSailsSetFilter(parasails, filter);
    HYPRE_ParaSailsSetSym(parasails, 1);
    HYPRE_ParaSailsSetLogging(parasails, getenv("PEER_VERBOSE") ? 1 : 0);
    return (Preconditioner){parasails, (HYPRE_PtrToSolverFcn)HYPRE_ParaSailsSolve, (HYPRE_PtrToSolverFcn)HYPRE_ParaSailsSetup};
}

static Preconditioner make_preconditioner(const char *name) {
    double x = 0.25, y = 0;
    int k = 1, m = 1;
    if (!strcmp(name, "boomeramg") || sscanf(name, "boomeramg:%lf", &x) == 1) return make_amg(x);
    if (sscanf(name, "fsai:%d:%d:%lf", &k, &m, &x) == 3) return make_fsai(k, m, x);
    if (sscanf(name, "parasails:%lf:%d:%lf", &x, &k, &y) == 3) return make_parasails(x, k, y);
    fail("preconditioners: boomeramg, boomeramg:T, fsai:STEPS:ENTRIES:TOL, parasails:T:LEVELS:FILTER");
}

/* The same steps under three names. */
#define SET_UP(NAME)                                                                                                         \
    do {                                                                                                                     \
        HYPRE_ParCSR##NAME##Create(MPI_COMM_WORLD, &krylov);                                                                 \
        HYPRE_##NAME##SetMaxIter(krylov, task->max_iterations);                                                              \
        HYPRE_##NAME##SetTol(krylov, task->rtol);                                                                            \
        HYPRE_##NAME##SetPrecond(krylov, m.solve, m.set_up, m.solver);                                                       \
    } while (0)

static Solved solve(const Task *task, System *s) {
    HYPRE_Solver krylov = NULL;
    Preconditioner m = make_preconditioner(task->preconditioner);
    HYPRE_Int iterations = 0;
    int cg = !strcmp(task->method, "cg"), bicgstab = !strcmp(task->method, "bicgstab");
    if (!cg && !bicgstab && strcmp(task->method, "gmres")) fail("methods: cg, bicgstab, gmres");
    Solved result = {0};
    barrier();
    double start = now();
    if (cg) {
        SET_UP(PCG);
        HYPRE_PCGSetTwoNorm(krylov, 1);
        HYPRE_ParCSRPCGSetup(krylov, s->a, s->b, s->x);
    } else if (bicgstab) {
        SET_UP(BiCGSTAB);
        HYPRE_ParCSRBiCGSTABSetup(krylov, s->a, s->b, s->x);
    } else {
        SET_UP(GMRES);
        HYPRE_GMRESSetKDim(krylov, 30);
        HYPRE_ParCSRGMRESSetup(krylov, s->a, s->b, s->x);
    }
    barrier();
    result.setup = now() - start;
    if (HYPRE_GetError()) fail("the preconditioner's setup reports an error");
    start = now();
    if (cg) HYPRE_ParCSRPCGSolve(krylov, s->a, s->b, s->x);
    else if (bicgstab) HYPRE_ParCSRBiCGSTABSolve(krylov, s->a, s->b, s->x);
    else HYPRE_ParCSRGMRESSolve(krylov, s->a, s->b, s->x);
    barrier();
    result.solve = now() - start;
    if (cg) HYPRE_PCGGetNumIterations(krylov, &iterations);
    else if (bicgstab) HYPRE_BiCGSTABGetNumIterations(krylov, &iterations);
    else HYPRE_GMRESGetNumIterations(krylov, &iterations);
    result.iterations = (int)iterations;
    result.status = HYPRE_CheckError(HYPRE_GetError(), HYPRE_ERROR_CONV) || iterations >= task->max_iterations
                        ? "max_iterations"
                        : "converged";
    return result;
}

static double gathered_residual(const Csr *a, const System *s) {
    double *own = room(8 * (size_t)s->rows), *x = room(8 * (size_t)a->n);
    int *counts = room(sizeof(int) * (size_t)ranks), *places = room(sizeof(int) * (size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        places[r] = (int)((int64_t)a->n * r / ranks);
        counts[r] = (int)((int64_t)a->n * (r + 1) / ranks) - places[r];
    }
    HYPRE_IJVectorGetValues(s->ij_x, s->rows, s->ids, own);
    MPI_Gatherv(own, s->rows, MPI_DOUBLE, x, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return rank == 0 ? relative_residual(a, x) : 0;
}

int main(int argc, char **argv) {
    Task task = read_task(argc, argv);
    if (task.kernels) fail("single operations are not measured");
    MPI_Init(&argc, &argv);
    HYPRE_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Csr a = read_csr(task.file);
    barrier();
    double start = now();
    System s = make_system(&a);
    barrier();
    double import = now() - start;
    Solved result = solve(&task, &s);
    result.import = import;
    result.residual = gathered_residual(&a, &s);
    if (rank == 0) {
        print_head("hypre", HYPRE_RELEASE_VERSION, &task, ranks);
        print_solved(&result);
    }
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
