"""The published numbers from real weights and images."""

import pytest

import attnaudit
from attnaudit.claims.tables import TABLES, compare
from attnaudit.sources.data import data_weights

pytestmark = pytest.mark.realdata
MODEL = "deit_tiny_patch16_224"


def row(item, folder, **more):
    table = TABLES[item]
    run = attnaudit.audit(MODEL, folder, weights=data_weights(MODEL), protocol="paper", families=table.families, **more)
    observed = run.summary["models"][MODEL]["observed"]
    return observed, {entry.column: entry.ours for entry in compare(table, MODEL, observed)}


def test_tables_2_and_3_land_on_the_published_row(data_folder):
    observed, ours = row("table3", data_folder / "imagenet_val", workers=2)
    assert observed["eigenvalue_max"]["n"] == 3600
    assert ours["max ×1e-6"] == pytest.approx(325, rel=0.05)
    assert ours["mean ×1e-6"] == pytest.approx(65, rel=0.05)
    assert ours["median ×1e-6"] == pytest.approx(53, rel=0.05)
    assert ours["min ×1e-6"] == pytest.approx(34, rel=0.15)
    assert ours["max* ×1e-6"] == pytest.approx(1043, rel=0.10)


def test_table_1_lands_on_the_published_row(data_folder):
    observed, ours = row("table1", data_folder / "imagenet_val", workers=2)
    assert observed["allclose"]["n"] == 3600
    assert observed["allclose"]["max"] == 0.0
    assert ours["MOC"] == pytest.approx(0.31, abs=0.01)
    assert ours["LCKA"] == pytest.approx(0.11, abs=0.01)
    assert ours["KCKA"] == pytest.approx(0.30, abs=0.015)
    assert 0.09 <= ours["MDC"] <= 0.19
