/* PETSc on one system, for `krylith-bench incomplete`: petsc_outcome FOLDER X RTOL MAX_ITERATIONS [PETSC OPTIONS]
 *
 * FOLDER holds A.petsc and b.petsc. The method and the preconditioner come as PETSc's own options. The tolerance is on the
 * unpreconditioned residual: asked for in CG, natural to GMRES and BiCGStab preconditioned from the right. Where PETSc calls x converged and the
 * residual recomputed from A and x is larger than RTOL ||b||, it goes on from x; `rounds` counts its solves. x goes to the
 * file X. One line of JSON tells what PETSc says; whether x is an answer is not judged here. A failed call ends in said
 * setup_failed or error, with PETSc's message. */
#include <petscksp.h>
#include <unistd.h>

/* The tolerance may be out of reach. */
#define ROUNDS 20

static const char *said = "error";
static PetscInt iterations = 0;
static int rounds = 0;

static PetscErrorCode load(const char *folder, const char *name, PetscObject object) {
    char path[PETSC_MAX_PATH_LEN];
    PetscViewer viewer;
    PetscFunctionBeginUser;
    PetscCall(PetscSNPrintf(path, sizeof path, "%s/%s", folder, name));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, path, FILE_MODE_READ, &viewer));
    PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
    if (name[0] == 'A') PetscCall(MatLoad((Mat)object, viewer));
    else PetscCall(VecLoad((Vec)object, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscFunctionReturn(0);
}

static PetscErrorCode keep(const char *path, Vec x) {
    PetscViewer viewer;
    PetscFunctionBeginUser;
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, path, FILE_MODE_WRITE, &viewer));
    PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
    PetscCall(VecView(x, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscFunctionReturn(0);
}

static PetscErrorCode residual(Mat a, Vec b, Vec x, Vec r, PetscReal *relative) {
    PetscReal rr, bb;
    PetscFunctionBeginUser;
    PetscCall(MatMult(a, x, r));
    PetscCall(VecAYPX(r, -1, b));
    PetscCall(VecNorm(r, NORM_2, &rr));
    PetscCall(VecNorm(b, NORM_2, &bb));
    *relative = rr / bb;
    PetscFunctionReturn(0);
}

/* Solves from x = 0, and from x again as long as PETSc calls that converged and it is not. */
static PetscErrorCode solve(KSP ksp, Mat a, Vec b, Vec x, PetscReal rtol, PetscInt max_iterations) {
    Vec r;
    PetscReal relative = 0;
    KSPConvergedReason reason;
    PetscFunctionBeginUser;
    PetscCall(VecDuplicate(b, &r));
    PetscCall(VecSet(x, 0));
    do {
        PetscInt done;
        PetscCall(KSPSetTolerances(ksp, rtol, 1e-300, 1e200, max_iterations - iterations));
        PetscCall(KSPSolve(ksp, b, x));
        PetscCall(KSPGetIterationNumber(ksp, &done));
        PetscCall(KSPGetConvergedReason(ksp, &reason));
        iterations += done;
        rounds++;
        said = reason > 0 ? "converged" : KSPConvergedReasons[reason];
        PetscCall(residual(a, b, x, r, &relative));
        if (reason <= 0 || !(relative > rtol)) break;
        PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    } while (rounds < ROUNDS && iterations < max_iterations);
    PetscCall(VecDestroy(&r));
    PetscFunctionReturn(0);
}

static PetscErrorCode run(char **argv) {
    PetscReal rtol;
    PetscInt max_iterations;
    Mat a;
    Vec b, x;
    KSP ksp;
    PetscBool definite;
    PetscFunctionBeginUser;
    PetscCall(PetscOptionsStringToReal(argv[3], &rtol));
    PetscCall(PetscOptionsStringToInt(argv[4], &max_iterations));
    PetscCall(MatCreate(PETSC_COMM_SELF, &a));
    PetscCall(MatSetType(a, MATSEQAIJ));
    PetscCall(load(argv[1], "A.petsc", (PetscObject)a));
    PetscCall(VecCreate(PETSC_COMM_SELF, &b));
    PetscCall(load(argv[1], "b.petsc", (PetscObject)b));
    PetscCall(VecDuplicate(b, &x));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetOperators(ksp, a, a));
    PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPCG, &definite));
    if (definite) PetscCall(MatSetOption(a, MAT_SPD, PETSC_TRUE));
    else PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
    said = "setup_failed";
    PetscCall(KSPSetUp(ksp));
    said = "error";
    PetscCall(solve(ksp, a, b, x, rtol, max_iterations));
    PetscCall(keep(argv[2], x));
    PetscFunctionReturn(0);
}

/* Keeps the first message instead of printing a trace. */
static char message[512];
static PetscErrorCode remember(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode code,
                               PetscErrorType type, const char *text, void *context) {
    (void)comm, (void)line, (void)function, (void)file, (void)context;
    if (type == PETSC_ERROR_INITIAL) {
        const char *general = NULL;
        if (PetscErrorMessage(code, &general, NULL)) general = NULL;
        snprintf(message, sizeof message, "%s: %s", general ? general : "error", text ? text : "");
        for (char *c = message; *c; c++)
            if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = ' ';
    }
    return code;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: FOLDER X RTOL MAX_ITERATIONS [PETSC OPTIONS]\n");
        return 2;
    }
    char **given = argv;
    if (PetscInitialize(&argc, &argv, NULL, NULL)) return 1;
    if (PetscPushErrorHandler(remember, NULL)) return 1;
    PetscErrorCode code = run(given);
    printf("{\"version\":\"PETSc %d.%d.%d\",\"said\":\"%s\",\"iterations\":%d,\"rounds\":%d,\"detail\":\"%s\"}\n",
           PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, said, (int)iterations, rounds,
           code ? message : "");
    fflush(stdout);
    /* What a failed call leaves behind is not taken down. */
    if (code) _exit(0);
    return PetscFinalize();
}
