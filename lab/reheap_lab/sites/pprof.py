"""Writes a profile as pprof reads it: github.com/google/pprof/blob/main/proto/profile.proto, gzip'd."""

import bisect
import gzip
from collections.abc import Iterable

from reheap_lab.sites.functions import short
from reheap_lab.sites.images import Module
from reheap_lab.sites.kinds import FIGURES
from reheap_lab.sites.profile import Profile, Stack
from reheap_lab.sites.symbols import Place

# Name, unit, and the figure. pprof shows the last one unless it is told; ours is told.
SAMPLE_TYPES = (("alloc_objects", "count", "allocations"), ("alloc_space", "bytes", "bytes"),
                ("temporary_objects", "count", "temporary"), ("temporary_space", "bytes", "temporary_bytes"),
                ("inuse_objects", "count", "never_freed"), ("inuse_space", "bytes", "never_freed_bytes"),
                ("peak_objects", "count", "at_peak"), ("peak_space", "bytes", "at_peak_bytes"))


def encode(profile: Profile, comments: list[str]) -> bytes:
    return gzip.compress(_Writer(profile).profile(comments), mtime=0)


class _Writer:
    """Field numbers are those of profile.proto."""

    def __init__(self, profile: Profile):
        self._profile = profile
        self._strings = {"": 0}
        self._functions: dict[tuple, int] = {}
        self._locations: dict[tuple[int, int], int] = {}
        self._parts: list[bytes] = []
        self._modules = sorted(profile.modules, key=lambda module: module.start)
        self._starts = [module.start for module in self._modules]
        self._known: dict[str, list[Place]] = {}
        for place in {place for places in profile.places_at.values() for place in places if place.named}:
            self._known.setdefault(place.module, []).append(place)

    def profile(self, comments: list[str]) -> bytes:
        samples = [self._sample(stack, row) for stack, row in zip(self._profile.stacks, self._profile.values)]
        types = [_field(1, _field(1, self._string(name)) + _field(2, self._string(unit)))
                 for name, unit, _ in SAMPLE_TYPES]
        period_type = _field(11, _field(1, self._string("space")) + _field(2, self._string("bytes")))
        ends = [period_type, _field(12, self._profile.every_bytes or 1),
                *(_field(13, self._string(comment)) for comment in comments),
                _field(14, self._string("peak_space"))]
        mappings = [self._mapping(number, module) for number, module in enumerate(self._modules, 1)]
        strings = [_field(6, text.encode("utf-8", "replace")) for text in self._strings]
        return b"".join([*types, *samples, *mappings, *self._parts, *strings, *ends])

    def _sample(self, stack: Stack, row) -> bytes:
        locations = [self._location(*frame) for frame in stack.frames]
        values = [round(row[FIGURES.index(figure)]) for _, _, figure in SAMPLE_TYPES]
        return _field(2, _packed(1, locations) + _packed(2, values))

    def _location(self, address: int, skipped: int) -> int:
        key = (address, skipped)
        if key not in self._locations:
            self._locations[key] = len(self._locations) + 1
            mapping = self._mapping_of(address)
            lines = [_field(4, _field(1, self._function(place)) + _field(2, place.line))
                     for place in self._profile.places_at[address][skipped:] if place.named]
            self._parts.append(_field(4, b"".join([_field(1, self._locations[key]), _field(2, mapping),
                                                   _field(3, address), *lines])))
        return self._locations[key]

    def _function(self, place: Place) -> int:
        key = (short(place.function), place.mangled, place.file)  # as pprof itself writes names
        if key not in self._functions:
            self._functions[key] = len(self._functions) + 1
            names = [_field(number, self._string(text)) for number, text in enumerate(key, 2)]
            self._parts.append(_field(5, _field(1, self._functions[key]) + b"".join(names)))
        return self._functions[key]

    def _mapping_of(self, address: int) -> int:
        place = bisect.bisect_right(self._starts, address) - 1
        return place + 1 if place >= 0 and address < self._modules[place].end else 0

    def _mapping(self, number: int, module: Module) -> bytes:
        places = self._known.get(module.path, [])
        flags = (bool(places), any(place.file for place in places), any(place.line for place in places),
                 any(place.line for place in places))
        return _field(3, b"".join([
            _field(1, number), _field(2, module.start), _field(3, module.end), _field(4, module.file_offset),
            _field(5, self._string(module.path)), _field(6, self._string(module.build_id)),
            *(_field(at, int(flag)) for at, flag in enumerate(flags, 7))]))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


# ---- protocol buffers -------------------------------------------------------------------------

def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _packed(number: int, values: Iterable[int]) -> bytes:
    return _field(number, b"".join(map(_varint, values)))


def _varint(value: int) -> bytes:
    coded = bytearray()
    while value > 0x7F:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    coded.append(value)
    return bytes(coded)
