"""`attnaudit atlas`: audit all models that need no hub, and show them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.records.keep import Keep
from attnaudit.report.console import data_console, print_json, say


def atlas(
    out: Annotated[Path, typer.Option(help="Folder of the atlas; repeating the command resumes.", show_default=False)],
    only: Annotated[
        list[str], typer.Option(metavar="FIELD", help="Field of the models, such as vision; may be repeated.")
    ] = ["all"],  # noqa: B006 - typer never changes it
    models: Annotated[
        list[str],
        typer.Option(metavar="NAMES", help="Models (attnaudit ls models): comma-separated, or `all`; may be repeated."),
    ] = ["all"],  # noqa: B006 - typer never changes it
    download: options.Download = False,
    limit: Annotated[int, typer.Option(help="Number of inputs to draw for each model.")] = defaults.LIMIT,
    seed: options.Seed = defaults.SEED,
    device: options.DeviceOption = Device(defaults.DEVICE),
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    keep: options.KeepOption = Keep.ROWS,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Audit trained models of many fields, and write a page over all of them: models by claims, models by theories.

    Each model has an ordinary run folder below the folder of the atlas, with its page and a card. What is finished is
    not computed again. A model that fails does not stop the others: the exit code is then 1.

    Examples:
        attnaudit atlas --models minilm,vit-small-cifar --limit 8 --out atlas

        attnaudit atlas --only vision --only proteins --download --out atlas

        attnaudit atlas --download --limit 25 --cluster tcp://127.0.0.1:8786 --out atlas
    """
    from attnaudit.api.atlas import atlas as audited
    from attnaudit.report.atlas.terminal import atlas_records, atlas_table

    found = audited(
        out,
        only=_given(only, "--only"),
        models=_given(models, "--models"),
        download=download,
        limit=limit,
        seed=seed,
        device=device.value,
        workers=workers,
        cluster=cluster,
        memory=memory,
        keep=keep,
    )
    if json:
        print_json(atlas_records(found.audits, found.failures))
    else:
        data_console(wide=wide).print(atlas_table(found.audits, found.failures, wide=wide))
    say(f"Page over all models, to open in a browser: {found.page}")
    if found.failures:
        raise typer.Exit(1)


def _given(texts: Sequence[str], option: str) -> tuple[str, ...] | Literal["all"]:
    """The names of an option that may be repeated; `all` stands alone."""
    if len(texts) == 1:
        return options.names_or_all(texts[0], option)
    return tuple(name for text in texts for name in options.listed(text, option))
