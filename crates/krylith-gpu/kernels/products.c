/* y = A x.
 *
 * The sum of a row has the order of operations of krylith's threads in every kernel and shape: entry k goes to lane k mod 8, the lanes
 * are added as COMBINE does. Lanes are named one by one, so that they stay in registers. */

#define EIGHT(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7)
#define LANE_ZERO(l) lanes[l] = 0;

/* Compressed rows: the sum of entries begin .. end. */
#define TERM_OF_ROW(l) lanes[l] += AT(values, k + l) * AT(x, AT(col_idx, k + l));
#define LAST_OF_ROW(l) if (k + l < end) TERM_OF_ROW(l)
#define SUM_OF_ROW(sum, i) \
    { \
        u64 k = AT(row_ptr, i), end = AT(row_ptr, (i) + 1); \
        REAL lanes[LANES]; \
        EIGHT(LANE_ZERO) \
        for (; k + LANES <= end; k += LANES) { EIGHT(TERM_OF_ROW) } \
        EIGHT(LAST_OF_ROW) \
        sum = COMBINE(lanes); \
    }

#define ROWS BUFFER(const u64, row_ptr), BUFFER(const u32, col_idx), BUFFER(const REAL, values), BUFFER(const REAL, x), BUFFER(REAL, y)

/* One item per row. */
KERNEL product_rows(ROWS, u64 n FAULT) {
    FOR_EACH(i, n, REAL sum; SUM_OF_ROW(sum, i) AT(y, i) = sum;)
}

/* The same, and x.y. */
KERNEL product_rows_dot(ROWS, BUFFER(u64, out), u64 pieces, u64 n FAULT) {
    SUMS(1);
    FOR_EACH_TERM(i, n, REAL sum; SUM_OF_ROW(sum, i) AT(y, i) = sum; ADD(0, AT(x, i) * sum);)
    STORE_SUM(0, out, 0);
}

/* Eight items per row, one for each lane: for long rows. In groups of GROUP_SIZE items. */
KERNEL product_lanes(ROWS, u64 n FAULT) {
    LOCAL REAL lanes[GROUP_SIZE];
    u64 step = GROUPS * (GROUP_SIZE / LANES);
    for (u64 first = GROUP * (GROUP_SIZE / LANES); first < n; first += step) {
        u64 i = first + ITEM / LANES;
        REAL sum = 0;
        if (i < n) {
            u64 end = AT(row_ptr, i + 1);
            IN_ORDER for (u64 k = AT(row_ptr, i) + ITEM % LANES; k < end; k += LANES)
                sum += AT(values, k) * AT(x, AT(col_idx, k));
        }
        lanes[ITEM] = sum;
        BARRIER();
        if (i < n && ITEM % LANES == 0) AT(y, i) = COMBINE(lanes + ITEM);
        BARRIER();
    }
}

/* Slices of rows, entry after entry of all rows of a slice, short rows padded with zeros. */
#define SLICES BUFFER(const u64, slice_ptr), BUFFER(const u32, col_idx), BUFFER(const REAL, values), BUFFER(const REAL, x), BUFFER(REAL, y)
#if SHAPE_CPU
/* Eight rows per slice, in the order of A: the rows of a slice are the lanes of a dot product. */
#if DOUBLE
typedef double8 REAL8;
#else
typedef float8 REAL8;
#endif
#if CHECKED
#define EIGHT_OF(name, i) (REAL8)(AT(name, i), AT(name, (i) + 1), AT(name, (i) + 2), AT(name, (i) + 3), AT(name, (i) + 4), AT(name, (i) + 5), AT(name, (i) + 6), AT(name, (i) + 7))
#else
#define EIGHT_OF(name, i) vload8(0, name + (i))
#endif
#define X_OF(l) AT(x, AT(col_idx, k + l))
#define COLUMN_OF_SLICE (EIGHT_OF(values, k) * (REAL8)(X_OF(0), X_OF(1), X_OF(2), X_OF(3), X_OF(4), X_OF(5), X_OF(6), X_OF(7)))
#define TERM_OF_SLICE(l) lanes[l] += COLUMN_OF_SLICE; k += LANES;
#define LAST_OF_SLICE(l) if (k < end) { TERM_OF_SLICE(l) }
#define SUM_OF_SLICE(sum, s) \
    { \
        u64 k = AT(slice_ptr, s), end = AT(slice_ptr, (s) + 1); \
        REAL8 lanes[LANES]; \
        EIGHT(LANE_ZERO) \
        for (; k + LANES * LANES <= end;) { EIGHT(TERM_OF_SLICE) } \
        EIGHT(LAST_OF_SLICE) \
        sum = COMBINE(lanes); \
    }
#if CHECKED
#define STORE_EIGHT(name, i, v) \
    AT(name, i) = v.s0; AT(name, (i) + 1) = v.s1; AT(name, (i) + 2) = v.s2; AT(name, (i) + 3) = v.s3; \
    AT(name, (i) + 4) = v.s4; AT(name, (i) + 5) = v.s5; AT(name, (i) + 6) = v.s6; AT(name, (i) + 7) = v.s7
#else
#define STORE_EIGHT(name, i, v) vstore8(v, 0, name + (i))
#endif
#define STORE_ONE(l) if (i + l < n) AT(y, i + l) = sum.s##l;
#define ADD_ONE(l) if (i + l < n) { ADD(0, AT(x, i + l) * sum.s##l); held += 1; }

KERNEL product_slices(SLICES, u64 n FAULT) {
    u64 i = THIS_ITEM * CHUNK, last = SMALLER(i + CHUNK, n);
    REAL8 sum;
    for (; i + LANES <= last; i += LANES) {
        SUM_OF_SLICE(sum, i / LANES)
        STORE_EIGHT(y, i, sum);
    }
    if (i < last) {
        SUM_OF_SLICE(sum, i / LANES)
        EIGHT(STORE_ONE)
    }
}

KERNEL product_slices_dot(SLICES, BUFFER(u64, out), u64 pieces, u64 n FAULT) {
    SUMS(1);
    u64 i = THIS_ITEM * CHUNK, last = SMALLER(i + CHUNK, n);
    REAL8 sum;
    for (; i + LANES <= last; i += LANES) {
        SUM_OF_SLICE(sum, i / LANES)
        STORE_EIGHT(y, i, sum);
        vstore8(EIGHT_OF(x, i) * sum, 0, terms[0] + held);
        held += LANES;
    }
    if (i < last) {
        SUM_OF_SLICE(sum, i / LANES)
        EIGHT(STORE_ONE)
        EIGHT(ADD_ONE)
    }
    STORE_SUM(0, out, 0);
}
#else
/* SLICE_ROWS rows per slice, sorted by length within windows; place p holds row order[p]. One item per row. */
#define SLICE_ROWS 32
#define TERM_OF_SLICE(l) lanes[l] += AT(values, k) * AT(x, AT(col_idx, k)); k += SLICE_ROWS;
#define LAST_OF_SLICE(l) if (k < end) { TERM_OF_SLICE(l) }
#define SUM_OF_SLICE(sum, p) \
    { \
        u64 s = (p) / SLICE_ROWS, k = AT(slice_ptr, s) + (p) % SLICE_ROWS, end = AT(slice_ptr, s + 1); \
        REAL lanes[LANES]; \
        EIGHT(LANE_ZERO) \
        for (; k + (LANES - 1) * SLICE_ROWS < end;) { EIGHT(TERM_OF_SLICE) } \
        EIGHT(LAST_OF_SLICE) \
        sum = COMBINE(lanes); \
    }

KERNEL product_slices(SLICES, BUFFER(const u32, order), u64 n FAULT) {
    FOR_EACH(p, n, REAL sum; SUM_OF_SLICE(sum, p) AT(y, AT(order, p)) = sum;)
}

KERNEL product_slices_dot(SLICES, BUFFER(const u32, order), BUFFER(u64, out), u64 pieces, u64 n FAULT) {
    SUMS(1);
    FOR_EACH_TERM(p, n, REAL sum; SUM_OF_SLICE(sum, p) u32 i = AT(order, p); AT(y, i) = sum; ADD(0, AT(x, i) * sum);)
    STORE_SUM(0, out, 0);
}
#endif

/* Dense blocks of size rows and columns, one column index each, stored row by row. One item per row of A. */
#define TERM_OF_BLOCKS(l) \
    if (k + l < length) { \
        lanes[l] += AT(values, at + c) * AT(x, (u64)AT(col_idx, b) * size + c); \
        if (++c == size) { c = 0; ++b; at += size * size; } \
    }
#define SUM_OF_BLOCKS(sum, i) \
    { \
        u64 b = AT(row_ptr, (i) / size), length = (AT(row_ptr, (i) / size + 1) - b) * size; \
        u64 at = (b * size + (i) % size) * size; \
        u32 c = 0; \
        REAL lanes[LANES]; \
        EIGHT(LANE_ZERO) \
        for (u64 k = 0; k < length; k += LANES) { EIGHT(TERM_OF_BLOCKS) } \
        sum = COMBINE(lanes); \
    }

KERNEL product_blocks(ROWS, u32 size, u64 n FAULT) {
    FOR_EACH(i, n, REAL sum; SUM_OF_BLOCKS(sum, i) AT(y, i) = sum;)
}

KERNEL product_blocks_dot(ROWS, u32 size, BUFFER(u64, out), u64 pieces, u64 n FAULT) {
    SUMS(1);
    FOR_EACH_TERM(i, n, REAL sum; SUM_OF_BLOCKS(sum, i) AT(y, i) = sum; ADD(0, AT(x, i) * sum);)
    STORE_SUM(0, out, 0);
}
