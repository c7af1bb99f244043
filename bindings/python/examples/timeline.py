"""Proves the 2 KiB sector of tests/vectors, verifies the proof, and draws what the prover did when.

    python3 timeline.py PARAMETER_FOLDER [PICTURE]

PICTURE is timeline.svg unless given; with matplotlib it may be of any kind that matplotlib writes. Needs no more than
the package; the parameters are development parameters.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Dict, List

HERE = Path(__file__).resolve().parent
if not os.environ.get("SEALC2_TEST_INSTALLED"):  # the package of this source tree, not one that is installed
    sys.path.insert(0, str(HERE.parent))

import sealc2  # noqa: E402
from sealc2 import timeline  # noqa: E402

SECTOR = HERE.parents[2] / "tests" / "vectors" / "c1" / "porep-2k-a"


def main(arguments: List[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    params, picture = arguments[0], (arguments[1:] or ["timeline.svg"])[0]
    c1_bytes = (SECTOR / "c1.json").read_bytes()
    statement = json.loads((SECTOR / "statement.json").read_text())
    sector, prover = int(statement["sector_id"]), bytes.fromhex(statement["prover_id"])

    with sealc2.Engine() as engine:
        c1 = engine.read_c1(c1_bytes, sector_id=sector, prover_id=prover)
        assert c1.registered_proof is not None
        print(f"sector     {c1.shape}, {c1.partitions} partition(s), {len(c1.public_inputs())} public inputs each")
        try:
            proof = engine.prove(c1_bytes, sector, prover, params_dir=params, allow_dev_params=True)
        except sealc2.Error as error:
            print(f"not proved: {error.kind.name}: {error.where}: want {error.want}, got {error.got}", file=sys.stderr)
            return 1
        verified = engine.verify_seal(
            c1.registered_proof,
            c1.comm_r,
            c1.comm_d,
            prover,
            c1.ticket,
            c1.seed,
            sector,
            proof,
            params_dir=params,
            allow_dev_params=True,
        )

    totals: Dict[str, float] = {}
    for stage in proof.stages:
        totals[stage.name] = totals.get(stage.name, 0.0) + stage.seconds
    for name, seconds in sorted(totals.items(), key=lambda item: -item[1]):
        print(f"  {name:<12} {seconds:8.3f} s  {seconds / proof.seconds:6.1%}")
    print(f"proved in  {proof.seconds:.2f} s")
    print(f"verified   {verified}")
    print(f"drawn by   {timeline.save(proof, picture, title=f'{c1.shape} in {proof.seconds:.1f} s')}: {picture}")
    return 0 if verified else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
