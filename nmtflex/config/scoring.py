"""Options of scoring."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nmtflex.config.base import Config, Opt

_SAMPLES = {"bootstrap": 1000, "randomisation": 10_000}
_SEED = 12345  # sacrebleu's
_OF_RUNS = "runs", "ensemble", "split", "output"  # options that have no effect on files
_OF_WAT = "wat", "kytea_model", "segmenter"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(Config):
    """What is scored, and what is reported."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folder; several are compared, or with --ensemble scored as one. Without one, give "
            "files.",
            argument=True,
            replaces=("hypothesis",),
        ),
    ] = dataclasses.field(default_factory=list)
    ensemble: Annotated[
        bool,
        Opt(
            "Score several runs as one, which averages their probabilities, as translate does.",
            flag="--ensemble",
        ),
    ] = False
    split: Annotated[
        str | None,
        Opt(
            "Split of the run's own data, valid or test (default test, or valid without one).",
            replaces=("source", "reference"),
        ),
    ] = None
    output: Annotated[Path | None, Opt("File for the run's translations.", also=("--out",))] = None
    hypothesis: Annotated[
        list[Path],
        Opt(
            "Translations, one a line, instead of a run; several files are several systems.",
            replaces=_OF_RUNS,
        ),
    ] = dataclasses.field(default_factory=list)
    reference: Annotated[
        list[Path],
        Opt(
            "References of --hypothesis, or of --source where a run translates it, one a line; "
            "several files are several references.",
            replaces=("split",),
        ),
    ] = dataclasses.field(default_factory=list)
    by_length: Annotated[
        bool,
        Opt(
            "BLEU of the sentences of 1-10, 11-20, ..., 41-50 and more source tokens apart: a "
            "run's own, before BPE, or the words of --source.",
            flag="--by-length",
        ),
    ] = False
    source: Annotated[
        Path | None,
        Opt(
            "File for a run to translate instead of its own split, with --reference; or what "
            "--hypothesis translates, for --by-length: white space separates its words.",
            replaces=("split",),
        ),
    ] = None
    significance: Annotated[
        Literal["bootstrap", "randomisation"] | None,
        Opt(
            "Mean and 95 % interval of each score, by bootstrap; of several runs or "
            "--hypothesis also the p-value that a system is as good as the first one: by paired "
            "bootstrap (Koehn 2004) or by approximate randomisation (Riezler and Maxwell 2005)."
        ),
    ] = None
    samples: Annotated[
        int | None,
        Opt(
            "Resamples of --significance (default 1000 for bootstrap, which takes 0.1 kB of memory "
            "a sentence and resample, and 10000 for randomisation).",
            ge=1,
            le=100_000,
        ),
    ] = None
    seed: Annotated[int | None, Opt(f"Seed of --significance (default {_SEED}).", ge=1)] = None
    sentence_scores: Annotated[
        Path | None,
        Opt(
            "File for the scores of each sentence, unrounded: tab-separated, with a header; BLEU "
            "smoothed, indices from 0, lengths in words."
        ),
    ] = None
    json: Annotated[
        bool, Opt("Print one JSON object, numbers unrounded, instead of tables.", flag="--json")
    ] = False

    @property
    def compared(self) -> bool:
        """Whether several runs are scored, each by itself."""
        return len(self.runs) > 1 and not self.ensemble

    @property
    def resampling(self) -> dict[str, Any] | None:
        """Method, number and seed of the resamples, defaults filled in."""
        if self.significance is None:
            return None
        samples = self.samples or _SAMPLES[self.significance]
        return {"method": self.significance, "samples": samples, "seed": self.seed or _SEED}

    def validate(self) -> list[str]:
        """Check that a run or files are given, and nothing without effect."""
        if not self.runs and not self.hypothesis and not self.reference:
            return ["give a run folder, or --hypothesis and --reference"]
        idle, needs = self._run_faults() if self.runs else self._file_faults()
        if self.significance is None:
            idle |= dict.fromkeys(("samples", "seed"), "has no effect without --significance")
        elif self.significance == "randomisation" and not (
            self.compared or len(self.hypothesis) > 1
        ):
            needs.append(
                "--significance randomisation compares systems: give several --hypothesis or "
                "several runs; bootstrap gives the interval of one"
            )
        return needs + self.given(idle)

    def _run_faults(self) -> tuple[dict[str, str], list[str]]:
        """Map what is idle beside a run to the reason; and say what is missing."""
        idle = {"hypothesis": f"is for scoring files, not a run ({self.runs[0]})"}
        needs = []
        if self.source is None:
            idle["reference"] = "of a run needs --source FILE, which it translates"
        elif not self.reference:
            idle["source"] = "of a run needs --reference FILE"
        else:
            idle["split"] = "is the run's own data, and does not go with --source"
        if self.compared:
            why = f"is for one run or an --ensemble, not for {len(self.runs)} runs"
            idle |= dict.fromkeys(("output", "sentence_scores"), why)
            twice = {run for run in self.runs if self.runs.count(run) > 1}
            needs += [f"{run} is given twice; give different runs to compare" for run in twice]
        if len(self.runs) == 1 and self.ensemble:
            needs.append(f"--ensemble needs several run folders, not only {self.runs[0]}")
        return idle, needs

    def _file_faults(self) -> tuple[dict[str, str], list[str]]:
        """Map what is idle where files are scored to the reason; and say what is missing."""
        idle = dict.fromkeys(("split", "output"), "is for a run, not for scoring files")
        needs = ["--ensemble is for runs, not for scoring files"] * self.ensemble
        if not self.reference:
            idle["hypothesis"] = "needs --reference"
        if not self.hypothesis:
            idle["reference"] = "needs --hypothesis"
        if not self.by_length:
            idle["source"] = "has no effect without --by-length"
        if len(self.hypothesis) > 1:
            idle["sentence_scores"] = f"is for one --hypothesis, not for {len(self.hypothesis)}"
        if self.by_length and self.source is None:
            needs.append("--by-length needs --source FILE, which was translated")
        return idle, needs


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreConfig(Config):
    """How it is scored."""

    tokenize: Annotated[
        Literal["13a", "char", "intl", "ja-mecab", "none", "zh"] | None,
        Opt(
            "Tokenizer of files, for BLEU and for the words of RIBES: sacrebleu's, or none, which "
            "parts at ASCII white space alone (default 13a); a run's own follows its target.",
            replaces=_OF_WAT,
        ),
    ] = None
    lowercase: Annotated[
        bool, Opt("Lower the case for BLEU and chrF.", flag="--lowercase", replaces=_OF_WAT)
    ] = False
    ribes: Annotated[
        bool, Opt("RIBES too (0-1), over the words that BLEU reads.", flag="--ribes")
    ] = False
    case_sensitive: Annotated[
        bool,
        Opt(
            "Keep case for RIBES; the official program lowers it without -c.",
            flag="--case-sensitive",
        ),
    ] = False
    ter: Annotated[
        bool,
        Opt(
            "TER too (percent of the reference's words, less is better): of lines under 13a, else "
            "over the words that BLEU reads.",
            flag="--ter",
        ),
    ] = False
    wat: Annotated[
        Literal["ja", "en"] | None,
        Opt(
            "BLEU and RIBES by the procedure of the Workshop on Asian Translation for this target "
            "language: its words of the raw lines, case kept, BLEU as multi-bleu.perl.",
            replaces=("tokenize", "lowercase"),
        ),
    ] = None
    kytea_model: Annotated[
        Path | None,
        Opt(
            "KyTea's model for --wat ja: a binary one, plain, gz, xz or zst (WAT: jp-0.4.2; of a "
            "run, default its own)."
        ),
    ] = None
    segmenter: Annotated[
        Literal["kytea", "mecab"] | None,
        Opt("Of --wat ja; mecab, with IPADIC, is a variant of the procedure (default kytea)."),
    ] = None

    @property
    def needs_model(self) -> bool:
        """Whether a model of KyTea is needed that is not given."""
        return self.wat == "ja" and self.segmenter != "mecab" and self.kytea_model is None

    def validate(self) -> list[str]:
        """Check that nothing is given without effect."""
        idle: dict[str, str] = {}
        if self.wat is not None:
            idle |= dict.fromkeys(("tokenize", "lowercase"), f"beside --wat {self.wat}")
        elif not self.ribes:
            idle["case_sensitive"] = "without --ribes or --wat"
        if self.wat != "ja":
            idle |= dict.fromkeys(("kytea_model", "segmenter"), "without --wat ja")
        elif self.segmenter == "mecab":
            idle["kytea_model"] = "beside --segmenter mecab"
        return self.given({name: f"has no effect {why}" for name, why in idle.items()})
