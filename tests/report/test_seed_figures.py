"""Images of attentions over seeds: every number where it belongs."""

from contextlib import contextmanager

import pytest

from attnaudit.report import accuracy_by_strength, seed_gains
from attnaudit.report.accuracy_by_strength import StrengthRecord
from attnaudit.report.seed_gains import GainRecord

HELD = [
    StrengthRecord("sym", "corruption", 0.0, 500, 2, 0.8, 0.7, 0.9),
    StrengthRecord("sym", "corruption", 5.0, 500, 2, 0.4, 0.3, 0.5),
    StrengthRecord("sym", "attack", 2 / 255, 500, 2, 0.3, 0.2, 0.4),
    StrengthRecord("rpc4", "attack", 2 / 255, 500, 1, 0.6, None, None),
]
GAINS = [
    GainRecord("sym", "corrupted", 500, 2, 0.4, 0.3, 0.5, None, None, None, None),
    GainRecord("rpc4", "corrupted", 500, 2, 0.5, 0.4, 0.6, 2, 0.1, 0.05, 0.15),
    GainRecord("rpc6", "corrupted", 500, 1, 0.2, None, None, 1, -0.2, None, None),
]


@pytest.fixture
def panels(monkeypatch):
    """What is drawn on, kept to be looked at."""
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    found = []

    @contextmanager
    def drawing(paths, rows, columns, size):
        axes = figure.subplots(rows, columns, squeeze=False)
        found.extend(axes[0])
        yield axes

    for module in (seed_gains, accuracy_by_strength):
        monkeypatch.setattr(module, "drawing", drawing)
    return found


def lines(axis):
    return [
        tuple([pytest.approx(place) for place in part] for part in line.get_data())
        for line in axis.get_lines()
        if len(line.get_xdata())  # others are for the legend alone
    ]


def test_accuracy_in_per_cent_stands_in_the_row_of_its_recipe_with_its_interval_and_strength(panels):
    accuracy_by_strength.strength_figure(HELD, [])
    corrupted, attacked = panels
    assert lines(corrupted) == [([70, 90], [0, 0]), ([80], [0]), ([30, 50], [0, 0]), ([40], [0])]
    assert lines(attacked) == [([20, 40], [0, 0]), ([30], [0]), ([60], [1])]
    assert [axis.get_legend_handles_labels()[1] for axis in panels] == [["clean", "5"], ["2/255"]]
    assert [axis.get_xlim() for axis in panels] == [(20, 90), (20, 90)]  # all intervals, and the same scale
    assert [text.get_text() for text in corrupted.get_yticklabels()] == ["sym", "rpc4"]


def test_what_was_not_run_has_no_panel(panels):
    accuracy_by_strength.strength_figure(HELD[2:], [])
    assert [axis.get_title() for axis in panels] == ["under the strongest attack, by ε\n500 inputs"]


def test_a_large_gain_is_not_cut_off_because_others_are_small(panels):
    small = [GainRecord(str(number), "clean", 500, 5, 0.5, 0.4, 0.6, 5, 0.001, -0.01, 0.01) for number in range(5)]
    seed_gains.gain_figure([*small, GainRecord("ahead", "clean", 500, 5, 0.6, 0.5, 0.7, 5, 0.07, 0.06, 0.08)], [])
    assert panels[0].get_xlim() == (pytest.approx(-8.8), pytest.approx(8.8))


def test_gains_in_points_stand_in_rows_from_above_without_the_baseline(panels):
    seed_gains.gain_figure(GAINS, [])
    (axis,) = panels
    _, *drawn = lines(axis)  # the first is the line at 0
    assert drawn == [([5, 15], [1, 1]), ([10], [1]), ([-20], [0])]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["rpc4", "rpc6"]


def test_the_line_below_the_gains_fits_into_the_image_however_few_panels_it_has(monkeypatch):
    canvas = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg
    drawing, widths = seed_gains.drawing, []

    @contextmanager
    def measured(*given):
        with drawing(*given) as axes:
            yield axes
            figure = axes[0, 0].figure
            (label,) = (text for text in figure.texts if "better" in text.get_text())
            widths.extend([label.get_window_extent(canvas(figure).get_renderer()).width, figure.bbox.width])

    monkeypatch.setattr(seed_gains, "drawing", measured)
    seed_gains.gain_figure(GAINS, [])
    assert 0.5 * widths[1] < widths[0] < widths[1]


def test_an_interval_much_wider_than_the_others_leaves_the_image_with_an_arrow(panels):
    usual = [GainRecord(f"a{n}", "clean", 500, 3, 0.5, 0.4, 0.6, 3, 0.0, -0.01, 0.01) for n in range(3)]
    wide = GainRecord("wide", "clean", 500, 3, 0.5, 0.4, 0.6, 3, -0.02, -0.5, 0.015)
    seed_gains.gain_figure([*usual, wide], [])
    (axis,) = panels
    edge = pytest.approx(2.2)  # a tenth more than the largest gain
    assert axis.get_xlim() == (pytest.approx(-2.2), edge)
    *_, interval, gain, arrow = axis.get_lines()
    assert list(interval.get_xdata()) == [pytest.approx(-2.2), 1.5]
    assert list(gain.get_xdata()) == [-2]
    assert (list(arrow.get_xdata()), arrow.get_marker()) == ([pytest.approx(-2.2)], "<")


def test_gains_of_nothing_are_drawn(panels):
    seed_gains.gain_figure([GainRecord("a", "clean", 500, 1, 0.5, None, None, 1, 0.0, None, None)], [])
    assert panels[0].get_xlim() == (-1, 1)
