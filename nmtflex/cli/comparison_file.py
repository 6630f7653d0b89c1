"""The file of ``nmtflex compare``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from nmtflex.cli.comparison_options import COMMANDS, Tables
from nmtflex.cli.config_file import parse_toml
from nmtflex.comparison.plan import Comparison, Entry
from nmtflex.config import (
    BenchConfig,
    CompareConfig,
    Decoding,
    DeviceConfig,
    FinetuneConfig,
    ModelConfig,
    all_options_of,
    nearest,
    options_of,
)
from nmtflex.errors import OptionError

NAME = r"\w[\w.,+()= -]*"  # of an entry, and of its folders
SHARED = "entries-of"  # another file, whose entries come first
KEYS = ("data", "out", "seeds", SHARED, "entries", *COMMANDS)
START = "from"  # the entry whose runs another one takes over
WEIGHTS = ("init-from", "init_from")  # of train: a run, or here an entry
OWN_TABLES = ("finetune", "sweep", "eval")  # of an entry, beside its options of train


def read_comparison(config: CompareConfig) -> Comparison:
    """Read the file of a comparison, and check every option in it.

    Raises:
        OptionError: An option is unknown, not valid or without effect.
    """
    found = parse_toml(config.file, "")
    try:
        return _Reader(config, found).read()
    except OptionError as error:
        raise OptionError(f"{config.file}: {error}") from error


class _Reader:
    """Reads the tables of a file.

    Args:
        config: Flags, which override the file.
        found: What the file has.

    Raises:
        OptionError: It has a key that nobody reads, or an option that is not valid.
    """

    def __init__(self, config: CompareConfig, found: dict[str, Any]) -> None:
        for key in found:
            if key not in KEYS:
                raise OptionError(f"unknown key {key!r}{nearest(key, KEYS)}")
        self.config = config
        self.found = found
        self.tables = {name: Tables(name, found.get(name, {}), config.updates) for name in COMMANDS}
        self.trained: dict[str, Mapping[str, Any]] = {}  # options of train, by entry

    def read(self) -> Comparison:
        """Return the comparison.

        Raises:
            OptionError: As ``read_comparison``.
        """
        entries: dict[str, Entry] = {}
        for name, table in self._tables_of_entries().items():
            entries[name] = self._entry(name, table, entries)
        for tables in self.tables.values():
            tables.check_used()
        out = self.config.out or self._path("out") or Path("runs", self.config.file.stem)
        if self.config.updates is not None:
            out /= f"trial-{self.config.updates}"
        data = self.config.data or self._path("data")
        if data is None:
            raise OptionError("give data: a folder that nmtflex preprocess has made")
        bench = self.tables["bench"]
        split = _part(self.tables["eval"].options({}, "[eval]"), ["split"])
        config = bench.build(BenchConfig, bench.options({}, "[bench]", split))
        return Comparison(
            data, out, _seeds(self.found.get("seeds", [1])), list(entries.values()), config
        )

    def _tables_of_entries(self) -> dict[str, dict[str, Any]]:
        """Return the table of each entry: those of the file that is named, then its own.

        One of its own takes the place of the other file's with the same name.
        """
        other = self._path(SHARED)
        if other is None:
            return _entries(self.found.get("entries"))
        path = self.config.file.parent / other
        found = parse_toml(path, "")
        if SHARED in found:
            raise OptionError(f"{path} takes the entries of {found[SHARED]} itself; name that file")
        try:
            shared = _entries(found.get("entries"))
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from error
        return shared | (_entries(self.found["entries"]) if "entries" in self.found else {})

    def _path(self, key: str) -> Path | None:
        value = self.found.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise OptionError(f"{key} must be a path, not {value!r}")
        return None if value is None else Path(value)

    def _entry(self, name: str, table: dict[str, Any], above: Mapping[str, Entry]) -> Entry:
        """Read an entry: its own keys are options of train, its tables those of other commands."""
        where = f"entries.{name}"
        own = {key: value for key, value in table.items() if key not in (START, *OWN_TABLES)}
        start = table.get(START)
        weights = None
        if start is None:
            weights = next((own.pop(key) for key in WEIGHTS if str(own.get(key)) in above), None)
            self.trained[name] = self.tables["train"].options(own, f"[{where}]")
        elif start not in above:
            raise OptionError(f"[{where}]: {START} = {start!r} must name an entry above this one")
        elif own:
            raise OptionError(
                f"[{where}]: {min(own)!r} has no effect on an entry with runs of {start!r}; leave "
                f"it out, or leave {START} out"
            )
        else:
            self.trained[name] = self.trained[start]
        scoring = self.tables["eval"].options(table.get("eval", {}), f"[{where}.eval]")
        decoding = _part(scoring, _fields_of_decoding())
        device = _part(self.trained[name], options_of(DeviceConfig))
        finetune = self._stage("finetune", table, where, device)
        sweep = self._stage("sweep", table, where, decoding | {"tau": None})
        if sweep is not None and scoring.get("tau") is not None:
            raise OptionError(
                f"[{where}]: tau = {scoring['tau']} of eval, and sweep chooses one; leave one out"
            )
        train, tuning = self.tables["train"], self.tables["finetune"]
        return Entry(
            name=name,
            begins_with=start,
            init_from=weights,
            model=train.build(ModelConfig, self.trained[name]),
            train=train.words(self.trained[name]) if start is None else [],
            finetune=self._words("finetune", finetune),
            finetuning=None if finetune is None else tuning.build(FinetuneConfig, finetune),
            sweep=self._words("sweep", sweep),
            evaluate=self.tables["eval"].words(scoring),
            files=self.tables["eval"].files(scoring),
            decoding=self._decoding(decoding, where),
        )

    def _stage(
        self, name: str, table: Mapping[str, Any], where: str, usual: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the options of a stage of an entry; None if the entry does not have it."""
        if name not in table:
            return None
        usual = {key: value for key, value in usual.items() if value is not None}
        return self.tables[name].options(table[name], f"[{where}.{name}]", usual)

    def _words(self, name: str, options: dict[str, Any] | None) -> list[str] | None:
        return None if options is None else self.tables[name].words(options)

    def _decoding(self, usual: Mapping[str, Any], where: str) -> Decoding:
        """Return how the speed of an entry is measured: as it is scored, unless [bench] differs."""
        bench, groups = self.tables["bench"], get_type_hints(Decoding)
        options = bench.options({}, f"[{where}]", usual)
        found = {name: bench.build(group, options) for name, group in groups.items()}
        threshold = self.tables["eval"].build(groups["threshold"], usual)
        return Decoding(**found | {"threshold": threshold})


def _entries(found: object) -> dict[str, dict[str, Any]]:
    """Check the names of the entries, and that each is a table."""
    if not isinstance(found, dict) or not found:
        raise OptionError("there are no entries; give each mechanism a table [entries.NAME]")
    for name, table in found.items():
        if not re.fullmatch(NAME, name):
            raise OptionError(
                f"entry {name!r}: a name begins with a letter or a digit, and has letters, digits, "
                f"spaces and . , + ( ) = _ - alone"
            )
        if not isinstance(table, dict):
            raise OptionError(f"[entries.{name}] must be a table, not {table!r}")
    return found


def _seeds(found: Any) -> list[int]:
    """Check the seeds."""
    numbers = found if isinstance(found, list) else [found]
    if not numbers or any(type(one) is not int or one < 0 for one in numbers):
        raise OptionError(f"seeds must be integers of at least 0, not {found!r}")
    if len(set(numbers)) < len(numbers):
        raise OptionError(f"seeds must be different numbers, not {found!r}")
    return numbers


def _part(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key in names}


def _fields_of_decoding() -> dict[str, Any]:
    groups = get_type_hints(Decoding).values()
    return {key: field for group in groups for key, field in all_options_of(group).items()}
