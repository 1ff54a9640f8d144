#!/usr/bin/env python3
"""What reheap.dll and reheap.exe say of themselves in their headers: test_images.py DLL EXE MODULE_DEFINITION"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pe import RELOCATIONS, THREAD_LOCAL, Image  # noqa: E402

I386, AMD64, ARM64 = 0x14C, 0x8664, 0xAA64
HIGH_ENTROPY, DYNAMIC_BASE, NX_COMPAT = 0x20, 0x40, 0x100
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
    lines = pathlib.Path(definition).read_text().split("EXPORTS", 1)[1].split("\n")
    names = {line.split()[0] for line in lines if line.strip()}
    exported = image.exported()
    if names != set(exported):
        yield f"exports {sorted(set(exported) - names)} too many, {sorted(names - set(exported))} too few"
    if exported.get("rh_redirect_report") != 1:
        yield "has another function than rh_redirect_report at ordinal 1"


def main() -> int:
    library, program, definition = sys.argv[1:]
    images = [Image(pathlib.Path(file).read_bytes()) for file in (library, program)]
    found = [f"{library} {flaw}" for flaw in flaws_of_library(images[0], definition)]
    found += [f"{program} {flaw}" for flaw in flaws(images[1])]
    if images[0].machine != images[1].machine:
        found.append("the two are for different machines")
    print("\n".join(found) or "as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
