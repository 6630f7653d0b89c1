"""Options of translating and scoring, and of the device."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from nmtflex.config.base import Config, Opt
from nmtflex.config.processes import ProcessConfig

LOOP_TOKENS = 4  # in a row, which a loop repeats


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig(Config):
    """Device and number format."""

    device: Annotated[
        str, Opt("auto, cpu, cuda or cuda:N; auto uses a GPU if there is one.", may_change=True)
    ] = "auto"
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16"],
        Opt(
            "Number format. On a GPU, float32 matrix products use TF32. bfloat16 means autocast: "
            "fast on GPUs and on CPUs with AVX-512 BF16 or AMX, slow on other CPUs."
        ),
    ] = "float32"
    threads: Annotated[
        int,
        Opt(
            "CPU threads; 0 uses OMP_NUM_THREADS or all cores, divided among the processes.",
            ge=0,
            le=1024,
            may_change=True,
        ),
    ] = 0

    def validate(self) -> list[str]:
        """Check the device."""
        if re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            return []
        return [f"--device must be auto, cpu, cuda or cuda:N, not {self.device!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig(Config):
    """Beam search."""

    beam: Annotated[
        int, Opt("Beam size; 1 is greedy search (Shu and Nakayama: 20).", ge=1, le=1000)
    ] = 5
    length_penalty: Annotated[
        float,
        Opt(
            "Alpha in log-probability / length^alpha, where the length includes EOS; 0 turns it "
            "off.",
            ge=0,
            le=10,
        ),
    ] = 1.0
    no_repeat_ngram: Annotated[
        int,
        Opt(
            "Never repeat N tokens in a row within a translation, against loops in long outputs; 4 "
            "to 8 helped with paragraphs. 0: allow repeats.",
            ge=0,
            le=1000,
        ),
    ] = 0
    retry_loops: Annotated[
        bool,
        Opt(
            "Where a translation repeats itself up to the maximum length, search again without "
            "repeating 4 tokens in a row. All other translations stay as they are.",
            flag="--retry-loops",
        ),
    ] = False
    max_length: Annotated[
        int,
        Opt(
            "Longest output in tokens; 0 for --max-length-ratio x source tokens + 20.",
            ge=0,
            le=1_000_000,
            replaces=("max_length_ratio",),
        ),
    ] = 0
    max_length_ratio: Annotated[
        float,
        Opt(
            "Longest output in tokens for each source token, plus 20; a warning counts the outputs "
            "that reach it. Raise it for a target in characters.",
            gt=0,
            le=1000,
            replaces=("max_length",),
        ),
    ] = 3.0
    max_source_length: Annotated[
        int,
        Opt(
            "Longest source in tokens. The rest of a longer line is not translated, and a warning "
            "says so; --split sentences splits it instead. 0 for no limit. Time and memory grow "
            "with the length.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0
    replace_unk: Annotated[
        bool,
        Opt(
            "Replace each unknown word in the output with the source word that has the greatest "
            "attention weight.",
            flag="--replace-unk",
        ),
    ] = False
    unk: Annotated[
        str,
        Opt(
            "Text for an unknown word that is not replaced. Tokenizers that read the output, such "
            "as WAT's procedure and 13a, split <unk> into three words but keep UNK (Shu and "
            "Nakayama) as one."
        ),
    ] = "<unk>"

    def validate(self) -> list[str]:
        """Check that the text for an unknown word is one word, and the options of the length."""
        faults = []
        if self.unk.split() != [self.unk]:
            faults.append(f"--unk must be a word without spaces, not {self.unk!r}")
        idle = {}
        if self.max_length:
            fixed = f"with --max-length {self.max_length}, which sets the length"
            idle["max_length_ratio"] = fixed
        if 0 < self.no_repeat_ngram <= LOOP_TOKENS:
            size = self.no_repeat_ngram
            idle["retry_loops"] = f"with --no-repeat-ngram {size}, which leaves no loops"
        return faults + self.idle(idle)

    def longest_outputs(
        self, sources: Iterable[int], limits: Sequence[int] | None = None
    ) -> list[int]:
        """Return the most tokens of each translation.

        Args:
            sources: Source tokens of each sentence.
            limits: Most tokens of each translation, where fewer than these options say.
        """
        most = [self.max_length or int(self.max_length_ratio * source) + 20 for source in sources]
        return most if limits is None else list(map(min, most, limits))


ReuseBelow = Annotated[
    float | None,
    Opt(
        "Runs of --attend-every gate: steps whose gate is below this number, between 0 and 1, do "
        "not attend and take the last context again (default 0: all steps attend).",
        ge=0,
        le=1,
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdConfig(Config):
    """Thresholds of attention."""

    tau: Annotated[
        str | None,
        Opt(
            "flexible: score only source positions whose penalty is below this number; inf scores "
            "all of them; auto is -log10(1 / mean source length of the validation data), which is "
            "1.39 at 24.4 words (Shu and Nakayama: 1.38, or 1.2 for words and 1.0 for "
            "characters). To choose a value, use nmtflex sweep --split valid (default inf)."
        ),
    ] = None
    reuse_below: ReuseBelow = None

    def validate(self) -> list[str]:
        """Check the threshold."""
        return tau_fault(self.tau)


def tau_fault(tau: str | None, flag: str = "--tau") -> list[str]:
    """Return at most one fault of a threshold given as text."""
    if tau is None or tau == "auto":
        return []
    with contextlib.suppress(ValueError):
        if float(tau) >= 0:
            return []
    return [f"{flag} must be a number of at least 0, inf or auto, not {tau!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownConfig(Config):
    """Attention shown, of a decoder with several layers and heads."""

    layer: Annotated[
        int | None,
        Opt(
            "Show and align by the attention weights of this layer, counted from 1 among the "
            "decoder layers that attend (default: the mean of all).",
            ge=1,
        ),
    ] = None
    head: Annotated[
        int | None,
        Opt(
            "Show and align by the attention weights of this head, counted from 1 (default: the "
            "mean of all). Windows and memory slots exist only in a single head of a single layer.",
            ge=1,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig(Config):
    """Speed of decoding."""

    batch_sentences: Annotated[int, Opt("Sentences decoded together.", ge=1)] = 64
    int8: Annotated[
        bool,
        Opt(
            "CPU: compute the matrix products of the output layer, the recurrent cells and the "
            "transformer and SSRU layers in 8-bit integers, with one scale per row: faster, but "
            "rounded."
        ),
    ] = False


class Decoding(NamedTuple):
    """The option groups of translating, for commands that take all of them."""

    search: SearchConfig
    threshold: ThresholdConfig
    batch: BatchConfig
    device: DeviceConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputConfig(ProcessConfig):
    """Input and output of translate."""

    buffer: Annotated[
        int, Opt("Lines to read ahead and sort by length; memory use stays constant.", ge=1)
    ] = 4096
    workers: Annotated[
        int,
        Opt(
            "Worker processes for translating. The output order and the lines do not depend on "
            "their number. Unless --threads is given, they share the cores.",
            ge=1,
            le=1024,
        ),
    ] = 1
    n_best: Annotated[int, Opt("Hypotheses per sentence, at most the beam size.", ge=1)] = 1
    format: Annotated[
        Literal["text", "moses", "json"],
        Opt(
            "text: translations; moses: index ||| text ||| scores ||| total; json: one object per "
            "line."
        ),
    ] = "text"
    attention_output: Annotated[
        Path | None,
        Opt(
            "File for the attention of each sentence's best translation, one JSON object per "
            "line: source and target tokens, weights, gate, focus, window, score computations."
        ),
    ] = None
    alignment: Annotated[
        Path | None,
        Opt(
            "File for the word alignment of each translation, one line each: source-target pairs "
            "such as 0-0 2-1, words from 0, in Pharaoh's format; each target word is linked to "
            "the source word with the greatest attention weight."
        ),
    ] = None
    word_scores: Annotated[
        Path | None,
        Opt(
            "File for the scores of each translation, one JSON object per line: words, their "
            "places in the text, the probability that each is right, their mean, and the share of "
            "unaligned words. The run must have been calibrated: nmtflex calibrate RUN."
        ),
    ] = None
    stats: Annotated[
        bool,
        Opt(
            "Report the mean number of attention score computations per step (CPS) at the end.",
            flag="--stats",
        ),
    ] = False
    html: Annotated[
        bool,
        Opt(
            "Translate one HTML document, a page or a fragment, instead of lines: its tags go "
            "where attention says that their words went. Its texts are split into sentences.",
            flag="--html",
        ),
    ] = False
    html_attributes: Annotated[
        bool,
        Opt(
            "With --html: translate the attributes alt, title and placeholder too.",
            flag="--html-attributes",
        ),
    ] = False
    verbose: Annotated[
        bool,
        Opt(
            "For each word of the best translation, show on standard error which source word has "
            "the greatest attention weight; in colour on a terminal.",
            flag="--verbose",
        ),
    ] = False

    def validate(self) -> list[str]:
        """Check what an HTML document excludes."""
        faults = ProcessConfig.validate(self)
        if not self.html:
            return faults + self.idle({"html_attributes": "without --html"})
        lines = (
            "buffer", "workers", "processes", "n_best", "format", "attention_output", "alignment",
            "stats", "verbose",
        )  # fmt: skip
        why = "cannot be combined with --html, which translates one document"
        return faults + self.given(dict.fromkeys(lines, why))


@dataclass(frozen=True, kw_only=True, slots=True)
class ForcedConfig(Config):
    """Given translations."""

    run: Annotated[Path, Opt("Run folder from nmtflex train.", argument=True)]
    source: Annotated[Path | None, Opt("File with source lines.")] = None
    target: Annotated[Path | None, Opt("File with their translations.")] = None
    alignment: Annotated[
        Path | None,
        Opt(
            "File for the word alignment of each pair, one line each, as translate --alignment "
            "writes it."
        ),
    ] = None
    per_token: Annotated[
        bool,
        Opt("Divide by the number of target tokens, including EOS.", flag="--per-token"),
    ] = False
    json: Annotated[
        bool,
        Opt("Print one JSON object per line, with both numbers and the tokens.", flag="--json"),
    ] = False

    def validate(self) -> list[str]:
        """Check that both files are given or neither, and that none is overwritten."""
        faults = []
        named = {"source": self.source, "target": self.target}
        for (name, path), missing in zip(named.items(), ("target", "source"), strict=True):
            if path and not named[missing]:
                faults.append(f"--{name} {path} also needs --{missing} FILE")
            if path and self.alignment and path.resolve() == self.alignment.resolve():
                faults.append(
                    f"--alignment {self.alignment} is the --{name} file; choose another file"
                )
        if self.per_token and self.json:
            faults.append("--per-token has no effect with --json, which prints both numbers")
        return faults
