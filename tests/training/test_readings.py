"""What is read off the rows of a step, in words."""

import logging

import pyarrow.compute as pc
import pytest

from attnaudit.training import Monitor
from attnaudit.training.readings import read
from tests.training.networks import batch, network


def test_a_line_is_told_or_logged(caplog):
    lines = []
    Monitor(network(), {"train": batch(), "test": batch(seed=2)}, tell=lines.append).measure(1500)
    (line,) = lines
    assert line.startswith("step 1,500  train: J ")
    for part in ("‖φ‖²", "‖h‖²", "kernel PCA explains", "0 is chance, 1 the claim", "|  test: J "):
        assert part in line
    with caplog.at_level(logging.INFO, logger="attnaudit.training"):
        Monitor(network(), batch(), scores=0).measure(0)
    assert [record.name for record in caplog.records] == ["attnaudit.training"]
    assert "alignment" not in caplog.text


def test_heads_with_too_few_tokens_are_said_to_decide_nothing():
    lines = []
    Monitor(network(), batch()[:, :6], tell=lines.append).measure(0)
    assert "alignment not identifiable" in lines[0]


@pytest.mark.parametrize(("floor", "shown"), [(0.25, True), (-1e9, False), (1e9, False)])
def test_a_share_that_is_none_is_not_shown(floor, shown):
    """A floor that is rounding over a norm that is rounding can be anything."""
    table = Monitor(network(), batch(), tell=lambda line: None).measure(0)
    measure = pc.cast(table["measure"], "string")
    norms, floors = pc.equal(measure, "phi_norm2"), pc.equal(measure, "projection_error_floor")
    values = pc.if_else(norms, 1.0, pc.if_else(floors, floor, table["value"]))
    changed = table.set_column(table.schema.get_field_index("value"), "value", values)
    model = table["model"][0].as_py()
    (reading,) = read(0, changed, ["batch"], model, 0).batches.values()
    assert (reading.explained == pytest.approx(0.75)) if shown else (reading.explained is None)
    assert ("kernel PCA explains 75%" in reading.line) == shown
