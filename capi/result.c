/* Writes results into the caller's memory, and makes and releases filecoin-ffi's result blocks. */
#include <string.h>

#include "bridge.h"

void sealc2_put_error(sealc2_error *err, sealc2_in_bytes text, size_t len, const sealc2_span *parts) {
    if (err == NULL || err->size < offsetof(sealc2_error, op))
        return;
    err->text_len = len;
    if (err->size >= sizeof *err) {
        static const sealc2_span none[4];
        memcpy(&err->op, parts != NULL ? parts : none, sizeof none);
    }
    if (len == 0 || err->text == NULL || err->text_cap == 0)
        return;
    size_t n = len;
    if (n > err->text_cap - 1) {
        n = err->text_cap - 1;
        while (n > 0 && (text[n] & 0xC0) == 0x80) /* not within a UTF-8 character */
            n--;
    }
    memcpy(err->text, text, n);
    err->text[n] = 0;
}

/* An empty slice has a pointer that is not NULL and is never freed, as Rust's boxes have. */
static slice_boxed_uint8_t empty_boxed(void) { return (slice_boxed_uint8_t){.ptr = (uint8_t *)1, .len = 0}; }

/* One byte more than len, zero, for C callers that take text for a string; free does not mind. */
int sealc2_put_boxed(slice_boxed_uint8_t *out, sealc2_in_bytes data, size_t len) {
    *out = empty_boxed();
    if (len == 0)
        return 0;
    uint8_t *block = malloc(len + 1);
    if (block == NULL)
        return -1;
    memcpy(block, data, len);
    block[len] = 0;
    *out = (slice_boxed_uint8_t){.ptr = block, .len = len};
    return 0;
}

int sealc2_put_list(Result_slice_boxed_slice_boxed_uint8_t *result, size_t count) {
    if (count == 0)
        return 0;
    slice_boxed_uint8_t *list = calloc(count, sizeof *list);
    if (list == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        list[i] = empty_boxed();
    result->value.ptr = list;
    result->value.len = count;
    return 0;
}

int sealc2_put_item(Result_slice_boxed_slice_boxed_uint8_t *result, size_t index, sealc2_in_bytes data, size_t len) {
    return sealc2_put_boxed(&result->value.ptr[index], data, len);
}

static void free_boxed(slice_boxed_uint8_t *boxed) {
    if (boxed->len != 0)
        free(boxed->ptr);
    *boxed = empty_boxed();
}

void sealc2_fail_bytes(Result_slice_boxed_uint8_t *result, sealc2_in_bytes text, size_t len) {
    free_boxed(&result->value);
    result->status_code = F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR;
    sealc2_put_boxed(&result->error_msg, text, len);
}

void sealc2_fail_bool(Result_bool_t *result, sealc2_in_bytes text, size_t len) {
    result->value = false;
    result->status_code = F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR;
    sealc2_put_boxed(&result->error_msg, text, len);
}

void sealc2_fail_void(Result_void_t *result, sealc2_in_bytes text, size_t len) {
    result->status_code = F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR;
    sealc2_put_boxed(&result->error_msg, text, len);
}

void sealc2_fail_list(Result_slice_boxed_slice_boxed_uint8_t *result, sealc2_in_bytes text, size_t len) {
    result->status_code = F_C_P_RESPONSE_STATUS_UNCLASSIFIED_ERROR;
    sealc2_put_boxed(&result->error_msg, text, len);
}

/* Struct, message and value are three blocks of malloc: the three frees that any of filcrypto's destructors
 * for such a result does. */
void destroy_seal_commit_phase2_response(Result_slice_boxed_uint8_t *response) {
    if (response == NULL)
        return;
    free_boxed(&response->error_msg);
    free_boxed(&response->value);
    free(response);
}

void destroy_seal_pre_commit_phase1_response(Result_slice_boxed_uint8_t *response) {
    destroy_seal_commit_phase2_response(response);
}

void destroy_verify_seal_response(Result_bool_t *response) {
    if (response == NULL)
        return;
    free_boxed(&response->error_msg);
    free(response);
}

void destroy_gpu_device_response(Result_slice_boxed_slice_boxed_uint8_t *response) {
    if (response == NULL)
        return;
    free_boxed(&response->error_msg);
    for (size_t i = 0; i < response->value.len; i++)
        free_boxed(&response->value.ptr[i]);
    if (response->value.len != 0)
        free(response->value.ptr);
    free(response);
}

void destroy_generate_empty_sector_update_partition_proof_response(Result_slice_boxed_slice_boxed_uint8_t *response) {
    destroy_gpu_device_response(response);
}

void destroy_unseal_range_response(Result_void_t *response) {
    if (response == NULL)
        return;
    free_boxed(&response->error_msg);
    free(response);
}

void destroy_clear_cache_response(Result_void_t *response) { destroy_unseal_range_response(response); }

void destroy_init_log_fd_response(Result_void_t *response) { destroy_unseal_range_response(response); }
