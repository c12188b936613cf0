/* The part of mkl_potrf.c that is the same in both precisions: included with NUMBER, a type; NAME(x), x with a word of that type; POTRF, TRSV, COMPACT(x),
 * MKL's functions; and BOUND, by which answers may differ. */

/* A system, or as many as there are lanes: whole, or from the diagonal down, column by column. */
static void NAME(take)(NUMBER *to, const NUMBER *from, int lanes, int lower) {
    if (!lower) {
        memcpy(to, from, square * lanes * sizeof(NUMBER));
        return;
    }
    for (size_t j = 0; j < (size_t)m; j++) {
        size_t at = j * (m + 1) * lanes;
        memcpy(to + at, from + at, (m - j) * lanes * sizeof(NUMBER));
    }
}

static void NAME(factor)(NUMBER *work) {
    int info = 0;
    POTRF("L", &m, work, &m, &info);
    if (info) fail("potrf: a pivot is not positive");
}

static void NAME(factor_compact)(NUMBER *work, int lanes) {
    int info = 0;
    COMPACT(potrf)(MKL_COL_MAJOR, MKL_LOWER, m, work, m, &info, format, lanes);
    if (info) fail("potrf_compact: a pivot is not positive");
}

/* The largest difference of the last row of the inverse of L, relative to its largest entry. */
static double NAME(difference)(const NUMBER *l, const NUMBER *expected, NUMBER *g) {
    memset(g, 0, m * sizeof(NUMBER));
    g[m - 1] = 1;
    TRSV(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, m, l, m, g, 1);
    double largest = 0, size = 0;
    for (int i = 0; i < m; i++) {
        double apart = fabs((double)g[i] - (double)expected[i]);
        if (!(apart <= largest)) largest = apart;
        size = fmax(size, fabs((double)expected[i]));
    }
    return largest / size;
}

/* Seconds of all systems; with lanes, the last registers are full. */
static double NAME(seconds)(const NUMBER *systems, NUMBER *work, int lanes, int lower) {
    double start = now();
    for (int s = 0; s < count; s += lanes) {
        NAME(take)(work, systems + (size_t)(s % pool) * square, lanes, lower);
        if (lanes == 1) NAME(factor)(work);
        else NAME(factor_compact)(work, lanes);
    }
    return now() - start;
}

/* Factors systems s, s + 1, … in both ways and packs them; the largest difference. */
static double NAME(check)(NUMBER *systems, NUMBER *pack, const NUMBER *expected, NUMBER *work, int lanes) {
    NUMBER *g = room(m * sizeof(NUMBER)), *unpacked = room(square * lanes * sizeof(NUMBER)), *each[16];
    double largest = 0;
    for (int l = 0; l < lanes; l++) {
        each[l] = systems + l * square;
        NAME(take)(work, each[l], 1, 1);
        NAME(factor)(work);
        double apart = NAME(difference)(work, expected + (size_t)l * m, g);
        if (!(apart <= largest)) largest = apart;
    }
    COMPACT(gepack)(MKL_COL_MAJOR, m, m, (const NUMBER *const *)each, m, pack, m, format, lanes);
    NAME(take)(work, pack, lanes, 1);
    NAME(factor_compact)(work, lanes);
    for (int l = 0; l < lanes; l++) each[l] = unpacked + l * square;
    COMPACT(geunpack)(MKL_COL_MAJOR, m, m, each, m, work, m, format, lanes);
    for (int l = 0; l < lanes; l++) {
        double apart = NAME(difference)(each[l], expected + (size_t)l * m, g);
        if (!(apart <= largest)) largest = apart;
    }
    free(g);
    free(unpacked);
    return largest;
}

static void NAME(run)(FILE *f) {
    size_t all = (size_t)pool * square, rows = (size_t)pool * m;
    NUMBER *systems = room(all * sizeof(NUMBER)), *packs = room(all * sizeof(NUMBER)), *expected = room(rows * sizeof(NUMBER));
    read_exactly(f, systems, sizeof(NUMBER), all);
    read_exactly(f, expected, sizeof(NUMBER), rows);
    int lanes = register_bytes() / (int)sizeof(NUMBER);
    if (pool % lanes) fail("the number of systems is no multiple of the lanes");
    NUMBER *work = room(square * lanes * sizeof(NUMBER));
    double largest = 0;
    for (int s = 0; s < pool; s += lanes) {
        size_t at = (size_t)s * square;
        double apart = NAME(check)(systems + at, packs + at, expected + (size_t)s * m, work, lanes);
        if (!(apart <= largest)) largest = apart;
    }
    if (!(largest < BOUND)) {
        fprintf(stderr, "other numbers: %g\n", largest);
        exit(1);
    }
    double potrf[2], compact[2];
    for (int lower = 0; lower < 2; lower++) {
        potrf[lower] = NAME(seconds)(systems, work, 1, lower);
        compact[lower] = NAME(seconds)(packs, work, lanes, lower);
    }
    print_number("difference", largest, ",");
    print_number("potrf", fmin(potrf[0], potrf[1]), ",");
    print_number("compact", fmin(compact[0], compact[1]), "}\n");
}
