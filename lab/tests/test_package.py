"""What pip installed."""

import importlib.metadata
import pathlib

import reheap_lab


def test_the_version_stands_once():
    assert importlib.metadata.version("reheap-lab") == reheap_lab.__version__


def test_the_allocator_came_along():
    library = pathlib.Path(reheap_lab.__file__).parent / "native" / "lib" / "libreheap.so"
    assert library.is_file()
