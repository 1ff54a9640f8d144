#!/usr/bin/env python3
"""Runs a program with the DLLs it needs beside it.

--runtime: the system's C runtime DLLs if empty, or what tools/fetch_windows.py calls by this name as ucrtbase.dll.
--first: the DLL is moved to the head of the program's import table, so that it is the first to be attached."""

import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import fetch_windows  # noqa: E402


DESCRIPTOR = struct.Struct("<5I")  # of one imported DLL; the fourth number is its name's address


class Program:
    """A PE file's bytes, as far as its imports need it."""

    def __init__(self, path: pathlib.Path):
        self.bytes = bytearray(path.read_bytes())
        headers = self.number(0x3C, 4) + 4
        optional = headers + 20
        directories = optional + (112 if self.number(optional, 2) == 0x20B else 96)
        self.imports = self.number(directories + 8, 4)
        sections = optional + self.number(headers + 16, 2)
        self.sections = [[self.number(at + offset, 4) for offset in (8, 12, 20)]
                         for at in range(sections, sections + 40 * self.number(headers + 2, 2), 40)]

    def number(self, offset: int, size: int) -> int:
        return int.from_bytes(self.bytes[offset:offset + size], "little")

    def offset(self, address: int) -> int:
        """Where in the file lies what is mapped at the address."""
        for size, begin, offset in self.sections:
            if begin <= address < begin + size:
                return address - begin + offset
        raise ValueError(f"{address:#x} lies in no section")

    def name(self, address: int) -> str:
        begin = self.offset(address)
        return self.bytes[begin:self.bytes.index(0, begin)].decode()

    def descriptors(self) -> list[tuple]:
        found = []
        begin = self.offset(self.imports)
        while any(entry := DESCRIPTOR.unpack_from(self.bytes, begin + DESCRIPTOR.size * len(found))):
            found.append(entry)
        return found

    def put_first(self, library: str) -> None:
        ordered = sorted(self.descriptors(), key=lambda entry: self.name(entry[3]).lower() != library)
        if self.name(ordered[0][3]).lower() != library:
            raise ValueError(f"the program does not import {library}")
        for index, entry in enumerate(ordered):
            DESCRIPTOR.pack_into(self.bytes, self.offset(self.imports) + DESCRIPTOR.size * index, *entry)


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
            program = Program(asked.program)
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
