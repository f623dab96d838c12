"""Batches: each example once, shares of ranks, and augmentation that follows from seed, epoch and image."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from attnaudit.errors import InputError, UsageError
from attnaudit.sources.labelled import LabelledImages, read_labelled
from attnaudit.training.batching import DecodedBatches, Layout, image_batches
from attnaudit.training.distributed import Ranks
from attnaudit.training.recipe_file import read_recipe


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 5), st.integers(1, 3))
def test_all_ranks_together_take_what_one_process_would_take(steps, share, epoch, count):
    batch = share * count
    images = steps * batch + share % batch
    whole = Layout(images, batch, 3, Ranks()).order(epoch)
    parts = [Layout(images, batch, 3, Ranks(rank, count)).order(epoch) for rank in range(count)]
    assert torch.equal(torch.cat(parts, dim=1), whole)
    assert len(set(whole.flatten().tolist())) == whole.numel()


def test_an_epoch_resumed_in_the_middle_is_the_same_epoch():
    layout = Layout(40, 8, 0, Ranks())
    assert torch.equal(layout.order(2, start=3), layout.order(2)[3:])
    assert not torch.equal(layout.order(2), layout.order(3))


def test_an_evaluation_sees_every_image_once():
    seen = [place for rank in range(3) for batch in Layout(20, 8, 0, Ranks(rank, 3)).in_order() for place in batch]
    assert sorted(int(place) for place in seen) == list(range(20))


def test_workers_do_not_change_what_is_loaded(recipe_file, halves):
    recipe = read_recipe(str(recipe_file), ["augmentation.kind=timm", "augmentation.auto_augment=rand-m9-inc1"])
    layout = Layout(len(halves[0]), 8, 4, Ranks())
    alone, helped = (list(DecodedBatches(halves[0], recipe, layout, "cpu", n).training(1, 0)) for n in (0, 1))
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in zip(alone, helped, strict=True))
    later = next(DecodedBatches(halves[0], recipe, layout, "cpu", 0).training(2, 0))
    assert not torch.equal(alone[0][0], later[0])


@pytest.mark.parametrize("change", ["auto_augment=foo", "auto_augment=rand-m9-zz3", "colour_jitter=-1"])
def test_an_augmentation_that_timm_does_not_have_is_named(recipe_file, halves, change):
    recipe = read_recipe(str(recipe_file), ["augmentation.kind=timm", f"augmentation.{change}"])
    with pytest.raises(UsageError, match=rf"^augmentation: .*{change.partition('=')[2]}[^\n]*\Z"):
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
