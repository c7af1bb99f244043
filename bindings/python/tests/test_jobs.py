"""Submitted jobs, what proofs take, metrics and the timeline."""

from __future__ import annotations

import gc
import json
import re
import signal
import threading
import time
import unittest
from typing import Any
from unittest import mock

from support import C1, PARAMS, PROVER, SECTOR, needs_params

import sealc2
from sealc2 import Error, JobClass, JobState, Status


class Jobs(unittest.TestCase):
    def setUp(self) -> None:
        self.engine = sealc2.Engine(device="cpu")
        self.addCleanup(self.engine.close)

    def refused(self, kind: Status, text: str, **how: object) -> None:
        with self.assertRaises(Error) as caught:
            self.engine.submit(C1, 1, PROVER, params_dir="/nowhere", **how)  # type: ignore[arg-type]
        self.assertEqual(caught.exception.kind, kind)
        self.assertIn(text, caught.exception.message)

    def test_failed(self) -> None:
        job = self.engine.submit(bytearray(C1), 1, PROVER, params_dir="/nowhere", id="é 1", job_class=JobClass.SNAP)
        for _ in range(2):
            with self.assertRaises(Error) as caught:
                job.wait(60)
            self.assertEqual(caught.exception.kind, Status.PARAMS)
            self.assertIn("/nowhere", caught.exception.message)
        at = job.progress()
        self.assertEqual(
            (at.id, job.id, at.state, at.job_class, at.status, at.stage, at.partition, at.delivered),
            ("é 1", "é 1", JobState.FAILED, JobClass.SNAP, Status.PARAMS, "parse", -1, 0),
        )
        self.assertTrue(at.state.ended)
        self.assertGreater(at.running_seconds, 0)
        job.cancel()  # too late
        self.assertEqual(job.progress().state, JobState.FAILED)
        job.close()
        job.close()
        with self.assertRaises(Error) as caught:
            job.progress()
        self.assertEqual(caught.exception.kind, Status.CALLER)

    def test_refused(self) -> None:
        self.refused(Status.CALLER, "job id", id="a\nb")
        self.refused(Status.CALLER, "job id", id="x" * 128)
        self.refused(Status.CALLER, "id", id="a\0b")
        self.refused(Status.CALLER, "id", id=7)
        self.refused(Status.CALLER, "job_class", job_class=4)
        self.refused(Status.CALLER, "deadline", deadline=-1)
        self.refused(Status.CALLER, "room", room="soon")
        for c1, sector, kind in ((b"{", 1, Status.INPUT), (C1, 2, Status.INPUT), (b"", 1, Status.CALLER)):
            with self.assertRaises(Error) as caught:
                self.engine.submit(c1, sector, PROVER)
            self.assertEqual(caught.exception.kind, kind)
        with self.assertRaises(Error) as caught:
            sealc2.Engine(host_bytes=1 << 20, queue_bytes=1 << 20)
        self.assertEqual(caught.exception.kind, Status.CALLER)

    def test_requirements(self) -> None:
        needs = self.engine.requirements("2KiB", "cpu")
        self.assertEqual((needs.partitions, needs.batch, needs.devices, needs.shared_bytes), (1, 1, 1, 0))
        self.assertLessEqual(needs.host_bytes, needs.host_limit)
        self.assertEqual(needs, self.engine.requirements("2KiB"))
        with sealc2.Engine(device="cpu", host_bytes=64 << 20, queue_bytes=1 << 20) as small:
            for call in (lambda: small.requirements("2KiB"), lambda: small.submit(C1, 1, PROVER)):
                with self.assertRaises(Error) as caught:
                    call()
                self.assertEqual(caught.exception.kind, Status.NO_MEMORY)
                self.assertIn(f"at most {63 << 20} bytes", caught.exception.want)
        for shape, device in (("3KiB", None), ("2KiB", "abacus"), ("2\0KiB", None)):
            with self.assertRaises(Error) as caught:
                self.engine.requirements(shape, device)
            self.assertEqual(caught.exception.kind, Status.CALLER)

    def test_telling(self) -> None:
        with self.assertRaises(Error):
            self.engine.submit(C1, 1, PROVER, params_dir="/nowhere", id="a,b").wait()
        metrics = self.engine.metrics()
        self.assertIn('\nsealc2_proofs_total{result="failed",class="porep"} 1\n', metrics)
        self.assertTrue(all(re.fullmatch(r'# .*|[a-z0-9_]+(\{[^{}]*\})? \S+', line) for line in metrics.splitlines()), metrics)
        stages = [json.loads(line) for line in self.engine.timeline("json").splitlines()]
        self.assertEqual([(s["job"], s["stage"], s["failed"]) for s in stages], [("a,b", "parse", False), ("a,b", "params", True)])
        trace = json.loads(self.engine.timeline("chrome"))
        self.assertEqual([e["name"] for e in trace["traceEvents"] if e["ph"] == "X"], ["parse", "params"])
        self.assertEqual(self.engine.timeline(), "")
        with self.assertRaises(Error):
            self.engine.timeline("svg")
        self.engine.idle_release()
        for call in (self.engine.preload, self.engine.evict):
            with self.assertRaises(Error) as caught:
                call("2KiB", params_dir="/nowhere")
            self.assertEqual(caught.exception.kind, Status.PARAMS)

    def test_forgotten_handles(self) -> None:
        for _ in range(3):
            self.engine.submit(C1, 1, PROVER, params_dir="/nowhere")
        gc.collect()
        self.engine.close()  # waits for them


@needs_params
class Proofs(unittest.TestCase):
    def test_proof(self) -> None:
        reference = json.loads((SECTOR / "proof.json").read_text())
        how = {"params_dir": PARAMS, "allow_dev_params": True}
        with sealc2.Engine(device="cpu") as engine:
            engine.preload("2KiB", **how)
            low = engine.submit(C1, 1, PROVER, id="low", **how)
            job = engine.submit(
                C1, 1, PROVER, id="high", job_class=JobClass.WINNING_POST, deadline=600, room=None,
                r=[bytes.fromhex(x) for x in reference["r"]], s=[bytes.fromhex(x) for x in reference["s"]], **how,
            )
            low.cancel()
            with self.assertRaises(Error) as caught:
                low.wait()
            self.assertEqual(caught.exception.kind, Status.CANCELLED)
            begun = time.monotonic()
            with self.assertRaises(Error) as caught:
                job.wait(0.05)
            self.assertEqual(caught.exception.kind, Status.TIMEOUT)
            self.assertLess(time.monotonic() - begun, 5)
            proofs = []
            other = threading.Thread(target=lambda: proofs.append(job.wait()))
            other.start()
            proofs.append(job.wait())
            other.join()
            self.assertEqual([p.hex() for p in proofs], ["".join(reference["proofs"])] * 2)
            at = job.progress()
            self.assertEqual((at.state, at.delivered, at.partitions, at.done, at.stage), (JobState.DONE, 1, 1, 1.0, "verify"))
            self.assertRegex(engine.timeline(), r"(?m)^TIMELINE,\d+,GPU_END,high,worker=0,partition=0,gpu_ms=\d+$")
            with self.assertRaises(Error) as caught:
                engine.submit(C1, 1, PROVER, id="high", **how)
            self.assertEqual(caught.exception.kind, Status.CALLER)
            other = engine.submit(C1, 1, PROVER, id="high", replace=True, **how)
            other.cancel()
            with self.assertRaises(Error) as caught:
                other.wait()
            self.assertEqual(caught.exception.kind, Status.CANCELLED)
            with self.assertRaises(Error) as caught:  # before there is room in the queue, or behind that
                engine.submit(C1, 1, PROVER, deadline=0.001, **how).wait()
            self.assertEqual(caught.exception.kind, Status.CANCELLED)
            self.assertIn("deadline", caught.exception.message)
            engine.evict("2KiB", params_dir=PARAMS)
        self.assertEqual(job.wait(), proofs[0])

    def test_interrupt(self) -> None:
        """Ctrl-C ends a wait for room in the queue, however long it may take, and nothing is submitted."""
        how = {"params_dir": PARAMS, "allow_dev_params": True}
        with sealc2.Engine(device="cpu", host_bytes=440 << 20, queue_bytes=150_000) as engine:
            jobs = [engine.submit(C1, 1, PROVER, id="proves", **how)]
            while jobs[0].progress().stage in ("", "parse"):  # admitted: its request is out of the queue
                time.sleep(0.01)
            jobs.append(engine.submit(C1, 1, PROVER, id="fills", room=60, **how))
            begun = time.monotonic()
            with self.assertRaises(Error) as caught:
                engine.submit(C1, 1, PROVER, id="late", room=1.2, **how)
            self.assertEqual(caught.exception.kind, Status.TIMEOUT)
            self.assertGreater(time.monotonic() - begun, 1.1)
            begun = time.monotonic()
            with self.assertRaises(Error) as caught:
                engine.submit(C1, 1, PROVER, id="late", room=None, deadline=1.5, **how)
            self.assertEqual(caught.exception.kind, Status.CANCELLED)
            self.assertIn("its deadline is over", caught.exception.message)
            self.assertGreater(time.monotonic() - begun, 1.4)
            timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
            timer.start()
            begun = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                engine.submit(C1, 1, PROVER, id="late", room=None, **how)
            self.assertLess(time.monotonic() - begun, 5)
            timer.join()
            self.assertIn('\nsealc2_budget_waiting{memory="queue"} 0\n', engine.metrics())
            self.assertEqual([job.progress().state.ended for job in jobs], [False, False])

    def test_place(self) -> None:
        """Who waits for room in the main thread, for seconds, keeps its place before those that came later."""
        how = {"params_dir": PARAMS, "allow_dev_params": True, "room": None}
        with sealc2.Engine(device="cpu", host_bytes=440 << 20, queue_bytes=150_000) as engine:
            proves = engine.submit(C1, 1, PROVER, id="proves", **how)
            while proves.progress().stage in ("", "parse"):
                time.sleep(0.01)
            fills = engine.submit(C1, 1, PROVER, id="fills", **how)
            later = []

            def submit_later() -> None:
                time.sleep(0.3)
                later.append(engine.submit(C1, 1, PROVER, id="second", **how))

            other = threading.Thread(target=submit_later)
            cancels = threading.Timer(1.7, fills.cancel)
            other.start()
            cancels.start()
            first = engine.submit(C1, 1, PROVER, id="first", **how)
            self.assertEqual((first.id, later), ("first", []))
            self.assertIn('\nsealc2_budget_waiting{memory="queue"} 1\n', engine.metrics())
            first.cancel()
            other.join()
            self.assertEqual([job.id for job in later], ["second"])
            cancels.join()

    def test_interrupt_too_late(self) -> None:
        """An interrupt that comes when the call has gone through ends what it submitted, and not what was there before."""
        how = {"params_dir": PARAMS, "allow_dev_params": True}
        with sealc2.Engine(device="cpu") as engine:
            old = engine.submit(C1, 1, PROVER, id="old", **how)
            time.sleep(0.2)

            def interrupted(_job: int, work: Any) -> int:
                work()
                raise KeyboardInterrupt

            with mock.patch("sealc2._engine._interruptible", interrupted):
                for name in ("old", "new"):
                    with self.assertRaises(KeyboardInterrupt):
                        engine.submit(C1, 1, PROVER, id=name, **how)
            self.assertFalse(old.progress().state.ended)
            with self.assertRaises(Error) as caught:  # the name is free: what stood under it was cancelled
                engine.submit(C1, 1, PROVER, id="new", deadline=0.001, **how).wait()
            self.assertEqual(caught.exception.kind, Status.CANCELLED)


if __name__ == "__main__":
    unittest.main()
