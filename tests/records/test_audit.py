"""Audits in folders: what was written comes back typed, and what was damaged is named."""

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.audit import open_audit
from attnaudit.records.audit_summary import Statistic
from attnaudit.records.verdict import VerdictWord
from attnaudit.report.page.document import document
from tests.claims.test_edited_folders import GONE, edited, places, refusal
from tests.report.synthetic import JUDGED, write_run
from tests.sealed import content_of, seal


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run", layers=1, heads=2, inputs=2, lost=0.2, seed=3)


def test_what_an_audit_wrote_comes_back(folder):
    run = open_audit(folder)
    assert (run.name, run.models, run.protocol, run.seed) == ("run", ["model"], "exact", 3)
    assert [verdict.claim for verdict in run.verdicts] == list(JUDGED)
    assert all(isinstance(verdict.word, VerdictWord) for verdict in run.verdicts)
    statistic = run.statistic("model", "procrustes", "kpca")
    assert isinstance(statistic, Statistic)
    assert statistic.n + statistic.lost == 4
    assert run.settings.certificates == {"blocks.0.attn": 1e-7}
    assert run.summary.skipped_inputs == (("broken<b>.png", "truncated"),)
    assert len(run.evidence) == len(run.rows)
    assert "kpca-values" in repr(run)


def test_a_statistic_that_the_summary_lacks_is_named(folder):
    run = open_audit(folder)
    for measure, theory in (("nothing", "kpca"), ("procrustes", "ksvd")):
        with pytest.raises(RunFolderError, match=rf"summary\.json has no statistic of {measure} .* theory {theory}"):
            run.statistic("model", measure, theory)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_no_edit_of_one_value_ends_in_a_traceback(folder, name):
    content = content_of(folder / name)
    every = list(places(content))
    said = []
    for place in every[:: len(every) // 20 + 1]:
        for value in (GONE, None, "x", -1, [], {}):
            seal(folder / name, edited(content, place, value))
            said.append(refusal(lambda: document([open_audit(folder)])))
    refused = list(filter(None, said))
    assert len(refused) > len(said) / 2
    assert all("\n" not in words and str(folder) in words for words in refused)


@pytest.mark.parametrize(
    ("name", "place", "fault"),
    [
        ("run.json", ("identity", "settings", "protocol"), "identity.settings.protocol is missing"),
        ("run.json", ("certificates",), "certificates is missing"),
        ("summary.json", ("models",), "models is missing"),
        ("summary.json", ("models", "model"), "models.model is missing"),
        ("summary.json", ("models", "model", "observed", "procrustes", "n"), "models.model.observed.procrustes.n"),
        ("summary.json", ("claims", "kpca-values"), "claims.kpca-values is missing"),
        ("summary.json", ("verdicts", 0, "word"), "verdicts[0].word is missing"),
        ("summary.json", ("verdicts", 0, "finding"), "verdicts[0].finding is missing"),
        ("summary.json", ("verdicts", 0, "scores", 1, "measure"), "verdicts[0].scores[1].measure is missing"),
    ],
)
def test_what_is_gone_is_named_with_its_file(folder, name, place, fault):
    content = content_of(folder / name)
    seal(folder / name, edited(content, place, GONE))
    with pytest.raises(RunFolderError) as caught:
        open_audit(folder)
    assert str(caught.value).startswith(f"{folder / name} is not readable as ")
    assert fault in str(caught.value)
