import re

import pytest

from attnaudit.report.drawing import drawing, for_screen_and_print

pytest.importorskip("matplotlib")


def draw(path, *, scale, label="size"):
    with drawing([path], 1, 1, (2, 2)) as axes:
        axes[0, 0].plot([1, 10], [1, 10])
        axes[0, 0].set(yscale=scale, ylabel=label)
    return path


def test_a_log_axis_says_that_it_is_one_and_a_linear_one_does_not(tmp_path):
    assert "size (log scale)" in draw(tmp_path / "log.svg", scale="log").read_text()
    assert "log scale" not in draw(tmp_path / "linear.svg", scale="linear").read_text()
    assert "log scale" not in draw(tmp_path / "unlabelled.svg", scale="log", label="").read_text()


def test_a_pdf_has_no_date_and_its_fonts_are_embedded_truetype(tmp_path):
    content = draw(tmp_path / "a.pdf", scale="log").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Subtype /Type3" not in content
    assert not re.search(rb"Date|20\d\d(0\d|1[0-2])[0-3]\d", content.split(b"stream")[0] + content[-2000:])


def test_drawing_leaves_the_style_of_others_alone(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(tmp_path / "a.svg", scale="log")
    assert dict(matplotlib.rcParams) == before


def test_a_drawing_that_fails_writes_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), drawing(for_screen_and_print(tmp_path, "a"), 1, 1, (2, 2)):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
