"""The folder of an evaluation: resumed after a kill, extended, and refused where it is damaged or another's."""

import shutil

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnaudit.errors import InputError, RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records.audit import open_audit
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.run_folder import RunFolder
from attnaudit.robustness import evaluate
from attnaudit.robustness.table import SCHEMA
from attnaudit.sources.model import load_model, parse_model
from attnaudit.sources.trained_models import WEIGHTS
from tests.robustness.plans import ATTACKS, plan_of
from tests.robustness.subjects import loaded, write_model


def counting(network):
    """The network, and a list of the batches it has seen."""
    seen = []
    network.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[0])))
    return seen


def test_finished_batches_are_not_computed_again(data, tmp_path):
    model = loaded()
    evaluate(plan_of(data, *ATTACKS, models=(model,)), tmp_path / "run")
    parts = RunFolder(tmp_path / "run").parts.files()
    next(iter(parts.values())).unlink()
    seen = counting(model.module)
    again = evaluate(plan_of(data, *ATTACKS, models=(model,)), tmp_path / "run")
    found = RunFolder(tmp_path / "run").parts.files()
    assert found.keys() == parts.keys()
    assert len({*found.values()} - {*parts.values()}) <= 1, "only the time that a batch took may differ"
    assert again.results.table.num_rows == 12 * 4
    assert 0 < len(seen) < 15


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
def test_other_settings_and_images_need_another_folder(data, tmp_path, changed):
    evaluate(plan_of(data), tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run with other"):
        evaluate(plan_of(data, **changed), tmp_path / "run")


class Killed(Exception):
    """What a progress bar raises to end a run as a signal would."""


def killed_after(count):
    def progress(done, total, label):
        if done == count:
            raise Killed

    return progress


def trained(folder, bias, seed=0):
    """A network of `attnaudit train` that says one class of everything."""
    shutil.rmtree(folder, ignore_errors=True)
    write_model(folder, facts={"recipe": "r", "seed": seed}, attention="symmetric")
    save_file(load_file(folder / WEIGHTS) | {"head.bias": torch.tensor(bias)}, folder / WEIGHTS)
    return load_model(parse_model(str(folder)))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_evaluation_that_was_killed_is_not_read_with_the_numbers_of_an_earlier_one(data, tmp_path, added, after):
    """Whether a network was trained again, or another one added; at any moment, even after the last batch."""
    run, old = tmp_path / "run", trained(tmp_path / "m", [9.0, 0.0])
    evaluate(plan_of(data, models=(old,)), run)
    assert open_evaluation(run).networks[0].fingerprint == old.fingerprint
    new = trained(tmp_path / ("other" if added else "m"), [0.0, 9.0], seed=1)
    plan = plan_of(data, models=(old, new) if added else (new,))
    with pytest.raises(Killed):
        evaluate(plan, run, progress=killed_after(after + 3 * added))
    with pytest.raises(RunFolderError, match="run holds a run that is not finished: repeat its command"):
        open_evaluation(run)
    evaluate(plan, run)
    assert open_evaluation(run).networks[-1].fingerprint == new.fingerprint


def test_an_evaluation_that_an_older_version_left_unfinished_is_refused(data, tmp_path):
    """It kept the summary of the earlier networks beside a plan of more."""
    run, models = tmp_path / "run", [trained(tmp_path / name, [9.0, 0.0]) for name in ("a", "b")]
    evaluate(plan_of(data, models=models[:1]), run)
    summary = (run / "summary.json").read_bytes()
    with pytest.raises(Killed):
        evaluate(plan_of(data, models=models), run, progress=killed_after(4))
    (run / "summary.json").write_bytes(summary)
    with pytest.raises(RunFolderError, match="not finished"):
        open_evaluation(run)


def test_a_repeated_evaluation_that_is_killed_keeps_its_summary(data, tmp_path):
    evaluate(plan_of(data, *ATTACKS), tmp_path / "run")
    summary = (tmp_path / "run" / "summary.json").read_bytes()
    with pytest.raises(Killed):
        evaluate(plan_of(data, *ATTACKS), tmp_path / "run", progress=killed_after(12))
    assert (tmp_path / "run" / "summary.json").read_bytes() == summary


def test_an_evaluation_without_its_parts_can_be_read(data, tmp_path):
    """As it is packed to be kept."""
    evaluate(plan_of(data, models=(trained(tmp_path / "m", [9.0, 0.0]),)), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "evidence")
    assert len(open_evaluation(tmp_path / "run").networks) == 1


def test_an_evaluation_is_no_audit(data, tmp_path):
    evaluate(plan_of(data), tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds an evaluation of robustness, not an audit"):
        open_audit(tmp_path / "run")


def other_columns(part):
    pq.write_table(pq.read_table(part).drop_columns("correct"), part)


def fewer_rows(part):
    pq.write_table(pq.read_table(part).slice(1), part)


@pytest.mark.parametrize("damage", [lambda part: part.write_bytes(b"no parquet"), other_columns, fewer_rows])
def test_a_damaged_part_is_named_and_computed_again(data, tmp_path, caplog, damage):
    before = evaluate(plan_of(data), tmp_path / "run").results.table.drop_columns("seconds")
    part = next((tmp_path / "run" / "evidence").iterdir())
    damage(part)
    again = evaluate(plan_of(data), tmp_path / "run").results.table.drop_columns("seconds")
    assert f"{part.name} is damaged and is computed again" in caplog.text
    assert again.equals(before)


def test_a_model_of_other_classes_leaves_no_folder_behind(data, tmp_path):
    with pytest.raises(InputError, match="has 4 classes, but"):
        evaluate(plan_of(data, models=(loaded(classes=4),)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
