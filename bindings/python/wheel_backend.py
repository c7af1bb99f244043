"""A PEP 517 build backend for the sealc2 wheel, with nothing but the standard library.

The wheel carries libsealc2.so inside the package: the file that SEALC2_LIB names, or ../../build/libsealc2.so,
which `make lib` builds. It fits any Python 3, since ctypes needs no extension module, on one processor and on every
Linux whose C library is at least as new as the newest symbol that the library asks for: manylinux (PEP 600).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def _field(name: str) -> str:
    match = re.search(rf'^{name} = "(.*)"$', (HERE / "pyproject.toml").read_text(), re.M)
    if match is None:
        raise SystemExit(f"pyproject.toml: want a line {name} = \"...\", got none")
    return match.group(1)


def _metadata() -> str:
    return (
        "Metadata-Version: 2.1\n"
        f"Name: sealc2\nVersion: {_field('version')}\nSummary: {_field('description')}\n"
        f"License: Apache-2.0 OR MIT\nRequires-Python: {_field('requires-python')}\n"
    )


# e_machine of ELF to the names of PEP 600.
_MACHINES = {62: "x86_64", 183: "aarch64"}


def platform_of(library: bytes) -> str:
    """The platform tag of a shared library: its processor, and the newest version of the C library that it asks for."""
    if len(library) < 64 or library[:6] != b"\x7fELF\2\1":
        raise SystemExit("the library: want ELF of 64 bits, little-endian, got something else")
    machine = struct.unpack_from("<H", library, 18)[0]
    if machine not in _MACHINES:
        raise SystemExit(f"the library: want one of machines {sorted(_MACHINES)}, got {machine}")
    (table,) = struct.unpack_from("<Q", library, 40)
    size, count = struct.unpack_from("<HH", library, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, table + i * size) for i in range(count)]
    newest: "tuple[int, ...]" = (5,)  # the oldest that PEP 600 knows
    for _, kind, _, _, offset, _, link, entries, _, _ in sections:
        if kind != 0x6FFFFFFE:  # SHT_GNU_verneed
            continue
        names = sections[link][4]
        for _ in range(entries):
            _, versions, _, first, following = struct.unpack_from("<HHIII", library, offset)
            at = offset + first
            for _ in range(versions):
                _, _, _, name, step = struct.unpack_from("<IHHII", library, at)
                text = library[names + name : library.index(b"\0", names + name)].decode()
                match = re.fullmatch(r"GLIBC_2\.([0-9.]+)", text)
                if match is None:
                    raise SystemExit(f"the library: want symbols of the C library alone, got one of version {text}")
                newest = max(newest, tuple(int(part) for part in match.group(1).split(".")))
                at += step
            offset += following
    return f"manylinux_2_{newest[0]}_{_MACHINES[machine]}"


def _library() -> Path:
    path = Path(os.environ.get("SEALC2_LIB") or ROOT / "build" / "libsealc2.so")
    if not path.is_file():
        raise SystemExit(f"{path}: no library to put into the wheel: run make lib, or set SEALC2_LIB")
    return path


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    library = _library().read_bytes()
    version, tag = _field("version"), f"py3-none-{platform_of(library)}"
    info = f"sealc2-{version}.dist-info"
    entries = {f"sealc2/{path.name}": path.read_bytes() for path in sorted((HERE / "sealc2").iterdir()) if path.suffix in (".py", ".typed")}
    entries["sealc2/libsealc2.so"] = library
    entries[f"{info}/METADATA"] = _metadata().encode()
    entries[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: sealc2\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        if (ROOT / licence).is_file():
            entries[f"{info}/licenses/{licence}"] = (ROOT / licence).read_bytes()
    record = []
    name = f"sealc2-{version}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:

        def write(path: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(path)  # a fixed date: equal inputs give an equal wheel
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, data)

        for path, data in entries.items():
            write(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
        record.append(f"{info}/RECORD,,")
        write(f"{info}/RECORD", ("\n".join(record) + "\n").encode())
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    name = f"sealc2-{_field('version')}"
    archive = f"{name}.tar.gz"
    with tarfile.open(Path(sdist_directory) / archive, "w:gz", format=tarfile.PAX_FORMAT) as out:
        for path in [HERE / "pyproject.toml", HERE / "wheel_backend.py", *sorted((HERE / "sealc2").glob("*.py")), HERE / "sealc2" / "py.typed"]:
            out.add(path, f"{name}/{path.relative_to(HERE)}")
    return archive


def get_requires_for_build_wheel(config_settings: object = None) -> "list[str]":
    return []


def get_requires_for_build_sdist(config_settings: object = None) -> "list[str]":
    return []
