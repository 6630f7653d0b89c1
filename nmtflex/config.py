"""Every option of nmtflex, once: typed, bounded, documented. Imports no torch.

A field is an option: its annotation carries the help text and the bounds, ``cli/bind.py`` makes
the flag, and ``Config.__post_init__`` checks the value wherever it came from (flag, TOML file,
JSON of a run, Python).
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
import re
import types
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from nmtflex.errors import OptionError

FORMAT = 1  # of prepared folders and of runs; a reader refuses what is newer


@dataclass(frozen=True, slots=True)
class Opt:
    """What an option says of itself.

    Args:
        help: Text of ``--help``: meaning, unit, the paper's value.
        ge: Least value allowed.
        gt: Value that must be exceeded.
        le: Greatest value allowed.
        lt: Value that must not be reached.
        argument: A positional argument instead of a flag.
        flag: Spelling where it is not the field's name with dashes (``--K``, ``--x/--no-x``).
        may_change: May differ when a training is resumed.
    """

    help: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    argument: bool = False
    flag: str | None = None
    may_change: bool = False

    def check(self, name: str, value: object) -> str | None:
        """Say what is wrong with a number, or None if nothing is."""
        bounds = (
            (self.ge, "at least", operator.ge),
            (self.gt, "greater than", operator.gt),
            (self.le, "at most", operator.le),
            (self.lt, "less than", operator.lt),
        )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        for bound, words, holds in bounds:
            if bound is not None and not holds(value, bound):
                return f"{name} must be {words} {bound}, not {value}"
        return None


def flag_of(field_name: str, option: Opt) -> str:
    """Return the option's spelling on the command line, for messages and for Typer."""
    return option.flag or "--" + field_name.replace("_", "-")


def options_of(config: type[Config]) -> dict[str, tuple[Any, Opt]]:
    """Map each field of a config class to its plain type and its ``Opt``."""
    hints = get_type_hints(config, include_extras=True)
    found = {}
    for field in dataclasses.fields(config):
        plain, option = get_args(hints[field.name])[:2]
        found[field.name] = (plain, option)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Base of all option groups: checks bounds, saves and reloads itself."""

    def __post_init__(self) -> None:
        """Check every bound, then the rules over several fields; report all faults at once."""
        faults = [
            fault
            for name, (_, option) in options_of(type(self)).items()
            if (fault := option.check(flag_of(name, option), getattr(self, name)))
        ]
        faults += self.validate()
        if faults:
            raise OptionError("; ".join(faults))

    def validate(self) -> list[str]:
        """Return the faults that concern several fields together."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; a variant carries its ``kind``."""
        return {name: _plain(getattr(self, name)) for name in options_of(type(self))}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild from ``to_dict``.

        Raises:
            OptionError: An unknown or a missing key, or a value of a wrong type.
        """
        options = options_of(cls)
        if unknown := set(values) - set(options):
            name = min(unknown)
            raise OptionError(f"unknown option {name!r}{nearest(name, options)}")
        for field in dataclasses.fields(cls):
            optional = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
            if field.name not in values and not optional:
                raise OptionError(f"option {field.name!r} is missing")
        return cls(**{name: revive(name, options[name][0], values[name]) for name in values})


def _plain(value: Any) -> Any:
    """Turn a field's value into what JSON can hold."""
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def revive(name: str, plain: Any, value: Any) -> Any:
    """Turn a JSON or TOML value into the type of the field ``name``.

    Raises:
        OptionError: The value is of another type, or none of the choices.
    """
    if isinstance(plain, type) and issubclass(plain, Variant):
        return _revive_variant(name, plain, value)
    if get_origin(plain) in (types.UnionType, Union):
        if value is None:
            return None
        plain = next(part for part in get_args(plain) if part is not type(None))
    if get_origin(plain) is list and isinstance(value, list):
        return [revive(name, get_args(plain)[0], item) for item in value]
    if plain is Path and isinstance(value, str | Path):
        return Path(value)
    if plain is float and type(value) is int:
        return float(value)
    if get_origin(plain) is Literal:
        if value in get_args(plain):
            return value
    elif isinstance(plain, type) and type(value) is plain:
        return value
    raise OptionError(f"option {name!r} must be {_words(plain)}, not {value!r}")


def _revive_variant(name: str, family: type[Variant], value: Any) -> Variant:
    """Rebuild the kind that a dictionary names."""
    kinds = family.variants()
    if not isinstance(value, dict) or value.get("kind") not in list(kinds):
        raise OptionError(f"option {name!r} needs a kind ({', '.join(kinds)}), not {value!r}")
    return kinds[value["kind"]].from_dict({
        key: item for key, item in value.items() if key != "kind"
    })


def _words(plain: Any) -> str:
    """Say in words what a type allows."""
    if get_origin(plain) is Literal:
        return "one of " + ", ".join(get_args(plain))
    known = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}
    return known.get(plain, "a list" if get_origin(plain) is list else "a string")


def nearest(name: str, known: Any) -> str:
    """Return ``"; did you mean X?"`` for the closest known name, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant(Config):
    """A family of option groups told apart by ``kind``; a subclass joins by being defined."""

    kind: ClassVar[str] = ""

    @classmethod
    def variants(cls) -> dict[str, type[Self]]:
        """Map each ``kind`` to its class, in order of definition."""
        # slots=True makes each class twice; only the one that the module keeps has its fields.
        return {sub.kind: sub for sub in cls.__subclasses__() if "__slots__" in sub.__dict__}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types with the ``kind`` first."""
        return {"kind": self.kind, **Config.to_dict(self)}


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConfig(Variant):
    """Options of an attention mechanism; one subclass each."""

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Return what does not fit between this mechanism and the model around it."""
        return []

    def context_size(self, states_size: int) -> int:
        """Units of a context vector, given those of an encoder state."""
        return states_size


@dataclass(frozen=True, kw_only=True, slots=True)
class GlobalConfig(AttentionConfig):
    """Options of global attention (Bahdanau; Luong)."""

    kind: ClassVar[str] = "global"

    score: Annotated[
        Literal["additive", "general", "dot"],
        Opt("Score function: additive (Bahdanau), general or dot (Luong)."),
    ] = "additive"

    def faults_in(self, model: ModelConfig) -> list[str]:
        """Dot products need vectors of one size."""
        states = 2 * model.encoder_size
        if self.score == "dot" and model.decoder_size != states:
            return [
                f"--score dot needs --decoder-size equal to twice --encoder-size "
                f"({states}), not {model.decoder_size}; or use --score general"
            ]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class NoneConfig(AttentionConfig):
    """No attention: the decoder sees the encoder's final state only."""

    kind: ClassVar[str] = "none"

    def context_size(self, states_size: int) -> int:
        """No context."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig(Config):
    """The shape of the model."""

    attention: Annotated[AttentionConfig, Opt("Attention mechanism.")] = GlobalConfig()
    decoder: Annotated[
        Literal["bahdanau", "luong"],
        Opt(
            "bahdanau: context from the previous state, into the cell; luong: context from the "
            "new state, after the cell."
        ),
    ] = "bahdanau"
    cell: Annotated[Literal["lstm", "gru"], Opt("Recurrent cell of encoder and decoder.")] = "lstm"
    embedding_size: Annotated[int, Opt("Units of a word embedding (paper 000: 1000).", ge=1)] = 256
    encoder_size: Annotated[
        int, Opt("Units of an encoder layer, each direction (paper 000: 1000).", ge=1)
    ] = 256
    decoder_size: Annotated[int, Opt("Units of a decoder layer (paper 000: 1000).", ge=1)] = 256
    attention_size: Annotated[
        int, Opt("Units inside the additive score; 0 takes the decoder size.", ge=0)
    ] = 0
    encoder_layers: Annotated[int, Opt("Encoder layers (paper 001: 2).", ge=1)] = 1
    decoder_layers: Annotated[int, Opt("Decoder layers (paper 001: 2).", ge=1)] = 1
    bottleneck: Annotated[
        int, Opt("Linear units before the softmax; 0 for none (paper 000: 600).", ge=0)
    ] = 0
    input_feeding: Annotated[
        bool, Opt("luong: feed the last attentional vector into the next step.")
    ] = True
    attentional: Annotated[
        bool, Opt("luong: predict from tanh(W [h; c]) instead of from [h; c].")
    ] = True
    tie_embeddings: Annotated[
        Literal["none", "target", "all"],
        Opt(
            "Share weights: target = target embedding and output layer; all = source embedding "
            "too, which needs a joint vocabulary."
        ),
    ] = "none"
    dropout: Annotated[
        float, Opt("Share of units dropped on each cell's input, in training.", ge=0, lt=1)
    ] = 0.2
    output_dropout: Annotated[
        float, Opt("Share of units dropped of the vector that predicts a word.", ge=0, lt=1)
    ] = 0.0

    @property
    def key_size(self) -> int:
        """Units inside the additive score."""
        return self.attention_size or self.decoder_size

    @property
    def output_size(self) -> int:
        """Units that the output layer reads."""
        if self.bottleneck:
            return self.bottleneck
        if self.decoder == "luong" and not self.attentional:
            return self.decoder_size + self.attention.context_size(2 * self.encoder_size)
        return self.decoder_size

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = self.attention.faults_in(self)
        if self.decoder == "bahdanau" and not (self.input_feeding and self.attentional):
            faults.append("--no-input-feeding and --no-attentional need --decoder luong")
        if self.tie_embeddings != "none" and self.output_size != self.embedding_size:
            faults.append(
                f"--tie-embeddings {self.tie_embeddings} needs an output layer that reads "
                f"--embedding-size ({self.embedding_size}) units, not {self.output_size}; "
                f"add --bottleneck {self.embedding_size}"
            )
        return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig(Config):
    """Where and how numbers are computed."""

    device: Annotated[
        str, Opt("auto, cpu, cuda or cuda:N; auto takes a GPU if there is one.", may_change=True)
    ] = "auto"
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16"],
        Opt("Number format; bfloat16 is autocast and needs a device that has it."),
    ] = "float32"
    threads: Annotated[
        int, Opt("CPU threads; 0 takes all cores.", ge=0, le=1024, may_change=True)
    ] = 0

    def validate(self) -> list[str]:
        """Check the device's spelling."""
        if re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            return []
        return [f"--device must be auto, cpu, cuda or cuda:N, not {self.device!r}"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig(Config):
    """Beam search."""

    beam: Annotated[int, Opt("Beam size; 1 is greedy search (paper 000: 20).", ge=1, le=1000)] = 5
    length_penalty: Annotated[
        float, Opt("Alpha in log-probability / length^alpha, EOS counted; 0 turns it off.", ge=0)
    ] = 1.0
    max_length: Annotated[
        int, Opt("Longest output in tokens; 0 takes 3 x source tokens + 20.", ge=0)
    ] = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig(Config):
    """How much is decoded at once."""

    batch_sentences: Annotated[int, Opt("Sentences decoded together.", ge=1)] = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputConfig(Config):
    """What translate reads ahead and writes."""

    buffer: Annotated[
        int, Opt("Lines read ahead, to sort by length; memory stays constant.", ge=1)
    ] = 4096
    n_best: Annotated[int, Opt("Hypotheses a sentence, at most the beam size.", ge=1)] = 1
    format: Annotated[
        Literal["text", "moses", "json"],
        Opt(
            "text: translations; moses: index ||| text ||| scores ||| total; "
            "json: an object a line."
        ),
    ] = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(Config):
    """What is scored, and how."""

    run: Annotated[Path | None, Opt("Run folder; without it, give two files.", argument=True)] = (
        None
    )
    split: Annotated[
        str | None, Opt("Split of the run's own data, valid or test (default test).")
    ] = None
    output: Annotated[Path | None, Opt("File for the run's translations.")] = None
    hypothesis: Annotated[Path | None, Opt("Translations, one a line, instead of a run.")] = None
    reference: Annotated[Path | None, Opt("References, one a line, for --hypothesis.")] = None
    tokenize: Annotated[
        Literal["13a", "char", "intl", "ja-mecab", "none", "zh"] | None,
        Opt("sacrebleu's tokenizer for two files (default 13a); a run's own follows its target."),
    ] = None
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    @property
    def files(self) -> tuple[Path, Path]:
        """Hypothesis and reference, where no run is given."""
        if self.hypothesis is None or self.reference is None:
            raise ValueError(f"a run is given, {self.run}, not two files")
        return self.hypothesis, self.reference

    def validate(self) -> list[str]:
        """Check that a run or two files are given, and nothing without effect."""
        if self.run is None and self.hypothesis is None and self.reference is None:
            return ["give a run folder, or --hypothesis and --reference"]
        if self.run is not None:
            names = ["hypothesis", "reference", "tokenize"]
            end = f"is for scoring two files, not a run ({self.run})"
        else:
            names = ["split", "output"]
            end = "is for a run, not for scoring two files"
        given = {name: getattr(self, name) for name in names}
        faults = [f"--{key} {value} {end}" for key, value in given.items() if value is not None]
        if self.run is None and self.reference is None:
            faults.append(f"--hypothesis {self.hypothesis} needs --reference")
        if self.run is None and self.hypothesis is None:
            faults.append(f"--reference {self.reference} needs --hypothesis")
        return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Config):
    """The training loop."""

    data: Annotated[Path, Opt("Prepared folder, from nmtflex preprocess.", argument=True)]
    run: Annotated[Path, Opt("Run folder to make; an unfinished one is resumed.")]
    epochs: Annotated[
        int | None, Opt("Passes over the training data (default 10).", ge=1, may_change=True)
    ] = None
    updates: Annotated[
        int | None, Opt("Optimiser steps, instead of --epochs.", ge=1, may_change=True)
    ] = None
    batch_tokens: Annotated[
        int | None,
        Opt("Tokens a batch: sentences x longest side, padding counted (default 4096).", ge=1),
    ] = None
    batch_sentences: Annotated[
        int | None, Opt("Sentences a batch, instead of --batch-tokens (paper 000: 32).", ge=1)
    ] = None
    accumulate: Annotated[int, Opt("Batches whose gradients make one update.", ge=1)] = 1
    lr: Annotated[float, Opt("Adam's learning rate (papers 000, 001: 1e-4).", gt=0)] = 1e-3
    halve_from: Annotated[
        int,
        Opt("Halve the rate at the start of this epoch and each later; 0 never (000: 4).", ge=0),
    ] = 0
    plateau: Annotated[
        int, Opt("Halve the rate after this many validations without a new best; 0 never.", ge=0)
    ] = 0
    clip: Annotated[
        float, Opt("Largest gradient norm; 0 for no clipping (paper 000: 3).", ge=0)
    ] = 3.0
    label_smoothing: Annotated[
        float, Opt("Probability spread evenly over the vocabulary.", ge=0, lt=1)
    ] = 0.0
    validate_every: Annotated[
        str | None,
        Opt("Updates, or minutes as 30m, between validations (default: each epoch)."),
    ] = None
    save_every: Annotated[
        float, Opt("Minutes between checkpoints that no validation makes.", gt=0, may_change=True)
    ] = 10.0
    valid_beam: Annotated[int, Opt("Beam size in validation.", ge=1, le=1000)] = 5
    best_by: Annotated[
        Literal["bleu", "perplexity"], Opt("What the best checkpoint is chosen by.")
    ] = "bleu"
    patience: Annotated[
        int,
        Opt("Stop after this many validations without a new best; 0 never.", ge=0, may_change=True),
    ] = 0
    keep: Annotated[int, Opt("Last checkpoints kept, beside the best.", ge=1, may_change=True)] = 2
    seed: Annotated[int, Opt("Seed of initial weights, order and dropout.", ge=0)] = 1
    log_every: Annotated[
        int, Opt("Updates between rows of metrics.csv.", ge=1, may_change=True)
    ] = 50

    @property
    def token_budget(self) -> int:
        """Tokens a batch, where batches are not counted in sentences."""
        return self.batch_tokens or 4096

    @property
    def last_epoch(self) -> int | None:
        """Epochs to train, or None where updates are counted."""
        return self.epochs or (None if self.updates else 10)

    @property
    def save_seconds(self) -> float:
        """Seconds between checkpoints."""
        return 60 * self.save_every

    def interval(self) -> tuple[int | None, float | None]:
        """Return (updates, seconds) between validations; both None means each epoch."""
        if self.validate_every is None:
            return None, None
        if self.validate_every.endswith("m"):
            return None, 60 * float(self.validate_every[:-1])
        return int(self.validate_every), None

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = []
        if self.epochs and self.updates:
            faults.append("give --epochs or --updates, not both")
        if self.batch_tokens and self.batch_sentences:
            faults.append("give --batch-tokens or --batch-sentences, not both")
        every = self.validate_every
        if every is not None and not re.fullmatch(r"[1-9]\d*|(?=.*[1-9])\d+(\.\d+)?m", every):
            faults.append(
                f"--validate-every must be a number of updates (500) or of minutes (30m), "
                f"not {every!r}"
            )
        return faults


Tokenizer = Literal["none", "moses", "char", "mecab"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessConfig(Config):
    """Raw parallel text to a prepared folder."""

    out: Annotated[Path, Opt("Prepared folder to make.")]
    source_lang: Annotated[str, Opt("Suffix of the source files, as en in corpus/train.en.")]
    target_lang: Annotated[str, Opt("Suffix of the target files.")]
    train: Annotated[
        list[Path], Opt("Corpus prefix, as corpus/train; may be given several times.")
    ] = dataclasses.field(default_factory=list)
    valid: Annotated[Path | None, Opt("Corpus prefix of the validation split.")] = None
    test: Annotated[Path | None, Opt("Corpus prefix of the test split.")] = None
    source_tokenizer: Annotated[Tokenizer, Opt("none parts at ASCII white space alone.")] = "none"
    target_tokenizer: Annotated[Tokenizer, Opt("Likewise for the target.")] = "none"
    mecab_dictionary: Annotated[
        Literal["ipadic", "unidic-lite"], Opt("Dictionary of the mecab tokenizer.")
    ] = "ipadic"
    bpe: Annotated[
        int, Opt("BPE merges learned by subword-nmt; 0 for words (paper 001: 16000).", ge=0)
    ] = 0
    joint: Annotated[
        bool,
        Opt(
            "Learn BPE and make the vocabulary over both sides together.", flag="--joint/--separate"
        ),
    ] = False
    source_vocabulary: Annotated[
        int, Opt("Most frequent source tokens kept; 0 keeps all (paper 000: 80000).", ge=0)
    ] = 0
    target_vocabulary: Annotated[
        int, Opt("Most frequent target tokens kept; 0 keeps all (paper 000: 40000).", ge=0)
    ] = 0
    min_frequency: Annotated[int, Opt("Times a token must be seen to be kept.", ge=1)] = 1
    max_length: Annotated[
        int | None,
        Opt(
            "Longest training sentence on either side, in tokens before BPE; 0 for no limit; "
            "default 100, or 500 for characters (paper 000: 50).",
            ge=0,
        ),
    ] = None
    max_ratio: Annotated[
        float, Opt("Longest training side over the other, in tokens; 0 for no limit.", ge=0)
    ] = 0.0
    workers: Annotated[int, Opt("Processes; the result is the same for any number.", ge=1)] = 1
    like: Annotated[
        Path | None,
        Opt("Run or prepared folder whose tokenizers, BPE codes and vocabularies are reused."),
    ] = None

    def validate(self) -> list[str]:
        """Check what concerns several options."""
        faults = [
            f"{flag} must be a file name's suffix without the dot, as en, not {language!r}"
            for flag, language in (
                ("--source-lang", self.source_lang),
                ("--target-lang", self.target_lang),
            )
            if not re.fullmatch(r"[^./\\\s][^/\\\s]*", language)
        ]
        if self.source_lang == self.target_lang:
            faults.append(f"--source-lang and --target-lang are both {self.source_lang!r}")
        if not (self.train or self.valid or self.test):
            faults.append("give at least one of --train, --valid and --test")
        elif not (self.train or self.like):
            faults.append("give --train, or --like a folder whose vocabularies serve")
        if 0 < self.max_ratio < 1:
            faults.append(f"--max-ratio must be 0 or at least 1, not {self.max_ratio}")
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
        """Map options given in vain to the reason; the default counts as not given."""
        given = {
            field.name
            for field in dataclasses.fields(self)
            if field.default is not dataclasses.MISSING
            and getattr(self, field.name) != field.default
        }
        options = options_of(type(self))
        names = {name: flag_of(name, option).split("/")[0] for name, (_, option) in options.items()}
        learned = ("source_tokenizer", "target_tokenizer", "mecab_dictionary", "bpe", "joint",
                   "source_vocabulary", "target_vocabulary", "min_frequency")  # fmt: skip
        idle: dict[str, str] = {}
        if not self.train:
            idle |= dict.fromkeys(("max_length", "max_ratio"), "without --train")
        if "mecab" not in (self.source_tokenizer, self.target_tokenizer):
            idle["mecab_dictionary"] = "without a mecab tokenizer"
        if self.like:
            idle |= dict.fromkeys(learned, "beside --like, which brings its own")
        return {names[name]: why for name, why in idle.items() if name in given}



@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateToyConfig(Config):
    """The toy corpus."""

    out: Annotated[Path, Opt("Folder to write train.en, train.ja and so on into.")]
    train: Annotated[int, Opt("Training pairs.", ge=1)] = 20_000
    valid: Annotated[int, Opt("Validation pairs; none of their sentences is in training.", ge=0)] = 500
    test: Annotated[int, Opt("Test pairs; none of their sentences is elsewhere.", ge=0)] = 500
    seed: Annotated[int, Opt("Seed; the same one draws the same corpus.", ge=0)] = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateCopyConfig(Config):
    """The copy task."""

    out: Annotated[Path, Opt("Folder to write train.src, train.tgt and so on into.")]
    max_length: Annotated[
        int,
        Opt("L: lengths are uniform over 1..L tokens (paper 001: 0..L, for L 10, 50, 100, 200; an "
            "empty pair would be dropped by preprocess).", ge=1),
    ] = 50
    vocabulary: Annotated[int, Opt("Different symbols (paper 001: 20).", ge=1)] = 20
    train: Annotated[int, Opt("Training sequences (paper 001: 100000).", ge=1)] = 100_000
    valid: Annotated[int, Opt("Validation sequences (paper 001: 1000).", ge=0)] = 1000
    test: Annotated[int, Opt("Test sequences.", ge=0)] = 1000
    seed: Annotated[int, Opt("Seed; the same one draws the same corpus.", ge=0)] = 1
