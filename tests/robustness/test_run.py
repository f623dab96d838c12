"""An evaluation: every picture once, resumed after a kill, extended in its folder, as the study's or exactly."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from attnaudit.errors import InputError, RunFolderError, UsageError
from attnaudit.evidence.finished import open_run
from attnaudit.evidence.robustness_results import Kind
from attnaudit.protocol import Protocol
from attnaudit.robustness import Examples, Plan, Settings, evaluate
from attnaudit.robustness import examples as examples_module
from attnaudit.robustness.conditions import (
    CLEAN,
    EVERYTHING,
    GRADIENT,
    OUTLIERS,
    attack_conditions,
    corruption_conditions,
    epsilon,
    shown,
    transfer_conditions,
)
from attnaudit.robustness.table import SCHEMA
from tests.robustness.subjects import SIZE, loaded, write_folders, write_parquet

EPSILON = 4 / 255
ATTACKS = attack_conditions(["noise", "fgsm", "pgd:3"], [EPSILON], Protocol.EXACT)


@pytest.fixture
def data(tmp_path):
    return write_parquet(tmp_path / "data.parquet", pictures=12)


def plan_of(data, *conditions, models=None, twin=None, limit=None, **settings):
    examples = Examples.drawn(data, limit, 0)
    models = models or (loaded(),)
    return Plan(tuple(models), examples, (CLEAN, *conditions), Settings(**{"batch": 5} | settings), twin)


def test_every_picture_has_a_row_under_every_condition(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS, models=(loaded("a"), loaded("b"))), tmp_path / "run")
    assert done.results.table.schema.names == SCHEMA.names
    for model in ("a", "b"):
        for condition in (CLEAN, *ATTACKS):
            own = done.results.under(model, condition)
            assert own["picture"].to_pylist() == list(range(12))
            assert own["label"].to_pylist() == [0, 1] * 6
    assert pc.all(
        pc.equal(done.results.table["correct"], pc.equal(done.results.table["label"], done.results.table["predicted"]))
    ).as_py()


def test_rows_and_summary_agree_with_the_model_itself(data, tmp_path):
    done = evaluate(plan_of(data), tmp_path / "run")
    pixels = data.pixels(SIZE).float() / 255
    from attnaudit.robustness.pixels import PixelModel

    predicted = PixelModel(loaded())(pixels).argmax(dim=1)
    assert done.results.under("model", CLEAN)["predicted"].to_pylist() == predicted.tolist()
    (entry,) = done.summary.accuracies
    assert (entry.right, entry.pictures) == (int((predicted == data.labels).sum()), 12)
    assert entry.interval[0] < entry.accuracy <= entry.interval[1]


def test_attacks_stay_in_their_ball_and_never_raise_accuracy(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS), tmp_path / "run")
    clean = done.results.under("model", CLEAN)["correct"].to_pylist()
    for condition in ATTACKS:
        own = done.results.under("model", condition)
        assert max(own["perturbation"].to_pylist()) <= EPSILON + 1e-6
        if condition.name != "noise":
            assert all(before or not after for before, after in zip(clean, own["correct"].to_pylist(), strict=True))


def counting(network):
    """The network, and a list of the batches it has seen."""
    seen = []
    network.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[0])))
    return seen


@pytest.mark.parametrize(("precision", "products"), [("fp32", "highest"), ("tf32", "high")])
def test_models_are_evaluated_and_attacked_in_the_products_asked_for(data, tmp_path, precision, products):
    model, seen = loaded(), set()

    def look(module, inputs, output):
        if len(inputs[0]) > 1:  # one alone is plain grey, to count the classes
            seen.add(torch.get_float32_matmul_precision())

    model.module.register_forward_hook(look)
    evaluate(plan_of(data, *ATTACKS, models=(model,), precision=precision), tmp_path / "run")
    assert seen == {products}
    assert torch.get_float32_matmul_precision() == "highest"


def test_finished_batches_are_not_computed_again(data, tmp_path):
    model = loaded()
    evaluate(plan_of(data, *ATTACKS, models=(model,)), tmp_path / "run")
    parts = sorted((tmp_path / "run" / "evidence").iterdir())
    parts[0].unlink()
    seen = counting(model.module)
    again = evaluate(plan_of(data, *ATTACKS, models=(model,)), tmp_path / "run")
    assert sorted((tmp_path / "run" / "evidence").iterdir()) == parts
    assert again.results.table.num_rows == 12 * 4
    assert 0 < len(seen) < 15


def squashing_to(size):
    def preprocess(protocol):
        def apply(image):
            pixels = np.asarray(image.resize((size, size)).resize((SIZE, SIZE)), dtype=np.float32) / 255
            return torch.from_numpy(pixels).permute(2, 0, 1)

        return apply

    return preprocess


def test_pictures_are_corrupted_once_for_all_models_that_see_the_same(data, tmp_path, monkeypatch):
    made = []

    def darker(pixels, name, severity, numbers, seed):
        made.append((name, severity))
        return pixels // severity

    monkeypatch.setattr(examples_module, "corrupted", darker)
    fogs = corruption_conditions(["fog"], [1, 2])
    blurred = replace(loaded("blurred"), preprocess=squashing_to(4))
    rescaled = replace(loaded("rescaled"), preprocess=squashing_to(SIZE))  # another normalisation of the same pixels
    models = (loaded("a"), blurred, loaded("b"), rescaled)
    done = evaluate(plan_of(data, *fogs, models=models), tmp_path / "run")
    assert made == [("fog", 1)] * 2 + [("fog", 2)] * 2
    alone = evaluate(plan_of(data, *fogs, models=(blurred,)), tmp_path / "alone")
    for condition in fogs:
        own, other = (run.results.under("blurred", condition)["confidence"] for run in (alone, done))
        assert own.to_pylist() == other.to_pylist()


def test_a_repeated_run_says_the_same(data, tmp_path):
    columns = [name for name in SCHEMA.names if name != "seconds"]
    runs = [evaluate(plan_of(data, *ATTACKS), tmp_path / place).results.table.select(columns) for place in ("a", "b")]
    assert runs[0].equals(runs[1])


def test_conditions_and_models_can_be_added_to_a_folder(data, tmp_path):
    evaluate(plan_of(data, ATTACKS[0]), tmp_path / "run")
    before = {path.name for path in (tmp_path / "run" / "evidence").iterdir()}
    more = evaluate(plan_of(data, *ATTACKS, models=(loaded(), loaded("other"))), tmp_path / "run")
    assert before < {path.name for path in (tmp_path / "run" / "evidence").iterdir()}
    assert len(more.summary.accuracies) == 8


@pytest.mark.parametrize("changed", [{"seed": 1}, {"masked": True}, {"limit": 6}, {"protocol": Protocol.PAPER}])
def test_other_settings_and_pictures_need_another_folder(data, tmp_path, changed):
    evaluate(plan_of(data), tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run with other"):
        evaluate(plan_of(data, **changed), tmp_path / "run")


def test_an_evaluation_is_no_audit(data, tmp_path):
    evaluate(plan_of(data), tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"holds no audit but robustness: its report\.html lies in it"):
        open_run(tmp_path / "run")


def other_columns(part):
    pq.write_table(pq.read_table(part).drop_columns("correct"), part)


def fewer_rows(part):
    pq.write_table(pq.read_table(part).slice(1), part)


@pytest.mark.parametrize("damage", [lambda part: part.write_bytes(b"no parquet"), other_columns, fewer_rows])
def test_a_damaged_part_is_said(data, tmp_path, damage):
    evaluate(plan_of(data), tmp_path / "run")
    damage(next((tmp_path / "run" / "evidence").iterdir()))
    with pytest.raises(RunFolderError, match="delete the damaged part"):
        evaluate(plan_of(data), tmp_path / "run")


def test_the_summary_on_disk_is_the_summary(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS, EVERYTHING, GRADIENT), tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert stored == json.loads(json.dumps(done.summary.as_json()))
    assert [entry["condition"]["name"] for entry in stored["accuracies"]] == ["clean", "noise", "fgsm", "pgd"]
    assert {check["name"]: check["passed"] for check in stored["checks"]}["a ball that holds plain grey leaves nothing"]


def test_a_model_of_other_classes_leaves_no_folder_behind(data, tmp_path):
    with pytest.raises(InputError, match="tells 4 classes apart, but"):
        evaluate(plan_of(data, models=(loaded(classes=4),)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_two_models_of_one_name_are_refused(data):
    with pytest.raises(UsageError, match="model is given twice"):
        plan_of(data, models=(loaded(), loaded()))


def test_the_study_attacks_normalised_pixels_without_clipping_and_away_from_predictions(data, tmp_path):
    conditions = attack_conditions(["fgsm", "pgd", "noise", "sld"], [EPSILON], Protocol.PAPER)
    assert [condition.strength for condition in conditions] == [EPSILON, EPSILON, 0.3, 10.0]
    done = evaluate(plan_of(data, *conditions, protocol=Protocol.PAPER), tmp_path / "run")
    # the largest deviation of the model's normalisation is 0.3, so ε = 4/255 there is 1.2/255 in pixels
    for condition in conditions[:2]:
        largest = max(done.results.under("model", condition)["perturbation"].to_pylist())
        assert largest == pytest.approx(0.3 * EPSILON, rel=1e-4)


def test_under_the_paper_wrong_predictions_are_attacked_too(data, tmp_path):
    backwards = nn.Sequential(loaded().module, nn.Linear(2, 2, bias=False)).requires_grad_(False)
    backwards[1].weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    accuracies = {}
    for protocol in Protocol:
        strong = attack_conditions(["pgd"], [0.3], protocol)
        plan = plan_of(data, *strong, models=(loaded(network=backwards),), protocol=protocol)
        accuracies[protocol] = [e.accuracy for e in evaluate(plan, tmp_path / protocol.value).summary.accuracies]
    assert accuracies[Protocol.EXACT][0] == accuracies[Protocol.PAPER][0] < 0.5
    assert accuracies[Protocol.EXACT][1] <= accuracies[Protocol.EXACT][0]
    assert (
        accuracies[Protocol.PAPER][1] > accuracies[Protocol.PAPER][0]
    )  # led away from a wrong class, to the right one


def constant(label="constant"):
    """It says class 0 of every picture."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 2)).requires_grad_(False)
    network[1].weight.zero_()
    network[1].bias.copy_(torch.tensor([1.0, 0.0]))
    return loaded(label, network=network)


def test_pictures_that_are_wrong_anyway_are_left_alone_by_all_but_noise(data, tmp_path):
    conditions = attack_conditions(["noise", "pgd:2"], [EPSILON], Protocol.EXACT)
    done = evaluate(plan_of(data, *conditions, models=(constant(),)), tmp_path / "run")
    noise, pgd = (done.results.under("constant", condition)["perturbation"].to_pylist() for condition in conditions)
    right = done.results.right("constant", CLEAN)
    assert right.tolist() == [True, False] * 6
    assert [change > 0 for change in pgd] == right.tolist()
    assert min(noise) > 0


def test_pictures_of_another_twin_are_computed_anew_and_nothing_else_is(data, tmp_path):
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


def test_a_source_names_the_pictures_and_who_made_them(data, tmp_path):
    (condition,) = transfer_conditions([EPSILON], Protocol.EXACT)
    one, other = (plan_of(data, condition, twin=twin) for twin in (loaded("twin"), constant("twin")))
    assert one.source(condition) != other.source(condition)
    assert one.source(ATTACKS[0]) == other.source(ATTACKS[0]) == one.source(CLEAN)
    less = plan_of(data, limit=6)
    assert less.source(CLEAN) != one.source(CLEAN)
    (entry, *_) = evaluate(plan_of(data), tmp_path / "run").summary.accuracies
    assert entry.source == one.source(CLEAN)


def test_what_conditions_show_is_looked_up_once_whatever_the_number_of_models(data, tmp_path, monkeypatch):
    asked = []
    pictures = Plan.pictures
    monkeypatch.setattr(Plan, "pictures", lambda self, own: asked.append(own) or pictures(self, own))
    evaluate(plan_of(data, *ATTACKS, models=(loaded("a"), loaded("b"))), tmp_path / "run")
    assert sorted(asked, key=str) == sorted((CLEAN, *ATTACKS), key=str)


def test_pictures_of_the_twin_are_made_on_the_twin(data, tmp_path):
    (condition,) = transfer_conditions([EPSILON], Protocol.EXACT)
    own = evaluate(plan_of(data, *ATTACKS, condition, twin=loaded("twin")), tmp_path / "a")
    # a twin that looks at nothing gives no gradient, and its pictures are noise
    blind = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 2)).requires_grad_(False)
    blind[1].weight.zero_()
    useless = evaluate(plan_of(data, *ATTACKS, condition, twin=loaded("blind", network=blind)), tmp_path / "b")
    pgd, twin, nothing = (
        next(e.accuracy for e in run.summary.accuracies if e.condition.name == name)
        for run, name in ((own, "pgd"), (own, "transfer"), (useless, "transfer"))
    )
    assert pgd == twin < nothing
    checks = {check.name: check.passed for check in own.summary.checks}
    assert checks["pictures made for the twin are not stronger than its own"] is True


def test_corruption_errors_are_divided_by_the_baselines(data, tmp_path):
    pytest.importorskip("imagecorruptions")
    fogs = corruption_conditions(["gaussian_noise", "contrast"], [1, 5])
    models = (loaded(), constant())
    done = evaluate(plan_of(data, *fogs, models=models), tmp_path / "run", baseline="constant")
    scores = {score.model: score for score in done.summary.scores}
    assert scores["constant"].value == 1
    assert scores["constant"].interval == (1, 1)
    errors = [1 - entry.accuracy for entry in done.summary.of("model", Kind.CORRUPTION)]
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
    plan = Plan((strong,), Examples(data, tuple(bright)), (CLEAN, *gentle), Settings())
    with pytest.raises(UsageError, match="makes no error under one of the corruptions"):
        evaluate(plan, tmp_path / "run", baseline="strong")


def test_outliers_are_told_by_their_confidence(tmp_path, data):
    grey = write_folders(tmp_path / "strangers", ["x", "y"], each=3)
    examples = Examples.drawn(data, None, 0, outliers=grey)
    done = evaluate(Plan((loaded(),), examples, (CLEAN, OUTLIERS), Settings()), tmp_path / "run")
    (score,) = done.summary.scores
    from sklearn.metrics import average_precision_score

    confidence = [-c for kind in (CLEAN, OUTLIERS) for c in done.results.under("model", kind)["confidence"].to_pylist()]
    assert score.value == pytest.approx(average_precision_score([0] * 12 + [1] * 6, confidence))
    assert score.interval[0] <= score.value <= score.interval[1]
    assert done.results.under("model", OUTLIERS)["correct"].null_count == 6


def test_a_mask_leaves_only_the_classes_of_the_data(tmp_path):
    data = write_folders(tmp_path / "few", ["1", "3"])
    always_zero = loaded(classes=4)
    always_zero.module[2].bias.data = torch.tensor([99.0, 0.0, 0.0, 0.0])
    accuracies = [
        evaluate(plan_of(data, models=(always_zero,), masked=masked), tmp_path / str(masked)).summary.accuracies[0]
        for masked in (False, True)
    ]
    assert accuracies[0].right == 0
    assert accuracies[1].right > 0


@pytest.mark.parametrize("text", ["-0.1", "1.5", "300/255"])
def test_a_budget_outside_of_the_cube_is_refused(text):
    with pytest.raises(UsageError, match=r"is not between 0 and 1: pixels are, e\.g\. 1/255"):
        epsilon(text)


@pytest.mark.parametrize("text", ["much", "1/0", ""])
def test_a_budget_that_is_no_number_is_refused(text):
    with pytest.raises(UsageError, match="is no number: write 4/255"):
        epsilon(text)


@pytest.mark.parametrize(("text", "words"), [("4/255", "4/255"), ("0.5/255", "0.5/255"), ("0.3", "0.3"), ("0", "0")])
def test_budgets_are_shown_as_people_write_them(text, words):
    assert shown(epsilon(text)) == words


def test_iterations_belong_to_attacks_that_have_them():
    assert attack_conditions(["pgd:50"], [0.1], Protocol.EXACT)[0].steps == 50
    for wrong in ("fgsm:3", "pgd:many", "pgd:0"):
        with pytest.raises(UsageError, match="after the colon stands how many iterations"):
            attack_conditions([wrong], [0.1], Protocol.EXACT)
