"""Tables for the terminal fit into 80 columns without cutting a word, and have all columns on request."""

import io
from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console

from attnaudit.audit.difference import Change, Difference
from attnaudit.papers.tables import TABLES, Comparison
from attnaudit.records.audit_summary import Statistic
from attnaudit.records.verdict import Finding, MeanEstimate, Rank, Score, Verdict, VerdictWord
from attnaudit.report.console import data_console
from attnaudit.report.difference import difference_report
from attnaudit.report.listings import LISTINGS, listing, listing_table
from attnaudit.report.score_tables import ranking_table, score_table
from attnaudit.report.tables import TableColumn, TableRow, terminal_table
from attnaudit.report.terminal import comparison_table, statistics_table

SCORE = Score(
    "projection_alignment_rotated",
    MeanEstimate(-0.123, (-0.234, -0.012)),
    reach=MeanEstimate(0.5, (0.4, 0.6)),
    means={"observed": 0.1234, "null": -0.01234, "planted": 1.0},
    null="null",
    inputs=100,
)
UNDECIDED = (VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE)
MODEL = "vit_base_patch16_224.augreg2_in21k_ft_in1k"
STATISTIC = Statistic(1.234e-5, 1.234e-5, 9.876e-5, 1.234e-9, (1.234e-5, 9.876e-5), 1e-5, 38_400, {"lost": 1_234})
VERDICT = Verdict("c", MODEL, *UNDECIDED, "r", (SCORE,))
RANK = Rank(MODEL, "kernel-regression", 0.1, (SCORE,), *UNDECIDED, 1, 100, 384)
COMPARISON = Comparison(MODEL, "median", (17.73, 0.12), 0.001, 0.0002, 2, 38_400, 12)
INTERVAL = (-1.234e-5, 9.876e-5)
CHANGE = Change((MODEL,) * 2, "standardised_eigenvalue_median", "kpca", 1e-5, INTERVAL, 100, 38_400, 12, (3, 4))
TABLES_SHOWN = {
    "scores": partial(score_table, MODEL, [("kpca-values-any-gauge", VERDICT)]),
    "ranking": partial(ranking_table, [RANK]),
    "statistics": partial(statistics_table, MODEL, {"standardised_eigenvalue_median": STATISTIC}),
    "comparison": partial(comparison_table, TABLES["table2"], [COMPARISON]),
    "difference": partial(difference_report, Difference((CHANGE,), (), (), 0.9995)),
    **{name: partial(listing_table, listing(name)) for name in LISTINGS},
}


def printed(content, width):
    text = io.StringIO()
    Console(file=text, width=width).print(content)
    return text.getvalue()


@pytest.mark.parametrize("name", TABLES_SHOWN)
def test_tables_fit_into_80_columns_and_cut_nothing(name):
    shown = printed(TABLES_SHOWN[name](), 80)
    assert max(map(cell_len, shown.splitlines())) <= 80
    words = {
        word for word in printed(TABLES_SHOWN[name](), 1000).split() if len(word) < 18
    }  # longer names may be folded
    assert words <= set(shown.split())


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("scores", "noise allowed"),
        ("ranking", "realised"),
        ("statistics", "median"),
        ("comparison", " values "),
        ("difference", "unpaired"),
        ("measures", "cost"),
        ("claims", "judged by"),
    ],
)
def test_the_other_columns_are_shown_on_request(name, extra):
    assert extra not in printed(TABLES_SHOWN[name](), 1000).partition("─")[0]
    assert extra in printed(TABLES_SHOWN[name](wide=True), 1000).partition("─")[0]


@pytest.mark.parametrize("name", LISTINGS)
def test_a_wide_listing_breaks_no_word(name):
    rows = listing(name)
    words = {word for row in rows for cell in row.values() if cell is not None for word in str(cell).split()}
    width = data_console(wide=True).width
    assert words <= set(printed(listing_table(rows, wide=True), width).split())


def test_a_row_may_be_shorter_than_the_table():
    columns = [TableColumn("a"), TableColumn("b", extra=True), TableColumn("c")]
    rows = [TableRow(["title"]), TableRow(["1", "2", "3"])]
    assert printed(terminal_table("", columns, rows), 80).split() == ["a", "c", "─" * 9, "title", "1", "3"]
    assert "2" in printed(terminal_table("", columns, rows, wide=True), 80)
