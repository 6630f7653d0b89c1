"""The scores of a run: the BLEU that validation watches, and all that ``eval`` reports.

Moses-tokenized targets are compared as detokenised text under 13a. Everything else is compared in
the run's own words, before BPE, on both sides. Under the WAT procedure it is the translations as
raw lines against the raw references.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmtflex.config import ScoreConfig
from nmtflex.corpus.readers import read_lines
from nmtflex.decoding.tally import Tally
from nmtflex.errors import OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.scoring.bleu import Score
from nmtflex.scoring.evaluation import Evaluation, Scorer, check_parallel
from nmtflex.scoring.texts import Text, run_segmentation, wat_segmentation

if TYPE_CHECKING:
    from nmtflex.decoding.translator import Translation, Translator
    from nmtflex.text.pipeline import SidePipeline


SPLITS = ("valid", "test")  # whose raw text a run keeps


def run_bleu(
    target: SidePipeline, hypotheses: Sequence[Sequence[str]], references: Sequence[str]
) -> Score:
    """Return the BLEU of a run's output.

    Args:
        target: The run's target side.
        hypotheses: Words of each translation, as the target's tokenizer has them.
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
    """Return what scores a run.

    Args:
        target: The run's target side.
        name: File of the references, for messages.
        references: Raw lines.
        config: Which scores, and how; without it, BLEU and chrF.

    Raises:
        DataError: There are no references, or there is RIBES to compute and one has no words; or
            what the WAT procedure needs is missing.
    """
    return common_scorer({"the run": target}, [(name, references)], config)


def common_scorer(
    targets: Mapping[str, SidePipeline],
    references: Sequence[tuple[str, Sequence[str]]],
    config: ScoreConfig | None = None,
) -> Scorer:
    """Return what scores several runs against the same references.

    Args:
        targets: The target side of each run, by its name.
        references: Name of the file and raw lines, of each.
        config: Which scores, and how; without it, BLEU and chrF.

    Raises:
        DataError: As ``run_scorer``.
        OptionError: The runs cut the references into different words, so that their scores could
            not be compared.
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
                    f"{name} is scored in other words than {first} ({other.signature}, not "
                    f"{segmentation.signature}), so their scores cannot be compared; write the "
                    f"translations of each with --output, and score the files with --hypothesis"
                )
    texts = [segmentation.text(name, lines) for name, lines in references]
    return Scorer(segmentation, texts, config)


class Translated(NamedTuple):
    """Raw lines, translated."""

    best: list[Translation]
    tally: Tally
    seconds: float


def translate_lines(translator: Translator, sources: Sequence[str]) -> Translated:
    """Translate raw lines, count and clock.

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
        scorer: Of ``run_scorer``.
        translated: Of ``translate_lines``.

    Raises:
        DataError: The numbers of sentences differ.
    """
    best, tally, seconds = translated
    output = _output(
        scorer, "the translations", [one.text for one in best], [one.words for one in best]
    )
    evaluation = scorer.evaluate(output)
    evaluation = evaluation._replace(
        cps=tally.cps, encoding_computations=tally.encoding, decoding_seconds=seconds
    )
    return evaluation, output


def evaluate_run(
    translator: Translator, scorer: Scorer, sources: Sequence[str]
) -> tuple[Evaluation, Text]:
    """Translate raw lines and score them; return the scores and the translations.

    Args:
        translator: Does the work.
        scorer: Of ``run_scorer``.
        sources: Raw lines.

    Raises:
        DataError: The numbers of sentences differ.
        RunError: The model is broken.
    """
    return score_translated(scorer, translate_lines(translator, sources))


def with_model(config: ScoreConfig, folder: RunFolder) -> ScoreConfig:
    """Fill in the model of KyTea that WAT's procedure needs: a run brings the one it was made with.

    Raises:
        OptionError: It needs a model, and the run has none.
    """
    if not config.needs_model:
        return config
    for side in ("target", "source"):
        if (model := folder.pipeline / f"{side}.kytea").is_file():
            return dataclasses.replace(config, kytea_model=model)
    raise OptionError(
        f"--wat ja needs --kytea-model FILE, a model of KyTea, and {folder.path} carries none"
    )


def chosen_split(folders: Sequence[Path], asked: str | None, report: Callable[[str], None]) -> str:
    """Return the split to decode: the one asked for, else test, else valid where no test is.

    Args:
        folders: Runs.
        asked: "valid", "test" or None.
        report: Told where it is not test unasked.
    """
    if asked is not None:
        return asked
    raws = [RunFolder(folder).raw for folder in folders]
    have = {split: all(split_files(raw, split)[0].is_file() for raw in raws) for split in SPLITS}
    if have["test"] or not have["valid"]:
        return "test"  # without either, reading it says what is missing
    without = next(raw.parent for raw in raws if not split_files(raw, "test")[0].is_file())
    report(f"{without} has no test split: its validation split is taken (--split valid)")
    return "valid"


def split_files(raw: Path, split: str) -> tuple[Path, Path]:
    """Return the files of a split's raw source and target lines in a run's folder ``raw``."""
    return raw / f"{split}.source.txt", raw / f"{split}.target.txt"


def read_split(raw: Path, split: str) -> tuple[list[str], list[str]]:
    """Read the raw source and target lines of a split that a run carries with it.

    Args:
        raw: The run's folder ``raw``.
        split: "valid" or "test".

    Raises:
        RunError: The run has no such split.
        DataError: The split is empty or damaged.
    """
    source, target = split_files(raw, split)
    if not source.is_file():
        known = sorted(path.name.split(".")[0] for path in raw.glob("*.source.txt"))
        remedy = f"there is {' and '.join(known)}" if known else "it carries no test data"
        raise RunError(f"{raw.parent} has no split {split!r}; {remedy}")
    sources, references = list(read_lines(source)), list(read_lines(target))
    check_parallel((str(source), len(sources)), (str(target), len(references)))
    return sources, references


def _output(
    scorer: Scorer, name: str, lines: Sequence[str], words: Sequence[Sequence[str]]
) -> Text:
    """Return translations as a text: of the run's own words, unless the lines are cut anew."""
    segmentation = scorer.segmentation
    anew = segmentation.wat or segmentation.tokenize is not None
    return segmentation.text(name, lines) if anew else Text(name, lines, words)
