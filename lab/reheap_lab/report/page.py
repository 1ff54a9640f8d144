"""Puts the report of a comparison together. What it says comes from the comparison; nothing is judged here."""

import dataclasses
import functools
import pathlib
import shlex

import jinja2
from markupsafe import Markup

from .. import answer, export, figures
from ..results import Comparison, Verdict
from ..verdicts import SIGNS, sense
from . import palette, plots, svg, timelines, units
from .palette import KINDS, Look

_TEMPLATES = pathlib.Path(__file__).parent / "templates"

TABLES = (
    ("Time", ("wall_s", "cpu_s", "user_s", "system_s", "utilisation", "instructions", "cycles")),
    ("Memory", ("peak_rss_kib", "peak_tree_kib", "mean_rss_kib", "idle_rss_kib", "peak_commit_kib",
                "resident_over_live", "peak_resident_over_live", "peak_live_kib")),
    ("Faults and switches", ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")),
)
HEADLINES = ("wall_s", "cpu_s", "instructions", "cycles", "peak_rss_kib", "peak_tree_kib", "mean_rss_kib",
             "idle_rss_kib", "peak_commit_kib", "resident_over_live")


def write_html(comparison: Comparison, path: pathlib.Path) -> None:
    """Writes the report: one file, which loads nothing from anywhere."""
    export.write_text(path, html(comparison))


def html(comparison: Comparison) -> str:
    looks = palette.looks(subject.name for subject in comparison.subjects)
    with svg.styled():
        drawn = _pictures(comparison, looks)
    return _whole(comparison, looks, drawn, "base.html.j2")


def inside(comparison: Comparison, looks: dict[str, Look]) -> str:
    """What the page says, for another page that holds several: its pictures are those of time and memory alone."""
    with svg.styled():
        drawn = _pictures(comparison, looks) | {"orders": [], "cores": None}
        drawn["forests"] = _of(plots.forest, comparison, _deciding(comparison), looks)
        drawn["distributions"] = _of(plots.distribution, comparison, _deciding(comparison), looks)
        drawn["memory"] = [dataclasses.replace(line, apart=[]) for line in drawn["memory"]]
    return _whole(comparison, looks, drawn, "inside.html.j2")


def _whole(comparison: Comparison, looks: dict[str, Look], drawn: dict, layout: str) -> str:
    return render("compare.html.j2", layout=layout, comparison=comparison, looks=looks, title=title(comparison),
                  base=_base(comparison),
                  answer=answer.answer(comparison).text, short=_table(comparison, "", _deciding(comparison)),
                  leads=_leads(comparison, comparison.verdicts), others=_leads(comparison, comparison.between_others),
                  wary=len(comparison.warnings) + sum(len(subject.warnings) for subject in comparison.subjects),
                  judged=_judged(comparison), tables=_tables(comparison),
                  failed=[s for s in comparison.subjects if s.failed],
                  failed_runs=[r for r in comparison.runs if r.failed], kinds=_kinds(comparison),
                  calls=_calls(comparison), facts=_facts(comparison), **drawn)


def render(template: str, **values) -> str:
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
                              undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"percent": units.percent, "sense": sense, "moment": _moment,
                     "sign": lambda verdict: SIGNS[sense(verdict)],
                     "interval": units.interval, "lead": _lead, "sentence": lambda text: text[:1].upper() + text[1:],
                     "plural": figures.plural, "svg": lambda picture: Markup(picture.svg), "figure": units.name_of}
    made.globals |= {"light": Markup(palette.variables("light")), "dark": Markup(palette.variables("dark")),
                     "part": lambda name: Markup((_TEMPLATES / name).read_text(encoding="utf-8")), "shape": shape}
    return made


def title(comparison: Comparison) -> str:
    return shlex.join(comparison.command)


_SHAPES = {
    "o": '<circle r="4.5"/>', "s": '<path d="M-4-4h8v8h-8z"/>', "^": '<path d="M0-5 5 4H-5z"/>',
    "D": '<path d="M0-5.5 5.5 0 0 5.5-5.5 0z"/>', "v": '<path d="M0 5 5-4H-5z"/>',
    "P": '<path d="M-2-5h4v3h3v4h-3v3h-4v-3h-3v-4h3z"/>',
    "X": '<path d="M-3-5 0-2 3-5 5-3 2 0 5 3 3 5 0 2-3 5-5 3-2 0-5-3z"/>',
    "p": '<path d="M0-5 5-1 3 5H-3L-5-1z"/>', "<": '<path d="M-5 0 4-5V5z"/>', ">": '<path d="M5 0-4-5V5z"/>',
}


def shape(look: Look) -> Markup:
    """The allocator's marker, as it stands in the plots."""
    return Markup(f'<svg class="shape" viewBox="-6 -6 12 12" aria-hidden="true" fill="var(--{look.variable})">'
                  f"{_SHAPES[look.marker]}</svg>")


def _pictures(comparison: Comparison, looks: dict[str, Look]) -> dict:
    def of(plot, names):
        return _of(plot, comparison, names, looks)

    memory = timelines.timeline(comparison, "rss_kib", "resident memory", "KiB", looks)
    commit = timelines.timeline(comparison, "commit_kib", "committed memory", "KiB", looks)
    live = timelines.timeline(comparison, "live_kib", "live memory", "KiB", looks)
    over = timelines.timeline(comparison, "over_live", "resident over live memory", "", looks)
    cores = timelines.timeline(comparison, "busy_cores", "cores busy", "", looks)
    return {
        "scatter": plots.time_and_memory(comparison, looks),
        "forests": of(plots.forest, HEADLINES),
        "distributions": of(plots.distribution, HEADLINES),
        "orders": of(plots.in_order, ("wall_s",)) or of(plots.in_order, ("cpu_s",)),
        "memory": [line for line in (over, memory, live, commit) if line],
        "cores": cores,
        "shares": plots.shares(comparison),
    }


def _of(plot, comparison: Comparison, names, looks: dict[str, Look]) -> list[plots.Picture]:
    return [picture for name in names if (picture := plot(comparison, name, looks)) is not None]


def _moment(iso: str) -> str:
    """2026-03-01T12:00:00+00:00 as people write it."""
    return iso.replace("T", " ", 1).replace("+00:00", " UTC").replace("Z", " UTC")


def _base(comparison: Comparison) -> str:
    return next((v.base for v in comparison.verdicts), "")


def _lead(verdict: Verdict) -> str:
    """The sentence, without the figure's name: it stands under a heading that says it."""
    text = verdict.text.removeprefix(units.name_of(verdict.figure) + ": ").replace(" %", "\u00a0%")
    return text[:1].upper() + text[1:] if not text.startswith(verdict.subject) else text


def _leads(comparison: Comparison, verdicts: list[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """What the comparison was about, from the least to the most."""
    made = ((name, [v for v in verdicts if v.figure == name]) for name in answer.told(comparison))
    return [(name, sorted(verdicts, key=lambda v: v.ratio)) for name, verdicts in made if verdicts]


def _judged(comparison: Comparison) -> dict:
    """The verdicts as a table: the figures that have any, and each subject's by figure."""
    names = [name for name in figures.ALL if any(v.figure == name for v in comparison.verdicts)]
    subjects = dict.fromkeys(v.subject for v in comparison.verdicts)
    return {"figures": names, "rows": [(s, [comparison.verdict(name, s) for name in names]) for s in subjects]}


def _tables(comparison: Comparison) -> list[dict]:
    made = []
    further = tuple(name for name in comparison.summaries if not any(name in names for _, names in TABLES))
    for caption, names in (*TABLES, ("Further figures", further)):
        table = _table(comparison, caption, names)
        if table["rows"]:
            made.append(table)
    return made


def _table(comparison: Comparison, caption: str, names: tuple[str, ...]) -> dict:
    names = [name for name in names if comparison.summaries.get(name)]
    scales = {n: units.of_figure(n, [s.median for s in comparison.summaries[n].values()]) for n in names}
    rows = [(subject.name, [_cell(comparison, name, subject.name, scales[name]) for name in names])
            for subject in comparison.subjects]
    return {"caption": caption, "rows": [(subject, cells) for subject, cells in rows if any(cells)],
            "columns": [(units.name_of(n), scales[n].unit) for n in names]}


def _deciding(comparison: Comparison) -> tuple[str, str]:
    return answer.TIME, answer.memory_figure(comparison)


def _cell(comparison: Comparison, figure: str, subject: str, scale: units.Scale) -> dict | None:
    summary = comparison.summaries[figure].get(subject)
    if summary is None:
        return None
    return {"median": scale.number(summary.median), "low": scale.number(summary.low),
            "high": scale.number(summary.high), "n": summary.n,
            "fewer": summary.n < max(s.n for s in comparison.summaries[figure].values())}


def _kinds(comparison: Comparison) -> list[tuple[str, list[str], list]]:
    """Where the time goes, in figures: each subject's shares by kind, and its busiest modules."""
    rows = []
    for subject in comparison.subjects:
        extra = comparison.extras.get(subject.name)
        if extra and extra.profile and extra.profile.shares:
            cells = [f"{extra.profile.shares[k]:.1%}" if k in extra.profile.shares else "" for k in KINDS]
            rows.append((subject.name, cells, extra.profile))
    return rows


def _calls(comparison: Comparison) -> dict:
    counted = comparison.calls()
    names = sorted({name for calls in counted.values() for name in calls},
                   key=lambda name: -max(calls.get(name, 0) for calls in counted.values()))
    return {"names": names, "rows": [(s, [calls.get(name) for name in names]) for s, calls in counted.items()]}


_WORDED = {"memory_kib": "memory", "cpu": "processor", "with": "allocators", "sample_ms": "sampled every"}


def _facts(comparison: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    return [("Machine", pairs(comparison.machine)), ("Settings", pairs(comparison.settings))]


def pairs(values: dict) -> list[tuple[str, str]]:
    return [(_WORDED.get(name, name.replace("_", " ")), _worded(name, value)) for name, value in values.items()
            if value is not None and value != "" and value != [] and value != {}]


def _worded(name: str, value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_kib") and isinstance(value, int | float):
        return figures.memory(value)
    if name in ("margin", "confidence") and isinstance(value, int | float):
        return f"{value:.4g}" if value > 1 else f"{value * 100:.4g} %"
    if name == "sample_ms":
        return f"{value} ms"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_worded(k, v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
