"""Every exporter, and what the terminal shows."""

import contextlib
import csv
import errno
import io
import os
import pathlib
import sys
import tempfile

import collected
import comparisons
import pytest
from rich.console import Console

from reheap_lab import evidence, export, figures, profile, results, runner, telling, terminal, verdicts
from reheap_lab.errors import LabError, UsageError
from reheap_lab.results import Comparison, Extras, Run, Subject
from reheap_lab.rounds import Book
from reheap_lab.statistics import Interval
from reheap_lab.suite import documents


def made() -> Comparison:
    """Three subjects in six rounds: b takes 10 % less time and 20 % more memory, c fails."""
    comparison = Comparison(["prog", "a|b"], started="2026-01-01T00:00:00+00:00",
                            reproduce="reheap compare -- prog 'a|b'",
                            settings={"margin": 0.01, "confidence": 0.99, "seed": 0},
                            machine={"cpu": "CPU", "cores": 2},
                            subjects=[Subject("a"), Subject("b", warnings=["odd"]),
                                      Subject("c", failed="it broke\nbadly")])
    for n in range(6):
        wall = 1 + 0.1 * n
        comparison.runs += [Run("a", n, 0, figures={"wall_s": wall, "peak_rss_kib": 1000, "minor_faults": 7}),
                            Run("b", n, 1, figures={"wall_s": wall * 0.9, "peak_rss_kib": 1200})]
    comparison.runs.append(Run("c", 0, 0, True, failed="it broke\nbadly"))
    comparison.extras["a"] = Extras({"mmap": 4}, profile.read({"source": "sigprof", "modules": [
        {"module": "/bin/prog", "samples": 3}, {"module": "[kernel]", "samples": 1}]}, []))
    verdicts.judge(comparison)
    return comparison


def test_json_is_the_whole_comparison(tmp_path):
    export.write(made(), tmp_path / "x.json")
    assert results.load_file(tmp_path / "x.json") == made()


def test_csv_has_a_line_for_each_run_and_empty_cells_for_what_is_unknown():
    rows = list(csv.DictReader(io.StringIO(export.as_csv(made()))))
    assert len(rows) == 13
    assert (rows[1]["subject"], rows[1]["wall_s"], rows[1]["minor_faults"]) == ("b", "0.9", "")
    assert (rows[-1]["failed"], rows[-1]["warmup"], rows[-1]["wall_s"]) == ("it broke\nbadly", "1", "")
    assert [float(row["peak_rss_kib"]) for row in rows[:2]] == [1000, 1200]


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1+cmd|x", "-1+1", "@SUM(1)", "\t=1", "\n=1"])
def test_no_cell_is_a_formula(text):
    comparison = made()
    comparison.runs[-1].failed = comparison.runs[-1].subject = text
    comparison.runs[0].figures |= {text: -5.0}
    header, first, *_, last = csv.reader(io.StringIO(export.as_csv(comparison), newline=""))
    assert last[:1] == [f"'{text}"] and f"'{text}" in header and last.count(f"'{text}") == 2
    assert first[header.index(f"'{text}")] == "-5.0"


def test_a_progress_bar_in_what_a_command_said_begins_no_line():
    comparison = made()
    comparison.runs[-1].failed = "it said: 1 %\r2 %\r\n3 %"
    rows = list(csv.DictReader(io.StringIO(export.as_csv(comparison), newline="")))
    assert len(rows) == 13 and rows[-1]["failed"] == "it said: 1 %\n2 %\n3 %"


def test_a_parameter_that_is_a_number_stays_one():
    made = collected.sweep(values=("-1", "+2e3", "-x"), rounds=3)
    rows = list(csv.DictReader(io.StringIO(documents.as_csv(made))))
    assert list(dict.fromkeys(row["threads"] for row in rows)) == ["-1", "+2e3", "'-x"]


def test_markdown_has_the_tables_the_verdicts_and_the_way_to_repeat_it():
    text = export.as_markdown(made())
    assert "| wall time | 1.25 s (1.00 s to 1.50 s) |" in text
    assert "| peak, largest process | 1000 KiB | 1.17 MiB |  |" in text
    assert "- wall time: b is faster than a, by 10.0 %" in text
    assert "- peak, largest process: b uses more memory than a, by 20.0 %" in text
    assert "| a | 0.0 % | 0.0 % | 25.0 % | 75.0 % | 0.0 % |" in text and "| a | 4 |" in text
    assert "- Careful: c has no verdict: it broke" in text and "- Careful: b: odd" in text
    assert "```sh\nreheap compare -- prog 'a|b'\n```" in text


def test_a_command_cannot_break_the_document():
    comparison = made()
    comparison.command, comparison.reproduce = ["sh", "-c", "\n`x` ``\n# y"], "echo ```"
    text = export.as_markdown(comparison)
    assert text.startswith("# ```sh -c ' `x` `` # y'```\n\n") and text.endswith("\n\n````sh\necho ```\n````\n")
    assert export.code("`") == "`` ` ``" and export.code("a") == "`a`"


def test_what_a_command_said_cannot_break_the_document():
    comparison, said = made(), "it said: <script>\n# `x` *y* [z](u) \\"
    comparison.subjects[2].failed = said
    shown = r"it said: \<script> # \`x\` \*y\* \[z\](u) \\"
    assert f"- Careful: c has no verdict: {shown}\n" in export.as_markdown(comparison)
    collection = collected.sweep(rounds=3)
    collection.cases[0].failed, collection.cases[0].comparison = said, None
    assert f" was not measured: {shown}\n" in documents.as_markdown(collection)


def test_a_cell_cannot_break_the_table():
    assert export.table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


def test_html_is_written_by_the_report(tmp_path):
    export.write(made(), tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html") and "faster" in page


@pytest.mark.parametrize("name, said", [("x.pdf", "there are: .json, .csv, .md, .html"), ("x", "ending says"),
                                        ("gone/x.json", "there is no folder .*gone")])
def test_a_wrong_file_is_refused_before_measuring(tmp_path, name, said):
    with pytest.raises(UsageError, match=said):
        export.check_path(tmp_path / name)


def refuse(**_):
    raise PermissionError


def test_a_folder_that_takes_no_file_is_refused_before_measuring(tmp_path, monkeypatch):
    (tmp_path / "open.json").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: pathlib.Path(path).name == "open.json")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    export.check_path(tmp_path / "open.json")
    with pytest.raises(UsageError, match=f"new.json: nothing can be written in {tmp_path}. Name a file elsewhere"):
        export.check_path(tmp_path / "new.json")


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "x.json").mkdir()
    with pytest.raises(LabError, match="x.json cannot be written: Is a directory"):
        export.write(made(), tmp_path / "x.json")


def test_where_there_is_no_room_the_file_of_before_stays(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("what was measured before")
    real = pathlib.Path.write_bytes

    def full(place, data):
        real(place, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(LabError, match="x.json cannot be written: No space left on device"):
        export.write(made(), path)
    assert path.read_text() == "what was measured before" and list(tmp_path.iterdir()) == [path]


def test_a_file_written_again_keeps_its_rights_and_its_links(tmp_path):
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    path.touch(0o640)
    path.chmod(0o604)
    link.symlink_to(path)
    export.write(made(), link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o604 and path.stat().st_size > 100


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    (tmp_path / "x.csv").symlink_to("/dev/null")
    export.write(made(), tmp_path / "x.csv")
    assert pathlib.Path("/dev/null").is_char_device()


def test_the_terminal_shows_all_of_it():
    console = Console(width=160, record=True, file=io.StringIO())
    terminal.show(made(), console)
    text = console.export_text()
    assert "1.25 s" in text and "-10.0 %" in text and "+20.0 %" in text
    assert "b is faster than a" in text and "careful: c has no verdict" in text
    assert "time spent in" in text and "75.0 %" in text and "memory calls" in text


def test_what_looks_like_markup_is_shown_as_it_is(capsys):
    """To what draws the tables, [/b] ends what was bold, and :bomb: is a picture."""
    telling.show(comparisons.made_up(("system", "[/b]x", "[red]y"), runs=4, points=6))
    telling.show(collected.programs(("system", "[/b]x", "[red]y"), ("a[/]", "[red]b :bomb:"), rounds=4))
    shown = capsys.readouterr().out
    assert shown.count("[/b]x") > 5 and shown.count("[red]y") > 5
    assert "a[/]" in shown and "[red]b :bomb:" in shown


def test_the_line_of_progress_shows_names_as_they_are():
    console = Console(width=120, file=io.StringIO(), force_terminal=True)
    with terminal.ProgressLine(console, "[/]: ") as line:
        line.running("[/b]x", Book(["[/b]x"]))
    assert "[/]: warming up: [/b]x" in console.file.getvalue()


def test_who_reads_what_failed_may_leave(monkeypatch, capsys):
    """`reheap compare … 2>&1 | head`: what was measured goes to its files all the same."""
    reader, writer = os.pipe()
    os.close(reader)
    with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        with terminal.ProgressLine(terminal.Aside()) as line:
            for _ in range(2):
                line.ran(Run("a", 0, 0, failed="it broke"), Book(["a"]))
    print("to standard output")
    assert capsys.readouterr().out == "to standard output\n"


def test_eighty_columns_are_enough():
    """No word is cut, no cell takes a second line: what does not fit beside stands below."""
    comparison = comparisons.made_up(runs=8)
    comparison.verdicts, comparison.warnings = [], []
    verdicts.judge(comparison)
    console = Console(width=80, record=True, file=io.StringIO())
    terminal.show(comparison, console)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in "".join(lines)
    assert sum(line.startswith("mimalloc ") for line in lines) == 4  # two tables of figures, time spent, calls
    assert lines[0].startswith("Take reheap: 7.")


def test_a_ratio_that_is_no_verdict_does_not_look_like_one():
    comparison = comparisons.made_up(("system", "reheap", "tcmalloc"), runs=8)
    comparison.verdicts = []
    verdicts.judge(comparison)
    for verdict in comparison.verdicts:
        verdict.word = {"reheap": figures.UNDECIDED}.get(verdict.subject, verdict.word)
    comparison.verdict("wall_s", "tcmalloc").word = figures.SAME
    console = Console(width=160, record=True, file=io.StringIO())
    terminal.show(comparison, console)
    text = console.export_text()
    assert "below: against system; = no measurable difference; ? undecided" in text
    ratio = verdicts.signed(comparison.verdict("wall_s", "reheap").ratio)
    assert f"? {ratio}" in text and "= +0." in text
    memory = verdicts.signed(comparison.verdict("peak_rss_kib", "tcmalloc").ratio)
    assert f" {memory}" in text and f"? {memory}" not in text and f"= {memory}" not in text


def test_columns_fill_as_few_tables_as_they_can():
    assert terminal.blocks({"a": 4, "b": 4, "c": 4, "d": 20}, 9) == [["a", "b"], ["c"], ["d"]]


def test_the_answer_stands_first_and_every_pair_is_judged():
    comparison = comparisons.made_up(("system", "reheap", "mimalloc"), runs=8)
    comparison.verdicts = []
    verdicts.judge(comparison)
    text = export.as_markdown(comparison)
    assert text.split("\n\n")[2].startswith("**Take reheap: 6.")
    assert "- wall time: mimalloc is slower than reheap, by" in text
    assert [(v.base, v.subject) for v in comparison.between_others if v.figure == "wall_s"] == [("reheap", "mimalloc")]


def test_a_figure_that_some_runs_lack_is_not_told():
    """Those that have it are not like the others: a mean over time is had of the slow runs only."""
    comparison = comparisons.made_up(("system", "reheap"), runs=8)
    comparison.verdicts = []
    comparison.measured("reheap")[3].figures.pop("mean_rss_kib")
    verdicts.judge(comparison)
    assert "reheap" not in comparison.summaries["mean_rss_kib"] and not comparison.verdict("mean_rss_kib", "reheap")
    assert comparison.verdict("peak_rss_kib", "reheap")


def test_what_rests_on_single_ticks_is_not_judged():
    comparison = comparisons.made_up(("system", "reheap"), runs=8)
    comparison.verdicts = []
    for run in comparison.runs:
        run.figures["system_s"] = 0.004 * (1 + run.round % 2)
    verdicts.judge(comparison)
    assert comparison.summaries["system_s"] and not comparison.verdict("system_s", "reheap")
    assert comparison.verdict("user_s", "reheap")


@pytest.mark.parametrize("name, value, said", [
    ("wall_s", 0.0000123, "12 µs"), ("wall_s", 0.0123, "12.3 ms"), ("wall_s", 0.123, "123 ms"), ("wall_s", 12.345,
                                                                                                 "12.35 s"),
    ("wall_s", 1234, "1234 s"), ("peak_rss_kib", 900, "900 KiB"), ("peak_rss_kib", 2048, "2 MiB"),
    ("peak_rss_kib", 1023 * 1024, "1023 MiB"), ("peak_rss_kib", 3 << 20, "3 GiB"), ("minor_faults", 12345, "12,345"),
    ("utilisation", 1.234, "1.23"), ("of_a_replay", 5, "5")])
def test_figures_as_a_person_reads_them(name, value, said):
    assert figures.describe(name, value) in (said, said.replace("12.35", "12.34"))


# ---- words --------------------------------------------------------------------------------------

def ratio(middle, low, high, n=10):
    return Interval(middle, low, high, n)


@pytest.mark.parametrize("interval, word, said", [
    (ratio(0.9, 0.88, 0.92), "faster", "wall time: b is faster than a, by 10.0 % (99 % interval 8.0 to 12.0 %)"),
    (ratio(1.1, 1.05, 1.15), "slower", "wall time: b is slower than a, by 10.0 % (99 % interval 5.0 to 15.0 %)"),
    (ratio(3, 2.5, 3.5), "slower", "wall time: b is slower than a, by a factor of 3 (99 % interval 2.5 to 3.5)"),
    (ratio(1.001, 0.995, 1.005), "no measurable difference",
     "wall time: no measurable difference between b and a (99 % interval -0.5 % to +0.5 %, within ±1 %)"),
    (ratio(1.0, 0.97, 1.03), "undecided",
     "wall time: undecided between b and a (99 % interval -3.0 % to +3.0 %); about 81 more runs would decide it"),
    (ratio(1.0, 0.1, 10.0), "undecided",
     "wall time: undecided between b and a (99 % interval -90.0 % to +900.0 %); more than 1000 further runs would be "
     "needed"),
])
def test_verdicts_in_words(interval, word, said):
    found = verdicts.verdict(figures.ALL["wall_s"], "b", "a", interval, 0.01, 0.99)
    assert (found.word, found.text) == (word, said) and word in figures.WORDS


def test_rounds_that_have_nothing_in_common_cost_no_figures():
    """Three rounds of a rate that differs by powers of ten: the interval is endless, and everything can be shown."""
    comparison = Comparison(["prog"], subjects=[Subject("a"), Subject("b")], settings={"confidence": 0.9999})
    for n, wall in enumerate((1, 1e30, 1e-30)):
        comparison.runs += [Run("a", n, 0, figures={"wall_s": 1.0}), Run("b", n, 1, figures={"wall_s": wall})]
    verdicts.judge(comparison)
    assert comparison.verdict("wall_s", "b").word == figures.UNDECIDED
    assert "99.99 % interval -100.0 % to +7.7e+101 %" in export.as_markdown(comparison)
    assert results.load(results.dump(comparison)) == comparison


def test_drift_and_outliers_are_told():
    comparison = made()
    for run in comparison.measured("a"):
        run.figures["wall_s"] = 1.0
    comparison.runs += [Run("a", n, 0, figures={"wall_s": 1 + 0.02 * n}) for n in range(6, 20)]
    comparison.warnings.clear()
    verdicts.judge(comparison)
    assert any(text.startswith("a: wall time rose by") for text in comparison.warnings)


# ---- the runner's lines and the profile ---------------------------------------------------------

def record(tmp_path: pathlib.Path, text: str) -> pathlib.Path:
    (tmp_path / "record").write_text(text, encoding="utf-8")
    return tmp_path / "record"


@pytest.mark.parametrize("text, said", [("", "has no end"), ('{"type":"start"}\n', "has no end"),
                                        ('{"type":"start"}\n{"ty', "record:2: not a line of the runner"),
                                        ("[1]\n", "record:1: not a line"), ('{"a":1}\n', "record:1: not a line")])
def test_a_damaged_record_is_named(tmp_path, text, said):
    with pytest.raises(LabError, match=said):
        runner.read(record(tmp_path, text))


def test_a_program_whose_path_the_kernel_does_not_tell_has_none(tmp_path):
    programs = '{"type":"programs","programs":[{"pid":7,"began_ns":1,"ended_ns":2,"cpu_us":3,"peak_kib":9}]}\n'
    (program,) = runner.read(record(tmp_path, programs + '{"type":"end","wall_us":7,"exit":0}\n')).programs
    assert program.path == "" and program.peak_kib == 9


def test_the_runners_lines_become_figures(tmp_path):
    samples = "".join(f'{{"type":"sample","t_us":{i}00000,"rss_kib":{100 * i},"cpu_us":{2 * i}00000}}\n'
                      for i in range(1, 7))
    end = '{"type":"end","wall_us":700000,"user_us":900000,"system_us":500000,"peak_rss_kib":640,"exit":3}\n'
    measured = runner.read(record(tmp_path, samples + end))
    assert measured.figures == {"wall_s": 0.7, "user_s": 0.9, "system_s": 0.5, "cpu_s": 1.4,
                                "utilisation": pytest.approx(2),
                                "peak_rss_kib": 640, "mean_rss_kib": pytest.approx(350)}
    assert measured.series.busy_cores == pytest.approx([2.0] * 6) and measured.failure(None) == "its exit status was 3"
    assert measured.series.commit_kib == []


@pytest.mark.parametrize("user, system, known", [
    (800, 0, {"cpu_s": 0.0008}), (0, 800, {"cpu_s": 0.0008}), (0, 0, {}),
    (200_000, 0, {"user_s": 0.2, "system_s": 0, "cpu_s": 0.2}),
    (700, 100, {"user_s": 0.0007, "system_s": 0.0001, "cpu_s": 0.0008})])
def test_a_time_that_no_tick_fell_into_is_not_known(tmp_path, user, system, known):
    end = f'{{"type":"end","user_us":{user},"system_us":{system},"exit":0}}\n'
    assert runner.read(record(tmp_path, end)).figures == pytest.approx(known)


def test_a_file_whose_name_has_a_line_separator_breaks_no_line(tmp_path):
    """Python begins a line there, the runner does not."""
    profile_of = '{"type":"profile","modules":[{"module":"/a\u2028b\x85c","samples":3}]}\n'
    measured = runner.read(record(tmp_path, profile_of + '{"type":"end","wall_us":700000,"exit":0}\n'))
    assert measured.profile["modules"][0]["module"] == "/a\u2028b\x85c"
    (tmp_path / "evidence").write_text("7\t9\tmalloc\t/a\u2028b\x85c\n", encoding="utf-8")
    assert evidence.Testimony.read(tmp_path / "evidence").told == {(7, 9): {"malloc": "/a\u2028b\x85c"}}


def test_modules_are_sorted_by_whose_they_are(tmp_path):
    library = tmp_path / "libown.so.1"
    library.touch()
    kinds = {str(library): "allocator", "/lib/libc.so.6": "libc", "/lib/ld-linux-x86-64.so.2": "libc",
             "/lib/libm.so.6": "libc",
             "[kernel]": "kernel", "[vdso]": "other", "/usr/bin/ld.lld": "program", "/usr/lib/libLLVM.so.19": "other",
             "/usr/lib/libcrypto.so.3": "other"}
    assert {module: profile.kind_of(module, [str(library)]) for module in kinds} == kinds
    assert profile.read({"modules": []}, []) is None


def test_a_few_samples_make_no_mean(tmp_path):
    sample = '{"type":"sample","t_us":1000,"rss_kib":100,"cpu_us":0}\n'
    measured = runner.read(record(tmp_path, sample * 4 + '{"type":"end","wall_us":700000,"exit":0}\n'))
    assert "mean_rss_kib" not in measured.figures and measured.series.rss_kib == [100] * 4
