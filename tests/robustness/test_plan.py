"""A plan: whose images a condition shows, and what has to be computed for it."""

import pytest
from torch import nn

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.robustness import Examples, evaluate
from attnaudit.robustness import corruptions as corruptions_module
from attnaudit.robustness.attacks import attack_named
from attnaudit.robustness.conditions import CLEAN, corruption_conditions, transfer_conditions
from attnaudit.robustness.planning import evaluation_conditions
from tests.robustness.plans import ATTACKS, EPSILON, plan_of
from tests.robustness.subjects import SIZE, constant, loaded


def test_two_models_of_one_name_are_refused(data):
    with pytest.raises(UsageError, match="model is given twice"):
        plan_of(data, models=(loaded(), loaded()))


def test_images_of_another_twin_are_computed_anew_and_nothing_else_is(data, tmp_path):
    (condition,) = transfer_conditions([EPSILON], Protocol.EXACT)
    plans = [plan_of(data, *ATTACKS, condition, twin=twin) for twin in (loaded("twin"), constant("twin"))]
    keys = [{unit.key for unit in plan.units} for plan in plans]
    transfers = [{unit.key for unit in plan.units if unit.condition == condition} for plan in plans]
    assert not transfers[0] & transfers[1]
    assert keys[0] - transfers[0] == keys[1] - transfers[1]
    alone = evaluate(plans[1], tmp_path / "alone")
    evaluate(plans[0], tmp_path / "run")
    after = evaluate(plans[1], tmp_path / "run")
    rights = [run.results.right("model", condition).tolist() for run in (alone, after)]
    assert rights[0] == rights[1]


def test_a_source_names_the_images_and_who_made_them(data, tmp_path):
    (condition,) = transfer_conditions([EPSILON], Protocol.EXACT)
    one, other = (plan_of(data, condition, twin=twin) for twin in (loaded("twin"), constant("twin")))
    assert one.source(condition) != other.source(condition)
    assert one.source(ATTACKS[0]) == other.source(ATTACKS[0]) == one.source(CLEAN)
    less = plan_of(data, limit=6)
    assert less.source(CLEAN) != one.source(CLEAN)
    (entry, *_) = evaluate(plan_of(data), tmp_path / "run").summary.accuracies
    assert entry.source == one.source(CLEAN)


@pytest.mark.parametrize("changed", ["_VERSION", "installed_versions"])
def test_corruptions_of_another_version_are_computed_anew_and_nothing_else_is(data, monkeypatch, changed):
    pytest.importorskip("imagecorruptions")
    (fog,) = corruption_conditions(["fog"], [1])
    before = plan_of(data, *ATTACKS, fog)
    known = {unit.key: unit.condition for unit in before.units}, before.source(fog), before.source(CLEAN)
    other = {"_VERSION": 0, "installed_versions": lambda: {"imagecorruptions-imaug": "0.0"}}
    monkeypatch.setattr(corruptions_module, changed, other[changed])
    after = plan_of(data, *ATTACKS, fog)
    found = {unit.key: unit.condition for unit in after.units}
    assert {condition for key, condition in found.items() if key not in known[0]} == {fog}
    assert not any(known[0][key] == fog for key in known[0].keys() & found.keys())
    assert after.source(fog) != known[1]
    assert after.source(CLEAN) == known[2]


def test_what_conditions_show_is_looked_up_once_whatever_the_number_of_models(data, tmp_path, monkeypatch):
    asked = []
    images = Examples.images
    monkeypatch.setattr(Examples, "images", lambda self, own: asked.append(own) or images(self, own))
    evaluate(plan_of(data, *ATTACKS, models=(loaded("a"), loaded("b"))), tmp_path / "run")
    assert sorted(asked, key=str) == sorted((CLEAN, *ATTACKS), key=str)


def test_the_twins_images_are_made_by_the_pgd_that_they_are_compared_with():
    """At its ε and in as many steps; elsewhere by the usual PGD."""
    attacks = {"attacks": ["pgd:3@1/255"], "eps": ["4/255"], "transfer": True}
    found = evaluation_conditions(Protocol.EXACT, **attacks)
    steps = {condition.strength: condition.steps for condition in found if condition.name == "transfer"}
    assert steps == {4 / 255: attack_named("pgd", Protocol.EXACT).steps, 1 / 255: 3}


def test_images_of_the_twin_are_made_on_the_twin(data, tmp_path):
    (condition,) = transfer_conditions([EPSILON], Protocol.EXACT)
    own = evaluate(plan_of(data, *ATTACKS, condition, twin=loaded("twin")), tmp_path / "a")
    # a twin that looks at nothing gives no gradient, and its images are noise
    blind = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 2)).requires_grad_(False)
    blind[1].weight.zero_()
    useless = evaluate(plan_of(data, *ATTACKS, condition, twin=loaded("blind", network=blind)), tmp_path / "b")
    pgd, twin, nothing = (
        next(e.accuracy for e in run.summary.accuracies if e.condition.name == name)
        for run, name in ((own, "pgd"), (own, "transfer"), (useless, "transfer"))
    )
    assert pgd == twin < nothing
    checks = {check.name: check.passed for check in own.summary.checks}
    assert checks["images made for the twin are not stronger than its own"] is True
