"""A throw-away command with options of every type, and a family of three mechanisms."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from nmtflex.cli.bind import command
from nmtflex.config import Config, Opt, Variant


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mechanism(Variant):
    """A family of three."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Whole(Mechanism):
    """Options of the whole mechanism."""

    kind: ClassVar[str] = "whole"

    score: Annotated[Literal["dot", "general"], Opt("Score [function].")] = "dot"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Window(Mechanism):
    """Options of the window mechanism."""

    kind: ClassVar[str] = "window"

    width: Annotated[int, Opt("Positions to either side.", ge=1)] = 10
    score: Annotated[Literal["dot", "general"], Opt("Score [function].")] = "dot"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Slots(Mechanism):
    """Options of the slot mechanism."""

    kind: ClassVar[str] = "slots"

    num_slots: Annotated[int, Opt("Memory slots.", ge=1, flag="--K")] = 32
    positions: Annotated[bool, Opt("Encode positions.")] = True


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ToyConfig(Config):
    """The toy's options."""

    place: Annotated[Path, Opt("Where.", argument=True)]
    mechanism: Annotated[Mechanism, Opt("Which mechanism.")] = Whole()
    hidden_size: Annotated[int, Opt("Units [of a layer].", ge=1)] = 8
    rate: Annotated[float, Opt("Rate.", gt=0, lt=1)] = 0.5
    cell: Annotated[Literal["lstm", "gru"], Opt("Cell.")] = "lstm"
    tie: Annotated[bool, Opt("Tie.")] = False
    joint: Annotated[bool, Opt("Together.", flag="--joint/--separate")] = False
    corpora: Annotated[list[Path], Opt("Corpora.")] = dataclasses.field(default_factory=list)
    steps: Annotated[int | None, Opt("Steps.", ge=1, replaces=("hours", "days"))] = None
    hours: Annotated[int | None, Opt("Hours.", ge=1, replaces=("steps",))] = None
    days: Annotated[list[Path], Opt("Days.")] = dataclasses.field(default_factory=list)

    def validate(self) -> list[str]:
        """Check that the end is given once."""
        if self.steps and (self.hours or self.days):
            return ["give --steps, or --hours and --days, not both"]
        return []


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OtherConfig(Config):
    """More options."""

    seed: Annotated[int, Opt("Seed.", ge=0)] = 1


class Toy:
    """A throw-away app whose one command keeps what it was called with."""

    def __init__(self) -> None:
        self.app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        self.app.callback()(lambda: None)
        self.seen: ToyConfig | None = None
        self.seed = 0
        self.verbose = False
        self.fault: BaseException | None = None
        command(self.app, "work")(self.work)
        command(self.app, "fail")(self.fail)

    def work(
        self,
        toy: ToyConfig,
        other: OtherConfig,
        verbose: Annotated[bool, typer.Option("--verbose", help="Say more.")] = False,
    ) -> None:
        """Work [hard]."""
        self.seen, self.seed, self.verbose = toy, other.seed, verbose

    def fail(self) -> None:
        """Fail."""
        assert self.fault is not None
        raise self.fault


def built(toy, command_line, *arguments) -> ToyConfig:
    outcome = command_line("work", "here", *arguments)
    assert (outcome.code, outcome.out) == (0, ""), outcome.err
    return toy.seen


def complaint(command_line, *arguments, code=2) -> str:
    """Return the message of a command line that fails with one line."""
    outcome = command_line(*arguments)
    assert outcome.code == code
    assert outcome.out == ""
    start, _, message = outcome.err.rpartition("nmtflex: error: ")
    assert start == ""
    assert message.count("\n") == 1
    assert message.endswith("\n")
    return message[:-1]
