"""Runs that never ran: figures made up from a seed, with every nuisance of a real machine and a known
truth, so that what the statistics say can be checked against it."""

from dataclasses import dataclass

import numpy


@dataclass(frozen=True)
class Noise:
    """What disturbs a figure, as shares of it (0.01: one percent)."""

    name: str
    run: float  # each run by itself: the deviation of a lognormal
    round: float  # what the runs of one round have in common
    persistence: float  # how much of a round's disturbance is left in the next round, 0 to 1
    drift: float  # from the first run to the last
    outlier_share: float  # of the runs
    outlier: float  # how much more such a run takes, on average


QUIET = Noise("quiet machine", run=0.003, round=0.005, persistence=0.5, drift=0.01, outlier_share=0.02, outlier=0.05)
BUSY = Noise("busy machine", run=0.01, round=0.03, persistence=0.7, drift=0.05, outlier_share=0.05, outlier=0.3)
WILD = Noise("wild machine", run=0.04, round=0.1, persistence=0.9, drift=0.2, outlier_share=0.1, outlier=0.5)
MEMORY = Noise("resident memory", run=0.01, round=0.0, persistence=0.0, drift=0.0, outlier_share=0.05, outlier=0.05)


@dataclass(frozen=True)
class Truth:
    """What is planted: how many times the base's figure the other allocator takes."""

    title: str
    noise: Noise
    figure: str = "wall_s"
    ratio: float = 1.0
    typical: float = 2.0


def factors(noise: Noise, subjects: int, rounds: int, random: numpy.random.Generator) -> numpy.ndarray:
    """By round and subject, all around 1. The runs of a round stand in the order of rounds.orders."""
    places = random.permuted(numpy.tile(numpy.arange(subjects), (rounds, 1)), axis=1)
    places[1::2] = subjects - 1 - places[:rounds - 1:2]
    time = (numpy.arange(rounds)[:, None] * subjects + places) / max(rounds * subjects - 1, 1)
    logs = noise.run * random.standard_normal((rounds, subjects))
    logs += _common(noise, rounds, random)[:, None] + numpy.log1p(noise.drift) * time
    struck = random.random((rounds, subjects)) < noise.outlier_share
    logs += struck * numpy.log1p(random.exponential(noise.outlier, (rounds, subjects)))
    return numpy.exp(logs)


def _common(noise: Noise, rounds: int, random: numpy.random.Generator) -> numpy.ndarray:
    """What all runs of a round share: an autoregressive series that starts as it goes on."""
    shocks = noise.round * random.standard_normal(rounds)
    kept = noise.persistence
    values = numpy.empty(rounds)
    values[0] = shocks[0]
    for i in range(1, rounds):
        values[i] = kept * values[i - 1] + numpy.sqrt(1 - kept * kept) * shocks[i]
    return values


def pairs(truth: Truth, rounds: int, random: numpy.random.Generator) -> numpy.ndarray:
    """The figure of the base and of the other, a row for each round."""
    return truth.typical * factors(truth.noise, 2, rounds, random) * [1, truth.ratio]
