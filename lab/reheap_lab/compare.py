"""One comparison from beginning to end: prove, warm up, measure in rounds, look closer once, judge."""

import contextlib
import datetime
import os
import pathlib
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator

import reheap_lab
from reheap_lab import allocators, beside, elf, figures, host, interrupts, machine, profile, verdicts, windows
from reheap_lab.allocators import SYSTEM, Allocator, settings_of_allocators
from reheap_lab.errors import LabError, UsageError
from reheap_lab.evidence import Program, Proof, Testimony
from reheap_lab.results import Comparison, Extras, Run, Subject
from reheap_lab.rounds import Book, Precise, Quiet, Watch, run_rounds, stop_of
from reheap_lab.runner import Ask, measure
from reheap_lab.server import ServerWorkload
from reheap_lab.settings import Settings
from reheap_lab.workload import CommandWorkload, Extra, Outcome, find_program, shell, tail

UNCHECKED = "its output could not be checked"
STOPPED = "stopped by the user before it was finished"
OUTLIVED = ("processes outlive the command: what they use is in no figure, and they may disturb what is measured next. "
            "Let the command wait for them")

WorkloadType = Callable[[list[str], Settings, pathlib.Path], CommandWorkload]


class Comparer:
    """Holds together what the steps of one comparison share."""

    def __init__(self, workload: CommandWorkload, chosen: list[Allocator], watch: Watch | None = None,
                 other: CommandWorkload | None = None):
        self.workload = workload
        self.places = [workload, other]  # side by side, each has a folder of its own
        self.settings = workload.settings
        self.allocators = {allocator.name: allocator for allocator in chosen}
        self.watch = watch or Quiet()
        self.printed: dict[str, Counter[str]] = {name: Counter() for name in self.allocators}
        self.comparison = _blank(workload, chosen)
        figures.learn(self.comparison.settings.get("own", []))
        self.book = Book(list(self.allocators), stop_of(self.settings))
        self.proofs: dict[str, Proof] = {}
        self.stopped = False

    def compare(self) -> Comparison:
        with self._stoppable():
            shell(self.settings.setup, "--setup", cwd=self.settings.cwd, env=self.settings.env)
            run_rounds(self.book, self._run, self._warmups(), self.settings.seed, self.watch,
                       self._run_beside if self.settings.side_by_side else None)
        self.comparison.runs = self.book.runs
        for subject in self.comparison.subjects:
            subject.failed = self.book.given_up.get(subject.name)
        self._compare_outputs()
        if self.settings.extras and not self.stopped:
            with self._stoppable():
                self._look_closer()
        self._tell_bypassed()
        self._tell_imprecise()
        verdicts.judge(self.comparison)
        return self.comparison

    def _tell_bypassed(self) -> None:
        """What a comparison of allocators cannot show, since the program takes it from elsewhere. Told once: it is much
        the same under each. A replay's own tables are known."""
        if self.comparison.kind == "replay":
            return
        found = (proof.beside(self.allocators[name].is_part) for name, proof in self.proofs.items()
                 if self.allocators[name].traced)
        much = next((beside for beside in found if beside and beside.is_much()), None)
        if much:
            self.comparison.warnings.append(much.sentence())
        rarely = verdicts.hardly_allocates(self.comparison)
        if rarely:
            self.comparison.warnings.append(rarely)

    def _tell_imprecise(self) -> None:
        missed = self.book.stop.imprecise(self.book) if isinstance(self.book.stop, Precise) else []
        if missed and not self.stopped:
            named = ", ".join(f"{figures.ALL[one.figure].label} of {one.subject}" for one in missed)
            rounds = figures.plural(self.book.rounds, "round")
            self.comparison.warnings.append(f"not precise after {rounds}, where it gives up: {named}. "
                                            "--time 1h, or --side-by-side with two allocators, may decide it")

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Ctrl-C ends a step; what was measured so far is worth telling, once there is a whole round."""
        try:
            with interrupts.open_to_them():
                yield
        except KeyboardInterrupt:
            if self.book.rounds == 0:
                raise
            self.stopped = True
            self.comparison.warnings.append(STOPPED)

    def _warmups(self) -> int:
        """The first run proves who serves the command. That costs time and memory, so it cannot count."""
        return max(self.settings.warmups, int(any(not one.proves_each_run for one in self.allocators.values())))

    # ---- one run ----

    def _run(self, name: str, round_number: int, place: int, warmup: bool) -> Run:
        proven = self._subject(name).proof or self.allocators[name].proves_each_run
        return self._told(Run(name, round_number, place, warmup), self.workload.run if proven else self._proving)

    def _proving(self, allocator: Allocator) -> Outcome:
        """Accounts for the processes where the system allows it. Some programs do not work while they are followed:
        they are proven without."""
        if allocator.traced:
            with contextlib.suppress(LabError):
                outcome = self.workload.run(allocator, Extra(prove=True, account=True))
                if outcome.measured.timed_out or outcome.measured.failure(None) is None:
                    return outcome
        return self.workload.run(allocator, Extra(prove=True))

    def _run_beside(self, pair: list[str], round_number: int) -> list[Run]:
        def half(name: str, place: int) -> Run:
            return self._told(Run(name, round_number, pair.index(name)), self.places[place].run_beside)
        return beside.exchanged(pair, half, self.workload.prepare)

    def _told(self, run: Run, made: Callable[[Allocator], Outcome]) -> Run:
        name = run.subject
        try:
            outcome = made(self.allocators[name])
        except (LabError, OSError) as error:  # the folder for it is gone, or its disk full: that costs no other run
            run.failed = told_of(error)
            return run
        run.figures, run.series = outcome.measured.figures, outcome.measured.series
        run.failed = outcome.failed or self._unproven(name, outcome.proof)
        subject = self._subject(name)
        if subject.memory_of_others:
            run.figures = {figure: value for figure, value in run.figures.items() if not figures.is_memory(figure)}
        if outcome.measured.left and self.allocators[name].traced:  # Wine leaves its own behind
            self._warn(subject, OUTLIVED)
        if run.failed is None and outcome.printed is not None:
            self.printed[name][outcome.printed] += 1
        return run

    def _unproven(self, name: str, proof: Proof | None) -> str | None:
        if proof is None:
            return None
        allocator, subject = self.allocators[name], self._subject(name)
        reach = proof.reach(allocator.objection)
        if refusal := reach.refusal():
            return refusal
        subject.proof, subject.share = proof.served_most(allocator.objection), reach.share
        subject.memory_of_others = reach.largest_missed is not None
        self.proofs[name] = proof
        for warning in allocator.warnings(proof):
            self._warn(subject, warning)
        return None

    @staticmethod
    def _warn(subject: Subject, warning: str) -> None:
        if warning not in subject.warnings:
            subject.warnings.append(warning)

    def _subject(self, name: str) -> Subject:
        return next(subject for subject in self.comparison.subjects if subject.name == name)

    # ---- after the rounds ----

    def _compare_outputs(self) -> None:
        """Output that changes from run to run under one allocator says nothing; else it must be the same under all."""
        steady = {name: next(iter(seen)) for name, seen in self.printed.items() if len(seen) == 1}
        restless = [name for name, seen in self.printed.items() if len(seen) > 1]
        plain = (name for name in steady if not self.allocators[name].libraries)  # what it prints by itself is right
        base = next(plain, next(iter(steady), None))
        if restless:
            if self.settings.output == "check":
                self.comparison.warnings.append("the command prints something else each time it runs (under "
                                                f"{', '.join(restless)}): {UNCHECKED}")
            return
        for name, printed in steady.items():
            if printed != steady[base]:
                self._differs(name, base)

    def _differs(self, name: str, base: str) -> None:
        subject, reason = self._subject(name), f"the command prints something else than under {base}"
        if self.settings.output == "check":
            subject.failed = subject.failed or reason
        else:
            subject.warnings.append(reason)

    def _look_closer(self) -> None:
        """One run for the profile and one for the calls, which disturb: no timed figure comes from them."""
        self.book.timing = False
        for subject in self.comparison.subjects:
            if subject.failed is None and self.comparison.measured(subject.name):
                extras = self._extras(subject)
                if extras.calls is not None or extras.profile is not None:
                    self.comparison.extras[subject.name] = extras

    def _extras(self, subject: Subject) -> Extras:
        self.watch.running(subject.name, self.book)
        allocator, extras = self.allocators[subject.name], Extras()
        try:
            sampled = self.workload.run(allocator, Extra(profile_hz=self._profile_hz(subject.name)))
            if sampled.measured.profile:
                extras.profile = profile.read(sampled.measured.profile, allocator.parts())
            if allocator.traced:
                counted = self.workload.run(allocator, Extra(count_calls=True)).measured
                extras.calls = counted.calls
                self._check_again(subject, counted.programs)
        except (LabError, OSError) as error:
            subject.warnings.append(f"no profile or no count of calls: {told_of(error)}")
        return extras

    def _check_again(self, subject: Subject, programs: list[Program] | None) -> None:
        """What ran first may not be what ran when it was measured."""
        allocator = self.allocators[subject.name]
        other = self.proofs[subject.name].unseen(programs or [], allocator.objection)
        if other:
            self._warn(subject, f"what ran after the measured rounds is not what was proven before them: {other}")

    def _profile_hz(self, name: str) -> int:
        """Some 2000 samples, as far as a sane frequency gives them."""
        walls = [run.figures["wall_s"] for run in self.comparison.measured(name) if "wall_s" in run.figures]
        return int(min(4999, max(199, 2000 / (min(walls, default=1) or 1))))


def told_of(error: LabError | OSError) -> str:
    return f"{error.filename or 'a file'}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _blank(workload: CommandWorkload, chosen: list[Allocator]) -> Comparison:
    facts = machine.describe()
    return Comparison(
        command=workload.command, lab_version=reheap_lab.__version__, cwd=os.getcwd(), kind=workload.kind,
        environment=settings_of_allocators(os.environ),
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        settings=workload.settings.as_data(), machine=facts, warnings=machine.warnings(facts),
        subjects=[Subject(a.name, a.version, list(map(str, a.libraries)), dict(a.variables)) for a in chosen])


# ---- before the rounds --------------------------------------------------------------------------

def command_kind(command: list[str]) -> elf.Kind | None:
    """What libraries it can load; for a script, those its interpreter can, which is this machine's."""
    program = find_program(command)
    elf.check_program(program)
    with contextlib.suppress(PermissionError):  # it may be executed, but not read
        return elf.kind(program) or elf.own()
    return elf.own()


def choose(command: list[str], wanted: str | None, settings: Settings) -> list[Allocator]:
    """The allocators that `wanted` names, or all that are here, for this kind of program."""
    if windows.is_program(command[0]):
        if settings.server:
            raise UsageError("a server for Windows cannot be measured: nothing stops a program gently there. Leave out "
                             "--load")
        return windows.choose(wanted, command)
    kind = command_kind(command)
    if host.WINDOWS:
        raise UsageError(f"{command[0]} is no program for Windows: name an .exe, with cmd.exe /c before a script")
    return allocators.choose(wanted, kind)


def check_allocators(chosen: list[Allocator], folder: pathlib.Path) -> None:
    """Starts a small program under each: a library that does not serve malloc is found before any time is spent."""
    probe = shutil.which("true")
    for allocator in [one for one in chosen if not one.examined] if probe else []:
        evidence = folder / "probe-evidence"
        evidence.unlink(missing_ok=True)
        said = folder / "probe-stderr"
        measured = measure(allocator.launch([probe], evidence), Ask(stderr=str(said), stdout=os.devnull, sample_ms=0,
                                                                    timeout=30), folder / "probe-record")
        objection = measured.failure(30) or allocator.objection(Proof(Testimony.read(evidence)).first())
        if objection:
            text = tail(said)
            if not allocator.libraries:
                raise LabError(f"what the lab preloads tells nothing of {probe}: {objection}. Is {folder} on a full "
                               "disk?" + (f" The loader said: {text}." if text else ""))
            raise UsageError(f"{allocator.name}: {allocator.libraries[0]} "
                             f"does not serve a program's malloc: under it, of {probe}: {objection}."
                             + (f" The loader said: {text}." if text else "")
                             + " Give a library that exports malloc and whose own libraries can be found")


def check_pair(chosen: list[Allocator]) -> None:
    beside.processors()
    if len(chosen) != 2:
        names = ", ".join(allocator.name for allocator in chosen)
        raise UsageError(f"--side-by-side compares two allocators, not {len(chosen)} ({names}); name them: --with "
                         f"system,reheap")


def compare(command: list[str], chosen: list[Allocator], settings: Settings, watch: Watch | None = None,
            workload: WorkloadType | None = None) -> Comparison:
    """Raises UsageError before anything ran, LabError when nothing could be measured."""
    find_program(command)
    if settings.side_by_side:
        check_pair(chosen)
    kind = workload or (ServerWorkload if settings.server else CommandWorkload)
    with interrupts.held(), tempfile.TemporaryDirectory(prefix="reheap-lab-") as folder:
        place = pathlib.Path(folder)
        with interrupts.open_to_them():
            check_allocators(chosen, place)
        (place / "beside").mkdir()
        other = kind(command, settings, place / "beside") if settings.side_by_side else None
        comparison = Comparer(kind(command, settings, place), chosen, watch, other).compare()
    comparison.reproduce = reproduction(comparison)
    if verdicts.base_of(comparison) is None:
        reasons = "\n".join(f"  {s.name}: {s.failed}" for s in comparison.subjects if s.failed)
        raise LabError(f"nothing could be measured of {shlex.join(command)}:\n{reasons}")
    return comparison


def reproduction(comparison: Comparison) -> str:
    """One line for a shell that asks for the same again."""
    settings = comparison.settings
    words = _valued(settings, "setup", "prepare", "input") + ["--output", settings["output"]]
    words += ["--ignore-status"] * settings["ignore_status"] + ["--side-by-side"] * settings["side_by_side"]
    for own in settings.get("own", []):
        option = "--more-is-better" if own["more_is_better"] else "--less-is-better"
        words += [option, f"{own['name']}={own['pattern']}"]
    words += _valued(settings.get("server") or {}, "load", "ready", "idle", "stop")
    return repeating(comparison, "compare", [*words, "--", *comparison.command])


def repeating(comparison: Comparison, verb: str, rest: list[str]) -> str:
    """The line of any command that measures: in its place, with what allocators were told, and how it was measured."""
    settings = comparison.settings
    words = ["reheap", verb, "--with", ",".join(map(_spelt, comparison.subjects))]
    words += _valued(settings, "seed", "runs", "time", "timeout", "margin", "confidence")
    words += ["--warmup", str(settings["warmups"]), *_valued(settings, "sample_ms")]
    words += ["--no-extras"] * (not settings["extras"])
    place = f"cd {shlex.quote(comparison.cwd)} && " if comparison.cwd else ""
    given = [f"{name}={value}" for name, value in comparison.environment.items()]
    return place + shlex.join([*(["env"] if given else []), *given, *words, *rest])


def _valued(settings: dict, *names: str) -> list[str]:
    """Those options that were given a value."""
    found = []
    for name in names:
        if (value := settings.get(name)) is not None:
            found += [f"--{name.replace('_', '-')}", f"{value:.12g}" if isinstance(value, float) else str(value)]
    return found


def _spelt(subject: Subject) -> str:
    """As --with takes it, whatever is found on the machine where it is repeated."""
    place = subject.libraries[0] if subject.libraries else SYSTEM
    word = subject.name if subject.name == place else f"{subject.name}={place}"
    return ",".join([word, *(f"{name}={value}" for name, value in subject.variables.items())])
