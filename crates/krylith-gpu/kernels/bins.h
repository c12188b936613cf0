/* Sums that have the same bits in every order: those of krylith's space/binned, which says what they are. Terms are replaced by q g + l g 2^-52
 * with the unit g = 2^(52 index); high is the sum of q, and low that of l.
 *
 * A sum has at most CHUNK terms of |q| <= 2^50 and |l| <= 2^51 here, so 64 bits hold both. */
#define WIDTH 52
#define RANGE 50
#define LEAST (-20)
#define GREATEST 19
/* Units for which floating-point numbers find q and l. */
#define FAST(index) ((index) > LEAST && (index) < GREATEST)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
/* Words of a sum, as the host reads them. */
#define BIN_WORDS 5
/* What is not finite, in flags. */
#define INFINITE 1u
#define MINUS_INFINITE 2u
#define NOT_A_NUMBER 4u

/* Nothing here is fused with the product of which a term is. */
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT OFF
#define SUM_OF(a, b) ((a) + (b))
#else
#define SUM_OF(a, b) __dadd_rn(a, b)
#endif

struct bins {
    int index;
    u32 flags;
    i64 high, low;
};

DEVICE struct bins no_terms() {
    struct bins none;
    none.index = LEAST;
    none.flags = 0;
    none.high = 0;
    none.low = 0;
    return none;
}

#define SIGN_BIT ((u64)1 << (8 * sizeof(REAL) - 1))
#define EXPONENTS ((SIGN_BIT >> FRACTION) - 1)
#define BITS_ARE_FINITE(bits) (((bits) >> FRACTION & EXPONENTS) != EXPONENTS)

/* A finite number as significand 2^exponent. */
DEVICE i64 significand_of(u64 bits, int *exponent) {
    int field = (int)(bits >> FRACTION & EXPONENTS);
    i64 size = (i64)(bits & (((u64)1 << FRACTION) - 1));
    if (field != 0) size |= (i64)1 << FRACTION;
    *exponent = (field != 0 ? field : 1) - (int)(EXPONENTS / 2) - FRACTION;
    return bits & SIGN_BIT ? -size : size;
}

/* The integer nearest to a 2^shift, even where two are. */
DEVICE i64 rounded(i64 a, int shift) {
    if (shift >= 0) return (i64)((u64)a << shift);
    if (shift < -62) return 0;
    i64 whole = a >> -shift, rest = a & (((i64)1 << -shift) - 1), middle = (i64)1 << (-shift - 1);
    return whole + (rest > middle || (rest == middle && (whole & 1)) ? 1 : 0);
}

/* Whether q is in -2^50 .. 2^50. */
DEVICE int fits(i64 a, int shift) {
    if (a == 0) return 1;
    if (shift > RANGE) return 0;
    i64 limit = (i64)1 << (shift > 0 ? RANGE - shift : RANGE), q = rounded(a, SMALLER(shift, 0));
    return q >= -limit && q < limit;
}

/* The least unit, from this one on, that a finite number fits. */
DEVICE int unit_for(u64 bits, int index) {
    int exponent;
    i64 a = significand_of(bits, &exponent);
    while (index < GREATEST && !fits(a, exponent - WIDTH * index)) ++index;
    return index;
}

/* The sum with a larger unit. */
DEVICE struct bins raised(struct bins sum, int index) {
    if (index > sum.index) {
        sum.low = index == sum.index + 1 ? sum.high : 0;
        sum.high = 0;
        sum.index = index;
    }
    return sum;
}

/* The sum and one more number of any kind, in integers, with a unit that is large enough. */
APART struct bins with_term(struct bins sum, u64 bits) {
    if (BITS_ARE_FINITE(bits)) {
        int exponent;
        i64 a = significand_of(bits, &exponent);
        sum = raised(sum, unit_for(bits, sum.index));
        int shift = exponent - WIDTH * sum.index;
        i64 q = rounded(a, shift), rest = shift >= 0 ? 0 : shift < -62 ? a : a - (i64)((u64)q << -shift);
        sum.high += q;
        sum.low += shift >= 0 ? 0 : rounded(rest, shift + WIDTH);
    } else if (bits & (((u64)1 << FRACTION) - 1)) {
        sum.flags |= NOT_A_NUMBER;
    } else {
        sum.flags |= bits & SIGN_BIT ? MINUS_INFINITE : INFINITE;
    }
    return sum;
}

#if DOUBLE
/* 1.75 2^52 g, and 1.5 g: what is added to a number so that the last bits of the sum are q, and l of what is left. */
#define FIRST(index) FROM_BITS((u64)(WIDTH * (index) + 52 + 1023) << 52 | (u64)3 << 50)
#define SECOND(index) FROM_BITS((u64)(WIDTH * (index) + 1023) << 52 | (u64)1 << 51)
#endif

/* Adds a number. */
DEVICE void add_term(struct bins *sum, REAL v) {
#if DOUBLE
    if (FAST(sum->index)) {
        REAL first = FIRST(sum->index), second = SECOND(sum->index);
        REAL with = SUM_OF(v, first), rest = SUM_OF(v, -SUM_OF(with, -first));
        if ((BITS(with) ^ BITS(first)) >> (RANGE + 1) == 0) {
            sum->high += (i64)(BITS(with) - BITS(first));
            sum->low += (i64)(BITS(SUM_OF(rest, second)) - BITS(second));
            return;
        }
    }
#endif
    *sum = with_term(*sum, BITS(v));
}

#if SHAPE_CPU
/* The sum of a chunk. */
APART struct bins bins_of_terms(const REAL *terms, u32 count) {
    struct bins sum = no_terms();
#if DOUBLE
    /* The largest numbers: bits are in the order of numbers, and those below zero have the largest of all when they have no sign. */
    i64 largest = 0;
    u64 least = SIGN_BIT;
    for (u32 k = 0; k < count; ++k) {
        i64 bits = (i64)BITS(terms[k]);
        largest = LARGER(largest, bits);
        least = LARGER(least, (u64)bits);
    }
    if (BITS_ARE_FINITE((u64)largest) && BITS_ARE_FINITE(least)) {
        sum.index = unit_for(least, unit_for((u64)largest, LEAST));
        if (FAST(sum.index)) {
            REAL first = FIRST(sum.index), second = SECOND(sum.index);
            u64 high = 0, low = 0;
            for (u32 k = 0; k < count; ++k) {
                REAL with = SUM_OF(terms[k], first), rest = SUM_OF(terms[k], -SUM_OF(with, -first));
                high += BITS(with);
                low += BITS(SUM_OF(rest, second));
            }
            sum.high = (i64)(high - count * BITS(first));
            sum.low = (i64)(low - count * BITS(second));
            return sum;
        }
    }
#endif
    for (u32 k = 0; k < count; ++k) add_term(&sum, terms[k]);
    return sum;
}

#define STORE_BINS(out, at, index, flags, high, low) \
    { \
        u64 place = BIN_WORDS * (at); \
        AT(out, place) = (u64)((index) - LEAST) << 8 | (flags); \
        AT(out, place + 1) = (u64)(high); \
        AT(out, place + 2) = (u64)((high) >> 63); \
        AT(out, place + 3) = (u64)(low); \
        AT(out, place + 4) = (u64)((low) >> 63); \
    }
#endif

#if defined(__OPENCL_VERSION__) && !EXACT
#pragma OPENCL FP_CONTRACT ON
#endif
