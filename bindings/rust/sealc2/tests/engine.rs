//! The safe crate against the library and development parameters of a 2 KiB sector.

use sealc2::*;
use std::path::PathBuf;
use std::sync::Mutex;

fn folder() -> PathBuf {
    std::env::var_os("SEALC2_PARAMS").expect("SEALC2_PARAMS: folder of development parameters").into()
}

fn vector(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../tests/vectors/c1/porep-2k-a/{}", env!("CARGO_MANIFEST_DIR"), name)).unwrap()
}

/// The text of `"name": [ "HEX"` or `"name": "HEX"` in a JSON file.
fn hex_of(json: &[u8], name: &str) -> Vec<u8> {
    let text = std::str::from_utf8(json).unwrap();
    let rest = &text[text.find(&format!("\"{}\":", name)).unwrap() + name.len() + 3..];
    let hex = rest.split('"').nth(1).unwrap();
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn shared_between_threads<T: Send + Sync>() {}

#[test]
fn types_are_send_and_sync() {
    shared_between_threads::<Engine>();
    shared_between_threads::<Job>();
    shared_between_threads::<ParamSource>();
    shared_between_threads::<Error>();
    shared_between_threads::<Proof>();
}

#[test]
fn fixed_randomness_gives_the_references_bytes() {
    let (c1, reference) = (vector("c1.json"), vector("proof.json"));
    let scalar = |name| <[u8; 32]>::try_from(hex_of(&reference, name)).unwrap();
    let engine = Engine::with(&Config { device: Some("cpu".into()), ..Config::default() }).unwrap();
    assert_eq!(engine.last_stages().unwrap(), []);
    let stages = Mutex::new(vec![]);
    let mut streamed = vec![];
    let proof = engine
        .prove_with(
            &Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) },
            &ParamSource::folder(folder()).allow_development(),
            Options {
                randomness: Some((&[scalar("r")], &[scalar("s")])),
                progress: Some(&mut |p| {
                    assert!((0.0..=1.0).contains(&p.done) && p.partitions <= 1);
                    stages.lock().unwrap().push(p.stage.to_string());
                    Flow::Continue
                }),
                partition: Some(&mut |k, bytes| {
                    streamed.push((k, bytes.to_vec()));
                    Flow::Continue
                }),
                ..Options::default()
            },
        )
        .unwrap();
    assert_eq!(proof.bytes(), hex_of(&reference, "proofs"));
    assert_eq!(streamed, [(0, proof.bytes().to_vec())]);
    let stages = stages.into_inner().unwrap();
    assert_eq!((stages.first().unwrap().as_str(), stages.last().unwrap().as_str()), ("parse", "verify"));
    let timed = engine.last_stages().unwrap();
    assert!(timed.iter().any(|s| s.name == "quotient" && s.partition == Some(0) && !s.elapsed.is_zero()));
}

#[test]
fn failures_are_values() {
    let c1 = vector("c1.json");
    let engine = Engine::new().unwrap();
    let params = ParamSource::folder(folder()).allow_development();
    let sector = Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) };
    let kind = |r: Result<Proof>| r.map(|_| ()).unwrap_err().kind;

    assert_eq!(kind(engine.prove(&Sector { c1: b"{", ..sector }, &params)), Kind::Input);
    assert_eq!(kind(engine.prove(&Sector { c1: b"", ..sector }, &params)), Kind::Caller);
    let e = engine.prove(&Sector { sector_id: 2, ..sector }, &params).unwrap_err();
    assert_eq!(e.kind, Kind::Input);
    assert!(e.to_string().contains("replica_id"), "{}", e);
    let e = engine.prove(&sector, &ParamSource::folder("/no/such/folder").allow_development()).unwrap_err();
    assert_eq!(e.kind, Kind::Params);
    assert!(e.to_string().contains("/no/such/folder"), "{}", e);
    assert_eq!(kind(engine.prove(&sector, &ParamSource::folder(folder()).refuse_development())), Kind::Params);
    assert_eq!(kind(engine.prove(&sector, &ParamSource::folder("a\0b"))), Kind::Caller);
    let uneven = Options { randomness: Some((&[[0; 32]], &[])), ..Options::default() };
    assert_eq!(kind(engine.prove_with(&sector, &params, uneven)), Kind::Caller);
    assert_eq!(Engine::with(&Config { device: Some("gpu7".into()), ..Config::default() }).err().unwrap().kind, Kind::NoDevice);

    let job = Job::new().unwrap();
    job.cancel().unwrap();
    let options = Options { job: Some(&job), ..Options::default() };
    assert_eq!(kind(engine.prove_with(&sector, &params, options)), Kind::Cancelled);
    let options = Options { progress: Some(&mut |_| Flow::Cancel), ..Options::default() };
    assert_eq!(kind(engine.prove_with(&sector, &params, options)), Kind::Cancelled);
}

#[test]
fn a_panic_in_a_closure_goes_on_in_the_caller() {
    let c1 = vector("c1.json");
    let engine = Engine::new().unwrap();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        engine.prove_with(
            &Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) },
            &ParamSource::folder(folder()).allow_development(),
            Options { progress: Some(&mut |p| panic!("at {}", p.stage)), ..Options::default() },
        )
    }))
    .unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "at parse");
    assert!(engine.prove(&Sector { c1: b"{}", sector_id: 1, prover_id: [0; 32] }, &ParamSource::environment()).is_err());
}
