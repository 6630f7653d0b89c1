"""From runs and options to a figure with its caption, for ``nmtflex plot``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from nmtflex.config import (
    AutoFigure,
    ByLengthFigure,
    Decoding,
    DeviceConfig,
    EncodingFigure,
    FigureConfig,
    FlexibleConfig,
    LearningFigure,
    MemoryConfig,
    ModelConfig,
    SecondsFigure,
    SentenceFigure,
    ShownConfig,
    TradeOffFigure,
)
from nmtflex.decoding.opening import Opened, open_ensemble
from nmtflex.decoding.traces import Numbers
from nmtflex.errors import OptionError, RunError
from nmtflex.evaluation.run_scores import chosen_split, read_split
from nmtflex.evaluation.runs import facts_of, model_facts, names, open_runs
from nmtflex.figures import figures
from nmtflex.figures.encoding import surface
from nmtflex.figures.learning import points, present
from nmtflex.figures.lengths import bleu_by_length, seconds_by_length
from nmtflex.figures.sentence import Looked, look_at
from nmtflex.figures.style import tell_apart
from nmtflex.figures.tradeoff import find_tables, read_points, table_facts
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.runs.limits import heads_in_mean, shown_in_words, threshold_value
from nmtflex.runs.origin import read_curve
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Report = Callable[[str], None]
NO_THRESHOLD = "no threshold"


def draw(
    paths: Sequence[Path],
    kind: FigureConfig,
    decoding: Decoding,
    report: Report,
    shown: ShownConfig | None = None,
) -> tuple[str, Figure]:
    """Draw a figure.

    Args:
        paths: Run folders; for a trade-off also tables of ``nmtflex sweep``.
        kind: What to draw.
        decoding: How to translate, if the figure needs translations.
        report: Called with messages for the user.
        shown: The layer and head whose attention is shown; without it the mean of all.

    Returns:
        The kind drawn, and the figure.

    Raises:
        OptionError: A run's mechanism lacks what the figure needs, or there is no such sentence.
        RunError: A folder is not a run, or lacks the data for the figure.
        DataError: A table or a split cannot be drawn.
    """
    if isinstance(kind, AutoFigure) and not kind.translates:
        tables = any(path.suffix == ".csv" for path in paths)
        kind = TradeOffFigure() if tables else LearningFigure()
    if isinstance(kind, SentenceFigure):
        return _sentence(paths[0], kind, decoding, report, shown)
    if isinstance(kind, EncodingFigure):
        return kind.kind, _encoding(paths[0])
    if isinstance(kind, LearningFigure):
        return kind.kind, _learning(paths, kind)
    if isinstance(kind, ByLengthFigure):
        return kind.kind, _by_length(paths, kind, decoding, report, shown)
    return kind.kind, _trade_off(paths)


def _sentence(
    path: Path,
    kind: SentenceFigure,
    decoding: Decoding,
    report: Report,
    shown: ShownConfig | None,
) -> tuple[str, Figure]:
    """Translate a sentence with a run, and draw its attention."""
    opened = open_ensemble([path], *decoding, shown)
    line, where = _line(opened, kind, report)
    looked = look_at(opened.translator, line)
    mechanism = opened.run.model_config.attention
    looked = looked._replace(slots=mechanism.slots, dots=mechanism.focus_in_words)
    run, *settings = facts_of(opened, names([path])[0], decoding).values()
    which = shown_in_words(opened.run.model, shown or ShownConfig())
    caption = " · ".join([run, where, *settings, *[which] * bool(which), looked.computed])
    name = kind.kind
    if isinstance(kind, AutoFigure):
        name = "attention" if looked.trace.beta is None else "memory"
    having = {"focus": looked.trace.focus is not None, "memory": mechanism.slots}
    if having.get(name) and heads_in_mean(opened.run.model, shown or ShownConfig()) > 1:
        raise OptionError(
            f"--kind {name} needs a single head, and {path} shows its {which}; choose one with "
            f"--layer N and --head N"
        )
    if name == "focus" and looked.trace.gate is not None and opened.tau is None:
        report("without --tau every position is computed: the window is the whole source")
    try:
        return name, _OF_SENTENCE[name](looked, caption)
    except _MissingError as missing:
        raise OptionError(
            f"--kind {name} needs {missing}; {path} has {mechanism.in_words()}"
        ) from None


class _MissingError(Exception):
    """A mechanism lacks something; the message says what, and which ones have it."""


def _need(part: Numbers | None, what: str) -> Numbers:
    if part is None:
        raise _MissingError(what)
    return part


def _attention(looked: Looked, caption: str) -> Figure:
    weights = "weights over source positions, which every mechanism but none has"
    return figures.attention(looked, _need(looked.trace.weights, weights), caption)


def _gate(looked: Looked, caption: str) -> Figure:
    gate = _need(looked.trace.gate, "a gate: --attention flexible or --attend-every gate")
    return figures.gate(looked, gate, caption)


def _focus(looked: Looked, caption: str) -> Figure:
    having = "a focus, which --attention flexible, local-m, local-p, monotonic and mocha have"
    focus = _need(looked.trace.focus, having)
    _need(looked.trace.window_start, having.replace("a focus", "a window"))
    return figures.focus(looked, focus, caption)


def _memory(looked: Looked, caption: str) -> Figure:
    slots = "memory slots, which --attention memory and abc have"
    alpha, beta = _need(looked.trace.alpha, slots), _need(looked.trace.beta, slots)
    return figures.memory(looked, alpha, beta, caption)


_OF_SENTENCE = {"attention": _attention, "gate": _gate, "focus": _focus, "memory": _memory}


def _line(opened: Opened, kind: SentenceFigure, report: Report) -> tuple[str, str]:
    """Return the sentence to draw, and its origin for the caption."""
    if kind.index is None:
        return kind.sentence or "", "a given sentence"
    split = chosen_split([opened.run.folder.path], kind.split, report)
    sources, _ = read_split(opened.run.folder.path, split)
    if kind.index >= len(sources):
        raise OptionError(
            f"--index {kind.index}: {split} of {opened.run.folder.path} has "
            f"{counted(len(sources), 'sentence')}, 0 to {len(sources) - 1}"
        )
    return sources[kind.index], f"{split}, sentence {kind.index}"


def _encoding(path: Path) -> Figure:
    config = read_run_config(RunFolder(path))
    attention = ModelConfig.from_dict(config["model"]).attention
    if not isinstance(attention, MemoryConfig) or not attention.position_encoding:
        off = " --no-position-encoding" if isinstance(attention, MemoryConfig) else ""
        raise OptionError(
            f"--kind encoding needs position encodings, which --attention memory has; {path} has "
            f"{attention.in_words()}{off}"
        )
    longest = config["data"]["longest_source"]
    caption = f"{names([path])[0]} · K = {attention.K} · longest source {longest} tokens"
    return figures.encoding(surface(attention.K, longest), caption)


def _learning(paths: Sequence[Path], kind: LearningFigure) -> Figure:
    facts, rows = [], []
    for path, name in zip(paths, names(paths), strict=True):
        config = read_run_config(RunFolder(path))
        model, beam = config["model"], config.get("train", {}).get("valid_beam")
        facts.append({
            "run": name,
            **model_facts(model),
            "split": "valid",
            "beam": f"beam {beam}" if beam else "",
            "tau": _validated_under(path, config),
        })
        rows.append(read_curve(RunFolder(path)))
    if all(fact["tau"] in ("", NO_THRESHOLD) for fact in facts):
        facts = [fact | {"tau": ""} for fact in facts]  # it distinguishes nothing
    metrics = present(list(zip(map(str, paths), rows, strict=True)), kind.metrics)
    labels, caption = tell_apart(facts)
    if any(points(one, metric, "train", False)[1] for one in rows for metric in metrics):
        caption += " · thin: training data"
    runs = list(zip(labels, rows, strict=True))
    return figures.learning(runs, metrics, kind.x == "time", caption)


def _validated_under(path: Path, config: dict[str, Any]) -> str:
    """Return the validation threshold of a run with flexible attention; "" for others."""
    if config["model"]["attention"]["kind"] != FlexibleConfig.kind:
        return ""
    tau = config.get("train", {}).get("tau") or "inf"
    try:
        value = threshold_value(str(tau), config["data"])
    except (ValueError, OptionError) as error:
        raise RunError(f"{RunFolder(path).config}: damaged: 'tau' is {tau!r}") from error
    return NO_THRESHOLD if math.isinf(value) else f"τ = {value:.4g}"


def _trade_off(paths: Sequence[Path]) -> Figure:
    tables = find_tables(paths)
    runs = names([table.parent for table in tables])
    facts = []
    for table, run in zip(tables, runs, strict=True):
        folder = RunFolder(table.parent)
        model = read_run_config(folder)["model"] if folder.config.exists() else None
        facts.append(table_facts(table, run) | model_facts(model) | {"file": ""})
    if any(facts.count(fact) > 1 for fact in facts):
        for fact, table in zip(facts, tables, strict=True):
            fact["file"] = table.stem
    labels, caption = tell_apart(facts)
    curves = list(zip(labels, map(read_points, tables), strict=True))
    return figures.trade_offs(curves, caption)


def _by_length(
    paths: Sequence[Path],
    kind: ByLengthFigure,
    decoding: Decoding,
    report: Report,
    shown: ShownConfig | None,
) -> Figure:
    """Translate a split with each run, and draw BLEU or seconds."""
    split = chosen_split(paths, kind.split, report)
    facts, measured = [], []
    for one, name in zip(open_runs(paths, decoding, shown), names(paths), strict=True):
        sources, references = read_split(one.run.folder.path, split)
        report(f"{one.run.folder.path}: translating {counted(len(sources), 'sentence')} of {split}")
        facts.append({**facts_of(one, name, decoding), "split": split})
        if isinstance(kind, SecondsFigure):
            facts[-1] |= {"batch": f"batches of {decoding.batch.batch_sentences}"}
            facts[-1] |= {"device": _place(one, decoding.device)}
            found = seconds_by_length(one.translator, sources, kind.lengths, kind.repeats)
        else:
            found = bleu_by_length(one.translator, sources, references, kind.lengths)
        measured.append(found)
    labels, caption = tell_apart(facts)
    runs = list(zip(labels, measured, strict=True))
    if isinstance(kind, SecondsFigure):
        title, axis = "Decoding time by source length", "decoding time (milliseconds a sentence)"
        return figures.by_length(runs, title, axis, caption, factor=1000)
    return figures.by_length(runs, "BLEU by source length", "BLEU (0 to 100)", caption)


def _place(opened: Opened, config: DeviceConfig) -> str:
    """Return the device and the number format."""
    device = str(opened.run.model.device)
    if device == "cpu":
        device += f" (threads: {torch.get_num_threads()})"
    return f"{device}, {config.dtype}"
