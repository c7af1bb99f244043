//! Verifies what another program made, along the paths that a node takes: a proof file, or the vanilla proofs
//! of a sector.
use crate::cases::{case, config, Case, Kind};
use crate::record::load;
use crate::setup::param_paths;
use crate::with_shape;
use anyhow::{ensure, Context, Result};
use bellperson::groth16::{
    prepare_verifying_key, verify_proof, verify_proofs_batch, Proof, VerifyingKey,
};
use blstrs::{Bls12, Scalar as Fr};
use filecoin_proofs::constants::*;
use filecoin_proofs::PoRepConfig;
use filecoin_proofs_api::seal as api;
use serde_json::json;
use std::fs;
use std::path::Path;
use storage_proofs_core::api_version::ApiFeature;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_core::sector::SectorId;
use storage_proofs_porep::stacked::{generate_replica_id, StackedDrg};

const PROOF_BYTES: usize = 192;

/// Checks PROOF_FILE (192 bytes a partition, in partition order) for the sector of DIR/c1.json against
/// the key in PARAMS_DIR, which holds it under the reference's own name. Prints one JSON object; any
/// failed check is an error.
pub fn verify_case(name: &str, params_dir: &Path, dir: &Path, proof_file: &Path) -> Result<()> {
    let c = case(name)?;
    let cfg = config(&c);
    // The crates read their settings once, at first use, which is below.
    std::env::set_var("FIL_PROOFS_PARAMETER_CACHE", params_dir);
    with_shape!(u64::from(cfg.sector_size), inner, &c, &cfg, params_dir, dir, proof_file)
}

fn inner<Tree: 'static + MerkleTreeTrait>(
    c: &Case,
    cfg: &PoRepConfig,
    params_dir: &Path,
    dir: &Path,
    proof_file: &Path,
) -> Result<()> {
    let l = load::<Tree>(c, cfg, dir)?;
    let n = l.proofs.len();
    let bytes = fs::read(proof_file).with_context(|| proof_file.display().to_string())?;
    ensure!(
        bytes.len() == n * PROOF_BYTES,
        "{}: want {} bytes ({} partitions), got {}",
        proof_file.display(), n * PROOF_BYTES, n, bytes.len()
    );

    let (_, vk_path) = param_paths::<Tree>(cfg, params_dir)?;
    let vk_bytes = fs::read(&vk_path).with_context(|| vk_path.display().to_string())?;
    let pvk = prepare_verifying_key(&VerifyingKey::<Bls12>::read(&vk_bytes[..])?);
    let proofs: Vec<Proof<Bls12>> = bytes
        .chunks(PROOF_BYTES)
        .map(|b| Ok(Proof::read(b)?))
        .collect::<Result<_>>()?;
    let inputs: Vec<Vec<Fr>> = (0..n).map(|k| l.public_inputs(k)).collect::<Result<_>>()?;
    for k in 0..n {
        ensure!(verify_proof(&pvk, &proofs[k], &inputs[k])?, "partition {} does not verify", k);
    }
    let refs: Vec<&Proof<Bls12>> = proofs.iter().collect();
    ensure!(
        verify_proofs_batch(&pvk, &mut rand::rngs::OsRng, &refs, &inputs)?,
        "the batch does not verify"
    );

    let mut report = json!({
        "name": c.name,
        "proof_file_sha256": hex::encode(crate::util::sha256(&bytes)),
        "partitions": n,
        "verify_proof": true,
        "verify_proofs_batch": true,
    });
    // The seal of a non-interactive sector is an aggregate, so its circuit proofs end here.
    if !cfg.feature_enabled(ApiFeature::NonInteractivePoRep) {
        let mut other = l.seed;
        other[0] ^= 1;
        let id = SectorId::from(c.sector_id);
        let core = |seed| {
            filecoin_proofs::verify_seal::<Tree>(
                cfg, l.comm_r, l.comm_d, c.prover_id, id, l.ticket, seed, &bytes,
            )
        };
        ensure!(core(l.seed)?, "filecoin_proofs::verify_seal refuses the proof");
        ensure!(!core(other)?, "filecoin_proofs::verify_seal accepts another seed");
        report["filecoin_proofs_verify_seal"] = json!({"seed": true, "other_seed": false});
        if let Kind::Registered(p) = &c.kind {
            let seal = |seed| {
                api::verify_seal(
                    *p, l.comm_r, l.comm_d, c.prover_id, id, l.ticket, seed, &bytes,
                )
            };
            ensure!(seal(l.seed)?, "filecoin_proofs_api::seal::verify_seal refuses the proof");
            ensure!(!seal(other)?, "filecoin_proofs_api::seal::verify_seal accepts another seed");
            report["filecoin_proofs_api_verify_seal"] = json!({"seed": true, "other_seed": false});
        }
    }
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}

/// Checks the vanilla proofs of DIR/c1.json as the reference checks its own before they leave phase 1, and that
/// the replica id is that of the case's ids. Prints one JSON object; any failed check is an error.
pub fn vanilla_case(name: &str, dir: &Path) -> Result<()> {
    let c = case(name)?;
    let cfg = config(&c);
    with_shape!(u64::from(cfg.sector_size), vanilla_inner, &c, &cfg, dir)
}

fn vanilla_inner<Tree: 'static + MerkleTreeTrait>(
    c: &Case,
    cfg: &PoRepConfig,
    dir: &Path,
) -> Result<()> {
    let l = load::<Tree>(c, cfg, dir)?;
    let n = usize::from(cfg.partitions);
    ensure!(l.proofs.len() == n, "want {} partitions, got {}", n, l.proofs.len());
    let replica_id = generate_replica_id::<Tree::Hasher, _>(
        &c.prover_id, c.sector_id, &l.ticket, l.comm_d, &cfg.porep_id,
    );
    ensure!(replica_id == l.inputs.replica_id, "the replica id is not that of the ids");
    let accepts = |inputs| {
        StackedDrg::<Tree, DefaultPieceHasher>::verify_all_partitions(&l.pp, inputs, &l.proofs)
    };
    ensure!(accepts(&l.inputs)?, "verify_all_partitions refuses the vanilla proofs");
    let mut other = l.inputs.clone();
    other.seed = other.seed.map(|mut seed| {
        seed[0] ^= 1;
        seed
    });
    ensure!(!accepts(&other)?, "verify_all_partitions accepts another seed");
    println!(
        "{}",
        serde_json::to_string_pretty(&json!({
            "name": c.name,
            "partitions": n,
            "replica_id": true,
            "verify_all_partitions": {"seed": true, "other_seed": false},
        }))?
    );
    Ok(())
}
