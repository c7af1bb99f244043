"""A PEP 517 build backend for the sealc2 wheel, with nothing but the standard library.

The wheel carries libsealc2.so inside the package: the file that SEALC2_LIB names, or ../../build/libsealc2.so,
which `make lib` builds. It fits one platform and any Python 3, since ctypes needs no extension module.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sysconfig
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


def _tag() -> str:
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _library() -> Path:
    path = Path(os.environ.get("SEALC2_LIB") or ROOT / "build" / "libsealc2.so")
    if not path.is_file():
        raise SystemExit(f"{path}: no library to put into the wheel: run make lib, or set SEALC2_LIB")
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version, tag = _field("version"), _tag()
    info = f"sealc2-{version}.dist-info"
    entries = {f"sealc2/{path.name}": path.read_bytes() for path in sorted((HERE / "sealc2").iterdir()) if path.suffix in (".py", ".typed")}
    entries["sealc2/libsealc2.so"] = _library().read_bytes()
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


def build_sdist(sdist_directory, config_settings=None):
    name = f"sealc2-{_field('version')}"
    archive = f"{name}.tar.gz"
    with tarfile.open(Path(sdist_directory) / archive, "w:gz", format=tarfile.PAX_FORMAT) as out:
        for path in [HERE / "pyproject.toml", HERE / "wheel_backend.py", *sorted((HERE / "sealc2").glob("*.py")), HERE / "sealc2" / "py.typed"]:
            out.add(path, f"{name}/{path.relative_to(HERE)}")
    return archive


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
