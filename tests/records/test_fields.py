"""Fields of a JSON file: what is there comes back, and anything else is a sentence that names file and place."""

import json

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.fields import Fields

WHAT = "a test"


def fields(tmp_path, content):
    (tmp_path / "some.json").write_text(json.dumps(content))
    return Fields.in_file(tmp_path / "some.json", WHAT)


def test_what_is_there_comes_back(tmp_path):
    own = fields(tmp_path, {"t": "x", "w": 3, "n": 0.5, "b": False, "none": None, "m": {"deep": 1}, "l": [-1, 2]})
    assert (own.text("t"), own.whole("w", least=3), own.number("n"), own.number("w")) == ("x", 3, 0.5, 3.0)
    assert (own.truth("b"), own.is_null("none"), own.is_null("b")) == (False, True, False)
    assert own.mapping("m").whole("deep", least=0) == 1
    assert own.wholes("l") == own.items("l") == [-1, 2]
    assert "none" in own
    assert not own.has("none")
    assert "other" not in own


@pytest.mark.parametrize(
    ("ask", "fault"),
    [
        (lambda own: own.text("gone"), "gone is missing"),
        (lambda own: own.is_null("gone"), "gone is missing"),
        (lambda own: own.text("n"), "n is 0.5, not a text"),
        (lambda own: own.whole("n", least=0), "n is 0.5, not a whole number, 0 or more"),
        (lambda own: own.whole("w", least=4), "w is 3, not a whole number, 4 or more"),
        (lambda own: own.whole("b", least=0), "b is true, not a whole number, 0 or more"),
        (lambda own: own.number("b"), "b is true, not a finite number"),
        (lambda own: own.number("nan"), "nan is NaN, not a finite number"),
        (lambda own: own.number("huge"), f"huge is 1{'0' * 39}…, not a finite number"),
        (lambda own: own.truth("w"), "w is 3, not true or false"),
        (lambda own: own.wholes("m"), r'm is {"deep": \[{}, 1\]}, not a list'),
        (lambda own: own.mapping("m").wholes("deep"), r"m\.deep is \[{}, 1\], not a list of whole numbers"),
        (lambda own: own.mapping("w"), "w is 3, not names with values"),
        (lambda own: own.mapping("m").mappings("deep"), r"m\.deep\[1\] is 1, not names with values"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named_with_its_place(tmp_path, ask, fault):
    content = {"w": 3, "n": 0.5, "b": True, "nan": float("nan"), "huge": 10**400, "m": {"deep": [{}, 1]}}
    with pytest.raises(RunFolderError, match=rf"some\.json is not readable as a test \({fault}\): put back") as caught:
        ask(fields(tmp_path, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b"1" * 5000])
def test_a_file_that_is_no_mapping_is_named(tmp_path, content):
    (tmp_path / "some.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"some\.json is not readable as a test \("):
        Fields.in_file(tmp_path / "some.json", WHAT)


def test_entries_of_a_list_are_counted_from_0(tmp_path):
    (tmp_path / "some.json").write_text('[{"epoch": 1}, {}]')
    first, second = Fields.listed_in(tmp_path / "some.json", WHAT, "epochs")
    assert first.whole("epoch", least=1) == 1
    with pytest.raises(RunFolderError, match=r"\(epochs\[1\]\.epoch is missing\)"):
        second.whole("epoch", least=1)


def test_a_file_that_is_not_there_is_for_the_caller_to_explain(tmp_path):
    with pytest.raises(FileNotFoundError):
        Fields.in_file(tmp_path / "some.json", WHAT)
