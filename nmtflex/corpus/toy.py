"""The toy corpus: English and Japanese sentences drawn together from a small grammar.

The grammar and its words are the text files of ``data/toy``; ``data/README.md`` says how to read
and extend them. A rule has one template a side over the same slots, so both sentences come from one
derivation and differ in order, number of words and form. An English sentence has one Japanese
rendering, so a model can learn the corpus without error.

The grammar spans about 10^11 sentences of 4 to about 25 words, over about 330 words a side.
"""

from __future__ import annotations

import itertools
import random
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import nmtflex
from nmtflex.config import GenerateToyConfig
from nmtflex.corpus.parallel import OnProgress, Pair, Splits, numbered
from nmtflex.errors import DataError, OptionError

LANGUAGES = ("en", "ja")

_SLOT = re.compile(r"\{(\w+)(?:\.(\w+|\*))?\}")
_PATIENCE = 5_000  # draws in a row without a new sentence; then the grammar is exhausted

Asked = frozenset[
    tuple[str, str]
]  # (side, form) pairs that the surrounding templates need of a slot
Arguments = tuple[tuple[str, str], ...]  # fields and values that a slot requires of its item


class Slot(NamedTuple):
    """A place in a template: the slot's name and the form needed (``*``: the whole's)."""

    name: str
    form: str


class Condition(NamedTuple):
    """What a slot requires of a field of its item.

    Args:
        field: The field.
        owner: ``my``, or an earlier slot, whose field ``values[0]`` gives the value; "" for literal
            values.
        values: The values to choose from; none if the field must only exist.
    """

    field: str
    owner: str
    values: tuple[str, ...]


class Query(NamedTuple):
    """What fills a slot: an item of a symbol, under conditions."""

    symbol: str
    conditions: tuple[Condition, ...]


class Item(NamedTuple):
    """A rule (with slots) or a word (without)."""

    fields: dict[str, Any]
    slots: dict[str, Query]
    templates: dict[str, dict[str, list[str | Slot]]]  # language, form: parts
    weight: float

    def template(self, side: str, form: str) -> list[str | Slot] | None:
        """Return the item's template of a form, or None if it lacks the form."""
        forms = self.templates[side]
        if form in forms:
            return forms[form]
        if isinstance(self.fields.get(form), str):
            return [self.fields[form]]
        whole = forms.get("", [])
        hands_down = any(isinstance(part, Slot) and part.form == "*" for part in whole)
        return whole if hands_down else None

    def meets(self, arguments: Arguments) -> bool:
        """Whether the item fits; a rule without a field accepts any value of it."""
        for field, value in arguments:
            own = self.fields.get(field)
            if own is None and self.slots:
                continue
            if own is None or (value and value not in _listed(own)):
                return False
        return True


class Node(NamedTuple):
    """A derivation: an item, what was required of it, and what fills its slots."""

    item: Item
    arguments: dict[str, str]
    children: dict[str, Node]

    def render(self, side: str, form: str = "") -> str:
        """Return the words of one side in one form."""
        words = []
        for part in self.item.template(side, form) or ():
            if isinstance(part, Slot):
                inner = form if part.form == "*" else part.form
                words.append(self.children[part.name].render(side, inner))
            else:
                words.append(part)
        return " ".join(words)


class _DeadEndError(Exception):
    """Nothing (left) fills a slot; the sentence is drawn again."""


class Grammar:
    """A synchronous grammar: one item of each symbol is drawn by weight.

    Args:
        symbols: The items of each symbol; ``sentence`` is where a derivation starts.
    """

    def __init__(self, symbols: dict[str, list[Item]]) -> None:
        self.symbols = symbols
        self._suitable: dict[tuple[str, Arguments, Asked], tuple[list[Item], list[float]]] = {}

    @classmethod
    def load(cls, folder: Path) -> Grammar:
        """Read all TOML files of a folder.

        Raises:
            DataError: The folder is missing, a file is not TOML, or a rule names an unknown symbol
                or slot.
        """
        symbols: dict[str, list[Item]] = {}
        agreement: dict[str, dict[str, str]] = {}
        paths = sorted(folder.glob("*.toml"))
        if not paths:
            raise DataError(f"{folder}: contains no grammar (*.toml); install nmtflex again")
        for path in paths:
            try:
                tables = tomllib.loads(path.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise DataError(f"{path}: {error}") from error
            agreement |= tables.pop("agreement", {})
            for symbol, items in tables.items():
                for number, table in enumerate(items, 1):
                    place = f"{path}: {symbol} {number}"
                    symbols.setdefault(symbol, []).append(_read_item(table, place))
        for items in symbols.values():
            for item in items:
                forms = agreement.get(item.fields.get("number", ""), {})
                item.templates["en"].update({form: [word] for form, word in forms.items()})
        _check_symbols(symbols, folder)
        return cls(symbols)

    def draw(self, rng: random.Random) -> Pair:
        """Draw a sentence and its translation; no word occurs in it twice.

        Raises:
            DataError: Every draw reached a slot that nothing fills.
        """
        asked = frozenset((side, "") for side in LANGUAGES)
        for _ in range(_PATIENCE):
            try:
                node = self._derive("sentence", (), asked, rng, set())
            except _DeadEndError:
                continue
            english = re.sub(r"\ba (?=[aeiou])", "an ", node.render("en"))
            return english[0].upper() + english[1:], node.render("ja")
        rules = len(self.symbols["sentence"])
        raise DataError(
            f"the toy grammar made no sentence in {_PATIENCE:,} draws from {rules} rules; "
            f"no word has the fields and forms they need"
        )

    def _derive(
        self, symbol: str, arguments: Arguments, asked: Asked, rng: random.Random, used: set[int]
    ) -> Node:
        """Draw a fitting item of a symbol, and fill its slots in order."""
        items, weights = self._candidates(symbol, arguments, asked)
        if not items:
            raise _DeadEndError
        item = rng.choices(items, cum_weights=weights)[0]
        if id(item) in used:
            raise _DeadEndError
        if not item.slots:
            used.add(id(item))
        node = Node(item, dict(arguments), {})
        for name, query in item.slots.items():
            demands = tuple(self._demands(query, node, rng))
            needs = _needs(item, name, asked)
            node.children[name] = self._derive(query.symbol, demands, needs, rng, used)
        return node

    def _candidates(
        self, symbol: str, arguments: Arguments, asked: Asked
    ) -> tuple[list[Item], list[float]]:
        """Return the items that fit and have the forms needed, and their cumulative weights."""
        key = (symbol, arguments, asked)
        if key not in self._suitable:
            items = [
                item
                for item in self.symbols[symbol]
                if item.meets(arguments)
                and all(item.template(side, form) is not None for side, form in asked)
            ]
            self._suitable[key] = items, list(itertools.accumulate(item.weight for item in items))
        return self._suitable[key]

    @staticmethod
    def _demands(query: Query, node: Node, rng: random.Random) -> list[tuple[str, str]]:
        """Return the values of a slot's conditions in this derivation."""
        demands = []
        for field, owner, values in query.conditions:
            if owner == "my":
                if values[0] not in node.arguments:
                    continue
                values = (node.arguments[values[0]],)
            elif owner:
                other = node.children[owner]
                values = _listed(other.item.fields.get(values[0], other.arguments.get(values[0])))
                if not values:
                    raise _DeadEndError
            demands.append((field, rng.choice(values) if values else ""))
        return demands


def _needs(item: Item, name: str, asked: Asked) -> Asked:
    """Return the forms that an item's templates need of one slot, given the forms asked."""
    return frozenset(
        (side, form if part.form == "*" else part.form)
        for side, form in asked
        for part in item.template(side, form) or ()
        if isinstance(part, Slot) and part.name == name
    )


def _listed(value: Any) -> tuple[str, ...]:
    """Return a field's values as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _read_item(table: dict[str, Any], place: str) -> Item:
    """Read a rule or a word from its TOML table."""
    fields = dict(table)
    if missing := [side for side in LANGUAGES if side not in fields]:
        raise DataError(f"{place}: no {missing[0]!r}")
    slots = {name: _read_query(text) for name, text in fields.pop("with", {}).items()}
    weight = float(fields.pop("weight", 1))
    texts = {side: fields.pop(side) for side in LANGUAGES}
    # A side written as one string is the same in every form that the other side has.
    all_forms = {form for text in texts.values() if isinstance(text, dict) for form in text}
    templates: dict[str, dict[str, list[str | Slot]]] = {}
    for side, text in texts.items():
        forms = text if isinstance(text, dict) else dict.fromkeys(["", *all_forms], text)
        templates[side] = {form: _read_template(line) for form, line in forms.items()}
    known = set(slots)
    for part in itertools.chain(*(line for forms in templates.values() for line in forms.values())):
        if isinstance(part, Slot) and part.name not in known:
            raise DataError(f"{place}: {{{part.name}}} is not among the slots of 'with'")
    return Item(fields, slots, templates, weight)


def _read_template(line: str) -> list[str | Slot]:
    parts: list[str | Slot] = []
    for word in line.split():
        found = _SLOT.fullmatch(word)
        parts.append(Slot(found[1], found[2] or "") if found else word)
    return parts


def _read_query(text: str) -> Query:
    """Read ``"noun class=my.class counter"``: a symbol and its conditions."""
    symbol, *rest = text.split()
    conditions = []
    for condition in rest:
        field, _, value = condition.partition("=")
        owner, dot, of_owner = value.partition(".")
        values = (of_owner,) if dot else tuple(value.split("|")) if value else ()
        conditions.append(Condition(field, owner if dot else "", values))
    return Query(symbol, tuple(conditions))


def _check_symbols(symbols: dict[str, list[Item]], folder: Path) -> None:
    """Refuse a grammar whose rules name unknown symbols."""
    items = itertools.chain.from_iterable(symbols.values())
    asked = {query.symbol for item in items for query in item.slots.values()}
    if unknown := sorted((asked | {"sentence"}) - set(symbols)):
        raise DataError(f"{folder}: the rules use {unknown[0]!r}, which no file there defines")


def toy_folder() -> Path:
    """Return the toy grammar's folder: inside an installed package, beside it in a checkout."""
    package = Path(nmtflex.__file__).parent
    inside = package / "data" / "toy"
    return inside if inside.is_dir() else package.parent / "data" / "toy"


def generate_toy(
    config: GenerateToyConfig,
    grammar: Grammar | None = None,
    progress: OnProgress = lambda *_: None,
) -> Splits:
    """Draw the splits: no English or Japanese sentence occurs in two pairs, in any split.

    Test and validation are drawn first, so they do not change when only ``--train`` changes.

    Args:
        config: What to draw.
        grammar: Replaces the toy grammar.
        progress: Called with the stage and the pairs done.

    Raises:
        OptionError: The grammar has no more sentences.
    """
    grammar = grammar or Grammar.load(toy_folder())
    rng = random.Random(config.seed)
    seen: tuple[set[str], set[str]] = (set(), set())
    sizes = {"test": config.test, "valid": config.valid, "train": config.train}
    drawn = {
        split: [_draw_new(grammar, seen, rng) for _ in numbered(size, f"drawing {split}", progress)]
        for split, size in sizes.items()
    }
    return {split: drawn[split] for split in reversed(sizes)}


def _draw_new(grammar: Grammar, seen: tuple[set[str], set[str]], rng: random.Random) -> Pair:
    """Draw a pair whose sides are both new."""
    for _ in range(_PATIENCE):
        source, target = grammar.draw(rng)
        if source not in seen[0] and target not in seen[1]:
            seen[0].add(source)
            seen[1].add(target)
            return source, target
    raise OptionError(
        f"the toy grammar gave no new sentence in {_PATIENCE:,} draws after "
        f"{len(seen[0]):,} pairs; lower --train, --valid or --test"
    )
