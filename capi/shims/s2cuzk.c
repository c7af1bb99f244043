/* libsealc2-s2cuzk.so: the raw names of Curio's fork of supraseal-c2, extern/supraseal-c2. The mutex is a token that
 * nobody holds between calls, and gpu_index an index of libsealc2's devices, checked; below zero means any. */
#include "raw.h"

#define PROOFS const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r, const sealc2_s2_fr *s

sealc2_s2_error generate_groth16_proofs_c(PROOFS, sealc2_s2_proof *out, const sealc2_s2_srs *srs, void *gpu_mtx,
                                          int32_t gpu_index);
sealc2_s2_error generate_groth16_proofs_start_c(PROOFS, const sealc2_s2_srs *srs, void *gpu_mtx, int32_t gpu_index,
                                                void **pending);
sealc2_s2_error finalize_groth16_proof_c(void *pending, sealc2_s2_proof *out);
void destroy_pending_proof(void *pending);
void *create_gpu_mutex(void);
void destroy_gpu_mutex(void *gpu_mtx);

static int32_t device_of(int32_t gpu_index) { return gpu_index < 0 ? -1 : gpu_index; }

sealc2_s2_error generate_groth16_proofs_c(PROOFS, sealc2_s2_proof *out, const sealc2_s2_srs *srs, void *gpu_mtx,
                                          int32_t gpu_index) {
    return sealc2_s2_prove(provers, n, r, s, out, srs, device_of(gpu_index), gpu_mtx);
}

sealc2_s2_error generate_groth16_proofs_start_c(PROOFS, const sealc2_s2_srs *srs, void *gpu_mtx, int32_t gpu_index,
                                                void **pending) {
    return sealc2_s2_start(provers, n, r, s, srs, device_of(gpu_index), gpu_mtx, pending);
}

sealc2_s2_error finalize_groth16_proof_c(void *pending, sealc2_s2_proof *out) { return sealc2_s2_finish(pending, out); }

void destroy_pending_proof(void *pending) { sealc2_s2_abandon(pending); }

void *create_gpu_mutex(void) { return sealc2_s2_exclusion(); }

void destroy_gpu_mutex(void *gpu_mtx) { sealc2_s2_exclusion_release(gpu_mtx); }
