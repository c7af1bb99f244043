//! Drop-in for `supraseal-c2`: the same items, proofs by libsealc2.
//!
//! ```toml
//! [patch.crates-io]
//! supraseal-c2 = { path = "sealc2/bindings/rust/supraseal-c2" }
//! ```
//!
//! and then `cargo update -p supraseal-c2`. Nothing is compiled or linked but this crate: `libsealc2.so` is loaded at the
//! first use, from the path in `SEALC2_LIB`, or else from where the loader looks. A library that is not there is an error of
//! [`SRS::try_new`] that says so. `docs/replace-supraseal.md` in sealc2's tree tells the rest.
//!
//! What differs from the original, on purpose: shapes are checked, every row of a circuit is checked, and every proof is
//! verified before it is returned. So what made the original abort or return a wrong proof is an error here: by value from
//! [`SRS::try_new`], as a panic with the text from the provers, which is how the original reports.
//!
//! ```
//! let e = supraseal_c2::SRS::try_new("no-such.params".into(), false).err().unwrap();
//! assert_eq!(e.code, 2, "{e}"); // ENOENT
//! ```

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("libsealc2 is for 64-bit Linux");
#[cfg(all(feature = "portable", feature = "force-adx"))]
compile_error!("the features portable and force-adx exclude each other");

mod common;

pub use common::{generate_groth16_proofs, Assignment, Error, SRS};

/// The older form of [`generate_groth16_proofs`]: one pointer a circuit to each vector, densities shared by all.
///
/// # Panics
/// With the error's text, and if lengths or sizes contradict each other.
#[allow(clippy::too_many_arguments)]
pub fn generate_groth16_proof<S, D, PR>(
    ntt_a_scalars: &[*const S],
    ntt_b_scalars: &[*const S],
    ntt_c_scalars: &[*const S],
    ntt_scalars_actual_size: usize,
    input_assignments: &[*const S],
    aux_assignments: &[*const S],
    input_assignments_size: usize,
    aux_assignments_size: usize,
    a_aux_density_bv: &[D],
    b_g1_input_density_bv: &[D],
    b_g1_aux_density_bv: &[D],
    a_aux_total_density: usize,
    b_g1_input_total_density: usize,
    b_g1_aux_total_density: usize,
    num_circuits: usize,
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
) {
    let provers = common::shared_density(
        ntt_a_scalars,
        ntt_b_scalars,
        ntt_c_scalars,
        ntt_scalars_actual_size,
        input_assignments,
        aux_assignments,
        input_assignments_size,
        aux_assignments_size,
        a_aux_density_bv,
        b_g1_input_density_bv,
        b_g1_aux_density_bv,
        a_aux_total_density,
        b_g1_input_total_density,
        b_g1_aux_total_density,
        num_circuits,
    );
    generate_groth16_proofs(&provers, r_s, s_s, proofs, srs)
}
