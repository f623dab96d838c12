"""The page and figure of a monitor or a training."""

import itertools
import re
from xml.etree import ElementTree

import pytest
import torch

from attnaudit.report.course import course_page, write_course_page
from attnaudit.report.course.chart import Chart, Curve, chart_svg
from attnaudit.report.course.scale import Scale, fitted_scale
from attnaudit.training import Monitor, open_course
from tests.training.networks import CHANNELS, batch, network
from tests.training.rows import quiet

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("watched") / "run"
    batches = {"train": batch(), HOSTILE.replace("/", "-"): batch(seed=2)}
    with Monitor(network(), batches, out=path, name=HOSTILE, tell=quiet) as monitor:
        for step in (0, 500):
            monitor.measure(step)
    return path


def test_the_page_says_what_was_found_first_and_up_to_which_step(folder):
    page = course_page([open_course(folder)]).decode()
    assert page.index("Alignment of values with kernel PCA at step 500") < page.index("<svg")
    assert "too few to decide: 8 are needed" in page
    assert "Up to step 500; the monitor measured 2 steps." in page
    for title in ("Scores, train", "Projection error J", "Norms", "Layers at step 500"):
        assert title in page


def test_courses_of_one_name_are_told_apart_by_their_folder(tmp_path):
    for name in ("one", "two"):
        with Monitor(network(), {"train": batch()}, out=tmp_path / name, name="vit", tell=quiet) as monitor:
            monitor.measure(0)
    page = course_page([open_course(tmp_path / name) for name in ("one", "two")]).decode()
    assert re.findall("<h1><bdi>(.*?)</bdi></h1>", page) == [f"vit ({tmp_path / name})" for name in ("one", "two")]


def test_the_page_has_no_script_and_nothing_from_elsewhere(folder):
    page = course_page([open_course(folder)]).decode()
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert re.findall(r"https?://[^\"']*", page) == ["http://www.w3.org/2000/svg"] * page.count("<svg")
    assert "prefers-color-scheme: dark" in page


def test_only_the_page_of_a_running_course_is_read_again_by_the_browser(folder):
    assert "refresh" not in course_page([open_course(folder)]).decode()
    monitor = Monitor(network(), batch(), out=folder.parent / "running", scores=0, tell=quiet)
    monitor.measure(0)
    page = course_page([open_course(folder.parent / "running")]).decode()
    assert '<meta http-equiv="refresh"' in page
    assert "Still running: process" in page
    monitor.detach()


def test_the_figure_of_a_course_is_well_formed(folder, tmp_path):
    figure, page = write_course_page([open_course(folder)], tmp_path / "page.html")
    assert (figure.name, page.name) == ("course.svg", "page.html")
    charts = ElementTree.parse(figure).getroot().findall("{http://www.w3.org/2000/svg}svg")
    assert len(charts) == 4


def test_a_monitor_that_has_measured_nothing_yet_has_a_page(tmp_path):
    monitor = Monitor(network(), batch(), out=tmp_path / "run", tell=quiet)
    assert len(monitor.rows) == 0, "which opens the folder"
    (page,) = write_course_page([open_course(tmp_path / "run")], tmp_path / "page.html")
    assert "Nothing was measured yet" in page.read_text()
    monitor.detach()


def test_names_of_curves_that_end_together_do_not_lie_on_one_another():
    curves = tuple(Curve(f"curve {number}", ((0, 1.0, None), (9, 1.0, None))) for number in range(6))
    drawn = ElementTree.fromstring(chart_svg(Chart("six", "", curves)))
    heights = sorted(float(text.get("y")) for text in drawn.iter() if (text.get("class") or "").startswith("name"))
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 12
    assert heights[-1] < 250


def test_one_step_can_be_drawn():
    assert "<circle" in chart_svg(Chart("one", "", (Curve("a", ((7, 0.0, None),)),)))


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([1.0, 100.0], True), ([1.0, 10.0], False), ([0.0, 100.0], False), ([-1.0, 100], False)]
)
def test_a_scale_is_logarithmic_only_for_positive_values_of_very_different_size(values, logarithmic):
    assert fitted_scale(values, 0, 1, may_be_logarithmic=True).logarithmic == logarithmic


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.37, 0.91), (3, 3.001), (0, 123_456), (-5e9, 1e-9)])
def test_ticks_are_few_and_inside_their_scale(low, high):
    ticks = Scale(low, high, 0, 1).ticks
    assert 2 <= len(ticks) <= 6
    assert all(low - 1e-9 * abs(high - low) <= tick <= high + 1e-9 * abs(high - low) for tick in ticks)


def test_ticks_of_a_logarithmic_scale_are_powers_of_ten():
    assert Scale(0.05, 2000, 0, 1, logarithmic=True).ticks == [0.1, 1, 10, 100, 1000]


def test_a_page_without_scores_says_why(tmp_path):
    few = torch.randn(4, 5, CHANNELS)  # tokens, of which heads with 4 dimensions need 8
    with Monitor(network(), {"train": few}, out=tmp_path / "run", tell=quiet) as monitor:
        monitor.measure(0)
    page = course_page([open_course(tmp_path / "run")]).decode()
    assert "Alignment of values with kernel PCA has no score: heads have fewer than 2d tokens" in page
    assert "Scores at step" not in page
