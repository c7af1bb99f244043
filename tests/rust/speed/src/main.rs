//! CPU-seconds of libsealc2 and of bellperson's own prover on the same circuit, in one process, one after the other.
//!
//!     sealc2-speed NAME PARAMS_DIR DIR      porep-2k-a, porep-2k-b, winning-2k, window-2k or update-2k
//!
//! PARAMS_DIR has development parameters under the reference's names, DIR the files of the case in `tests/vectors`.
//! bellperson is given the circuit, and what its synthesis takes is told apart; libsealc2 is given the vectors of the
//! same circuit (a, b, c, inputs, aux, densities). Both get the same r and s and must return the same bytes. Fails where
//! libsealc2 takes more than 0.4 of bellperson's time without synthesis, or its border more than 5% of its own: what
//! comes before `start` returns, which is checking the call, classifying aux, copying and checking the rows.

use anyhow::{ensure, Result};
use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::groth16::{create_proof_batch, Parameters, Proof};
use blstrs::{Bls12, G1Affine, G2Affine, Scalar as Fr};
use sealc2_oracle::cases::{case, config};
use sealc2_oracle::other::{self, with_circuits, Use, NAMES};
use sealc2_oracle::post::T2k;
use sealc2_oracle::record::{load, RecordCs};
use sealc2_oracle::setup::{param_paths, proof_bytes, rs};
use sealc2_oracle::util::Bits;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use supraseal_c2::{finish_groth16_proof, start_groth16_proof, SRS};

#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    rest: [i64; 14],
}

extern "C" {
    fn getrusage(who: c_int, usage: *mut Usage) -> c_int;
}

/// CPU-seconds of all threads of the process, user and system.
fn cpu() -> f64 {
    let mut usage = Usage::default();
    // SAFETY: struct rusage of 64-bit Linux; 0 is RUSAGE_SELF.
    assert_eq!(unsafe { getrusage(0, &mut usage) }, 0);
    let seconds = |t: [i64; 2]| t[0] as f64 + t[1] as f64 / 1e6;
    seconds(usage.user) + seconds(usage.system)
}

/// CPU-seconds and seconds of `f`.
fn timed<T>(f: impl FnOnce() -> T) -> (T, f64, f64) {
    let (begun, clock) = (cpu(), Instant::now());
    let result = f();
    (result, cpu() - begun, clock.elapsed().as_secs_f64())
}

/// A circuit that notes the CPU-seconds of its synthesis, beside which the prover does nothing else.
struct Noted<'a, C>(C, &'a Mutex<f64>);

impl<C: Circuit<Fr>> Circuit<Fr> for Noted<'_, C> {
    fn synthesize<CS: ConstraintSystem<Fr>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let (result, seconds, _) = timed(|| self.0.synthesize(cs));
        *self.1.lock().unwrap() += seconds;
        result
    }
}

fn words(bits: &Bits) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    };
    bits.bytes.chunks(8).map(word).collect()
}

struct Measure<'a> {
    name: &'a str,
    file: PathBuf,
    /// What the recording of the circuit gave; without, this run is the recording.
    vectors: Option<RecordCs>,
}

impl Use for Measure<'_> {
    type Output = Option<RecordCs>;

    fn with<C: Circuit<Fr> + Send>(self, circuits: Vec<(C, Vec<Fr>)>) -> Result<Self::Output> {
        let (circuit, _) = circuits.into_iter().next().expect("no circuit");
        let Some(v) = self.vectors else {
            return Ok(Some(RecordCs::of(circuit)?));
        };
        let (r, s) = rs(self.name, 0);

        let synthesis = Mutex::new(0.0);
        let mapped = Parameters::<Bls12>::build_mapped_parameters(self.file.clone(), false)?;
        let (theirs, stock, stock_wall) =
            timed(|| create_proof_batch(vec![Noted(circuit, &synthesis)], &mapped, vec![r], vec![s]));
        let theirs = theirs?;
        let synthesis = synthesis.into_inner().unwrap();

        let srs = SRS::try_new(self.file, false)?;
        let blank = Proof { a: G1Affine::default(), b: G2Affine::default(), c: G1Affine::default() };
        let mut ours: [Proof<Bls12>; 1] = [blank];
        let (a_aux, b_input, b_aux) = (words(&v.a_aux), words(&v.b_input), words(&v.b_aux));
        let mut border = 0.0;
        let ((), own, own_wall) = timed(|| {
            let begun = cpu();
            let pending = start_groth16_proof(
                &[v.a.as_ptr()],
                &[v.b.as_ptr()],
                &[v.c.as_ptr()],
                v.a.len(),
                &[v.inputs.as_ptr()],
                &[v.aux.as_ptr()],
                v.inputs.len(),
                v.aux.len(),
                &a_aux,
                &b_input,
                &b_aux,
                v.a_aux.popcount() as usize,
                v.b_input.popcount() as usize,
                v.b_aux.popcount() as usize,
                1,
                &[r],
                &[s],
                &srs,
                std::ptr::null_mut(),
                -1,
            );
            border = cpu() - begun;
            finish_groth16_proof(pending, &mut ours);
        });

        let prover = stock - synthesis;
        println!("{}: {} rows, {} aux", self.name, v.a.len(), v.aux.len());
        println!("  bellperson: {:.2} CPU-s, of which synthesis {:.2}; {:.2} s", stock, synthesis, stock_wall);
        println!("  libsealc2:  {:.2} CPU-s, of which border {:.3}; {:.2} s", own, border, own_wall);
        println!("  ratio {:.3} (without synthesis), border {:.1}%", own / prover, 100.0 * border / own);
        ensure!(hex::encode(proof_bytes(&ours[0])?) == hex::encode(proof_bytes(&theirs[0])?), "the proofs differ");
        ensure!(own <= 0.4 * prover, "more than 0.4 of bellperson's {:.2} CPU-s", prover);
        ensure!(border <= 0.05 * own, "the border takes more than 5%");
        Ok(None)
    }
}

fn run(name: &str, params: &Path, folder: &Path) -> Result<()> {
    // Keys of tests, as in all of this folder.
    std::env::set_var("SEALC2_ALLOW_DEV_PARAMS", "1");
    let mut vectors = None;
    for _ in 0..2 {
        vectors = if NAMES.contains(&name) {
            let (file, _) = other::param_paths(name, params)?;
            with_circuits(name, folder, Measure { name, file, vectors })?
        } else {
            let case = case(name)?;
            let config = config(&case);
            let (file, _) = param_paths::<T2k>(&config, params)?;
            let loaded = load::<T2k>(&case, &config, folder)?;
            Measure { name, file, vectors }.with(vec![(loaded.circuit(0)?, vec![])])?
        };
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    ensure!(args.len() == 3, "usage: sealc2-speed NAME PARAMS_DIR DIR");
    run(&args[0], args[1].as_ref(), args[2].as_ref())
}
