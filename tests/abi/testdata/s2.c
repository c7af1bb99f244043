/* A host of supraseal-c2's face: proves tiny circuits from explicit assignments, through sealc2_s2_* and both shims.
 *
 *   s2 LIBRARY SHIM CUZK-SHIM CASE CIRCUIT PARAMS [SECOND CIRCUIT] [SECOND PARAMS]
 *
 * CIRCUIT is a dump by s2_test.go: counts, densities as words, vectors and r and s in Montgomery form, the proof as
 * affine points with r and s, and with zeros. Exit code 0 means that every check held. Also compiled with
 * AddressSanitizer, so all memory given to the library is a block of its own and freed as early as the header says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sealc2.h"
#include "sealc2_s2.h"

#define FUNCTIONS(F)                                                                                            \
    F(sealc2_s2_srs_open) F(sealc2_s2_srs_evict) F(sealc2_s2_srs_drop) F(sealc2_s2_srs_clone) F(sealc2_s2_prove) \
    F(sealc2_s2_start) F(sealc2_s2_finish) F(sealc2_s2_abandon) F(sealc2_s2_exclusion)                          \
    F(sealc2_s2_exclusion_release) F(sealc2_shutdown) F(sealc2_open) F(sealc2_prove_assignments) F(sealc2_close)

static struct {
#define F(name) __typeof__(&name) name;
    FUNCTIONS(F)
#undef F
} lib;

static int failures;

__attribute__((format(printf, 2, 3))) static int check(int ok, const char *format, ...) {
    if (!ok) {
        char line[4096];
        va_list args;
        va_start(args, format);
        vsnprintf(line, sizeof line, format, args);
        va_end(args);
        fprintf(stderr, "FAIL: %s\n", line);
        __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    }
    return ok;
}

/* Wants a code, and for a failure a text that has all of the parts; frees the text. */
static void expect(const char *what, sealc2_s2_error err, int32_t want, const char *part) {
    check(err.code == want, "%s: want code %d, got %d: %s", what, want, err.code, err.message ? err.message : "no text");
    check((err.code == 0) == (err.message == NULL), "%s: code %d, text %s", what, err.code, err.message ? err.message : "missing");
    if (part != NULL && err.message != NULL)
        check(strstr(err.message, part) != NULL, "%s: want \"%s\" in: %s", what, part, err.message);
    free(err.message);
}

typedef struct {
    size_t inp_len, aux_len, rows;
    sealc2_s2_density a_aux, b_inp, b_aux;
    sealc2_s2_fr *a, *b, *c, *inp, *aux;
    sealc2_s2_fr r, s;
    sealc2_s2_proof proof, bare;
} circuit;

static FILE *in;

static void *get(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    if (fread(block, 1, bytes, in) != bytes) {
        fprintf(stderr, "the dump is too short\n");
        exit(1);
    }
    return block;
}

static void get_into(void *to, size_t bytes) {
    void *block = get(bytes);
    memcpy(to, block, bytes);
    free(block);
}

static sealc2_s2_density get_density(size_t bits) {
    sealc2_s2_density out = {.bits = bits};
    get_into(&out.ones, 8);
    out.words = get((bits + 63) / 64 * 8);
    return out;
}

static circuit load_circuit(const char *path) {
    circuit c = {0};
    in = fopen(path, "rb");
    if (in == NULL) {
        perror(path);
        exit(1);
    }
    get_into(&c.inp_len, 8);
    get_into(&c.aux_len, 8);
    get_into(&c.rows, 8);
    c.a_aux = get_density(c.aux_len);
    c.b_inp = get_density(c.inp_len);
    c.b_aux = get_density(c.aux_len);
    c.a = get(c.rows * 32);
    c.b = get(c.rows * 32);
    c.c = get(c.rows * 32);
    c.inp = get(c.inp_len * 32);
    c.aux = get(c.aux_len * 32);
    get_into(&c.r, 32);
    get_into(&c.s, 32);
    get_into(&c.proof, sizeof c.proof);
    get_into(&c.bare, sizeof c.bare);
    fclose(in);
    return c;
}

static void free_rows(circuit *c) {
    sealc2_s2_fr **rows[] = {&c->a, &c->b, &c->c};
    for (int i = 0; i < 3; i++) {
        if (*rows[i] != NULL)
            memset(*rows[i], 0xA5, c->rows * 32);
        free(*rows[i]);
        *rows[i] = NULL;
    }
}

static void free_rest(circuit *c) {
    free(c->inp);
    free(c->aux);
    free((void *)c->a_aux.words);
    free((void *)c->b_inp.words);
    free((void *)c->b_aux.words);
}

static void free_circuit(circuit *c) {
    free_rows(c);
    free_rest(c);
}

static sealc2_s2_prover prover_of(const circuit *c) {
    return (sealc2_s2_prover){.a_aux = c->a_aux, .b_inp = c->b_inp, .b_aux = c->b_aux, .a = c->a, .b = c->b, .c = c->c,
                              .abc_len = c->rows, .inp = c->inp, .inp_len = c->inp_len, .aux = c->aux, .aux_len = c->aux_len};
}

/* n circuits, poisoned room for their proofs. */
typedef struct {
    size_t n;
    sealc2_s2_prover *provers;
    sealc2_s2_fr *r, *s;
    sealc2_s2_proof *out;
} batch;

static batch batch_of(const circuit *c, size_t n) {
    batch b = {.n = n, .provers = calloc(n + !n, sizeof *b.provers), .r = calloc(n + !n, 32), .s = calloc(n + !n, 32),
               .out = malloc((n + !n) * sizeof *b.out)};
    for (size_t i = 0; i < n; i++) {
        b.provers[i] = prover_of(c);
        b.r[i] = c->r;
        b.s[i] = c->s;
    }
    memset(b.out, 0xA5, (n + !n) * sizeof *b.out);
    return b;
}

static void free_batch(batch *b) {
    free(b->provers);
    free(b->r);
    free(b->s);
    free(b->out);
}

static void same_proofs(const char *what, const batch *b, const sealc2_s2_proof *want) {
    for (size_t i = 0; i < b->n; i++)
        if (!check(memcmp(&b->out[i], want, sizeof *want) == 0, "%s: proof %zu of %zu differs", what, i, b->n))
            return;
}

static void untouched(const char *what, const batch *b) {
    const uint8_t *bytes = (const uint8_t *)b->out;
    for (size_t i = 0; i < b->n * sizeof *b->out; i++)
        if (!check(bytes[i] == 0xA5, "%s: byte %zu of the output was written", what, i))
            return;
}

static sealc2_s2_srs open_srs(const char *path, bool cache) {
    sealc2_s2_srs srs = {(void *)0xA5A5};
    expect("open", lib.sealc2_s2_srs_open(&srs, path, cache), 0, NULL);
    check(srs.p != NULL, "open: an empty handle");
    return srs;
}

static sealc2_s2_error prove(const batch *b, const sealc2_s2_srs *srs) {
    return lib.sealc2_s2_prove(b->provers, b->n, b->r, b->s, b->out, srs, -1, NULL);
}

static void prove_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, false);
    static const size_t counts[] = {0, 1, 10, 16, 126};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        if (c.rows > 20 && counts[k] > 1)
            break;
        batch b = batch_of(&c, counts[k]);
        expect("prove", prove(&b, &srs), 0, NULL);
        same_proofs("prove", &b, &c.proof);
        if (counts[k] == 0)
            untouched("no circuits", &(batch){.n = 1, .out = b.out});
        if (counts[k] == 1) {
            memset(b.r, 0, 32);
            memset(b.s, 0, 32);
            expect("r = s = 0", lib.sealc2_s2_prove(b.provers, 1, b.r, b.s, b.out, &srs, 0, NULL), 0, NULL);
            same_proofs("r = s = 0", &b, &c.bare);
        }
        free_batch(&b);
    }
    expect("no circuits, nothing else", lib.sealc2_s2_prove(NULL, 0, NULL, NULL, NULL, NULL, 7, NULL), 0, NULL);
    lib.sealc2_s2_srs_drop(&srs);
    free_circuit(&c);
}

/* An engine of sealc2.h proves under every policy, with its workers and with others. */
static void policies_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    batch b = batch_of(&c, 3);
    static const char *const policies[] = {NULL, "", "reservation", "single", "two-lock", "split"};
    for (size_t i = 0; i < 2 * sizeof policies / sizeof policies[0]; i++) {
        char text[1024] = "";
        sealc2_error err = {.size = sizeof err, .text = text, .text_cap = sizeof text};
        sealc2_config config = {.size = sizeof config, .device = "cpu", .policy = policies[i / 2], .device_workers = i % 2, .partition_workers = 3 * (i % 2)};
        sealc2_engine engine = 0;
        uint8_t proofs[3 * SEALC2_PROOF_BYTES];
        size_t len = 0;
        check(lib.sealc2_open(&config, &engine, &err) == SEALC2_OK, "open under %s: %s", config.policy, text);
        sealc2_assignments_request request = {.size = sizeof request, .params = params, .circuits = b.provers, .count = b.n, .dev_params = SEALC2_DEV_PARAMS_ALLOW};
        sealc2_status status = lib.sealc2_prove_assignments(engine, &request, proofs, sizeof proofs, &len, &err);
        check(status == SEALC2_OK && len == sizeof proofs, "under %s: status %d, %zu bytes: %s", config.policy, status, len, text);
        check(lib.sealc2_close(engine, &err) == SEALC2_OK, "close: %s", text);
    }
    free_batch(&b);
    free_circuit(&c);
}

/* Every mismatch is EINVAL (or another code by value) with numbers, nothing is written, and the next call works. */
static void mismatch_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, true), empty = {NULL}, invented = {(void *)0x12345};
    batch b = batch_of(&c, 2);
    sealc2_s2_prover good = b.provers[1], *p = &b.provers[1];
    static sealc2_s2_fr numbers[4096];
    static uint64_t words[128];
#define MISMATCH(change, code, part)              \
    do {                                          \
        change;                                   \
        expect(#change, prove(&b, &srs), code, part); \
        untouched(#change, &b);                   \
        *p = good;                                \
    } while (0)
    MISMATCH(p->a = NULL, EINVAL, "provers[1].a: want a pointer, got NULL");
    MISMATCH(p->b = NULL, EINVAL, "provers[1].b");
    MISMATCH(p->c = NULL, EINVAL, "provers[1].c");
    MISMATCH(p->inp = NULL, EINVAL, "provers[1].inp");
    MISMATCH(p->aux = NULL, EINVAL, "provers[1].aux");
    MISMATCH(p->a_aux.words = NULL, EINVAL, "provers[1].a_aux.words");
    MISMATCH(p->b_inp.words = NULL, EINVAL, "provers[1].b_inp.words");
    MISMATCH(p->b_aux.words = NULL, EINVAL, "provers[1].b_aux.words");
    MISMATCH(p->a = (const sealc2_s2_fr *)((const char *)p->a + 4), EINVAL, "multiple of 8");
    MISMATCH(p->a_aux.ones--, EINVAL, "provers[1].a_aux.ones: want");
    MISMATCH(p->b_inp.ones++, EINVAL, "provers[1].b_inp.ones: want");
    MISMATCH(p->b_aux.ones = ~(size_t)0, EINVAL, "18446744073709551615");
    MISMATCH(p->a_aux.bits--, EINVAL, "provers[1].a_aux.bits: want aux_len");
    MISMATCH(p->b_inp.bits = 0, EINVAL, "provers[1].b_inp.bits: want inp_len");
    MISMATCH(p->abc_len--; p->abc_len /= 2, EINVAL, "rows");
    MISMATCH(p->abc_len = 4096; p->a = p->b = p->c = numbers, EINVAL, "rows: want more than");
    MISMATCH(p->abc_len = 0, EINVAL, "rows");
    MISMATCH(p->abc_len = ~(size_t)0, EINVAL, "at most");
    MISMATCH(p->aux_len = 4096; p->aux = numbers; p->a_aux = p->b_aux = ((sealc2_s2_density){words, 4096, 0}), EINVAL, "points");
    MISMATCH(p->inp_len = 0; p->b_inp = ((sealc2_s2_density){NULL, 0, 0}), EINVAL, "input 0");
    MISMATCH(p->inp = numbers, EINVAL, "input 0");
#undef MISMATCH

#define REFUSED(code, part, ...)                                        \
    do {                                                                \
        expect(#__VA_ARGS__, lib.sealc2_s2_prove(__VA_ARGS__), code, part); \
        untouched(#__VA_ARGS__, &b);                                    \
    } while (0)
    REFUSED(EINVAL, "provers", NULL, 2, b.r, b.s, b.out, &srs, -1, NULL);
    REFUSED(EINVAL, "r: want a pointer", b.provers, 2, NULL, b.s, b.out, &srs, -1, NULL);
    REFUSED(EINVAL, "s: want a pointer", b.provers, 2, b.r, NULL, b.out, &srs, -1, NULL);
    REFUSED(EINVAL, "out: want a pointer", b.provers, 2, b.r, b.s, NULL, &srs, -1, NULL);
    REFUSED(EINVAL, "srs", b.provers, 2, b.r, b.s, b.out, NULL, -1, NULL);
    REFUSED(EINVAL, "srs", b.provers, 2, b.r, b.s, b.out, &empty, -1, NULL);
    REFUSED(EINVAL, "srs", b.provers, 2, b.r, b.s, b.out, &invented, -1, NULL);
    REFUSED(EINVAL, "exclusion", b.provers, 2, b.r, b.s, b.out, &srs, -1, (void *)0x77);
    REFUSED(ENODEV, "device", b.provers, 2, b.r, b.s, b.out, &srs, 1, NULL);
    REFUSED(ENODEV, "device", b.provers, 2, b.r, b.s, b.out, &srs, -2, NULL);
    REFUSED(EINVAL, "at most", b.provers, ~(size_t)0, b.r, b.s, b.out, &srs, -1, NULL);
    memset(&b.r[1], 0xFF, 32);
    REFUSED(EINVAL, "r[1]: want a number below", b.provers, 2, b.r, b.s, b.out, &srs, -1, NULL);
    b.r[1] = c.r;

    /* Rows: the second circuit's do not hold, then the first's. */
    sealc2_s2_fr *own = malloc(c.rows * 32);
    for (int which = 1; which >= 0; which--) {
        memcpy(own, c.c, c.rows * 32);
        own[3].l[0] ^= 1;
        b.provers[which].c = own;
        expect("a row that does not hold", prove(&b, &srs), EINVAL, "row 3 of");
        untouched("a row that does not hold", &b);
        b.provers[which].c = c.c;
    }
    free(own);
    /* Rows that hold, of another witness. */
    own = malloc(c.aux_len * 32);
    memcpy(own, c.aux, c.aux_len * 32);
    own[0] = c.r;
    p->aux = own;
    expect("another witness", prove(&b, &srs), EIO, "does not verify");
    untouched("another witness", &b);
    *p = good;
    free(own);

    expect("afterwards", prove(&b, &srs), 0, NULL);
    same_proofs("afterwards", &b, &c.proof);
    sealc2_s2_srs stale = srs;
    lib.sealc2_s2_srs_drop(&srs);
    check(srs.p == NULL, "drop does not empty the handle");
    lib.sealc2_s2_srs_drop(&srs);
    lib.sealc2_s2_srs_drop(&stale);
    lib.sealc2_s2_srs_drop(NULL);
    lib.sealc2_s2_srs_drop(&invented);
    lib.sealc2_s2_srs_evict(NULL);
    lib.sealc2_s2_srs_evict(&empty);
    check(lib.sealc2_s2_srs_clone(NULL).p == NULL && lib.sealc2_s2_srs_clone(&empty).p == NULL &&
              lib.sealc2_s2_srs_clone(&(sealc2_s2_srs){(void *)0x5151}).p == NULL,
          "a clone of nothing");
    free_batch(&b);
    free_circuit(&c);
}

static void open_case(const char *params) {
    sealc2_s2_srs srs = {(void *)0xA5A5};
    expect("missing", lib.sealc2_s2_srs_open(&srs, "/nowhere/x.params", true), ENOENT, "/nowhere/x.params");
    check(srs.p == NULL, "a failed open leaves a handle");
    expect("empty path", lib.sealc2_s2_srs_open(&srs, "", true), ENOENT, NULL);
    expect("a folder", lib.sealc2_s2_srs_open(&srs, "/tmp", false), EINVAL, "directory");
    expect("no parameters", lib.sealc2_s2_srs_open(&srs, "/proc/self/exe", false), EINVAL, NULL);
    expect("no out", lib.sealc2_s2_srs_open(NULL, params, false), EINVAL, "out");
    expect("no path", lib.sealc2_s2_srs_open(&srs, NULL, false), EINVAL, "path");
    unsetenv("SEALC2_ALLOW_DEV_PARAMS");
    expect("without leave", lib.sealc2_s2_srs_open(&srs, params, false), EINVAL, "SEALC2_ALLOW_DEV_PARAMS=1");
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    srs = open_srs(params, false);
    lib.sealc2_s2_srs_drop(&srs);
}

/* Open descriptors that lead to a file. */
static int descriptors(const char *params) {
    char *real = realpath(params, NULL), link[64], target[4096];
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n > 0) {
            target[n] = 0;
            count += strcmp(target, real) == 0;
        }
    }
    free(real);
    return count;
}

/* References, the list of the last used, and shutdown. */
static void references_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    batch b = batch_of(&c, 1);
    sealc2_s2_srs first = open_srs(params, true), second = open_srs(params, true);
    check(descriptors(params) == 1, "two references to one file: %d descriptors", descriptors(params));
    sealc2_s2_srs third = lib.sealc2_s2_srs_clone(&first);
    check(third.p != NULL && third.p != first.p && second.p != first.p, "references have names of their own");
    lib.sealc2_s2_srs_evict(&first);
    lib.sealc2_s2_srs_evict(&first);
    lib.sealc2_s2_srs_drop(&first);
    lib.sealc2_s2_srs_drop(&second);
    expect("the clone", prove(&b, &third), 0, NULL);
    same_proofs("the clone", &b, &c.proof);
    expect("shutdown", (sealc2_s2_error){.code = lib.sealc2_shutdown(NULL)}, 0, NULL);
    memset(b.out, 0xA5, sizeof *b.out);
    expect("after shutdown", prove(&b, &third), 0, NULL);
    same_proofs("after shutdown", &b, &c.proof);
    lib.sealc2_s2_srs_drop(&third);
    lib.sealc2_shutdown(NULL);
    check(descriptors(params) == 0, "%d descriptors are left of a file that nobody uses", descriptors(params));
    free_batch(&b);
    free_circuit(&c);
}

/* start and finish: memory goes as early as the header allows; abandoned work in each state. */
static void split_case(const char *path, const char *params) {
    for (int n = 0; n < 4; n++) {
        circuit c = load_circuit(path);
        sealc2_s2_proof want = c.proof;
        sealc2_s2_srs srs = open_srs(params, false);
        void *token = n % 2 ? lib.sealc2_s2_exclusion() : NULL, *pending = (void *)0xA5A5;
        batch b = batch_of(&c, (size_t)n);
        expect("start", lib.sealc2_s2_start(b.provers, b.n, b.r, b.s, &srs, -1, token, &pending), 0, NULL);
        check(pending != NULL, "start: no handle");
        free_rows(&c);
        memset(b.provers, 0xA5, b.n * sizeof *b.provers);
        memset(b.r, 0xA5, b.n * 32);
        memset(b.s, 0xA5, b.n * 32);
        lib.sealc2_s2_srs_drop(&srs);
        lib.sealc2_s2_exclusion_release(token);
        lib.sealc2_s2_exclusion_release(token);
        expect("finish", lib.sealc2_s2_finish(pending, n ? b.out : NULL), 0, NULL);
        free_rest(&c);
        same_proofs("finish", &b, &want);
        expect("spent", lib.sealc2_s2_finish(pending, b.out), EINVAL, "pending");
        lib.sealc2_s2_abandon(pending);
        free_batch(&b);
    }
    /* Abandoned at once, under way, when it is done, when it has failed, after a shutdown, without circuits; and finished
     * into nothing. */
    enum { AT_ONCE, UNDER_WAY, DONE, FAILED, SHUT_DOWN, NO_CIRCUITS, INTO_NOTHING, STATES };
    for (int state = 0; state < STATES; state++) {
        circuit c = load_circuit(path);
        sealc2_s2_srs srs = open_srs(params, false);
        void *pending = NULL;
        batch b = batch_of(&c, state == NO_CIRCUITS ? 0 : state == FAILED ? 1 : 2);
        if (state == FAILED)
            c.aux[0] = c.r; /* rows that hold, of another witness */
        expect("start", lib.sealc2_s2_start(b.provers, b.n, b.r, b.s, &srs, 0, NULL, &pending), 0, NULL);
        free_rows(&c);
        if (state == UNDER_WAY)
            usleep(20000);
        if (state == DONE || state == FAILED)
            usleep(500000);
        if (state == SHUT_DOWN)
            expect("shutdown", (sealc2_s2_error){.code = lib.sealc2_shutdown(NULL)}, 0, NULL);
        if (state == INTO_NOTHING) {
            expect("finish into nothing", lib.sealc2_s2_finish(pending, NULL), EINVAL, "out");
        } else {
            lib.sealc2_s2_abandon(pending);
            lib.sealc2_s2_abandon(pending);
        }
        free_rest(&c);
        lib.sealc2_s2_srs_drop(&srs);
        untouched("abandoned", &b);
        free_batch(&b);
    }
    circuit c = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, false);
    batch b = batch_of(&c, 1);
    void *pending = (void *)0xA5A5;
    c.c[2].l[1] ^= 1;
    expect("a row that does not hold", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, &pending), EINVAL, "row 2 of");
    check(pending == NULL, "a failed start leaves a handle");
    c.c[2].l[1] ^= 1;
    expect("no handle", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, NULL), EINVAL, "pending");
    lib.sealc2_s2_abandon(NULL);
    /* A proof that does not verify is known at finish only. */
    sealc2_s2_fr kept = c.aux[0];
    c.aux[0] = c.r;
    expect("another witness", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, &pending), 0, NULL);
    expect("another witness", lib.sealc2_s2_finish(pending, b.out), EIO, "does not verify");
    untouched("another witness", &b);
    c.aux[0] = kept;
    /* Shutdown ends what was started; the handle still has to be spent. */
    expect("start", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, &pending), 0, NULL);
    lib.sealc2_shutdown(NULL);
    sealc2_s2_error after = lib.sealc2_s2_finish(pending, b.out);
    check(after.code == 0 || after.code == ECANCELED, "finish after shutdown: %d %s", after.code, after.message ? after.message : "");
    free(after.message);
    lib.sealc2_s2_srs_drop(&srs);
    free_batch(&b);
    free_circuit(&c);
}

/* Memory that is lent: read-only, ending `shift` bytes before a page that nobody may touch, and taken away later. */
typedef struct {
    uint8_t *base;
    size_t bytes;
} lent;

static lent pages[64];
static int lent_count;

static void *lend(const void *from, size_t bytes, size_t shift) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + shift + page) / page * page;
    uint8_t *base = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || lent_count == sizeof pages / sizeof pages[0]) {
        perror("lend");
        exit(1);
    }
    uint8_t *out = base + whole - shift - bytes;
    memcpy(out, from, bytes);
    mprotect(base, whole, PROT_READ);
    mprotect(base + whole, page, PROT_NONE);
    pages[lent_count++] = (lent){base, whole};
    return out;
}

/* From now on whoever reads any of it ends the process. */
static void take_back(void) {
    while (lent_count > 0) {
        lent *one = &pages[--lent_count];
        mprotect(one->base, one->bytes, PROT_NONE);
    }
}

/* The circuit with vectors and densities in lent memory; rows only, or all but the rows. */
static circuit lend_circuit(const circuit *c, int rows, size_t shift) {
    circuit out = *c;
    if (rows) {
        out.a = lend(c->a, c->rows * 32, shift);
        out.b = lend(c->b, c->rows * 32, shift);
        out.c = lend(c->c, c->rows * 32, shift);
        return out;
    }
    out.inp = lend(c->inp, c->inp_len * 32, shift);
    out.aux = lend(c->aux, c->aux_len * 32, shift);
    out.a_aux.words = lend(c->a_aux.words, (c->aux_len + 63) / 64 * 8, 0);
    out.b_inp.words = lend(c->b_inp.words, (c->inp_len + 63) / 64 * 8, 0);
    out.b_aux.words = lend(c->b_aux.words, (c->aux_len + 63) / 64 * 8, 0);
    return out;
}

/* Nothing is read behind its end, nothing is written, and nothing is looked at after the call that it was lent for,
 * whether that succeeds or not. Addresses are multiples of 8, and of nothing larger. */
static void lent_case(const char *path, const char *params) {
    circuit own = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, false);
    for (size_t shift = 0; shift <= 24; shift += 8) {
        for (int bad = 0; bad < 2; bad++) {
            own.c[1].l[0] ^= (uint64_t)bad;
            circuit rest = lend_circuit(&own, 0, shift), c = lend_circuit(&rest, 1, shift);
            batch b = batch_of(&c, 2);
            sealc2_s2_prover *provers = lend(b.provers, 2 * sizeof *b.provers, shift);
            sealc2_s2_fr *r = lend(b.r, 64, shift), *s = lend(b.s, 64, shift);
            sealc2_s2_error err = lib.sealc2_s2_prove(provers, 2, r, s, b.out, &srs, -1, NULL);
            take_back();
            expect("lent", err, bad ? EINVAL : 0, bad ? "row 1 of" : NULL);
            if (bad)
                untouched("lent", &b);
            else
                same_proofs("lent", &b, &own.proof);
            free_batch(&b);

            rest = lend_circuit(&own, 0, shift);
            lent later[8];
            int count = lent_count;
            memcpy(later, pages, sizeof later);
            lent_count = 0;
            c = lend_circuit(&rest, 1, shift);
            b = batch_of(&c, 2);
            void *pending = NULL;
            err = lib.sealc2_s2_start(lend(b.provers, 2 * sizeof *b.provers, shift), 2, lend(b.r, 64, shift),
                                      lend(b.s, 64, shift), &srs, -1, NULL, &pending);
            take_back();
            expect("lent to start", err, bad ? EINVAL : 0, bad ? "row 1 of" : NULL);
            err = bad ? (sealc2_s2_error){0, NULL} : lib.sealc2_s2_finish(pending, b.out);
            memcpy(pages, later, sizeof later);
            lent_count = count;
            take_back();
            expect("lent until finish", err, 0, NULL);
            if (!bad)
                same_proofs("lent until finish", &b, &own.proof);
            free_batch(&b);
            own.c[1].l[0] ^= (uint64_t)bad;
        }
    }
    batch b = batch_of(&own, 1);
    expect("afterwards", prove(&b, &srs), 0, NULL);
    same_proofs("afterwards", &b, &own.proof);
    lib.sealc2_s2_srs_drop(&srs);
    lib.sealc2_shutdown(NULL);
    free_batch(&b);
    free_circuit(&own);
}

/* On a machine with less memory than the proof takes. */
static void no_memory_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, false);
    batch b = batch_of(&c, 1);
    void *pending = (void *)0xA5A5;
    for (int round = 0; round < 2; round++) {
        expect("prove", prove(&b, &srs), ENOMEM, "bytes");
        untouched("prove", &b);
        expect("start", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, &pending), ENOMEM, "(the budget), got");
        check(pending == NULL, "a failed start leaves a handle");
    }
    lib.sealc2_s2_srs_drop(&srs);
    free_batch(&b);
    free_circuit(&c);
}

typedef struct {
    const char *path, *params;
    const circuit *c;
    void *token;
    int number;
} worker;

static void *work(void *argument) {
    const worker *w = argument;
    for (int round = 0; round < 2; round++) {
        sealc2_s2_srs srs = open_srs(w->params, (w->number + round) % 2 == 0), copy = lib.sealc2_s2_srs_clone(&srs);
        batch b = batch_of(w->c, (size_t)(w->number % 3 + 1));
        if (w->number % 4 == 3) {
            void *pending = NULL;
            expect("start", lib.sealc2_s2_start(b.provers, b.n, b.r, b.s, &srs, -1, w->token, &pending), 0, NULL);
            lib.sealc2_s2_srs_drop(&srs);
            if (round == 1) {
                lib.sealc2_s2_abandon(pending);
            } else {
                expect("finish", lib.sealc2_s2_finish(pending, b.out), 0, NULL);
                same_proofs("threads, split", &b, &w->c->proof);
            }
        } else {
            expect("prove", lib.sealc2_s2_prove(b.provers, b.n, b.r, b.s, b.out, &copy, -1, w->token), 0, NULL);
            same_proofs("threads", &b, &w->c->proof);
        }
        lib.sealc2_s2_srs_evict(&copy);
        lib.sealc2_s2_srs_drop(&copy);
        lib.sealc2_s2_srs_drop(&srs);
        free_batch(&b);
    }
    return NULL;
}

/* 32 threads with 64 KiB of stack: two circuits, open, clone, evict, prove, start, drop at the same time. */
static void threads_case(char **args) {
    circuit c[2] = {load_circuit(args[0]), load_circuit(args[2])};
    void *token = lib.sealc2_s2_exclusion();
    pthread_t threads[32];
    worker workers[32];
    pthread_attr_t small;
    pthread_attr_init(&small);
#ifndef __SANITIZE_ADDRESS__ /* whose own frames are larger */
    pthread_attr_setstacksize(&small, 64 << 10);
#endif
    for (int i = 0; i < 32; i++) {
        workers[i] = (worker){args[i % 2 * 2], args[i % 2 * 2 + 1], &c[i % 2], i % 5 == 0 ? token : NULL, i};
        check(pthread_create(&threads[i], &small, work, &workers[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < 32; i++)
        pthread_join(threads[i], NULL);
    lib.sealc2_s2_exclusion_release(token);
    lib.sealc2_shutdown(NULL);
    for (int i = 0; i < 2; i++) {
        check(descriptors(args[i * 2 + 1]) == 0, "descriptors are left");
        free_circuit(&c[i]);
    }
}

/* A child after fork gets errors and no hang. */
static void fork_case(const char *path, const char *params) {
    circuit c = load_circuit(path);
    sealc2_s2_srs srs = open_srs(params, false);
    batch b = batch_of(&c, 1);
    void *pending = NULL, *token = lib.sealc2_s2_exclusion();
    expect("start", lib.sealc2_s2_start(b.provers, 1, b.r, b.s, &srs, -1, NULL, &pending), 0, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        failures = 0;
        sealc2_s2_srs other = {NULL};
        expect("open", lib.sealc2_s2_srs_open(&other, params, false), EPERM, "fork");
        expect("prove", prove(&b, &srs), EPERM, "fork");
        expect("finish", lib.sealc2_s2_finish(pending, b.out), EPERM, "fork");
        check(lib.sealc2_s2_srs_clone(&srs).p == NULL && lib.sealc2_s2_exclusion() == NULL, "a handle in a child");
        lib.sealc2_s2_abandon(pending);
        lib.sealc2_s2_exclusion_release(token);
        lib.sealc2_s2_srs_evict(&srs);
        lib.sealc2_s2_srs_drop(&srs);
        _exit(failures != 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status);
    expect("finish", lib.sealc2_s2_finish(pending, b.out), 0, NULL);
    same_proofs("finish", &b, &c.proof);
    lib.sealc2_s2_exclusion_release(token);
    lib.sealc2_s2_srs_drop(&srs);
    free_batch(&b);
    free_circuit(&c);
}

/* The raw names of both shims, in one process, as different callers would have them. */
typedef struct {
    sealc2_s2_error (*create)(sealc2_s2_srs *, const char *, bool);
    void (*evict)(const sealc2_s2_srs *);
    void (*drop)(sealc2_s2_srs *);
    sealc2_s2_srs (*clone)(const sealc2_s2_srs *);
    void (*drop_error)(char *);
} raw;

static void *symbol(void *handle, const char *name) {
    void *at = dlsym(handle, name);
    if (!check(at != NULL, "no symbol %s", name))
        exit(1);
    return at;
}

static void *load_raw(const char *path, raw *out) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!check(handle != NULL, "dlopen: %s", handle ? "" : dlerror()))
        exit(1);
    *(void **)&out->create = symbol(handle, "create_SRS");
    *(void **)&out->evict = symbol(handle, "evict_SRS");
    *(void **)&out->drop = symbol(handle, "drop_SRS");
    *(void **)&out->clone = symbol(handle, "clone_SRS");
    *(void **)&out->drop_error = symbol(handle, "drop_error_message");
    return handle;
}

static void raw_case(const char *shim, const char *cuzk, const char *path, const char *params) {
    circuit c = load_circuit(path);
    batch b = batch_of(&c, 2);
    raw one, two;
    sealc2_s2_error (*prove6)(const sealc2_s2_prover *, size_t, const sealc2_s2_fr *, const sealc2_s2_fr *, sealc2_s2_proof *,
                              const sealc2_s2_srs *);
    sealc2_s2_error (*prove8)(const sealc2_s2_prover *, size_t, const sealc2_s2_fr *, const sealc2_s2_fr *, sealc2_s2_proof *,
                              const sealc2_s2_srs *, void *, int32_t);
    sealc2_s2_error (*start)(const sealc2_s2_prover *, size_t, const sealc2_s2_fr *, const sealc2_s2_fr *,
                             const sealc2_s2_srs *, void *, int32_t, void **);
    sealc2_s2_error (*finish)(void *, sealc2_s2_proof *);
    void (*destroy)(void *), *(*make_mutex)(void), (*destroy_mutex)(void *);
    void *h1 = load_raw(shim, &one), *h2 = load_raw(cuzk, &two);
    *(void **)&prove6 = symbol(h1, "generate_groth16_proofs_c");
    *(void **)&prove8 = symbol(h2, "generate_groth16_proofs_c");
    *(void **)&start = symbol(h2, "generate_groth16_proofs_start_c");
    *(void **)&finish = symbol(h2, "finalize_groth16_proof_c");
    *(void **)&destroy = symbol(h2, "destroy_pending_proof");
    *(void **)&make_mutex = symbol(h2, "create_gpu_mutex");
    *(void **)&destroy_mutex = symbol(h2, "destroy_gpu_mutex");

    sealc2_s2_srs srs = {NULL};
    sealc2_s2_error err = one.create(&srs, "/nowhere", false);
    check(err.code == ENOENT && err.message != NULL, "create_SRS of a missing file: %d", err.code);
    one.drop_error(err.message);
    expect("create_SRS", one.create(&srs, params, true), 0, NULL);
    sealc2_s2_srs copy = one.clone(&srs);
    one.evict(&srs);
    one.drop(&srs);
    expect("6 arguments", prove6(b.provers, b.n, b.r, b.s, b.out, &copy), 0, NULL);
    same_proofs("6 arguments", &b, &c.proof);
    one.drop(&copy);

    expect("create_SRS", two.create(&srs, params, false), 0, NULL);
    void *mutex = make_mutex(), *pending = NULL;
    static const int32_t indexes[] = {-1, -7, 0};
    for (int i = 0; i < 3; i++) {
        memset(b.out, 0xA5, b.n * sizeof *b.out);
        expect("8 arguments", prove8(b.provers, b.n, b.r, b.s, b.out, &srs, i ? mutex : NULL, indexes[i]), 0, NULL);
        same_proofs("8 arguments", &b, &c.proof);
    }
    expect("gpu_index", prove8(b.provers, b.n, b.r, b.s, b.out, &srs, mutex, 1), ENODEV, "device");
    memset(b.out, 0xA5, b.n * sizeof *b.out);
    expect("start", start(b.provers, b.n, b.r, b.s, &srs, mutex, -1, &pending), 0, NULL);
    expect("finalize", finish(pending, b.out), 0, NULL);
    same_proofs("finalize", &b, &c.proof);
    expect("start", start(b.provers, b.n, b.r, b.s, &srs, mutex, 0, &pending), 0, NULL);
    destroy(pending);
    destroy(NULL);
    destroy_mutex(mutex);
    destroy_mutex(NULL);
    two.drop(&srs);
    free_batch(&b);
    free_circuit(&c);
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: s2 LIBRARY SHIM CUZK-SHIM CASE CIRCUIT PARAMS ...\n");
        return 2;
    }
    setenv("SEALC2_ALLOW_DEV_PARAMS", "1", 1);
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!check(handle != NULL, "dlopen: %s", handle ? "" : dlerror()))
        return 1;
#define F(name) *(void **)&lib.name = symbol(handle, #name);
    FUNCTIONS(F)
#undef F
    const char *name = argv[4];
    if (strcmp(name, "prove") == 0)
        prove_case(argv[5], argv[6]);
    else if (strcmp(name, "mismatch") == 0)
        mismatch_case(argv[5], argv[6]);
    else if (strcmp(name, "policies") == 0)
        policies_case(argv[5], argv[6]);
    else if (strcmp(name, "open") == 0)
        open_case(argv[6]);
    else if (strcmp(name, "references") == 0)
        references_case(argv[5], argv[6]);
    else if (strcmp(name, "split") == 0)
        split_case(argv[5], argv[6]);
    else if (strcmp(name, "lent") == 0)
        lent_case(argv[5], argv[6]);
    else if (strcmp(name, "no-memory") == 0)
        no_memory_case(argv[5], argv[6]);
    else if (strcmp(name, "threads") == 0 && argc == 9)
        threads_case(argv + 5);
    else if (strcmp(name, "fork") == 0)
        fork_case(argv[5], argv[6]);
    else if (strcmp(name, "raw") == 0)
        raw_case(argv[2], argv[3], argv[5], argv[6]);
    else
        check(0, "no case %s", name);
    return failures != 0;
}
