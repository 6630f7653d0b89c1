"""Whether systems differ by more than chance: intervals and p-values by resampling a test set.

The first system is the baseline for the others. Let d be the difference of two scores and N the
number of resamples::

    bootstrap        Koehn (2004), https://aclanthology.org/W04-3250: sentences are drawn with
                     replacement, the same for both systems; d* is the difference of a resample
                     p = (|{ |d*| - mean |d*| > |d| }| + 1) / (N + 1)
    randomisation    Riezler and Maxwell (2005), https://aclanthology.org/W05-0908: each sentence's
                     outputs are swapped or not; d* is the difference after that
                     p = (|{ |d*| > |d| }| + 1) / (N + 1)

sacrebleu does this for its metrics; RIBES, the mean of its sentences, gets the same resamples for
the same seed here. Two departures prevent a p that is small by accident. If the scores are equal, p
is 1; sacrebleu alone gives 1 / (N + 1) to a copy of the baseline. And for RIBES a d* equal to d
counts too: if only two or three sentences differ, many d* equal it. The intervals, of 95 % of the
resamples of one system, are the bootstrap's with both methods.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sacrebleu.significance import PairedTest, Result, estimate_ci

from nmtflex.errors import DataError
from nmtflex.scoring.bleu import Metric, bounded, prepared
from nmtflex.scoring.ribes import RibesScore
from nmtflex.text.visible import counted

_Floats = npt.NDArray[np.float64]

_SEED_VARIABLE = "SACREBLEU_SEED"
_INTERVAL_SAMPLES = 1000  # sacrebleu's own number, if the test is not the bootstrap
_CHUNK = 64  # resamples at once; numpy draws the same numbers in chunks
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class Resampling:
    """How a test set is resampled.

    Args:
        method: The paired test.
        samples: Number of resamples; usually 1,000, and 10,000 for randomisation.
        seed: Seed of the random numbers, at least 1: for sacrebleu, 0 means none.

    Raises:
        ValueError: A number is too small.
    """

    method: Literal["bootstrap", "randomisation"] = "bootstrap"
    samples: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"the number of resamples must be at least 1, not {self.samples}")
        if self.seed < 1:
            raise ValueError(f"the seed must be at least 1, not {self.seed}")

    @property
    def interval_samples(self) -> int:
        """Return the number of resamples for the interval."""
        return self.samples if self.method == "bootstrap" else _INTERVAL_SAMPLES

    def signature(self) -> str:
        """Return its part of sacrebleu's signatures."""
        trials = "" if self.method == "bootstrap" else f"ar:{self.samples}|"
        return f"bs:{self.interval_samples}|{trials}seed:{self.seed}"


class Comparison(NamedTuple):
    """One system under one metric; numbers in the metric's own unit, 0-100 or 0-1."""

    metric: str
    system: str
    score: float
    mean: float  # of the resamples
    margin: float  # half the width of the 95 % interval
    p_value: float | None  # of equality with the baseline; None for the baseline itself
    signature: str

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval around the mean."""
        return self.mean - self.margin, self.mean + self.margin

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON, unrounded."""
        found = self._asdict()
        del found["margin"]
        return found | {"interval": list(self.interval)}


def compare(
    metric: Metric,
    systems: Mapping[str, Sequence[Any]],
    references: Sequence[Sequence[Any]],
    resampling: Resampling,
) -> list[Comparison]:
    """Compare systems by a metric of sacrebleu; a single one gets only an interval.

    Args:
        metric: BLEU, chrF or TER.
        systems: The sentences of each, as the metric takes them; the first is the baseline.
        references: One sequence of sentences for each reference.
        resampling: How to resample. The bootstrap takes about 0.1 kB a sentence and resample.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
        ValueError: There is no system or no reference.
    """
    _check_systems({name: len(sentences) for name, sentences in systems.items()})
    lines = {}
    for name, sentences in systems.items():
        lines[name], reference_lines = prepared(metric, sentences, references)
    with _sacrebleu_seed(resampling.seed):
        test = PairedTest(
            list(lines.items()),
            {"metric": metric.by},
            reference_lines,
            test_type="bs" if resampling.method == "bootstrap" else "ar",
            n_samples=resampling.samples,
            n_ar_confidence=-1 if resampling.method == "bootstrap" else _INTERVAL_SAMPLES,
        )
        signatures, columns = test()
    ((name, signature),) = signatures.items()
    results = [result for result in columns[name] if isinstance(result, Result)]
    return [
        Comparison(
            metric=name,
            system=system,
            score=bounded(metric, result.score),
            mean=bounded(metric, result.mean or 0.0),
            margin=float(result.ci or 0.0),
            p_value=1.0 if result.p_value and result.score == results[0].score else result.p_value,
            signature=str(signature),
        )
        for system, result in zip(systems, results, strict=True)
    ]


def compare_ribes(systems: Mapping[str, RibesScore], resampling: Resampling) -> list[Comparison]:
    """Compare systems by RIBES; a single one gets only an interval.

    Args:
        systems: The scores of each, against the same references; the first is the baseline.
        resampling: How to resample.

    Raises:
        DataError: The numbers of sentences differ.
        ValueError: There is no system.
    """
    _check_systems({name: len(score.sentences) for name, score in systems.items()})
    baseline: _Floats | None = None
    rows = []
    for name, score in systems.items():
        sentences = np.array(score.sentences)
        p_value, means = _resampled(sentences, baseline, resampling)
        mean, margin = map(float, estimate_ci(means))
        count, rest = score.signature.split("|", 1)
        signature = f"{count}|{resampling.signature()}|{rest}"
        rows.append(Comparison("RIBES", name, score.value, mean, margin, p_value, signature))
        baseline = sentences if baseline is None else baseline
    return rows


def _resampled(
    system: _Floats, baseline: _Floats | None, resampling: Resampling
) -> tuple[float | None, _Floats]:
    """Return the p-value, and the system's mean in each resample of the bootstrap.

    As in sacrebleu, the generator is seeded again for each system; randomisation draws from it
    before the bootstrap, but not for the baseline.
    """
    generator = np.random.default_rng(resampling.seed)
    p_value = None
    if baseline is not None and resampling.method == "randomisation":
        p_value = _p_value(
            _swapped(system - baseline, generator, resampling.samples), system, baseline
        )
    both = np.stack([system, system if baseline is None else baseline])
    means, baseline_means = _drawn(both, generator, resampling.interval_samples)
    if baseline is not None and resampling.method == "bootstrap":
        distances = np.abs(means - baseline_means)
        p_value = _p_value(distances - distances.mean(), system, baseline)
    return p_value, means


def _drawn(scores: _Floats, generator: np.random.Generator, samples: int) -> _Floats:
    """Return the means of sentences drawn with replacement, [systems, samples]."""
    size = scores.shape[1]
    return np.concatenate(
        [
            scores[:, generator.choice(size, size=(rows, size), replace=True)].mean(axis=2)
            for rows in _chunks(samples)
        ],
        axis=1,
    )


def _swapped(differences: _Floats, generator: np.random.Generator, samples: int) -> _Floats:
    """Return the absolute mean difference after swapping some sentences, [samples]."""
    size = len(differences)
    kept = np.concatenate([
        generator.integers(2, size=(rows, size), dtype=bool) @ differences
        for rows in _chunks(samples)
    ])
    return np.abs(2 * kept - differences.sum()) / size


def _p_value(statistics: _Floats, system: _Floats, baseline: _Floats) -> float:
    """Return the share of resamples at least as extreme as the difference of two systems."""
    difference = abs(system.mean() - baseline.mean())
    if difference < _ROUNDING:
        return 1.0
    extreme = int(np.count_nonzero(statistics >= difference - _ROUNDING))
    return (extreme + 1) / (len(statistics) + 1)


def _chunks(samples: int) -> list[int]:
    return [min(_CHUNK, samples - start) for start in range(0, samples, _CHUNK)]


def _check_systems(sizes: Mapping[str, int]) -> None:
    if not sizes:
        raise ValueError(f"no systems to compare: {dict(sizes)}")
    baseline, *others = sizes
    for name in others:
        if sizes[name] != sizes[baseline]:
            raise DataError(
                f"system {name} has {counted(sizes[name], 'sentence')}, but {baseline} has "
                f"{sizes[baseline]:,}"
            )


@contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """Set the environment variable of sacrebleu's seed for a while."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEED_VARIABLE]
        else:
            os.environ[_SEED_VARIABLE] = before
