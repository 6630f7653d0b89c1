"""``nmtflex score``: log-probabilities of given translations (forced decoding)."""

from __future__ import annotations

import math
import sys
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import write_line
from nmtflex.config import BatchConfig, DeviceConfig, ThresholdConfig
from nmtflex.errors import OptionError


@command(app, "score")
def score(
    run: Annotated[Path, typer.Argument(help="Run folder of nmtflex train.", metavar="RUN")],
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
    source: Annotated[Path | None, typer.Option(help="File of source lines.")] = None,
    target: Annotated[Path | None, typer.Option(help="File of their translations.")] = None,
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Divide by the target's tokens, EOS counted.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="An object a line, with both numbers and the tokens.")
    ] = False,
) -> None:
    """Print the log-probability of given translations, one a line.

    Natural logarithm, EOS counted. Reads --source and --target, or from standard input lines of
    source, tab, target. A line is segmented anew, and unknown words count as the unknown token.
    """
    from nmtflex.corpus.readers import STANDARD_INPUT, read_pairs, read_stream
    from nmtflex.decoding.forced import PairScore, score_pairs, split_columns
    from nmtflex.model.inference import make_ready
    from nmtflex.runs.opening import load_run
    from nmtflex.runs.threshold import run_threshold, under

    if per_token and json:
        raise OptionError("--per-token has no effect with --json, which prints both numbers")
    if source and target:
        pairs = read_pairs(source, target)
    elif source or target:
        given, missing = ("source", "target") if source else ("target", "source")
        raise OptionError(f"--{given} {source or target} needs --{missing} FILE too")
    else:
        pairs = split_columns(read_stream(sys.stdin.buffer), STANDARD_INPUT)

    def as_text(index: int, pair: PairScore) -> str:
        if json:
            possible = math.isfinite(pair.log_probability)  # JSON knows no infinity
            return dumps({
                "index": index,
                "log_probability": pair.log_probability if possible else None,
                "per_token": pair.per_token if possible else None,
                "tokens": pair.tokens,
            })
        return f"{pair.per_token if per_token else pair.log_probability!r}"

    opened = load_run(run, device)
    model = under(opened, run_threshold(opened, threshold.tau))
    make_ready(opened.model, batch.int8)
    scores = score_pairs([model], opened.pipeline, pairs, batch.batch_sentences)
    for index, pair in enumerate(scores):
        write_line(as_text(index, pair))
