"""Options of a call: what of the options of ``nmtflex.load`` may differ from call to call."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from nmtflex.config import (
    BatchConfig,
    Config,
    Opt,
    SearchConfig,
    ThresholdConfig,
    nearest,
    options_of,
)
from nmtflex.errors import OptionError
from nmtflex.text.glossary import Glossary

Group = TypeVar("Group", bound=Config)

# They change how sources are read, or how weights are laid out.
AT_LOADING = ("max_source_length", "int8")


class CallOptions(TypedDict, total=False):
    """Options of a call, in place of those of ``nmtflex.load``; None stands for those.

    A call costs no more for them: the weights are shared.

    Attributes:
        beam: Beam size; 1 is greedy search.
        length_penalty: Alpha in log-probability / length^alpha.
        no_repeat_ngram: Tokens in a row that a translation never repeats; 0 allows repeats.
        retry_loops: Whether translations that repeat themselves up to the maximum length are
            searched again without repeating 4 tokens in a row.
        max_length: Longest output in tokens, in place of ``max_length_ratio``.
        max_length_ratio: Longest output in tokens for each source token, plus 20.
        replace_unk: Whether unknown words are replaced by the source words attended to.
        unk: Text for an unknown word that is not replaced.
        tau: Threshold of flexible attention: a number, "inf" or "auto".
        reuse_below: Gate below which steps do not attend; for runs of ``--attend-every gate``.
        batch_sentences: Sentences decoded together; affects only speed.
        word_scores: Whether translations carry ``word_scores``, ``confidence`` and ``unaligned``;
            for runs of ``nmtflex calibrate``.
        glossary: Terms that come out as given: a ``Glossary``, or source to target terms.
        prefix: Text that translations begin with.
    """

    beam: int | None
    length_penalty: float | None
    no_repeat_ngram: int | None
    retry_loops: bool | None
    max_length: int | None
    max_length_ratio: float | None
    replace_unk: bool | None
    unk: str | None
    tau: float | str | None
    reuse_below: float | None
    batch_sentences: int | None
    word_scores: bool | None
    glossary: Glossary | Mapping[str, str] | None
    prefix: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReturnedConfig(Config):
    """What a call returns of a line."""

    n_best: Annotated[int, Opt("Translations of each line, at most the beam size.", ge=1)] = 1
    trace: Annotated[bool, Opt("Whether the best one carries a trace.")] = False
    align: Annotated[bool, Opt("Whether each carries its word alignment.")] = False
    word_scores: Annotated[bool, Opt("Whether each carries scores of its words.")] = False


class Options(NamedTuple):
    """The options that translate a line."""

    search: SearchConfig
    threshold: ThresholdConfig
    batch: BatchConfig
    returned: ReturnedConfig = ReturnedConfig()
    glossary: Glossary | None = None
    prefix: str = ""

    def changed(
        self, caller: str, given: Mapping[str, Any], without: Sequence[str] = ()
    ) -> Options:
        """Return the options of a call.

        Args:
            caller: The method, for messages.
            given: Options by name; None where the present one stays.
            without: Options that the method does not have.

        Raises:
            OptionError: One is unknown, belongs to ``nmtflex.load``, or has an invalid value.
            DataError: Terms are no glossary.
        """
        if not (left := {name: value for name, value in given.items() if value is not None}):
            return self
        if name := next((name for name in AT_LOADING if name in left), None):
            raise OptionError(
                f"{caller}: {name} cannot change between calls; give it to nmtflex.load"
            )
        refused = {name: left.pop(name) for name in without if name in left}
        found = Options(
            search=_changed(self.search, left),
            threshold=_changed(self.threshold, left),
            batch=_changed(self.batch, left),
            returned=_changed(self.returned, left),
            glossary=_glossary(left.pop("glossary", self.glossary)),
            prefix=left.pop("prefix", self.prefix),
        )
        groups = type(self.search), type(self.threshold), type(self.batch), type(self.returned)
        refuse_rest(caller, left | refused, groups, (*AT_LOADING, *without))
        return found


def take(group: type[Config], options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that belong to a group out of others."""
    found = {name: options.pop(name) for name in options_of(group) if name in options}
    if found.get("tau") is not None:  # 1.38 as well as "1.38"
        found["tau"] = str(found["tau"])
    return found


def refuse_rest(
    caller: str,
    rest: Mapping[str, Any],
    groups: Sequence[type[Config]],
    without: Sequence[str] = (),
) -> None:
    """Refuse the options that no group has taken.

    Raises:
        OptionError: There is one; names the nearest of the groups.
    """
    if rest:
        name = min(rest)
        known = [key for group in groups for key in options_of(group) if key not in without]
        raise OptionError(f"{caller}: unknown option {name!r}{nearest(name, known)}")


def _changed(group: Group, options: dict[str, Any]) -> Group:
    """Take a group's options out of others; return it with them, without what they replace."""
    kind = type(group)
    if not (given := take(kind, options)):
        return group
    replaced = {other for name in given for other in options_of(kind)[name][1].replaces}
    return kind.from_dict(
        {name: value for name, value in group.to_dict().items() if name not in replaced} | given
    )


def _glossary(terms: object) -> Glossary | None:
    """Return terms as a glossary.

    Raises:
        OptionError: They are something else.
        DataError: A term or its translation is not as ``Glossary`` wants it.
    """
    if terms is None or isinstance(terms, Glossary):
        return terms
    if isinstance(terms, Mapping):
        return Glossary(terms)
    raise OptionError(
        "option 'glossary' must be a dictionary of source to target terms or a Glossary (a file: "
        f"nmtflex.Glossary.read), not {terms!r}"
    )


class Alike(NamedTuple):
    """Lines with the same options, but for the maximum length and the prefix."""

    options: Options
    places: list[int]  # of the lines
    limits: list[int] | None  # most tokens of their translations
    prefixes: list[str] | None  # what they begin with


def alike(options: Sequence[Options]) -> Iterator[Alike]:
    """Group lines that can be decoded together.

    Args:
        options: Of each line.
    """
    groups: dict[Options, list[int]] = {}
    for place, one in enumerate(options):
        search = dataclasses.replace(one.search, max_length=min(one.search.max_length, 1))
        groups.setdefault(one._replace(search=search, prefix=""), []).append(place)
    for shared, places in groups.items():
        prefixes = [options[place].prefix for place in places]
        given = prefixes if any(prefixes) else None
        if not shared.search.max_length:
            yield Alike(shared, places, None, given)
            continue
        limits = [options[place].search.max_length for place in places]
        search = dataclasses.replace(shared.search, max_length=max(limits))
        yield Alike(shared._replace(search=search), places, limits, given)
