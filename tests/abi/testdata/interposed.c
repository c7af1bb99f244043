/* A program of filcrypto's that calls seal_commit_phase2 and prints who answered. Frees by the archive's destructor,
 * as filecoin-ffi's Go code does. With -DORIGINAL it also calls the original under its new name. */
#include <stdio.h>

#include "sealc2_ffi.h"

int generate_fallback_sector_challenges(void);
extern int destroyed;
#ifdef ORIGINAL
Result_slice_boxed_uint8_t *filcrypto_seal_commit_phase2(slice_ref_uint8_t c1, uint64_t sector_id,
                                                         const uint8_32_array_t *prover_id);
#endif

static void tell(Result_slice_boxed_uint8_t *r) {
    slice_boxed_uint8_t text = r->status_code ? r->error_msg : r->value;
    printf("%d %.*s\n", r->status_code, (int)text.len, (const char *)text.ptr);
    destroy_seal_pre_commit_phase1_response(r);
}

int main(void) {
    uint8_32_array_t prover = {{1}};
    tell(seal_commit_phase2((slice_ref_uint8_t){(const uint8_t *)"{]", 2}, 1, &prover));
#ifdef ORIGINAL
    tell(filcrypto_seal_commit_phase2((slice_ref_uint8_t){(const uint8_t *)"{]", 2}, 1, &prover));
#endif
    printf("%d %d\n", generate_fallback_sector_challenges(), destroyed);
    return 0;
}
