/* One dialect of C for OpenCL C 1.2 and for CUDA C++.
 *
 * Compile-time options, each 0 or 1:
 *   DOUBLE     numbers are double, otherwise float
 *   SHAPE_CPU  one item works on a chunk of CHUNK entries, for processors; otherwise groups of GROUP_SIZE items do, for GPUs
 *   EXACT      sums have the order of operations of krylith's threads, and products are rounded before they are added
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
#if SHAPE_CPU
/* Told how many items there are, compilers need not look for vectors across items. */
#define KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
#else
#define KERNEL kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void
#endif
#define DEVICE
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
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ static inline
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
#else
typedef float REAL;
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
 * pieces, is the host's. RESET() makes sum 0 zero again. */
#if SHAPE_CPU
#define FOR_EACH(i, n, ...) \
    { \
        u64 first = THIS_ITEM * CHUNK, last = SMALLER(first + CHUNK, n); \
        for (u64 i = first; i < last; ++i) { __VA_ARGS__ } \
    }
#define SUMS(count) \
    REAL sums[count][LANES]; \
    for (u32 k = 0; k < count; ++k) for (u32 l = 0; l < LANES; ++l) sums[k][l] = 0
#define RESET() for (u32 l = 0; l < LANES; ++l) sums[0][l] = 0
#define ADD(k, v) sums[k][lane] += (v)
#define FOR_EACH_TERM(i, n, ...) \
    { \
        u64 start = THIS_ITEM * CHUNK, last = SMALLER(start + CHUNK, n); \
        for (; start + LANES <= last; start += LANES) { \
            for (u32 lane = 0; lane < LANES; ++lane) { u64 i = start + lane; __VA_ARGS__ } \
        } \
        for (u32 lane = 0; start + lane < last; ++lane) { u64 i = start + lane; __VA_ARGS__ } \
    }
#define STORE_SUM(k, out, at) \
    if (THIS_ITEM < pieces) AT(out, (u64)(at) * pieces + THIS_ITEM) = COMBINE(sums[k])
#else
#define FOR_EACH(i, n, ...) \
    for (u64 i = THIS_ITEM; i < (n); i += ITEMS * GROUPS) { __VA_ARGS__ }
#define SUMS(count) \
    LOCAL REAL parts[GROUP_SIZE]; \
    REAL sums[count]; \
    for (u32 k = 0; k < count; ++k) sums[k] = 0
#define RESET() sums[0] = 0
#define ADD(k, v) sums[k] += (v)
#if EXACT
/* Eight items per chunk, one for each lane. */
#define PIECE (THIS_ITEM / LANES)
#define FOR_EACH_TERM(i, n, ...) \
    { \
        u64 last = SMALLER((PIECE + 1) * CHUNK, n); \
        IN_ORDER for (u64 i = PIECE * CHUNK + ITEM % LANES; i < last; i += LANES) { __VA_ARGS__ } \
    }
#define STORE_SUM(k, out, at) \
    parts[ITEM] = sums[k]; \
    BARRIER(); \
    if (ITEM % LANES == 0 && PIECE < pieces) AT(out, (u64)(at) * pieces + PIECE) = COMBINE(parts + ITEM); \
    BARRIER()
#else
/* A group strides through all terms, and halves what its items have. */
#define FOR_EACH_TERM(i, n, ...) FOR_EACH(i, n, __VA_ARGS__)
#define STORE_SUM(k, out, at) \
    parts[ITEM] = sums[k]; \
    BARRIER(); \
    for (u32 other = GROUP_SIZE / 2; other > 0; other /= 2) { \
        if (ITEM < other) parts[ITEM] += parts[ITEM + other]; \
        BARRIER(); \
    } \
    if (ITEM == 0 && GROUP < pieces) AT(out, (u64)(at) * pieces + GROUP) = parts[0]; \
    BARRIER()
#endif
#endif
