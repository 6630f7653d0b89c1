"""The socket on which the server listens."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from nmtflex.errors import OptionError
from nmtflex.serving.server import _listen


def test_an_answer_does_not_wait_for_the_client_to_confirm_its_head():
    with _listen(SimpleNamespace(host="127.0.0.1", port=0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken():
    with _listen(SimpleNamespace(host="127.0.0.1", port=0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OptionError, match=f"--port {port}"):
            _listen(SimpleNamespace(host="127.0.0.1", port=port))
