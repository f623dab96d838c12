"""`attnaudit gaussian`: attention-based PCA in the laboratory, theory against measurement. One file per command."""

from __future__ import annotations

import typer

from attnaudit.cli.gaussian import align, digits, finite_prompt, in_context, landscape

app = typer.Typer(
    help="Attention-based PCA with a known answer: closed forms, training, verdicts (Maulen-Soto & Boyer 2026).",
    no_args_is_help=True,
)
app.command("align")(align.align)
app.command("landscape")(landscape.landscape)
app.command("finite-prompt")(finite_prompt.finite_prompt)
app.command("in-context")(in_context.in_context)
app.command("digits")(digits.digits)
