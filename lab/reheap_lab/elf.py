"""As much of an ELF file as tells whether a process can load it."""

import os
import pathlib
import re
import stat
import struct
import subprocess
from dataclasses import dataclass

from reheap_lab.errors import UsageError

MACHINES = {3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64",
            243: "riscv", 258: "loongarch"}


INTERPRETER = 3  # PT_INTERP


@dataclass(frozen=True)
class Kind:
    bits: int
    machine: int
    little: bool

    def __str__(self) -> str:
        return f"{self.bits}-bit {MACHINES.get(self.machine, f'machine {self.machine}')}"


def kind(path: pathlib.Path) -> Kind | None:
    """None for what is no ELF file. OSError passes to the caller."""
    with open(path, "rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        return None
    little = head[5] == 1
    (machine,) = struct.unpack_from("<H" if little else ">H", head, 18)
    return Kind(32 * head[4], machine, little)


def loader(path: pathlib.Path) -> str | None:
    """The program that loads it and its libraries; None when it is statically linked."""
    found = kind(path)
    with open(path, "rb") as file:
        text = file.read(1 << 16)  # the headers stand at the beginning
    if found is None:
        return None
    order, wide = "<" if found.little else ">", found.bits == 64
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), text, 32 if wide else 28)
    size, count = struct.unpack_from(order + "2H", text, 54 if wide else 42)
    for at in range(table, min(table + size * count, len(text) - size + 1), size or 1):
        (type_,) = struct.unpack_from(order + "I", text, at)
        if type_ == INTERPRETER:
            offset, length = struct.unpack_from(order + ("Q16xQ" if wide else "I8xI"), text, at + (8 if wide else 4))
            return text[offset:offset + length].split(b"\0")[0].decode(errors="replace")
    return None


def out_of_reach(path: pathlib.Path) -> str | None:
    """Why a process that runs this program loads nothing that LD_PRELOAD names; None when the file does not tell."""
    try:
        found, facts = kind(path), os.stat(path)
        if found is None:
            return None
        if found != own():
            return f"it is a {found} program, and the libraries are {own()}"
        if (its_loader := loader(path)) is None:
            return "it is statically linked"
        if its_loader != loader(pathlib.Path("/proc/self/exe")):
            return f"it has another loader ({its_loader})"
        gains = stat.S_ISUID * (facts.st_uid != os.geteuid()) | stat.S_ISGID * (facts.st_gid != os.getegid())
        if facts.st_mode & gains or os.geteuid() and "security.capability" in os.listxattr(path):
            return "it runs with other rights (setuid, setgid, or capabilities of its file)"
    except (OSError, struct.error):
        return None
    return "it was started without LD_PRELOAD, or may not write into the lab's folder"


def check_program(path: pathlib.Path) -> None:
    """Says why what the lab preloads would keep this program from starting, if it would."""
    try:
        its_loader, here = loader(path), loader(pathlib.Path("/proc/self/exe"))
    except (OSError, struct.error):
        return  # it may be executed, but not read
    if its_loader and "ld-musl" in its_loader and its_loader != here:
        raise UsageError(f"{path} is a program for musl ({its_loader}), and what the lab preloads is for glibc. Give "
                         "one for glibc; reheap run and reheap doctor take it as it is")


def brought_by(path: pathlib.Path) -> list[pathlib.Path]:
    """The libraries that the loader loads for it, as it says itself; none when it cannot be asked."""
    try:
        said = subprocess.run(["ldd", path], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [pathlib.Path(found) for found in re.findall(r"(/\S+) \(0x", said)]


def own() -> Kind | None:
    return kind(pathlib.Path("/proc/self/exe"))


def check_library(name: str, path: pathlib.Path, wanted: Kind | None) -> None:
    """Says why a process of the wanted kind cannot load `path`, if it cannot."""
    try:
        found = kind(path)
    except FileNotFoundError:
        raise UsageError(f"{name}: there is no {path}. "
                         f"Give the library's path: --with {name}=/path/to/lib.so") from None
    except PermissionError:
        raise UsageError(f"{name}: {path} cannot be read. Allow it: chmod a+r {path}") from None
    except OSError as error:
        raise UsageError(f"{name}: {path}: {error.strerror}. Give the path of a shared library") from None
    if found is None:
        raise UsageError(f"{name}: {path} is no shared library (not an ELF file). A linker script or an archive cannot "
                         "be preloaded: give the .so it stands for")
    if wanted and found != wanted:
        raise UsageError(f"{name}: {path} is for {found}, the command for {wanted}. Give a library of the command's "
                         f"kind")
