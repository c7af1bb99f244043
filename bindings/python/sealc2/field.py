"""Elements of the scalar field of BLS12-381, as ints, as 32 little-endian bytes, and as numpy arrays of limbs.

A vector is 32 bytes an element, four 64-bit limbs, lowest first. In Montgomery form, which is how provers hold their
numbers, the limbs are those of value * 2^256 modulo MODULUS; public inputs and blinding scalars are canonical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, List, Union

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["MODULUS", "array", "decode", "encode"]

MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_R = (1 << 256) % MODULUS
_INVERSE = pow(_R, -1, MODULUS)


def encode(values: Iterable[int], *, montgomery: bool = True) -> bytes:
    """32 bytes an int. Refuses what is no int with TypeError, what is negative or not below MODULUS with ValueError."""
    out = bytearray()
    for i, value in enumerate(values):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"element {i} of type {type(value).__name__}")
        if not 0 <= value < MODULUS:
            raise ValueError(f"element {i}, which is not from 0 to MODULUS - 1: {value:#x}")
        out += (value * _R % MODULUS if montgomery else value).to_bytes(32, "little")
    return bytes(out)


def decode(data: Union[bytes, bytearray, memoryview, "npt.NDArray[Any]"], *, montgomery: bool = True) -> List[int]:
    """The ints of a vector. ValueError for a length that is no multiple of 32 bytes, and for an element that is not
    below MODULUS."""
    buffer: Any = data  # numpy declares its buffers to type checkers from Python 3.12 on
    raw = memoryview(buffer).tobytes()
    if len(raw) % 32:
        raise ValueError(f"want a multiple of 32 bytes, got {len(raw)}")
    out = [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)]
    for i, value in enumerate(out):
        if value >= MODULUS:
            raise ValueError(f"element {i}: want one below MODULUS, got {value:#x}")
    return [value * _INVERSE % MODULUS for value in out] if montgomery else out


def array(data: Union[bytes, bytearray, memoryview]) -> "npt.NDArray[np.uint64]":
    """A vector as a numpy array of shape (n, 4) that shares its memory. Needs numpy."""
    import numpy

    return numpy.frombuffer(data, dtype="<u8").reshape(-1, 4)
