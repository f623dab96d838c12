from contextlib import contextmanager
from dataclasses import replace

import pytest

from attnaudit.papers.training_curves import FIGURE1, FIGURE4, curves
from attnaudit.records.training import open_training
from attnaudit.report import study_curves
from attnaudit.report.drawing import drawing, for_screen_and_print
from attnaudit.report.study_curves import error_curves, norm_curves
from tests.training_runs import write_training

pytest.importorskip("matplotlib")
DRAW = [(norm_curves, FIGURE1), (error_curves, FIGURE4)]


def drawn(folder, draw, measures, name="figure", **of_run):
    runs = [
        open_training(path if path.exists() else write_training(path, name=path.name, dim=dim, **of_run))
        for path, dim in ((folder / "vit", 64), (folder / "deit", 32), (folder / "narrow", 16))
    ]
    paths = for_screen_and_print(folder, name)
    draw([replace(own, run=own.run.replace("vit", "vit<b>")) for own in curves(runs, measures)], paths)
    return paths


@pytest.mark.parametrize(("draw", "measures"), DRAW)
def test_curves_are_the_same_bytes_every_time(tmp_path, draw, measures):
    once, again = (drawn(tmp_path, draw, measures, name) for name in ("once", "again"))
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


@pytest.mark.parametrize(("draw", "measures"), DRAW)
def test_curves_say_what_they_are(tmp_path, draw, measures):
    text = drawn(tmp_path, draw, measures)[0].read_text()
    assert "(log scale)" in text
    assert "hollow: published ViT-Tiny" in text
    assert "hollow: published DeiT-Tiny" in text
    assert "q and k standardised" in text
    assert "vit<b>" not in text
    assert "vit&lt;b&gt;" in text


@pytest.mark.parametrize(("draw", "measures"), DRAW)
def test_runs_with_one_batch_and_lost_numbers_are_drawn(tmp_path, draw, measures):
    text = drawn(tmp_path, draw, measures, batches=("test",), lost=(0, 1), layers=1, heads=1)[0].read_text()
    assert "test" in text
    assert "train" not in text


@pytest.mark.parametrize("batches", [("train", "test"), ("test",), ("train",)])
def test_norms_are_drawn_on_one_batch_with_a_name_at_every_curve(tmp_path, batches):
    text = drawn(tmp_path, norm_curves, FIGURE1, batches=batches)[0].read_text()
    assert f"mean over the {batches[-1]} batch" in text
    assert text.count("legend") == 0


def test_panels_of_norms_have_one_scale(tmp_path, monkeypatch):
    found = []

    @contextmanager
    def watched(*arguments):
        with drawing(*arguments) as axes:
            yield axes
            found.extend((axis.get_xlim(), axis.get_ylim()) for axis in axes.flat if axis.get_visible())

    monkeypatch.setattr(study_curves, "drawing", watched)
    drawn(tmp_path, norm_curves, FIGURE1)
    assert len(found) == 3
    assert len(set(found)) == 1
