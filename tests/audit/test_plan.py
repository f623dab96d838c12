"""The plan of an audit: units named by what their rows depend on, and recipes for models that have a name."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from attnaudit.audit import AuditSettings, plan_audit
from attnaudit.audit.fit_unit import FitUnit
from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.unit import AuditUnit
from attnaudit.errors import WeightsError
from attnaudit.measures import REFERENCES
from attnaudit.protocol import Protocol
from attnaudit.sources.inputs import tensor_shards
from attnaudit.sources.model import ModelSpec, wrap_module


def network(seed=0):
    torch.manual_seed(seed)
    return wrap_module(nn.Linear(2, 2), "network")


def plan(model=None, inputs=None, groups=None, names=None, **settings):
    inputs = torch.arange(10.0).view(5, 2) if inputs is None else inputs
    return plan_audit([model or network()], tensor_shards(inputs, 2, names, groups), AuditSettings(**settings))


FITTED = {"references": ("planted", "best_projection")}


def keys(own):
    return [unit.key for unit in own.units]


def fits(own):
    return [unit for unit in own.units if isinstance(unit, FitUnit)]


def test_every_shard_of_every_model_is_a_unit():
    one, other = network(), replace(network(1), label="other")
    own = plan_audit([one, other], tensor_shards(torch.arange(6.0).view(3, 2), 2), AuditSettings())
    assert [unit.label for unit in own.units] == ["network", "network", "other", "other"]
    assert len(set(keys(own))) == 4


@pytest.mark.parametrize(("inputs", "parts"), [(1, 1), (4, 1), (5, 2), (13, 4), (99, 4)])
def test_what_is_fitted_to_all_inputs_is_in_units_of_its_own_after_those_of_a_model(inputs, parts):
    own = plan(inputs=torch.arange(2.0 * inputs).view(inputs, 2), **FITTED)
    assert own.units[-parts:] == tuple(fits(own))
    assert [unit.part for unit in fits(own)] == list(range(parts))
    assert {unit.parts for unit in fits(own)} == {parts}
    assert all(unit.shards == own.shards for unit in fits(own))
    assert len(set(keys(own))) == len(own.units)
    assert fits(own)[0].label == "network, best projections"


def test_a_gpu_fits_all_layers_of_a_small_network_at_once():
    own = plan(inputs=torch.arange(26.0).view(13, 2), **FITTED, device="cuda")
    assert [(unit.part, unit.parts) for unit in fits(own)] == [(0, 1)]


@pytest.mark.parametrize(
    ("device", "parameters", "parts"), [("cpu", 5, 2), ("cpu", 1, 6), ("cuda", 5, 2), ("cuda", 6, 1)]
)
def test_a_large_network_is_fitted_in_parts_that_bound_memory(monkeypatch, device, parameters, parts):
    for name in ("_FITTED_AT_ONCE", "_FITTED_AT_ONCE_ON_GPU"):
        monkeypatch.setattr(f"attnaudit.audit.plan.{name}", parameters)
    own = plan(inputs=torch.arange(2.0).view(1, 2), **FITTED, device=device)  # of six parameters
    assert [(unit.part, unit.parts) for unit in fits(own)] == [(part, parts) for part in range(parts)]


@pytest.mark.parametrize("name", [name for name, reference in REFERENCES.items() if not reference.fitted])
def test_without_a_reference_that_is_fitted_nothing_is(name):
    assert fits(plan(references=(name,))) == []


@pytest.mark.parametrize(
    ("inputs", "size", "context"), [(9, 3, [1, 1, 0]), (8, 4, [1, 0]), (20, 12, [1, 0, 0]), (3, 1, [1] * 3)]
)
def test_the_first_four_inputs_have_context_up_to_the_end_of_their_shard(inputs, size, context):
    shards = tensor_shards(torch.arange(2.0 * inputs).view(inputs, 2), size)
    own = plan_audit([network()], shards, AuditSettings())
    assert [unit.context for unit in own.units] == context


@pytest.mark.parametrize(("size", "twins"), [(1, [1, 1, 0]), (3, [2])])
def test_the_untrained_twin_has_the_first_two_inputs(size, twins):
    shards = tensor_shards(torch.arange(6.0).view(3, 2), size)
    own = plan_audit([network()], shards, AuditSettings(references=("untrained",)))
    assert [unit.twin_inputs for unit in own.units] == twins
    assert {unit.twin_inputs for unit in plan_audit([network()], shards, AuditSettings()).units} == {0}


@pytest.mark.parametrize(("size", "tried"), [(1, [1, 0, 0]), (3, [2])])
def test_noise_and_gauges_are_tried_on_the_first_two_inputs_of_the_first_shard(size, tried):
    shards = tensor_shards(torch.arange(6.0).view(3, 2), size)
    own = plan_audit([network()], shards, AuditSettings(references=("planted_with_noise",)))
    assert [unit.tried_inputs for unit in own.units if isinstance(unit, AuditUnit)] == tried
    assert {unit.tried_inputs for unit in plan_audit([network()], shards, AuditSettings()).units} == {0}


def test_halves_of_the_inputs_alternate_and_keep_together_what_belongs_together():
    (first, *_) = fits(plan(names=tuple("abcde"), **FITTED))
    assert first.halves == {"a": 0, "b": 1, "c": 0, "d": 1, "e": 0}
    (first, *_) = fits(plan(names=tuple("abcde"), groups=("x", "y", "x", "x", "z"), **FITTED))
    assert first.halves == {"a": 0, "c": 0, "d": 0, "b": 1, "e": 0}


def test_a_fit_depends_on_the_halves_and_not_on_the_names_of_groups():
    one, renamed, other = (plan(groups=own, **FITTED) for own in ("xyxyz", "uvuvw", "xxyyz"))
    assert keys(one) == keys(renamed)
    assert {unit.key for unit in fits(one)}.isdisjoint(unit.key for unit in fits(other))
    assert keys(one)[:3] == keys(other)[:3]


def groups_of(own):
    return dict(own.identity["groups"])


def test_copies_of_an_input_belong_together():
    inputs = torch.arange(10.0).view(5, 2)
    inputs[3] = inputs[1]
    assert groups_of(plan(inputs=inputs, names=tuple("abcde"))) == {"b": "b", "d": "b"}
    assert groups_of(plan(names=tuple("abcde"))) == {}


def test_a_copy_belongs_to_the_group_of_its_first():
    inputs = torch.arange(10.0).view(5, 2)
    inputs[4] = inputs[0]
    found = groups_of(plan(inputs=inputs, names=tuple("abcde"), groups=("x", "x", "y", "y", "z")))
    assert found == {"a": "x", "b": "x", "c": "y", "d": "y", "e": "x"}


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
    usual, other = plan(**FITTED), plan(**FITTED | changed)
    assert not {*keys(usual)} & {*keys(other)}
    assert usual.identity != other.identity
    assert usual.name != other.name


def test_groups_change_the_identity_of_a_run():
    assert plan(groups="abcde").identity != plan(groups="aacde").identity


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
