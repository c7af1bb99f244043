"""Engine: the calls of the library as methods."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import _buffers, _native
from ._errors import Error, Status, caller
from ._types import C1, Assignment, Circuit, Data, Path, Progress, Proof, Stage

PROOF_BYTES = _native.PROOF_BYTES
# No registered proof has more partitions than the non-interactive kind of 32 and 64 GiB.
_MOST_PARTITIONS = 126
# Room for error text; what is longer is cut.
_TEXT_BYTES = 65536


class Failure:
    """Where one call of the library puts its error."""

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(_TEXT_BYTES)
        self._error = _native.Error(ctypes.sizeof(_native.Error), ctypes.cast(self._text, ctypes.c_char_p), _TEXT_BYTES)

    def out(self) -> Any:
        return ctypes.byref(self._error)

    def check(self, status: int) -> None:
        """Raises what a call that returned status wrote."""
        if status == Status.OK:
            return
        text = self._text.value

        def part(span: Any) -> str:
            return text[span.at : span.at + span.len].decode("utf-8", "replace")

        e = self._error
        raise Error(Status(status), text.decode("utf-8", "replace"), part(e.op), part(e.where), part(e.want), part(e.got))


def call(name: str, *arguments: Any) -> None:
    failure = Failure()
    failure.check(getattr(_native.library(), name)(*arguments, failure.out()))


def _interruptible(job: int, work: Callable[[], int]) -> int:
    """Runs a long call so that an interrupt of the main thread cancels its job; it returns or raises when the call has
    ended. Thread.join and is_alive cannot tell that: up to Python 3.12 an interrupted join takes the thread for ended."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    permit = [True]
    results: List[int] = []
    failed: List[BaseException] = []
    ended = threading.Event()

    def body() -> None:
        try:
            permit.pop()
            results.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    raised: Optional[BaseException] = None
    started = False
    while not ended.is_set():
        try:
            if not started:
                threading.Thread(target=body, name="sealc2", daemon=True).start()
                started = True
            if raised is not None:
                call("sealc2_cancel", job)
            ended.wait(0.2)
        except BaseException as error:  # the first one counts; more of them change nothing
            raised = raised or error
            if not started:
                started = True
                try:
                    permit.pop()
                    break  # the thread does not run, or will find that it may not
                except IndexError:
                    continue
    if raised is not None:
        raise raised
    if failed:
        raise failed[0]
    return results[0]


def number(op: str, name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise caller(op, name, f"a number from {low} to {high}", repr(value))
    return value


def _array32(op: str, name: str, value: Any) -> Any:
    return (ctypes.c_uint8 * 32)(*_buffers.data_of(op, name, value, 32))


def _dev_params(allow: Optional[bool]) -> int:
    return 0 if allow is None else 1 if allow else 2


def _path(op: str, name: str, path: Any) -> bytes:
    try:
        raw = os.fsencode(path)
    except TypeError:
        raise caller(op, name, "a path", type(path).__name__) from None
    if b"\0" in raw or not raw:
        raise caller(op, name, "a path", "one with a NUL" if raw else "empty text")
    return raw


def _scalars(op: str, r: Optional[Sequence[Data]], s: Optional[Sequence[Data]]) -> "Optional[Tuple[bytes, bytes, int]]":
    if r is None and s is None:
        return None
    if r is None or s is None or len(r) != len(s):
        raise caller(op, "r and s", "both, one of each a partition", "one of them" if r is None or s is None else f"{len(r)} and {len(s)}")
    if len(r) == 0:
        raise caller(op, "r and s", "one of each a partition", "none")
    return (
        b"".join(_buffers.data_of(op, f"r[{i}]", one, 32) for i, one in enumerate(r)),
        b"".join(_buffers.data_of(op, f"s[{i}]", one, 32) for i, one in enumerate(s)),
        len(r),
    )


class _Listener:
    """The progress callback of one call: keeps stage times and an exception of the caller's own."""

    def __init__(self, progress: Optional[Callable[[Progress], Any]]) -> None:
        self._progress = progress
        self.stages: List[Stage] = []
        self.raised: Optional[BaseException] = None
        self.function = _native.ProgressFn(self._hear)

    def _hear(self, _user: Any, at: Any) -> int:
        try:
            p = at.contents
            name, start, seconds = p.stage.decode(), p.start_ns / 1e9, p.elapsed_ns / 1e9
            self.stages.append(Stage(p.partition, name, start, seconds))
            if self._progress is not None:
                self._progress(Progress(p.partition, p.partitions, name, seconds, p.done, start))
            return 0
        except BaseException as error:  # must not leave through C
            self.raised = error
            return 1


_open_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()


def shutdown() -> None:
    """Closes all engines of the library; those of this module know it."""
    open_engines = list(_open_engines)
    call("sealc2_shutdown")
    for engine in open_engines:
        engine._handle = 0


class Engine:
    """One memory and thread budget with its loaded parameters. Threads may share it; one is enough for most
    programs, and the functions of this module share one that opens at first use.

    threads and host_bytes of 0 leave the choice to the machine (RAYON_NUM_THREADS, affinity, cgroup). device is "cpu",
    "cuda", "cuda:1" or "auto"; None: SEALC2_DEVICE says, else it is "auto".
    """

    def __init__(self, *, threads: int = 0, host_bytes: int = 0, device: Optional[str] = None) -> None:
        self._handle = 0
        if device is not None and (not isinstance(device, str) or "\0" in device):
            raise caller("Engine", "device", 'text as "cpu" or "cuda"', repr(device))
        config = _native.Config(
            ctypes.sizeof(_native.Config),
            number("Engine", "threads", threads, 0, (1 << 64) - 1),
            number("Engine", "host_bytes", host_bytes, 0, (1 << 64) - 1),
            None if device is None else device.encode(),
        )
        handle = ctypes.c_uint64(0)
        call("sealc2_open", ctypes.byref(config), ctypes.byref(handle))
        self._handle = handle.value
        _open_engines.add(self)

    def close(self) -> None:
        """Cancels what runs on the engine, waits for it and gives the memory back. Closing twice is harmless."""
        handle, self._handle = self._handle, 0
        if handle:
            call("sealc2_close", handle)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _open(self, op: str) -> int:
        if not self._handle:
            raise caller(op, "engine", "an open engine", "a closed one")
        return self._handle

    def _prove(self, function: str, request: Any, partitions: int, listener: _Listener, lent: _buffers.Lent) -> Proof:
        """Runs a call that proves, under a job of its own. lent is released when the call has ended."""
        handle = self._open(function)
        request.progress = listener.function
        job = ctypes.c_uint64(0)
        call("sealc2_job_open", ctypes.byref(job))
        try:
            request.job = job.value
            proof = (ctypes.c_uint8 * (partitions * PROOF_BYTES))()
            length = ctypes.c_size_t(0)
            failure = Failure()
            prove = getattr(_native.library(), function)

            def work() -> int:
                with lent:
                    return int(prove(handle, ctypes.byref(request), proof, len(proof), ctypes.byref(length), failure.out()))

            status = _interruptible(job.value, work)
        finally:
            call("sealc2_job_close", job.value)
        if listener.raised is not None:
            raise listener.raised
        failure.check(status)
        return Proof(bytes(proof)[: length.value], tuple(listener.stages))

    def prove(
        self,
        c1_bytes: Data,
        sector_id: int,
        prover_id: Data,
        *,
        params_dir: Optional[Path] = None,
        allow_dev_params: Optional[bool] = None,
        progress: Optional[Callable[[Progress], Any]] = None,
        statement: Optional[Data] = None,
        circuit_proofs: bool = False,
        r: Optional[Sequence[Data]] = None,
        s: Optional[Sequence[Data]] = None,
    ) -> Proof:
        """Proves a sector. The proof has been verified.

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
        self._open(op)
        c1 = _buffers.data_of(op, "c1_bytes", c1_bytes)
        request = _native.ProveRequest(size=ctypes.sizeof(_native.ProveRequest))
        request.c1, request.c1_len = c1, len(c1)
        if statement is not None:
            text = _buffers.data_of(op, "statement", statement)
            request.statement, request.statement_len = text, len(text)
        request.sector_id = number(op, "sector_id", sector_id, 0, (1 << 64) - 1)
        request.prover_id = _array32(op, "prover_id", prover_id)
        request.params_dir = None if params_dir is None else _path(op, "params_dir", params_dir)
        request.dev_params = _dev_params(allow_dev_params)
        request.circuit_proofs = int(circuit_proofs)
        blinding = _scalars(op, r, s)
        if blinding is not None:
            request.r, request.s, request.scalar_count = blinding
        return self._prove("sealc2_prove", request, _MOST_PARTITIONS, _Listener(progress), _buffers.Lent())

    def seal_commit_phase2(
        self,
        c1_bytes: Data,
        sector_id: int,
        prover_id: Data,
        *,
        params_dir: Optional[Path] = None,
        allow_dev_params: Optional[bool] = None,
        progress: Optional[Callable[[Progress], Any]] = None,
        statement: Optional[Data] = None,
        circuit_proofs: bool = False,
        r: Optional[Sequence[Data]] = None,
        s: Optional[Sequence[Data]] = None,
    ) -> bytes:
        """The bytes of prove() alone: 192 a partition."""
        return self.prove(
            c1_bytes,
            sector_id,
            prover_id,
            params_dir=params_dir,
            allow_dev_params=allow_dev_params,
            progress=progress,
            statement=statement,
            circuit_proofs=circuit_proofs,
            r=r,
            s=s,
        ).data

    def prove_assignments(
        self,
        params: Path,
        assignments: Sequence[Assignment],
        *,
        allow_dev_params: Optional[bool] = None,
        progress: Optional[Callable[[Progress], Any]] = None,
        r: Optional[Sequence[Data]] = None,
        s: Optional[Sequence[Data]] = None,
    ) -> Proof:
        """Proves circuits whose values were made elsewhere, all of one shape.

        params        path of the circuit's parameter file; its head is the verifying key
        assignments   one a circuit; their arrays are read in place and must not be written meanwhile
        r, s          32 bytes a circuit, little-endian, canonical; zero is legal; None: from the random source

        Every row is checked (Status.UNSATISFIED names it), and every proof is verified with the key and the inputs.
        """
        op = "prove_assignments"
        self._open(op)
        request = _native.AssignmentsRequest(size=ctypes.sizeof(_native.AssignmentsRequest))
        request.params = _path(op, "params", params)
        request.dev_params = _dev_params(allow_dev_params)
        blinding = _scalars(op, r, s)
        if blinding is not None:
            request.r, request.s, request.scalar_count = blinding
        lent = _buffers.Lent()
        try:
            circuits = _buffers.circuits(op, assignments, lent)
        except BaseException:
            lent.release()
            raise
        request.circuits, request.count = circuits, len(circuits)
        return self._prove("sealc2_prove_assignments", request, len(circuits), _Listener(progress), lent)

    def read_c1(
        self,
        c1_bytes: Data,
        *,
        statement: Optional[Data] = None,
        sector_id: Optional[int] = None,
        prover_id: Optional[Data] = None,
    ) -> C1:
        """What a C1 output claims, with its public inputs. With sector_id and prover_id the replica id is
        recomputed and compared, else it is taken from the C1."""
        op = "read_c1"
        handle = self._open(op)
        c1 = _buffers.data_of(op, "c1_bytes", c1_bytes)
        request = _native.C1Request(size=ctypes.sizeof(_native.C1Request))
        request.c1, request.c1_len = c1, len(c1)
        if statement is not None:
            text = _buffers.data_of(op, "statement", statement)
            request.statement, request.statement_len = text, len(text)
        if (sector_id is None) != (prover_id is None):
            raise caller(op, "sector_id and prover_id", "both or none", "one of them")
        if sector_id is not None:
            request.sector_id = number(op, "sector_id", sector_id, 0, (1 << 64) - 1)
            request.prover_id = _buffers.data_of(op, "prover_id", prover_id, 32)
        info = _native.C1Info(size=ctypes.sizeof(_native.C1Info))
        room = 1 << 14
        while True:
            inputs = (ctypes.c_uint8 * room)()
            call("sealc2_read_c1", handle, ctypes.byref(request), ctypes.byref(info), inputs, room)
            each = info.inputs * 32
            if info.partitions * each <= room:
                break
            room = info.partitions * each
        data = bytes(inputs)
        return C1(
            shape=info.shape.decode(),
            registered_proof=None if info.registered_proof < 0 else info.registered_proof,
            challenges=info.challenges,
            porep_id=bytes(info.porep_id),
            replica_id=bytes(info.replica_id),
            comm_r=bytes(info.comm_r),
            comm_d=bytes(info.comm_d),
            ticket=bytes(info.ticket),
            seed=bytes(info.seed),
            inputs=tuple(data[k * each : (k + 1) * each] for k in range(info.partitions)),
        )

    def circuit(self, shape: str) -> Circuit:
        """Counts and digests of the circuit of a sector size, "2KiB" to "64GiB", from the very program that proofs
        run. A second for the small sizes, minutes for 32 GiB; KeyboardInterrupt cancels."""
        op = "circuit"
        handle = self._open(op)
        if not isinstance(shape, str) or "\0" in shape:
            raise caller(op, "shape", 'a sector size as "2KiB"', repr(shape))
        found = _native.CircuitDigest(size=ctypes.sizeof(_native.CircuitDigest))
        room = 4096  # chunks: more than any size has
        chunks = (ctypes.c_uint8 * (room * 32))()
        job = ctypes.c_uint64(0)
        call("sealc2_job_open", ctypes.byref(job))
        try:
            failure = Failure()
            digest = _native.library().sealc2_circuit_digest
            status = _interruptible(
                job.value,
                lambda: int(digest(handle, shape.encode(), job.value, ctypes.byref(found), chunks, len(chunks), failure.out())),
            )
        finally:
            call("sealc2_job_close", job.value)
        failure.check(status)
        if found.chunks > room:
            raise Error(Status.INTERNAL, f"{op}: chunks: want at most {room}, got {found.chunks}", op, "chunks", f"at most {room}", str(found.chunks))

        def triple(of: Any) -> "Tuple[int, int, int]":
            return of[0], of[1], of[2]

        return Circuit(
            shape=shape,
            inputs=found.inputs,
            aux=found.aux,
            constraints=found.constraints,
            rows=found.rows,
            domain=found.domain,
            nonzero=triple(found.nonzero),
            max_terms=triple(found.max_terms),
            a_aux=found.a_aux,
            b_input=found.b_input,
            b_aux=found.b_aux,
            sha256=found.sha256,
            poseidon=found.poseidon,
            chunk_rows=found.chunk_rows,
            digest=bytes(found.digest),
            a_aux_digest=bytes(found.a_aux_digest),
            b_input_digest=bytes(found.b_input_digest),
            b_aux_digest=bytes(found.b_aux_digest),
            chunks=bytes(chunks)[: found.chunks * 32],
        )

    def verify_seal(
        self,
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
        """Whether a sector's proof holds. What cannot be a proof at all raises Error."""
        op = "verify_seal"
        handle = self._open(op)
        data = _buffers.data_of(op, "proof", proof.data if isinstance(proof, Proof) else proof)
        request = _native.VerifyRequest(size=ctypes.sizeof(_native.VerifyRequest))
        request.registered_proof = number(op, "registered_proof", registered_proof, -(1 << 31), (1 << 31) - 1)
        request.dev_params = _dev_params(allow_dev_params)
        request.comm_r = _array32(op, "comm_r", comm_r)
        request.comm_d = _array32(op, "comm_d", comm_d)
        request.prover_id = _array32(op, "prover_id", prover_id)
        request.ticket = _array32(op, "ticket", ticket)
        request.seed = _array32(op, "seed", seed)
        request.sector_id = number(op, "sector_id", sector_id, 0, (1 << 64) - 1)
        request.proof, request.proof_len = data, len(data)
        request.params_dir = None if params_dir is None else _path(op, "params_dir", params_dir)
        verified = ctypes.c_int32(0)
        call("sealc2_verify", handle, ctypes.byref(request), ctypes.byref(verified))
        return verified.value == 1

    def last_stages(self) -> List[Stage]:
        """Stage times of the proof that finished last on this engine; empty before the first. Proof.stages has those
        of one proof, whatever else runs."""
        room = 64
        while True:
            stages = (_native.Stage * room)()
            count = ctypes.c_size_t(0)
            call("sealc2_last_stages", self._handle, stages, ctypes.sizeof(_native.Stage), room, ctypes.byref(count))
            if count.value <= room:
                return [Stage(s.partition, s.name.decode(), s.start_ns / 1e9, s.elapsed_ns / 1e9) for s in stages[: count.value]]
            room = count.value
