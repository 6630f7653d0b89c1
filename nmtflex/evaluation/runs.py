"""Several runs side by side: opened with the same options, named and described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.config import Decoding, NoneConfig, ShownConfig, ThresholdConfig
from nmtflex.corpus.readers import read_lines
from nmtflex.decoding.opening import Opened, open_ensemble
from nmtflex.errors import OptionError
from nmtflex.evaluation.run_scores import read_split
from nmtflex.runs.limits import run_reuse, run_thresholds, under
from nmtflex.scoring.evaluation import check_parallel


class RawData(NamedTuple):
    """Raw lines to translate, and their references."""

    name: str  # a split, or a file
    sources: list[str]
    references: list[str]

    def first(self, count: int | None) -> RawData:
        """Return the first pairs; None for all."""
        return self._replace(sources=self.sources[:count], references=self.references[:count])


def open_runs(
    paths: Sequence[Path], decoding: Decoding, shown: ShownConfig | None = None
) -> list[Opened]:
    """Open runs; a threshold applies to those with a penalty.

    Args:
        paths: Run folders.
        decoding: How to translate.
        shown: The layer and head that traces show, in every run; without it the mean of all.

    Raises:
        OptionError: A run cannot do what the options ask, or no run can use the threshold.
        RunError: A folder is not a run, or has a newer format.
    """
    threshold = decoding.threshold
    without = decoding._replace(threshold=ThresholdConfig())
    found = [open_ensemble([path], *without) for path in paths]
    runs = [opened.run for opened in found]
    taus, reuse = run_thresholds(runs, threshold.tau), run_reuse(runs, threshold.reuse_below)
    return [_under(*each, shown) for each in zip(found, taus, reuse, strict=True)]


def _under(opened: Opened, tau: float | None, reuse: float, shown: ShownConfig | None) -> Opened:
    """Return an opened run that translates under options."""
    translator = opened.translator.decoding([under(opened.run, tau, shown, reuse)])
    return opened._replace(tau=tau, reuse=reuse, translator=translator)


def raw_files(source: Path, reference: Path) -> RawData:
    """Read a source file and its reference.

    Raises:
        DataError: A file cannot be read, or they differ in length.
    """
    sources, references = list(read_lines(source)), list(read_lines(reference))
    check_parallel((str(source), len(sources)), (str(reference), len(references)))
    return RawData(str(source), sources, references)


def raw_split(paths: Sequence[Path], split: str) -> RawData:
    """Read a split that all runs have.

    Raises:
        OptionError: Their data differ.
        RunError: A run does not have the split.
        DataError: The split is empty or damaged.
    """
    first = read_split(paths[0], split)
    for path in paths[1:]:
        for one, other, side in zip(
            first, read_split(path, split), ("source", "target"), strict=True
        ):
            if one == other:
                continue
            line = next(
                (
                    n
                    for n, pair in enumerate(zip(one, other, strict=False), 1)
                    if pair[0] != pair[1]
                ),
                min(len(one), len(other)) + 1,
            )
            raise OptionError(
                f"{path} has other {split} data than {paths[0]}, from {side} line {line} on "
                f"({len(other):,} lines against {len(one):,}): runs side by side need the same "
                f"data; take one at a time"
            )
    return RawData(split, *first)


def facts_of(opened: Opened, name: str, decoding: Decoding) -> dict[str, str]:
    """Return a caption's facts about a run that translates; its name comes first."""
    run = opened.run
    tau = "" if opened.tau is None else f", τ = {opened.tau:.4g}"
    tau += f", reuse below {opened.reuse:.4g}" if opened.reuse else ""
    return {
        "run": name,
        **model_facts(run.config["model"], tau),
        "beam": f"beam {decoding.search.beam}",
        "update": f"update {run.update:,}",
    }


def model_facts(model: dict[str, Any] | None, more: str = "") -> dict[str, str]:
    """Return a caption's facts about a model, from a run's config."""
    if model is None:
        return {"attention": "", "decoder": ""}
    kind = model["attention"]["kind"]
    kind = "no" if kind == NoneConfig.kind else kind
    return {
        "attention": f"{kind} attention{more}",
        "decoder": f"{model['decoder']['kind']} decoder",
    }


def names(paths: Sequence[Path]) -> list[str]:
    """Return a short name for each folder: its own, or its path if others have the same."""
    own = {path: path.resolve().name for path in paths}
    counts = Counter(own.values())
    return [own[path] if counts[own[path]] == 1 else str(path) for path in paths]
