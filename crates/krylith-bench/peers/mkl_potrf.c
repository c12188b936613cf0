/* Intel MKL's Cholesky factorizations of many small systems, for `krylith-bench fsai --study cholesky`: potrf, one system after the other, and
 * potrf_compact, whose systems lie in the lanes of registers as Krylith's do.
 *
 * FILE holds, as 64-bit integers: rows of a system, systems in the file, bytes of a number (4 or 8), systems to be factored, which are those of the file
 * again and again; then the systems by columns, whole; then the last row of the inverse of L of each, to compare with. Little-endian, nothing in
 * between. Copying a system to where it is factored is timed: the whole square or its lower triangle, whichever takes less. */
#include "peer.h"
#include <mkl.h>

static int m, pool, count;
static size_t square;
static MKL_COMPACT_PACK format;

static int register_bytes(void) {
    return format == MKL_COMPACT_AVX512 ? 64 : format == MKL_COMPACT_AVX ? 32 : 16;
}

#define NUMBER double
#define NAME(x) x##_in_f64
#define POTRF dpotrf
#define TRSV cblas_dtrsv
#define COMPACT(x) mkl_d##x##_compact
#define BOUND 1e-10
#include "potrf.h"
#undef NUMBER
#undef NAME
#undef POTRF
#undef TRSV
#undef COMPACT
#undef BOUND

#define NUMBER float
#define NAME(x) x##_in_f32
#define POTRF spotrf
#define TRSV cblas_strsv
#define COMPACT(x) mkl_s##x##_compact
#define BOUND 1e-4
#include "potrf.h"

int main(int argc, char **argv) {
    if (argc != 2) fail("usage: FILE");
    FILE *f = fopen(argv[1], "rb");
    if (!f) fail("the file cannot be opened");
    int64_t head[4];
    read_exactly(f, head, 8, 4);
    if (head[0] < 1 || head[0] > 4096 || head[1] < 1 || head[1] > 1 << 20 || head[3] > 1 << 24) fail("the file has no such systems");
    m = (int)head[0], pool = (int)head[1], count = (int)head[3];
    square = (size_t)m * m;
    format = mkl_get_format_compact();
    MKLVersion v;
    mkl_get_version(&v);
    printf("{\"version\":\"%d.%d.%d\",\"threads\":%d,", v.MajorVersion, v.UpdateVersion, v.MinorVersion, mkl_get_max_threads());
    if (head[2] == 8) run_in_f64(f);
    else if (head[2] == 4) run_in_f32(f);
    else fail("a number has 4 or 8 bytes");
    fclose(f);
    return 0;
}
