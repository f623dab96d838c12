"""What differs between two audits; how it is printed and refused is tested with the command."""

from dataclasses import replace

import numpy as np
import pytest

from attnaudit.audit.difference import ChangedSetting, ChangedVerdict, difference
from attnaudit.records.audit import open_audit
from attnaudit.records.verdict import VerdictWord
from attnaudit.statistics.means import mean_interval
from tests.report.synthetic import write_run


def test_settings_and_verdicts_that_changed_are_named_with_both_sides(tmp_path):
    write_run(tmp_path / "a", inputs=3)
    write_run(tmp_path / "b", inputs=3, seed=1)
    first, second = open_audit(tmp_path / "a"), open_audit(tmp_path / "b")
    old, *others = first.verdicts
    word = next(word for word in VerdictWord if word is not old.word)
    changed = replace(second, summary=replace(first.summary, verdicts=(replace(old, word=word), *others)))
    found = difference(first, changed)
    assert found.verdicts == (ChangedVerdict(old.model, old.claim, old.word, word),)
    assert ChangedSetting("seed", "0", "1") in found.settings


def observed(run, measure):
    """The values of a measure, heads of each input in a row."""
    rows = run.rows.where("input", "layer", "head", "value", measure=measure, reference="observed").to_pylist()
    rows.sort(key=lambda row: (row["input"], row["layer"], row["head"]))
    return np.array([row["value"] for row in rows]).reshape(len({row["input"] for row in rows}), -1)


def test_changes_are_second_minus_first_with_intervals_over_inputs_that_hold_together(tmp_path):
    write_run(tmp_path / "a", inputs=5)
    write_run(tmp_path / "b", inputs=5, seed=1, shift=0.3)
    first, second = open_audit(tmp_path / "a"), open_audit(tmp_path / "b")
    found = difference(first, second)
    assert len(found.changes) > 1
    assert found.level == pytest.approx(1 - 0.05 / len(found.changes))
    for name in ("procrustes", "linear_cka"):
        (change,) = (own for own in found.changes if own.measure == name)
        by_input = (observed(second, name) - observed(first, name)).mean(axis=1)
        assert (change.inputs, change.mean) == (5, pytest.approx(by_input.mean()))
        assert change.interval == pytest.approx(mean_interval(by_input, found.level))


def test_inputs_of_one_group_count_as_one(tmp_path):
    write_run(tmp_path / "a", inputs=4)
    write_run(tmp_path / "b", inputs=4, seed=1, shift=0.3)
    first, second = open_audit(tmp_path / "a"), open_audit(tmp_path / "b")
    names = sorted({row["input"] for row in first.rows.where("input", measure="procrustes").to_pylist()})
    identity = replace(
        first.settings.identity, groups=tuple((name, str(place // 2)) for place, name in enumerate(names))
    )
    grouped = replace(first, settings=replace(first.settings, identity=identity))
    (change,) = (own for own in difference(grouped, second).changes if own.measure == "procrustes")
    by_input = (observed(second, "procrustes") - observed(first, "procrustes")).mean(axis=1)
    by_group = by_input.reshape(2, 2).mean(axis=1)
    assert (change.inputs, change.mean) == (2, pytest.approx(by_group.mean()))
