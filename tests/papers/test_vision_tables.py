"""Tables 1 to 3 of the study, from real weights and images."""

import os
from pathlib import Path

import pytest

import attnaudit
from attnaudit.papers.tables import TABLES, compare
from attnaudit.sources.data import data_weights

pytestmark = [pytest.mark.realdata, pytest.mark.long]
MODEL = "deit_tiny_patch16_224"
DATA = Path(os.environ.get("ATTNAUDIT_DATA", "unset"))


@pytest.fixture(scope="module")
def observed():
    """What tables 1 to 3 show of 40 images, measured in one audit."""
    run = attnaudit.audit(
        MODEL,
        DATA / "imagenet_val",
        limit=40,
        weights=data_weights(MODEL),
        protocol="paper",
        measures=dict.fromkeys((*TABLES["table1"].measures, *TABLES["table3"].measures)),
        claims=(),
        references=(),
    )
    return run.summary.observed(MODEL)


def ours(item, observed):
    return {entry.column: entry.ours for entry in compare(TABLES[item], MODEL, observed)}


def test_tables_2_and_3_land_on_the_published_row(observed):
    found = ours("table3", observed)
    assert observed["eigenvalue_max"].n == 1440
    assert found["max ×1e-6"] == pytest.approx(325, rel=0.05)
    assert found["mean ×1e-6"] == pytest.approx(65, rel=0.05)
    assert found["median ×1e-6"] == pytest.approx(53, rel=0.05)
    assert found["min ×1e-6"] == pytest.approx(34, rel=0.15)
    assert found["max* ×1e-6"] == pytest.approx(1043, rel=0.10)


def test_table_1_lands_on_the_published_row(observed):
    found = ours("table1", observed)
    assert observed["allclose"].n == 1440
    assert observed["allclose"].max == 0.0
    assert found["MOC"] == pytest.approx(0.31, abs=0.01)
    assert found["LCKA"] == pytest.approx(0.11, abs=0.01)
    assert found["KCKA"] == pytest.approx(0.30, abs=0.015)
    assert 0.09 <= found["MDC"] <= 0.19
