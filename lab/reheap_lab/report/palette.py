"""The colours of the report. A plot names a role; the page's style says what it looks like in light and in dark.

matplotlib wants real colours, so each role has a stand-in that svg.py turns into a CSS variable.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

# Told apart by people who see two of the three primaries (after Okabe and Ito); lighter on dark. The system's own is
# grey. A marker of its own stands beside each, so that nothing hangs on colour alone.
SERIES = (
    ("#636b78", "#a7b0bf", "o"),
    ("#0067ac", "#56aef0", "s"),
    ("#cf5000", "#ff8d4d", "^"),
    ("#00805f", "#2fcb9f", "D"),
    ("#b3569a", "#ec9fd2", "v"),
    ("#b07d00", "#f2c14a", "P"),
    ("#2b9fd6", "#9adcff", "X"),
    ("#6a45b8", "#b9a1ff", "p"),
    ("#7a4a2b", "#d0a283", "<"),
    ("#6f7a00", "#c9d44f", ">"),
)
# Whose look each is, in all reports.
OWNERS = ("system", "reheap", "mimalloc", "jemalloc", "tcmalloc", "snmalloc", "rpmalloc", "scudo", "tbbmalloc", "hoard")
DASHES = ("-", (0, (5, 2)), (0, (2, 1.5)))

# Where the time goes. Not the allocators' colours: these stand for modules.
KINDS = {
    "allocator": ("#a8326b", "#f07fb2"),
    "libc": ("#d9a21b", "#f0c558"),
    "kernel": ("#3f7f93", "#6fb9cf"),
    "program": ("#b9c0ca", "#5a6472"),
    "other": ("#e2e5ea", "#3a424e"),
}

_ROLES = ("ink", "muted", "line", "panel", "band", "alarm")
_STAND_IN = {role: f"#0a00{i:02x}" for i, role in enumerate(_ROLES)}
_STAND_IN |= {f"c{i}": f"#0b00{i:02x}" for i in range(len(SERIES))}
_STAND_IN |= {f"k-{kind}": f"#0c00{i:02x}" for i, kind in enumerate(KINDS)}
_STAND_IN |= {f"on-{kind}": f"#0d00{i:02x}" for i, kind in enumerate(KINDS)}
ROLE_OF = {colour: role for role, colour in _STAND_IN.items()}


def role(name: str) -> str:
    """The stand-in that a plot draws with."""
    return _STAND_IN[name]


@dataclass(frozen=True)
class Look:
    """How one allocator looks, in every plot and table of a report."""

    index: int

    @property
    def variable(self) -> str:
        return f"c{self.index % len(SERIES)}"

    @property
    def colour(self) -> str:
        return role(self.variable)

    @property
    def marker(self) -> str:
        return SERIES[self.index % len(SERIES)][2]

    @property
    def dash(self):
        return DASHES[self.index // len(SERIES) % len(DASHES)]

    @property
    def group(self) -> str:
        """The class of what belongs to this allocator, for the page's highlighting."""
        return f"series-{self.index}"


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A known name has its own look in every report; others take those whose owner is not there, and then the same
    again with other dashes."""
    names = list(dict.fromkeys(names))
    taken = {OWNERS.index(name) for name in names if name in OWNERS}
    free = (index for index in itertools.count(1) if index not in taken)
    return {name: Look(OWNERS.index(name) if name in OWNERS else next(free)) for name in names}


def variables(theme: str) -> str:
    """The CSS declarations of the palette in `theme`, light or dark."""
    which = 0 if theme == "light" else 1
    lines = [f"--c{i}:{colours[which]}" for i, colours in enumerate(SERIES)]
    for kind, colours in KINDS.items():
        lines.append(f"--k-{kind}:{colours[which]}")
        lines.append(f"--on-{kind}:{_readable_on(colours[which])}")
    return ";".join(lines)


def _readable_on(colour: str) -> str:
    red, green, blue = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
    return "#14171c" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"
