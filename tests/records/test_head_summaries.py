"""Summaries answer what the rows that they are of would answer."""

import numpy as np
import pytest

from attnaudit.audit.folding import fold, kept_statistics
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.summary import statistics
from attnaudit.records.evidence import Evidence
from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.head_summaries import HeadSummaries
from attnaudit.records.scored_heads import ScoredHeads
from attnaudit.records.sketch import ERROR
from attnaudit.records.summary_rows import SUMMARY_SCHEMA, SummaryRows
from attnaudit.statistics.scores import Bounds, score_of
from tests.records.simulated_rows import GROUPS, MODEL, ROLES, SAMPLED, THEORIES, Simulation

MARKS = ("identifiable", "possible")
SELECTION = AuditSettings(theories=tuple(THEORIES), references=ROLES).selection()


@pytest.fixture(scope="module")
def rows():
    return Evidence.of_table(Simulation().rows())


@pytest.fixture(scope="module")
def table(rows):
    return fold(rows, SELECTION, GROUPS)


@pytest.fixture(scope="module")
def both(rows, table):
    return HeadRows(rows, GROUPS), HeadSummaries(SummaryRows.of_table(table))


def equal(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in vars(one))


def test_they_are_of_the_same_measures_in_the_same_order(both):
    rows, summaries = both
    assert summaries.measured() == rows.measured()


def test_means_of_heads_are_the_same(both):
    rows, summaries = both
    for group in rows.measured():
        null = THEORIES[group.theory][1]
        for reference in (
            ("observed", null, "planted", "best_projection") if group.measure not in MARKS else ("observed",)
        ):
            assert equal(summaries.means(group, reference), rows.means(group, reference))


def test_quartiles_of_layers_are_the_same(both):
    rows, summaries = both
    assert all(summaries.layer_quartiles(group) == rows.layer_quartiles(group) for group in rows.measured())


def test_distributions_have_the_same_numbers_and_nearly_the_same_dots(both):
    rows, summaries = both
    for group in rows.measured():
        exact, found = rows.distributions(group), summaries.distributions(group)
        assert (found.heads, found.unidentifiable) == (exact.heads, exact.unidentifiable)
        drawn = {*exact.references} - {*SAMPLED, "untrained"} if group.measure not in MARKS else {}
        assert {*found.references} == {*drawn}
        for name, own in found.references.items():
            theirs = exact.references[name]
            assert all(getattr(own, key) == getattr(theirs, key) for key in ("counted", "missing", "inputs", "mean"))
            assert own.evenly_ranked(50) == pytest.approx(theirs.evenly_ranked(50), rel=1.01 * ERROR)


def test_statistics_are_the_same(rows, table):
    placed = {(group, reference): own for group, reference, own in statistics(rows, SELECTION, GROUPS)}
    kept = {(group, reference): own for group, reference, own in kept_statistics(SummaryRows.of_table(table))}
    assert kept == placed


def test_what_was_never_measured_has_no_score_but_its_theorems(both):
    for heads in both:
        found = heads.scored(Group(MODEL, "ksvd", "linear_cka"), lambda table: ScoredHeads(impossible=table.impossible))
        assert found == ScoredHeads(impossible={"a theorem": 2})
        assert score_of(found, "linear_cka", Bounds()).score is None


def test_a_table_that_was_read_is_written_again_as_it_was(table):
    assert table.schema.equals(SUMMARY_SCHEMA)
    assert SummaryRows.of_table(table).table().equals(table)
    assert SummaryRows().table().equals(SUMMARY_SCHEMA.empty_table())
