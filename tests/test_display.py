import codecs
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.display import escaped_if_unencodable, readable


@given(st.lists(st.binary(max_size=6), unique=True, max_size=20))
def test_different_file_names_look_different_and_can_be_stored(names):
    shown = [readable(os.fsdecode(name)) for name in names]
    assert len(set(shown)) == len(shown)
    assert all(text.encode() and text.isprintable() for text in shown if text)


@pytest.mark.parametrize("name", ["cat.png", "Übersicht 1.png", "写真\u3000一.jpg", "a/b/c.png", "né\u200dé"])
def test_ordinary_names_are_unchanged(name):
    assert readable(name) == name


@pytest.mark.parametrize(
    ("name", "shown"), [(b"a\xff.png", r"a\xff.png"), (b"new\nline", r"new\x0aline"), (b"a\\xff", r"a\\xff")]
)
def test_bytes_and_control_characters_are_escaped(name, shown):
    assert readable(os.fsdecode(name)) == shown


def test_streams_show_names_that_they_cannot_encode():
    codecs.register_error("attnaudit-test", escaped_if_unencodable)
    assert os.fsdecode(b"a\xff").encode("utf-8", "attnaudit-test") == rb"a\xff"
    assert "φ".encode("ascii", "attnaudit-test") == rb"\u03c6"
