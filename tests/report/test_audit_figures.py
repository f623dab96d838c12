"""The figures of an audit: what they show, and that empty ones are not drawn."""

from dataclasses import replace

import pytest

from attnaudit.records.audit import open_audit
from attnaudit.records.verdict import Finding, LayerScore, MeanEstimate, Rank, Score, VerdictWord
from attnaudit.report.references import reference_figure
from attnaudit.report.theory_map import theory_figure
from tests.report.synthetic import write_run

pytest.importorskip("matplotlib")


def test_axes_say_which_end_is_better(tmp_path):
    run = open_audit(write_run(tmp_path / "run"))
    assert reference_figure(run, tmp_path / "references.svg")
    assert (tmp_path / "references.svg").read_text().count("better →") == 3


def test_references_without_any_number_are_not_drawn(tmp_path):
    run = open_audit(write_run(tmp_path / "run", lost=1.0))
    assert not reference_figure(run, tmp_path / "references.svg")
    assert not (tmp_path / "references.svg").exists()


@pytest.mark.parametrize(("mean", "drawn"), [(0.5, True), (0.0, False)])
def test_a_map_of_theories_that_are_all_at_chance_is_not_drawn(tmp_path, mean, drawn):
    run = open_audit(write_run(tmp_path / "run"))
    layer = LayerScore(0, MeanEstimate(mean, (mean - 0.1, mean + 0.1)))
    rank = Rank("model", "kpca", mean, (Score("m", layers=(layer,)),), VerdictWord.REFUTED, Finding.PARTIAL)
    ranked = replace(run, summary=replace(run.summary, ranking=(rank,)))
    assert theory_figure(ranked, [tmp_path / "theories.svg"]) is drawn
    assert (tmp_path / "theories.svg").exists() is drawn
