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
    run: Annotated[Path, typer.Argument(help="Run folder from nmtflex train.", metavar="RUN")],
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
    source: Annotated[Path | None, typer.Option(help="File with source lines.")] = None,
    target: Annotated[Path | None, typer.Option(help="File with their translations.")] = None,
    per_token: Annotated[
        bool,
        typer.Option("--per-token", help="Divide by the number of target tokens, including EOS."),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object per line, with both numbers and the tokens."
        ),
    ] = False,
) -> None:
    """Print the log-probabilities of given translations, one per line.

    Natural logarithms, including EOS. Reads --source and --target, or lines of source, tab, target
    from standard input. Lines are tokenized again; unknown words are scored as the unknown token.
    """
    from nmtflex.corpus.readers import STANDARD_INPUT, read_pairs, read_stream
    from nmtflex.decoding.forced import PairScore, score_pairs, split_columns
    from nmtflex.model.inference import make_ready
    from nmtflex.runs.limits import run_threshold, under
    from nmtflex.runs.opening import load_run

    if per_token and json:
        raise OptionError("--per-token has no effect with --json, which prints both numbers")
    if source and target:
        pairs = read_pairs(source, target)
    elif source or target:
        given, missing = ("source", "target") if source else ("target", "source")
        raise OptionError(f"--{given} {source or target} also needs --{missing} FILE")
    else:
        pairs = split_columns(read_stream(sys.stdin.buffer), STANDARD_INPUT)

    def as_text(index: int, pair: PairScore) -> str:
        if json:
            possible = math.isfinite(pair.log_probability)  # JSON has no infinity
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
