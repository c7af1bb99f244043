"""Groth16 proofs for sealed Filecoin sectors (Commit Phase 2), over libsealc2.

    import sealc2

    proof = sealc2.seal_commit_phase2(c1_bytes, sector_id, prover_id)
    ok = sealc2.verify_seal(8, comm_r, comm_d, prover_id, ticket, seed, sector_id, proof)

The library is the file that SEALC2_LIB names, else the one inside this package, else ../../../build of a source
tree, else the system's. A wrong result is never returned: every failure is an Error with a kind and a text.
Parameters are looked for where FIL_PROOFS_PARAMETER_CACHE says, unless a call names a folder.

A service submits jobs (Engine.submit, a Job to wait for), asks for requirements, metrics and the timeline.

For experiments: Engine.prove (a Proof with its stage times), read_c1 (public inputs), circuit (counts and digests),
Engine.prove_assignments (circuits with values of one's own), and the module timeline. Arrays come as numpy's where a
method's name or text says so; nothing else needs numpy.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Union

from . import _native, field, timeline
from ._engine import PROOF_BYTES, Engine, Job, shutdown as _shutdown
from ._errors import Error, Status, caller as _caller
from ._types import C1, Assignment, Circuit, Data, JobClass, JobProgress, JobState, Path, Progress, Proof, Requirements, Stage

__all__ = [
    "Assignment",
    "C1",
    "Circuit",
    "Engine",
    "Error",
    "Job",
    "JobClass",
    "JobProgress",
    "JobState",
    "PROOF_BYTES",
    "Progress",
    "Proof",
    "Requirements",
    "Stage",
    "Status",
    "circuit",
    "field",
    "last_stages",
    "library_version",
    "prover_id",
    "read_c1",
    "seal_commit_phase2",
    "shutdown",
    "timeline",
    "verify_seal",
]

__version__ = "0.1.0"


def library_version() -> str:
    """The version of the loaded library."""
    version: bytes = _native.library().sealc2_version()
    return version.decode()


def prover_id(miner: Union[int, str]) -> bytes:
    """A miner's 32-byte prover id from its actor number: 1000, "f01000" or "t01000"."""
    if isinstance(miner, str):
        digits = miner[2:] if miner[:2] in ("f0", "t0") else miner
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20:
            raise _caller("prover_id", "miner", "an actor number or an ID address as f01000", repr(miner))
        miner = int(digits)
    if not isinstance(miner, int) or isinstance(miner, bool) or not 0 <= miner < 1 << 64:
        raise _caller("prover_id", "miner", "a number of 64 bits", repr(miner))
    out = bytearray()
    while True:
        out.append(miner & 0x7F | (0x80 if miner > 0x7F else 0))
        miner >>= 7
        if not miner:
            return bytes(out).ljust(32, b"\0")


_shared: Optional[Engine] = None
_shared_lock = threading.Lock()


def _engine() -> Engine:
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Engine()
        return _shared


def seal_commit_phase2(
    c1_bytes: Data,
    sector_id: int,
    prover_id: Data,
    *,
    params_dir: Optional[Path] = None,
    allow_dev_params: Optional[bool] = None,
    progress: Optional[Callable[[Progress], Any]] = None,
) -> bytes:
    """Proves a sector on the shared engine: see Engine.prove."""
    return _engine().seal_commit_phase2(
        c1_bytes, sector_id, prover_id, params_dir=params_dir, allow_dev_params=allow_dev_params, progress=progress
    )


def verify_seal(
    registered_proof: int,
    comm_r: Data,
    comm_d: Data,
    prover_id: Data,
    ticket: Data,
    seed: Data,
    sector_id: int,
    proof: Union[Data, Proof],
    *,
    params_dir: Optional[Path] = None,
    allow_dev_params: Optional[bool] = None,
) -> bool:
    """Whether a sector's proof holds, on the shared engine: see Engine.verify_seal."""
    return _engine().verify_seal(
        registered_proof,
        comm_r,
        comm_d,
        prover_id,
        ticket,
        seed,
        sector_id,
        proof,
        params_dir=params_dir,
        allow_dev_params=allow_dev_params,
    )


def read_c1(
    c1_bytes: Data, *, statement: Optional[Data] = None, sector_id: Optional[int] = None, prover_id: Optional[Data] = None
) -> C1:
    """What a C1 output claims: see Engine.read_c1."""
    return _engine().read_c1(c1_bytes, statement=statement, sector_id=sector_id, prover_id=prover_id)


def circuit(shape: str) -> Circuit:
    """Counts and digests of a circuit: see Engine.circuit."""
    return _engine().circuit(shape)


def last_stages() -> List[Stage]:
    """Stage times of the proof that finished last on the shared engine."""
    return _engine().last_stages()


def shutdown() -> None:
    """Closes all engines of this process, the shared one included. The library can be used again."""
    global _shared
    with _shared_lock:
        _shared = None
        _shutdown()
