"""What pip installed."""

import importlib.metadata
import pathlib

import reheap_lab


def test_the_version_stands_once():
    assert importlib.metadata.version("reheap-lab") == reheap_lab.__version__


def test_the_native_parts_came_along():
    folder = pathlib.Path(reheap_lab.__file__).parent / "native"
    for part in ("lib/libreheap.so", "lib/libreheap-witness.so", "bin/reheap-runner"):
        assert (folder / part).is_file(), part
