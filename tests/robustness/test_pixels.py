"""A model of pixels is the model of normalised images, with its normalisation inside."""

from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torch._dynamo.testing import CompileCounterWithBackend

from attnaudit.errors import ModelError
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.model import wrap_module
from tests.robustness.subjects import DEVIATION, MEAN, SIZE, loaded, preprocess


def test_mean_and_deviation_are_read_off_the_preprocessing():
    model = PixelModel(loaded())
    torch.testing.assert_close(model.mean, MEAN)
    torch.testing.assert_close(model.deviation, DEVIATION)
    assert (model.size, model.outputs) == ((SIZE, SIZE), 2)


def test_pixels_give_the_logits_of_the_preprocessed_image():
    generator = np.random.default_rng(0)
    image = Image.fromarray(generator.integers(0, 256, (50, 40, 3), dtype=np.uint8))
    subject = loaded()
    model = PixelModel(subject)
    expected = subject.module(preprocess(None)(image)[None])
    torch.testing.assert_close(model(model.pixels(image)[None].float() / 255), expected, atol=1e-5, rtol=0)


def test_timms_own_preprocessing_is_undone_to_the_grey_level():
    timm = pytest.importorskip("timm")
    from attnaudit.sources.model import load_model, parse_model

    model = PixelModel(load_model(parse_model("timm:test_vit", random_weights=True)))
    assert timm.data.resolve_model_data_config(model.module)["mean"] == pytest.approx(model.mean.flatten().tolist())
    image = Image.new("RGB", (200, 300), (3, 128, 250))
    assert model.pixels(image).flatten(1).unique(dim=1).flatten().tolist() == [3, 128, 250]


def test_a_ready_image_is_not_resized_a_second_time():
    timm_like = pytest.importorskip("timm.data").create_transform(input_size=(3, SIZE, SIZE), crop_pct=0.875)
    from dataclasses import replace

    model = PixelModel(replace(loaded(), preprocess=lambda protocol: timm_like))
    generator = np.random.default_rng(0)
    image = Image.fromarray(generator.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8))
    as_it_is = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    assert torch.equal(model.pixels(image, preprocessed=True), as_it_is)
    assert not torch.equal(model.pixels(image), as_it_is)
    assert model.pixels(image.resize((70, 90)), preprocessed=True).shape == (3, SIZE, SIZE)


def test_a_mask_keeps_the_outputs_it_names_in_its_order():
    whole, masked = PixelModel(loaded(classes=4)), PixelModel(loaded(classes=4), mask=torch.tensor([2, 0]))
    images = torch.rand(3, 3, SIZE, SIZE)
    assert torch.equal(masked(images), whole(images)[:, [2, 0]])
    assert masked.outputs == 2


def test_half_precision_leaves_logits_and_gradients_in_float32():
    model = PixelModel(loaded(), precision="bf16")
    images = torch.rand(2, 3, SIZE, SIZE, requires_grad=True)
    logits = model(images)
    (gradient,) = torch.autograd.grad(logits.sum(), images)
    assert logits.dtype == gradient.dtype == torch.float32


def test_a_compiled_network_gives_the_same_logits_and_gradients_for_batches_of_any_size(monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # needs no C++ compiler
    plain, compiled = PixelModel(loaded()), PixelModel(loaded(), compiled=True)
    for count in (3, 5, 3):
        images = torch.rand(count, 3, SIZE, SIZE)
        for grad in (False, True):
            given = [images.clone().requires_grad_(grad) for _ in range(2)]
            logits = [model(own) for model, own in zip((plain, compiled), given, strict=True)]
            torch.testing.assert_close(*logits, atol=1e-5, rtol=0)
        gradients = [torch.autograd.grad(own.sum(), own_images) for own, own_images in zip(logits, given, strict=True)]
        torch.testing.assert_close(*gradients, atol=1e-5, rtol=0)


def test_a_batch_of_another_size_is_not_compiled_anew(monkeypatch):
    counted = CompileCounterWithBackend("eager")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counted))
    model = PixelModel(loaded(), compiled=True)
    assert model.outputs == 2
    assert counted.frame_count == 0
    for count in (3, 5, 7):
        model(torch.rand(count, 3, SIZE, SIZE))
    assert counted.frame_count == 1


def test_models_that_see_nothing_are_refused():
    with pytest.raises(ModelError, match="no preprocessing for images: give a vision model"):
        PixelModel(wrap_module(torch.nn.Linear(2, 2)))
    with pytest.raises(ModelError, match=r"not a classifier.*shape"):
        _ = PixelModel(loaded(network=torch.nn.Identity())).outputs
