"""Comparisons made up for tests: everything a real one may hold, from a fixed seed."""

import numpy as np

from reheap_lab import figures
from reheap_lab.results import Comparison, Extras, Module, Profile, Run, Series, Subject, Summary, Verdict

PACE = {"system": (1.0, 1.0), "reheap": (0.93, 0.88), "mimalloc": (0.945, 1.17), "jemalloc": (0.99, 1.04),
        "tcmalloc": (1.002, 1.32), "snmalloc": (0.94, 1.09), "rpmalloc": (0.95, 1.41), "scudo": (1.19, 1.12)}


def made_up(names=tuple(PACE), runs=15, kind="command", seed=5, points=90) -> Comparison:
    random = np.random.default_rng(seed)
    made = Comparison(command=["ld.lld", "-flto=thin", "@link.rsp", "-o", "out file"], kind=kind, lab_version="0.1.0",
                      started="2026-03-01T12:00:00Z", cwd="/home/someone/llvm",
                      settings={"with": list(names), "runs": runs, "warmups": 1, "seed": 17, "margin": 0.01,
                                "confidence": 0.95, "sample_ms": 10, "timeout": None},
                      machine={"system": "Linux", "cpu": "Example CPU 9000 @ 3.2 GHz", "cores": 8,
                               "memory_kib": 33554432, "kernel": "6.1.0", "libc": "glibc 2.36",
                               "governor": "performance"},
                      reproduce="reheap compare --with " + ",".join(names) + " -- ld.lld -flto=thin @link.rsp",
                      subjects=[_subject(n) for n in names])
    for round_number in range(-1, runs):
        for place, name in enumerate(random.permutation(list(names))):
            made.runs.append(_run(random, str(name), max(round_number, 0), place, round_number < 0, points))
    _summarise(made, names)
    for name in names:
        pace, size = PACE.get(name, (1.0, 1.0))
        share = 0.09 * pace ** 4
        shares = {"allocator": share, "libc": 0.06, "kernel": 0.12 * size, "program": 0.94 - 0.12 * size - share}
        modules = [Module("/usr/bin/ld.lld", shares["program"], "program"),
                   Module("[kernel]", shares["kernel"], "kernel"),
                   Module(f"/usr/lib/lib{name}.so", share, "allocator")]
        made.extras[name] = Extras({"mmap": int(4200 * size), "munmap": int(1700 / pace), "madvise": int(900 * size),
                                    "brk": 812 if name == "system" else 0},
                                   Profile("perf_event", 999.0, 81234, 3, shares, modules))
    return made


def _subject(name) -> Subject:
    library = f"/usr/lib/lib{name}.so"
    proof = {function: library for function in ("malloc", "free", "calloc", "realloc")}
    return Subject(name, "1.0", [] if name == "system" else [library], proof)


def _run(random, name, round_number, place, warmup, points) -> Run:
    pace, size = PACE.get(name, (1.0, 1.0))
    outlier = not warmup and random.random() < 0.03
    wall = 12.4 * pace * (1 + random.normal(0, 0.006) + 0.0006 * round_number) * (1.14 if outlier or warmup else 1)
    time = np.linspace(0.01, wall, points)
    shape = np.clip(time / wall * 1.6, 0, 1) ** 0.7 * (1 - 0.35 * np.clip((time / wall - 0.85) / 0.15, 0, 1))
    rss = 1.9 * 1024 ** 2 * size * shape * (1 + random.normal(0, 0.004, points))
    busy = np.where(time / wall < 0.25, 1.0, 7.4) * (1 - random.random(points) * 0.12) * (1 - 0.7 * (time / wall > 0.9))
    cpu = float(np.trapezoid(busy, time))
    values = {"wall_s": wall, "cpu_s": cpu, "user_s": cpu * 0.88, "system_s": cpu * 0.12, "utilisation": cpu / wall,
              "peak_rss_kib": float(rss.max()), "mean_rss_kib": float(rss.mean()),
              "minor_faults": float(int(480000 * size * (1 + random.normal(0, 0.01)))), "major_faults": 0.0,
              "voluntary_switches": float(random.integers(9000, 12000)),
              "involuntary_switches": float(random.integers(400, 900))}
    return Run(name, round_number, place, warmup, values,
               Series([float(t) for t in time], [float(v) for v in rss], [float(b) for b in busy]), outlier)


def _summarise(made: Comparison, names) -> None:
    base = names[0]
    for figure in figures.ALL:
        values = {n: np.array([r.figures[figure] for r in made.measured(n) if figure in r.figures]) for n in names}
        values = {n: v for n, v in values.items() if len(v)}
        if not values:
            continue
        half = {n: 2 * v.std() / np.sqrt(len(v)) for n, v in values.items()}
        made.summaries[figure] = {n: Summary(float(np.median(v)), float(np.median(v) - half[n]),
                                             float(np.median(v) + half[n]), len(v)) for n, v in values.items()}
        if not figures.ALL[figure].judged:
            continue
        for name in names[1:]:
            ratio = np.exp(np.log(values[name] / values[base]))
            middle, reach = float(np.median(ratio)), float(2 * ratio.std() / np.sqrt(len(ratio)))
            made.verdicts.append(_verdict(figure, name, base, middle, middle - reach, middle + reach))


def _verdict(figure, name, base, middle, low, high) -> Verdict:
    known = figures.ALL[figure]
    if low > 0.99 and high < 1.01:
        word = figures.SAME
    elif high < 1 or low > 1:
        word = known.less if high < 1 else known.more
    else:
        word = figures.UNDECIDED
    text = f"{name}, {known.label}: {word} than {base} by {abs(middle - 1):.1%} ({low - 1:+.1%} to {high - 1:+.1%})."
    return Verdict(figure, name, base, middle, low, high, word, text, 24 if word == figures.UNDECIDED else None)
