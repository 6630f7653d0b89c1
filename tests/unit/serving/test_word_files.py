"""Word files: runs keep their looks and go where their words go; nothing else is touched."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile

import docx
import pytest

from nmtflex.serving import word_files
from nmtflex.serving.fields import Refused
from nmtflex.serving.word_files import translate_word


def saved(document):
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


def translated(document, translate):
    async def each(texts):
        return list(map(translate, texts))

    return docx.Document(io.BytesIO(asyncio.run(translate_word(saved(document), each))))


def in_capitals(text):
    return re.sub(r">([^<]+)<", lambda found: f">{found[1].upper()}<", text)


def test_runs_follow_their_words():
    document = docx.Document()
    paragraph = document.add_paragraph("Ein ")
    paragraph.add_run("Hund").bold = True
    paragraph.add_run(" läuft & rennt.")
    seen = []

    def translate(text):
        seen.append(text)
        return '<span id="1">Dog</span> <span id="0">a</span><span id="2"> runs &lt; walks.</span>'

    found = translated(document, translate)
    assert seen == [
        '<span id="0">Ein </span><span id="1">Hund</span><span id="2"> läuft &amp; rennt.</span>'
    ]
    runs = [(run.text, run.bold) for run in found.paragraphs[0].runs]
    assert runs == [("Dog ", True), ("a", None), (" runs < walks.", None)]


def test_runs_that_look_the_same_are_one():
    document = docx.Document()
    paragraph = document.add_paragraph("lä")
    paragraph.add_run("uft")
    paragraph.add_run("!").italic = True
    found = translated(document, in_capitals)
    assert [run.text for run in found.paragraphs[0].runs] == ["LÄUFT", "!"]


def test_tables_headers_and_what_is_no_text():
    document = docx.Document()
    document.add_table(1, 2).cell(0, 1).text = "zwei"
    document.sections[0].header.paragraphs[0].text = "kopf"
    document.add_paragraph().add_run().add_break()
    document.add_heading("titel", 1)
    found = translated(document, in_capitals)
    assert found.tables[0].cell(0, 1).text == "ZWEI"
    assert found.sections[0].header.paragraphs[0].text == "KOPF"
    assert [paragraph.text for paragraph in found.paragraphs] == ["\n", "TITEL"]
    assert found.paragraphs[1].style.name == "Heading 1"


def test_text_outside_of_spans_is_not_lost():
    document = docx.Document()
    document.add_paragraph("eins")
    found = translated(document, lambda text: "vor <span id='0'>mitte</span> nach" if text else "")
    assert found.paragraphs[0].text == "vor mitte nach"


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"no archive"])
def test_damaged_files_are_refused(data):
    with pytest.raises(Refused) as caught:
        asyncio.run(translate_word(data, None))
    assert caught.value.status == 400


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(word_files, "LARGEST", 1000)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"0" * 1001)
    with pytest.raises(Refused, match="1000 bytes"):
        asyncio.run(translate_word(data.getvalue(), None))
