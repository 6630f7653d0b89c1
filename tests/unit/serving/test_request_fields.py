"""The fields of a request, checked."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from nmtflex.serving.fields import (
    Refused,
    read_fields,
    take,
    take_choice,
    take_file,
    take_flag,
    take_number,
    take_terms,
    take_texts,
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def fields_of(body: bytes, kind: str, query: str = "") -> dict[str, object]:
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", kind.encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "headers": headers,
        "query_string": query.encode(),
        "path": "/translate",
    }
    return asyncio.run(read_fields(Request(scope, receive)))


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "a/b+json"]
)
def test_json(kind):
    assert fields_of(b'{"q": ["\xc3\xa4"], "n": 1}', kind, "n=2") == {"q": ["ä"], "n": 1}


def test_forms_and_addresses():
    form = "application/x-www-form-urlencoded"
    sent = urlencode([("q", "a&b"), ("q", "c"), ("source", "de")])
    assert fields_of(sent.encode(), form, "source=en&target=ja") == {
        "q": ["a&b", "c"],
        "source": "de",
        "target": "ja",
    }
    assert fields_of(b"ignored", "text/plain", "q=a+b") == {"q": "a b"}


@pytest.mark.parametrize("body", [b"", b"[1]", b'"a"', b"{", b'{"a": "\xff"}', b"[" * 100_000])
def test_damaged_json_is_refused(body):
    with pytest.raises(Refused, match="Invalid JSON format") as caught:
        fields_of(body, "application/json")
    assert caught.value.status == 400


@given(st.dictionaries(st.sampled_from(["q", "source", "n", "format", "flag"]), ANYTHING))
def test_whatever_comes_is_taken_or_refused(fields):
    refused = []
    for reader in (
        lambda: take(fields, "source"),
        lambda: take_texts(fields),
        lambda: take_number(fields, "n", 10),
        lambda: take_choice(fields, "format", ("text", "html")),
        lambda: take_flag(fields, "flag"),
        lambda: take_file(fields),
    ):
        try:
            reader()
        except Refused as error:
            refused.append(error)
    assert all(error.status == 400 and len(str(error)) < 200 for error in refused)


@pytest.mark.parametrize("value", [0, 7, "7", " 7 ", 30 * " " + "7", "007"])
def test_numbers(value):
    assert take_number({"n": value}, "n", 7) == int(value)


def test_no_number_is_none():
    assert [take_number(fields, "n", 7) for fields in ({}, {"n": None}, {"n": ""})] == [0, 0, 0]


@pytest.mark.parametrize("value", ["a", "-1", -1, 1.0, True, [1], "1e3", "٣", "²", "1 2"])
def test_other_values_are_no_numbers(value):
    with pytest.raises(Refused, match="Invalid request: n parameter is not a number"):
        take_number({"n": value}, "n", 7)


@pytest.mark.parametrize("value", [8, "8", 10**30, 5_000 * "9"])
def test_numbers_have_a_limit(value):
    with pytest.raises(Refused, match="Invalid request: n parameter must be <= 7"):
        take_number({"n": value}, "n", 7)


def test_texts():
    assert take_texts({"q": "a"}) == (["a"], False)
    assert take_texts({"q": ["a", ""]}) == (["a", ""], True)
    with pytest.raises(Refused, match="q parameter is not Unicode text"):
        take_texts({"q": ["a", "\ud800"]})


def test_choices():
    assert take_choice({}, "format", ("text", "html")) == "text"
    assert take_choice({"format": "html"}, "format", ("text", "html")) == "html"
    with pytest.raises(Refused, match=r"^x{60}\.\.\. format is not supported$"):
        take_choice({"format": 100 * "x"}, "format", ("text", "html"))


def test_flags():
    on = [True, 1, "true", "True", "1", "on"]
    off = [False, 0, "", "false", "off", "0", None]
    assert [take_flag({"flag": value}, "flag") for value in on] == 6 * [True]
    assert [take_flag({"flag": value}, "flag") for value in off] == 7 * [False]
    assert take_flag({}, "flag") is False


@pytest.mark.parametrize("value", ["maybe", 2, 1.0, [], {}, "tru"])
def test_other_values_are_no_flags(value):
    with pytest.raises(Refused, match="flag parameter is not true or false") as caught:
        take_flag({"flag": value}, "flag")
    assert caught.value.status == 400


@pytest.mark.parametrize("value", [{"a b": "x", "c": "y"}, "a b\tx\r\n\nc\ty\n"])
def test_terms_of_a_glossary(value):
    assert take_terms({"glossary": value}) == (("a b", "x"), ("c", "y"))
    assert take_terms({}) == take_terms({"glossary": ""}) == ()


@pytest.mark.parametrize("value", [
    3, ["a"], {"a": 1}, {"": "x"}, {"a": " "}, "a", "a\tb\tc", {"a": "\ud800"}, "a\tb\nc\td\na\te",
    {str(number): "x" for number in range(1001)},
])  # fmt: skip
def test_what_is_no_glossary_is_refused(value):
    with pytest.raises(Refused, match="glossary") as caught:
        take_terms({"glossary": value})
    assert caught.value.status == 400
