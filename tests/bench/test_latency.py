"""Quantiles of the times of single calls: what counts, what is added up, and what has none."""

import json
import subprocess

import latency
import pytest
from common import histograms
from common.histograms import Histogram
from common.programs import build_program
from reheap_lab import allocators
from reheap_lab.settings import Settings
from reheap_lab.workload import Extra


def printed(*buckets: tuple[float, int], longest: float | None = None) -> dict:
    return {"buckets": [list(pair) for pair in buckets], "longest_ns": longest or max(buckets, default=(0, 0))[0]}


def run_of(**longer: int) -> dict:
    """What the program prints: malloc with calls, free with none that was undisturbed."""
    calls = printed((10.0, 9_900), (200.0, 99), (5e6, 1))
    quiet = printed((10.0, 9_900), (200.0, 99))
    counted = dict.fromkeys(latency.CAUSES, 0) | longer
    return {"malloc": {"all": calls, "undisturbed": quiet, "longer": counted},
            "free": {"all": calls, "undisturbed": printed(), "longer": counted}}


def test_a_quantile_is_the_least_time_that_so_many_calls_did_not_exceed():
    made = Histogram.read(printed((10.0, 98), (20.0, 1), (500.0, 1), longest=512.0))
    assert [made.quantile(share) for share in (0.5, 0.98, 0.99, 0.9999)] == [10.0, 10.0, 20.0, 500.0]
    assert made.longest_ns == 512.0 and made.calls == 100


def test_without_calls_there_is_no_quantile_and_no_longest():
    made = Histogram.read(printed())
    assert made.quantile(0.5) is None and made.longest_ns is None and made.calls == 0
    assert latency.row_of(made) == {"p50": None, "p99": None, "p99.99": None, "longest": None}


def test_runs_are_added_up_and_the_longest_is_of_all():
    one, other = Histogram.read(printed((10.0, 3), (90.0, 1))), Histogram.read(printed((10.0, 5), (11.0, 1)))
    both = histograms.added([other, one, Histogram.read(printed())])
    assert (both.starts_ns.tolist(), both.counts.tolist(), both.longest_ns) == ([10.0, 11.0, 90.0], [8, 1, 1], 90.0)


def test_the_share_above_begins_with_all_calls_and_ends_with_the_slowest():
    times, shares = Histogram.read(printed((10.0, 3), (90.0, 1))).share_above()
    assert times.tolist() == [10.0, 90.0] and shares.tolist() == [1.0, 0.25]


def test_the_tables_are_in_microseconds_and_what_was_not_measured_is_a_dash():
    told = {"system": [run_of()], "other": []}
    names = ["system", "other"]
    assert latency.quantile_rows(names, latency.added_up(told, "malloc", "all")) == [
        ["system", "0.01", "0.01", "0.20", "5,000.00"], ["other", "-", "-", "-", "-"]]
    assert latency.quantile_rows(names, latency.added_up(told, "free", "undisturbed"))[0] == ["system", *["-"] * 4]


def test_long_calls_are_counted_over_the_rounds_by_their_cause():
    told = {"system": [run_of(faulted=2), run_of(faulted=1, waited=4)]}
    assert latency.long_rows(["system", "other"], told, "malloc") == [["system", "0", "4", "0", "3"],
                                                                     ["other", *["-"] * 4]]


def test_a_kind_without_calls_has_no_figure_in_the_export():
    figures = latency.figures_of(run_of())
    assert figures["malloc_all_longest_s"] == pytest.approx(5e-3)
    assert not any(name.startswith("free_undisturbed") for name in figures)


def test_the_run_that_proves_is_left_out(tmp_path):
    told = {"system": []}
    command = ["echo", json.dumps(run_of())]
    work = latency.recording(told)(command, Settings(sample_ms=0), tmp_path)
    system = allocators.system()
    assert work.run(system, Extra(prove=True)).failed is None and told == {"system": []}
    work.run(system)
    assert told == {"system": [run_of()]}


def test_a_program_that_prints_something_else_has_failed(tmp_path):
    work = latency.recording({"system": []})(["echo", "{}"], Settings(sample_ms=0), tmp_path)
    assert "makes no figures" in work.run(allocators.system()).failed


def test_the_saved_figures_say_null_where_there_is_none():
    saved = json.loads(json.dumps(latency.as_json(["system", "other"], {"system": [run_of(waited=1)], "other": []})))
    assert saved["free"]["undisturbed"]["system"]["quantiles_ns"]["p50"] is None
    assert saved["free"]["above_100_us"] == {"system": {"nothing": 0, "waited": 1, "switched": 0, "faulted": 0}}


def test_the_program_times_as_many_calls_as_it_is_asked_for():
    """And more, those of the visitors; what is undisturbed is a part of all."""
    out = subprocess.run([build_program("latency.c"), "2", "100000"], capture_output=True, check=True, text=True).stdout
    made = json.loads(out)
    every = [Histogram.read(made[call]["all"]) for call in latency.CALLS]
    quiet = [Histogram.read(made[call]["undisturbed"]) for call in latency.CALLS]
    assert sum(one.calls for one in every) >= 100_000 and made["suspect_ns"] > made["clock_ns"] > 0
    for all_calls, some in zip(every, quiet):
        assert 0 < some.calls <= all_calls.calls and some.longest_ns <= all_calls.longest_ns
        # The longest is exact; the bucket that it is in begins at most 1/32 below.
        assert 0.96 * all_calls.longest_ns <= all_calls.starts_ns[-1] <= all_calls.longest_ns + 1


def test_the_plot_has_a_curve_for_each_allocator(tmp_path):
    pytest.importorskip("matplotlib")
    import latency_plot
    told = {"system": [run_of()], "reheap": [run_of()]}
    panels = {f"{call} {kind}": latency.added_up(told, call, kind) for call in latency.CALLS for kind in latency.KINDS}
    latency_plot.draw(panels, ["system", "reheap", "absent"], tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert ">reheap<" in text and ">system<" in text and ">absent<" not in text
    assert [latency_plot.time_label(ns) for ns in (10, 1e3, 1e5, 1e7, 1e9)] == ["10 ns", "1 µs", "100 µs", "10 ms",
                                                                               "1 s"]
    assert [latency_plot.share_label(share) for share in (1.0, 1e-4)] == ["all", "1 in 10,000"]
