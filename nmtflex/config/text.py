"""Options of tokenizers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from nmtflex.config.base import Config, Opt, flag_of, options_of

TokenizerName = Literal["none", "moses", "char", "mecab", "kytea"]
Dictionary = Literal["ipadic", "unidic-lite"]
Normalization = Literal["none", "nfkc", "wat-width", "wat-half-width"]

NORMALIZATIONS = (
    "nfkc: Unicode NFKC; wat-width: half to full width, as WAT maps it; wat-half-width: full to "
    "half width, likewise."
)
KYTEA_MODEL = "Model file for the kytea tokenizer: binary, plain or packed as gz, xz or zst."


class TokenizerOptions(Protocol):
    """Options of tokenizers, in whichever group they are defined."""

    @property
    def aggressive(self) -> bool:
        """Whether moses splits hyphens."""

    @property
    def escape(self) -> bool:
        """Whether moses escapes special characters."""

    @property
    def mecab_dictionary(self) -> Dictionary:
        """Dictionary for mecab."""


def describe_tokenizer(
    name: str, language: str | None, normalize: Normalization, options: TokenizerOptions
) -> dict[str, Any]:
    """Return the settings of a tokenizer, for ``build_tokenizer``."""
    settings: dict[str, dict[str, Any]] = {
        "moses": {
            "language": language,
            "aggressive": options.aggressive,
            "escape": options.escape,
        },
        "mecab": {"dictionary": options.mecab_dictionary},
    }
    return {"name": name, "normalize": normalize, **settings.get(name, {})}


def given_flags(config: Config) -> dict[str, str]:
    """Map each option that differs from its default to the flag that set it."""
    fields = {field.name: field for field in dataclasses.fields(config)}
    found = {}
    for name, (_, option) in options_of(type(config)).items():
        default = fields[name].default
        if default is not dataclasses.MISSING and getattr(config, name) != default:
            found[name] = flag_of(name, option).split("/")[-1 if default is True else 0]
    return found


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
    aggressive: Annotated[bool, Opt("moses: also split hyphens between letters, as @-@.")] = False
    escape: Annotated[
        bool,
        Opt("moses: escape special characters, such as ' as &apos;.", flag="--escape/--no-escape"),
    ] = True
    mecab_dictionary: Annotated[Dictionary, Opt("Dictionary for the mecab tokenizer.")] = "ipadic"
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
        if self.tokenizer is not None and self.wat is not None:
            faults.append(f"--tokenizer {self.tokenizer} has no effect with --wat {self.wat}")
        if self.tokenizer == "moses" and not self.lang:
            faults.append("--tokenizer moses needs --lang, such as --lang de")
        if self.wat != "ja" and self.segmenter != "kytea":
            faults.append(f"--segmenter {self.segmenter} has no effect without --wat ja")
        if self.wat is not None and self.normalize != "none":
            faults.append(f"--normalize {self.normalize} has no effect with --wat {self.wat}")
        owners = {
            "lang": "moses", "aggressive": "moses", "escape": "moses",
            "mecab_dictionary": "mecab", "kytea_model": "kytea",
        }  # fmt: skip
        return faults + [
            f"{flag} has no effect without the {owners[name]} tokenizer"
            for name, flag in given_flags(self).items()
            if name in owners and owners[name] not in self.segmenters
        ]


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
