"""``nmtflex eval``."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, print_table, write_line
from nmtflex.config import (
    BatchConfig,
    Config,
    DeviceConfig,
    EvalConfig,
    SearchConfig,
    ThresholdConfig,
    flag_of,
    options_of,
)
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file

if TYPE_CHECKING:
    from nmtflex.scoring.evaluation import Evaluation


@command(app, "eval")
def evaluate(
    config: EvalConfig,
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> None:
    """Score a run on its own test data, or one file against another, with BLEU and chrF."""
    if config.run is None:
        _refuse(search, threshold, batch, device)
        evaluation, facts = _evaluate_files(*config.files, config.tokenize or "13a")
    else:
        evaluation, facts = _evaluate_run(config.run, config, search, threshold, batch, device)
    if evaluation.unspaced:
        remedy = (
            "--tokenize ja-mecab or char" if config.run is None else "the tokenizer mecab or char"
        )
        note(f"warning: text without spaces, which BLEU took for single words; use {remedy}")
    if config.json:
        write_line(json.dumps(evaluation.to_dict() | facts, ensure_ascii=False))
    else:
        scores = {"BLEU": evaluation.bleu, "chrF2": evaluation.chrf}
        rows = [(name, f"{score.value:.2f}", score.signature) for name, score in scores.items()]
        if evaluation.cps is not None:
            rows.append(("CPS", f"{evaluation.cps:.2f}", "score computations a step"))
        if evaluation.encoding_computations:
            rows.append((
                "encoding",
                f"{evaluation.encoding_computations:.1f}",
                "score computations a sentence, once",
            ))
        print_table(("metric", "score", "signature"), rows)


def _evaluate_files(
    hypothesis: Path, reference: Path, tokenize: str
) -> tuple[Evaluation, dict[str, Any]]:
    from nmtflex.scoring.evaluation import evaluate_files

    begin = time.perf_counter()
    evaluation = evaluate_files(hypothesis, reference, tokenize)
    return evaluation, {"seconds": time.perf_counter() - begin}


def _evaluate_run(
    path: Path,
    config: EvalConfig,
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> tuple[Evaluation, dict[str, Any]]:
    from nmtflex.decoding.translator import open_translator
    from nmtflex.scoring.evaluation import evaluate_run, read_split

    output = config.output
    if output is not None and not output.parent.is_dir():
        raise OptionError(f"--output {output}: there is no folder {output.parent}")
    run, translator, tau = open_translator(path, search, threshold, batch, device)
    split = config.split or "test"
    sources, references = read_split(run.folder.raw, split)
    begin = time.perf_counter()
    evaluation, lines = evaluate_run(translator, sources, references)
    seconds = time.perf_counter() - begin
    if output is not None:
        with atomic_file(output) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    note(
        f"{path}, update {run.update:,}: {len(lines):,} sentences of {split} translated with "
        f"beam {search.beam} and scored in {seconds:.1f} s"
    )
    facts = {"run": str(path), "update": run.update, "split": split, "beam": search.beam}
    if tau is not None:
        facts["tau"] = tau if math.isfinite(tau) else "inf"  # JSON knows no infinity
    return evaluation, {**facts, "seconds": seconds}


def _refuse(*groups: Config) -> None:
    """Refuse options of translation where nothing is translated."""
    for group in groups:
        for name, (_, option) in options_of(type(group)).items():
            if (value := getattr(group, name)) != getattr(type(group)(), name):
                raise OptionError(
                    f"{flag_of(name, option)} {value} is for translating with a run, "
                    f"not for scoring two files"
                )
