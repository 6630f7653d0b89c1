"""What a comparison consists of: entries, and the commands that make each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmtflex.comparison.journal import Journal, Step
from nmtflex.config import BenchConfig, Decoding, FinetuneConfig, ModelConfig, ThresholdConfig

UNLIMITED = "inf"  # the threshold that skips nothing
UNKNOWN = "CHOSEN"  # a threshold before the sweep that chooses it


class Entry(NamedTuple):
    """One row of the table: a model, trained alike, and how it decodes.

    Options are words of the command line, without those of the files that a step reads or writes.
    """

    name: str
    begins_with: str | None  # the entry whose runs it takes over; otherwise it trains its own
    init_from: str | None  # the entry with whose best weights its own training begins
    model: ModelConfig
    train: Sequence[str]  # options of its own training
    finetune: Sequence[str] | None  # options of a finetuning; None: there is none
    finetuning: FinetuneConfig | None  # these options, checked
    sweep: Sequence[str] | None  # options of the choice of a threshold; None: there is none
    evaluate: Sequence[str]
    files: Sequence[Path]  # that scoring reads
    decoding: Decoding  # as its speed is measured

    @property
    def needs_gate(self) -> bool:
        """Whether it decodes under a threshold."""
        return self.sweep is not None or self.decoding.threshold.tau is not None


class Comparison(NamedTuple):
    """Entries, and what they share."""

    data: Path  # prepared folder
    out: Path
    seeds: Sequence[int]
    entries: Sequence[Entry]
    bench: BenchConfig

    def run(self, name: str, seed: int) -> Path:
        """Return the run folder of an entry that decodes."""
        entry = self.entry(name)
        if entry.finetune is not None:
            own = "" if entry.begins_with else ".finetuned"
            return self.out / f"{name}-{seed}{own}"
        return self.run(entry.begins_with, seed) if entry.begins_with else self._trained(name, seed)

    def rows(self) -> list[tuple[Entry, int]]:
        """Return each entry with each seed, in the order of the seeds."""
        return [(entry, seed) for seed in self.seeds for entry in self.entries]

    def entry(self, name: str) -> Entry:
        """Return the entry of a name."""
        return next(entry for entry in self.entries if entry.name == name)

    def _trained(self, name: str, seed: int) -> Path:
        return self.out / f"{name}-{seed}"

    def making(self, entry: Entry, seed: int) -> list[Step]:
        """Return the trainings of an entry."""
        found = []
        start = self.run(entry.begins_with, seed) if entry.begins_with else None
        if start is None:
            start = self._trained(entry.name, seed)
            words = ["train", str(self.data), "--run", str(start), *entry.train]
            name, inputs = f"{entry.name}-{seed}.train", [self.data]
            if entry.init_from:
                inputs.append(base := self.run(entry.init_from, seed))
                words += ["--init-from", str(base)]
            found.append(Step(name, [*words, "--seed", str(seed)], inputs, start))
        if entry.finetune is not None:
            run = self.run(entry.name, seed)
            words = ["finetune", str(start), "--run", str(run), *entry.finetune]
            name = f"{entry.name}-{seed}.finetune"
            found.append(Step(name, [*words, "--seed", str(seed)], [start], run))
        return found

    def num_commands(self) -> int:
        """Return how many commands make and score all entries."""
        return sum(
            len(self.making(entry, seed)) + (entry.sweep is not None) + 1
            for entry, seed in self.rows()
        )

    def choosing(self, entry: Entry, seed: int) -> Step | None:
        """Return the sweep that chooses the threshold of an entry, if there is one."""
        if entry.sweep is None:
            return None
        run, name = self.run(entry.name, seed), f"{entry.name}-{seed}.sweep"
        output = ["--output", str(self.out / name)]
        return Step(name, ["sweep", str(run), *entry.sweep, *output, "--json"], [run])

    def scoring(self, entry: Entry, seed: int, tau: str | None) -> Step:
        """Return the scoring of an entry, under the threshold that was chosen for it if any."""
        run = self.run(entry.name, seed)
        chosen = [] if tau is None else ["--tau", tau]
        words = ["eval", str(run), *entry.evaluate, *chosen, "--json"]
        return Step(f"{entry.name}-{seed}.eval", words, [run, *entry.files])


class Candidate(NamedTuple):
    """A run, and how it decodes."""

    path: Path
    decoding: Decoding


def chosen_tau(comparison: Comparison, entry: Entry, seed: int, journal: Journal) -> str | None:
    """Return the threshold that a sweep chose; None for an entry that has no sweep.

    If every threshold loses too much, nothing is skipped.
    """
    step = comparison.choosing(entry, seed)
    if step is None:
        return None
    result = journal.result(step)
    if result is None:
        return UNKNOWN
    chosen = result.get("chosen")
    return UNLIMITED if chosen is None else str(chosen["tau"])


def steps_of(comparison: Comparison, entry: Entry, seed: int, journal: Journal) -> Iterator[Step]:
    """Yield the commands of an entry, in their order.

    A scoring under a chosen threshold is known once its sweep is done, which may be after the sweep
    has been yielded.
    """
    yield from comparison.making(entry, seed)
    choosing = comparison.choosing(entry, seed)
    if choosing is not None:
        yield choosing
    yield comparison.scoring(entry, seed, chosen_tau(comparison, entry, seed, journal))


def candidates_of(comparison: Comparison, journal: Journal) -> dict[str, Candidate]:
    """Return what decodes in turns, by entry: the runs of the first seed."""
    seed, found = comparison.seeds[0], {}
    for entry in comparison.entries:
        tau, decoding = chosen_tau(comparison, entry, seed, journal), entry.decoding
        if tau is not None:
            decoding = decoding._replace(threshold=ThresholdConfig(tau=tau))
        found[entry.name] = Candidate(comparison.run(entry.name, seed), decoding)
    return found
