"""The ThinLTO corpus: protobuf's C++ library (76 translation units) as bitcode, in build/corpus.

The source comes from the crate protobuf-src. Each file is compiled once; a change of compiler, flags or
version compiles all anew. With debug information it lies beside that, in build/corpus/debug.
"""

import argparse
import hashlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from common.numbers import positive
from common.paths import CORPUS
from registries import Failure, fetch_crate, need_tool, run_step

CRATE, VERSION = "protobuf-src", "2.1.1"
FLAGS = ["-std=c++17", "-O2", "-flto=thin", "-fPIC", "-DNDEBUG", "-w"]
INCLUDES = ["src", "third_party/abseil-cpp", "third_party/utf8_range"]
# Abseil's symbols stay undefined, as they are where it is a shared library of its own.
LINK_FLAGS = ["-shared", "--threads=2", "--thinlto-jobs=2", "--build-id=none", "-soname", "libcorpus.so"]
JOBS = 2


def prepare_corpus(every: int = 1, debug: bool = False) -> list[Path]:
    """The bitcode files in link order, or each n-th of them; those that are not there yet are compiled."""
    folder, flags = (CORPUS / "debug", [*FLAGS, "-g"]) if debug else (CORPUS, FLAGS)
    folder.mkdir(parents=True, exist_ok=True)
    compiler = need_tool("clang++-19", "clang-19")
    need_tool("ld.lld-19", "lld-19")
    source = source_folder()
    units = {folder / _object_name(unit.relative_to(source)): unit for unit in _units(source)[::every]}
    stamp, key = folder / "stamp", _key(compiler, flags)
    compiled = stamp.read_text().split() if stamp.exists() else []
    if compiled[:1] != [key]:
        compiled = [key]
        stamp.unlink(missing_ok=True)
    missing = {output: unit for output, unit in units.items() if output.name not in compiled}
    if missing:
        _compile_all([compiler, *flags], source, missing)
        stamp.write_text("\n".join([*compiled, *(output.name for output in missing)]) + "\n")
    return list(units)


def source_folder() -> Path:
    return fetch_crate(CRATE, VERSION, CORPUS / "source") / "protobuf"


def include_flags(source: Path) -> list[str]:
    return [f"-I{source / folder}" for folder in INCLUDES]


def preprocess(unit: str, output: Path) -> None:
    """A file of the library with all that it includes, as a compiler reads it."""
    compiler, source = need_tool("clang++-19", "clang-19"), source_folder()
    run_step([compiler, "-std=c++17", "-DNDEBUG", "-w", *include_flags(source), "-E", source / unit, "-o", output])


def link_command(objects: list[Path], output: Path) -> list[str]:
    """The link that is measured: two ThinLTO jobs, no cache, the same bytes every time."""
    linker = need_tool("ld.lld-19", "lld-19")
    return [linker, *LINK_FLAGS, "-o", str(output), *map(str, objects)]


def _key(compiler: str, flags: list[str]) -> str:
    compiler_version = run_step([compiler, "--version"]).splitlines()[0]
    text = "\n".join([CRATE, VERSION, compiler_version, *flags, *INCLUDES])
    return hashlib.sha256(text.encode()).hexdigest()


def _units(source: Path) -> list[Path]:
    """The library's files as its own build lists them."""
    listing = (source / "src" / "file_lists.cmake").read_text()
    library = re.search(r"set\(libprotobuf_srcs\s+(.*?)\)\n", listing, re.DOTALL)
    names = re.findall(r"\$\{protobuf_SOURCE_DIR\}/(\S+\.cc)", library.group(1)) if library else []
    if len(names) < 50:
        raise Failure(f"{CRATE} {VERSION} lists only {len(names)} files; 50 or more are expected")
    return [source / name for name in names]


def _compile_all(compiler: list[str], source: Path, units: dict[Path, Path]) -> None:
    includes = include_flags(source)
    print(f"corpus: compiling {len(units)} files to bitcode, {JOBS} at a time", file=sys.stderr)
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = [
            pool.submit(run_step, [*compiler, *includes, "-c", unit, "-o", output])
            for output, unit in units.items()
        ]
        _follow(jobs)


def _follow(jobs: list) -> None:
    try:
        for done, job in enumerate(as_completed(jobs), 1):
            job.result()
            if done % 10 == 0:
                print(f"corpus: {done}/{len(jobs)} compiled", file=sys.stderr, flush=True)
    except BaseException:
        for job in jobs:
            job.cancel()
        raise


def _object_name(unit: Path) -> str:
    return str(unit.with_suffix(".bc")).replace("/", "_")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench corpus", description=__doc__)
    parser.add_argument("--every", type=positive, default=1, metavar="N", help="each N-th file alone")
    parser.add_argument("--debug", action="store_true", help="with debug information, beside the others")
    parser.add_argument("--list", action="store_true", help="print the files' names and nothing else")
    parser.add_argument("--preprocess", nargs=2, metavar=("UNIT", "FILE"), help="only preprocess one file of it")
    given = parser.parse_args(arguments)
    if given.preprocess:
        preprocess(given.preprocess[0], Path(given.preprocess[1]))
        return 0
    objects = prepare_corpus(given.every, given.debug)
    if given.list:
        print("\n".join(map(str, objects)))
        return 0
    size = sum(path.stat().st_size for path in objects) / 2**20
    print(f"corpus: {len(objects)} bitcode files, {size:.1f} MiB, in {objects[0].parent}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as error:
        sys.exit(f"corpus: {error}")
