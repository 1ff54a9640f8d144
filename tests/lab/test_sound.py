"""Kept comparisons of the right shape with figures that none can be: each is refused by the name of its field, and what
is not refused can be shown and written."""

import copy
import io
import json
import random

import collected
import comparisons
import pytest
from click.testing import CliRunner
from rich.console import Console

from reheap_lab import cli_report, gate, results, telling, terminal, verdicts
from reheap_lab.errors import UsageError
from reheap_lab.suite import screen

HUGE = 10**400


def compared() -> dict:
    made = comparisons.made_up(("system", "reheap", "mimalloc"), runs=4, points=6)
    made.verdicts = []
    made.settings |= {"own": [{"name": "req", "pattern": "(.)", "more_is_better": True}], "server": {"idle": 5.0}}
    for run in made.runs:
        run.figures["req"] = -5.0
    verdicts.judge(made)
    return json.loads(results.dump(made))


def gathered() -> dict:
    return json.loads(results.dump(collected.sweep(values=("1", "2"), rounds=3)))


def put(*path, to):
    def change(data):
        *way, last = path
        for step in way:
            data = data[step]
        data[last] = to
    return change


@pytest.mark.parametrize("change, said", [
    (put("command", to=[]), "comparison.command is empty"),
    (put("settings", "confidence", to=1), "comparison.settings.confidence is 1, not a number between 0.5 and 1"),
    (put("settings", "confidence", to="<b>"), "comparison.settings.confidence is <b>, not a number"),
    (put("settings", "margin", to=True), "comparison.settings.margin is True, not a number between 0 and 1"),
    (put("settings", "margin", to=0), "comparison.settings.margin is 0"),
    (put("settings", "seed", to=HUGE), "comparison.settings.seed is too large a number"),
    (put("settings", "own", to={"x": 1}), "comparison.settings.own is {'x': 1}, not a list"),
    (put("settings", "own", 0, "name", to="wall_s"), r"comparison.settings.own\[0\] is .*not a figure of the command"),
    (put("settings", "server", "idle", to=None), "comparison.settings.server.idle is None, not a number of seconds"),
    (put("machine", "cores", to=None), "comparison.machine.cores is None, not a number of 1 or more"),
    (put("machine", "load", to=[1e300]), r"comparison.machine.load\[0\] is too large a number"),
    (put("subjects", 1, "name", to="system"), "comparison.subjects is .*not a list in which each name stands once"),
    (put("runs", 3, "subject", to="gone"), r"comparison.runs\[3\].subject is gone, not one of the allocators: mimall"),
    (put("runs", 3, "round", to=-1), r"comparison.runs\[3\].round is -1, not 0 or more"),
    (put("runs", 3, "figures", "wall_s", to=-1), r"comparison.runs\[3\].figures.wall_s is -1, not 0 or more"),
    (put("runs", 3, "figures", "wall_s", to=HUGE), r"comparison.runs\[3\].figures.wall_s is too large a number"),
    (put("runs", 3, "series", "rss_kib", to=[]), None),
    (put("runs", 3, "series", "rss_kib", to=[1]), r"runs\[3\].series.rss_kib is 1 long, not as long as t_s, 6"),
    (put("runs", 3, "series", "rss_kib", 2, to=-1), r"comparison.runs\[3\].series.rss_kib is -1, not 0 or more"),
    (put("runs", 3, "series", "t_s", 2, to=1e9), r"comparison.runs\[3\].series.t_s is .*not times that grow"),
    (put("extras", "system", "calls", "mmap", to=-4), "comparison.extras.system.calls.mmap is -4"),
    (put("extras", "gone", to={}), "comparison.extras.gone is gone, not one of the allocators"),
    (put("extras", "system", "profile", "lost", to=-4), "comparison.extras.system.profile.lost is -4"),
    (put("extras", "system", "profile", "modules", 0, "share", to=7), r"profile.modules\[0\].share is 7, not a share"),
    (put("summaries", "wall_s", "system", "low", to=1e9), "comparison.summaries.wall_s.system is .*not in the order"),
    (put("summaries", "wall_s", "system", "n", to=0), "comparison.summaries.wall_s.system.n is 0, not 1 or more"),
    (put("verdicts", 0, "low", to=0), r"comparison.verdicts\[0\].low is 0, not a ratio of more than 0"),
    (put("verdicts", 0, "high", to=0.5), r"comparison.verdicts\[0\] is .* 0.5, not in the order low, ratio, high"),
    (put("verdicts", 0, "margin", to=-1), r"comparison.verdicts\[0\].margin is -1"),
    (put("verdicts", 0, "base", to="gone"), r"comparison.verdicts\[0\].base is gone"),
    (put("verdicts", 0, "figure", to="of_a_later_version"), None),
])
def test_what_no_figure_can_be_is_named(change, said):
    data = compared()
    change(data)
    if said is None:
        assert results.load(json.dumps(data))
        return
    with pytest.raises(results.Damaged, match=said):
        results.load(json.dumps(data))


@pytest.mark.parametrize("change, said", [
    (lambda d: d["settings"].pop("confidence"), "collection.settings.confidence is missing"),
    (put("settings", "margin", to="x"), "collection.settings.margin is x, not a number"),
    (put("cases", 1, "parameters", to={"n": "2"}), r"collection.cases\[1\].parameters is {'n': '2'}, not those of"),
    (put("cases", 1, "comparison", "command", to=[]), r"collection.cases\[1\].comparison.command is empty"),
    (put("verdicts", 0, "like_low", to=-1), r"collection.verdicts\[0\].like_low is -1, not a ratio"),
])
def test_of_a_collection_too(tmp_path, change, said):
    data = gathered()
    change(data)
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match=f"x.json: {said}.*It must be a file that --export wrote as .json"):
        results.load_export(tmp_path / "x.json")


def test_an_infinity_that_python_reads_from_a_number_is_refused():
    text = json.dumps(compared()).replace('"cores": 8', '"cores": 1e999')
    with pytest.raises(results.Damaged, match="comparison.machine.cores is too large a number"):
        results.load(text)


def test_the_command_says_which_file_and_field(tmp_path):
    data = compared()
    data["runs"][0]["figures"]["cpu_s"] = -1
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(UsageError, match=r"bad.json: comparison.runs\[0\].figures.cpu_s is -1"):
        CliRunner().invoke(cli_report.command, [str(tmp_path / "bad.json")], catch_exceptions=False,
                           standalone_mode=False)


# ---- at random ----------------------------------------------------------------------------------

ABSURD = (0, -1, 5, 0.5, -0.0, 1e99, -1e99, 1e300, 1e-320, 2**62, 2**63, HUGE, True, None, "", "x", "\udcff", "a\nb",
          [], {}, [[]], [{}], {"x": []})


def places(data, path=()):
    for key, item in (data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()):
        yield (*path, key)
        yield from places(item, (*path, key))


def of_each_shape(data) -> list[list[tuple]]:
    """Places that differ by their number in a list are of one shape: each shape shall be met as often."""
    found: dict[tuple, list[tuple]] = {}
    for path in places(data):
        found.setdefault(tuple("*" if isinstance(step, int) else step for step in path), []).append(path)
    return list(found.values())


@pytest.mark.parametrize("make, page", [(compared, False), (gathered, False), (compared, True), (gathered, True)])
def test_what_is_not_refused_can_be_shown(tmp_path, make, page):
    whole, dice = make(), random.Random(1)
    shapes, file = of_each_shape(whole), tmp_path / "x.json"
    for _ in range(25 if page else 800):
        data, path = copy.deepcopy(whole), dice.choice(dice.choice(shapes))
        put(*path, to=dice.choice(ABSURD))(data)
        file.write_text(json.dumps(data))
        try:
            made = results.load_export(file)
        except UsageError:
            continue
        shown(made)
        for ending in (".csv", ".md", ".html")[page * 2:2 + page]:
            telling.write(made, tmp_path / f"x{ending}")


def shown(made) -> None:
    console = Console(width=100, file=io.StringIO())
    (screen if isinstance(made, results.Collection) else terminal).show(made, console)
    gate.as_markdown(gate.changes_of(made, made), 0.02)
