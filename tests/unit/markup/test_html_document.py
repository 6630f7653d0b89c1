"""Documents taken apart and put together, with links that are known."""

from __future__ import annotations

import sys
from random import Random

import pytest
from fragments import identity, reversal

from nmtflex.errors import OptionError
from nmtflex.markup.document import HtmlDocument

RANDOM = Random(1)
PAGE = """\ufeff<!DOCTYPE html>
<!-- a page -->
<html lang=de>
<head>
<META charset="utf-8"><title>Ein &amp; alles</title>
<style>p > b { color: red }</style><script>if (a < b) { c("</p>") }</script>
</head>
<body class='x  y' data-x="?a=1&copy=2&amp;lt;">
<p ID=a>Ein <B>Hund&nbsp;</B> l&auml;uft<br/>zu <img src="a.png" ALT="Bild">&lt;Tür&gt; a < b</p>\r
<svg viewBox="0 0 1 1"><path d=""/><text>t</text></svg>
<template><p>in</p></template><pre>
x &quot;y&quot;
</pre><textarea>

a&lt;b></textarea><noscript><p>Nein</p></noscript>
</body>
</html>
"""


def rendered(html: str, translate=identity, **options) -> str:
    document = HtmlDocument(html, **options)
    return document.render([translate(text, RANDOM) for text in document.texts])


def test_a_page_without_words_to_translate_keeps_every_character():
    document = HtmlDocument(PAGE[1:])
    assert document.texts == ["Ein & alles", "Ein Hund\xa0 läuft", "zu <Tür> a < b", "in"]
    page = rendered(PAGE[1:])
    same = page.replace("<B>Hund</B>&nbsp; läuft", "<B>Hund&nbsp;</B> l&auml;uft")
    assert same.replace("a &lt; b</p>", "a < b</p>") == PAGE[1:]


@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n ",
        "plain",
        '<?xml version="1.0"?>\n<p id=x>ein <b>Hund</b></p>',
        "<b><code>x()</code></b> ist gut",
        "<p>\n  Ein <b>brauner Hund</b> läuft <i>durch <a href='x'>den</a></i> Schnee.\n</p>",
        "<b>ganz <i>ganz</i></b> <a id=x></a>",
        "a <img src=x> b <img src=y>, c<img> <img>d",
        "x<!-- c --> y <!-- d -->z",
        "<p>H<sub>2</sub>O ist nass.<sup>[1]</sup> Ja<sup><a href='#2'>2</a></sup> doch</p>",
        "<div>a b<p>c d</p> e f</div>",
        "<a href=x><div>ein <b>Block</b></div></a>",
        "<b>Eins<br>zwei</b> drei",
        "<ruby>犬<rt>いぬ</rt></ruby> が",
        "Siehe <code>ls -l &quot;x&quot;</code> und <kbd>x</kbd>.",
        "<select><option>eins</option><option>zwei</option></select> <button>Los</button> nun",
        "<table><tbody><tr><td>a <b>b</b></td><th>c</th></tr></tbody></table>",
        "<p>leer <b></b> hier<i></i>.</p>",
        "<math><mi>x</mi></math> mal <svg><text>x</text></svg> Hund",
    ],
)
def test_the_same_words_give_the_same_document(html):
    assert rendered(html) == html


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>ein <b>Hund</b> da</p>", "<p>da <b>Hund</b> ein</p>"),
        ("<p>ein <b>Hund <i>ganz</i></b> da</p>", "<p>da <b><i>ganz</i> Hund</b> ein</p>"),
        ("<i>a</i> <b>b c</b> d", "d <b>c b</b> <i>a</i>"),
        ("a <code>x()</code> b", "b <code>x()</code> a"),
        ("a <span translate=no>Rom</span> b", "b <span translate=no>Rom</span> a"),
        ("ein <img> Bild da", "da <img> Bild ein"),
        ("ein Wort<sup>1</sup> da", "da Wort<sup>1</sup> ein"),
        ("<p><img> a b <br> c d</p>", "<p><img> b a <br> d c</p>"),
    ],
)
def test_tags_follow_their_words(html, expected):
    assert rendered(html, reversal) == expected


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("<p>eins<p>zwei", ["eins", "zwei"]),
        ("<p>1, 2, 3</p>!", []),
        ("a <span class='x notranslate'>b c</span> d", ["a X d"]),
        ("<code>x</code> <var>y</var>", []),
        ("<div translate=no>a <p translate=yes>b</p> <b>c</b></div>", ["b"]),
        ("<span translate=no>a <i translate=yes>b</i></span>", ["b"]),
        ("<code translate=yes>wie</code> <pre translate>so</pre>", ["wie", "so"]),
        ("<pre>a</pre><script>b</script><style>c</style><textarea>d</textarea>", []),
        ("<object>a<p>b</p></object> c", ["c"]),
        ("<plaintext>a", []),
        ("&nbsp;a\xa0b&nbsp;", ["a\xa0b"]),
        ("<tr><td>a<td>b", ["a", "b"]),
        ("<p title='Ein Titel'>a</p>", ["a"]),
    ],
)
def test_what_is_translated(html, texts):
    assert HtmlDocument(html).texts == texts


def test_attributes_on_request():
    html = (
        '<p title="Der Titel" id=a>a <img alt="Ein &quot;Bild&quot;" src=x> b</p> <img alt="1">\n'
        '<picture><img alt=Foto></picture> <input placeholder="Ihr Name" value=Wert>\n'
        '<div translate=no title="Nein"><img alt="Nein"></div><code title="Nein">x</code>'
    )
    document = HtmlDocument(html, attributes=True)
    assert document.texts == ["Der Titel", 'Ein "Bild"', "a b", "Foto", "Ihr Name"]
    found = document.render([(text.upper(), []) for text in document.texts])
    assert found == (
        '<p title="DER TITEL" id="a">A <img alt="EIN &quot;BILD&quot;" src="x"> B</p> '
        '<img alt="1">\n'
        '<picture><img alt="FOTO"></picture> <input placeholder="IHR NAME" value="Wert">\n'
        '<div translate=no title="Nein"><img alt="Nein"></div><code title="Nein">x</code>'
    )


def test_translated_text_is_no_markup():
    document = HtmlDocument("<p>a <b>b</b></p>")
    assert document.render([("<i> & \xa0x", [((2, 3), (6, 7))])]) == (
        "<p>&lt;i&gt; &amp; <b>&nbsp;</b>x</p>"
    )
    assert document.render([("", [])]) == "<p><b></b></p>"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<b>a <i>b</b> c</i>", "<b>a <i>b</i></b> <i>c</i>"),
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<td>a", "<td>a</td>"),
        ("<div/>a", "<div>a</div>"),
        ("a</b> b", "a b"),
        ("<table>a<tr><td>b", "a<table><tbody><tr><td>b</td></tr></tbody></table>"),
        ("<?php a ?>b", "<?php a ?>b"),
        ("<!x>b", "<!--x-->b"),
        ("<p>b</body>", "<html><head></head><body><p>b</p></body></html>"),
    ],
)
def test_faulty_html_is_read_as_browsers_do(html, expected):
    same = rendered(html) if "body" not in html else rendered("<body>" + html)
    assert same == expected


def test_wrong_translations():
    document = HtmlDocument("<p>ab</p><p>cd</p>")
    with pytest.raises(ValueError, match="1 translations of 2 texts"):
        document.render([("x", [])])
    for link in (((0, 3), (0, 1)), ((0, 1), (0, 4)), ((-1, 1), (0, 1)), ((1, 0), (0, 1))):
        with pytest.raises(ValueError, match=r"outside of a text of [23]"):
            document.render([("xyz", [link]), ("x", [])])


@pytest.mark.parametrize("html", ["<b>x ", "<div>", "<i>x</i> "])
def test_deep_nesting_and_many_tags_take_no_stack(html):
    number = 1 + sys.getrecursionlimit()
    found = rendered(number * html + "x")
    name = html[1 : html.index(">")]
    assert found.count(f"<{name}>") == found.count(f"</{name}>") == number
    assert found.count("x") == 1 + number * html.count("x")


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "justhtml", None)
    with pytest.raises(OptionError, match=r"pip install 'nmtflex\[serve\]'"):
        HtmlDocument("x")
