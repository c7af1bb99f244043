"""What the tests share. Run from bindings/python: python3 -m unittest discover tests

SEALC2_LIB names the library, unless the built one is to be used. Proofs of sectors need 2 KiB development parameters,
whose folder SEALC2_PARAMS names; `make test-python` makes them. SEALC2_TEST_INSTALLED=1 tests the package that is
installed, as from a wheel, in place of the source tree's. numpy, matplotlib and mypy are used where they are installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import unittest
from pathlib import Path
from typing import Any, List

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
ROOT = PACKAGE.parents[1]
INSTALLED = bool(os.environ.get("SEALC2_TEST_INSTALLED"))
if not INSTALLED:
    sys.path.insert(0, str(PACKAGE))

import sealc2  # noqa: E402

SECTOR = ROOT / "tests" / "vectors" / "c1" / "porep-2k-a"
TINY = ROOT / "tests" / "vectors" / "tiny"
C1 = (SECTOR / "c1.json").read_bytes()
STATEMENT = json.loads((SECTOR / "statement.json").read_text())
PROVER = bytes.fromhex(STATEMENT["prover_id"])
PARAMS = os.environ.get("SEALC2_PARAMS")
needs_params = unittest.skipUnless(
    PARAMS, "needs 2 KiB development parameters (1.2 GB, minutes to make): make test makes them and names their folder in SEALC2_PARAMS"
)


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


needs_numpy = unittest.skipUnless(installed("numpy"), "numpy is not installed")


def claim(proof: Any) -> List[Any]:
    """The arguments of verify_seal for the sector."""
    c1 = json.loads(C1)
    return [5, bytes(c1["comm_r"]), bytes(c1["comm_d"]), PROVER, bytes(c1["ticket"]), bytes(c1["seed"]), 1, proof]


class Circuit:
    """A circuit of tests/vectors/tiny: its values, parameters, and the proof of the reference."""

    def __init__(self, name: str = "tiny-16") -> None:
        self.params = TINY / name / "params.bin"
        self._witness = json.loads((TINY / name / "witness.json").read_text())
        proof = json.loads((TINY / name / "proof.json").read_text())
        self.proof, self.zero_proof = bytes.fromhex(proof["proof"]), bytes.fromhex(proof["proof_with_r_and_s_zero"])
        self.blinding = {"r": [bytes.fromhex(proof["r"])], "s": [bytes.fromhex(proof["s"])]}

    def ints(self, name: str) -> List[int]:
        return [int.from_bytes(bytes.fromhex(text), "little") for text in self._witness[name]]

    def bools(self, name: str) -> List[bool]:
        return [bit == "1" for bit in self._witness[name]]

    def assignment(self, values: Any = lambda ints: ints, flags: Any = lambda bools: bools) -> sealc2.Assignment:
        """The values, each vector made by values and each density by flags."""
        return sealc2.Assignment(
            a=values(self.ints("a")),
            b=values(self.ints("b")),
            c=values(self.ints("c")),
            inputs=values(self.ints("input_assignment")),
            aux=values(self.ints("aux_assignment")),
            a_aux_density=flags(self.bools("a_aux_density")),
            b_input_density=flags(self.bools("b_input_density")),
            b_aux_density=flags(self.bools("b_aux_density")),
        )
