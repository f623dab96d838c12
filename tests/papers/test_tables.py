from dataclasses import replace

from attnaudit.papers.published_tables import SAME_MODEL, TABLE1, TABLE2, TABLE3_RAW, TABLE4, VISION_MODELS
from attnaudit.papers.tables import TABLES, compare
from attnaudit.records.audit_summary import Statistic


def test_every_published_row_belongs_to_a_model_of_the_study():
    assert set(TABLE1) == set(TABLE2) == set(VISION_MODELS)
    assert set(TABLE3_RAW) < set(VISION_MODELS)
    assert len(TABLE4) == 9


def test_the_published_standardised_eigenvalues_obey_the_bound():
    """Standardised keys have ‖k‖² = 63, so g > e^{63/8} and no eigenvalue can exceed 380e-6."""
    assert all(row["max"][0] < 380 for row in TABLE2.values())


def statistic(**more):
    return replace(Statistic(0.2, 0.2, 0.5, 0.1, None, 0.01, 7, {"because": 2}), **more)


def test_maxima_and_means_are_taken_where_the_study_takes_them():
    observed = {c.measure: statistic() for c in TABLES["table1"].columns}
    ours = {entry.column: entry for entry in compare(TABLES["table1"], "vit_tiny_patch16_224", observed)}
    assert [ours[name].ours for name in ("MDC", "MOC", "LCKA", "KCKA")] == [0.5, 0.5, 0.2, 0.2]
    assert ours["MDC"].ours_std is None
    assert (ours["MDC"].heads, ours["MDC"].rejected) == (7, 2)
    assert ours["MDC"].difference == 0.5 - 0.09


def test_a_model_without_a_published_row_is_compared_with_nothing():
    observed = {c.measure: statistic(mean=None, max=None, input_std=None) for c in TABLES["table2"].columns}
    entry = compare(TABLES["table2"], "my_vit", observed)[0]
    assert entry.published is None
    assert entry.ours is None
    assert entry.difference is None


def test_an_unreadable_published_number_stays_unknown():
    observed = {c.measure: statistic() for c in TABLES["table3"].columns}
    entries = {e.column: e for e in compare(TABLES["table3"], "deit_small_patch16_224", observed)}
    assert entries["max* ×1e-6"].published is None
    assert entries["min* ×1e-6"].published == (25, 8)


def test_every_name_of_ours_for_a_model_of_the_study_has_a_published_row():
    rows = {model for table in TABLES.values() for model in table.models}
    assert set(SAME_MODEL.values()) <= rows
    assert SAME_MODEL["vit-base"] == "vit_base_patch16_224"
