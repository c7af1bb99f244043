"""A Python host of libsealc2, one case a process: host.py CASE C1 KEYS PROOF, with SEALC2_LIB set and
bindings/python on the path. Exit code 0 and a last line "ok" mean that every check held."""

import ctypes
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CASE, C1_PATH, KEYS, PROOF = sys.argv[1], sys.argv[2], sys.argv[3], bytes.fromhex(sys.argv[4])
with open(C1_PATH, "rb") as f:
    C1 = f.read()
STATEMENT = {name: bytes(json.loads(C1)[name]) for name in ("comm_r", "comm_d", "ticket", "seed")}

failures = []


def check(ok, text):
    if not ok:
        failures.append(text)
        print("FAIL:", text, file=sys.stderr)


def guest():
    import sealc2

    return sealc2


def verify(sealc2, good=True, **source):
    if not source:
        source = {"params_dir": KEYS, "allow_dev_params": True}
    claim = dict(STATEMENT)
    if not good:
        claim["seed"] = bytes(32)
    got = sealc2.verify_seal(5, claim["comm_r"], claim["comm_d"], sealc2.prover_id(1000), claim["ticket"], claim["seed"], 1, PROOF, **source)
    check(got is good, f"verify: want {good}, got {got}")


def refused(sealc2, names, sector=2, c1=C1, params="/nowhere"):
    try:
        sealc2.seal_commit_phase2(c1, sector, sealc2.prover_id(1000), params_dir=params)
    except sealc2.Error as error:
        check(names in error.message, f"{names} is not named: {error}")
    else:
        check(False, f"{names}: proved")


def each_kind(sealc2):
    verify(sealc2)
    verify(sealc2, False)
    refused(sealc2, "replica_id")
    refused(sealc2, "c1.Parse", c1=b"[[[")
    refused(sealc2, "/nowhere", sector=1)


def threads():
    return len(os.listdir("/proc/self/task"))


def case_crowd():
    """1000 threads that call once and end, with the smallest stack that Python's own frames leave room in."""
    sealc2 = guest()
    each_kind(sealc2)
    threading.stack_size(256 << 10)
    works = [lambda: verify(sealc2)] + [lambda c1=c1: refused(sealc2, "c1.Parse", c1=c1) for c1 in (b"{", b"nul", C1[:1000])]
    before = 0
    for first in range(0, 1000, 20):
        crowd = [threading.Thread(target=works[i % 4]) for i in range(20)]
        for t in crowd:
            t.start()
        for t in crowd:
            t.join()
        if first == 200:
            before = threads()
    check(threads() <= before + 4, f"threads grew from {before} to {threads()}")


def case_together():
    sealc2 = guest()
    with ThreadPoolExecutor(32) as pool:
        for done in [pool.submit(each_kind, sealc2) for _ in range(96)]:
            done.result()


def case_fork():
    """A child after fork gets an error at once, the parent goes on, and children by exec are free."""
    sealc2 = guest()
    each_kind(sealc2)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        begun = time.monotonic()
        calls = [lambda: verify(sealc2), lambda: sealc2.Engine(), lambda: sealc2.seal_commit_phase2(C1, 1, sealc2.prover_id(1000))]
        for call in calls:
            try:
                call()
                os._exit(2)
            except sealc2.Error as error:
                if error.code != sealc2.Status.FORKED or "fork" not in error.message:
                    os._exit(3)
        os._exit(0 if time.monotonic() - begun < 1 else 4)
    status = os.waitpid(child, 0)[1]
    check(status == 0, f"the child ended with status {status:#x}")
    each_kind(sealc2)
    out = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout
    check(out == b"1\n", f"a child by exec said {out!r}")


def case_environment():
    """os.environ is seen at the next call."""
    sealc2 = guest()
    os.environ.pop("SEALC2_ALLOW_DEV_PARAMS", None)
    os.environ["FIL_PROOFS_PARAMETER_CACHE"] = KEYS
    try:
        verify(sealc2, params_dir=None)
        check(False, "development parameters were taken without leave")
    except sealc2.Error as error:
        check("SEALC2_ALLOW_DEV_PARAMS" in error.message or "development" in error.message, str(error))
    os.environ["SEALC2_ALLOW_DEV_PARAMS"] = "1"
    verify(sealc2, params_dir=None)
    os.environ["FIL_PROOFS_PARAMETER_CACHE"] = "/nowhere/else"
    refused(sealc2, "/nowhere/else", sector=1, params=None)


def case_signals():
    """Python's own handlers work as before: Ctrl-C ends a wait, alarms arrive, faulthandler dumps a crash."""
    faulthandler.enable()
    mine = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)}
    sealc2 = guest()
    each_kind(sealc2)
    check(mine == {number: signal.getsignal(number) for number in mine}, "handlers changed")
    ticks = []
    signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    until = time.monotonic() + 1
    while time.monotonic() < until or len(ticks) < 10:
        each_kind(sealc2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        time.sleep(20)
        check(False, "SIGINT did not end a sleep")
    except KeyboardInterrupt:
        pass
    ends = os.pipe()
    os.close(ends[0])
    try:
        os.write(ends[1], b"x")
        check(False, "wrote to a closed pipe")
    except BrokenPipeError:
        pass
    each_kind(sealc2)


def case_crash():
    """Ends by SIGSEGV, and says where: the test looks for it."""
    faulthandler.enable()
    each_kind(guest())
    print("crashing", flush=True)
    ctypes.string_at(8)


def case_buffers():
    """What was handed over may change as soon as the call is over."""
    sealc2 = guest()
    for _ in range(20):
        c1 = bytearray(C1)
        refused(sealc2, "replica_id", c1=c1)
        c1[:] = b"\xa5" * len(c1)
        del c1
        verify(sealc2)


globals()["case_" + CASE]()
if failures:
    sys.exit(1)
print("ok")
