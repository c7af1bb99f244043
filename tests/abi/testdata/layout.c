/* Layouts that foreign callers were compiled against. Compiled as C11 and as C++17, never run.
 * filecoin-ffi's are those of its version 1.36, supraseal-c2's those of 0.1.2; ours must not move once released. */
#include "sealc2.h"
#include "sealc2_ffi.h"
#include "sealc2_s2.h"

#ifndef __cplusplus
#define static_assert _Static_assert
#endif
#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)

SIZE(slice_ref_uint8_t, 16);
AT(slice_ref_uint8_t, ptr, 0);
AT(slice_ref_uint8_t, len, 8);
SIZE(slice_boxed_uint8_t, 16);
AT(slice_boxed_uint8_t, ptr, 0);
AT(slice_boxed_uint8_t, len, 8);
SIZE(uint8_32_array_t, 32);
SIZE(Result_slice_boxed_uint8_t, 40);
AT(Result_slice_boxed_uint8_t, status_code, 0);
AT(Result_slice_boxed_uint8_t, error_msg, 8);
AT(Result_slice_boxed_uint8_t, value, 24);
SIZE(Result_bool_t, 32);
AT(Result_bool_t, status_code, 0);
AT(Result_bool_t, error_msg, 8);
AT(Result_bool_t, value, 24);
SIZE(slice_boxed_slice_boxed_uint8_t, 16);
SIZE(Result_slice_boxed_slice_boxed_uint8_t, 40);
AT(Result_slice_boxed_slice_boxed_uint8_t, value, 24);
SIZE(Result_void_t, 24);
AT(Result_void_t, error_msg, 8);
SIZE(bool, 1);
SIZE(FCPResponseStatus_t, 4);
SIZE(RegisteredSealProof_t, 4);
static_assert(REGISTERED_SEAL_PROOF_STACKED_DRG64_GI_B_V1_2__FEAT__NON_INTERACTIVE_PO_REP == 19, "registered proofs");

SIZE(sealc2_status, 4);
SIZE(sealc2_engine, 8);
SIZE(sealc2_job, 8);
SIZE(sealc2_error, 32);
AT(sealc2_error, text, 8);
AT(sealc2_error, text_cap, 16);
AT(sealc2_error, text_len, 24);
SIZE(sealc2_config, 32);
AT(sealc2_config, threads, 8);
AT(sealc2_config, host_bytes, 16);
AT(sealc2_config, device, 24);
SIZE(sealc2_progress, 40);
AT(sealc2_progress, partition, 8);
AT(sealc2_progress, partitions, 12);
AT(sealc2_progress, stage, 16);
AT(sealc2_progress, elapsed_ns, 24);
AT(sealc2_progress, done, 32);
SIZE(sealc2_prove_request, 152);
AT(sealc2_prove_request, c1, 8);
AT(sealc2_prove_request, c1_len, 16);
AT(sealc2_prove_request, statement, 24);
AT(sealc2_prove_request, statement_len, 32);
AT(sealc2_prove_request, sector_id, 40);
AT(sealc2_prove_request, prover_id, 48);
AT(sealc2_prove_request, params_dir, 80);
AT(sealc2_prove_request, dev_params, 88);
AT(sealc2_prove_request, circuit_proofs, 92);
AT(sealc2_prove_request, r, 96);
AT(sealc2_prove_request, s, 104);
AT(sealc2_prove_request, scalar_count, 112);
AT(sealc2_prove_request, job, 120);
AT(sealc2_prove_request, progress, 128);
AT(sealc2_prove_request, partition, 136);
AT(sealc2_prove_request, user, 144);
SIZE(sealc2_verify_request, 208);
AT(sealc2_verify_request, registered_proof, 8);
AT(sealc2_verify_request, dev_params, 12);
AT(sealc2_verify_request, comm_r, 16);
AT(sealc2_verify_request, comm_d, 48);
AT(sealc2_verify_request, prover_id, 80);
AT(sealc2_verify_request, ticket, 112);
AT(sealc2_verify_request, seed, 144);
AT(sealc2_verify_request, sector_id, 176);
AT(sealc2_verify_request, proof, 184);
AT(sealc2_verify_request, proof_len, 192);
AT(sealc2_verify_request, params_dir, 200);
SIZE(sealc2_stage, 48);
AT(sealc2_stage, partition, 24);
AT(sealc2_stage, start_ns, 32);
AT(sealc2_stage, elapsed_ns, 40);

SIZE(sealc2_s2_fr, 32);
SIZE(sealc2_s2_fp, 48);
SIZE(sealc2_s2_g1, 96);
AT(sealc2_s2_g1, y, 48);
SIZE(sealc2_s2_g2, 192);
AT(sealc2_s2_g2, y, 96);
SIZE(sealc2_s2_proof, 384);
AT(sealc2_s2_proof, b, 96);
AT(sealc2_s2_proof, c, 288);
SIZE(sealc2_s2_srs, 8);
SIZE(sealc2_s2_error, 16);
AT(sealc2_s2_error, code, 0);
AT(sealc2_s2_error, message, 8);
SIZE(sealc2_s2_density, 24);
AT(sealc2_s2_density, bits, 8);
AT(sealc2_s2_density, ones, 16);
SIZE(sealc2_s2_prover, 136);
AT(sealc2_s2_prover, a_aux, 0);
AT(sealc2_s2_prover, b_inp, 24);
AT(sealc2_s2_prover, b_aux, 48);
AT(sealc2_s2_prover, a, 72);
AT(sealc2_s2_prover, b, 80);
AT(sealc2_s2_prover, c, 88);
AT(sealc2_s2_prover, abc_len, 96);
AT(sealc2_s2_prover, inp, 104);
AT(sealc2_s2_prover, inp_len, 112);
AT(sealc2_s2_prover, aux, 120);
AT(sealc2_s2_prover, aux_len, 128);
