/* sealc2_s2.h: proving from explicit assignments, with the semantics of supraseal-c2 under names of our own.
 *
 * libsealc2.so exports the sealc2_s2_* functions. supraseal-c2's raw names live in two small libraries over them,
 * since one name has two signatures in the field: libsealc2-s2.so (crates.io form) and libsealc2-s2cuzk.so (Curio
 * fork). Layouts are supraseal-c2 0.1.2's. Numbers are in Montgomery form, reduced, 64-bit limbs, lowest first;
 * pointers to them are aligned to 8 bytes.
 *
 * Different from supraseal-c2, on purpose:
 *  - Lengths, popcounts, NULL pointers and handles are checked: EINVAL with the numbers, never an abort.
 *  - Every row a*b = c is checked, and every proof is verified with the key at the head of the parameter file and the
 *    given inputs before it is handed out. A circuit that does not hold is an error by value that names the row.
 *  - Parameters whose key is not in the public manifest are refused unless the environment has
 *    SEALC2_ALLOW_DEV_PARAMS=1, at opening and at each proof. Who made such a key can forge proofs.
 *  - Where there is no GPU, the CPU is device 0.
 *
 * Codes: 0 fine. Positive, an errno:
 *  ENOENT, EACCES, ... the parameter file cannot be opened, as the system says
 *  EINVAL      an argument, a length, a row that does not hold, a file that is damaged or not allowed
 *  ENODEV      a device that is not there
 *  ENOMEM      more memory than the budget can ever give, with both numbers
 *  ECANCELED   sealc2_shutdown came in between
 *  EIO         a proof failed verification though every row holds: other parameters than the circuit's, or hardware
 *  EPERM       in a child after fork without exec; EDEADLK from a callback of sealc2.h
 *  ENOTSUP     nothing that this version does; ENOTRECOVERABLE a defect of the library
 * Negative: a CUDA error, negated.
 *
 * Any thread may call any function at any time. Engine, budget and environment are those of sealc2_ffi.h. A handle
 * that was dropped, spent or invented is EINVAL, or ignored where nothing is returned.
 */
#ifndef SEALC2_S2_H
#define SEALC2_S2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sealc2_s2_fr { uint64_t l[4]; } sealc2_s2_fr;
typedef struct sealc2_s2_fp { uint64_t l[6]; } sealc2_s2_fp;
typedef struct sealc2_s2_g1 { sealc2_s2_fp x, y; } sealc2_s2_g1; /* affine; infinity: all bytes zero */
typedef struct sealc2_s2_g2 { sealc2_s2_fp x[2], y[2]; } sealc2_s2_g2;
typedef struct sealc2_s2_proof { sealc2_s2_g1 a; sealc2_s2_g2 b; sealc2_s2_g1 c; } sealc2_s2_proof;

/* A reference to open parameters; NULL: none. The value is a name, not an address. */
typedef struct sealc2_s2_srs { void *p; } sealc2_s2_srs;

/* message: NUL-terminated UTF-8 from malloc, which the caller releases with free; NULL with code 0, and where malloc
 * had nothing left. */
typedef struct sealc2_s2_error { int32_t code; char *message; } sealc2_s2_error;

/* Which variables have points: bit i is word i/64, place i%64. ceil(bits/64) words are read; bits from `bits` on may be
 * anything. ones: how many are set. */
typedef struct sealc2_s2_density { const uint64_t *words; size_t bits, ones; } sealc2_s2_density;

/* One circuit's values. abc_len counts the constraints with the row that bellperson appends for each input; inp[0] is
 * one. Against the points of the file: l = aux_len, a = inp_len + a_aux.ones, b_g1 = b_g2 = b_inp.ones + b_aux.ones,
 * h = 2^k - 1 with 2^(k-1) < abc_len <= 2^k, ic = inp_len. */
typedef struct sealc2_s2_prover {
    sealc2_s2_density a_aux, b_inp, b_aux;
    const sealc2_s2_fr *a, *b, *c;
    size_t abc_len;
    const sealc2_s2_fr *inp;
    size_t inp_len;
    const sealc2_s2_fr *aux;
    size_t aux_len;
} sealc2_s2_prover;

/* Opens a parameter file. References to one state of one file share what is kept of it.
 * in       path: NUL-terminated; cache: keep it also in the process's list of the 4 last used, by canonical path
 * out      *out, overwritten without release; empty on failure
 * errors   errno of open, EINVAL, EPERM, EDEADLK */
sealc2_s2_error sealc2_s2_srs_open(sealc2_s2_srs *out, const char *path, bool cache);

/* Takes the reference's file out of the list of the last used. References stay good. */
void sealc2_s2_srs_evict(const sealc2_s2_srs *srs);

/* Gives a reference back and empties it. NULL, empty and dropped ones are ignored; proofs under way go on. */
void sealc2_s2_srs_drop(sealc2_s2_srs *srs);

/* One more reference to the same parameters, to be dropped on its own; empty for one that is not good. */
sealc2_s2_srs sealc2_s2_srs_clone(const sealc2_s2_srs *srs);

/* Proves n circuits. n = 0 is success, whatever the other arguments are.
 * in       provers[n]; r[n], s[n]: zero is legal; device: -1 any, else an index; exclusion: a token from
 *          sealc2_s2_exclusion, or NULL. Work with the same token does not overlap
 * out      out[n], which may be uninitialised; written only if all proofs are right
 * errors   all of the above
 * All memory is borrowed for the call. */
sealc2_s2_error sealc2_s2_prove(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                sealc2_s2_proof *out, const sealc2_s2_srs *srs, int32_t device, void *exclusion);

/* The same in two steps. start returns when a, b and c of all circuits have been read and every row was found to hold;
 * the rest goes on behind it. provers, r, s, a, b and c may then be freed; inp, aux and the density words must live
 * until finish or abandon has returned. srs may be dropped.
 * out      *pending, NULL on failure */
sealc2_s2_error sealc2_s2_start(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                const sealc2_s2_srs *srs, int32_t device, void *exclusion, void **pending);

/* Waits, and writes the proofs of as many circuits as start was given. pending is spent, on failure too. */
sealc2_s2_error sealc2_s2_finish(void *pending, sealc2_s2_proof *out);

/* Ends work that nobody wants any more, and returns when it reads no memory of the caller's. NULL is ignored. */
void sealc2_s2_abandon(void *pending);

/* A token for exclusion. It is no lock: nobody holds it between calls, and it may be released at any time. NULL only
 * where no call may enter the library (fork, callback); NULL is ignored on release. */
void *sealc2_s2_exclusion(void);
void sealc2_s2_exclusion_release(void *token);

#ifdef __cplusplus
}
#endif

#endif
