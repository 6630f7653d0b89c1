"""What all routes have."""

from __future__ import annotations

from nmtflex.serving.desk import Desk
from nmtflex.serving.service import Service


class Routes:
    """Base of the routes.

    Args:
        desk: Checks requests.
        service: Translates.
    """

    def __init__(self, desk: Desk, service: Service) -> None:
        self._desk = desk
        self._service = service
