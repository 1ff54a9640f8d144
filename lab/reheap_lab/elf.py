"""As much of an ELF file as tells whether a process can load it."""

import pathlib
import re
import struct
import subprocess
from dataclasses import dataclass

from reheap_lab.errors import UsageError

MACHINES = {3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64",
            243: "riscv", 258: "loongarch"}


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
