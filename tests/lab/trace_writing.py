"""Writes trace files from Python: an encoder of its own, so that reader and writer do not share their mistakes.

Times are nanoseconds. One stream per thread unless `streams` says otherwise; see docs/trace-format.md.
"""

import pathlib
import struct

CHUNK = 65536
PAYLOAD = CHUNK - 64
(MALLOC, CALLOC, ALIGNED, FREE, FREE_MEASURED, REALLOC, FAILED, THREAD_START, THREAD_END, STACK, FRAME,
 MODULE) = range(1, 13)

_TABLE = []
for _byte in range(256):
    _value = _byte
    for _ in range(8):
        _value = (_value >> 1) ^ (0x82F63B78 if _value & 1 else 0)
    _TABLE.append(_value)


def crc32c(data: bytes, before: int = 0) -> int:
    crc = ~before & 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return ~crc & 0xFFFFFFFF


def number(value: int) -> bytes:
    if value >> 56:
        return b"\0" + struct.pack("<Q", value)
    count = max(1, (value.bit_length() + 6) // 7)
    return ((value * 2 + 1) << (count - 1)).to_bytes(count, "little")


def fold(difference: int) -> int:
    difference &= 2**64 - 1
    return (difference << 1 & 2**64 - 1) ^ (2**64 - 1 if difference >> 63 else 0)


class Stream:
    def __init__(self, thread: int):
        self.thread = thread
        self.chunks: list[tuple[int, int, int, bytes]] = []  # begin, last, events, payload
        self.events = 0
        self.payload = bytearray()

    def make_room(self, time: int) -> None:
        """Before the fields are coded: a new chunk knows no address."""
        if self.payload and len(self.payload) + 64 <= PAYLOAD:
            return
        self.close()
        self.begin = self.time = time
        self.steps = 0

    def close(self) -> None:
        if self.events:
            self.chunks.append((self.begin, self.time, self.events, bytes(self.payload)))
        self.events = 0
        self.payload = bytearray()

    def add(self, kind: int, time: int, *fields: int) -> None:
        assert time >= self.time
        self.payload += number((time - self.time) << 4 | kind)
        self.time = time
        self.events += 1
        for field in fields:
            self.payload += number(field)

    def note(self, kind: int, *fields: int | bytes) -> None:
        """What is no event, of the time of the last one."""
        self.payload += number(kind)
        for field in fields:
            self.payload += number(len(field)) + field if isinstance(field, bytes) else number(field)

    def address(self, address: int) -> int:
        steps = (address >> 3 | address << 61) & 2**64 - 1
        folded = fold(steps - self.steps)
        self.steps = steps
        return folded


class TraceWriter:
    def __init__(self, process: int = 100, begin: int = 1_000_000_000):
        self.process = process
        self.begin = begin
        self.streams: dict[int, Stream] = {}
        self.stack_bytes: int | None = None

    def _stream(self, thread: int, time: int) -> tuple[Stream, int]:
        stream = self.streams.setdefault(thread, Stream(thread))
        stream.make_room(self.begin + time)
        return stream, self.begin + time

    def stacks(self, every_bytes: int) -> None:
        self.stack_bytes = every_bytes

    def module(self, thread: int, number_of: int, start: int, size: int, offset: int, build_id: bytes,
               path: bytes) -> None:
        self._stream(thread, 0)[0].note(MODULE, number_of, start, size, offset, build_id, path)

    def frame(self, thread: int, stack: int, parent: int, module: int, offset: int) -> None:
        self._stream(thread, 0)[0].note(FRAME, stack, stack - parent, module, offset)

    def malloc(self, thread: int, time: int, address: int, size: int, kind: int = MALLOC, stack: int = 0) -> None:
        stream, now = self._stream(thread, time)
        if stack:
            stream.note(STACK, stack)
        stream.add(kind, now, stream.address(address), size)

    def aligned(self, thread: int, time: int, address: int, size: int, log2: int) -> None:
        stream, now = self._stream(thread, time)
        stream.add(ALIGNED, now, stream.address(address), size, log2)

    def free(self, thread: int, time: int, address: int, resident_kib: int | None = None) -> None:
        stream, now = self._stream(thread, time)
        if resident_kib is None:
            stream.add(FREE, now, stream.address(address))
        else:
            stream.add(FREE_MEASURED, now, stream.address(address), resident_kib)

    def realloc(self, thread: int, begin: int, time: int, old: int, address: int, size: int) -> None:
        stream, now = self._stream(thread, time)
        stream.add(REALLOC, now, time - begin, stream.address(old), stream.address(address), size)

    def thread_end(self, thread: int, time: int) -> None:
        stream, now = self._stream(thread, time)
        stream.add(THREAD_END, now)

    def header(self, chunks: int, latest: int) -> bytes:
        command = b"made-up\0--by\0hand\0"
        fixed = struct.pack("<8s8I3Q2QQ16s16s3824sI", b"REHEAPTR", 1 if self.stack_bytes is None else 2, 4096,
                            CHUNK, 8, 4096, 0 if self.stack_bytes is None else 2, 2, len(command), self.process, 1, 0,
                            self.begin, self.begin, 0, b"linux", b"test", command, self.stack_bytes or 0)
        fixed += struct.pack("<I", crc32c(fixed))
        progress = struct.pack("<QQQQII", latest, latest, chunks, 0, 0, 1)
        return (fixed + progress).ljust(4096, b"\0")

    def write(self, path: pathlib.Path) -> pathlib.Path:
        rows = []
        for number_of, stream in enumerate(self.streams.values()):
            stream.close()
            for sequence, (begin, last, events, payload) in enumerate(stream.chunks):
                rows.append((begin, number_of, sequence, stream.thread, last, events, payload))
        rows.sort()
        body = []
        for begin, number_of, sequence, thread, last, events, payload in rows:
            def chunk(checksum: int) -> bytes:
                return struct.pack("<8I2QQQ", 0x4B434852, 2, number_of, sequence, thread, len(payload), events,
                                   checksum, begin, begin, last, 0)
            body.append((chunk(crc32c(payload, crc32c(chunk(0)))) + payload).ljust(CHUNK, b"\0"))
        latest = max((row[4] for row in rows), default=self.begin)
        path.write_bytes(self.header(len(rows), latest) + b"".join(body))
        return path
