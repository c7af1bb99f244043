"""Engine: the calls of the library as methods."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import time
import weakref
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from . import _buffers, _native
from ._errors import Error, Status, caller
from ._types import C1, Assignment, Circuit, Data, JobClass, JobProgress, JobState, Path, Progress, Proof, Requirements, Stage

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


def _name(op: str, name: str, text: Any) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise caller(op, name, 'text as "2KiB" or "cuda:0"', repr(text))
    return text.encode("utf-8", "surrogatepass")


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


def _prove_request(
    op: str,
    c1_bytes: Data,
    sector_id: int,
    prover_id: Data,
    params_dir: Optional[Path],
    allow_dev_params: Optional[bool],
    statement: Optional[Data],
    circuit_proofs: bool,
    r: Optional[Sequence[Data]],
    s: Optional[Sequence[Data]],
) -> Any:
    """A request of the library's, which holds what it points to."""
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
    return request


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


_U64 = (1 << 64) - 1


def _milliseconds(op: str, name: str, seconds: Optional[float]) -> int:
    """Seconds for C; None is for ever."""
    if seconds is None:
        return _U64
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e15:
        raise caller(op, name, "seconds of 0 or more, or None", repr(seconds))
    return math.ceil(seconds * 1000)


class Job:
    """A submitted proof: see Engine.submit. Threads may share it. Letting go of it (close, or the end of a with block) lets
    the job go on; its result then stays under its id for a later submit of the same."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._id = ""
        weakref.finalize(self, _close_job, handle)

    @property
    def id(self) -> str:
        """The job's name in its engine."""
        if not self._id:
            self._id = self.progress().id
        return self._id

    def wait(self, timeout: Optional[float] = None) -> bytes:
        """The proof, 192 bytes a partition, when it is there; any number of times. Raises what the job failed with, and
        Error of kind TIMEOUT when so many seconds are over and it goes on; None waits for ever. KeyboardInterrupt ends the
        wait, not the job."""
        op = "wait"
        end = None if timeout is None else time.monotonic() + _milliseconds(op, "timeout", timeout) / 1000
        proof = (ctypes.c_uint8 * (_MOST_PARTITIONS * PROOF_BYTES))()
        length = ctypes.c_size_t(0)
        while True:  # in slices, so that an interrupt is seen
            left = 0.2 if end is None else min(0.2, max(0.0, end - time.monotonic()))
            try:
                call("sealc2_wait", self._handle, _milliseconds(op, "timeout", left), proof, len(proof), ctypes.byref(length))
                return bytes(proof)[: length.value]
            except Error as error:
                if error.kind != Status.TIMEOUT or end is not None and time.monotonic() >= end:
                    raise

    def progress(self) -> JobProgress:
        """How far the job is."""
        info = _native.JobInfo(size=ctypes.sizeof(_native.JobInfo))
        call("sealc2_job_progress", self._handle, ctypes.byref(info))
        return JobProgress(
            id=info.id.decode(),
            state=JobState(info.state),
            job_class=JobClass(info.priority),
            partitions=info.partitions,
            delivered=info.delivered,
            partition=info.partition,
            stage=info.stage.decode(),
            status=Status(info.status),
            done=info.done,
            queued_seconds=info.queued_ns / 1e9,
            running_seconds=info.running_ns / 1e9,
        )

    def cancel(self) -> None:
        """Ends the job at its next stage border, for all who wait for it; returns at once. One that has ended stays as it is."""
        call("sealc2_cancel", self._handle)

    def close(self) -> None:
        """Forgets the handle. Closing twice is harmless."""
        handle, self._handle = self._handle, 0
        _close_job(handle)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _close_job(handle: int) -> None:
    # Unknown after shutdown or an earlier close, which is as good.
    if handle:
        _native.library().sealc2_job_close(handle, None)


def _withdraw(job: Job, begun: float) -> None:
    """Cancels a job whose submission was interrupted, unless the call joined one that had been there before."""
    try:
        with job:
            at = job.progress()
            if at.queued_seconds + at.running_seconds <= time.monotonic() - begun:
                job.cancel()
    except Error:  # the engine was closed meanwhile, and its jobs with it
        pass


_TIMELINES = {"text": 0, "json": 1, "chrome": 2}


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
    "cuda", "cuda:1", "cuda:0,2", "cuda:all" or "auto"; None: SEALC2_DEVICE says, else it is "auto". device_bytes is the memory of
    each GPU; 0: what is free. queue_bytes is the part of the host memory for requests of submitted jobs; 0: a 32nd, at most 512 MiB.

    policy is the interlock rule, for comparing them: "reservation", "single", "two-lock" or "split"; None: "reservation", which is meant
    for work. device_workers is how many batches of partitions a device has under way at once (gw); 0: what the rule and the plan say.
    partition_workers is how many host stages run at once (pw); 0: two.
    """

    def __init__(
        self,
        *,
        threads: int = 0,
        host_bytes: int = 0,
        device: Optional[str] = None,
        device_bytes: int = 0,
        queue_bytes: int = 0,
        policy: Optional[str] = None,
        device_workers: int = 0,
        partition_workers: int = 0,
    ) -> None:
        self._handle = 0
        if device is not None and (not isinstance(device, str) or "\0" in device):
            raise caller("Engine", "device", 'text as "cpu" or "cuda"', repr(device))
        if policy is not None and (not isinstance(policy, str) or "\0" in policy):
            raise caller("Engine", "policy", 'text as "reservation" or "single"', repr(policy))
        config = _native.Config(
            ctypes.sizeof(_native.Config),
            number("Engine", "threads", threads, 0, (1 << 64) - 1),
            number("Engine", "host_bytes", host_bytes, 0, (1 << 64) - 1),
            None if device is None else device.encode(),
            number("Engine", "device_bytes", device_bytes, 0, (1 << 64) - 1),
            number("Engine", "queue_bytes", queue_bytes, 0, (1 << 64) - 1),
            None if policy is None else policy.encode("utf-8", "surrogatepass"),
            number("Engine", "device_workers", device_workers, 0, (1 << 32) - 1),
            number("Engine", "partition_workers", partition_workers, 0, (1 << 32) - 1),
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
        request = _prove_request(op, c1_bytes, sector_id, prover_id, params_dir, allow_dev_params, statement, circuit_proofs, r, s)
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

    def submit(
        self,
        c1_bytes: Data,
        sector_id: int,
        prover_id: Data,
        *,
        id: Optional[str] = None,
        job_class: JobClass = JobClass.POREP,
        deadline: Optional[float] = None,
        room: Optional[float] = 0,
        replace: bool = False,
        params_dir: Optional[Path] = None,
        allow_dev_params: Optional[bool] = None,
        statement: Optional[Data] = None,
        circuit_proofs: bool = False,
        r: Optional[Sequence[Data]] = None,
        s: Optional[Sequence[Data]] = None,
    ) -> Job:
        """Submits a sector to be proved, and returns at once with what can be waited for.

        id          the job's name in the engine, at most 127 bytes; None: one is made. The same name with the same content is
                    the same job, while it is under way and once it is done; with other content it is refused
        job_class   a job of a higher class goes before those of lower ones
        deadline    seconds from now after which the job is cancelled; None: never
        room        how many seconds to wait for room in the queue, else Error of kind TIMEOUT; None: for ever. In the main
                    thread KeyboardInterrupt ends the wait, and nothing is submitted
        replace     other content may have the name of a job that is done, whose result is forgotten then

        The rest is as for prove. A damaged statement, another sector, and what the budget can never hold are refused here.
        """
        op = "submit"
        handle = self._open(op)
        request = _prove_request(op, c1_bytes, sector_id, prover_id, params_dir, allow_dev_params, statement, circuit_proofs, r, s)
        options = _native.SubmitOptions(size=ctypes.sizeof(_native.SubmitOptions))
        if id is not None:
            if not isinstance(id, str) or "\0" in id:
                raise caller(op, "id", "text without a NUL", repr(id))
            options.id = id.encode("utf-8", "surrogatepass")
        options.priority = number(op, "job_class", job_class, 0, 3)
        options.deadline_ms = 0 if deadline is None else max(1, _milliseconds(op, "deadline", deadline))
        options.replace = 1 if replace else 0
        options.room_ms = _milliseconds(op, "room", room)
        # One call, which keeps its place in the queue however long it waits.
        wait, job = ctypes.c_uint64(0), ctypes.c_uint64(0)
        call("sealc2_job_open", ctypes.byref(wait))
        begun = time.monotonic()
        try:
            options.call = wait.value
            failure = Failure()
            submit = _native.library().sealc2_submit
            status = _interruptible(
                wait.value, lambda: int(submit(handle, ctypes.byref(request), ctypes.byref(options), ctypes.byref(job), failure.out()))
            )
            failure.check(status)
            return Job(job.value)
        except BaseException:
            if job.value:  # there was room before the interrupt
                _withdraw(Job(job.value), begun)
            raise
        finally:
            _close_job(wait.value)

    def requirements(self, shape: str, device: Optional[str] = None) -> Requirements:
        """What a proof of a sector size, "32GiB", takes on one of the engine's devices ("cpu", "cuda:0"), or on all of them together.
        Error of kind NO_MEMORY, with both numbers, where it can never fit."""
        op = "requirements"
        handle = self._open(op)
        names = [_name(op, "shape", shape), None if device is None else _name(op, "device", device)]
        n = _native.Needs(size=ctypes.sizeof(_native.Needs))
        call("sealc2_requirements", handle, names[0], names[1], ctypes.byref(n))
        return Requirements(
            partitions=n.partitions,
            threads=n.threads,
            host_bytes=n.host_bytes,
            device_bytes=n.device_bytes,
            shared_bytes=n.shared_bytes,
            batch=n.batch,
            ahead=n.ahead,
            devices=n.devices,
            host_limit=n.host_limit,
            device_limit=n.device_limit,
            threads_limit=n.threads_limit,
        )

    def preload(self, shape: str, *, params_dir: Optional[Path] = None, allow_dev_params: Optional[bool] = None) -> None:
        """Loads what proofs of a sector size need before the first of them: circuit, key, and the points onto devices that
        keep them. KeyboardInterrupt cancels."""
        op = "preload"
        handle, name = self._open(op), _name(op, "shape", shape)
        folder = None if params_dir is None else _path(op, "params_dir", params_dir)
        job = ctypes.c_uint64(0)
        call("sealc2_job_open", ctypes.byref(job))
        try:
            failure = Failure()
            preload = _native.library().sealc2_preload
            status = _interruptible(
                job.value, lambda: int(preload(handle, name, folder, _dev_params(allow_dev_params), job.value, failure.out()))
            )
        finally:
            call("sealc2_job_close", job.value)
        failure.check(status)

    def evict(self, shape: str, *, params_dir: Optional[Path] = None) -> None:
        """Gives back what is kept of a sector size's parameters and is not in use, on devices too."""
        op = "evict"
        folder = None if params_dir is None else _path(op, "params_dir", params_dir)
        call("sealc2_evict", self._open(op), _name(op, "shape", shape), folder)

    def idle_release(self) -> None:
        """Gives back all device memory and files that no proof uses, for other programs."""
        call("sealc2_idle_release", self._open("idle_release"))

    def metrics(self) -> str:
        """The engine's state in Prometheus's text format."""
        return self._text("sealc2_metrics")

    def timeline(self, format: str = "text") -> str:
        """The latest 4096 stages of all jobs: "text" are cuzk's TIMELINE lines, "json" an object a line and stage, "chrome" a document
        for chrome://tracing or Perfetto."""
        if format not in _TIMELINES:
            raise caller("timeline", "format", " or ".join(map(repr, _TIMELINES)), repr(format))
        return self._text("sealc2_timeline", _TIMELINES[format])

    def _text(self, function: str, *arguments: Any) -> str:
        handle = self._open(function)
        room = 1 << 16
        while True:
            text = (ctypes.c_char * room)()
            length = ctypes.c_size_t(0)
            try:
                call(function, handle, *arguments, text, room, ctypes.byref(length))
                return bytes(text)[: length.value].decode()
            except Error as error:
                if error.kind != Status.CALLER or length.value < room:
                    raise
                room = length.value + (1 << 16)

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
