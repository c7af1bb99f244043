/* The functions of sealc2_s2.h, in its order: each refuses or enters Go. Handles are numbers in the place of
 * pointers, so that a stale one is found out and never followed. */
#include <errno.h>
#include <string.h>

#include "_cgo_export.h"
#include "bridge.h"

void sealc2_s2_fail(sealc2_s2_error *err, int32_t code, sealc2_in_bytes text, size_t len) {
    err->code = code;
    err->message = malloc(len + 1);
    if (err->message == NULL)
        return;
    memcpy(err->message, text, len);
    err->message[len] = 0;
}

/* enter fills err by Go's call unless the call must be refused. */
#define enter(err, call)                                                                               \
    do {                                                                                               \
        const char *why = sealc2_refusal(1);                                                           \
        if (why != NULL)                                                                               \
            sealc2_s2_fail(&err, sealc2_is_forked() ? EPERM : EDEADLK, (sealc2_in_bytes)why, strlen(why)); \
        else                                                                                           \
            call;                                                                                      \
    } while (0)

sealc2_s2_error sealc2_s2_srs_open(sealc2_s2_srs *out, const char *path, bool cache) {
    sealc2_s2_error err = {0, NULL};
    uintptr_t handle = 0;
    enter(err, sealc2go_s2_srs_open(out == NULL ? NULL : &handle, path, cache, &err));
    if (out != NULL)
        out->p = (void *)handle;
    return err;
}

void sealc2_s2_srs_evict(const sealc2_s2_srs *srs) {
    if (srs != NULL && srs->p != NULL && sealc2_refusal(1) == NULL)
        sealc2go_s2_srs_evict((uintptr_t)srs->p);
}

void sealc2_s2_srs_drop(sealc2_s2_srs *srs) {
    if (srs == NULL || srs->p == NULL)
        return;
    if (sealc2_refusal(1) == NULL)
        sealc2go_s2_srs_drop((uintptr_t)srs->p);
    srs->p = NULL;
}

sealc2_s2_srs sealc2_s2_srs_clone(const sealc2_s2_srs *srs) {
    sealc2_s2_srs out = {NULL};
    if (srs != NULL && srs->p != NULL && sealc2_refusal(1) == NULL)
        out.p = (void *)sealc2go_s2_srs_clone((uintptr_t)srs->p);
    return out;
}

static uintptr_t name_of(const sealc2_s2_srs *srs) { return srs == NULL ? 0 : (uintptr_t)srs->p; }

sealc2_s2_error sealc2_s2_prove(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                sealc2_s2_proof *out, const sealc2_s2_srs *srs, int32_t device, void *exclusion) {
    sealc2_s2_error err = {0, NULL};
    enter(err, sealc2go_s2_prove(provers, n, r, s, out, name_of(srs), device, (uintptr_t)exclusion, &err));
    return err;
}

sealc2_s2_error sealc2_s2_start(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s,
                                const sealc2_s2_srs *srs, int32_t device, void *exclusion, void **pending) {
    sealc2_s2_error err = {0, NULL};
    uintptr_t handle = 0;
    enter(err, sealc2go_s2_start(provers, n, r, s, name_of(srs), device, (uintptr_t)exclusion,
                                 pending == NULL ? NULL : &handle, &err));
    if (pending != NULL)
        *pending = (void *)handle;
    return err;
}

sealc2_s2_error sealc2_s2_finish(void *pending, sealc2_s2_proof *out) {
    sealc2_s2_error err = {0, NULL};
    enter(err, sealc2go_s2_finish((uintptr_t)pending, out, &err));
    return err;
}

void sealc2_s2_abandon(void *pending) {
    if (pending != NULL && sealc2_refusal(1) == NULL)
        sealc2go_s2_abandon((uintptr_t)pending);
}

void *sealc2_s2_exclusion(void) { return sealc2_refusal(1) == NULL ? (void *)sealc2go_s2_exclusion() : NULL; }

void sealc2_s2_exclusion_release(void *token) {
    if (token != NULL && sealc2_refusal(1) == NULL)
        sealc2go_s2_exclusion_release((uintptr_t)token);
}
