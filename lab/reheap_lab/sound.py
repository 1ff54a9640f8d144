"""What a kept comparison may say: a file may have the right shape and figures that none can be. Each is refused by the
name of its field, before anything reckons with it."""

import typing

from reheap_lab import figures

if typing.TYPE_CHECKING:
    from reheap_lab.results import Case, Collection, Comparison, Run, Verdict

LARGEST = 1e100  # of a figure; what is made of two such can still be reckoned with
LARGEST_COUNT = 2**63
SERIES = ("rss_kib", "busy_cores", "commit_kib", "live_kib")


class Damaged(ValueError):
    """The JSON is not a comparison, or not a whole one."""


def check_number(value: float, where: str) -> None:
    """Also of a number that may be anything else."""
    bound = LARGEST_COUNT if isinstance(value, int) else LARGEST
    if not -bound < value < bound:  # also for an infinity, which Python reads from 1e999
        raise Damaged(f"{where} is too large a number")


def check_numbers(data: typing.Any, where: str) -> None:
    """Those of settings and machine, whose fields are not all known."""
    if isinstance(data, int | float):
        check_number(data, where)
    elif isinstance(data, dict):
        for key, item in data.items():
            check_numbers(item, f"{where}.{key}")
    elif isinstance(data, list):
        for place, item in enumerate(data):
            check_numbers(item, f"{where}[{place}]")


def _expect(good: bool, where: str, value: typing.Any, wanted: str) -> None:
    if not good:
        shown = value if isinstance(value, str) else repr(value)
        raise Damaged(f"{where} is {shown[:60] or 'empty'}, not {wanted}")


def _is_number(value: typing.Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shares(settings: dict, where: str, least: float, *names: str) -> None:
    for name in names:
        value = settings[name]
        _expect(_is_number(value) and least <= value < 1 and value > 0, f"{where}.settings.{name}", value,
                f"a number between {least:g} and 1")


def _least(value: float | None, least: float, where: str) -> None:
    _expect(value is None or value >= least, where, value, f"{least:g} or more")


def _known(name: str, subjects: set[str], where: str) -> None:
    _expect(name in subjects, where, name, "one of the allocators: " + ", ".join(sorted(subjects)))


# ---- one comparison -----------------------------------------------------------------------------

def check_comparison(made: "Comparison", where: str = "comparison") -> None:
    if not made.command:
        raise Damaged(f"{where}.command is empty")
    _settings(made, where)
    _machine(made.machine, where)
    subjects = {subject.name for subject in made.subjects}
    _expect(len(subjects) == len(made.subjects), f"{where}.subjects", [s.name for s in made.subjects],
            "a list in which each name stands once")
    for place, run in enumerate(made.runs):
        _run(run, subjects, f"{where}.runs[{place}]")
    _extras(made, subjects, where)
    _summaries(made, subjects, where)
    for name in ("verdicts", "between_others"):
        for place, verdict in enumerate(getattr(made, name)):
            _verdict(verdict, subjects, f"{where}.{name}[{place}]")


def _settings(made: "Comparison", where: str) -> None:
    settings = made.settings
    _shares(settings, where, 0.5, *({"confidence"} & settings.keys()))
    _shares(settings, where, 0, *({"margin"} & settings.keys()))
    own = settings.get("own", [])
    _expect(isinstance(own, list), f"{where}.settings.own", own, "a list")
    for place, one in enumerate(own):
        good = isinstance(one, dict) and [type(one.get(name)) for name in ("name", "more_is_better")] == [str, bool]
        _expect(good and one["name"] not in figures.BUILT_IN, f"{where}.settings.own[{place}]", one,
                "a figure of the command's own, with name and more_is_better")
    server = settings.get("server")
    idle = server.get("idle", 0) if isinstance(server, dict) else 0
    _expect(_is_number(idle) and idle >= 0, f"{where}.settings.server.idle", idle, "a number of seconds")


def _machine(machine: dict, where: str) -> None:
    cores = machine.get("cores", 1)
    _expect(_is_number(cores) and cores >= 1, f"{where}.machine.cores", cores, "a number of 1 or more")


def _run(run: "Run", subjects: set[str], where: str) -> None:
    _known(run.subject, subjects, f"{where}.subject")
    _least(run.round, 0, f"{where}.round")
    _least(run.place, 0, f"{where}.place")
    for name, value in run.figures.items():
        _figure(name, value, f"{where}.figures.{name}")
    times = run.series.t_s
    _expect(times == sorted(times) and (not times or times[0] >= 0), f"{where}.series.t_s", times, "times that grow")
    for name in SERIES:
        values = getattr(run.series, name)
        _expect(len(values) in (0, len(times)), f"{where}.series.{name}", f"{len(values)} long",
                f"as long as t_s, {len(times)}")
        _least(min(values, default=0), 0, f"{where}.series.{name}")


def _figure(name: str, value: float, where: str) -> None:
    """What a command prints of its own may be negative."""
    if name in figures.BUILT_IN:
        _least(value, 0, where)


def _extras(made: "Comparison", subjects: set[str], where: str) -> None:
    for name, extra in made.extras.items():
        place = f"{where}.extras.{name}"
        _known(name, subjects, place)
        for call, count in (extra.calls or {}).items():
            _least(count, 0, f"{place}.calls.{call}")
        if extra.profile is None:
            continue
        _least(extra.profile.samples, 0, f"{place}.profile.samples")
        _least(extra.profile.lost, 0, f"{place}.profile.lost")
        shares = [(f"shares.{kind}", share) for kind, share in extra.profile.shares.items()]
        for field, share in [*shares, *((f"modules[{n}].share", m.share) for n, m in enumerate(extra.profile.modules))]:
            _expect(0 <= share <= 1 + 1e-9, f"{place}.profile.{field}", share, "a share between 0 and 1")


def _summaries(made: "Comparison", subjects: set[str], where: str) -> None:
    for figure, by_subject in made.summaries.items():
        for subject, summary in by_subject.items():
            place = f"{where}.summaries.{figure}.{subject}"
            _known(subject, subjects, place)
            _figure(figure, summary.low, f"{place}.low")
            _least(summary.n, 1, f"{place}.n")
            _ordered((summary.low, summary.median, summary.high), place, "low, median, high")


def _ordered(values: tuple[float, float, float], where: str, names: str) -> None:
    low, middle, high = values
    room = 1e-9 * max(abs(low), abs(high))  # what a decimal text loses
    _expect(low - room <= middle <= high + room, where, " ".join(map(repr, values)), f"in the order {names}")


def _verdict(verdict: "Verdict", subjects: set[str], where: str) -> None:
    _known(verdict.subject, subjects, f"{where}.subject")
    _known(verdict.base, subjects, f"{where}.base")
    for name in ("low", "ratio", "high"):
        value = getattr(verdict, name)
        _expect(1 / LARGEST <= value, f"{where}.{name}", value, "a ratio of more than 0")
    _ordered((verdict.low, verdict.ratio, verdict.high), where, "low, ratio, high")
    _least(verdict.margin, 0, f"{where}.margin")


# ---- many of them -------------------------------------------------------------------------------

def check_collection(made: "Collection") -> None:
    for name in ("confidence", "margin"):
        if name not in made.settings:
            raise Damaged(f"collection.settings.{name} is missing")
    _shares(made.settings, "collection", 0.5, "confidence")
    _shares(made.settings, "collection", 0, "margin")
    _machine(made.machine, "collection")
    of_group: dict[str, Case] = {}
    for place, case in enumerate(made.cases):
        where = f"collection.cases[{place}]"
        if case.comparison:
            check_comparison(case.comparison, f"{where}.comparison")
        if case.parameters:
            first = of_group.setdefault(case.group, case)
            _expect(case.parameters.keys() == first.parameters.keys(), f"{where}.parameters", case.parameters,
                    f"those of {first.name}, which is of the same group")
    subjects = set(made.subjects())
    for name in ("verdicts", "between_others"):
        for place, verdict in enumerate(getattr(made, name)):
            where = f"collection.{name}[{place}]"
            _verdict(verdict, subjects, where)
            for field in ("like_low", "like_high"):
                value = getattr(verdict, field)
                _expect(value is None or value >= 1 / LARGEST, f"{where}.{field}", value, "a ratio of more than 0")
