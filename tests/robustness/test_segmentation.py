"""Networks that segment under corruptions: what is counted, what is refused, and that masks stay as they are."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from attnaudit.api.robustness import corrupt, robust
from attnaudit.errors import InputError, ModelError, UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import Architecture
from attnaudit.records.card import CARD, ImageCard
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.evaluation import ConditionKind, EvaluationSummary, Quantity
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples, evaluate
from attnaudit.robustness.conditions import CLEAN, corruption_conditions
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.segmentation import SEGMENTATION_SCHEMA
from attnaudit.sources.cards import read_card
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.segmented import UNLABELLED, read_segmented
from attnaudit.sources.trained_models import WEIGHTS
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.weights import fingerprint
from tests.robustness.subjects import write_model, write_parquet
from tests.sources.masks import SHAPE, encoded, write_ade20k, write_masks

CORRUPTIONS = corruption_conditions(["gaussian_noise", "elastic_transform"], [5])


class Threshold(nn.Module):
    """A pixel is of class 0 if it is bright."""

    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.tensor(0.45))

    def forward(self, images):
        brightness = images.mean(dim=1)
        return torch.stack([brightness, 2 * self.level - brightness], dim=-1)


def preprocess(protocol):
    return lambda image: torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def thresholding(label="threshold"):
    model = Threshold()
    return LoadedModel(label, model, fingerprint(model), "made by a test", preprocess=preprocess)


@pytest.fixture
def sized(monkeypatch):
    """Images of noise that a model is tried on are of its size, for a preprocessing that does not resize."""
    monkeypatch.setattr("attnaudit.robustness.pixels._ANY_SIZE", SHAPE[::-1])


@pytest.fixture
def data(tmp_path):
    return read_segmented(write_masks(tmp_path / "data.parquet", 6), 2)


def plan_of(data, *conditions, models=None, limit=None):
    examples = Examples.drawn(data, limit, 0)
    return EvaluationPlan(models or (thresholding(),), examples, (CLEAN, *conditions), EvaluationSettings(batch=4))


def test_numbers_are_those_of_all_pixels_together(data, tmp_path, sized):
    done = evaluate(plan_of(data), tmp_path / "run")
    pixels, masks = data.pixels(*SHAPE).float() / 255, data.mask_pixels(*SHAPE)
    said = (pixels.mean(dim=1) < 0.45).long()
    counted = masks != UNLABELLED
    iou = [float(((said == c) & (masks == c)).sum() / (((said == c) & counted) | (masks == c)).sum()) for c in range(2)]
    found = {entry.quantity: entry for entry in done.summary.accuracies}
    assert list(found) == [Quantity.MEAN_IOU, Quantity.MEAN_ACCURACY, Quantity.PIXEL_ACCURACY]
    assert found[Quantity.MEAN_IOU].accuracy == pytest.approx(sum(iou) / 2)
    assert found[Quantity.PIXEL_ACCURACY].accuracy == pytest.approx(float((said == masks)[counted].float().mean()))
    for entry in found.values():
        assert entry.interval[0] <= entry.accuracy <= entry.interval[1]
        assert (entry.images, entry.right, entry.missing) == (6, None, 0)
    by_class = done.summary.scores
    assert [(score.model, score.name) for score in by_class] == [("threshold", f"IoU of class {c}") for c in range(2)]
    assert [score.value for score in by_class] == pytest.approx(iou)
    assert all(score.interval[0] <= score.value <= score.interval[1] for score in by_class)


def test_every_picture_has_a_row_and_its_pixels_are_all_counted(data, tmp_path, sized):
    done = evaluate(plan_of(data), tmp_path / "run")
    rows = done.results.under("threshold", CLEAN)
    assert rows.schema.names == SEGMENTATION_SCHEMA.names
    assert rows["image"].to_pylist() == list(range(6))
    labelled = (SHAPE[0] - 2) * SHAPE[1]
    assert all(sum(own) == labelled for name in ("true", "predicted") for own in rows[name].to_pylist())


def test_a_corruption_changes_pictures_and_not_masks(data, tmp_path, sized):
    pytest.importorskip("imagecorruptions")
    done = evaluate(plan_of(data, *CORRUPTIONS), tmp_path / "run")
    clean = done.results.under("threshold", CLEAN)
    for condition in CORRUPTIONS:
        own = done.results.under("threshold", condition)
        assert own["true"].to_pylist() == clean["true"].to_pylist()
        assert own["right"].to_pylist() != clean["right"].to_pylist()


@pytest.mark.parametrize("named", [False, True])
def test_a_set_made_from_more_classes_than_the_network_has_is_refused(tmp_path, named):
    """In such a set, pixels without a class are written as 255, and the further class as the number after the last."""
    pytest.importorskip("imagecorruptions")
    three, two = write_segmenter(tmp_path / "three", classes=3), write_segmenter(tmp_path / "two", classes=2)
    write_masks(tmp_path / "data.parquet", 3, unlabelled=3)
    sets = corrupt(str(three), tmp_path / "data.parquet", corruptions=["fog"], severities=[1], out=tmp_path / "sets")
    fog = {"corrupted": sets, "corruptions": ["fog"], "severities": [1]}
    place = {"images": sets / "clean.parquet"} if named else fog
    with pytest.raises(InputError, match=r"segments 2 classes, but .*clean.parquet was made from masks of 3"):
        robust(str(two), **place, out=tmp_path / "run", progress=False)


def test_a_twin_that_segments_is_refused(tmp_path):
    twin = write_segmenter(tmp_path / "twin")
    write_model(tmp_path / "model")
    write_parquet(tmp_path / "data.parquet")
    more = {"twin": str(twin), "attacks": ["pgd:2"], "out": tmp_path / "run", "progress": False}
    with pytest.raises(InputError, match="twin segments pictures, and the others classify"):
        robust(str(tmp_path / "model"), tmp_path / "data.parquet", **more)


def test_a_class_that_no_picture_has_is_missing_and_counted(tmp_path):
    folder = write_segmenter(tmp_path / "model", classes=3)
    write_masks(tmp_path / "data.parquet", 3, unlabelled=3)
    done = robust(str(folder), tmp_path / "data.parquet", out=tmp_path / "run", progress=False)
    assert {entry.missing for entry in done.summary.accuracies} == {1}
    assert [score.name for score in done.summary.scores] == ["IoU of class 0", "IoU of class 1"]


def write_segmenter(folder, classes=2, **settings):
    """The folder of a network of `attnaudit train`, untrained."""
    sizes = {"image_size": SHAPE[0], "image_width": SHAPE[1], "patch_size": 8, "width": 24, "depth": 2, "heads": 2}
    architecture = Architecture(**sizes, classes=classes, decoder="linear", **settings)
    folder.mkdir(parents=True)
    save_file(build_vision_transformer(architecture, 0).state_dict(), folder / WEIGHTS)
    facts = {"recipe": "segment", "seed": 0}
    json_file.write(folder / CARD, ImageCard(folder.name, architecture, (0.5,) * 3, (0.25,) * 3, None, facts))
    return folder


def test_the_validation_half_of_ade20ks_layout_is_evaluated(tmp_path):
    model, ade = write_segmenter(tmp_path / "model"), write_ade20k(tmp_path / "ade", {"training": 1, "validation": 3})
    done = robust(str(model), ade, out=tmp_path / "run", progress=False)
    assert {(entry.images, entry.missing) for entry in done.summary.accuracies} == {(3, 0)}


def test_pictures_corrupted_beforehand_give_the_same_as_those_corrupted_now(tmp_path):
    pytest.importorskip("imagecorruptions")
    model, data = str(write_segmenter(tmp_path / "model")), write_masks(tmp_path / "data.parquet", 5)
    how = {"corruptions": ["fog", "contrast"], "severities": [3], "progress": False}
    now = robust(model, data, out=tmp_path / "now", **how)
    written = corrupt(model, data, out=tmp_path / "written", **how)
    then = robust(model, corrupted=written, out=tmp_path / "then", **how)
    assert [entry.accuracy for entry in now.summary.accuracies] == [e.accuracy for e in then.summary.accuracies]
    assert pq.read_table(written / "fog" / "3.parquet").column_names == ["img", "mask"]
    with pytest.raises(InputError, match="differ in number or order"):
        robust(model, write_masks(tmp_path / "others.parquet", 5, first=9), corrupted=written, **how)


def test_an_evaluation_is_read_back_as_networks_that_are_compared_by_their_miou(tmp_path):
    model = write_segmenter(tmp_path / "model", attention="symmetric")
    done = robust(str(model), write_masks(tmp_path / "data.parquet", 4), out=tmp_path / "run", progress=False)
    assert json_file.read(EvaluationSummary, tmp_path / "run" / "summary.json", "a summary") == done.summary
    (network,) = open_evaluation(tmp_path / "run").networks
    assert network.architecture.segments
    (clean,) = network.under(ConditionKind.CLEAN)
    assert clean.quantity is Quantity.MEAN_IOU
    assert len(network.accuracies) == 3
    assert "quantity" not in json_file.plain(network)  # but for what is no accuracy of a classifier


@pytest.mark.parametrize(
    "option", [{"attacks": ["pgd"]}, {"eps": ["1/255"]}, {"mask": True}, {"twin": "x"}, {"outliers": "x"}]
)
def test_what_is_for_classifiers_is_refused_by_name(tmp_path, option):
    model, data = write_segmenter(tmp_path / "model"), write_masks(tmp_path / "data.parquet", 2)
    with pytest.raises(UsageError, match=rf"--{next(iter(option))} is for classifiers: a network that segments"):
        robust(str(model), data, out=tmp_path / "run", progress=False, **option)


def test_models_and_images_must_be_of_one_kind(tmp_path):
    segments, classifies = write_segmenter(tmp_path / "segments"), tmp_path / "classifies"
    write_model(classifies)
    masks = write_masks(tmp_path / "masks.parquet", 2)
    write_parquet(tmp_path / "labels.parquet", 4)
    with pytest.raises(InputError, match=r"classifies is a classifier: .*masks.parquet has masks instead of labels"):
        robust([str(segments), str(classifies)], masks, out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match=r"segments segments 2 classes, but .*labels.parquet has no masks for them"):
        robust([str(classifies), str(segments)], tmp_path / "labels.parquet", attacks=[], out=tmp_path / "run2")


def test_an_output_that_is_neither_of_images_nor_of_pixels_is_refused(sized):
    odd = thresholding()
    odd.module.forward = lambda images: torch.zeros(len(images), 3, 4)
    with pytest.raises(ModelError, match=r"is not a classifier: for one image its output has shape \(1, 3, 4\)"):
        PixelModel(odd).outputs  # noqa: B018


def test_a_network_whose_outputs_are_not_finite_has_no_miou(data, tmp_path, sized):
    model = thresholding()
    with torch.no_grad():
        model.module.level.fill_(torch.nan)
    with pytest.raises(ModelError, match=r"^threshold has outputs that are not finite \(clean\)"):
        evaluate(plan_of(data, models=(model,)), tmp_path / "run")


def test_masks_that_name_no_class_are_refused(data, tmp_path, sized):
    nothing = encoded(np.full(SHAPE, UNLABELLED, np.uint8))
    with pytest.raises(InputError, match=r"^No pixel of the 6 masks of .* has a class, as threshold sees them"):
        evaluate(plan_of(replace(data, masks=[nothing] * 6)), tmp_path / "run")


def test_masks_with_classes_in_another_order_are_refused(data, tmp_path, sized):
    folder = write_segmenter(tmp_path / "model")
    card = replace(read_card(folder), labels=("road", "sky"))
    model = replace(thresholding(), card=card)
    evaluate(plan_of(replace(data, names=("road", "sky")), models=(model,)), tmp_path / "run")
    with pytest.raises(InputError, match="has other classes than threshold, or in another order: give masks"):
        evaluate(plan_of(replace(data, names=("sky", "road")), models=(model,)), tmp_path / "other")
