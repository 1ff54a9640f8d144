"""The statistics keep what they promise, on made-up runs whose truth is known."""

import dataclasses
import json

import click.testing
import numpy
import pytest

from reheap_lab import calibrate, figures, synthetic
from reheap_lab.errors import LabError
from reheap_lab.rounds import Fixed, stop_of
from reheap_lab.synthetic import BUSY, MEMORY, QUIET, WILD, Truth


def said_of(score: calibrate.Score) -> str:
    return f"{score.truth.title}, {score.truth.noise.name}: {score.words}, covered {score.covered}"


@pytest.mark.parametrize("truth", calibrate.EQUALS, ids=lambda truth: truth.noise.name)
def test_equals_are_not_called_different(truth):
    score = calibrate.score(truth, Fixed(calibrate.ROUNDS))
    assert score.trials == 100
    assert score.right >= 95, said_of(score)
    assert score.covered >= 95, said_of(score)


@pytest.mark.parametrize("truth", calibrate.PLANTED, ids=lambda truth: f"{truth.title}, {truth.noise.name}")
def test_a_planted_difference_is_found(truth):
    score = calibrate.score(truth, Fixed(calibrate.ROUNDS))
    assert score.right >= 95, said_of(score)
    assert score.covered >= 95, said_of(score)


def test_who_waits_until_it_is_precise_is_told_that_equals_are_equal():
    """Where precision needs many rounds this takes long: `reheap calibrate` does it with every noise."""
    score = calibrate.score(Truth("the same twice", QUIET), stop_of(calibrate.SETTINGS))
    assert score.strict
    assert score.right >= 95, said_of(score)


def test_a_shift_of_one_subject_would_be_noticed():
    """The trials can fail: what is called equal here is not."""
    shifted = Truth("1.5 % slower", QUIET, ratio=1.015)
    score = calibrate.score(shifted, Fixed(calibrate.ROUNDS))
    assert score.words.get(figures.ALL["wall_s"].more, 0) >= 90
    assert figures.SAME not in score.words


def test_the_noise_is_what_it_says():
    calm = dataclasses.replace(BUSY, outlier_share=0)
    logs = numpy.log(synthetic.factors(calm, 2, 20_000, numpy.random.default_rng(3)))
    assert (logs[:, 1] - logs[:, 0]).std() == pytest.approx(calm.run * 2**0.5, rel=0.05)
    common = logs.mean(axis=1) - numpy.log1p(calm.drift) * numpy.linspace(0, 1, 20_000)
    assert common.std() == pytest.approx(calm.round, rel=0.1)
    assert numpy.corrcoef(common[1:], common[:-1])[0, 1] == pytest.approx(calm.persistence, abs=0.05)
    assert numpy.median(logs[-3000:]) - numpy.median(logs[:3000]) == pytest.approx(0.85 * calm.drift, rel=0.2)


def test_outliers_come_as_often_as_they_should():
    struck = dataclasses.replace(BUSY, run=0, round=0, drift=0)
    factors = synthetic.factors(struck, 2, 20_000, numpy.random.default_rng(3))
    assert (factors > 1).mean() == pytest.approx(struck.outlier_share, rel=0.1)
    assert factors[factors > 1].mean() - 1 == pytest.approx(struck.outlier, rel=0.1)


@pytest.mark.parametrize("noise", [QUIET, BUSY, WILD, MEMORY], ids=lambda noise: noise.name)
def test_no_subject_is_favoured(noise):
    values = synthetic.pairs(Truth("the same twice", noise), 20_000, numpy.random.default_rng(4))
    assert numpy.median(numpy.log(values[:, 1] / values[:, 0])) == pytest.approx(0, abs=0.002)


def test_the_command_says_and_writes_its_scores(tmp_path, monkeypatch):
    monkeypatch.setattr(calibrate, "TO_THE_END", calibrate.TO_THE_END[:1])
    file = tmp_path / "scores.json"
    done = click.testing.CliRunner().invoke(calibrate.command, ["--trials", "3", "--runs", "10", "--export", str(file)])
    assert done.exception is None or isinstance(done.exception, LabError)
    rows = json.loads(file.read_text())["scores"]
    assert len(rows) == len(calibrate.EQUALS + calibrate.PLANTED + calibrate.TO_THE_END)
    assert all(row["trials"] == 3 for row in rows)
    assert "until precise" in done.output


def test_bad_scores_are_an_exit_status(monkeypatch):
    bad = calibrate.Score(Truth("the same twice", QUIET), "", {"faster": 10, "undecided": 90}, 95, 0.01)
    monkeypatch.setattr(calibrate, "scores", lambda *_: [bad])
    done = click.testing.CliRunner().invoke(calibrate.command, [])
    assert isinstance(done.exception, LabError)
    assert "BAD" in done.output
