"""The headers of PE files."""

import struct

EXPORTS, IMPORTS, RESOURCES, SIGNATURE, RELOCATIONS, DEBUG, THREAD_LOCAL = 0, 1, 2, 4, 5, 6, 9
LOAD_CONFIG, BOUND_IMPORTS = 10, 11
SHADOW_STACKS = 1  # among the characteristics that do not fit into the header
DESCRIPTOR = 20  # bytes, of an imported DLL
ABSOLUTE, DIR64 = 0, 10  # kinds of relocation


class Image:
    """A PE file, as far as a test looks at it or changes it."""

    def __init__(self, file: bytes):
        self.bytes = bytearray(file)
        self.header = self.read("I", 0x3C) + 4
        self.machine, sections = self.read("HH", self.header)
        self.optional = optional = self.header + 20
        self.wide = self.read("H", optional) == 0x20B
        self.base = self.read("Q", optional + 24) if self.wide else self.read("I", optional + 28)
        self.flags = self.read("H", optional + 70)
        self.directories = optional + (112 if self.wide else 96)
        table = optional + self.read("H", self.header + 16)
        strings, symbols = self.read("II", self.header + 8)
        self.strings = strings + 18 * symbols
        self.headers = [table + 40 * number for number in range(sections)]
        self.sections = [self.read("IIII", header + 8) for header in self.headers]

    def read(self, form: str, offset: int):
        values = struct.unpack_from("<" + form, self.bytes, offset)
        return values[0] if len(values) == 1 else values

    def write(self, form: str, offset: int, *values: int) -> None:
        struct.pack_into("<" + form, self.bytes, offset, *values)

    def section_names(self) -> list:
        return [self._section_name(header) for header in self.headers]

    def _section_name(self, at: int) -> str:
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

    def imports(self) -> list:
        """Where the descriptor of each imported DLL is in the file, and its name."""
        found, at = [], self.offset(self.directory(IMPORTS)[0])
        while name := self.read("I", at + 12):
            found.append((at, self.text(name).lower()))
            at += DESCRIPTOR
        return found

    def exported(self) -> dict:
        """Name -> ordinal."""
        at = self.offset(self.directory(EXPORTS)[0])
        base, _, count, _, names, ordinals = self.read("IIIIII", at + 16)
        names, ordinals = self.offset(names), self.offset(ordinals)
        return {self.text(self.read("I", names + 4 * number)): base + self.read("H", ordinals + 2 * number)
                for number in range(count)}

    def exported_functions(self) -> dict:
        """Name -> where it lies, from the base."""
        at = self.offset(self.directory(EXPORTS)[0])
        first, functions = self.read("I", at + 16), self.offset(self.read("I", at + 28))
        return {name: self.read("I", functions + 4 * (ordinal - first)) for name, ordinal in self.exported().items()}

    def guarded(self) -> list:
        """The functions that control-flow guard lets be called by pointer, from the base; of 64 bits."""
        place, size = self.directory(LOAD_CONFIG)
        if size < 0x94:
            return []
        at = self.offset(place)
        table, count, flags = self.read("QQI", at + 0x80)
        stride = 4 + (flags >> 28)
        begin = self.offset(table - self.base)
        return [self.read("I", begin + stride * number) for number in range(count)]

    def more_characteristics(self) -> int:
        """Those that an entry among the debuggers' tells; 0 without one."""
        place, size = self.directory(DEBUG)
        for entry in range(0, size, 28):
            kind, _, _, data = self.read("IIII", self.offset(place) + entry + 12)
            if kind == 20:
                return self.read("I", data)
        return 0

    def pointers(self) -> list:
        """All that relocations say is one: where they lead, from the base."""
        start, size = self.directory(RELOCATIONS)
        at, found = self.offset(start), []
        end = at + size
        while at < end:
            page, length = self.read("II", at)
            for entry in struct.unpack_from(f"<{(length - 8) // 2}H", self.bytes, at + 8):
                if entry >> 12 == DIR64:
                    found.append(self.read("Q", self.offset(page + (entry & 0xFFF))) - self.base)
            at += length
        return found

    def put_first(self, library: str) -> None:
        """Moves an imported DLL to the head of the table: it is then the first to be attached."""
        places = [at for at, _ in self.imports()]
        ordered = sorted(self.imports(), key=lambda entry: entry[1] != library)
        if ordered[0][1] != library:
            raise ValueError(f"the program does not import {library}")
        descriptors = [self.bytes[at:at + DESCRIPTOR] for at, _ in ordered]
        for at, descriptor in zip(places, descriptors):
            self.bytes[at:at + DESCRIPTOR] = descriptor

    def move(self, base: int) -> None:
        """It prefers another base, as if it had been linked for that."""
        assert self.wide, "not of 64 bits"
        distance = base - self.base
        self.write("Q", self.optional + 24, base)
        self.base = base
        start, size = self.directory(RELOCATIONS)
        assert size, "it cannot be moved"
        at = self.offset(start)
        end = at + size
        while at < end:
            page, length = self.read("II", at)
            for entry in struct.unpack_from(f"<{(length - 8) // 2}H", self.bytes, at + 8):
                self._relocate(entry >> 12, page + (entry & 0xFFF), distance)
            at += length
        self.write("I", self.optional + 64, 0)  # its checksum: it has none, the old one would be wrong

    def _relocate(self, kind: int, address: int, distance: int) -> None:
        assert kind in (ABSOLUTE, DIR64), kind
        if kind == DIR64:
            at = self.offset(address)
            self.write("Q", at, (self.read("Q", at) + distance) % 2 ** 64)

    # ---- the checksum -------------------------------------------------------------------------

    def checksum(self) -> int:
        return self.read("I", self.optional + 64)

    def right_checksum(self) -> int:
        words = bytearray(self.bytes + b"\0" * (len(self.bytes) % 2))
        words[self.optional + 64:self.optional + 68] = bytes(4)
        total = sum(struct.unpack(f"<{len(words) // 2}H", words))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return total + len(self.bytes)
