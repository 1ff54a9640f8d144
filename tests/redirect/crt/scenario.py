#!/usr/bin/env python3
"""Runs a program with the DLLs it needs beside it.

--runtime: the system's C runtime DLLs if empty, or what tools/fetch_windows.py calls by this name as ucrtbase.dll.
--first: the DLL is moved to the head of the program's import table, so that it is the first to be attached."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/support")]
import fetch_windows  # noqa: E402
import pe  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulator", default="")
    parser.add_argument("--runtime", default="")
    parser.add_argument("--first", default="")
    parser.add_argument("--beside", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("arguments", nargs="*")
    asked = parser.parse_args()
    environment = {**os.environ, "REHEAP_VERBOSE": "1"}
    with tempfile.TemporaryDirectory(prefix="reheap-redirect-") as folder:
        for file in [asked.program, *asked.beside]:
            shutil.copy(file, folder)
        if asked.first:
            program = pe.Image(asked.program.read_bytes())
            program.put_first(asked.first)
            (pathlib.Path(folder) / asked.program.name).write_bytes(program.bytes)
        if asked.runtime:
            shutil.copy(fetch_windows.fetch(asked.runtime) / "ucrtbase.dll", folder)
            environment["WINEDLLOVERRIDES"] = "ucrtbase=n,b"
        command = [*asked.emulator.split(";"), asked.program.name] if asked.emulator else [
            str(pathlib.Path(folder) / asked.program.name)]
        return subprocess.run([*command, *asked.arguments], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
