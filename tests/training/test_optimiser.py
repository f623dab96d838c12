"""Optimisers by name, and the moving average of the weights."""

import pytest
import torch
from torch import nn

from attnaudit.errors import UsageError
from attnaudit.records.architecture import Architecture
from attnaudit.records.recipe import OptimiserSettings
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.loop import train
from attnaudit.training.optimiser import WeightAverage, build_optimiser, check_optimiser
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


def test_an_optimiser_that_needs_more_than_gradients_is_refused_before_anything_is_written(
    recipe_file, halves, tmp_path
):
    with pytest.raises(UsageError, match=r"'adahessian' cannot take a step with gradients alone \(.*\): use adamw"):
        train(read_recipe(str(recipe_file), ["optimiser.name=adahessian"]), halves, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_class_token_and_positions_are_not_decayed_whether_a_network_classifies_or_segments():
    for decoder, prefix in ((None, ""), ("linear", "backbone.")):
        model = build_vision_transformer(Architecture(image_size=8, width=24, depth=1, heads=2, decoder=decoder), 0)
        groups = build_optimiser(model, OptimiserSettings(), torch.device("cpu")).param_groups
        decay = {id(weight): group["weight_decay"] for group in groups for weight in group["params"]}
        found = {name: decay[id(weight)] for name, weight in model.named_parameters()}
        assert found[f"{prefix}cls_token"] == found[f"{prefix}pos_embed"] == 0
        assert found[f"{prefix}blocks.0.attn.qkv.weight"] == OptimiserSettings().weight_decay


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
