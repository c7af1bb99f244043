"""Memory of the caller's, lent to the library for the length of a call.

Whatever has Python's buffer interface is taken, numpy arrays among it, so numpy itself is never needed here. A view
is held while the library reads: the memory can be written by others, but neither moved nor freed.
"""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Tuple

from . import _native, field
from ._errors import caller
from ._types import Assignment


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython's stable interface."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None


class Lent:
    """Buffers that are lent together, until release or until nobody refers to them."""

    def __init__(self) -> None:
        self._views: List[_PyBuffer] = []

    def address(self, view: memoryview) -> Optional[int]:
        """The address of a contiguous view; None of an empty one."""
        if view.nbytes == 0:
            return None
        raw = _PyBuffer()
        if _get_buffer(view, ctypes.byref(raw), 0) != 0:
            raise BufferError("no simple buffer")
        self._views.append(raw)
        return int(raw.buf)

    def release(self) -> None:
        while self._views:
            _release_buffer(ctypes.byref(self._views.pop()))

    def __enter__(self) -> "Lent":
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def view_of(op: str, where: str, want: str, value: Any) -> memoryview:
    """A contiguous view of a buffer. Refuses what is none, strided ones, and released ones."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError) as error:
        got = type(value).__name__ if isinstance(error, TypeError) else f"{type(value).__name__}: {error}"
        raise caller(op, where, want, got) from None
    if not view.c_contiguous:
        raise caller(op, where, want + " in one piece, lowest index last (numpy.ascontiguousarray makes it)", f"strides {view.strides}")
    return view


def data_of(op: str, where: str, value: Any, length: Optional[int] = None) -> bytes:
    """A copy of a buffer of bytes."""
    if isinstance(value, bytes):
        out = value
    else:
        view = view_of(op, where, "bytes", value)
        if view.itemsize != 1:
            raise caller(op, where, "bytes", f"items of {view.itemsize} bytes")
        out = view.tobytes()
    if length is not None and len(out) != length:
        raise caller(op, where, f"{length} bytes", str(len(out)))
    return out


def numbers(op: str, where: str, value: Any) -> memoryview:
    """Field elements in Montgomery form: 64-bit limbs of shape (n, 4) or (4 n,), bytes (32 n), or a sequence of ints."""
    want = "field elements: shape (n, 4) of uint64, 32 n bytes, or a sequence of ints"
    if isinstance(value, (list, tuple, range)):
        try:
            return memoryview(field.encode(value))
        except (TypeError, ValueError) as error:
            raise caller(op, where, want, str(error)) from None
    view = view_of(op, where, want, value)
    limbs = view.itemsize == 8 and view.format in ("Q", "L", "@Q", "@L", "=Q", "<Q")
    plain = view.itemsize == 1 and view.format in ("B", "b", "c") and view.ndim == 1
    shape = view.shape or ()
    if not (limbs or plain) or not (len(shape) == 2 and shape[1] == 4 or len(shape) == 1 and view.nbytes % 32 == 0):
        raise caller(op, where, want, f"shape {shape} of format {view.format!r}")
    return view


# From bytes 0 and 1 to digits, which int reads.
_DIGITS = bytes([48, 49]) + bytes(254)


def bits(op: str, where: str, value: Any) -> Tuple[bytes, int, int]:
    """A density as words, bits and ones: booleans of shape (n,), or a sequence of them."""
    want = "booleans of shape (n,)"
    if isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            if one not in (0, 1):
                raise caller(op, f"{where}[{i}]", "a boolean", repr(one))
        value = bytes(map(int, value))
    view = view_of(op, where, want, value)
    if view.ndim != 1 or view.itemsize != 1 or view.format not in ("?", "B", "b"):
        raise caller(op, where, want, f"shape {view.shape} of format {view.format!r}")
    flags = view.tobytes()
    if flags.translate(None, b"\0\1"):
        raise caller(op, where, want, "bytes that are neither 0 nor 1")
    count = len(flags)
    if count == 0:
        return b"", 0, 0
    number = int(flags.translate(_DIGITS)[::-1], 2)
    return number.to_bytes((count + 63) // 64 * 8, "little"), count, flags.count(1)


def circuits(op: str, assignments: Sequence[Assignment], lent: Lent) -> Any:
    """The structs of sealc2_s2.h for assignments, whose memory lent then holds."""
    out = (_native.Circuit * len(assignments))()
    for i, one in enumerate(assignments):
        at, to = f"assignments[{i}]", out[i]
        if not isinstance(one, Assignment):
            raise caller(op, at, "an Assignment", type(one).__name__)
        rows = -1
        for name in ("a", "b", "c"):
            view = numbers(op, f"{at}.{name}", getattr(one, name))
            if rows >= 0 and view.nbytes != rows:
                raise caller(op, f"{at}.{name}", f"{rows // 32} elements, as a has", str(view.nbytes // 32))
            rows = view.nbytes
            setattr(to, name, lent.address(view))
        to.abc_len = rows // 32
        for name, values, length in (("inp", one.inputs, "inp_len"), ("aux", one.aux, "aux_len")):
            view = numbers(op, f"{at}.{'inputs' if name == 'inp' else name}", values)
            setattr(to, name, lent.address(view))
            setattr(to, length, view.nbytes // 32)
        for name, named, of, count in (
            ("a_aux", "a_aux_density", "aux", to.aux_len),
            ("b_inp", "b_input_density", "inputs", to.inp_len),
            ("b_aux", "b_aux_density", "aux", to.aux_len),
        ):
            words, length_bits, ones = bits(op, f"{at}.{named}", getattr(one, named))
            if length_bits != count:
                raise caller(op, f"{at}.{named}", f"{count} booleans, as many as {of}", str(length_bits))
            setattr(to, name, _native.Density(lent.address(memoryview(words)), length_bits, ones))
    return out
