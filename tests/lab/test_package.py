"""What pip installed."""

import importlib.metadata
import pathlib
import re

import reheap
import reheap_lab

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_version_is_the_librarys():
    header = (ROOT / "include" / "reheap" / "reheap.h").read_text()
    version = ".".join(re.findall(r"#define RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    assert importlib.metadata.version("reheap") == reheap.__version__ == reheap_lab.__version__ == version


def test_the_native_parts_came_along():
    folder = pathlib.Path(reheap.__file__).parent
    for part in ("lib/libreheap.so", "lib/libreheap-witness.so", "bin/reheap-runner"):
        assert (folder / part).is_file(), part
