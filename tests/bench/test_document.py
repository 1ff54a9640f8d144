"""From what a question measured and showed to the JSON, and from the JSON to a document and its plots."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import bench
import document
import pytest
from common import question, record, tables
from common.question import Question
from reheap_lab import verdicts
from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError

from test_tables import comparison

DOCUMENT = """# Title

By hand.
<!-- figures: link -->
typed figures of the link
<!-- end of figures: link -->
Between.
<!-- figures: idle -->
typed figures of idle
<!-- end of figures: idle -->
"""


def measured(title: str = "work 1", **walls: list):
    made = comparison(**walls)
    for run in made.runs:
        if "wall_s" in run.figures:
            run.figures |= {"peak_rss_kib": 10_000 * run.figures["wall_s"], "minor_faults": 7, "own": 3.0}
    verdicts.judge(made)
    return title, made


def asked(file=None, quick=False, missing=None) -> Question:
    given = SimpleNamespace(record=file, quick=quick)
    return Question("link", 3, None, given, [Allocator("system", version="2.36"), Allocator("reheap")], missing or {},
                    ["--rounds", "3"])


def section(missing=None, quick=False) -> dict:
    """One with two workloads, of which a peer is not measured in the second."""
    made = asked(missing=missing, quick=quick)
    tables.show(["seconds", "median", "x system"], [["system", "1.00", ""], ["reheap", "0.50", "0.500"]])
    tables.say("Medians; `x` is the ratio.")
    for title, one in (measured(system=[1.0] * 3, reheap=[0.5] * 3, peer=[0.4] * 3),
                       measured("work 2", system=[1.0] * 3, reheap=[2.0] * 3, peer=[None] * 3, other=[1.5] * 3)):
        made.comparisons[title] = record.figures_of(one)
    return made.section()


def test_what_is_shown_is_noted_in_its_order_and_by_the_question_that_showed_it():
    before, after = asked(), asked()
    tables.show(["a ", "b"], [["x", "1.00"]])
    tables.say("of x")
    assert before.shown == [] and after.shown == [{"header": ["a", "b"], "rows": [["x", "1.00"]]}, {"text": "of x"}]


def test_a_comparison_is_kept_in_raw_figures_with_intervals():
    _, made = measured(system=[2.0, 4.0, 2.0], reheap=[1.0, 2.0, 1.0], peer=[2.0, 4.0, 2.0])
    found = record.figures_of(made)
    assert found["wall_s"]["reheap"] == {"median": [1.0, 1.0, 2.0], "ratio": [0.5, 0.5, 0.5], "to_best_peer": 0.5}
    assert found["wall_s"]["system"]["ratio"] == [1.0]
    assert set(found) == {"wall_s", "peak_rss_kib", "own"}


def test_what_was_not_measured_is_absent_and_never_zero():
    _, made = measured(system=[1.0] * 3, reheap=[None] * 3)
    assert set(record.figures_of(made)["wall_s"]) == {"system"}


def test_of_too_few_rounds_the_ratio_has_no_interval():
    _, made = measured(system=[2.0], reheap=[1.0])
    assert record.figures_of(made)["wall_s"]["reheap"]["ratio"] == [0.5]


def test_a_section_takes_the_place_of_its_older_one_alone(tmp_path, capsys):
    file = tmp_path / "new" / "r.json"
    record.add(file, "idle", {"quick": False, "rounds": 1})
    assert asked(file, quick=True, missing={"reheap in x": f"{record.ROOT}/lib.so crashed"}).end() == 1
    data = json.loads(file.read_text())
    assert list(data["sections"]) == ["idle", "link"] and data["note"] == record.QUICK
    made = data["sections"]["link"]
    assert (made["command"], made["rounds"], made["quick"]) == ("./dev bench link --rounds 3", 3, True)
    assert made["missing"] == {"reheap in x": "lib.so crashed"} and made["allocators"]["system"] == "2.36"
    assert made["commit"] and made["machine"]["cores"] and "reheap in x was not measured" in capsys.readouterr().out
    record.add(file, "link", section())
    assert "note" not in record.load(file) and record.load(file)["sections"]["link"]["quick"] is False


def test_what_is_written_reads_back_and_a_cell_takes_one_line(tmp_path):
    record.add(tmp_path / "r.json", "link", section())
    assert record.load(tmp_path / "r.json")["sections"]["link"]["comparisons"] == section()["comparisons"]
    assert '"reheap": {"median": [0.5, 0.5, 0.5], "ratio": [0.5, 0.5, 0.5]' in (tmp_path / "r.json").read_text()


@pytest.mark.parametrize("text, said", [
    (None, "there is no .*; measure first: ./dev bench all"),
    ("{", "is damaged .*; remove it and measure again: ./dev bench all"),
    ("[]", "is not what ./dev bench all writes"),
    ('{"schema": "reheap-performance/0", "sections": {}}', "is not what ./dev bench all writes"),
])
def test_a_record_that_cannot_be_read_is_an_error_that_says_what_to_do(text, said, tmp_path):
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(LabError, match=said):
        record.load(tmp_path / "r.json")


def test_a_broken_record_is_refused_before_anything_is_measured(tmp_path):
    (tmp_path / "r.json").write_text("{")
    with pytest.raises(LabError, match="is damaged"):
        question.ask(question.parser("x", "", 3), ["--record", str(tmp_path / "r.json")])


def test_quick_has_rounds_of_its_own_unless_they_are_named(monkeypatch, capsys):
    monkeypatch.setattr(question, "choose", lambda names, reheap: SimpleNamespace(allocators=[], missing={}))
    made = [question.ask(question.parser("x", "", 9, 2), words)
            for words in ([], ["--quick"], ["--quick", "--rounds", "4", "--record", "/nowhere/r.json"])]
    assert [one.rounds for one in made] == [9, 2, 4] and capsys.readouterr().out.count(record.QUICK) == 2
    assert made[2].arguments == ["--quick", "--rounds", "4"]


def test_the_markdown_has_what_was_shown_where_it_comes_from_and_what_is_missing():
    text = document.render(section({"peer in work 2": "crashed"}), {"Time": "images/x.svg"})
    assert text.startswith("`./dev bench link --rounds 3`\n\n")
    assert "Rounds: 3. Measured: system 2.36, reheap." in " ".join(text.split())
    assert "![Time](images/x.svg)" in text and "- peer in work 2: crashed" in text and record.QUICK not in text
    assert "| seconds | median | x system |\n| --- | --: | --: |\n| system | 1.00 |  |\n| **reheap** | 0.50 |" in text
    assert text.index("**reheap**") < text.index("Medians; `x` is the ratio.")
    assert record.QUICK in document.render(section(quick=True), {})


def test_a_long_table_is_folded_up():
    made = section() | {"shown": [{"header": ["many", "s"], "rows": [[str(i), "1"] for i in range(13)]}]}
    assert "<details><summary>many: 13 rows</summary>\n\n| many | s |" in document.render(made, {})


def test_only_what_stands_between_the_marks_of_a_section_is_replaced(tmp_path):
    text = document.replaced(DOCUMENT, {"link": "new"}, tmp_path)
    assert text == DOCUMENT.replace("typed figures of the link\n", "\nnew\n\n")
    assert document.replaced(text, {"link": "new"}, tmp_path) == text


@pytest.mark.parametrize("old, new, said", [
    ("<!-- end of figures: idle -->\n", "", "d.md:8: the figures of idle do not end; write '<!-- end of figures: idle"),
    ("<!-- end of figures: link -->\n", "", "d.md:7: .* not match the mark in line 4; write '<!-- end of .*link"),
    ("<!-- figures: idle -->\n", "", r"d.md:9: .* does not match any before it; write '<!-- figures: idle -->'"),
    ("figures: idle", "figures: link", r"d.md:8: link has a place already, in line 4; remove one"),
    ("<!-- figures: idle -->", "<!-- figures: idle-->", r"d.md:8: '<!-- figures: idle-->' is no mark"),
    ("end of figures: link", "end of figures: idle", "d.md:6: .* not match the mark in line 4; write '<!-- end of"),
    ("figures: link", "figures: other", "d.md has no place for the figures of link; write '<!-- figures: link -->'"),
])
def test_marks_that_do_not_fit_are_an_error_that_says_what_to_write(old, new, said):
    with pytest.raises(LabError, match=said):
        document.replaced(DOCUMENT.replace(old, new), {"link": ""}, "d.md")


@pytest.fixture
def files(tmp_path):
    pytest.importorskip("matplotlib")
    record.add(tmp_path / "r.json", "link", section())
    (tmp_path / "d.md").write_text(DOCUMENT)
    return ["--from", str(tmp_path / "r.json"), "--into", str(tmp_path / "d.md")]


def test_from_the_record_to_the_document(files, tmp_path):
    assert document.main(files) == 0
    text = (tmp_path / "d.md").read_text()
    assert "typed figures of the link" not in text and "typed figures of idle" in text
    assert "| **reheap** | 0.50 |" in text
    drawn = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert drawn == ["performance-link-best.svg", "performance-link-means.svg"]
    assert all(f"](images/{name})" in text for name in drawn)
    before = {name: (tmp_path / "images" / name).read_text() for name in drawn}
    assert document.main(files) == 0 and (tmp_path / "d.md").read_text() == text
    assert {name: (tmp_path / "images" / name).read_text() for name in drawn}.keys() == before.keys()


def test_nothing_is_written_when_a_section_has_no_place(files, tmp_path):
    record.add(tmp_path / "r.json", "startup", section())
    with pytest.raises(LabError, match="no place for the figures of startup"):
        document.main(files)
    assert (tmp_path / "d.md").read_text() == DOCUMENT and not (tmp_path / "images").exists()
    with pytest.raises(LabError, match="there is no document"):
        document.main([*files[:3], "nowhere.md"])


def test_plots_show_only_what_was_measured():
    pytest.importorskip("matplotlib")
    import document_plots
    made = document_plots.pictures("link", section())
    means, best = (ElementTree.fromstring(svg).get("aria-label") for _, svg in made.values())
    assert means == "Geometric means of time and memory: system 1.000, 1.000; reheap 1.000, 1.000"
    assert best.endswith("work 1 1.25 and 1.25; work 2 1.33 and 1.33")
    assert document_plots.pictures("link", {"comparisons": {}}) == {}
    assert document_plots.pictures("fast-path", section()) == {}
    alone = {"work": record.figures_of(measured(system=[1.0] * 3, reheap=[0.5] * 3)[1])}
    assert list(document_plots.pictures("link", {"comparisons": alone})) == ["Time and memory"]


def test_a_single_figure_is_drawn_as_bars():
    pytest.importorskip("matplotlib")
    import document_plots
    idle = {"own": {"after_2000_ms": {"system": {"median": [100.0, 99.0, 100.0]}, "reheap": {"median": [0.6, 0.5, 1]}}}}
    (_, picture), = document_plots.pictures("idle", {"comparisons": idle}).values()
    root = ElementTree.fromstring(picture)
    assert root.get("aria-label").endswith("own, system 100; own, reheap 0.6") and float(root.get("width")) > 100


def test_all_writes_one_record_and_goes_on_after_what_cannot_be_measured(monkeypatch, capsys):
    given = []

    def failing(arguments):
        raise LabError("no valgrind")

    monkeypatch.setattr(bench, "MEASURING", {"one": (failing, ""), "two": (lambda words: given.append(words) or 0, "")})
    assert bench.run_all(["--quick"]) == 1 and bench.run_all(["--record", "mine.json"]) == 1
    assert given == [["--quick", "--record", str(record.FILE)], ["--record", "mine.json"]]
    assert "one was not measured: no valgrind" in capsys.readouterr().err
