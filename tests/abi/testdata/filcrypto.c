/* Stands for libfilcrypto.a: as in a Rust archive, all exports lie in one object, among them what sealc2 takes over. */
#include <stdlib.h>
#include <string.h>

#include "sealc2_ffi.h"

static Result_slice_boxed_uint8_t *answer(const char *text) {
    Result_slice_boxed_uint8_t *out = malloc(sizeof *out);
    size_t len = strlen(text);
    *out = (Result_slice_boxed_uint8_t){.error_msg = {(uint8_t *)1, 0}, .value = {malloc(len), len}};
    memcpy(out->value.ptr, text, len);
    return out;
}

Result_slice_boxed_uint8_t *seal_commit_phase2(slice_ref_uint8_t c1, uint64_t sector_id, const uint8_32_array_t *prover_id) {
    (void)c1, (void)sector_id, (void)prover_id;
    return answer("filcrypto's");
}

int destroyed;

void destroy_seal_pre_commit_phase1_response(Result_slice_boxed_uint8_t *response) {
    destroyed++;
    if (response->error_msg.len != 0)
        free(response->error_msg.ptr);
    if (response->value.len != 0)
        free(response->value.ptr);
    free(response);
}

/* Something of the archive that nobody replaces. */
int generate_fallback_sector_challenges(void);
int generate_fallback_sector_challenges(void) { return 42; }
