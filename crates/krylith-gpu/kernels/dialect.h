/* One dialect of C for OpenCL C 1.2 and for CUDA C++.
 *
 * Compile-time options, each 0 or 1:
 *   DOUBLE     numbers are double, otherwise float
 *   SHAPE_CPU  one item works on a chunk of CHUNK entries, for processors; otherwise groups of GROUP_SIZE items do, for GPUs
 *   EXACT      products are rounded before they are added, as on krylith's threads
 *   CHECKED    every access is compared with the size of its buffer; one that is outside sets a flag and is not made
 *
 * Positions and rows are 64 bits wide where they are computed with; 32 bits hold a row or a column in memory, up to 2^32 - 1. So n = 2^32
 * rows and any number of entries are within range: i + 1, k + l and chunk * CHUNK are sums and products of u64.
 */
#define CHUNK 2048
#define LANES 8
#define GROUP_SIZE 256

#ifdef __OPENCL_VERSION__
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#if EXACT
#pragma OPENCL FP_CONTRACT OFF
#endif
typedef uint u32;
typedef ulong u64;
typedef long i64;
#if SHAPE_CPU
/* Told how many items there are, compilers need not look for vectors across items. */
#define KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
#else
#define KERNEL kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void
#endif
#define DEVICE
/* A function that is not compiled into every place where it is called. */
#define APART __attribute__((noinline))
#define GLOBAL global
#define LOCAL local
#define RESTRICT restrict
/* Before a loop whose sum has a fixed order: some compilers for processors reorder it otherwise. */
#define IN_ORDER _Pragma("clang loop vectorize(disable) interleave(disable)")
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define ITEM ((u32)get_local_id(0))
#define ITEMS ((u32)get_local_size(0))
#define GROUP ((u64)get_group_id(0))
#define GROUPS ((u64)get_num_groups(0))
#define LOWER(place, value) atomic_min(place, value)
#else
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ static inline
#define APART __device__ static __noinline__
#define GLOBAL
#define LOCAL __shared__
#define RESTRICT __restrict__
#define IN_ORDER
#define BARRIER() __syncthreads()
#define ITEM threadIdx.x
#define ITEMS blockDim.x
#define GROUP ((u64)blockIdx.x)
#define GROUPS ((u64)gridDim.x)
#define LOWER(place, value) atomicMin(place, value)
#endif

#if DOUBLE
typedef double REAL;
#define FRACTION 52
#ifdef __OPENCL_VERSION__
#define BITS(v) ((u64)as_long(v))
#define FROM_BITS(v) as_double((i64)(v))
#else
#define BITS(v) ((u64)__double_as_longlong(v))
#define FROM_BITS(v) __longlong_as_double((i64)(v))
#endif
#else
typedef float REAL;
#define FRACTION 23
#ifdef __OPENCL_VERSION__
#define BITS(v) ((u64)as_uint(v))
#else
#define BITS(v) ((u64)__float_as_uint(v))
#endif
#endif

#define THIS_ITEM (GROUP * ITEMS + ITEM)
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/* Buffers; SHARED is one that items of a group write and read in turns, across barriers. A kernel ends its parameters with FAULT; a function takes a buffer as BUFFER(type, name), is given PASS(name), and
 * ends with FAULT and PASS_FAULT. */
#if CHECKED
#define BUFFER(type, name) GLOBAL type *name, u64 name##_count
#define PASS(name) name, name##_count
#define FAULT , GLOBAL u32 *fault
#define PASS_FAULT , fault
#define GUARD(name) (64 / sizeof(*(name)))
#define SHARED(type, name) BUFFER(type, name)
#define AT(name, i) (name)[GUARD(name) + within((u64)(i), name##_count, fault)]
DEVICE u64 within(u64 i, u64 count, GLOBAL u32 *fault) {
    if (i < count) return i;
    fault[GUARD(fault)] = 1u;
    return 0;
}
#else
#define BUFFER(type, name) GLOBAL type *RESTRICT name
#define SHARED(type, name) GLOBAL type *name
#define PASS(name) name
#define FAULT
#define PASS_FAULT
#define AT(name, i) (name)[i]
#endif

/* The lanes of a sum, added. */
#define COMBINE(l) ((((l)[0] + (l)[4]) + ((l)[2] + (l)[6])) + (((l)[1] + (l)[5]) + ((l)[3] + (l)[7])))

/* FOR_EACH(i, n, statements) runs the statements for every i < n.
 *
 * Sums of terms: SUMS(count) declares them, FOR_EACH_TERM(i, n, statements) visits every i < n, ADD(k, v) adds to sum k, and
 * STORE_SUM(k, out, at) stores the piece of sum k that this item or group has at out[at * pieces + piece]. What is left, the sum over
 * pieces, is the host's. RESET() makes sum 0 zero again. Sums have the same bits in every order: see bins.h. */
#if SHAPE_CPU
#define FOR_EACH(i, n, ...) \
    { \
        u64 first = THIS_ITEM * CHUNK, last = SMALLER(first + CHUNK, n); \
        for (u64 i = first; i < last; ++i) { __VA_ARGS__ } \
    }
/* The terms of a chunk are held until all are there. */
#define SUMS(count) \
    REAL terms[count][CHUNK]; \
    u32 held = 0
#define RESET() held = 0
#define ADD(k, v) terms[k][held] = (v)
#define FOR_EACH_TERM(i, n, ...) \
    { \
        u64 start = THIS_ITEM * CHUNK, last = SMALLER(start + CHUNK, n); \
        for (u64 i = start; i < last; ++i) { __VA_ARGS__ held += 1; } \
    }
#define STORE_SUM(k, out, at) \
    if (THIS_ITEM < pieces) { \
        struct bins sum = bins_of_terms(terms[k], held); \
        STORE_BINS(out, (u64)(at) * pieces + THIS_ITEM, sum.index, sum.flags, sum.high, sum.low); \
    }
#else
#define FOR_EACH(i, n, ...) \
    for (u64 i = THIS_ITEM; i < (n); i += ITEMS * GROUPS) { __VA_ARGS__ }
#define SUMS(count) \
    LOCAL i64 parts[4][GROUP_SIZE]; \
    LOCAL u32 tags[GROUP_SIZE]; \
    struct bins sums[count]; \
    for (u32 k = 0; k < count; ++k) sums[k] = no_terms()
#define RESET() sums[0] = no_terms()
#define ADD(k, v) add_term(&sums[k], v)
#define FOR_EACH_TERM(i, n, ...) FOR_EACH(i, n, __VA_ARGS__)
/* A group halves what its items have: first the units, and then the sums, in halves of 32 bits so that they do not overflow. */
#define STORE_SUM(k, out, at) \
    { \
        struct bins own = sums[k]; \
        tags[ITEM] = (u32)(own.index - LEAST) << 3 | own.flags; \
        HALVE(tags[ITEM] = LARGER(tags[ITEM] >> 3, tags[ITEM + other] >> 3) << 3 | ((tags[ITEM] | tags[ITEM + other]) & 7u)) \
        own = raised(own, (int)(tags[0] >> 3) + LEAST); \
        parts[0][ITEM] = own.high >> 32; \
        parts[1][ITEM] = own.high & 0xffffffff; \
        parts[2][ITEM] = own.low >> 32; \
        parts[3][ITEM] = own.low & 0xffffffff; \
        HALVE(for (u32 part = 0; part < 4; ++part) parts[part][ITEM] += parts[part][ITEM + other]) \
        if (ITEM == 0 && GROUP < pieces) { \
            u64 place = BIN_WORDS * ((u64)(at) * pieces + GROUP), words[2]; \
            AT(out, place) = (u64)(tags[0] >> 3) << 8 | (tags[0] & 7u); \
            for (u32 bin = 0; bin < 2; ++bin) { \
                WORDS(words, parts[2 * bin][0], parts[2 * bin + 1][0]) \
                AT(out, place + 1 + 2 * bin) = words[0]; \
                AT(out, place + 2 + 2 * bin) = words[1]; \
            } \
        } \
        BARRIER(); \
    }
#define HALVE(statement) \
    BARRIER(); \
    for (u32 other = GROUP_SIZE / 2; other > 0; other /= 2) { \
        if (ITEM < other) { statement; } \
        BARRIER(); \
    }
/* 128 bits of high_half 2^32 + low_half, the second of which is not negative. */
#define WORDS(words, high_half, low_half) \
    words[0] = ((u64)(high_half) << 32) + (u64)(low_half); \
    words[1] = (u64)((high_half) >> 32) + (words[0] < (u64)(low_half) ? 1 : 0);
#endif
