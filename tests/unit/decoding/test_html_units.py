"""HTML in units of sentences, translated elsewhere and joined."""

from __future__ import annotations

import json
import string
import warnings

import pytest

import nmtflex
from nmtflex.config import NoneConfig
from nmtflex.decoding.html import HtmlUnits, translate_html, translate_units
from nmtflex.text.paragraphs import ParagraphSplitter
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import WORD, build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

HTML = """<h1>a</h1>
<p>
  <i>a bee . c <b>dee</b> .</i>  e <a href=x>fee . g</a> hee .
</p><p title="a b">a <code>x()</code> <b>c</b>"""
UNITS = ["a", "a bee .", "c dee .", "e fee .", "g hee .", "a X c"]


def side(language: str, letters: str) -> SidePipeline:
    vocabulary = Vocabulary(list(letters), [1] * len(letters))
    return SidePipeline(language, build_tokenizer({"name": "none"}), None, vocabulary)


PIPELINE = TextPipeline(side("en", string.ascii_lowercase), side("en", string.ascii_uppercase))
SPLITTER = ParagraphSplitter(PIPELINE, 1, 10)


def backwards(unit: str):
    """Translate into the words from last to first, in capitals, with a link for each."""
    words = [found.span() for found in WORD.finditer(unit)]
    text, links = " ", []
    for start, end in reversed(words):
        links.append(((start, end), (len(text), len(text) + end - start)))
        text += unit[start:end].upper() + " "
    return text, links


def test_sentences_are_translated_by_themselves_and_tags_follow_their_words():
    document = HtmlUnits(HTML, SPLITTER)
    assert document.units == UNITS
    found = document.join([backwards(unit) for unit in document.units])
    assert found == (
        "<h1>A</h1>\n<p>\n  <i>. BEE A . <b>DEE</b> C</i> <a href=x>. FEE</a> E . HEE G\n"
        '</p><p title="a b"><b>C</b> <code>x()</code> A</p>'
    )


def test_an_element_over_the_end_of_a_sentence():
    document = HtmlUnits("<p>e <a href=x>fee . g</a> hee .</p>", SPLITTER)
    same = document.join([
        (unit, [(word.span(), word.span()) for word in WORD.finditer(unit)])
        for unit in document.units
    ])
    assert same == "<p>e <a href=x>fee . g</a> hee .</p>"


def test_results_may_come_as_json():
    document = HtmlUnits(HTML, SPLITTER)
    results = [backwards(unit) for unit in document.units]
    assert document.join(json.loads(json.dumps(results))) == document.join(results)


def test_texts_stay_whole_without_a_splitter():
    document = HtmlUnits(HTML, None, attributes=True)
    assert document.units == ["a", "a bee . c dee . e fee . g hee .", "a b", "a X c"]
    assert document.join([(unit.upper(), []) for unit in document.units]) == (
        "<h1>A</h1>\n<p>\n  <i>A BEE . C <b>DEE</b> .</i> E <a href=x>FEE . G</a> HEE .\n"
        '</p><p title="A B">A <code>x()</code> <b>C</b></p>'
    )


def test_another_number_of_translations():
    with pytest.raises(ValueError, match="1 translations of 6 units"):
        HtmlUnits(HTML, SPLITTER).join([("x", [])])


def test_the_units_of_a_run_are_its_translations(tiny_run):
    translator = nmtflex.load(tiny_run, threads=1, split="sentences")
    units = ["a b", "c", "d e f"]
    found = translate_units(translator, units)
    alone = nmtflex.load(tiny_run, threads=1)
    assert [text for text, _ in found] == alone.translate(units)
    [[best]] = alone.n_best(["d e f"], 1, align=True)
    spans = [[found.span() for found in WORD.finditer(text)] for text in ("d e f", best.text)]
    assert found[2][1] == [(spans[0][source], spans[1][target]) for source, target in best.links]
    html = "".join(f"<p>{unit}</p>" for unit in units)
    assert translate_html(translator, html) == translate_html(alone, html)
    assert translate_html(alone, "<!-- a -->") == "<!-- a -->"


def test_without_weights_over_positions_tags_stay_in_proportion(make_tiny_run):
    translator = nmtflex.load(make_tiny_run("run", NoneConfig()), threads=1, max_length=4)
    assert not translator.aligned
    [[text, links]] = translate_units(translator, ["a b c d"])
    words = text.split()
    assert (len(words), links) == (4, [])
    found = translate_html(translator, "<p>a b <b>c d</b></p>")
    assert found == f"<p>{words[0]} {words[1]} <b>{words[2]} {words[3]}</b></p>"


def test_a_translation_that_may_lack_its_end_is_warned_of(tiny_run):
    translator = nmtflex.load(tiny_run, threads=1, max_length=1)
    with pytest.warns(UserWarning, match="1 of 1 translations"):
        translate_html(translator, "<p>a</p>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert translate_html(translator, "<p>1</p>") == "<p>1</p>"
