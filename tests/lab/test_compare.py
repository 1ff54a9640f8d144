"""Comparisons from beginning to end, with a runner whose figures are made up."""

import io
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import rich.console

from reheap_lab import allocators, compare, export, figures, host, results, rounds, runner, terminal, workload
from reheap_lab.answer import answer
from reheap_lab.errors import LabError, UsageError
from reheap_lab.report import page
from reheap_lab.settings import OwnFigure, Server, Settings

COMMAND = ["true", "x"]


def run(fake, *names, **settings):
    given = {"runs": 4, "warmups": 1, "extras": False} | settings
    return compare.compare(COMMAND, fake.allocators(*names), Settings(**given))


def test_each_round_has_each_subject_once_in_an_order_that_changes(fake):
    fake.plan()
    made = run(fake, "system", "a", "b", runs=6)
    rounds = [[r.subject for r in made.runs if r.round == n and not r.warmup] for n in range(6)]
    assert all(sorted(names) == ["a", "b", "system"] for names in rounds)
    assert len(set(map(tuple, rounds[::2]))) > 1
    assert rounds[1::2] == [names[::-1] for names in rounds[::2]]  # what rises steadily favours none
    assert [r.place for r in made.runs] == [0, 1, 2] * 7
    assert [r.warmup for r in made.runs] == [True] * 3 + [False] * 18


def test_of_an_order_turned_around_who_was_given_up_is_left_out():
    book = rounds.Book(["system", "a", "b"])
    order = rounds.orders(book, random.Random(0))
    first = next(order)
    book.subjects.remove("a")
    assert next(order) == [name for name in reversed(first) if name != "a"]


def test_the_same_seed_gives_the_same_order(fake):
    fake.plan()
    orders = [[r.subject for r in run(fake, "system", "a", "b", seed=seed).runs] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_difference_is_found_and_worded(fake):
    fake.plan(a={"wall_us": 80_000, "peak": 2400})
    made = run(fake, "system", "a")
    wall, peak = made.verdict("wall_s", "a"), made.verdict("peak_rss_kib", "a")
    assert wall.word == "faster" and wall.ratio == pytest.approx(0.8)
    assert wall.text.startswith("wall time: a is faster than system, by 20.0 %")
    assert peak.word == "more memory" and "uses more memory" in peak.text and "20.0 %" in peak.text


def test_equals_are_called_equal_and_until_precise_ends(fake):
    fake.plan()
    made = run(fake, "system", "a", runs=None)
    assert made.verdict("wall_s", "a").word == "no measurable difference"
    assert len(made.measured("a")) == 8


def test_the_proof_is_kept_and_lacking_it_fails(fake):
    fake.plan(b={"served_by": "/elsewhere/libc.so.6"})
    with pytest.raises(UsageError, match="b: .*does not serve .*was served by /elsewhere/libc.so.6, not by"):
        run(fake, "system", "a", "b")
    fake.plan()
    made = run(fake, "system", "a")
    assert made.subjects[1].proof["malloc"].endswith("liba.so")


def test_the_first_run_of_each_proves_and_never_counts(fake):
    fake.plan()
    made = run(fake, "system", "a", runs=2, warmups=0)
    proving = [ask.account for _, ask in fake.calls]
    assert proving == [True] * 2 + [False] * 4 and [r.warmup for r in made.runs] == proving
    assert ["witness" in launch.env.get("LD_PRELOAD", "") for launch, _ in fake.calls] == proving


def test_what_was_not_served_is_refused_or_told_with_its_share(fake):
    fake.plan(a={"others_us": 9000}, b={"others_us": 50})
    made = run(fake, "system", "a", "b")
    assert made.subjects[1].failed.startswith("other (90 % of the CPU time): nothing in it was seen to allocate")
    assert made.subjects[2].share == pytest.approx(1000 / 1050) and not made.subjects[2].failed
    assert "5 % of the CPU time was not its own" in made.subjects[2].warnings[0]


def test_what_cannot_be_followed_is_proven_by_its_first_process(fake):
    fake.plan(a={"untraceable": "reheap-runner: --account needs ptrace"})
    made = run(fake, "system", "a")
    assert made.verdict("wall_s", "a") and made.subjects[1].share is None
    assert "could not be accounted for" in made.subjects[1].warnings[0]


def test_what_outlives_the_command_is_told(fake):
    fake.plan(a={"left": 2})
    made = run(fake, "system", "a")
    assert made.subjects[1].warnings == [compare.OUTLIVED] and not made.subjects[0].warnings


def test_a_timed_run_neither_profiles_nor_counts(fake):
    fake.plan()
    made = run(fake, "system", "a", runs=3, extras=True)
    timed, further = fake.calls[:8], fake.calls[8:]
    assert not any(ask.profile_hz or ask.count_calls for _, ask in timed)
    assert [(bool(ask.profile_hz), ask.count_calls) for _, ask in further] == [(True, False), (False, True)] * 2
    extras = made.extras["a"]
    assert extras.calls == {"mmap": 12, "munmap": 3}
    assert extras.profile.shares == {"allocator": 0, "libc": 0.3, "kernel": 0.1, "program": 0.6, "other": 0}
    assert extras.profile.modules[0].module == "/usr/bin/program" and extras.profile.lost == 1


@pytest.mark.parametrize("plan, said", [
    ({"exit": 3, "says": "no such table"}, "exit status was 3; it said: no such table"),
    ({"signal": 11}, "signal 11 .SIGSEGV."),
    ({"exit": 3, "says": "\x1b]0;a\x07\x1b[1;31mno\x1b[0m\x9b2J 1 %\r2 %\x00\x7f\t\u00e9\r\n"},
     "said: no2J 1 %\n2 %\t\u00e9$"),
    ({"timed_out": True, "signal": 9}, "longer than 5 s"),
    ({"cannot": "reheap-runner: out of descriptors"}, "out of descriptors$"),
    ({"cannot": "its launcher ended with 126", "says": "Internal error"}, "ended with 126; it said: Internal error$"),
])
def test_what_fails_under_one_allocator_is_told_and_the_others_go_on(fake, plan, said):
    fake.plan(a=plan)
    if "cannot" not in plan:
        with pytest.raises(UsageError):  # the probe fails the same way
            run(fake, "system", "a", timeout=5.0)
    made = compare.Comparer(compare.CommandWorkload(COMMAND, Settings(runs=3, extras=False, timeout=5.0), fake.folder),
                            fake.allocators("system", "a", "b")).compare()
    assert re.search(said, made.subjects[1].failed)
    assert len(made.measured("b")) == 3 and made.verdict("wall_s", "b") and not made.verdict("wall_s", "a")
    assert any("a has no verdict" in text for text in export.all_warnings(made))


def test_when_all_fail_there_is_no_comparison(fake, monkeypatch):
    fake.plan(system={"cannot": "no way"})
    with pytest.raises(LabError, match="nothing could be measured of true x:\n  system: no way"):
        run(fake, "system")


def test_other_output_is_a_warning_or_a_failure(fake):
    fake.plan(a={"prints": "different"})
    warned = run(fake, "system", "a")
    assert warned.subjects[1].failed is None and "prints something else" in warned.subjects[1].warnings[0]
    failed = run(fake, "system", "a", output="check")
    assert "prints something else" in failed.subjects[1].failed and not failed.verdict("wall_s", "a")
    assert not run(fake, "system", "a", output="discard").subjects[1].warnings


def test_what_the_system_prints_is_right_wherever_it_stands(fake):
    fake.plan(a={"prints": "different"})
    failed = run(fake, "a", "system", "b", output="check")
    assert [bool(subject.failed) for subject in failed.subjects] == [True, False, False]
    assert "prints something else than under system" in failed.subjects[0].failed


def test_output_that_changes_by_itself_says_nothing(fake):
    fake.plan(system={"prints": "time"}, a={"prints": "time"})
    made = run(fake, "system", "a", output="check")
    assert made.subjects[1].failed is None and "could not be checked" in made.warnings[-1]


def test_too_short_is_said(fake):
    fake.plan(system={"wall_us": 1200}, a={"wall_us": 1300})
    assert any("too short to measure (1.2 ms)" in text or "too short to measure (1200" in text
               for text in run(fake, "system", "a").warnings)


def test_what_was_not_measured_is_absent(fake):
    fake.plan(a={"no_samples": True})
    made = run(fake, "system", "a")
    assert "mean_rss_kib" in made.measured("system")[0].figures
    assert "mean_rss_kib" not in made.measured("a")[0].figures and not made.verdict("mean_rss_kib", "a")


def test_the_peak_of_all_processes_stands_beside_that_of_the_largest(fake):
    fake.plan(system={"peak_of_all": 9000}, a={"peak_of_all": 12000}, b={"peak_of_all": 1000})
    made = run(fake, "system", "a", "b")
    assert made.verdict("peak_tree_kib", "a").word == "more memory"
    assert made.verdict("peak_rss_kib", "a").word == "no measurable difference"
    assert made.measured("b")[0].figures["peak_tree_kib"] == 2000  # no less than the largest one's own


RATE = OwnFigure.parse("requests/s=rate: ([0-9.,]+)", more_is_better=True)
DELAY = OwnFigure.parse("p99=p99 ([0-9.]+) ms", more_is_better=False)


def test_what_the_command_prints_of_itself_is_judged_its_own_way(fake):
    fake.plan(system={"prints": "rate: 1,000.5\np99 8 ms"}, a={"prints": "rate: 1,100.55\np99 9 ms"})
    made = run(fake, "system", "a", own=[RATE, DELAY], output="discard")
    assert made.measured("a")[0].figures["requests/s"] == 1100.55
    rate, delay = made.verdict("requests/s", "a"), made.verdict("p99", "a")
    assert rate.word == "better" and rate.text.startswith("requests/s: a is better than system, by 10.0 %")
    assert delay.word == "worse" and [terminal.style_of(one) for one in (rate, delay)] == ["green", "red"]
    assert "--more-is-better 'requests/s=rate: ([0-9.,]+)'" in made.reproduce
    assert results.load(results.dump(made)) == made
    assert "| requests/s | 1,000 " in export.as_markdown(made)


def test_until_precise_waits_for_the_commands_own_figure_too(fake):
    fake.plan()
    stop = rounds.stop_of(Settings(own=[RATE]))
    book = rounds.Book(["system", "a"], stop)
    book.runs = [results.Run(name, n, 0, figures={"wall_s": 1.0, "peak_rss_kib": 9.0, "requests/s": rate})
                 for n in range(8) for name, rate in (("system", 10), ("a", 10 + n % 3))]
    book.rounds = 8
    assert [one.figure for one in stop.imprecise(book)] == ["requests/s"]


def test_a_command_that_does_not_print_it_has_failed(fake):
    fake.plan(a={"prints": "nothing of it"}, system={"prints": "rate: 5"})
    made = run(fake, "system", "a", own=[RATE])
    assert made.subjects[1].failed == "it printed no requests/s: nothing is like rate: ([0-9.,]+)"


@pytest.mark.parametrize("printed, value", [("-5", -5), ("1,234.5", 1234.5)])
def test_figures_are_read_as_people_write_them(printed, value):
    assert OwnFigure.parse("v=v: (.*)", more_is_better=True).find(f"v: {printed}\n") == value


@pytest.mark.parametrize("printed", ["nan", "inf", "-inf", "1e308", "9" * 5000, "", "abc"])
def test_what_cannot_be_reckoned_with_is_no_figure(printed):
    with pytest.raises(LabError, match="the part in brackets is no number that can be compared"):
        OwnFigure.parse("v=v: (.*)", more_is_better=True).find(f"v: {printed}\n")


def test_a_servers_own_figures_are_those_of_its_load(fake):
    fake.plan(system={"serves": True, "prints": "rate: 1"})
    made = run(fake, "system", runs=1, own=[RATE], server=Server(load="echo rate: 77", idle=0.0))
    assert made.measured("system")[0].figures["requests/s"] == 77


@pytest.mark.parametrize("text, said", [("requests", "names no figure of the command's own"), ("=x(.)", "names no"),
                                        ("a=x", "has no group"), ("a=(", "is no regular expression"),
                                        ("wall_s=(.)", "one of the lab's own figures")])
def test_own_figures_that_are_none(text, said):
    with pytest.raises(UsageError, match=said):
        OwnFigure.parse(text, more_is_better=True)


def test_setup_runs_once_and_prepare_before_each_run(fake):
    fake.plan()
    setup, prepare = fake.folder / "setup", fake.folder / "prepare"
    run(fake, "system", "a", runs=2, setup=f"echo x >> {setup}", prepare=f"echo x >> {prepare}")
    assert setup.read_text() == "x\n" and prepare.read_text() == "x\n" * 6


def test_a_setup_that_fails_is_named(fake):
    fake.plan()
    with pytest.raises(LabError, match="--setup failed with status 4: echo broken >&2; exit 4\nbroken"):
        run(fake, "system", setup="echo broken >&2; exit 4")


def test_what_a_helper_leaves_behind_is_not_waited_for(fake):
    fake.plan(system={"serves": True})
    left = fake.folder / "left"
    began = time.monotonic()
    server = Server(load="true", ready=f"sleep 60 & echo $! >> {left}", idle=0.0)
    run(fake, "system", runs=1, warmups=0, setup=f"sleep 60 & echo $! >> {left}", server=server)
    assert time.monotonic() - began < 30
    for process in left.read_text().split():
        os.kill(int(process), signal.SIGTERM)


def test_helpers_that_take_too_long(fake):
    fake.plan(system={"serves": True})
    with pytest.raises(LabError, match="--load took longer than 0.5 s: exec sleep 60"):
        run(fake, "system", timeout=0.5, server=Server(load="exec sleep 60", idle=0.0))
    with pytest.raises(LabError, match="the server was not ready after 0.2 s"):
        run(fake, "system", server=Server(load="true", ready="exec sleep 60", ready_timeout=0.2, idle=0.0))
    with pytest.raises(UsageError, match="--timeout must be more than 0"):
        Settings(timeout=0)


def test_a_server_is_started_loaded_left_idle_and_stopped(fake):
    fake.plan(system={"serves": True}, a={"serves": True, "wall_us": 9_000_000})
    server = Server(load="sleep 0.05", ready="true", idle=0.1)
    made = run(fake, "system", "a", runs=3, warmups=0, server=server)
    assert made.kind == "server"
    run_of_a = made.measured("a")[0]
    assert 0.05 <= run_of_a.figures["wall_s"] < 5 and "utilisation" not in run_of_a.figures


def test_a_server_that_ends_too_soon_fails(fake):
    fake.plan(a={"says": "port taken"}, system={"serves": True})
    made = run(fake, "system", "a", runs=2, warmups=1, server=Server(load="sleep 0.1", idle=0.0))
    assert "the server ended " in made.subjects[1].failed and "port taken" in made.subjects[1].failed


def test_a_server_that_was_stopped_has_not_failed(fake):
    fake.plan(system={"serves": True})
    made = run(fake, "system", runs=1, warmups=0, server=Server(load="true", idle=0.0, stop=None))
    assert made.runs[0].failed is None


def test_a_server_that_crashes_when_it_is_stopped_has_failed(fake):
    fake.plan(system={"serves": True}, a={"serves": True, "stops_by": 6})
    made = run(fake, "system", "a", runs=1, server=Server(load="true", idle=0.0))
    assert [subject.failed for subject in made.subjects] == [None, "it was ended by signal 6 (SIGABRT)"]


def test_a_command_whose_output_fills_the_disk_was_not_measured(fake, monkeypatch):
    """It may go on all the same, with less to do."""
    fake.plan(system={"prints": "much"}, a={"prints": ""})
    monkeypatch.setattr(host, "is_full", lambda folder: True)
    made = run(fake, "a", "system", runs=2)
    assert made.subjects[0].failed is None
    assert re.fullmatch("what it prints has filled the disk of /.*--output discard, or .* by TMPDIR",
                        made.subjects[1].failed)


def test_what_is_said_on_standard_error_fills_the_disk_too(fake, monkeypatch):
    fake.plan(system={"says": "very much"})
    monkeypatch.setattr(host, "is_full", lambda folder: True)
    with pytest.raises(LabError, match="what it says on standard error has filled the disk of /.*less, or .* TMPDIR"):
        run(fake, "system", runs=2)


def test_of_much_that_was_said_the_end_alone_is_read(tmp_path, monkeypatch):
    said, read, end_of = tmp_path / "said", [], workload.end_of
    monkeypatch.setattr(workload, "end_of", lambda text: read.append(len(text)) or end_of(text))
    said.write_bytes(bytes(1 << 20) + b"\x1b[31mat last\x1b[0m\n")
    assert workload.tail(said) == "at last"
    assert read[0] < 1 << 17


def test_a_server_that_does_not_stop_fails(fake):
    fake.plan(system={"serves": True})
    with pytest.raises(LabError, match="still there 0.1 s after --stop true. Name what stops it: --stop CMD"):
        run(fake, "system", server=Server(load="true", idle=0.0, stop="true", stop_timeout=0.1))


@pytest.mark.parametrize("load, said", [("false", "failed with status 1: false"),
                                        ("kill -9 $$", "was ended by signal 9 .SIGKILL.: kill")])
def test_a_load_that_fails_is_named(fake, load, said):
    fake.plan(system={"serves": True})
    with pytest.raises(LabError, match=f"--load {said}"):
        run(fake, "system", server=Server(load=load, idle=0.0))


def test_what_heeds_no_sigterm_ends_with_its_runner(monkeypatch):
    monkeypatch.setattr(host, "PATIENCE", 0.2)
    text = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    process.stdout.readline()
    host.end(process)
    assert process.returncode == -signal.SIGKILL


def test_a_runner_whose_command_heeds_no_sigterm_is_told_that_nobody_listens(monkeypatch):
    monkeypatch.setattr(host, "PATIENCE", 0.2)
    text = ("import select, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); gone = select.poll(); "
            "gone.register(2, 0); gone.poll()")
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    host.end(process)
    assert process.returncode == 0


def test_the_result_survives_json_and_can_be_repeated(fake):
    fake.plan()
    made = run(fake, "system", "a", timeout=5.0, prepare="sync; true")
    assert results.load(results.dump(made)) == made
    assert f"--with system,a={fake.folder}/liba.so --seed 0 --runs 4 --timeout 5" in made.reproduce
    assert "--prepare 'sync; true'" in made.reproduce and made.reproduce.endswith("-- true x")


def test_the_line_that_repeats_it_has_what_the_allocators_were_told(fake, monkeypatch):
    monkeypatch.setenv("MALLOC_CONF", "dirty_decay_ms:0,narenas:1")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    monkeypatch.setenv("UNRELATED", "x")
    fake.plan()
    line = run(fake, "system", "a").reproduce
    given = "env GLIBC_TUNABLES=glibc.malloc.arena_max=1 MALLOC_CONF=dirty_decay_ms:0,narenas:1"
    assert f" && {given} reheap compare" in line
    assert "UNRELATED" not in line


def test_variants_of_one_allocator_are_told_apart_and_repeated(fake):
    fake.plan()
    path = fake.library("a")
    chosen = allocators.choose(f"a={path},b={path},MALLOC_CONF=x:1,y:2", folders=[])
    made = compare.compare(COMMAND, chosen, Settings(runs=3, extras=False))
    told = {launch.env.get("MALLOC_CONF") for launch, _ in fake.calls}
    assert told == {None, "x:1,y:2"} and made.subjects[1].variables == {"MALLOC_CONF": "x:1,y:2"}
    assert f"--with a={path},b={path},MALLOC_CONF=x:1,y:2 " in made.reproduce


def test_stopped_while_looking_closer_loses_nothing(fake, monkeypatch):
    fake.plan()
    start = runner.start

    def interrupted(launch, ask, out):
        if ask.profile_hz:
            raise KeyboardInterrupt
        return start(launch, ask, out)
    monkeypatch.setattr(runner, "start", interrupted)
    made = run(fake, "system", "a", extras=True)
    assert made.verdict("wall_s",
                        "a") and made.extras == {} and "stopped by the user" in made.warnings[-1] + made.warnings[0]


def test_a_run_whose_files_were_taken_away_costs_no_other(fake, monkeypatch):
    """Something tidies the folder for temporary files while it is measured for an hour."""
    fake.plan()
    read, count = runner.read, iter(range(100))

    def gone(path, launch=None):
        if next(count) in (9, 12):
            path.unlink()
        return read(path, launch)
    monkeypatch.setattr(runner, "read", gone)
    made = run(fake, "system", "a", runs=6, extras=True)
    lost = [one.failed for one in made.runs if one.failed]
    assert len(lost) == 2 and all(re.fullmatch("/.*/record: No such file or directory", text) for text in lost)
    assert made.summaries["wall_s"]


def test_two_rounds_give_no_verdict_and_say_so(fake):
    fake.plan()
    made = run(fake, "system", "a", runs=2)
    assert not made.verdicts and any("2 rounds give no verdict" in text for text in made.warnings)


def test_progress_names_the_phase_and_the_time_left(fake):
    now = iter(range(100))
    book = rounds.Book(["system"], rounds.Fixed(10), clock=lambda: next(now))
    assert terminal.phase(book) == "warming up" and terminal.left(book) == ""
    book.begin_measuring()
    book.rounds = 4
    assert terminal.phase(book) == "round 5" and terminal.left(book).endswith("s left")
    book.timing = False
    assert terminal.phase(book) == "looking closer" and terminal.left(book) == ""


def test_a_budget_ends_before_it_is_overdrawn(fake):
    now = iter(range(0, 10000, 1))
    book = rounds.Book(["a"], rounds.Budget(60), clock=lambda: next(now))
    rounds.run_rounds(book, lambda *words: results.Run(*words[:3]), 0, 0, rounds.Quiet())
    assert 3 < book.rounds < 60


def test_until_precise_gives_up_at_its_bounds(fake):
    stop = rounds.Precise(0.01, 0.99, most_runs=12, most_time=1e9)
    book, walls = rounds.Book(["a", "b"], stop), iter([1.0, 2.0, 3.0, 1.5, 2.2] * 100)
    rounds.run_rounds(book, lambda *words: results.Run(*words[:3], figures={"wall_s": next(walls)}), 0, 0,
                      rounds.Quiet())
    assert book.rounds == 12


def test_only_rounds_in_which_both_have_a_figure_make_pairs():
    made = [results.Run("a", n, 0, figures={"wall_s": n + 1.0}) for n in range(4)]
    made += [results.Run("b", 0, 1, figures={"wall_s": 5.0}),
             results.Run("b", 1, 1, failed="no", figures={"wall_s": 6.0}),
             results.Run("b", 3, 1, figures={"wall_s": 8.0}), results.Run("b", 2, 1, True, figures={"wall_s": 7.0})]
    assert rounds.pairs(made, "wall_s", "b", "a") == ([5.0, 8.0], [1.0, 4.0])


def test_a_command_that_hardly_calls_malloc_is_told(fake):
    def told(inside: int, of: int = 1000) -> list[str]:
        fake.plan(a={"samples": {str(fake.library("a")): inside, "/usr/bin/program": of - inside}})
        return [text for text in run(fake, "system", "a", extras=True).warnings if "hardly calls malloc" in text]
    assert told(1)[0].startswith("the command spends at most 0.1 % of its time inside an allocator")
    assert not told(5) and not told(0, of=100)


@pytest.mark.parametrize("settings, told", [({"runs": None, "most_runs": 1}, 0), ({"runs": None, "most_runs": 5}, 1),
                                            ({"runs": 5}, 0), ({"runs": None, "time": 0.01}, 0)])
def test_until_precise_says_where_it_gave_up_and_nobody_else_does(fake, tmp_path, settings, told):
    walls = iter(range(10**6))
    fake.plan(a={"wall_us": lambda: 100_000 + 30_000 * (next(walls) % 3)})
    made = run(fake, "system", "a", **settings)
    said = f"not precise after {figures.plural(made_rounds(made), 'round')}, where it gives up: wall time of a."
    shown = rich.console.Console(file=io.StringIO(), width=200)
    terminal.show(made, shown)
    for text in (shown.file.getvalue(), export.as_markdown(made), *([page.html(made)] if told else [])):
        assert text.count(said) == told
    assert "certain" in answer(made).text or "Too few rounds" in answer(made).text


def made_rounds(made) -> int:
    return len({one.round for one in made.runs if not one.warmup})


# ---- instructions and cycles --------------------------------------------------------------------


def test_counters_that_took_turns_are_scaled_and_what_never_counted_is_unknown(fake):
    fake.plan(system={"counters": {"instructions": (3_000_000, 90, 30), "cycles": (0, 90, 0), "task-clock": (7, 9, 9)}},
              a={"counters": {"instructions": (8_000_000, 90, 90)}})
    made = run(fake, "system", "a", runs=8)
    for measured in made.measured("system"):
        assert measured.figures["instructions"] == 9_000_000
        assert not {"cycles", "task-clock"} & measured.figures.keys()
    (verdict,) = [v for v in made.verdicts if v.figure == "instructions"]
    assert verdict.text.startswith("instructions: a takes fewer instructions than system, by 11.1 %")
    assert figures.describe("instructions", made.summaries["instructions"]["system"].median) == "9 M"


def test_without_counters_there_are_no_such_figures_and_they_do_not_decide(fake):
    fake.plan()
    made = run(fake, "system", "a")
    assert not {"instructions", "cycles"} & made.summaries.keys()
    assert not {"instructions", "cycles"} & set(figures.DECIDING)
    assert all(ask.events == ("instructions", "cycles") for _, ask in fake.calls)
