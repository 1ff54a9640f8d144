"""The file of a module as it was recorded, where its debug information is, and what its symbol tables say."""

import bisect
import io
import lzma
import pathlib
import zlib
from dataclasses import dataclass

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

DEBUG = pathlib.Path("usr/lib/debug")
PAGE = 4096
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_SYMBOL = {32: np.dtype([("name", "u4"), ("value", "u4"), ("size", "u4"), ("info", "u1"), ("other", "u1"),
                         ("section", "u2")]),
           64: np.dtype([("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"),
                         ("size", "u8")])}


class Nameless(Exception):
    """Why there are no names of a module: its text ends the sentence "no names of libx.so: …"."""


@dataclass(frozen=True)
class Module:
    """What the trace says of a file that was mapped into the process."""

    path: str
    start: int
    end: int
    file_offset: int
    build_id: str


class Image:
    """A module's file. Addresses are those that its symbol tables use."""

    def __init__(self, module: Module, recorded_s: float, root: pathlib.Path):
        self.path = _file_of(module, root)
        self._root = root
        try:
            with open(self.path, "rb") as file:
                elf = ELFFile(file)
                _check_unchanged(module, elf, self.path, recorded_s)
                self._bias = module.start - _address_of_start(module, elf)
                self._read(elf)
        except (ELFError, ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise Nameless("its file is damaged") from None  # whatever the library stumbles over
        except OSError as error:
            raise Nameless(f"its file cannot be read ({error.strerror})") from None

    def address(self, in_process: int) -> int:
        return in_process - self._bias

    def _read(self, elf: ELFFile) -> None:
        parts = [elf]
        if packed := elf.get_section_by_name(".gnu_debugdata"):
            parts.append(ELFFile(io.BytesIO(lzma.decompress(packed.data()))))
        separate = None if _has_lines(elf) else _separate_debug(elf, self.path, self._root)
        if separate is None:
            self._finish(elf, parts)
            return
        with open(separate, "rb") as file:
            debug = ELFFile(file)
            self._finish(debug, [*parts, debug])
        self.lines_in = separate if self.lines_in else None

    def _finish(self, debug: ELFFile, parts: list[ELFFile]) -> None:
        self.lines_in = self.path if _has_lines(debug) else None  # the file to ask for lines, if any has them
        self.shares_debug = debug.get_section_by_name(".gnu_debugaltlink") is not None
        self.symbols = Symbols(parts)
        self._starts = _unwound_functions(parts[0])

    def function_at(self, address: int) -> int:
        """Where the function begins that has no name, so that its parts can be put together; else the address."""
        place = int(np.searchsorted(self._starts, address, "right")) - 1
        return int(self._starts[place]) if place >= 0 else address


class Symbols:
    """The functions of symbol tables, by address."""

    def __init__(self, parts: list[ELFFile]):
        found = [row for part in parts for table in (".symtab", ".dynsym") for row in _functions(part, table)]
        # Of several names for one function the last is taken: exported, with few underscores, short.
        found.sort(key=lambda row: (row[0], row[2], len(row[3].lstrip("_")) - len(row[3]), -len(row[3])))
        self._starts, self._found = [row[0] for row in found], found

    def name(self, address: int) -> str | None:
        place = bisect.bisect_right(self._starts, address) - 1
        for start, size, _, name in reversed(self._found[max(0, place - 8):place + 1]):  # some lie within others
            if address < start + size or (size == 0 and start == self._starts[place]):
                return name
        return None


def _functions(elf: ELFFile, table: str) -> list[tuple[int, int, bool, str]]:
    """(address, size, exported, name)"""
    section = elf.get_section_by_name(table)
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return []
    layout = _SYMBOL[elf.elfclass].newbyteorder("<" if elf.little_endian else ">")
    raw = section.data()
    rows = np.frombuffer(raw, layout, len(raw) // layout.itemsize)
    rows = rows[np.isin(rows["info"] & 15, _FUNCTIONS) & (rows["section"] != 0)]
    strings = elf.get_section(section["sh_link"]).data()
    return [(int(row["value"]), int(row["size"]), bool(row["info"] >> 4),
             _string(strings, int(row["name"])).partition("@")[0]) for row in rows]


def _unwound_functions(elf: ELFFile) -> np.ndarray:
    """The functions' addresses, in order, from the table that unwinding searches; no strip removes it. None where it is
    not as every linker writes it: pairs of 32 bits, relative to itself (DW_EH_PE_datarel | DW_EH_PE_sdata4)."""
    section = elf.get_section_by_name(".eh_frame_hdr")
    raw = section.data() if section and section["sh_type"] != "SHT_NOBITS" else b""
    if len(raw) < 12 or raw[0] != 1 or raw[2:4] != b"\x03\x3b":
        return np.empty(0, np.int64)
    order = "<" if elf.little_endian else ">"
    count = min(int(np.frombuffer(raw, f"{order}u4", 1, 8)[0]), (len(raw) - 12) // 8)
    return np.frombuffer(raw, f"{order}i4", 2 * count, 12)[::2].astype(np.int64) + section["sh_addr"]


def _string(table: bytes, offset: int) -> str:
    return table[offset:table.find(b"\0", offset)].decode("utf-8", "replace")


# ---- is it the file that was recorded? --------------------------------------------------------

def _file_of(module: Module, root: pathlib.Path) -> pathlib.Path:
    if not module.path.startswith("/"):
        raise Nameless("it is no file")
    bare = module.path.removesuffix(" (deleted)")  # as the kernel marks it
    for name in (module.path, bare, bare.replace(r"\012", "\n")):  # and as it writes the end of a line
        path = root / name.removeprefix("/")
        if path.is_file():
            return path
    raise Nameless("its file is gone")


def _check_unchanged(module: Module, elf: ELFFile, path: pathlib.Path, recorded_s: float) -> None:
    if module.build_id:
        changed = _build_id(elf) != module.build_id.lower()
    else:
        changed = path.stat().st_mtime > recorded_s
    if changed:
        raise Nameless("its file has changed since the recording")


def _build_id(elf: ELFFile) -> str:
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return note["n_desc"]
    return ""


def _address_of_start(module: Module, elf: ELFFile) -> int:
    """The module's `start`, as the file numbers its addresses. `start` is where the page at `file_offset` was mapped;
    linkers let two segments share that page, and then the length of the mapping says which one is meant."""
    loads = [segment.header for segment in elf.iter_segments("PT_LOAD")]
    there = [load for load in loads if _page(load.p_offset) == _page(module.file_offset)]
    inside = [load for load in loads if load.p_offset <= module.file_offset < load.p_offset + load.p_filesz]
    length = module.end - module.start
    of_length = [load for load in there
                 if _page(load.p_vaddr + load.p_memsz + PAGE - 1) - _page(load.p_vaddr) == length]
    for load in of_length + there + inside:
        return load.p_vaddr - load.p_offset + module.file_offset
    raise Nameless("its file has nothing at the offset that was mapped")


def _page(address: int) -> int:
    return address // PAGE * PAGE


# ---- debug information ------------------------------------------------------------------------

def _has_lines(elf: ELFFile) -> bool:
    return any(elf.get_section_by_name(name) for name in (".debug_info", ".zdebug_info"))


def _separate_debug(elf: ELFFile, path: pathlib.Path, root: pathlib.Path) -> pathlib.Path | None:
    """The file with what was stripped, where distributions and debuggers have it."""
    build_id = _build_id(elf)
    if build_id:
        found = root / DEBUG / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        if found.is_file():
            return found
    link = elf.get_section_by_name(".gnu_debuglink")
    if link is None:
        return None
    name = _string(link.data(), 0)
    crc = int.from_bytes(link.data()[-4:], "little" if elf.little_endian else "big")
    real = path.resolve()
    below = real.parent.relative_to(root.resolve()) if real.is_relative_to(root.resolve()) else pathlib.Path()
    places = (real.parent / name, real.parent / ".debug" / name, root / DEBUG / below / name)
    return next((place for place in places if place != real and _is_its(place, build_id, crc)), None)


def _is_its(place: pathlib.Path, build_id: str, crc: int) -> bool:
    if not place.is_file():
        return False
    if not build_id:
        return zlib.crc32(place.read_bytes()) == crc
    with open(place, "rb") as file:
        return _build_id(ELFFile(file)) == build_id
