/* Results made and released by either side in every mix, under AddressSanitizer: filcrypto's blocks by our
 * destructors, ours by what filcrypto's destructors do. Linked with capi/result.c alone, without Go, since
 * Go and AddressSanitizer do not share a process. A leak or a wrong free ends it with an error. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* What Rust's Box does for a result: struct, text and value a block each; empty slices are not allocated. */
static slice_boxed_uint8_t rust_boxed(size_t len) {
    slice_boxed_uint8_t out = {.ptr = len ? malloc(len) : (uint8_t *)1, .len = len};
    if (len)
        memset(out.ptr, 'x', len);
    return out;
}

static void rust_drop(slice_boxed_uint8_t boxed) {
    if (boxed.len)
        free(boxed.ptr);
}

static Result_slice_boxed_uint8_t *rust_bytes(size_t text, size_t value) {
    Result_slice_boxed_uint8_t *out = malloc(sizeof *out);
    *out = (Result_slice_boxed_uint8_t){.status_code = text != 0, .error_msg = rust_boxed(text), .value = rust_boxed(value)};
    return out;
}

static Result_slice_boxed_uint8_t *our_bytes(size_t text, size_t value) {
    static const uint8_t data[300];
    Result_slice_boxed_uint8_t *out = calloc(1, sizeof *out);
    sealc2_put_boxed(&out->error_msg, NULL, 0);
    if (sealc2_put_boxed(&out->value, data, value) != 0)
        abort();
    if (text)
        sealc2_fail_bytes(out, data, text); /* a failure drops the value */
    if (text && (out->value.len != 0 || out->value.ptr == NULL || out->error_msg.len != text))
        abort();
    return out;
}

static Result_bool_t *our_bool(size_t text) {
    static const uint8_t data[300];
    Result_bool_t *out = calloc(1, sizeof *out);
    sealc2_put_boxed(&out->error_msg, NULL, 0);
    out->value = true;
    if (text)
        sealc2_fail_bool(out, data, text);
    if (out->value != (text == 0))
        abort();
    return out;
}

static Result_slice_boxed_slice_boxed_uint8_t *rust_list(size_t text, size_t names) {
    Result_slice_boxed_slice_boxed_uint8_t *out = malloc(sizeof *out);
    *out = (Result_slice_boxed_slice_boxed_uint8_t){
        .status_code = text != 0,
        .error_msg = rust_boxed(text),
        .value = {.ptr = names ? malloc(names * sizeof(slice_boxed_uint8_t)) : (slice_boxed_uint8_t *)8, .len = names}};
    for (size_t i = 0; i < names; i++)
        out->value.ptr[i] = rust_boxed(i); /* the first is empty */
    return out;
}

static Result_void_t *rust_void(size_t text) {
    Result_void_t *out = malloc(sizeof *out);
    *out = (Result_void_t){.status_code = text != 0, .error_msg = rust_boxed(text)};
    return out;
}

static Result_void_t *our_void(size_t text) {
    static const uint8_t data[300];
    Result_void_t *out = calloc(1, sizeof *out);
    sealc2_put_boxed(&out->error_msg, NULL, 0);
    if (text)
        sealc2_fail_void(out, data, text);
    return out;
}

int main(void) {
    for (size_t text = 0; text < 300; text += 99) {
        for (size_t value = 0; value < 300; value += 96) {
            destroy_seal_commit_phase2_response(rust_bytes(text, value));
            destroy_seal_pre_commit_phase1_response(rust_bytes(text, value));
            destroy_seal_commit_phase2_response(our_bytes(text, value));
            destroy_seal_pre_commit_phase1_response(our_bytes(text, value));
            Result_slice_boxed_uint8_t *ours = our_bytes(text, value);
            rust_drop(ours->error_msg);
            rust_drop(ours->value);
            free(ours);
        }
        destroy_verify_seal_response(our_bool(text));
        Result_bool_t *ours = our_bool(text);
        rust_drop(ours->error_msg);
        free(ours);
        Result_bool_t *rust = malloc(sizeof *rust);
        *rust = (Result_bool_t){.status_code = text != 0, .error_msg = rust_boxed(text)};
        destroy_verify_seal_response(rust);
        for (size_t names = 0; names < 4; names++) {
            destroy_gpu_device_response(rust_list(text, names));
            destroy_generate_empty_sector_update_partition_proof_response(rust_list(text, names));
        }
        destroy_unseal_range_response(rust_void(text));
        destroy_clear_cache_response(rust_void(text));
        destroy_init_log_fd_response(rust_void(text));
        destroy_unseal_range_response(our_void(text));
        Result_void_t *nothing = our_void(text);
        rust_drop(nothing->error_msg);
        free(nothing);
    }
    destroy_gpu_device_response(NULL);
    destroy_generate_empty_sector_update_partition_proof_response(NULL);
    destroy_unseal_range_response(NULL);
    destroy_clear_cache_response(NULL);
    destroy_init_log_fd_response(NULL);
    destroy_seal_commit_phase2_response(NULL);
    destroy_seal_pre_commit_phase1_response(NULL);
    destroy_verify_seal_response(NULL);
    return 0;
}
