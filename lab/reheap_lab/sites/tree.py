"""The stacks as one tree, callers above what they call: as much of it as a page can hold."""

import heapq
from dataclasses import dataclass, field

import numpy as np

from reheap_lab.sites.profile import Profile
from reheap_lab.sites.symbols import Place


@dataclass
class Node:
    place: Place | None  # None for the root, and for small ones together
    parent: int  # its number, -1 for the root
    weights: np.ndarray  # by kind
    folded: int = 0  # how many small ones


@dataclass(order=True)
class _Candidate:
    share: float  # negative: the largest comes first
    number: int
    stacks: list[int] = field(compare=False)
    place: Place | None = field(compare=False)
    parent: int = field(compare=False)
    depth: int = field(compare=False)


def grow(profile: Profile, most: int) -> list[Node]:
    """Parents before children. Where there are more nodes than `most`, the smaller ones (by the kind in which each is
    largest) are put together, per parent."""
    weights = profile.values[:, [kind.place for kind in profile.kinds.values()]]
    wholes = np.maximum(weights.sum(axis=0), 1)
    nodes: list[Node] = []
    waiting = [_Candidate(-1.0, 0, list(range(len(profile.stacks))), None, -1, 0)]
    made = 1
    while waiting and len(nodes) < most:
        taken = heapq.heappop(waiting)
        nodes.append(Node(taken.place, taken.parent, weights[taken.stacks].sum(axis=0)))
        for place, inside in _called(profile, taken).items():
            share = (weights[inside].sum(axis=0) / wholes).max()
            heapq.heappush(waiting, _Candidate(-share, made, inside, place, len(nodes) - 1, taken.depth + 1))
            made += 1
    return nodes + _fold(waiting, weights)


def _called(profile: Profile, node: _Candidate) -> dict[Place, list[int]]:
    found: dict[tuple[str, str], tuple[Place, list[int]]] = {}
    for stack in node.stacks:
        places = profile.stacks[stack].places
        if node.depth < len(places):
            place = places[-1 - node.depth]
            found.setdefault((place.function, place.module), (place, []))[1].append(stack)
    return dict(found.values())


def _fold(left: list[_Candidate], weights: np.ndarray) -> list[Node]:
    together: dict[int, Node] = {}
    for one in left:
        node = together.setdefault(one.parent, Node(None, one.parent, np.zeros(weights.shape[1])))
        node.weights = node.weights + weights[one.stacks].sum(axis=0)
        node.folded += 1
    return list(together.values())
