"""Reads a profile that the library itself wrote (docs/profiles.md), into the form in which `reheap-trace sites` tells
of a trace."""

import gzip
import pathlib
import zlib
from collections.abc import Iterator

from reheap_lab.errors import UsageError
from reheap_lab.sites.kinds import FIGURES

FUNCTION, CURVE = 5, 8000  # fields that only an export has, only the library writes
LARGEST = 64 << 20  # unpacked; the library's have a few
# The library's sample types, and what the figures are called here. The others' are not known.
NAMES = {"alloc_objects": "allocations", "alloc_space": "bytes", "inuse_objects": "never_freed",
         "inuse_space": "never_freed_bytes", "peak_objects": "at_peak", "peak_space": "at_peak_bytes",
         "lifetime": "lifetime_ms", "samples": "sampled"}
NOT_EXPORTED = {"lifetime", "samples"}


def read(path: pathlib.Path) -> dict:
    try:
        message = _Message(_unpacked(path))
        if message.all(FUNCTION) and set(NAMES) - set(_types(message)) == NOT_EXPORTED:
            raise UsageError(f"{path} was written by --export, for pprof and others; "
                             "what can be read is the profile that REHEAP_PROFILE names")
        return _found(message)
    except (EOFError, IndexError, KeyError, ValueError, UnicodeDecodeError, zlib.error, gzip.BadGzipFile) as why:
        raise UsageError(f"{path} is no profile of reheap's, or is cut off: {why}") from why


def _unpacked(path: pathlib.Path) -> bytes:
    """A few bytes may unpack to more than there is memory."""
    with gzip.open(path) as file:
        coded = file.read(LARGEST + 1)
    if len(coded) > LARGEST:
        raise ValueError(f"it holds more than {LARGEST >> 20} MiB")
    return coded


def _strings(message: "_Message") -> list[str]:
    return [text.decode("utf-8", "replace") for text in message.all(6)]


def _types(message: "_Message") -> list[str]:
    strings = _strings(message)
    return [strings[_Message(one).number(1)] for one in message.all(1)]


def _found(message: "_Message") -> dict:
    strings, types = _strings(message), _types(message)
    if not set(NAMES) <= set(types):
        raise ValueError("it lacks " + " ".join(sorted(set(NAMES) - set(types))))
    addresses = {one.number(1): one.number(3) for one in map(_Message, message.all(4))}
    frames = {number: place for place, number in enumerate(addresses)}
    stacks = [_stack(_Message(one), types, frames) for one in message.all(2)]
    return {"recorded": True, "live": True, "every_bytes": message.number(12),
            "duration_ms": message.number(10) // 1_000_000,
            "frames": [hex(address + 1) for address in addresses.values()],  # where the calls return to
            "modules": [_module(_Message(one), strings) for one in message.all(3)],
            "stacks": stacks, "totals": {name: sum(stack[name] for stack in stacks) for name in FIGURES},
            "curve": [_pair(point) for point in message.all(CURVE)],
            "comments": [strings[number] for number in message.numbers(13)]}


def _pair(point: bytes) -> tuple[int, int]:
    time, live = _varints(point)
    return time, live


def _stack(sample: "_Message", types: list[str], frames: dict[int, int]) -> dict:
    values = dict(zip(types, _varints(sample.bytes(2)), strict=True))
    row = dict.fromkeys(FIGURES, 0) | {NAMES[name]: value for name, value in values.items() if name in NAMES}
    freed = row["allocations"] - row["never_freed"]
    lifetime_ms = row.pop("lifetime_ms")
    # The clock has a few milliseconds: of shorter lives nothing is known.
    lived = {"lifetime_us": 1000 * lifetime_ms / freed} if freed > 0 and lifetime_ms else {}
    return {"frames": [frames[number] for number in _varints(sample.bytes(1))], **row, **lived}


def _module(mapping: "_Message", strings: list[str]) -> dict:
    return {"path": strings[mapping.number(5)], "start": hex(mapping.number(2)), "end": hex(mapping.number(3)),
            "file_offset": hex(mapping.number(4)), "build_id": strings[mapping.number(6)]}


# ---- protocol buffers -------------------------------------------------------------------------

class _Message:
    """Its fields, by their numbers."""

    def __init__(self, coded: bytes):
        self._fields: dict[int, list] = {}
        numbers = _Numbers(coded)
        while numbers.more():
            key, value = numbers.next(), numbers.next()
            if key & 7 == 2:
                value = numbers.bytes(value)
            elif key & 7 != 0:
                raise ValueError(f"a field of type {key & 7}")
            self._fields.setdefault(key >> 3, []).append(value)

    def all(self, field: int) -> list[bytes]:
        return self._of(field, bytes)

    def numbers(self, field: int) -> list[int]:
        return self._of(field, int)

    def number(self, field: int) -> int:
        return [0, *self.numbers(field)][-1]

    def bytes(self, field: int) -> bytes:
        return [b"", *self.all(field)][-1]

    def _of(self, field: int, kind: type) -> list:
        values = self._fields.get(field, [])
        if not all(isinstance(value, kind) for value in values):
            raise ValueError(f"field {field} is of another type")
        return values


class _Numbers:
    def __init__(self, coded: bytes):
        self._coded, self._at = coded, 0

    def more(self) -> bool:
        return self._at < len(self._coded)

    def next(self) -> int:
        value = shift = 0
        while True:
            byte = self._coded[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def bytes(self, length: int) -> bytes:
        self._at += length
        if self._at > len(self._coded):
            raise EOFError("it ends in the middle of a field")
        return self._coded[self._at - length:self._at]


def _varints(coded: bytes) -> Iterator[int]:
    numbers = _Numbers(coded)
    while numbers.more():
        yield numbers.next()
