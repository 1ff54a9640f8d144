"""The questions stand on the lab that is installed here; they themselves are no package."""

import os
import pathlib
import sys

from reheap_lab import native

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
os.environ.pop("LD_PRELOAD", None)
assert (native.folder() / "lib").is_dir(), "these need the native parts: install the lab, or set REHEAP_LAB_NATIVE"
