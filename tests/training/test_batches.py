"""Order and augmentation: each image once, shares of ranks, choices that follow from seed and place."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from attnaudit.errors import InputError, UsageError
from attnaudit.numerics.randomness import seed_everything
from attnaudit.records.recipe import AugmentationSettings
from attnaudit.sources.labelled import LabelledImages, read_labelled
from attnaudit.training.augmentation import DeviceAugmentation, crop_and_flip
from attnaudit.training.batches import Layout, LoadedBatches, image_batches
from attnaudit.training.processes import Ranks
from attnaudit.training.recipe_file import read_recipe


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 5), st.integers(1, 3))
def test_ranks_together_take_what_one_would_take(steps, share, epoch, count):
    batch = share * count
    images = steps * batch + share % batch
    whole = Layout(images, batch, 3, Ranks()).order(epoch)
    parts = [Layout(images, batch, 3, Ranks(rank, count)).order(epoch) for rank in range(count)]
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert len(set(whole.flatten().tolist())) == whole.numel()


def test_an_epoch_taken_up_in_the_middle_is_the_same_epoch():
    layout = Layout(40, 8, 0, Ranks())
    assert torch.equal(layout.order(2, start=3), layout.order(2)[3:])
    assert not torch.equal(layout.order(2), layout.order(3))


def test_an_evaluation_sees_every_image_once():
    seen = [place for rank in range(3) for batch in Layout(20, 8, 0, Ranks(rank, 3)).in_order() for place in batch]
    assert sorted(int(place) for place in seen) == list(range(20))


def test_workers_do_not_change_what_is_loaded(recipe_file, halves):
    recipe = read_recipe(str(recipe_file), ["augmentation.kind=timm", "augmentation.auto_augment=rand-m9-inc1"])
    layout = Layout(len(halves[0]), 8, 4, Ranks())
    alone, helped = (list(LoadedBatches(halves[0], recipe, layout, "cpu", n).training(1, 0)) for n in (0, 1))
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(alone, helped, strict=True))
    later = next(LoadedBatches(halves[0], recipe, layout, "cpu", 0).training(2, 0))
    assert not torch.equal(alone[0][0], later[0])


@pytest.mark.parametrize("change", ["auto_augment=foo", "auto_augment=rand-m9-zz3", "colour_jitter=-1"])
def test_an_augmentation_that_timm_does_not_know_is_a_sentence(recipe_file, halves, change):
    recipe = read_recipe(str(recipe_file), ["augmentation.kind=timm", f"augmentation.{change}"])
    with pytest.raises(UsageError, match=r"^augmentation: timm cannot make a transform of .*: give e\.g\."):
        image_batches(halves[0], recipe, Layout(40, 8, 0, Ranks()), "cpu", 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_one_sentence_wherever_it_is_read(recipe_file, halves, workers):
    broken = LabelledImages(halves[0].path, [b"no image"] * 8, halves[0].labels[:8])
    recipe = read_recipe(str(recipe_file), ["augmentation.kind=timm"])
    batches = image_batches(broken, recipe, Layout(8, 8, 0, Ranks()), "cpu", workers)
    with pytest.raises(InputError, match=r"\AImage number 0 of .*train\.parquet cannot be read \([^\n]*\)\.\Z"):
        next(batches.in_order())


def test_every_kind_of_augmentation_is_tested_on_the_same_pixels(recipe_file, tmp_path):
    generator = np.random.default_rng(0)
    for name, shape in (("tall", (31, 12, 3)), ("wide", (70, 100, 3))):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / "images" / name / "0.png")
    images, seen = read_labelled(tmp_path / "images"), []
    for kind in ("timm", "none"):
        recipe = read_recipe(str(recipe_file), [f"augmentation.kind={kind}", "model.image_size=64"])
        batches = image_batches(images, recipe, Layout(2, 2, 0, Ranks()), "cpu", 0)
        seen.append(next(iter(batches.in_order()))[0])
    assert torch.equal(*seen)


def test_a_crop_is_a_window_of_the_padded_image_or_its_mirror_image():
    torch.manual_seed(0)
    pixels = torch.randint(1, 255, (64, 3, 6, 6), dtype=torch.uint8)
    padded = np.pad(pixels.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    seen = set()
    for number, crop in enumerate(crop_and_flip(pixels, 2).numpy()):
        windows = {
            (top, left, flip): padded[number, :, top : top + 6, left : left + 6][..., :: -1 if flip else 1]
            for top in range(5) for left in range(5) for flip in (False, True)
        }  # fmt: skip
        found = [place for place, window in windows.items() if np.array_equal(window, crop)]
        assert len(found) == 1
        seen.add(found[0])
    assert {flip for _, _, flip in seen} == {False, True}
    assert len(seen) > 20


def test_without_mixup_labels_are_smoothed_probabilities():
    _, targets = DeviceAugmentation(AugmentationSettings(smoothing=0.1), 4, "cpu").mixed(
        torch.zeros(2, 3, 4, 4), torch.tensor([1, 3])
    )
    expected = torch.full((2, 4), 0.025)
    expected[0, 1] = expected[1, 3] = 0.925
    torch.testing.assert_close(targets, expected)


@pytest.mark.parametrize(
    "wishes", [AugmentationSettings(mixup=0.8), AugmentationSettings(cutmix=1.0), AugmentationSettings(erase=0.9)]
)
def test_random_choices_follow_the_seed(wishes):
    augmentation = DeviceAugmentation(wishes, 3, "cpu")
    pixels, labels = torch.randint(0, 255, (4, 3, 8, 8), dtype=torch.uint8), torch.tensor([0, 1, 2, 0])
    results = []
    for place in (1, 1, 2):
        seed_everything("here", place)
        results.append(augmentation.mixed(augmentation.augmented(pixels), labels))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert not torch.equal(results[0][0], results[2][0])


@pytest.mark.parametrize("kind", ["none", "timm"])
def test_the_share_of_distorted_images_is_the_wished_one(kind):
    pixels = torch.randint(0, 256, (600, 3, 8, 8), dtype=torch.uint8)
    shares = []
    for distort in (0.0, 0.5, 1.0):
        augmentation = DeviceAugmentation(AugmentationSettings(kind=kind, distort=distort), 2, "cpu")
        torch.manual_seed(0)
        changed = augmentation.augmented(pixels) != augmentation.normalised(pixels)
        shares.append(float(changed.flatten(1).any(dim=1).float().mean()))
    assert shares == pytest.approx([0, 0.5 * 12 / 13, 12 / 13], abs=0.1)  # one of thirteen operations changes nothing


def test_normalised_images_have_imagenets_mean_at_zero():
    augmentation = DeviceAugmentation(AugmentationSettings(), 2, "cpu")
    mean = torch.tensor([0.485, 0.456, 0.406]).mul(255).round().to(torch.uint8).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    assert augmentation.normalised(mean).abs().max() < 0.01
