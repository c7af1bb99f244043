/* bridge.h: what the C files and the Go files of this room see of each other.
 *
 * The exported functions are C, in native.c, ffi.c and s2.c, so that they are checked against the public headers
 * and can refuse a call before it enters Go. They call functions named sealc2go_*, exported from Go and
 * hidden by exports.map. Go cannot spell const, so pointers to const have names here. */
#ifndef SEALC2_CAPI_BRIDGE_H
#define SEALC2_CAPI_BRIDGE_H

#include <stdlib.h>

#include "sealc2.h"
#include "sealc2_ffi.h"
#include "sealc2_s2.h"

typedef const char *sealc2_in_text;
typedef const uint8_t *sealc2_in_bytes;
typedef const sealc2_config *sealc2_in_config;
typedef const sealc2_prove_request *sealc2_in_prove;
typedef const sealc2_submit_options *sealc2_in_submit;
typedef const sealc2_verify_request *sealc2_in_verify;
typedef const sealc2_assignments_request *sealc2_in_assignments;
typedef const sealc2_c1_request *sealc2_in_c1;
typedef const uint8_32_array_t *sealc2_in_array32;
typedef const sealc2_s2_prover *sealc2_in_provers;
typedef const sealc2_s2_fr *sealc2_in_fr;

/* guard.c */
const char *sealc2_refusal(int blocks); /* why no call may enter Go now, or NULL and the thread is ready for it; blocks: not from a callback */
int sealc2_is_forked(void);
int32_t sealc2_call_progress(sealc2_progress_fn fn, void *user, int32_t partition, int32_t partitions,
                             sealc2_in_text stage, uint64_t start_ns, uint64_t elapsed_ns, double done);
int32_t sealc2_call_partition(sealc2_partition_fn fn, void *user, uint32_t partition, sealc2_in_bytes proof);

/* result.c */
/* parts: op, where, want, got; NULL for a text without any. len 0 clears. */
void sealc2_put_error(sealc2_error *err, sealc2_in_bytes text, size_t len, const sealc2_span *parts);
int sealc2_put_boxed(slice_boxed_uint8_t *out, sealc2_in_bytes data, size_t len); /* 0, or -1 without memory */
/* A list of count empty items in place of an empty one, and an item of it: 0, or -1 without memory. */
int sealc2_put_list(Result_slice_boxed_slice_boxed_uint8_t *result, size_t count);
int sealc2_put_item(Result_slice_boxed_slice_boxed_uint8_t *result, size_t index, sealc2_in_bytes data, size_t len);
void sealc2_fail_list(Result_slice_boxed_slice_boxed_uint8_t *result, sealc2_in_bytes text, size_t len);
void sealc2_fail_bytes(Result_slice_boxed_uint8_t *result, sealc2_in_bytes text, size_t len);
void sealc2_fail_bool(Result_bool_t *result, sealc2_in_bytes text, size_t len);
void sealc2_fail_void(Result_void_t *result, sealc2_in_bytes text, size_t len);

/* s2.c */
void sealc2_s2_fail(sealc2_s2_error *err, int32_t code, sealc2_in_bytes text, size_t len);

#endif
