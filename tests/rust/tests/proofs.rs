//! The reference's own code over libsealc2: filecoin-proofs-api and bellperson, built with cuda-supraseal and patched to
//! `bindings/rust/supraseal-c2`, prove 2 KiB sectors; the reference verifies.

use bellpepper_core::Circuit;
use bellperson::groth16::{create_proof_batch, Proof, SuprasealParameters};
use blstrs::{Bls12, Scalar as Fr};
use ff::Field;
use filecoin_proofs::{add_piece, UnpaddedBytesAmount};
use filecoin_proofs_api::post::{
    generate_window_post, generate_winning_post, verify_window_post, verify_winning_post,
};
use filecoin_proofs_api::seal::{
    seal_commit_phase2, seal_commit_phase2_circuit_proofs, verify_seal, SealCommitPhase1Output,
};
use filecoin_proofs_api::update::{
    empty_sector_update_encode_into, generate_empty_sector_update_proof, verify_empty_sector_update_proof,
};
use filecoin_proofs_api::{
    PrivateReplicaInfo, PublicReplicaInfo, RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof, SectorId,
};
use sealc2_oracle::cases::{case, config};
use sealc2_oracle::other::{self, with_circuits, Use};
use sealc2_oracle::post::{seal_2k, Sealed, T2k};
use sealc2_oracle::record::load;
use sealc2_oracle::seal::seal_case;
use sealc2_oracle::setup::{proof_bytes, rs};
use sealc2_oracle::util::named_stream;
use sealc2_rust_tests::{param_paths, params, porep_config, timed, vectors};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

fn c1_of(folder: &Path) -> (SealCommitPhase1Output, serde_json::Value) {
    let json = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    (serde_json::from_str(&json("c1.json")).unwrap(), serde_json::from_str(&json("statement.json")).unwrap())
}

fn flipped(bytes: [u8; 32]) -> [u8; 32] {
    let mut other = bytes;
    other[0] ^= 1;
    other
}

#[test]
fn porep_from_the_sector_to_the_verified_proof() {
    params(&["porep-2k"]);
    let name = "porep-2k-b";
    let folder = tempfile::tempdir().unwrap();
    timed("PoRep: seal 2 KiB, C1", || seal_case(name, folder.path())).unwrap();
    let (c1, _) = c1_of(folder.path());
    let case = case(name).unwrap();
    let id = SectorId::from(case.sector_id);
    let verify = |seed, proof: &[u8]| {
        let proof_type = RegisteredSealProof::StackedDrg2KiBV1_1;
        verify_seal(proof_type, c1.comm_r, c1.comm_d, case.prover_id, id, c1.ticket, seed, proof).unwrap()
    };
    let out = timed("PoRep: C2", || seal_commit_phase2(c1.clone(), case.prover_id, id)).unwrap();
    assert_eq!(out.proof.len(), 192);
    assert!(verify(c1.seed, &out.proof));
    assert!(!verify(flipped(c1.seed), &out.proof));
    let again = timed("PoRep: C2, circuit proofs", || seal_commit_phase2_circuit_proofs(c1.clone(), id)).unwrap();
    assert_ne!(again.proof, out.proof, "r and s were not random");
    assert!(verify(c1.seed, &again.proof));
}

/// Ten proofs in one call and three in another.
#[test]
fn non_interactive_porep_in_batches() {
    if std::env::var_os("SEALC2_LONG").is_none() {
        return println!("skipped: SEALC2_LONG is not set");
    }
    params(&["porep-2k"]);
    let (c1, statement) = c1_of(&vectors().join("c1/porep-2k-ni"));
    let id = SectorId::from(statement["sector_id"].as_u64().unwrap());
    let out = timed("NI-PoRep: 13 circuit proofs", || seal_commit_phase2_circuit_proofs(c1, id)).unwrap();
    assert_eq!(out.proof.len(), 13 * 192);
}

#[test]
fn vanilla_proofs_that_do_not_hold_are_refused_and_the_next_call_works() {
    params(&["porep-2k"]);
    let folder = vectors().join("c1/porep-2k-a");
    let (good, statement) = c1_of(&folder);
    let id = SectorId::from(statement["sector_id"].as_u64().unwrap());
    let prover_id = case("porep-2k-a").unwrap().prover_id;
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("c1.json")).unwrap()).unwrap();
    let challenge = &mut json["vanilla_proofs"]["StackedDrg2KiBV1"][0][0];
    let byte = &mut challenge["comm_r_last_proof"]["data"]["Single"]["path"]["path"][0]["hashes"][0][3];
    *byte = (byte.as_u64().expect("the C1 has another form") ^ 1).into();
    let bad: SealCommitPhase1Output = serde_json::from_value(json).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| seal_commit_phase2(bad, prover_id, id))).err().expect("no panic");
    let text = panic.downcast_ref::<String>().expect("the panic's payload is no String");
    println!("          refused: {}", text);
    assert!(text.contains("row"), "{}", text);
    assert_eq!(seal_commit_phase2(good, prover_id, id).unwrap().proof.len(), 192);
}

fn replicas(
    sealed: &[Sealed],
    proof: RegisteredPoStProof,
) -> (BTreeMap<SectorId, PrivateReplicaInfo>, BTreeMap<SectorId, PublicReplicaInfo>) {
    let private = |s: &Sealed| (s.id, PrivateReplicaInfo::new(proof, s.comm_r, s.cache.clone(), s.replica.clone()));
    let public = |s: &Sealed| (s.id, PublicReplicaInfo::new(proof, s.comm_r));
    (sealed.iter().map(private).collect(), sealed.iter().map(public).collect())
}

/// Field elements: the two top bits are clear.
const RANDOMNESS: [u8; 32] = [0x2a; 32];

#[test]
fn winning_post() {
    params(&["winning-2k"]);
    let folder = tempfile::tempdir().unwrap();
    let sealed = [seal_2k("porep-2k-b", folder.path()).unwrap()];
    let prover_id = case("porep-2k-a").unwrap().prover_id;
    let (private, public) = replicas(&sealed, RegisteredPoStProof::StackedDrgWinning2KiBV1);
    let proofs = timed("WinningPoSt", || generate_winning_post(&RANDOMNESS, &private, prover_id)).unwrap();
    assert_eq!(proofs[0].1.len(), 192);
    assert!(verify_winning_post(&RANDOMNESS, &proofs[0].1, &public, prover_id).unwrap());
    assert!(!verify_winning_post(&flipped(RANDOMNESS), &proofs[0].1, &public, prover_id).unwrap());
}

#[test]
fn window_post() {
    params(&["window-2k"]);
    let folder = tempfile::tempdir().unwrap();
    let sealed = ["porep-2k-a", "porep-2k-b"].map(|name| seal_2k(name, folder.path()).unwrap());
    let prover_id = case("porep-2k-a").unwrap().prover_id;
    let (private, public) = replicas(&sealed, RegisteredPoStProof::StackedDrgWindow2KiBV1_2);
    let proofs = timed("WindowPoSt", || generate_window_post(&RANDOMNESS, &private, prover_id)).unwrap();
    let verify = |randomness| {
        let proofs: Vec<_> = proofs.iter().map(|(proof_type, proof)| (*proof_type, proof.as_slice())).collect();
        verify_window_post(randomness, &proofs, &public, prover_id).unwrap()
    };
    assert!(verify(&RANDOMNESS));
    assert!(!verify(&flipped(RANDOMNESS)));
}

#[test]
fn sector_update() {
    params(&["update-2k"]);
    let folder = tempfile::tempdir().unwrap();
    let sealed = seal_2k("porep-2k-a", folder.path()).unwrap();
    let [staged, replica, cache] = ["new-staged", "new-replica", "new-cache"].map(|name| folder.path().join(name));
    fs::create_dir(&cache).unwrap();
    let unpadded: UnpaddedBytesAmount = porep_config().unpadded_bytes_amount();
    let data = named_stream("another update", u64::from(unpadded) as usize);
    let (piece, _) = add_piece(&data[..], fs::File::create(&staged).unwrap(), unpadded, &[]).unwrap();
    let new = fs::File::create(&replica).unwrap();
    new.set_len(fs::metadata(&sealed.replica).unwrap().len()).unwrap();
    let proof_type = RegisteredUpdateProof::StackedDrg2KiBV1;
    let e = empty_sector_update_encode_into(
        proof_type, &replica, &cache, &sealed.replica, &sealed.cache, &staged, &[piece],
    )
    .unwrap();
    let proof = timed("SnapDeals", || {
        generate_empty_sector_update_proof(
            proof_type, sealed.comm_r, e.comm_r_new, e.comm_d_new, &sealed.replica, &sealed.cache, &replica, &cache,
        )
    })
    .unwrap();
    assert_eq!(proof.0.len(), 192);
    let verify = |comm_d| {
        verify_empty_sector_update_proof(proof_type, &proof.0, sealed.comm_r, e.comm_r_new, comm_d).unwrap()
    };
    assert!(verify(e.comm_d_new));
    assert!(!verify(flipped(e.comm_d_new)));
}

/// bellperson with its circuits and our prover.
struct ProveWith {
    params: SuprasealParameters<Bls12>,
    r: Vec<Fr>,
    s: Vec<Fr>,
}

impl Use for ProveWith {
    type Output = (Vec<Proof<Bls12>>, Vec<Vec<Fr>>);

    fn with<C: Circuit<Fr> + Send>(self, circuits: Vec<(C, Vec<Fr>)>) -> anyhow::Result<Self::Output> {
        let (circuits, inputs): (Vec<C>, Vec<Vec<Fr>>) = circuits.into_iter().unzip();
        Ok((create_proof_batch(circuits, &self.params, self.r, self.s)?, inputs))
    }
}

fn hex_of(proofs: &[Proof<Bls12>]) -> Vec<String> {
    proofs.iter().map(|p| hex::encode(proof_bytes(p).unwrap())).collect()
}

fn expected(folder: &Path) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("proof.json")).unwrap()).unwrap();
    json["proofs"].as_array().unwrap().iter().map(|p| p.as_str().unwrap().to_string()).collect()
}

fn fixed_r_and_s_give_bellpersons_bytes(name: &str) {
    let folder = vectors().join("other").join(name);
    let (file, vk) = param_paths(name, params(&[name])).unwrap();
    let prove = |r, s| {
        let params = SuprasealParameters::new(file.clone()).unwrap();
        let (proofs, inputs) = with_circuits(name, &folder, ProveWith { params, r, s }).unwrap();
        other::verify(&vk, &proofs, &inputs).unwrap();
        proofs
    };
    let (r, s) = rs(name, 0);
    let proofs = timed(&format!("{}: circuit and proof with fixed r and s", name), || prove(vec![r], vec![s]));
    assert_eq!(hex_of(&proofs), expected(&folder), "{}", name);
    if name == "window-2k" {
        prove(vec![Fr::ZERO], vec![Fr::ZERO]);
    }
}

#[test]
fn fixed_r_and_s_give_bellpersons_bytes_for_posts() {
    for name in ["winning-2k", "window-2k"] {
        fixed_r_and_s_give_bellpersons_bytes(name);
    }
}

#[test]
fn fixed_r_and_s_give_bellpersons_bytes_for_an_update() {
    fixed_r_and_s_give_bellpersons_bytes("update-2k");
}

#[test]
fn fixed_r_and_s_give_bellpersons_bytes_for_porep() {
    let (file, _) = param_paths("porep-2k", params(&["porep-2k"])).unwrap();
    for name in ["porep-2k-a", "porep-2k-b"] {
        let folder = vectors().join("c1").join(name);
        let case = case(name).unwrap();
        let loaded = load::<T2k>(&case, &config(&case), &folder).unwrap();
        let (r, s) = rs(name, 0);
        let params = SuprasealParameters::new(file.clone()).unwrap();
        let proofs = timed(&format!("{}: circuit and proof with fixed r and s", name), || {
            create_proof_batch(vec![loaded.circuit(0).unwrap()], &params, vec![r], vec![s]).unwrap()
        });
        assert_eq!(hex_of(&proofs), expected(&folder), "{}", name);
    }
}

/// Both interfaces of the library in one process: what the native one proves, the reference verifies.
#[test]
fn native_proofs_verify_too() {
    let folder = vectors().join("c1/porep-2k-a");
    let (c1, statement) = c1_of(&folder);
    let text = fs::read(folder.join("c1.json")).unwrap();
    let prover_id = sealc2::prover_id(1000);
    let sector_id = statement["sector_id"].as_u64().unwrap();
    let engine = sealc2::Engine::new().unwrap();
    let sector = sealc2::Sector { c1: &text, sector_id, prover_id };
    let source = sealc2::ParamSource::folder(params(&["porep-2k"])).allow_development();
    let proof = timed("PoRep: C2 by the native interface", || engine.prove(&sector, &source)).unwrap();
    let proof_type = RegisteredSealProof::StackedDrg2KiBV1_1;
    let id = SectorId::from(sector_id);
    assert!(verify_seal(proof_type, c1.comm_r, c1.comm_d, prover_id, id, c1.ticket, c1.seed, proof.bytes()).unwrap());
}
