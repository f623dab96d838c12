"""The regulariser as a setting of a recipe: it changes the training, and is known where it is not the default."""

import json

import torch

from attnaudit.attention import PCAPenalty
from attnaudit.sources.model import load_model, parse_model
from attnaudit.training import read_recipe, train


def trained(recipe_file, halves, out, weight):
    changes = [f"pca_weight={weight}", "monitor.images=0", "epochs=4", "optimiser.rate=0.02"]
    train(read_recipe(str(recipe_file), changes), halves, out)
    return load_model(parse_model(str(out))).module


def unexplained(model):
    penalty = PCAPenalty(model)
    model(torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    return float(penalty.loss().detach())


def test_keys_that_are_pulled_explain_more_of_what_their_layers_read_and_keys_that_are_pushed_less(
    recipe_file, halves, tmp_path
):
    pushed, plain, pulled = (
        unexplained(trained(recipe_file, halves, tmp_path / str(weight), weight)) for weight in (-10, 0, 10)
    )
    assert pulled < plain < pushed


def test_a_recipe_without_it_is_stored_as_it_was_before(recipe_file, halves, tmp_path):
    for name, weight in (("plain", 0), ("pulled", 1)):
        train(read_recipe(str(recipe_file), [f"pca_weight={weight}", "epochs=1"]), halves, tmp_path / name)
    plain, pulled = (
        json.loads((tmp_path / name / "run.json").read_text())["identity"]["recipe"] for name in ("plain", "pulled")
    )
    assert "pca_weight" not in plain
    assert pulled["pca_weight"] == 1
