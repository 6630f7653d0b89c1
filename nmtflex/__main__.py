"""``python -m nmtflex``, and the ``nmtflex`` command."""

from __future__ import annotations

import sys

from nmtflex.deferred import defer_unused
from nmtflex.garbage import collect_seldom


def main() -> int:
    """Run the command line; Ctrl-C is one line, also while the program is still being imported."""
    collect_seldom()
    defer_unused()
    try:
        from nmtflex.cli.app import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("nmtflex: error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
