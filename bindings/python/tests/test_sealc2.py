"""Proofs and verification of sectors, loading, and the hand-written layouts. See support.py."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile
from pathlib import Path
from typing import Any

from support import C1, INSTALLED, PACKAGE, PARAMS, PROVER, ROOT, SECTOR, claim, needs_params

import sealc2
from sealc2 import Error, Status, _native


class Layouts(unittest.TestCase):
    """ctypes repeats the header by hand: sizes, statuses and version must be the header's."""

    def header(self) -> str:
        text = "".join((ROOT / "include" / name).read_text() for name in ("sealc2.h", "sealc2_s2.h"))
        return re.sub(r"/\*.*?\*/", "", text, flags=re.S)

    def test_fields_and_sizes(self) -> None:
        pairs = {
            "sealc2_span": _native.Span,
            "sealc2_error": _native.Error,
            "sealc2_config": _native.Config,
            "sealc2_progress": _native.Progress,
            "sealc2_prove_request": _native.ProveRequest,
            "sealc2_verify_request": _native.VerifyRequest,
            "sealc2_stage": _native.Stage,
            "sealc2_assignments_request": _native.AssignmentsRequest,
            "sealc2_c1_request": _native.C1Request,
            "sealc2_c1_info": _native.C1Info,
            "sealc2_circuit": _native.CircuitDigest,
            "sealc2_s2_density": _native.Density,
            "sealc2_s2_prover": _native.Circuit,
        }
        sizes = dict(re.findall(r"SIZE\((\w+), (\d+)\)", (ROOT / "tests/abi/testdata/layout.c").read_text()))
        offsets = {
            (name, field): int(at)
            for name, field, at in re.findall(r"AT\((\w+), (\w+), (\d+)\)", (ROOT / "tests/abi/testdata/layout.c").read_text())
        }
        for name, struct in pairs.items():
            body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), self.header(), re.S)
            self.assertIsNotNone(body, name)
            fields = re.findall(r"\*?(\w+)(?:\[\w+\])?[;,]", body.group(1))
            self.assertEqual(fields, [field[0] for field in struct._fields_], name)
            self.assertEqual(ctypes.sizeof(struct), int(sizes[name]), name)
            for field in fields[1:]:
                self.assertEqual(getattr(struct, field).offset, offsets[name, field], f"{name}.{field}")

    def test_statuses(self) -> None:
        declared = {name: int(value) for name, value in re.findall(r"SEALC2_(\w+) = (\d+)", self.header().split("} sealc2_status;")[0])}
        self.assertEqual(declared, {status.name: status.value for status in Status})
        for status in Status:
            name = _native.library().sealc2_status_name(status).decode()
            self.assertEqual(name.upper().replace(" ", "_"), status.name)

    def test_signatures(self) -> None:
        # sealc2.h alone: its sealc2_prove_assignments serves in place of the functions of sealc2_s2.h.
        names = (ROOT / "include" / "exports.txt").read_text().split()
        exported = [name for name in names if name.startswith("sealc2_") and not name.startswith("sealc2_s2_")]
        self.assertEqual(sorted(_native._SIGNATURES), exported)
        for name, (_, arguments) in _native._SIGNATURES.items():
            declared = re.search(r"\b%s\((.*?)\);" % name, self.header(), re.S).group(1)
            count = 0 if declared == "void" else declared.count(",") + 1
            self.assertEqual(len(arguments), count, name)
            # Numbers, pointers to numbers and pointers to structs go where the header has such.
            for want, kind in zip(re.split(r",\s*", declared), arguments):
                pointer = "*" in want
                self.assertEqual(pointer, kind in (ctypes.c_char_p, ctypes.c_void_p) or hasattr(kind, "contents"), f"{name}: {want}")

    def test_version(self) -> None:
        self.assertEqual(sealc2.__version__, sealc2.library_version())
        self.assertIn(f'#define SEALC2_VERSION "{sealc2.__version__}"', (ROOT / "include" / "sealc2.h").read_text())
        self.assertIn(f'version = "{sealc2.__version__}"', (PACKAGE / "pyproject.toml").read_text())
        self.assertIn(f'const Version = "{sealc2.__version__}"', (ROOT / "engine" / "version.go").read_text())


class Native(unittest.TestCase):
    """The C functions that only this binding calls, called wrongly."""

    def setUp(self) -> None:
        self.library = _native.library()
        self.engine = sealc2.Engine(threads=1)
        self.addCleanup(self.engine.close)
        self.text = ctypes.create_string_buffer(4096)

    def call(self, name: str, *arguments: Any, size: int = ctypes.sizeof(_native.Error)) -> "tuple[int, str]":
        self.text.value = b""
        error = _native.Error(size, ctypes.cast(self.text, ctypes.c_char_p), len(self.text))
        for part in ("op", "where", "want", "got"):
            setattr(error, part, _native.Span(77, 77))
        status = getattr(self.library, name)(*arguments, ctypes.byref(error))
        self.parts = [(getattr(error, part).at, getattr(error, part).len) for part in ("op", "where", "want", "got")]
        return status, self.text.value.decode()

    def refused(self, names: str, *arguments: Any) -> None:
        status, text = self.call(*arguments)
        self.assertEqual(status, Status.CALLER, text)
        self.assertIn(names, text)
        for at, length in self.parts:
            self.assertLessEqual(at + length, len(text.encode()))

    def test_errors_of_older_callers(self) -> None:
        """A caller who knows no parts gets the text and nothing behind its own struct."""
        for size, text in ((0, False), (24, False), (32, True), (40, True), (63, True), (64, True), (72, True)):
            status, got = self.call("sealc2_close", 12345, size=size)
            self.assertEqual(status, Status.CALLER)
            self.assertEqual(bool(got), text, size)
            self.assertEqual((77, 77) in self.parts, size < 64, size)
        self.assertEqual([got.encode()[at : at + n].decode() for at, n in self.parts], ["sealc2_close", "engine", "an open handle", "12345"])
        # Success clears what was there.
        self.assertEqual(self.call("sealc2_close", self.engine._handle), (Status.OK, ""))
        self.engine._handle = 0
        self.assertEqual(self.parts, [(0, 0)] * 4)

    def struct(self, kind: Any, **fields: Any) -> Any:
        return ctypes.byref(kind(**{"size": ctypes.sizeof(kind), **fields}))

    def test_prove_assignments(self) -> None:
        name, kind, handle = "sealc2_prove_assignments", _native.AssignmentsRequest, self.engine._handle
        proof, length = (ctypes.c_uint8 * 192)(), ctypes.c_size_t(7)
        out = (proof, 192, ctypes.byref(length))
        self.refused("request", name, handle, None, *out)
        self.refused("request.size", name, handle, self.struct(kind, size=80), *out)
        self.refused("request.params", name, handle, self.struct(kind), *out)
        self.refused("request.params_dir", name, handle, self.struct(kind, params=b""), *out)
        self.refused("request.dev_params", name, handle, self.struct(kind, params=b"x", dev_params=3), *out)
        self.refused("request.circuits", name, handle, self.struct(kind, params=b"x", count=1), *out)
        self.refused("request.count", name, handle, self.struct(kind, params=b"x", count=1 << 40), *out)
        self.refused("request.scalar_count", name, handle, self.struct(kind, params=b"x", r=b"x", s=b"x", scalar_count=1 << 60), *out)
        self.refused("request.r and s", name, handle, self.struct(kind, params=b"x", scalar_count=1), *out)
        self.refused("request.r and s", name, handle, self.struct(kind, params=b"x", r=bytes(32), scalar_count=1), *out)
        self.refused("job", name, handle, self.struct(kind, params=b"x", job=12345), *out)
        self.refused("engine", name, 12345, self.struct(kind, params=b"x"), *out)
        self.assertEqual(length.value, 0)
        self.refused("proof", name, handle, self.struct(kind, params=b"x"), None, 192, None)
        self.refused("proof_cap", name, handle, self.struct(kind, params=b"x", count=2), *out)
        self.assertEqual(length.value, 384)
        wrong = (_native.Circuit * 1)()
        wrong[0].abc_len = 1 << 50
        self.refused("request.circuits[0].a", name, handle, self.struct(kind, params=b"x", circuits=wrong, count=1), *out)
        self.assertEqual(bytes(proof), bytes(192))

    def test_cancelled_before(self) -> None:
        job = ctypes.c_uint64()
        self.assertEqual(self.call("sealc2_job_open", ctypes.byref(job))[0], Status.OK)
        self.assertEqual(self.call("sealc2_cancel", job)[0], Status.OK)
        request = self.struct(_native.AssignmentsRequest, params=b"/nowhere", job=job)
        self.assertEqual(self.call("sealc2_prove_assignments", self.engine._handle, request, None, 0, None)[0], Status.CANCELLED)
        found = self.struct(_native.CircuitDigest)
        self.assertEqual(self.call("sealc2_circuit_digest", self.engine._handle, b"2KiB", job, found, None, 0)[0], Status.CANCELLED)
        self.assertEqual(self.call("sealc2_job_close", job)[0], Status.OK)

    def test_read_c1(self) -> None:
        name, handle = "sealc2_read_c1", self.engine._handle
        good = {"c1": C1, "c1_len": len(C1)}
        info = _native.C1Info(size=ctypes.sizeof(_native.C1Info))
        self.refused("request", name, handle, None, ctypes.byref(info), None, 0)
        self.refused("info", name, handle, self.struct(_native.C1Request, **good), None, None, 0)
        self.refused("info.size", name, handle, self.struct(_native.C1Request, **good), self.struct(_native.C1Info, size=8), None, 0)
        self.refused("C1", name, handle, self.struct(_native.C1Request), ctypes.byref(info), None, 0)
        self.refused("request.c1", name, handle, self.struct(_native.C1Request, c1_len=5), ctypes.byref(info), None, 0)
        self.refused("inputs", name, handle, self.struct(_native.C1Request, **good), ctypes.byref(info), None, 9)
        self.refused("engine", name, 12345, self.struct(_native.C1Request, **good), ctypes.byref(info), None, 0)
        self.assertEqual(info.partitions, 0)
        # Room for all inputs but one byte: the counts come, and no input is written.
        self.assertEqual(self.call(name, handle, self.struct(_native.C1Request, **good), ctypes.byref(info), None, 0)[0], Status.OK)
        need = info.partitions * info.inputs * 32
        inputs = (ctypes.c_uint8 * (need + 1))()
        self.call(name, handle, self.struct(_native.C1Request, **good), ctypes.byref(info), inputs, need - 1)
        self.assertEqual(bytes(inputs), bytes(need + 1))
        self.call(name, handle, self.struct(_native.C1Request, **good), ctypes.byref(info), inputs, need + 1)
        self.assertEqual(bytes(inputs)[:need], sealc2.read_c1(C1).inputs[0])
        self.assertEqual(inputs[need], 0)

    def test_circuit_digest(self) -> None:
        name, handle = "sealc2_circuit_digest", self.engine._handle
        self.refused("shape", name, handle, None, 0, self.struct(_native.CircuitDigest), None, 0)
        self.refused("circuit", name, handle, b"2KiB", 0, None, None, 0)
        self.refused("circuit.size", name, handle, b"2KiB", 0, self.struct(_native.CircuitDigest, size=272), None, 0)
        self.refused("chunks", name, handle, b"2KiB", 0, self.struct(_native.CircuitDigest), None, 32)
        self.refused("sector size", name, handle, b"2 KiB", 0, self.struct(_native.CircuitDigest), None, 0)
        self.refused("job", name, handle, b"2KiB", 12345, self.struct(_native.CircuitDigest), None, 0)
        self.refused("engine", name, 12345, b"2KiB", 0, self.struct(_native.CircuitDigest), None, 0)


class Refusals(unittest.TestCase):
    def refused(self, code: Status, text: str, call, *arguments, **options) -> None:
        with self.assertRaises(Error) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertIn(text, caught.exception.message)
        self.assertIn(code.name, str(caught.exception))

    def test_garbage(self) -> None:
        self.refused(Status.CALLER, "C1", sealc2.seal_commit_phase2, b"", 1, PROVER)
        for data in (b"no JSON", b"{}", b"[" * 100000, C1[: len(C1) // 2], C1 + b"x"):
            with self.subTest(data=data[:20]):
                self.refused(Status.INPUT, "", sealc2.seal_commit_phase2, data, 1, PROVER)

    def test_wrong_ids(self) -> None:
        self.refused(Status.INPUT, "replica_id", sealc2.seal_commit_phase2, C1, 2, PROVER)
        self.refused(Status.INPUT, "replica_id", sealc2.seal_commit_phase2, C1, 1, sealc2.prover_id(1001))

    def test_arguments(self) -> None:
        self.refused(Status.CALLER, "c1_bytes", sealc2.seal_commit_phase2, "text", 1, PROVER)
        self.refused(Status.CALLER, "sector_id", sealc2.seal_commit_phase2, C1, -1, PROVER)
        self.refused(Status.CALLER, "sector_id", sealc2.seal_commit_phase2, C1, True, PROVER)
        self.refused(Status.CALLER, "prover_id", sealc2.seal_commit_phase2, C1, 1, PROVER[:31])
        self.refused(Status.CALLER, "params_dir", sealc2.seal_commit_phase2, C1, 1, PROVER, params_dir="a\0b")
        for at in (1, 2, 3, 4, 5):
            wrong = claim(b"x" * 192)
            wrong[at] = wrong[at][:31]
            self.refused(Status.CALLER, "32 bytes", sealc2.verify_seal, *wrong)
        wrong = claim(b"x" * 192)
        wrong[0] = 20
        with self.assertRaises(Error):
            sealc2.verify_seal(*wrong)

    def test_params_of_environment_and_argument(self) -> None:
        before = os.environ.get("FIL_PROOFS_PARAMETER_CACHE")
        try:
            os.environ["FIL_PROOFS_PARAMETER_CACHE"] = "/nowhere/by-environment"
            self.refused(Status.PARAMS, "/nowhere/by-environment", sealc2.seal_commit_phase2, C1, 1, PROVER)
            self.refused(Status.PARAMS, "/nowhere/by-argument", sealc2.seal_commit_phase2, C1, 1, PROVER, params_dir=Path("/nowhere/by-argument"))
        finally:
            os.environ.pop("FIL_PROOFS_PARAMETER_CACHE")
            if before is not None:
                os.environ["FIL_PROOFS_PARAMETER_CACHE"] = before

    def test_non_interactive_kinds_are_refused_by_name(self) -> None:
        wrong = claim(b"\xc0" + b"\0" * 191)
        wrong[0] = 15
        self.refused(Status.UNSUPPORTED, "aggregat", sealc2.verify_seal, *wrong)

    def test_closed_engine(self) -> None:
        engine = sealc2.Engine(threads=1)
        engine.close()
        engine.close()
        self.refused(Status.CALLER, "closed", engine.seal_commit_phase2, C1, 1, PROVER)
        self.refused(Status.CALLER, "engine", engine.last_stages)

    def test_device(self) -> None:
        sealc2.Engine(device="cpu").close()
        self.refused(Status.NO_DEVICE, "abacus", sealc2.Engine, device="abacus")
        self.refused(Status.CALLER, "device", sealc2.Engine, device="cpu\0")
        self.refused(Status.CALLER, "threads", sealc2.Engine, threads=-1)
        before = os.environ.get("SEALC2_DEVICE")
        try:
            os.environ["SEALC2_DEVICE"] = "slide rule"
            self.refused(Status.NO_DEVICE, "slide rule", sealc2.Engine)
            sealc2.Engine(device="cpu").close()
        finally:
            os.environ.pop("SEALC2_DEVICE")
            if before is not None:
                os.environ["SEALC2_DEVICE"] = before

    def test_usable_after_shutdown(self) -> None:
        with sealc2.Engine(threads=1) as engine:
            sealc2.shutdown()
            self.refused(Status.CALLER, "closed", engine.seal_commit_phase2, C1, 1, PROVER)
        self.refused(Status.INPUT, "replica_id", sealc2.seal_commit_phase2, C1, 2, PROVER)

    def test_prover_id(self) -> None:
        self.assertEqual(sealc2.prover_id(1000), PROVER)
        self.assertEqual(sealc2.prover_id("f01000"), PROVER)
        self.assertEqual(sealc2.prover_id("t01000"), PROVER)
        self.assertEqual(sealc2.prover_id(0), b"\0" * 32)
        self.assertEqual(sealc2.prover_id((1 << 64) - 1)[:11], b"\xff" * 9 + b"\x01\x00")
        for wrong in (-1, 1 << 64, "f1abc", ""):
            self.refused(Status.CALLER, "miner", sealc2.prover_id, wrong)

    def test_fork(self) -> None:
        sealc2.last_stages()  # the engine is open
        child = os.fork()
        if child == 0:
            code = 1
            try:
                signal.alarm(20)
                begun = time.monotonic()
                try:
                    sealc2.seal_commit_phase2(C1, 1, PROVER)
                except Error as error:
                    code = 0 if error.code == Status.FORKED and "fork" in error.message and time.monotonic() - begun < 1 else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)

    def test_threads(self) -> None:
        errors = []

        def call() -> None:
            try:
                sealc2.seal_commit_phase2(C1, 2, PROVER)
            except Error as error:
                errors.append(error.code)

        threads = [threading.Thread(target=call) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [Status.INPUT] * 16)


class Loading(unittest.TestCase):
    def run_python(self, code: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **({} if INSTALLED else {"PYTHONPATH": str(PACKAGE)}), **env}
        )

    def test_missing_library_is_named(self) -> None:
        done = self.run_python("import sealc2; sealc2.library_version()", SEALC2_LIB="/nowhere/libsealc2.so")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nowhere/libsealc2.so", done.stderr)

    @needs_params
    def test_log_level_is_read_at_the_call(self) -> None:
        """Each use of development parameters is a warning, which RUST_LOG of the moment lets through or not."""
        code = (
            "import os, sys, sealc2\n"
            "def call(): assert sealc2.verify_seal(*eval(os.environ['CLAIM']), params_dir=os.environ['SEALC2_PARAMS'], allow_dev_params=True)\n"
            "call(); print('then', file=sys.stderr, flush=True); os.environ['RUST_LOG'] = 'warn'; call()\n"
        )
        proof = bytes.fromhex("".join(json.loads((SECTOR / "proof.json").read_text())["proofs"]))
        done = self.run_python(code, CLAIM=repr(claim(proof)), RUST_LOG="")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "then", done.stderr)
        self.assertGreater(len(lines), 1)
        for line in lines[1:]:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\S+ (ERROR|WARN) sealc2 > .")
        self.assertIn("development", done.stderr)

    def backend(self) -> Any:
        spec = importlib.util.spec_from_file_location("wheel_backend", PACKAGE / "wheel_backend.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_platform_tag(self) -> None:
        """The tag is that of the newest symbol of the C library, as objdump lists them too."""
        backend = self.backend()
        with open(backend._library(), "rb") as f:
            library = f.read()
        tag = backend.platform_of(library)
        minor = int(re.fullmatch(r"manylinux_2_(\d+)_\w+", tag).group(1))
        if shutil.which("objdump"):
            listed = subprocess.run(["objdump", "-T", str(backend._library())], capture_output=True, text=True, check=True).stdout
            self.assertEqual(minor, max(int(v) for v in re.findall(r"GLIBC_2\.(\d+)", listed)))
        for broken in (b"", library[:63], b"\x7fELF\1" + library[5:], library[:18] + b"\3\0" + library[20:]):
            with self.assertRaises(SystemExit):
                backend.platform_of(broken)

    def test_wheel(self) -> None:
        """The wheel holds the library, its record is right, and it works from another folder."""
        with tempfile.TemporaryDirectory() as folder:
            wheel_backend = self.backend()
            name = wheel_backend.build_wheel(folder)
            self.assertRegex(name, r"^sealc2-[\d.]+-py3-none-manylinux_2_\d+_(x86_64|aarch64)\.whl$")
            with zipfile.ZipFile(Path(folder) / name) as wheel:
                self.assertIn("sealc2/py.typed", wheel.namelist())
                record = next(n for n in wheel.namelist() if n.endswith("RECORD"))
                listed = {line.split(",")[0] for line in wheel.read(record).decode().split()}
                self.assertEqual(listed, set(wheel.namelist()))
                wheel.extractall(Path(folder) / "site")
            env = {**os.environ, "PYTHONPATH": str(Path(folder) / "site")}
            env.pop("SEALC2_LIB", None)
            done = subprocess.run(
                [sys.executable, "-c", "import sealc2; print(sealc2.library_version(), sealc2._native.candidates()[0])"],
                capture_output=True,
                text=True,
                timeout=60,
                env=env,
                cwd=folder,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.split(), [sealc2.__version__, str(Path(folder).resolve() / "site" / "sealc2" / "libsealc2.so")])


@needs_params
class Proofs(unittest.TestCase):
    def test_equals_the_reference(self) -> None:
        want = json.loads((SECTOR / "proof.json").read_text())
        seen = []
        with sealc2.Engine() as engine:
            self.assertEqual(engine.last_stages(), [])
            made = engine.prove(
                C1,
                1,
                PROVER,
                params_dir=PARAMS,
                allow_dev_params=True,
                progress=seen.append,
                r=[bytes.fromhex(one) for one in want["r"]],
                s=[bytes.fromhex(one) for one in want["s"]],
            )
            proof = made.data
            self.assertEqual(proof.hex(), "".join(want["proofs"]))
            self.assertEqual(made.parts, [proof])
            # The times of this proof, heard stage by stage, are those that the engine kept.
            self.assertEqual(list(made.stages), engine.last_stages())
            self.assertEqual([(s.partition, s.name) for s in made.stages][:3], [(-1, "parse"), (-1, "params"), (-1, "check")])
            self.assertEqual([(p.partition, p.stage, p.start_seconds, p.seconds) for p in seen], [(s.partition, s.name, s.start_seconds, s.seconds) for s in made.stages])
            self.assertGreaterEqual(made.seconds, sum(s.seconds for s in made.stages) * 0.99)
            self.assertTrue(engine.verify_seal(*claim(made), params_dir=PARAMS, allow_dev_params=True))
            self.assertEqual(seen[-1].done, 1)
            self.assertEqual([p.done for p in seen], sorted(p.done for p in seen))
            self.assertTrue(engine.verify_seal(*claim(proof), params_dir=PARAMS, allow_dev_params=True))
            other = claim(proof)
            other[4] = bytes(32)
            self.assertFalse(engine.verify_seal(*other, params_dir=PARAMS, allow_dev_params=True))
            with self.assertRaises(Error) as caught:
                engine.verify_seal(*claim(proof[:-1]), params_dir=PARAMS, allow_dev_params=True)
            self.assertEqual(caught.exception.code, Status.INPUT)

    def test_development_parameters_need_leave(self) -> None:
        with self.assertRaises(Error) as caught:
            sealc2.seal_commit_phase2(C1, 1, PROVER, params_dir=PARAMS, allow_dev_params=False)
        self.assertEqual(caught.exception.code, Status.PARAMS)

    def test_exception_in_progress_cancels(self) -> None:
        class Mine(Exception):
            pass

        def stop(_: sealc2.Progress) -> None:
            raise Mine

        with self.assertRaises(Mine):
            sealc2.seal_commit_phase2(C1, 1, PROVER, params_dir=PARAMS, allow_dev_params=True, progress=stop)

    def test_interrupt_cancels(self) -> None:
        """Ctrl-C in the middle of a stage, and again while the first one is being carried out."""
        heard = []

        def interrupt(p: sealc2.Progress) -> None:
            heard.append(p.stage)
            if p.stage == "evaluate":
                for delay in (0.05, 0.06, 0.3):
                    threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

        with sealc2.Engine() as engine:
            with self.assertRaises(KeyboardInterrupt):
                try:
                    engine.prove(C1, 1, PROVER, params_dir=PARAMS, allow_dev_params=True, progress=interrupt)
                finally:
                    time.sleep(0.5)  # the last interrupt may come behind the proof's end
            self.assertEqual(heard[-1], "evaluate")
            self.assertEqual([t.name for t in threading.enumerate() if t.name == "sealc2"], [])
            self.assertTrue(engine.verify_seal(*claim(self.proof()), params_dir=PARAMS, allow_dev_params=True))

    def proof(self) -> bytes:
        return bytes.fromhex("".join(json.loads((SECTOR / "proof.json").read_text())["proofs"]))


if __name__ == "__main__":
    unittest.main()
