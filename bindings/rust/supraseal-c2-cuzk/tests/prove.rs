//! The fork's own calls: devices, tokens, and proofs in two steps.

#[path = "../../supraseal-c2/tests/tiny/mod.rs"]
mod tiny;

use blstrs::Scalar;
use ff::Field;
use std::ffi::c_void;
use std::ptr::null_mut;
use supraseal_c2::*;
use tiny::{blank, is_blank, panic_text, srs, Circuit, Proof};

fn pointers(v: &[Scalar], n: usize) -> Vec<*const Scalar> {
    vec![v.as_ptr(); n]
}

fn prove(c: &Circuit, srs: &SRS, token: *mut c_void, device: i32) -> Vec<Proof> {
    let mut proofs = blank(2);
    generate_groth16_proof(
        &pointers(&c.a, 2),
        &pointers(&c.b, 2),
        &pointers(&c.c, 2),
        c.a.len(),
        &pointers(&c.inputs, 2),
        &pointers(&c.aux, 2),
        c.inputs.len(),
        c.aux.len(),
        &c.a_aux.words,
        &c.b_inp.words,
        &c.b_aux.words,
        c.a_aux.ones(),
        c.b_inp.ones(),
        c.b_aux.ones(),
        2,
        &[c.r, Scalar::ZERO],
        &[c.s, Scalar::ZERO],
        &mut proofs,
        srs,
        token,
        device,
    );
    proofs
}

fn start(c: &Circuit, srs: &SRS, token: *mut c_void) -> *mut c_void {
    start_groth16_proof(
        &pointers(&c.a, 1),
        &pointers(&c.b, 1),
        &pointers(&c.c, 1),
        c.a.len(),
        &pointers(&c.inputs, 1),
        &pointers(&c.aux, 1),
        c.inputs.len(),
        c.aux.len(),
        &c.a_aux.words,
        &c.b_inp.words,
        &c.b_aux.words,
        c.a_aux.ones(),
        c.b_inp.ones(),
        c.b_aux.ones(),
        1,
        &[c.r],
        &[c.s],
        srs,
        token,
        -1,
    )
}

#[test]
fn one_step_with_and_without_a_token() {
    let (c, srs) = (Circuit::load("tiny-1024"), srs("tiny-1024"));
    let token = alloc_gpu_mutex();
    for token in [null_mut(), token] {
        for device in [-1, 0] {
            let proofs = prove(&c, &srs, token, device);
            assert_eq!((proofs[0].hex(), proofs[1].hex()), (c.proof.clone(), c.proof_with_zeros.clone()));
        }
    }
    let text = panic_text(|| drop(prove(&c, &srs, token, 4711)));
    assert!(text.contains("4711"), "{}", text);
    // SAFETY: from alloc_gpu_mutex, once.
    unsafe {
        free_gpu_mutex(token);
        free_gpu_mutex(null_mut());
    }
    let mut proofs = blank(1);
    generate_groth16_proofs(&[c.assignment()], &[c.r], &[c.s], &mut proofs, &srs);
    assert_eq!(proofs[0].hex(), c.proof);
}

#[test]
fn two_steps_need_the_rows_only_until_the_first_returns() {
    let (mut c, srs) = (Circuit::load("tiny-128"), srs("tiny-128"));
    let handle = start(&c, &srs, null_mut());
    for rows in [&mut c.a, &mut c.b, &mut c.c] {
        rows.fill(-Scalar::ONE);
        *rows = vec![];
    }
    let mut proofs = blank(1);
    finish_groth16_proof(handle, &mut proofs);
    c.poison();
    assert_eq!(proofs[0].hex(), c.proof);
}

#[test]
fn work_can_be_abandoned() {
    let (c, srs) = (Circuit::load("tiny-64"), srs("tiny-64"));
    let token = alloc_gpu_mutex();
    let handle = start(&c, &srs, token);
    // SAFETY: a handle not spent, NULL, and a token once, while work with it has just ended.
    unsafe {
        drop_pending_proof(handle);
        drop_pending_proof(null_mut());
        free_gpu_mutex(token);
    }
    // A place for another number of proofs is refused, and the handle is spent.
    let handle = start(&c, &srs, null_mut());
    let mut proofs = blank(2);
    let text = panic_text(|| finish_groth16_proof(handle, &mut proofs));
    assert!(text.contains("room for 2 proofs of 1"), "{}", text);
    assert!(proofs.iter().all(is_blank));
}

#[test]
fn a_failed_start_leaves_nothing_pending() {
    let (mut c, srs) = (Circuit::load("tiny-64"), srs("tiny-64"));
    c.c[3] += Scalar::ONE;
    let token = alloc_gpu_mutex();
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut proofs = blank(1);
        finish_groth16_proof(start(&c, &srs, token), &mut proofs);
    }));
    assert!(failed.is_err());
    let good = Circuit::load("tiny-64");
    assert_eq!(prove(&good, &srs, token, -1)[0].hex(), good.proof);
    // SAFETY: from alloc_gpu_mutex, once.
    unsafe { free_gpu_mutex(token) };
}

#[test]
fn many_threads_share_tokens() {
    let (c, srs) = (Circuit::load("tiny-128"), srs("tiny-128"));
    let tokens: Vec<usize> = (0..2).map(|_| alloc_gpu_mutex() as usize).collect();
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (c, srs, tokens) = (&c, &srs, &tokens);
            scope.spawn(move || {
                for i in 0..4 {
                    let token = tokens[(t + i) % 2] as *mut c_void;
                    if i % 2 == 0 {
                        assert_eq!(prove(c, srs, token, -1)[0].hex(), c.proof);
                    } else {
                        let mut proofs = blank(1);
                        finish_groth16_proof(start(c, srs, token), &mut proofs);
                        assert_eq!(proofs[0].hex(), c.proof);
                    }
                }
            });
        }
    });
    for token in tokens {
        // SAFETY: from alloc_gpu_mutex, once.
        unsafe { free_gpu_mutex(token as *mut c_void) };
    }
}
