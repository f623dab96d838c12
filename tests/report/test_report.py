from rich.console import Console

from attnaudit.papers.head_figures import GammaRecord, NormRecord
from attnaudit.papers.tables import TABLES as STUDY_TABLES
from attnaudit.papers.tables import Comparison
from attnaudit.records.audit_summary import Statistic
from attnaudit.report.data_files import write_csv
from attnaudit.report.drawing import for_screen_and_print
from attnaudit.report.head_figures import gamma_figure, norm_figure
from attnaudit.report.terminal import comparison_table, statistics_table


def printed(table):
    console = Console(width=150, record=True)
    console.print(table)
    return console.export_text()


def test_missing_numbers_are_shown_as_missing_not_as_zero():
    entry = Comparison("m", "MDC", None, None, None, 2, 0, 12)
    text = printed(comparison_table(STUDY_TABLES["table1"], [entry]))
    assert "–" in text
    assert "12" in text
    lost = Statistic(None, None, None, None, None, None, 0, {"x": 3})
    assert "missing" in printed(statistics_table("m", {"linear_cka": lost}))


def test_model_names_are_not_taken_for_markup():
    entry = Comparison("[red]evil[/red]", "MDC", (0.1,), 0.2, None, 2, 3, 0)
    assert "[red]evil[/red]" in printed(comparison_table(STUDY_TABLES["table1"], [entry]))


def test_figures_are_the_same_bytes_every_time_and_escape_names(tmp_path):
    records = [
        NormRecord(f"<script>{m}", layer, quantity, 1e-3, 1e-2, 1e-1, 9)
        for m in range(4)
        for layer in range(3)
        for quantity in ("phi_norm2", "output_norm2")
    ]
    gammas = [
        GammaRecord("m", vectors, kind, component, 1e-11, 1e-12)
        for vectors in ("true", "perturbed")
        for kind in ("absolute", "relative")
        for component in range(5)
    ]
    for draw, data in ((norm_figure, records), (gamma_figure, gammas)):
        once, again = for_screen_and_print(tmp_path, "once"), for_screen_and_print(tmp_path, "again")
        draw(data, once)
        draw(data, again)
        assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
        assert "<script>" not in (tmp_path / "once.svg").read_text()
    write_csv(records, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "model,layer,quantity,lower,median,upper,count"
