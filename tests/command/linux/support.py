"""What the tests of the command share. CMakeLists.txt sets the REHEAP_TEST_… variables."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = os.environ["REHEAP_TEST_COMMAND"]
LIBRARY = os.environ["REHEAP_TEST_LIBRARY"]
PROGRAMS = pathlib.Path(os.environ["REHEAP_TEST_PROGRAMS"])
FAKE_LIBRARY = str(PROGRAMS / "libcommand_fake_library.so")
SHOW = str(PROGRAMS / "command_show")
SHOW_SOURCE = str(ROOT / "tests/command/linux/programs/show.c")
SHOW_STATIC = str(PROGRAMS / "command_show_static")
SHOW_FOREIGN = str(PROGRAMS / "command_show_foreign")
MUSL_PROGRAM = os.environ["REHEAP_TEST_MUSL"]
OWN_MALLOC = str(PROGRAMS / "command_own_malloc")
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

# The short way (command/linux/early/entry.cpp) and the ordinary one must do the same: a value set apart from its
# option by a space is not plain.
WAYS = {"short": ["--decay-ms=1000"], "ordinary": ["--decay-ms", "1000"]}


def environment(**more: str) -> dict[str, str]:
    """The test's own, without what would lead the command astray."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("REHEAP_") and name != "LD_PRELOAD"}
    kept["LC_ALL"] = "C"
    return kept | more


def start(*words: str, **more) -> subprocess.Popen:
    more.setdefault("env", environment())
    return subprocess.Popen([COMMAND, *words], **more)


def call(*words: str, **more) -> subprocess.CompletedProcess:
    more.setdefault("env", environment())
    more.setdefault("timeout", 60)
    return subprocess.run([COMMAND, *words], capture_output=True, **more)


def run(*words: str, library: str = FAKE_LIBRARY, options: tuple = (), **more) -> subprocess.CompletedProcess:
    """reheap run under the library that does nothing."""
    return call("run", f"--library={library}", *options, "--", *words, **more)


@dataclasses.dataclass
class Shown:
    """What the program `show` was started with."""
    pid: int
    parent: int
    arguments: list[bytes]
    variables: dict[bytes, bytes]


def shown(output: bytes) -> Shown:
    pid, parent, count, *rest = output.split(b"\0")[:-1]
    arguments, entries = rest[:int(count)], rest[int(count):]
    variables = dict(entry.split(b"=", 1) for entry in entries)
    assert len(variables) == len(entries), f"a variable stands twice: {entries}"
    return Shown(int(pid), int(parent), arguments, variables)


class CommandTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # Beside the programs: a folder for temporary files may be mounted nosuid or noexec.
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=PROGRAMS))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name: str, text: str, mode: int = 0o755) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def copy(self, program: str, name: str) -> str:
        return str(shutil.copy(program, self.folder / name))

    def assert_one_line(self, errors: bytes, *parts: str):
        """One line of the command's own, with every one of the parts in it."""
        text = errors.decode()
        self.assertRegex(text, r"\Areheap: [^\n]*\n\Z")
        for part in parts:
            self.assertIn(part, text)
