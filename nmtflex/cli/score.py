"""``nmtflex score``: log-probabilities of given translations (forced decoding)."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Iterator
from json import dumps
from typing import TYPE_CHECKING

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import write_line
from nmtflex.config import BatchConfig, DeviceConfig, ForcedConfig, ShownConfig, ThresholdConfig

if TYPE_CHECKING:
    from nmtflex.decoding.forced import PairScore


@command(app, "score")
def score(
    given: ForcedConfig,
    threshold: ThresholdConfig,
    shown: ShownConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> None:
    """Print the log-probabilities of given translations, one per line; align their words.

    Natural logarithms, including EOS. Reads --source and --target, or lines of source, tab, target
    from standard input. Lines are tokenized again; unknown words are scored as the unknown token.
    """
    from nmtflex.corpus.writers import open_lines
    from nmtflex.decoding.batching import buffers
    from nmtflex.decoding.forced import BUFFER, score_pairs
    from nmtflex.decoding.links import align_pairs, pharaoh_line
    from nmtflex.model.inference import make_ready
    from nmtflex.runs.limits import check_aligned, run_reuse, run_threshold, under
    from nmtflex.runs.opening import load_run

    if given.alignment is None:
        refuse("has no effect without --alignment", shown)
    pairs = _pairs(given)
    opened = load_run(given.run, device)
    if given.alignment is not None:
        check_aligned(opened, "--alignment")
    (reuse,) = run_reuse([opened], threshold.reuse_below)
    models = [under(opened, run_threshold(opened, threshold.tau), shown, reuse)]
    make_ready(opened.model, batch.int8)
    numbers = itertools.count()
    with contextlib.ExitStack() as files:
        links = files.enter_context(open_lines(given.alignment)) if given.alignment else None
        for buffer in buffers(pairs, BUFFER):
            for pair in score_pairs(models, opened.pipeline, buffer, batch.batch_sentences):
                write_line(_text(next(numbers), pair, given))
            if links is not None:
                found = align_pairs(models, opened.pipeline, buffer, batch.batch_sentences)
                links.write("".join(map(pharaoh_line, found)).encode())


def _pairs(given: ForcedConfig) -> Iterator[tuple[str, str]]:
    """Read the raw lines of the sources and their translations."""
    from nmtflex.corpus.readers import STANDARD_INPUT, read_pairs, read_stream
    from nmtflex.decoding.forced import split_columns

    if given.source and given.target:
        return read_pairs(given.source, given.target)
    return split_columns(read_stream(sys.stdin.buffer), STANDARD_INPUT)


def _text(index: int, pair: PairScore, given: ForcedConfig) -> str:
    """Return the line about a pair."""
    if given.json:
        possible = math.isfinite(pair.log_probability)  # JSON has no infinity
        return dumps({
            "index": index,
            "log_probability": pair.log_probability if possible else None,
            "per_token": pair.per_token if possible else None,
            "tokens": pair.tokens,
        })
    return f"{pair.per_token if given.per_token else pair.log_probability!r}"
