"""What `--help` prints of every command."""

import re
from collections.abc import Iterator

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from attnaudit.cli import app
from attnaudit.cli.help_text import help_text


def _commands(group: TyperGroup, *path: str) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, *path, name)
        else:
            yield (*path, name), command


COMMANDS = dict(_commands(get_command(app)))


def _printed(path: tuple[str, ...], columns: int = 500) -> str:
    return CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(columns), "TERM": "dumb"}).output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_prints_every_word_of_every_option(path):
    printed = " ".join(_printed(path).split())
    texts = [parameter.help for parameter in COMMANDS[path].params if getattr(parameter, "help", None)]
    assert [text for text in texts if " ".join(text.replace("`", "").split()) not in printed] == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_prints_every_example_on_its_own_line(path):
    lines = [line.strip() for line in _printed(path).splitlines()]
    described = COMMANDS[path].callback.__doc__
    examples = re.findall(r"^ {8}(attnaudit .+)$", described, flags=re.MULTILINE)
    assert set(examples) <= set(lines)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_cuts_no_word_at_80_columns(path):
    assert [line for line in _printed(path, 80).splitlines() if line.rstrip("│ ").endswith("…")] == []


def test_help_text_keeps_what_markdown_would_swallow():
    def command():
        """Read <model>.

        Examples:
            attnaudit ls *_a_*

            attnaudit ls [0]
        """

    assert help_text(command) == (
        "Read \\<model\\>.\n\nExamples:\n\nattnaudit ls \\*\\_a\\_\\*\n\nattnaudit ls \\[0\\]"
    )


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_switches_are_shown_without_a_type(path):
    assert "bool" not in _printed(path).lower()
