"""How far a command is, in a terminal and in a log."""

import io
import threading

import pytest
from rich.console import Console

from attnaudit.report import progress
from attnaudit.report.progress import Pace, busy, duration, shown_progress


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a stderr that is a terminal."""
    stderr = io.StringIO()
    monkeypatch.setattr(progress, "message_console", lambda: Console(file=stderr, force_terminal=True, width=100))
    return stderr


def move(how):
    with shown_progress(how, "measuring") as told:
        told(1, 2, "the first unit")
        told(2, 2, "done")


def test_a_bar_is_drawn_in_a_terminal(terminal):
    move(True)
    assert "100 %" in terminal.getvalue()


def test_what_is_done_in_no_time_leaves_nothing_in_a_log(capsys):
    move(True)
    with busy("judging"):
        pass
    assert capsys.readouterr() == ("", "")


def test_no_bar_is_drawn_if_it_is_not_wanted(terminal):
    move(False)
    assert terminal.getvalue() == ""


def test_no_bar_is_drawn_where_its_work_would_be_measured(terminal):
    with shown_progress(True, "measuring", bar=False) as told:
        told(2, 2, "done")
    assert terminal.getvalue() == ""


def test_a_function_is_told_instead_of_a_bar(terminal):
    told = []
    move(lambda *state: told.append(state))
    assert told == [(1, 2, "the first unit"), (2, 2, "done")]
    assert terminal.getvalue() == ""


class Clock:
    """Stands still until it is set."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


def test_a_line_says_what_is_done_how_much_of_it_and_how_long_the_rest_will_take(clock):
    pace = Pace("measuring", clock)
    clock.seconds = 5
    assert pace.line == "measuring: 5 s so far"
    pace.told(0, 12, "")
    assert pace.line == "measuring: 0 of 12 (0%), 5 s so far"
    clock.seconds = 30
    pace.told(3, 12, "")
    assert pace.line == "measuring: 3 of 12 (25%), 30 s so far, about 75 s left at this pace"


def test_parts_of_an_earlier_command_do_not_count_as_fast(clock):
    pace = Pace("measuring", clock)
    pace.told(10, 12, "")
    clock.seconds = 20
    pace.told(11, 12, "")
    assert pace.left == pytest.approx(20)


def test_what_came_before_the_first_count_does_not_count_as_slow(clock):
    pace = Pace("training", clock)
    clock.seconds = 35  # a compilation
    pace.told(1, 101, "")
    clock.seconds = 36
    pace.told(2, 101, "")
    assert pace.left == pytest.approx(99)
    assert pace.advice("--limit 8") is None, "too early to know"
    clock.seconds = 45
    pace.told(11, 101, "")
    assert pace.advice("--limit 8") == "This will take about 2 min in all; --limit 8."


def test_only_what_will_be_long_says_how_to_do_less(clock):
    pace = Pace("measuring", clock)
    assert pace.advice("--limit 8") is None
    pace.told(0, 10, "")
    clock.seconds = 4
    pace.told(1, 10, "")
    assert pace.advice("--limit 8") is None, "too early to know"
    clock.seconds = 12
    assert pace.advice("--limit 8") == "This will take about 2 min in all; --limit 8."
    pace.told(9, 10, "")
    assert pace.advice("--limit 8") is None, "a few seconds are left"


def test_how_to_do_less_is_said_once(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "Pace", lambda label: Pace(label, clock))
    with shown_progress(True, "measuring", "--limit 8") as told:
        for done in range(3):
            clock.seconds = 30.0 * done
            told(done, 10, "")
    assert capsys.readouterr().err.count("This will take about 5 min in all; --limit 8.") == 1


@pytest.mark.parametrize("block", [lambda: shown_progress(True, "measuring"), lambda: busy("measuring")])
def test_a_log_gets_a_line_every_so_often_while_nothing_is_finished(monkeypatch, block):
    written, enough = [], threading.Event()

    def write(line):
        written.append(line)
        if len(written) == 3:
            enough.set()

    monkeypatch.setattr(progress, "_FIRST", 0.0)
    monkeypatch.setattr(progress, "say", write)
    with block():
        assert enough.wait(60)
    assert set(written) == {"measuring: 0 s so far"}


def test_something_uncounted_is_named_in_a_terminal(terminal):
    with busy("judging"):
        pass
    assert "judging" in terminal.getvalue()


def test_durations_are_in_a_readers_unit():
    assert [duration(seconds) for seconds in (4.6, 89, 90, 5399, 9000)] == ["5 s", "89 s", "2 min", "90 min", "2.5 h"]
