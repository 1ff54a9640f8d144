"""Many comparisons as one: each allocator's ratios to a base and to the best peer, and the means over them."""

import statistics
from dataclasses import dataclass

from reheap_lab import statistics as lab
from reheap_lab import verdicts
from reheap_lab.results import Comparison
from reheap_lab.statistics import Interval

from .subjects import NO_PEERS

Ratios = dict[str, float | None]  # by the comparison's title


@dataclass(frozen=True)
class Means:
    """Of one allocator, the geometric means of its ratios to the base and to the best peer of each workload."""

    name: str
    to_base: float | None
    to_best: float | None
    far: dict[str, float]  # the workloads in which it takes much more than the best peer, and how much more


def names_of(results: dict[str, Comparison]) -> list[str]:
    return [one.name for one in next(iter(results.values())).subjects]


def ratio(made: Comparison, figure: str, name: str, base: str) -> float | None:
    """Taken round by round; of fewer rounds than that takes, of the medians. None if either was not measured."""
    if name == base:
        return 1.0 if _median(made, figure, name) else None
    paired = verdicts.ratio(made, figure, name, base)
    if paired:
        return paired.middle
    return _quotient(_median(made, figure, name), _median(made, figure, base))


def ratio_of_medians(made: Comparison, other: Comparison, figure: str, name: str) -> float | None:
    """Of one allocator in two comparisons, which have no rounds in common."""
    return _quotient(_median(made, figure, name), _median(other, figure, name))


def _quotient(top: float | None, bottom: float | None) -> float | None:
    return top / bottom if top and bottom else None


def _median(made: Comparison, figure: str, name: str) -> float | None:
    found = made.summaries.get(figure, {}).get(name)
    return found and found.median


def geometric(ratios: Ratios) -> float | None:
    """None if one of them is missing: a mean over fewer workloads answers another question."""
    if not ratios or None in ratios.values():
        return None
    return statistics.geometric_mean(ratios.values())


def interval(results: dict[str, Comparison], figure: str, name: str, base: str) -> Interval | None:
    """Of the geometric mean of its ratios to the base, as the lab has it for its suites."""
    logs = [verdicts.logs_of(made, figure, name, base) for made in results.values()]
    if not logs or None in logs:
        return None
    return lab.exponential(lab.mean_of(logs, next(iter(results.values())).settings["confidence"]))


def best_peers(results: dict[str, Comparison], figure: str) -> dict[str, str]:
    """Of each workload that a peer was measured in, the peer that took least."""
    best = {}
    for title, made in results.items():
        taken = {one.name: _median(made, figure, one.name) for one in made.subjects if one.name not in NO_PEERS}
        measured = {name: value for name, value in taken.items() if value}
        if measured:
            best[title] = min(measured, key=measured.get)
    return best


def to_best_peer(results: dict[str, Comparison], figure: str, name: str) -> Ratios:
    """For a peer, among the others and itself: at least 1."""
    best = best_peers(results, figure)
    return {title: ratio(made, figure, name, best[title]) if title in best else None
            for title, made in results.items()}


def means(results: dict[str, Comparison], figure: str, most: float) -> list[Means]:
    """Of all allocators; `far` are those above `most` of the workload's best peer."""
    base, found = names_of(results)[0], []
    for name in names_of(results):
        to_base = {title: ratio(made, figure, name, base) for title, made in results.items()}
        to_best = to_best_peer(results, figure, name)
        far = {title: value for title, value in to_best.items() if value is not None and value > most}
        found.append(Means(name, geometric(to_base), geometric(to_best), far))
    return found


def best_mean(found: list[Means]) -> Means | None:
    """The peer with the least mean against the base."""
    peers = [one for one in found if one.name not in NO_PEERS and one.to_base is not None]
    return min(peers, key=lambda one: one.to_base, default=None)


def against(one: Means, best: Means | None) -> float | None:
    """Its mean against the best peer's mean."""
    return one.to_base / best.to_base if best and one.to_base is not None else None
