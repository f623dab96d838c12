"""All models one after the other: each an ordinary run, resumable, and one that fails does not stop the others."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import attnaudit
from attnaudit.api import atlas as api
from attnaudit.api.atlas_runs import AtlasRuns
from attnaudit.errors import RunFolderError, UsageError, WeightsError
from attnaudit.sources import catalogue
from attnaudit.sources.atlas import registry
from attnaudit.sources.model import Sample
from tests.sources.atlas.built import WIDTH, built_entry

LIMIT = 8


def series(folder):
    source = torch.Generator().manual_seed(0)
    return [Sample(f"series-{n}", {"rows": torch.randn(1, 24, WIDTH, generator=source)}) for n in range(LIMIT)]


def fails(folder):
    raise WeightsError("It tells no story.")


@pytest.fixture
def models(tmp_path, monkeypatch):
    """Three models of which the second is not the trained one, and nothing else."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ATTNAUDIT_DATA", str(data))
    found = {}
    for name, field, options in (("one", "tables", {}), ("two", "speech", {"check": fails}), ("three", "music", {})):
        own = built_entry(data / "files", name, samples=series, reads="series")
        found[name] = replace(own, field=field, **options)
    monkeypatch.setattr(registry, "ATLAS", found)
    monkeypatch.setattr(catalogue, "ATLAS", found)
    monkeypatch.setattr("attnaudit.sources.atlas_models.ATLAS", found)
    monkeypatch.setattr(api, "catalogue", lambda: {n: own for n, own in catalogue.catalogue().items() if n in found})
    return found


@pytest.fixture
def finished(models, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "_JUDGED", ("kpca-values", "keys-linear"))
    return attnaudit.atlas(tmp_path / "atlas", limit=LIMIT, workers=1, progress=False)


def test_every_model_has_a_run_a_page_and_a_card_and_one_failure_stops_none(finished):
    assert [own.entry.name for own in finished.audits] == ["three", "one"], "by field"
    assert [(own.entry.name, own.reason) for own in finished.failures] == [
        ("two", "two was not converted: It tells no story.")
    ]
    for name in ("one", "three"):
        folder = finished.path / name
        assert attnaudit.open(folder).models == [name]
        assert (folder / "report.html").is_file()
        assert f"attnaudit audit {name} --limit {LIMIT}" in (folder / "card.md").read_text()
        assert json.loads((folder / "card.json").read_text())["inputs"] == LIMIT
    page = finished.page.read_text()
    assert "It tells no story." in page
    assert 'href="one/report.html"' in page


def test_what_is_finished_is_not_computed_again_and_stays_on_the_page(finished, models, monkeypatch):
    def refused(*args, **options):
        raise AssertionError("computed again")

    monkeypatch.setattr(api, "audit", refused)
    again = attnaudit.atlas(finished.path, limit=LIMIT, models=["atlas:one"], progress=False)
    assert [own.entry.name for own in again.audits] == ["three", "one"]
    assert not again.failures
    assert [own.seconds for own in again.audits] == [own.seconds for own in finished.audits]
    assert again.audits[0].verdicts == finished.audits[0].verdicts
    failed = attnaudit.atlas(finished.path, limit=LIMIT, progress=False)
    assert [own.reason for own in failed.failures] == ["AssertionError: computed again"]


def test_summaries_give_the_same_verdicts(finished, models, tmp_path):
    kept = attnaudit.atlas(tmp_path / "kept", models=["one"], limit=LIMIT, workers=1, keep="summaries", progress=False)
    rows = next(own for own in finished.audits if own.entry.name == "one")
    for claim, verdict in rows.verdicts.items():
        found = kept.audits[0].verdicts[claim]
        assert (found.word, found.finding) == (verdict.word, verdict.finding)


def test_rows_become_summaries_when_asked_for(finished, models, caplog):
    again = attnaudit.atlas(finished.path, models=["one"], limit=LIMIT, workers=1, keep="summaries", progress=False)
    kept = {own.entry.name: own for own in again.audits}
    assert (kept["one"].settings.keep, kept["three"].settings.keep) == ("summaries", "rows"), "only what is asked for"
    before = next(own for own in finished.audits if own.entry.name == "one")
    assert kept["one"].seconds == before.seconds
    assert {name: own.words for name, own in kept["one"].verdicts.items()} == {
        name: own.words for name, own in before.verdicts.items()
    }


def test_rows_that_cannot_become_summaries_stay_and_it_is_said(finished, models, monkeypatch, caplog):
    def refused(*args, **options):
        raise WeightsError("It is gone.")

    monkeypatch.setattr(api, "audit", refused)
    again = attnaudit.atlas(finished.path, models=["one"], limit=LIMIT, keep="summaries", progress=False)
    assert "one keeps its rows: It is gone." in caplog.messages
    assert not again.failures


def test_a_run_that_the_atlas_would_not_make_is_a_failure(finished, models):
    shutil.rmtree(finished.path / "one")
    options = {"random_weights": True, "limit": 4, "claims": [], "workers": 1, "progress": False}
    attnaudit.audit("one", out=finished.path / "one", **options)
    found = attnaudit.atlas(finished.path, models=["one"], limit=LIMIT, progress=False)
    assert [own.entry.name for own in found.audits] == ["three"]
    [failure] = found.failures
    wanted = (
        "one holds another run than the atlas would make (random weights, claims kpca-values and keys-linear missing"
    )
    assert wanted in failure.reason
    run, runs = attnaudit.open(finished.path / "three"), AtlasRuns.of(api._JUDGED, LIMIT, 0, "cpu")
    entry = found.audits[0].entry
    runs.check(run, entry)
    identity, summary = run.settings.identity, run.summary
    for other, difference in (
        (with_identity(run, settings=replace(identity.settings, theories=("kpca", "pca"))), "8 theories missing"),
        (with_identity(run, settings=replace(identity.settings, seed=1)), "seed 1 and not 0"),
        (with_identity(run, settings=replace(identity.settings, protocol="paper")), "protocol paper and not exact"),
        (with_identity(run, inputs=identity.inputs[:4]), "4 inputs and not 8"),
        (with_identity(run, inputs=identity.inputs * 2), "16 inputs and not 8"),
        (replace(run, summary=replace(summary, threshold=0.5)), "threshold 0.5 and not 0.8"),
        (replace(run, summary=replace(summary, claims={**summary.claims, "own": None})), "claim own in addition"),
    ):
        with pytest.raises(RunFolderError, match=rf"\({difference}\): move it elsewhere"):
            runs.check(other, entry)
    runs.check(with_identity(run, settings=replace(identity.settings, device="cuda")), entry)


def with_identity(run, **changes):
    return replace(run, settings=replace(run.settings, identity=replace(run.settings.identity, **changes)))


def test_a_model_may_have_fewer_inputs_than_the_limit(models, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "_JUDGED", ("kpca-values",))
    for _ in range(2):
        found = attnaudit.atlas(tmp_path / "atlas", models=["one"], limit=LIMIT + 1, workers=1, progress=False)
        assert (len(found.audits), len(found.failures)) == (1, 0)


def test_a_folder_with_other_settings_is_refused(finished):
    with pytest.raises(RunFolderError, match=r"other limit \(8 there, 9 here\)"):
        attnaudit.atlas(finished.path, limit=9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ["visions"]}, "did you mean vision"),
        ({"models": ["on"]}, "did you mean one"),
        ({"models": ["one"], "only": ["music"]}, "None of these models is of the field music"),
        ({"models": []}, "--models none leaves nothing to audit"),
        ({"limit": -1}, "--limit must be ≥ 1, got -1"),
        ({"memory": "0"}, "--memory .* is too little"),
        ({"cluster": "foo"}, "--cluster must be an address"),
        ({"workers": 0}, "--workers must be ≥ 1"),
        ({"device": "tpu"}, "device must be"),
        ({"keep": "nothing"}, "Unknown keep 'nothing'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_made(models, tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        attnaudit.atlas(tmp_path / "atlas", **options)
    assert not (tmp_path / "atlas").exists()


def test_a_model_that_needs_a_download_is_a_failure_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    found = attnaudit.atlas(tmp_path / "atlas", models=["mgm"], progress=False)
    assert "with --download" in found.failures[0].reason
    assert found.page.is_file()


def test_fields_of_all_models_are_known():
    assert {own.field for own in catalogue.catalogue().values()} <= {*catalogue.FIELDS}
