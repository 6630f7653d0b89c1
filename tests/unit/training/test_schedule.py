"""The learning rate, against rates computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nmtflex.config import TrainConfig
from nmtflex.errors import OptionError
from nmtflex.training.progress import Progress
from nmtflex.training.schedule import Schedule, make_schedule

PATHS = {"data": Path("data"), "run": Path("run")}


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


@pytest.mark.parametrize("kind", ["constant", "plateau", "inverse-sqrt", "cosine", "linear"])
def test_the_warm_up_rises_linearly_to_the_peak(kind):
    schedule = Schedule(kind, warmup=4, total=9)
    assert [schedule.factor(update) for update in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("kind", ["constant", "plateau"])
def test_without_a_decay_the_rate_stays(kind):
    assert {Schedule(kind, warmup=2, total=9).factor(update) for update in range(2, 20)} == {1.0}


def test_inverse_sqrt_is_equation_3():
    """Vaswani et al.: d ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)."""
    size, warmup = 512, 4000
    schedule = Schedule("inverse-sqrt", warmup, total=100_000)
    for step in (1, 17, 3999, 4000, 4001, 12_345, 100_000):
        expected = size**-0.5 * min(step**-0.5, step * warmup**-1.5)
        found = (size * warmup) ** -0.5 * schedule.factor(step)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("warmup", "first"), [(0, 1), (1, 1), (3, 3)])
def test_linear_and_cosine_reach_0_after_the_last_update(warmup, first):
    """Updates 1 to 9; the peak is the first update after the warm-up, or its last."""
    steps = 10 - first
    linear, cosine = (Schedule(kind, warmup, 9) for kind in ("linear", "cosine"))
    for update in range(first, 10):
        done = (update - first) / steps
        assert linear.factor(update) == pytest.approx(1 - done, rel=1e-12)
        assert cosine.factor(update) == pytest.approx((1 + math.cos(math.pi * done)) / 2, rel=1e-12)
    assert linear.factor(first) == cosine.factor(first) == 1.0
    assert linear.factor(9) == pytest.approx(1 / steps)


@pytest.mark.parametrize("kind", ["linear", "cosine"])
@pytest.mark.parametrize(("warmup", "total"), [(0, 1), (1, 1), (5, 5), (3, 4)])
def test_no_update_has_the_rate_0(kind, warmup, total):
    schedule = Schedule(kind, warmup, total)
    assert all(schedule.factor(update) > 0 for update in range(1, total + 3))


class Counted:
    """Batches of which there are so many."""

    def __init__(self, number):
        self.number = number

    def count(self):
        return self.number


@pytest.mark.parametrize(
    ("options", "total"),
    [({"updates": 7}, 7), ({"epochs": 3}, 30), ({"epochs": 3, "accumulate": 4}, 9), ({}, 100)],
)
def test_the_length_of_the_training(options, total):
    assert make_schedule(TrainConfig(**PATHS, **options), Counted(10)).total == total


def test_options_become_a_schedule():
    options = {"schedule": "cosine", "warmup": 5, "updates": 9, "halve_from": 2, "plateau": 4}
    found = make_schedule(TrainConfig(**PATHS, **options), Counted(1))
    assert found == Schedule("cosine", 5, 9, 2, 4)


@pytest.mark.parametrize(
    ("options", "waits"),
    [({}, 0), ({"plateau": 2}, 2), ({"schedule": "plateau"}, 3),
     ({"schedule": "plateau", "plateau": 5}, 5)],
)  # fmt: skip
def test_how_long_a_plateau_is(options, waits):
    assert make_schedule(TrainConfig(**PATHS, **options), Counted(1)).plateau == waits


def test_a_warm_up_beyond_the_end_is_refused():
    make_schedule(TrainConfig(**PATHS, warmup=30, epochs=3), Counted(10))
    with pytest.raises(OptionError, match=r"--warmup 31 .* 30 updates"):
        make_schedule(TrainConfig(**PATHS, warmup=31, epochs=3), Counted(10))


def test_inverse_sqrt_needs_a_warm_up():
    with pytest.raises(OptionError, match=r"inverse-sqrt .*--warmup .*4000"):
        TrainConfig(**PATHS, schedule="inverse-sqrt")
