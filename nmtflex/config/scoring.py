"""Options of scoring."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nmtflex.config.base import Config, Opt
from nmtflex.config.shared import SPLIT

_SAMPLES = {"bootstrap": 1000, "randomisation": 10_000}
_SEED = 12345  # sacrebleu's
_OF_RUN = "split", "output", "gold_alignment", "gold_base"  # options that only apply to runs
_OF_WAT = "wat", "kytea_model", "segmenter"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(Config):
    """Evaluation."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders. Several runs are compared, or scored as one with --ensemble. Without a "
            "run, give --hypothesis and --reference.",
            argument=True,
            replaces=("hypothesis",),
        ),
    ] = dataclasses.field(default_factory=list)
    ensemble: Annotated[
        bool,
        Opt(
            "Score several runs as one, averaging their probabilities as translate does.",
            flag="--ensemble",
        ),
    ] = False
    split: Annotated[str | None, Opt(SPLIT, replaces=("source", "reference"))] = None
    output: Annotated[
        Path | None, Opt("File for the run's translations.", also=("--out", "-o"))
    ] = None
    hypothesis: Annotated[
        list[Path],
        Opt(
            "Translations to score instead of a run, one per line; several files are several "
            "systems.",
            replaces=("runs", "ensemble", *_OF_RUN),
        ),
    ] = dataclasses.field(default_factory=list)
    reference: Annotated[
        list[Path],
        Opt(
            "References for --hypothesis, or for --source when a run translates it, one per line; "
            "several files are several references.",
            replaces=("split",),
        ),
    ] = dataclasses.field(default_factory=list)
    by_length: Annotated[
        bool,
        Opt(
            "BLEU for sentences of 1-10, 11-20, ..., 41-50 and more source tokens: the run's own "
            "tokens before BPE, or the words of --source.",
            flag="--by-length",
        ),
    ] = False
    source: Annotated[
        Path | None,
        Opt(
            "File for a run to translate instead of its own split (needs --reference); or the "
            "source of --hypothesis, for --by-length, with words separated by whitespace.",
            replaces=("split",),
        ),
    ] = None
    gold_alignment: Annotated[
        Path | None,
        Opt(
            "Also report the alignment error rate (AER) of the run's attention, forced to the "
            "references, against this file: a line of links for each pair, such as 0-0 2p1, where "
            "p or ? marks a possible link."
        ),
    ] = None
    gold_base: Annotated[
        int, Opt("Number of the first word in --gold-alignment: 0 or 1.", ge=0, le=1)
    ] = 0
    significance: Annotated[
        Literal["bootstrap", "randomisation"] | None,
        Opt(
            "Mean and 95 % interval of each score, by bootstrap. With several runs or "
            "--hypothesis files, also the p-value of each against the first: by paired bootstrap "
            "(Koehn 2004) or approximate randomisation (Riezler and Maxwell 2005)."
        ),
    ] = None
    samples: Annotated[
        int | None,
        Opt(
            "Resamples for --significance (default 1000 for bootstrap, which needs 0.1 kB of "
            "memory per sentence and resample; 10000 for randomisation).",
            ge=1,
            le=100_000,
        ),
    ] = None
    seed: Annotated[int | None, Opt(f"Seed of --significance (default {_SEED}).", ge=1)] = None
    sentence_scores: Annotated[
        Path | None,
        Opt(
            "File for the unrounded scores of each sentence: tab-separated, with a header; "
            "smoothed BLEU, indices from 0, lengths in words."
        ),
    ] = None
    json: Annotated[
        bool, Opt("Print one JSON object with unrounded numbers instead of tables.", flag="--json")
    ] = False

    @property
    def compared(self) -> bool:
        """Whether several runs are scored separately."""
        return len(self.runs) > 1 and not self.ensemble

    @property
    def resampling(self) -> dict[str, Any] | None:
        """Method, number and seed of the resamples, with defaults."""
        if self.significance is None:
            return None
        samples = self.samples or _SAMPLES[self.significance]
        return {"method": self.significance, "samples": samples, "seed": self.seed or _SEED}

    def validate(self) -> list[str]:
        """Check that a run or files are given, and that every option has an effect."""
        if not self.runs and not self.hypothesis and not self.reference:
            return ["give a run folder, or --hypothesis and --reference"]
        idle, needs = self._run_faults() if self.runs else self._file_faults()
        if self.gold_alignment is None:
            idle["gold_base"] = "has no effect without --gold-alignment"
        elif len(self.reference) > 1:
            idle["gold_alignment"] = f"belongs to one --reference, not to {len(self.reference)}"
        if self.significance is None:
            idle |= dict.fromkeys(("samples", "seed"), "has no effect without --significance")
        elif self.significance == "randomisation" and not (
            self.compared or len(self.hypothesis) > 1
        ):
            needs.append(
                "--significance randomisation compares systems: give several runs or --hypothesis "
                "files, or use bootstrap for the interval of a single one"
            )
        return needs + self.given(idle)

    def _run_faults(self) -> tuple[dict[str, str], list[str]]:
        """Return reasons why options have no effect with runs, and what is missing."""
        idle = {"hypothesis": f"applies to scoring files, not to a run ({self.runs[0]})"}
        needs = []
        if self.source is None:
            idle["reference"] = "with a run needs --source FILE to translate"
        elif not self.reference:
            idle["source"] = "with a run needs --reference FILE"
        else:
            idle["split"] = "selects the run's own data, so it cannot be combined with --source"
        if self.compared:
            why = f"applies to one run or an --ensemble, not to {len(self.runs)} runs"
            idle |= dict.fromkeys(("output", "sentence_scores"), why)
            twice = {run for run in self.runs if self.runs.count(run) > 1}
            needs += [f"{run} is given twice; give different runs to compare" for run in twice]
        if len(self.runs) == 1 and self.ensemble:
            needs.append(f"--ensemble needs several run folders, not just {self.runs[0]}")
        return idle, needs

    def _file_faults(self) -> tuple[dict[str, str], list[str]]:
        """Return reasons why options have no effect with files, and what is missing."""
        idle = dict.fromkeys(_OF_RUN, "applies to a run, not to scoring files")
        needs = ["--ensemble applies to runs, not to scoring files"] * self.ensemble
        if not self.reference:
            idle["hypothesis"] = "needs --reference"
        if not self.hypothesis:
            idle["reference"] = "needs --hypothesis"
        if not self.by_length:
            idle["source"] = "has no effect without --by-length"
        if len(self.hypothesis) > 1:
            idle["sentence_scores"] = (
                f"applies to one --hypothesis file, not to {len(self.hypothesis)}"
            )
        if self.by_length and self.source is None:
            needs.append("--by-length needs --source FILE, the text that was translated")
        return idle, needs


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreConfig(Config):
    """Scores."""

    tokenize: Annotated[
        Literal["13a", "char", "intl", "ja-mecab", "none", "zh"] | None,
        Opt(
            "Tokenizer for scoring files, for BLEU and the words of RIBES: one of sacrebleu's, or "
            "none, which splits at ASCII whitespace only (default 13a). For a run, its target "
            "tokenizer decides.",
            replaces=_OF_WAT,
        ),
    ] = None
    lowercase: Annotated[
        bool, Opt("Lowercase the text for BLEU and chrF.", flag="--lowercase", replaces=_OF_WAT)
    ] = False
    ribes: Annotated[
        bool, Opt("Also report RIBES (0-1), on the same words as BLEU.", flag="--ribes")
    ] = False
    case_sensitive: Annotated[
        bool,
        Opt(
            "Keep case for RIBES; the official program lowercases unless given -c.",
            flag="--case-sensitive",
        ),
    ] = False
    ter: Annotated[
        bool,
        Opt(
            "Also report TER (percent of the reference's words; lower is better): on raw lines "
            "under 13a, otherwise on the same words as BLEU.",
            flag="--ter",
        ),
    ] = False
    wat: Annotated[
        Literal["ja", "en"] | None,
        Opt(
            "BLEU and RIBES by the procedure of the Workshop on Asian Translation (WAT) for this "
            "target language: raw lines split into WAT's words, case kept, BLEU as in "
            "multi-bleu.perl.",
            replaces=("tokenize", "lowercase"),
        ),
    ] = None
    kytea_model: Annotated[
        Path | None,
        Opt(
            "KyTea model for --wat ja: a binary file, plain or packed as gz, xz or zst (WAT: "
            "jp-0.4.2; default for a run: its own)."
        ),
    ] = None
    segmenter: Annotated[
        Literal["kytea", "mecab"] | None,
        Opt(
            "Word segmenter for --wat ja; mecab, with IPADIC, is a variant of WAT's procedure "
            "(default kytea)."
        ),
    ] = None

    @property
    def needs_model(self) -> bool:
        """Whether a KyTea model is needed but not given."""
        return self.wat == "ja" and self.segmenter != "mecab" and self.kytea_model is None

    def validate(self) -> list[str]:
        """Check that every option has an effect."""
        idle: dict[str, str] = {}
        if self.wat is not None:
            idle |= dict.fromkeys(("tokenize", "lowercase"), f"with --wat {self.wat}")
        elif not self.ribes:
            idle["case_sensitive"] = "without --ribes or --wat"
        if self.wat != "ja":
            idle |= dict.fromkeys(("kytea_model", "segmenter"), "without --wat ja")
        elif self.segmenter == "mecab":
            idle["kytea_model"] = "with --segmenter mecab"
        return self.idle(idle)
