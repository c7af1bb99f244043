//! The crate against bellperson's proofs of small circuits, and against callers that get it wrong.

mod tiny;

use blstrs::Scalar;
use ff::Field;
use std::process::Command;
use supraseal_c2::{generate_groth16_proof, generate_groth16_proofs, SRS};
use tiny::{allow_development, blank, folder, is_blank, panic_text, srs, Circuit, Proof, NAMES};

fn prove(circuit: &Circuit, r: Scalar, s: Scalar, srs: &SRS) -> String {
    let mut proofs = blank(1);
    generate_groth16_proofs(&[circuit.assignment()], &[r], &[s], &mut proofs, srs);
    proofs[0].hex()
}

#[test]
fn same_r_and_s_give_bellpersons_bytes() {
    for name in NAMES {
        let (circuit, srs) = (Circuit::load(name), srs(name));
        assert_eq!(prove(&circuit, circuit.r, circuit.s, &srs), circuit.proof, "{}", name);
        assert_eq!(prove(&circuit, Scalar::ZERO, Scalar::ZERO, &srs), circuit.proof_with_zeros, "{}", name);
    }
}

#[test]
fn batches_come_back_in_order() {
    let (circuit, srs) = (Circuit::load("tiny-64"), srs("tiny-64"));
    for n in [0, 1, 10, 16, 126] {
        let provers: Vec<_> = (0..n).map(|_| circuit.assignment()).collect();
        let own = |i: usize| i % 3 == 1;
        let pick = |x: Scalar| (0..n).map(|i| if own(i) { x } else { Scalar::ZERO }).collect::<Vec<_>>();
        let mut proofs = blank(n);
        generate_groth16_proofs(&provers, &pick(circuit.r), &pick(circuit.s), &mut proofs, &srs);
        for (i, proof) in proofs.iter().enumerate() {
            let want = if own(i) { &circuit.proof } else { &circuit.proof_with_zeros };
            assert_eq!(&proof.hex(), want, "{} of {}", i, n);
        }
    }
}

#[test]
fn the_older_form_gives_the_same() {
    let (circuit, srs) = (Circuit::load("tiny-128"), srs("tiny-128"));
    let twice = |v: &Vec<Scalar>| vec![v.as_ptr(); 2];
    let mut proofs = blank(2);
    generate_groth16_proof(
        &twice(&circuit.a),
        &twice(&circuit.b),
        &twice(&circuit.c),
        circuit.a.len(),
        &twice(&circuit.inputs),
        &twice(&circuit.aux),
        circuit.inputs.len(),
        circuit.aux.len(),
        &circuit.a_aux.words,
        &circuit.b_inp.words,
        &circuit.b_aux.words,
        circuit.a_aux.ones(),
        circuit.b_inp.ones(),
        circuit.b_aux.ones(),
        2,
        &[circuit.r, Scalar::ZERO],
        &[circuit.s, Scalar::ZERO],
        &mut proofs,
        &srs,
    );
    assert_eq!(proofs[0].hex(), circuit.proof);
    assert_eq!(proofs[1].hex(), circuit.proof_with_zeros);
}

#[test]
fn buffers_may_be_reused_right_after() {
    let (mut circuit, srs) = (Circuit::load("tiny-1024"), srs("tiny-1024"));
    let mut proofs = blank(1);
    generate_groth16_proofs(&[circuit.assignment()], &[circuit.r], &[circuit.s], &mut proofs, &srs);
    circuit.poison();
    assert_eq!(proofs[0].hex(), circuit.proof);
}

#[test]
fn a_circuit_that_does_not_hold_is_refused() {
    let (mut circuit, srs) = (Circuit::load("tiny-64"), srs("tiny-64"));
    circuit.c[7] += Scalar::ONE;
    let mut proofs = blank(2);
    let good = Circuit::load("tiny-64");
    let text = panic_text(|| {
        let zeros = [Scalar::ZERO; 2];
        generate_groth16_proofs(&[good.assignment(), circuit.assignment()], &zeros, &zeros, &mut proofs, &srs)
    });
    assert!(text.contains('7'), "the row is not named: {}", text);
    assert!(proofs.iter().all(is_blank), "a proof was written");
    // An assignment whose rows hold but that is of another witness makes a proof that does not verify.
    let mut circuit = Circuit::load("tiny-64");
    circuit.aux[0] += Scalar::ONE;
    panic_text(|| drop(prove(&circuit, Scalar::ZERO, Scalar::ZERO, &srs)));
    // And the next call works.
    assert_eq!(prove(&good, good.r, good.s, &srs), good.proof);
}

#[test]
fn contradictory_shapes_are_refused() {
    let (circuit, srs) = (Circuit::load("tiny-16"), srs("tiny-16"));
    let refuse = |what: &str, change: &dyn Fn(&mut supraseal_c2::Assignment<Scalar>)| {
        let mut assignment = circuit.assignment();
        change(&mut assignment);
        let mut proofs = blank(1);
        let text = panic_text(|| generate_groth16_proofs(&[assignment], &[Scalar::ZERO], &[Scalar::ZERO], &mut proofs, &srs));
        assert!(!text.is_empty() && is_blank(&proofs[0]), "{}: {}", what, text);
    };
    refuse("one aux less", &|a| a.aux_assignment_size -= 1);
    refuse("one input less", &|a| a.inp_assignment_size -= 1);
    refuse("density of one bit less", &|a| a.a_aux_bit_len -= 1);
    refuse("a count that is not the bitmap's", &|a| a.b_aux_popcount += 1);
    refuse("no rows", &|a| a.abc_size = 0);
    refuse("more rows than the domain", &|a| a.abc_size = 17);
    refuse("more rows than memory has", &|a| a.abc_size = usize::MAX);
    refuse("no a", &|a| a.a = std::ptr::null());
    refuse("no densities", &|a| a.b_inp_density = std::ptr::null());
    refuse("no aux", &|a| a.aux_assignment_data = std::ptr::null());
    let empty = SRS::default();
    panic_text(|| drop(prove(&circuit, Scalar::ZERO, Scalar::ZERO, &empty)));
    let other = tiny::srs("tiny-64");
    panic_text(|| drop(prove(&circuit, Scalar::ZERO, Scalar::ZERO, &other)));
}

#[test]
fn lengths_and_sizes_are_asserted() {
    let (circuit, srs) = (Circuit::load("tiny-16"), srs("tiny-16"));
    let zero = [Scalar::ZERO];
    let text = panic_text(|| generate_groth16_proofs(&[circuit.assignment()], &zero, &[], &mut blank(1), &srs));
    assert!(text.contains("one s a circuit"), "{}", text);
    let text = panic_text(|| generate_groth16_proofs(&[circuit.assignment()], &zero, &zero, &mut blank(2), &srs));
    assert!(text.contains("one proof a circuit"), "{}", text);
    let text = panic_text(|| generate_groth16_proofs::<u64, Proof>(&[], &[], &[], &mut [], &srs));
    assert!(text.contains("32 bytes"), "{}", text);
    let text = panic_text(|| generate_groth16_proofs::<Scalar, u64>(&[], &[], &[], &mut [], &srs));
    assert!(text.contains("384 bytes"), "{}", text);
}

#[test]
fn files_that_are_no_parameters_are_refused_by_value() {
    allow_development();
    let error = |path: &std::path::Path| SRS::try_new(path.into(), false).err().unwrap();
    let e = error("/no/such.params".as_ref());
    assert_eq!(e.code, 2);
    assert!(e.to_string().contains("/no/such.params"), "{}", e);
    assert_eq!(String::from(&e), String::from(e));
    assert_eq!(error("a\0b".as_ref()).code, 22);
    assert_ne!(error(&folder("tiny-16").join("proof.json")).code, 0);

    let whole = std::fs::read(folder("tiny-16").join("params.bin")).unwrap();
    let file = std::env::temp_dir().join(format!("sealc2-cut-{}.params", std::process::id()));
    for len in [0, 1, 863, 864, whole.len() - 96, whole.len() - 1] {
        std::fs::write(&file, &whole[..len]).unwrap();
        let e = error(&file);
        assert!(e.to_string().contains(file.to_str().unwrap()), "{} bytes: {}", len, e);
    }
    std::fs::write(&file, [&whole[..], &[0]].concat()).unwrap();
    error(&file);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn references_outlive_each_other() {
    allow_development();
    let circuit = Circuit::load("tiny-16");
    let first = SRS::try_new(folder("tiny-16").join("params.bin"), true).unwrap();
    let second = first.clone();
    first.evict();
    first.evict();
    drop(first);
    assert_eq!(prove(&circuit, circuit.r, circuit.s, &second), circuit.proof);
    drop(SRS::default().clone());
    SRS::default().evict();
}

#[test]
fn threads_create_prove_evict_and_drop() {
    allow_development();
    let circuits: Vec<Circuit> = NAMES.iter().map(|n| Circuit::load(n)).collect();
    std::thread::scope(|scope| {
        for t in 0..32 {
            let circuits = &circuits;
            scope.spawn(move || {
                for i in 0..4 {
                    let k = (t + i) % NAMES.len();
                    let srs = SRS::try_new(folder(NAMES[k]).join("params.bin"), t % 2 == 0).unwrap();
                    if t % 3 == 0 {
                        srs.evict();
                    }
                    let srs = if t % 5 == 0 { srs.clone() } else { srs };
                    assert_eq!(prove(&circuits[k], circuits[k].r, circuits[k].s, &srs), circuits[k].proof);
                }
            });
        }
    });
}

/// Run as a child by the test below: only a process that has not loaded the library can fail to load it.
#[test]
#[ignore]
fn child_without_library() {
    let e = SRS::try_new("x.params".into(), false).err().unwrap();
    println!("code {}: {}", e.code, e);
}

#[test]
fn a_missing_library_is_an_error_that_says_so() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_without_library", "--nocapture"])
        .env("SEALC2_LIB", "/no/such/libsealc2.so")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", text);
    assert!(text.contains("code 79: sealc2: cannot load /no/such/libsealc2.so (SEALC2_LIB)"), "{}", text);
}
