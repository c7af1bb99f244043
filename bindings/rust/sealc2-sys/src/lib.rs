//! Raw declarations of libsealc2's native interface, `include/sealc2.h` with the two structs of `include/sealc2_s2.h` that it refers
//! to, and the library loaded at first use.
//!
//! Layouts, names and order are the header's; what the functions do is said there. For programs there is the safe crate
//! `sealc2`. Nothing is linked: [`Library::get`] loads `libsealc2.so` from the path in `SEALC2_LIB`, or else from where
//! the loader looks, once a process.
//!
//! ```
//! let library = sealc2_sys::Library::get().expect("libsealc2.so");
//! let version = unsafe { std::ffi::CStr::from_ptr((library.version)()) };
//! assert_eq!(version.to_str(), Ok(sealc2_sys::VERSION));
//! ```

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("libsealc2 is for 64-bit Linux");

use std::ffi::{c_char, c_int, c_void, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::{error, fmt, mem};

/// Version of the header that these declarations follow.
pub const VERSION: &str = "0.1.0";

/// Bytes of one partition's proof.
pub const PROOF_BYTES: usize = 192;

/// Result of every function: one of the constants below.
pub type Status = i32;
pub const OK: Status = 0;
pub const CALLER: Status = 1;
pub const INPUT: Status = 2;
pub const UNSATISFIED: Status = 3;
pub const PARAMS: Status = 4;
pub const UNSUPPORTED: Status = 5;
pub const NO_DEVICE: Status = 6;
pub const NO_MEMORY: Status = 7;
pub const CANCELLED: Status = 8;
pub const TIMEOUT: Status = 9;
pub const SELF_CHECK: Status = 10;
pub const FORKED: Status = 11;
pub const INTERNAL: Status = 12;

/// Room for a submitted job's id, with the NUL.
pub const JOB_ID_BYTES: usize = 128;
/// A wait without an end.
pub const FOREVER: u64 = u64::MAX;

/// Values of `priority`.
pub const CLASS_POREP: u32 = 0;
pub const CLASS_SNAP: u32 = 1;
pub const CLASS_WINDOW_POST: u32 = 2;
pub const CLASS_WINNING_POST: u32 = 3;

/// Values of `state`.
pub const JOB_QUEUED: u32 = 0;
pub const JOB_RUNNING: u32 = 1;
pub const JOB_DONE: u32 = 2;
pub const JOB_FAILED: u32 = 3;
pub const JOB_CANCELLED: u32 = 4;

/// Forms of the timeline.
pub const TIMELINE_TEXT: u32 = 0;
pub const TIMELINE_JSON: u32 = 1;
pub const TIMELINE_CHROME: u32 = 2;

/// Values of `dev_params`.
pub const DEV_PARAMS_ENV: u32 = 0;
pub const DEV_PARAMS_ALLOW: u32 = 1;
pub const DEV_PARAMS_REFUSE: u32 = 2;

/// An open engine; 0 is none.
pub type Engine = u64;
/// A piece of work that can be cancelled; 0 is none.
pub type Job = u64;

/// A part of an error's text; `len` 0 is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub at: u32,
    pub len: u32,
}

#[repr(C)]
pub struct Error {
    pub size: usize,
    pub text: *mut c_char,
    pub text_cap: usize,
    pub text_len: usize,
    pub op: Span,
    pub location: Span,
    pub want: Span,
    pub got: Span,
}

#[repr(C)]
pub struct Config {
    pub size: usize,
    pub threads: u64,
    pub host_bytes: u64,
    pub device: *const c_char,
    pub device_bytes: u64,
    pub queue_bytes: u64,
    pub policy: *const c_char,
    pub device_workers: u32,
    pub partition_workers: u32,
}

#[repr(C)]
pub struct SubmitOptions {
    pub size: usize,
    pub id: *const c_char,
    pub priority: u32,
    pub replace: u32,
    pub deadline_ms: u64,
    pub room_ms: u64,
    pub call: Job,
}

#[repr(C)]
pub struct JobInfo {
    pub size: usize,
    pub id: [c_char; JOB_ID_BYTES],
    pub state: u32,
    pub priority: u32,
    pub partitions: u32,
    pub delivered: u32,
    pub partition: i32,
    pub status: i32,
    pub stage: [c_char; 24],
    pub done: f64,
    pub queued_ns: u64,
    pub running_ns: u64,
}

#[repr(C)]
pub struct Needs {
    pub size: usize,
    pub partitions: u32,
    pub threads: u32,
    pub host_bytes: u64,
    pub device_bytes: u64,
    pub shared_bytes: u64,
    pub host_limit: u64,
    pub device_limit: u64,
    pub batch: u32,
    pub ahead: u32,
    pub devices: u32,
    pub threads_limit: u32,
}

/// `sealc2_s2_density`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Density {
    pub words: *const u64,
    pub bits: usize,
    pub ones: usize,
}

/// `sealc2_s2_prover`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Circuit {
    pub a_aux: Density,
    pub b_inp: Density,
    pub b_aux: Density,
    pub a: *const [u64; 4],
    pub b: *const [u64; 4],
    pub c: *const [u64; 4],
    pub abc_len: usize,
    pub inp: *const [u64; 4],
    pub inp_len: usize,
    pub aux: *const [u64; 4],
    pub aux_len: usize,
}

#[repr(C)]
pub struct AssignmentsRequest {
    pub size: usize,
    pub params: *const c_char,
    pub circuits: *const Circuit,
    pub count: usize,
    pub r: *const u8,
    pub s: *const u8,
    pub scalar_count: usize,
    pub job: Job,
    pub progress: Option<ProgressFn>,
    pub user: *mut c_void,
    pub dev_params: u32,
}

#[repr(C)]
pub struct C1Request {
    pub size: usize,
    pub c1: *const u8,
    pub c1_len: usize,
    pub statement: *const u8,
    pub statement_len: usize,
    pub sector_id: u64,
    pub prover_id: *const u8,
}

#[repr(C)]
pub struct C1Info {
    pub size: usize,
    pub shape: [c_char; 16],
    pub registered_proof: i32,
    pub partitions: u32,
    pub inputs: u32,
    pub challenges: u32,
    pub porep_id: [u8; 32],
    pub replica_id: [u8; 32],
    pub comm_r: [u8; 32],
    pub comm_d: [u8; 32],
    pub ticket: [u8; 32],
    pub seed: [u8; 32],
}

/// `sealc2_circuit`.
#[repr(C)]
pub struct CircuitDigest {
    pub size: usize,
    pub inputs: u64,
    pub aux: u64,
    pub constraints: u64,
    pub rows: u64,
    pub domain: u64,
    pub nonzero: [u64; 3],
    pub max_terms: [u64; 3],
    pub a_aux: u64,
    pub b_input: u64,
    pub b_aux: u64,
    pub sha256: u64,
    pub poseidon: u64,
    pub chunk_rows: u64,
    pub chunks: u64,
    pub digest: [u8; 32],
    pub a_aux_digest: [u8; 32],
    pub b_input_digest: [u8; 32],
    pub b_aux_digest: [u8; 32],
}

#[repr(C)]
pub struct Progress {
    pub size: usize,
    pub partition: i32,
    pub partitions: i32,
    pub stage: *const c_char,
    pub elapsed_ns: u64,
    pub done: f64,
    pub start_ns: u64,
}

pub type ProgressFn = unsafe extern "C" fn(user: *mut c_void, progress: *const Progress) -> i32;
pub type PartitionFn = unsafe extern "C" fn(user: *mut c_void, partition: u32, proof: *const u8) -> i32;

#[repr(C)]
pub struct ProveRequest {
    pub size: usize,
    pub c1: *const u8,
    pub c1_len: usize,
    pub statement: *const u8,
    pub statement_len: usize,
    pub sector_id: u64,
    pub prover_id: [u8; 32],
    pub params_dir: *const c_char,
    pub dev_params: u32,
    pub circuit_proofs: u32,
    pub r: *const u8,
    pub s: *const u8,
    pub scalar_count: usize,
    pub job: Job,
    pub progress: Option<ProgressFn>,
    pub partition: Option<PartitionFn>,
    pub user: *mut c_void,
}

#[repr(C)]
pub struct VerifyRequest {
    pub size: usize,
    pub registered_proof: i32,
    pub dev_params: u32,
    pub comm_r: [u8; 32],
    pub comm_d: [u8; 32],
    pub prover_id: [u8; 32],
    pub ticket: [u8; 32],
    pub seed: [u8; 32],
    pub sector_id: u64,
    pub proof: *const u8,
    pub proof_len: usize,
    pub params_dir: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stage {
    pub name: [c_char; 24],
    pub partition: i64,
    pub start_ns: u64,
    pub elapsed_ns: u64,
}

const _: () = {
    assert!(mem::size_of::<Error>() == 64);
    assert!(mem::size_of::<Config>() == 64);
    assert!(mem::size_of::<SubmitOptions>() == 48);
    assert!(mem::size_of::<JobInfo>() == 208);
    assert!(mem::size_of::<Needs>() == 72);
    assert!(mem::size_of::<Circuit>() == 136);
    assert!(mem::size_of::<AssignmentsRequest>() == 88);
    assert!(mem::size_of::<C1Request>() == 56);
    assert!(mem::size_of::<C1Info>() == 232);
    assert!(mem::size_of::<CircuitDigest>() == 280);
    assert!(mem::size_of::<Progress>() == 48);
    assert!(mem::size_of::<ProveRequest>() == 152);
    assert!(mem::offset_of!(ProveRequest, params_dir) == 80);
    assert!(mem::offset_of!(ProveRequest, r) == 96);
    assert!(mem::offset_of!(ProveRequest, user) == 144);
    assert!(mem::size_of::<VerifyRequest>() == 208);
    assert!(mem::offset_of!(VerifyRequest, sector_id) == 176);
    assert!(mem::size_of::<Stage>() == 48);
};

/// An all-zero struct with its size set, which is how the header wants them to begin.
macro_rules! sized_default {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> $name {
                // SAFETY: plain data; zero is a value of each field.
                let mut v: $name = unsafe { mem::zeroed() };
                v.size = mem::size_of::<$name>();
                v
            }
        }
    )*};
}
sized_default!(Error Config ProveRequest VerifyRequest SubmitOptions JobInfo Needs AssignmentsRequest C1Request C1Info CircuitDigest);

macro_rules! library {
    ($($field:ident = $symbol:literal: fn($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        /// The functions of the header, without `sealc2_`, resolved.
        pub struct Library {
            $(pub $field: unsafe extern "C" fn($($arg: $type),*) -> $result,)*
        }

        impl Library {
            unsafe fn resolve(handle: *mut c_void) -> Result<Library, LoadError> {
                Ok(Library { $($field: symbol(handle, $symbol)?,)* })
            }
        }
    };
}

library! {
    version = c"sealc2_version": fn() -> *const c_char;
    status_name = c"sealc2_status_name": fn(status: i32) -> *const c_char;
    open = c"sealc2_open": fn(config: *const Config, engine: *mut Engine, err: *mut Error) -> Status;
    close = c"sealc2_close": fn(engine: Engine, err: *mut Error) -> Status;
    job_open = c"sealc2_job_open": fn(job: *mut Job, err: *mut Error) -> Status;
    cancel = c"sealc2_cancel": fn(job: Job, err: *mut Error) -> Status;
    job_close = c"sealc2_job_close": fn(job: Job, err: *mut Error) -> Status;
    prove = c"sealc2_prove": fn(engine: Engine, request: *const ProveRequest, proof: *mut u8, proof_cap: usize,
        proof_len: *mut usize, err: *mut Error) -> Status;
    verify = c"sealc2_verify": fn(engine: Engine, request: *const VerifyRequest, verified: *mut i32,
        err: *mut Error) -> Status;
    last_stages = c"sealc2_last_stages": fn(engine: Engine, stages: *mut Stage, stage_size: usize, capacity: usize,
        count: *mut usize, err: *mut Error) -> Status;
    submit = c"sealc2_submit": fn(engine: Engine, request: *const ProveRequest, options: *const SubmitOptions, job: *mut Job,
        err: *mut Error) -> Status;
    wait = c"sealc2_wait": fn(job: Job, timeout_ms: u64, proof: *mut u8, proof_cap: usize, proof_len: *mut usize,
        err: *mut Error) -> Status;
    job_progress = c"sealc2_job_progress": fn(job: Job, info: *mut JobInfo, err: *mut Error) -> Status;
    requirements = c"sealc2_requirements": fn(engine: Engine, shape: *const c_char, device: *const c_char, needs: *mut Needs,
        err: *mut Error) -> Status;
    preload = c"sealc2_preload": fn(engine: Engine, shape: *const c_char, params_dir: *const c_char, dev_params: u32, job: Job,
        err: *mut Error) -> Status;
    evict = c"sealc2_evict": fn(engine: Engine, shape: *const c_char, params_dir: *const c_char, err: *mut Error) -> Status;
    idle_release = c"sealc2_idle_release": fn(engine: Engine, err: *mut Error) -> Status;
    metrics = c"sealc2_metrics": fn(engine: Engine, text: *mut c_char, text_cap: usize, text_len: *mut usize,
        err: *mut Error) -> Status;
    timeline = c"sealc2_timeline": fn(engine: Engine, format: u32, text: *mut c_char, text_cap: usize, text_len: *mut usize,
        err: *mut Error) -> Status;
    prove_assignments = c"sealc2_prove_assignments": fn(engine: Engine, request: *const AssignmentsRequest, proof: *mut u8,
        proof_cap: usize, proof_len: *mut usize, err: *mut Error) -> Status;
    read_c1 = c"sealc2_read_c1": fn(engine: Engine, request: *const C1Request, info: *mut C1Info, inputs: *mut u8,
        inputs_cap: usize, err: *mut Error) -> Status;
    circuit_digest = c"sealc2_circuit_digest": fn(engine: Engine, shape: *const c_char, job: Job, circuit: *mut CircuitDigest,
        chunks: *mut u8, chunks_cap: usize, err: *mut Error) -> Status;
    shutdown = c"sealc2_shutdown": fn(err: *mut Error) -> Status;
}

/// Why the library could not be loaded.
#[derive(Clone, Debug)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for LoadError {}

// From the C library, which std links anyway.
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

const RTLD_NOW: c_int = 2;

impl Library {
    /// The library, loaded at the first call and kept: it is never unloaded. A failure is not remembered, so that a
    /// later call can succeed.
    pub fn get() -> Result<&'static Library, LoadError> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library);
        }
        let path = std::env::var_os("SEALC2_LIB").filter(|p| !p.is_empty());
        let (path, origin) = match &path {
            Some(path) => (path.as_os_str(), "SEALC2_LIB"),
            None => (OsStr::new("libsealc2.so"), "the loader's paths, since SEALC2_LIB is not set"),
        };
        let c_path = CString::new(path.as_bytes()).map_err(|_| LoadError("SEALC2_LIB: a NUL in the path".into()))?;
        // SAFETY: a NUL-terminated path; libsealc2's constructors are made to be loaded at any time.
        let handle = unsafe { dlopen(c_path.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            let why = last_error();
            return Err(LoadError(format!("sealc2: cannot load {} ({}): {}", path.to_string_lossy(), origin, why)));
        }
        // SAFETY: the names have these types in sealc2.h.
        let library = unsafe { Library::resolve(handle)? };
        Ok(LOADED.get_or_init(|| library))
    }
}

unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Result<F, LoadError> {
    let address = dlsym(handle, name.as_ptr());
    if address.is_null() {
        let name = name.to_string_lossy();
        return Err(LoadError(format!("sealc2: the library has no {}; it is of another version: {}", name, last_error())));
    }
    Ok(mem::transmute_copy(&address))
}

fn last_error() -> String {
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
