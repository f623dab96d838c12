"""Results, messages and progress go where they belong."""

import io
import logging

import pytest
from rich.console import Console

from attnaudit.report import console


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a stderr that is a terminal."""
    stderr = io.StringIO()
    monkeypatch.setattr(console, "message_console", lambda: Console(file=stderr, force_terminal=True, width=100))
    return stderr


def move(progress):
    with console.shown_progress(progress, "measuring") as told:
        told(1, 2, "the first unit")
        told(2, 2, "done")


def test_a_bar_is_drawn_in_a_terminal(terminal):
    move(True)
    assert "100 %" in terminal.getvalue()


def test_no_bar_is_drawn_where_nobody_sees_it(capsys):
    move(True)
    assert capsys.readouterr() == ("", "")


def test_no_bar_is_drawn_if_it_is_not_wanted(terminal):
    move(False)
    assert terminal.getvalue() == ""


def test_a_function_is_told_instead_of_a_bar(terminal):
    told = []
    move(lambda *state: told.append(state))
    assert told == [(1, 2, "the first unit"), (2, 2, "done")]
    assert terminal.getvalue() == ""


def test_messages_of_the_package_are_printed_only_while_a_command_runs(capsys):
    log = logging.getLogger("attnaudit.somewhere")
    log.info("before")
    with console.printed_messages():
        log.info("%d heads", 3)
    log.info("after")
    assert capsys.readouterr() == ("", "3 heads\n")
