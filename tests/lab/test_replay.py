"""The replayer: live memory as recorded, order kept, contents checked; and `reheap replay` above it."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest
import trace_writing
from click.testing import CliRunner
from test_trace import made_at_random

from reheap_lab import allocators, cli_trace, compare, native, replay, trace, verdicts
from reheap_lab.errors import LabError
from reheap_lab.results import Comparison, Run, Subject
from reheap_lab.settings import Settings

NEAR = replay.NEAR


def compiled(path: pathlib.Path) -> pathlib.Path:
    status, _ = trace.run(["compile", str(path), "-o", f"{path}.compiled"])
    assert status == 0
    return pathlib.Path(f"{path}.compiled")


def play(path: pathlib.Path, *words: str, preload: pathlib.Path | None = None) -> tuple[int, dict, str]:
    out = path.with_suffix(".json")
    env = dict(os.environ) | ({"LD_PRELOAD": str(preload)} if preload else {})
    done = subprocess.run([str(native.program("reheap-replay")), str(path), "--out", str(out), *words], env=env,
                          capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(out.read_text()) if out.exists() else {}, done.stderr


@pytest.fixture(scope="module")
def crossing(tmp_path_factory) -> tuple[pathlib.Path, int]:
    """Eight threads that free each other's blocks, compiled; and the most that lived."""
    path = tmp_path_factory.mktemp("crossing") / "t"
    peak = made_at_random(path, threads=8, events=12_000)
    return compiled(path), peak


@pytest.mark.parametrize("touch", ["recorded", "whole", "ends"])
def test_live_memory_is_as_recorded_and_nothing_comes_out_of_order(crossing, touch):
    path, peak = crossing
    status, said, stderr = play(path, "--touch", touch, "--order", "strict")
    assert status == 0, stderr
    assert said["operations"] == 12_000
    assert said["remote_operations"] > 3000
    assert said["errors"] == {"ordering": 0, "contents": 0, "alignment": 0, "failed_allocations": 0}
    assert said["peak_live_bytes"] == pytest.approx(peak, rel=NEAR)
    assert said["recorded"]["peak_live_bytes"] == peak


def test_the_order_of_the_program_alone_keeps_every_block_whole(crossing):
    path, _ = crossing
    for words in ((), ("--threads", "3"), ("--pace", "recorded")):
        status, said, stderr = play(path, "--touch", "whole", *words)
        assert status == 0, stderr
        assert said["waits"]["epochs"] == 0 and not any(said["errors"].values())


def test_threads_that_share_nothing_wait_for_nobody(tmp_path):
    """One does a hundred times as much as the others at a time: with epochs it would hold them up."""
    writer = trace_writing.TraceWriter()
    for i in range(20_000):
        for thread in range(4):
            if thread == 0 or i % 100 == 0:
                writer.malloc(thread, i * 100 + thread, 0x10000 + 64 * thread, 64)
                writer.free(thread, i * 100 + 50 + thread, 0x10000 + 64 * thread)
    writer.write(tmp_path / "t")
    path = compiled(tmp_path / "t")
    assert play(path)[1]["waits"] == {"handoffs": 0, "handoff_us": 0, "epochs": 0, "epoch_us": 0}
    assert play(path, "--order", "strict")[1]["waits"]["epochs"] > 100


def test_a_producer_does_not_fill_memory_before_its_consumer_comes(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(2000):
        writer.malloc(1, i * 10, 0x10000000 + (i % 4 << 20), 1 << 20)
        if i >= 2:
            writer.free(2, i * 10 + 5, 0x10000000 + ((i - 2) % 4 << 20))
    writer.write(tmp_path / "t")
    status, said, _ = play(compiled(tmp_path / "t"), "--touch", "ends")
    assert status == 0 and said["recorded"]["peak_live_bytes"] == 3 << 20
    assert said["peak_live_bytes"] < 200 << 20


def test_a_replay_of_one_thread_has_the_very_same_peak(tmp_path):
    peak = made_at_random(tmp_path / "t", threads=1, events=3000)
    status, said, _ = play(compiled(tmp_path / "t"))
    assert status == 0 and said["waits"]["handoffs"] == 0
    # Live memory is told in steps of half an epoch.
    assert said["peak_live_bytes"] == pytest.approx(peak, rel=0.003)


def test_a_hand_off_through_one_address_keeps_its_order(tmp_path):
    """Producer and consumer on a single block at a time: nothing can be done early, whatever the threads' pace."""
    writer = trace_writing.TraceWriter()
    for i in range(2000):
        writer.malloc(1, i * 100, 0x1000, 64)
        writer.realloc(2, i * 100 + 20, i * 100 + 30, 0x1000, 0x2000, 128)
        writer.free(3, i * 100 + 50, 0x2000)
    writer.write(tmp_path / "t")
    status, said, _ = play(compiled(tmp_path / "t"))
    assert status == 0 and said["errors"]["ordering"] == 0
    assert said["remote_operations"] == 4000


def test_slots_follow_live_blocks_and_not_events(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(80_000):  # a queue of 20 blocks between two threads
        writer.malloc(1, i * 10, 0x10000 + 64 * (i % 1000), 64)
        if i >= 20:
            writer.free(2, i * 10 + 5, 0x10000 + 64 * ((i - 20) % 1000))
    writer.write(tmp_path / "t")
    _, said, _ = play(compiled(tmp_path / "t"))
    assert said["slots"] < 20_000  # those freed long ago are used again


def test_short_threads_come_and_go(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(60):
        at = i * 100_000
        writer.malloc(i, at, 0x100000 + i * 0x1000, 2000)
        writer.malloc(i, at + 10, 0x5000, 3000)
        writer.free(i, at + 20, 0x5000)
        writer.thread_end(i, at + 30)
    writer.write(tmp_path / "t")
    status, said, _ = play(compiled(tmp_path / "t"))
    assert status == 0 and said["threads"] == 60
    assert said["most_threads"] < 10


def test_copies_multiply_the_work(crossing):
    path, peak = crossing
    status, said, _ = play(path, "--threads", "2", "--touch", "ends")
    assert status == 0
    assert said["operations"] == 24_000
    assert peak < said["peak_live_bytes"] <= 2 * peak * (1 + NEAR)


def test_the_recorded_pace_takes_as_long_as_recorded(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(5):
        writer.malloc(1, i * 100_000_000, 0x1000 + 64 * i, 64)
    writer.write(tmp_path / "t")
    path = compiled(tmp_path / "t")
    assert play(path, "--pace", "recorded")[1]["wall_us"] >= 399_000
    assert play(path)[1]["recorded"]["duration_us"] == 400_000


def test_only_resident_pages_of_a_large_block_are_touched(tmp_path):
    size = 64 << 20
    writer = trace_writing.TraceWriter()
    writer.malloc(1, 0, 0x10000000, size)
    writer.free(1, 300_000_000, 0x10000000, resident_kib=1024)
    writer.write(tmp_path / "t")
    path = compiled(tmp_path / "t")
    _, recorded, _ = play(path, "--pace", "recorded", "--sample-ms", "5")
    _, whole, _ = play(path, "--pace", "recorded", "--sample-ms", "5", "--touch", "whole")
    assert recorded["peak_live_bytes"] == whole["peak_live_bytes"] == size
    assert recorded["peak_heap_bytes"] < size / 8
    assert whole["peak_heap_bytes"] > size * 0.9


def test_the_peak_does_not_depend_on_samples(tmp_path):
    """All of it comes and goes between the first look and the last."""
    writer, block = trace_writing.TraceWriter(), 1 << 20
    for i in range(40):
        writer.malloc(1, i, 0x10000000 + i * block, block - 64)
    for i in range(40):
        writer.free(1, 100 + i, 0x10000000 + i * block)
    writer.write(tmp_path / "t")
    status, said, stderr = play(compiled(tmp_path / "t"), "--touch", "whole", "--sample-ms", "60000")
    assert status == 0, stderr
    assert 0.97 * 40 * block < said["peak_heap_bytes"] < 1.1 * 40 * block
    assert said["peak_resident_over_live"] == pytest.approx(1, abs=0.1)
    assert not {"mean_heap_bytes", "mean_live_bytes", "resident_over_live"} & said.keys()  # of two samples


PREPARING = r"""
#include <string.h>
#include <sys/mman.h>
__attribute__((constructor)) static void prepare(void) {
  const size_t bytes = 8 << 20;
  memset(mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, bytes);
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_what_an_allocator_begins_with_is_part_of_its_heap(tmp_path):
    """The program would have it as well."""
    (tmp_path / "preparing.c").write_text(PREPARING)
    library = tmp_path / "libpreparing.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "preparing.c")], check=True)
    made_at_random(tmp_path / "t", threads=1, events=3000)
    trace_file = compiled(tmp_path / "t")
    (_, without, _), (_, with_it, _) = play(trace_file), play(trace_file, preload=library)
    assert with_it["peak_heap_bytes"] - without["peak_heap_bytes"] == pytest.approx(8 << 20, abs=256 << 10)


# ---- errors are found -------------------------------------------------------------------------

BROKEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>
static __thread int count;
void* malloc(size_t size) {
  static void* (*real)(size_t);
  if (!real) real = dlsym(RTLD_NEXT, "malloc");
  %s
  return real(size);
}
"""

FLAWS = {
    "contents": "static void* twice; if (size == 5000 && ++count % 10 == 0) "
                "{ if (!twice) twice = real(5000); return twice; }",
    "alignment": "if (size == 1000) { return (char*)real(size + 4096) + 8; }",
    "failed_allocations": "if (size == 5000 && ++count % 10 == 0) return 0;",
}


TOO_MUCH = 1 << 50


@pytest.mark.parametrize("sizes, failed", [((200_000, TOO_MUCH, TOO_MUCH), 2), ((TOO_MUCH, 100, 200), 1),
                                           ((200_000, TOO_MUCH, 100), 1), ((40, 0, 0), 0), ((40, 0, 100), 0)])
def test_a_block_that_cannot_be_had_is_no_damaged_one(tmp_path, sizes, failed):
    """Nor is one that an allocator frees which is resized to nothing."""
    writer = trace_writing.TraceWriter()
    writer.malloc(1, 0, 0x1000, sizes[0])
    writer.realloc(1, 10, 20, 0x1000, 0x100000, sizes[1])
    writer.realloc(1, 30, 40, 0x100000, 0x200000, sizes[2])
    writer.malloc(1, 50, 0x300000, 40)  # where the freed one was
    writer.free(1, 60, 0x200000)
    writer.free(1, 70, 0x300000)
    writer.write(tmp_path / "t")
    status, said, stderr = play(compiled(tmp_path / "t"))
    assert status == int(failed > 0), stderr
    assert said["errors"] == {"ordering": 0, "contents": 0, "alignment": 0, "failed_allocations": failed}


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize("kind", FLAWS)
def test_a_broken_allocator_is_found_out(tmp_path, kind):
    (tmp_path / "broken.c").write_text(BROKEN % FLAWS[kind] + "void free(void* block) {}\n")
    library = tmp_path / "libbroken.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "broken.c"), "-ldl"], check=True)
    writer = trace_writing.TraceWriter()
    for i in range(100):
        writer.malloc(1, i * 10, 0x100000 + 0x2000 * i, 5000)
        writer.malloc(1, i * 10 + 1, 0x900000 + 0x2000 * i, 1000)
    for i in range(100):
        writer.free(1, 5000 + i * 10, 0x100000 + 0x2000 * i)
    writer.write(tmp_path / "t")
    status, said, stderr = play(compiled(tmp_path / "t"), preload=library)
    assert status == 1
    assert said["errors"][kind] > 0
    assert [k for k, n in said["errors"].items() if n] == [kind]
    assert "reheap-replay:" in stderr


def test_a_damaged_compiled_trace_is_refused_before_it_begins(crossing, tmp_path):
    data = bytearray(crossing[0].read_bytes())
    for place, words in ((5000, "damaged at offset"), (100, "damaged or cut short"), (0, "is no compiled trace")):
        changed = bytearray(data)
        changed[place] ^= 0x55
        (tmp_path / "t").write_bytes(changed)
        status, said, stderr = play(tmp_path / "t")
        assert status == 125 and not said and words in stderr
    (tmp_path / "t").write_bytes(data[:len(data) // 2])
    assert play(tmp_path / "t")[0] == 125


@pytest.mark.parametrize("words", [[], ["--touch", "some"], ["--pace", "slow"], ["--order", "some"], ["--threads", "0"],
                                   ["--sample-ms", "x"]])
def test_wrong_arguments_are_usage_errors(words, tmp_path):
    line = [str(native.program("reheap-replay")), *words, *(["x", "--out", str(tmp_path / "o")] if words else [])]
    assert subprocess.run(line, capture_output=True).returncode == 2


# ---- reheap replay ----------------------------------------------------------------------------

def test_replay_goes_through_the_comparison(tmp_path):
    peak = made_at_random(tmp_path / "t", threads=2, events=2000)
    chosen = allocators.choose("system", compare.command_kind([sys.executable]))
    settings = Settings(allocators="system", runs=2, warmups=0, extras=False, sample_ms=1)
    how = replay.How(touch="ends", order="strict")
    found = replay.replay([tmp_path / "t"], how, chosen, settings)
    assert found.kind == "replay"
    assert "reheap replay --with system --seed 0 --runs 2 --margin 0.01 " in found.reproduce
    assert found.reproduce.endswith(f" --order strict --touch ends --threads 1 -- {tmp_path}/t")
    assert found.command[:2] == ["reheap-replay", str(tmp_path / "t")]
    runs = found.measured("system")
    assert len(runs) == 2
    for run in runs:
        assert run.figures["ordering_errors"] == 0
        assert run.figures["peak_live_kib"] == pytest.approx(peak / 1024, rel=NEAR)
        assert "user_s" not in run.figures  # of the whole process, the replayer's preparations too
        assert len(run.series.live_kib) == len(run.series.rss_kib) == len(run.series.t_s) > 1
    assert found.settings["replayer"]["excluded_tables_kib"] > 0


def test_a_trace_of_one_thread_has_no_waits(tmp_path):
    writer = trace_writing.TraceWriter()
    for i in range(50):
        writer.malloc(0, i, 0x10000 + 4096 * i, 4000)
    writer.write(tmp_path / "t")
    made = replay.replay([tmp_path / "t"], replay.How(), allocators.choose("system"), Settings(runs=1, extras=False))
    assert not [name for name in made.runs[-1].figures if name.endswith("_wait_s")]


def test_a_trace_too_short_for_its_time_is_told_what_helps():
    made = Comparison(["reheap-replay"], kind="replay", subjects=[Subject("system")],
                      runs=[Run("system", number, 0, figures={"wall_s": 0.001}) for number in range(3)])
    verdicts.judge(made)
    assert any("too short to measure" in text and "record a run that does more" in text for text in made.warnings)


def test_a_trace_without_allocations_is_refused(tmp_path):
    trace_writing.TraceWriter().write(tmp_path / "t")
    with pytest.raises(LabError, match="no allocation"):
        replay.compile_traces([tmp_path / "t"], tmp_path)


def test_damage_becomes_a_warning(tmp_path):
    made_at_random(tmp_path / "t", threads=1, events=20_000)
    data = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(data[:4096 + 65536 + 1000])
    path, warnings = replay.compile_traces([tmp_path / "t"], tmp_path)
    assert path.exists() and "damaged" in warnings[0]


def test_a_recording_that_stopped_early_becomes_a_warning(tmp_path):
    made_at_random(tmp_path / "t", threads=1, events=100)
    data = bytearray((tmp_path / "t").read_bytes())
    data[3976:3988] = struct.pack("<QI", 3, 2)  # events lost, disk full
    (tmp_path / "t").write_bytes(data)
    _, warnings = replay.compile_traces([tmp_path / "t"], tmp_path)
    assert warnings == ["the recording filled the disk: what the program did after that is not in it",
                        "3 events could not be recorded: they are missing"]
    shown = CliRunner().invoke(cli_trace.command, ["info", str(tmp_path / "t")]).output
    assert "made-up --by hand, 3 events lost, the recording filled the disk" in shown


def test_frees_of_unknown_blocks_become_a_warning(tmp_path):
    writer = trace_writing.TraceWriter()
    writer.malloc(1, 0, 0x1000, 10)
    writer.free(1, 10, 0x7000)
    writer.write(tmp_path / "t")
    _, warnings = replay.compile_traces([tmp_path / "t"], tmp_path)
    assert len(warnings) == 1 and warnings[0].startswith("1 frees were of blocks")


PROGRAM = """
import json, queue, threading
bag = queue.Queue(50)
def make():
    for i in range(3000):
        bag.put(json.dumps([i] * (i % 90)))
    bag.put(None)
makers = [threading.Thread(target=make) for _ in range(3)]
for maker in makers: maker.start()
left = 3
while left:
    item = bag.get()
    left -= item is None
"""


def test_what_the_recorder_writes_is_replayed(tmp_path):
    path = tmp_path / "real.rht"
    words = ["record", "-o", str(path), "--", sys.executable, "-c", PROGRAM]
    subprocess.run([sys.executable, "-c", "from reheap_lab.cli import main; main()", *words], check=True,
                   env=dict(os.environ, PYTHONMALLOC="malloc"), capture_output=True, timeout=60)
    found = trace.read_info([path])[1]
    assert found["frees"]["of_unknown"] == found["frees"]["missed"] == found["damage"]["count"] == 0
    assert found["thread_count"] == 4 and found["cross_thread"]["blocks"] > 100
    status, said, stderr = play(compiled(path), "--touch", "whole", "--order", "strict")
    assert status == 0, stderr
    assert said["errors"]["ordering"] == 0
    assert said["peak_live_bytes"] == pytest.approx(found["peak"]["live_bytes"], rel=NEAR)


def test_a_heap_smaller_than_what_is_taken_out_is_not_known():
    """Neither 0 nor less: the replayer's own memory is taken out of what was seen, and both are looked at apart."""
    said = {"wall_us": 500, "peak_live_bytes": 2048, "errors": {"ordering": 0}, "most_threads": 1, "copies": 1,
            "peak_heap_bytes": 0, "mean_heap_bytes": -4096, "resident_over_live": -2.0, "peak_resident_over_live": 0.0,
            "series": {"t_us": [0, 100], "heap_bytes": [-4096, 2048], "live_bytes": [0, 2048], "cpu_us": [0, 90]}}
    assert replay.figures_of(said, {}) == {"wall_s": 0.0005, "peak_live_kib": 2, "ordering_errors": 0}
    series = replay.series_of(said)
    assert (series.rss_kib, series.live_kib, series.commit_kib) == ([0, 2], [0, 2], [])
