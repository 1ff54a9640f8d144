"""Collections made up for tests: cases whose truth is known, judged as real ones are."""

import numpy as np
from comparisons import PACE

from reheap_lab import synthetic, verdicts
from reheap_lab.results import Case, Collection, Comparison, Run, Series, Subject
from reheap_lab.suite import overall
from reheap_lab.synthetic import MEMORY, QUIET, Noise

PROGRAMS = ("clang", "lld", "z3", "cpython", "ruby", "sqlite", "redis", "git")


def compared(command: list[str], times: dict[str, float], memory: dict[str, float], rounds: int,
             random: np.random.Generator, noise: Noise = QUIET, typical: float = 1.0) -> Comparison:
    """Of each allocator its true time and memory, as multiples of what is typical."""
    names = list(times)
    made = Comparison(command, settings={"margin": 0.01, "confidence": 0.99, "seed": 0, "runs": rounds},
                      machine={"cpu": "Example CPU", "cores": 8}, reproduce="reheap suite --only one",
                      started="2026-03-01T12:00:00+00:00", subjects=[Subject(name) for name in names])
    walls = typical * synthetic.factors(noise, len(names), rounds, random) * list(times.values())
    peaks = 50_000 * typical * synthetic.factors(MEMORY, len(names), rounds, random) * list(memory.values())
    for number in range(rounds):
        for place, name in enumerate(names):
            wall, peak = float(walls[number, place]), float(peaks[number, place])
            t = np.linspace(0.01, wall, 12)
            made.runs.append(Run(name, number, place, figures={"wall_s": wall, "cpu_s": wall, "peak_rss_kib": peak},
                                 series=Series(t.tolist(), (peak * np.minimum(1, 2 * t / wall)).tolist())))
    verdicts.judge(made)
    return made


def collection(cases: list[Case], title: str = "made up", **settings) -> Collection:
    made = Collection(title, cases=cases, settings={"margin": 0.01, "confidence": 0.99} | settings,
                      machine={"cpu": "Example CPU", "cores": 8}, started="2026-03-01T12:00:00+00:00",
                      reproduce="reheap suite made-up.toml")
    overall.judge(made)
    return made


def programs(names=("system", "reheap", "mimalloc"), programs=PROGRAMS, rounds: int = 10, seed: int = 1,
             noise: Noise = QUIET) -> Collection:
    """Each program likes the allocators a little more or less than the next."""
    random = np.random.default_rng(seed)
    cases = []
    for program in programs:
        times, memory = ({n: PACE.get(n, (1, 1))[which] * (1 if n == "system" else float(random.lognormal(0, 0.05)))
                          for n in names} for which in (0, 1))
        typical = float(random.lognormal(0, 0.7))
        made = compared([program, "input"], times, memory, rounds, random, noise, typical)
        cases.append(Case(program, f"what {program} does", program, comparison=made))
    return collection(cases)


def sweep(names=("system", "reheap"), values=("1", "2", "4", "8"), parameter: str = "threads", rounds: int = 8,
          seed: int = 2) -> Collection:
    random = np.random.default_rng(seed)
    cases = []
    for step, value in enumerate(values):
        times = {name: 1.0 if name == "system" else 0.97 - 0.04 * step for name in names}
        made = compared(["prog", value], times, {name: 1 + 0.02 * step for name in names}, rounds, random,
                        typical=2.0 / (step + 1))
        cases.append(Case(f"{parameter}={value}", group="", parameters={parameter: value}, comparison=made))
    return collection(cases, "prog {" + parameter + "}")
