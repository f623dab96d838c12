"""Views of heads on disk: read as they were written, and never taken for an audit."""

import numpy as np
import pytest

from attnaudit.api.reports import report
from attnaudit.errors import RunFolderError
from attnaudit.records.audit import open_audit
from attnaudit.records.head_views import FOLDER, read_views
from tests.report.head_views import picture_view, text_view, write_views
from tests.report.synthetic import write_run


def assert_same(found, expected):
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif hasattr(expected, "__dict__"):
        for name, value in vars(expected).items():
            assert_same(getattr(found, name), value)
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for own, other in zip(found, expected, strict=True):
            assert_same(own, other)
    else:
        assert found == expected


def test_views_are_read_as_they_were_written(tmp_path):
    views = [
        picture_view(),
        text_view(["a", "</b>"]),
        text_view(["a"], columns=None, block=None, problem="no", bound=None),
    ]
    assert_same(tuple(read_views(write_views(tmp_path, views))), tuple(views))


def test_a_run_without_views_has_none(tmp_path):
    assert read_views(tmp_path) == []


def test_views_are_not_an_audit(tmp_path):
    run = write_views(write_run(tmp_path / "run"), [picture_view()])
    with pytest.raises(RunFolderError, match="holds maps of heads, which the page of their audit shows: give"):
        report(run / FOLDER)
    with pytest.raises(RunFolderError, match="holds maps of heads, not an audit"):
        open_audit(run / FOLDER)
