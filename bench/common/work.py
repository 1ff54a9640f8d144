"""What a benchmark runs under an allocator: the lab's command, of which no process may be served by another one."""

from collections.abc import Callable
from pathlib import Path

from reheap_lab.allocators import Allocator
from reheap_lab.errors import LabError
from reheap_lab.server import ServerWorkload
from reheap_lab.settings import Settings
from reheap_lab.workload import CommandWorkload, Extra, Outcome, digest, tail

LONGEST_RUN_S = 600


class _Served:
    """A run in which another allocator served a process has failed."""

    def run_prepared(self, allocator: Allocator, extra: Extra | None = None) -> Outcome:
        outcome = super().run_prepared(allocator, extra)
        if outcome.proof:
            outcome.failed = outcome.failed or outcome.proof.reach(allocator.objection).missed
        return outcome


class Work(_Served, CommandWorkload):
    pass


class ServerWork(_Served, ServerWorkload):
    pass


def telling(figures_of: Callable[[str], dict[str, float]]) -> type[Work]:
    """A program that prints figures itself, and so something else each time."""

    class Telling(Work):
        def complete(self, outcome: Outcome) -> None:
            outcome.printed = None
            try:
                outcome.measured.figures |= figures_of(self.path("stdout").read_text())
            except (KeyError, ValueError) as error:
                outcome.failed = outcome.failed or f"what it printed makes no figures: {error}"

    return Telling


def making(output: Path, kind: type[CommandWorkload] = Work) -> type[CommandWorkload]:
    """A program whose output is a file, which has to be the same under every allocator. The word of the command that
    names it stands for one in the run's own folder: two may run at a time."""

    class Making(kind):
        def argv(self, allocator: Allocator) -> list[str]:
            self.path(output.name).unlink(missing_ok=True)
            return [str(self.path(output.name)) if word == str(output) else word for word in self.command]

        def complete(self, outcome: Outcome) -> None:
            outcome.printed = digest(self.path(output.name))

    return Making


def run_once(command: list, allocator: Allocator, folder: Path) -> tuple[str, str]:
    """What it printed, and on standard error."""
    settings = Settings(timeout=LONGEST_RUN_S, sample_ms=0)
    work = Work([str(part) for part in command], settings, folder)
    outcome = work.run(allocator, Extra(prove=True))
    if outcome.failed:
        raise LabError(outcome.failed)
    return work.path("stdout").read_text(errors="replace"), tail(work.path("stderr"))
