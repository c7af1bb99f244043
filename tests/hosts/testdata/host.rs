//! A Rust host of libsealc2: `host LIBRARY CASE C1 KEYS PROOF`. It needs no crate; the functions come from
//! dlopen. Exit code 0 and a last line "ok" mean that every check held.

use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::{env, fs, ptr, thread};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn pipe(ends: *mut c_int) -> c_int;
    fn close(file: c_int) -> c_int;
    fn write(file: c_int, data: *const c_void, len: usize) -> isize;
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
}

#[repr(C)]
struct Error {
    size: usize,
    text: *mut c_char,
    text_cap: usize,
    text_len: usize,
}

#[repr(C)]
struct VerifyRequest {
    size: usize,
    registered_proof: i32,
    dev_params: u32,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    prover_id: [u8; 32],
    ticket: [u8; 32],
    seed: [u8; 32],
    sector_id: u64,
    proof: *const u8,
    proof_len: usize,
    params_dir: *const c_char,
}

#[repr(C)]
struct ProveRequest {
    size: usize,
    c1: *const u8,
    c1_len: usize,
    statement: *const u8,
    statement_len: usize,
    sector_id: u64,
    prover_id: [u8; 32],
    params_dir: *const c_char,
    dev_params: u32,
    circuit_proofs: u32,
    r: *const u8,
    s: *const u8,
    scalar_count: usize,
    job: u64,
    progress: *const c_void,
    partition: *const c_void,
    user: *const c_void,
}

#[derive(Clone, Copy)]
struct Library {
    open: unsafe extern "C" fn(*const c_void, *mut u64, *mut Error) -> i32,
    close: unsafe extern "C" fn(u64, *mut Error) -> i32,
    prove: unsafe extern "C" fn(u64, *const ProveRequest, *mut u8, usize, *mut usize, *mut Error) -> i32,
    verify: unsafe extern "C" fn(u64, *const VerifyRequest, *mut i32, *mut Error) -> i32,
}

const INPUT: i32 = 2;
const FORKED: i32 = 11;

struct Sector {
    c1: Vec<u8>,
    keys: CString,
    proof: Vec<u8>,
}

impl Sector {
    fn hash(&self, key: &str) -> [u8; 32] {
        let text = std::str::from_utf8(&self.c1).unwrap();
        let at = text.find(&format!("\"{key}\":[")).expect(key) + key.len() + 4;
        let numbers: Vec<u8> = text[at..].split(']').next().unwrap().split(',').map(|n| n.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }
}

fn load(path: &str) -> Library {
    unsafe {
        let path = CString::new(path).unwrap();
        let handle = dlopen(path.as_ptr(), 2); // RTLD_NOW
        assert!(!handle.is_null(), "dlopen failed");
        let find = |name: &str| {
            let name = CString::new(name).unwrap();
            let at = dlsym(handle, name.as_ptr());
            assert!(!at.is_null(), "no symbol {name:?}");
            at
        };
        Library {
            open: std::mem::transmute(find("sealc2_open")),
            close: std::mem::transmute(find("sealc2_close")),
            prove: std::mem::transmute(find("sealc2_prove")),
            verify: std::mem::transmute(find("sealc2_verify")),
        }
    }
}

fn miner() -> [u8; 32] {
    let mut id = [0; 32];
    id[..2].copy_from_slice(&[0xe8, 0x07]);
    id
}

/// Calls with an error text of its own, which is on the heap and gone after the call.
fn with_error(call: impl FnOnce(*mut Error) -> i32) -> (i32, String) {
    let mut text = vec![0u8; 1024];
    let mut error = Error { size: size_of::<Error>(), text: text.as_mut_ptr().cast(), text_cap: text.len(), text_len: 0 };
    let status = call(&mut error);
    (status, String::from_utf8_lossy(&text[..error.text_len.min(1023)]).into_owned())
}

fn verify(lib: Library, engine: u64, sector: &Sector, good: bool) {
    let mut seed = sector.hash("seed");
    seed[0] ^= !good as u8;
    let proof = sector.proof.clone();
    let request = VerifyRequest {
        size: size_of::<VerifyRequest>(),
        registered_proof: 5,
        dev_params: 1,
        comm_r: sector.hash("comm_r"),
        comm_d: sector.hash("comm_d"),
        prover_id: miner(),
        ticket: sector.hash("ticket"),
        seed,
        sector_id: 1,
        proof: proof.as_ptr(),
        proof_len: proof.len(),
        params_dir: sector.keys.as_ptr(),
    };
    let mut verified = 7;
    let (status, text) = with_error(|e| unsafe { (lib.verify)(engine, &request, &mut verified, e) });
    assert_eq!((status, verified), (0, good as i32), "verify: {text}");
}

fn refused(lib: Library, engine: u64, sector: &Sector) -> (i32, String) {
    let c1 = sector.c1.clone();
    let request = ProveRequest {
        size: size_of::<ProveRequest>(),
        c1: c1.as_ptr(),
        c1_len: c1.len(),
        statement: ptr::null(),
        statement_len: 0,
        sector_id: 2,
        prover_id: miner(),
        params_dir: sector.keys.as_ptr(),
        dev_params: 1,
        circuit_proofs: 0,
        r: ptr::null(),
        s: ptr::null(),
        scalar_count: 0,
        job: 0,
        progress: ptr::null(),
        partition: ptr::null(),
        user: ptr::null(),
    };
    let (mut proof, mut len) = ([0u8; 192], 0);
    with_error(|e| unsafe { (lib.prove)(engine, &request, proof.as_mut_ptr(), proof.len(), &mut len, e) })
}

fn each_kind(lib: Library, engine: u64, sector: &Sector) {
    verify(lib, engine, sector, true);
    verify(lib, engine, sector, false);
    let (status, text) = refused(lib, engine, sector);
    assert!(status == INPUT && text.contains("replica_id"), "prove: {status} {text}");
}

fn open(lib: Library) -> u64 {
    let mut engine = 0;
    let (status, text) = with_error(|e| unsafe { (lib.open)(ptr::null(), &mut engine, e) });
    assert_eq!(status, 0, "open: {text}");
    engine
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// 1000 threads of 128 KiB that call once and end. (Rust's own entry and the formatting take more than 64.)
fn crowd(lib: Library, engine: u64, sector: &Arc<Sector>) {
    let mut before = 0;
    for first in (0..1000).step_by(20) {
        let crowd: Vec<_> = (0..20)
            .map(|i| {
                let sector = sector.clone();
                let body = move || if i % 4 == 0 { each_kind(lib, engine, &sector) } else { assert_eq!(refused(lib, engine, &sector).0, INPUT) };
                thread::Builder::new().stack_size(128 << 10).spawn(body).unwrap()
            })
            .collect();
        crowd.into_iter().for_each(|t| t.join().unwrap());
        if first == 200 {
            before = threads();
        }
    }
    assert!(threads() <= before + 4, "threads grew from {before} to {}", threads());
}

/// 32 at once, while others panic and are caught: unwinding and the library do not meet.
fn together(lib: Library, engine: u64, sector: &Arc<Sector>) {
    std::panic::set_hook(Box::new(|_| {}));
    let line = Arc::new(Barrier::new(33));
    let stop = Arc::new(AtomicBool::new(false));
    let panics = Arc::new(AtomicUsize::new(0));
    let panicking = {
        let (line, stop, panics) = (line.clone(), stop.clone(), panics.clone());
        thread::spawn(move || {
            line.wait();
            while !stop.load(Ordering::Relaxed) || panics.load(Ordering::Relaxed) < 100 {
                assert!(std::panic::catch_unwind(|| panic!("the host's own")).is_err());
                panics.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let (line, sector) = (line.clone(), sector.clone());
            thread::spawn(move || {
                line.wait();
                for _ in 0..3 {
                    each_kind(lib, engine, &sector);
                }
            })
        })
        .collect();
    let results: Vec<_> = callers.into_iter().map(|t| t.join()).collect();
    stop.store(true, Ordering::Relaxed);
    panicking.join().unwrap();
    let _ = std::panic::take_hook();
    results.into_iter().for_each(|r| r.unwrap());
}

/// Rust ignores SIGPIPE, so a broken pipe is an error value; that must stay so.
fn broken_pipe() {
    let mut ends = [0; 2];
    unsafe {
        assert_eq!(pipe(ends.as_mut_ptr()), 0);
        close(ends[0]);
        assert_eq!(write(ends[1], [0u8].as_ptr().cast(), 1), -1);
    }
    assert_eq!(std::io::Error::last_os_error().kind(), std::io::ErrorKind::BrokenPipe);
}

fn forked(lib: Library, engine: u64, sector: &Sector) {
    unsafe {
        let child = fork();
        if child == 0 {
            alarm(20);
            let (status, text) = refused(lib, engine, sector);
            _exit((status != FORKED || !text.contains("fork")) as i32);
        }
        let mut status = 0;
        assert_eq!(waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "the child's status");
    }
    each_kind(lib, engine, sector);
}

/// Ends as Rust ends a thread that runs out of stack: by its own handler of SIGSEGV, with its own words.
fn overflow() {
    #[inline(never)]
    fn deep(n: u64) -> u64 {
        let room = [n; 64];
        if std::hint::black_box(n) == u64::MAX { 0 } else { deep(n + 1) + std::hint::black_box(room)[n as usize % 64] }
    }
    println!("{}", thread::Builder::new().name("deep".into()).spawn(|| deep(0)).unwrap().join().unwrap());
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let lib = load(&args[1]);
    let proof = (0..192).map(|i| u8::from_str_radix(&args[5][2 * i..2 * i + 2], 16).unwrap()).collect();
    let sector = Arc::new(Sector { c1: fs::read(&args[3]).unwrap(), keys: CString::new(args[4].as_str()).unwrap(), proof });
    let engine = open(lib);
    each_kind(lib, engine, &sector);
    match args[2].as_str() {
        "crowd" => crowd(lib, engine, &sector),
        "together" => together(lib, engine, &sector),
        "pipe" => broken_pipe(),
        "fork" => forked(lib, engine, &sector),
        "overflow" => overflow(),
        other => panic!("no case {other}"),
    }
    let (status, text) = with_error(|e| unsafe { (lib.close)(engine, e) });
    assert_eq!(status, 0, "close: {text}");
    println!("ok");
}
