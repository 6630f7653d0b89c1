"""Keys, and how often a client may ask."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from nmtflex.config import AccessConfig, LimitConfig
from nmtflex.errors import OptionError
from nmtflex.serving import access as module
from nmtflex.serving.access import Access, read_keys
from nmtflex.serving.fields import Refused


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def keys(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# two clients\n\nfast\t120\n  usual\nfree 0\n")
    return file


def request(client: str = "192.0.2.1", forwarded: str = "") -> Request:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return Request({"type": "http", "headers": headers, "client": (client, 1)})


def allowed(access: Access, asked: Request, times: int, **fields: object) -> int:
    """Return how many of some requests in a row are let through."""
    statuses = []
    for _ in range(times):
        try:
            access.check(asked, fields)
            statuses.append(200)
        except Refused as error:
            statuses.append(error.status)
    assert set(statuses) <= {200, 429}
    return statuses.count(200)


def test_without_options_everybody_may_ask_as_often_as_they_like(clock):
    access = Access(AccessConfig(), LimitConfig(), clock)
    assert allowed(access, request(), 1000, api_key="anything") == 1000


def test_requests_come_back_evenly(clock):
    access = Access(AccessConfig(), LimitConfig(request_limit=6), clock)
    assert allowed(access, request(), 10) == 6
    clock.now = 9.9
    assert allowed(access, request(), 1) == 0
    clock.now = 10.1  # a sixth of a minute
    assert allowed(access, request(), 2) == 1
    clock.now = 1000.0
    assert allowed(access, request(), 10) == 6
    with pytest.raises(Refused, match="Slowdown: 6 per 1 minute"):
        access.check(request(), {})


def test_each_client_has_its_own(clock):
    access = Access(AccessConfig(), LimitConfig(request_limit=2), clock)
    assert allowed(access, request("192.0.2.1"), 5) == 2
    assert allowed(access, request("192.0.2.2"), 5) == 2


@pytest.mark.parametrize(("trusted", "count"), [(False, 2), (True, 4)])
def test_the_address_behind_a_proxy_counts_only_if_the_proxy_is_trusted(clock, trusted, count):
    access = Access(AccessConfig(), LimitConfig(request_limit=2, trust_proxy=trusted), clock)
    found = allowed(access, request(forwarded="203.0.113.1, 192.0.2.7"), 5)
    found += allowed(access, request(forwarded="203.0.113.2"), 5)
    assert found == count


def test_keys_have_their_own_limits(clock, keys):
    access = Access(AccessConfig(api_keys=keys), LimitConfig(request_limit=2), clock)
    assert allowed(access, request(), 200, api_key="fast") == 120
    assert allowed(access, request(), 200, api_key="usual") == 2
    assert allowed(access, request(), 200, api_key="free") == 200
    assert allowed(access, request(), 200) == 2  # without a key, by the address


@pytest.mark.parametrize("key", ["wrong", "fast ", 7, ["fast"], {"fast": 1}, "\ud800", True])
def test_wrong_keys_are_refused(keys, key):
    access = Access(AccessConfig(api_keys=keys), LimitConfig())
    with pytest.raises(Refused, match="Invalid API key") as caught:
        access.check(request(), {"api_key": key})
    assert caught.value.status == 403


@pytest.mark.parametrize("fields", [{}, {"api_key": None}, {"api_key": ""}])
def test_a_key_may_be_needed(keys, fields):
    access = Access(AccessConfig(api_keys=keys, require_key=True), LimitConfig())
    with pytest.raises(Refused, match="Please contact the server operator") as caught:
        access.check(request(), fields)
    assert caught.value.status == 400
    access.check(request(), {"api_key": "usual"})


def test_no_more_clients_are_remembered_than_fit(clock, monkeypatch):
    monkeypatch.setattr(module, "MOST", 3)
    access = Access(AccessConfig(), LimitConfig(request_limit=1), clock)
    for number in range(10):
        assert allowed(access, request(str(number)), 2) == 1
    assert allowed(access, request("9"), 1) == 0  # remembered
    assert allowed(access, request("0"), 1) == 1  # forgotten


def test_key_files(keys):
    assert read_keys(keys) == {"fast": 120, "usual": None, "free": 0}


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"a 1\nb x\n", "line 2"),
        (b"a 1 2\n", "line 1"),
        (b"a -1\n", "line 1"),
        (b"a\nb\na 3\n", "line 3"),
        (b"a 1000000000000\n", "line 1"),
        (b"\xff\n", "utf-8"),
    ],
)
def test_wrong_key_files(tmp_path, content, where):
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(OptionError, match=where) as caught:
        read_keys(file)
    assert str(file) in str(caught.value)


def test_a_missing_key_file(tmp_path):
    with pytest.raises(OptionError, match="nothing"):
        read_keys(tmp_path / "nothing")
