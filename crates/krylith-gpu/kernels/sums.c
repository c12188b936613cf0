/* Inner products: pieces of sums. The host adds the pieces. */

/* A buffer that is chosen when the kernel runs. Barriers stand in loops that all items run alike, never in branches. */
#if CHECKED
#define CHOSEN(type, name) GLOBAL type *name = 0; u64 name##_count = 0
#define CHOOSE(name, from) name = from; name##_count = from##_count
#else
#define CHOSEN(type, name) GLOBAL type *name = 0
#define CHOOSE(name, from) name = from
#endif

/* Sums first .. first + count, of pairs. */
#define PAIR(k) case k: CHOOSE(x, x##k); CHOOSE(y, y##k); break;
KERNEL dots(BUFFER(const REAL, x0), BUFFER(const REAL, y0), BUFFER(const REAL, x1), BUFFER(const REAL, y1),
            BUFFER(const REAL, x2), BUFFER(const REAL, y2), BUFFER(const REAL, x3), BUFFER(const REAL, y3),
            BUFFER(u64, out), u32 count, u32 first, u64 pieces, u64 n FAULT) {
    SUMS(1);
    CHOSEN(const REAL, x);
    CHOSEN(const REAL, y);
    for (u32 k = 0; k < count; ++k) {
        switch (k) { PAIR(0) PAIR(1) PAIR(2) PAIR(3) }
        RESET();
        FOR_EACH_TERM(i, n, ADD(0, AT(x, i) * AT(y, i));)
        STORE_SUM(0, out, first + k);
    }
}

/* The same of every vector of a basis with y. */
#define MEMBER(k) case k: CHOOSE(v, v##k); break;
KERNEL basis_dots(MANY(VECTOR) BUFFER(const REAL, y), BUFFER(u64, out), u32 count, u32 first, u64 pieces, u64 n FAULT) {
    SUMS(1);
    CHOSEN(const REAL, v);
    for (u32 k = 0; k < count; ++k) {
        switch (k) { MANY(MEMBER) }
        RESET();
        FOR_EACH_TERM(i, n, ADD(0, AT(v, i) * AT(y, i));)
        STORE_SUM(0, out, first + k);
    }
}

/* r += a q, and r.r of the new r. */
KERNEL update_norm(BUFFER(const REAL, q), BUFFER(REAL, r), BUFFER(u64, out), REAL a, u64 pieces, u64 n FAULT) {
    SUMS(1);
    FOR_EACH_TERM(i, n,
        REAL v = a * AT(q, i) + AT(r, i);
        AT(r, i) = v;
        ADD(0, v * v);)
    STORE_SUM(0, out, 0);
}

/* r += a t, and then r.r and w.r. */
KERNEL update_dots(BUFFER(const REAL, t), BUFFER(REAL, r), BUFFER(const REAL, w), BUFFER(u64, out), REAL a, u64 pieces,
                   u64 n FAULT) {
    SUMS(2);
    FOR_EACH_TERM(i, n,
        REAL v = a * AT(t, i) + AT(r, i);
        AT(r, i) = v;
        ADD(0, v * v);
        ADD(1, AT(w, i) * v);)
    STORE_SUM(0, out, 0);
    STORE_SUM(1, out, 1);
}

/* Of every chunk the largest size, the least that is not zero, and the place of the first entry that is not finite, n if there is
 * none. One item per chunk in every shape: this is rare. */
KERNEL extremes(BUFFER(const REAL, x), BUFFER(REAL, sizes), BUFFER(u64, places), u64 pieces, u64 n FAULT) {
    u64 piece = THIS_ITEM;
    if (piece >= pieces) return;
    u64 last = SMALLER((piece + 1) * CHUNK, n), bad = n;
    REAL largest = 0, least = 0;
    for (u64 i = piece * CHUNK; i < last; ++i) {
        REAL size = AT(x, i) < 0 ? -AT(x, i) : AT(x, i);
        if (size - size != 0 && bad == n) bad = i;
        if (size > largest) largest = size;
        if (size != 0 && (least == 0 || size < least)) least = size;
    }
    AT(sizes, 2 * piece) = largest;
    AT(sizes, 2 * piece + 1) = least;
    AT(places, piece) = bad;
}
