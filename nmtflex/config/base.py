"""Option groups: dataclasses whose fields carry help texts and bounds and are validated.

Each field is an option: its annotation holds the help text and the bounds, ``cli/bind.py`` creates
the flag, and ``Config.__post_init__`` checks the value wherever it comes from (flag, TOML file,
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

TOO_LARGE = 2**63  # no option accepts an integer from a file this large
Kinds = Mapping[str, "type[Variant]"]  # the family, or the chosen kind, by field
MOST_UNITS = 10**8  # per layer, since torch cannot count the weights of arbitrarily large matrices
FORMAT = 1  # of prepared folders; readers refuse newer ones
RUN_FORMAT = 2  # of runs, likewise


@dataclass(frozen=True, slots=True)
class Opt:
    """Metadata of an option.

    Args:
        help: Text for ``--help``: meaning, unit, the paper's value.
        ge: Inclusive lower bound.
        gt: Exclusive lower bound.
        le: Inclusive upper bound.
        lt: Exclusive upper bound.
        argument: Whether it is a positional argument instead of a flag.
        flag: Flag, if it is not the field's name with dashes (``--K``, ``--x/--no-x``).
        may_change: Whether it may change when training resumes.
        words: Words accepted in place of integers, such as auto, with their values.
        replaces: Options that this one conflicts with; it overrides those of a --config file.
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
        """Return what is wrong with a number, or None."""
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
    """Return the option's flag, for messages and for Typer."""
    return option.flag or "--" + field_name.replace("_", "-")


_READ: dict[type, dict[str, tuple[Any, Opt]]] = {}  # annotations, which are slow to read


def options_of(config: type[Config]) -> dict[str, tuple[Any, Opt]]:
    """Map each field of a config class to its plain type and its ``Opt``."""
    if config in _READ:
        return _READ[config]
    hints = get_type_hints(config, include_extras=True)
    found = {}
    for field in dataclasses.fields(config):
        plain, option = get_args(hints[field.name])[:2]
        found[field.name] = (plain, option)
    return _READ.setdefault(config, found)


def default_of(config: type[Config], name: str) -> Any:
    """Return the default of a field, or MISSING."""
    field = config.__dataclass_fields__[name]
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def families_of(config: type[Config]) -> dict[str, type[Variant]]:
    """Map the fields of a config class that select a kind to their families."""
    options = options_of(config).items()
    return {name: plain for name, (plain, _) in options if is_kind(plain, Variant)}


def all_options_of(config: type[Config]) -> dict[str, tuple[Any, Opt]]:
    """Like ``options_of``, but also with the options of every kind."""
    found = dict(options_of(config))
    for family in families_of(config).values():
        for kind in family.variants().values():
            found = options_of(kind) | found
    return found


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten tables of options; a table's kind is stored under the table's name.

    Raises:
        OptionError: An option has two different values.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        table = {"kind": value} | (value if isinstance(value, dict) else {})
        for key, item in {name: table.pop("kind"), **table}.items():
            if found.setdefault(key, item) != item:
                raise OptionError(f"option {key!r} has two values: {found[key]!r} and {item!r}")
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Base class of option groups: validation and conversion from and to JSON."""

    def __post_init__(self) -> None:
        """Check bounds, then rules across fields; report all faults at once."""
        faults = [
            fault
            for name, (_, option) in options_of(type(self)).items()
            if (fault := option.check(flag_of(name, option), getattr(self, name)))
        ]
        faults += self.validate()
        if faults:
            raise OptionError("; ".join(faults))

    def validate(self) -> list[str]:
        """Return the faults that involve several fields."""
        return []

    def given(self, why: Mapping[str, str]) -> list[str]:
        """Return a fault with its reason for each option in ``why`` that is not at its default."""
        faults = []
        for name, reason in why.items():
            default = default_of(type(self), name)
            if default is dataclasses.MISSING or (value := getattr(self, name)) == default:
                continue
            flag = flag_of(name, options_of(type(self))[name][1])
            flag = flag.split("/")[-1 if default is True else 0]
            shown = value if isinstance(value, list) else ["" if isinstance(value, bool) else value]
            faults += [" ".join(filter(None, (flag, str(one), reason))) for one in shown]
        return faults

    def idle(self, why: Mapping[str, str]) -> list[str]:
        """Return a fault for each option in ``why`` that is given but has no effect."""
        return self.given({name: f"has no effect {reason}" for name, reason in why.items()})

    @classmethod
    def from_flat(cls, **values: Any) -> Self:
        """Build from the flat values of flags, including the options of kinds.

        Args:
            values: By name; for a family, the name of a kind or a variant. None for a kind, or an
                option of a kind, means that it is not given.

        Raises:
            OptionError: A value is wrong, or an option belongs to a kind that was not chosen.
        """
        fields = {name: value for name, value in values.items() if name in options_of(cls)}
        rest = sorted(values.keys() - fields)
        given = {name: values[name] for name in rest if values[name] is not None}
        kinds = cls.kinds_of(values)
        for name in given:
            if not any(name in options_of(kind) for kind in kinds.values()):
                raise OptionError(_stranger(name, families_of(cls), kinds))
        for name, kind in kinds.items():
            own = {key: value for key, value in given.items() if key in options_of(kind)}
            ready = fields.get(name)
            if not isinstance(ready, Variant):
                own = kind.usual(kinds, values) | own
            else:
                own = Config.to_dict(ready) | own
            fields[name] = kind.from_dict(own)
        return cls(**fields)

    @classmethod
    def kinds_of(cls, values: Mapping[str, Any]) -> dict[str, type[Variant]]:
        """Return the kind of each family for the flat values of ``from_flat``.

        Raises:
            OptionError: There is no such kind.
        """
        options, kinds = options_of(cls), dict[str, type[Variant]]()
        given = [name for name, one in values.items() if name not in options and one is not None]
        for name, family in families_of(cls).items():
            chosen = values.get(name) or default_of(cls, name)
            kind = chosen.kind if isinstance(chosen, Variant) else chosen
            kinds[name] = family.named(name, family.kind_for(kind, given, kinds))
        return kinds

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; a variant includes its ``kind``."""
        return {name: _plain(getattr(self, name)) for name in options_of(type(self))}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild from ``to_dict``.

        Raises:
            OptionError: A key is unknown or missing, or a value has the wrong type.
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
    """Convert a field's value to plain JSON types."""
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def revive(name: str, plain: Any, value: Any) -> Any:
    """Convert a JSON or TOML value to the type of the field ``name``.

    Raises:
        OptionError: The value has another type, or is not one of the choices.
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
    """Return whether an annotation is a subclass of ``base``, not a list or union."""
    return isinstance(plain, type) and issubclass(plain, base)


def _revive_variant(name: str, family: type[Variant], value: Any) -> Variant:
    """Rebuild the variant that a dictionary describes."""
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
    """Return the message for an option whose kinds were not chosen."""
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
    """Return an integer as the type of the field ``name``."""
    if abs(value) >= TOO_LARGE:
        raise OptionError(f"option {name!r} is too large")
    return plain(value)


def _shown(value: Any) -> str:
    """Return a value for a message; Python refuses to print integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return "this"


def _words(plain: Any) -> str:
    """Describe the values that a type allows."""
    if get_origin(plain) is Literal:
        return "one of " + ", ".join(get_args(plain))
    known = {bool: "true or false", int: "an integer", float: "a number", Path: "a path"}
    return known.get(plain, "a list" if get_origin(plain) is list else "a string")


def nearest(name: str, known: Any) -> str:
    """Return ``"; did you mean X?"``, a synonym from other toolkits or the closest name, or ""."""
    spelt = {plain_name(one): one for one in known}
    meant = [spelt[ours] for ours in (plain_name(name), *synonyms(name)) if ours in spelt]
    close = meant or difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {' and '.join(close)}?" if close else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant(Config):
    """Base class of a family of option groups, selected by ``kind``: one subclass per kind."""

    kind: ClassVar[str] = ""

    @classmethod
    def variants(cls) -> dict[str, type[Self]]:
        """Map each ``kind`` to its class, in order of definition."""
        found: dict[str, type[Self]] = {}
        for sub in cls.__subclasses__():
            # slots=True creates each class twice; only the one that the module keeps has slots.
            if "__slots__" in sub.__dict__:
                found |= {sub.kind: sub} if sub.kind else sub.variants()
        return found

    @classmethod
    def named(cls, name: str, kind: Any) -> type[Self]:
        """Return the class of a kind of the field ``name``; raise OptionError if it is unknown."""
        kinds = cls.variants()
        if kind not in list(kinds):
            raise OptionError(
                f"option {name!r} must be one of {', '.join(kinds)}, not {_shown(kind)}"
                f"{nearest(str(kind), kinds)}"
            )
        return kinds[kind]

    @classmethod
    def owners(cls) -> dict[str, list[str]]:
        """Map each option to the kinds that have it."""
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
        """Return the kind to use; ``kind`` is empty if there is neither a choice nor a default.

        ``given`` holds the options given for kinds, ``others`` the choices of earlier families.
        """
        return kind

    @classmethod
    def usual(cls, kinds: Kinds, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return defaults of this kind that depend on other kinds or on other flat values."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types with the ``kind`` first."""
        return {"kind": self.kind, **Config.to_dict(self)}
