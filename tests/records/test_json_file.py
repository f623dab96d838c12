"""Typed content in JSON: what is written comes back, and anything else is a sentence that names file and field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Discriminator

from attnaudit.errors import NumericalError, RunFolderError, SettingError, UsageError
from attnaudit.records import json_file
from attnaudit.records.later_fields import added_later
from tests.sealed import seal

WHAT = "a test"


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    size: int = 1
    share: float = 0.5

    def __post_init__(self):
        if self.size < 0:
            raise SettingError(f"size must be ≥ 0, got {self.size}.")


@dataclass(frozen=True)
class Circle:
    radius: float
    shape: Literal["circle"] = "circle"


@dataclass(frozen=True)
class Square:
    side: float
    shape: Literal["square"] = "square"


@dataclass(frozen=True)
class Whole:
    name: str
    part: Part
    colour: Colour = Colour.RED
    pair: tuple[float, float] = (0.0, 1.0)
    parts: tuple[Part, ...] = ()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    perhaps: bool | None = None
    figure: Annotated[Circle | Square, Discriminator("shape")] = Circle(1.0)
    anything: Mapping[str, Any] = field(default_factory=dict)
    new: str = added_later("default")


WHOLE = Whole(
    "x", Part(3), Colour.BLUE, (0.1, 2.0), (Part(), Part(2, 0.1)), {"a": Part()}, True, Square(2.0), {"deep": [1, None]}
)


def stored(tmp_path, content):
    seal(tmp_path / "some.json", content)
    return json_file.read(Whole, tmp_path / "some.json", WHAT)


def test_what_is_written_comes_back(tmp_path):
    json_file.write(tmp_path / "some.json", WHOLE)
    assert json_file.read(Whole, tmp_path / "some.json", WHAT) == WHOLE
    assert json_file.parse(Whole, json_file.plain(WHOLE), WHAT) == WHOLE


def test_a_number_that_is_not_finite_is_not_written(tmp_path):
    for number in (float("nan"), float("inf")):
        with pytest.raises(NumericalError, match=r"some\.json cannot be written: parts\[1\]\.share is not finite"):
            json_file.write(tmp_path / "some.json", replace(WHOLE, parts=(Part(), Part(share=number))))
    assert not (tmp_path / "some.json").exists()


def test_no_flipped_bit_is_read_as_other_content(tmp_path):
    file = tmp_path / "some.json"
    json_file.write(file, WHOLE)
    text = file.read_bytes()
    refused = []
    for place in range(8 * len(text)):
        changed = bytearray(text)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        try:
            assert json_file.read(Whole, file, WHAT) == WHOLE, place
        except RunFolderError as error:
            refused.append(str(error))
    assert len(refused) > len(text)
    assert all(str(file) in words for words in refused)


def test_another_valid_value_does_not_fit_the_digest(tmp_path):
    json_file.write(tmp_path / "some.json", WHOLE)
    text = (tmp_path / "some.json").read_text()
    (tmp_path / "some.json").write_text(text.replace('"size": 3', '"size": 4'))
    with pytest.raises(RunFolderError, match="does not match its digest"):
        json_file.read(Whole, tmp_path / "some.json", WHAT)


def test_a_digest_is_needed_unless_a_file_may_be_older(tmp_path):
    (tmp_path / "some.json").write_text(json.dumps(json_file.plain(WHOLE)))
    with pytest.raises(RunFolderError, match="digest is missing"):
        json_file.read(Whole, tmp_path / "some.json", WHAT)
    assert json_file.read(Whole, tmp_path / "some.json", WHAT, digest_required=False) == WHOLE
    (tmp_path / "some.json").write_text(json.dumps(json_file.plain(WHOLE) | {"digest": "other"}))
    with pytest.raises(RunFolderError, match="does not match its digest"):
        json_file.read(Whole, tmp_path / "some.json", WHAT, digest_required=False)


FAULTS = {
    "name is missing": {"name": ...},
    "part.size is missing": {"part": {"share": 0.5}},
    "parts[1].share is missing": {"parts": [{"size": 1, "share": 0.5}, {"size": 1}]},
    "by_name.b.size is missing": {"by_name": {"b": {"share": 1.0}}},
    "figure.side is missing": {"figure": {"shape": "square"}},
    "figure.shape is missing": {"figure": {"side": 1.0}},
    "name must be text, got 0.5": {"name": 0.5},
    "name must be text, got null": {"name": None},
    'part must be names with values, got "x"': {"part": "x"},
    "part.size must be a whole number, got 0.5": {"part": {"size": 0.5, "share": 0.5}},
    "part.size must be a whole number, got true": {"part": {"size": True, "share": 0.5}},
    'part.size must be a whole number, got "3"': {"part": {"size": "3", "share": 0.5}},
    "part.share must be a finite number, got NaN": {"part": {"size": 1, "share": float("nan")}},
    f"part.share must be a finite number, got 1{'0' * 39}…": {"part": {"size": 1, "share": 10**400}},
    "part: size must be ≥ 0, got -1": {"part": {"size": -1, "share": 0.5}},
    "colour must be one of 'red' or 'blue', got \"grey\"": {"colour": "grey"},
    "pair[1] is missing": {"pair": [1]},
    "pair must have 2 values, got 3": {"pair": [1, 2, 3]},
    "parts must be a list, got {}": {"parts": {}},
    "parts[0] must be names with values, got 1": {"parts": [1]},
    "perhaps must be true or false, got 1": {"perhaps": 1},
    "figure.shape must be one of 'circle', 'square', got \"line\"": {"figure": {"shape": "line"}},
    "figure.side must be a finite number, got []": {"figure": {"shape": "square", "side": []}},
    "part: unknown setting 'sise': did you mean size?": {"part": {"sise": 1, "share": 0.5}},
    "unknown setting 'other'": {"other": 1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_missing_or_of_another_kind_is_named_with_its_place(tmp_path, fault):
    content = {**json_file.plain(WHOLE), **FAULTS[fault]}
    content = {name: value for name, value in content.items() if value is not ...}
    with pytest.raises(RunFolderError) as caught:
        stored(tmp_path, content)
    assert f"some.json is not readable as a test ({fault}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_field_that_was_added_later_may_be_missing_and_no_other(tmp_path):
    content = json_file.plain(WHOLE)
    del content["new"]
    assert stored(tmp_path, content).new == "default"
    for name in content:
        with pytest.raises(RunFolderError, match=rf"\({name} is missing\)"):
            stored(tmp_path, {own: value for own, value in content.items() if own != name})


def test_plain_data_may_leave_out_what_has_a_default():
    assert json_file.parse(Whole, {"name": "x", "part": {}}, "recipe") == Whole("x", Part())
    with pytest.raises(UsageError, match=r"^recipe: part\.size must be a whole number, got 1\.5\.$"):
        json_file.parse(Whole, {"name": "x", "part": {"size": 1.5}}, "recipe")
    with pytest.raises(UsageError, match=r"^recipe: part is missing\.$"):
        json_file.parse(Whole, {"name": "x"}, "recipe")
    with pytest.raises(UsageError, match=r"^recipe: "):
        json_file.parse(Whole, {("a", "b"): 1}, "recipe")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b"1" * 5000, b"{}, {}", b"{}], [{}", b"[" * 10**6])
def test_a_file_that_is_not_a_mapping_is_named(tmp_path, content):
    (tmp_path / "some.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"some\.json is not readable as a test \(") as caught:
        json_file.read(Whole, tmp_path / "some.json", WHAT)
    assert "\n" not in str(caught.value)


def test_entries_of_a_list_are_counted_from_0(tmp_path):
    (tmp_path / "some.json").write_text('[{"size": 1, "share": 0.5}, {"share": 0.5}]')
    with pytest.raises(RunFolderError, match=r"\(\[1\]\.size is missing\)"):
        json_file.read(tuple[Part, ...], tmp_path / "some.json", WHAT)


def test_a_file_that_is_not_there_is_for_the_caller_to_explain(tmp_path):
    with pytest.raises(FileNotFoundError):
        json_file.read(Whole, tmp_path / "some.json", WHAT)


@dataclass(frozen=True)
class Grown:
    size: int
    colour: Colour = added_later(Colour.RED, unwritten=True)


@dataclass(frozen=True)
class Holder:
    parts: tuple[Grown, ...]
    by_name: Mapping[str, Grown]


def test_a_default_that_is_not_written_leaves_files_and_digests_as_they_were(tmp_path):
    file = tmp_path / "holder.json"
    content = Holder((Grown(1), Grown(2, Colour.BLUE)), {"one": Grown(1)})
    assert json_file.plain(content) == {
        "parts": [{"size": 1}, {"size": 2, "colour": "blue"}],
        "by_name": {"one": {"size": 1}},
    }
    json_file.write(file, content)
    assert json_file.read(Holder, file, WHAT) == content
