"""The record of a comparison, or of a collection of them, and its JSON: what the terminal, the exporters and the report
read, and nothing else.

A figure that could not be measured is absent from `figures`, never 0. Times are in seconds, memory in KiB.
"""

import dataclasses
import json
import pathlib
import types
import typing
from dataclasses import dataclass, field

from reheap_lab import figures, sound
from reheap_lab.errors import UsageError
from reheap_lab.sound import Damaged

SCHEMA = "reheap-lab/compare/1"
COLLECTION = "reheap-lab/collection/1"


@dataclass
class Subject:
    """One allocator, as this comparison met it."""

    name: str
    version: str | None = None
    libraries: list[str] = field(default_factory=list)  # preloaded, in this order
    variables: dict[str, str] = field(default_factory=dict)  # what it was told by the environment
    proof: dict[str, str] = field(default_factory=dict)  # function: the object that served it
    share: float | None = None  # of the command's CPU time, served by it; None when it could not be accounted for
    memory_of_others: bool = False  # the largest process was not served by it, so it has no figures of memory
    failed: str | None = None  # why there are no figures
    warnings: list[str] = field(default_factory=list)


@dataclass
class Series:
    """What was sampled while a run went on. Lists of one length, or empty when not measured."""

    t_s: list[float] = field(default_factory=list)
    rss_kib: list[float] = field(default_factory=list)
    busy_cores: list[float] = field(default_factory=list)  # since the sample before
    commit_kib: list[float] = field(default_factory=list)
    live_kib: list[float] = field(default_factory=list)  # in a replay: what the program had asked for


@dataclass
class Run:
    subject: str
    round: int  # from 0; one run of each subject to a round; warm-up rounds are numbered apart
    place: int  # from 0: which run of its round it was
    warmup: bool = False
    figures: dict[str, float] = field(default_factory=dict)  # names in figures.py
    series: Series = field(default_factory=Series)
    outlier: bool = False  # by its wall time, among its subject's runs; kept in every summary
    failed: str | None = None


@dataclass
class Module:
    module: str
    share: float  # of all samples, 0 to 1
    kind: str  # allocator, libc, kernel, program or other


@dataclass
class Profile:
    source: str
    hz: float | None = None
    samples: int = 0
    lost: int = 0
    shares: dict[str, float] = field(default_factory=dict)  # by kind; they add up to 1
    modules: list[Module] = field(default_factory=list)  # largest first


@dataclass
class Extras:
    """From one further run of each subject, which no timed figure comes from."""

    calls: dict[str, int] | None = None  # memory calls to the OS, by name
    profile: Profile | None = None


@dataclass
class Summary:
    median: float
    low: float  # the interval of the median, at the settings' confidence
    high: float
    n: int


@dataclass
class Verdict:
    """One figure of one subject against the base: `ratio` is subject over base, paired by round."""

    figure: str
    subject: str
    base: str
    ratio: float
    low: float
    high: float
    word: str  # one of figures.WORDS
    text: str  # the whole sentence
    more_runs: int | None = None  # how many more rounds would decide it, when undecided
    margin: float | None = None  # within which it counts as the same


@dataclass
class Comparison:
    command: list[str]
    schema: str = SCHEMA
    lab_version: str = ""
    started: str = ""  # ISO 8601, UTC
    cwd: str = ""
    environment: dict[str, str] = field(default_factory=dict)  # the variables that change what allocators do
    kind: str = "command"  # or "server", "replay"
    settings: dict[str, typing.Any] = field(default_factory=dict)
    machine: dict[str, typing.Any] = field(default_factory=dict)
    reproduce: str = ""  # one line for a shell
    subjects: list[Subject] = field(default_factory=list)  # the first is the base of the verdicts
    runs: list[Run] = field(default_factory=list)  # in the order they were made
    extras: dict[str, Extras] = field(default_factory=dict)  # by subject
    summaries: dict[str, dict[str, Summary]] = field(default_factory=dict)  # figure: subject
    verdicts: list[Verdict] = field(default_factory=list)  # against the base
    between_others: list[Verdict] = field(default_factory=list)  # every other pair's; `base` is the earlier one
    warnings: list[str] = field(default_factory=list)

    def measured(self, subject: str) -> list[Run]:
        """The runs of one subject that count: no warm-up, none that failed."""
        return [run for run in self.runs if run.subject == subject and not run.warmup and run.failed is None]

    def shares(self) -> dict[str, dict[str, float]]:
        """Where the time went, by subject."""
        return {name: extra.profile.shares for name, extra in self.extras.items() if extra.profile}

    def calls(self) -> dict[str, dict[str, int]]:
        return {name: extra.calls for name, extra in self.extras.items() if extra.calls}

    def verdict(self, figure: str, subject: str) -> Verdict | None:
        return next((v for v in self.verdicts if v.figure == figure and v.subject == subject), None)


# ---- many of them -----------------------------------------------------------------------------

@dataclass
class Overall(Verdict):
    """Of the geometric mean over cases: `low` and `high` are of the mean over these, the others of that over programs
    like these (design/lab.md says how)."""

    cases: int = 0  # that had figures of both
    like_low: float | None = None
    like_high: float | None = None


@dataclass
class Case:
    """One comparison among several."""

    name: str
    about: str = ""
    group: str = ""  # cases that differ by their parameters alone are of one group
    parameters: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)  # what was fetched for it: version by name
    comparison: Comparison | None = None
    failed: str | None = None  # why there is none


@dataclass
class Collection:
    title: str
    schema: str = COLLECTION
    lab_version: str = ""
    started: str = ""  # ISO 8601, UTC
    settings: dict[str, typing.Any] = field(default_factory=dict)  # of the verdicts over all: margin and confidence
    machine: dict[str, typing.Any] = field(default_factory=dict)
    reproduce: str = ""
    cases: list[Case] = field(default_factory=list)
    verdicts: list[Overall] = field(default_factory=list)  # against the base
    between_others: list[Overall] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def measured(self) -> list[Case]:
        return [case for case in self.cases if case.comparison]

    def subjects(self) -> list[str]:
        """All allocators, the base first."""
        return list(dict.fromkeys(s.name for case in self.measured() for s in case.comparison.subjects))

    def verdict(self, figure: str, subject: str) -> Overall | None:
        return next((v for v in self.verdicts if v.figure == figure and v.subject == subject), None)


# ---- JSON -------------------------------------------------------------------------------------

def from_data(kind: typing.Any, data: typing.Any, where: str = "comparison") -> typing.Any:
    """The reverse of `dump`, by the annotations of `kind`. Unknown keys are passed over: a later minor may add some."""
    if kind is typing.Any:
        sound.check_numbers(data, where)
        return data
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if data is None else from_data(arguments[0], data, where)
    if origin is list:
        _expect(data, list, where)
        return [from_data(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data)]
    if origin is dict:
        _expect(data, dict, where)
        return {key: from_data(arguments[1], item, f"{where}.{key}") for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _record(kind, data, where)
    _expect(data, (int, float) if kind is float else kind, where)
    if kind in (int, float):
        sound.check_number(data, where)
    return data


def _record(kind: typing.Any, data: typing.Any, where: str) -> typing.Any:
    _expect(data, dict, where)
    values = {}
    for item in dataclasses.fields(kind):
        if item.name in data:
            values[item.name] = from_data(item.type, data[item.name], f"{where}.{item.name}")
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise Damaged(f"{where}.{item.name} is missing")
    return kind(**values)


def _expect(data: typing.Any, kinds: typing.Any, where: str) -> None:
    wrong_bool = isinstance(data, bool) and kinds is not bool
    if wrong_bool or not isinstance(data, kinds):
        names = "/".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise Damaged(f"{where} is a {type(data).__name__}, not a {names}")


def dump(made: Comparison | Collection) -> str:
    """What is None is left out."""
    data = dataclasses.asdict(made, dict_factory=lambda pairs: {k: v for k, v in pairs if v is not None})
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def load(text: str) -> Comparison:
    return _load(text, {SCHEMA: Comparison})


def _refuse(name: str) -> typing.NoReturn:
    """Python reads NaN and Infinity too; no figure is one."""
    raise ValueError(f"{name} is no number")


def _load(text: str, kinds: dict[str, type]) -> typing.Any:
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # also for numbers, and for brackets in brackets, without end
        raise Damaged(f"not JSON: {error}") from None
    found = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(found, str) or found not in kinds:
        raise Damaged(f"not a comparison this version reads: its schema is {found!r}, not "
                      + " or ".join(map(repr, kinds)))
    made = from_data(kinds[found], data, kinds[found].__name__.lower())
    (sound.check_collection if isinstance(made, Collection) else sound.check_comparison)(made)
    for comparison in [case.comparison for case in made.measured()] if isinstance(made, Collection) else [made]:
        figures.learn(comparison.settings.get("own", []))
    return made


def read_text(path: pathlib.Path | str) -> str:
    """Neither JSON nor TOML holds the character of number 0: of what begins with some, as a device without end may, no
    more is read."""
    with open(path, encoding="utf-8") as file:
        beginning = file.read(4096)
        return beginning if "\0" in beginning else beginning + file.read()


def load_file(path: pathlib.Path | str) -> Comparison:
    return _load_file(path, {SCHEMA: Comparison})


def _load_file(path: pathlib.Path | str, kinds: dict[str, type]) -> typing.Any:
    try:
        return _load(read_text(path), kinds)
    except (Damaged, UnicodeDecodeError) as error:
        raise Damaged(f"{path}: {error}") from None


def load_export(path: pathlib.Path) -> Comparison | Collection:
    """For a command that was given the file."""
    try:
        return _load_file(path, {SCHEMA: Comparison, COLLECTION: Collection})
    except Damaged as error:
        raise UsageError(f"{error}. It must be a file that --export wrote as .json") from None
