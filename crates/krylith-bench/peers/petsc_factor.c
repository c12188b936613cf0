/* PETSc's ILU(k) or ICC(k) of a matrix, for `krylith-bench incomplete factors`: petsc_factor FOLDER ilu|icc LEVELS
 *
 * FOLDER holds A.petsc and the vectors v0.petsc .. v4.petsc. The ordering is natural. Writes M^-1 v as z0.petsc .. z4.petsc and
 * prints one line of JSON: the entries of the factor as MatGetInfo counts them (nz_used: of ILU L, D and U; of ICC the upper
 * triangle with D), and `shifted`: the largest relative difference, in the max norm, of M^-1 v from that of a factor which may shift (positive_definite for
 * ICC, nonzero for ILU). It is 0 where PETSc needs no shift. */
#include <petscmat.h>

#define VECTORS 5

static PetscErrorCode open_file(const char *folder, const char *name, PetscFileMode mode, PetscViewer *viewer) {
    char path[PETSC_MAX_PATH_LEN];
    PetscFunctionBeginUser;
    PetscCall(PetscSNPrintf(path, sizeof path, "%s/%s", folder, name));
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, path, mode, viewer));
    PetscCall(PetscViewerBinarySetSkipInfo(*viewer, PETSC_TRUE));
    PetscFunctionReturn(0);
}

static PetscErrorCode factor(Mat a, int icc, int levels, MatFactorShiftType shift, Mat *f) {
    MatFactorInfo info;
    IS rows, columns;
    PetscFunctionBeginUser;
    PetscCall(MatFactorInfoInitialize(&info));
    info.fill = 1;
    info.levels = levels;
    info.zeropivot = 100 * PETSC_MACHINE_EPSILON;
    info.shifttype = shift;
    info.shiftamount = 100 * PETSC_MACHINE_EPSILON;
    PetscCall(MatGetOrdering(a, MATORDERINGNATURAL, &rows, &columns));
    PetscCall(MatGetFactor(a, MATSOLVERPETSC, icc ? MAT_FACTOR_ICC : MAT_FACTOR_ILU, f));
    if (icc) {
        PetscCall(MatICCFactorSymbolic(*f, a, rows, &info));
        PetscCall(MatCholeskyFactorNumeric(*f, a, &info));
    } else {
        PetscCall(MatILUFactorSymbolic(*f, a, rows, columns, &info));
        PetscCall(MatLUFactorNumeric(*f, a, &info));
    }
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&columns));
    MatFactorError error;
    PetscCall(MatFactorGetError(*f, &error));
    PetscCheck(error == MAT_FACTOR_NOERROR, PETSC_COMM_SELF, PETSC_ERR_MAT_LU_ZRPVT, "zero pivot");
    PetscFunctionReturn(0);
}

/* Applies both factors to v of number k; the difference relative to z, and z to its file. */
static PetscErrorCode apply(const char *folder, int k, Mat plain, Mat shifted, PetscReal *difference) {
    char name[16];
    PetscViewer viewer;
    Vec v, z, w;
    PetscReal norm, distance;
    PetscFunctionBeginUser;
    PetscCall(PetscSNPrintf(name, sizeof name, "v%d.petsc", k));
    PetscCall(open_file(folder, name, FILE_MODE_READ, &viewer));
    PetscCall(VecCreate(PETSC_COMM_SELF, &v));
    PetscCall(VecLoad(v, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(VecDuplicate(v, &z));
    PetscCall(VecDuplicate(v, &w));
    PetscCall(MatSolve(plain, v, z));
    PetscCall(MatSolve(shifted, v, w));
    PetscCall(VecNorm(z, NORM_INFINITY, &norm));
    PetscCall(VecAXPY(w, -1, z));
    PetscCall(VecNorm(w, NORM_INFINITY, &distance));
    *difference = PetscMax(*difference, distance / norm);
    name[0] = 'z';
    PetscCall(open_file(folder, name, FILE_MODE_WRITE, &viewer));
    PetscCall(VecView(z, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    PetscCall(VecDestroy(&v));
    PetscCall(VecDestroy(&z));
    PetscCall(VecDestroy(&w));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: FOLDER ilu|icc LEVELS\n");
        return 2;
    }
    const char *folder = argv[1];
    int icc = argv[2][1] == 'c', levels = atoi(argv[3]), none = 1;
    Mat a, plain, shifted;
    PetscViewer viewer;
    MatInfo info;
    PetscReal difference = 0;
    PetscCall(PetscInitialize(&none, &argv, NULL, NULL));
    PetscCall(MatCreate(PETSC_COMM_SELF, &a));
    PetscCall(MatSetType(a, MATSEQAIJ));
    PetscCall(open_file(folder, "A.petsc", FILE_MODE_READ, &viewer));
    PetscCall(MatLoad(a, viewer));
    PetscCall(PetscViewerDestroy(&viewer));
    if (icc) PetscCall(MatSetOption(a, MAT_SPD, PETSC_TRUE));
    PetscCall(factor(a, icc, levels, MAT_SHIFT_NONE, &plain));
    PetscCall(factor(a, icc, levels, icc ? MAT_SHIFT_POSITIVE_DEFINITE : MAT_SHIFT_NONZERO, &shifted));
    for (int k = 0; k < VECTORS; k++) PetscCall(apply(folder, k, plain, shifted, &difference));
    PetscCall(MatGetInfo(plain, MAT_LOCAL, &info));
    printf("{\"version\":\"PETSc %d.%d.%d\",\"entries\":%.0f,\"shifted\":%.3e}\n", PETSC_VERSION_MAJOR,
           PETSC_VERSION_MINOR, PETSC_VERSION_SUBMINOR, info.nz_used, difference);
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&plain));
    PetscCall(MatDestroy(&shifted));
    return PetscFinalize();
}
