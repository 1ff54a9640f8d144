"""What tests of programs for Windows need: Wine, the build of this repository for Windows, and a program."""

import pathlib
import shutil
import struct
import subprocess

import pytest

from reheap_lab import cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "windows-x86_64"
WINE = ROOT / "tools" / "wine"
COMPILER = "x86_64-w64-mingw32-gcc"
PARTS = ("reheap.exe", "reheap.dll", "reheap-runner.exe")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void allocate(void) {
  for (int i = 0; i < 1000; i++) {
    volatile char* block = malloc(10000);
    block[9999] = 1;
    free((void*)block);
  }
}

static DWORD start(char* program) {
  STARTUPINFOA startup = {sizeof startup};
  PROCESS_INFORMATION made;
  DWORD status = 99;
  if (!CreateProcessA(program, NULL, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &made)) return status;
  WaitForSingleObject(made.hProcess, INFINITE);
  GetExitCodeProcess(made.hProcess, &status);
  return status;
}

int main(int count, char** words) {
  if (count > 1 && strcmp(words[1], "start-alone") == 0) SetEnvironmentVariableA("REHEAP_STATS", NULL);
  if (count > 1 && strncmp(words[1], "start", 5) == 0) return start(words[0]);
  for (int i = 1; i < count; i++) printf("[%s]", words[i]);
  printf("%s\n", getenv("LAB_WORD") ? getenv("LAB_WORD") : "");
  fflush(stdout);
  DWORD began = GetTickCount();
  do allocate();
  while (GetTickCount() - began < 300);
  if (count > 1 && strcmp(words[1], "hang") == 0) Sleep(INFINITE);
  return 1000;
}
"""


def missing() -> str:
    if not (shutil.which("wine64") or shutil.which("wine") or pathlib.Path("/usr/lib/wine/wine64").exists()):
        return "Wine is not installed"
    if not all((BUILD / "bin" / part).exists() for part in PARTS):
        return "build/windows-x86_64 is not built"
    return "" if shutil.which(COMPILER) else f"{COMPILER} is not installed"


under_wine = pytest.mark.skipif(bool(missing()), reason=missing() or "here")


def build_program(folder: pathlib.Path) -> pathlib.Path:
    source, program = folder / "work.c", folder / "work.exe"
    source.write_text(PROGRAM)
    subprocess.run([COMPILER, "-O1", "-o", program, source], check=True)
    return program


def reheap(capsys, *words) -> tuple[int, str]:
    """The lab's command: its exit status, and what it said."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(word) for word in words])
    said = capsys.readouterr()
    return end.value.code, said.out + said.err


def pe_file(path: pathlib.Path, machine: int) -> pathlib.Path:
    path.write_bytes(b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", machine) + bytes(200))
    return path
