"""reheap-record.dll under Wine. Skipped where Wine, or the build for Windows (./dev build windows-x86_64), is
absent."""

import collections
import json
import os
import pathlib
import subprocess

import pytest

import trace_reader
from on_wine import BUILD, COMPILER, WINE, reheap, under_wine
from reheap_lab import native

RECORDER = BUILD / "bin" / "reheap-record.dll"
PROGRAM = r"""
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static char text[4444];

static DWORD WINAPI work(void* ignored) {
  for (int i = 0; i < 100; i++) free(realloc(malloc(1111), 2222));
  return 0;
}

static void use_the_system_heap(void) {
  HANDLE heap = GetProcessHeap(), own = HeapCreate(0, 0, 0);
  HeapFree(heap, 0, HeapReAlloc(heap, 0, HeapAlloc(heap, 0, 6001), 6002));
  HeapFree(heap, 0, HeapAlloc(heap, HEAP_ZERO_MEMORY, 6003));
  LocalFree(LocalAlloc(LMEM_FIXED, 6004));
  for (int i = 0; i < 100; i++) HeapAlloc(own, 0, 6005);
  HeapAlloc(own, 0, 6000000);
  HeapDestroy(own);
}

static void* after[5];

static LONG CALLBACK go_on(EXCEPTION_POINTERS* happened) {
  if (happened->ExceptionRecord->ExceptionCode == STATUS_NO_MEMORY) __builtin_longjmp(after, 1);
  return EXCEPTION_CONTINUE_SEARCH;
}

// An exception leaves the allocation that could not be done.
static void run_out_of_memory(void) {
  AddVectoredExceptionHandler(1, go_on);
  if (__builtin_setjmp(after) == 0) HeapAlloc(GetProcessHeap(), HEAP_GENERATE_EXCEPTIONS, (SIZE_T)1 << 60);
}

int main(int count, char** words) {
  HANDLE threads[3];
  for (int i = 0; i < 3; i++) threads[i] = CreateThread(NULL, 0, work, NULL, 0, NULL);
  WaitForMultipleObjects(3, threads, TRUE, INFINITE);
  _aligned_free(_aligned_malloc(3333, 64));
  free(calloc(3, 1500));
  memset(text, 'x', sizeof text - 1);
  free(_strdup(text));
  use_the_system_heap();
  run_out_of_memory();
  free(malloc(7777));
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


def record(program: pathlib.Path, trace: pathlib.Path, *words: str, layers: str = "both") -> int:
    command = [WINE, BUILD / "bin" / "reheap.exe", "run", "--require", "--dll", f"Z:{RECORDER}", "--",
               windows_path(program), *words]
    settings = {"REHEAP_RECORD": f"Z:{trace}", "REHEAP_RECORD_LAYERS": layers}
    return subprocess.run(command, env={**os.environ, **settings}, timeout=60).returncode


def windows_path(path: pathlib.Path) -> str:
    return str(path) if ":" in str(path) else f"Z:{path}"


def trace_tool() -> str:
    return str(native.program("reheap-trace"))


def events(trace: pathlib.Path) -> list[trace_reader.Event]:
    return [event for chunk in trace_reader.read(trace).chunks for event in chunk.events]


# The sizes are such that the program alone asks for: the system asks for as many bytes as some path is long.
RUNTIME = {("malloc", 1111): 300, ("realloc", 2222): 300, ("calloc", 4500): 1, ("malloc", 4444): 1, ("malloc", 7777): 1}
ALIGNED = {("aligned", 3333): 1}  # of the system's heap a larger block
HEAP = {("malloc", 6001): 1, ("realloc", 6002): 1, ("calloc", 6003): 1, ("malloc", 6004): 1, ("malloc", 6005): 100,
        ("malloc", 6000000): 1}
EXPECTED = {**RUNTIME, **ALIGNED, **HEAP}


def calls(trace: pathlib.Path) -> collections.Counter:
    """How often each call was made of those sizes."""
    made = collections.Counter((event.kind, event.size) for event in events(trace))
    return collections.Counter({call: made[call] for call in [*EXPECTED, ("malloc", 5555)] if made[call]})


@under_wine
@recorded
@pytest.mark.parametrize("layers, code, expected", [("both", 3, EXPECTED), ("crt", 1, {**RUNTIME, **ALIGNED}),
                                                    ("heap", 2, {**RUNTIME, **HEAP})])
def test_every_call_is_told_once(program, tmp_path, layers, code, expected):
    """In a C runtime's call the system heap's is not told too; alone it is."""
    trace = tmp_path / f"{layers}.rht"
    assert record(program, trace, layers=layers) == 7
    assert calls(trace) == collections.Counter(expected)
    header = trace_reader.read(trace).header
    assert header.layers == code
    if layers != "crt":
        # What the system frees of a thread that has ended is that thread's.
        assert header.threads == 4


@under_wine
@recorded
def test_a_heap_that_is_destroyed_frees_its_blocks(program, tmp_path):
    assert record(program, tmp_path / "d.rht") == 7
    told = subprocess.run([trace_tool(), "info", tmp_path / "d.rht"], check=True, capture_output=True, text=True)
    info = json.loads(told.stdout)
    assert info["files"][0]["layers"] == ["crt", "heap"]
    # Nothing is missed: what the system had allocated for the heap itself is freed too.
    assert info["frees"]["missed"] == info["frees"]["of_unknown"] == 0
    assert info["never_freed"]["bytes"] < 300_000


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
def test_reheap_record(program, here, tmp_path, capfd):
    trace = tmp_path / "d.rht"
    status, said = reheap(capfd, "record", "-o", trace, "--", program)
    assert status == 7 and str(trace) in said
    assert calls(trace) == collections.Counter(EXPECTED)
    assert trace_reader.read(trace).header.system == "windows"


@under_wine
@recorded
def test_a_trace_of_windows_is_replayed_on_linux(program, tmp_path):
    assert record(program, tmp_path / "e.rht") == 7
    compiled, told = tmp_path / "e.compiled", tmp_path / "e.json"
    subprocess.run([trace_tool(), "compile", tmp_path / "e.rht", "-o", compiled], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([native.program("reheap-replay"), compiled, "--out", told], check=True)
    said = json.loads(told.read_text())
    assert not any(said["errors"].values())
    assert said["peak_live_bytes"] == pytest.approx(said["recorded"]["peak_live_bytes"], rel=0.01)
