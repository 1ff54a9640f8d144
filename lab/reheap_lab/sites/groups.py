"""Sums stacks up: by site, by function and by module."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from reheap_lab.sites.functions import base
from reheap_lab.sites.kinds import FIGURES, Kind
from reheap_lab.sites.profile import Profile


@dataclass
class Group:
    """Stacks that have `key` in common. The figures are sums, and estimates where the profile is one."""

    key: Hashable
    stacks: list[int]  # their numbers
    sampled: float
    figures: dict[str, float]
    errors: dict[str, float]  # relative standard errors

    def share(self, profile: Profile, figure: str) -> float:
        """Of all stacks' sum: where both are estimates, their errors are partly the same."""
        whole = profile.values[:, FIGURES.index(figure)].sum()
        return self.figures[figure] / whole if whole else 0.0


def by_site(profile: Profile) -> list[Group]:
    return _sum_up(profile, lambda stack: [stack.at])


def by_module(profile: Profile) -> list[Group]:
    return _sum_up(profile, lambda stack: [base(stack.at.module) or "no file"])


def by_function(profile: Profile) -> list[Group]:
    """What a function allocates, or what it calls does: each stack counts for every function in it."""
    return _sum_up(profile, lambda stack: {(place.function, place.module) for place in stack.places})


def _sum_up(profile: Profile, keys_of: Callable[..., Iterable[Hashable]]) -> list[Group]:
    members: dict[Hashable, list[int]] = {}
    for number, stack in enumerate(profile.stacks):
        for key in keys_of(stack):
            members.setdefault(key, []).append(number)
    return [_group(profile, key, numbers) for key, numbers in members.items()]


def _group(profile: Profile, key: Hashable, numbers: list[int]) -> Group:
    sums, deviations = profile.values[numbers].sum(axis=0), np.sqrt(profile.variances[numbers].sum(axis=0))
    errors = np.divide(deviations, sums, out=np.zeros_like(sums), where=sums > 0)
    return Group(key, numbers, float(profile.sampled[numbers].sum()), dict(zip(FIGURES, sums.tolist())),
                 dict(zip(FIGURES, errors.tolist())))


def leading(groups: list[Group], kind: Kind, most: int) -> list[Group]:
    """The largest, without those that have none of it."""
    there = [group for group in groups if group.figures[kind.figure] > 0]
    return sorted(there, key=lambda group: -group.figures[kind.figure])[:most]


def largest_stack(profile: Profile, group: Group, kind: Kind) -> int:
    return max(group.stacks, key=lambda number: profile.values[number, kind.place])
