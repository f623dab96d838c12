"""The command line in this process, as its entry point runs it."""

import csv
import os
import sys
from pathlib import Path

import pytest

from tests.training.conftest import data_set, recipe_file  # noqa: F401  (fixtures)


def read_csv(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


@pytest.fixture
def cli(monkeypatch):
    """Run attnaudit in an empty folder; gives its exit code."""
    from attnaudit.cli import main

    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["attnaudit", *map(str, args)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return int(stopped.value.code or 0)

    return run


@pytest.fixture
def refused(cli, capsys):
    """Run a command that cannot work: it must say one sentence, print nothing else and leave the folder as it was."""

    def run(arguments, code, message):
        before = sorted(os.listdir())
        assert cli(*arguments) == code
        out, err = capsys.readouterr()
        assert message in err
        assert "Traceback" not in err
        assert err.startswith("attnaudit: ") <= (err.count("\n") == 1)  # typer frames its own errors
        assert out == ""
        assert sorted(os.listdir()) == before

    return run
