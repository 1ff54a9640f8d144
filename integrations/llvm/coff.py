"""Reads static libraries of COFF objects: what each object defines, needs, and asks of the linker."""

import dataclasses
import pathlib
import struct

MACHINES = {0x8664: "x86_64", 0x014C: "i686", 0xAA64: "arm64", 0xA641: "arm64ec"}

EXTERNAL, STATIC, WEAK = 2, 3, 105  # storage classes
COMDAT = 0x1000  # a section that may be there more than once
ALONE = 1  # but not this kind of it


class Unreadable(Exception):
    """Not a static library of COFF objects."""


@dataclasses.dataclass
class Object:
    name: str
    machine: str
    defines: set[str] = dataclasses.field(default_factory=set)  # this object only may define these
    shares: set[str] = dataclasses.field(default_factory=set)  # others may define these as well (inline functions)
    needs: set[str] = dataclasses.field(default_factory=set)
    weak: set[str] = dataclasses.field(default_factory=set)  # defined here unless somebody else does
    directives: list[str] = dataclasses.field(default_factory=list)

    def asked(self, option: str) -> list[str]:
        """The values of one linker option, such as /INCLUDE:, in the object's directives."""
        values = []
        for word in self.directives:
            name, _, value = word[1:].partition(":")
            if word[:1] in "/-" and name.lower() == option.lower():
                values.append(value.strip('"'))
        return values


def library(path: pathlib.Path) -> list[Object]:
    data = path.read_bytes()
    if data[:8] != b"!<arch>\n":
        raise Unreadable(f"{path} is not a static library")
    try:
        objects = [coff_object(name, content) for name, content in members(data)]
    except (struct.error, IndexError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    if not objects:
        raise Unreadable(f"{path} holds no object")
    return objects


def members(data: bytes):
    """(name, content) of each object in an archive."""
    names, position = b"", 8
    while position + 60 <= len(data):
        name = data[position:position + 16].rstrip()
        size = int(data[position + 48:position + 58])
        content = data[position + 60:position + 60 + size]
        position += 60 + size + size % 2
        if name == b"//":
            names = content
        elif name not in (b"/", b"/SYM64/", b"/<ECSYMBOLS>/"):
            yield member_name(name, names), content


def member_name(name: bytes, names: bytes) -> str:
    if name[:1] == b"/":
        start = int(name[1:])
        name = names[start:].split(b"\0")[0].split(b"\n")[0]
    return name.decode().rstrip("/").replace("\\", "/").rpartition("/")[2]


def coff_object(name: str, data: bytes) -> Object:
    machine, sections, _, table, count, optional, _ = struct.unpack_from("<HHIIIHH", data)
    header, entry, number = 20 + optional, 18, "<h"
    if machine == 0 and sections == 0xFFFF:  # more than 65,279 sections, or -mbig-obj
        machine = struct.unpack_from("<H", data, 6)[0]
        sections, table, count = struct.unpack_from("<III", data, 44)
        header, entry, number = 56, 20, "<i"
    if machine not in MACHINES:
        raise ValueError(f"{name} is no COFF object for a machine known here")
    found = Object(name, MACHINES[machine])
    strings = table + count * entry
    flags = [struct.unpack_from("<I", data, header + 40 * index + 36)[0] for index in range(sections)]
    read_symbols(found, data, (table, count, entry, number), strings, flags)
    for index in range(sections):
        read_directives(found, data, header + 40 * index)
    return found


def read_symbols(found: Object, data: bytes, where: tuple, strings: int, flags: list[int]) -> None:
    table, count, entry, number = where
    alone = set()  # sections that may be there once
    index = 0
    while index < count:
        at = table + index * entry
        value = struct.unpack_from("<I", data, at + 8)[0]
        section = struct.unpack_from(number, data, at + 12)[0]
        storage, extra = data[at + entry - 2], data[at + entry - 1]
        name = symbol_name(data, at, strings)
        if storage == STATIC and extra and value == 0 and section > 0:
            if data[at + entry + 14] == ALONE or not flags[section - 1] & COMDAT:
                alone.add(section)
        elif storage == WEAK:
            found.weak.add(name)
        elif storage == EXTERNAL and section == 0 and value == 0:
            found.needs.add(name)
        elif storage == EXTERNAL and (section <= 0 or section in alone or not flags[section - 1] & COMDAT):
            found.defines.add(name)
        elif storage == EXTERNAL:
            found.shares.add(name)
        index += 1 + extra


def symbol_name(data: bytes, at: int, strings: int) -> str:
    raw = data[at:at + 8]
    if raw[:4] == b"\0\0\0\0":
        start = strings + struct.unpack_from("<I", raw, 4)[0]
        raw = data[start:data.index(b"\0", start)]
    return raw.rstrip(b"\0").decode()


def read_directives(found: Object, data: bytes, header: int) -> None:
    if data[header:header + 8] == b".drectve":
        size, start = struct.unpack_from("<II", data, header + 16)
        found.directives += data[start:start + size].decode("utf-8", "replace").lstrip("\ufeff").strip(" \0").split()
