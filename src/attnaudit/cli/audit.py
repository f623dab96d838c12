"""`attnaudit audit`: measure every head of a model against references, and judge the claims."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit import defaults
from attnaudit.cli import options
from attnaudit.cli.options import Device
from attnaudit.display import enumerated
from attnaudit.errors import AttnAuditError, MissingExtraError, UsageError, unknown
from attnaudit.protocol import Protocol
from attnaudit.records.keep import Keep
from attnaudit.records.verdict import Finding
from attnaudit.report.console import data_console, message_console, print_json, say

if TYPE_CHECKING:
    from attnaudit import Run

FAILED_VERDICT = 3


def audit(
    models: Annotated[
        list[str], typer.Argument(help="Model names: timm:NAME, hf:NAME, atlas:NAME, a folder, a GGUF file, or minilm.")
    ],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[int, typer.Option(help="Number of images or passages to draw.")] = defaults.LIMIT,
    first: options.First = False,
    lines: Annotated[bool, typer.Option("--lines", help="Use lines of text, as in the study, not passages.")] = False,
    group_by_folder: Annotated[
        bool, typer.Option("--group-by-folder", help="Count images of one folder as one independent input.")
    ] = False,
    seed: options.Seed = defaults.SEED,
    protocol: Annotated[Protocol, typer.Option(help="exact: correct; paper: as in the study.")] = Protocol.EXACT,
    claims: Annotated[str, typer.Option(help="Claims to judge: comma-separated, `all` or `none`.")] = "all",
    references: Annotated[str, typer.Option(help="References to compute: comma-separated, `all` or `none`.")] = "all",
    repeats: Annotated[
        int, typer.Option(min=1, help="Draws of each random reference; verdicts need two.")
    ] = defaults.REPEATS,
    theories: Annotated[
        str, typer.Option(help="Theories to rank in addition to those of the claims: comma-separated, `all` or `none`.")
    ] = "none",
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Score at which a claim counts as met.")
    ] = defaults.THRESHOLD,
    chance: Annotated[
        float, typer.Option(min=0, max=1, help="Score up to which a claim counts as being at chance.")
    ] = defaults.CHANCE,
    fail_on: Annotated[
        str,
        typer.Option(
            help="Verdicts that cause exit code 3, comma-separated: supported, refuted, undecided, or unsupported for "
            "the last two.",
            show_default=False,
        ),
    ] = "none",
    device: options.DeviceOption = Device(defaults.DEVICE),
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    keep: options.KeepOption = Keep.ROWS,
    keep_maps: options.KeepMaps = None,
    out: options.Out = None,
    details: Annotated[bool, typer.Option("--details", help="Also print every measure with its references.")] = False,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Capture every attention head of MODELS, measure it against references, and judge what papers claim about it.

    Examples:
        attnaudit audit minilm

        attnaudit audit minilm --keep-maps 3

        attnaudit audit timm:deit_tiny_patch16_224 --weights deit_tiny.safetensors --images photos/

        attnaudit audit hf:bert-base-uncased --download --text book.txt

        attnaudit audit smollm2-135m --download --limit 12

        attnaudit audit vit_base_patch16_224 --download --limit 100 --workers 8 --memory 16GB

        attnaudit audit vit_base_patch16_224 --download --images photos/ --cluster tcp://127.0.0.1:8786

        attnaudit audit minilm --limit 200 --keep summaries

        attnaudit audit timm:deit_tiny_patch16_224 --theories kpca,ksvd,keys-linear --claims none

        attnaudit audit minilm --limit 12 --theories all

        attnaudit audit timm:swin_tiny_patch4_window7_224 --random-weights --limit 2 --fail-on supported
    """
    from attnaudit.api.audits import audit as audited
    from attnaudit.records import json_file
    from attnaudit.report.answers import answers
    from attnaudit.report.terminal import statistics_table
    from attnaudit.report.verdicts import audit_report

    failing, asked = _failing_words(fail_on), options.names_or_all(claims, "--claims")
    if failing and not asked:
        raise UsageError(f"--fail-on {fail_on} needs claims: name some with --claims, or leave --claims none out.")
    run = audited(
        models,
        options.one_of(images=images, text=text),
        kind=options.input_kind(images=images, text=text),
        weights=weights,
        random_weights=random_weights,
        download=download,
        limit=limit,
        first=first,
        lines=lines,
        groups="folder" if group_by_folder else None,
        seed=seed,
        protocol=protocol,
        claims=asked,
        references=options.names_or_all(references, "--references"),
        repeats=repeats,
        theories=options.names_or_all(theories, "--theories"),
        threshold=threshold,
        chance=chance,
        device=device.value,
        workers=workers,
        cluster=cluster,
        memory=memory,
        keep=keep,
        keep_maps=keep_maps,
        out=out,
    )
    if json:
        print_json(json_file.plain(run.summary))
    elif run.verdicts or run.ranking:
        data_console(wide=wide).print(audit_report(run, details=details, wide=wide))
    else:
        for label in run.models:
            data_console(wide=wide).print(statistics_table(label, run.summary.observed(label), wide=wide))
    _draw(run)
    replay_error = run.summary.capture.replay_error
    certificate = "none, the model has no softmax attention" if replay_error is None else f"{replay_error:.1e}"
    say(f"Replay error of the capture: {certificate}. Run folder: {run.path}")
    if message_console().is_terminal and not json:  # what was printed first has scrolled out of sight
        for answer in answers(run).values():
            say(f"In short: {answer}")
    if any(verdict.word.value in failing for verdict in run.verdicts):
        raise typer.Exit(FAILED_VERDICT)
    untested = {"any claim"} if asked == "all" else set(asked)
    if run.verdicts:
        measured = {verdict.claim for verdict in run.verdicts if verdict.finding is not Finding.NOT_MEASURED}
        untested -= {*(["any claim"] if measured else []), *measured}
    if failing and untested:  # a gate must not pass because there was nothing to test
        raise AttnAuditError(
            f"--fail-on {fail_on} could not test {enumerated(sorted(untested), 'and')}: choose claims about such "
            "models with --claims."
        )


def _draw(run: Run) -> None:
    """Write the page of the run and, if matplotlib is installed, the figure of its references."""
    from attnaudit.report.progress import busy
    from attnaudit.report.references import reference_figure
    from attnaudit.report.theory_map import theory_figure

    if run.ranking:
        with suppress(MissingExtraError):
            if theory_figure(run, [run.path / "theories.svg"]):
                say(f"Theories by layer: {run.path / 'theories.svg'}")
    if run.verdicts:
        with suppress(MissingExtraError):
            if reference_figure(run, run.path / "references.svg"):
                say(f"Observed heads and their references: {run.path / 'references.svg'}")
    try:
        with busy("writing the page"):
            page = run.report()
        say(f"Report, to open in a browser: {page}")
    except AttnAuditError as error:  # the numbers are stored, and the verdicts still determine the exit code
        say(f"The report could not be written: {error}")


def _failing_words(text: str) -> tuple[str, ...]:
    from attnaudit.records.verdict import VerdictWord

    unsupported = (VerdictWord.REFUTED, VerdictWord.UNDECIDED)
    meant = {**{word.value: (word,) for word in VerdictWord}, "unsupported": unsupported}
    words = options.names(text, "--fail-on")
    for word in words:
        if word not in meant:
            raise unknown("--fail-on verdict", word, meant)
    return tuple(own.value for word in words for own in meant[word])
