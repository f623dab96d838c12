import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.training import open_training
from tests.report.synthetic import write_run
from tests.sealed import content_of, seal
from tests.training_runs import STEPS_PER_EPOCH, write_course, write_training


def test_a_run_that_is_still_under_way_can_be_read(tmp_path):
    run = open_training(write_training(tmp_path / "run"))
    assert not (tmp_path / "run" / "summary.json").exists()
    assert (run.name, run.batches, run.history) == ("study-vit-tiny, seed 0", ("train", "test"), ())
    assert run.epoch_at(3 * STEPS_PER_EPOCH) == 3
    assert run.is_monitored


def test_what_a_training_wrote_comes_back(tmp_path):
    run = open_training(write_course(tmp_path / "run", [0.5, 0.75], seed=3, attention="rpc", data="these"))
    assert (run.recipe.name, run.seed, run.data, run.recipe.model.attention) == ("rpc-recipe", 3, ("these",), "rpc")
    assert run.accuracies == (0.5, 0.75)
    assert not run.is_monitored
    with pytest.raises(RunFolderError, match=r"run was trained without a monitor, so it has no measurements: give a"):
        _ = run.rows


def test_batch_means_leave_out_single_images_and_references(tmp_path):
    run = open_training(write_training(tmp_path / "run", epochs=(0, 3), layers=2, heads=3))
    table = run.batch_means(["phi_norm2"])
    assert len(table) == 2 * 2 * 2 * 3
    assert set(table["step"].to_pylist()) == {0, 3 * STEPS_PER_EPOCH}
    assert max(table["value"].to_pylist()) < 1e9


def test_a_batch_that_was_not_measured_is_missed(tmp_path):
    assert open_training(write_training(tmp_path / "run", batches=("test",))).batches == ("test",)


def empty(path):
    write_training(path, epochs=())


def without_epochs(path):
    write_training(path)
    seal(path / "run.json", content_of(path / "run.json") | {"steps_per_epoch": 0})


def damaged(path):
    write_training(path)
    next((path / "evidence").iterdir()).write_bytes(b"junk")


def without_names(path):
    path.mkdir()
    (path / "run.json").write_text("[]")


BAD = {
    "There is no folder": lambda path: None,
    "has no run.json": lambda path: path.mkdir(),
    "holds an audit, not a training": lambda path: write_run(path, layers=1, heads=1, inputs=2),
    "holds the measurements of a monitor": lambda path: RunFolder(path).open({"kind": "monitor"}, {}),
    "identity.kind": lambda path: RunFolder(path).open({"kind": "concert"}, {}),
    "run.json is not readable as the settings of a run": without_names,
    "has no measurements": empty,
    "is damaged": damaged,
    "steps_per_epoch": without_epochs,
    "no rows of a batch named train or test, only of batch": lambda path: write_training(path, batches=("batch",)),
}


@pytest.mark.parametrize("message", BAD)
def test_a_folder_that_is_no_training_run_is_refused_in_one_sentence(tmp_path, message):
    BAD[message](tmp_path / "run")
    with pytest.raises(RunFolderError, match=message) as caught:
        _ = open_training(tmp_path / "run").batches
    assert "\n" not in str(caught.value)


def test_a_measure_that_was_not_taken_is_named(tmp_path):
    with pytest.raises(RunFolderError, match="no rows of gamma_abs"):
        open_training(write_training(tmp_path / "run")).batch_means(["phi_norm2", "gamma_abs"])


@pytest.mark.parametrize("content", ["{", "3", '{"epoch": 1}', "[1]"])
def test_a_broken_history_is_named(tmp_path, content):
    path = write_course(tmp_path / "run", [0.5])
    (path / "history.json").write_text(content)
    with pytest.raises(RunFolderError, match=r"history\.json is not readable"):
        open_training(path)
