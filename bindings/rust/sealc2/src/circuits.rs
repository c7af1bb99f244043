//! Circuits with values made elsewhere, and looks at C1 outputs and circuits.

use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::ptr::null;

use sealc2_sys as sys;

use crate::{
    call, on_progress, pointer_to, randomness, text_c, text_of, Engine, Error, Flow, Job, ParamSource, Progress, Proof, Result, Watch,
    PROOF_BYTES,
};

/// An element of the scalar field in Montgomery form: 64-bit limbs, the lowest first.
pub type Fr = [u64; 4];

/// Which variables occur in a matrix: a bit each, the lowest of a word first. Bits behind the last one do not count.
#[derive(Clone, Copy)]
pub struct Density<'a> {
    pub words: &'a [u64],
    pub bits: usize,
}

impl Density<'_> {
    fn raw(&self, what: &str, want: usize) -> Result<sys::Density> {
        if self.bits != want || self.words.len() != self.bits.div_ceil(64) {
            let (bits, words) = (self.bits, self.words.len());
            return Err(Error::caller(format!("{what}: want {want} bits in {} words, got {bits} in {words}", want.div_ceil(64))));
        }
        let mut ones: usize = self.words.iter().map(|w| w.count_ones() as usize).sum();
        if self.bits % 64 != 0 {
            ones -= (self.words[self.words.len() - 1] >> (self.bits % 64)).count_ones() as usize;
        }
        Ok(sys::Density { words: pointer_to(self.words), bits: self.bits, ones })
    }
}

/// All values of one circuit, made elsewhere.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    /// The rows' values, with the row that bellperson appends for each input.
    pub a: &'a [Fr],
    pub b: &'a [Fr],
    pub c: &'a [Fr],
    /// Public inputs, the constant one first.
    pub inputs: &'a [Fr],
    /// Private variables.
    pub aux: &'a [Fr],
    /// Which aux occur in A.
    pub a_aux_density: Density<'a>,
    /// Which inputs occur in B.
    pub b_input_density: Density<'a>,
    /// Which aux occur in B.
    pub b_aux_density: Density<'a>,
}

impl Assignment<'_> {
    fn raw(&self, index: usize) -> Result<sys::Circuit> {
        for (name, v) in [("b", self.b), ("c", self.c)] {
            if v.len() != self.a.len() {
                let (want, got) = (self.a.len(), v.len());
                return Err(Error::caller(format!("assignments[{index}].{name}: want {want} elements, as a has, got {got}")));
            }
        }
        let density = |name: &str, d: &Density<'_>, want| d.raw(&format!("assignments[{index}].{name}"), want);
        Ok(sys::Circuit {
            a_aux: density("a_aux_density", &self.a_aux_density, self.aux.len())?,
            b_inp: density("b_input_density", &self.b_input_density, self.inputs.len())?,
            b_aux: density("b_aux_density", &self.b_aux_density, self.aux.len())?,
            a: pointer_to(self.a),
            b: pointer_to(self.b),
            c: pointer_to(self.c),
            abc_len: self.a.len(),
            inp: pointer_to(self.inputs),
            inp_len: self.inputs.len(),
            aux: pointer_to(self.aux),
            aux_len: self.aux.len(),
        })
    }
}

/// What a proof of assignments may have beyond them. The closure is as in [`crate::Options`].
#[derive(Default)]
pub struct AssignmentOptions<'a> {
    /// r and s: a scalar a circuit, little-endian, canonical; zero is legal. `None`: from the system's random source.
    pub randomness: Option<(&'a [[u8; 32]], &'a [[u8; 32]])>,
    /// Whether development parameters are accepted; `None`: the environment says.
    pub development: Option<bool>,
    /// By which another thread can cancel.
    pub job: Option<&'a Job>,
    /// Each stage, when it has finished.
    pub progress: Option<&'a mut (dyn FnMut(&Progress<'_>) -> Flow + Send)>,
}

/// What a C1 output claims, and the public inputs that follow from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct C1 {
    /// "2KiB"
    pub shape: String,
    /// `None` for the unregistered test sizes.
    pub registered_proof: Option<i32>,
    /// Of a partition.
    pub challenges: u32,
    pub porep_id: [u8; 32],
    pub replica_id: [u8; 32],
    pub comm_r: [u8; 32],
    pub comm_d: [u8; 32],
    pub ticket: [u8; 32],
    pub seed: [u8; 32],
    /// Of each partition, without the constant one: canonical, little-endian.
    pub inputs: Vec<Vec<[u8; 32]>>,
}

/// Counts and digests of a circuit; triples are of the matrices A, B and C.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Circuit {
    /// With the constant one.
    pub inputs: u64,
    /// Private variables.
    pub aux: u64,
    pub constraints: u64,
    /// With those that bellperson appends, one an input.
    pub rows: u64,
    /// The power of two that holds the rows.
    pub domain: u64,
    /// Matrix entries.
    pub nonzero: [u64; 3],
    /// Of a row.
    pub max_terms: [u64; 3],
    /// How many aux occur in A.
    pub a_aux: u64,
    /// How many inputs occur in B.
    pub b_input: u64,
    /// How many aux occur in B.
    pub b_aux: u64,
    /// SHA-256 compressions.
    pub sha256: u64,
    /// Poseidon hashes.
    pub poseidon: u64,
    /// Constraints of a chunk.
    pub chunk_rows: u64,
    /// Over the chunks' digests.
    pub digest: [u8; 32],
    /// SHA-256 of the densities as bits, eight a byte, the lowest first.
    pub a_aux_digest: [u8; 32],
    pub b_input_digest: [u8; 32],
    pub b_aux_digest: [u8; 32],
    pub chunks: Vec<[u8; 32]>,
}

impl Engine {
    /// Proves circuits whose values were made elsewhere, all of one shape. Every row is checked ([`crate::Kind::Unsatisfied`] names it),
    /// and every proof is verified with the key at the head of the parameter file and the given inputs.
    pub fn prove_assignments(&self, params: &Path, assignments: &[Assignment<'_>], options: AssignmentOptions<'_>) -> Result<Proof> {
        let path = std::ffi::CString::new(params.as_os_str().as_bytes())
            .map_err(|_| Error::caller(format!("{}: a NUL in the path", params.display())))?;
        let circuits = assignments.iter().enumerate().map(|(i, a)| a.raw(i)).collect::<Result<Vec<_>>>()?;
        let (r, s) = randomness(options.randomness)?;
        let mut watch = Watch { progress: options.progress, partition: None, panic: None };
        let request = sys::AssignmentsRequest {
            params: path.as_ptr(),
            circuits: pointer_to(&circuits),
            count: circuits.len(),
            r: pointer_to(r).cast(),
            s: pointer_to(s).cast(),
            scalar_count: r.len(),
            job: options.job.map_or(0, |j| j.0.handle),
            progress: watch.progress.as_ref().map(|_| on_progress as sys::ProgressFn),
            user: (&mut watch as *mut Watch<'_>).cast(),
            dev_params: ParamSource { folder: None, development: options.development }.development_c(),
            ..sys::AssignmentsRequest::default()
        };
        let mut proof = vec![0; circuits.len() * PROOF_BYTES];
        let mut len = 0;
        // SAFETY: all that the request points to outlives the call, and the callback does not outlive it.
        let result =
            call(|err| unsafe { (self.library.prove_assignments)(self.handle, &request, proof.as_mut_ptr(), proof.len(), &mut len, err) });
        if let Some(panic) = watch.panic.take() {
            resume_unwind(panic);
        }
        result?;
        proof.truncate(len);
        Ok(Proof(proof))
    }

    /// What a C1 output claims, with its public inputs. With ids (sector id, prover id) the replica id is recomputed and compared,
    /// else it is taken from the C1. Proves nothing.
    pub fn read_c1(&self, c1: &[u8], statement: Option<&[u8]>, ids: Option<(u64, [u8; 32])>) -> Result<C1> {
        let request = sys::C1Request {
            c1: pointer_to(c1),
            c1_len: c1.len(),
            statement: statement.map_or(null(), |s| s.as_ptr()),
            statement_len: statement.map_or(0, |s| s.len()),
            sector_id: ids.map_or(0, |(sector, _)| sector),
            prover_id: ids.as_ref().map_or(null(), |(_, prover)| prover.as_ptr()),
            ..sys::C1Request::default()
        };
        let mut info = sys::C1Info::default();
        let mut inputs: Vec<[u8; 32]> = vec![[0; 32]; 512];
        loop {
            // SAFETY: all that the request points to outlives the call; room for as many bytes as are said.
            call(|err| unsafe {
                (self.library.read_c1)(self.handle, &request, &mut info, inputs.as_mut_ptr().cast(), inputs.len() * 32, err)
            })?;
            let need = info.partitions as usize * info.inputs as usize;
            if need <= inputs.len() {
                inputs.truncate(need);
                break;
            }
            inputs.resize(need, [0; 32]);
        }
        Ok(C1 {
            shape: text_of(&info.shape),
            registered_proof: (info.registered_proof >= 0).then_some(info.registered_proof),
            challenges: info.challenges,
            porep_id: info.porep_id,
            replica_id: info.replica_id,
            comm_r: info.comm_r,
            comm_d: info.comm_d,
            ticket: info.ticket,
            seed: info.seed,
            inputs: inputs.chunks((info.inputs as usize).max(1)).map(<[_]>::to_vec).collect(),
        })
    }

    /// Counts and digests of the circuit of a sector size, "2KiB" to "64GiB", from the program that proofs run. A second for the small
    /// sizes, minutes for 32 GiB; the job cancels it.
    pub fn circuit_digest(&self, shape: &str, job: Option<&Job>) -> Result<Circuit> {
        let shape = text_c("shape", shape)?;
        let mut c = sys::CircuitDigest::default();
        let mut chunks: Vec<[u8; 32]> = vec![[0; 32]; 4096];
        loop {
            // SAFETY: room for as many bytes as are said.
            call(|err| unsafe {
                let job = job.map_or(0, |j| j.0.handle);
                (self.library.circuit_digest)(self.handle, shape.as_ptr(), job, &mut c, chunks.as_mut_ptr().cast(), chunks.len() * 32, err)
            })?;
            let need = c.chunks as usize;
            if need <= chunks.len() {
                chunks.truncate(need);
                break;
            }
            chunks.resize(need, [0; 32]);
        }
        Ok(Circuit {
            inputs: c.inputs,
            aux: c.aux,
            constraints: c.constraints,
            rows: c.rows,
            domain: c.domain,
            nonzero: c.nonzero,
            max_terms: c.max_terms,
            a_aux: c.a_aux,
            b_input: c.b_input,
            b_aux: c.b_aux,
            sha256: c.sha256,
            poseidon: c.poseidon,
            chunk_rows: c.chunk_rows,
            digest: c.digest,
            a_aux_digest: c.a_aux_digest,
            b_input_digest: c.b_input_digest,
            b_aux_digest: c.b_aux_digest,
            chunks,
        })
    }
}
