"""Options of tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from nmtflex.config.base import Config, Opt

if TYPE_CHECKING:
    from nmtflex.config.corpus import PreprocessConfig

TokenizerName = Literal["none", "moses", "char", "mecab", "kytea"]
Dictionary = Literal["ipadic", "unidic-lite"]
Normalization = Literal["none", "nfkc", "wat-width", "wat-half-width"]

NORMALIZATIONS = (
    "nfkc: Unicode NFKC; wat-width: half to full width, as WAT maps it; wat-half-width: full to "
    "half width, likewise."
)
KYTEA_MODEL = "Model file for the kytea tokenizer: binary, plain or packed as gz, xz or zst."


OPTIONS = {  # by tokenizer
    "moses": ("lang", "aggressive", "escape"),
    "mecab": ("mecab_dictionary",),
    "kytea": ("kytea_model",),
}
Aggressive = Annotated[bool, Opt("moses: also split hyphens between letters, as @-@.")]
Escape = Annotated[
    bool, Opt("moses: escape special characters, such as ' as &apos;.", flag="--escape/--no-escape")
]
MecabDictionary = Annotated[Dictionary, Opt("Dictionary for the mecab tokenizer.")]


def describe_tokenizer(
    name: str,
    language: str | None,
    normalize: Normalization,
    options: PreprocessConfig | DetokenizeConfig,
) -> dict[str, Any]:
    """Return the settings of a tokenizer, for ``build_tokenizer``."""
    settings: dict[str, dict[str, Any]] = {
        "moses": {"language": language, "aggressive": options.aggressive, "escape": options.escape},
        "mecab": {"dictionary": options.mecab_dictionary},
    }
    return {"name": name, "normalize": normalize, **settings.get(name, {})}


@dataclass(frozen=True, kw_only=True, slots=True)
class DetokenizeConfig(Config):
    """Tokenization."""

    tokenizer: Annotated[
        TokenizerName | None,
        Opt(
            "Tokenizer; none splits at ASCII whitespace only; moses needs --lang.",
            replaces=("wat", "segmenter"),
        ),
    ] = None
    lang: Annotated[
        str | None,
        Opt("Language of the moses tokenizer, such as de: sets its abbreviations and apostrophes."),
    ] = None
    aggressive: Aggressive = False
    escape: Escape = True
    mecab_dictionary: MecabDictionary = "ipadic"
    kytea_model: Annotated[Path | None, Opt(KYTEA_MODEL)] = None
    normalize: Annotated[
        Normalization, Opt(f"Unicode normalisation before splitting. {NORMALIZATIONS}")
    ] = "none"
    wat: Annotated[
        Literal["ja", "en"] | None,
        Opt(
            "Instead of --tokenizer: split into the words that WAT's evaluation scores in this "
            "language.",
            replaces=("tokenizer", "lang", "aggressive", "escape", "normalize"),
        ),
    ] = None
    segmenter: Annotated[
        Literal["kytea", "mecab"],
        Opt("Word segmenter for --wat ja; mecab is a variant of WAT's procedure."),
    ] = "kytea"

    @property
    def segmenters(self) -> set[str]:
        """The tokenizers in use, whose options have an effect."""
        if self.wat is None:
            return {str(self.tokenizer)}
        return {self.segmenter} if self.wat == "ja" else set()

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        faults = []
        if self.tokenizer is None and self.wat is None:
            faults.append("give --tokenizer or --wat")
        if self.tokenizer == "moses" and not self.lang:
            faults.append("--tokenizer moses needs --lang, such as --lang de")
        idle = {
            option: f"without the {tokenizer} tokenizer"
            for tokenizer, options in OPTIONS.items()
            if tokenizer not in self.segmenters
            for option in options
        }
        if self.wat is not None:
            idle |= dict.fromkeys(("tokenizer", "normalize"), f"with --wat {self.wat}")
        if self.wat != "ja":
            idle["segmenter"] = "without --wat ja"
        return faults + self.idle(idle)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizeConfig(DetokenizeConfig):
    """Tokenization."""

    def validate(self) -> list[str]:
        """Check also what only splitting needs."""
        faults = DetokenizeConfig.validate(self)
        if "kytea" in self.segmenters and self.kytea_model is None:
            what = "--wat ja" if self.wat else "--tokenizer kytea"
            faults.append(f"{what} needs --kytea-model FILE")
        return faults
