"""Tables and figures of the reproduction study, repeated."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnaudit import defaults
from attnaudit.audit import measure, plan_audit
from attnaudit.audit.summary import losses
from attnaudit.capture import Heads
from attnaudit.errors import UsageError, unknown
from attnaudit.numerics.devices import device_name
from attnaudit.papers.forensics import investigate
from attnaudit.papers.head_figures import GammaRecord, NormRecord, gamma_records, norm_records
from attnaudit.papers.results import Forensics, RepeatedFigure, RepeatedTable
from attnaudit.papers.study import LANGUAGE, OF_TRAINING, STUDY_INPUTS, capture_batch, one_batch, study_models
from attnaudit.papers.tables import TABLES, allclose_tests, compare_models, table_settings
from attnaudit.papers.training_curves import FIGURE1, FIGURE4, curves
from attnaudit.protocol import Protocol
from attnaudit.records.engine import Progress, Resources, default_memory, parse_memory
from attnaudit.records.files import file_name, make_folder
from attnaudit.records.ranges import check_seed
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.training import BATCHES, open_training
from attnaudit.report.data_files import write_csv, write_rows
from attnaudit.report.figure_files import write_figure
from attnaudit.report.head_figures import gamma_figure, norm_figure
from attnaudit.report.progress import shown_progress
from attnaudit.report.study_curves import error_curves, norm_curves
from attnaudit.sources.model import ModelSpec
from attnaudit.sources.selection import InputKind, InputSelection, select_inputs, select_specs

_log = logging.getLogger(__name__)
#: How a command does less.
_LESS = "--limit N draws fewer inputs, and fewer models take less time"


def paper(
    item: str,
    models: str | Sequence[str] | None = None,
    inputs: str | Path | None = None,
    *,
    kind: InputKind | None = None,
    weights: str | Path | None = None,
    random_weights: bool = False,
    download: bool = False,
    limit: int | None = None,
    first: bool = False,
    seed: int = defaults.SEED,
    device: str = defaults.DEVICE,
    workers: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> RepeatedTable | RepeatedFigure | Forensics:
    """Repeat a table or figure of Sarıtaş & Yıldız (2025) under their protocol.

    Args:
        item: `table1` to `table4`, `figure1` to `figure5`, or `forensics`, which tries 96 conventions for the
            eigenvalues reported by Teo & Nguyen (2024).
        models: names; by default those of the study with local weights. For `figure1` and `figure4` folders that
            `train` wrote.
        inputs: a folder of images, or a text file or folder; by default those of the data folder.
        kind: `images` or `text` if the inputs must be that; what the models read if None.
        weights: a local weights file, of one model.
        random_weights: take the models untrained, initialised from `seed`.
        download: allow the network for weights.
        limit: number of images or lines; as in the study if None.
        first: take the first inputs in order instead of a draw.
        seed: of every random choice.
        device: `auto`, `cpu` or `cuda`.
        workers: processes, for tables; as many as pay off if None.
        cluster: address of a dask scheduler whose workers do the work instead, for tables.
        memory: what a table may take, as bytes or `"8GB"`; half of the machine's memory if None.
        out: the run folder of a table, or the folder of a figure, by default in `attnaudit-runs`.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    if item not in (*STUDY_INPUTS, *OF_TRAINING):
        raise unknown("table or figure", item, sorted((*STUDY_INPUTS, *OF_TRAINING)))
    check_seed(seed)
    resources = Resources(workers, cluster, default_memory() if memory is None else parse_memory(str(memory)))
    if cluster is not None and item not in TABLES:
        raise UsageError(f"--cluster is for tables only: {item} is one short computation.")
    names = [models] if isinstance(models, str) else list(models or ())
    folder = Path(out) if out is not None else None
    if item in OF_TRAINING:
        given = {"weights": weights, "random-weights": random_weights, "download": download}
        for option, value in {**given, kind or "inputs": inputs, "limit": limit, "first": first}.items():
            if value is not None and value is not False:
                raise UsageError(f"{item} is drawn from training runs, which have their own inputs: omit --{option}.")
        return _training_figure(item, names, folder or Path(defaults.RUNS) / item)
    specs = _models(names, item, weights, random_weights=random_weights, seed=seed, download=download)
    asked = InputSelection(
        None if inputs is None else Path(inputs),
        STUDY_INPUTS[item] if limit is None else limit,
        seed,
        first,
        samples=False,
        kind=kind,
    )
    place = device_name(device)
    if item in TABLES:
        return _table(item, specs, asked, place, resources, folder, progress)
    if item == "figure3" and len(specs) > 1:
        raise UsageError(f"Figure 3 shows one model, got {len(specs)}: name one.")
    heads, folder = _captured(item, specs, asked, place, progress), folder or Path(defaults.RUNS) / item
    return _forensics(heads, folder) if item == "forensics" else _head_figure(item, heads, seed, folder)


def _models(
    names: Sequence[str], item: str, weights: str | Path | None, *, random_weights: bool, seed: int, download: bool
) -> list[ModelSpec]:
    """The named models, or those of the study that are available."""
    if names:
        specs = select_specs(names, weights=weights, random_weights=random_weights, seed=seed, download=download)
    elif weights is not None:
        raise UsageError("--weights needs a model name, as in attnaudit paper table1 deit_tiny_patch16_224.")
    else:
        found = study_models(language=item in LANGUAGE, random_weights=random_weights, seed=seed, download=download)
        specs = list(found.available)
        if found.missing:
            total, missing = len(found.missing) + len(specs), ", ".join(found.missing)
            _log.warning("Left out %d of %d models without local weights: %s.", len(found.missing), total, missing)
    for spec in specs:
        if spec.random_seed is not None:
            _log.warning("%s has RANDOM weights: its numbers say nothing about training.", spec.name)
    return specs


def _table(
    item: str,
    specs: Sequence[ModelSpec],
    asked: InputSelection,
    device: str,
    resources: Resources,
    out: Path | None,
    progress: Progress | bool,
) -> RepeatedTable:
    """An audit under the study's protocol, and its row beside the published one as CSV in the run folder."""
    table = TABLES[item]
    selected = select_inputs(specs, asked, Protocol.PAPER, device)
    plan = plan_audit(specs, selected.shards, table_settings(table, seed=asked.seed, device=device))
    folder = RunFolder(out or Path(defaults.RUNS) / plan.name)
    with folder.locked():
        with shown_progress(progress, f"{item}, {selected.words}", _LESS) as told:
            measured = measure(plan, folder, resources=resources, progress=told)
        for line in losses(measured.summary):
            _log.warning(line)
        folder.write_summary(measured.summary)  # a table of the study has no verdicts
    comparisons = compare_models(table, measured.summary)
    write_csv(comparisons, measured.path / f"{item}.csv")
    replay_error = measured.summary.capture.replay_error
    passing = allclose_tests(measured.summary)
    _log.info("Replay error of the capture: %.1e. Run folder: %s", replay_error, measured.path)
    return RepeatedTable(item, measured.path, tuple(comparisons), passing, replay_error)


def _captured(
    item: str, specs: Sequence[ModelSpec], asked: InputSelection, device: str, progress: Progress | bool
) -> Iterator[tuple[str, Sequence[Heads]]]:
    """The heads of a few inputs, captured at once, model by model."""
    batch = one_batch(select_inputs(specs, asked, Protocol.PAPER).shards)
    with shown_progress(progress, item, _LESS) as told:
        for done, spec in enumerate(specs):
            told(done, len(specs), f"{item}, {spec.label}")
            captured = capture_batch(spec, batch, device)
            for name, reason in captured.skipped:
                _log.warning("skipped input %s: %s", name, reason)
            yield spec.label, captured.layers
        told(len(specs), len(specs), item)


def _head_figure(item: str, heads: Iterator[tuple[str, Sequence[Heads]]], seed: int, out: Path) -> RepeatedFigure:
    """Figure 3: differences of γ; Figures 2 and 5: ‖φ(q)‖² and ‖h‖² by layer, a panel per model."""
    records: list[NormRecord | GammaRecord] = []
    for label, layers in heads:
        if item == "figure3":
            records += gamma_records(label, layers, seed)
        else:
            records += norm_records(label, layers, language=item in LANGUAGE)
    write_figure(item, records, gamma_figure if item == "figure3" else norm_figure, out)
    return RepeatedFigure(item, out, tuple(records))


def _forensics(heads: Iterator[tuple[str, Sequence[Heads]]], out: Path) -> Forensics:
    """Every convention on every model, and a CSV file of each model."""
    findings = {label: tuple(investigate(layers)) for label, layers in heads}
    make_folder(out)
    for label, own in findings.items():
        table = out / f"forensics-{file_name(label)}.csv"
        write_rows([finding.record() for finding in own], table)
        _log.info("Wrote %s.", table)
    return Forensics("forensics", out, findings)


def _training_figure(item: str, folders: Sequence[str], out: Path) -> RepeatedFigure:
    """Curves of every training run, one panel each, with the published points of the matching network."""
    if not folders:
        raise UsageError(
            f"{item} is drawn from training runs: give the folder of attnaudit train study-vit-tiny --data DIR."
        )
    runs = [open_training(Path(folder)) for folder in folders]
    measures, draw = (FIGURE1, norm_curves) if item == "figure1" else (FIGURE4, error_curves)
    drawn = curves(runs, measures)
    for run, lines in zip(runs, drawn, strict=True):
        if lines.published is None:
            width = lines.width
            _log.warning(
                "%s has heads of dimension %s, not 64 or 32 as in the study: no published points.", lines.run, width
            )
        for batch in (name for name in BATCHES if name not in run.batches):
            _log.warning("%s was not measured on a %s batch.", lines.run, batch)
    records = [record for lines in drawn for record in lines.records]
    write_figure(item, records, lambda _, paths: draw(drawn, paths), out)
    return RepeatedFigure(item, out, tuple(records))
