"""``nmtflex eval``."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import note, print_table, write_line
from nmtflex.config import Decoding, EvalConfig, ScoreConfig, SearchConfig, ShownConfig
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file, check_writable
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from nmtflex.corpus.links import Links
    from nmtflex.decoding.opening import Opened
    from nmtflex.scoring.alignment import AlignmentScore
    from nmtflex.scoring.evaluation import Evaluation, Scorer
    from nmtflex.scoring.report import ScoreReport
    from nmtflex.scoring.texts import Text


class _Scored(NamedTuple):
    """Systems with their scores and other facts."""

    scorer: Scorer
    outputs: Mapping[str, Text]
    evaluations: Mapping[str, Evaluation]
    source_lengths: Sequence[int] | None  # tokens, if known
    facts: Mapping[str, dict[str, Any]]  # by system


class _Data(NamedTuple):
    """Sources for runs to translate, and their references."""

    name: str
    sources: list[str]
    references: list[tuple[str, list[str]]]  # file name and raw lines of each
    facts: dict[str, Any]
    gold: list[Links] | None  # links between sources and references, if given

    def pairs(self) -> list[tuple[str, str]]:
        """Return the sources with their only references."""
        return list(zip(self.sources, self.references[0][1], strict=True))


@command(app, "eval")
def evaluate(
    config: EvalConfig, scores: ScoreConfig, decoding: Decoding, shown: ShownConfig
) -> None:
    """Score a run on its own test data or on other files, or score files against references.

    Several runs are compared in a table with one row per run; --significance compares each with the
    first; --json prints a list with one object per run.

    Scores are BLEU and chrF2 (0-100) by sacrebleu; optionally TER (percent) and RIBES (0-1); and
    for runs CPS, the attention score computations per step. Each score has a signature; compare
    scores only if their signatures are equal. A run's BLEU is computed on its target words before
    BPE, or on detokenized text (13a) if these are Moses tokens.
    """
    _check_files(config)
    if not (decoding.search.replace_unk or config.gold_alignment):
        refuse("has no effect without --gold-alignment or --replace-unk", shown)
    if not config.runs:
        refuse("applies to translating with a run, not to scoring files", *decoding)
        scored = _score_files(config, scores)
    else:
        scored = _score_runs(config, scores, decoding, shown)
    written = _write_sentence_scores(scored, config.sentence_scores)
    report = _report(scored, config)
    _warn(scored, config)
    if config.json:
        found: Any
        if config.compared:
            found = [report.system_dict(name) | facts for name, facts in scored.facts.items()]
        else:
            found = report.to_dict() | next(iter(scored.facts.values())) | written
        write_line(json.dumps(found, ensure_ascii=False))
        return
    for number, table in enumerate(report.tables()):
        if number:
            write_line("")
        print_table(table.columns, table.rows)


def _score_files(config: EvalConfig, scores: ScoreConfig) -> _Scored:
    from nmtflex.scoring.bleu import lacks_spaces
    from nmtflex.scoring.evaluation import Scorer, check_parallel, file_segmentation, read_texts
    from nmtflex.scoring.texts import sacrebleu_segmentation

    if scores.needs_model:
        raise OptionError("--wat ja needs --kytea-model FILE")
    begin = time.perf_counter()
    segmentation = file_segmentation(scores)
    scorer = Scorer(segmentation, read_texts(config.reference, segmentation), scores)
    texts = read_texts(config.hypothesis, segmentation)
    lengths = None
    if config.source:
        (source,) = read_texts([config.source], sacrebleu_segmentation("none"))
        check_parallel(*((text.name, len(text)) for text in (source, *texts)))
        lengths = list(map(len, source.words))
        if lacks_spaces(source.lines):
            note(f"warning: {source.name}: text without spaces, so each line counts as one word")
    outputs = dict(zip(_names(config.hypothesis), texts, strict=True))
    evaluations = {name: scorer.evaluate(text) for name, text in outputs.items()}
    seconds = time.perf_counter() - begin
    facts = {name: {"seconds": seconds} for name in outputs}
    return _Scored(scorer, outputs, evaluations, lengths, facts)


def _score_runs(
    config: EvalConfig, scores: ScoreConfig, decoding: Decoding, shown: ShownConfig
) -> _Scored:
    """Translate with each run, or with all as an ensemble, and score the results."""
    from nmtflex.decoding.opening import open_ensemble
    from nmtflex.evaluation.run_scores import common_scorer, with_model
    from nmtflex.evaluation.runs import names, open_runs

    called = " + ".join(map(str, config.runs))
    if scores.tokenize:
        raise OptionError(
            f"--tokenize {scores.tokenize} applies to scoring files, not to a run ({called}), "
            f"which uses its target tokenizer"
        )
    if config.compared:
        named = names(config.runs)
        opened = open_runs(config.runs, decoding, shown)
    else:
        named = [called]
        opened = [open_ensemble(config.runs, *decoding, shown)]
    data = _test_data(config)
    scores = with_model(scores, opened[0].run.folder)
    systems = dict(zip(named, opened, strict=True))
    targets = {name: one.translator.pipeline.target for name, one in systems.items()}
    scorer = common_scorer(targets, data.references, scores)
    outputs, evaluations, facts = {}, {}, {}
    for name, one in systems.items():
        path = called if not config.compared else str(one.run.folder.path)
        outputs[name], evaluations[name], facts[name] = _score_run(
            one, path, scorer, data, decoding.search, config
        )
    source = opened[0].translator.pipeline.source
    lengths = [len(source.words(line)) for line in data.sources]
    return _Scored(scorer, outputs, evaluations, lengths, facts)


def _score_run(
    opened: Opened, path: str, scorer: Scorer, data: _Data, search: SearchConfig, config: EvalConfig
) -> tuple[Text, Evaluation, dict[str, Any]]:
    """Return a run's translations, its scores and other facts."""
    from nmtflex.corpus.writers import packed
    from nmtflex.decoding.cut_off import cut_off
    from nmtflex.evaluation.run_scores import evaluate_run

    alignment = _alignment(opened, data, config)
    if config.compared:  # so that one-time loading does not count for the first run
        opened.translator.warm_up(data.sources)
    begin = time.perf_counter()
    evaluation, output = evaluate_run(opened.translator, scorer, data.sources)
    seconds = time.perf_counter() - begin
    if config.output is not None:
        with atomic_file(config.output) as file, packed(file, config.output.suffix) as out:
            out.write("".join(f"{line}\n" for line in output.lines).encode())
    facts: dict[str, Any] = {"run": path}
    if not config.ensemble:
        facts["update"] = opened.run.update
    facts |= {**data.facts, "beam": search.beam, "seconds": seconds}
    update = "" if config.ensemble else f", update {opened.run.update:,}"
    note(
        f"{path}{update}: {counted(len(output), 'sentence')} of {data.name} translated with "
        f"beam {search.beam} and scored in {seconds:.1f} s"
    )
    if search.max_source_length:
        source = opened.translator.pipeline.source
        if cut := sum(source.unread(line) > 0 for line in data.sources):
            note(
                f"warning: {path}: --max-source-length {search.max_source_length} cut "
                f"{counted(cut, 'source')}; the rest was not translated"
            )
    if evaluation.truncated:
        subject = counted(evaluation.truncated, "translation")
        note(f"warning: {path}: {cut_off(subject, evaluation.looping, flags=True)}")
    if opened.tau is not None:  # JSON has no infinity
        facts["tau"] = opened.tau if math.isfinite(opened.tau) else "inf"
    if opened.reuse:
        facts["reuse_below"] = opened.reuse
    return output, evaluation._replace(alignment=alignment), facts


def _alignment(opened: Opened, data: _Data, config: EvalConfig) -> AlignmentScore | None:
    """Compare a run's alignments of the references with gold links, if there are some."""
    from nmtflex.evaluation.run_scores import score_alignment
    from nmtflex.runs.limits import check_aligned

    if config.gold_alignment is None or data.gold is None:
        return None
    check_aligned(opened.run, "--gold-alignment", opened.translator.aligned)
    path, base = config.gold_alignment, config.gold_base
    return score_alignment(opened.translator, data.pairs(), data.gold, path, base)


def _test_data(config: EvalConfig) -> _Data:
    """Read the data to score runs on: a split of their own, or files."""
    from nmtflex.corpus.readers import read_lines
    from nmtflex.corpus.store import raw_path
    from nmtflex.evaluation.run_scores import chosen_split
    from nmtflex.evaluation.runs import raw_split
    from nmtflex.scoring.evaluation import check_parallel

    if config.source is None:
        split = chosen_split(config.runs, config.split, note)
        _, sources, references = raw_split(config.runs, split)
        name = str(raw_path(config.runs[0], split, "target"))
        facts: dict[str, Any] = {"split": split}
        return _Data(split, sources, [(name, references)], facts, _gold(config, len(sources)))
    sources = list(read_lines(config.source))
    files = [(str(path), list(read_lines(path))) for path in config.reference]
    check_parallel((str(config.source), len(sources)), *((name, len(file)) for name, file in files))
    facts = {"source": str(config.source), "reference": [name for name, _ in files]}
    return _Data(str(config.source), sources, files, facts, _gold(config, len(sources)))


def _gold(config: EvalConfig, sources: int) -> list[Links] | None:
    """Read the gold links of as many pairs, if they are given."""
    from nmtflex.evaluation.run_scores import read_gold

    if config.gold_alignment is None:
        return None
    return read_gold(config.gold_alignment, config.gold_base, sources)


def _report(scored: _Scored, config: EvalConfig) -> ScoreReport:
    """Compare the systems and score by length, if requested."""
    from nmtflex.scoring.report import ScoreReport
    from nmtflex.scoring.significance import Resampling

    comparisons = []
    if config.resampling is not None:
        resampling = Resampling(**config.resampling)
        try:
            comparisons = scored.scorer.compare(scored.outputs, resampling)
        except MemoryError as error:
            raise OptionError(
                f"--significance {resampling.method} with {resampling.samples:,} resamples needs "
                f"more memory than available; reduce --samples"
            ) from error
    buckets = {}
    if config.by_length and scored.source_lengths is not None:
        lengths = scored.source_lengths
        buckets = {
            name: scored.scorer.by_length(output, lengths)
            for name, output in scored.outputs.items()
        }
    return ScoreReport(systems=scored.evaluations, comparisons=comparisons, buckets=buckets)


def _write_sentence_scores(scored: _Scored, path: Path | None) -> dict[str, Any]:
    """Write the scores of each sentence, if requested; return facts for JSON."""
    from nmtflex.scoring.report import sentence_table

    if path is None:
        return {}
    (output,) = scored.outputs.values()
    columns, signature = scored.scorer.by_sentence(output)
    if scored.source_lengths is not None:
        columns["source_length"] = scored.source_lengths
    with atomic_file(path) as file:
        file.write(sentence_table(columns).encode())
    note(f"{path}: scores of {counted(len(output), 'sentence')}; BLEU {signature}")
    return {"sentence_scores": str(path), "sentence_bleu_signature": signature}


def _warn(scored: _Scored, config: EvalConfig) -> None:
    """Warn about the first system whose text was probably split into words wrongly."""
    remedy = "--tokenize ja-mecab or char" if not config.runs else "the tokenizer mecab or char"
    for output in scored.outputs.values():
        if name := scored.scorer.unspaced(output):
            note(
                f"warning: {name}: text without spaces, so BLEU took each line for one word; use "
                f"{remedy}, or --wat ja"
            )
            return
        if not config.runs and (name := scored.scorer.tokenized(output)):
            note(
                f"warning: {name}: looks tokenized, but BLEU tokenized it again; score detokenized "
                f"text, or use --tokenize none"
            )
            return


def _check_files(config: EvalConfig) -> None:
    """Check first that output files can be written and overwrite no other file."""
    for run in config.runs:
        if run.is_file():
            raise OptionError(
                f"{run} is a file, not a run; to score files, use --hypothesis {run} "
                f"--reference FILE"
            )
    written = {"--output": config.output, "--sentence-scores": config.sentence_scores}
    read = (*config.hypothesis, *config.reference, config.source, config.gold_alignment)
    others = [path for path in read if path]
    for flag, path in written.items():
        if path is None:
            continue
        if path.resolve() in [other.resolve() for other in others]:
            raise OptionError(
                f"{flag} {path} is also given for another option; choose another file"
            )
        check_writable(path, flag)
        others.append(path)


def _names(paths: Sequence[Path]) -> list[str]:
    """Return a unique name for each file, even if one is given twice."""
    counts: dict[Path, int] = {}
    names = []
    for path in paths:
        counts[path] = counts.get(path, 0) + 1
        names.append(str(path) if counts[path] == 1 else f"{path} ({counts[path]})")
    return names
