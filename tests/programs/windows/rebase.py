"""Moves a PE file of 64 bits: the image prefers another base, as if it had been linked for that."""

import struct

RELOCATIONS = 5  # among the data directories
ABSOLUTE, DIR64 = 0, 10  # kinds of relocation


class Image:
    def __init__(self, file: bytes):
        self.bytes = bytearray(file)
        start = self.number("<I", 0x3C)
        self.optional = start + 24
        self.sections = [self.optional + self.number("<H", start + 20) + 40 * at
                         for at in range(self.number("<H", start + 6))]
        assert self.number("<H", self.optional) == 0x20B, "not of 64 bits"

    def number(self, layout: str, at: int) -> int:
        return struct.unpack_from(layout, self.bytes, at)[0]

    def offset(self, address: int) -> int:
        """In the file, of an address relative to the base."""
        for section in self.sections:
            size, start, _, at = struct.unpack_from("<IIII", self.bytes, section + 8)
            if start <= address < start + size:
                return address - start + at
        raise ValueError(f"{address:#x} lies in no section")

    def move(self, base: int) -> None:
        old = self.number("<Q", self.optional + 24)
        struct.pack_into("<Q", self.bytes, self.optional + 24, base)
        start, size = struct.unpack_from("<II", self.bytes, self.optional + 112 + 8 * RELOCATIONS)
        assert size, "it cannot be moved"
        at = self.offset(start)
        end = at + size
        while at < end:
            page, length = struct.unpack_from("<II", self.bytes, at)
            for entry in struct.unpack_from(f"<{(length - 8) // 2}H", self.bytes, at + 8):
                self.relocate(entry >> 12, page + (entry & 0xFFF), base - old)
            at += length
        struct.pack_into("<I", self.bytes, self.optional + 64,
                         0)  # its checksum: it has none, the old one would be wrong

    def relocate(self, kind: int, address: int, distance: int) -> None:
        assert kind in (ABSOLUTE, DIR64), kind
        if kind == DIR64:
            at = self.offset(address)
            struct.pack_into("<Q", self.bytes, at, (self.number("<Q", at) + distance) % 2 ** 64)


def rebase(file: bytes, base: int) -> bytes:
    image = Image(file)
    image.move(base)
    return bytes(image.bytes)


def base_of(file: bytes) -> int:
    image = Image(file)
    return image.number("<Q", image.optional + 24)
