"""Gives addresses names: functions and lines, with what was inlined. Offline, module by module."""

import bisect
import os
import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass

from reheap_lab.sites.functions import base, printable, short
from reheap_lab.sites.images import Image, Module, Nameless

# Both print an address, and then a function and a place for each function inlined there, the innermost first.
_LLVM = ("llvm-symbolizer", "--output-style=GNU", "--addresses", "--functions=linkage", "--inlines", "--no-demangle",
         "--obj")
_GNU = ("addr2line", "-a", "-f", "-i", "-e")
_OFFLINE = {"DEBUGINFOD_URLS": "", "LC_ALL": "C"}
_PLACE = re.compile(r"(.*?):([0-9?]+)(?: \(discriminator [0-9]+\))?", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Place:
    """Somewhere in the program's source; as much of it as is known. There is one object for each, so that a million
    stacks' places are compared at once."""

    function: str
    mangled: str
    file: str  # "" when not known
    line: int  # 0 when not known
    module: str
    named: bool = True  # else `function` is the module and an offset

    @property
    def where(self) -> str:
        """a.c:12, else the module's file name."""
        if self.file:
            return f"{base(self.file)}:{self.line}" if self.line else base(self.file)
        return base(self.module)

    @property
    def said(self) -> str:
        """f (a.c:12), in as few words as it takes."""
        return f"{short(self.function)} ({self.where})" if self.named else self.function


class Symbolizer:
    """Names of addresses in a process. What cannot be named, and why, is in `notes` afterwards."""

    def __init__(self, modules: list[Module], recorded_s: float, root: pathlib.Path):
        self._modules = sorted(modules, key=lambda module: module.start)
        self._starts = [module.start for module in self._modules]
        self._recorded_s, self._root = recorded_s, root
        self.notes: list[str] = []

    def module_at(self, address: int) -> Module | None:
        place = bisect.bisect_right(self._starts, address) - 1
        return self._modules[place] if place >= 0 and address < self._modules[place].end else None

    def name(self, addresses: list[int]) -> dict[int, tuple[Place, ...]]:
        """Each address's places, the innermost first: several where functions are inlined, and never none."""
        by_module: dict[Module | None, list[int]] = {}
        for address in addresses:
            by_module.setdefault(self.module_at(address), []).append(address)
        rows = {address: found for module, inside in by_module.items()
                for address, found in self._of_module(module, inside).items()}
        plain = demangle({row[0] for found in rows.values() for row in found})
        places = {row: Place(plain[row[0]], *row) for found in rows.values() for row in found}
        return {address: tuple(places[row] for row in found) for address, found in rows.items()}

    def _of_module(self, module: Module | None, addresses: list[int]) -> dict[int, list[tuple]]:
        if module is None or not module.path:  # code made while the program ran
            return {address: [(f"{address:#x}", "", 0, "", False)] for address in addresses}
        try:
            image = Image(module, self._recorded_s, self._root)
        except Nameless as why:
            self._note(module, str(why))
            return {address: [_nameless(module, address - module.start + module.file_offset)] for address in addresses}
        within = {address: image.address(address) for address in addresses}
        lines = _ask_for_lines(image, sorted(set(within.values()))) if image.lines_in else {}
        named = {address: _rows(module, image, inside, lines.get(inside, [])) for address, inside in within.items()}
        if not any(found[0][4] for found in named.values()):
            self._note(module, "it has been stripped of its symbols, and no debug information is installed")
        return named

    def _note(self, module: Module, why: str) -> None:
        if module.path.startswith("/"):  # of [vdso] nobody expects names
            self.notes.append(f"no names of {base(module.path)}: {why}")


def _rows(module: Module, image: Image, address: int, lines: list[tuple[str, str, int]]) -> list[tuple]:
    """The arguments of each Place. The outermost function has a symbol, also where debug information has no name."""
    symbol = image.symbols.name(address)
    nameless = _nameless(module, image.function_at(address))
    if not lines:
        return [(symbol, "", 0, module.path, True) if symbol else nameless]
    found = [(function, file, line, module.path, True) for function, file, line in lines]
    return [row if row[0] else (symbol, *row[1:]) if symbol else nameless for row in found]


def _nameless(module: Module, offset: int) -> tuple:
    return (f"{base(module.path)}+{offset:#x}", "", 0, module.path, False)


# ---- lines ------------------------------------------------------------------------------------

def _ask_for_lines(image: Image, addresses: list[int]) -> dict[int, list[tuple[str, str, int]]]:
    """(function, file, line) of each; nothing where no tool could tell. LLVM's is the faster one, but does not follow
    the links by which Debian's debug packages share what they have in common."""
    for tool in (_GNU, _LLVM) if image.shares_debug else (_LLVM, _GNU):
        program = shutil.which(tool[0])
        if program is None:
            continue
        done = subprocess.run([program, *tool[1:], str(image.lines_in)], text=True, errors="replace",
                              input="".join(f"{address:#x}\n" for address in addresses), capture_output=True,
                              env=os.environ | _OFFLINE)
        if done.returncode == 0 and (found := _parse(done.stdout)):
            return found
    return {}


def _parse(printed: str) -> dict[int, list[tuple[str, str, int]]]:
    found: dict[int, list] = {}
    into: list[tuple[str, str, int]] = []
    lines = iter(filter(None, printed.splitlines()))  # LLVM's puts an empty one behind each address
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            into = found.setdefault(int(line, 16), [])
            continue
        place = next(lines, "")
        while not (match := _PLACE.fullmatch(place)) and (more := next(lines, None)):  # of a folder's name
            place += "\n" + more
        file, number = match.groups() if match else ("", "0")
        function = line.partition("@")[0]  # without the version of a symbol
        into.append((function if function != "??" else "", file if file != "??" else "",
                     int(number) if number.isdigit() else 0))
    return {address: rows for address, rows in found.items() if any(function or file for function, file, _ in rows)}


# ---- names ------------------------------------------------------------------------------------

_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$|\[[0-9a-f]{16}\]")  # of a function, of a crate


def demangle(names: set[str]) -> dict[str, str]:
    """As the source has them, where a demangler is installed; else as they are."""
    mangled = sorted(name for name in names if name.startswith(("_Z", "_R")))
    tool = shutil.which("c++filt") or shutil.which("llvm-cxxfilt")
    plain = mangled
    if mangled and tool:
        done = subprocess.run([tool], input="\n".join(mangled) + "\n", capture_output=True, text=True, errors="replace")
        told = done.stdout.splitlines()
        plain = told if len(told) == len(mangled) else mangled
    return {name: printable(name) for name in names} | {
        name: printable(_RUST_HASH.sub("", said)) for name, said in zip(mangled, plain)}
