//! What the tests share: development parameters under the reference's names, kept between runs, and the clock.

use anyhow::{ensure, Context, Result};
use filecoin_proofs::PoRepConfig;
use filecoin_proofs_api::RegisteredSealProof;
use sealc2_oracle::{other, post::T2k, setup};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// `tests/vectors`, or what `SEALC2_VECTORS` names where the tests run on another machine than the compiler.
pub fn vectors() -> PathBuf {
    match std::env::var_os("SEALC2_VECTORS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors"),
    }
}

pub fn porep_config() -> PoRepConfig {
    RegisteredSealProof::StackedDrg2KiBV1_1.as_v1_config()
}

/// Runs `f` and prints how long it took.
pub fn timed<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let t = Instant::now();
    let result = f();
    println!("{:>8.2} s  {}", t.elapsed().as_secs_f64(), what);
    result
}

/// The folder of parameters, as the reference and libsealc2 find them by the environment, with those of `shapes`, circuits by
/// their names in `tests/vectors/setup`. What is not there yet is made, once.
pub fn params(shapes: &[&str]) -> &'static Path {
    static FOLDER: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    static THERE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut there = THERE.lock().unwrap();
    let (kept, folder) = FOLDER.get_or_init(|| {
        let kept = std::env::var_os("SEALC2_PARAMS").expect("SEALC2_PARAMS: folder that keeps development parameters");
        let kept = PathBuf::from(kept);
        let folder = kept.join("reference");
        // Before anything reads them; the reference does so once a process.
        std::env::set_var("FIL_PROOFS_PARAMETER_CACHE", &folder);
        std::env::set_var("FIL_PROOFS_PARENT_CACHE", folder.join("parents"));
        std::env::set_var("SEALC2_ALLOW_DEV_PARAMS", "1");
        (kept, folder)
    });
    for shape in shapes {
        if !there.iter().any(|s| s == shape) {
            have(shape, kept, folder).unwrap_or_else(|e| panic!("parameters of {}: {:?}", shape, e));
            there.push(shape.to_string());
        }
    }
    folder
}

/// Parameter and key file of a shape.
pub fn param_paths(shape: &str, folder: &Path) -> Result<(PathBuf, PathBuf)> {
    match shape {
        "porep-2k" => setup::param_paths::<T2k>(&porep_config(), folder),
        _ => other::param_paths(shape, folder),
    }
}

/// Size and SHA-256 of a parameter file, and the bytes of its key, as `tests/vectors/setup` has them.
struct Expected {
    bytes: u64,
    sha256: String,
    vk: Vec<u8>,
}

fn have(shape: &str, kept: &Path, folder: &Path) -> Result<()> {
    let setup = vectors().join("setup");
    let json = fs::read_to_string(setup.join(format!("{}.json", shape)))?;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    let expected = Expected {
        bytes: json["params_file"]["bytes"].as_u64().context("params_file.bytes")?,
        sha256: json["params_file"]["sha256"].as_str().context("params_file.sha256")?.into(),
        vk: fs::read(setup.join(format!("{}.vk", shape)))?,
    };
    let (params, vk) = param_paths(shape, folder)?;
    let there = |params: &Path, vk: &Path| {
        fs::metadata(params).is_ok_and(|m| m.len() == expected.bytes) && fs::read(vk).is_ok_and(|v| v == expected.vk)
    };
    if there(&params, &vk) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    // `make params-demo` keeps the same bytes under a name that no reference program takes for its own.
    let dev = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().replacen("v28-", "dev-2KiB-", 1);
        kept.join(name)
    };
    if there(&dev(&params), &dev(&vk)) {
        for path in [&params, &vk] {
            let _ = fs::remove_file(path);
            fs::hard_link(dev(path), path)?;
        }
        return Ok(());
    }
    let making = tempfile::tempdir_in(folder)?;
    timed(&format!("make the parameters of {}, once", shape), || {
        setup::setup_case(shape, making.path(), making.path(), true)
    })?;
    let (made, made_vk) = param_paths(shape, making.path())?;
    let mut hash = Sha256::new();
    std::io::copy(&mut fs::File::open(&made)?, &mut hash)?;
    let sha256 = hex::encode(hash.finalize());
    ensure!(sha256 == expected.sha256, "SHA-256: want {}, got {}", expected.sha256, sha256);
    fs::rename(made_vk, vk)?;
    fs::rename(made, params)?;
    Ok(())
}
