//! The hand-made circuits of tests/vectors/tiny as assignments, with the proofs that bellperson made of them.
#![allow(dead_code)] // each test file uses its part

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::{Field, PrimeField};
use serde_json::Value;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use supraseal_c2::{Assignment, SRS};

pub const NAMES: [&str; 4] = ["tiny-16", "tiny-64", "tiny-128", "tiny-1024"];

/// A proof as the library writes it, which is also bellperson's layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proof {
    pub a: G1Affine,
    pub b: G2Affine,
    pub c: G1Affine,
}

impl Proof {
    pub fn hex(&self) -> String {
        let mut bytes = self.a.to_compressed().to_vec();
        bytes.extend(self.b.to_compressed());
        bytes.extend(self.c.to_compressed());
        bytes.iter().map(|b| format!("{:02x}", b)).collect()
    }
}

/// Proofs nobody has written yet: every byte 0xa5.
pub fn blank(n: usize) -> Vec<Proof> {
    let mut proofs = Vec::<Proof>::with_capacity(n);
    // SAFETY: the points are plain limbs, of which any value may be stored.
    unsafe {
        std::ptr::write_bytes(proofs.as_mut_ptr(), 0xa5, n);
        proofs.set_len(n);
    }
    proofs
}

pub fn is_blank(proof: &Proof) -> bool {
    // SAFETY: limbs without padding.
    let bytes = unsafe { std::slice::from_raw_parts((proof as *const Proof).cast::<u8>(), size_of::<Proof>()) };
    bytes.iter().all(|b| *b == 0xa5)
}

#[derive(Clone)]
pub struct Bits {
    pub words: Vec<usize>,
    pub len: usize,
}

impl Bits {
    /// From a string of 0 and 1; all bits after the last are set, since nobody may look at them.
    fn new(text: &str) -> Bits {
        let mut words = vec![usize::MAX; text.len().div_ceil(64)];
        for (i, bit) in text.bytes().enumerate() {
            if bit == b'0' {
                words[i / 64] &= !(1 << (i % 64));
            }
        }
        Bits { words, len: text.len() }
    }

    pub fn ones(&self) -> usize {
        (0..self.len).filter(|i| self.words[i / 64] >> (i % 64) & 1 == 1).count()
    }
}

#[derive(Clone)]
pub struct Circuit {
    pub a_aux: Bits,
    pub b_inp: Bits,
    pub b_aux: Bits,
    pub a: Vec<Scalar>,
    pub b: Vec<Scalar>,
    pub c: Vec<Scalar>,
    pub inputs: Vec<Scalar>,
    pub aux: Vec<Scalar>,
    pub r: Scalar,
    pub s: Scalar,
    pub proof: String,
    pub proof_with_zeros: String,
}

fn scalar(v: &Value) -> Scalar {
    let hex = v.as_str().unwrap();
    Scalar::from_repr(std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())).unwrap()
}

/// A circuit's folder, seen from whatever crate of the tree this is compiled in.
pub fn folder(name: &str) -> PathBuf {
    let inside = |root: &Path| root.join("tests/vectors/tiny");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|root| inside(root).is_dir());
    inside(root.expect("tests/vectors/tiny is not in the tree")).join(name)
}

impl Circuit {
    pub fn load(name: &str) -> Circuit {
        let json = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder(name).join(file)).unwrap()).unwrap() };
        let (w, p) = (json("witness.json"), json("proof.json"));
        let scalars = |v: &Value| v.as_array().unwrap().iter().map(scalar).collect::<Vec<_>>();
        let bits = |v: &Value| Bits::new(v.as_str().unwrap());
        Circuit {
            a_aux: bits(&w["a_aux_density"]),
            b_inp: bits(&w["b_input_density"]),
            b_aux: bits(&w["b_aux_density"]),
            a: scalars(&w["a"]),
            b: scalars(&w["b"]),
            c: scalars(&w["c"]),
            inputs: scalars(&w["input_assignment"]),
            aux: scalars(&w["aux_assignment"]),
            r: scalar(&p["r"]),
            s: scalar(&p["s"]),
            proof: p["proof"].as_str().unwrap().into(),
            proof_with_zeros: p["proof_with_r_and_s_zero"].as_str().unwrap().into(),
        }
    }

    pub fn assignment(&self) -> Assignment<Scalar> {
        Assignment {
            a_aux_density: self.a_aux.words.as_ptr(),
            a_aux_bit_len: self.a_aux.len,
            a_aux_popcount: self.a_aux.ones(),
            b_inp_density: self.b_inp.words.as_ptr(),
            b_inp_bit_len: self.b_inp.len,
            b_inp_popcount: self.b_inp.ones(),
            b_aux_density: self.b_aux.words.as_ptr(),
            b_aux_bit_len: self.b_aux.len,
            b_aux_popcount: self.b_aux.ones(),
            a: self.a.as_ptr(),
            b: self.b.as_ptr(),
            c: self.c.as_ptr(),
            abc_size: self.a.len(),
            inp_assignment_data: self.inputs.as_ptr(),
            inp_assignment_size: self.inputs.len(),
            aux_assignment_data: self.aux.as_ptr(),
            aux_assignment_size: self.aux.len(),
        }
    }

    /// Overwrites all that the library has read, as a caller that reuses its buffers does.
    pub fn poison(&mut self) {
        for v in [&mut self.a, &mut self.b, &mut self.c, &mut self.inputs, &mut self.aux] {
            v.fill(-Scalar::ONE);
        }
        for bits in [&mut self.a_aux, &mut self.b_inp, &mut self.b_aux] {
            bits.words.fill(0x5555_5555_5555_5555);
        }
    }
}

/// The circuit's keys are development keys, which need leave. Called before anything that reads the environment.
pub fn allow_development() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::env::set_var("SEALC2_ALLOW_DEV_PARAMS", "1"));
}

pub fn srs(name: &str) -> SRS {
    allow_development();
    SRS::try_new(folder(name).join("params.bin"), false).unwrap()
}

/// The text of the panic that `f` ends with; the provers' own are Strings.
pub fn panic_text(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other.downcast_ref::<&str>().unwrap().to_string(),
    }
}
