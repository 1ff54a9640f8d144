"""reheap-record.dll under Wine. Skipped where Wine, or the build for Windows (./dev build windows-x86_64), is
absent."""

import collections
import json
import os
import pathlib
import subprocess

import pytest

import trace_reader
from on_wine import BUILD, COMPILER, WINE, under_wine
from reheap_lab import cli

RECORDER = BUILD / "bin" / "reheap-record.dll"
PROGRAM = r"""
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static DWORD WINAPI work(void* ignored) {
  for (int i = 0; i < 100; i++) free(realloc(malloc(1111), 2222));
  return 0;
}

int main(int count, char** words) {
  HANDLE threads[3];
  for (int i = 0; i < 3; i++) threads[i] = CreateThread(NULL, 0, work, NULL, 0, NULL);
  WaitForMultipleObjects(3, threads, TRUE, INFINITE);
  _aligned_free(_aligned_malloc(3333, 64));
  free(calloc(3, 1500));
  free(_strdup("fourteen bytes"));
  if (count == 1) return 7;
  malloc(5555);
  TerminateProcess(GetCurrentProcess(), 9);
}
"""

recorded = pytest.mark.skipif(not RECORDER.exists(), reason="reheap-record.dll is not built")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("recorded")
    source, program = folder / "work.c", folder / "work.exe"
    source.write_text(PROGRAM)
    subprocess.run([COMPILER, "-O1", "-fno-builtin", "-o", program, source], check=True)
    return program


def record(program: pathlib.Path, trace: pathlib.Path, *words: str) -> int:
    command = [WINE, BUILD / "bin" / "reheap.exe", "run", "--require", "--dll", f"Z:{RECORDER}", "--",
               windows_path(program), *words]
    return subprocess.run(command, env={**os.environ, "REHEAP_RECORD": f"Z:{trace}"}, timeout=60).returncode


def windows_path(path: pathlib.Path) -> str:
    return str(path) if ":" in str(path) else f"Z:{path}"


def calls(trace: pathlib.Path) -> collections.Counter:
    """How often each call was made of the sizes that the program alone asks for."""
    events = [event for chunk in trace_reader.read(trace).chunks for event in chunk.events]
    return collections.Counter((event.kind, event.size) for event in events
                               if event.size in (1111, 2222, 3333, 4500, 15, 5555))


EXPECTED = {("malloc", 1111): 300, ("realloc", 2222): 300, ("aligned", 3333): 1, ("calloc", 4500): 1, ("malloc", 15): 1}


@under_wine
@recorded
def test_every_call_is_told_once(program, tmp_path):
    assert record(program, tmp_path / "a.rht") == 7
    made = calls(tmp_path / "a.rht")
    assert {key: made[key] for key in EXPECTED} == EXPECTED


@under_wine
@recorded
def test_a_process_that_ends_abruptly_leaves_a_whole_trace(program, tmp_path):
    assert record(program, tmp_path / "b.rht", "abruptly") == 9
    assert calls(tmp_path / "b.rht")["malloc", 5555] == 1


@under_wine
@recorded
def test_programs_that_are_started_have_traces_of_their_own(program, tmp_path):
    assert record(pathlib.PureWindowsPath(r"C:\windows\system32\cmd.exe"), tmp_path / "c.rht", "/c",
                  f"Z:{program}".replace("/", "\\")) == 7
    others = [path for path in tmp_path.glob("c.*.rht")]
    assert [calls(path)["realloc", 2222] for path in others] == [300]


@under_wine
@recorded
def test_reheap_record(program, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("REHEAP_WINE", f"'{WINE}' --become")
    monkeypatch.setenv("REHEAP_LAB_WINDOWS", str(BUILD))
    trace = tmp_path / "d.rht"
    with pytest.raises(SystemExit) as end:
        cli.main(["record", "-o", str(trace), "--", str(program)])
    assert end.value.code == 7 and str(trace) in capfd.readouterr().err
    made = calls(trace)
    assert {key: made[key] for key in EXPECTED} == EXPECTED
    assert trace_reader.read(trace).header.system == "windows"


@under_wine
@recorded
def test_a_trace_is_replayed_under_wine(program, tmp_path):
    """By the tools that are built for Windows, on the C runtime and on reheap."""
    def run(tool: str, *words: object, before: tuple = ()) -> None:
        subprocess.run([WINE, *before, BUILD / "bin" / tool, *map(str, words)], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)

    assert record(program, tmp_path / "e.rht") == 7
    run("reheap-trace.exe", "compile", f"Z:{tmp_path}/e.rht", "-o", f"Z:{tmp_path}/e.compiled")
    for before in ((), (BUILD / "bin" / "reheap.exe", "run", "--require", "--")):
        run("reheap-replay.exe", f"Z:{tmp_path}/e.compiled", "--out", f"Z:{tmp_path}/e.json", before=before)
        told = json.loads((tmp_path / "e.json").read_text())
        assert told["errors"] == dict.fromkeys(told["errors"], 0)
        assert told["peak_live_bytes"] == pytest.approx(told["recorded"]["peak_live_bytes"], rel=0.01)
