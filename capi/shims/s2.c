/* libsealc2-s2.so: the raw names of the crate supraseal-c2 on crates.io, 0.1.0 to 0.1.2. */
#include "raw.h"

sealc2_s2_error generate_groth16_proofs_c(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r,
                                          const sealc2_s2_fr *s, sealc2_s2_proof *out, const sealc2_s2_srs *srs);

sealc2_s2_error generate_groth16_proofs_c(const sealc2_s2_prover *provers, size_t n, const sealc2_s2_fr *r,
                                          const sealc2_s2_fr *s, sealc2_s2_proof *out, const sealc2_s2_srs *srs) {
    return sealc2_s2_prove(provers, n, r, s, out, srs, -1, NULL);
}
