"""Where things stand. Everything fetched or built goes under build/, which git ignores."""

from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILD = ROOT / "build"
WORKLOADS = BENCH / "workloads"
WORKLOADS_BUILT = BUILD / "bench"
PEERS = BUILD / "peers"
CORPUS = BUILD / "corpus"
