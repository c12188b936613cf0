/* What the drivers of `krylith-bench structured` share: the call, the vector that all multiply once, blocks, and pieces that are
 * long enough to be timed.
 *
 *     DRIVER FILE FORMAT DOF ANSWER
 *
 * FORMAT is one of the library's, DOF the rows of a block. A x and U^-1 L^-1 x go to the file ANSWER as 64-bit floating point,
 * little-endian, one behind the other; `-` for no file. */
#ifndef GRID_H
#define GRID_H
#include "peer.h"

typedef struct {
    Task task;
    const char *format;
    int dof;
    const char *answer;
} Grid;

static Grid read_grid(int argc, char **argv) {
    if (argc != 5) fail("usage: FILE FORMAT DOF ANSWER");
    Grid g = {.task = {.file = argv[1], .config = argv[2]}, .format = argv[2], .dof = atoi(argv[3])};
    if (g.dof < 1 || g.dof > 8) fail("blocks have 1 to 8 rows");
    g.answer = strcmp(argv[4], "-") ? argv[4] : NULL;
    return g;
}

/* Entry i of x; `structured/case.rs` has the same. */
static double probe(int64_t i) { return (double)(37 * i % 101) / 64 - 0.75; }

/* Numbers to their place in the file, which is made if there is none. */
static void write_answer(const char *path, int64_t place, const double *numbers, size_t count) {
    FILE *f = fopen(path, "r+b");
    if (!f) f = fopen(path, "w+b");
    if (!f || fseek(f, 8 * place, SEEK_SET) || fwrite(numbers, 8, count, f) != count || fclose(f)) fail("the answer cannot be written");
}

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

/* Seconds a call: the least over three pieces of so many calls that a piece takes 0.1 s; no more pieces after 5 s. */
static double piece_seconds(void (*call)(void *), void *context) {
    double least = 1e300, began = now();
    int calls = 1, pieces = 0, more = 1;
    while (more) {
        if (wait_for_all) wait_for_all();
        double start = now();
        for (int k = 0; k < calls; k++) call(context);
        if (wait_for_all) wait_for_all();
        double seconds = now() - start;
        int next = calls;
        if (seconds < 0.1) {
            next = 1 + (int)(0.11 / fmax(seconds / calls, 1e-9));
        } else {
            least = fmin(least, seconds / calls);
            pieces++;
        }
        more = pieces < 3 && (pieces == 0 || now() - began < 5);
        calls = as_the_first ? as_the_first(next) : next;
        if (as_the_first) more = as_the_first(more);
    }
    return least;
}
#endif
