"""Optimisers by name, and the moving average of the weights."""

import pytest
import torch
from torch import nn

from attnaudit.errors import UsageError
from attnaudit.training.loop import train
from attnaudit.training.optimiser import WeightAverage, check_optimiser
from attnaudit.training.recipe_file import read_recipe


@pytest.mark.parametrize("name", ["adamw", "sgd", "lookahead_adamw"])
def test_what_timm_has_is_taken(name):
    check_optimiser(name)


def test_an_optimiser_is_the_same_however_it_is_spelled(recipe_file):
    spelled, plain = (read_recipe(str(recipe_file), [f"optimiser.name={name}"]) for name in ("AdamW", "adamw"))
    assert spelled == plain


def test_an_unknown_optimiser_is_answered_with_near_names_before_anything_is_written(recipe_file, halves, tmp_path):
    with pytest.raises(UsageError, match="'adamx': did you mean adamax"):
        train(read_recipe(str(recipe_file), ["optimiser.name=adamx"]), halves, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="'qqq': adamw"):
        check_optimiser("qqq")


def test_an_optimiser_that_timm_cannot_make_here_says_why(monkeypatch):
    import timm.optim

    def refuse(*arguments, **named):
        raise AssertionError("CUDA required for APEX optimizers")

    monkeypatch.setattr(timm.optim, "create_optimizer_v2", refuse)
    with pytest.raises(UsageError, match=r"'fusedadam' .*\(CUDA required for APEX optimizers\)"):
        check_optimiser("fusedadam")


def test_an_average_follows_its_recursion_and_leaves_the_model_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    average = WeightAverage(model, 0.5)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(6):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
            model[1].running_mean.add_(1)
        average.set_step(step)
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = [decay * e + (1 - decay) * p.detach() for e, p in zip(expected, model.parameters(), strict=True)]
    for own, wanted in zip(average.module.parameters(), expected, strict=True):
        torch.testing.assert_close(own, wanted)
        assert not own.requires_grad
    assert torch.equal(average.module[1].running_mean, model[1].running_mean)
    assert model.training
    assert not average.module.training
    assert model[0].weight.requires_grad
