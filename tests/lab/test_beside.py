"""Two allocators side by side, with a runner whose figures are made up; and once with the real one."""

import json
import os
import threading

import pytest

from reheap_lab import allocators, beside, compare, native, results
from reheap_lab.errors import UsageError
from reheap_lab.results import Run
from reheap_lab.settings import Server, Settings


@pytest.fixture
def pins(monkeypatch) -> list[set[int]]:
    """What threads were bound to; machines of one processor can tell too."""
    made: list[set[int]] = []
    monkeypatch.setattr(beside, "processors", lambda: [3, 4])
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, mask: made.append(mask))
    return made


def run(fake, *names, **settings):
    given = {"runs": 4, "warmups": 1, "extras": False, "side_by_side": True} | settings
    return compare.compare(["true"], fake.allocators(*names), Settings(**given))


def test_both_run_at_once_and_exchange_their_places(pins):
    together, seen, prepared = threading.Barrier(2, timeout=30), [], []

    def half(subject: str, place: int) -> Run:
        together.wait()
        seen.append((subject, place))
        return Run(subject, 0, 0, figures={"wall_s": place + (2.0 if subject == "b" else 1.0), "peak_rss_kib": 10})

    one, other = beside.exchanged(["a", "b"], half, lambda: prepared.append(len(seen)))
    assert (set(seen[:2]), set(seen[2:])) == ({("a", 0), ("b", 1)}, {("b", 0), ("a", 1)})
    assert pins.count({3}) == pins.count({4}) == 2 and prepared == [0, 2]
    assert one.figures == {"wall_s": 1.5, "peak_rss_kib": 10} and other.figures == {"wall_s": 2.5, "peak_rss_kib": 10}


def test_a_figure_that_one_half_lacks_is_absent():
    first, second = Run("a", 0, 0, figures={"wall_s": 1.0, "mean_rss_kib": 5.0}), Run("a", 0, 0,
                                                                                      figures={"wall_s": 3.0})
    assert beside.both(first, second).figures == {"wall_s": 2.0}
    assert beside.both(first, Run("a", 0, 0, failed="crashed")).failed == "crashed"


def test_a_round_is_one_run_of_each_and_is_judged_as_any_other(fake, pins):
    fake.plan(a={"wall_us": 80_000})
    made = run(fake, "system", "a")
    assert [(r.subject, r.round, r.warmup) for r in made.runs[2:]] == [(n, i, False) for i in range(4)
                                                                       for n in ("system", "a")]
    verdict = made.verdict("wall_s", "a")
    assert verdict.word == "faster" and verdict.ratio == pytest.approx(0.8)
    assert len(fake.calls) == 2 + 4 * 4 and len(pins) == 4 * 4  # the warm-up is one after the other
    assert len({ask.stdout for _, ask in fake.calls}) == len(fake.calls)  # no two write to the same file
    assert len({ask.stdout for _, ask in fake.calls[-2:]}) == 2  # two at a time do not write to one file
    assert results.load(results.dump(made)) == made and "--side-by-side" in made.reproduce


def test_until_precise_it_ends_as_any_other(fake, pins):
    fake.plan()
    made = run(fake, "system", "a", runs=None)
    assert made.verdict("wall_s", "a").word == "no measurable difference" and len(made.measured("a")) == 8


def test_prepare_runs_before_each_half(fake, pins):
    fake.plan()
    prepared = fake.folder / "prepared"
    run(fake, "system", "a", runs=2, prepare=f"echo x >> {prepared}")
    assert prepared.read_text() == "x\n" * (2 + 2 * 2)


def test_one_that_fails_is_given_up_and_the_other_goes_on_alone(fake, pins):
    fake.plan(a={"cannot_later": "out of descriptors"})
    made = run(fake, "system", "a", runs=5)
    assert "out of descriptors" in made.subjects[1].failed and len(made.measured("system")) == 5
    assert len(pins) == 2 * 4 and not made.verdict("wall_s", "a")


def test_what_it_needs(fake, monkeypatch):
    fake.plan()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 6})
    with pytest.raises(UsageError,
                       match=r"compares two allocators, not 3 \(system, a, b\); name them: --with system,reheap"):
        run(fake, "system", "a", "b")
    with pytest.raises(UsageError, match="two servers"):
        run(fake, "system", "a", server=Server(load="true"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    with pytest.raises(UsageError, match="needs two processors, and there is one: leave it out"):
        run(fake, "system", "a")


@pytest.mark.skipif(not (native.folder() / "bin" / "reheap-runner").is_file()
                    or native.find_library("libreheap.so") is None
                    or len(os.sched_getaffinity(0)) < 2, reason="needs the native parts and two processors")
def test_for_real_each_runs_on_each_processor(tmp_path):
    record, before = tmp_path / "record", os.sched_getaffinity(0)
    script = f'echo "${{LD_PRELOAD%%:*}} $(grep Cpus_allowed_list /proc/self/status)" >> {record}'
    made = compare.compare(["sh", "-c", script], allocators.choose("system,reheap", folders=[]),
                           Settings(runs=3, extras=False, side_by_side=True))
    assert [subject.failed for subject in made.subjects] == [None, None] and len(made.runs) == 8
    lines = record.read_text().splitlines()[2:]  # the first two prove
    for reheap in (True, False):
        processors = [line.split()[-1] for line in lines if ("libreheap.so" in line) == reheap]
        assert sorted(processors) == sorted(map(str, sorted(before)[:2] * 3)), json.dumps(lines)
    assert os.sched_getaffinity(0) == before and made.verdict("wall_s", "reheap")
