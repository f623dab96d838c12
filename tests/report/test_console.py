"""Results and messages go where they belong."""

import logging

from attnaudit.report import console


def test_messages_of_the_package_are_printed_only_while_a_command_runs(capsys):
    log = logging.getLogger("attnaudit.somewhere")
    log.info("before")
    with console.printed_messages():
        log.info("%d heads", 3)
    log.info("after")
    assert capsys.readouterr() == ("", "3 heads\n")
