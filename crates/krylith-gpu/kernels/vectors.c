/* Updates of vectors, each one pass over memory. */

KERNEL fill(BUFFER(REAL, x), REAL a, u64 n FAULT) {
    FOR_EACH(i, n, AT(x, i) = a;)
}

KERNEL scale(BUFFER(REAL, x), REAL a, u64 n FAULT) {
    FOR_EACH(i, n, AT(x, i) *= a;)
}

/* y = a x + b y; with b = 0 the old y is not read, and b = 1 is not multiplied by. */
KERNEL axpby(BUFFER(const REAL, x), BUFFER(REAL, y), REAL a, REAL b, u64 n FAULT) {
    if (b == 0) {
        FOR_EACH(i, n, AT(y, i) = a * AT(x, i);)
    } else if (b == 1) {
        FOR_EACH(i, n, AT(y, i) = a * AT(x, i) + AT(y, i);)
    } else {
        FOR_EACH(i, n, AT(y, i) = a * AT(x, i) + b * AT(y, i);)
    }
}

/* x += a p, and then p = z + b p. */
KERNEL cg_direction(BUFFER(const REAL, z), BUFFER(REAL, p), BUFFER(REAL, x), REAL a, REAL b, u64 n FAULT) {
    FOR_EACH(i, n,
        REAL old = AT(p, i);
        AT(x, i) = a * old + AT(x, i);
        AT(p, i) = AT(z, i) + b * old;)
}

/* p = r + b (p - c v). */
KERNEL bicgstab_direction(BUFFER(const REAL, r), BUFFER(const REAL, v), BUFFER(REAL, p), REAL b, REAL c, u64 n FAULT) {
    FOR_EACH(i, n, AT(p, i) = AT(r, i) + b * (-c * AT(v, i) + AT(p, i));)
}

/* y += sum of c_k v_k, one after the other. */
#define VECTOR(k) BUFFER(const REAL, v##k),
#define FACTOR(k) REAL c##k,
#define PLUS(k) if (count > k) sum = c##k * AT(v##k, i) + sum;
#define TWO(m) m(0) m(1)
#define MANY(m) \
    m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15) m(16) m(17) m(18) m(19) m(20) m(21) \
    m(22) m(23) m(24) m(25) m(26) m(27) m(28) m(29) m(30) m(31)

KERNEL combine_two(TWO(VECTOR) TWO(FACTOR) BUFFER(REAL, y), u32 count, u64 n FAULT) {
    FOR_EACH(i, n, REAL sum = AT(y, i); TWO(PLUS) AT(y, i) = sum;)
}

KERNEL combine_many(MANY(VECTOR) MANY(FACTOR) BUFFER(REAL, y), u32 count, u64 n FAULT) {
    FOR_EACH(i, n, REAL sum = AT(y, i); MANY(PLUS) AT(y, i) = sum;)
}
