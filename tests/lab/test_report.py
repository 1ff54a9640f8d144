"""The report: what it must say, what it must not, and that nothing which a program is called can run in it."""

import html.parser
import re

import pytest
from comparisons import made_up

from reheap_lab import figures, report, verdicts
from reheap_lab.report import units
from reheap_lab.results import Comparison, Run, Series, Subject, Summary

HOSTILE = '<script>alert("$x$")</script>\'"&\x1b[31m\u202e'
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(html.parser.HTMLParser):
    """A page as a browser meets it: elements balanced, text, and every address something is loaded from."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.loads, self.ids, self.events, self.alts = [], [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def note(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action") or (name == "style" and "url(" in (value or "")):
                self.loads.append(value)
            if name.startswith("on"):
                self.events.append(value)
            if name == "id":
                self.ids.append(value)
        if tag == "svg":
            self.alts.append(dict(attrs).get("aria-label") or dict(attrs).get("aria-hidden"))

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def page_of(comparison: Comparison, tmp_path) -> tuple[Page, str]:
    path = tmp_path / "report.html"
    report.write_html(comparison, path)
    text = path.read_text(encoding="utf-8")
    return Page(text), text


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    comparison = made_up(("system", "reheap", "mimalloc"), runs=6, points=20)
    comparison.subjects.append(Subject("hoard", failed="it ended with signal 11"))
    comparison.subjects[1].warnings.append("it printed differently")
    comparison.warnings.append("wall time drifted")
    return (comparison, *page_of(comparison, tmp_path_factory.mktemp("whole")))


def test_it_says_every_verdict_and_names_every_allocator(whole):
    comparison, page, text = whole
    for subject in comparison.subjects:
        assert subject.name in page.text
    for verdict in comparison.verdicts:
        assert verdict.word in page.text
        assert verdict.text.replace("&", "&amp;") in text
    for sentence in ("it ended with signal 11", "it printed differently", "wall time drifted", comparison.reproduce):
        assert sentence in page.text
    assert "ld.lld -flto=thin @link.rsp -o 'out file'" in page.text


def test_every_pair_has_its_sentence_and_warnings_are_announced_beside_the_answer(tmp_path):
    made = made_up(("system", "reheap", "mimalloc"), runs=8)
    made.verdicts, made.warnings, made.subjects[1].warnings = [], ["one"], ["two"]
    verdicts.judge(made)
    page, text = page_of(made, tmp_path)
    spoken = " ".join(page.texts).replace("\u00a0", " ")
    for verdict in made.between_others:
        if verdict.figure in figures.DECIDING:
            assert verdict.text.partition(": ")[2] in spoken
    told = len(made.warnings) + 1
    assert f"{told} things to know before relying on this" in spoken and 'href="#wary"' in text
    made.warnings, made.subjects[1].warnings = [], []
    assert "wary" not in page_of(made, tmp_path)[1].partition("<body>")[2]


def test_it_loads_nothing_and_every_picture_speaks(whole):
    _, page, text = whole
    assert all(address.startswith("#") for address in page.loads)
    assert not re.search(r"(?:https?:)?//[\w.-]+\.\w+|@import", text.replace("http://www.w3.org/2000/svg", ""))
    assert page.tags.count("svg") > 10 and all(page.alts)
    assert page.tags.count("script") == 1 and page.events == []


def test_what_is_referred_to_is_there_once(whole):
    _, page, text = whole
    assert len(page.ids) == len(set(page.ids))
    referred = {a[1:] for a in page.loads} | set(re.findall(r"url\(#([\w-]+)\)", text))
    assert referred <= set(page.ids)


def test_every_colour_is_a_variable_that_both_themes_define(whole):
    _, _, text = whole
    assert not re.search(r"#0[a-d]00[0-9a-f]{2}", text)
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    light, dark = text.split("@media screen and (prefers-color-scheme: dark)")[:2]
    assert {name for name in used if f"{name}:" not in light} == set()
    assert {name for name in used - {"--sans"} if f"{name}:" not in dark.split("@media")[0]} == set()


def test_many_runs_and_samples_stay_small(tmp_path):
    _, text = page_of(made_up(("system", "reheap"), runs=40, points=900), tmp_path)
    assert len(text) < 300_000


def test_hostile_names_are_text(tmp_path):
    comparison = made_up(("system", HOSTILE), runs=5, points=20)
    comparison.command = ["sh", "-c", HOSTILE]
    comparison.cwd = comparison.reproduce = HOSTILE
    comparison.warnings = [HOSTILE]
    comparison.machine["cpu"] = comparison.settings["setup"] = HOSTILE
    comparison.subjects[0].proof = {HOSTILE: HOSTILE}
    comparison.subjects[0].failed = comparison.subjects[0].version = HOSTILE
    comparison.runs[-1].failed = HOSTILE
    comparison.extras["system"].calls = {HOSTILE: 3}
    comparison.extras["system"].profile.modules[0].module = HOSTILE
    page, text = page_of(comparison, tmp_path)
    assert page.tags.count("script") == 1 and "<script>alert" not in text
    assert page.events == [] and HOSTILE in "".join(page.texts)


def test_what_was_not_measured_is_absent(tmp_path):
    comparison = made_up(("system", "reheap"), runs=5, points=20)
    for figure in ("major_faults", "peak_rss_kib", "mean_rss_kib"):
        del comparison.summaries[figure]
        for run in comparison.runs:
            del run.figures[figure]
    del comparison.summaries["user_s"]["reheap"]
    comparison.verdicts = [v for v in comparison.verdicts if v.figure == "wall_s"]
    comparison.extras["reheap"].calls = None
    comparison.extras["reheap"].profile = None
    page, _ = page_of(comparison, tmp_path)
    assert "major faults" not in page.text and "largest process" not in page.text.lower()
    row = re.search(r"Time allocator.*? reheap (.*?) Faults", page.text).group(1)
    assert row.count("–") == 4 + 1 and " 0 " not in row  # four intervals, and a dash for user time


def test_one_allocator_without_series(tmp_path):
    comparison = made_up(("system",), runs=3)
    comparison.extras = {}
    for run in comparison.runs:
        run.series = Series()
    page, _ = page_of(comparison, tmp_path)
    assert "nothing to compare" in page.text and "Memory over time" not in page.text
    assert "Where the time goes" not in page.text and "Wall time" in page.text


def only_series(kind: str) -> Comparison:
    """Little to draw beside what happened over time."""
    comparison = made_up(("system", "reheap"), runs=2, points=20, kind=kind)
    comparison.summaries, comparison.verdicts, comparison.extras = {}, [], {}
    for run in comparison.runs:
        run.figures, run.series.busy_cores = {}, []
    return comparison


def test_a_replay_shows_resident_over_live(tmp_path):
    comparison = only_series("replay")
    for run in comparison.runs:
        run.series.live_kib = [value / 1.25 for value in run.series.rss_kib]
    comparison.summaries["hand_offs_waited"] = {"system": Summary(1.25, 1.249, 1.251, 2)}
    page, _ = page_of(comparison, tmp_path)
    assert "Resident over live memory: the median of the runs" in page.text and "replaying a trace" in page.text
    assert all(said in page.text for said in ("Further figures", "hand offs waited", "1.250 1.249 – 1.251"))
    row = re.search(r"resident over live memory, median.*?reheap([ \d.]+)", page.text, re.IGNORECASE).group(1)
    assert "1.250" in row and row.replace("1.250", "").strip() == ""


def test_a_server_shows_when_it_was_left_alone(tmp_path):
    comparison = only_series("server")
    comparison.settings["server"] = {"load": "redis-benchmark", "idle": 4.0}
    page, _ = page_of(comparison, tmp_path)
    assert "the server was left alone" in page.text and "serving" in page.text


def test_nothing_was_measured_at_all(tmp_path):
    comparison = Comparison(command=["false"], subjects=[Subject("system", failed="exit status 1")],
                            runs=[Run("system", 0, 0, failed="exit status 1")])
    page, _ = page_of(comparison, tmp_path)
    assert "exit status 1" in page.text and "Figures" not in page.text


def test_a_column_has_one_unit():
    scale = units.of_figure("wall_s", [0.0123, 0.5, 0.25])
    assert (scale.unit, scale.number(0.0123), scale.number(0.25)) == ("ms", "12.3", "250.0")
    assert units.of_figure("peak_rss_kib", [2048 * 1024]).text(2048 * 1024) == "2,048 MiB"
    assert units.of_figure("minor_faults", [480000]).text(480000) == "480,000"


@pytest.mark.parametrize(("ratio", "text"), [(0.968, "−3.2 %"), (1.0, "±0.0 %"), (1.0004, "±0.0 %"), (1.5, "+50.0 %"),
                                             (3.14159, "×3.14"), (0.25, "×0.25"), (40, "×40")])
def test_a_ratio_as_a_difference(ratio, text):
    assert units.percent(ratio) == text
