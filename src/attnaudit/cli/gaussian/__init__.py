"""`attnaudit gaussian`: attention-based PCA in the laboratory, theory against measurement. One file per command."""

from __future__ import annotations

import typer

from attnaudit.cli.gaussian import align, digits, finite_prompt, in_context, landscape, regularise
from attnaudit.cli.help_text import help_text

app = typer.Typer(
    help="Attention-based PCA with a known answer: closed forms, training, verdicts (Maulen-Soto & Boyer 2026).",
    no_args_is_help=True,
)
app.command("align", help=help_text(align.align))(align.align)
app.command("landscape", help=help_text(landscape.landscape))(landscape.landscape)
app.command("finite-prompt", help=help_text(finite_prompt.finite_prompt))(finite_prompt.finite_prompt)
app.command("in-context", help=help_text(in_context.in_context))(in_context.in_context)
app.command("regularise", help=help_text(regularise.regularise))(regularise.regularise)
app.command("digits", help=help_text(digits.digits))(digits.digits)
