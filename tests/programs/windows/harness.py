"""Programs of Windows, plainly and with reheap.dll in them.

That reheap was there is told by the process itself: `reheap run --verbose` makes the library write a line for all it
replaced, the OS's heap among it, and one with who serves malloc; --stats=FILE makes the last process to end write what
it served."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/programs"), str(ROOT / "tests/support")]
import fetch_windows  # noqa: E402
from comparison import FOLDER, Comparison, Given, Normalise, Result, main, need, tail  # noqa: E402, F401  for the tests

COMMAND = pathlib.Path(os.environ["REHEAP_TEST_COMMAND"])
EMULATOR = [word for word in os.environ["REHEAP_TEST_EMULATOR"].split(";") if word]
INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
RUNTIME = b"ucrtbase.dll"

# Wine takes Microsoft's DLLs where they lie beside a program: beside the launcher there are none.
MICROSOFTS = "ucrtbase,vcruntime140,vcruntime140_1,msvcp140=n,b"
MICROSOFTS_PLACE = 0x180000000  # which they prefer, and the first of them gets
WINES_PLACE = 0x2C7470000  # of its own ucrtbase.dll

LINE = re.compile(rb"reheap: (.*?) *\r?\n")  # wherever the program's own line stood when a child began
REPLACED = re.compile(rb"(\S+) at (0x[0-9a-f]+): replaced base \(\d+\), aligned \(\d+\)")
HEAP = re.compile(r"ntdll\.dll at 0x[0-9a-f]+: replaced heap \(\d+\)$")

# Of a thread that was starting when the process ended.
WINES_OWN = Normalise(r"wine client error:[0-9a-f]+: .*\n?", "", "what Wine says of a thread it cut off")


@dataclasses.dataclass
class Served(Result):
    runtimes: dict[bytes, int]  # those replaced, and where they lie


def fetch(item: str) -> pathlib.Path:
    """The folder of a program. Where nothing can be fetched the test is skipped; where it has to run only for want of
    npm."""
    try:
        return fetch_windows.fetch(item)
    except fetch_windows.Failure as failure:
        if os.environ.get("CI") and not isinstance(failure, fetch_windows.NoClient):
            raise
        raise unittest.SkipTest(f"{item} is not in the cache, and cannot be fetched: {failure}")


def windows_path(path: pathlib.Path) -> str:
    """As a program names it that takes what begins with '/' for something else."""
    return f"Z:{path}" if EMULATOR else str(path)


class ProgramTest(Comparison):
    normalise = (WINES_OWN,)
    runtime = RUNTIME  # which every process has to have replaced; empty where the programs have theirs linked in
    options: tuple[str, ...] = ()  # for `reheap run`
    heap = True  # whether they have to have the OS's heap replaced

    def command(self, words: list) -> list[str]:
        return [*EMULATOR, *map(str, words)]

    def environment(self, variables: dict[str, str]) -> dict[str, str]:
        return {**os.environ, **variables}

    def need_emulator(self) -> None:
        """Windows itself has one ucrtbase.dll, whatever lies beside a program."""
        if not EMULATOR:
            self.skipTest("the runtime cannot be chosen here")

    def place(self, item: str, program: str, libraries: tuple[str, ...] = ()) -> pathlib.Path:
        """The program in a folder of the test's, with DLLs from other folders of the cache beside it."""
        for name in libraries:
            item_name, _, folder = name.partition("/")
            for library in (fetch(item_name) / folder).glob("*.dll"):
                self.place_file(library)
        return self.place_file(fetch(item) / program)

    def place_file(self, source: pathlib.Path) -> pathlib.Path:
        place = self.folder / "programs" / source.name
        place.parent.mkdir(exist_ok=True)
        if not place.exists():
            try:
                os.link(source, place)
            except OSError:  # on another device
                shutil.copy(source, place)
        return place

    def on_reheap(self, words: list, given: Given = Given(), proof: str = "", processes: int = 1, refills: int = 1,
                  options: tuple[str, ...] = ()) -> Served:
        statistics = self.folder / "statistics.json"
        under = [COMMAND, "run", "--require", "--verbose", f"--stats={statistics}", *self.options, *options, "--",
                 *words]
        result = self.served(self.execute(under, given), processes)
        served = json.loads(statistics.read_bytes())
        self.assertGreaterEqual(served["slow_paths"]["refill"], refills, served)
        return result

    def served(self, result: Result, processes: int) -> Served:
        """Takes the library's lines out of what was said, and holds them to what they have to say."""
        lines = LINE.findall(result.errors) + LINE.findall(result.output)  # a builder hands on what its children say
        reports = [json.loads(line) for line in lines if line.startswith(b"{")]
        self.assertGreaterEqual(len(reports), processes, f"reheap did not start: {tail(result)}")
        for report in reports:
            self.assertTrue(report["overridden"], report)
            self.assertEqual(report["hardened"], "--hardened" in self.options, report)
            self.assertEqual(any(map(HEAP.match, report["replaced"])), self.heap, report)
        replaced = [found.groups() for line in lines if (found := REPLACED.match(line))]
        if self.runtime:
            self.assertGreaterEqual([name for name, _ in replaced].count(self.runtime), processes, lines)
        runtimes = {name: int(address, 16) for name, address in replaced}
        told = dataclasses.replace(result, output=LINE.sub(b"", result.output), errors=LINE.sub(b"", result.errors))
        return Served(**vars(told), runtimes=runtimes)
