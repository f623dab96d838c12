"""Training on masks: it learns, its folder is a model that segments, and pictures and masks move together."""

import json
from math import exp, log1p

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.errors import InputError, UsageError
from attnaudit.records.recipe import MaskAugmentationSettings
from attnaudit.records.training import SegmentationEpoch, open_training
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.segmented import UNLABELLED
from attnaudit.training.batching import IGNORED, Layout
from attnaudit.training.distributed import Ranks
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import FOLDER, read_recipe
from attnaudit.training.segmentation_task import MaskAugmentation, targets_of
from attnaudit.training.tasks import make_task, read_data
from tests.sources.masks import SHAPE, without_labels

pytest.importorskip("timm")


@pytest.fixture
def recipe_file(mask_recipe_file):
    return mask_recipe_file


@pytest.fixture
def halves(recipe_file, mask_set):
    return read_data(read_recipe(str(recipe_file)), mask_set)


def test_training_learns_what_can_be_learned(recipe_file, halves, tmp_path):
    plain = ["augmentation.smallest=1", "augmentation.largest=1", "augmentation.colour=0", "model.drop_path=0"]
    recipe = read_recipe(
        str(recipe_file), [*plain, "epochs=20", "optimiser.rate=1e-2", "monitor.images=0", "average=null"]
    )
    first, *_, last = train(recipe, halves, tmp_path / "run").history
    assert last["test_mean_iou"] > 0.9
    assert last["train_loss"] < first["train_loss"]


@pytest.mark.parametrize("attention", ["softmax", "symmetric", "rpc"])
def test_a_trained_folder_is_a_model_that_segments(recipe_file, halves, tmp_path, attention):
    chosen = [f"model.attention={attention}", "epochs=1", "average=null", "monitor.images=0"]
    trained = train(read_recipe(str(recipe_file), chosen), halves, tmp_path / "run")
    model = load_model(parse_model(str(trained.path)))
    assert model.card.architecture.segments
    prepared = model.preprocess(attnaudit.Protocol.EXACT)(halves[1].image(0))[None]
    assert model.module(prepared).shape == (1, *SHAPE, 2)
    found = attnaudit.robust(str(trained.path), halves[1].path, out=tmp_path / "robust", progress=False)
    by_quantity = {entry.quantity.value: entry.accuracy for entry in found.summary.accuracies}
    last = trained.history[-1]
    for name in ("mean_iou", "mean_accuracy", "pixel_accuracy"):
        assert by_quantity[name] == pytest.approx(last[f"test_{name}"], abs=1e-3)


def test_the_history_has_the_three_numbers_of_every_epoch(recipe_file, halves, tmp_path):
    trained = train(read_recipe(str(recipe_file), ["monitor.images=0"]), halves, tmp_path / "run")
    run = open_training(trained.path)
    assert [type(epoch) for epoch in run.history] == [SegmentationEpoch] * 3
    assert run.history[-1].test_mean_iou == trained.history[-1]["test_mean_iou"]
    assert run.accuracies == ()
    facts = json.loads((trained.path / "card.json").read_text())["facts"]
    assert facts["test_pixel_accuracy"] == run.history[-1].test_pixel_accuracy


def augmented(count=64, **settings):
    """Pictures whose pixels say their class and place: class 0 is black, class 1 white."""
    masks = torch.zeros(count, *SHAPE, dtype=torch.uint8)
    masks[:, :, 20:] = 1
    pixels = (255 * masks)[:, None].expand(-1, 3, -1, -1).contiguous()
    plain = {"smallest": 1.0, "largest": 1.0, "flip": False, "colour": 0.0}
    torch.manual_seed(0)
    augmentation = MaskAugmentation(MaskAugmentationSettings(**plain | settings), "cpu")
    images, found = augmentation(pixels, masks)
    return pixels, masks, images, found, augmentation


def test_without_augmentation_nothing_changes():
    pixels, masks, images, found, augmentation = augmented()
    assert torch.equal(found, masks)
    assert torch.equal(images, augmentation.normalise(pixels))


@pytest.mark.parametrize("settings", [{"flip": True}, {"smallest": 0.5}, {"largest": 3.0}])
def test_pictures_and_masks_move_together(settings):
    _, masks, images, found, augmentation = augmented(**settings)
    assert not torch.equal(found, masks)
    black, white = (augmentation.normalise(torch.full((1, 3, 1, 1), own, dtype=torch.uint8)) for own in (0, 255))
    share = (images - black) / (white - black)
    sharp = (share < 0.01) | (share > 0.99)  # but where a pixel lies on the edge
    labelled = (found != UNLABELLED)[:, None].expand_as(share) & sharp
    assert sharp.float().mean() > 0.9
    assert torch.equal(share[labelled].round().to(torch.uint8), found[:, None].expand_as(share)[labelled])


def test_what_lies_outside_a_picture_has_no_class():
    _, masks, _, found, _ = augmented(smallest=0.5, largest=0.5)
    share = (found == UNLABELLED).float().mean(dim=(1, 2))
    assert float(share.mean()) == pytest.approx(0.75, abs=0.03)
    assert not (masks == UNLABELLED).any()


def test_a_larger_picture_shows_a_part_of_it_and_nothing_else():
    *_, found, _ = augmented(smallest=2.0, largest=2.0)
    assert not (found == UNLABELLED).any()


def test_scales_are_as_often_between_a_quarter_and_a_half_as_between_a_half_and_one():
    """Their squares are the shares of a picture that have classes."""
    *_, found, _ = augmented(count=1_000, smallest=0.25, largest=1.0)
    share = (found != UNLABELLED).float().mean(dim=(1, 2))
    for scale, below in ((0.5**1.5, 1 / 4), (0.5, 1 / 2), (0.5**0.5, 3 / 4)):
        assert float((share < scale**2).float().mean()) == pytest.approx(below, abs=0.06)


def test_colours_change_pictures_and_not_masks():
    _, masks, images, found, _ = augmented(colour=0.5)
    assert torch.equal(found, masks)
    assert len({tuple(image[:, 0, -1].tolist()) for image in images}) > 30


def test_the_loss_leaves_unlabelled_pixels_out():
    masks = torch.tensor([[[0, 1, UNLABELLED]]], dtype=torch.uint8)
    assert targets_of(masks).tolist() == [0, 1, IGNORED]
    scores = torch.tensor([[2.0, 0.0], [0.0, 1.0], [9.0, 0.0]])
    whole, labelled = (
        torch.nn.functional.cross_entropy(own, targets)
        for own, targets in ((scores, targets_of(masks)), (scores[:2], torch.tensor([0, 1])))
    )
    assert whole == labelled


class Constant(nn.Module):
    """Every pixel is of class 0, by one logit."""

    def forward(self, images):
        return torch.tensor([1.0, 0.0]).expand(len(images), *SHAPE, 2)


def test_the_test_loss_is_a_mean_over_labelled_pixels_of_all_batches(recipe_file, mask_set):
    """Of six pictures in batches of four, the last has no class anywhere."""
    without_labels(mask_set / "test.parquet", [5])
    recipe = read_recipe(str(recipe_file), ["batch=1"])
    task = make_task(recipe, read_data(recipe, mask_set))
    feed = task.feed(Layout(task.examples, recipe.batch, 0, Ranks()), "cpu", 0)
    masks = task.test.mask_pixels(*SHAPE)
    dark, bright = (int((masks == number).sum()) for number in (0, 1))
    loss = (dark * log1p(exp(-1)) + bright * log1p(exp(1))) / (dark + bright)
    found = feed.evaluate(Constant())
    assert found["test_loss"] == pytest.approx(loss)
    assert found["test_pixel_accuracy"] == pytest.approx(dark / (dark + bright))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("model.decoder=null", "model.decoder is missing: a network that segments needs one"),
        ("model.decoder=cubic", "model.decoder must be one of 'linear'"),
        ("augmentation.smallest=0", "augmentation: smallest must be > 0, got 0"),
        ("augmentation.largest=0.5", "augmentation: largest must be ≥ 0.75, got 0.5"),
        ("augmentation.mixup=1", "augmentation: unknown setting 'mixup'"),
        ("task=images", "recipe tiny: "),
    ],
)
def test_invalid_settings_are_named(recipe_file, change, named):
    with pytest.raises(UsageError) as error:
        read_recipe(str(recipe_file), [change])
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_a_classifier_has_no_decoder():
    with pytest.raises(UsageError, match=r"model.decoder is for task segmentation"):
        read_recipe("vit-small-cifar", ["model.decoder=linear"])


def test_masks_are_for_recipes_that_segment(halves):
    with pytest.raises(UsageError, match="Recipe vit-small-cifar needs data of images, got a SegmentedImages"):
        make_task(read_recipe("vit-small-cifar"), halves)


def test_the_recipe_of_camvid_fits_its_pictures():
    recipe = read_recipe(str(FOLDER / "segment-camvid.yaml"))
    assert (recipe.model.image_shape, recipe.model.patches, recipe.model.classes) == ((180, 240), (18, 24), 11)


@pytest.mark.parametrize("half", ["training", "test"])
def test_masks_that_name_no_class_are_refused(recipe_file, mask_set, half):
    path = mask_set / ("train.parquet" if half == "training" else "test.parquet")
    without_labels(path, range(16))
    with pytest.raises(InputError, match=rf"^No pixel of the \d+ {half} masks of .* has a class.*: give masks"):
        read_data(read_recipe(str(recipe_file)), mask_set)


def test_pictures_without_labels_do_not_stop_a_training(recipe_file, mask_set, tmp_path):
    """Batches have four of sixteen pictures, so that most have no labelled pixel."""
    without_labels(mask_set / "train.parquet", range(1, 16))
    recipe = read_recipe(str(recipe_file), ["epochs=1", "monitor.images=0", "average=null"])
    (epoch,) = train(recipe, read_data(recipe, mask_set), tmp_path / "run").history
    assert 0 < epoch["train_loss"] < 1
