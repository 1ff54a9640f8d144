"""Small static libraries grouped like Microsoft's C runtime, for linking where the real one cannot be had."""

import pathlib
import subprocess

from contract import Crt

TARGET = "x86_64-pc-windows-msvc"


def assemble(folder: pathlib.Path, name: str, defines=(), needs=(), directives=()) -> pathlib.Path:
    """An object that defines some names and refers to others, and does nothing."""
    lines = [".text"]
    lines += [f'.globl "{symbol}"\n"{symbol}": ret' for symbol in defines]
    lines += [".data"] + [f'.quad "{symbol}"' for symbol in needs]
    quoted = [directive.replace('"', r'\"') for directive in directives]
    lines += ['.section .drectve,"yn"'] + [f'.ascii " {directive}"' for directive in quoted]
    target = folder / name
    subprocess.run(["llvm-mc-19", "-filetype=obj", f"-triple={TARGET}", "-o", target, "-"],
                   input="\n".join(lines) + "\n", text=True, check=True)
    return target


def archive(target: pathlib.Path, objects: list[pathlib.Path]) -> pathlib.Path:
    subprocess.run(["llvm-lib-19", "/nologo", f"/out:{target}", *objects], check=True, stdout=subprocess.DEVNULL)
    return target


def build(folder: pathlib.Path, crt: Crt, debug: bool) -> list[pathlib.Path]:
    """The static CRT's libraries, in the order in which a linker reads them."""
    libraries = {"libcmt.lib": start_up(crt, debug), "libvcruntime.lib": [], "libucrt.lib": ucrt(crt, debug)}
    known = {name for each in crt.objects for name in each["defines"]}
    for library, names in crt.facts["provided"].items():
        libraries[library] += [(f"{library}{number}.obj", [name], [])
                               for number, name in enumerate(names) if name not in known]
    return [archive(folder / library, [assemble(folder, *each) for each in objects])
            for library, objects in libraries.items()]


def start_up(crt: Crt, debug: bool) -> list[tuple]:
    """What runs before main; and operator new and delete, each an object of its own."""
    needs = crt.facts["start_up"]["needs_debug" if debug else "needs"]
    forms = [(f"new_delete{number}.obj", [name], ["malloc", "free"])
             for number, name in enumerate(crt.families["new and delete"])]
    return [("exe_main.obj", ["mainCRTStartup"], needs), *forms]


def ucrt(crt: Crt, debug: bool) -> list[tuple]:
    return [(each["object"], each["defines"], each.get("needs_debug", each["needs"]) if debug else each["needs"])
            for each in crt.objects if debug or "only" not in each]
