"""Circuits with values of the caller's own: every kind of memory, and everything that must be refused."""

from __future__ import annotations

import array
import gc
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, List

from support import INSTALLED, PACKAGE, Circuit, needs_numpy

import sealc2
from sealc2 import Error, Status, field

ENGINE = sealc2.Engine(threads=2)


def prove(circuit: Circuit, *assignments: sealc2.Assignment, **options: Any) -> sealc2.Proof:
    return ENGINE.prove_assignments(circuit.params, assignments, **{"allow_dev_params": True, **options})


class Refused(unittest.TestCase):
    def refused(self, kind: Status, where: str, text: str, circuit: Circuit, *assignments: Any, **options: Any) -> Error:
        with self.assertRaises(Error) as caught:
            prove(circuit, *assignments, **options)
        error = caught.exception
        self.assertEqual(error.kind, kind, error)
        self.assertTrue(error.where.endswith(where), error)  # in front may be which circuit it is of several
        self.assertIn(text, error.message)
        for part in (error.op, error.where, error.want, error.got):
            self.assertIn(part, error.message)
        return error


class Proofs(unittest.TestCase):
    def test_equals_the_reference(self) -> None:
        for name in ("tiny-16", "tiny-64", "tiny-128"):
            with self.subTest(name):
                circuit = Circuit(name)
                seen: List[sealc2.Progress] = []
                made = prove(circuit, circuit.assignment(), progress=seen.append, **circuit.blinding)
                self.assertEqual(made.data, circuit.proof)
                self.assertEqual([s.name for s in made.stages][:5], ["check", "inputs", "expand", "evaluate", "quotient"])
                self.assertEqual([p.stage for p in seen], [s.name for s in made.stages])

    def test_policies(self) -> None:
        circuit = Circuit()
        for policy in (None, "", "reservation", "single", "two-lock", "split"):
            with self.subTest(policy), sealc2.Engine(device="cpu", policy=policy, device_workers=1, partition_workers=3) as engine:
                made = engine.prove_assignments(circuit.params, [circuit.assignment()] * 2, allow_dev_params=True)
                self.assertEqual(len(made.parts), 2)
        for wrong, text in (
            ({"policy": "one-lock"}, 'want reservation, single, two-lock, split, got "one-lock"'),
            ({"policy": 7}, "policy"),
            ({"policy": "a\0b"}, "policy"),
            ({"device_workers": 65537}, "config.device_workers: want at most 65536, got 65537"),
            ({"partition_workers": -1}, "partition_workers"),
        ):
            with self.assertRaises(Error) as caught:
                sealc2.Engine(**wrong)  # type: ignore[arg-type]
            self.assertEqual(caught.exception.kind, Status.CALLER)
            self.assertIn(text, caught.exception.message)

    def test_kinds_of_memory(self) -> None:
        circuit = Circuit()
        with mmap.mmap(-1, mmap.PAGESIZE) as page:

            def mapped(ints: List[int]) -> memoryview:
                data = field.encode(ints)
                at = page.tell()
                page.write(data)
                return memoryview(page)[at : at + len(data)]

            for name, values, flags in (
                ("bytes", field.encode, bytes),
                ("bytearray", lambda ints: bytearray(field.encode(ints)), bytearray),
                ("array", lambda ints: array.array("Q", field.encode(ints)), lambda bools: array.array("B", bools)),
                ("view", lambda ints: memoryview(field.encode(ints)).cast("Q", (len(ints), 4)), lambda bools: memoryview(bytes(bools)).cast("?")),
                ("mapped", mapped, tuple),
            ):
                with self.subTest(name):
                    assignment = circuit.assignment(values, flags)
                    self.assertEqual(prove(circuit, assignment, **circuit.blinding).data, circuit.proof)
                    del assignment
                    gc.collect()  # mmap refuses to close while a view is held

    def test_several_and_none(self) -> None:
        circuit = Circuit()
        zero = [bytes(32)] * 3
        made = prove(circuit, *[circuit.assignment(field.encode)] * 3, r=zero, s=zero)
        self.assertEqual(made.parts, [circuit.zero_proof] * 3)
        self.assertEqual(sorted({s.partition for s in made.stages}), [-1, 0, 1, 2])
        self.assertEqual(prove(circuit).data, b"")
        random = {prove(circuit, circuit.assignment(field.encode)).data for _ in range(2)}
        self.assertEqual(len(random), 2)

    def test_memory_is_given_back(self) -> None:
        """A buffer that can grow can grow again after the call, also while its error is looked at."""
        circuit = Circuit()
        assignment = circuit.assignment(lambda ints: bytearray(field.encode(ints)))
        prove(circuit, assignment)
        assignment.aux.append(0)
        with self.assertRaises(Error) as caught:
            prove(circuit, assignment)
        self.assertEqual(caught.exception.where, "assignments[0].aux")
        del assignment.aux[-1]
        assignment.c[0] ^= 1
        try:
            prove(circuit, assignment)
            self.fail("proved what does not hold")
        except Error:
            for vector in (assignment.a, assignment.b, assignment.c, assignment.inputs, assignment.aux):
                vector.append(0)

    def test_threads(self) -> None:
        circuit = Circuit()
        assignment = circuit.assignment(field.encode)
        results: List[Any] = []

        def work(good: bool) -> None:
            try:
                results.append(prove(circuit, assignment, **(circuit.blinding if good else {"r": [b"x"], "s": [b"x"]})))
            except Error as error:
                results.append(error.where)

        threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        proofs = [one for one in results if isinstance(one, sealc2.Proof)]
        self.assertEqual([one.data for one in proofs], [circuit.proof] * 6)
        # Each has its own times, though they ran at the same time.
        self.assertEqual({tuple(s.name for s in one.stages) for one in proofs}, {tuple(s.name for s in proofs[0].stages)})
        self.assertEqual(results.count("r[0]"), 6)


class BadInput(Refused):
    def test_rows_that_do_not_hold(self) -> None:
        circuit = Circuit()
        wrong = circuit.assignment()
        wrong.c[3] += 1
        error = self.refused(Status.UNSATISFIED, "row 3 of 13", "partition 0, stage evaluate", circuit, wrong)
        self.assertEqual((error.want, error.got), ("a*b = c", "a = 11, b = 11, c = 122"))
        self.refused(Status.UNSATISFIED, "row 3 of 13", "circuit 1", circuit, circuit.assignment(), wrong)

    def test_development_parameters_need_leave(self) -> None:
        circuit = Circuit()
        error = self.refused(Status.PARAMS, f"{circuit.params}: verifying key", "public manifest", circuit, circuit.assignment(), allow_dev_params=False)
        self.assertEqual(error.op, "params.Admit")

    def test_parameters(self) -> None:
        circuit = Circuit()
        other = Circuit("tiny-64")
        other.params = circuit.params
        error = self.refused(Status.INPUT, "inputs", str(circuit.params), other, other.assignment())
        self.assertTrue(error.want.startswith("3 ") and error.got == "4", error)
        circuit.params = circuit.params.parent / "nothing"
        self.refused(Status.PARAMS, str(circuit.params), "no such file", circuit, circuit.assignment())
        for path, text in (("", "empty"), ("a\0b", "NUL"), (7, "int")):
            circuit.params = path  # type: ignore[assignment]
            self.refused(Status.CALLER, "params", text, circuit, circuit.assignment())

    def test_lengths(self) -> None:
        circuit = Circuit()
        for name, where in (
            ("a", "assignments[0].b"),
            ("b", "assignments[0].b"),
            ("c", "assignments[0].c"),
            ("inputs", "assignments[0].b_input_density"),
            ("aux", "assignments[0].a_aux_density"),
            ("a_aux_density", "assignments[0].a_aux_density"),
            ("b_input_density", "assignments[0].b_input_density"),
            ("b_aux_density", "assignments[0].b_aux_density"),
        ):
            with self.subTest(name):
                wrong = circuit.assignment()
                setattr(wrong, name, getattr(wrong, name)[:-1])
                self.refused(Status.CALLER, where, "want", circuit, wrong)
                setattr(wrong, name, [])
                self.refused(Status.CALLER, where, "want", circuit, wrong)
        # What only the library can see: one density bit more than the file has points for, nothing at all.
        wrong = circuit.assignment()
        wrong.a_aux_density[6] = True
        self.assertEqual(self.refused(Status.INPUT, "inputs + ones in the density of aux in A", "circuit 0", circuit, wrong).got, "12")
        self.refused(Status.INPUT, "input 0", "circuit 0", circuit, sealc2.Assignment(*[b""] * 8))

    def test_values(self) -> None:
        circuit = Circuit()
        at = "assignments[0].aux"
        for value, text in (
            ([1, field.MODULUS], "element 1"),
            ([-1], "element 0"),
            ([1, "2"], "of type str"),
            ([True], "of type bool"),
            ([1.0], "of type float"),
            ("text", "str"),
            (None, "NoneType"),
            (12, "int"),
            (b"x" * 31, "shape (31,)"),
            (array.array("q", [1] * 4), "format 'q'"),
            (array.array("d", [1] * 4), "format 'd'"),
            (array.array("I", [1] * 8), "format 'I'"),
            (memoryview(bytes(64)).cast("Q", (2, 2, 2)), "shape (2, 2, 2)"),
            (memoryview(bytes(64)).cast("Q", (4, 2)), "shape (4, 2)"),
            (memoryview(bytes(640))[::2], "strides (2,)"),
            ({1: 2}, "dict"),
        ):
            with self.subTest(text):
                wrong = circuit.assignment()
                wrong.aux = value
                self.refused(Status.CALLER, at, text, circuit, wrong)
        # A number that is not reduced, which only the library sees.
        wrong = circuit.assignment(field.encode)
        wrong.aux = b"\xff" * 32 + wrong.aux[32:]
        self.assertIn("aux", str(self.assertRaisesError(circuit, wrong)))

    def assertRaisesError(self, circuit: Circuit, assignment: sealc2.Assignment) -> Error:
        with self.assertRaises(Error) as caught:
            prove(circuit, assignment)
        return caught.exception

    def test_densities(self) -> None:
        circuit = Circuit()
        for value, where, text in (
            ([2] + [0] * 9, "assignments[0].a_aux_density[0]", "2"),
            (["0"] * 10, "assignments[0].a_aux_density[0]", "'0'"),
            (b"0123456789", "assignments[0].a_aux_density", "neither 0 nor 1"),
            ("1111110110", "assignments[0].a_aux_density", "str"),
            (None, "assignments[0].a_aux_density", "NoneType"),
            (array.array("Q", [1]), "assignments[0].a_aux_density", "format 'Q'"),
            (memoryview(bytes(20))[::2], "assignments[0].a_aux_density", "strides (2,)"),
        ):
            with self.subTest(text):
                wrong = circuit.assignment()
                wrong.a_aux_density = value
                self.refused(Status.CALLER, where, text, circuit, wrong)

    def test_released_memory(self) -> None:
        circuit = Circuit()
        wrong = circuit.assignment()
        wrong.b = memoryview(field.encode(wrong.b))
        wrong.b.release()
        self.refused(Status.CALLER, "assignments[0].b", "released", circuit, wrong)
        view = memoryview(b"x" * 32)
        view.release()
        with self.assertRaises(Error) as caught:
            sealc2.verify_seal(5, view, b"", b"", b"", b"", 1, b"")
        self.assertEqual(caught.exception.where, "comm_r")

    def test_unaligned_memory(self) -> None:
        circuit = Circuit()
        wrong = circuit.assignment(lambda ints: memoryview(b"x" + field.encode(ints))[1:])
        self.refused(Status.CALLER, "request.circuits[0].a", "multiple of 8", circuit, wrong)

    def test_blinding(self) -> None:
        circuit = Circuit()
        one = circuit.assignment()
        for options, where in (
            ({"r": [bytes(32)]}, "r and s"),
            ({"r": [bytes(32)], "s": []}, "r and s"),
            ({"r": [], "s": []}, "r and s"),
            ({"r": [bytes(31)], "s": [bytes(32)]}, "r[0]"),
            ({"r": [bytes(32)], "s": ["x" * 32]}, "s[0]"),
            ({"r": [bytes(32)], "s": [b"\xff" * 32]}, "request.s[0]"),
            ({"r": [bytes(32)] * 2, "s": [bytes(32)] * 2}, "r"),
        ):
            with self.subTest(where):
                self.refused(Status.CALLER, where, "want", circuit, one, **options)

    def test_assignments(self) -> None:
        with self.assertRaises(Error) as caught:
            ENGINE.prove_assignments(Circuit().params, [None])  # type: ignore[list-item]
        self.assertEqual((caught.exception.kind, caught.exception.where), (Status.CALLER, "assignments[0]"))

    def test_exception_in_progress(self) -> None:
        class Mine(Exception):
            pass

        def stop(_: sealc2.Progress) -> None:
            raise Mine

        circuit = Circuit()
        with self.assertRaises(Mine):
            prove(circuit, circuit.assignment(), progress=stop)

    def test_closed_engine(self) -> None:
        engine = sealc2.Engine(threads=1)
        engine.close()
        circuit = Circuit()
        for call in (
            lambda: engine.prove_assignments(circuit.params, []),
            lambda: engine.read_c1(b"{}"),
            lambda: engine.circuit("2KiB"),
            lambda: engine.prove(b"{}", 1, bytes(32)),
        ):
            with self.assertRaises(Error) as caught:
                call()
            self.assertEqual((caught.exception.kind, caught.exception.where), (Status.CALLER, "engine"))


class Interrupts(unittest.TestCase):
    def test_storm(self) -> None:
        """SIGINT at any moment of many short calls: each call ends in a proof or in KeyboardInterrupt, nothing hangs
        or crashes, and the next call works."""
        code = """
import os, random, signal, sys, threading, time
sys.path.insert(0, os.environ["TESTS"])
from support import Circuit
import sealc2
from sealc2 import field
engine, circuit = sealc2.Engine(threads=1), Circuit()
assignment = circuit.assignment(lambda ints: bytearray(field.encode(ints)))
stop, armed = threading.Event(), threading.Event()
def storm():
    while not stop.is_set():
        armed.wait(1)
        time.sleep(random.random() * 0.03)
        if armed.is_set():
            armed.clear()
            os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=storm)
thread.start()
counts = [0, 0]
for _ in range(60):
    try:
        try:
            armed.set()
            proof = engine.prove_assignments(circuit.params, [assignment], allow_dev_params=True, **circuit.blinding)
            assert proof.data == circuit.proof
            counts[0] += 1
        finally:
            while armed.is_set():
                time.sleep(0.001)
    except KeyboardInterrupt:
        counts[1] += 1
signal.signal(signal.SIGINT, signal.SIG_IGN)
stop.set(); armed.set(); thread.join()
assert engine.prove_assignments(circuit.params, [assignment], allow_dev_params=True, **circuit.blinding).data == circuit.proof
engine.close()
assert counts[1] > 20, counts
print("ok")
"""
        env = {**os.environ, "TESTS": os.path.dirname(os.path.abspath(__file__))}
        if not INSTALLED:
            env["PYTHONPATH"] = str(PACKAGE)
        done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=120, env=env)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)


class Processes(unittest.TestCase):
    def test_spawn(self) -> None:
        """Workers of multiprocessing prove, and their errors come back whole, while the parent uses the library too."""
        code = """
import multiprocessing, os, sys
sys.path.insert(0, os.environ["TESTS"])
from support import Circuit
import sealc2
from sealc2 import field

def work(break_row):
    circuit = Circuit()
    assignment = circuit.assignment()
    if break_row is not None:
        assignment.c[break_row] += 1
    return sealc2.Engine(threads=1).prove_assignments(circuit.params, [assignment], allow_dev_params=True, **circuit.blinding)

if __name__ == "__main__":
    circuit = Circuit()
    assert work(None).data == circuit.proof
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = [pool.apply_async(work, (row,)) for row in (None, 2)]
        proof = made[0].get(100)
        assert proof.data == circuit.proof and proof.seconds > 0
        try:
            made[1].get(100)
        except sealc2.Error as error:
            assert error.kind == sealc2.Status.UNSATISFIED and "row 2 of 13" in error.where, error
            print("ok")
"""
        env = {**os.environ, "TESTS": os.path.dirname(os.path.abspath(__file__))}
        if not INSTALLED:
            env["PYTHONPATH"] = str(PACKAGE)
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "spawned.py")
            with open(script, "w") as out:
                out.write(code)
            done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env=env)
        self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)


@needs_numpy
class Numpy(Refused):
    def test_arrays(self) -> None:
        import numpy

        circuit = Circuit("tiny-64")
        assignment = circuit.assignment(lambda ints: field.array(field.encode(ints)), lambda bools: numpy.array(bools))
        self.assertEqual(assignment.a.shape, (64, 4))
        made = prove(circuit, assignment, **circuit.blinding)
        self.assertEqual(made.data, circuit.proof)
        times = made.timings()
        self.assertEqual(list(times["name"]), [s.name for s in made.stages])
        self.assertAlmostEqual(float((times["start"] + times["seconds"]).max()), made.seconds)

    def test_wrong_arrays(self) -> None:
        import numpy

        circuit = Circuit()
        good = field.array(field.encode(circuit.ints("aux_assignment")))
        for value, text in (
            (good.astype(numpy.int64), "format 'l'"),
            (good.astype(numpy.float64), "format 'd'"),
            (good.astype(numpy.uint32), "format 'I'"),
            (good.astype(">u8"), "format '>Q'"),
            (good.T, "strides"),
            (numpy.repeat(good, 2, axis=0)[::2], "strides"),
            (numpy.asfortranarray(good), "strides"),
            (good[:, :3].copy(), "shape (10, 3)"),
            (good.reshape(2, 5, 4), "shape (2, 5, 4)"),
            (numpy.uint64(7), "shape ()"),
            (numpy.array([object()] * 4), "format 'O'"),
            (numpy.array([1, 2], dtype="M8[s]"), "datetime64"),
        ):
            with self.subTest(text):
                wrong = circuit.assignment()
                wrong.aux = value
                self.refused(Status.CALLER, "assignments[0].aux", "", circuit, wrong)
        flags = numpy.array(circuit.bools("a_aux_density"))
        for value in (flags.astype(float), flags.astype(numpy.uint64), numpy.repeat(flags, 2)[::2], flags.reshape(2, 5), flags.astype(numpy.uint8) * 2):
            wrong = circuit.assignment()
            wrong.a_aux_density = value
            self.refused(Status.CALLER, "assignments[0].a_aux_density", "want booleans", circuit, wrong)

    def test_read_only_and_shared(self) -> None:
        circuit = Circuit()

        def frozen(ints: List[int]) -> Any:
            out = field.array(field.encode(ints)).copy()
            out.flags.writeable = False
            return out

        assignment = circuit.assignment(frozen)
        self.assertEqual(prove(circuit, assignment, **circuit.blinding).data, circuit.proof)


if __name__ == "__main__":
    unittest.main()
