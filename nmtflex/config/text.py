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
    "nfkc: Unicode's compatibility form; wat-width: half to full width as WAT maps it; "
    "wat-half-width: full to half, likewise."
)
KYTEA_MODEL = "KyTea's model file of the kytea tokenizer: a binary one, plain, gz, xz or zst."


class TokenizerOptions(Protocol):
    """The options that concern one tokenizer or another, whichever group they are in."""

    @property
    def aggressive(self) -> bool:
        """Of moses: split hyphens."""

    @property
    def escape(self) -> bool:
        """Of moses: write entities."""

    @property
    def mecab_dictionary(self) -> Dictionary:
        """Of mecab."""


def describe_tokenizer(
    name: str, language: str | None, normalize: Normalization, options: TokenizerOptions
) -> dict[str, Any]:
    """Return what ``build_tokenizer`` takes, of the options that concern this tokenizer."""
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
    """Map the options that have not their default to the flags that gave them their value."""
    fields = {field.name: field for field in dataclasses.fields(config)}
    found = {}
    for name, (_, option) in options_of(type(config)).items():
        default = fields[name].default
        if default is not dataclasses.MISSING and getattr(config, name) != default:
            found[name] = flag_of(name, option).split("/")[-1 if default is True else 0]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class DetokenizeConfig(Config):
    """How text is split into tokens."""

    tokenizer: Annotated[
        TokenizerName | None,
        Opt(
            "none parts at ASCII white space alone; moses needs --lang.",
            replaces=("wat", "segmenter"),
        ),
    ] = None
    lang: Annotated[
        str | None, Opt("Language of the moses tokenizer, as de: its abbreviations, apostrophes.")
    ] = None
    aggressive: Annotated[bool, Opt("moses: split hyphens between letters too, as @-@.")] = False
    escape: Annotated[
        bool, Opt("moses: write ' as &apos; and so on.", flag="--escape/--no-escape")
    ] = True
    mecab_dictionary: Annotated[Dictionary, Opt("Dictionary of the mecab tokenizer.")] = "ipadic"
    kytea_model: Annotated[Path | None, Opt(KYTEA_MODEL)] = None
    normalize: Annotated[Normalization, Opt(f"Before splitting. {NORMALIZATIONS}")] = "none"
    wat: Annotated[
        Literal["ja", "en"] | None,
        Opt(
            "Instead of --tokenizer: the words that WAT's evaluation scores in this language.",
            replaces=("tokenizer", "lang", "aggressive", "escape", "normalize"),
        ),
    ] = None
    segmenter: Annotated[
        Literal["kytea", "mecab"],
        Opt("Of --wat ja; with mecab it is a variant of the procedure, not WAT's own."),
    ] = "kytea"

    @property
    def segmenters(self) -> set[str]:
        """The tokenizers at work whose options have an effect."""
        if self.wat is None:
            return {str(self.tokenizer)}
        return {self.segmenter} if self.wat == "ja" else set()

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = []
        if self.tokenizer is None and self.wat is None:
            faults.append("give --tokenizer or --wat")
        if self.tokenizer is not None and self.wat is not None:
            faults.append(f"--tokenizer {self.tokenizer} has no effect beside --wat {self.wat}")
        if self.tokenizer == "moses" and not self.lang:
            faults.append("--tokenizer moses needs --lang, as --lang de")
        if self.wat != "ja" and self.segmenter != "kytea":
            faults.append(f"--segmenter {self.segmenter} has no effect without --wat ja")
        if self.wat is not None and self.normalize != "none":
            faults.append(f"--normalize {self.normalize} has no effect beside --wat {self.wat}")
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
    """How text is split into tokens."""

    def validate(self) -> list[str]:
        """Check also that there is what splitting needs, and joining does not."""
        faults = DetokenizeConfig.validate(self)
        if "kytea" in self.segmenters and self.kytea_model is None:
            what = "--wat ja" if self.wat else "--tokenizer kytea"
            faults.append(f"{what} needs --kytea-model FILE, a model of KyTea")
        return faults
