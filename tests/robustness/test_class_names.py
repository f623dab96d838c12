"""Classes are found by their names, whatever their order, and results of another order are not taken for these."""

from dataclasses import replace

import pytest

from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.robustness import evaluate
from attnaudit.robustness.conditions import CLEAN, transfer_conditions
from attnaudit.robustness.unit import Classifier
from attnaudit.sources.model import load_model, parse_model
from tests.robustness.plans import EPSILON, plan_of
from tests.robustness.subjects import loaded, write_folders, write_model


def named(folder, *labels, **changes):
    """A network with these names of classes."""
    write_model(folder, classes=len(labels), labels=labels)
    card = load_model(parse_model(str(folder))).card
    return replace(loaded(classes=len(labels)), card=card, **changes)


def test_classes_in_another_order_are_found_by_name(tmp_path):
    data = write_folders(tmp_path / "data", ["cat", "dog"], each=6)
    alike, turned = (named(tmp_path / "-".join(own), *own) for own in (("cat", "dog"), ("dog", "cat")))
    first, second = (
        evaluate(plan_of(data, models=(model,)), tmp_path / f"run-{place}")
        for place, model in enumerate((alike, turned))
    )
    assert second.results.under("model", CLEAN)["label"].to_pylist() == [1] * 6 + [0] * 6
    assert first.summary.accuracies[0].right == 12 - second.summary.accuracies[0].right != 6


def test_other_classes_are_refused_and_leave_no_folder(tmp_path):
    data = write_folders(tmp_path / "data", ["apple", "banana"])
    with pytest.raises(
        InputError, match=r"The class 'apple' of .*data is not one of the classes of model \(dog, cat\)"
    ):
        evaluate(plan_of(data, models=(named(tmp_path / "m", "dog", "cat"),)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_results_of_another_order_are_computed_again(tmp_path):
    """As those of a version that did not look at names."""
    data = write_folders(tmp_path / "data", ["cat", "dog"], each=6)
    before = evaluate(plan_of(data, models=(loaded(),)), tmp_path / "run")
    after = evaluate(plan_of(data, models=(named(tmp_path / "m", "dog", "cat"),)), tmp_path / "run")
    assert before.summary.accuracies[0].right == 12 - after.summary.accuracies[0].right != 6


def test_names_in_the_same_order_change_no_key(tmp_path):
    data = write_folders(tmp_path / "data", ["cat", "dog"])
    plans = [plan_of(data, models=(model,)) for model in (loaded(), named(tmp_path / "m", "cat", "dog"))]
    assert [unit.key for unit in plans[0].units] == [unit.key for unit in plans[1].units]


def test_a_twin_of_another_order_is_refused(tmp_path):
    data = write_folders(tmp_path / "data", ["cat", "dog"])
    twin = named(tmp_path / "m", "dog", "cat", label="twin")
    plan = plan_of(data, *transfer_conditions([EPSILON], Protocol.EXACT), twin=twin)
    assert isinstance(plan.subjects[0], Classifier)
    with pytest.raises(UsageError, match="model and its twin twin have other classes, or in another order"):
        _ = plan.units
