"""Groth16 proofs for sealed Filecoin sectors (Commit Phase 2), over libsealc2.

    import sealc2

    proof = sealc2.seal_commit_phase2(c1_bytes, sector_id, prover_id)
    ok = sealc2.verify_seal(8, comm_r, comm_d, prover_id, ticket, seed, sector_id, proof)

The library is the file that SEALC2_LIB names, else the one inside this package, else ../../../build of a source
tree, else the system's. A wrong result is never returned: every failure is an Error with a code and a text.
Parameters are looked for where FIL_PROOFS_PARAMETER_CACHE says, unless a call names a folder.
"""

from __future__ import annotations

import ctypes
import enum
import os
import threading
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Union

from . import _native

__all__ = [
    "Engine",
    "Error",
    "Progress",
    "Stage",
    "Status",
    "last_stages",
    "library_version",
    "prover_id",
    "seal_commit_phase2",
    "shutdown",
    "verify_seal",
]

__version__ = "0.1.0"

PROOF_BYTES = _native.PROOF_BYTES
# No registered proof has more partitions than the non-interactive kind of 32 and 64 GiB.
_MOST_PARTITIONS = 126


class Status(enum.IntEnum):
    """Whose fault a failure is; the numbers are those of sealc2_status in sealc2.h."""

    OK = 0
    CALLER = 1
    INPUT = 2
    UNSATISFIED = 3
    PARAMS = 4
    UNSUPPORTED = 5
    NO_DEVICE = 6
    NO_MEMORY = 7
    CANCELLED = 8
    TIMEOUT = 9
    SELF_CHECK = 10
    FORKED = 11
    INTERNAL = 12


class Error(Exception):
    """A failed call: code says whose fault it is, message names what was expected and what was found."""

    def __init__(self, code: Status, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


@dataclass(frozen=True)
class Progress:
    """One finished stage. partition is -1 for a stage of the whole job; done is the job's share, 0 to 1."""

    partition: int
    partitions: int
    stage: str
    seconds: float
    done: float


@dataclass(frozen=True)
class Stage:
    """The time that one stage of one partition took; start is since the job began."""

    partition: int
    name: str
    start_seconds: float
    seconds: float


def _fail(status: int, error: _native.Error, buffer: Any) -> None:
    if status != Status.OK:
        text = buffer.value.decode("utf-8", "replace")
        raise Error(Status(status), text)


def _error_out() -> "tuple[_native.Error, Any]":
    buffer = ctypes.create_string_buffer(65536)
    return _native.Error(ctypes.sizeof(_native.Error), ctypes.cast(buffer, ctypes.c_char_p), len(buffer), 0), buffer


def _call(name: str, *arguments: Any) -> None:
    error, buffer = _error_out()
    _fail(getattr(_native.library(), name)(*arguments, ctypes.byref(error)), error, buffer)


def library_version() -> str:
    """The version of the loaded library."""
    return _native.library().sealc2_version().decode()


def prover_id(miner: Union[int, str]) -> bytes:
    """A miner's 32-byte prover id from its actor number: 1000, "f01000" or "t01000"."""
    if isinstance(miner, str):
        digits = miner[2:] if miner[:2] in ("f0", "t0") else miner
        if not digits.isdecimal():
            raise Error(Status.CALLER, f"prover_id: miner: want an actor number or an ID address as f01000, got {miner!r}")
        miner = int(digits)
    if not 0 <= miner < 1 << 64:
        raise Error(Status.CALLER, f"prover_id: miner: want a number of 64 bits, got {miner}")
    out = bytearray()
    while True:
        out.append(miner & 0x7F | (0x80 if miner > 0x7F else 0))
        miner >>= 7
        if not miner:
            return bytes(out).ljust(32, b"\0")


def _bytes(op: str, name: str, value: Any, length: Optional[int] = None) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise Error(Status.CALLER, f"{op}: {name}: want bytes, got {type(value).__name__}")
    out = bytes(value)
    if length is not None and len(out) != length:
        raise Error(Status.CALLER, f"{op}: {name}: want {length} bytes, got {len(out)}")
    return out


def _number(op: str, name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Error(Status.CALLER, f"{op}: {name}: want a number from {low} to {high}, got {value!r}")
    return value


def _array32(op: str, name: str, value: Any) -> Any:
    return (ctypes.c_uint8 * 32)(*_bytes(op, name, value, 32))


def _dev_params(allow: Optional[bool]) -> int:
    return 0 if allow is None else 1 if allow else 2


def _path(op: str, params_dir: Any) -> Optional[bytes]:
    if params_dir is None:
        return None
    path = os.fsencode(params_dir)
    if b"\0" in path:
        raise Error(Status.CALLER, f"{op}: params_dir: want a path, got one with a NUL")
    return path


class Engine:
    """One memory and thread budget with its loaded parameters. Threads may share it; one is enough for most
    programs, and the functions of this module share one that opens at first use.

    threads and host_bytes of 0 leave the choice to the machine (RAYON_NUM_THREADS, affinity, cgroup).
    """

    def __init__(self, *, threads: int = 0, host_bytes: int = 0, device: str = "auto") -> None:
        self._handle = 0
        config = _native.Config(
            ctypes.sizeof(_native.Config),
            _number("Engine", "threads", threads, 0, (1 << 64) - 1),
            _number("Engine", "host_bytes", host_bytes, 0, (1 << 64) - 1),
            device.encode(),
        )
        handle = ctypes.c_uint64(0)
        _call("sealc2_open", ctypes.byref(config), ctypes.byref(handle))
        self._handle = handle.value

    def close(self) -> None:
        """Cancels what runs on the engine, waits for it and gives the memory back. Closing twice is harmless."""
        handle, self._handle = self._handle, 0
        if handle:
            _call("sealc2_close", handle)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def seal_commit_phase2(
        self,
        c1_bytes: bytes,
        sector_id: int,
        prover_id: bytes,
        *,
        params_dir: Any = None,
        allow_dev_params: Optional[bool] = None,
        progress: Optional[Callable[[Progress], Any]] = None,
        statement: Optional[bytes] = None,
        circuit_proofs: bool = False,
        r: Optional[Sequence[bytes]] = None,
        s: Optional[Sequence[bytes]] = None,
    ) -> bytes:
        """Proves a sector and returns its verified proof, 192 bytes a partition.

        c1_bytes           C1 output: its JSON, or lotus-bench's wrapping of it
        prover_id          32 bytes, see prover_id()
        params_dir         folder of parameter files; None: the environment says
        allow_dev_params   whether development parameters are accepted; None: if SEALC2_ALLOW_DEV_PARAMS is 1
        progress           called after each stage, from a thread of the library; an exception in it cancels the
                           proof and is raised here
        statement          statement file, for the unregistered test sizes
        circuit_proofs     return the partitions' proofs as they are, also where the chain takes an aggregate
        r, s               32 bytes a partition, little-endian, for reproducible proofs in tests

        KeyboardInterrupt cancels the proof.
        """
        op = "seal_commit_phase2"
        if not self._handle:
            raise Error(Status.CALLER, f"{op}: engine: want an open engine, got a closed one")
        c1 = _bytes(op, "c1_bytes", c1_bytes)
        request = _native.ProveRequest(size=ctypes.sizeof(_native.ProveRequest))
        request.c1, request.c1_len = c1, len(c1)
        if statement is not None:
            request.statement = _bytes(op, "statement", statement)
            request.statement_len = len(statement)
        request.sector_id = _number(op, "sector_id", sector_id, 0, (1 << 64) - 1)
        request.prover_id = _array32(op, "prover_id", prover_id)
        request.params_dir = _path(op, params_dir)
        request.dev_params = _dev_params(allow_dev_params)
        request.circuit_proofs = int(circuit_proofs)
        if (r is None) != (s is None) or r is not None and s is not None and len(r) != len(s):
            raise Error(Status.CALLER, f"{op}: r and s: want both, one of each a partition")
        if r is not None and s is not None:
            request.r = b"".join(_bytes(op, f"r[{i}]", one, 32) for i, one in enumerate(r))
            request.s = b"".join(_bytes(op, f"s[{i}]", one, 32) for i, one in enumerate(s))
            request.scalar_count = len(r)

        raised: List[BaseException] = []

        def on_progress(_user: Any, at: Any) -> int:
            try:
                p = at.contents
                if progress is not None:
                    progress(Progress(p.partition, p.partitions, p.stage.decode(), p.elapsed_ns / 1e9, p.done))
                return 0
            except BaseException as error:  # must not leave through C
                raised.append(error)
                return 1

        if progress is not None:
            request.progress = _native.ProgressFn(on_progress)
        job = ctypes.c_uint64(0)
        _call("sealc2_job_open", ctypes.byref(job))
        try:
            request.job = job.value
            proof = (ctypes.c_uint8 * (_MOST_PARTITIONS * PROOF_BYTES))()
            length = ctypes.c_size_t(0)
            error, buffer = _error_out()
            status = self._interruptible(
                job.value,
                lambda: _native.library().sealc2_prove(
                    self._handle, ctypes.byref(request), proof, len(proof), ctypes.byref(length), ctypes.byref(error)
                ),
            )
        finally:
            _call("sealc2_job_close", job.value)
        if raised:
            raise raised[0]
        _fail(status, error, buffer)
        return bytes(proof[: length.value])

    @staticmethod
    def _interruptible(job: int, call: Callable[[], int]) -> int:
        """Runs a long call so that an interrupt of the main thread cancels its job."""
        if threading.current_thread() is not threading.main_thread():
            return call()
        results: List[int] = []
        worker = threading.Thread(target=lambda: results.append(call()), name="sealc2", daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(0.2)
        except BaseException:
            _call("sealc2_cancel", job)
            worker.join()
            raise
        return results[0]

    def verify_seal(
        self,
        registered_proof: int,
        comm_r: bytes,
        comm_d: bytes,
        prover_id: bytes,
        ticket: bytes,
        seed: bytes,
        sector_id: int,
        proof: bytes,
        *,
        params_dir: Any = None,
        allow_dev_params: Optional[bool] = None,
    ) -> bool:
        """Whether a sector's proof holds. What cannot be a proof at all raises Error."""
        op = "verify_seal"
        if not self._handle:
            raise Error(Status.CALLER, f"{op}: engine: want an open engine, got a closed one")
        data = _bytes(op, "proof", proof)
        request = _native.VerifyRequest(size=ctypes.sizeof(_native.VerifyRequest))
        request.registered_proof = _number(op, "registered_proof", registered_proof, -(1 << 31), (1 << 31) - 1)
        request.dev_params = _dev_params(allow_dev_params)
        request.comm_r = _array32(op, "comm_r", comm_r)
        request.comm_d = _array32(op, "comm_d", comm_d)
        request.prover_id = _array32(op, "prover_id", prover_id)
        request.ticket = _array32(op, "ticket", ticket)
        request.seed = _array32(op, "seed", seed)
        request.sector_id = _number(op, "sector_id", sector_id, 0, (1 << 64) - 1)
        request.proof, request.proof_len = data, len(data)
        request.params_dir = _path(op, params_dir)
        verified = ctypes.c_int32(0)
        _call("sealc2_verify", self._handle, ctypes.byref(request), ctypes.byref(verified))
        return verified.value == 1

    def last_stages(self) -> List[Stage]:
        """Stage times of the proof that finished last on this engine; empty before the first."""
        room = 64
        while True:
            stages = (_native.Stage * room)()
            count = ctypes.c_size_t(0)
            _call("sealc2_last_stages", self._handle, stages, ctypes.sizeof(_native.Stage), room, ctypes.byref(count))
            if count.value <= room:
                return [Stage(s.partition, s.name.decode(), s.start_ns / 1e9, s.elapsed_ns / 1e9) for s in stages[: count.value]]
            room = count.value


_shared: Optional[Engine] = None
_shared_lock = threading.Lock()


def _engine() -> Engine:
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Engine()
        return _shared


def seal_commit_phase2(
    c1_bytes: bytes,
    sector_id: int,
    prover_id: bytes,
    *,
    params_dir: Any = None,
    allow_dev_params: Optional[bool] = None,
    progress: Optional[Callable[[Progress], Any]] = None,
) -> bytes:
    """Proves a sector on the shared engine: see Engine.seal_commit_phase2."""
    return _engine().seal_commit_phase2(
        c1_bytes, sector_id, prover_id, params_dir=params_dir, allow_dev_params=allow_dev_params, progress=progress
    )


def verify_seal(
    registered_proof: int,
    comm_r: bytes,
    comm_d: bytes,
    prover_id: bytes,
    ticket: bytes,
    seed: bytes,
    sector_id: int,
    proof: bytes,
    *,
    params_dir: Any = None,
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


def last_stages() -> List[Stage]:
    """Stage times of the proof that finished last on the shared engine."""
    return _engine().last_stages()


def shutdown() -> None:
    """Closes all engines of this process, the shared one included. The library can be used again."""
    global _shared
    with _shared_lock:
        _shared = None
        _call("sealc2_shutdown")
