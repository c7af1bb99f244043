/* sealc2_ffi.h: Commit Phase 2 and its verification under filecoin-ffi's names and layouts.
 *
 * For programs that call filcrypto's C functions. Include it instead of filcrypto.h, not beside it.
 * x86-64 Linux. Configuration comes from the environment, read at each call: see sealc2.h.
 *
 * Memory: a result struct, its error_msg and its value are separate blocks of the C library's malloc;
 * an empty slice has len 0 and a ptr that is neither NULL nor to be freed. So filcrypto's destructors
 * release our results and ours release filcrypto's, whichever function made them. Every destructor
 * here is the same, and ignores NULL. A function returns NULL only if malloc cannot give a result struct.
 */
#ifndef SEALC2_FFI_H
#define SEALC2_FFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes; ptr may be NULL only if len is 0. */
typedef struct slice_ref_uint8 {
    const uint8_t *ptr;
    size_t len;
} slice_ref_uint8_t;

/* Bytes of a result; released with it. Text is not NUL-terminated by contract. */
typedef struct slice_boxed_uint8 {
    uint8_t *ptr;
    size_t len;
} slice_boxed_uint8_t;

typedef struct uint8_32_array {
    uint8_t idx[32];
} uint8_32_array_t;

/* status_code of a result. Failures are F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR, whatever their cause;
 * error_msg says all. The other two are never given, as in filcrypto. */
typedef int32_t FCPResponseStatus_t;
#define F_C_P_RESPONSE_STATUS_NO_ERROR 0
#define F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR 1
#define F_C_P_RESPONSE_STATUS_CALLER_ERROR 2
#define F_C_P_RESPONSE_STATUS_RECEIVER_ERROR 3

typedef struct Result_slice_boxed_uint8 {
    FCPResponseStatus_t status_code;
    slice_boxed_uint8_t error_msg;
    slice_boxed_uint8_t value;
} Result_slice_boxed_uint8_t;

/* A list of byte strings, as names of devices. */
typedef struct slice_boxed_slice_boxed_uint8 {
    slice_boxed_uint8_t *ptr;
    size_t len;
} slice_boxed_slice_boxed_uint8_t;

typedef struct Result_slice_boxed_slice_boxed_uint8 {
    FCPResponseStatus_t status_code;
    slice_boxed_uint8_t error_msg;
    slice_boxed_slice_boxed_uint8_t value;
} Result_slice_boxed_slice_boxed_uint8_t;

typedef struct Result_void {
    FCPResponseStatus_t status_code;
    slice_boxed_uint8_t error_msg;
} Result_void_t;

typedef struct Result_bool {
    FCPResponseStatus_t status_code;
    slice_boxed_uint8_t error_msg;
    bool value;
} Result_bool_t;

/* Registered seal proofs. A number that is not here is refused by value. */
typedef int32_t RegisteredSealProof_t;
#define REGISTERED_SEAL_PROOF_STACKED_DRG2_KI_B_V1 0
#define REGISTERED_SEAL_PROOF_STACKED_DRG8_MI_B_V1 1
#define REGISTERED_SEAL_PROOF_STACKED_DRG512_MI_B_V1 2
#define REGISTERED_SEAL_PROOF_STACKED_DRG32_GI_B_V1 3
#define REGISTERED_SEAL_PROOF_STACKED_DRG64_GI_B_V1 4
#define REGISTERED_SEAL_PROOF_STACKED_DRG2_KI_B_V1_1 5
#define REGISTERED_SEAL_PROOF_STACKED_DRG8_MI_B_V1_1 6
#define REGISTERED_SEAL_PROOF_STACKED_DRG512_MI_B_V1_1 7
#define REGISTERED_SEAL_PROOF_STACKED_DRG32_GI_B_V1_1 8
#define REGISTERED_SEAL_PROOF_STACKED_DRG64_GI_B_V1_1 9
#define REGISTERED_SEAL_PROOF_STACKED_DRG2_KI_B_V1_1__FEAT__SYNTHETIC_PO_REP 10
#define REGISTERED_SEAL_PROOF_STACKED_DRG8_MI_B_V1_1__FEAT__SYNTHETIC_PO_REP 11
#define REGISTERED_SEAL_PROOF_STACKED_DRG512_MI_B_V1_1__FEAT__SYNTHETIC_PO_REP 12
#define REGISTERED_SEAL_PROOF_STACKED_DRG32_GI_B_V1_1__FEAT__SYNTHETIC_PO_REP 13
#define REGISTERED_SEAL_PROOF_STACKED_DRG64_GI_B_V1_1__FEAT__SYNTHETIC_PO_REP 14
#define REGISTERED_SEAL_PROOF_STACKED_DRG2_KI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP 15
#define REGISTERED_SEAL_PROOF_STACKED_DRG8_MI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP 16
#define REGISTERED_SEAL_PROOF_STACKED_DRG512_MI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP 17
#define REGISTERED_SEAL_PROOF_STACKED_DRG32_GI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP 18
#define REGISTERED_SEAL_PROOF_STACKED_DRG64_GI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP 19

/* Proves a sector from its C1 output (JSON, or lotus-bench's wrapping of it).
 * out      value = 192 bytes a partition, verified before return
 * errors   by value; the non-interactive kinds are refused, since their proof is an aggregate, which is not
 *          supported yet
 * threads  any, blocks */
Result_slice_boxed_uint8_t *seal_commit_phase2(slice_ref_uint8_t seal_commit_phase1_output, uint64_t sector_id,
                                               const uint8_32_array_t *prover_id);

/* Proves a sector's partitions, for all kinds: 192 bytes each, not aggregated.
 * Different from seal_commit_phase2: there is no prover id, so sector_id cannot be checked, and the replica id is taken
 * from the C1 output. Different from filcrypto: each proof is verified before return, under that replica id.
 * out      value
 * errors   by value
 * threads  any, blocks */
Result_slice_boxed_uint8_t *seal_commit_phase2_circuit_proofs(slice_ref_uint8_t seal_commit_phase1_output,
                                                              uint64_t sector_id);

/* Verifies a sector's proof.
 * out      value = whether the proof holds; what cannot be a proof at all is an error
 * errors   by value
 * threads  any, blocks */
Result_bool_t *verify_seal(RegisteredSealProof_t registered_proof, const uint8_32_array_t *comm_r,
                           const uint8_32_array_t *comm_d, const uint8_32_array_t *prover_id,
                           const uint8_32_array_t *ticket, const uint8_32_array_t *seed, uint64_t sector_id,
                           slice_ref_uint8_t proof);

/* Names of the GPUs that proofs run on, in their order; an empty list where there are none and the CPU proves. */
Result_slice_boxed_slice_boxed_uint8_t *get_gpu_devices(void);

/* Deletes what a finished sector's cache folder no longer needs: the data tree, the column trees, the layers
 * (sc-02-data-tree-d.dat, -tree-c*.dat, -layer*.dat). A folder or file that is not there is no error.
 * errors   by value: an empty path, a file that cannot be deleted */
Result_void_t *clear_cache(slice_ref_uint8_t cache_dir_path);

/* Sends log lines to a file descriptor, which then belongs to the library, in place of stderr. RUST_LOG still says
 * which. Must come before any other function of this header.
 * errors   by value: lines may already have been written, or log_fd is not open; log_fd is then left alone */
Result_void_t *init_log_fd(int32_t log_fd);

/* Release a result; NULL is ignored; safe after fork. filecoin-ffi's Go code frees by type, not by function: any boxed
 * bytes with destroy_seal_pre_commit_phase1_response, any bool with destroy_verify_seal_response, any void with
 * destroy_unseal_range_response, any list with destroy_generate_empty_sector_update_partition_proof_response. */
void destroy_seal_commit_phase2_response(Result_slice_boxed_uint8_t *response);
void destroy_seal_pre_commit_phase1_response(Result_slice_boxed_uint8_t *response);
void destroy_verify_seal_response(Result_bool_t *response);
void destroy_gpu_device_response(Result_slice_boxed_slice_boxed_uint8_t *response);
void destroy_generate_empty_sector_update_partition_proof_response(Result_slice_boxed_slice_boxed_uint8_t *response);
void destroy_clear_cache_response(Result_void_t *response);
void destroy_init_log_fd_response(Result_void_t *response);
void destroy_unseal_range_response(Result_void_t *response);

#ifdef __cplusplus
}
#endif

#endif
