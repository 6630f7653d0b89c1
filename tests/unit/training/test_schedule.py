"""The learning rate, against rates computed by hand."""

from __future__ import annotations

import pytest

from nmtflex.training.progress import Progress
from nmtflex.training.schedule import Schedule


@pytest.mark.parametrize(
    ("halve_from", "expected"),
    [
        (0, [0.008, 0.008, 0.008, 0.008]),
        (2, [0.004, 0.002, 0.001, 0.0005]),
        (4, [0.008, 0.008, 0.004, 0.002]),
        (9, [0.008, 0.008, 0.008, 0.008]),
    ],
)
def test_the_rate_halves_at_the_start_of_an_epoch_and_of_each_later_one(halve_from, expected):
    progress, rates = Progress(rate=0.008), []
    for epoch in (2, 3, 4, 5):
        progress.epoch = epoch
        Schedule(halve_from=halve_from).start_epoch(progress)
        rates.append(progress.rate)
    assert rates == expected


@pytest.mark.parametrize(
    ("plateau", "expected"),
    [
        (0, [64, 64, 64, 64, 64, 64, 64]),
        (1, [64, 32, 16, 16, 8, 4, 2]),
        (2, [64, 64, 32, 32, 32, 16, 16]),
        (3, [64, 64, 64, 64, 64, 64, 32]),
    ],
)
def test_the_rate_halves_after_validations_without_a_new_best(plateau, expected):
    """The first and the fourth validation are the best so far."""
    progress, rates = Progress(rate=64.0), []
    for waited in (0, 1, 2, 0, 1, 2, 3):
        progress.validations_since_best = waited
        Schedule(plateau=plateau).end_validation(progress)
        rates.append(progress.rate)
    assert rates == expected


def test_both_at_once_and_nothing_else_changes():
    schedule = Schedule(halve_from=2, plateau=1)
    progress = Progress(rate=1.0, epoch=2, validations_since_best=5, update=7)
    schedule.start_epoch(progress)
    schedule.end_validation(progress)
    assert progress == Progress(rate=0.25, epoch=2, validations_since_best=5, update=7)


def test_a_rate_is_halved_bit_for_bit():
    progress = Progress(rate=0.1, epoch=9)
    Schedule(halve_from=2).start_epoch(progress)
    assert progress.rate.hex() == (0.1).hex().replace("p-4", "p-5")
