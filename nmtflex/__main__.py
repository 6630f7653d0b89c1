"""``python -m nmtflex``."""

import sys

from nmtflex.cli.app import main

sys.exit(main())
