"""The one exception of the package, and the numbers of its kinds."""

from __future__ import annotations

import enum
from typing import Any, Tuple


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
    """A failed call.

    kind     whose fault it is; code is the same
    message  the whole text, for a person
    op       the operation that found it, the last one that message names: "c1.Parse"
    where    at what: file, block, index, path or argument
    want     what was expected
    got      what was found

    The last four are parts of message, and empty where it has no such part.
    """

    def __init__(self, kind: Status, message: str, op: str = "", where: str = "", want: str = "", got: str = "") -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.op = op
        self.where = where
        self.want = want
        self.got = got

    @property
    def code(self) -> Status:
        return self.kind

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.message}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.kind, self.message, self.op, self.where, self.want, self.got)


def caller(op: str, where: str, want: str, got: str) -> Error:
    """An argument that is refused before the library is called, in the library's form."""
    return Error(Status.CALLER, f"{op}: {where}: want {want}, got {got}", op, where, want, got)
