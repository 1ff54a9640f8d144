"""Runs real programs under each allocator, and compares CPU time and peak memory.

They are those of the lab's ready suite (docs/suite.md) that a linker, compilers, solvers, interpreters, servers and
tools stand for, and those of bench/programs.toml: the same on other work, and what takes the bench's corpus. What they
need is fetched from package registries. What a program prints must be the same under every allocator.

The tables: of each program the system heap's figure and the others' ratios to it; the best peer, the one that takes
least, and everyone's ratio to that; then the geometric means over the programs, as of `synthetic`. A program that one
of the allocators has no figures of is named with the reason, and is in no mean.
"""

import tempfile
from pathlib import Path

import environment
import synthetic
from common import means, question, tables
from common.names import select
from common.paths import BENCH
from common.work import ServerWork, Work
from reheap_lab import export, machine, telling
from reheap_lab.errors import LabError
from reheap_lab.options import settings_of
from reheap_lab.results import Case, Collection, Comparison
from reheap_lab.suite import command, documents, file, overall
from reheap_lab.suite.cases import Planned

OWN = BENCH / "programs.toml"
SET = ("lld", "lld-debug", "lld-protobuf", "lld-protobuf-debug", "clang", "clang-templates", "clang-preprocessed",
       "rustc", "z3", "z3-bits", "z3-quantifiers", "cpython", "ruby", "node", "redis", "nginx", "sqlite", "git",
       "ghostscript")
QUICK = ("lld", "clang-templates", "rustc", "z3-quantifiers", "cpython", "redis", "nginx", "sqlite", "ghostscript")
ROUNDS, QUICK_ROUNDS = 5, 1
FIGURES = (("cpu_s", "CPU time, s", 1, 2), ("peak_rss_kib", "peak resident memory, MiB", 1 / 1024, 1))


def known() -> dict[str, Planned]:
    """By name. Where both files have one, it is the bench's."""
    return {case.name: case for path in (command.READY_MADE, OWN) for case in file.read(path).cases}


# ---- tables -------------------------------------------------------------------------------------

def best_rows(results: dict[str, Comparison], figure: str) -> list[list[str]]:
    """Of each program the best peer, and each allocator's ratio to it."""
    best, names = means.best_peers(results, figure), means.names_of(results)
    ratios = {name: means.to_best_peer(results, figure, name) for name in names}
    return [[title, best[title], *(tables.number(ratios[name][title]) for name in names)] for title in results
            if title in best]


def whole(results: dict[str, Comparison], figure: str) -> dict[str, Comparison]:
    """The programs that every allocator has a figure of: a mean is over the same ones for all."""
    return {title: made for title, made in results.items()
            if all(tables.of(made, figure, one.name) for one in made.subjects)}


def show_figure(results: dict[str, Comparison], figure: str, title: str, scale: float, digits: int) -> None:
    base, *others = names = means.names_of(results)
    tables.show([title, base, *(f"x {name}" for name in others)],
                synthetic.ratio_rows(results, figure, scale, digits))
    rows = best_rows(results, figure)
    if rows:
        print()
        tables.show([f"{title.split(',')[0]}, x best peer", "best peer", *names], rows)
    print()


def show_means(results: dict[str, Comparison], figure: str, title: str) -> None:
    shared = whole(results, figure)
    if shared:
        synthetic.show_means(shared, figure, f"{title}, {len(shared)} program{'s'[:len(shared) > 1]}")
    left = [name for name in results if name not in shared]
    if left:
        print(f"in no mean of {title}, since an allocator has no figure of it: {', '.join(left)}")
    print()


def show(results: dict[str, Comparison]) -> None:
    for figure, title, scale, digits in FIGURES:
        show_figure(results, figure, title, scale, digits)
    for figure, title, *_ in FIGURES:
        show_means(results, figure, title.split(",")[0])


def warning_lines(results: dict[str, Comparison]) -> list[str]:
    """Each once, with the programs it is said of. Of the machine, what was so before it measured."""
    said: dict[str, list[str]] = {}
    for number, (name, made) in enumerate(results.items()):
        of_machine = machine.warnings(made.machine) if number else []
        for text in export.all_warnings(made):
            if text not in of_machine:
                said.setdefault(text, []).append(name)
    return [f"{', '.join(names) if len(names) < len(results) else 'all'}: {text}" for text, names in said.items()]


# ---- measuring ----------------------------------------------------------------------------------

def measure(asked: question.Question, planned: Planned, side_by_side: bool) -> Case:
    """With the reason, if it cannot be."""
    made = Case(planned.name, planned.about, planned.group, planned.parameters)
    with tempfile.TemporaryDirectory(prefix="reheap-bench-") as place:
        folder = Path(place) / "case"
        folder.mkdir()
        try:
            program, own, made.packages = command.prepared(planned, folder)
            settings = vars(settings_of({"warmup": 1, "no_extras": True, **own}))
            server = settings["server"]
            alone = server or settings["prepare"]
            settings |= {"runs": asked.rounds, "sample_ms": 0, "side_by_side": side_by_side and not alone}
            made.comparison = asked.compare(planned.name, program, ServerWork if server else Work, **settings)
        except LabError as error:
            made.failed = str(error)
    return made


def collection(cases: list[Case]) -> Collection:
    """As `reheap suite` makes it, for a report."""
    first = next(case.comparison for case in cases if case.comparison)
    made = Collection("real programs", lab_version=first.lab_version, started=first.started, machine=first.machine,
                      settings={name: first.settings[name] for name in ("margin", "confidence")}, cases=cases)
    overall.judge(made)
    return made


def parse(arguments: list[str]) -> tuple[question.Question, list[str], Path | None]:
    """What is asked, of which programs, and the report's file if one is wanted."""
    parser = question.parser("programs", f"{__doc__}\n--quick: {', '.join(QUICK)}.\n", ROUNDS, QUICK_ROUNDS)
    endings = ", ".join(documents.WRITERS)
    parser.epilog = f"--export takes a file too, for one report of all: its ending says what to write ({endings})"
    parser.add_argument("--only", default="", metavar="PROGRAM,...", help="only these: " + ", ".join(known()))
    parser.add_argument("--side-by-side", action="store_true",
                        help="both of two allocators at once, each on its own processor; but servers, and programs "
                             "whose folder is prepared, one after the other")
    asked = question.ask(parser, arguments)
    given = asked.given
    if given.side_by_side and len(asked.allocators) != 2:
        raise LabError(f"--side-by-side compares two allocators, not {len(asked.allocators)}")
    report = asked.export if asked.export and asked.export.suffix in documents.WRITERS else None
    if report:
        export.check_path(report, documents.WRITERS)
        asked.export = None
    return asked, select(given.only, known(), "program", QUICK if given.quick else SET), report


def main(arguments: list[str]) -> int:
    asked, names, report = parse(arguments)
    if report and report.suffix == ".html":
        environment.install_reports_own()
    planned = known()
    cases = []
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name}: {planned[name].about}", flush=True)
        cases.append(measure(asked, planned[name], asked.given.side_by_side))
    print()
    results = {case.name: case.comparison for case in cases if case.comparison}
    failed = {case.name: case.failed for case in cases if case.failed}
    if not results:
        raise LabError("nothing could be measured:\n" + "\n".join(f"  {name}: {why}" for name, why in failed.items()))
    show(results)
    print("\n".join(warning_lines(results)))
    if report:
        telling.write(collection(cases), report)
    for name, reason in failed.items():
        tables.say(f"{name} was left out: {reason}")
    tables.say("Ratios to the system heap, taken round by round, after a warm-up; rounds: "
               f"{asked.rounds}, interleaved.")
    return asked.end()
