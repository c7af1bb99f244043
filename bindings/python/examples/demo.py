"""Proves the 2 KiB sector of tests/vectors through libsealc2 and shows what happened.

    python3 demo.py PARAMETER_FOLDER

The parameters are development parameters: fine to see the prover work, worthless as evidence.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import sealc2  # noqa: E402

SECTOR = HERE.parents[2] / "tests" / "vectors" / "c1" / "porep-2k-a"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    params = sys.argv[1]
    c1_bytes = (SECTOR / "c1.json").read_bytes()
    c1 = json.loads(c1_bytes)
    statement = json.loads((SECTOR / "statement.json").read_text())
    sector, prover = statement["sector_id"], bytes.fromhex(statement["prover_id"])
    print(f"libsealc2 {sealc2.library_version()}")
    print(f"sector     {sector} of miner 1000, {c1['registered_proof']}, C1 output of {len(c1_bytes):,} bytes")
    interactive = sys.stderr.isatty()

    def show(p: sealc2.Progress) -> None:
        if interactive:
            print(f"\r{p.done:6.1%}  {p.stage:<12}", end="", file=sys.stderr, flush=True)

    begun = time.monotonic()
    proof = sealc2.seal_commit_phase2(c1_bytes, sector, prover, params_dir=params, allow_dev_params=True, progress=show)
    took = time.monotonic() - begun
    if interactive:
        print("\r" + " " * 24 + "\r", end="", file=sys.stderr)
    for stage in sealc2.last_stages():
        whose = "job" if stage.partition < 0 else f"partition {stage.partition}"
        print(f"  {stage.name:<12} {stage.seconds:8.3f} s   {whose}")
    print(f"proved in  {took:.1f} s, peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    print(f"proof      {proof.hex()}")

    def verify(seed: bytes) -> bool:
        return sealc2.verify_seal(
            statement["registered_proof_porep_number"],
            bytes(c1["comm_r"]),
            bytes(c1["comm_d"]),
            prover,
            bytes(c1["ticket"]),
            seed,
            sector,
            proof,
            params_dir=params,
            allow_dev_params=True,
        )

    seed = bytes(c1["seed"])
    good, other = verify(seed), verify(bytes([seed[0] ^ 1]) + seed[1:])
    print(f"verified   {good}")
    print(f"verified with another seed: {other}")
    sealc2.shutdown()
    return 0 if good and not other else 1


if __name__ == "__main__":
    sys.exit(main())
