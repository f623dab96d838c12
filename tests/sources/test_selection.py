"""Models and inputs by name, alike for Python and the terminal."""

import pytest
import torch

from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.selection import InputSelection, select_batch, select_images, select_inputs, select_specs


@pytest.mark.parametrize(("name", "package"), [("minilm", "transformers"), ("vit-small-cifar", "timm")])
def test_an_alias_wins_over_a_folder_of_its_name(tmp_path, monkeypatch, name, package):
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "run.json").write_text("{}")
    assert load_model(parse_model(name)).label == name


def test_a_folder_with_the_name_of_an_alias_is_reached_by_its_path(tmp_path, monkeypatch):
    from tests.robustness.subjects import write_model

    pytest.importorskip("timm")
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "vit-small-cifar", classes=3)
    own, shipped = (load_model(parse_model(name)) for name in ("./vit-small-cifar", "vit-small-cifar"))
    assert own.fingerprint != shipped.fingerprint
    assert own.weights_origin == "vit-small-cifar/model.safetensors"


def test_one_name_is_one_model_and_several_share_no_weights(tmp_path):
    pytest.importorskip("timm")
    assert [spec.name for spec in select_specs("test_vit", random_weights=True)] == ["test_vit"]
    assert len(select_specs(["test_vit", "test_vit2"], random_weights=True)) == 2
    with pytest.raises(UsageError, match="got 2"):
        select_specs(["test_vit", "test_vit2"], weights=tmp_path / "weights.safetensors")
    with pytest.raises(UsageError, match="No model"):
        select_specs([])


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(UsageError, match=f"got {limit}"):
        InputSelection(limit=limit)


def test_first_takes_images_in_order_and_no_limit_takes_all(image_folder):
    names = [item.name for item in select_images(InputSelection(image_folder))]
    assert len(names) == 6
    assert [item.name for item in select_images(InputSelection(image_folder, 2, first=True))] == names[:2]


def test_a_folder_of_texts_may_have_images_beside_them(image_folder):
    pytest.importorskip("transformers")
    (image_folder / "text.md").write_text("A sentence about nothing in particular, of some length. " * 9)
    selected = select_inputs([parse_model("minilm")], InputSelection(image_folder, 1), Protocol.EXACT)
    assert selected.words == f"1 passage of {image_folder.name}"


def test_a_batch_may_say_which_inputs_belong_together():
    batch = torch.arange(6.0).view(3, 2)
    selected = select_batch(batch, groups=["film", "film", 7])
    groups = [own for shard in selected.shards for own in shard.groups.items()]
    assert groups == [("input-0", "film"), ("input-1", "film"), ("input-2", "7")]
    assert select_batch(batch).shards[0].groups == {}
    with pytest.raises(InputError, match="Got 2 groups for a batch of 3 inputs"):
        select_batch(batch, groups=["a", "b"])


def test_texts_are_grouped_by_file_and_not_by_folder(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "text.txt").write_text("A sentence about nothing in particular, of some length.")
    with pytest.raises(UsageError, match="--group-by-folder is for images"):
        select_inputs([parse_model("minilm")], InputSelection(tmp_path, by_folder=True), Protocol.EXACT)
