"""``nmtflex tokenize`` and ``nmtflex detokenize``: the text pipeline as filters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import DetokenizeConfig, TokenizeConfig, describe_tokenizer

if TYPE_CHECKING:
    from nmtflex.text.tokenizers import Tokenizer


@command(app, "tokenize")
def tokenize(config: TokenizeConfig) -> None:
    """Split raw lines from standard input into tokens, separated by spaces on standard output.

    Works as in preprocess with the same options, or with --wat as in WAT's scoring procedure.
    """
    _filter(_open(config).text)


@command(app, "detokenize")
def detokenize(config: DetokenizeConfig) -> None:
    """Restore raw lines from tokens that nmtflex tokenize wrote with the same options.

    Normalisation and width changes are not undone. No model is needed.
    """
    from nmtflex.text.tokenizers import build_restorer
    from nmtflex.text.wat import build_wat_restorer

    restore = build_wat_restorer(config.wat) if config.wat else build_restorer(_describe(config))
    _filter(restore)


def _open(config: TokenizeConfig) -> Tokenizer:
    """Build the tokenizer that the options specify."""
    from nmtflex.text.tokenizers import build_tokenizer
    from nmtflex.text.wat import build_segmenter, build_wat

    if config.wat is None:
        return build_tokenizer(_describe(config), config.kytea_model)
    if not config.segmenters:
        return build_wat(config.wat)
    return build_wat(config.wat, build_segmenter(_describe(config), config.kytea_model))


def _describe(config: DetokenizeConfig) -> dict[str, Any]:
    """Return the settings for ``build_tokenizer``; warn about a language without rules."""
    from nmtflex.text.tokenizers.moses import remark

    name = config.tokenizer or config.segmenter
    description = describe_tokenizer(name, config.lang, config.normalize, config)
    if said := remark(description):
        note(f"warning: {said}")
    return description


def _filter(change: Callable[[str], str]) -> None:
    """Filter standard input line by line, flushing each line before reading the next."""
    from nmtflex.corpus.readers import read_stream

    out = sys.stdout.buffer
    for line in read_stream(sys.stdin.buffer):
        out.write(change(line).encode() + b"\n")
        out.flush()
