"""Classes of data sets find their outputs, by name, by WordNet id, by number, or one by one."""

from dataclasses import replace

import pytest
import torch

from attnaudit.errors import InputError
from attnaudit.sources.class_outputs import may_be_same, outputs_of
from tests.robustness.subjects import write_folders, write_parquet


def test_wordnet_ids_are_imagenets_places(tmp_path):
    pytest.importorskip("timm")
    # the first, second and last synsets of ILSVRC-2012 in order of their ids
    data = write_folders(tmp_path, ["n01440764", "n01443537", "n15075141"])
    assert outputs_of(data, 1000, "model").tolist() == [0, 1, 999]


def test_numbers_are_places(tmp_path):
    data = write_folders(tmp_path, ["007", "032", "999"])
    assert outputs_of(data, 1000, "model").tolist() == [7, 32, 999]


def test_as_many_classes_as_outputs_are_taken_in_order(tmp_path):
    assert torch.equal(outputs_of(write_folders(tmp_path / "a", ["cat", "dog"]), 2, "model"), torch.arange(2))
    assert torch.equal(outputs_of(write_parquet(tmp_path / "b.parquet", classes=2), 2, "model"), torch.arange(2))


@pytest.mark.parametrize("names", [["cat", "dog"], ["n01440764", "n01443537"]])
def test_other_classes_are_refused_with_both_numbers(tmp_path, names):
    with pytest.raises(InputError, match=r"model has 10 classes, but .* has 2"):
        outputs_of(write_folders(tmp_path, names), 10, "model")


def test_a_number_that_the_model_does_not_have_is_named(tmp_path):
    with pytest.raises(InputError, match=r"class 10 of .* is not one of the 10 classes of model, .* from 0 to 9"):
        outputs_of(write_folders(tmp_path, [str(number) for number in range(1, 11)]), 10, "model")


def test_a_synset_that_is_not_imagenets_is_named(tmp_path):
    pytest.importorskip("timm")
    with pytest.raises(InputError, match="n99999999"):
        outputs_of(write_folders(tmp_path, ["n01440764", "n99999999"]), 1000, "model")


@pytest.mark.parametrize(
    ("names", "labels", "places"),
    [
        (["cat", "dog"], ["dog", "cat"], [1, 0]),
        (["bird", "dog"], ["bird", "cat", "dog"], [0, 2]),
        (["1", "2"], ["1", "2", "3"], [0, 1]),
        (["7", "8"], ["007", "008"], [0, 1]),
    ],
)
def test_names_that_data_and_model_have_decide(tmp_path, names, labels, places):
    data = write_folders(tmp_path, names)
    assert outputs_of(data, len(labels), "model", labels=labels).tolist() == places


@pytest.mark.parametrize(
    ("names", "labels", "places"),
    [
        (["0", "1"], ["dog", "cat"], [0, 1]),
        (["cat", "dog"], ["0", "1"], [0, 1]),
        (["cat", "dog"], None, [0, 1]),
        (["cat", "dog"], ["dog", "cat", "bird"], [0, 1]),  # more names than outputs, so that they are names of others
    ],
)
def test_numbers_and_missing_names_are_no_names(tmp_path, names, labels, places):
    assert outputs_of(write_folders(tmp_path, names), 2, "model", labels=labels).tolist() == places


def test_data_without_names_is_taken_in_order_by_a_model_with_names(tmp_path):
    data = write_parquet(tmp_path / "b.parquet", classes=2)
    assert outputs_of(data, 2, "model", labels=["dog", "cat"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("names", "labels"),
    [(["apple", "dog"], ["dog", "cat"]), (["cat", "dog"], ["cat", "cat"]), (["0", "1"], ["1", "2"])],
)
def test_a_class_that_the_model_lacks_is_named(tmp_path, names, labels):
    data = write_folders(tmp_path, names)
    with pytest.raises(InputError, match=r"^The class '(apple|cat|0)' of .* is not one of the classes of model \("):
        outputs_of(data, 2, "model", labels=labels)


def test_two_classes_of_one_name_are_told_apart_by_their_places(tmp_path):
    data = replace(write_parquet(tmp_path / "b.parquet", classes=2), names=("crane", "crane"))
    assert outputs_of(data, 2, "model", labels=["crane", "crane"]).tolist() == [0, 1]


def test_wordnet_ids_are_imagenets_places_for_a_model_with_words(tmp_path):
    pytest.importorskip("timm")
    data = write_folders(tmp_path, ["n01440764", "n15075141"])
    words = [f"word {number}" for number in range(1000)]
    assert outputs_of(data, 1000, "model", labels=words).tolist() == [0, 999]


@pytest.mark.parametrize(
    ("names", "labels", "may"),
    [
        (("a", "b"), ("a", "b"), True),
        (("b", "a"), ("a", "b"), False),
        (("0", "1"), ("a", "b"), True),
        (None, ("a",), True),
    ],
)
def test_names_are_compared_where_both_have_them(names, labels, may):
    assert may_be_same(names, labels) is may
