"""What the server and its workers send each other."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from nmtflex.serving.messages import packed, read_message

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(st.lists(VALUES, max_size=3))
def test_messages_come_back_in_order(messages):
    stream = io.BytesIO(b"".join(map(packed, messages)))
    assert [read_message(stream) for _ in messages] == messages
    assert read_message(stream) is None


@given(st.text(min_size=1), st.data())
def test_a_message_that_is_cut_off_is_none(text, data):
    whole = packed({"text": text})
    end = data.draw(st.integers(0, len(whole) - 1))
    assert read_message(io.BytesIO(whole[:end])) is None
