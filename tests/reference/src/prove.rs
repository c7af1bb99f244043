//! Proofs with fixed randomness by bellperson's own prover.
use crate::cases::{case, config, Case};
use crate::other::{self, with_circuits, Use, NAMES};
use crate::record::{load, RecordCs};
use crate::setup::{param_paths, proof_bytes, rebuild, rs};
use crate::util::{fr_hex, peak_rss_kib, write_json};
use crate::with_shape;
use anyhow::{ensure, Result};
use bellpepper_core::Circuit;
use bellperson::groth16::{
    create_proof_batch, prepare_verifying_key, verify_proof, verify_proofs_batch, MappedParameters,
    Parameters, Proof, VerifyingKey,
};
use blstrs::{Bls12, Scalar as Fr};
use filecoin_proofs::PoRepConfig;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Instant;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::sector::SectorId;

/// Proves the sector, proof of spacetime or update in `DIR` with the r and s of its name; writes `DIR/proof.json`.
pub fn prove_case(name: &str, params_dir: &Path, dir: &Path) -> Result<()> {
    if NAMES.contains(&name) {
        return other_case(name, params_dir, dir);
    }
    let c = case(name)?;
    let cfg = config(&c);
    with_shape!(u64::from(cfg.sector_size), prove_inner, &c, &cfg, params_dir, dir)
}

fn prove_inner<Tree: 'static + MerkleTreeTrait>(
    c: &Case,
    cfg: &PoRepConfig,
    params_dir: &Path,
    dir: &Path,
) -> Result<()> {
    let l = load::<Tree>(c, cfg, dir)?;
    let (params, vk_path) = param_paths::<Tree>(cfg, params_dir)?;
    let n = l.proofs.len();
    let mut circuits = vec![];
    let (mut r, mut s) = (vec![], vec![]);
    for k in 0..n {
        circuits.push(l.circuit(k)?);
        let (a, b) = rs(&c.name, k);
        r.push(a);
        s.push(b);
    }
    let t = Instant::now();
    let mapped = Parameters::<Bls12>::build_mapped_parameters(params.clone(), false)?;
    let t_map = t.elapsed().as_secs_f64();
    let t = Instant::now();
    let proofs = create_proof_batch(circuits, &mapped, r.clone(), s.clone())?;
    let t_prove = t.elapsed().as_secs_f64();
    let rss_prove = peak_rss_kib();
    eprintln!("proved in {:.2} s, peak RSS {} KiB", t_prove, rss_prove);

    let vk = VerifyingKey::<Bls12>::read(&fs::read(&vk_path)?[..])?;
    let pvk = prepare_verifying_key(&vk);
    let inputs: Vec<Vec<Fr>> = (0..n).map(|k| l.public_inputs(k)).collect::<Result<_>>()?;
    for k in 0..n {
        ensure!(verify_proof(&pvk, &proofs[k], &inputs[k])?, "proof {} does not verify", k);
    }
    let refs: Vec<&Proof<Bls12>> = proofs.iter().collect();
    ensure!(
        verify_proofs_batch(&pvk, &mut rand::rngs::OsRng, &refs, &inputs)?,
        "batch does not verify"
    );

    // Check that the recorded vectors give the same proof.
    let full = Parameters::<Bls12>::read(std::io::BufReader::new(fs::File::open(&params)?), false)?;
    let mut rebuilt_same = true;
    for k in 0..n.min(2) {
        let cs = RecordCs::of(l.circuit(k)?)?;
        let q = rebuild(&cs, &full, r[k], s[k])?;
        rebuilt_same &= q.proof == proofs[k];
    }
    ensure!(rebuilt_same, "proof rebuilt from recorded vectors differs");

    let mut bytes = vec![];
    for p in &proofs {
        bytes.extend(proof_bytes(p)?);
    }
    // The path that a node takes; reads the key from FIL_PROOFS_PARAMETER_CACHE.
    let aggregated = cfg.feature_enabled(storage_proofs_core::api_version::ApiFeature::NonInteractivePoRep);
    let seal_ok = if aggregated {
        None
    } else {
        Some(filecoin_proofs::verify_seal::<Tree>(
            cfg,
            l.comm_r,
            l.comm_d,
            c.prover_id,
            SectorId::from(c.sector_id),
            l.ticket,
            l.seed,
            &bytes,
        )?)
    };
    let wrong_seed_ok = if aggregated {
        None
    } else {
        let mut seed = l.seed;
        seed[0] ^= 1;
        Some(filecoin_proofs::verify_seal::<Tree>(
            cfg,
            l.comm_r,
            l.comm_d,
            c.prover_id,
            SectorId::from(c.sector_id),
            l.ticket,
            seed,
            &bytes,
        )?)
    };
    write_json(
        &dir.join("proof.json"),
        &json!({
            "name": c.name,
            "params_cache_file_name": params.file_name().unwrap().to_str(),
            "r_s_rule": format!("SHA-512(\"sealc2-dev-proof-v1|{}|PARTITION|NAME\") as 64-byte little-endian integer modulo r, NAME r or s", c.name),
            "r": r.iter().map(fr_hex).collect::<Vec<_>>(),
            "s": s.iter().map(fr_hex).collect::<Vec<_>>(),
            "proofs": proofs.iter().map(|p| proof_bytes(p).map(hex::encode)).collect::<Result<Vec<_>>>()?,
            "proof_points_uncompressed": proofs.iter().map(|p| json!({
                "a": hex::encode(p.a.to_uncompressed()),
                "b": hex::encode(p.b.to_uncompressed()),
                "c": hex::encode(p.c.to_uncompressed()),
            })).collect::<Vec<_>>(),
            "verify_proof": true,
            "verify_proofs_batch": true,
            "rebuilt_from_recorded_vectors": rebuilt_same,
            "filecoin_proofs_verify_seal": seal_ok,
            "filecoin_proofs_verify_seal_with_other_seed": wrong_seed_ok,
            "map_params_seconds": t_map,
            "prove_seconds": t_prove,
            "prove_peak_rss_kib": rss_prove,
            "threads": rayon::current_num_threads(),
        }),
    )
}

struct ProveFixed<'a> {
    name: &'a str,
    params: &'a MappedParameters<Bls12>,
    vk: &'a Path,
}

impl Use for ProveFixed<'_> {
    type Output = Vec<Proof<Bls12>>;

    fn with<C: Circuit<Fr> + Send>(self, circuits: Vec<(C, Vec<Fr>)>) -> Result<Self::Output> {
        let (circuits, inputs): (Vec<C>, Vec<Vec<Fr>>) = circuits.into_iter().unzip();
        let (r, s) = (0..circuits.len()).map(|k| rs(self.name, k)).unzip();
        let proofs = create_proof_batch(circuits, self.params, r, s)?;
        other::verify(self.vk, &proofs, &inputs)?;
        Ok(proofs)
    }
}

fn other_case(name: &str, params_dir: &Path, dir: &Path) -> Result<()> {
    let (params, vk) = other::param_paths(name, params_dir)?;
    let mapped = Parameters::<Bls12>::build_mapped_parameters(params.clone(), false)?;
    let t = Instant::now();
    let proofs = with_circuits(name, dir, ProveFixed { name, params: &mapped, vk: &vk })?;
    let seconds = t.elapsed().as_secs_f64();
    let (r, s): (Vec<_>, Vec<_>) = (0..proofs.len()).map(|k| rs(name, k)).unzip();
    write_json(
        &dir.join("proof.json"),
        &json!({
            "name": name,
            "params_cache_file_name": params.file_name().unwrap().to_str(),
            "r_s_rule": format!("SHA-512(\"sealc2-dev-proof-v1|{}|PARTITION|NAME\") as 64-byte little-endian integer modulo r, NAME r or s", name),
            "r": r.iter().map(fr_hex).collect::<Vec<_>>(),
            "s": s.iter().map(fr_hex).collect::<Vec<_>>(),
            "proofs": proofs.iter().map(|p| proof_bytes(p).map(hex::encode)).collect::<Result<Vec<_>>>()?,
            "verify_proof": true,
            "prove_seconds": seconds,
            "threads": rayon::current_num_threads(),
        }),
    )
}
