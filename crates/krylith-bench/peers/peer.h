/* What the drivers in C share: the matrix file, the clock, the line of results. README.md has the layout and the protocol. */
#ifndef PEER_H
#define PEER_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    int n;
    int nnz;
    int *row_ptr;
    int *col_idx;
    double *values;
    double *b; /* The right-hand side in the file; NULL where it is A 1. */
} Csr;

/* Where b came from, for the line of results: "ones" for A 1, or "file". */
static const char *rhs = "ones";

/* FILE MODE CONFIG RTOL MAX_ITERATIONS */
typedef struct {
    const char *file;
    int kernels;
    const char *config;
    char method[32];
    char preconditioner[64];
    double rtol;
    int max_iterations;
} Task;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static Task read_task(int argc, char **argv) {
    if (argc != 6) fail("usage: FILE solve|kernels METHOD+PRECONDITIONER RTOL MAX_ITERATIONS");
    Task task = {.file = argv[1], .kernels = !strcmp(argv[2], "kernels"), .config = argv[3]};
    const char *plus = strchr(argv[3], '+');
    if (!plus || plus - argv[3] >= (long)sizeof task.method) fail("a configuration is METHOD+PRECONDITIONER");
    snprintf(task.method, sizeof task.method, "%.*s", (int)(plus - argv[3]), argv[3]);
    snprintf(task.preconditioner, sizeof task.preconditioner, "%s", plus + 1);
    task.rtol = atof(argv[4]);
    task.max_iterations = atoi(argv[5]);
    return task;
}

static void *room(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!p) fail("out of memory");
    return p;
}

static void read_exactly(FILE *f, void *to, size_t size, size_t count) {
    if (fread(to, size, count, f) != count) fail("the matrix file is too short");
}

static Csr read_csr(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail("the matrix file cannot be opened");
    int64_t head[2];
    read_exactly(f, head, 8, 2);
    if (head[0] >= INT32_MAX || head[1] >= INT32_MAX) fail("more than 2^31 entries");
    Csr a = {.n = (int)head[0], .nnz = (int)head[1]};
    int64_t *wide = room(8 * ((size_t)a.n + 1));
    a.row_ptr = room(4 * ((size_t)a.n + 1));
    a.col_idx = room(4 * (size_t)a.nnz);
    a.values = room(8 * (size_t)a.nnz);
    read_exactly(f, wide, 8, (size_t)a.n + 1);
    for (int i = 0; i <= a.n; i++) a.row_ptr[i] = (int)wide[i];
    free(wide);
    read_exactly(f, a.col_idx, 4, (size_t)a.nnz);
    read_exactly(f, a.values, 8, (size_t)a.nnz);
    a.b = room(8 * (size_t)a.n);
    size_t found = fread(a.b, 8, (size_t)a.n, f);
    if (found != 0 && found != (size_t)a.n) fail("the right-hand side in the matrix file is too short");
    if (found == 0) {
        free(a.b);
        a.b = NULL;
    } else {
        rhs = "file";
    }
    fclose(f);
    return a;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An entry of b: that of the file, or of A 1. */
static double right_hand_side_of(const Csr *a, int i) {
    if (a->b) return a->b[i];
    double sum = 0;
    for (int k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) sum += a->values[k];
    return sum;
}

/* b for the rows from `first` to `last`. */
static void right_hand_side(const Csr *a, int first, int last, double *b) {
    for (int i = first; i < last; i++) b[i - first] = right_hand_side_of(a, i);
}

/* ||b - A x|| / ||b||, from left to right. */
static double relative_residual(const Csr *a, const double *x) {
    double rr = 0, bb = 0;
    for (int i = 0; i < a->n; i++) {
        double b = right_hand_side_of(a, i), ax = 0;
        for (int k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) ax += a->values[k] * x[a->col_idx[k]];
        rr += (b - ax) * (b - ax);
        bb += b * b;
    }
    return sqrt(rr / bb);
}

/* For drivers of several processes: wait for all, and do what the first decides. */
static void (*wait_for_all)(void) = NULL;
static int (*as_the_first)(int) = NULL;

/* The least seconds of a call: at least 20 calls and 0.3 s, but no more than 5 s once there are 3. `before` is not timed. */
static double least_seconds(void (*call)(void *), void (*before)(void *), void *context) {
    double least = 1e300, began = now();
    int calls = 0, more = 1;
    while (more) {
        if (before) before(context);
        if (wait_for_all) wait_for_all();
        double start = now();
        call(context);
        if (wait_for_all) wait_for_all();
        double end = now();
        if (end - start < least) least = end - start;
        calls++;
        more = calls < 20 || end - began < 0.3;
        if (calls >= 3 && end - began > 5) more = 0;
        if (as_the_first) more = as_the_first(more);
    }
    return least;
}

static void print_number(const char *name, double value, const char *then) {
    if (isfinite(value) && value >= 0) printf("\"%s\":%.9g%s", name, value, then);
    else printf("\"%s\":null%s", name, then);
}

static void print_head(const char *peer, const char *version, const Task *task, int threads) {
    const char *slash = strrchr(task->file, '/'), *base = slash ? slash + 1 : task->file;
    printf("{\"peer\":\"%s\",\"version\":\"%s\",\"config\":\"%s\",\"problem\":\"%.*s\",\"threads\":%d,\"rhs\":\"%s\",", peer,
           version, task->config, (int)strcspn(base, "."), base, threads, rhs);
}

typedef struct {
    double import, setup, solve, residual;
    int iterations;
    const char *status;
} Solved;

static void print_solved(const Solved *s) {
    print_number("import_seconds", s->import, ",");
    print_number("setup_seconds", s->setup, ",");
    print_number("solve_seconds", s->solve, ",");
    print_number("relative_residual", s->residual, ",");
    printf("\"iterations\":%d,\"status\":\"%s\"}\n", s->iterations, s->status);
}

/* Seconds a call; negative where the library has no such operation. */
typedef struct {
    double spmv, apply, analyze, factor, dot, axpy;
} Kernels;

static void print_kernels(const Kernels *k) {
    printf("\"status\":\"measured\",\"kernels\":{");
    print_number("spmv", k->spmv, ",");
    print_number("apply", k->apply, ",");
    print_number("analyze", k->analyze, ",");
    print_number("factor", k->factor, ",");
    print_number("dot", k->dot, ",");
    print_number("axpy", k->axpy, "}}\n");
}
#endif
