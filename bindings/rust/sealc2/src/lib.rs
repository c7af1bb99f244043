//! Groth16 proofs for sealed Filecoin sectors (Commit phase 2) through libsealc2.
//!
//! An [`Engine`] owns a memory and thread budget and serves any number of threads; most processes need only one.
//! [`Engine::prove`] turns the output of Commit phase 1 into a proof that has been verified before it is returned, and
//! [`Engine::verify`] checks the claim of a sector. `libsealc2.so` is loaded at the first use, from the path in
//! `SEALC2_LIB`, or else from where the loader looks.
//!
//! ```
//! # fn main() -> sealc2::Result<()> {
//! # let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/c1/porep-2k-a");
//! # let folder = std::env::var("SEALC2_PARAMS").expect("SEALC2_PARAMS: folder of development parameters");
//! # let c1 = std::fs::read(format!("{vectors}/c1.json")).unwrap();
//! use sealc2::{prover_id, Engine, ParamSource, Sector};
//!
//! let engine = Engine::new()?;
//! let params = ParamSource::folder(folder).allow_development();
//! let sector = Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) };
//! let proof = engine.prove(&sector, &params)?;
//! assert_eq!(proof.bytes().len(), 192 * proof.partitions().len());
//! # let text = std::fs::read_to_string(format!("{vectors}/statement.json")).unwrap();
//! # let field = |name: &str| -> [u8; 32] {
//! #     let at = text.find(&format!("\"{name}\": \"")).unwrap() + name.len() + 5;
//! #     let hex = &text[at..at + 64];
//! #     std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
//! # };
//! # let (comm_r, comm_d, ticket, seed) = (field("comm_r"), field("comm_d"), field("ticket"), field("seed"));
//!
//! let claim = sealc2::Claim {
//!     registered_proof: 5, // StackedDrg2KiBV1_1
//!     comm_r, comm_d, ticket, seed,
//!     prover_id: prover_id(1000),
//!     sector_id: 1,
//! };
//! assert!(engine.verify(&claim, proof.bytes(), &params)?);
//! assert!(!engine.verify(&sealc2::Claim { sector_id: 2, ..claim }, proof.bytes(), &params)?);
//! # Ok(())
//! # }
//! ```
//!
//! Progress comes by a closure, and a [`Job`] cancels from another thread:
//!
//! ```
//! # fn main() -> sealc2::Result<()> {
//! # let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/c1/porep-2k-a");
//! # let folder = std::env::var("SEALC2_PARAMS").expect("SEALC2_PARAMS: folder of development parameters");
//! # let c1 = std::fs::read(format!("{vectors}/c1.json")).unwrap();
//! # use sealc2::{prover_id, Engine, ParamSource, Sector};
//! # let engine = Engine::new()?;
//! # let params = ParamSource::folder(folder).allow_development();
//! # let sector = Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) };
//! use sealc2::{Flow, Job, Kind, Options};
//!
//! let job = Job::new()?;
//! let stop = job.clone(); // for any other thread
//! let mut stages = vec![];
//! let result = engine.prove_with(&sector, &params, Options {
//!     job: Some(&job),
//!     progress: Some(&mut |p| {
//!         stages.push(p.stage.to_string());
//!         if p.stage == "parse" {
//!             stop.cancel().unwrap();
//!         }
//!         Flow::Continue
//!     }),
//!     ..Options::default()
//! });
//! assert_eq!(result.unwrap_err().kind, Kind::Cancelled);
//! assert_eq!(stages[0], "parse");
//! # Ok(())
//! # }
//! ```
//!
//! A service need not hold a thread for each proof: [`Engine::submit`] returns a [`Submitted`] to wait for, to ask how far it is, and to
//! cancel, and keeps its own copy of the C1 output.

use std::any::Any;
use std::ffi::{c_char, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

use sealc2_sys as sys;

mod circuits;
mod jobs;
pub use circuits::{Assignment, AssignmentOptions, Circuit, Density, Fr, C1};
pub use jobs::{Class, JobProgress, Requirements, State, SubmitOptions, Submitted, TimelineFormat};

/// Bytes of one partition's proof.
pub const PROOF_BYTES: usize = sys::PROOF_BYTES;

pub type Result<T> = std::result::Result<T, Error>;

/// Whose fault a failure is, and so what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `libsealc2.so` is not there, or is of another version.
    Library,
    /// An argument is wrong.
    Caller,
    /// The C1 output, statement or proof is malformed or mismatched.
    Input,
    /// The vanilla proofs do not satisfy the circuit.
    Unsatisfied,
    /// A parameter file is missing, damaged, of another circuit, or not allowed.
    Params,
    /// Well-formed, but nothing that this version does.
    Unsupported,
    /// The device asked for cannot be used.
    NoDevice,
    /// The budget can never hold what is needed.
    NoMemory,
    /// By a [`Job`], a closure, [`Submitted::cancel`], a deadline, or the end of the engine.
    Cancelled,
    /// A wait ended before the result was there.
    Timeout,
    /// A finished proof failed verification: parameters or hardware.
    SelfCheck,
    /// Called in a child after fork without exec.
    Forked,
    /// A defect of the library.
    Internal,
}

impl Kind {
    fn of(status: sys::Status) -> Kind {
        match status {
            sys::CALLER => Kind::Caller,
            sys::INPUT => Kind::Input,
            sys::UNSATISFIED => Kind::Unsatisfied,
            sys::PARAMS => Kind::Params,
            sys::UNSUPPORTED => Kind::Unsupported,
            sys::NO_DEVICE => Kind::NoDevice,
            sys::NO_MEMORY => Kind::NoMemory,
            sys::CANCELLED => Kind::Cancelled,
            sys::TIMEOUT => Kind::Timeout,
            sys::SELF_CHECK => Kind::SelfCheck,
            sys::FORKED => Kind::Forked,
            _ => Kind::Internal,
        }
    }
}

/// A failure; the text is for the operator and says what was wanted and what was there.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    pub text: String,
}

impl Error {
    fn caller(text: impl Into<String>) -> Error {
        Error { kind: Kind::Caller, text: text.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for Error {}

fn library() -> Result<&'static sys::Library> {
    sys::Library::get().map_err(|e| Error { kind: Kind::Library, text: e.to_string() })
}

/// Makes a call with room for its error text, and turns a failure into an [`Error`].
fn call(f: impl FnOnce(*mut sys::Error) -> sys::Status) -> Result<()> {
    let mut text = vec![0u8; 4096];
    let mut err = sys::Error { text: text.as_mut_ptr().cast(), text_cap: text.len(), ..sys::Error::default() };
    match f(&mut err) {
        sys::OK => Ok(()),
        status => {
            // Without text_len the buffer is as it was: all NUL.
            let text = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
            Err(Error { kind: Kind::of(status), text: text.into_owned() })
        }
    }
}

/// The library's version.
pub fn version() -> Result<&'static str> {
    // SAFETY: static ASCII text.
    let text = unsafe { CStr::from_ptr((library()?.version)()) };
    text.to_str().map_err(|e| Error { kind: Kind::Internal, text: e.to_string() })
}

/// Closes what the library holds: all engines of the process, those of other users of the library included.
pub fn shutdown() -> Result<()> {
    let library = library()?;
    // SAFETY: any thread may call it.
    call(|err| unsafe { (library.shutdown)(err) })
}

/// A miner's prover id: its actor number (1000 for t01000) as unsigned LEB128, zero-filled.
///
/// ```
/// assert_eq!(sealc2::prover_id(1000)[..3], [0xe8, 0x07, 0x00]);
/// ```
pub fn prover_id(actor: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = actor;
    for byte in &mut id {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    id
}

/// Limits of an engine. The default lets the library decide from the environment, affinity and cgroup.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// CPU threads; 0: `RAYON_NUM_THREADS`, then the affinity mask and cgroup limit.
    pub threads: u64,
    /// Host memory in bytes; 0: the cgroup limit or the machine's memory.
    pub host_bytes: u64,
    /// "cpu", "cuda", "cuda:1", "cuda:0,2", "cuda:all" or "auto"; `None`: `SEALC2_DEVICE`, then "auto".
    pub device: Option<String>,
    /// Memory of each GPU in bytes; 0: what is free at the start, less some headroom.
    pub device_bytes: u64,
    /// Part of the host memory for the requests of submitted jobs, in bytes; 0: a 32nd, at most 512 MiB.
    pub queue_bytes: u64,
    /// Interlock rule, for comparing them: "reservation", "single", "two-lock" or "split"; `None`: "reservation", which is meant for work.
    pub policy: Option<String>,
    /// Batches of partitions under way at once on a device (gw); 0: what the rule and the plan say.
    pub device_workers: u32,
    /// Host stages at once (pw); 0: two.
    pub partition_workers: u32,
}

/// Where parameter files are, and which keys are accepted.
#[derive(Clone, Debug, Default)]
pub struct ParamSource {
    folder: Option<PathBuf>,
    development: Option<bool>,
}

impl ParamSource {
    /// What the environment says: `FIL_PROOFS_PARAMETER_CACHE`, `SEALC2_ALLOW_DEV_PARAMS`.
    pub fn environment() -> ParamSource {
        ParamSource::default()
    }

    /// The files in this folder.
    pub fn folder(folder: impl Into<PathBuf>) -> ParamSource {
        ParamSource { folder: Some(folder.into()), development: None }
    }

    /// Accepts keys that are not in the public manifest. Proofs by them prove nothing to anyone.
    pub fn allow_development(mut self) -> ParamSource {
        self.development = Some(true);
        self
    }

    /// Refuses such keys, whatever the environment says.
    pub fn refuse_development(mut self) -> ParamSource {
        self.development = Some(false);
        self
    }

    fn folder_c(&self) -> Result<Option<CString>> {
        let text = |folder: &PathBuf| {
            CString::new(folder.as_os_str().as_bytes()).map_err(|_| Error::caller(format!("{}: a NUL in the path", folder.display())))
        };
        self.folder.as_ref().map(text).transpose()
    }

    fn development_c(&self) -> u32 {
        match self.development {
            None => sys::DEV_PARAMS_ENV,
            Some(true) => sys::DEV_PARAMS_ALLOW,
            Some(false) => sys::DEV_PARAMS_REFUSE,
        }
    }
}

/// One sector to prove.
#[derive(Clone, Copy)]
pub struct Sector<'a> {
    /// C1 output: its JSON, or lotus-bench's wrapping of it.
    pub c1: &'a [u8],
    pub sector_id: u64,
    /// See [`prover_id`].
    pub prover_id: [u8; 32],
}

/// Whether work goes on after a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// The call returns [`Kind::Cancelled`].
    Cancel,
}

/// One finished stage.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// `None`: a stage of the whole job.
    pub partition: Option<u32>,
    pub partitions: u32,
    /// "parse", "params", "expand", "evaluate", "quotient", ..., "verify".
    pub stage: &'a str,
    /// That stage alone.
    pub elapsed: Duration,
    /// Share of the whole job, 0 to 1.
    pub done: f64,
}

/// What a call may have beyond a sector. The closures are called from threads of the library, one at a time, and never
/// after the call has returned; the only thing of this crate that they may call is [`Job::cancel`].
#[derive(Default)]
pub struct Options<'a> {
    /// Statement file of unregistered test sizes.
    pub statement: Option<&'a [u8]>,
    /// The partitions' proofs as they are, also for the non-interactive kinds, whose chain proof is an aggregate of them.
    pub circuit_proofs: bool,
    /// r and s for reproducible proofs in tests: a scalar a partition, little-endian, below the group order. `None`: from
    /// the system's random source.
    pub randomness: Option<(&'a [[u8; 32]], &'a [[u8; 32]])>,
    /// By which another thread can cancel.
    pub job: Option<&'a Job>,
    /// Each stage, when it has finished.
    pub progress: Option<&'a mut (dyn FnMut(&Progress<'_>) -> Flow + Send)>,
    /// Each verified partition's proof, in partition order, as soon as it is there.
    pub partition: Option<&'a mut (dyn FnMut(u32, &[u8; PROOF_BYTES]) -> Flow + Send)>,
}

/// A verified proof: 192 bytes a partition, in partition order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof(Vec<u8>);

impl Proof {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// One proof a partition.
    pub fn partitions(&self) -> std::slice::ChunksExact<'_, u8> {
        self.0.chunks_exact(PROOF_BYTES)
    }
}

impl AsRef<[u8]> for Proof {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A sector's claim as it is registered.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Number of the registered seal proof: 5 is StackedDrg2KiBV1_1, 8 is 32GiBV1_1.
    pub registered_proof: i32,
    pub comm_r: [u8; 32],
    pub comm_d: [u8; 32],
    pub prover_id: [u8; 32],
    pub ticket: [u8; 32],
    /// Interactive randomness.
    pub seed: [u8; 32],
    pub sector_id: u64,
}

/// Time of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: String,
    /// `None`: a stage of the whole job.
    pub partition: Option<u32>,
    /// Since the job began.
    pub start: Duration,
    pub elapsed: Duration,
}

/// A piece of work that another thread can cancel. Clones are the same job.
#[derive(Clone)]
pub struct Job(Arc<JobHandle>);

struct JobHandle {
    library: &'static sys::Library,
    handle: sys::Job,
}

impl Job {
    pub fn new() -> Result<Job> {
        let library = library()?;
        let mut handle = 0;
        // SAFETY: a place for the handle.
        call(|err| unsafe { (library.job_open)(&mut handle, err) })?;
        Ok(Job(Arc::new(JobHandle { library, handle })))
    }

    /// Cancels. A call that runs the job returns [`Kind::Cancelled`] soon, after the stage at hand; one that has not begun
    /// returns it at once. Does not block. A job stays cancelled.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a handle that is open as long as self.
        call(|err| unsafe { (self.0.library.cancel)(self.0.handle, err) })
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        // After sealc2_shutdown the handle is unknown, which is as good.
        // SAFETY: handles are numbers; any is safe to close.
        unsafe { (self.library.job_close)(self.handle, null_mut()) };
    }
}

/// An open engine. Dropping it waits until its memory has gone back; calls of other threads borrow it, so none runs then.
pub struct Engine {
    library: &'static sys::Library,
    handle: sys::Engine,
}

impl Engine {
    /// With the library's own choice of limits.
    pub fn new() -> Result<Engine> {
        Engine::with(&Config::default())
    }

    pub fn with(config: &Config) -> Result<Engine> {
        let library = library()?;
        let name = |field: &str, text: &Option<String>| {
            let text = text.as_deref().map(CString::new).transpose();
            text.map_err(|_| Error::caller(format!("{field}: a NUL in the name")))
        };
        let (device, policy) = (name("device", &config.device)?, name("policy", &config.policy)?);
        let raw = sys::Config {
            threads: config.threads,
            host_bytes: config.host_bytes,
            device: device.as_ref().map_or(null(), |d| d.as_ptr()),
            device_bytes: config.device_bytes,
            queue_bytes: config.queue_bytes,
            policy: policy.as_ref().map_or(null(), |p| p.as_ptr()),
            device_workers: config.device_workers,
            partition_workers: config.partition_workers,
            ..sys::Config::default()
        };
        let mut handle = 0;
        // SAFETY: a whole config and a place for the handle.
        call(|err| unsafe { (library.open)(&raw, &mut handle, err) })?;
        Ok(Engine { library, handle })
    }

    /// Proves a sector. The proof has been verified against the sector's ids, ticket, seed and commitments.
    pub fn prove(&self, sector: &Sector<'_>, params: &ParamSource) -> Result<Proof> {
        self.prove_with(sector, params, Options::default())
    }

    /// [`Engine::prove`] with progress, cancelling and what tests need. A panic in a closure cancels the job and goes on
    /// in the caller.
    pub fn prove_with(&self, sector: &Sector<'_>, params: &ParamSource, options: Options<'_>) -> Result<Proof> {
        let folder = params.folder_c()?;
        let (r, s) = randomness(options.randomness)?;
        let mut watch = Watch { progress: options.progress, partition: options.partition, panic: None };
        let request = sys::ProveRequest {
            circuit_proofs: options.circuit_proofs.into(),
            job: options.job.map_or(0, |j| j.0.handle),
            progress: watch.progress.as_ref().map(|_| on_progress as sys::ProgressFn),
            partition: watch.partition.as_ref().map(|_| on_partition as sys::PartitionFn),
            user: (&mut watch as *mut Watch<'_>).cast(),
            ..request_of(sector, options.statement, params, folder.as_deref(), (r, s))
        };
        // Room for the largest number of partitions there is (126). Should there ever be more, that is found before
        // proving starts, and the second call has the right room.
        let mut proof = vec![0; 128 * PROOF_BYTES];
        let mut len = 0;
        let mut result = self.prove_raw(&request, &mut proof, &mut len);
        if result.is_err() && len > proof.len() {
            proof.resize(len, 0);
            result = self.prove_raw(&request, &mut proof, &mut len);
        }
        if let Some(panic) = watch.panic.take() {
            resume_unwind(panic);
        }
        result?;
        proof.truncate(len);
        Ok(Proof(proof))
    }

    fn prove_raw(&self, request: &sys::ProveRequest, proof: &mut [u8], len: &mut usize) -> Result<()> {
        // SAFETY: all that the request points to outlives the call, and the callbacks do not outlive it.
        call(|err| unsafe { (self.library.prove)(self.handle, request, proof.as_mut_ptr(), proof.len(), len, err) })
    }

    /// Whether the proof is one of this claim. What cannot be a proof at all (length, point encoding, zero commitments) is
    /// [`Kind::Input`].
    pub fn verify(&self, claim: &Claim, proof: &[u8], params: &ParamSource) -> Result<bool> {
        let folder = params.folder_c()?;
        let request = sys::VerifyRequest {
            registered_proof: claim.registered_proof,
            dev_params: params.development_c(),
            comm_r: claim.comm_r,
            comm_d: claim.comm_d,
            prover_id: claim.prover_id,
            ticket: claim.ticket,
            seed: claim.seed,
            sector_id: claim.sector_id,
            proof: proof.as_ptr(),
            proof_len: proof.len(),
            params_dir: folder.as_ref().map_or(null(), |f| f.as_ptr()),
            ..sys::VerifyRequest::default()
        };
        let mut verified = 0;
        // SAFETY: all that the request points to outlives the call.
        call(|err| unsafe { (self.library.verify)(self.handle, &request, &mut verified, err) })?;
        Ok(verified == 1)
    }

    /// Stage times of the proof that finished last; empty before the first.
    pub fn last_stages(&self) -> Result<Vec<Stage>> {
        let mut raw = vec![];
        let mut count = 0;
        loop {
            let capacity = raw.len();
            // SAFETY: room for `capacity` entries of the size given.
            call(|err| unsafe {
                let size = std::mem::size_of::<sys::Stage>();
                (self.library.last_stages)(self.handle, raw.as_mut_ptr(), size, capacity, &mut count, err)
            })?;
            if count <= capacity {
                break;
            }
            raw.resize(count, sys::Stage { name: [0; 24], partition: 0, start_ns: 0, elapsed_ns: 0 });
        }
        raw.truncate(count);
        let stage = |s: &sys::Stage| Stage {
            name: text_of(&s.name),
            partition: u32::try_from(s.partition).ok(),
            start: Duration::from_nanos(s.start_ns),
            elapsed: Duration::from_nanos(s.elapsed_ns),
        };
        Ok(raw.iter().map(stage).collect())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // After sealc2_shutdown the handle is unknown, which is as good.
        // SAFETY: handles are numbers; any is safe to close.
        unsafe { (self.library.close)(self.handle, null_mut()) };
    }
}

/// r and s of a request, as many of one as of the other; empty for none.
fn randomness<'a>(given: Option<(&'a [[u8; 32]], &'a [[u8; 32]])>) -> Result<(&'a [[u8; 32]], &'a [[u8; 32]])> {
    let (r, s) = given.unwrap_or_default();
    if r.len() != s.len() {
        return Err(Error::caller(format!("randomness: {} scalars r, {} scalars s", r.len(), s.len())));
    }
    Ok((r, s))
}

/// What every request for a proof says of its sector. It points to all that it is given, which must outlive it.
fn request_of(
    sector: &Sector<'_>,
    statement: Option<&[u8]>,
    params: &ParamSource,
    folder: Option<&CStr>,
    (r, s): (&[[u8; 32]], &[[u8; 32]]),
) -> sys::ProveRequest {
    sys::ProveRequest {
        c1: sector.c1.as_ptr(),
        c1_len: sector.c1.len(),
        statement: statement.map_or(null(), |s| s.as_ptr()),
        statement_len: statement.map_or(0, |s| s.len()),
        sector_id: sector.sector_id,
        prover_id: sector.prover_id,
        params_dir: folder.map_or(null(), |f| f.as_ptr()),
        dev_params: params.development_c(),
        r: pointer_to(r).cast(),
        s: pointer_to(s).cast(),
        scalar_count: r.len(),
        ..sys::ProveRequest::default()
    }
}

/// A slice's pointer for C: NULL for an empty one.
fn pointer_to<T>(slice: &[T]) -> *const T {
    if slice.is_empty() {
        null()
    } else {
        slice.as_ptr()
    }
}

/// A name for C.
fn text_c(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::caller(format!("{}: a NUL in {:?}", what, text)))
}

/// Text up to the NUL.
fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The closures of one call, and the panic that one of them ended with.
struct Watch<'a> {
    progress: Option<&'a mut (dyn FnMut(&Progress<'_>) -> Flow + Send)>,
    partition: Option<&'a mut (dyn FnMut(u32, &[u8; PROOF_BYTES]) -> Flow + Send)>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Watch<'_> {
    /// Runs a closure; a panic must not go through the library's frames.
    fn run(&mut self, f: impl FnOnce(&mut Self) -> Flow) -> i32 {
        if self.panic.is_some() {
            return 1;
        }
        match catch_unwind(AssertUnwindSafe(|| f(self))) {
            Ok(Flow::Continue) => 0,
            Ok(Flow::Cancel) => 1,
            Err(panic) => {
                self.panic = Some(panic);
                1
            }
        }
    }
}

unsafe extern "C" fn on_progress(user: *mut c_void, progress: *const sys::Progress) -> i32 {
    // SAFETY: the Watch of the call that runs, used by one callback at a time; progress is good during the callback.
    let (watch, raw) = unsafe { (&mut *user.cast::<Watch<'_>>(), &*progress) };
    watch.run(|w| {
        // SAFETY: static NUL-terminated text.
        let stage = unsafe { CStr::from_ptr(raw.stage) }.to_str().unwrap_or("");
        let progress = Progress {
            partition: u32::try_from(raw.partition).ok(),
            partitions: raw.partitions.max(0) as u32,
            stage,
            elapsed: Duration::from_nanos(raw.elapsed_ns),
            done: raw.done,
        };
        w.progress.as_mut().map_or(Flow::Continue, |f| f(&progress))
    })
}

unsafe extern "C" fn on_partition(user: *mut c_void, partition: u32, proof: *const u8) -> i32 {
    // SAFETY: as above; proof has PROOF_BYTES bytes during the callback.
    let (watch, proof) = unsafe { (&mut *user.cast::<Watch<'_>>(), &*proof.cast::<[u8; PROOF_BYTES]>()) };
    watch.run(|w| w.partition.as_mut().map_or(Flow::Continue, |f| f(partition, proof)))
}
