"""The Rust crate: packed as for the registry, and what a user makes of the packed file, without a network."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATE = ROOT / "packaging" / "rust"
HEADER = ROOT / "include" / "reheap" / "reheap.h"
LARGEST = 400_000  # bytes, packed: twice the sources, or what was built, is more


def has_cargo() -> bool:
    """Of 1.70 or later, which takes no copy of the whole registry's index."""
    found = shutil.which("cargo") and subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True).stdout
    version = re.match(r"cargo 1\.(\d+)", found or "")
    return version is not None and int(version[1]) >= 70


pytestmark = pytest.mark.skipif(not has_cargo(), reason="needs cargo 1.70")

PROGRAM = """
use std::thread;

#[global_allocator]
static ALLOCATOR: reheap::Reheap = reheap::Reheap;

fn main() {
    let threads: Vec<_> = (0..4).map(|n| thread::spawn(move || vec![n; 100_000])).collect();
    let all: Vec<Vec<u8>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(all.iter().all(|one| reheap::owns(one.as_ptr())));
    let heap = reheap::Heap::new().unwrap();
    println!("{} {}", reheap::version(), *heap.boxed(5).unwrap());
}
"""


def run(*words, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **more)


def succeeds(*words, **more) -> str:
    ran = run(*words, **more)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.fixture(scope="session")
def variables(tmp_path_factory) -> dict[str, str]:
    """Of one folder for all that is compiled; the allocator without optimisation, which is not what is tested here, and
    with what distributions have their packages' C++ compiled with."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_", "REHEAP_", "RUST"))}
    home = {name: os.environ[name] for name in ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN") if name in os.environ}
    target = tmp_path_factory.mktemp("cargo target")
    return kept | home | {"CARGO_TARGET_DIR": str(target), "CXXFLAGS": "-O0 -flto=auto", "CARGO_PROFILE_DEV_DEBUG": "0"}


# Where nothing is linked the allocator need not be compiled (build.rs).
UNLINKED = {"DOCS_RS": "1"}


@pytest.fixture(scope="session")
def sources(variables, tmp_path_factory) -> pathlib.Path:
    """A copy of the crate, its dependencies fetched, without the allocator in it."""
    folder = tmp_path_factory.mktemp("a crate") / "rust"
    ignored = shutil.ignore_patterns("native", "target", "Cargo.lock")
    shutil.copytree(CRATE, folder, ignore=ignored)
    succeeds("cargo", "fetch", "--quiet", cwd=folder, env=variables)
    return folder


@pytest.fixture(scope="session")
def packed(variables, sources) -> pathlib.Path:
    """The .crate; cargo has built it once from what is in it, but for the allocator."""
    succeeds(sys.executable, ROOT / "tools" / "amalgamate.py", sources / "native")
    succeeds("cargo", "package", "--allow-dirty", "--offline", cwd=sources, env=variables | UNLINKED)
    made, = (pathlib.Path(variables["CARGO_TARGET_DIR"]) / "package").glob("reheap-*.crate")
    return made


@pytest.fixture(scope="session")
def unpacked(packed, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(packed) as archive:
        archive.extractall(folder)
    return folder / packed.stem


def header() -> str:
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


# ---- before it is packed -----------------------------------------------------------------------------

def test_without_the_allocator_it_says_what_to_do(sources, variables):
    if (sources / "native").exists():
        pytest.skip("it is packed already")
    ran = run("cargo", "check", "--offline", cwd=sources, env=variables)
    assert ran.returncode != 0 and "run tools/amalgamate.py packaging/rust/native" in ran.stdout


def test_it_is_the_headers_version_and_licence():
    version = ".".join(re.findall(r"#define RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text()))
    manifest = (CRATE / "Cargo.toml").read_text()
    assert f'\nversion = "{version}"' in manifest and '\nlicense = "MIT"\n' in manifest


def test_functions_are_declared_as_the_header_has_them():
    declared = dict(re.findall(r"pub fn (rh_\w+)\(([^)]*)\)", (CRATE / "src" / "ffi.rs").read_text()))
    assert len(declared) > 30
    for name, parameters in declared.items():
        c = re.search(rf"\b{name}\(([^)]*)\)", header())
        assert c, name
        names = [] if c[1] in ("", "void") else [one.split()[-1].strip("*") for one in c[1].split(",")]
        assert [one.split(":")[0].strip() for one in parameters.split(",") if one.strip()] == names, name


@pytest.mark.parametrize("structure, path, begin", [
    ("rh_stats", "src/stats.rs", "Stats {"), ("rh_limit", "src/limit.rs", "Limits {"),
    ("rh_heap_stats", "src/heap.rs", "    HeapStats {"), ("rh_tag_stats", "src/ffi.rs", "pub struct RhTagStats {"),
])
def test_structures_begin_as_the_headers(structure, path, begin):
    c = re.search(rf"typedef struct {structure} \{{(.*?)\}} {structure};", header(), re.DOTALL)[1]
    fields = [one.split()[-1] for one in c.split(";") if one.strip()]
    text = (CRATE / path).read_text().split(begin, 1)[1].split("}", 1)[0]
    ours = re.findall(r"^\s*(?:pub )?(\w+)(?::[^,]*)?,", text, re.MULTILINE)
    ours = ours if ours[0] == "struct_size" else ["struct_size", *ours]
    assert len(ours) > 4 and ours == fields[:len(ours)]


@pytest.mark.parametrize("words", [
    pytest.param(["fmt", "--check"], id="fmt"),
    pytest.param(["clippy", "--offline", "--all-targets", "--features", "serde", "--", "-D", "warnings"], id="clippy"),
    pytest.param(["doc", "--offline", "--no-deps"], id="doc"),
])
def test_it_is_in_order(packed, sources, variables, words):
    if shutil.which(f"cargo-{words[0]}") is None and words[0] != "doc":
        pytest.skip(f"needs cargo {words[0]}")
    succeeds("cargo", *words, cwd=sources, env=variables | UNLINKED | {"RUSTDOCFLAGS": "-D warnings"})


# ---- packed ------------------------------------------------------------------------------------------

def test_all_that_it_needs_is_in_it(packed):
    with tarfile.open(packed) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"Cargo.toml", "README.md", "build.rs", "src/lib.rs", "native/reheap.cpp", "native/reheap.h"} <= names
    assert not [name for name in names if name.startswith("target") or name.endswith((".o", ".a"))]
    assert packed.stat().st_size < LARGEST


@pytest.mark.parametrize("words", [[], ["--features", "hardened,serde", "--tests"]], ids=["plain", "hardened"])
def test_its_own_tests(unpacked, variables, words):
    succeeds("cargo", "test", "--offline", "--quiet", *words, cwd=unpacked, env=variables)


def test_without_std_it_compiles(unpacked, variables):
    succeeds("cargo", "check", "--offline", "--no-default-features", cwd=unpacked, env=variables | UNLINKED)


def test_a_program_uses_it(unpacked, variables, tmp_path):
    project = tmp_path / "a program"
    (project / "src").mkdir(parents=True)
    (project / "src" / "main.rs").write_text(PROGRAM)
    (project / "Cargo.toml").write_text(
        f'[package]\nname = "user"\nversion = "1.0.0"\nedition = "2021"\n\n'
        f'[dependencies]\nreheap = {{ path = "{unpacked}" }}\n')
    said = succeeds("cargo", "run", "--offline", "--quiet", cwd=project, env=variables)
    assert re.fullmatch(r"\d+\.\d+\.\d+ 5\n", said), said
    program = pathlib.Path(variables["CARGO_TARGET_DIR"]) / "debug" / "user"
    assert "libstdc++" not in succeeds("readelf", "-d", program)
    assert '"reserved":' in succeeds(program, env=variables | {"REHEAP_STATS": "1"})


def test_in_a_checkout_it_is_made_of_the_source_there(variables):
    succeeds("cargo", "check", "--offline", "--quiet", cwd=CRATE, env=variables | UNLINKED)
    made = list(pathlib.Path(variables["CARGO_TARGET_DIR"]).glob("debug/build/reheap-*/out/native/reheap.cpp"))
    assert len(made) == 1
