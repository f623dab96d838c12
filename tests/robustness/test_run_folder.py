"""The folder of an evaluation: resumed after a kill, extended, and refused where it is damaged or another's."""

import pyarrow.parquet as pq
import pytest

from attnaudit.errors import InputError, RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records.audit import open_audit
from attnaudit.records.run_folder import RunFolder
from attnaudit.robustness import evaluate
from attnaudit.robustness.table import SCHEMA
from tests.robustness.plans import ATTACKS, plan_of
from tests.robustness.subjects import loaded


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
