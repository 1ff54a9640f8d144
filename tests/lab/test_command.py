"""`reheap` as Python has it: what becomes the native command, what is the lab's, and what either lacks."""

import ast
import os
import pathlib
import re
import signal
import subprocess
import sys
import tomllib
import types

import pytest

import reheap
from reheap import __main__ as command
from reheap_lab import cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(reheap.__file__).parent


@pytest.fixture
def start(tmp_path):
    """Starts `python -m reheap`, where the native command is `env`: it shows what it was started with."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "reheap").symlink_to("/usr/bin/env")
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE.parent), reheap.VARIABLE: str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-m", "reheap", *words], env=given, capture_output=True, text=True)
    run.given = given
    return run


@pytest.fixture
def no_native(tmp_path, monkeypatch):
    """Neither in the package, nor on PATH."""
    monkeypatch.setenv(reheap.VARIABLE, str(tmp_path))
    monkeypatch.setattr(reheap, "_script_folders", lambda: [])
    monkeypatch.setenv("PATH", f"{tmp_path / 'ours'}:{tmp_path / 'theirs'}")


def call(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["reheap", *words])
    return command.main()


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)


def test_words_and_status_are_the_native_commands(start):
    done = start("sh", "-c", 'printf "[%s]" "$@"; exit 7', "sh", "--", "a b", "--help")
    assert (done.returncode, done.stdout, done.stderr) == (7, "[--][a b][--help]", "")


def test_python_leaves_nothing_in_the_environment(start):
    """It has LC_CTYPE there when the locale is C, as it is here."""
    assert dict(line.split("=", 1) for line in start().stdout.splitlines()) == start.given


def test_python_leaves_no_signal_ignored(start):
    ignored = re.search(r"SigIgn:\s*(\w+)", start("cat", "/proc/self/status").stdout)[1]
    assert int(ignored, 16) & (1 << 12 | 1 << 24) == 0  # SIGPIPE, SIGXFSZ


def test_a_missing_command_or_library_is_named_with_the_way_to_it(no_native, monkeypatch, capsys):
    assert call(monkeypatch, "run", "--", "true") == 127
    assert "native reheap command is not installed; install it again: pip install" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=r"libreheap-hardened\.so is missing: install it again: pip install"):
        reheap.library(hardened=True)


def test_our_own_script_is_not_taken_for_the_native_command(no_native, tmp_path):
    write(tmp_path / "ours" / "reheap", "#!/usr/bin/python3\n")
    with pytest.raises(FileNotFoundError):
        reheap.command()
    write(tmp_path / "theirs" / "reheap", "\x7fELF")
    assert reheap.command() == str(tmp_path / "theirs" / "reheap")


def test_what_the_lab_lacks_is_named_before_it_begins(monkeypatch, capsys):
    monkeypatch.setattr(command, "LAB_NEEDS", ("click", "no_such_package"))
    assert call(monkeypatch, "compare", "--", "true") == 127
    assert capsys.readouterr().err == "reheap: compare needs no_such_package: pip install 'reheap[lab]'\n"


def test_a_python_too_old_for_the_lab_is_named(monkeypatch, capsys):
    monkeypatch.setattr(command, "LAB_PYTHON", (9, 9))
    assert call(monkeypatch, "compare", "--", "true") == 127
    assert "reheap: compare needs Python 9.9 or later, and this is 3." in capsys.readouterr().err


def test_the_lab_gets_what_is_its_own(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        call(monkeypatch, "compare", "--help")
    assert end.value.code == 0 and "Usage: reheap compare" in capsys.readouterr().out


def test_on_windows_a_process_is_profiled_by_the_native_command(monkeypatch):
    monkeypatch.setattr(command, "os", types.SimpleNamespace(name="nt"))
    assert not command._is_lab_command(["profile", "--pid", "7"])
    assert command._is_lab_command(["profile", "--read", "x.pb.gz"]) and command._is_lab_command(["compare"])


def test_both_commands_know_the_same_words():
    native = (ROOT / "command" / "linux" / "lab.cpp").read_text()
    listed = re.findall(r'"(\w+)"', native[native.index("lab_commands = {"):native.index("};")])
    assert sorted(listed) == sorted(command.LAB_COMMANDS) == sorted(cli.PARTS)


def test_what_is_looked_for_is_what_the_extra_brings():
    extra = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]["optional-dependencies"]["lab"]
    brought = {re.match(r"\w+", line)[0] for line in extra}
    assert {"elftools" if name == "pyelftools" else name for name in brought} == set(command.LAB_NEEDS)
    assert all(f"python_version>='{'.'.join(map(str, command.LAB_PYTHON))}'" in line for line in extra)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_the_command_needs_no_newer_python_than_is_promised(path):
    table = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    oldest = tuple(map(int, table["requires-python"].removeprefix(">=").split(".")))
    ast.parse(path.read_text(), feature_version=oldest)


INTERRUPTED = """
import os, signal, sys
from reheap import __main__
class Interrupts:
    def find_spec(self, name, *_):
        if name == "reheap_lab":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
signal.signal(signal.SIGINT, signal.default_int_handler)
__main__.lab()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no such signal there")
def test_an_interrupt_while_the_lab_loads_ends_it_without_a_word():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)})
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
