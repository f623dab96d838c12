"""What evidence needs is counted once for everything that can share it."""

import pyarrow as pa
import pytest

from attnaudit.audit import needs
from attnaudit.audit.needs import Needs
from attnaudit.records.evidence import Evidence
from attnaudit.records.schema import SCHEMA


def evidence(*rows):
    """Rows of one head: theory, reference, repeat, measure."""
    same = {"model": "m", "input": "i", "layer": 0, "head": 0, "window": 0, "value": 1.0, "tokens": 8, "dim": 2}
    named = [dict(zip(("theory", "reference", "repeat", "measure"), row, strict=True)) for row in rows]
    return Evidence.of_table(pa.Table.from_pylist([{**same, **own} for own in named], schema=SCHEMA))


def counted(*rows):
    return Needs.of(evidence(*rows)).counts


def test_one_head_has_one_spectrum_whatever_its_references():
    found = counted(
        ("kpca", "observed", 0, "procrustes"),
        ("kpca", "gaussian", 0, "procrustes"),
        ("kpca", "random_projection", 1, "column_cosine_matched"),
    )
    assert found["eigen-solve", "eigenpairs"] == found["Gram", "gram"] == 1
    assert found["measures: columns", "product"] == 3
    assert found["measures: columns", "singular values"] == 2
    assert found["references", "draw"] == 1  # the weights of a projection are the same for all inputs


def test_other_keys_have_spectra_of_their_own_but_another_gauge_has_the_same_attention():
    rows = [
        (theory, *own, "procrustes")
        for theory in ("kpca", "ksvd")
        for own in (("observed", 0), ("untrained", 0), ("reparametrised", 0), ("reparametrised", 1))
    ]
    found = counted(*rows)
    assert found["eigen-solve", "eigenpairs"] == 4
    assert found["singular vectors", "singular vectors"] == 2


def test_values_have_one_factor_for_all_theories_unless_they_are_planted():
    measure = "value_subspace_overlap"
    shared = counted(*((theory, "gaussian", 0, measure) for theory in ("kpca", "ksvd")))
    planted = counted(*((theory, "planted", 0, measure) for theory in ("kpca", "ksvd")))
    assert shared["measures: subspace", "factor"] == 1 + 2  # of the values, and of both predictions
    assert planted["measures: subspace", "factor"] == 2 + 2


def test_fitted_projections_are_no_measures_of_values():
    found = counted(
        ("kpca", "observed", 0, "value_subspace_overlap"), ("kpca", "best_projection", 0, "value_subspace_overlap")
    )
    assert found["measures: columns", "product"] == 1
    assert found["best projection", "overlap"] == 1
    assert found["best projection", "sums"] == 1


def test_numbers_that_are_missing_cost_nothing():
    table = evidence(("kpca", "observed", 0, "procrustes")).table()
    place = SCHEMA.get_field_index("value")
    empty = Evidence.of_table(table.set_column(place, SCHEMA.field(place), pa.array([None], pa.float64())))
    assert not any(Needs.of(empty).counts.values())


@pytest.mark.parametrize("need", needs.NEEDS, ids=lambda need: f"{need.stage}: {need.kernel}")
def test_measures_are_known(need):
    from attnaudit.measures import MEASURES

    assert set(need.measures) <= set(MEASURES)
