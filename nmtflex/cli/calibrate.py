"""``nmtflex calibrate``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import note, print_table, write_line
from nmtflex.cli.plot import write_figure
from nmtflex.config import CalibrateConfig, Decoding, SearchConfig
from nmtflex.errors import RunError
from nmtflex.files import check_contained, check_writable
from nmtflex.text.visible import counted, visible

if TYPE_CHECKING:
    from nmtflex.decoding.confidence import Confidence
    from nmtflex.decoding.opening import Opened
    from nmtflex.evaluation.calibrate import Measured, Words


@command(app, "calibrate")
def calibrate(config: CalibrateConfig, decoding: Decoding) -> None:
    """Fit the probabilities that words of translations are right; write RUN/confidence.json.

    Translates the validation data and counts a word as right if the reference has it too, by an
    alignment of fewest edits. What is printed comes from ten-fold cross-validation over sentences.
    --check test measures on other data what was fitted. Then use translate --word-scores.

    Several runs form an ensemble, whose calibration is written into the first one.
    """
    from nmtflex.decoding.opening import open_ensemble
    from nmtflex.evaluation.calibrate import judged_words, measured
    from nmtflex.evaluation.run_scores import read_split

    search, split = decoding.search, config.check or config.split or "valid"
    own = SearchConfig(replace_unk=search.replace_unk, unk=search.unk)
    refuse("has no effect: calibration compares the model's own words", own)
    _check_figure(config)
    opened = open_ensemble(config.runs, *decoding)
    folder = opened.run.folder
    check_contained(folder.path, RunError)
    confidence = opened.translator.load_confidence() if config.check else None
    words = judged_words(opened.translator, *read_split(folder.path, split))
    found = measured(words, confidence)
    if confidence is None:
        confidence = _fitted(config, decoding, words, found, split)
        done = "replaced" if folder.confidence.exists() else "wrote"
        confidence.save(folder.confidence)
        note(f"{done} {folder.confidence}")
    _print(config, split, found, confidence)
    if config.output is not None:
        _draw(config, opened, split, search.beam, found)


def _check_figure(config: CalibrateConfig) -> None:
    """Check first that the figure can be drawn and written."""
    from nmtflex.figures.figures import check_matplotlib

    if config.output is not None:
        check_matplotlib()
        check_writable(config.output, "--output")


def _fitted(
    config: CalibrateConfig, decoding: Decoding, words: Words, found: Measured, split: str
) -> Confidence:
    """Fit on all words; note how, and the scores of cross-validation."""
    from nmtflex.evaluation.calibrate import fit
    from nmtflex.runs.folder import RunFolder
    from nmtflex.runs.weights import digest_of

    about = {
        "split": split,
        "beam": decoding.search.beam,
        "tau": decoding.threshold.tau,
        "sentences": found.sentences.size,
        "words": found.words.size,
        "auc": found.words.auc,
        "brier": found.words.brier,
        "ece": found.words.ece,
    }
    return fit(words, [digest_of(RunFolder(run).best) for run in config.runs], about)


def _print(config: CalibrateConfig, split: str, found: Measured, confidence: Confidence) -> None:
    words, sentences = found
    if config.json:
        weights = map(float, confidence.model.weights)
        record: dict[str, Any] = {
            "runs": list(map(str, config.runs)),
            "split": split,
            "held_out": config.check is None,
            "words": words._asdict() | {"bins": [one._asdict() for one in words.bins]},
            "sentences": sentences._asdict(),
            "weights": dict(zip(confidence.names, weights, strict=True)),
            "bound": confidence.bound,
        }
        write_line(json.dumps(record))
        return
    of_words = counted(words.size, "word"), f"{words.share:.1%}", f"{words.auc:.4f}"
    print_table(
        [split, "right", "AUC", "Brier", "ECE"],
        [[*of_words, f"{words.brier:.4f}", f"{words.ece:.4f}"]],
    )
    write_line("")
    print_table(
        [split, "mean error of confidence", "correlation", "unaligned words"],
        [[
            counted(sentences.size, "sentence"),
            f"{sentences.error:.4f}",
            "" if sentences.correlation is None else f"{sentences.correlation:.4f}",
            "" if sentences.unaligned is None else f"{sentences.unaligned:.1%}",
        ]],
    )  # fmt: skip
    write_line("")
    print_table(
        ["probability", "words", "mean", "right"],
        [
            [
                f"{one.least:.1f}-{one.most:.1f}",
                f"{one.size:,}",
                f"{one.mean:.3f}",
                f"{one.share:.3f}",
            ]
            for one in words.bins
        ],
    )


def _draw(config: CalibrateConfig, opened: Opened, split: str, beam: int, found: Measured) -> None:
    """Write the reliability diagram."""
    from nmtflex.figures.figures import reliability

    names = " + ".join(visible(run.resolve().name) for run in config.runs)
    caption = f"{names} · {split} · beam {beam}"
    if config.output is not None:
        write_figure(reliability(found.words, caption), config.output)
        note(f"wrote {config.output}")
