/* Triangular sweeps and elimination by levels: rows of one level do not need each other. order[p] is the row at place p, level after
 * level. A large level is a launch of its own; successive small ones are one launch of one group, which waits between them. */

/* Rows of a level that one item takes, in the shape for processors. */
#define SPAN 256

#if SHAPE_CPU
#define FOR_PART(p, n, ...) \
    { \
        u64 from_place = THIS_ITEM * SPAN, to_place = SMALLER(from_place + SPAN, n); \
        for (u64 p = from_place; p < to_place; ++p) { __VA_ARGS__ } \
    }
/* One item: places follow each other in an order that suits all. */
#define FOR_LEVELS(p, ...) \
    for (u64 p = AT(level_ptr, from); p < AT(level_ptr, to); ++p) { __VA_ARGS__ }
#else
#define FOR_PART(p, n, ...) FOR_EACH(p, n, __VA_ARGS__)
#define FOR_LEVELS(p, ...) \
    for (u32 level = from; level < to; ++level) { \
        for (u64 p = AT(level_ptr, level) + ITEM; p < AT(level_ptr, level + 1); p += ITEMS) { __VA_ARGS__ } \
        BARRIER(); \
    }
#endif

#define TRIANGLE BUFFER(const u32, order), BUFFER(const u64, row_ptr), BUFFER(const u32, col_idx), BUFFER(const REAL, values)
#define LEVELS BUFFER(const u64, level_ptr), u32 from, u32 to

/* z_i = x_i - sum l_ij z_j, from left to right. */
#define FORWARD_ROW(p) \
    { \
        u64 i = AT(order, p); \
        REAL sum = AT(x, i); \
        u64 end = AT(row_ptr, i + 1); \
        IN_ORDER for (u64 k = AT(row_ptr, i); k < end; ++k) sum -= AT(values, k) * AT(z, AT(col_idx, k)); \
        AT(z, i) = sum; \
    }

KERNEL forward(TRIANGLE, BUFFER(const REAL, x), BUFFER(REAL, z), u64 first, u64 count FAULT) {
    FOR_PART(p, count, FORWARD_ROW(first + p))
}

KERNEL forward_levels(TRIANGLE, BUFFER(const REAL, x), SHARED(REAL, z), LEVELS FAULT) {
    FOR_LEVELS(p, FORWARD_ROW(p))
}

/* z_i = z_i / d_i - sum u_ij z_j, from right to left: the entry that was computed last comes last. */
#define BACKWARD_ROW(p) \
    { \
        u64 i = AT(order, p); \
        REAL sum = AT(z, i) * AT(inverse, i); \
        u64 begin = AT(row_ptr, i); \
        IN_ORDER for (u64 k = AT(row_ptr, i + 1); k > begin; --k) sum -= AT(values, k - 1) * AT(z, AT(col_idx, k - 1)); \
        AT(z, i) = sum; \
    }

KERNEL backward(TRIANGLE, BUFFER(const REAL, inverse), BUFFER(REAL, z), u64 first, u64 count FAULT) {
    FOR_PART(p, count, BACKWARD_ROW(first + p))
}

KERNEL backward_levels(TRIANGLE, BUFFER(const REAL, inverse), SHARED(REAL, z), LEVELS FAULT) {
    FOR_LEVELS(p, BACKWARD_ROW(p))
}

/* Elimination, in place: l and u hold the triangles of A and then those of M = (I + L) D (I + U), inverse holds the pivot before elimination
 * and then 1 / d. A bad pivot stays where its inverse would be, and the smallest row with one goes to bad[0]; rows after it are left out. */
#define FACTOR_LOWER BUFFER(const u32, order), BUFFER(const u64, l_ptr), BUFFER(const u32, l_idx), SHARED(REAL, l)
#define FACTOR_UPPER BUFFER(const u64, u_ptr), BUFFER(const u32, u_idx), SHARED(REAL, u)
#define PIVOTS SHARED(REAL, inverse), BUFFER(const REAL, sizes), SHARED(u32, bad), REAL smallest
#define IS_FINITE(v) ((v) - (v) == 0)
#define STORE_PIVOT(large) \
    if (finite && (large) && IS_FINITE(pivot) && IS_FINITE(1 / pivot)) { \
        AT(inverse, i) = 1 / pivot; \
    } else { \
        AT(inverse, i) = pivot; \
        LOWER(&AT(bad, 0), (u32)i); \
    }

/* Cholesky: w_k = a_ik - sum w_m l_km, l_ik = w_k / d_k, d_i = a_ii - sum w_k l_ik. */
#define CHOLESKY_ROW(p) \
    { \
        u64 i = AT(order, p); \
        if (AT(bad, 0) >= i) { \
            u64 begin = AT(l_ptr, i), end = AT(l_ptr, i + 1); \
            for (u64 k = begin; k < end; ++k) { \
                u64 row = AT(l_idx, k); \
                u64 m = begin, stop = AT(l_ptr, row + 1); \
                REAL sum = AT(l, k); \
                IN_ORDER for (u64 t = AT(l_ptr, row); t < stop; ++t) { \
                    u32 j = AT(l_idx, t); \
                    while (m < k && AT(l_idx, m) < j) ++m; \
                    if (m < k && AT(l_idx, m) == j) sum -= AT(l, m) * AT(l, t); \
                } \
                AT(l, k) = sum; \
            } \
            REAL pivot = AT(inverse, i); \
            u32 finite = 1; \
            IN_ORDER for (u64 k = begin; k < end; ++k) { \
                REAL w = AT(l, k), v = w * AT(inverse, AT(l_idx, k)); \
                pivot -= w * v; \
                AT(l, k) = v; \
                if (!IS_FINITE(v)) finite = 0; \
            } \
            STORE_PIVOT(pivot > smallest * AT(sizes, i)) \
        } \
    }

KERNEL cholesky(FACTOR_LOWER, PIVOTS, u64 first, u64 count FAULT) {
    FOR_PART(p, count, CHOLESKY_ROW(first + p))
}

KERNEL cholesky_levels(FACTOR_LOWER, PIVOTS, LEVELS FAULT) {
    FOR_LEVELS(p, CHOLESKY_ROW(p))
}

/* LU: for k < i: w = l_ik, l_ik = w / d_k, a_ij -= w u_kj for the j > k of the pattern; u_ij = a_ij / d_i. */
#define LU_ROW(p) \
    { \
        u64 i = AT(order, p); \
        if (AT(bad, 0) >= i) { \
            u64 begin = AT(l_ptr, i), end = AT(l_ptr, i + 1), u_begin = AT(u_ptr, i), u_end = AT(u_ptr, i + 1); \
            REAL pivot = AT(inverse, i); \
            u32 finite = 1; \
            for (u64 k = begin; k < end; ++k) { \
                u64 row = AT(l_idx, k); \
                REAL w = AT(l, k); \
                u64 below = k + 1, above = u_begin, stop = AT(u_ptr, row + 1); \
                IN_ORDER for (u64 t = AT(u_ptr, row); t < stop; ++t) { \
                    u32 j = AT(u_idx, t); \
                    REAL change = w * AT(u, t); \
                    if (j == i) { \
                        pivot -= change; \
                    } else if (j < i) { \
                        while (below < end && AT(l_idx, below) < j) ++below; \
                        if (below < end && AT(l_idx, below) == j) AT(l, below) = AT(l, below) - change; \
                    } else { \
                        while (above < u_end && AT(u_idx, above) < j) ++above; \
                        if (above < u_end && AT(u_idx, above) == j) AT(u, above) = AT(u, above) - change; \
                    } \
                } \
                w = w * AT(inverse, row); \
                AT(l, k) = w; \
                if (!IS_FINITE(w)) finite = 0; \
            } \
            REAL scale = 1 / pivot; \
            for (u64 k = u_begin; k < u_end; ++k) { \
                REAL v = AT(u, k) * scale; \
                AT(u, k) = v; \
                if (!IS_FINITE(v)) finite = 0; \
            } \
            STORE_PIVOT((pivot < 0 ? -pivot : pivot) > smallest * AT(sizes, i)) \
        } \
    }

KERNEL lu(FACTOR_LOWER, FACTOR_UPPER, PIVOTS, u64 first, u64 count FAULT) {
    FOR_PART(p, count, LU_ROW(first + p))
}

KERNEL lu_levels(FACTOR_LOWER, FACTOR_UPPER, PIVOTS, LEVELS FAULT) {
    FOR_LEVELS(p, LU_ROW(p))
}

/* U = L transposed: entry k of U is entry from[k] of L. */
KERNEL mirror(BUFFER(const u32, from), BUFFER(const REAL, l), BUFFER(REAL, u), u64 n FAULT) {
    FOR_EACH(k, n, AT(u, k) = AT(l, AT(from, k));)
}

/* y = d x, entry by entry. */
KERNEL multiply(BUFFER(const REAL, d), BUFFER(const REAL, x), BUFFER(REAL, y), u64 n FAULT) {
    FOR_EACH(i, n, AT(y, i) = AT(x, i) * AT(d, i);)
}

/* r += a q, z = d r, and r.r and r.z. */
KERNEL update_multiply(BUFFER(const REAL, d), BUFFER(const REAL, q), BUFFER(REAL, r), BUFFER(REAL, z), BUFFER(u64, out), REAL a,
                       u64 pieces, u64 n FAULT) {
    SUMS(2);
    FOR_EACH_TERM(i, n,
        REAL v = a * AT(q, i) + AT(r, i);
        REAL w = v * AT(d, i);
        AT(r, i) = v;
        AT(z, i) = w;
        ADD(0, v * v);
        ADD(1, v * w);)
    STORE_SUM(0, out, 0);
    STORE_SUM(1, out, 1);
}
