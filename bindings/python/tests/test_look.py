"""What a C1 claims, circuits, field elements, errors, and the picture of a proof's stages."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree
from pathlib import Path
from typing import Any
from unittest import mock

from support import C1, INSTALLED, PACKAGE, PARAMS, PROVER, ROOT, SECTOR, STATEMENT, Circuit, installed, needs_numpy, needs_params

import sealc2
from sealc2 import Error, Stage, Status, field, timeline


def inputs_of(sector: Path) -> "list[list[int]]":
    witness = json.loads((sector / "witness.json").read_text())
    return [[int.from_bytes(bytes.fromhex(x), "little") for x in one["public_inputs_synthesised"]] for one in witness["partitions"]]


class Claims(unittest.TestCase):
    def test_c1(self) -> None:
        c1 = sealc2.read_c1(C1, sector_id=1, prover_id=PROVER)
        self.assertEqual((c1.shape, c1.registered_proof, c1.partitions, c1.challenges), ("2KiB", 5, 1, 2))
        for name in ("porep_id", "replica_id", "comm_r", "comm_d", "ticket", "seed"):
            self.assertEqual(getattr(c1, name).hex(), STATEMENT[name], name)
        self.assertEqual([c1.public_inputs(k) for k in range(c1.partitions)], inputs_of(SECTOR))
        self.assertEqual(sealc2.read_c1(C1), c1)

    def test_many_partitions(self) -> None:
        """The non-interactive sector has 13, more than the first buffer takes."""
        sector = SECTOR.parent / "porep-2k-ni"
        c1 = sealc2.read_c1((sector / "c1.json").read_bytes())
        self.assertEqual(c1.partitions, 13)
        self.assertEqual([c1.public_inputs(k) for k in range(13)], inputs_of(sector))

    def test_unregistered_size(self) -> None:
        sector = SECTOR.parent / "porep-16k"
        c1 = sealc2.read_c1((sector / "c1.json").read_bytes(), statement=(sector / "statement.json").read_bytes())
        self.assertEqual((c1.shape, c1.registered_proof), ("16KiB", None))
        self.assertEqual(c1.public_inputs(), inputs_of(sector)[0])

    def test_refusals(self) -> None:
        for kind, where, options in (
            (Status.INPUT, "replica_id", {"sector_id": 2, "prover_id": PROVER}),
            (Status.CALLER, "sector_id and prover_id", {"sector_id": 2}),
            (Status.CALLER, "prover_id", {"sector_id": 2, "prover_id": PROVER[:31]}),
            (Status.CALLER, "sector_id", {"sector_id": -2, "prover_id": PROVER}),
        ):
            with self.assertRaises(Error) as caught:
                sealc2.read_c1(C1, **options)
            self.assertEqual(caught.exception.kind, kind)
            self.assertIn(where, caught.exception.where)
        for data in (b"{", C1[:-1], C1.replace(b"comm_r", b"comm_x", 1)):
            with self.assertRaises(Error) as caught:
                sealc2.read_c1(data)
            self.assertEqual((caught.exception.kind, caught.exception.op), (Status.INPUT, "c1.Parse"))
            self.assertTrue(caught.exception.want and caught.exception.got, caught.exception)

    @needs_numpy
    def test_arrays(self) -> None:
        c1 = sealc2.read_c1(C1)
        array = c1.input_array()
        self.assertEqual((array.shape, str(array.dtype)), ((1, 39, 4), "uint64"))
        self.assertEqual(field.decode(array[0], montgomery=False), c1.public_inputs())
        self.assertEqual(int(array[0, 3, 0]), c1.public_inputs()[3])


class Circuits(unittest.TestCase):
    def test_equals_the_reference(self) -> None:
        want = json.loads((ROOT / "tests" / "vectors" / "shapes" / "porep-2k.json").read_text())
        got = sealc2.circuit("2KiB")
        for ours, theirs in (
            (got.inputs, want["inputs"]),
            (got.aux, want["aux"]),
            (got.constraints, want["constraints"]),
            (got.rows, want["constraints_with_appended"]),
            (got.domain, want["domain_size"]),
            (got.nonzero, tuple(want["nnz"][m] for m in "abc")),
            (got.max_terms, tuple(want["max_terms"][m] for m in "abc")),
            (got.sha256, want["gadgets"]["sha256_compressions"]),
            (got.poseidon, sum(want["gadgets"]["poseidon_by_arity"].values())),
            (got.chunk_rows, want["chunk_size"]),
            (got.digest.hex(), want["total"]),
            (got.chunks.hex(), "".join(want["chunks"])),
        ):
            self.assertEqual(ours, theirs)
        for name in ("a_aux", "b_input", "b_aux"):
            self.assertEqual(getattr(got, name), want["density"][name])
            self.assertEqual(getattr(got, name + "_digest").hex(), want["density"][name + "_sha256"])
        if installed("numpy"):
            array = got.chunk_array()
            self.assertEqual((array.shape, str(array.dtype)), ((len(want["chunks"]), 32), "uint8"))
            self.assertEqual(array[7].tobytes().hex(), want["chunks"][7])

    def test_interrupt(self) -> None:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with sealc2.Engine() as engine:
            with self.assertRaises(KeyboardInterrupt):
                engine.circuit("512MiB")
            self.assertEqual(engine.read_c1(C1).shape, "2KiB")

    def test_refusals(self) -> None:
        for shape in ("3KiB", "", "2kib", "a\0b", 2048):
            with self.assertRaises(Error) as caught:
                sealc2.circuit(shape)  # type: ignore[arg-type]
            self.assertEqual(caught.exception.kind, Status.CALLER)


class Field(unittest.TestCase):
    def test_both_forms(self) -> None:
        values = [0, 1, 2, 1 << 200, field.MODULUS - 1]
        for montgomery in (True, False):
            data = field.encode(values, montgomery=montgomery)
            self.assertEqual(len(data), 32 * len(values))
            self.assertEqual(field.decode(data, montgomery=montgomery), values)
        self.assertEqual(field.encode([1], montgomery=False), b"\1" + bytes(31))
        self.assertEqual(int.from_bytes(field.encode([1]), "little"), (1 << 256) % field.MODULUS)

    def test_refusals(self) -> None:
        for value in (field.MODULUS, -1):
            self.assertRaises(ValueError, field.encode, [value])
        for value in (1.5, "1", None, True):
            self.assertRaises(TypeError, field.encode, [value])
        self.assertRaises(ValueError, field.decode, bytes(31))
        self.assertRaises(ValueError, field.decode, b"\xff" * 32)


class Errors(unittest.TestCase):
    def test_parts(self) -> None:
        with self.assertRaises(Error) as caught:
            sealc2.seal_commit_phase2(C1, 1, PROVER, params_dir="/nowhere")
        error = caught.exception
        self.assertEqual((error.kind, error.code), (Status.PARAMS, Status.PARAMS))
        self.assertIn("/nowhere", error.where)
        self.assertTrue(error.op.startswith("params."), error.op)
        self.assertEqual(str(error), f"PARAMS: {error.message}")

    def test_text_that_is_cut(self) -> None:
        """A text longer than the buffer is cut, and its parts with it."""
        path = "/nowhere/" + "\u00e9" * 40000
        with self.assertRaises(Error) as caught:
            sealc2.seal_commit_phase2(C1, 1, PROVER, params_dir=path)
        error = caught.exception
        self.assertGreater(len(error.message), 20000)
        self.assertIn(error.where, error.message)
        self.assertIn("/nowhere/\u00e9", error.where)

    def test_pickle(self) -> None:
        error = Error(Status.INPUT, "op: where: want a, got b", "op", "where", "a", "b")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), vars(copy)), (str(error), vars(error)))


STAGES = [Stage(-1, "parse", 0, 0.5), Stage(0, "msm_h", 0.5, 2), Stage(1, "msm_h", 2.5, 2), Stage(1, "<verify>", 4.5, 0.0)]


class Timeline(unittest.TestCase):
    def test_svg(self) -> None:
        root = xml.etree.ElementTree.fromstring(timeline.svg(STAGES, title="a & b"))
        space = "{http://www.w3.org/2000/svg}"
        titles = [one.text for one in root.iter(space + "title")]
        self.assertEqual(titles, ["parse: 0.500000 s", "msm_h: 2.000000 s", "msm_h: 2.000000 s", "<verify>: 0.000000 s"])
        bars = [one for one in root.iter(space + "rect") if one.find(space + "title") is not None]
        # Bars lie to scale: the second begins where the first ends, and the two long ones are of one length and colour.
        x, width = ([float(bar.get(key)) for bar in bars] for key in ("x", "width"))
        self.assertAlmostEqual(x[0] + width[0], x[1], places=1)
        self.assertAlmostEqual(width[1], 4 * width[0], places=1)
        self.assertEqual((width[1], bars[1].get("fill")), (width[2], bars[2].get("fill")))
        self.assertEqual(len({bar.get("y") for bar in bars}), 3)
        texts = [one.text for one in root.iter(space + "text")]
        for text in ("a & b", "job", "partition 0", "partition 1", "<verify>", "1 s"):
            self.assertIn(text, texts)

    def test_any_length(self) -> None:
        for scale in (0, 1e-9, 1e-3, 1, 1e6):
            scaled = [Stage(s.partition, s.name, s.start_seconds * scale, s.seconds * scale) for s in STAGES]
            text = timeline.svg(scaled)
            xml.etree.ElementTree.fromstring(text)
            self.assertLess(len(text), 20000)
        xml.etree.ElementTree.fromstring(timeline.svg([]))

    def test_save(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picture.svg"
            drew = timeline.save(STAGES, path, title="t")
            self.assertEqual(drew, "matplotlib" if installed("matplotlib") else "svg")
            self.assertIn("svg", xml.etree.ElementTree.parse(path).getroot().tag)
            path = Path(folder) / "picture.png"
            if installed("matplotlib"):
                timeline.save(sealc2.Proof(b"", tuple(STAGES)), path)
                self.assertEqual(path.read_bytes()[:4], b"\x89PNG")
            else:
                self.assertRaises(ValueError, timeline.save, STAGES, path)
                self.assertFalse(path.exists())

    @needs_params
    def test_example(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "out.svg"
            done = subprocess.run(
                [sys.executable, str(PACKAGE / "examples" / "timeline.py"), str(PARAMS), str(picture)],
                capture_output=True,
                text=True,
                timeout=600,
                env={**os.environ, "MPLCONFIGDIR": folder},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verified   True", done.stdout)
            self.assertIn("msm_h", done.stdout)
            self.assertIn("svg", xml.etree.ElementTree.parse(picture).getroot().tag)


class Readme(unittest.TestCase):
    def test_blocks(self) -> None:
        """Each block of the README runs, where the C1 lies beside it and no parameters do."""
        blocks = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)
        self.assertEqual(len(blocks), 4)
        submit = blocks.pop(1)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "c1.json").write_bytes(C1)
            env = {**os.environ, "FIL_PROOFS_PARAMETER_CACHE": folder}
            if not INSTALLED:
                env["PYTHONPATH"] = str(PACKAGE)
            said = []
            for block in blocks[:2]:
                done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120, env=env, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                said.append(done.stdout)
            self.assertRegex(said[0], r"(?m)^PARAMS \| params\.\w+ \| .*\| .* \| ")
            self.assertIn(f"2KiB 5 {STATEMENT['comm_r']}", said[1])
            room: "dict[str, Any]" = {}
            exec(submit, room)
            out = io.StringIO()
            with mock.patch.dict(os.environ, FIL_PROOFS_PARAMETER_CACHE=folder), contextlib.redirect_stdout(out):
                with sealc2.Engine(device="cpu") as engine, self.assertRaises(Error) as caught:
                    room["seal"](engine, C1, 1)
            self.assertEqual(caught.exception.kind, Status.PARAMS)
            self.assertIn(folder, caught.exception.message)
            self.assertIn("porep-1000-1", out.getvalue())
        room = {}
        exec(blocks[2], room)
        circuit = Circuit()
        made = room["prove"](circuit.params, *vars(circuit.assignment(field.encode)).values())
        self.assertEqual(len(made.data), 192)


@unittest.skipUnless(installed("mypy") and installed("numpy"), "mypy and numpy, which annotations name, are not both installed")
class Types(unittest.TestCase):
    def mypy(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *arguments]
            return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=PACKAGE)

    def test_package(self) -> None:
        done = self.mypy("sealc2", "examples", "wheel_backend.py")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_program(self) -> None:
        """A program that uses the package right passes, and one that does not is found out."""
        with tempfile.TemporaryDirectory() as folder:
            for name, body in (
                ("right", "p: sealc2.Proof = sealc2.Engine().prove(b'', 1, sealc2.prover_id('f01000'))\nx: float = p.stages[0].seconds\n"),
                ("wrong_argument", "sealc2.Engine().prove('', 1, b'')\n"),
                ("wrong_result", "x: int = sealc2.read_c1(b'').seed\n"),
                ("wrong_name", "sealc2.Status.NOTHING\n"),
            ):
                (Path(folder) / f"{name}.py").write_text("import sealc2\n" + body)
            done = self.mypy(folder)
        found = re.findall(r"(\w+)\.py:(\d+): error", done.stdout)
        self.assertEqual(sorted(found), [("wrong_argument", "2"), ("wrong_name", "2"), ("wrong_result", "2")], done.stdout)


if __name__ == "__main__":
    unittest.main()
