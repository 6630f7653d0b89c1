"""What an option group is: fields that carry help and bounds, and check themselves.

A field is an option: its annotation carries the help text and the bounds, ``cli/bind.py`` makes
the flag, and ``Config.__post_init__`` checks the value wherever it came from (flag, TOML file,
JSON of a run, Python).
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from nmtflex.config.synonyms import plain_name, synonyms
from nmtflex.errors import OptionError

TOO_LARGE = 2**63  # whole numbers of files from here on are none that an option takes
Kinds = Mapping[str, "type[Variant]"]  # the family, or the chosen kind, of each such field
MOST_UNITS = 10**8  # of a layer; torch cannot count the weights of a matrix of ever so many
FORMAT = 1  # of prepared folders; a reader refuses what is newer
RUN_FORMAT = 2  # of runs, alike


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
        words: Spellings of whole numbers that stand for something else, such as auto.
        replaces: Options that do not go with this one; of a --config file they make way for it.
        also: Other spellings of the flag.
    """

    help: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    argument: bool = False
    flag: str | None = None
    may_change: bool = False
    words: Mapping[str, int] = dataclasses.field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

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
        if value in self.words.values():
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


def default_of(config: type[Config], name: str) -> Any:
    """Return the default of a field; MISSING where it has none."""
    field = config.__dataclass_fields__[name]
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def families_of(config: type[Config]) -> dict[str, type[Variant]]:
    """Map those fields of a config class that choose among kinds to their families."""
    options = options_of(config).items()
    return {name: plain for name, (plain, _) in options if is_kind(plain, Variant)}


def all_options_of(config: type[Config]) -> dict[str, tuple[Any, Opt]]:
    """Map each option of a config class to its plain type and its ``Opt``; those of kinds too."""
    found = dict(options_of(config))
    for family in families_of(config).values():
        for kind in family.variants().values():
            found = options_of(kind) | found
    return found


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with those of tables among them, and a table's kind under its name.

    Raises:
        OptionError: Two tables give an option two values.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        table = {"kind": value} | (value if isinstance(value, dict) else {})
        for key, item in {name: table.pop("kind"), **table}.items():
            if found.setdefault(key, item) != item:
                raise OptionError(f"option {key!r} is given twice, as {found[key]!r} and {item!r}")
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

    def given(self, why: Mapping[str, str]) -> list[str]:
        """Say of options that differ from their defaults why they should not; ``why`` by name."""
        faults = []
        for name, reason in why.items():
            if (value := getattr(self, name)) == default_of(type(self), name):
                continue
            flag = flag_of(name, options_of(type(self))[name][1])
            shown = value if isinstance(value, list) else ["" if isinstance(value, bool) else value]
            faults += [" ".join(filter(None, (flag, str(one), reason))) for one in shown]
        return faults

    @classmethod
    def from_flat(cls, **values: Any) -> Self:
        """Build from options as flags give them, those of kinds among the others.

        Args:
            values: By name; of a family the name of a kind or a ready variant. None is an option of
                a kind, or a kind, that is not given.

        Raises:
            OptionError: A value is wrong, or an option is of a kind that was not chosen.
        """
        fields = {name: value for name, value in values.items() if name in options_of(cls)}
        rest = sorted(values.keys() - fields)
        given = {name: values[name] for name in rest if values[name] is not None}
        families, kinds = families_of(cls), dict[str, type[Variant]]()
        for name, family in families.items():
            chosen = fields.get(name) or default_of(cls, name)
            kind = chosen.kind if isinstance(chosen, Variant) else chosen
            kinds[name] = family.named(name, family.kind_for(kind, given, kinds))
        for name in given:
            if not any(name in options_of(kind) for kind in kinds.values()):
                raise OptionError(_stranger(name, families, kinds))
        for name, kind in kinds.items():
            own = {key: value for key, value in given.items() if key in options_of(kind)}
            ready = fields.get(name)
            if isinstance(ready, Variant):
                own = Config.to_dict(ready) | own
            fields[name] = kind.from_dict(own)
        return cls(**fields)

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
        for name in sorted(options.keys() - values):
            if default_of(cls, name) is dataclasses.MISSING:
                raise OptionError(f"option {name!r} is missing")
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
    if is_kind(plain, Variant):
        return _revive_variant(name, plain, value)
    if get_origin(plain) in (types.UnionType, Union):
        if value is None:
            return None
        plain = next(part for part in get_args(plain) if part is not type(None))
    if get_origin(plain) is list and isinstance(value, list):
        return [revive(name, get_args(plain)[0], item) for item in value]
    if plain is Path and isinstance(value, str | Path):
        return Path(value)
    if plain in (int, float) and type(value) is int:
        return _number(name, plain, value)
    if get_origin(plain) is Literal:
        if value in get_args(plain):
            return value
    elif isinstance(plain, type) and type(value) is plain:
        return value
    raise OptionError(f"option {name!r} must be {_words(plain)}, not {_shown(value)}")


def is_kind(plain: Any, base: type) -> bool:
    """Return whether an annotation is a class of that kind, and no list or union."""
    return isinstance(plain, type) and issubclass(plain, base)


def _revive_variant(name: str, family: type[Variant], value: Any) -> Variant:
    """Rebuild the kind that a dictionary names."""
    kinds = family.variants()
    if not isinstance(value, dict):
        raise OptionError(f"option {name!r} needs a kind ({', '.join(kinds)}), not {_shown(value)}")
    if "kind" not in value:
        raise OptionError(f"option {name!r} needs a kind ({', '.join(kinds)})")
    variant = family.named(name, value["kind"])
    for key in value:
        if key not in options_of(variant) and (owners := family.owners().get(key)):
            raise OptionError(
                f"option {key!r} belongs to {name} {' and '.join(owners)}, not to {variant.kind}"
            )
    return variant.from_dict({key: item for key, item in value.items() if key != "kind"})


def _stranger(name: str, families: Kinds, kinds: Kinds) -> str:
    """Say of an option which kinds have it, and that they were not chosen."""
    for family, plain in families.items():
        if owners := plain.owners().get(name):
            own = options_of(kinds[family]).items()
            flag = flag_of(name, options_of(plain.variants()[owners[0]])[name][1])
            return (
                f"{flag} belongs to --{family} {' and '.join(owners)}, not to "
                f"{kinds[family].kind}{nearest(flag, [flag_of(key, one) for key, (_, one) in own])}"
            )
    return f"unknown option {name!r}"


def _number(name: str, plain: type[int | float], value: int) -> int | float:
    """Return a whole number as the type of the field ``name``."""
    if abs(value) >= TOO_LARGE:
        raise OptionError(f"option {name!r} is too large a number")
    return plain(value)


def _shown(value: Any) -> str:
    """Return a value for a message; Python writes no number of many thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return "this"


def _words(plain: Any) -> str:
    """Say in words what a type allows."""
    if get_origin(plain) is Literal:
        return "one of " + ", ".join(get_args(plain))
    known = {bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}
    return known.get(plain, "a list" if get_origin(plain) is list else "a string")


def nearest(name: str, known: Any) -> str:
    """Return ``"; did you mean X?"`` for what other toolkits call so, or the closest known name.

    Nothing where there is neither.
    """
    spelt = {plain_name(one): one for one in known}
    meant = [spelt[ours] for ours in (plain_name(name), *synonyms(name)) if ours in spelt]
    close = meant or difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {' and '.join(close)}?" if close else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant(Config):
    """A family of option groups told apart by ``kind``; a subclass joins by being defined."""

    kind: ClassVar[str] = ""

    @classmethod
    def variants(cls) -> dict[str, type[Self]]:
        """Map each ``kind`` to its class, in order of definition."""
        found: dict[str, type[Self]] = {}
        for sub in cls.__subclasses__():
            # slots=True makes each class twice; only the one that the module keeps has its fields.
            if "__slots__" in sub.__dict__:
                found |= {sub.kind: sub} if sub.kind else sub.variants()
        return found

    @classmethod
    def named(cls, name: str, kind: Any) -> type[Self]:
        """Return the class of a kind; an OptionError that gives the field's name if none has it."""
        kinds = cls.variants()
        if kind not in list(kinds):
            raise OptionError(
                f"option {name!r} must be one of {', '.join(kinds)}, not {_shown(kind)}"
                f"{nearest(str(kind), kinds)}"
            )
        return kinds[kind]

    @classmethod
    def owners(cls) -> dict[str, list[str]]:
        """Map every option of any kind to the kinds that have it."""
        found: dict[str, list[str]] = {}
        for kind, variant in cls.variants().items():
            for field in options_of(variant):
                found.setdefault(field, []).append(kind)
        return found

    @classmethod
    def common(cls) -> list[str]:
        """Return the options that every kind has."""
        return [name for name, kinds in cls.owners().items() if len(kinds) == len(cls.variants())]

    @classmethod
    def kind_for(cls, kind: str, given: Collection[str], others: Kinds) -> str:
        """Return the kind that is meant: ``kind`` is empty without a choice and a default.

        ``given`` are options of kinds, and ``others`` what the families before this one chose.
        """
        return kind

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types with the ``kind`` first."""
        return {"kind": self.kind, **Config.to_dict(self)}
