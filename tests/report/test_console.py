"""Results and messages go where they belong."""

import logging

from rich.console import Console

from attnaudit.report import console


def test_messages_of_the_package_are_printed_only_while_a_command_runs(capsys):
    log = logging.getLogger("attnaudit.somewhere")
    log.info("before")
    with console.printed_messages():
        log.info("%d heads", 3)
    log.info("after")
    assert capsys.readouterr() == ("", "3 heads\n")


def test_results_in_a_file_have_the_width_of_columns_if_it_is_set(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert console.data_console().width == 80
    monkeypatch.delenv("COLUMNS")
    assert console.data_console().width == 120


def test_messages_break_between_words_in_a_terminal_and_nowhere_in_a_log(monkeypatch, capsys):
    path = "attnaudit-runs/" + 9 * "0123456789"
    for is_terminal, lines in ((True, ["Run folder:", path]), (False, [f"Run folder: {path}"])):
        shown = Console(stderr=True, force_terminal=is_terminal, color_system=None, width=40)
        monkeypatch.setattr(console, "message_console", lambda shown=shown: shown)
        console.say(f"Run folder: {path}")
        assert [line.rstrip() for line in capsys.readouterr().err.splitlines()] == lines
