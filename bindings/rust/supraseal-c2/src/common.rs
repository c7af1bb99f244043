//! What both forms of the crate share: the loaded library, parameters, assignments, errors.
//!
//! Layouts and semantics of the functions are in `include/sealc2_s2.h`. The cuzk form includes this file as it is.

use std::error;
use std::ffi::{c_char, c_int, c_void, CStr, CString, OsStr};
use std::fmt;
use std::mem::{offset_of, size_of, transmute_copy};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

// From the C library, which std links anyway.
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
    fn free(block: *mut c_void);
}

/// Resolve all symbols now, so that a library that cannot work is refused here and not in the middle of a proof.
const RTLD_NOW: c_int = 2;

/// errno values that an [`Error`] of this side of the border has.
const EINVAL: i32 = 22;
const ELIBACC: i32 = 79;
const ELIBBAD: i32 = 80;

/// Why a call failed. `code` is an errno if positive, and a CUDA error, negated, if negative; the text says all.
pub struct Error {
    pub code: i32,
    text: String,
}

impl Error {
    fn new(code: i32, text: String) -> Error {
        Error { code, text }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "supraseal_c2::Error {{ code: {}, text: {:?} }}", self.code, self.text)
    }
}

impl error::Error for Error {}

impl From<Error> for String {
    fn from(e: Error) -> String {
        e.text
    }
}

impl From<&Error> for String {
    fn from(e: &Error) -> String {
        e.text.clone()
    }
}

/// `sealc2_s2_error`, as it is returned.
#[repr(C)]
pub(crate) struct RawError {
    code: i32,
    message: *mut c_char,
}

impl RawError {
    /// Takes the text over and frees the C library's block, on success too.
    pub(crate) fn check(self) -> Result<(), Error> {
        let text = if self.message.is_null() {
            format!("error {} of libsealc2", self.code)
        } else {
            // SAFETY: by contract a NUL-terminated malloc'ed text that is now ours.
            unsafe {
                let text = CStr::from_ptr(self.message).to_string_lossy().into_owned();
                free(self.message.cast());
                text
            }
        };
        match self.code {
            0 => Ok(()),
            code => Err(Error::new(code, text)),
        }
    }
}

/// `sealc2_s2_srs`: an opaque reference.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawSrs(*mut c_void);

/// The entry points that this crate calls, resolved once and kept for the life of the process (libsealc2 is never
/// unloaded).
pub(crate) struct Library {
    srs_open: unsafe extern "C" fn(*mut RawSrs, *const c_char, bool) -> RawError,
    srs_evict: unsafe extern "C" fn(*const RawSrs),
    srs_drop: unsafe extern "C" fn(*mut RawSrs),
    srs_clone: unsafe extern "C" fn(*const RawSrs) -> RawSrs,
    #[allow(clippy::type_complexity)]
    prove:
        unsafe extern "C" fn(*const c_void, usize, *const c_void, *const c_void, *mut c_void, *const RawSrs, i32, *mut c_void) -> RawError,
    handle: *mut c_void,
}

// SAFETY: the functions may be called from any thread, and the handle is only looked up in.
unsafe impl Send for Library {}
unsafe impl Sync for Library {}

impl Library {
    /// The library, loaded at the first call: from `SEALC2_LIB` if that is set and not empty, else as `libsealc2.so` from
    /// where the loader looks. A failure is not remembered, so that a later call can succeed.
    pub(crate) fn get() -> Result<&'static Library, Error> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library);
        }
        let library = Library::load()?;
        Ok(LOADED.get_or_init(|| library))
    }

    fn load() -> Result<Library, Error> {
        let path = std::env::var_os("SEALC2_LIB").filter(|p| !p.is_empty());
        let (path, origin) = match &path {
            Some(path) => (path.as_os_str(), "SEALC2_LIB"),
            None => (OsStr::new("libsealc2.so"), "the loader's paths, since SEALC2_LIB is not set"),
        };
        let c_path = CString::new(path.as_bytes()).map_err(|_| Error::new(EINVAL, "SEALC2_LIB: a NUL in the path".into()))?;
        // SAFETY: a NUL-terminated path; libsealc2's constructors are made to be loaded at any time.
        let handle = unsafe { dlopen(c_path.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            return Err(Error::new(ELIBACC, format!("sealc2: cannot load {} ({}): {}", path.to_string_lossy(), origin, last_dl_error())));
        }
        // SAFETY: the names have these types in sealc2_s2.h.
        unsafe {
            Ok(Library {
                srs_open: symbol(handle, c"sealc2_s2_srs_open")?,
                srs_evict: symbol(handle, c"sealc2_s2_srs_evict")?,
                srs_drop: symbol(handle, c"sealc2_s2_srs_drop")?,
                srs_clone: symbol(handle, c"sealc2_s2_srs_clone")?,
                prove: symbol(handle, c"sealc2_s2_prove")?,
                handle,
            })
        }
    }

    /// Another entry point of the loaded library.
    ///
    /// # Safety
    /// `F` must be the function pointer type of `name`.
    #[allow(dead_code)] // the cuzk form has more of them
    pub(crate) unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Result<F, Error> {
        symbol(self.handle, name)
    }
}

fn last_dl_error() -> String {
    // SAFETY: dlerror gives NULL or a text that is good until the next dl call of this thread.
    unsafe {
        let text = dlerror();
        if text.is_null() {
            "no reason given".into()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, Error> {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    let address = dlsym(handle, name.as_ptr());
    if address.is_null() {
        return Err(Error::new(
            ELIBBAD,
            format!("sealc2: the library has no {}; it is of another version: {}", name.to_string_lossy(), last_dl_error()),
        ));
    }
    Ok(transmute_copy(&address))
}

/// A parameter file, opened for proving. A clone is one more reference to the same parameters; the last one to go
/// gives the memory back. The default is empty, and is refused by the provers.
#[repr(C)]
pub struct SRS {
    ptr: *const c_void,
}

// SAFETY: the library counts references and locks by itself.
unsafe impl Send for SRS {}
unsafe impl Sync for SRS {}

impl Default for SRS {
    fn default() -> SRS {
        SRS { ptr: std::ptr::null() }
    }
}

impl SRS {
    /// Opens the parameter file at `srs_path`. `cache` keeps it in the process-wide list of the four last used.
    /// A path that is not UTF-8 or holds a NUL is an error.
    pub fn try_new(srs_path: PathBuf, cache: bool) -> Result<SRS, Error> {
        let refuse = |what: &str| Error::new(EINVAL, format!("{}: {}", srs_path.display(), what));
        let text = srs_path.to_str().ok_or_else(|| refuse("the path is not UTF-8"))?;
        let text = CString::new(text).map_err(|_| refuse("a NUL in the path"))?;
        let library = Library::get()?;
        let mut srs = SRS::default();
        // SAFETY: an empty reference to write to, and a NUL-terminated path.
        unsafe { (library.srs_open)(srs.raw_mut(), text.as_ptr(), cache) }.check()?;
        Ok(srs)
    }

    /// Takes the file out of the process-wide list. References stay good.
    pub fn evict(&self) {
        if let Some(library) = self.library() {
            // SAFETY: a live reference.
            unsafe { (library.srs_evict)(self.raw()) }
        }
    }

    pub(crate) fn raw(&self) -> *const RawSrs {
        (self as *const SRS).cast()
    }

    fn raw_mut(&mut self) -> *mut RawSrs {
        (self as *mut SRS).cast()
    }

    /// The library that made this reference; none made an empty one.
    fn library(&self) -> Option<&'static Library> {
        if self.ptr.is_null() {
            return None;
        }
        Library::get().ok()
    }
}

impl Clone for SRS {
    fn clone(&self) -> SRS {
        match self.library() {
            // SAFETY: a live reference.
            Some(library) => SRS { ptr: unsafe { (library.srs_clone)(self.raw()) }.0 },
            None => SRS::default(),
        }
    }
}

impl Drop for SRS {
    fn drop(&mut self) {
        if let Some(library) = self.library() {
            // SAFETY: a live reference, which is cleared.
            unsafe { (library.srs_drop)(self.raw_mut()) }
        }
    }
}

/// One circuit's assignment. The densities say which variables occur: bit i is word i/64, place i%64, and bits from
/// the length on may be anything. `a`, `b`, `c` are the rows' evaluations, `abc_size` of each, with the appended row of
/// each input; the first input is one. Numbers are in Montgomery form.
#[repr(C)]
pub struct Assignment<Scalar> {
    pub a_aux_density: *const usize,
    pub a_aux_bit_len: usize,
    pub a_aux_popcount: usize,

    pub b_inp_density: *const usize,
    pub b_inp_bit_len: usize,
    pub b_inp_popcount: usize,

    pub b_aux_density: *const usize,
    pub b_aux_bit_len: usize,
    pub b_aux_popcount: usize,

    pub a: *const Scalar,
    pub b: *const Scalar,
    pub c: *const Scalar,
    pub abc_size: usize,

    pub inp_assignment_data: *const Scalar,
    pub inp_assignment_size: usize,

    pub aux_assignment_data: *const Scalar,
    pub aux_assignment_size: usize,
}

/// sealc2_s2.h has these sizes and places.
const _: () = {
    assert!(size_of::<SRS>() == 8 && size_of::<RawSrs>() == 8);
    assert!(size_of::<RawError>() == 16 && offset_of!(RawError, message) == 8);
    assert!(size_of::<Assignment<[u64; 4]>>() == 136);
    assert!(offset_of!(Assignment<[u64; 4]>, b_inp_density) == 24);
    assert!(offset_of!(Assignment<[u64; 4]>, b_aux_density) == 48);
    assert!(offset_of!(Assignment<[u64; 4]>, a) == 72);
    assert!(offset_of!(Assignment<[u64; 4]>, abc_size) == 96);
    assert!(offset_of!(Assignment<[u64; 4]>, inp_assignment_data) == 104);
    assert!(offset_of!(Assignment<[u64; 4]>, aux_assignment_data) == 120);
};

/// A scalar is 32 bytes: four limbs.
pub(crate) fn assert_scalar<S>() {
    assert_eq!(size_of::<S>(), 32, "a scalar must have 32 bytes");
}

/// A proof is 384 bytes: A (96), B (192), C (96).
pub(crate) fn assert_proof<PR>() {
    assert_eq!(size_of::<PR>(), 384, "a proof must have 384 bytes");
}

/// Proves on `device` (-1: any), not at the same time as other work with the same `exclusion` token (NULL: no
/// restriction). Panics with the error's text.
pub(crate) fn prove_on<S, PR>(
    provers: &[Assignment<S>],
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
    device: i32,
    exclusion: *mut c_void,
) {
    assert_scalar::<S>();
    assert_proof::<PR>();
    assert_eq!(r_s.len(), provers.len(), "one r a circuit");
    assert_eq!(s_s.len(), provers.len(), "one s a circuit");
    assert_eq!(proofs.len(), provers.len(), "one proof a circuit");
    let result = Library::get().and_then(|library| {
        // SAFETY: the slices have as many elements as there are circuits, of the sizes just checked; that the pointers
        // inside the assignments are good is the caller's word, as with the original.
        unsafe {
            (library.prove)(
                provers.as_ptr().cast(),
                provers.len(),
                r_s.as_ptr().cast(),
                s_s.as_ptr().cast(),
                proofs.as_mut_ptr().cast(),
                srs.raw(),
                device,
                exclusion,
            )
        }
        .check()
    });
    if let Err(e) = result {
        panic!("{}", e);
    }
}

/// Proves each circuit with its r and s (zero is legal). The proofs may be uninitialised before, and are written only if
/// all are right: every row is checked, and every proof is verified with the key at the head of the parameter file.
///
/// # Panics
/// With the error's text, and if the slices differ in length, `S` has not 32 bytes or `PR` not 384.
pub fn generate_groth16_proofs<S, PR>(provers: &[Assignment<S>], r_s: &[S], s_s: &[S], proofs: &mut [PR], srs: &SRS) {
    prove_on(provers, r_s, s_s, proofs, srs, -1, std::ptr::null_mut())
}

/// Assignments of circuits whose densities are the same.
#[allow(clippy::too_many_arguments)]
pub(crate) fn shared_density<S, D>(
    a: &[*const S],
    b: &[*const S],
    c: &[*const S],
    abc_size: usize,
    inputs: &[*const S],
    aux: &[*const S],
    inputs_size: usize,
    aux_size: usize,
    a_aux_density: &[D],
    b_inp_density: &[D],
    b_aux_density: &[D],
    a_aux_total: usize,
    b_inp_total: usize,
    b_aux_total: usize,
    num_circuits: usize,
) -> Vec<Assignment<S>> {
    assert_scalar::<S>();
    assert_eq!(size_of::<D>(), 8, "density words must have 64 bits");
    for (name, list) in [("a", a), ("b", b), ("c", c), ("inputs", inputs), ("aux", aux)] {
        assert_eq!(list.len(), num_circuits, "{}: one pointer a circuit", name);
    }
    for (name, words, bits) in
        [("a_aux", a_aux_density, aux_size), ("b_inp", b_inp_density, inputs_size), ("b_aux", b_aux_density, aux_size)]
    {
        assert!(words.len() >= bits.div_ceil(64), "{}: {} density words for {} bits", name, words.len(), bits);
    }
    let circuit = |i: usize| Assignment {
        a_aux_density: a_aux_density.as_ptr().cast(),
        a_aux_bit_len: aux_size,
        a_aux_popcount: a_aux_total,
        b_inp_density: b_inp_density.as_ptr().cast(),
        b_inp_bit_len: inputs_size,
        b_inp_popcount: b_inp_total,
        b_aux_density: b_aux_density.as_ptr().cast(),
        b_aux_bit_len: aux_size,
        b_aux_popcount: b_aux_total,
        a: a[i],
        b: b[i],
        c: c[i],
        abc_size,
        inp_assignment_data: inputs[i],
        inp_assignment_size: inputs_size,
        aux_assignment_data: aux[i],
        aux_assignment_size: aux_size,
    };
    (0..num_circuits).map(circuit).collect()
}
