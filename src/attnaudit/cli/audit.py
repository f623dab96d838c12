"""`attnaudit audit`: measure every head of a model against references, and judge the claims."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json, say
from attnaudit.cli.options import Device
from attnaudit.protocol import Protocol

if TYPE_CHECKING:
    from attnaudit.report.run import Run

_DEFAULT_LIMIT = 25
FAILED_VERDICT = 3


def audit(
    models: Annotated[list[str], typer.Argument(help="Model names: timm:NAME, hf:NAME, a folder, or minilm.")],
    weights: options.Weights = None,
    random_weights: options.RandomWeights = False,
    download: options.Download = False,
    images: options.Images = None,
    text: options.TextOption = None,
    limit: Annotated[int, typer.Option(help="Number of images or passages to draw.")] = _DEFAULT_LIMIT,
    first: options.First = False,
    lines: Annotated[bool, typer.Option("--lines", help="Use lines of text, as in the study, not passages.")] = False,
    seed: options.Seed = 0,
    protocol: Annotated[Protocol, typer.Option(help="exact: correct; paper: as in the study.")] = Protocol.EXACT,
    claims: Annotated[str, typer.Option(help="Claims to judge: comma-separated, `all` or `none`.")] = "all",
    references: Annotated[str, typer.Option(help="References to compute: comma-separated, `all` or `none`.")] = "all",
    repeats: Annotated[int, typer.Option(min=1, help="Draws of each random reference.")] = 1,
    theories: Annotated[
        str, typer.Option(help="Theories to rank in addition to those of the claims, such as kpca,ksvd,pca.")
    ] = "none",
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Score at which a claim counts as met.")] = 0.8,
    fail_on: Annotated[
        str, typer.Option(help="Verdicts that cause exit code 3, comma-separated.", show_default=False)
    ] = "none",
    device: options.DeviceOption = Device.AUTO,
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Capture every attention head of MODELS, measure it against references, and judge what papers claim about it.

    Examples:
        attnaudit audit minilm

        attnaudit audit timm:deit_tiny_patch16_224 --weights deit_tiny.safetensors --images photos/

        attnaudit audit hf:bert-base-uncased --download --text book.txt

        attnaudit audit vit_base_patch16_224 --download --limit 100 --workers 8 --memory 16GB

        attnaudit audit vit_base_patch16_224 --download --images photos/ --cluster tcp://127.0.0.1:8786

        attnaudit audit timm:deit_tiny_patch16_224 --theories kpca,ksvd,pca --claims none

        attnaudit audit timm:swin_tiny_patch4_window7_224 --random-weights --limit 2 --fail-on supported
    """
    from attnaudit.api import conclude
    from attnaudit.audit import AuditSettings, plan_audit
    from attnaudit.claims.claim import MEANINGS, RecordKind
    from attnaudit.claims.registry import claims_about, claims_named, theories_for
    from attnaudit.cli import work
    from attnaudit.measures import REFERENCES
    from attnaudit.report.terminal import statistics_table
    from attnaudit.report.verdicts import verdict_report

    resources = work.resources(workers, cluster, memory)
    failing = _failing_words(fail_on)
    every = claims_about(RecordKind.AUDIT)
    judged = every if claims == "all" else claims_named(options.names(claims, "--claims"), RecordKind.AUDIT)
    compared = dict.fromkeys((*theories_for(judged), *options.names(theories, "--theories")))
    specs = work.specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    settings = AuditSettings(
        protocol=protocol,
        theories=tuple(compared),
        references=tuple(REFERENCES) if references == "all" else options.names(references, "--references"),
        repeats=repeats,
        seed=seed,
        device=work.device_name(device),
    )
    shards, inputs = work.inputs(
        specs, work.InputChoice(images, text, limit, seed, first, lines=lines), protocol, settings.device
    )
    plan = plan_audit(specs, shards, settings)
    for model in plan.loaded:
        weights_note = (
            "RANDOM weights: this network is untrained, so its numbers say nothing about training"
            if model.weights_origin == "random"
            else f"weights {model.weights_origin}"
        )
        say(f"Auditing {model.label} on {inputs}, protocol {protocol.value}, {weights_note}.")
    if judged:
        say("What the verdicts mean:")
        for word, meaning in MEANINGS[RecordKind.AUDIT].items():
            say(f"  {word.value}: {meaning}")
    measured = work.measure_with_progress(plan, out, resources, "measuring heads and references")
    work.report_losses(measured)
    run = conclude(measured, plan.settings, judged, threshold)
    console = data_console()
    if json:
        print_json(run.summary)
    elif run.verdicts or run.ranking:
        console.print(verdict_report(run.verdicts, {verdict.claim: run.level for verdict in run.verdicts}, run.ranking))
    else:
        for label, groups in run.summary["models"].items():
            console.print(statistics_table(label, groups["observed"]))
    _draw(run)
    say(f"Replay error of the capture: {run.summary['capture']['replay_error']:.1e}. Run folder: {Path(run.path)}")
    if any(verdict.word.value in failing for verdict in run.verdicts):
        raise typer.Exit(FAILED_VERDICT)


def _draw(run: Run) -> None:
    """Write the page of the run and, if matplotlib is installed, the figure of its references."""
    from attnaudit.errors import AttnAuditError, MissingExtraError
    from attnaudit.records.finished import open_run
    from attnaudit.report.page import FILE, write_page
    from attnaudit.report.references import reference_figure

    if run.verdicts:
        with suppress(MissingExtraError):
            reference_figure(run.rows, list(run.summary["models"]), run.path / "references.svg")
            say(f"Observed heads and their references: {run.path / 'references.svg'}")
    try:
        say(f"Report, to open in a browser: {write_page([open_run(run.path)], run.path / FILE)}")
    except AttnAuditError as error:  # the numbers are stored, and the verdicts still determine the exit code
        say(f"The report could not be written: {error}")


def _failing_words(text: str) -> tuple[str, ...]:
    from attnaudit.errors import unknown
    from attnaudit.records.verdict import Word

    words = options.names(text, "--fail-on")
    for word in words:
        if word not in tuple(Word):
            raise unknown("verdict in --fail-on", word, Word)
    return words
