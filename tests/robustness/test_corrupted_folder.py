"""Images that `attnaudit corrupt` wrote: known as such however they are named, and belonging to their clean ones."""

import shutil
from dataclasses import replace

import pytest
import torch

from attnaudit.errors import InputError, RunFolderError
from attnaudit.robustness import EvaluationPlan, EvaluationSettings, Examples, evaluate
from attnaudit.robustness.conditions import CLEAN, OUTLIERS, corruption_conditions
from attnaudit.robustness.corrupted_sets import write_corrupted_sets
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.planning import find_examples
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.preprocess import ImagePreparation
from tests.robustness.subjects import SIZE, loaded, write_parquet
from tests.sealed import content_of, seal

FOGS = corruption_conditions(["fog"], [1])


def cropping(size=SIZE):
    """A classifier that cuts away the edges of an image, so that cutting twice shows less of it."""
    plain = loaded()
    prepared = ImagePreparation(size, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), crop=0.875)
    return LoadedModel("model", plain.module, plain.fingerprint, "made by a test", preprocess=prepared.preprocess)


@pytest.fixture
def written(tmp_path):
    pytest.importorskip("imagecorruptions")
    write_parquet(tmp_path / "data.parquet")
    model, out = cropping(), tmp_path / "sets"
    write_corrupted_sets(PixelModel(model), find_examples(model, tmp_path / "data.parquet"), FOGS, out)
    return out


def plan(images, corrupted, **more):
    model = cropping()
    examples = find_examples(model, images, corrupted=corrupted, **more)
    return EvaluationPlan((model,), examples, (CLEAN, *FOGS), EvaluationSettings(batch=5))


def test_clean_images_of_a_set_are_prepared_once_however_they_are_named(written, monkeypatch):
    whole = plan(None, written)
    expected = whole.examples.clean(PixelModel(cropping()))
    (written / "set.json").rename(written / "elsewhere.json")
    without = plan(written / "clean.parquet", written)  # as of a folder from before the file was written
    (written / "elsewhere.json").rename(written / "set.json")
    named, alone = plan(written / "clean.parquet", written), plan(written / "clean.parquet", None)
    monkeypatch.chdir(written)
    relative = find_examples(cropping(), type(written)("clean.parquet"))
    for examples in (without.examples, named.examples, alone.examples, relative):
        assert examples.preprocessed
        assert torch.equal(examples.clean(PixelModel(cropping())), expected)
    assert named.identity == whole.identity
    assert [unit.key for unit in named.units] == [unit.key for unit in whole.units]


def test_corrupted_images_of_a_set_that_are_given_as_images_are_prepared_already(written):
    assert find_examples(cropping(), written / "fog" / "1.parquet").preprocessed
    shutil.copy(written / "fog" / "1.parquet", written.parent / "copy.parquet")
    assert not find_examples(cropping(), written.parent / "copy.parquet").preprocessed


@pytest.mark.parametrize("given", ["the set", "its clean images", "the images it was made from, and the set"])
def test_crops_for_a_network_that_sees_another_size_are_refused(written, given):
    """They would be enlarged, and their corruptions softened."""
    of_any_size = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    model = replace(cropping(SIZE + 16), module=of_any_size)
    images, corrupted = {
        "the set": (None, written),
        "its clean images": (written / "clean.parquet", None),
        "the images it was made from, and the set": (written.parent / "data.parquet", written),
    }[given]
    examples = find_examples(model, images, corrupted=corrupted)
    sizes = f"has crops of {SIZE} x {SIZE} pixels, but model sees {SIZE + 16} x {SIZE + 16}: make crops for it"
    with pytest.raises(InputError, match=sizes):
        examples.clean(PixelModel(model))


def test_images_that_are_prepared_already_are_not_those_that_are_not(written):
    prepared = Examples.drawn(find_examples(cropping(), written / "clean.parquet").data, None, 0, preprocessed=True)
    plain = Examples.drawn(prepared.data, None, 0)
    assert prepared.fingerprint != plain.fingerprint
    for condition in (CLEAN, *FOGS):
        assert prepared.source(condition) != plain.source(condition)


def test_images_that_are_shown_alike_have_one_name(written, tmp_path):
    """Corrupted ones from a folder, and outliers, whatever the clean ones are."""
    others = write_parquet(tmp_path / "outliers.parquet", seed=3)
    data = find_examples(cropping(), written / "clean.parquet").data
    one, other = (
        Examples.drawn(data, None, 0, corrupted_folder=written, preprocessed=own, outliers=others)
        for own in (True, False)
    )
    for condition in (OUTLIERS, *FOGS):
        assert one.source(condition) == other.source(condition)


def test_a_folder_of_images_prepared_twice_is_not_continued(written, tmp_path):
    data = find_examples(cropping(), written / "clean.parquet").data
    twice = EvaluationPlan((cropping(),), Examples.drawn(data, None, 0), (CLEAN,), EvaluationSettings(batch=5))
    evaluate(twice, tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run with other data"):
        evaluate(plan(written / "clean.parquet", written), tmp_path / "run")


def test_a_set_made_of_a_set_is_another_one_than_of_images_as_they_are(written, tmp_path):
    model, clean = PixelModel(cropping()), find_examples(cropping(), written / "clean.parquet")
    write_corrupted_sets(model, clean, [], tmp_path / "again")
    with pytest.raises(RunFolderError, match="holds a run with other preprocessed"):
        write_corrupted_sets(model, Examples.drawn(clean.data, None, 0), [], tmp_path / "again")


def test_a_set_of_other_images_with_the_same_labels_is_refused(written, tmp_path):
    write_parquet(tmp_path / "other.parquet", seed=7)
    with pytest.raises(InputError) as caught:
        evaluate(plan(tmp_path / "other.parquet", written), tmp_path / "run")
    assert str(caught.value) == (
        f"{written} was made from other images than those of {tmp_path / 'other.parquet'}: give the images from which "
        "it was made, or none, so that its clean.parquet is taken."
    )
    assert not (tmp_path / "run").exists()


def test_a_set_belongs_to_its_images_and_to_its_clean_ones_wherever_they_are(written, tmp_path):
    for name, source in (("moved.parquet", tmp_path / "data.parquet"), ("clean.parquet", written / "clean.parquet")):
        shutil.copy(source, tmp_path / name)
        for place in (source, tmp_path / name):
            assert len(plan(place, written, limit=6).examples.corrupted_images(FOGS[0])) == 6


def test_a_set_of_some_images_is_not_one_of_all(written, tmp_path):
    """Even if as many were drawn, as of images of which there are two of each."""
    identity = content_of(written / "set.json")
    identity["identity"]["images"] = [*range(1, 12), 0]
    seal(written / "set.json", identity)
    with pytest.raises(InputError, match="was made from other images"):
        plan(tmp_path / "data.parquet", written).examples.corrupted_images(FOGS[0])


def test_a_set_that_does_not_say_from_what_it_was_made_is_taken_by_its_labels(written, tmp_path):
    (written / "set.json").unlink()
    write_parquet(tmp_path / "other.parquet", seed=7)
    assert len(plan(tmp_path / "other.parquet", written).examples.corrupted_images(FOGS[0])) == 12
