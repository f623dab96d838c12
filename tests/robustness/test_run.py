"""An evaluation: every image once under every condition, as the study's or exactly."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from torch import nn

from attnaudit.protocol import Protocol
from attnaudit.robustness import evaluate
from attnaudit.robustness import examples as examples_module
from attnaudit.robustness.conditions import CLEAN, attack_conditions, corruption_conditions
from attnaudit.robustness.table import SCHEMA
from tests.robustness.plans import ATTACKS, EPSILON, plan_of
from tests.robustness.subjects import SIZE, constant, loaded, write_folders


def test_every_image_has_a_row_under_every_condition(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS, models=(loaded("a"), loaded("b"))), tmp_path / "run")
    assert done.results.table.schema.names == SCHEMA.names
    for model in ("a", "b"):
        for condition in (CLEAN, *ATTACKS):
            own = done.results.under(model, condition)
            assert own["image"].to_pylist() == list(range(12))
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
    assert (entry.right, entry.images) == (int((predicted == data.labels).sum()), 12)
    assert entry.interval[0] < entry.accuracy <= entry.interval[1]


def test_attacks_stay_in_their_ball_and_never_raise_accuracy(data, tmp_path):
    done = evaluate(plan_of(data, *ATTACKS), tmp_path / "run")
    clean = done.results.under("model", CLEAN)["correct"].to_pylist()
    for condition in ATTACKS:
        own = done.results.under("model", condition)
        assert max(own["perturbation"].to_pylist()) <= EPSILON + 1e-6
        if condition.name != "noise":
            assert all(before or not after for before, after in zip(clean, own["correct"].to_pylist(), strict=True))


def test_a_batch_with_more_room_than_images_is_fewer_calls_with_the_same_result(data, tmp_path):
    """Twelve images, of which at most as many are attacked, so that there is room for two and eight tries."""
    squares = attack_conditions(["square:60"], [EPSILON], Protocol.EXACT)
    calls, found = {}, {}
    for batch in (12, 24, 100):
        model = loaded()
        seen = calls.setdefault(batch, [])
        model.module.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(len(inputs[0])))
        done = evaluate(plan_of(data, *squares, models=(model,), batch=batch), tmp_path / str(batch))
        found[batch] = done.results.under("model", squares[0]).drop_columns(["seconds"]).to_pydict()
        assert max(seen) <= batch
    assert found[12] == found[24] == found[100]
    assert len(calls[12]) > len(calls[24]) > len(calls[100])


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


def squashing_to(size):
    def preprocess(protocol):
        def apply(image):
            pixels = np.asarray(image.resize((size, size)).resize((SIZE, SIZE)), dtype=np.float32) / 255
            return torch.from_numpy(pixels).permute(2, 0, 1)

        return apply

    return preprocess


def test_images_are_corrupted_once_for_all_models_that_see_the_same(data, tmp_path, monkeypatch):
    pytest.importorskip("imagecorruptions")  # whose version is in the name of every part
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


def test_images_that_are_wrong_anyway_are_left_alone_by_all_but_noise(data, tmp_path):
    conditions = attack_conditions(["noise", "pgd:2"], [EPSILON], Protocol.EXACT)
    done = evaluate(plan_of(data, *conditions, models=(constant(),)), tmp_path / "run")
    noise, pgd = (done.results.under("constant", condition)["perturbation"].to_pylist() for condition in conditions)
    right = done.results.right("constant", CLEAN)
    assert right.tolist() == [True, False] * 6
    assert [change > 0 for change in pgd] == right.tolist()
    assert min(noise) > 0


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
