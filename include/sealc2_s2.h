/* sealc2_s2.h: proving from explicit assignments, the semantics of supraseal-c2 under names of our own.
 *
 * libsealc2.so exports the sealc2_s2_* functions. supraseal-c2's raw names live in two small libraries over them,
 * since one name has two signatures in the field: libsealc2-s2.so (crates.io form) and libsealc2-s2cuzk.so (Curio
 * fork). Layouts are supraseal-c2 0.1.2's. Numbers are in Montgomery form, 64-bit limbs, lowest first.
 *
 * Differences, on purpose: shapes are checked; every row a*b = c is checked and every proof is verified with the key
 * at the head of the parameter file before it is written, so a circuit that does not hold is an error by value.
 */
#ifndef SEALC2_S2_H
#define SEALC2_S2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { uint64_t l[4]; } sealc2_s2_fr;
typedef struct { uint64_t l[6]; } sealc2_s2_fp;
typedef struct { sealc2_s2_fp x, y; } sealc2_s2_g1;       /* infinity: all bytes zero */
typedef struct { sealc2_s2_fp x[2], y[2]; } sealc2_s2_g2;
typedef struct { sealc2_s2_g1 a; sealc2_s2_g2 b; sealc2_s2_g1 c; } sealc2_s2_proof; /* 384 bytes */
typedef struct { void *p; } sealc2_s2_srs;                /* an opaque reference; NULL: none */

/* code 0: fine; positive: an errno; negative: a CUDA error, negated. message is malloc'ed text, or NULL; the caller
 * frees it with free. */
typedef struct { int32_t code; char *message; } sealc2_s2_error;

/* Which variables occur: bit i is word i/64, place i%64. Bits from `bits` on may be anything. */
typedef struct { const uint64_t *words; size_t bits, ones; } sealc2_s2_density;

/* One circuit's assignment. abc_len counts the constraints with the appended row of each input; inp[0] is one. */
typedef struct {
    sealc2_s2_density a_aux, b_inp, b_aux;
    const sealc2_s2_fr *a, *b, *c;
    size_t abc_len;
    const sealc2_s2_fr *inp;
    size_t inp_len;
    const sealc2_s2_fr *aux;
    size_t aux_len;
} sealc2_s2_prover;

/* Opens the parameter file at path (UTF-8). cache: keep it in the process-wide list of the 4 last used, by canonical
 * path. *out is overwritten without release; NULL on failure. */
sealc2_s2_error sealc2_s2_srs_open(sealc2_s2_srs *out, const char *path, bool cache);
/* Takes the file out of the list; references stay good. */
void sealc2_s2_srs_evict(const sealc2_s2_srs *srs);
/* Gives a reference back and sets it to NULL. NULL and empty references are ignored. */
void sealc2_s2_srs_drop(sealc2_s2_srs *srs);
/* One more reference to the same parameters; empty for an empty one. */
sealc2_s2_srs sealc2_s2_srs_clone(const sealc2_s2_srs *srs);

/* Proves n circuits of one shape with r[i] and s[i] (zero is legal); proofs are written to out[0..n), which may be
 * uninitialised, only if all are right. n = 0 is success. device: -1 any, else an index of ours. exclusion: a token
 * from sealc2_s2_exclusion, or NULL; work with the same token does not overlap. All memory is borrowed for the call. */
sealc2_s2_error sealc2_s2_prove(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                sealc2_s2_proof *out, const sealc2_s2_srs *srs, int32_t device, void *exclusion);

/* The same in two steps. After start a, b and c may be freed; inp, aux and the density words must live until finish or
 * abandon. *pending is NULL on failure. finish writes the proofs and spends pending, on failure too. */
sealc2_s2_error sealc2_s2_start(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                const sealc2_s2_srs *srs, int32_t device, void *exclusion, void **pending);
sealc2_s2_error sealc2_s2_finish(void *pending, sealc2_s2_proof *out);
/* Ends work that nobody wants any more. NULL is ignored. */
void sealc2_s2_abandon(void *pending);

/* A token for exclusion; it is no lock and may be released in any state. NULL is ignored on release. */
void *sealc2_s2_exclusion(void);
void sealc2_s2_exclusion_release(void *token);

#ifdef __cplusplus
}
#endif

#endif
