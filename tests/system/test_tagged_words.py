"""Tags of a real translation, around the right words."""

from __future__ import annotations

import os

import pytest
from tagged_words import judge, read_tagged

RUN = os.environ.get("NMTFLEX_DEEN_RUN", "")


@pytest.mark.slow
@pytest.mark.skipif(not RUN, reason="NMTFLEX_DEEN_RUN names no German-English run of Multi30k")
def test_tags_are_around_the_right_words():
    import nmtflex
    from nmtflex.decoding.html import translate_html

    translator = nmtflex.load(RUN, threads=1)
    words = list(read_tagged())
    assert len(words) >= 200
    found = judge(words, lambda html: translate_html(translator, html))
    assert found.right >= 0.95 * len(words), [*found.wrong, *found.lost]


def test_words_and_their_judge():
    words = list(read_tagged())
    assert all(one.html.count("<b>") == 1 and one.accepted for one in words)
    own = [words[0], words[0], words[1]]
    document = "<p>A <b>dog</b> runs.</p>\n<p><b>A dog</b> runs.</p>\n<p>The <b>cat</b> runs.</p>"
    found = judge(own, lambda _: document)
    assert (found.right, len(found.wrong), len(found.lost)) == (1, 1, 1)
