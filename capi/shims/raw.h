/* raw.h: what both shim libraries have in common: supraseal-c2's own names, each one call of libsealc2.so. A name with
 * two signatures in the field (generate_groth16_proofs_c) is why there are two of them.
 *
 * The names are listed in include/exports-s2.txt and include/exports-s2cuzk.txt. Semantics, codes and differences
 * from supraseal-c2: include/sealc2_s2.h. */
#include <stdlib.h>

#include "sealc2_s2.h"

/* What callers were compiled against. */
_Static_assert(sizeof(sealc2_s2_density) == 24 && sizeof(sealc2_s2_prover) == 136, "size of a prover");
_Static_assert(offsetof(sealc2_s2_prover, a) == 72 && offsetof(sealc2_s2_prover, aux_len) == 128, "fields of a prover");
_Static_assert(sizeof(sealc2_s2_fr) == 32 && sizeof(sealc2_s2_g1) == 96 && sizeof(sealc2_s2_g2) == 192, "numbers");
_Static_assert(sizeof(sealc2_s2_proof) == 384 && offsetof(sealc2_s2_proof, c) == 288, "a proof");
_Static_assert(sizeof(sealc2_s2_srs) == 8 && sizeof(sealc2_s2_error) == 16, "handle and error");
_Static_assert(offsetof(sealc2_s2_error, message) == 8, "fields of an error");

sealc2_s2_error create_SRS(sealc2_s2_srs *out, const char *path, bool cache);
void evict_SRS(const sealc2_s2_srs *srs);
void drop_SRS(sealc2_s2_srs *srs);
sealc2_s2_srs clone_SRS(const sealc2_s2_srs *srs);
void drop_error_message(char *message);

sealc2_s2_error create_SRS(sealc2_s2_srs *out, const char *path, bool cache) { return sealc2_s2_srs_open(out, path, cache); }

void evict_SRS(const sealc2_s2_srs *srs) { sealc2_s2_srs_evict(srs); }

void drop_SRS(sealc2_s2_srs *srs) { sealc2_s2_srs_drop(srs); }

sealc2_s2_srs clone_SRS(const sealc2_s2_srs *srs) { return sealc2_s2_srs_clone(srs); }

/* As sppark has it; callers in Rust use free itself. */
void drop_error_message(char *message) { free(message); }
