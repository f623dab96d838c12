from dataclasses import replace

import pytest

from attnaudit.papers.training_curves import FIGURE1, FIGURE4, curves
from attnaudit.records.training import open_training
from attnaudit.report.drawing import for_screen_and_print
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
    assert "published: ViT-Tiny" in text
    assert "published: DeiT-Tiny" in text
    assert "published (hollow)" in text
    assert "q and k standardised" in text
    assert "vit<b>" not in text
    assert "vit&lt;b&gt;" in text


@pytest.mark.parametrize(("draw", "measures"), DRAW)
def test_runs_with_one_batch_and_lost_numbers_are_drawn(tmp_path, draw, measures):
    text = drawn(tmp_path, draw, measures, batches=("test",), lost=(0, 1), layers=1, heads=1)[0].read_text()
    assert "test" in text
    assert "train" not in text
