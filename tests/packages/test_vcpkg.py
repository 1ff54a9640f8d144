"""The port for vcpkg says what the project says. (vcpkg itself is not here to run it.)"""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = ROOT / "packaging/vcpkg"


def test_its_version_is_the_headers():
    header = (ROOT / "include/reheap/reheap.h").read_text()
    numbers = re.findall(r"#define RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert json.loads((PORT / "vcpkg.json").read_text())["version"] == ".".join(numbers)


def test_the_options_it_sets_are_there():
    options = re.findall(r"-D(REHEAP_\w+)=", (PORT / "portfile.cmake").read_text())
    project = (ROOT / "CMakeLists.txt").read_text()
    assert options and [name for name in options if f"option({name} " not in project] == []


def test_the_targets_it_names_are_there():
    named = set(re.findall(r"reheap::(\w+)", (PORT / "usage").read_text()))
    libraries = (ROOT / "cmake/Libraries.cmake").read_text()
    assert named and {name for name in named if f"reheap::{name} ALIAS" not in libraries} == set()
