"""What clients send who mean harm: it is refused, tells them nothing, and harms nobody else."""

from __future__ import annotations

import re
import socket
import time

import pytest

pytestmark = pytest.mark.integration

HOST = b"Host: x\r\n"
CLOSE = b"Connection: close\r\n"
JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"
MULTIPART = b"multipart/form-data; boundary=x"
GOOD = b"q=Run%20!&source=en&target=ja"
# Of the disk, and of what is inside.
LEAKS = re.compile(rb"Traceback|File \"|\.py\b|/usr/|/home/|/tmp/|/root|golden|safetensors|torch")


def get(path: bytes, *more: bytes, method: bytes = b"GET") -> bytes:
    return b"".join([method, b" ", path, b" HTTP/1.1\r\n", HOST, CLOSE, *more, b"\r\n"])


def post(body: bytes, kind: bytes, *more: bytes) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return get(b"/translate", b"Content-Type: %s\r\n" % kind, length, *more, method=b"POST") + body


def part(name: bytes, value: bytes) -> bytes:
    return b"--x\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % (name, value)


def json(**fields: bytes) -> bytes:
    """Return a request of JSON, of which some fields are as given."""
    known = {"q": b'"Run !"', "source": b'"en"', "target": b'"ja"'} | fields
    return post(b"{%s}" % b",".join(b'"%s":%s' % (k.encode(), v) for k, v in known.items()), JSON)


def status(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert found, answer[:200]
    return int(found[1])


REFUSED = {
    # HTTP itself
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": get(b"/health", HOST),
    "bytes in the address": get(b"/\xff"),
    "null byte in a head": get(b"/health", b"X: a\0b\r\n"),
    "folded head": b"GET /health HTTP/1.1\r\n folded\r\n\r\n",
    "space before the colon": get(b"/health", b"X : y\r\n"),
    "headers without end": b"GET /health HTTP/1.1\r\n" + HOST + b"X-1: y\r\n" * 100_000,
    "a header of a megabyte": get(b"/health", b"X: " + (1 << 20) * b"y" + b"\r\n"),
    # one request that others may read as two
    "two lengths": get(b"/detect", b"Content-Length: 5\r\nContent-Length: 6\r\n", method=b"POST"),
    "chunks and a length": get(
        *(b"/detect", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"), method=b"POST"
    )
    + b"0\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
    "two encodings": get(b"/detect", b"Transfer-Encoding: gzip, chunked\r\n", method=b"POST"),
    "a bad chunk": get(b"/detect", b"Transfer-Encoding: chunked\r\n", method=b"POST") + b"zz\r\n",
    "a negative length": get(b"/detect", b"Content-Length: -5\r\n", method=b"POST"),
    "a length with a sign": get(b"/detect", b"Content-Length: +5\r\n", method=b"POST"),
    "an endless length": get(b"/detect", b"Content-Length: " + 30 * b"9" + b"\r\n", method=b"POST"),
    "a large length": get(b"/detect", b"Content-Length: 20001\r\n", method=b"POST"),
    # JSON
    "no JSON": post(b"{", JSON),
    "deep JSON": post(b'{"q":' + 9_000 * b"[" + 9_000 * b"]" + b"}", JSON),
    "a deep beginning": post(19_000 * b"[", JSON),
    "invalid UTF-8": json(q=b'"\xff"'),
    "half a character": json(q=b'"\\ud800"'),
    "half a character as language": json(source=b'"\\ud800"'),
    "half a character as key": json(api_key=b'"\\ud800"'),
    "NaN": json(q=b"NaN"),
    "infinite alternatives": json(alternatives=b"Infinity"),
    "more digits than Python reads": json(alternatives=5_000 * b"9"),
    "many digits": json(alternatives=4_000 * b"9"),
    "digits after spaces": json(alternatives=b'"%s99"' % (30 * b" ")),
    "a fraction": json(alternatives=b"1.5"),
    "a truth": json(alternatives=b"true"),
    "a number as text": json(q=b"5"),
    "null in a list": json(q=b'["a", null]'),
    "a list in a list": json(q=b'[["a"]]'),
    "an object as text": json(q=b'{"a": 1}'),
    "a list as language": json(target=b'["ja"]'),
    "null byte in a language": json(source=b'"en\\u0000"'),
    "a path as language": json(source=b'"../../etc/passwd"'),
    "a list as format": json(format=b'["text"]'),
    "a list as key": json(api_key=b'["usual"]'),
    "an object as key": json(api_key=b'{"usual": 1}'),
    "a number as key": json(api_key=b"1"),
    "a long language": json(target=b'"%s"' % (15_000 * b"x")),
    # forms
    "no boundary": post(GOOD, b"multipart/form-data"),
    "no parts": post(b"garbage", MULTIPART),
    "a part without end": post(
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nHi', MULTIPART
    ),
    "a part without name": post(part(b"a=b", b"Hi") + b"--x--\r\n", MULTIPART),
    "a file as text": post(part(b'name="q"; filename="/etc/x"', b"Hi") + b"--x--\r\n", MULTIPART),
    "many fields": post(b"&".join(b"a%d=1" % i for i in range(2_000)), FORM),
    "two sources": post(GOOD + b"&source=en", FORM),
    "another kind of body": post(GOOD, b"text/xml"),
    "no kind of body": get(b"/translate", b"Content-Length: 3\r\n", method=b"POST") + b"q=a",
    "more than may be": post(20_001 * b"a", FORM),
    # addresses
    "null byte": get(b"/%00"),
    "up": get(b"/../../../../etc/passwd"),
    "up, escaped": get(b"/swagger/%2e%2e/%2e%2e/__init__.py"),
    "up, slashes escaped": get(b"/swagger/..%2f..%2f__init__.py"),
    "up, twice escaped": get(b"/swagger/%252e%252e%252f__init__.py"),
    "up from a download": get(b"/download_file/..%2f..%2fetc%2fpasswd"),
    "an absolute path": get(b"//etc/passwd"),
    "a null byte in a file": get(b"/swagger/swagger-ui.css%00.png"),
    "half a character in the address": get(b"/%ed%a0%80"),
    "a long address": get(b"/" + 10_000 * b"a"),
    "another host": get(b"http://example.com/nothing"),
    "a slash too many": get(b"/languages/"),
    "a tunnel": get(b"example.com:80", method=b"CONNECT"),
    "all": get(b"*", method=b"OPTIONS"),
    # methods
    "PUT": get(b"/translate", method=b"PUT"),
    "OPTIONS": get(b"/translate", method=b"OPTIONS"),
    "TRACE": get(b"/translate", method=b"TRACE"),
    "a made up method": get(b"/translate", method=b"A" * 1000),
    "a socket": get(b"/translate", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_request_is_refused(server, name):
    answer = server.raw(REFUSED[name])
    assert 400 <= status(answer) < 500, answer
    body = answer.partition(b"\r\n\r\n")[2]
    assert body.startswith((b'{"error":"', b'{"error": "')), answer
    assert len(body) < 300
    assert not LEAKS.search(answer), answer


ANSWERED = {
    "HTTP/1.0": b"GET /health HTTP/1.0\r\n\r\n",
    "a body where none is read": get(b"/health", b"Content-Length: 3\r\n") + b"abc",
    "a forged address": post(GOOD, FORM, b"X-Forwarded-For: %s\r\n" % (5_000 * b"1")),
    "an unknown character set": post(GOOD, FORM + b"; charset=nonsense"),
    "invalid UTF-8 in a form": post(b"q=%ff%fe\xff&source=en&target=ja", FORM),
    "control characters": json(q=b'"a\\u0000b\\u0007\\u001b[31m"'),
    "the same name twice": post(b'{"q":1,"q":"Run !","source":"en","target":"ja"}', JSON),
    "names that mean nothing": json(__class__=b'"x"', self=b"null"),
    "a thousand marks on a letter": json(q=b'"a%s"' % (399 * "\u0301".encode())),
    "text that ends in all kinds of lines": json(q=b'"a\\u2028b\\u0085c\\u001cd\\r\\n\\u000be"'),
    "a page asked in the name of another host": get(b"/docs", b"X-Forwarded-Host: example.com\r\n"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_an_odd_request_is_answered(server, name):
    answer = server.raw(ANSWERED[name])
    assert status(answer) == 200, answer
    assert not LEAKS.search(answer), answer


def test_no_page_repeats_the_host_that_a_client_names(server):
    evil = b'example.com"><script>alert(1)</script>'
    for path in (b"/docs", b"/spec", b"/languages", b"/languages/", b"/nothing"):
        answer = server.raw(b"GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, evil, CLOSE))
        assert b"example.com" not in answer


def test_requests_may_be_sent_at_once(server):
    open_end = post(GOOD, FORM).replace(CLOSE, b"")
    answer = server.raw(open_end + open_end + get(b"/health"))
    assert [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+)", answer)] == [200, 200, 200]
    answer = server.raw(open_end + b"garbage\0\r\n\r\n" + get(b"/health"))
    assert [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+)", answer)] == [200, 400]


def test_the_rest_of_a_refused_body_is_no_request(server):
    hidden = get(b"/health").replace(CLOSE, b"")
    for head in (
        b"Content-Length: 30000\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ):
        answer = server.raw(get(b"/detect", head, method=b"POST").replace(CLOSE, b"") + hidden)
        assert answer.count(b"HTTP/1.1") == 1


def test_it_is_413_for_a_body_without_declared_length(server):
    more = (b"Transfer-Encoding: chunked\r\n", b"Content-Type: %s\r\n" % JSON)
    head = get(b"/detect", *more, method=b"POST")
    chunk = b"1000\r\n" + 0x1000 * b"a" + b"\r\n"
    assert status(server.raw(head, *6 * [chunk])) == 413


def test_clients_that_go_away_harm_nobody(server):
    for data in (b"", b"POST", post(GOOD, FORM)[:-5], post(GOOD, FORM), get(b"/docs")):
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(data)
    server.until("nmtflex_requests_in_flight", lambda number: number == 1)  # the one that asks


def test_it_works_on_afterwards_and_has_said_nothing_of_it(server):
    assert status(server.raw(post(GOOD, FORM))) == 200
    assert not [line for line in server.said if "Traceback" in line]


def test_no_status_of_5_was_counted(server):
    assert not re.findall(r'status="5\d\d"', server.get("/metrics").text)


@pytest.mark.slow
def test_slow_senders_are_cut_off(server):
    """They have ten seconds for a head, and thirty for a body."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), 60) as head:
        head.sendall(b"GET /health HTTP/1.1\r\nHost:")
        assert head.recv(100) == b""
    assert 8 < time.monotonic() - began < 25
    answer = server.raw(post(GOOD, FORM)[:-5])
    assert status(answer) == 408
    assert 8 + 28 < time.monotonic() - began < 80


@pytest.mark.slow
def test_a_thousand_idle_connections_hold_it_up_for_seconds_only(server):
    began = time.monotonic()
    idle = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(1000)]
    try:
        while server.client.get("/health").status_code != 200:
            assert time.monotonic() - began < 60
            time.sleep(0.5)
    finally:
        for connection in idle:
            connection.close()
    assert server.translated("Run !")
