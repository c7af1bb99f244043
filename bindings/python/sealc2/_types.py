"""What calls take and give."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Sequence, Tuple, Union

from . import field
from ._errors import Status

if TYPE_CHECKING:
    import array
    import os

    import numpy as np
    import numpy.typing as npt

    Data = Union[bytes, bytearray, memoryview, npt.NDArray[np.uint8]]
    Numbers = Union[bytes, bytearray, memoryview, "array.array[int]", npt.NDArray[np.uint64], Sequence[int]]
    Booleans = Union[bytes, bytearray, memoryview, npt.NDArray[np.bool_], Sequence[bool]]
    Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
else:
    Data = Numbers = Booleans = Path = Any


@dataclass(frozen=True)
class Progress:
    """One finished stage. partition is -1 for a stage of the whole job; done is the job's share, 0 to 1;
    start_seconds is since the job began."""

    partition: int
    partitions: int
    stage: str
    seconds: float
    done: float
    start_seconds: float = 0.0


class JobClass(enum.IntEnum):
    """How urgent a submitted job is: one of a higher class goes before those of lower ones."""

    POREP = 0
    SNAP = 1
    WINDOW_POST = 2
    WINNING_POST = 3


class JobState(enum.IntEnum):
    """How far a submitted job is: nothing of it has run; it is being parsed, admitted or proved; or it has ended."""

    QUEUED = 0
    RUNNING = 1
    DONE = 2
    FAILED = 3
    CANCELLED = 4

    @property
    def ended(self) -> bool:
        return self >= JobState.DONE


@dataclass(frozen=True)
class JobProgress:
    """A submitted job at one moment.

    partitions         0 where not known yet
    delivered          partitions whose proofs are there
    partition, stage   the stage that ended last; stage is empty before the first, partition -1 for one of the whole job
    status             what the job ended with; OK until then
    done               share of the whole job, 0 to 1
    queued_seconds     from submission to the first stage, or until now
    running_seconds    from there to the end, or until now
    """

    id: str
    state: JobState
    job_class: JobClass
    partitions: int
    delivered: int
    partition: int
    stage: str
    status: Status
    done: float
    queued_seconds: float
    running_seconds: float


@dataclass(frozen=True)
class Requirements:
    """What a proof of a sector size takes, by the plans of its devices, and the engine's budget (limits).

    host_bytes      reserved for the whole job; the C1 output's own size comes on top
    device_bytes    on all devices; shared_bytes of it are for all jobs of one plan together, parameters among it
    batch, ahead    partitions that the first device proves together, and batches that it has under way at once
    """

    partitions: int
    threads: int
    host_bytes: int
    device_bytes: int
    shared_bytes: int
    batch: int
    ahead: int
    devices: int
    host_limit: int
    device_limit: int
    threads_limit: int


@dataclass(frozen=True)
class Stage:
    """The time that one stage of one partition took; start is since the job began."""

    partition: int
    name: str
    start_seconds: float
    seconds: float


@dataclass(frozen=True)
class Proof:
    """A verified proof: 192 bytes a partition or circuit, and what making it took, stage by stage."""

    data: bytes
    stages: Tuple[Stage, ...]

    @property
    def parts(self) -> List[bytes]:
        """The proofs of the partitions."""
        return [self.data[i : i + 192] for i in range(0, len(self.data), 192)]

    @property
    def seconds(self) -> float:
        """From the start of the first stage to the end of the last."""
        return max((s.start_seconds + s.seconds for s in self.stages), default=0.0)

    def timings(self) -> "npt.NDArray[Any]":
        """stages as a numpy array with the fields partition, name, start and seconds. Needs numpy."""
        import numpy

        rows = [(s.partition, s.name, s.start_seconds, s.seconds) for s in self.stages]
        return numpy.array(rows, dtype=[("partition", "i8"), ("name", "U24"), ("start", "f8"), ("seconds", "f8")])


@dataclass(frozen=True)
class C1:
    """What the output of Commit phase 1 claims, and the public inputs that follow from it.

    registered_proof is None for the unregistered test sizes. inputs has a partition an entry: 32 bytes an input,
    canonical, little-endian, without the constant one.
    """

    shape: str
    registered_proof: Union[int, None]
    challenges: int
    porep_id: bytes
    replica_id: bytes
    comm_r: bytes
    comm_d: bytes
    ticket: bytes
    seed: bytes
    inputs: Tuple[bytes, ...]

    @property
    def partitions(self) -> int:
        return len(self.inputs)

    def public_inputs(self, partition: int = 0) -> List[int]:
        """The public inputs of a partition as ints."""
        return field.decode(self.inputs[partition], montgomery=False)

    def input_array(self) -> "npt.NDArray[np.uint64]":
        """The public inputs as an array of shape (partitions, n, 4), canonical limbs, lowest first. Needs numpy."""
        import numpy

        return numpy.frombuffer(b"".join(self.inputs), dtype="<u8").reshape(len(self.inputs), -1, 4)


@dataclass(frozen=True)
class Circuit:
    """Counts and digests of the circuit of a sector size; triples are of the matrices A, B and C.

    digest is "sealc2-r1cs-v1": SHA-256 over the digests of chunks of chunk_rows constraints, which chunks has, 32
    bytes each. The density digests are SHA-256 of the densities as bits, eight a byte, the lowest first.
    """

    shape: str
    inputs: int
    aux: int
    constraints: int
    rows: int
    domain: int
    nonzero: Tuple[int, int, int]
    max_terms: Tuple[int, int, int]
    a_aux: int
    b_input: int
    b_aux: int
    sha256: int
    poseidon: int
    chunk_rows: int
    digest: bytes
    a_aux_digest: bytes
    b_input_digest: bytes
    b_aux_digest: bytes
    chunks: bytes

    def chunk_array(self) -> "npt.NDArray[np.uint8]":
        """The digests of the chunks as an array of shape (chunks, 32). Needs numpy."""
        import numpy

        return numpy.frombuffer(self.chunks, dtype=numpy.uint8).reshape(-1, 32)


@dataclass
class Assignment:
    """All values of one circuit, made elsewhere.

    a, b, c            the rows' values, with the row that bellperson appends for each input
    inputs             public inputs, the constant one first
    aux                private variables
    a_aux_density      which aux occur in A, a boolean each; which inputs do is not asked, all are taken
    b_input_density    which inputs occur in B
    b_aux_density      which aux occur in B

    Values are in Montgomery form, as provers hold them: arrays of shape (n, 4) of uint64, limbs lowest first, or 32
    bytes an element; or they are ints, which are converted one by one. Arrays are read in place while a call runs.
    """

    a: Numbers
    b: Numbers
    c: Numbers
    inputs: Numbers
    aux: Numbers
    a_aux_density: Booleans
    b_input_density: Booleans
    b_aux_density: Booleans
