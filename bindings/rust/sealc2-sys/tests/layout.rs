//! Sizes, places and constants are those that a C compiler reads from the header.

use sealc2_sys::*;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::process::Command;

/// The name in C, what Rust says, and the C expression for the same.
type Fact = (String, usize, String);

macro_rules! facts {
    ($($name:ident = $c:ident { $($field:ident),* })*) => {{
        let mut facts: Vec<Fact> = vec![];
        $(
            facts.push((stringify!($c).into(), size_of::<$name>(), format!("sizeof({})", stringify!($c))));
            $(facts.push((
                format!("{}.{}", stringify!($c), stringify!($field)),
                offset_of!($name, $field),
                format!("offsetof({}, {})", stringify!($c), stringify!($field)),
            ));)*
        )*
        facts
    }};
}

macro_rules! constants {
    ($($rust:ident = $c:ident)*) => { vec![$((stringify!($c).to_string(), $rust as usize, stringify!($c).to_string())),*] };
}

#[test]
fn is_the_headers() {
    let mut facts = facts! {
        Error = sealc2_error { size, text, text_cap, text_len, op, want, got }
        Config = sealc2_config {
            size, threads, host_bytes, device, device_bytes, queue_bytes, policy, device_workers, partition_workers
        }
        SubmitOptions = sealc2_submit_options { size, id, priority, replace, deadline_ms, room_ms, call }
        JobInfo = sealc2_job_info {
            size, id, state, priority, partitions, delivered, partition, status, stage, done, queued_ns, running_ns
        }
        Needs = sealc2_needs {
            size, partitions, threads, host_bytes, device_bytes, shared_bytes, host_limit, device_limit, batch, ahead, devices,
            threads_limit
        }
        Density = sealc2_s2_density { words, bits, ones }
        Circuit = sealc2_s2_prover { a_aux, b_inp, b_aux, a, b, c, abc_len, inp, inp_len, aux, aux_len }
        AssignmentsRequest = sealc2_assignments_request {
            size, params, circuits, count, r, s, scalar_count, job, progress, user, dev_params
        }
        C1Request = sealc2_c1_request { size, c1, c1_len, statement, statement_len, sector_id, prover_id }
        C1Info = sealc2_c1_info {
            size, shape, registered_proof, partitions, inputs, challenges, porep_id, replica_id, comm_r, comm_d, ticket, seed
        }
        CircuitDigest = sealc2_circuit {
            size, inputs, aux, constraints, rows, domain, nonzero, max_terms, a_aux, b_input, b_aux, sha256, poseidon, chunk_rows,
            chunks, digest, a_aux_digest, b_input_digest, b_aux_digest
        }
        Progress = sealc2_progress { size, partition, partitions, stage, elapsed_ns, done, start_ns }
        ProveRequest = sealc2_prove_request {
            size, c1, c1_len, statement, statement_len, sector_id, prover_id, params_dir, dev_params, circuit_proofs, r, s,
            scalar_count, job, progress, partition, user
        }
        VerifyRequest = sealc2_verify_request {
            size, registered_proof, dev_params, comm_r, comm_d, prover_id, ticket, seed, sector_id, proof, proof_len, params_dir
        }
        Stage = sealc2_stage { name, partition, start_ns, elapsed_ns }
    };
    facts.extend::<Vec<Fact>>(constants! {
        PROOF_BYTES = SEALC2_PROOF_BYTES
        OK = SEALC2_OK CALLER = SEALC2_CALLER INPUT = SEALC2_INPUT UNSATISFIED = SEALC2_UNSATISFIED PARAMS = SEALC2_PARAMS
        UNSUPPORTED = SEALC2_UNSUPPORTED NO_DEVICE = SEALC2_NO_DEVICE NO_MEMORY = SEALC2_NO_MEMORY
        CANCELLED = SEALC2_CANCELLED TIMEOUT = SEALC2_TIMEOUT SELF_CHECK = SEALC2_SELF_CHECK FORKED = SEALC2_FORKED
        INTERNAL = SEALC2_INTERNAL
        DEV_PARAMS_ENV = SEALC2_DEV_PARAMS_ENV DEV_PARAMS_ALLOW = SEALC2_DEV_PARAMS_ALLOW
        DEV_PARAMS_REFUSE = SEALC2_DEV_PARAMS_REFUSE
        JOB_ID_BYTES = SEALC2_JOB_ID_BYTES FOREVER = SEALC2_FOREVER
        CLASS_POREP = SEALC2_CLASS_POREP CLASS_SNAP = SEALC2_CLASS_SNAP CLASS_WINDOW_POST = SEALC2_CLASS_WINDOW_POST
        CLASS_WINNING_POST = SEALC2_CLASS_WINNING_POST
        JOB_QUEUED = SEALC2_JOB_QUEUED JOB_RUNNING = SEALC2_JOB_RUNNING JOB_DONE = SEALC2_JOB_DONE
        JOB_FAILED = SEALC2_JOB_FAILED JOB_CANCELLED = SEALC2_JOB_CANCELLED
        TIMELINE_TEXT = SEALC2_TIMELINE_TEXT TIMELINE_JSON = SEALC2_TIMELINE_JSON TIMELINE_CHROME = SEALC2_TIMELINE_CHROME
    });

    let mut source = String::from("#include \"sealc2.h\"\n#include \"sealc2_s2.h\"\n#include <stdio.h>\nint main(void) {\n");
    for (_, _, expression) in &facts {
        writeln!(source, "printf(\"%zu\\n\", (size_t){});", expression).unwrap();
    }
    source.push_str("puts(SEALC2_VERSION); return 0; }\n");
    let folder = std::env::temp_dir().join(format!("sealc2-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("layout.c"), source).unwrap();
    let compiled = Command::new("cc")
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../../include"))
        .args(["-o", "layout", "layout.c"])
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(folder.join("layout")).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), facts.len() + 1);
    for ((name, rust, _), c) in facts.iter().zip(&lines) {
        assert_eq!(&rust.to_string(), c, "{}", name);
    }
    assert_eq!(lines.last(), Some(&VERSION));
}
