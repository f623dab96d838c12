"""The summary of an evaluation: on disk as in memory, corruption errors over a baseline's, outliers."""

import json

import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.records import json_file
from attnaudit.records.evaluation import ConditionKind, EvaluationSummary
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples, evaluate
from attnaudit.robustness.conditions import CLEAN, EVERYTHING, GRADIENT, OUTLIERS, corruption_conditions
from tests.robustness.plans import ATTACKS, plan_of
from tests.robustness.subjects import constant, loaded, write_folders


def test_the_summary_on_disk_is_the_summary(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS, EVERYTHING, GRADIENT), tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert json_file.read(EvaluationSummary, tmp_path / "run" / "summary.json", "a summary") == done.summary
    assert [entry["condition"]["name"] for entry in stored["accuracies"]] == ["clean", "noise", "fgsm", "pgd"]
    assert {check["name"]: check["passed"] for check in stored["checks"]}["a ball that holds plain grey leaves nothing"]


def test_corruption_errors_are_divided_by_the_baselines(data, tmp_path):
    pytest.importorskip("imagecorruptions")
    fogs = corruption_conditions(["gaussian_noise", "contrast"], [1, 5])
    models = (loaded(), constant())
    done = evaluate(plan_of(data, *fogs, models=models), tmp_path / "run", baseline="constant")
    scores = {score.model: score for score in done.summary.scores}
    assert scores["constant"].value == 1
    assert scores["constant"].interval == (1, 1)
    errors = [1 - entry.accuracy for entry in done.summary.of("model", ConditionKind.CORRUPTION)]
    expected = (
        (errors[0] + errors[1]) / 1.0 + (errors[2] + errors[3]) / 1.0
    ) / 2  # the constant model errs half the time
    assert scores["model"].value == pytest.approx(expected)
    assert evaluate(plan_of(data, *fogs), tmp_path / "without").summary.scores == ()


def test_a_baseline_without_errors_is_no_baseline(data, tmp_path):
    pytest.importorskip("imagecorruptions")
    strong = loaded("strong")
    gentle = corruption_conditions(["pixelate"], [1])
    bright = [place for place in range(12) if place % 2 == 0]  # class 0 alone, which this network always says
    strong.module[2].bias.data = torch.tensor([99.0, 0.0])
    plan = EvaluationPlan((strong,), Examples(data, tuple(bright)), (CLEAN, *gentle), EvaluationSettings())
    with pytest.raises(UsageError, match="makes no error under one of the corruptions"):
        evaluate(plan, tmp_path / "run", baseline="strong")


def test_outliers_are_told_by_their_confidence(tmp_path, data):
    grey = write_folders(tmp_path / "strangers", ["x", "y"], each=3)
    examples = Examples.drawn(data, None, 0, outliers=grey)
    done = evaluate(EvaluationPlan((loaded(),), examples, (CLEAN, OUTLIERS), EvaluationSettings()), tmp_path / "run")
    (score,) = done.summary.scores
    from sklearn.metrics import average_precision_score

    confidence = [-c for kind in (CLEAN, OUTLIERS) for c in done.results.under("model", kind)["confidence"].to_pylist()]
    assert score.value == pytest.approx(average_precision_score([0] * 12 + [1] * 6, confidence))
    assert score.interval[0] <= score.value <= score.interval[1]
    assert done.results.under("model", OUTLIERS)["correct"].null_count == 6
