#!/usr/bin/env python3
"""What reheap.dll and reheap.exe say of themselves in their headers: test_images.py DLL EXE MODULE_DEFINITION"""

import pathlib
import struct
import sys

I386, AMD64, ARM64 = 0x14C, 0x8664, 0xAA64
HIGH_ENTROPY, DYNAMIC_BASE, NX_COMPAT = 0x20, 0x40, 0x100
EXPORTS, IMPORTS, RELOCATIONS, THREAD_LOCAL = 0, 1, 5, 9
OF_MICROSOFTS_RUNTIME = 0x180000000


class Image:
    def __init__(self, path: str):
        self.bytes = pathlib.Path(path).read_bytes()
        self.header = self.read("I", 0x3C) + 4
        self.machine, sections = self.read("HH", self.header)
        optional = self.header + 20
        self.wide = self.read("H", optional) == 0x20B
        self.base = self.read("Q", optional + 24) if self.wide else self.read("I", optional + 28)
        self.flags = self.read("H", optional + 70)
        self.directories = optional + (112 if self.wide else 96)
        table = optional + self.read("H", self.header + 16)
        strings, symbols = self.read("II", self.header + 8)
        self.strings = strings + 18 * symbols
        self.names = [self.section_name(table + 40 * number) for number in range(sections)]
        self.sections = [self.read("IIII", table + 40 * number + 8) for number in range(sections)]

    def read(self, form: str, offset: int):
        values = struct.unpack_from("<" + form, self.bytes, offset)
        return values[0] if len(values) == 1 else values

    def section_name(self, at: int) -> str:
        """Of more than eight letters in the table of strings, behind the symbols."""
        name = self.bytes[at:at + 8].rstrip(b"\0").decode()
        if not name.startswith("/"):
            return name
        start = self.strings + int(name[1:])
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def offset(self, address: int) -> int:
        """Where in the file that lies which is loaded at an address from the base."""
        for _, start, size, place in self.sections:
            if start <= address < start + size:
                return place + address - start
        raise AssertionError(f"nothing lies at {address:#x}")

    def text(self, address: int) -> str:
        start = self.offset(address)
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def directory(self, number: int) -> tuple:
        return self.read("II", self.directories + 8 * number)

    def imported(self) -> set:
        names, at = set(), self.offset(self.directory(IMPORTS)[0])
        while name := self.read("I", at + 12):
            names.add(self.text(name).lower())
            at += 20
        return names

    def exported(self) -> dict:
        """Name -> ordinal."""
        at = self.offset(self.directory(EXPORTS)[0])
        base, _, count, _, names, ordinals = self.read("IIIIII", at + 16)
        names, ordinals = self.offset(names), self.offset(ordinals)
        return {self.text(self.read("I", names + 4 * number)): base + self.read("H", ordinals + 2 * number)
                for number in range(count)}


def flaws(image: Image):
    """Of either."""
    wanted = {"DYNAMIC_BASE": DYNAMIC_BASE, "NX_COMPAT": NX_COMPAT}
    if image.wide:
        wanted["HIGH_ENTROPY_VA"] = HIGH_ENTROPY
    for name, flag in wanted.items():
        if not image.flags & flag:
            yield f"lacks {name}"
    if image.machine not in (I386, AMD64, ARM64):
        yield f"is for the unknown machine {image.machine:#x}"
    if not image.directory(RELOCATIONS)[1]:
        yield "can be loaded at its base alone"
    if any(name.startswith(".debug") for name in image.names):
        yield "has debug information for every process to load"


def flaws_of_library(image: Image, definition: str):
    yield from flaws(image)
    # Anything else could be a C runtime, or load one, before its functions are replaced.
    if others := image.imported() - {"kernel32.dll", "ntdll.dll"}:
        yield f"imports {', '.join(sorted(others))}"
    if image.base == OF_MICROSOFTS_RUNTIME:
        yield "takes the place of Microsoft's runtime"
    if image.directory(THREAD_LOCAL)[1]:
        yield "has thread-local storage of the compiler's"
    lines = pathlib.Path(definition).read_text().split("EXPORTS", 1)[1].split("\n")
    names = {line.split()[0] for line in lines if line.strip()}
    exported = image.exported()
    if names != set(exported):
        yield f"exports {sorted(set(exported) - names)} too many, {sorted(names - set(exported))} too few"
    if exported.get("rh_redirect_report") != 1:
        yield "has another function than rh_redirect_report at ordinal 1"


def main() -> int:
    library, program, definition = sys.argv[1:]
    found = [f"{library} {flaw}" for flaw in flaws_of_library(Image(library), definition)]
    found += [f"{program} {flaw}" for flaw in flaws(Image(program))]
    if Image(library).machine != Image(program).machine:
        found.append("the two are for different machines")
    print("\n".join(found) or "as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
