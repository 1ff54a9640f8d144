"""reheap-trace, on traces made up here: what it counts, what it cuts, and what it says of damaged files."""

import csv
import json
import random
import signal
import struct
import subprocess

import pytest
import trace_writing
from click.testing import CliRunner

from reheap_lab import cli_trace, native, trace
from reheap_lab.errors import LabError, UsageError

DAMAGED = trace.DAMAGED


def tool(*words) -> subprocess.CompletedProcess:
    return subprocess.run([str(native.program("reheap-trace")), *map(str, words)], capture_output=True, text=True)


def info(*paths) -> dict:
    return trace.read_info(list(paths))[1]


@pytest.fixture
def small(tmp_path):
    """Two threads; the second frees what the first made."""
    writer = trace_writing.TraceWriter()
    writer.malloc(1, 100, 0x1000, 40)
    writer.malloc(1, 200, 0x2000, 1000, trace_writing.CALLOC)
    writer.aligned(1, 300, 0x4000, 500, 6)
    writer.free(2, 5_000, 0x1000)
    writer.realloc(1, 6_000, 6_500, 0x2000, 0x8000, 3000)
    writer.malloc(2, 7_000, 0x1000, 24)
    writer.free(1, 9_000, 0x8000)
    writer.malloc(1, 9_500, 0x100000, 200_000)
    writer.free(1, 9_900, 0x100000, resident_kib=12)
    return writer.write(tmp_path / "small.rht")


def test_info_counts_what_happened(small):
    found = info(small)
    assert found["events"] == 9
    assert {k: n for k, n in found["kinds"].items() if n} == {
        "malloc": 3, "calloc": 1, "aligned": 1, "free": 2, "free_measured": 1, "realloc": 1}
    assert found["peak"]["live_bytes"] == 500 + 24 + 200_000
    assert found["peak"]["live_blocks"] == 3
    assert found["allocated"] == {"blocks": 6, "bytes": 40 + 1000 + 500 + 3000 + 24 + 200_000}
    assert found["never_freed"] == {"blocks": 2, "bytes": 524}
    assert found["cross_thread"]["blocks"] == 1
    assert found["cross_thread"]["share"] == pytest.approx(1 / 4)
    assert found["thread_count"] == 2
    assert found["files"][0]["command"] == ["made-up", "--by", "hand"]
    assert found["frees"]["of_unknown"] == found["frees"]["missed"] == found["damage"]["count"] == 0
    assert {(r["from"], r["to"]): r["blocks"] for r in found["sizes"]}[(33, 48)] == 1
    first = found["lifetimes"][0]
    assert (first["from_ns"], first["to_ns"], first["blocks"]) == (256, 512, 1)  # of the large block


def test_fragmentation_potential_is_what_the_simplest_allocator_would_hold(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(64 * 10):  # 64 bytes each: ten pages
        writer.malloc(1, i, 0x10000 + 64 * i, 64)
    for i in range(64 * 10):
        if i % 64:  # one survivor holds each page
            writer.free(1, 1000 + i, 0x10000 + 64 * i)
    for i in range(64 * 10):  # of another size: no page can be used again
        writer.malloc(1, 3000 + i, 0x900000 + 128 * i, 128)
    fragments = info(writer.write(tmp_path / "t"))["fragmentation"]
    held, live = (10 + 20) * 4096, 10 * 64 + 640 * 128
    assert fragments["held_peak_bytes"] == held
    assert fragments["potential"] == pytest.approx(1 - live / held, abs=1e-6)
    assert fragments["class_peaks_bytes"] == 640 * 64 + 640 * 128


def made_at_random(path, threads: int, events: int, seed: int = 1, process: int = 100, begin: int = 10**9):
    """Writes a trace in which any thread frees any block; returns the most that lived."""
    chance, writer = random.Random(seed), trace_writing.TraceWriter(process, begin)
    live, gone, time, fresh, now, peak = [], [], 0, 0x10000, 0, 0
    for _ in range(events):
        time += chance.randrange(50, 500)
        thread = chance.randrange(threads)
        if live and chance.random() < (0.5 if len(live) > 300 else 0.1):
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            address, size = live.pop()
            now -= size
            gone.append(address)
            if chance.random() < 0.2:
                fresh, size = fresh + 0x100000, chance.choice([10, 100, 3000, 200_000])
                writer.realloc(thread, time, time + 20, address, fresh, size)
                time += 20
                live.append((fresh, size))
                now += size
            else:
                writer.free(thread, time, address, chance.choice([0, 60, size // 1024]) if size >= 131072 else None)
        else:
            if gone and chance.random() < 0.7:
                address = gone.pop()
            else:
                address = fresh = fresh + 0x100000
            size = chance.choice([0, 1, 8, 16, 24, 100, 400, 1000, 5000, 40_000])
            kind = chance.random()
            if kind < 0.1:
                writer.aligned(thread, time, address, size, chance.choice([3, 6, 12]))
            else:
                writer.malloc(thread, time, address, size, trace_writing.CALLOC if kind < 0.3 else trace_writing.MALLOC)
            live.append((address, size))
            now += size
        peak = max(peak, now)
    writer.write(path)
    return peak


def test_many_chunks_and_threads_are_read_in_the_order_of_time(tmp_path):
    peak = made_at_random(tmp_path / "t", threads=5, events=30_000)
    found = info(tmp_path / "t")
    assert found["files"][0]["chunks"] >= 5
    assert found["peak"]["live_bytes"] == peak
    assert found["frees"]["of_unknown"] == found["frees"]["missed"] == 0
    tool("export", tmp_path / "t", "-o", tmp_path / "csv")
    times = [int(row["time_ns"]) for row in csv.DictReader(open(tmp_path / "csv"))]
    assert len(times) == 30_000 and times == sorted(times)


def test_a_cut_allocates_first_what_is_alive_where_it_begins(small, tmp_path):
    done = tool("cut", small, "-o", tmp_path / "part", "--from-time", "0.000004", "--to-event", "7")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["alive_before"] == 3
    lines = [json.loads(line) for line in tool("export", "--format", "jsonl", tmp_path / "part").stdout.splitlines()]
    assert sorted(line["size"] for line in lines[:3]) == [40, 500, 1000]
    assert [line["kind"] for line in lines[3:]] == ["free", "realloc", "malloc", "free"]
    assert info(tmp_path / "part")["frees"]["of_unknown"] == 0


def test_a_cut_in_the_middle_of_a_realloc_stays_replayable(small, tmp_path):
    assert tool("cut", small, "-o", tmp_path / "part", "--from-time", "0.0000062").returncode == 0
    found = info(tmp_path / "part")
    assert found["frees"]["of_unknown"] == found["frees"]["missed"] == 0
    assert found["kinds"]["realloc"] == 0


def test_merged_processes_keep_their_blocks_apart(tmp_path):
    first = made_at_random(tmp_path / "a", threads=2, events=2000, process=100)
    second = made_at_random(tmp_path / "b", threads=2, events=2000, seed=2, process=200, begin=2 * 10**9)
    assert tool("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "both").returncode == 0
    found = info(tmp_path / "both")
    assert found["events"] == 4000 and found["thread_count"] == 4
    assert found["frees"]["of_unknown"] == found["frees"]["missed"] == 0
    assert max(first, second) <= found["peak"]["live_bytes"] <= first + second
    together = info(tmp_path / "a", tmp_path / "b")
    assert together["peak"] == found["peak"]


def test_what_was_merged_can_be_merged_again(tmp_path):
    single = [tmp_path / name for name in "abc"]
    for number, path in enumerate(single):  # the same addresses in each
        made_at_random(path, threads=2, events=1000, seed=number, process=100 + number, begin=10**9 + number)
    assert tool("merge", *single[:2], "-o", tmp_path / "two").returncode == 0
    assert tool("merge", tmp_path / "two", single[2], "-o", tmp_path / "three").returncode == 0
    wanted = info(*single)
    assert wanted["frees"]["of_unknown"] == wanted["frees"]["missed"] == 0
    for paths in ([tmp_path / "three"], [tmp_path / "two", single[2]]):
        found = info(*paths)
        for part in ("events", "peak", "allocated", "frees", "cross_thread", "duration_us"):
            assert found[part] == wanted[part], part


def test_a_merged_trace_begins_with_the_process_that_began_first(tmp_path):
    late, early = tmp_path / "late", tmp_path / "early"
    made_at_random(late, threads=1, events=100, process=200, begin=2 * 10**9)
    made_at_random(early, threads=1, events=100, process=100, begin=10**9)
    assert tool("merge", late, early, "-o", tmp_path / "both").returncode == 0
    assert info(tmp_path / "both")["duration_us"] == info(late, early)["duration_us"] > 1e6


def test_what_a_recording_lacks_its_parts_lack_too(small, tmp_path):
    other = made_by_another_process(tmp_path / "other")
    change(other, 3976, struct.pack("<QII", 7, 2, 0))  # events lost, disk full, killed
    for words in (["merge", small, other], ["cut", other]):
        assert tool(*words, "-o", tmp_path / "part").returncode == 0
        file = info(tmp_path / "part")["files"][0]
        assert (file["lost"], file["stopped"], file["ended"]) == (7, 2, False)
    assert info(small)["files"][0]["ended"]


def made_by_another_process(path):
    made_at_random(path, threads=1, events=10, process=200)
    return path


def change(path, at: int, what: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at:at + len(what)] = what
    path.write_bytes(data)


@pytest.mark.parametrize("words", [["info"], ["sites"], ["export"], ["compile", "-o", "made"], ["cut", "-o", "made"]])
def test_a_full_disk_is_told(small, tmp_path, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(native.program("reheap-trace")), *words, str(small)], cwd=tmp_path, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125 and done.stderr.endswith("output could not be written whole\n")


@pytest.mark.parametrize("word", ["--help", "--version"])
@pytest.mark.parametrize("name", ["reheap-trace", "reheap-replay", "reheap-runner"])
def test_help_that_is_lost_is_told(name, word):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(native.program(name)), word], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125 and done.stderr.endswith("output could not be written whole\n")


def test_export_writes_every_field(small):
    rows = list(csv.DictReader(tool("export", small).stdout.splitlines()))
    moved = rows[4]
    assert (moved["kind"], moved["time_ns"], moved["begin_ns"]) == ("realloc", "6500", "6000")
    assert (moved["address"], moved["old_address"], moved["size"]) == ("0x8000", "0x2000", "3000")
    assert rows[2]["alignment"] == "64"
    assert rows[8]["resident_kib"] == "12"


# ---- bad input --------------------------------------------------------------------------------

def test_a_chunk_with_a_wrong_byte_is_left_out_and_named(tmp_path):
    made_at_random(tmp_path / "t", threads=2, events=30_000)
    data = bytearray((tmp_path / "t").read_bytes())
    offset = 4096 + 65536
    data[offset + 1000] ^= 4
    (tmp_path / "t").write_bytes(data)
    done = tool("info", tmp_path / "t")
    assert done.returncode == DAMAGED
    assert f"the chunk at offset {offset} does not match its checksum" in done.stderr
    found = json.loads(done.stdout)
    assert found["damage"]["count"] == 1
    assert 15_000 < found["events"] < 30_000
    assert tool("compile", tmp_path / "t", "-o", tmp_path / "c").returncode == DAMAGED


@pytest.mark.parametrize("field, value", [(8, 1), (8, 0xFFFFFFF0), (12, 0), (12, 0xFFFFFFF0)])  # stream, sequence
def test_a_chunk_with_a_wrong_number_costs_no_other_chunk(tmp_path, field, value):
    made_at_random(tmp_path / "t", threads=2, events=30_000)
    wrong = next(offset for offset in range(4096, (tmp_path / "t").stat().st_size, 65536)
                 if chunk_field(tmp_path / "t", offset, 8) == 0 and chunk_field(tmp_path / "t", offset, 12) == 1)
    lost = chunk_field(tmp_path / "t", wrong, 24)
    change(tmp_path / "t", wrong + field, struct.pack("<I", value))
    done = tool("info", tmp_path / "t")
    assert done.returncode == DAMAGED
    assert f"the chunk at offset {wrong} does not match its checksum" in done.stderr
    assert json.loads(done.stdout)["events"] == 30_000 - lost


@pytest.mark.parametrize("number", [0, 1])
def test_a_chunk_that_never_reached_the_disk_is_told(tmp_path, number):
    made_at_random(tmp_path / "t", threads=1, events=30_000)
    change(tmp_path / "t", 4096 + number * 65536, bytes(65536))
    done = tool("info", tmp_path / "t")
    assert done.returncode == DAMAGED and f"lacks chunk {number} of stream 0" in done.stderr
    assert json.loads(done.stdout)["events"] < 30_000


def test_room_that_nobody_claimed_is_no_damage(small):
    with open(small, "ab") as file:
        file.write(bytes(3 * 65536))
    assert tool("info", small).returncode == 0


def chunk_field(path, chunk: int, at: int) -> int:
    return struct.unpack_from("<I", path.read_bytes(), chunk + at)[0]


def test_a_chunk_with_a_wrong_time_changes_no_other_times(tmp_path):
    """The length of a tick is what the header says, and a stream is begun in time for its other chunks."""
    made_at_random(tmp_path / "t", threads=2, events=30_000)
    change(tmp_path / "t", 32, struct.pack("<I", 1))  # ticks, of a nanosecond
    fixed = (tmp_path / "t").read_bytes()[:3948]
    change(tmp_path / "t", 3948, struct.pack("<I", trace_writing.crc32c(fixed)))
    whole = info(tmp_path / "t")
    change(tmp_path / "t", 4096 + 38, b"\1")  # of the first chunk's beginning
    status, found = trace.read_info([tmp_path / "t"], quiet=True)
    assert status == DAMAGED and found["damage"]["count"] == 1
    assert found["duration_us"] == whole["duration_us"]
    export = tool("export", tmp_path / "t").stdout
    times = [int(row["time_ns"]) for row in csv.DictReader(export.splitlines())]
    assert times == sorted(times)


def test_a_truncated_file_is_read_as_far_as_it_goes(tmp_path):
    made_at_random(tmp_path / "t", threads=1, events=30_000)
    data = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(data[:4096 + 65536 + 30_000])
    done = tool("info", tmp_path / "t")
    assert done.returncode == DAMAGED
    assert "ends" in done.stderr
    assert 0 < json.loads(done.stdout)["events"] < 30_000


def test_a_chunk_still_open_is_read_without_a_checksum(small):
    data = bytearray(small.read_bytes())
    data[4096 + 4] = 1  # open
    data[4096 + 28:4096 + 32] = bytes(4)
    small.write_bytes(data)
    assert tool("info", small).returncode == 0
    assert info(small)["events"] == 9


def test_a_header_that_was_changed_is_told(small):
    data = bytearray(small.read_bytes())
    data[60] ^= 1
    small.write_bytes(data)
    done = tool("info", small)
    assert done.returncode == DAMAGED and "header" in done.stderr
    assert json.loads(done.stdout)["events"] == 9


@pytest.mark.parametrize("at", [12, 16])
@pytest.mark.parametrize("said", [0, 1, 131072, 0xFFFFFFF0])
def test_other_lengths_are_refused_though_the_checksum_matches(small, at, said):
    data = bytearray(small.read_bytes())
    data[at:at + 4] = said.to_bytes(4, "little")
    data[3948:3952] = trace_writing.crc32c(bytes(data[:3948])).to_bytes(4, "little")
    small.write_bytes(data)
    done = tool("info", small)
    assert done.returncode == 125 and "where the events lie is not known" in done.stderr


@pytest.mark.parametrize("content, says", [
    (b"", "is no trace"),
    (b"hello\n" * 1000, "is no trace"),
    (b"REHEAPTR" + (9).to_bytes(4, "little") + bytes(5000), "version 9"),
    (b"REHEAPTR" + (1).to_bytes(4, "little"), "ends within its header"),
])
def test_what_is_no_trace_is_refused(tmp_path, content, says):
    (tmp_path / "t").write_bytes(content)
    done = tool("info", tmp_path / "t")
    assert done.returncode == 125 and says in done.stderr and done.stdout == ""


@pytest.mark.parametrize("words", [["info"], ["cut", "x"], ["sing"], ["export", "x", "--format", "xml"],
                                   ["cut", "x", "-o", "y", "--from-time", "soon"], ["info", "--loud", "x"],
                                   ["merge", "x", "-o", "y"]])
def test_wrong_arguments_are_usage_errors(words):
    assert tool(*words).returncode == 2


@pytest.mark.parametrize("command", ["cut", "merge", "export", "compile"])
@pytest.mark.parametrize("name", ["small.rht", "./small.rht", "link"])
def test_a_file_that_is_read_is_not_written_over_by_whatever_name(small, tmp_path, command, name):
    (tmp_path / "link").symlink_to("small.rht")
    other, before = made_by_another_process(tmp_path / "other"), small.read_bytes()
    done = tool(command, small, other, "-o", f"{tmp_path}/{name}")
    assert done.returncode == 2 and "must not name a file that is read" in done.stderr
    assert small.read_bytes() == before


def test_garbage_never_breaks_the_reader(small, tmp_path):
    """Open chunks have no checksum: whatever stands there, the tool ends by itself."""
    whole, chance = small.read_bytes(), random.Random(3)
    for _ in range(20):
        data = bytearray(whole)
        data[4096 + 4] = 1
        for _ in range(8):
            data[4096 + 64 + chance.randrange(100)] = chance.randrange(256)
        (tmp_path / "t").write_bytes(data)
        for words in (["info"], ["compile", "-o", tmp_path / "c"]):
            assert tool(words[0], tmp_path / "t", *words[1:]).returncode in (0, DAMAGED)


# ---- the command line -------------------------------------------------------------------------

def test_reheap_trace_info_tells_people(small):
    done = CliRunner().invoke(cli_trace.command, ["info", str(small)])
    assert done.exit_code == 0, done.output
    assert "made-up --by hand" in done.output and "fragmentation potential" in done.output


def test_where_nothing_was_held_nothing_is_said_of_it(small):
    found = trace.read_info([small])[1]
    found["fragmentation"] = {"potential": 1.0, "held_peak_bytes": 0}
    assert "fragmentation potential" not in dict(trace._facts(found))


def test_a_traces_name_may_begin_like_an_option(small, monkeypatch):
    small.rename(small.with_name("-x"))
    monkeypatch.chdir(small.parent)
    done = CliRunner().invoke(cli_trace.command, ["info", "--", "-x"])
    assert done.exit_code == 0, done.output


def test_a_command_that_was_recorded_does_not_steer_the_terminal(small):
    change(small, 120, b"\x1b]2;x\a\n")
    shown = CliRunner().invoke(cli_trace.command, ["info", str(small)]).output
    assert "process 100: '?]2;x??" in shown.splitlines()[0]


def test_a_signal_that_ended_the_native_tool_is_told_as_a_shell_does(tmp_path, monkeypatch):
    program = tmp_path / "ends"
    program.write_text("#!/bin/sh\nkill -PIPE $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(native, "program", lambda name: program)
    assert CliRunner().invoke(cli_trace.command, ["export", "t"]).exit_code == 128 + signal.SIGPIPE


def test_errors_of_the_native_tool_become_the_labs(tmp_path):
    (tmp_path / "t").write_bytes(b"nothing")
    with pytest.raises(LabError, match="is no trace"):
        trace.read_info([tmp_path / "t"])
    with pytest.raises(UsageError):
        trace.run(["cut", str(tmp_path / "t")])
