"""What a training refuses, or stops at, and says in a sentence: damaged files, data and batches that do not fit."""

import pytest
import torch

from attnaudit.errors import AttnAuditError, InputError, NumericalError, RunFolderError, UsageError, WeightsError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.labelled import training_and_test
from attnaudit.sources.trained_models import WEIGHTS
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.tasks import read_data
from attnaudit.training.trainer import CHECKPOINT, Trainer, save_checkpoint
from tests.training.conftest import write_images


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a checkpoint", b"\x80\x02."])
def test_a_damaged_checkpoint_is_named_and_kept(recipe_file, halves, tmp_path, content):
    train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")
    (tmp_path / "run" / CHECKPOINT).write_bytes(content)
    with pytest.raises(RunFolderError, match=r"checkpoint\.pt is damaged"):
        train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")
    assert (tmp_path / "run" / CHECKPOINT).read_bytes() == content
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_foreign_checkpoint_is_no_checkpoint_of_ours(recipe_file, halves, tmp_path):
    train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")
    save_checkpoint(tmp_path / "run", {"model": {}})
    with pytest.raises(RunFolderError, match="it lacks average, history, loss, optimiser, step"):
        train(read_recipe(str(recipe_file), ["epochs=1"]), halves, tmp_path / "run")


def test_a_limit_that_leaves_one_class_is_refused(recipe_file, data_set):
    with pytest.raises(InputError, match=r"--limit 4 .*train\.parquet"):
        read_data(read_recipe(str(recipe_file)), data_set, 4)


def test_a_limit_keeps_a_class_that_it_takes_no_training_image_of(recipe_file, tmp_path):
    write_images(tmp_path / "train.parquet", [0, 1, 2] * 6)
    write_images(tmp_path / "test.parquet", [2, 0, 1] * 2)
    recipe = read_recipe(str(recipe_file), ["epochs=1", "batch=2", "monitor.images=0"])
    limited, said = read_data(recipe, tmp_path, 4), []
    assert [sorted(set(half.labels.tolist())) for half in limited] == [[0, 1], [0, 2]]
    trained = train(recipe, limited, tmp_path / "run", tell=said.append)
    assert trained.recipe.model.classes == 3
    assert "3 classes, 1 of them without a training image" in said[0]


def test_one_class_is_nothing_to_learn(data_set):
    write_images(data_set / "train.parquet", [1] * 6)
    with pytest.raises(InputError, match=r"2 classes, got 6 images of 1 class\."):
        training_and_test(data_set)


def test_a_batch_larger_than_the_data_is_refused_and_leaves_no_folder(recipe_file, halves, tmp_path):
    with pytest.raises(UsageError, match="batch must be ≤ the 40 images of the data, got 64"):
        train(read_recipe(str(recipe_file), ["batch=64"]), halves, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_batch_that_does_not_fit_is_said_in_a_sentence(recipe_file, halves, tmp_path, monkeypatch):
    def too_much(self, images, targets):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB")

    monkeypatch.setattr(Trainer, "_loss", too_much)
    with pytest.raises(AttnAuditError, match=r"A batch of 8 images of 5 tokens .* memory of cpu"):
        train(read_recipe(str(recipe_file), ["monitor.images=0"]), halves, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_stops_the_training_before_it_is_saved(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file), ["optimiser.rate=1e30", "optimiser.clip=null", "optimiser.warmup_epochs=0"])
    with pytest.raises(NumericalError, match=r"loss is nan before step \d+ of tiny"):
        train(recipe, halves, tmp_path / "run")


def test_a_test_loss_that_is_no_number_stops_the_training_too(recipe_file, halves, tmp_path):
    """With one step, what it leaves of the weights is first seen on the test half."""
    changes = ["epochs=1", "batch=40", "optimiser.rate=1e30", "optimiser.clip=null", "optimiser.warmup_epochs=0"]
    with pytest.raises(NumericalError, match="test loss is nan after step 1 of tiny: use a lower rate"):
        train(read_recipe(str(recipe_file), [*changes, "monitor.images=0"]), halves, tmp_path / "run")


def test_weights_that_are_damaged_or_of_another_training_are_refused(recipe_file, halves, tmp_path):
    recipe = read_recipe(str(recipe_file), ["epochs=1", "monitor.images=0"])
    one, other = (train(recipe, halves, tmp_path / str(seed), seed=seed).path / WEIGHTS for seed in (0, 1))
    load_model(parse_model(str(one.parent)))
    right, damaged = one.read_bytes(), bytearray(one.read_bytes())
    damaged[-1] ^= 1
    for content in (damaged, other.read_bytes()):
        one.write_bytes(content)
        with pytest.raises(WeightsError, match=r"model.safetensors is damaged, or of another training than card.json"):
            load_model(parse_model(str(one.parent)))
    load_model(parse_model(str(one.parent), weights=other))
    one.write_bytes(right)
    load_model(parse_model(str(one.parent)))
