"""Options for preparing corpora."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from nmtflex.config.base import Config, Opt
from nmtflex.config.text import (
    KYTEA_MODEL,
    NORMALIZATIONS,
    OPTIONS,
    Aggressive,
    Escape,
    MecabDictionary,
    Normalization,
    TokenizerName,
)

_LEARNED = (  # options fixed by --like
    "source_tokenizer", "target_tokenizer", "source_normalize", "target_normalize",
    "aggressive", "escape", "mecab_dictionary", "kytea_model", "bpe", "bpe_sample",
    "sentencepiece", "source_sentencepiece", "target_sentencepiece", "sentencepiece_type",
    "byte_fallback", "segmented", "joint", "source_vocabulary", "target_vocabulary",
    "min_frequency",
)  # fmt: skip
FEWEST_PIECES = 4  # SentencePiece counts <unk>, <s> and </s>
_NUMBER = re.compile("-?[0-9]{1,18}")
_SENTENCEPIECE = ("sentencepiece", "source_sentencepiece", "target_sentencepiece")


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessConfig(Config):
    """Preprocessing of parallel text."""

    out: Annotated[Path, Opt("Prepared folder to create.")]
    source_lang: Annotated[
        str, Opt("Suffix of the source files, such as en for corpus/train.en; en or ja for ASPEC.")
    ]
    target_lang: Annotated[str, Opt("Suffix of the target files; ja or en for ASPEC.")]
    format: Annotated[
        Literal["plain", "aspec"],
        Opt(
            "plain: two files with one sentence per line, named by prefix and language; aspec: "
            "the original ASPEC-JE files, with fields separated by |||."
        ),
    ] = "plain"
    train: Annotated[
        list[Path],
        Opt(
            "Corpus prefix, such as corpus/train, or ASPEC file, such as train-1.txt. May be "
            "repeated; files are read in the order given."
        ),
    ] = dataclasses.field(default_factory=list)
    valid: Annotated[Path | None, Opt("The same for the validation split; one only.")] = None
    test: Annotated[Path | None, Opt("The same for the test split; one only.")] = None
    guided_alignment: Annotated[
        list[Path],
        Opt(
            "Word links of a --train corpus, for train --guided-weight: a line for each pair, such "
            "as 0-0 2-1, in Pharaoh's format, as fast_align writes it for the tokenized text. Give "
            "one file for each --train, in the same order."
        ),
    ] = dataclasses.field(default_factory=list)
    valid_alignment: Annotated[
        Path | None,
        Opt("The same for --valid: validations then report the alignment loss."),
    ] = None
    max_pairs: Annotated[
        int,
        Opt(
            "Read only the first N training pairs, counted over all --train files before any "
            "filter; 0 for all (Shu and Nakayama: 1500000).",
            ge=0,
        ),
    ] = 0
    source_tokenizer: Annotated[
        TokenizerName, Opt("Tokenizer of the source; none splits at ASCII whitespace only.")
    ] = "none"
    target_tokenizer: Annotated[
        TokenizerName, Opt("Tokenizer of the target; none splits at ASCII whitespace only.")
    ] = "none"
    source_normalize: Annotated[
        Normalization, Opt(f"Unicode normalisation before tokenizing. {NORMALIZATIONS}")
    ] = "none"
    target_normalize: Annotated[Normalization, Opt("The same for the target.")] = "none"
    aggressive: Aggressive = False
    escape: Escape = True
    mecab_dictionary: MecabDictionary = "ipadic"
    kytea_model: Annotated[Path | None, Opt(f"{KYTEA_MODEL} It is copied into the folder.")] = None
    bpe: Annotated[
        int,
        Opt(
            "BPE merges, learned by subword-nmt; 0 for words (Britz et al.: 16000).",
            ge=0,
            replaces=(*_SENTENCEPIECE, "segmented"),
        ),
    ] = 0
    sentencepiece: Annotated[
        str | None,
        Opt(
            "Instead of --bpe: number of SentencePiece pieces to learn, such as 8000, counted as "
            "spm_train counts them, or a .model file to use on both sides.",
            replaces=("bpe", "segmented", "source_sentencepiece", "target_sentencepiece"),
        ),
    ] = None
    source_sentencepiece: Annotated[
        str | None,
        Opt("The same for the source only.", replaces=("bpe", "segmented", "sentencepiece")),
    ] = None
    target_sentencepiece: Annotated[
        str | None,
        Opt("The same for the target only.", replaces=("bpe", "segmented", "sentencepiece")),
    ] = None
    sentencepiece_type: Annotated[
        Literal["unigram", "bpe"],
        Opt("Type of the SentencePiece model to learn; train --subword-alpha needs unigram."),
    ] = "unigram"
    byte_fallback: Annotated[
        bool,
        Opt(
            "SentencePiece: write characters that have no piece as their bytes, so that none is "
            "unknown; 256 of the pieces are bytes.",
            flag="--byte-fallback/--no-byte-fallback",
        ),
    ] = True
    segmented: Annotated[
        Literal["bpe", "sentencepiece"] | None,
        Opt(
            "The files already contain subwords, as BPE (wor@@ d) or SentencePiece (▁wor d) "
            "writes them: nothing is split; input stays segmented, and output is joined.",
            replaces=("bpe", *_SENTENCEPIECE),
        ),
    ] = None
    bpe_sample: Annotated[
        int,
        Opt(
            "Training pairs to learn BPE or SentencePiece from, spread evenly over those kept; 0 "
            "for all.",
            ge=0,
        ),
    ] = 1_000_000
    joint: Annotated[
        bool,
        Opt(
            "Learn subwords and build the vocabulary on both sides together.",
            flag="--joint/--separate",
        ),
    ] = False
    source_vocabulary: Annotated[
        int,
        Opt("Keep the N most frequent source tokens; 0 keeps all (Shu and Nakayama: 80000).", ge=0),
    ] = 0
    target_vocabulary: Annotated[
        int,
        Opt("Keep the N most frequent target tokens; 0 keeps all (Shu and Nakayama: 40000).", ge=0),
    ] = 0
    min_frequency: Annotated[int, Opt("Keep only tokens that occur at least N times.", ge=1)] = 1
    max_length: Annotated[
        int | None,
        Opt(
            "Longest training sentence on either side, in tokens before subwords; 0 for no limit "
            "(default 100, or 500 for characters; Shu and Nakayama: 50).",
            ge=0,
        ),
    ] = None
    max_ratio: Annotated[
        float,
        Opt(
            "Largest ratio between the lengths of a training pair's two sides, in tokens; 0 for "
            "no limit.",
            ge=0,
        ),
    ] = 0.0
    max_subwords: Annotated[
        int | None,
        Opt(
            "Longest training sentence on either side, in subwords; 0 for no limit "
            "(default 1000: drops words of thousands of letters, which pass --max-length).",
            ge=0,
        ),
    ] = None
    workers: Annotated[
        int, Opt("Worker processes; the result does not depend on their number.", ge=1)
    ] = 1
    like: Annotated[
        Path | None,
        Opt(
            "Run or prepared folder whose tokenizers, subwords and vocabularies to reuse.",
            replaces=_LEARNED,
        ),
    ] = None

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        languages = {"--source-lang": self.source_lang, "--target-lang": self.target_lang}
        faults = [
            f"{flag} must be a file suffix without the dot, such as en, not {language!r}"
            for flag, language in languages.items()
            if not re.fullmatch(r"[^./\\\s][^/\\\s]*", language)
        ]
        if self.format == "aspec":
            faults += [
                f"{flag} must be en or ja with --format aspec, not {language!r}"
                for flag, language in languages.items()
                if language not in ("en", "ja")
            ]
        if self.source_lang == self.target_lang:
            faults.append(f"--source-lang and --target-lang are both {self.source_lang!r}")
        if not (self.train or self.valid or self.test):
            faults.append("give at least one of --train, --valid and --test")
        elif not (self.train or self.like):
            faults.append("give --train, or --like FOLDER to reuse its vocabularies")
        if self.guided_alignment and len(self.guided_alignment) != len(self.train):
            faults.append(
                f"--guided-alignment needs a file for each --train: {len(self.train)}, not "
                f"{len(self.guided_alignment)}"
            )
        if self.valid_alignment and not self.valid:
            faults.append(f"--valid-alignment {self.valid_alignment} needs --valid")
        if 0 < self.max_ratio < 1:
            faults.append(f"--max-ratio must be 0 or at least 1, not {self.max_ratio}")
        for side, name in (("source", self.source_tokenizer), ("target", self.target_tokenizer)):
            if name == "kytea" and self.kytea_model is None and not self.like:
                faults.append(f"--{side}-tokenizer kytea needs --kytea-model FILE")
        faults += self._subword_faults()
        faults += self._joint_faults()
        return faults + self.idle(self._without_effect())

    @property
    def links(self) -> list[Path]:
        """The files of links: of the training corpora, then of the validation split."""
        valid = [self.valid_alignment] if self.valid_alignment else []
        return [*self.guided_alignment, *valid]

    def sentencepiece_of(self, side: str) -> int | Path | None:
        """Return a side's number of pieces or model file; None without SentencePiece."""
        own = self.source_sentencepiece if side == "source" else self.target_sentencepiece
        value = own if own is not None else self.sentencepiece
        if value is None:
            return None
        return int(value) if _NUMBER.fullmatch(value) else Path(value)

    def _subword_faults(self) -> list[str]:
        """Check that the options name one kind of subwords, where it has an effect."""
        tokenizers = {"source": self.source_tokenizer, "target": self.target_tokenizer}
        given = {name: getattr(self, name) for name in _SENTENCEPIECE}
        given = {name: value for name, value in given.items() if value is not None}
        flags = [f"--{name.replace('_', '-')}" for name in given]
        kinds = ["--bpe"] if self.bpe else []
        kinds += flags[:1]
        kinds += ["--segmented"] if self.segmented else []
        faults = []
        if len(kinds) > 1:
            faults.append(f"give {' or '.join(kinds)}, not both")
        faults += [
            f"{flag} must be a number of pieces, at least {FEWEST_PIECES}, or a .model file, not "
            f"{value!r}"
            for flag, value in zip(flags, given.values(), strict=True)
            if (not _NUMBER.fullmatch(value) and not value.endswith(".model"))
            or (_NUMBER.fullmatch(value) and int(value) < FEWEST_PIECES)
        ]
        if len(given) == 3:
            faults.append(f"{flags[0]} has no effect with {flags[1]} and {flags[2]}")
        if self.segmented:
            faults += [
                f"--segmented needs --{side}-tokenizer none, not {name}"
                for side, name in tokenizers.items()
                if name != "none"
            ]
        characters = [side for side, name in tokenizers.items() if name == "char"]
        for flag in kinds[:1] if len(characters) == 2 else []:
            faults.append(
                f"{flag} has no effect on characters; remove it or choose other tokenizers"
            )
        return faults

    def _joint_faults(self) -> list[str]:
        """Check that the subword and vocabulary options of the two sides agree."""
        faults = []
        tokenizers = self.source_tokenizer, self.target_tokenizer
        if self.joint and tokenizers.count("char") == 1:
            faults.append("--joint needs words on both sides or characters on both sides")
        if self.joint and self.sentencepiece_of("source") != self.sentencepiece_of("target"):
            faults.append("--joint needs the same SentencePiece model on both sides")
        sizes = self.source_vocabulary, self.target_vocabulary
        if self.joint and sizes[0] != sizes[1]:
            faults.append(
                f"--joint builds one vocabulary, so --source-vocabulary {sizes[0]} and "
                f"--target-vocabulary {sizes[1]} must be equal"
            )
        return faults

    def _without_effect(self) -> dict[str, str]:
        """Map options that have no effect to the reason."""
        idle: dict[str, str] = {}
        names = {"source": self.source_tokenizer, "target": self.target_tokenizer}
        models = {
            side: None if name == "char" else self.sentencepiece_of(side)
            for side, name in names.items()
        }
        learned = any(isinstance(model, int) for model in models.values())
        if not self.train:
            training = ("max_pairs", "max_length", "max_ratio", "max_subwords")
            idle |= dict.fromkeys(training, "without --train")
        elif not (self.bpe or any(models.values()) or self.segmented or self.like):
            idle["max_subwords"] = "without --bpe, --sentencepiece or --segmented"
        if not (self.bpe or learned or self.like):
            idle["bpe_sample"] = "without --bpe, or --sentencepiece with a number"
        if not (learned or self.like):
            learning = ("sentencepiece_type", "byte_fallback")
            idle |= dict.fromkeys(learning, "without --sentencepiece and a number")
        whole = "with --sentencepiece, whose pieces are the vocabulary"
        idle |= {f"{side}_vocabulary": whole for side, model in models.items() if model}
        if all(models.values()):
            idle["min_frequency"] = whole
        for tokenizer, options in OPTIONS.items():
            if tokenizer not in (self.source_tokenizer, self.target_tokenizer):
                own = [option for option in options if option != "lang"]
                idle |= dict.fromkeys(own, f"without the {tokenizer} tokenizer")
        if self.like:
            idle |= dict.fromkeys(_LEARNED, "with --like, which sets it")
        return idle
