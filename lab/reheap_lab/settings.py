"""What a comparison was asked to do."""

import dataclasses
import math
import re
from dataclasses import dataclass

from reheap_lab import figures
from reheap_lab.errors import LabError, UsageError


MOST_SAMPLE_MS = 60_000  # that reheap-runner takes


@dataclass
class Settings:
    allocators: str | None = None  # as given to --with; None: all that are installed
    runs: int | None = None  # exactly so many rounds
    time: float | None = None  # seconds to spend; neither: until precise
    most_runs: int = 100  # where `until precise` gives up
    most_time: float = 900.0
    warmups: int = 1
    seed: int = 0
    margin: float = 0.01
    confidence: float = 0.99
    sample_ms: int = 10
    timeout: float | None = None
    setup: str | None = None
    prepare: str | None = None
    input: str | None = None
    output: str = "compare"  # compare, check (a difference is a failure) or discard
    ignore_status: bool = False
    extras: bool = True
    side_by_side: bool = False
    env: dict[str, str] = dataclasses.field(default_factory=dict)  # of the command, and of what prepares or loads it
    cwd: str | None = None  # where those run; None: where the lab does
    own_folder: bool = False  # each run has an empty one of its own
    server: "Server | None" = None
    own: "list[OwnFigure]" = dataclasses.field(default_factory=list)  # that the command prints, or the server's load

    def __post_init__(self) -> None:
        if self.runs is not None and self.time is not None:
            raise UsageError("--runs and --time exclude each other: say how many rounds, or how long")
        if self.runs is not None and self.runs < 1:
            raise UsageError("--runs must be at least 1")
        for name in ("runs", "seed", "warmups"):
            if abs(getattr(self, name) or 0) >= 2**63:
                raise UsageError(f"--{name.removesuffix('s') if name == 'warmups' else name} is too large a number")
        if self.sample_ms > MOST_SAMPLE_MS:
            raise UsageError("--sample-ms is the time between two looks at the memory, in thousandths of a second, and "
                             f"at most {MOST_SAMPLE_MS}: --sample-ms 10")
        if self.timeout == 0:
            raise UsageError("--timeout must be more than 0: say how long a run may take")
        if self.side_by_side and self.server:
            raise UsageError("--side-by-side is for commands: two servers would take the same port. Leave it out, or "
                             "--load")
        if self.own_folder and self.cwd is not None:
            raise UsageError("own_folder does not go together with cwd. Leave out one of them")
        if self.own_folder and self.side_by_side and self.prepare:
            raise UsageError("own_folder with prepare does not go together with side_by_side: both runs would be "
                             "prepared at once. Leave out one of them")
        if "LD_PRELOAD" in self.env:
            raise UsageError("env: LD_PRELOAD is how the command is put on an allocator. Name a library that is to be "
                             "compared in with: 'system,name=PATH'")
        if not 0 < self.margin < 1:
            raise UsageError("--margin is a share between 0 and 1, or a percentage: --margin 1%")
        if not 0.5 <= self.confidence < 1:
            raise UsageError("--confidence is a share from 0.5 to below 1, or a percentage: --confidence 99%")

    def as_data(self) -> dict:
        data = dataclasses.asdict(self)
        data["with"] = data.pop("allocators")
        return {name: value for name, value in data.items() if value is not None and value not in ([], {})}


TOO_LARGE = 1e100  # to reckon with: inf, which 0 seconds make of a rate, and nan are not less


@dataclass
class OwnFigure:
    """A number in what a command prints: the first group of the first place that the pattern matches."""

    name: str
    pattern: str
    more_is_better: bool

    @classmethod
    def parse(cls, text: str, more_is_better: bool) -> "OwnFigure":
        name, equals, pattern = text.partition("=")
        if not name.strip() or not equals:
            raise UsageError(f"{text!r} names no figure of the command's own; for example: "
                             "'requests/s=Requests/sec: +([0-9.]+)'")
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from None
        if name.strip() in figures.BUILT_IN:
            raise UsageError(f"{name.strip()} is one of the lab's own figures: give this one another name")
        if not groups:
            raise UsageError(f"{pattern!r} has no group: put parentheses around the number that is meant")
        return cls(name.strip(), pattern, more_is_better)

    def find(self, printed: str) -> float:
        """LabError when it is not there."""
        found = re.search(self.pattern, printed)
        if found is None:
            raise LabError(f"it printed no {self.name}: nothing is like {self.pattern}")
        try:
            value = float(found[1].replace(",", ""))
        except (TypeError, ValueError):
            value = math.nan
        if not abs(value) < TOO_LARGE:
            raise LabError(f"it printed no {self.name}: of {found[0]!r}, which is like {self.pattern}, the part in "
                           "brackets is no number that can be compared")
        return value


@dataclass
class Server:
    """How a server is driven: started, waited for, loaded, left idle, stopped."""

    load: str  # shell command
    ready: str | None = None  # shell command that succeeds once the server answers
    ready_timeout: float = 30.0
    idle: float = 5.0  # seconds between the end of the load and the stop
    stop: str | None = None  # shell command; without it, SIGTERM
    stop_timeout: float = 60.0


LONGEST = 1e8  # seconds: clocks can reckon with it


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def seconds(text: str) -> float:
    """90, 90s, 5m, 1h, 250ms."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?\s*", text)
    if not found:
        raise UsageError(f"{text!r} is no length of time; for example: 90, 250ms, 5m, 1h")
    length = float(found[1]) * {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}[found[2] or "s"]
    if length > LONGEST:
        raise UsageError(f"{_short(text)} is longer than three years; for example: 90, 250ms, 5m, 1h")
    return length


def share(text: str) -> float:
    """0.01 or 1%."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if not found:
        raise UsageError(f"{text!r} is no share; for example: 0.01 or 1%")
    return float(found[1]) / (100 if found[2] else 1)
