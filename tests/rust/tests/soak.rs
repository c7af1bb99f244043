//! Many proofs of mixed shapes in one process leave memory, threads and files as they were. SEALC2_SOAK says how many.

#[path = "../../../bindings/rust/supraseal-c2/tests/tiny/mod.rs"]
mod tiny;

use bellpepper_core::Circuit;
use bellperson::groth16::{create_proof_batch, SuprasealParameters};
use blstrs::{Bls12, Scalar as Fr};
use sealc2_oracle::other::{with_circuits, Use, NAMES};
use sealc2_oracle::setup::rs;
use sealc2_rust_tests::{param_paths, params, vectors};
use std::fs;
use supraseal_c2::{generate_groth16_proofs, SRS};

#[derive(Clone, Copy, Debug)]
struct Usage {
    rss_mib: u64,
    threads: u64,
    files: u64,
}

fn usage() -> Usage {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let number = |key: &str| -> u64 {
        let line = status.lines().find(|l| l.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    Usage {
        rss_mib: number("VmRSS:") / 1024,
        threads: number("Threads:"),
        files: fs::read_dir("/proc/self/fd").unwrap().count() as u64,
    }
}

struct ProveWith(SuprasealParameters<Bls12>, &'static str);

impl Use for ProveWith {
    type Output = usize;

    fn with<C: Circuit<Fr> + Send>(self, circuits: Vec<(C, Vec<Fr>)>) -> anyhow::Result<usize> {
        let circuits: Vec<C> = circuits.into_iter().map(|(c, _)| c).collect();
        let (r, s) = (0..circuits.len()).map(|k| rs(self.1, k)).unzip();
        Ok(create_proof_batch(circuits, &self.0, r, s)?.len())
    }
}

/// One proof by the reference's circuit: WindowPoSt, WinningPoSt or, seldom, an update (1.7 million rows).
fn filecoin(name: &'static str) {
    let (file, _) = param_paths(name, params(&[name])).unwrap();
    let prover = ProveWith(SuprasealParameters::new(file).unwrap(), name);
    assert_eq!(with_circuits(name, &vectors().join("other").join(name), prover).unwrap(), 1);
}

/// One proof of a tiny circuit with parameters opened for it, and a refusal, which must leave nothing behind either.
fn small(i: usize) {
    let name = tiny::NAMES[i % 4];
    let mut circuit = tiny::Circuit::load(name);
    let srs = SRS::try_new(tiny::folder(name).join("params.bin"), i % 3 == 0).unwrap();
    let mut proofs = tiny::blank(1);
    generate_groth16_proofs(&[circuit.assignment()], &[circuit.r], &[circuit.s], &mut proofs, &srs);
    assert_eq!(proofs[0].hex(), circuit.proof);
    if i % 10 == 0 {
        circuit.c[1] += Fr::from(1);
        tiny::panic_text(|| {
            generate_groth16_proofs(&[circuit.assignment()], &[circuit.r], &[circuit.s], &mut proofs, &srs)
        });
        assert!(SRS::try_new("/no/such.params".into(), true).is_err());
    }
}

#[test]
fn many_proofs_leave_everything_as_it_was() {
    let Ok(count) = std::env::var("SEALC2_SOAK") else {
        return println!("skipped: SEALC2_SOAK is not set");
    };
    let count: usize = count.parse().expect("SEALC2_SOAK is no number");
    assert!(count >= 100, "fewer than 100 proofs say nothing");
    tiny::allow_development();
    params(&["update-2k", NAMES[0], NAMES[1]]);
    // All shapes come in each quarter; the first is for what is made once.
    let quarter = count / 4;
    let mut seen = vec![];
    for i in 0..count {
        match i % quarter {
            5 => filecoin("update-2k"),
            k if k % 8 == 3 => filecoin(NAMES[k / 8 % 2]),
            _ => small(i),
        }
        if (i + 1) % quarter == 0 {
            println!("          after {} proofs: {:?}", i + 1, usage());
            seen.push(usage());
        }
    }
    let (first, last) = (seen[0], seen[seen.len() - 1]);
    assert!(last.rss_mib <= first.rss_mib + first.rss_mib / 10 + 16, "memory grew: {:?}", seen);
    assert!(last.threads <= first.threads, "threads grew: {:?}", seen);
    assert!(last.files <= first.files, "files grew: {:?}", seen);
}
