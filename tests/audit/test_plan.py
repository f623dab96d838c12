"""The plan of an audit: units named by what their rows depend on, and recipes for models that have a name."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from attnaudit.audit import AuditSettings, plan_audit
from attnaudit.audit.plan import AuditPlan
from attnaudit.errors import WeightsError
from attnaudit.protocol import Protocol
from attnaudit.sources.inputs import tensor_shards
from attnaudit.sources.model import ModelSpec, wrap_module


def network(seed=0):
    torch.manual_seed(seed)
    return wrap_module(nn.Linear(2, 2), "network")


def plan(model=None, inputs=None, **settings):
    inputs = torch.zeros(5, 2) if inputs is None else inputs
    return plan_audit([model or network()], tensor_shards(inputs, 2), AuditSettings(**settings))


def keys(own):
    return [unit.key for unit in own.units]


def test_every_shard_of_every_model_is_a_unit():
    one, other = network(), replace(network(1), label="other")
    own = plan_audit([one, other], tensor_shards(torch.arange(6.0).view(3, 2), 2), AuditSettings())
    assert [unit.label for unit in own.units] == ["network", "network", "other", "other"]
    assert len(set(keys(own))) == 4


def test_equal_plans_have_equal_units_and_names():
    assert keys(plan()) == keys(plan())
    assert plan().identity == plan().identity
    assert plan().name == plan().name


@pytest.mark.parametrize(
    "changed",
    [
        {"model": network(seed=1)},
        {"model": replace(network(), label="renamed")},
        {"inputs": torch.ones(5, 2)},
        {"seed": 1},
        {"protocol": Protocol.PAPER},
        {"references": ("gaussian",)},
        {"repeats": 2},
        {"measures": ("linear_cka",)},
        {"theories": ("pca",)},
    ],
)
def test_whatever_rows_depend_on_changes_key_identity_and_name(changed):
    assert not {*keys(plan())} & {*keys(plan(**changed))}
    assert plan().identity != plan(**changed).identity
    assert plan().name != plan(**changed).name


def test_the_name_is_a_file_name_that_counts_further_models():
    odd = replace(network(), label="hf:some/model (random weights)")
    own = plan_audit([odd, network()], tensor_shards(torch.zeros(1, 2), 1), AuditSettings())
    assert own.name.startswith("hf-some-model-random-weights-and-1-more-exact-")


def test_a_model_in_memory_has_no_recipe():
    own = plan()
    assert [own.recipe(unit) for unit in own.units] == [None] * 3


def test_the_recipe_of_a_named_model_has_the_absolute_path_of_its_weights():
    spec, loaded = ModelSpec("timm", "network", Path("weights.pt")), network()
    own = AuditPlan(
        (spec,), (loaded,), tensor_shards(torch.zeros(1, 2), 1), AuditSettings(), AuditSettings().selection()
    )
    (recipe,) = (own.recipe(unit) for unit in own.units)
    assert recipe.spec == replace(spec, weights=Path.cwd() / "weights.pt")
    assert recipe.fingerprint == loaded.fingerprint


def test_a_worker_refuses_a_unit_of_other_weights():
    (unit, *_), worker = plan(network(seed=1)).units, plan(network(seed=0)).worker(memory=10**9)
    with pytest.raises(WeightsError, match="other weights for network"):
        worker.compute(unit)
