/* The proving functions of sealc2_ffi.h: each makes its result block, then refuses or enters Go. The
 * destructors are in result.c, beside the code that makes what they release. */
#include <string.h>

#include "_cgo_export.h"
#include "bridge.h"

Result_slice_boxed_uint8_t *seal_commit_phase2(slice_ref_uint8_t seal_commit_phase1_output, uint64_t sector_id,
                                               const uint8_32_array_t *prover_id) {
    Result_slice_boxed_uint8_t *result = calloc(1, sizeof *result);
    if (result == NULL)
        return NULL;
    sealc2_put_boxed(&result->error_msg, NULL, 0);
    sealc2_put_boxed(&result->value, NULL, 0);
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_bytes(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_seal_commit_phase2(seal_commit_phase1_output.ptr, seal_commit_phase1_output.len, sector_id, prover_id,
                                    result);
    return result;
}

Result_slice_boxed_uint8_t *seal_commit_phase2_circuit_proofs(slice_ref_uint8_t seal_commit_phase1_output,
                                                              uint64_t sector_id) {
    Result_slice_boxed_uint8_t *result = calloc(1, sizeof *result);
    if (result == NULL)
        return NULL;
    sealc2_put_boxed(&result->error_msg, NULL, 0);
    sealc2_put_boxed(&result->value, NULL, 0);
    (void)sector_id; /* means nothing without the prover's id */
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_bytes(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_circuit_proofs(seal_commit_phase1_output.ptr, seal_commit_phase1_output.len, result);
    return result;
}

Result_bool_t *verify_seal(RegisteredSealProof_t registered_proof, const uint8_32_array_t *comm_r,
                           const uint8_32_array_t *comm_d, const uint8_32_array_t *prover_id,
                           const uint8_32_array_t *ticket, const uint8_32_array_t *seed, uint64_t sector_id,
                           slice_ref_uint8_t proof) {
    Result_bool_t *result = calloc(1, sizeof *result);
    if (result == NULL)
        return NULL;
    sealc2_put_boxed(&result->error_msg, NULL, 0);
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_bool(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_verify_seal(registered_proof, comm_r, comm_d, prover_id, ticket, seed, sector_id, proof.ptr, proof.len,
                             result);
    return result;
}

Result_slice_boxed_slice_boxed_uint8_t *get_gpu_devices(void) {
    Result_slice_boxed_slice_boxed_uint8_t *result = calloc(1, sizeof *result);
    if (result == NULL)
        return NULL;
    sealc2_put_boxed(&result->error_msg, NULL, 0);
    /* Empty as Rust has it: no NULL, and aligned. */
    result->value.ptr = (slice_boxed_uint8_t *)_Alignof(slice_boxed_uint8_t);
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_list(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_gpu_devices(result);
    return result;
}

static Result_void_t *new_void(void) {
    Result_void_t *result = calloc(1, sizeof *result);
    if (result != NULL)
        sealc2_put_boxed(&result->error_msg, NULL, 0);
    return result;
}

Result_void_t *clear_cache(slice_ref_uint8_t cache_dir_path) {
    Result_void_t *result = new_void();
    if (result == NULL)
        return NULL;
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_void(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_clear_cache(cache_dir_path.ptr, cache_dir_path.len, result);
    return result;
}

Result_void_t *init_log_fd(int32_t log_fd) {
    Result_void_t *result = new_void();
    if (result == NULL)
        return NULL;
    const char *why = sealc2_refusal(1);
    if (why != NULL)
        sealc2_fail_void(result, (sealc2_in_bytes)why, strlen(why));
    else
        sealc2go_init_log_fd(log_fd, result);
    return result;
}
