#!/usr/bin/env python3
"""What the files made for macOS say of themselves: test_macos.py OBJDUMP NM PROCESSOR EXPECTED LIBRARY PROGRAM…

EXPECTED is the list of libreheap.so's names, of which ours (rh_…) are libreheap.dylib's. The programs are one linked
with libreheap.a, one with libreheap.dylib, and one with libreheap-core.a."""

import pathlib
import re
import struct
import subprocess
import sys

PROCESSORS = {"arm64": 0x100000C, "x86_64": 0x1000007}
DYLIB = 6  # kinds of files
SEGMENT, LOAD_DYLIB, ID_DYLIB, SIGNATURE, BUILD_VERSION = 0x19, 0xC, 0xD, 0x1D, 0x32  # kinds of load commands
MACOS, OLDEST = 1, (13, 0)
SYSTEM = "/usr/lib/libSystem.B.dylib"
OF_ZIGS_LINKER = {"__mh_dylib_header", "___dso_handle"}
INTERPOSED = ["malloc", "calloc", "realloc", "reallocf", "valloc", "aligned_alloc", "posix_memalign", "free"]


class MachO:
    """A 64-bit file, as far as it is looked at."""

    def __init__(self, path: str):
        self.bytes = pathlib.Path(path).read_bytes()
        magic, self.processor, _, self.kind, count, _ = struct.unpack_from("<6I", self.bytes)
        if magic != 0xFEEDFACF:
            raise SystemExit(f"{path}: no 64-bit Mach-O file, but {magic:#x}")
        self.commands, at = [], 32
        for _ in range(count):
            kind, size = struct.unpack_from("<2I", self.bytes, at)
            self.commands.append((kind, self.bytes[at:at + size]))
            at += size

    def all(self, wanted: int) -> list:
        return [command for kind, command in self.commands if kind == wanted]

    def names(self, wanted: int) -> list:
        """Of libraries."""
        return [command[struct.unpack_from("<I", command, 8)[0]:].rstrip(b"\0").decode()
                for command in self.all(wanted)]

    def built_for(self) -> tuple:
        platform, oldest = struct.unpack_from("<2I", self.all(BUILD_VERSION)[0], 8)
        return platform, (oldest >> 16, oldest >> 8 & 0xFF)

    def section(self, name: str) -> tuple:
        """Its address, and what it holds."""
        for command in self.all(SEGMENT):
            for at in range(72, len(command), 80):
                found, _, address, size, offset = struct.unpack_from("<16s16sQQI", command, at)
                if found.rstrip(b"\0").decode() == name:
                    return address, self.bytes[offset:offset + size]
        return 0, b""


def told(tool: str, *arguments: str) -> str:
    return subprocess.run([tool, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def bound(objdump: str, path: str) -> dict:
    """From where dyld writes an address to the library it is of and its name."""
    table = told(objdump, "--macho", "--bind", "--lazy-bind", path)
    return {int(place, 16): (library, name) for place, library, name in re.findall(
        r"^\S+\s+\S+\s+0x(\w+)\s+(?:pointer\s+\d+\s+)?(\S+)\s+(\S+)", table, re.MULTILINE)}


def flaws_of_any(file: MachO, processor: str):
    if file.processor != PROCESSORS[processor]:
        yield f"is for processor {file.processor:#x}"
    if file.built_for() != (MACOS, OLDEST):
        yield f"is for system and version {file.built_for()}, not {(MACOS, OLDEST)}"
    if processor == "arm64" and not file.all(SIGNATURE):
        yield "is not signed: Apple's processors run nothing unsigned"


def flaws_of_library(path: str, objdump: str, nm: str, processor: str, expected: set):
    file = MachO(path)
    yield from flaws_of_any(file, processor)
    if file.kind != DYLIB:
        yield f"is a file of kind {file.kind}, no library"
    if file.names(ID_DYLIB) != ["@rpath/libreheap.0.dylib"]:
        yield f"is called {file.names(ID_DYLIB)} by those that link it"
    if file.names(LOAD_DYLIB) != [SYSTEM]:
        yield f"needs {file.names(LOAD_DYLIB)}, not {SYSTEM} alone"
    if str(pathlib.Path(path).resolve().parents[1]).encode() in file.bytes:
        yield "tells the folder it was made in"
    exported = set(re.findall(r"^0x\w+\s+(\S+)", told(objdump, "--macho", "--exports-trie", path), re.MULTILINE))
    if exported - OF_ZIGS_LINKER != expected:
        yield f"exports {exported - expected - OF_ZIGS_LINKER} too many, {expected - exported} too few"
    places = bound(objdump, path)
    if others := {(library, name) for library, name in places.values() if library != "libSystem"}:
        yield f"takes {others} from others than libSystem"
    missing = set(told(nm, "--undefined-only", "--format=just-symbols", path).split()) - {n for _, n in places.values()}
    if missing:
        yield f"has names that nothing binds: {missing}"
    if "__tlv_bootstrap" in {name for _, name in places.values()}:
        yield "has thread-local variables of the compiler's, whose first use allocates"
    yield from flaws_of_pairs(file, places, told(nm, path))


def flaws_of_pairs(file: MachO, places: dict, symbols: str):
    """Each pair is where a function of ours is, and which one dyld puts it in the place of."""
    named = re.findall(r"^(\w+) t .*?\d+our_(\w+?)E", symbols, re.MULTILINE)
    addresses = {int(place, 16): name for place, name in named}
    start, pairs = file.section("__interpose")
    if len(pairs) != 16 * len(INTERPOSED):
        yield f"interposes {len(pairs) / 16} functions, not {len(INTERPOSED)}"
    for number, name in enumerate(INTERPOSED[:len(pairs) // 16]):
        ours = addresses.get(struct.unpack_from("<Q", pairs, 16 * number)[0])
        theirs = places.get(start + 16 * number + 8)
        if (ours, theirs) != (name, ("libSystem", f"_{name}")):
            yield f"puts its {ours} in the place of {theirs}, where {name} is to be"


def flaws_of_program(path: str, nm: str, processor: str, wanted: tuple, unwanted: tuple, needs: list):
    file = MachO(path)
    yield from flaws_of_any(file, processor)
    if file.names(LOAD_DYLIB) != needs:
        yield f"needs {file.names(LOAD_DYLIB)}, not {needs}"
    symbols = told(nm, path)
    yield from (f"has no {name}" for name in wanted if name not in symbols)
    yield from (f"has {name}" for name in unwanted if name in symbols)


def main() -> int:
    objdump, nm, processor, names, library, by_archive, by_library, by_core = sys.argv[1:]
    expected = {f"_{name}" for name in pathlib.Path(names).read_text().split("\n") if re.fullmatch(r"rh_\w+", name)}
    found = [f"{library} {flaw}" for flaw in flaws_of_library(library, objdump, nm, processor, expected)]
    start, zone = ("on_load",), ("stand_first",)
    for path, wanted, unwanted, needs in (
            (by_archive, start + zone, (), [SYSTEM]),
            (by_library, (), start + zone, ["@rpath/libreheap.0.dylib", SYSTEM]),
            (by_core, (*start, "_pthread_atfork"), zone, [SYSTEM])):
        found += [f"{path} {flaw}" for flaw in flaws_of_program(path, nm, processor, wanted, unwanted, needs)]
    print("\n".join(found) or f"{library}: {len(expected)} names, {len(INTERPOSED)} interposed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
