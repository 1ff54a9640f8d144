#!/usr/bin/env python3
"""What reheap.dll and reheap.exe say of themselves in their headers: test_images.py DLL EXE MODULE_DEFINITION [GUARDED]

GUARDED is reheap-guarded.dll, which another preset builds."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pe import RELOCATIONS, SHADOW_STACKS, THREAD_LOCAL, Image  # noqa: E402

I386, AMD64, ARM64 = 0x14C, 0x8664, 0xAA64
HIGH_ENTROPY, DYNAMIC_BASE, NX_COMPAT, GUARD_CF = 0x20, 0x40, 0x100, 0x4000
EXECUTABLE, WRITABLE = 0x20000000, 0x80000000  # sections
OF_MICROSOFTS_RUNTIME = 0x180000000


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
    for name, header in zip(image.section_names(), image.headers):
        if (rights := image.read("I", header + 36)) & EXECUTABLE and rights & WRITABLE:
            yield f"has code in {name} that can be written"
    if any(name.startswith(".debug") for name in image.section_names()):
        yield "has debug information for every process to load"


def flaws_of_library(image: Image, definition: str):
    yield from flaws(image)
    # Anything else could be a C runtime, or load one, before its functions are replaced.
    if others := {name for _, name in image.imports()} - {"kernel32.dll", "ntdll.dll"}:
        yield f"imports {', '.join(sorted(others))}"
    if image.base == OF_MICROSOFTS_RUNTIME:
        yield "takes the place of Microsoft's runtime"
    if image.directory(THREAD_LOCAL)[1]:
        yield "has thread-local storage of the compiler's"
    if ".eh_frame" in image.section_names():
        yield "has tables for unwinding that nobody reads"
    lines = pathlib.Path(definition).read_text().split("EXPORTS", 1)[1].split("\n")
    names = {line.split()[0] for line in lines if line.strip()}
    exported = image.exported()
    if names != set(exported):
        yield f"exports {sorted(set(exported) - names)} too many, {sorted(names - set(exported))} too few"
    if exported.get("rh_redirect_report") != 1:
        yield "has another function than rh_redirect_report at ordinal 1"


def code_of(image: Image):
    return [range(start, start + size) for (size, start, _, _), header in zip(
        (image.read("IIII", header + 8) for header in image.headers), image.headers)
        if image.read("I", header + 36) & EXECUTABLE]


def flaws_of_guarded(image: Image, definition: str):
    yield from flaws_of_library(image, definition)
    if not image.flags & GUARD_CF:
        yield "lacks GUARD_CF"
    if not image.more_characteristics() & SHADOW_STACKS:
        yield "is not made for shadow stacks"
    if image.checksum() != image.right_checksum():
        yield "has a wrong checksum"
    table, code = image.guarded(), code_of(image)
    if table != sorted(set(table)):
        yield "has a table that is not in order"

    def is_code(place: int) -> bool:
        return any(place in part for part in code)

    if others := [place for place in table if not is_code(place)]:
        yield f"lets be called what is no code: {others}"
    wanted = {name: place for name, place in image.exported_functions().items() if is_code(place)}
    wanted |= {f"what a pointer leads to, {place:#x}": place for place in image.pointers() if is_code(place)}
    wanted["the entry point"] = image.read("I", image.optional + 16)
    if missing := [name for name, place in wanted.items() if place not in set(table)]:
        yield f"does not let be called {', '.join(missing)}"


def main() -> int:
    library, program, definition, *guarded = sys.argv[1:]
    images = [Image(pathlib.Path(file).read_bytes()) for file in (library, program)]
    found = [f"{library} {flaw}" for flaw in flaws_of_library(images[0], definition)]
    found += [f"{program} {flaw}" for flaw in flaws(images[1])]
    for file in guarded:
        found += [f"{file} {flaw}" for flaw in flaws_of_guarded(Image(pathlib.Path(file).read_bytes()), definition)]
    if images[0].machine != images[1].machine:
        found.append("the two are for different machines")
    print("\n".join(found) or "as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
