"""timm is imported when it is needed; what stands in its way is said in a sentence."""

import pytest

from attnaudit.errors import MissingExtraError
from attnaudit.sources import timm_library
from attnaudit.sources.model import load_model, parse_model


def failing(message):
    def optional(module, extra, purpose):
        raise RuntimeError(message)

    return optional


@pytest.mark.parametrize("model", ["vit-small-cifar", "timm:test_vit"])
def test_builds_of_torch_and_torchvision_that_differ_are_named(model, monkeypatch):
    monkeypatch.setattr(timm_library, "optional", failing("operator torchvision::nms does not exist"))
    with pytest.raises(MissingExtraError, match=r"same build, and here they differ \(operator torchvision::nms"):
        load_model(parse_model(model, random_weights=model.startswith("timm:")))


def test_other_failures_of_an_import_are_not_taken_for_it(monkeypatch):
    monkeypatch.setattr(timm_library, "optional", failing("out of luck"))
    with pytest.raises(RuntimeError, match="out of luck"):
        timm_library.the_timm()
