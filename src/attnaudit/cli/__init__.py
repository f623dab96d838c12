"""The command line: one file per command. torch is imported only when a command runs, so that `--help` is fast."""

from __future__ import annotations

import codecs
import io
import re
import sys

import typer

from attnaudit.cli import (
    atlas,
    audit,
    bench,
    corrupt,
    cost,
    diff,
    doctor,
    gaussian,
    judge,
    ls,
    paper,
    report,
    robust,
    train,
)
from attnaudit.cli.help_text import add_command
from attnaudit.cli.options import KeepMapsCommand
from attnaudit.cli.stopping import watched_signals
from attnaudit.display import escaped_if_unencodable
from attnaudit.errors import AttnAuditError
from attnaudit.report.console import printed_messages

app = typer.Typer(
    name="attnaudit",
    help="Put what papers claim about self-attention to the test, on any transformer, with references.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_command(app, "audit", audit.audit, KeepMapsCommand)
add_command(app, "paper", paper.paper)
add_command(app, "atlas", atlas.atlas)
add_command(app, "report", report.report)
add_command(app, "diff", diff.diff)
add_command(app, "train", train.train)
add_command(app, "judge", judge.judge)
add_command(app, "robust", robust.robust)
add_command(app, "corrupt", corrupt.corrupt)
app.add_typer(gaussian.app, name="gaussian")
add_command(app, "ls", ls.ls)
add_command(app, "cost", cost.cost)
add_command(app, "bench", bench.bench)
add_command(app, "doctor", doctor.doctor)


#: How torch says what it could not allocate on a CPU.
_ALLOCATED = re.compile(r"tried to allocate (\d+) bytes")
#: Commands that keep nothing of what they had done when they are stopped.
_WRITTEN_AT_THE_END = (["gaussian"], ["bench"], ["cost"])


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from attnaudit._version import __version__

        typer.echo(__version__)
        raise typer.Exit
    context.with_resource(printed_messages())


def main() -> None:
    """Entry point: our errors become one line on stderr and an exit code."""
    codecs.register_error("attnaudit", escaped_if_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names need not be UTF-8, and terminals need not take UTF-8
            stream.reconfigure(errors="attnaudit")
    with watched_signals(resumes=sys.argv[1:2] not in _WRITTEN_AT_THE_END) as stopping:
        try:
            app()
        except BaseException as error:
            if stopping.is_due:  # what is broken off may fail in many ways, and none of them is an error of the program
                stopping.end()
            if _is_out_of_memory(error):
                asked = _ALLOCATED.search(str(error))
                size = f" for {int(asked[1]):,} bytes at once" if asked else ""
                typer.echo(f"attnaudit: Memory is too small{size}: choose smaller sizes.", err=True)
                sys.exit(AttnAuditError.exit_code)
            if not isinstance(error, AttnAuditError):
                raise
            typer.echo(f"attnaudit: {error}", err=True)
            sys.exit(error.exit_code)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether numpy, or torch if it was imported, could not allocate what was asked for."""
    if isinstance(error, RuntimeError) and "torch" in sys.modules:
        from attnaudit.numerics.memory import is_out_of_memory

        return is_out_of_memory(error)
    return isinstance(error, MemoryError)
