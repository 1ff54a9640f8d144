"""How allocators scale to more cores than this machine has. Cores with private caches are simulated, and the cache
lines counted that would move between them; the machine's load does not matter (bench/coherence/README.md).
"""

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common import tables
from common.errors import ERRORS
from common.names import select
from common.numbers import positive
from common.subjects import REHEAP
from fast_path import by_callgrind
from reheap_lab import allocators
from reheap_lab.errors import LabError

from . import build, measure, model, places

OPERATIONS = 4000
MOST_LINES = 12

# For counting instructions: the difference of two runs on one core (pairs have two), of so many operations each. Where
# as many come before the counting, they are the same ones.
FEW, MANY = 500, 2500
CORES_ALONE = {"pairs": 2}
ROUNDS = {"pairs": 1, "larson": 1}
DEFAULT_ROUNDS = 2


@dataclass
class Subject:
    name: str
    version: str
    program: Path
    counted: dict[str, measure.Counted] = field(default_factory=dict)


def instructions(workload: str) -> float:
    """Of an operation on reheap as it is released, and of the little that the workload does around it."""
    allocator = allocators.choose(REHEAP, folders=[])[0]
    cores = str(CORES_ALONE.get(workload, 1))
    few, many = (by_callgrind(allocator, [str(build.PLAIN), "plain", workload, cores, str(count), str(measure.SEED)])
                 for count in (FEW, MANY))
    operations = (MANY - FEW) * int(cores) * ROUNDS.get(workload, DEFAULT_ROUNDS)
    if workload == "pairs":
        operations //= 2  # one of two cores makes blocks, the other frees them
    return (many - few) / operations


def subjects(names: list[str], missing: dict[str, str]) -> list[Subject]:
    """reheap, and the peers that can be built; the others are noted with the reason."""
    found = [Subject(REHEAP, "", build.reheap())]
    for name in names:
        try:
            program, version = build.peer(name)
            found.append(Subject(name, version, program))
        except ERRORS as error:
            missing[name] = str(error)
    return found


def run_all(found: list[Subject], options: argparse.Namespace, workloads: list[str], missing: dict[str, str]) -> None:
    for subject in found:
        for workload in workloads:
            try:
                subject.counted[workload] = measure.run(subject.program, workload, options.threads, options.operations)
            except measure.Failed as error:
                missing[f"{subject.name} in {workload}"] = str(error)


def row(workload: str, subject: Subject) -> list[str]:
    counted = subject.counted.get(workload)
    if counted is None:
        return [workload, subject.name, *[tables.ABSENT] * 5]
    of_locks = [counted.an_operation(name) if counted.names_locks else None for name in ("holds", "hold_misses")]
    share = counted.share_of_others()
    return [workload, subject.name, tables.number(counted.an_operation("misses"), 3),
            tables.number(counted.an_operation("read_modify_writes"), 3), tables.number(of_locks[0], 4),
            tables.number(of_locks[1], 3), tables.number(share and 100 * share, 1)]


def show_counts(found: list[Subject], workloads: list[str], cores: int) -> None:
    print(f"Counted, an operation, on {cores} simulated cores:\n")
    tables.show(["workload", "allocator", "misses", "atomic rmw", "holds of shared locks", "misses in them",
                 "pages of other threads, %"],
                [row(workload, subject) for workload in workloads for subject in found])
    for subject in found:
        if subject.version:
            print(f"{subject.name} is {subject.version}")


def show_lines(subject: Subject) -> None:
    for workload, counted in subject.counted.items():
        print(f"\n{subject.name}, {workload}: the lines of source that missed most\n")
        tables.show(["line", "misses an operation", "of these in shared locks, %"],
                    [[name, tables.number(misses, 4), tables.number(100 * held, 0)]
                     for name, misses, held in places.worst(subject.program, counted, MOST_LINES)])


def predict(reheap: Subject, missing: dict[str, str]) -> dict[str, dict]:
    """For each workload what goes into the model, and what comes out: [cost of a miss][number of cores]."""
    loads = {}
    for workload, counted in reheap.counted.items():
        try:
            loads[workload] = model.load_of(counted.totals, instructions(workload))
        except ERRORS as error:
            missing[f"the model of {workload}"] = str(error)
    if not loads:
        return {}
    cores = model.useful_cores(list(loads.values()))
    return {workload: {"load": asdict(load), "useful_cores": cores[i].tolist()}
            for i, (workload, load) in enumerate(loads.items())}


def show_predicted(predicted: dict[str, dict]) -> None:
    low, high = model.MISS_NS[0], model.MISS_NS[-1]
    print(f"\nA MODEL, not a measurement: cores that reheap keeps busy, if a miss takes {low:g} to {high:g} ns\n")
    rows = []
    for workload, made in predicted.items():
        load = made["load"]
        ranges = [f"{min(of_cores):.1f} .. {max(of_cores):.1f}" for of_cores in zip(*made["useful_cores"])]
        rows.append([workload, tables.number(load["instructions"], 0), tables.number(load["hold_misses"], 1), *ranges])
    tables.show(["workload", "instructions", "misses in turn a hold", *(f"of {count}" for count in model.CORES)], rows)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench coherence", description=__doc__)
    parser.add_argument("--with", dest="names", default="", metavar="NAME,...",
                        help="peers beside reheap, built from their sources: " + ", ".join(build.RECIPES))
    parser.add_argument("--only", default="", metavar="WORKLOAD,...",
                        help="only these: " + ", ".join(measure.WORKLOADS))
    parser.add_argument("--threads", type=positive, default=measure.CORES,
                        help="simulated cores, at most 62 (default 60)")
    parser.add_argument("--operations", type=positive, default=OPERATIONS, help=f"of each core (default {OPERATIONS})")
    parser.add_argument("--lines", action="store_true", help="also the lines of source that missed most")
    parser.add_argument("--without-model", action="store_true", help="leave the model out: it runs valgrind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was counted")
    return parser.parse_args(arguments)


def write(path: Path, options: argparse.Namespace, found: list[Subject], predicted: dict, missing: dict) -> None:
    path.write_text(json.dumps({
        "cores": options.threads,
        "operations": options.operations,
        "counted": {subject.name: {"version": subject.version,
                                   **{name: counted.totals for name, counted in subject.counted.items()}}
                    for subject in found},
        "model": {"cores": model.CORES, "miss_ns": model.MISS_NS, "workloads": predicted},
        "missing": missing,
    }, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    workloads = select(options.only, measure.WORKLOADS, "workload")
    names = select(options.names, build.RECIPES, "peer") if options.names else []
    missing: dict[str, str] = {}
    found = subjects(names, missing)
    run_all(found, options, workloads, missing)
    show_counts(found, workloads, options.threads)
    if options.lines:
        for subject in found:
            show_lines(subject)
    predicted = {} if options.without_model else predict(found[0], missing)
    if predicted:
        show_predicted(predicted)
    if options.json:
        write(options.json, options, found, predicted, missing)
    for name, reason in missing.items():
        print(f"{name} was not measured: {reason}")
    return 1 if any(name.startswith(REHEAP) for name in missing) else 0
