"""Corruptions: all fifteen, worse with severity, the same for the same seed, made now or beforehand."""

from dataclasses import replace
from shutil import copytree

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from attnaudit.errors import InputError, RunFolderError, UsageError
from attnaudit.robustness import Examples
from attnaudit.robustness import corruptions as corruptions_module
from attnaudit.robustness.conditions import corruption_conditions
from attnaudit.robustness.corrupted_sets import write_corrupted_sets
from attnaudit.robustness.corruptions import CORRUPTIONS, corrupted, corrupted_place
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.preprocess import ImagePreparation
from tests.robustness.subjects import SIZE, loaded, pixels, write_folders, write_parquet

package = pytest.importorskip("imagecorruptions")


@pytest.fixture(scope="module")
def images():
    return torch.from_numpy(pixels(3)[0]).permute(0, 3, 1, 2).contiguous()


def test_the_fifteen_are_the_packages_common_ones():
    assert list(CORRUPTIONS) == package.get_corruption_names("common")


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_image_depends_on_seed_and_number_alone(name, images):
    together = corrupted(images, name, 3, [5, 6, 7], seed=1)
    assert (together.shape, together.dtype) == (images.shape, torch.uint8)
    assert not torch.equal(together, images)
    np.random.seed(99)
    assert torch.equal(corrupted(images[1:2], name, 3, [6], seed=1)[0], together[1])


@pytest.mark.parametrize("name", ["gaussian_noise", "impulse_noise", "glass_blur", "frost", "elastic_transform"])
def test_another_seed_is_another_corruption(name, images):
    assert not torch.equal(corrupted(images, name, 3, [0, 1, 2], seed=1), corrupted(images, name, 3, [0, 1, 2], 2))


@pytest.mark.parametrize("name", ["gaussian_noise", "defocus_blur", "pixelate", "contrast", "brightness"])
def test_a_larger_severity_changes_more(name, images):
    changes = [
        (corrupted(images, name, severity, [0, 1, 2], 0).float() - images.float()).abs().mean()
        for severity in (1, 3, 5)
    ]
    assert changes == sorted(changes)


def test_the_global_random_state_is_left_alone(images):
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    corrupted(images, "snow", 1, [0, 1, 2], 0)
    assert np.random.random() == expected


def test_images_that_are_too_small_are_refused(images):
    with pytest.raises(InputError, match=r"≥ 32 .* got"):
        corrupted(images[:, :, :16], "fog", 1, [0, 1, 2], 0)


def test_crops_that_are_too_small_leave_no_folder(tmp_path):
    prepared = ImagePreparation(31, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), crop=1.0)
    model = PixelModel(replace(loaded(), preprocess=prepared.preprocess))
    examples = Examples.drawn(write_parquet(tmp_path / "data.parquet"), None, 0)
    with pytest.raises(InputError, match="≥ 32 pixels per side to be corrupted, got 31 x 31"):
        write_corrupted_sets(model, examples, corruption_conditions(["fog"], [1]), tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


def test_unknown_corruptions_and_severities_are_answered_with_those_there_are():
    with pytest.raises(UsageError, match=r"corruption 'rain'.*gaussian_noise, .*jpeg_compression"):
        corruption_conditions(["rain"], [1])
    with pytest.raises(UsageError, match=r"severity 6\..*1, 2, 3, 4, 5"):
        corruption_conditions(["fog"], [6])


@pytest.fixture
def written(tmp_path):
    examples = Examples.drawn(write_parquet(tmp_path / "data.parquet"), 6, seed=4)
    conditions = corruption_conditions(["fog", "glass_blur"], [2])
    out = tmp_path / "sets"
    model = PixelModel(loaded())
    write_corrupted_sets(model, examples, conditions, out, seed=7)
    return model, examples, conditions, out


def test_sets_made_beforehand_are_those_made_now(written):
    model, examples, conditions, out = written
    clean = read_labelled(out / "clean.parquet")
    again = Examples.drawn(clean, None, 0, corrupted_folder=out, preprocessed=True)
    assert torch.equal(again.clean(model), examples.clean(model))
    for condition in conditions:
        now = examples.corrupted(model, examples.clean(model), condition, seed=7)
        assert torch.equal(again.corrupted(model, again.clean(model), condition, seed=0), now)


def test_several_processes_write_the_same_bytes(written, tmp_path):
    model, examples, conditions, out = written
    other = tmp_path / "other"
    seen = []
    progress = lambda done, total, label: seen.append((done, total))  # noqa: E731
    write_corrupted_sets(model, examples, conditions, other, seed=7, workers=2, progress=progress)
    for name in ("clean.parquet", "fog/2.parquet", "glass_blur/2.parquet"):
        assert (other / name).read_bytes() == (out / name).read_bytes()
    assert seen[-1] == (2, 2)


def test_whole_files_that_are_there_are_left(written):
    model, examples, conditions, out = written
    mine = (out / "glass_blur" / "2.parquet").read_bytes()
    (out / "fog" / "2.parquet").write_bytes(mine)
    write_corrupted_sets(model, examples, conditions, out, seed=7)
    assert (out / "fog" / "2.parquet").read_bytes() == mine


@pytest.mark.parametrize("name", ["clean.parquet", "fog/2.parquet"])
@pytest.mark.parametrize("left", ["cut off", "fewer images"])
def test_files_without_all_images_are_made_again(written, name, left):
    model, examples, conditions, out = written
    before = (out / name).read_bytes()
    if left == "cut off":
        (out / name).write_bytes(before[:300])
    else:
        pq.write_table(pq.read_table(out / name).slice(1), out / name)
    write_corrupted_sets(model, examples, conditions, out, seed=7)
    assert (out / name).read_bytes() == before


@pytest.mark.parametrize(
    "different", ["data", "images", "seed", "size", "preprocessing", "names of classes", "corruptions"]
)
def test_a_folder_takes_no_images_of_another_set(written, tmp_path, monkeypatch, different):
    model, examples, conditions, out = written
    seed = 7
    if different == "data":
        examples = Examples(write_parquet(tmp_path / "other.parquet", seed=1), examples.indices)
    if different == "images":
        examples = Examples.drawn(examples.data, 4, seed=4)
    if different == "seed":
        seed = 8
    if different in ("size", "preprocessing"):
        side = 40 if different == "size" else SIZE
        model = PixelModel(replace(loaded(), preprocess=blurring(side)))
    if different == "names of classes":
        examples = Examples(replace(examples.data, names=("cat", "dog")), examples.indices)
    if different == "corruptions":
        monkeypatch.setattr(corruptions_module, "_VERSION", 0)
    before = sorted(path for path in out.rglob("*"))
    more = corruption_conditions(["snow"], [1])
    shown = "" if different in ("data", "preprocessing") else r".* here\)"  # hashes say nothing to a reader
    with pytest.raises(RunFolderError, match=rf"sets holds a run with other .*{different}{shown}: give --out another"):
        write_corrupted_sets(model, examples, [*conditions, *more], out, seed=seed)
    assert sorted(path for path in out.rglob("*")) == before


def blurring(side):
    """Preprocessing that shows a model less of an image, at that size."""

    def preprocess(protocol):
        def apply(image):
            pixels = np.asarray(image.resize((8, 8)).resize((side, side)), dtype=np.float32) / 255
            return torch.from_numpy(pixels).permute(2, 0, 1)

        return apply

    return preprocess


def test_corruptions_and_severities_may_be_added_to_the_same_set(written):
    model, examples, _, out = written
    write_corrupted_sets(model, examples, corruption_conditions(["fog", "snow"], [2, 3]), out, seed=7)
    assert {path.relative_to(out).as_posix() for path in out.glob("*/*")} == {
        "fog/2.parquet", "fog/3.parquet", "snow/2.parquet", "snow/3.parquet", "glass_blur/2.parquet",
    }  # fmt: skip


def test_parts_of_a_set_that_are_copied_into_one_folder_are_the_set(written, tmp_path):
    """So it can travel in several pieces."""
    model, examples, conditions, out = written
    for number, condition in enumerate(conditions):
        write_corrupted_sets(model, examples, [condition], tmp_path / f"part-{number}", seed=7)
        copytree(tmp_path / f"part-{number}", tmp_path / "whole", dirs_exist_ok=True)
    assert contents(tmp_path / "whole") == contents(out)
    write_corrupted_sets(model, examples, conditions, tmp_path / "whole", seed=7)


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_file_where_a_folder_is_wanted_is_named(written):
    model, examples, _, out = written
    (out / "snow").touch()
    with pytest.raises(RunFolderError, match=r"sets/snow cannot be written \(File exists\): give --out another folder"):
        write_corrupted_sets(model, examples, corruption_conditions(["snow"], [1]), out, seed=7)


def test_a_folder_that_holds_something_else_takes_no_images(written, tmp_path):
    model, examples, conditions, _ = written
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").touch()
    with pytest.raises(RunFolderError, match="home is neither empty nor a run folder"):
        write_corrupted_sets(model, examples, conditions, tmp_path / "home", seed=7)


def test_names_of_classes_survive(tmp_path):
    examples = Examples.drawn(write_folders(tmp_path / "data", ["032", "999"]), None, 0)
    write_corrupted_sets(PixelModel(loaded()), examples, [], tmp_path / "sets")
    assert read_labelled(tmp_path / "sets" / "clean.parquet").names == ("032", "999")


@pytest.mark.parametrize("between", ["", "weather"])
def test_imagenet_cs_folders_are_found_with_and_without_their_group(tmp_path, between):
    write_folders(tmp_path / between / "fog" / "3", ["a", "b"])
    assert len(read_labelled(corrupted_place(tmp_path, "fog", 3))) == 4
    with pytest.raises(InputError, match=r"neither fog/4/ nor fog/4\.parquet"):
        corrupted_place(tmp_path, "fog", 4)


def test_a_corrupted_set_of_other_images_is_refused(tmp_path):
    write_parquet_at = tmp_path / "sets" / "fog"
    write_parquet_at.mkdir(parents=True)
    write_parquet(write_parquet_at / "1.parquet", count=8)
    examples = Examples.drawn(
        write_parquet(tmp_path / "data.parquet", count=12), None, 0, corrupted_folder=tmp_path / "sets"
    )
    model = PixelModel(loaded())
    with pytest.raises(InputError, match=r"\(8\) and .* \(12\)"):
        examples.corrupted(model, torch.empty(0), corruption_conditions(["fog"], [1])[0], 0)


def test_a_draw_is_spread_over_the_whole_set(tmp_path):
    data = write_parquet(tmp_path / "data.parquet", count=40)
    places = Examples.drawn(data, 10, seed=0).indices
    assert places == tuple(sorted(set(places)))
    assert len(places) == 10
    assert max(places) > 20
    assert Examples.drawn(data, 10, seed=1).indices != places
    assert Examples.drawn(data, 100, seed=0).indices == tuple(range(40))
