/* The triad in C, to check once on a machine that the one in Rust is not slower: triad BYTES, threads by OMP_NUM_THREADS. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 3ull << 30) / 24;
    double *a = malloc(8 * n), *b = malloc(8 * n), *c = malloc(8 * n), s = 3, least = 1e300;
    if (!a || !b || !c) return 1;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) a[i] = 0, b[i] = 1, c[i] = 2;
    double began = omp_get_wtime();
    for (int pass = 0; pass < 20 || omp_get_wtime() - began < 1; pass++) {
        double start = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
        double seconds = omp_get_wtime() - start;
        if (seconds < least) least = seconds;
    }
    printf("%d threads, %zu bytes: %.2f GB/s (%g)\n", omp_get_max_threads(), 24 * n, 24e-9 * (double)n / least, a[n / 2]);
    return 0;
}
