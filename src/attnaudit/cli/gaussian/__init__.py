"""`attnaudit gaussian`: attention-based PCA in the laboratory, theory against measurement. One file per command."""

from __future__ import annotations

import typer

from attnaudit.cli.gaussian import align, digits, finite_prompt, in_context, landscape, regularise
from attnaudit.cli.help_text import add_command

app = typer.Typer(
    help="Attention-based PCA with a known answer: closed forms, training, verdicts (Maulen-Soto & Boyer 2026).",
    no_args_is_help=True,
)
add_command(app, "align", align.align)
add_command(app, "landscape", landscape.landscape)
add_command(app, "finite-prompt", finite_prompt.finite_prompt)
add_command(app, "in-context", in_context.in_context)
add_command(app, "regularise", regularise.regularise)
add_command(app, "digits", digits.digits)
