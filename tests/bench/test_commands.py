"""What the questions compute from what the programs print, and what they refuse."""

import argparse
import sys

import bench
import corpus
import fast_path
import hardened
import hours
import idle
import misuse
import musl
import pytest
import startup
import survivors
import synthetic
import threads
import watched
from common import numbers, subjects
from common.question import Question
from common.work import making
from peers import linux as peers
from reheap_lab import allocators, verdicts
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError

from test_tables import comparison


def test_idle_the_share_is_of_what_the_blocks_added():
    printed = "before 1000\nfull 11000\n" + "".join(f"{moment} 2000\n" for moment in idle.MOMENTS)
    assert idle.figures_of(printed)["after_2000_ms"] == 10.0
    with pytest.raises(KeyError, match="after_0_ms"):
        idle.figures_of("before 1000\nfull 11000\n")


def test_misuse_what_ended_or_could_do_nothing_counts_by_size():
    printed = "one.small   stopped\none.large unnoticed\nanother    harmless\n2 of 3 stopped or harmless\n"
    assert misuse.outcomes_in(printed) == {"one": [True, False], "another": [True]}


def test_survivors_what_a_program_did_not_print_is_no_figure():
    printed = "before 1000\n" + "".join(f"{name} 2048\n" for name in survivors.FIGURES)
    assert survivors.figures_of(printed) == dict.fromkeys(survivors.FIGURES, 2048.0)
    with pytest.raises(KeyError, match="after_10000_ms"):
        survivors.figures_of(printed.replace("after_10000_ms", "after_9000_ms"))


def test_survivors_an_allocator_without_figures_is_shown_with_dashes(capsys):
    made = comparison(system=[1.0] * 3, other=[1.0] * 3)
    for run in made.runs:
        run.figures = dict.fromkeys(survivors.FIGURES, 17 * 1024.0) if run.subject == "system" else {}
    verdicts.judge(made)
    survivors.show(made)
    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]] == [["17.0"] * 5, ["-"] * 5]


def test_hours_the_peak_is_over_what_was_live_at_most():
    printed = "".join(f"live_{day} 1\n" for day in range(1, 11)) + "".join(f"{name} 3000\n" for name in hours.KIB)
    found = hours.figures_of(printed.replace("live_peak 3000", "live_peak 2000"))
    assert (found["peak_over_live"], found["resident_10"]) == (1.5, 3000.0)
    with pytest.raises(KeyError, match="resident_7"):
        hours.figures_of(printed.replace("resident_7 ", "resident_x "))


def test_hours_an_allocator_without_figures_is_shown_with_dashes(capsys):
    made = comparison(system=[1.0] * 3, other=[1.0] * 3)
    for run in made.runs:
        run.figures = dict.fromkeys([*hours.KIB, hours.OVER], 2048.0) if run.subject == "system" else {}
    verdicts.judge(made)
    hours.show(made)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert lines[1][:4] == ["system", "2.0", "2.0", "2,048.000"]
    assert lines[2][:4] == ["other", "-", "-", "-"]
    assert lines[4:] == [["system"] + ["2.0"] * 10, ["other"] + ["-"] * 10]


def test_watched_all_processes_of_a_program_count():
    assert watched.instructions_in(["==1== Collected : 10\n", "==2== Collected : 32\n"]) == 42
    for logs in ([], ["==1== Collected : 10\n", "==2== killed\n"]):
        with pytest.raises(LabError, match="killed"):
            watched.instructions_in(logs)


def test_watched_what_is_added_is_told_of_each_program_and_of_all():
    rows = watched.rows_of({"one": [1_000_000, 1_010_000, 1_000_000], "other": [2_000_000, 2_060_000, 2_000_000]})
    assert rows == [["one", "1", "+1.00 %", "+0.00 %"], ["other", "2", "+3.00 %", "+0.00 %"],
                    ["median", "", "+2.00 %", "+0.00 %"], ["most", "", "+3.00 %", "+0.00 %"]]


def test_hardened_each_program_has_a_ratio_and_all_have_a_mean():
    rows = hardened.rows_of({"one": (1_000_000, 2_000_000), "other": (4_000_000, 32_000_000)})
    assert rows == [["one", "1", "2", "2.000"], ["other", "4", "32", "8.000"], ["geometric mean", "", "", "4.000"]]


def test_fast_path_start_up_cancels_out():
    path = fast_path.FastPath("mixed", "", 100, (10, 30), (10, 30))
    assert fast_path.per_pair(lambda _, program: 5_000_000 + 70 * 100 * int(program[-1]), allocators.system(),
                              path) == 70.0


def test_fast_path_both_ways_of_counting_agree():
    path = fast_path.FastPath("pairs", "", 1, (10, 210), (10, 210))
    by_callgrind, by_steps = (fast_path.per_pair(count, allocators.system(), path)
                              for count in (fast_path.by_callgrind, fast_path.by_steps))
    assert by_callgrind == pytest.approx(by_steps, rel=0.01)


def test_startup_added_is_against_the_same_round():
    made = comparison(system=[1.0, 1.0, 1.0], other=[1.0, 1.0, 1.0])
    for run, peak in zip(made.runs, (1000, 2000, 3000, 1100, 2100, 3100)):
        run.figures["peak_rss_kib"] = peak
    verdicts.judge(made)
    assert startup.rows(made)[1][:4] == ["other", "2,100", "100", "100 .. 100"]


def test_startup_measures_without_the_witness(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/theirs.so")
    plain, other = startup.Starter("system"), startup.Starter("a", ("/a.so",), prefix=("run", "--"))
    assert (plain.launch(["x"], None).env, plain.launch(["x"], None).unset) == ({}, ["LD_PRELOAD"])
    assert (other.launch(["x"], None).env,
            other.launch(["x"], None).argv) == ({"LD_PRELOAD": "/a.so"}, ["run", "--", "x"])


def test_an_unknown_workload_is_refused():
    with pytest.raises(LabError, match="unknown workload larsen; known: larson"):
        synthetic.select("larsen", synthetic.WORKLOADS, "workload")


def test_numbers_of_threads_are_put_in_order():
    assert numbers.positives("4,1,4,16") == [1, 4, 16]
    for text in ("", "1,,2", "0", "two"):
        with pytest.raises((ValueError, argparse.ArgumentTypeError)):
            numbers.positives(text)


def test_threads_that_live_at_once_take_time_to_come_and_to_go():
    assert threads.living_figures("2000 500\n") == {"come_s": 2e-6, "go_s": 5e-7}
    with pytest.raises(ValueError):
        threads.living_figures("2000\n")


@pytest.fixture
def named(monkeypatch):
    known = {"good": {"version": "1", "preload": ["/good.so", "/beside.so"]}, "bad": {"missing": "does not compile"}}
    monkeypatch.setattr(subjects, "known_peers", lambda: known)
    monkeypatch.setattr(subjects, "prove", lambda allocator: None)


def test_a_peer_that_could_not_be_built_is_named_and_left_out(named):
    choice = subjects.choose(["peers"], reheap=False)
    assert [one.name for one in choice.allocators] == ["system", "good"]
    assert [str(path) for path in choice.allocators[1].libraries] == ["/good.so", "/beside.so"]
    assert choice.missing == {"bad": "does not compile"}


def test_a_peer_that_serves_nothing_is_left_out_and_reheap_must_serve(named, monkeypatch):
    def refuse(allocator: Allocator) -> None:
        if allocator.libraries:
            raise LabError("served by libc")
    monkeypatch.setattr(subjects, "prove", refuse)
    assert subjects.choose(["good"], reheap=False).missing == {"good": "served by libc"}
    with pytest.raises(LabError, match="reheap cannot be measured: served by libc"):
        subjects.choose([])


def test_unknown_names_are_refused(named):
    with pytest.raises(LabError, match="unknown allocator 'god'; known: system, reheap, bad, good"):
        subjects.choose(["god"], reheap=False)
    with pytest.raises(LabError, match="no library /nowhere/x.so"):
        subjects.choose(["new=/nowhere/x.so"], reheap=False)
    with pytest.raises(LabError, match="unknown peer snmaloc"):
        peers.select("snmaloc", peers.RECIPES, "peer")


def test_a_library_by_its_path(named):
    chosen = subjects.choose([f"mine={__file__}"], reheap=False).allocators[1]
    assert (chosen.name, [str(path) for path in chosen.libraries]) == ("mine", [__file__])


def test_each_comparison_has_an_export_of_its_own(monkeypatch, tmp_path):
    question = Question("synthetic", 1, tmp_path / "new", None, [allocators.system()])
    question.compare("larson 2", ["true"])
    question.compare("A & B", ["true"])
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["synthetic-a-b.json",
                                                                          "synthetic-larson-2.json"]


def test_what_was_not_measured_is_named_and_only_reheaps_is_a_failure(capsys):
    for name, status in (("other in larson 2", 0), ("reheap in larson 2", 1)):
        assert Question("x", 1, None, None, [], {name: "crashed"}).end() == status
        assert f"{name} was not measured: crashed" in capsys.readouterr().out


def test_a_command_that_fails_under_one_allocator_is_named():
    script = 'case "$LD_PRELOAD" in *libreheap.so*) exit 7;; esac'
    question = Question("x", 1, None, None, allocators.choose("system,reheap", folders=[]))
    made = question.compare("title", ["sh", "-c", script])
    assert question.missing == {"reheap in title": "its exit status was 7"} and len(made.measured("system")) == 1


def test_a_file_that_is_made_is_compared_whatever_is_printed(tmp_path):
    """Each run makes its own, so that two may run at a time."""
    output = tmp_path / "made"
    question = Question("x", 2, None, None, allocators.choose("system,reheap", folders=[]))
    script = 'echo $$; [ ! -e "$1" ] || exit 9; ' \
             'case "$LD_PRELOAD" in *libreheap.so*) echo other;; *) echo same;; esac > "$1"'
    for text, failed in ((script, ["reheap in x"]), (script.replace("other", "same"), [])):
        question.missing = {}
        made = question.compare("x", ["sh", "-c", text, "sh", output], making(output), output="check")
        assert list(question.missing) == failed and not output.exists() and made.runs


def test_a_program_that_makes_something_else_each_time_cannot_be_compared():
    question = Question("x", 2, None, None, [allocators.system()])
    with pytest.raises(LabError, match="title: its outputs differ from run to run"):
        question.compare("title", ["sh", "-c", "echo $$"], output="check")


def test_the_link_does_not_depend_on_the_machine():
    command = corpus.link_command([], corpus.CORPUS / "x.so")
    for flag in ("--threads=2", "--thinlto-jobs=2", "--build-id=none"):
        assert flag in command


def test_an_unknown_command_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "lnik"])
    with pytest.raises(LabError, match="unknown command 'lnik'; known: peers, corpus, fast-path"):
        bench.main()


def test_musl_the_report_shows_who_served():
    assert musl.serves('a line of the program\n{"process": {}}\n')
    assert not musl.serves("a line of the program\n") and not musl.serves("{ no report")


def test_musl_what_was_not_measured_is_a_dash():
    own, ours = [{"wall_s": 2.0}] * 6, [{"wall_s": 1.0}] * 6
    assert musl.row("one", "wall_s", own, ours, 1, 2)[:3] == ["one", "2.00", "0.50"]
    assert musl.row("one", "peak_rss_kib", own, ours, 1, 2) == ["one", "-", "-", "-"]
