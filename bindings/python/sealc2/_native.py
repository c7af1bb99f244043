"""The C interface of libsealc2 in ctypes: layouts and signatures of include/sealc2.h, with the two structs of
sealc2_s2.h that it refers to, and nothing else."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import List, Optional

PROOF_BYTES = 192


class Span(ctypes.Structure):
    _fields_ = [("at", ctypes.c_uint32), ("len", ctypes.c_uint32)]


class Error(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("text", ctypes.c_char_p),
        ("text_cap", ctypes.c_size_t),
        ("text_len", ctypes.c_size_t),
        ("op", Span),
        ("where", Span),
        ("want", Span),
        ("got", Span),
    ]


class Config(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("threads", ctypes.c_uint64),
        ("host_bytes", ctypes.c_uint64),
        ("device", ctypes.c_char_p),
        ("device_bytes", ctypes.c_uint64),
        ("queue_bytes", ctypes.c_uint64),
        ("policy", ctypes.c_char_p),
        ("device_workers", ctypes.c_uint32),
        ("partition_workers", ctypes.c_uint32),
    ]


class SubmitOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("priority", ctypes.c_uint32),
        ("replace", ctypes.c_uint32),
        ("deadline_ms", ctypes.c_uint64),
        ("room_ms", ctypes.c_uint64),
        ("call", ctypes.c_uint64),
    ]


class JobInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("id", ctypes.c_char * 128),
        ("state", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("partitions", ctypes.c_uint32),
        ("delivered", ctypes.c_uint32),
        ("partition", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("stage", ctypes.c_char * 24),
        ("done", ctypes.c_double),
        ("queued_ns", ctypes.c_uint64),
        ("running_ns", ctypes.c_uint64),
    ]


class Needs(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("partitions", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("host_bytes", ctypes.c_uint64),
        ("device_bytes", ctypes.c_uint64),
        ("shared_bytes", ctypes.c_uint64),
        ("host_limit", ctypes.c_uint64),
        ("device_limit", ctypes.c_uint64),
        ("batch", ctypes.c_uint32),
        ("ahead", ctypes.c_uint32),
        ("devices", ctypes.c_uint32),
        ("threads_limit", ctypes.c_uint32),
    ]


class Progress(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("partition", ctypes.c_int32),
        ("partitions", ctypes.c_int32),
        ("stage", ctypes.c_char_p),
        ("elapsed_ns", ctypes.c_uint64),
        ("done", ctypes.c_double),
        ("start_ns", ctypes.c_uint64),
    ]


ProgressFn = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Progress))
PartitionFn = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint8))


class ProveRequest(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("c1", ctypes.c_char_p),
        ("c1_len", ctypes.c_size_t),
        ("statement", ctypes.c_char_p),
        ("statement_len", ctypes.c_size_t),
        ("sector_id", ctypes.c_uint64),
        ("prover_id", ctypes.c_uint8 * 32),
        ("params_dir", ctypes.c_char_p),
        ("dev_params", ctypes.c_uint32),
        ("circuit_proofs", ctypes.c_uint32),
        ("r", ctypes.c_char_p),
        ("s", ctypes.c_char_p),
        ("scalar_count", ctypes.c_size_t),
        ("job", ctypes.c_uint64),
        ("progress", ProgressFn),
        ("partition", PartitionFn),
        ("user", ctypes.c_void_p),
    ]


class Density(ctypes.Structure):
    _fields_ = [("words", ctypes.c_void_p), ("bits", ctypes.c_size_t), ("ones", ctypes.c_size_t)]


class Circuit(ctypes.Structure):
    """sealc2_s2_prover."""

    _fields_ = [
        ("a_aux", Density),
        ("b_inp", Density),
        ("b_aux", Density),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("abc_len", ctypes.c_size_t),
        ("inp", ctypes.c_void_p),
        ("inp_len", ctypes.c_size_t),
        ("aux", ctypes.c_void_p),
        ("aux_len", ctypes.c_size_t),
    ]


class AssignmentsRequest(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("params", ctypes.c_char_p),
        ("circuits", ctypes.POINTER(Circuit)),
        ("count", ctypes.c_size_t),
        ("r", ctypes.c_char_p),
        ("s", ctypes.c_char_p),
        ("scalar_count", ctypes.c_size_t),
        ("job", ctypes.c_uint64),
        ("progress", ProgressFn),
        ("user", ctypes.c_void_p),
        ("dev_params", ctypes.c_uint32),
    ]


class C1Request(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("c1", ctypes.c_char_p),
        ("c1_len", ctypes.c_size_t),
        ("statement", ctypes.c_char_p),
        ("statement_len", ctypes.c_size_t),
        ("sector_id", ctypes.c_uint64),
        ("prover_id", ctypes.c_char_p),
    ]


class C1Info(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("shape", ctypes.c_char * 16),
        ("registered_proof", ctypes.c_int32),
        ("partitions", ctypes.c_uint32),
        ("inputs", ctypes.c_uint32),
        ("challenges", ctypes.c_uint32),
        ("porep_id", ctypes.c_uint8 * 32),
        ("replica_id", ctypes.c_uint8 * 32),
        ("comm_r", ctypes.c_uint8 * 32),
        ("comm_d", ctypes.c_uint8 * 32),
        ("ticket", ctypes.c_uint8 * 32),
        ("seed", ctypes.c_uint8 * 32),
    ]


class CircuitDigest(ctypes.Structure):
    """sealc2_circuit."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("inputs", ctypes.c_uint64),
        ("aux", ctypes.c_uint64),
        ("constraints", ctypes.c_uint64),
        ("rows", ctypes.c_uint64),
        ("domain", ctypes.c_uint64),
        ("nonzero", ctypes.c_uint64 * 3),
        ("max_terms", ctypes.c_uint64 * 3),
        ("a_aux", ctypes.c_uint64),
        ("b_input", ctypes.c_uint64),
        ("b_aux", ctypes.c_uint64),
        ("sha256", ctypes.c_uint64),
        ("poseidon", ctypes.c_uint64),
        ("chunk_rows", ctypes.c_uint64),
        ("chunks", ctypes.c_uint64),
        ("digest", ctypes.c_uint8 * 32),
        ("a_aux_digest", ctypes.c_uint8 * 32),
        ("b_input_digest", ctypes.c_uint8 * 32),
        ("b_aux_digest", ctypes.c_uint8 * 32),
    ]


class VerifyRequest(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("registered_proof", ctypes.c_int32),
        ("dev_params", ctypes.c_uint32),
        ("comm_r", ctypes.c_uint8 * 32),
        ("comm_d", ctypes.c_uint8 * 32),
        ("prover_id", ctypes.c_uint8 * 32),
        ("ticket", ctypes.c_uint8 * 32),
        ("seed", ctypes.c_uint8 * 32),
        ("sector_id", ctypes.c_uint64),
        ("proof", ctypes.c_char_p),
        ("proof_len", ctypes.c_size_t),
        ("params_dir", ctypes.c_char_p),
    ]


class Stage(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 24),
        ("partition", ctypes.c_int64),
        ("start_ns", ctypes.c_uint64),
        ("elapsed_ns", ctypes.c_uint64),
    ]


_ENGINE = ctypes.c_uint64
_JOB = ctypes.c_uint64
_ERR = ctypes.POINTER(Error)
_SIZE_OUT = ctypes.POINTER(ctypes.c_size_t)

_SIGNATURES = {
    "sealc2_version": (ctypes.c_char_p, []),
    "sealc2_status_name": (ctypes.c_char_p, [ctypes.c_int32]),
    "sealc2_open": (ctypes.c_int32, [ctypes.POINTER(Config), ctypes.POINTER(_ENGINE), _ERR]),
    "sealc2_close": (ctypes.c_int32, [_ENGINE, _ERR]),
    "sealc2_job_open": (ctypes.c_int32, [ctypes.POINTER(_JOB), _ERR]),
    "sealc2_cancel": (ctypes.c_int32, [_JOB, _ERR]),
    "sealc2_job_close": (ctypes.c_int32, [_JOB, _ERR]),
    "sealc2_prove": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(ProveRequest), ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, _SIZE_OUT, _ERR],
    ),
    "sealc2_verify": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(VerifyRequest), ctypes.POINTER(ctypes.c_int32), _ERR],
    ),
    "sealc2_prove_assignments": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(AssignmentsRequest), ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, _SIZE_OUT, _ERR],
    ),
    "sealc2_read_c1": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(C1Request), ctypes.POINTER(C1Info), ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, _ERR],
    ),
    "sealc2_circuit_digest": (
        ctypes.c_int32,
        [_ENGINE, ctypes.c_char_p, _JOB, ctypes.POINTER(CircuitDigest), ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, _ERR],
    ),
    "sealc2_last_stages": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(Stage), ctypes.c_size_t, ctypes.c_size_t, _SIZE_OUT, _ERR],
    ),
    "sealc2_submit": (
        ctypes.c_int32,
        [_ENGINE, ctypes.POINTER(ProveRequest), ctypes.POINTER(SubmitOptions), ctypes.POINTER(_JOB), _ERR],
    ),
    "sealc2_wait": (
        ctypes.c_int32,
        [_JOB, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t, _SIZE_OUT, _ERR],
    ),
    "sealc2_job_progress": (ctypes.c_int32, [_JOB, ctypes.POINTER(JobInfo), _ERR]),
    "sealc2_requirements": (ctypes.c_int32, [_ENGINE, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Needs), _ERR]),
    "sealc2_preload": (ctypes.c_int32, [_ENGINE, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, _JOB, _ERR]),
    "sealc2_evict": (ctypes.c_int32, [_ENGINE, ctypes.c_char_p, ctypes.c_char_p, _ERR]),
    "sealc2_idle_release": (ctypes.c_int32, [_ENGINE, _ERR]),
    "sealc2_metrics": (ctypes.c_int32, [_ENGINE, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, _SIZE_OUT, _ERR]),
    "sealc2_timeline": (
        ctypes.c_int32,
        [_ENGINE, ctypes.c_uint32, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, _SIZE_OUT, _ERR],
    ),
    "sealc2_shutdown": (ctypes.c_int32, [_ERR]),
}

_library: Optional[ctypes.CDLL] = None


def candidates() -> List[Path]:
    """Where the library is looked for. SEALC2_LIB, when set, is the only place."""
    chosen = os.environ.get("SEALC2_LIB")
    if chosen:
        return [Path(chosen)]
    here = Path(__file__).resolve().parent
    return [here / "libsealc2.so", here.parents[2] / "build" / "libsealc2.so"] if len(here.parents) > 2 else [here / "libsealc2.so"]


def library() -> ctypes.CDLL:
    """Loads the library at first use, with all its symbols bound."""
    global _library
    if _library is None:
        tried = candidates()
        found = next((path for path in tried if path.is_file()), None)
        if found is not None:
            loaded = ctypes.CDLL(str(found), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        else:
            try:
                loaded = ctypes.CDLL("libsealc2.so", mode=os.RTLD_NOW | os.RTLD_LOCAL)  # installed for the system
            except OSError as error:
                places = ", ".join(str(path) for path in tried)
                raise OSError(f"libsealc2.so: not in {places}, and not installed ({error}); build it, or set SEALC2_LIB") from None
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
        _library = loaded
    return _library
