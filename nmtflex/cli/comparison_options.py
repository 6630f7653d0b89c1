"""Options of the commands that ``nmtflex compare`` runs: common ones, and an entry's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from nmtflex.cli.bench import bench
from nmtflex.cli.bind import groups_of
from nmtflex.cli.config_file import read_options
from nmtflex.cli.evaluate import evaluate
from nmtflex.cli.finetune import finetune
from nmtflex.cli.presets import preset_names, read_preset
from nmtflex.cli.sweep import sweep
from nmtflex.cli.train import train
from nmtflex.config import Config, Opt, Variant, all_options_of, is_kind, layered, revive
from nmtflex.config.words import option_words
from nmtflex.errors import OptionError

Group = TypeVar("Group", bound=Config)

HERE = Path()  # stands in checks for the folders that the comparison gives
# A trial is too short for a warm-up and for a schedule that needs one.
TRIAL = {"warmup": 0, "schedule": "constant"}


class Command(NamedTuple):
    """A command of nmtflex in a comparison."""

    function: Callable[..., Any]
    given: Mapping[str, Any]  # options that the comparison gives, and what stands for them
    usual: Mapping[str, Any]  # defaults of the comparison
    only: tuple[str, ...] = ()  # the options of the first group that a table may have; empty: all


COMMANDS = {
    "train": Command(train, {"data": HERE, "run": HERE, "seed": 1}, {}),
    "finetune": Command(finetune, {"base_run": HERE, "run": HERE, "seed": 1}, {}),
    "sweep": Command(
        sweep, {"run": HERE, "output": None, "json": True}, {"split": "valid", "within": 0.5}
    ),
    "eval": Command(
        evaluate,
        {"runs": [HERE], "output": None, "json": True},
        {"significance": "bootstrap", "ribes": True},
    ),
    "bench": Command(bench, {"runs": [HERE], "tau": None}, {}, ("split", "sentences", "repeats")),
}


class Tables:
    """The tables of one command: a common one, and those of the entries.

    Args:
        name: Of the command.
        table: The common options, as the file has them.
        updates: Length of a trial, or None.

    Raises:
        OptionError: An option is unknown or not valid.
    """

    def __init__(self, name: str, table: object, updates: int | None = None) -> None:
        self.name = name
        self.command = COMMANDS[name]
        self.groups = groups_of(self.command.function)
        self.fields = {
            key: field for one in self.groups for key, field in all_options_of(one).items()
        }
        if self.command.only:
            dropped = all_options_of(self.groups[0]).keys() - self.command.only
            self.fields = {key: field for key, field in self.fields.items() if key not in dropped}
        short = updates is not None and "updates" in self.fields
        self._trial = {"updates": updates, **TRIAL} if short else {}
        self._preset, self._common = self._read(table, f"[{name}]")
        self._idle = set(self._common)

    def options(
        self, table: Any, where: str, usual: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return an entry's options, and check them.

        Args:
            table: Its own ones, as the file has them. False leaves out a common one, unless that
                is true or false itself.
            where: The table, for messages.
            usual: Defaults of this entry; those that the command lacks are left out.

        Raises:
            OptionError: An option is unknown, not valid or without effect.
        """
        preset, own = self._read(table, where, self._common)
        off = {name for name in map(_field, table) if name not in own}
        below = {**self.command.usual, **(preset or self._preset)}
        below |= {key: value for key, value in (usual or {}).items() if key in self.fields}
        kept = {key: value for key, value in self._common.items() if key not in off}
        common = layered(self.groups, below, kept)
        found = layered(self.groups, common, own)
        self._idle -= found.keys()
        if self._trial:
            own = {key: value for key, value in own.items() if key != "epochs"} | self._trial
            found = layered(self.groups, common, own)
        faults = []
        for group in self.groups:
            try:
                self.build(group, found)
            except OptionError as error:
                faults.append(str(error))
        if faults:
            raise OptionError(f"{where}: {'; '.join(faults)}")
        return found

    def build(self, group: type[Group], options: Mapping[str, Any]) -> Group:
        """Build one of the command's option groups.

        Raises:
            OptionError: An option is not valid.
        """
        own = all_options_of(group)
        values = {key: self._typed(key, value) for key, value in options.items() if key in own}
        values |= {key: value for key, value in self.command.given.items() if key in own}
        return group.from_flat(**values)

    def words(self, options: Mapping[str, Any]) -> list[str]:
        """Return options as words of a command line."""
        found = []
        for name, value in options.items():
            plain, option = self.fields[name]
            if value is not False or not _only_on(option):
                found += option_words(name, plain, option, value)
        return found

    def files(self, options: Mapping[str, Any]) -> list[Path]:
        """Return the files and folders that options name."""
        return [path for name, value in options.items() for path in self._paths(name, value)]

    def check_used(self) -> None:
        """Check that each common option has an effect on some entry.

        Raises:
            OptionError: One has none.
        """
        if self._idle:
            name = min(self._idle).replace("_", "-")
            raise OptionError(f"[{self.name}]: {name!r} has no effect on any entry; leave it out")

    def _read(
        self, table: object, where: str, common: Collection[str] = ()
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options of the preset that a table names, and its own ones, all flat.

        Those that leave out a ``common`` one are not among them.
        """
        if not isinstance(table, dict):
            raise OptionError(f"{where} must be a table, not {table!r}")
        found = {
            key: value
            for key, value in table.items()
            if value is not False or _field(key) not in common or self._switches(_field(key))
        }
        preset: dict[str, Any] = {}
        if self.name == "train" and "preset" in found:
            names, name = preset_names(), found.pop("preset")
            if name not in names:
                raise OptionError(
                    f"{where}: preset must be one of {', '.join(names)}, not {name!r}"
                )
            preset = read_preset(name, self.fields)
        for key in found:
            if _field(key) in self.command.given:
                raise OptionError(f"{where}: {key!r} is given by the comparison itself")
        return preset, read_options(Path(where), found, self.fields)

    def _switches(self, name: str) -> bool:
        """Return whether an option is true or false."""
        return self.fields[name][0] in (bool, bool | None)

    def _typed(self, name: str, value: Any) -> Any:
        """Return a value of a file as the type of its option; a family keeps the name of a kind."""
        plain, option = self.fields[name]
        if is_kind(plain, Variant):
            return value
        if isinstance(value, str) and value in option.words:
            return option.words[value]
        return revive(name, plain, value)

    def _paths(self, name: str, value: Any) -> Iterable[Path]:
        plain = self.fields[name][0]
        if plain is not Path and Path not in get_args(plain):
            return []
        values = value if isinstance(value, list) else [value]
        return [Path(one) for one in values if one is not None]


def _field(key: str) -> str:
    """Return the name of the option that a key of a table sets."""
    return key.replace("-", "_")


def _only_on(option: Opt) -> bool:
    """Return whether an option can only be turned on."""
    return option.flag is not None and "/" not in option.flag
