"""Options of making corpora and prepared folders."""

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
    Dictionary,
    Normalization,
    TokenizerName,
    given_flags,
)

_LEARNED = (  # options of what --like brings
    "source_tokenizer", "target_tokenizer", "source_normalize", "target_normalize",
    "aggressive", "escape", "mecab_dictionary", "kytea_model", "bpe", "bpe_sample",
    "joint", "source_vocabulary", "target_vocabulary", "min_frequency",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessConfig(Config):
    """Raw parallel text to a prepared folder."""

    out: Annotated[Path, Opt("Prepared folder to make.")]
    source_lang: Annotated[
        str, Opt("Suffix of the source files, as en in corpus/train.en; for ASPEC en or ja.")
    ]
    target_lang: Annotated[str, Opt("Suffix of the target files; for ASPEC ja or en.")]
    format: Annotated[
        Literal["plain", "aspec"],
        Opt(
            "plain: two files of a line a sentence, named by prefix and language; "
            "aspec: ASPEC-JE's own files, fields parted by |||."
        ),
    ] = "plain"
    train: Annotated[
        list[Path],
        Opt(
            "Corpus prefix, as corpus/train, or file of ASPEC, as train-1.txt; may be given "
            "several times, to be read in that order."
        ),
    ] = dataclasses.field(default_factory=list)
    valid: Annotated[Path | None, Opt("Likewise for the validation split, once.")] = None
    test: Annotated[Path | None, Opt("Likewise for the test split, once.")] = None
    max_pairs: Annotated[
        int,
        Opt(
            "Training pairs read: the first ones of all --train together, counted before any "
            "filter; 0 for all (Shu and Nakayama: 1500000).",
            ge=0,
        ),
    ] = 0
    source_tokenizer: Annotated[TokenizerName, Opt("none parts at ASCII white space alone.")] = (
        "none"
    )
    target_tokenizer: Annotated[TokenizerName, Opt("Likewise for the target.")] = "none"
    source_normalize: Annotated[Normalization, Opt(f"Before the tokenizer. {NORMALIZATIONS}")] = (
        "none"
    )
    target_normalize: Annotated[Normalization, Opt("Likewise for the target.")] = "none"
    aggressive: Annotated[
        bool, Opt("moses tokenizer: split hyphens between letters too, as @-@.")
    ] = False
    escape: Annotated[
        bool,
        Opt("moses tokenizer: write ' as &apos; and so on.", flag="--escape/--no-escape"),
    ] = True
    mecab_dictionary: Annotated[Dictionary, Opt("Dictionary of the mecab tokenizer.")] = "ipadic"
    kytea_model: Annotated[Path | None, Opt(f"{KYTEA_MODEL} Copied into the folder.")] = None
    bpe: Annotated[
        int, Opt("BPE merges learned by subword-nmt; 0 for words (Britz et al.: 16000).", ge=0)
    ] = 0
    bpe_sample: Annotated[
        int,
        Opt(
            "Training pairs that BPE is learned from, evenly spread over those kept; 0 for all of "
            "them.",
            ge=0,
        ),
    ] = 1_000_000
    joint: Annotated[
        bool,
        Opt(
            "Learn BPE and make the vocabulary over both sides together.", flag="--joint/--separate"
        ),
    ] = False
    source_vocabulary: Annotated[
        int, Opt("Most frequent source tokens kept; 0 keeps all (Shu and Nakayama: 80000).", ge=0)
    ] = 0
    target_vocabulary: Annotated[
        int, Opt("Most frequent target tokens kept; 0 keeps all (Shu and Nakayama: 40000).", ge=0)
    ] = 0
    min_frequency: Annotated[int, Opt("Times a token must be seen to be kept.", ge=1)] = 1
    max_length: Annotated[
        int | None,
        Opt(
            "Longest training sentence on either side, in tokens before BPE; 0 for no limit; "
            "default 100, or 500 for characters (Shu and Nakayama: 50).",
            ge=0,
        ),
    ] = None
    max_ratio: Annotated[
        float, Opt("Longest training side over the other, in tokens; 0 for no limit.", ge=0)
    ] = 0.0
    max_subwords: Annotated[
        int | None,
        Opt(
            "Longest training sentence on a side with BPE, in subwords; 0 for no limit; default "
            "1000, against words of thousands of letters, which --max-length lets pass.",
            ge=0,
        ),
    ] = None
    workers: Annotated[int, Opt("Processes; the result is the same for any number.", ge=1)] = 1
    like: Annotated[
        Path | None,
        Opt(
            "Run or prepared folder whose tokenizers, BPE codes and vocabularies are reused.",
            replaces=_LEARNED,
        ),
    ] = None

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        languages = {"--source-lang": self.source_lang, "--target-lang": self.target_lang}
        faults = [
            f"{flag} must be a file name's suffix without the dot, as en, not {language!r}"
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
            faults.append("give --train, or --like a folder whose vocabularies serve")
        if 0 < self.max_ratio < 1:
            faults.append(f"--max-ratio must be 0 or at least 1, not {self.max_ratio}")
        for side, name in (("source", self.source_tokenizer), ("target", self.target_tokenizer)):
            if name == "kytea" and self.kytea_model is None and not self.like:
                faults.append(
                    f"--{side}-tokenizer kytea needs --kytea-model FILE, a model of KyTea"
                )
        faults += self._joint_faults()
        idle = self._without_effect()
        return faults + [f"{flag} has no effect {why}" for flag, why in idle.items()]

    def _joint_faults(self) -> list[str]:
        """Check BPE and vocabularies of the two sides against each other."""
        faults = []
        tokenizers = self.source_tokenizer, self.target_tokenizer
        if self.bpe and tokenizers == ("char", "char"):
            faults.append("--bpe has no effect on characters; drop it or choose other tokenizers")
        elif self.joint and tokenizers.count("char") == 1:
            faults.append("--joint needs words on both sides or characters on both, not one each")
        sizes = self.source_vocabulary, self.target_vocabulary
        if self.joint and sizes[0] != sizes[1]:
            faults.append(
                f"--joint makes one vocabulary: --source-vocabulary {sizes[0]} and "
                f"--target-vocabulary {sizes[1]} must be equal"
            )
        return faults

    def _without_effect(self) -> dict[str, str]:
        """Map flags given in vain to the reason; the default counts as not given."""
        owners = {"moses": ("aggressive", "escape"), "mecab": ("mecab_dictionary",),
                  "kytea": ("kytea_model",)}  # fmt: skip
        idle: dict[str, str] = {}
        if not self.train:
            training = ("max_pairs", "max_length", "max_ratio", "max_subwords")
            idle |= dict.fromkeys(training, "without --train")
        elif not (self.bpe or self.like):
            idle["max_subwords"] = "without --bpe"
        if not (self.bpe or self.like):
            idle["bpe_sample"] = "without --bpe"
        for tokenizer, options in owners.items():
            if tokenizer not in (self.source_tokenizer, self.target_tokenizer):
                idle |= dict.fromkeys(options, f"without a {tokenizer} tokenizer")
        if self.like:
            idle |= dict.fromkeys(_LEARNED, "beside --like, which brings its own")
        given = given_flags(self)
        return {given[name]: why for name, why in idle.items() if name in given}


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateToyConfig(Config):
    """The toy corpus."""

    out: Annotated[Path, Opt("Folder to write train.en, train.ja and so on into.")]
    train: Annotated[int, Opt("Training pairs.", ge=1)] = 20_000
    valid: Annotated[
        int, Opt("Validation pairs; none of their sentences is in training.", ge=0)
    ] = 500
    test: Annotated[int, Opt("Test pairs; none of their sentences is elsewhere.", ge=0)] = 500
    seed: Annotated[int, Opt("Seed; the same one draws the same corpus.", ge=0)] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateCopyConfig(Config):
    """The copy task."""

    out: Annotated[Path, Opt("Folder to write train.src, train.tgt and so on into.")]
    max_length: Annotated[
        int,
        Opt(
            "L: lengths are uniform over 1..L tokens (Britz et al.: 0..L, for L 10, 50, 100, 200; "
            "an empty pair would be dropped by preprocess).",
            ge=1,
        ),
    ] = 50
    vocabulary: Annotated[int, Opt("Different symbols (Britz et al.: 20).", ge=1)] = 20
    train: Annotated[int, Opt("Training sequences (Britz et al.: 100000).", ge=1)] = 100_000
    valid: Annotated[int, Opt("Validation sequences (Britz et al.: 1000).", ge=0)] = 1000
    test: Annotated[int, Opt("Test sequences.", ge=0)] = 1000
    seed: Annotated[int, Opt("Seed; the same one draws the same corpus.", ge=0)] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateZipfConfig(Config):
    """Text with the long tail of a real vocabulary."""

    out: Annotated[Path, Opt("Folder to write train.src, train.tgt and so on into.")]
    types: Annotated[
        int, Opt("Different words of each side, the rarest counted.", ge=1, le=20_000_000)
    ] = 1_000_000
    exponent: Annotated[
        float,
        Opt("Exponent of Zipf's law; 0 makes all words alike.", ge=0, le=10),
    ] = 1.0
    min_length: Annotated[int, Opt("Shortest sentence, in words.", ge=1)] = 1
    max_length: Annotated[int, Opt("Longest sentence, in words.", ge=1)] = 20
    train: Annotated[int, Opt("Training pairs.", ge=1)] = 100_000
    valid: Annotated[int, Opt("Validation pairs.", ge=0)] = 1000
    test: Annotated[int, Opt("Test pairs.", ge=0)] = 1000
    seed: Annotated[int, Opt("Seed; the same one draws the same text.", ge=0)] = 1

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        if self.min_length > self.max_length:
            return [
                f"--min-length {self.min_length} is above --max-length {self.max_length}; "
                f"lengths are drawn between the two"
            ]
        return []
