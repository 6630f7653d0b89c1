"""The scores of a run: the BLEU that validation watches, and all that ``eval`` reports.

Moses-tokenized targets are compared as detokenised text with 13a. All others are compared in the
run's own words, before BPE, on both sides. The WAT procedure compares the translations as raw lines
with the raw references.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmtflex.config import ScoreConfig
from nmtflex.corpus.links import Links, check_inside, read_links
from nmtflex.corpus.readers import read_lines
from nmtflex.corpus.store import SIDES, raw_path
from nmtflex.decoding.cut_off import looping
from nmtflex.decoding.tally import Tally
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.scoring.alignment import AlignmentScore, score_alignments
from nmtflex.scoring.bleu import Score
from nmtflex.scoring.evaluation import Evaluation, Scorer, check_parallel
from nmtflex.scoring.texts import Text, run_segmentation, wat_segmentation
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from nmtflex.decoding.translation import Translation
    from nmtflex.decoding.translator import Translator
    from nmtflex.text.pipeline import SidePipeline


SPLITS = ("valid", "test")  # a run keeps their raw text


def run_bleu(
    target: SidePipeline, hypotheses: Sequence[Sequence[str]], references: Sequence[str]
) -> Score:
    """Return the BLEU of a run's output.

    Args:
        target: The run's target side.
        hypotheses: Words of each translation, in the target tokenizer's form.
        references: Raw lines.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    scorer = run_scorer(target, "the references", references)
    lines = list(map(target.tokenizer.detokenize, hypotheses))
    return scorer.bleu(_output(scorer, "the translations", lines, hypotheses))


def run_scorer(
    target: SidePipeline, name: str, references: Sequence[str], config: ScoreConfig | None = None
) -> Scorer:
    """Return the scorer of a run.

    Args:
        target: The run's target side.
        name: File of the references, for messages.
        references: Raw lines.
        config: Which scores, and how; without it, BLEU and chrF.

    Raises:
        DataError: There are no references, RIBES is requested and one has no words, or something
            that the WAT procedure needs is missing.
    """
    return common_scorer({"the run": target}, [(name, references)], config)


def common_scorer(
    targets: Mapping[str, SidePipeline],
    references: Sequence[tuple[str, Sequence[str]]],
    config: ScoreConfig | None = None,
) -> Scorer:
    """Return the scorer of several runs with the same references.

    Args:
        targets: The target side of each run, by its name.
        references: File name and raw lines of each.
        config: Which scores, and how; without it, BLEU and chrF.

    Raises:
        DataError: As ``run_scorer``.
        OptionError: The runs split the references into different words, so their scores cannot be
            compared.
    """
    config = config or ScoreConfig()
    if config.wat:
        segmentation = wat_segmentation(config)
    else:
        (first, segmentation), *others = [
            (name, run_segmentation(target)) for name, target in targets.items()
        ]
        for name, other in others:
            if other.signature != segmentation.signature:
                raise OptionError(
                    f"{name} is scored in different words than {first} ({other.signature}, not "
                    f"{segmentation.signature}), so their scores cannot be compared; write the "
                    f"translations of each with --output, and score the files with --hypothesis"
                )
    texts = [segmentation.text(name, _plain(targets, lines)) for name, lines in references]
    return Scorer(segmentation, texts, config)


def _plain(targets: Mapping[str, SidePipeline], lines: Sequence[str]) -> list[str]:
    """Join the pieces of segmented references, as translations are joined."""
    found = list(lines)
    for target in targets.values():
        found = list(map(target.plain, found))
    return found


class Translated(NamedTuple):
    """Raw lines, translated."""

    best: list[Translation]
    tally: Tally
    seconds: float


def translate_lines(translator: Translator, sources: Sequence[str]) -> Translated:
    """Translate raw lines; count score computations and time.

    Raises:
        RunError: The model is broken.
    """
    tally = Tally()
    begin = time.perf_counter()
    best = [best for (best,) in translator.n_best(sources, 1, tally)]
    return Translated(best, tally, time.perf_counter() - begin)


def score_translated(scorer: Scorer, translated: Translated) -> tuple[Evaluation, Text]:
    """Return the scores of translations, and the text that was scored.

    Args:
        scorer: From ``run_scorer``.
        translated: From ``translate_lines``.

    Raises:
        DataError: The numbers of sentences differ.
    """
    best, tally, seconds = translated
    output = _output(
        scorer, "the translations", [one.text for one in best], [one.words for one in best]
    )
    evaluation = scorer.evaluate(output)
    evaluation = evaluation._replace(
        cps=tally.cps,
        cps_total=tally.total,
        encoding_computations=tally.encoding,
        decoding_seconds=seconds,
        truncated=sum(one.truncated for one in best),
        looping=sum(one.truncated and looping(one.tokens) for one in best),
    )
    return evaluation, output


def evaluate_run(
    translator: Translator, scorer: Scorer, sources: Sequence[str]
) -> tuple[Evaluation, Text]:
    """Translate raw lines and score them; return the scores and the translations.

    Args:
        translator: The run's translator.
        scorer: From ``run_scorer``.
        sources: Raw lines.

    Raises:
        DataError: The numbers of sentences differ.
        RunError: The model is broken.
    """
    return score_translated(scorer, translate_lines(translator, sources))


def read_gold(path: Path, base: int, sources: int) -> list[Links]:
    """Read gold links for as many pairs as there are sources.

    Args:
        path: See ``read_links``.
        base: The number of the first word.
        sources: How many.

    Raises:
        DataError: It has another number of lines, or no sure link, or is malformed.
    """
    gold = list(read_links(path, base))
    if len(gold) != sources:
        raise DataError(
            f"{path} has {counted(len(gold), 'line')}, but there are {sources:,} pairs of source "
            f"and reference; it needs a line for each, empty where nothing is linked"
        )
    if not any(links.sure for links in gold):
        raise DataError(f"{path}: no sure link, such as 0-2; AER compares with these")
    return gold


def score_alignment(
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    gold: Sequence[Links],
    path: Path,
    base: int,
) -> AlignmentScore:
    """Align references by forced decoding, and compare with gold links.

    Args:
        translator: The run's.
        pairs: Raw sources and references.
        gold: Links for each, from ``read_gold``.
        path: Their file, for errors.
        base: The number of the first word in it.

    Raises:
        DataError: A gold link is beyond the words of its pair.
    """
    source, target = translator.pipeline.source, translator.pipeline.target
    for number, ((line, other), links) in enumerate(zip(pairs, gold, strict=True), 1):
        sizes = source.num_words(line), target.num_words(other)
        check_inside(links.possible, sizes, f"{path}:{number}", base)
    found = translator.align(pairs)
    return score_alignments([zip(one, range(len(one)), strict=True) for one in found], gold)


def with_model(config: ScoreConfig, folder: RunFolder) -> ScoreConfig:
    """Add the KyTea model that WAT's procedure needs: the run's own, if it has one.

    Raises:
        OptionError: It needs a model, and the run has none.
    """
    if not config.needs_model:
        return config
    for side in ("target", "source"):
        if (model := folder.pipeline / f"{side}.kytea").is_file():
            return dataclasses.replace(config, kytea_model=model)
    raise OptionError(
        f"--wat ja needs --kytea-model FILE, a KyTea model, and {folder.path} has none"
    )


def chosen_split(folders: Sequence[Path], asked: str | None, report: Callable[[str], None]) -> str:
    """Return the split to decode: the one asked for, else test, else valid if there is no test.

    Args:
        folders: Runs.
        asked: "valid", "test" or None.
        report: Called with a message if valid replaces test.
    """
    if asked is not None:
        return asked
    sources = {split: [raw_path(folder, split, "source") for folder in folders] for split in SPLITS}
    have = {split: all(path.is_file() for path in paths) for split, paths in sources.items()}
    if have["test"] or not have["valid"]:
        return "test"  # without either, reading it reports what is missing
    pairs = zip(folders, sources["test"], strict=True)
    without = next(folder for folder, path in pairs if not path.is_file())
    report(f"{without} has no test split: using its validation split (--split valid)")
    return "valid"


def read_split(run: Path, split: str) -> tuple[list[str], list[str]]:
    """Read the raw source and target lines of a split that a run carries.

    Args:
        run: Its folder.
        split: "valid" or "test".

    Raises:
        RunError: The run has no such split.
        DataError: The split is empty or damaged.
    """
    source, target = (raw_path(run, split, side) for side in SIDES)
    if not source.is_file():
        known = sorted(path.name.split(".")[0] for path in (run / "raw").glob("*.source.txt"))
        remedy = f"there is {' and '.join(known)}" if known else "it has no test data"
        raise RunError(f"{run} has no split {split!r}; {remedy}")
    sources, references = list(read_lines(source)), list(read_lines(target))
    check_parallel((str(source), len(sources)), (str(target), len(references)))
    return sources, references


def _output(
    scorer: Scorer, name: str, lines: Sequence[str], words: Sequence[Sequence[str]]
) -> Text:
    """Return translations as a text in the run's own words, unless the lines are split again."""
    segmentation = scorer.segmentation
    again = segmentation.wat or segmentation.tokenize is not None
    return segmentation.text(name, lines) if again else Text(name, lines, words)
