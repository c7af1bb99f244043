//! Drop-in for the `supraseal-c2` of Curio's cuzk: the same items, proofs by libsealc2.
//!
//! In cuzk's workspace, in place of its own `extern/supraseal-c2`:
//!
//! ```toml
//! [patch.crates-io]
//! supraseal-c2 = { path = "sealc2/bindings/rust/supraseal-c2-cuzk" }
//! ```
//!
//! and then `cargo update -p supraseal-c2`. `libsealc2.so` is loaded at the first use, from the path in `SEALC2_LIB`, or else
//! from where the loader looks. A "GPU mutex" is a token here that keeps work apart, no lock; a GPU index is libsealc2's
//! own and is checked. The crate also supplies `cudaHostAlloc` and `cudaFreeHost`, which cuzk imports by these names and
//! which came with the original's CUDA runtime.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("libsealc2 is for 64-bit Linux");
#[cfg(all(feature = "portable", feature = "force-adx"))]
compile_error!("the features portable and force-adx exclude each other");

#[path = "../../supraseal-c2/src/common.rs"]
mod common;
mod pinned;

use common::{Library, RawError, RawSrs};
use std::ffi::c_void;

pub use common::{generate_groth16_proofs, Assignment, Error, SRS};
pub use pinned::{cudaFreeHost, cudaHostAlloc};

/// A token for work that must not overlap. Give it back with [`free_gpu_mutex`].
///
/// # Panics
/// If libsealc2 cannot be loaded.
pub fn alloc_gpu_mutex() -> *mut c_void {
    let library = loaded();
    // SAFETY: the type of sealc2_s2.h.
    unsafe {
        let exclusion: unsafe extern "C" fn() -> *mut c_void = entry(library, c"sealc2_s2_exclusion");
        exclusion()
    }
}

/// Gives a token back, in whatever state work with it is. NULL is ignored.
///
/// # Safety
/// `ptr` must come from [`alloc_gpu_mutex`] and not have been given back.
pub unsafe fn free_gpu_mutex(ptr: *mut c_void) {
    if !ptr.is_null() {
        let release: unsafe extern "C" fn(*mut c_void) = entry(loaded(), c"sealc2_s2_exclusion_release");
        release(ptr)
    }
}

/// Proves circuits with the same densities on device `gpu_index` (-1: any), not at the same time as other work with the
/// token `gpu_mtx` (NULL: no restriction).
///
/// # Panics
/// With the error's text, and if lengths or sizes contradict each other.
#[allow(clippy::too_many_arguments, clippy::not_unsafe_ptr_arg_deref)]
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
    gpu_mtx: *mut c_void,
    gpu_index: i32,
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
    common::prove_on(&provers, r_s, s_s, proofs, srs, gpu_index, gpu_mtx)
}

/// What a handle of [`start_groth16_proof`] points to. The count is kept here since finishing writes that many proofs.
struct Pending {
    work: *mut c_void,
    circuits: usize,
}

/// Starts to prove, and returns a handle for [`finish_groth16_proof`] or [`drop_pending_proof`]. a, b and c may be freed
/// after this; inputs, aux and densities must live until the handle is spent.
///
/// # Panics
/// With the error's text, and if lengths or sizes contradict each other; nothing is pending then.
#[allow(clippy::too_many_arguments, clippy::not_unsafe_ptr_arg_deref)]
pub fn start_groth16_proof<S, D>(
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
    srs: &SRS,
    gpu_mtx: *mut c_void,
    gpu_index: i32,
) -> *mut c_void {
    type Start = unsafe extern "C" fn(
        *const c_void,
        usize,
        *const c_void,
        *const c_void,
        *const RawSrs,
        i32,
        *mut c_void,
        *mut *mut c_void,
    ) -> RawError;
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
    assert_eq!(r_s.len(), num_circuits, "one r a circuit");
    assert_eq!(s_s.len(), num_circuits, "one s a circuit");
    let mut work = std::ptr::null_mut();
    // SAFETY: the type of sealc2_s2.h; the slices have num_circuits elements of 32 bytes; what the pointers in them
    // point to is the caller's word, as with the original.
    let result = unsafe {
        let start: Start = entry(loaded(), c"sealc2_s2_start");
        start(provers.as_ptr().cast(), num_circuits, r_s.as_ptr().cast(), s_s.as_ptr().cast(), srs.raw(), gpu_index, gpu_mtx, &mut work)
    };
    if let Err(e) = result.check() {
        panic!("{}", e);
    }
    Box::into_raw(Box::new(Pending { work, circuits: num_circuits })).cast()
}

/// Waits for what [`start_groth16_proof`] began and writes the proofs. The handle is spent, on failure too.
///
/// # Panics
/// With the error's text, if `PR` has not 384 bytes, or if there are not as many proofs as circuits. NULL panics too.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub fn finish_groth16_proof<PR>(handle: *mut c_void, proofs: &mut [PR]) {
    common::assert_proof::<PR>();
    assert!(!handle.is_null(), "no pending proof");
    // SAFETY: by contract from start_groth16_proof, and spent by this call.
    let pending = unsafe { Box::from_raw(handle.cast::<Pending>()) };
    if proofs.len() != pending.circuits {
        // SAFETY: still pending.
        unsafe { abandon(pending.work) };
        panic!("room for {} proofs of {} circuits", proofs.len(), pending.circuits);
    }
    // SAFETY: the type of sealc2_s2.h, and room for as many proofs as it writes.
    let result = unsafe {
        let finish: unsafe extern "C" fn(*mut c_void, *mut c_void) -> RawError = entry(loaded(), c"sealc2_s2_finish");
        finish(pending.work, proofs.as_mut_ptr().cast())
    };
    if let Err(e) = result.check() {
        panic!("{}", e);
    }
}

/// Ends work that nobody wants any more. NULL is ignored.
///
/// # Safety
/// `handle` must come from [`start_groth16_proof`] and not have been spent.
pub unsafe fn drop_pending_proof(handle: *mut c_void) {
    if !handle.is_null() {
        abandon(Box::from_raw(handle.cast::<Pending>()).work)
    }
}

unsafe fn abandon(work: *mut c_void) {
    let abandon: unsafe extern "C" fn(*mut c_void) = entry(loaded(), c"sealc2_s2_abandon");
    abandon(work)
}

/// The library, for functions that have no other way than a panic to say that it is not there.
fn loaded() -> &'static Library {
    Library::get().unwrap_or_else(|e| panic!("{}", e))
}

unsafe fn entry<F: Copy>(library: &Library, name: &std::ffi::CStr) -> F {
    library.symbol(name).unwrap_or_else(|e| panic!("{}", e))
}
