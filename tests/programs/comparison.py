"""Runs a program on the system's heap and on reheap, and compares what it does, byte for byte.

How a program is put on reheap, and how that is proved, is for the harness of each system to say: linux/harness.py and
windows/harness.py.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from fnmatch import fnmatchcase as fnmatch

FOLDER = pathlib.Path(os.environ["REHEAP_TEST_FOLDER"])
ROOT = pathlib.Path(__file__).resolve().parents[2]

PATIENCE = 600  # seconds; a program that takes longer hangs


@dataclasses.dataclass
class Normalise:
    """Something that differs between two runs on the system's heap, too."""
    pattern: str
    replacement: str
    reason: str

    def apply(self, data: bytes) -> bytes:
        return re.sub(self.pattern.encode(), self.replacement.encode(), data, flags=re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Given:
    """What a program finds when it starts, and the files it is to leave."""
    files: tuple[str, ...] = ()  # patterns, whose '*' stands for folders too
    stdin: bytes = b""
    prepare: object = None  # called with the folder it will work in
    variables: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Result:
    status: int
    output: bytes
    errors: bytes
    files: dict[str, bytes]
    seconds: float
    pid: int


def matching(folder: pathlib.Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    return {name: file.read_bytes() for name, file in files.items()
            if any(fnmatch(name, pattern) for pattern in patterns)}


def need(program: str) -> str:
    path = shutil.which(program)
    if not path:
        raise AssertionError(f"{program} is not installed; ./dev test installs what tests/programs/*/packages.txt list")
    return path


def tail(result: Result) -> str:
    return (result.output[-1000:] + result.errors[-3000:]).decode(errors="replace")


class Comparison(unittest.TestCase):
    maxDiff = 4000
    proof = "start"  # unless a test names another
    normalise = ()  # what is left out of every comparison

    def setUp(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER, prefix="run."))
        self.addCleanup(shutil.rmtree, self.folder)
        # Both runs work in a folder of the same name, so that names in their output agree.
        self.work = self.folder / "work"

    # ---- of each system -----------------------------------------------------------------------

    def command(self, words: list) -> list:
        """What starts the program."""
        raise NotImplementedError

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        raise NotImplementedError

    def on_reheap(self, words: list, given: Given, proof: str, processes: int, refills: int) -> Result:
        """Runs it there, and proves that it was."""
        raise NotImplementedError

    # ---- one run ------------------------------------------------------------------------------

    def start_in_work(self, prepare) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        if prepare:
            prepare(self.work)

    def execute(self, words: list, given: Given, watch=None) -> Result:
        self.start_in_work(given.prepare)
        started = time.monotonic()
        with subprocess.Popen(self.command(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              cwd=self.work, env=self.environment(given.variables)) as program:
            if watch:
                watch(program)
            try:
                output, errors = program.communicate(given.stdin, PATIENCE)
            except subprocess.TimeoutExpired:
                program.kill()
                raise
        seconds = time.monotonic() - started
        return Result(program.returncode, output, errors, matching(self.work, given.files), seconds, program.pid)

    # ---- both ---------------------------------------------------------------------------------

    def compare(self, words: list, *, files: tuple[str, ...] = (), stdin: bytes = b"", prepare=None,
                normalise: tuple[Normalise, ...] = (), proof: str = "", processes: int = 1, refills: int = 1,
                status: int = 0, **variables: str) -> Result:
        """Runs the program on both heaps: status, stdout, stderr and the files it makes have to be the same.

        proof: as the harness tells; `processes` of the program's are to start under reheap, and where statistics are
        left, a thread's stock of blocks of a size is to have been filled `refills` times.
        Gives the run on reheap.
        """
        given = Given(files, stdin, prepare, variables)
        system = self.execute(words, given)
        self.assertEqual(system.status, status, tail(system))
        reheap = self.on_reheap(words, given, proof or self.proof, processes, refills)
        self.tell(words, system, reheap, normalise)
        self.assert_same(system, reheap, normalise, files)
        return reheap

    def assert_same(self, system: Result, reheap: Result, normalise, files) -> None:
        self.assertEqual(reheap.status, system.status, tail(reheap))
        for pattern in files:
            self.assertTrue(any(fnmatch(name, pattern) for name in system.files), f"{pattern} was not made")
        for name in system.files:
            self.assertTrue(name in reheap.files, f"{name} was not made on reheap")
        self.assertEqual(sorted(system.files), sorted(reheap.files))
        for name, one, other in (("stdout", system.output, reheap.output), ("stderr", system.errors, reheap.errors),
                                 *((name, system.files[name], reheap.files[name]) for name in system.files)):
            for rule in (*self.normalise, *normalise):
                one, other = rule.apply(one), rule.apply(other)
            self.assert_same_bytes(name, one, other)

    def assert_same_bytes(self, name: str, one: bytes, other: bytes) -> None:
        if one == other:
            return
        at = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
        start = max(0, at - 200)
        self.fail(f"{name} differs at byte {at} of {len(one)} and {len(other)}:\n"
                  f"system: {one[start:at + 200]!r}\nreheap: {other[start:at + 200]!r}")

    def tell(self, words, system: Result, reheap: Result, normalise) -> None:
        size = len(system.output) + sum(map(len, system.files.values()))
        print(f"{os.path.basename(words[0])}: {size} bytes of output compared; "
              f"{system.seconds:.1f} s on the system's heap, {reheap.seconds:.1f} s on reheap", file=sys.stderr)
        for rule in normalise:
            print(f"  not compared: {rule.reason} ({rule.pattern})", file=sys.stderr)


def main() -> None:
    unittest.main(verbosity=2)
