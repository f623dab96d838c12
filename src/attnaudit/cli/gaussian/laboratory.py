"""Shared by the commands of `attnaudit gaussian`: options, the requested covariance, and the output of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnaudit.cli.console import data_console, print_json, progress_bar, say
from attnaudit.cli.options import Device
from attnaudit.errors import UsageError

if TYPE_CHECKING:
    from attnaudit.claims import Claim
    from attnaudit.gaussian.experiments.findings import Findings
    from attnaudit.gaussian.training import HeadRecipe


class OptimiserChoice(StrEnum):
    """The optimiser for training on fresh prompts."""

    ADAM = "adam"
    SGD = "sgd"


Dim = Annotated[int | None, typer.Option(help="Dimension, with eigenvalues 1, 1/2, 1/3, … and random eigenvectors.")]
CovarianceFile = Annotated[
    Path | None, typer.Option("--covariance", help="Your own covariance, .npy or .csv.", show_default=False)
]
Runs = Annotated[int, typer.Option(min=2, help="Independent training runs per head.")]
Steps = Annotated[int, typer.Option(min=1, help="Training steps per run.")]
Prompts = Annotated[int | None, typer.Option(min=1, help="Fresh prompts per step. Default: 64, more if short.")]
Rate = Annotated[float, typer.Option(min=1e-6, help="Initial learning rate; it falls to 0 along a cosine.")]
OptimiserOption = Annotated[OptimiserChoice, typer.Option(help="Optimiser.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for figure and data. Default: attnaudit-runs/gaussian-<command>.", show_default=False),
]


def covariance_for(dim: int | None, path: Path | None, seed: int, device: Device, *, default: int) -> Any:
    """The covariance that the options describe, checked, on the device."""
    import torch

    from attnaudit.cli import work
    from attnaudit.gaussian.checks import check_covariance
    from attnaudit.gaussian.covariance import harmonic_eigenvalues, random_covariance
    from attnaudit.gaussian.experiments.findings import seeded
    from attnaudit.sources.matrices import read_matrix

    where = work.device_name(device)
    if path is None:
        eigenvalues = harmonic_eigenvalues(default if dim is None else dim, where)
        return random_covariance(eigenvalues, seeded(seed, where))
    covariance = torch.tensor(read_matrix(path), device=where)
    check_covariance(covariance)
    if len(covariance) < 2:
        raise UsageError(f"The dimension of a covariance must be ≥ 2, got 1 from {path}.")
    if dim not in (None, len(covariance)):
        raise UsageError(f"{path} has dimension {len(covariance)}, but --dim is {dim}: omit --dim.")
    return covariance


def recipe_for(
    steps: int, prompts: int | None, queries: int, rate: float, optimiser: OptimiserChoice, length: int
) -> HeadRecipe:
    """The training settings; short prompts are used in larger batches."""
    from attnaudit.gaussian import training

    enough = max(64, 2048 // length) if prompts is None else prompts
    kind = training.HeadOptimiser(optimiser.value)
    return training.HeadRecipe(steps=steps, prompts=enough, queries=queries, rate=rate, optimiser=kind)


@contextmanager
def at_work(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar and then the time taken, on stderr, so that stdout is the same every time.

    Runs on one CPU thread: such small products are slower on several, and their last digits depend on the number.
    """
    from attnaudit.numerics.threads import torch_threads

    begin = time.perf_counter()
    with progress_bar(label) as progress, torch_threads(1):
        yield progress
    say(f"Took {time.perf_counter() - begin:.1f} s.")


def deliver(
    verb: str,
    title: str,
    findings: Findings,
    draw: Callable[[Sequence[Path]], None],
    out: Path | None,
    json: bool,
    claim: Claim | None = None,
) -> None:
    """Print table and verdicts to stdout; write figure and data to the folder."""
    from attnaudit.claims.jury import judge
    from attnaudit.cli import work
    from attnaudit.records.files import make_folder
    from attnaudit.report.data_files import write_parquet, write_rows
    from attnaudit.report.drawing import for_screen_and_print
    from attnaudit.report.gaussian import check_rows, check_table
    from attnaudit.report.verdicts import verdict_report

    folder = out or work.RUNS / f"gaussian-{verb}"
    make_folder(folder)
    images, data, table = for_screen_and_print(folder, verb), folder / f"{verb}.parquet", folder / f"{verb}.csv"
    write_parquet(findings.records, data)
    write_rows(check_rows(findings.checks), table)
    judgement = judge([] if claim is None else [claim], findings.trials)
    if json:
        print_json(
            {"checks": check_rows(findings.checks), "verdicts": [asdict(verdict) for verdict in judgement.verdicts]}
        )
    else:
        data_console().print(check_table(title, findings.checks))
        if judgement.verdicts:
            data_console().print(verdict_report(judgement.verdicts, judgement.levels))
    draw(images)
    say(f"Wrote {', '.join(map(str, images))}, {data} and {table}.")
