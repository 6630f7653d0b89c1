"""The data of a report: one object for the page, and one line of attention a sentence.

``assets`` reads them in the form that ``collect`` returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmtflex.bench.stopwatch import Stopwatch
from nmtflex.config import Decoding, ScoreConfig, ShownConfig
from nmtflex.corpus.store import raw_path
from nmtflex.decoding.opening import Opened
from nmtflex.decoding.traces import Numbers, SentenceTrace
from nmtflex.decoding.translation import Translation
from nmtflex.evaluation.run_scores import (
    run_scorer,
    score_translated,
    translate_lines,
    with_model,
)
from nmtflex.evaluation.runs import facts_of, names, open_runs, raw_split
from nmtflex.figures.sentence import shown_tokens
from nmtflex.figures.tradeoff import find_tables, read_points, table_facts
from nmtflex.report.info import count_parameters
from nmtflex.report.settings import settings
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.limits import heads_in_mean, shown_in_words
from nmtflex.runs.origin import read_curve
from nmtflex.scoring.significance import Resampling
from nmtflex.text.visible import counted


@dataclass(frozen=True, kw_only=True)
class ReportTask:
    """What to collect.

    Args:
        split: "valid" or "test".
        sentences: How many to trace, from the start of the split.
        scores: Which, and how.
        decoding: How to translate.
        shown: The layer and head whose attention is shown.
    """

    split: str
    sentences: int
    scores: ScoreConfig
    decoding: Decoding
    shown: ShownConfig


class Collected(NamedTuple):
    """The data of the page."""

    report: dict[str, Any]
    traces: list[str]  # one JSON text a sentence: a list with one entry a run


class _OfRun(NamedTuple):
    """The data of one run."""

    report: dict[str, Any]
    hypotheses: list[dict[str, Any]]  # one a shown sentence
    traces: list[dict[str, Any] | None]  # one a shown sentence


def collect(
    paths: Sequence[Path], wanted: ReportTask, report: Callable[[str], None] = lambda _: None
) -> Collected:
    """Translate a split with each run, score it, and collect the rest of the runs' data.

    Args:
        paths: Run folders.
        wanted: What to collect.
        report: Called with messages for the user.

    Raises:
        OptionError: The runs have different data, or cannot do what the options ask.
        RunError: A folder is not a run, or does not have the split.
        DataError: A split, a metrics file or a table of a sweep is damaged.
    """
    opened = open_runs(paths, wanted.decoding, wanted.shown)
    _, sources, references = raw_split(paths, wanted.split)
    shown = min(wanted.sentences, len(sources))
    found = []
    for one, name in zip(opened, names(paths), strict=True):
        report(
            f"{one.run.folder.path}: translating {counted(len(sources), 'sentence')} of "
            f"{wanted.split}"
        )
        found.append(_of_run(one, name, sources, references, wanted))
    sentences = [
        {
            "index": index,
            "source": sources[index],
            "reference": references[index],
            "hypotheses": [run.hypotheses[index] for run in found],
        }
        for index in range(shown)
    ]
    return Collected(
        report={
            "split": wanted.split,
            "source_lang": opened[0].run.pipeline.source.language,
            "target_lang": opened[0].run.pipeline.target.language,
            "split_sentences": len(sources),
            "sentence_count": shown,
            "settings": settings([one.run.config for one in opened]),
            "runs": [run.report for run in found],
            "sentences": sentences,
        },
        traces=[
            json.dumps([run.traces[index] for run in found], ensure_ascii=False)
            for index in range(shown)
        ],
    )


def _of_run(
    opened: Opened, name: str, sources: Sequence[str], references: Sequence[str], wanted: ReportTask
) -> _OfRun:
    run, translator = opened.run, opened.translator
    file = str(raw_path(run.folder.path, wanted.split, "target"))
    scores = with_model(wanted.scores, run.folder)
    scorer = run_scorer(translator.pipeline.target, file, references, scores)
    translator.warm_up(sources)
    with Stopwatch(run.model) as clock:
        translated = translate_lines(translator, sources)
    evaluation, output = score_translated(scorer, translated)
    intervals = {row.metric: row for row in scorer.compare({name: output}, Resampling())}
    lengths = [len(translator.pipeline.source.words(line)) for line in sources]
    by_sentence, _ = scorer.by_sentence(output)
    best = translated.best[: wanted.sentences]
    return _OfRun(
        report={
            "name": name,
            "description": _description(opened, wanted),
            "parameters": (count_parameters(run.folder) or {}).get("all"),
            "learning": _learning(run.folder),
            "scores": [
                {
                    "metric": metric,
                    "value": score.value,
                    "interval": list(intervals[metric].interval),
                    "signature": intervals[metric].signature,
                }
                for metric, score in evaluation.scores.items()
            ],
            "cost": {
                "cps": evaluation.cps,
                "cps_total": evaluation.cps_total,
                "encoding_computations": evaluation.encoding_computations,
                "decoding_seconds": evaluation.decoding_seconds,
                "source_tokens": float(np.mean(lengths)),
                "sentences": len(sources),
            },
            "sweeps": _sweeps(run.folder),
            "lengths": [
                {
                    "label": bucket.label,
                    "sentences": bucket.sentences,
                    "bleu": None if bucket.score is None else bucket.score.value,
                }
                for bucket in scorer.by_length(output, lengths)
            ],
            "time": [{"part": part, "seconds": taken} for part, taken in clock.seconds.items()],
        },
        hypotheses=[
            {
                "text": one.text,
                "score": one.score,
                "bleu": by_sentence["bleu"][index],
                "chrf": by_sentence["chrf"][index],
            }
            for index, one in enumerate(best)
        ],
        traces=_traces(opened, wanted.shown, sources[: wanted.sentences], best),
    )


def _description(opened: Opened, wanted: ReportTask) -> str:
    """Return a run's facts in words: mechanism, decoder, beam, update and the heads shown."""
    _, *facts = facts_of(opened, "", wanted.decoding).values()
    which = shown_in_words(opened.run.model, wanted.shown)
    return " · ".join([*facts, *[f"attention shown: {which}"] * bool(which)])


def _learning(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the rows of a run's metrics; none without a metrics file."""
    if not folder.metrics.is_file():
        return []
    return [
        {"update": row.update, "seconds": row.seconds, "split": row.split, **row.values}
        for row in read_curve(folder)
    ]


def _sweeps(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the sweeps in a run's folder."""
    if not any(folder.path.glob("sweep-*.csv")):
        return []
    found = []
    for table in find_tables([folder.path]):
        facts = table_facts(table, "")
        points = [
            point._asdict() | ({"tau": None} if point.tau == float("inf") else {})
            for point in read_points(table)
        ]
        found.append({"split": facts["split"], "beam": facts["beam"], "points": points})
    return found


def _traces(
    opened: Opened, shown: ShownConfig, lines: Sequence[str], best: Sequence[Translation]
) -> list[dict[str, Any] | None]:
    """Return what attention looked at in each line, weights in thousandths; None if empty."""
    translator, heads = opened.translator, heads_in_mean(opened.run.model, shown)
    found: list[dict[str, Any] | None] = []
    for line, one, trace in zip(lines, best, translator.traces(lines, best), strict=True):
        if trace is None:
            found.append(None)
            continue
        source, target = shown_tokens(translator.pipeline, line, one.tokens)
        more = {"source": source, "target": target, "heads": heads}
        found.append(more | _rounded(trace))
    return found


def _rounded(trace: SentenceTrace) -> dict[str, Any]:
    """Return a trace for JSON."""

    def weights(part: Numbers | None) -> Any:
        return None if part is None else np.rint(1000 * part).astype(int).tolist()

    def numbers(part: Numbers | None) -> Any:
        return None if part is None else np.round(part, 3).tolist()

    shares = {"weights", "alpha", "beta"}
    return {
        name: (weights if name in shares else numbers)(part)
        for name, part in trace._asdict().items()
    }
