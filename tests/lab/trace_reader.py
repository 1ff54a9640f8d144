"""A second decoder of trace files, written from docs/trace-format.md. It checks everything and is in no hurry."""

import dataclasses
import heapq
import pathlib
import struct

KINDS = {1: "malloc", 2: "calloc", 3: "aligned", 4: "free", 5: "free", 6: "realloc", 7: "failed",
         8: "thread start", 9: "thread end"}
STACK, FRAME, MODULE = 10, 11, 12
ALLOCATING = (1, 2, 3, 6)
MASK = (1 << 64) - 1


class Damaged(Exception):
    """Says what is wrong with the file."""


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass
class Event:
    kind: str
    thread: int
    time: int
    begin: int = 0
    address: int = 0
    old_address: int = 0
    size: int = 0
    alignment: int = 0
    resident_kib: int | None = None
    asked: str = ""
    stack: int | None = None


@dataclasses.dataclass
class Frame:
    parent: int
    module: int
    offset: int


@dataclasses.dataclass
class Module:
    start: int
    end: int
    file_offset: int
    build_id: bytes
    path: bytes


@dataclasses.dataclass
class Header:
    pointer_bytes: int
    page_bytes: int
    forked: bool
    clock: int
    process: int
    parent: int
    begin: tuple[int, int]
    fork_ticks: int
    system: str
    command: list[str]
    latest: tuple[int, int]
    chunks: int
    lost: int
    stopped: int
    ended: bool
    threads: int
    stack_bytes: int | None
    layers: int

    @property
    def tick_seconds(self) -> float:
        return (self.latest[1] - self.begin[1]) / (self.latest[0] - self.begin[0]) * 1e-9


@dataclasses.dataclass
class Chunk:
    state: int
    stream: int
    sequence: int
    events: list[Event]
    frames: dict[int, Frame]
    modules: dict[int, Module]


@dataclasses.dataclass
class Trace:
    header: Header
    chunks: list[Chunk]
    complaints: list[str]

    @property
    def events(self) -> list[Event]:
        return [event for chunk in self.chunks for event in chunk.events]

    def stack(self, number: int) -> list[tuple[int, int]]:
        """Each frame's module and its offset there, the innermost first."""
        frames = {key: frame for chunk in self.chunks for key, frame in chunk.frames.items()}
        found = []
        while number != 1:
            found.append((frames[number].module, frames[number].offset))
            if frames[number].parent >= number:
                raise Damaged(f"stack {number} is its own parent")
            number = frames[number].parent
        return found

    @property
    def modules(self) -> dict[int, Module]:
        return {key: module for chunk in self.chunks for key, module in chunk.modules.items()}


def read_header(data: bytes) -> tuple[Header, int, int]:
    """The header, its size, and the size of a chunk."""
    if len(data) < 4096 or data[:8] != b"REHEAPTR":
        raise Damaged("not a trace file")
    version, header_bytes, chunk_bytes, pointer, page, flags, clock, command_bytes = struct.unpack_from("<8I", data, 8)
    if version not in (1, 2) or (version == 1 and flags & 2):
        raise Damaged(f"version {version} is not known")
    if struct.unpack_from("<I", data, 3948)[0] != crc32c(data[:3948]):
        raise Damaged("the header's checksum is wrong")
    process, parent, _, ticks, nanoseconds, fork_ticks = struct.unpack_from("<6Q", data, 40)
    late_ticks, late_nanoseconds, chunks, lost, stopped, ended, threads = struct.unpack_from("<4Q3I", data, 3952)
    stack_bytes = struct.unpack_from("<I", data, 3944)[0]
    command = data[120:120 + command_bytes].decode(errors="replace").split("\0")[:-1]
    header = Header(pointer, page, bool(flags & 1), clock, process, parent, (ticks, nanoseconds), fork_ticks,
                    data[88:104].rstrip(b"\0").decode(), command, (late_ticks, late_nanoseconds),
                    chunks, lost, stopped, bool(ended), threads, stack_bytes if flags & 2 else None, flags >> 2 & 3)
    return header, header_bytes, chunk_bytes


class Numbers:
    """Takes one number after the other off the bytes of a chunk."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0
        self.steps = 0

    def number(self) -> int:
        if self.at >= len(self.data):
            raise Damaged("an event is cut off")
        first = self.data[self.at]
        if first == 0:
            size, value = 9, int.from_bytes(self.data[self.at + 1:self.at + 9], "little")
        else:
            size = (first & -first).bit_length()
            value = int.from_bytes(self.data[self.at:self.at + size], "little") >> size
        self.at += size
        if self.at > len(self.data):
            raise Damaged("an event is cut off")
        return value

    def address(self) -> int:
        folded = self.number()
        self.steps = (self.steps + ((folded >> 1) ^ -(folded & 1))) & MASK
        return ((self.steps << 3) | (self.steps >> 61)) & MASK


    def text(self) -> bytes:
        size = self.number()
        self.at += size
        if self.at > len(self.data):
            raise Damaged("an event is cut off")
        return self.data[self.at - size:self.at]


def read_events(data: bytes, ticks: int, thread: int, chunk: Chunk) -> None:
    numbers, stack = Numbers(data), None
    while numbers.at < len(data):
        head = numbers.number()
        ticks += head >> 4
        code = head & 15
        if stack is not None and code not in ALLOCATING:
            raise Damaged(f"a stack stands before an event of kind {code}")
        if code == STACK:
            stack = numbers.number()
            continue
        if code == FRAME:
            number = numbers.number()
            chunk.frames[number] = Frame(number - numbers.number(), numbers.number(), numbers.number())
            continue
        if code == MODULE:
            number, start, size = numbers.number(), numbers.number(), numbers.number()
            chunk.modules[number] = Module(start, start + size, numbers.number(), numbers.text(), numbers.text())
            continue
        if code not in KINDS:
            raise Damaged(f"no event is of kind {code}")
        event = Event(KINDS[code], thread, ticks, begin=ticks, stack=stack)
        stack = None
        if code == 6:
            event.begin = ticks - numbers.number()
            event.old_address = numbers.address()
        if code == 7:
            event.asked = KINDS[numbers.number()]
        if code <= 6:
            event.address = numbers.address()
        if code in (1, 2, 3, 6, 7):
            event.size = numbers.number()
        if code == 3:
            event.alignment = 1 << numbers.number()
        if code == 5:
            event.resident_kib = numbers.number()
        if code == 8:
            thread = event.thread = numbers.number()
        chunk.events.append(event)
    if stack is not None:
        raise Damaged("a stack stands before nothing")


def read_chunk(data: bytes) -> Chunk | None:
    """None for a chunk that nothing was written to."""
    magic, state, stream, sequence, thread, used, count, checksum = struct.unpack_from("<4s7I", data)
    if state == 0:
        return None
    if magic != b"RHCK" or state > 2 or 64 + used > len(data):
        raise Damaged("this is no chunk")
    if state == 2 and crc32c(data[:28] + b"\0\0\0\0" + data[32:64 + used]) != checksum:
        raise Damaged("wrong checksum")
    chunk = Chunk(state, stream, sequence, [], {}, {})
    read_events(data[64:64 + used], struct.unpack_from("<Q", data, 32)[0], thread, chunk)
    if state == 2 and len(chunk.events) != count:
        raise Damaged(f"{count} events announced, {len(chunk.events)} found")
    return chunk


def read(path: pathlib.Path) -> Trace:
    data = pathlib.Path(path).read_bytes()
    header, at, chunk_bytes = read_header(data)
    trace = Trace(header, [], [])
    for at in range(at, len(data), chunk_bytes):
        piece = data[at:at + chunk_bytes]
        try:
            chunk = read_chunk(piece) if len(piece) >= 64 else None
        except Damaged as damage:
            trace.complaints.append(f"chunk at {at}: {damage}")
            continue
        if chunk:
            trace.chunks.append(chunk)
    return trace


def merged(trace: Trace) -> list[tuple[int, int, str, int, Event]]:
    """All steps by time: (ticks, 0 for a release or 1, "release" or "acquire", address, event)."""
    streams: dict[int, list] = {}
    for chunk in trace.chunks:
        steps = streams.setdefault(chunk.stream, [])
        for event in chunk.events:
            steps.extend(steps_of(event))
    return list(heapq.merge(*streams.values(), key=lambda step: step[:2]))


def steps_of(event: Event):
    if event.kind == "free":
        yield event.time, 0, "release", event.address, event
    if event.kind == "realloc":
        yield event.begin, 0, "release", event.old_address, event
    if event.kind in ("malloc", "calloc", "aligned", "realloc"):
        yield event.time, 1, "acquire", event.address, event
