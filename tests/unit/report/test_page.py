"""The page as a text: what it is put together of, and what no data can put into it."""

from __future__ import annotations

import builtins
import json
import re
import sys
from html.parser import HTMLParser
from importlib import resources

import pytest

from nmtflex.errors import OptionError
from nmtflex.report.page import (
    HEAD_SCRIPTS,
    SCRIPTS,
    STYLES,
    check_plotly,
    inert,
    render,
)

ASSETS = sorted(one.name for one in resources.files("nmtflex.report").joinpath("assets").iterdir())
NASTY = "</script><!-- <script>alert('1')</script> & \u2028\u2029 日本語 \ud800"
SVG = "http://www.w3.org/2000/svg"  # a name, not a place


def asset(name: str) -> str:
    return resources.files("nmtflex.report").joinpath("assets", name).read_text(encoding="utf-8")


class Scripts(HTMLParser):
    """Collects what a page's elements hold, as a browser takes it apart."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, str] = {}
        self.policy = ""

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if names.get("http-equiv") == "Content-Security-Policy":
            self.policy = names["content"]
        self.open.append(names.get("id") or tag)

    def handle_endtag(self, tag):
        self.open.append("")

    def handle_data(self, data):
        if self.open:
            name = self.open[-1]
            self.texts[name] = self.texts.get(name, "") + data


def parsed(pieces) -> Scripts:
    parser = Scripts()
    parser.feed("".join(pieces))
    parser.close()
    return parser


@pytest.fixture
def plotly(monkeypatch):
    """Put a small script in the place of Plotly's."""
    offline = pytest.importorskip("plotly.offline", reason="plotly is not installed")
    monkeypatch.setattr(offline, "get_plotlyjs", lambda: "drawn\r\nhere")


def test_data_comes_back_as_it_was_and_cannot_leave_its_script(plotly):
    report = {"title": NASTY, "runs": [{"name": NASTY}], "sentences": []}
    trace = json.dumps([{"source": [NASTY]}], ensure_ascii=False)
    text = "".join(render(report, [trace, "[\n null\n]\n"]))
    page = parsed([text])
    assert json.loads(page.texts["report"]) == report
    first, second = page.texts["traces"].split("\n")
    assert (json.loads(first), json.loads(second)) == ([{"source": [NASTY]}], [None])
    assert page.texts["title"] == NASTY.replace("\ud800", "\ufffd")
    assert page.texts["plotly"] == "drawn\nhere"
    assert not re.search("[\u2028\u2029]", page.texts["report"] + page.texts["traces"])
    text.encode()  # a file can hold it


@pytest.mark.parametrize("sign", ["<", ">", "&", "\u2028", "\u2029", "\udcff"])
def test_signs_that_could_be_obeyed_are_written_by_number(sign):
    said = inert(json.dumps(f"a{sign}b", ensure_ascii=False))
    assert said == f'"a\\u{ord(sign):04x}b"'
    assert json.loads(said) == f"a{sign}b"


def test_numbers_that_are_none_become_null(plotly):
    numbers = {"loss": [float("inf"), float("nan"), 1.5, (2.0, 3)]}
    page = parsed(render({"title": "", **numbers}, []))
    assert json.loads(page.texts["report"]) == {"title": "", "loss": [None, None, 1.5, [2.0, 3]]}


def test_traces_are_read_when_their_turn_comes(plotly):
    read = []

    def traces():
        for number in range(3):
            read.append(number)
            yield json.dumps([number])

    pieces = render({"title": "streamed"}, traces())
    seen = [(piece, len(read)) for piece in pieces]
    places = [(piece.strip(), count) for piece, count in seen if re.fullmatch(r"\s*\[\d\]", piece)]
    assert places == [("[0]", 1), ("[1]", 2), ("[2]", 3)]
    assert seen[0][1] == 0


def test_the_policy_names_every_script_and_style_of_the_page(plotly):
    policy = parsed(render({"title": ""}, [])).policy
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert len(re.findall("'sha256-", rules["script-src"])) == 3
    assert len(re.findall("'sha256-", rules["style-src"])) == 2
    assert "unsafe" not in policy


def test_every_asset_is_used_and_named_once():
    named = ["page.html", *STYLES, *HEAD_SCRIPTS, *SCRIPTS]
    assert sorted(named) == ASSETS


@pytest.mark.parametrize("name", ASSETS)
def test_no_asset_asks_the_network_or_writes_markup(name):
    text = asset(name).replace(SVG, "")
    assert not re.search(r"https?:|//\w+\.|@import|\burl\((?!#)", text)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", text)
    if not name.endswith(".html"):
        assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)


def test_plotlys_script_can_stand_in_a_page():
    script = pytest.importorskip("plotly.offline", reason="no plotly").get_plotlyjs()
    assert not re.search(r"</script|<!--", script, re.IGNORECASE)


def test_who_has_no_plotly_is_told_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def fails(name, *arguments, **options):
        if name.split(".")[0] == "plotly":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", fails)
    for name in [name for name in sys.modules if name.split(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(OptionError, match=r"pip install plotly"):
        check_plotly()
    with pytest.raises(OptionError, match="plotly"):
        next(iter(render({"title": ""}, [])))
