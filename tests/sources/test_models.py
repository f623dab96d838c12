import pytest
import torch

from attnaudit.errors import ModelError, UsageError, WeightsError
from attnaudit.papers.published_tables import VISION_MODELS
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model

timm = pytest.importorskip("timm")


@pytest.mark.parametrize(("name", "tag"), VISION_MODELS.items())
def test_the_ten_models_have_the_default_tags_of_the_study(name, tag):
    assert timm.get_pretrained_cfg(name).tag == tag


def test_an_unknown_model_comes_with_near_matches():
    with pytest.raises(ModelError, match=r"'deit_tinny_patch16_224': did you mean deit_tiny_patch16_224"):
        parse_model("timm:deit_tinny_patch16_224", random_weights=True)


def test_names_of_our_own_are_near_matches_too_and_without_any_it_is_said_where_names_are():
    with pytest.raises(ModelError, match="did you mean vit-small-cifar"):
        parse_model("vit-smal-cifar")
    with pytest.raises(ModelError, match=r"'runs/zzz'.*attnaudit ls models"):
        parse_model("runs/zzz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("deit_tiny", "did you mean deit_tiny_patch16_224 or deit_tiny_distilled_patch16_224"),
        ("swin-tiny", "did you mean swin_tiny_patch4_window7_224"),
        ("timm/deit_tiny_patch16_224.fb_in1k", "did you mean timm:deit_tiny_patch16_224.fb_in1k"),
        ("bert-base-uncased", "is called hf:bert-base-uncased"),
        ("facebook/opt-125m", "is called hf:facebook/opt-125m"),
        ("runs/no-such", "there is no such folder, and timm does not have it"),
        ("./nowhere", "there is no such folder"),
        ("hf:", "has no name of a model"),
    ],
)
def test_what_is_no_model_suggests_what_may_be_meant(name, words):
    with pytest.raises(ModelError, match=words):
        parse_model(name)


def test_a_weights_file_in_place_of_a_model_is_said_to_be_one(tmp_path):
    (tmp_path / "deit.safetensors").touch()
    with pytest.raises(ModelError, match=r"it is a file; .* --weights"):
        parse_model(str(tmp_path / "deit.safetensors"))


def test_an_unknown_source_is_named():
    with pytest.raises(ModelError, match=r"model source 'torchhub'.*timm, hf, trained"):
        parse_model("torchhub:resnet")


def test_missing_weights_say_what_to_do(monkeypatch):
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    with pytest.raises(WeightsError, match=r"--weights FILE.*--download.*--random-weights"):
        parse_model("vit_tiny_patch16_224")


def test_random_weights_and_a_file_exclude_each_other(tmp_path):
    with pytest.raises(UsageError, match="exclude each other"):
        parse_model("test_vit", random_weights=True, weights=tmp_path / "w.safetensors")


def test_random_weights_come_from_the_seed_and_leave_the_global_state_alone():
    state = torch.get_rng_state()
    first, second = (load_model(parse_model("test_vit", random_weights=True, seed=3)) for _ in range(2))
    other = load_model(parse_model("test_vit", random_weights=True, seed=4))
    assert torch.equal(torch.get_rng_state(), state)
    assert first.fingerprint == second.fingerprint != other.fingerprint
    assert first.label == "test_vit (random weights)"


def test_both_preprocessings_give_the_models_input_size():
    from PIL import Image

    model = load_model(parse_model("test_vit", random_weights=True))
    image = Image.new("RGB", (300, 100), (255, 0, 0))
    shapes = {protocol: tuple(model.preprocess(protocol)(image).shape) for protocol in Protocol}
    assert shapes == {Protocol.EXACT: (3, 160, 160), Protocol.PAPER: (3, 160, 160)}


def test_squashing_keeps_the_whole_image_and_uses_imagenet_statistics():
    from PIL import Image

    from attnaudit.sources.preprocess import squashed

    image = Image.new("RGB", (4, 2), (255, 0, 0))
    tensor = squashed(224, 224)(image)
    assert tensor.shape == (3, 224, 224)
    expected = torch.tensor([(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225])
    torch.testing.assert_close(tensor, expected[:, None, None].expand(3, 224, 224), rtol=1e-5, atol=1e-5)
