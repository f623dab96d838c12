"""How our objects look when they are printed, and in a notebook."""

import torch
from torch import nn

import attnaudit
from attnaudit.display import html_table, shortened
from attnaudit.kernel import spectrum
from attnaudit.records.audit import open_audit
from attnaudit.report.notebook import notebook_view
from tests.report.synthetic import write_run


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


def test_captures_heads_and_spectra_say_what_they_hold():
    captured = attnaudit.capture(Encoder(), torch.randn(3, 20, 16), model_name="<b>evil")
    found = spectrum(captured.heads.key, 4)
    assert repr(found) == "Spectrum(6 heads x 4 eigenpairs of 20 tokens; 6 dense)"
    assert "largest eigenvalue" in found._repr_html_()
    assert "replay error" in captured._repr_html_()
    shown = captured.heads._repr_html_()
    assert "&lt;b&gt;evil" in shown
    assert "<b>" not in shown


def test_a_run_has_a_page_and_a_face(tmp_path):
    run = attnaudit.audit(Encoder(), torch.randn(3, 40, 16), claims=["kpca-values"], references=["gaussian", "planted"])
    assert isinstance(run, attnaudit.Run)
    assert repr(run).startswith("Run(")
    assert repr(run.rows) == f"Evidence({len(run.rows):,} rows)"
    shown = run._repr_html_()
    assert "It is undecided whether heads of Encoder have kernel-PCA values: " in shown
    assert "undecided: too few inputs" in shown
    assert ">heads</th>" not in shown  # an empty column is left out
    assert "kpca-values" in shown
    assert run.report() == run.path / "report.html"
    assert run.report(tmp_path / "mine.html").read_text() == (run.path / "report.html").read_text()


def test_names_in_the_view_of_a_run_are_escaped(tmp_path):
    run = open_audit(write_run(tmp_path / "run", model="<img src=x>"))
    shown = notebook_view(run)
    assert "&lt;img src=x&gt;" in shown
    assert "<img" not in shown
    assert "0 of 6" in shown


def test_text_of_any_length_is_shown_short_and_escaped():
    assert len(shortened("x" * 10_000)) == 200
    assert shortened("short") == "short"
    assert "<script>" not in html_table("<script>", [("<script>", "<script>" * 9)])
