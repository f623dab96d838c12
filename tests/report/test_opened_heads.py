"""The data of heads that are opened: small, escaped, and there without maps too."""

import base64
import json
import re

import pytest

from attnaudit.records.audit import open_audit
from attnaudit.report.page import page, write
from tests.report.head_views import picture_view, text_view, write_views
from tests.report.synthetic import write_run


def subject(content):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', content.decode(), re.DOTALL)
    return json.loads(data)["subjects"][0]


def test_a_head_has_its_measures_among_references_without_any_maps(tmp_path):
    found = subject(page([open_audit(write_run(tmp_path / "run", layers=2, heads=3))]))
    assert found["views"] == []
    assert {own["measure"] for own in found["scales"]} >= {"column_cosine_matched", "procrustes"}
    for own in found["scales"]:
        assert [means["kind"] for means in own["means"] if means["kind"] != "ceiling"] == ["observed", "null", "ideal"]
        for means in own["means"]:
            assert means["layers"] == [0, 1]
            assert [len(row) for row in means["mean"]] == [3, 3]


def test_observed_means_are_those_of_the_heat_map(tmp_path):
    found = subject(page([open_audit(write_run(tmp_path / "run"))]))
    maps = {(own["name"], own["theory"]): own["map"]["mean"] for own in found["measures"]}
    for own in found["scales"]:
        assert own["means"][0]["mean"] == maps[own["measure"], own["theory"]]


@pytest.mark.parametrize("token", ["</script><img src=x onerror=alert(1)>", "<b>", "&lt;", "\u2028", '"\\'])
def test_no_token_can_become_markup(tmp_path, token):
    content = page([open_audit(write_views(write_run(tmp_path / "run"), [text_view(["plain", token], name=token)]))])
    (view,) = subject(content)["views"]
    assert view["tokens"] == ["plain", token]
    if "<" in token or token == "\u2028":
        assert token not in content.decode()


def test_maps_are_bytes_in_base64(tmp_path):
    view = picture_view()
    found = subject(page([open_audit(write_views(write_run(tmp_path / "run"), [view]))]))
    (shown,) = found["views"]
    assert base64.b64decode(shown["picture"]) == view.picture
    for head, kept in zip(shown["heads"], view.heads, strict=True):
        assert base64.b64decode(head["attention"]["codes"]) == kept.attention.codes.tobytes()
        assert head["attention"]["high"] == pytest.approx(kept.attention.high.tolist(), rel=1e-3)


def test_views_of_other_models_are_not_mixed_up(tmp_path):
    views = [picture_view(model="model"), picture_view(model="another")]
    found = subject(page([open_audit(write_views(write_run(tmp_path / "run"), views))]))
    assert len(found["views"]) == 1


def test_a_page_that_would_be_too_large_leaves_out_the_maps_first_and_says_so(tmp_path, monkeypatch):
    run = open_audit(write_views(write_run(tmp_path / "run"), [text_view(["word"] * 200)]))
    whole = page([run])
    monkeypatch.setattr(write, "LIMIT", len(whole) - 1)
    smaller = page([run])
    assert subject(smaller)["views"] == []
    assert subject(smaller)["strips"] == subject(whole)["strips"]
    assert b"it leaves out the attention maps of heads" in smaller
