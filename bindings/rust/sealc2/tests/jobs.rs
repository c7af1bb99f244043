//! Submitted jobs, circuits with values of one's own, and what an engine tells, against the library.

use sealc2::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/vectors").join(path)
}

fn json(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(root(path)).unwrap()).unwrap()
}

fn c1() -> Vec<u8> {
    std::fs::read(root("c1/porep-2k-a/c1.json")).unwrap()
}

fn params() -> ParamSource {
    ParamSource::folder(std::env::var_os("SEALC2_PARAMS").expect("SEALC2_PARAMS: folder of development parameters")).allow_development()
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn array(hex: &Value) -> [u8; 32] {
    bytes(hex).try_into().unwrap()
}

fn cpu() -> Engine {
    Engine::with(&Config { device: Some("cpu".into()), ..Config::default() }).unwrap()
}

fn shared_between_threads<T: Send + Sync>() {}

#[test]
fn types_are_send_and_sync() {
    shared_between_threads::<Submitted>();
    shared_between_threads::<JobProgress>();
}

#[test]
fn a_submitted_job_fails_and_is_refused_by_value() {
    let (engine, c1) = (cpu(), c1());
    let sector = Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) };
    let nowhere = ParamSource::folder("/nowhere");
    let job = engine.submit(&sector, &nowhere, SubmitOptions { id: "é 1", class: Class::Snap, ..Default::default() }).unwrap();
    for _ in 0..2 {
        let e = job.wait(None).unwrap_err();
        assert_eq!(e.kind, Kind::Params);
        assert!(e.text.contains("/nowhere"), "{e}");
    }
    let p = job.progress().unwrap();
    assert_eq!((p.id.as_str(), p.state, p.class, p.failure), ("é 1", State::Failed, Class::Snap, Some(Kind::Params)));
    assert_eq!((p.stage.as_str(), p.partition, p.delivered), ("parse", None, 0));
    assert!(!p.running.is_zero());
    job.cancel().unwrap(); // too late
    assert_eq!(job.progress().unwrap().state, State::Failed);

    let kind = |sector: &Sector<'_>, options: SubmitOptions<'_>| engine.submit(sector, &nowhere, options).err().map(|e| e.kind);
    let id = |id| SubmitOptions { id, ..Default::default() };
    assert_eq!(kind(&sector, id("a\nb")), Some(Kind::Caller));
    assert_eq!(kind(&sector, id("a\0b")), Some(Kind::Caller));
    assert_eq!(kind(&Sector { sector_id: 2, ..sector }, id("")), Some(Kind::Input));
    assert_eq!(kind(&Sector { c1: b"{", ..sector }, id("")), Some(Kind::Input));

    let metrics = engine.metrics().unwrap();
    assert!(metrics.contains("\nsealc2_proofs_total{result=\"failed\",class=\"snap-deals\"} 1\n"), "{metrics}");
    let lines = engine.timeline(TimelineFormat::Json).unwrap();
    let stages: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(
        (stages.len(), &stages[1]["stage"], &stages[1]["failed"], &stages[1]["job"]),
        (2, &"params".into(), &true.into(), &"é 1".into())
    );
    let trace: Value = serde_json::from_str(&engine.timeline(TimelineFormat::Chrome).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 2);
    assert_eq!(engine.timeline(TimelineFormat::Text).unwrap(), "");
    engine.idle_release().unwrap();
    assert_eq!(engine.preload("2KiB", &nowhere, None).unwrap_err().kind, Kind::Params);
    assert_eq!(engine.evict("2KiB", &nowhere).unwrap_err().kind, Kind::Params);
}

#[test]
fn a_policy_is_one_of_four() {
    let e = |config: Config| Engine::with(&config).err().unwrap();
    let unknown = e(Config { policy: Some("one-lock".into()), ..Config::default() });
    assert_eq!(unknown.kind, Kind::Caller);
    assert!(unknown.text.contains("want reservation, single, two-lock, split, got \"one-lock\""), "{unknown}");
    assert!(e(Config { policy: Some("a\0b".into()), ..Config::default() }).text.contains("policy: a NUL"));
    let many = e(Config { device_workers: 65537, ..Config::default() });
    assert!(many.kind == Kind::Caller && many.text.contains("config.device_workers: want at most 65536, got 65537"), "{many}");
    let many = e(Config { partition_workers: u32::MAX, ..Config::default() });
    assert!(many.text.contains("config.partition_workers"), "{many}");
}

#[test]
fn requirements_have_both_numbers() {
    let engine = cpu();
    let needs = engine.requirements("2KiB", Some("cpu")).unwrap();
    assert_eq!((needs.partitions, needs.batch, needs.devices, needs.device_bytes), (1, 1, 1, 0));
    assert!(needs.host_bytes > 1 << 20 && needs.host_bytes <= needs.host_limit);
    assert_eq!(needs, engine.requirements("2KiB", None).unwrap());
    for (shape, device) in [("3KiB", None), ("2KiB", Some("abacus")), ("2\0", None)] {
        assert_eq!(engine.requirements(shape, device).unwrap_err().kind, Kind::Caller);
    }
    let config = Config { device: Some("cpu".into()), host_bytes: 64 << 20, queue_bytes: 1 << 20, ..Config::default() };
    let e = Engine::with(&config).unwrap().requirements("2KiB", None).unwrap_err();
    assert_eq!(e.kind, Kind::NoMemory);
    assert!(e.text.contains(&format!("at most {} bytes", 63 << 20)) && e.text.contains(&needs.host_bytes.to_string()), "{e}");
}

#[test]
fn submitted_proofs_are_the_references() {
    let (engine, c1, reference) = (cpu(), c1(), json("c1/porep-2k-a/proof.json"));
    let sector = Sector { c1: &c1, sector_id: 1, prover_id: prover_id(1000) };
    engine.preload("2KiB", &params(), None).unwrap();
    let dropped = engine.submit(&sector, &params(), SubmitOptions { id: "dropped", ..Default::default() }).unwrap();
    let (r, s) = ([array(&reference["r"][0])], [array(&reference["s"][0])]);
    let options =
        SubmitOptions { id: "a", class: Class::WinningPoSt, randomness: Some((&r, &s)), room: Duration::MAX, ..Default::default() };
    let job = engine.submit(&sector, &params(), options).unwrap();
    let again = engine.submit(&sector, &params(), options).unwrap();
    let other = SubmitOptions { randomness: None, ..options };
    assert_eq!(engine.submit(&sector, &params(), other).err().unwrap().kind, Kind::Caller);
    dropped.cancel().unwrap();
    assert_eq!(dropped.wait(None).unwrap_err().kind, Kind::Cancelled);
    assert_eq!(job.wait(Some(Duration::from_millis(5))).unwrap_err().kind, Kind::Timeout);
    let waiter = std::thread::spawn(move || again.wait(None));
    let proof = job.wait(None).unwrap();
    assert_eq!(proof.bytes(), bytes(&reference["proofs"][0]));
    assert_eq!(waiter.join().unwrap().unwrap(), proof);
    let p = job.progress().unwrap();
    assert_eq!(
        (p.state, p.delivered, p.partitions, p.stage.as_str(), p.partition, p.failure),
        (State::Done, 1, 1, "verify", Some(0), None)
    );
    assert!(engine.timeline(TimelineFormat::Text).unwrap().contains(",GPU_END,a,worker=0,partition=0,gpu_ms="));
    assert_eq!(engine.submit(&sector, &params(), other).err().unwrap().kind, Kind::Caller);
    let instead = engine.submit(&sector, &params(), SubmitOptions { replace: true, ..other }).unwrap();
    instead.cancel().unwrap();
    assert_eq!(instead.wait(None).unwrap_err().kind, Kind::Cancelled);
    let late = SubmitOptions { deadline: Some(Duration::from_millis(1)), ..Default::default() };
    // Before there is room in the queue, or behind that.
    let e = engine.submit(&sector, &params(), late).and_then(|j| j.wait(None)).unwrap_err();
    assert!(e.kind == Kind::Cancelled && e.text.contains("deadline"), "{e}");
    let call = Job::new().unwrap();
    call.cancel().unwrap();
    let e = engine.submit(&sector, &params(), SubmitOptions { call: Some(&call), ..Default::default() }).err().unwrap();
    assert!(e.kind == Kind::Cancelled && e.text.contains("sealc2_cancel"), "{e}");
    engine.evict("2KiB", &params()).unwrap();
    drop(engine);
    assert_eq!(job.wait(None).unwrap(), proof);
}

/// value * 2^256 modulo the group order, by doubling.
fn montgomery(le: &[u8]) -> Fr {
    const R: Fr = [0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48];
    let mut v: Fr = std::array::from_fn(|i| u64::from_le_bytes(le[8 * i..8 * i + 8].try_into().unwrap()));
    for _ in 0..256 {
        let mut carry = 0; // the order has 255 bits: none is lost
        for limb in &mut v {
            (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
        }
        if v.iter().rev().ge(R.iter().rev()) {
            let mut borrow = false;
            for (limb, r) in v.iter_mut().zip(R) {
                let (d, b1) = limb.overflowing_sub(r);
                let (d, b2) = d.overflowing_sub(borrow as u64);
                (*limb, borrow) = (d, b1 | b2);
            }
        }
    }
    v
}

#[test]
fn assignments_give_the_references_proofs() {
    let (witness, reference) = (json("tiny/tiny-64/witness.json"), json("tiny/tiny-64/proof.json"));
    let values = |name: &str| -> Vec<Fr> { witness[name].as_array().unwrap().iter().map(|x| montgomery(&bytes(x))).collect() };
    // Bits behind the last are set: nobody may look at them.
    let bits = |name: &str| -> (Vec<u64>, usize) {
        let text = witness[name].as_str().unwrap();
        let mut words = vec![u64::MAX; text.len().div_ceil(64)];
        for (i, bit) in text.bytes().enumerate().filter(|(_, bit)| *bit == b'0') {
            assert_eq!(bit, b'0');
            words[i / 64] &= !(1 << (i % 64));
        }
        (words, text.len())
    };
    let (a, b, c) = (values("a"), values("b"), values("c"));
    let (inputs, aux) = (values("input_assignment"), values("aux_assignment"));
    let (a_aux, b_input, b_aux) = (bits("a_aux_density"), bits("b_input_density"), bits("b_aux_density"));
    fn density((words, bits): &(Vec<u64>, usize)) -> Density<'_> {
        Density { words, bits: *bits }
    }
    let (a_aux_density, b_input_density, b_aux_density) = (density(&a_aux), density(&b_input), density(&b_aux));
    let one = Assignment { a: &a, b: &b, c: &c, inputs: &inputs, aux: &aux, a_aux_density, b_input_density, b_aux_density };
    let (engine, path) = (cpu(), root("tiny/tiny-64/params.bin"));
    let (r, s) = ([array(&reference["r"]); 2], [array(&reference["s"]); 2]);
    let mut stages = 0;
    let options = AssignmentOptions {
        randomness: Some((&r, &s)),
        development: Some(true),
        progress: Some(&mut |_| {
            stages += 1;
            Flow::Continue
        }),
        ..Default::default()
    };
    let proof = engine.prove_assignments(&path, &[one, one], options).unwrap();
    let want = bytes(&reference["proof"]);
    assert_eq!(proof.bytes(), [want.clone(), want].concat());
    assert!(stages > 10);

    let allowed = || AssignmentOptions { development: Some(true), ..Default::default() };
    for policy in [None, Some("reservation"), Some("single"), Some("two-lock"), Some("split")] {
        let policy = policy.map(String::from);
        let config =
            Config { device: Some("cpu".into()), policy: policy.clone(), device_workers: 1, partition_workers: 3, ..Config::default() };
        let proof = Engine::with(&config).unwrap().prove_assignments(&path, &[one, one], allowed()).unwrap();
        assert_eq!(proof.partitions().len(), 2, "{policy:?}");
    }
    let kind = |a: &Assignment<'_>, o| engine.prove_assignments(&path, &[*a], o).err().map(|e| e.kind);
    assert_eq!(engine.prove_assignments(&path, &[], allowed()).unwrap().bytes(), b"");
    assert_eq!(kind(&one, AssignmentOptions { development: Some(false), ..Default::default() }), Some(Kind::Params));
    assert_eq!(kind(&Assignment { b: &b[1..], ..one }, allowed()), Some(Kind::Caller));
    assert_eq!(kind(&Assignment { a_aux_density: Density { bits: 1, ..a_aux_density }, ..one }, allowed()), Some(Kind::Caller));
    let mut stop = |_: &Progress<'_>| Flow::Cancel;
    let stopped = AssignmentOptions { development: Some(true), progress: Some(&mut stop), ..Default::default() };
    assert_eq!(engine.prove_assignments(&path, &[one], stopped).unwrap_err().kind, Kind::Cancelled);
    let mut spoiled = c.clone();
    spoiled[0][0] ^= 1;
    let e = engine.prove_assignments(&path, &[Assignment { c: &spoiled, ..one }], allowed()).unwrap_err();
    assert!(e.kind == Kind::Unsatisfied && e.text.contains("row 0"), "{e}");
}

#[test]
fn a_c1_tells_what_it_claims() {
    let (engine, data, statement) = (cpu(), c1(), json("c1/porep-2k-a/statement.json"));
    let c1 = engine.read_c1(&data, None, Some((1, prover_id(1000)))).unwrap();
    assert_eq!((c1.shape.as_str(), c1.registered_proof, c1.challenges, c1.inputs.len()), ("2KiB", Some(5), 2, 1));
    for (name, value) in
        [("replica_id", c1.replica_id), ("comm_r", c1.comm_r), ("comm_d", c1.comm_d), ("ticket", c1.ticket), ("seed", c1.seed)]
    {
        assert_eq!(value, array(&statement[name]), "{name}");
    }
    let witness = json("c1/porep-2k-a/witness.json");
    let want: Vec<[u8; 32]> = witness["partitions"][0]["public_inputs_synthesised"].as_array().unwrap().iter().map(array).collect();
    assert_eq!(c1.inputs, [want]);
    assert_eq!(engine.read_c1(&data, None, None).unwrap(), c1);
    assert_eq!(engine.read_c1(&data, None, Some((2, prover_id(1000)))).unwrap_err().kind, Kind::Input);
    assert_eq!(engine.read_c1(b"", None, None).unwrap_err().kind, Kind::Caller);
}

#[test]
fn a_circuit_has_its_digest() {
    let (engine, shape) = (cpu(), json("shapes/porep-2k.json"));
    let c = engine.circuit_digest("2KiB", None).unwrap();
    assert_eq!((c.constraints, c.aux), (shape["constraints"].as_u64().unwrap(), shape["aux"].as_u64().unwrap()));
    assert_eq!((c.digest, c.chunk_rows), (array(&shape["total"]), shape["chunk_size"].as_u64().unwrap()));
    assert_eq!(c.chunks, shape["chunks"].as_array().unwrap().iter().map(array).collect::<Vec<_>>());
    assert_eq!(engine.circuit_digest("3KiB", None).unwrap_err().kind, Kind::Caller);
    let job = Job::new().unwrap();
    job.cancel().unwrap();
    assert_eq!(engine.circuit_digest("2KiB", Some(&job)).unwrap_err().kind, Kind::Cancelled);
}
