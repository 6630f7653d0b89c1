"""Errors that a user can cause; each prints as one line ``nmtflex: error: ...``."""

from __future__ import annotations


class NmtflexError(Exception):
    """An error that the user can fix; the message says what, where and how."""

    exit_code = 1


class OptionError(NmtflexError):
    """A wrong option or combination of options."""

    exit_code = 2


class DataError(NmtflexError):
    """A corpus, a text or a prepared folder that cannot be used."""


class RunError(NmtflexError):
    """A run folder, checkpoint or training that cannot continue."""


class StoppedError(NmtflexError):
    """A signal ended the work after its state was saved.

    Args:
        message: What was saved and how to go on.
        signal_number: The signal; the exit code is 128 more, as in a shell.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
