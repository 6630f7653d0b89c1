"""What scores read: the lines of an output or a reference, and their words.

The segmentation of a text without spaces changes BLEU by points. So BLEU and RIBES read the same
words, and their signatures name the segmenter, its version and its model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from sacrebleu.metrics.bleu import BLEU

from nmtflex.config import ScoreConfig
from nmtflex.errors import DataError
from nmtflex.text.tokenizers import NoneTokenizer
from nmtflex.text.wat import build_segmenter, build_wat

if TYPE_CHECKING:
    from nmtflex.text.pipeline import SidePipeline
    from nmtflex.text.tokenizers import Tokenizer


class Text:
    """The output of a system, or a reference.

    Args:
        name: Its file, for messages.
        lines: Raw lines.
        words: The words of each line, or a function from a line to its words, called when needed.
    """

    def __init__(
        self,
        name: str,
        lines: Sequence[str],
        words: Sequence[Sequence[str]] | Callable[[str], Sequence[str]],
    ) -> None:
        self.name = name
        self.lines = lines
        self._words = words

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def words(self) -> Sequence[Sequence[str]]:
        """The words of each line."""
        return list(map(self._words, self.lines)) if callable(self._words) else self._words


class Segmentation(NamedTuple):
    """How lines become words.

    Args:
        words: A function from a raw line to its words.
        signature: Names segmenter, version and model.
        tokenize: The tokenizer of sacrebleu that is used; None for others, and BLEU gets words.
        at_spaces: Whether a line without spaces is one word.
        wat: Whether the words are those of the WAT procedure.
    """

    words: Callable[[str], Sequence[str]]
    signature: str
    tokenize: str | None = None
    at_spaces: bool = False
    wat: bool = False

    def text(self, name: str, lines: Sequence[str]) -> Text:
        """Return lines as a text with these words."""
        return Text(name, lines, self.words)


def sacrebleu_segmentation(tokenize: str) -> Segmentation:
    """Return the words of a tokenizer of sacrebleu, or of "none": at ASCII white space.

    Raises:
        DataError: The tokenizer needs a package that is not installed.
    """
    if tokenize == "none":
        plain = NoneTokenizer()
        return Segmentation(plain.tokenize, plain.signature(), tokenize, at_spaces=True)
    try:
        tokenizer = BLEU(tokenize=tokenize).tokenizer
    except (ImportError, RuntimeError) as error:
        raise DataError(
            f"--tokenize {tokenize} needs MeCab and IPADIC; run pip install mecab-python3 ipadic"
        ) from error
    return Segmentation(
        lambda line: tokenizer(line).split(),
        f"segmenter:{tokenizer.signature()}-sacrebleu-{version('sacrebleu')}",
        tokenize,
        at_spaces=tokenize in ("13a", "intl"),
    )


def wat_segmentation(config: ScoreConfig) -> Segmentation:
    """Return the words that WAT scores.

    Raises:
        DataError: A package or the model is missing or unusable.
        OptionError: ``--wat`` is not given.
    """
    segmenter = None
    if config.wat == "ja":
        segmenter = build_segmenter({"name": config.segmenter or "kytea"}, config.kytea_model)
    return _of(build_wat(str(config.wat), segmenter))._replace(wat=True)


def run_segmentation(target: SidePipeline) -> Segmentation:
    """Return the words of a run's target: Moses text is detokenised, then split by 13a."""
    moses = target.tokenizer.name == "moses"
    return sacrebleu_segmentation("13a") if moses else _of(target.tokenizer)


def _of(tokenizer: Tokenizer) -> Segmentation:
    at_spaces = tokenizer.name == "none"
    return Segmentation(tokenizer.words, tokenizer.signature(), at_spaces=at_spaces)
