"""The page: what is in it, how large it is, and that no name harms anybody."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from attnaudit.errors import AttnAuditError, RunFolderError
from attnaudit.records.audit import open_audit
from attnaudit.records.measured_heads import HeadMeans, LayerQuartiles
from attnaudit.report.page import page, write_page
from attnaudit.report.page.document import document
from attnaudit.report.page.maps import head_map
from attnaudit.report.page.numbers import compact, embedded
from attnaudit.report.page.profiles import profiles
from attnaudit.report.page.write import LIMIT
from tests.report.synthetic import JUDGED, write_run
from tests.sealed import content_of, seal

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"><svg onload='alert(1)'>",
    "{{ 7 * 7 }} {% raw %}",
    "🤖" * 40,
    "\u202emoc.live\u2028 שלום",
    "x" * 10_000,
]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and all text outside of scripts."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def drawn(content):
    """The document the script reads."""
    return json.loads(re.search(r'id="data">(.*?)</script>', content, re.DOTALL)[1])


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = write_run(tmp_path_factory.mktemp("run") / "plain")
    return page([open_audit(path)]).decode()


def test_the_first_screen_says_what_was_audited_and_what_came_out(content):
    text = Elements(content).text
    assert "No head of model has kernel-PCA values: 0 of 6 heads" in text.partition("protocol")[0]
    for words in ("model", "exact", "replay error 1.0e-07", *JUDGED, "refuted: at chance", "truncated"):
        assert words in text


def test_nothing_is_fetched(content):
    for tag, attributes in Elements(content).found:
        assert tag not in ("link", "iframe", "object", "base")
        assert not attributes.keys() & {"src", "srcset"}
        assert attributes.get("href", "#").startswith("#")
    assert "default-src 'none'" in content


def test_figures_hold_the_aggregates_of_the_evidence(content):
    subject = drawn(content)["subjects"][0]
    maps = {measure["name"]: measure["map"] for measure in subject["measures"]}
    assert maps["linear_cka"]["layers"] == [0, 1]
    assert len(maps["linear_cka"]["mean"][0]) == 3
    assert maps["linear_cka"]["counted"] == 8
    assert maps["linear_cka"]["missing"] == 0
    references = [row["reference"] for row in subject["strips"][0]["rows"]]
    assert references[0] == "observed"
    assert set(references) == {"observed", "random_projection", "gaussian", "other_head", "planted", "untrained"}
    rows = {row["reference"]: row for row in subject["strips"][0]["rows"]}
    sizes = {name: tuple(rows[name][key] for key in ("inputs", "counted", "missing")) for name in rows}
    assert (sizes["observed"], sizes["untrained"]) == ((8, 48, 0), (2, 12, 0))
    assert [profile["title"].split()[0] for profile in subject["profiles"]] == [
        "Eigenvalues",
        "Largest",
        "Norms",
        "Projection",
    ]


def test_the_page_does_not_depend_on_matplotlib_and_is_the_same_every_time(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = open_audit(write_run(tmp_path / "run"))
    assert page([run]) == page([run])


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_become_text(tmp_path, name):
    path = write_run(tmp_path / "run", model=name, reason=name, lost=0.3, names=[name, name + "2"])
    content = page([open_audit(path)]).decode()
    tags = [tag for tag, _ in Elements(content).found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not any(key.startswith("on") for _, attributes in Elements(content).found for key in attributes)
    assert "{{" not in name or "{{ 7 * 7 }}" in content
    assert len(content) < 400_000
    assert drawn(content)["subjects"][0]["label"][:10] == name[:10]


@pytest.mark.parametrize("lost", [0.9, 1.0])
def test_missing_numbers_are_counted_with_their_reason(tmp_path, lost):
    path = write_run(tmp_path / "run", lost=lost, reason="the kernel has rank 0")
    content = page([open_audit(path)]).decode()
    assert "NaN" not in json.dumps(drawn(content))
    text = Elements(content).text
    assert "the kernel has rank 0" in text
    assert "missing" in text


def test_runs_are_compared(tmp_path):
    runs = [open_audit(write_run(tmp_path / name, model=f"model {name}")) for name in ("first", "second")]
    content = page(runs).decode()
    assert "2 models and runs compared" in content
    assert [subject["label"] for subject in drawn(content)["subjects"]] == [
        "model first (first)",
        "model second (second)",
    ]


def test_a_run_without_claims_and_references_has_a_page(tmp_path):
    path = write_run(tmp_path / "run")
    summary = content_of(path / "summary.json")
    nothing = {"verdicts": [], "ranking": [], "levels": {}, "threshold": None, "chance": None}
    seal(path / "summary.json", summary | nothing)
    assert "No claim was judged" in page([open_audit(path)]).decode()


def test_a_page_that_would_be_too_large_does_without_detail_and_says_so(tmp_path, monkeypatch):
    run = open_audit(write_run(tmp_path / "run", layers=8, heads=8))
    whole = page([run])
    monkeypatch.setattr("attnaudit.report.page.write.LIMIT", len(whole) - 1)
    smaller = page([run]).decode()
    assert "To keep this page small" in smaller
    monkeypatch.setattr("attnaudit.report.page.write.LIMIT", 1000)
    with pytest.raises(AttnAuditError, match="give fewer runs"):
        page([run])


def test_38_400_heads_make_a_small_page(large_page):
    content = large_page.read_bytes()
    assert len(content) < LIMIT
    assert "<dt>heads</dt><dd>384</dd>" in content.decode()


def test_settings_do_not_tell_whose_machine_it_was(content):
    assert "/home" not in content


def test_a_page_is_written_whole_or_refused(tmp_path):
    run = open_audit(write_run(tmp_path / "run"))
    assert write_page([run], tmp_path / "page.html").read_bytes().startswith(b"<!doctype html>")
    with pytest.raises(AttnAuditError, match="cannot be written"):
        write_page([run], tmp_path / "nowhere" / "page.html")


def test_folders_that_are_no_finished_run_are_refused(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        open_audit(tmp_path)
    path = write_run(tmp_path / "run")
    next((path / "evidence").iterdir()).rename(tmp_path / "away")
    with pytest.raises(RunFolderError, match="lacks 1 of its 1 parts"):
        open_audit(path)
    (path / "summary.json").unlink()
    with pytest.raises(RunFolderError, match="not finished"):
        open_audit(path)


def test_numbers_are_short_and_finite():
    assert [compact(x) for x in (0.123456, 12.0, float("nan"), None, 7.7e-12)] == [0.1235, 12, None, None, 7.7e-12]
    assert embedded({"a": "</script>&\u2028"}) == '{"a":"\\u003c/script\\u003e\\u0026\\u2028"}'


def test_strips_keep_the_extremes(tmp_path):
    found = document([open_audit(write_run(tmp_path / "run", layers=10, heads=10, inputs=5))])
    row = found.subjects[0].strips[0].rows[0]
    assert row.counted == 500
    assert len(row.points) == 200
    assert row.points == sorted(row.points)


def test_layers_with_different_numbers_of_heads_leave_no_false_heads():
    numbers = ([0, 1, 1], [0, 0, 1], [1.0, np.nan, 3.0], [np.nan] * 3, [1, 0, 1], [0, 1, 0])
    found = head_map(HeadMeans(1, *map(np.array, numbers)))
    assert found.mean == [[1, None], [None, 3]]
    assert found.counted == [[1, 0], [0, 1]]
    assert found.missing == [[0, 0], [1, 0]]


def test_the_bound_and_the_floor_are_drawn_from_unrounded_means():
    one = LayerQuartiles([0], [1.00001], [1.0], [1.0], [1.0])
    floor = LayerQuartiles([0], [1.0], [1.0], [1.0], [1.0])
    (chart,) = profiles({"projection_error_floor": floor, "projection_error_matched": one})
    assert chart.lines[1].middle[0] == pytest.approx(1e-5, rel=1e-3)
