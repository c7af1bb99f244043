//! Keys of proofs of spacetime and sector updates, and their 2 KiB proofs with fixed randomness.
use crate::post::{post_circuits, post_config, update_circuits, T2k};
use crate::setup::{paths_of, setup_circuit};
use crate::with_shape;
use anyhow::{ensure, Context, Result};
use bellpepper_core::Circuit;
use bellperson::groth16::{prepare_verifying_key, verify_proof, Proof, VerifyingKey};
use blstrs::{Bls12, Scalar as Fr};
use filecoin_proofs::constants::*;
use filecoin_proofs::parameters::{window_post_public_params, winning_post_public_params};
use filecoin_proofs::{PoStConfig, PoStType};
use std::fs;
use std::path::{Path, PathBuf};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::parameter_cache::CacheableParameters;
use storage_proofs_post::fallback::FallbackPoStCompound;
use storage_proofs_update::{EmptySectorUpdateCompound, PublicParams};

/// The proofs that `prove` makes, each from the files of its folder.
pub const NAMES: [&str; 3] = ["winning-2k", "window-2k", "update-2k"];

/// Writes the keys of "winning-", "window-" shapes of any size, or of "update-2k", under the reference's names.
pub fn setup_case(shape: &str, params_dir: &Path, out: &Path, fast: bool) -> Result<()> {
    if shape == "update-2k" {
        let pp = PublicParams::from_sector_size(SECTOR_SIZE_2_KIB);
        let blank = || Ok(EmptySectorUpdateCompound::<T2k>::blank_circuit(&pp));
        return setup_circuit(shape, blank, update_paths(params_dir), params_dir, out, fast);
    }
    let cfg = post_config(shape)?;
    with_shape!(u64::from(cfg.sector_size), post_setup, shape, &cfg, params_dir, out, fast)
}

fn post_setup<Tree: 'static + MerkleTreeTrait>(
    shape: &str,
    cfg: &PoStConfig,
    params_dir: &Path,
    out: &Path,
    fast: bool,
) -> Result<()> {
    let pp = match cfg.typ {
        PoStType::Winning => winning_post_public_params::<Tree>(cfg)?,
        PoStType::Window => window_post_public_params::<Tree>(cfg)?,
    };
    let paths = paths_of(&cfg.get_cache_identifier::<Tree>()?, params_dir);
    let blank = || Ok(FallbackPoStCompound::<Tree>::blank_circuit(&pp));
    setup_circuit(shape, blank, paths, params_dir, out, fast)
}

fn update_paths(params_dir: &Path) -> (PathBuf, PathBuf) {
    let pp = PublicParams::from_sector_size(SECTOR_SIZE_2_KIB);
    paths_of(&EmptySectorUpdateCompound::<T2k>::cache_identifier(&pp), params_dir)
}

/// Parameter and key file of one of [`NAMES`].
pub fn param_paths(name: &str, params_dir: &Path) -> Result<(PathBuf, PathBuf)> {
    if name == "update-2k" {
        return Ok(update_paths(params_dir));
    }
    Ok(paths_of(&post_config(name)?.get_cache_identifier::<T2k>()?, params_dir))
}

/// What is done with the circuits of a proof, whatever their type.
pub trait Use {
    type Output;
    /// `circuits` has for each partition its circuit and the public inputs that a verifier derives.
    fn with<C: Circuit<Fr> + Send>(self, circuits: Vec<(C, Vec<Fr>)>) -> Result<Self::Output>;
}

/// Builds the circuits of one of [`NAMES`] from `DIR/statement.json` and `DIR/vanilla.json`.
pub fn with_circuits<U: Use>(name: &str, dir: &Path, u: U) -> Result<U::Output> {
    let read = |file: &str| -> Result<String> {
        let path = dir.join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let statement: serde_json::Value = serde_json::from_str(&read("statement.json")?)?;
    let field = |key: &str| -> Result<[u8; 32]> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(statement[key].as_str().with_context(|| key.to_string())?, &mut bytes)?;
        Ok(bytes)
    };
    let vanilla = read("vanilla.json")?;
    if name == "update-2k" {
        let proofs: Vec<_> = serde_json::from_str(&vanilla)?;
        return u.with(update_circuits(
            &field("comm_r_old")?,
            &field("comm_r_new")?,
            &field("comm_d_new")?,
            &proofs,
        )?);
    }
    let proofs: Vec<_> = serde_json::from_str(&vanilla)?;
    u.with(post_circuits(&post_config(name)?, &field("randomness")?, &field("prover_id")?, &proofs)?)
}

/// Whether the proofs are of these public inputs, by the key in the file `vk`.
pub fn verify(vk: &Path, proofs: &[Proof<Bls12>], inputs: &[Vec<Fr>]) -> Result<()> {
    let pvk = prepare_verifying_key(&VerifyingKey::<Bls12>::read(&fs::read(vk)?[..])?);
    ensure!(proofs.len() == inputs.len(), "{} proofs, {} partitions", proofs.len(), inputs.len());
    for (k, (proof, inputs)) in proofs.iter().zip(inputs).enumerate() {
        ensure!(verify_proof(&pvk, proof, inputs)?, "proof {} does not verify", k);
    }
    Ok(())
}
