"""Classes of data sets find their outputs, by WordNet id, by number, or one by one."""

import pytest
import torch

from attnaudit.errors import InputError
from attnaudit.sources.class_outputs import outputs_of
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


@pytest.mark.parametrize("names", [["cat", "dog"], ["0", "10"], ["n01440764", "n01443537"]])
def test_other_classes_are_refused_with_both_numbers(tmp_path, names):
    with pytest.raises(InputError, match=r"model has 10 classes, but .* has 2"):
        outputs_of(write_folders(tmp_path, names), 10, "model")


def test_a_synset_that_is_not_imagenets_is_named(tmp_path):
    pytest.importorskip("timm")
    with pytest.raises(InputError, match="n99999999"):
        outputs_of(write_folders(tmp_path, ["n01440764", "n99999999"]), 1000, "model")
