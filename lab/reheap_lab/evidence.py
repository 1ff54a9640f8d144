"""Who served a command: every program of every process it started, what it used, and whose malloc it called.

The witness tells it from inside (docs/lab-runner.md), the runner accounts for the processes from outside. A program
that the witness does not know was not reached: it is statically linked, has other rights, or lost LD_PRELOAD.
"""

import collections
import os
import pathlib
import re
import typing
from dataclasses import dataclass, field

from reheap_lab import elf, figures

WHOLE = 0.99  # of the CPU time: what is missing there is not worth a word
ENOUGH = 0.9  # of the CPU time: with less, the command is another program's measurement
MUCH_BESIDE = 0.25  # of the memory that is no file's: if others than the allocator mapped more, that is worth a word

# What is known of those who map memory of their own, by the file that does.
KNOWN_TO_MAP = {
    r"(lib)?python3": "PYTHONMALLOC=malloc in the environment makes CPython take it from malloc",
    r"(lib)?(node|deno|chrom|v8|electron)": "it is V8's heap of JavaScript objects",
    r"libjvm\.so": "it is the Java virtual machine's heap",
}

Served = dict[str, str]  # function: the object that serves it
Objection = typing.Callable[[Served], str | None]  # why this shows that another allocator served


@dataclass
class Program:
    """What one process was from one exec to the next, or to its end. What forks and does not exec is one too."""

    pid: int
    path: str  # empty where the kernel does not say
    began_ns: int  # CLOCK_MONOTONIC, as the witness's times
    ended_ns: int
    cpu_us: int
    peak_kib: int | None = None  # unknown when it became another program
    parent: int | None = None  # the place of the one it was forked from
    # Where it held most: resident memory that is no file's, and what the code of each file had mapped by mmap or sbrk.
    # Unknown without a witness in it, and of a program that holds little.
    private_kib: int | None = None
    mapped: dict[str, int] = field(default_factory=dict)


@dataclass
class Testimony:
    """What the witness wrote: at which time of which process, which object served each function."""

    told: dict[tuple[int, int], Served] = field(default_factory=dict)  # by process and time, in the order written

    @classmethod
    def read(cls, path: pathlib.Path) -> "Testimony":
        found = cls()
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
                parts = line.split("\t")
                if len(parts) == 4 and parts[0].isdigit() and parts[1].isdigit():
                    found.told.setdefault((int(parts[0]), int(parts[1])), {})[parts[2]] = parts[3]
        return found

    def of(self, program: Program) -> Served:
        return next((served for (pid, time), served in self.told.items()
                     if pid == program.pid and program.began_ns <= time <= program.ended_ns), {})


@dataclass(frozen=True)
class Reach:
    """How much of a command one allocator served."""

    share: float | None  # of the CPU time; None when the processes could not be accounted for
    missed: str | None = None  # what of it the allocator did not serve most, and why
    largest_missed: str | None = None  # the process with the highest peak, when that was not reached

    def refusal(self) -> str | None:
        """Why there is nothing to be said of the allocator."""
        if self.missed and (self.share is None or self.share < ENOUGH):
            return self.missed
        return None

    def warnings(self) -> list[str]:
        if self.share is None:
            return ["the processes of the command could not be accounted for, which the system refuses: only the first "
                    "is known to have been served by it"]
        found = []
        if self.missed and self.share < WHOLE:
            found.append(f"{_percent(1 - self.share)} of the CPU time was not its own: {self.missed}")
        if self.largest_missed:
            found.append(f"no figures of memory, for the largest process was not served by it: {self.largest_missed}")
        return found


@dataclass(frozen=True)
class Beside:
    """What of a program's memory others than the allocator mapped: their objects lie there, not in malloc's heap."""

    program: Program
    mapped: dict[str, int]  # KiB, by the file whose code did

    @property
    def kib(self) -> int:
        return sum(self.mapped.values())

    def is_much(self) -> bool:
        return self.kib > MUCH_BESIDE * max(self.program.private_kib or 0, self.kib)

    def sentence(self) -> str:
        by = os.path.basename(max(self.mapped, key=self.mapped.__getitem__))
        hint = next((f": {text}" for pattern, text in KNOWN_TO_MAP.items() if re.match(pattern, by)), "")
        peak = max(self.program.peak_kib or 0, self.program.private_kib or 0)
        return (f"{_name(self.program)} holds {figures.memory(self.kib)} of its peak of {figures.memory(peak)} in "
                f"memory that it mapped itself ({by}), not in malloc's heap. No allocator changes that part{hint}")


@dataclass
class Proof:
    """What one run showed."""

    testimony: Testimony
    programs: list[Program] | None = None  # None: the runner could not account for them

    def first(self) -> Served:
        return next(iter(self.testimony.told.values()), {})

    def served(self) -> list[tuple[Program, Served]]:
        """A child without exec has its parent's memory, and so its allocator."""
        found: list[tuple[Program, Served]] = []
        for program in self.programs or []:
            own = self.testimony.of(program)
            if not own and program.parent is not None and program.parent < len(found):
                own = found[program.parent][1]
            found.append((program, own))
        return found

    def served_most(self, objection: Objection) -> Served:
        """By what, where the allocator served it, most of the time was spent."""
        ours = [(program, served) for program, served in self.served() if objection(served) is None]
        return max(ours, key=lambda one: one[0].cpu_us)[1] if ours else self.first()

    def unseen(self, programs: list[Program], objection: Objection) -> str | None:
        """What of another run's programs was not served in this one, if it is much."""
        ours = {program.path for program, served in self.served() if objection(served) is None}
        total = sum(program.cpu_us for program in programs) or 1
        missed: collections.Counter[tuple[str, str]] = collections.Counter()
        for program in programs:
            if program.path not in ours:
                missed[program.path, "it was not seen there"] += program.cpu_us
        return _worst(missed, total) if self.programs and missed.total() > (1 - ENOUGH) * total else None

    def beside(self, is_part: typing.Callable[[str], bool]) -> Beside | None:
        """Of the program that decides about memory: the one with the highest peak."""
        largest = max(self.programs or [], key=lambda one: one.peak_kib or 0, default=None)
        if largest is None:
            return None
        others = {path: kib for path, kib in largest.mapped.items() if not is_part(path)}
        return Beside(largest, others) if others else None

    def reach(self, objection: Objection) -> Reach:
        if not self.programs:
            return Reach(None, objection(self.first()))
        reasons = [(program, _reason(program, served, objection)) for program, served in self.served()]
        total = sum(program.cpu_us for program, _ in reasons) or 1
        missed: collections.Counter[tuple[str, str]] = collections.Counter()
        for program, reason in reasons:
            if reason:
                missed[program.path, reason] += program.cpu_us
        largest = max(reasons, key=lambda one: one[0].peak_kib or 0)
        return Reach(1 - missed.total() / total, _worst(missed, total), _described(*largest))


def _reason(program: Program, served: Served, objection: Objection) -> str | None:
    """Of a program of which nothing is known, its file may tell why."""
    return (not served and elf.out_of_reach(pathlib.Path(program.path))) or objection(served)


def _worst(missed: collections.Counter, total: int) -> str | None:
    if not missed:
        return None
    (path, reason), used = missed.most_common(1)[0]
    return f"{os.path.basename(path) or 'a process'} ({_percent(used / total)} of the CPU time): {reason}"


def _name(program: Program) -> str:
    return os.path.basename(program.path) or "a process"


def _described(program: Program, reason: str | None) -> str | None:
    return f"{_name(program)}: {reason}" if reason else None


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.01 else f"{100 * share:.1f} %"
