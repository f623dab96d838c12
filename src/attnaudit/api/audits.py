"""One call from models and inputs to a finished run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from attnaudit import defaults
from attnaudit.api.runs import Run
from attnaudit.audit import AuditPlan, AuditSettings, measure, plan_audit
from attnaudit.audit.keeping_views import check_count, check_size, keep_views
from attnaudit.audit.ranking import best_theories, rank
from attnaudit.audit.summary import losses
from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.jury import judge
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_about, claims_named, theories_for
from attnaudit.display import counted
from attnaudit.errors import UsageError, unknown
from attnaudit.measures import DEFAULT_MEASURES, REFERENCES, Measure, Reference, select
from attnaudit.measures.selection import entries_of
from attnaudit.numerics.devices import device_name, device_of, put_back
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel, AuditRun
from attnaudit.records.engine import Progress, Resources, default_memory, parse_memory
from attnaudit.records.keep import Keep
from attnaudit.records.ranges import check_whole
from attnaudit.records.run_folder import RunFolder
from attnaudit.report.progress import busy, shown_progress
from attnaudit.sources.inputs import Batch
from attnaudit.sources.model import LoadedModel, ModelSpec, wrap_module
from attnaudit.sources.selection import (
    InputKind,
    InputSelection,
    SelectedInputs,
    select_batch,
    select_inputs,
    select_loader,
    select_specs,
)
from attnaudit.statistics.scores import Bounds
from attnaudit.theories import Theory
from attnaudit.theories.registry import ALL, THEORIES

_log = logging.getLogger(__name__)
#: How an audit does less.
_LESS = "--limit N draws fewer inputs; 8 independent ones are needed to decide"


def audit(
    models: nn.Module | str | Sequence[str],
    inputs: Batch | Iterable[Any] | str | Path | None = None,
    *,
    kind: InputKind | None = None,
    weights: str | Path | None = None,
    random_weights: bool = False,
    download: bool = False,
    limit: int | None = defaults.LIMIT,
    first: bool = False,
    lines: bool = False,
    groups: Sequence[str] | Literal["folder"] | None = None,
    seed: int = defaults.SEED,
    protocol: Protocol | str = Protocol.EXACT,
    claims: Sequence[str | Claim] | Literal["all"] = "all",
    references: Sequence[str | Reference] | Literal["all"] = "all",
    repeats: int = defaults.REPEATS,
    theories: Sequence[str | Theory] | Literal["all"] = (),
    measures: Sequence[str | Measure] = DEFAULT_MEASURES,
    threshold: float = defaults.THRESHOLD,
    chance: float = defaults.CHANCE,
    device: str = defaults.DEVICE,
    workers: int | None = None,
    cluster: str | None = None,
    memory: str | int | None = None,
    keep: Keep | str = Keep.ROWS,
    keep_maps: int | None = None,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Run:
    """Measure every attention head of one or more models among its references, and judge what papers claim about it.

    Args:
        models: a torch module; or one or more names such as `"timm:deit_tiny_patch16_224"`, `"hf:bert-base-uncased"`,
            `"atlas:smollm2-135m"`, `"minilm"`, a folder or a GGUF file.
        inputs: a batch tensor, a mapping of them such as a tokenizer's `input_ids` and `attention_mask`, or a loader of
            either, such as torch's `DataLoader`, alone or before labels; or, for named models, a folder of images or a
            text file or folder. By default images of the data folder or of scikit-image, or Python's own reference.
        kind: `images` or `text` if the inputs must be that; what the models read if None.
        weights: a local weights file, of one named model.
        random_weights: audit named models untrained, initialised from `seed`.
        download: allow the network for weights of named models.
        limit: how many images or passages to draw, or the first of a loader to use; all if None. A batch tensor is used
            as it is.
        first: take the first inputs in order instead of a draw.
        lines: of texts, draw lines as the study does instead of passages.
        groups: which inputs belong together, so that they count as one: the group of each input of a batch or loader,
            or `"folder"` for images. Passages of one file out of several, and copies, belong together anyway.
        seed: of every random choice.
        protocol: `exact` or `paper`.
        claims: which claims to judge: `"all"` that a usual audit decides, or names, see `attnaudit ls claims`, and
            claims of your own.
        references: which references to compute: `"all"`, or names, see `attnaudit ls references`, and objects of your
            own; without a null and an ideal one no claim can be judged.
        repeats: how often each random reference is drawn; verdicts need two draws, to know how far one is from others.
        theories: theories to rank beside those the claims need: names, or objects of your own class; or `"all"`,
            which leaves out kpca-any-gauge: fitting it takes minutes, so that it must be named.
        measures: which measures to compute: names, see `attnaudit ls measures`, or objects of your own.
        threshold: the score from which on a claim counts as met.
        chance: the score up to which it counts as being at chance.
        device: `cpu` or `cuda`; `auto` is where a module is already, and for a named model the GPU if there is one.
        workers: processes, for named models; as many as pay off if None.
        cluster: address of a dask scheduler whose workers do the work instead, for named models.
        memory: what the audit may take, as bytes or `"8GB"`; half of the machine's memory if None.
        keep: `rows`, one for every head, input, reference and measure; or `summaries`, a small part of that with the
            same verdicts and page, but without single inputs. Rows of a model are then removed when it is measured.
        keep_maps: keep the attention maps, eigenvalues and best-aligned value columns of every head on so many inputs,
            the first ones, with small pictures or the tokens of these: the page shows them of a head that is clicked.
        out: the run folder, by default in `attnaudit-runs`. Repeating the call resumes.
        progress: a function that is told of every finished unit; True for a bar, False for none.
    """
    allowed = default_memory() if memory is None else parse_memory(str(memory))
    resources = Resources(workers, cluster, allowed)
    bounds, kept = Bounds(threshold, chance), _kept(keep)
    if keep_maps is not None:
        check_count(keep_maps)
    if out is not None:
        RunFolder(Path(out)).check()
    own = {measure.name for measure in measures if isinstance(measure, Measure)}
    audits = RecordKind.AUDIT
    judged = claims_about(audits) if claims == "all" else claims_named(claims, audits, own_measures=own)
    check_whole(2 if judged else 1, repeats=repeats)
    selection = select(
        measures=measures,
        theories=(*theories_for(judged), *(ALL if theories == "all" else entries_of("theory", theories))),
        references=tuple(REFERENCES) if references == "all" else references,
        repeats=repeats,
        seed=seed,
        protocol=Protocol(protocol),
    )
    in_memory = models if isinstance(models, nn.Module) else None
    place = device_of(in_memory) if in_memory is not None and device == "auto" else device
    settings = AuditSettings.of(selection, device_name(place))
    subjects: Sequence[ModelSpec | LoadedModel]
    selected: SelectedInputs
    if isinstance(models, nn.Module):
        if weights is not None or random_weights or download:
            raise UsageError("A module given in memory has its weights: leave out weights, random_weights, download.")
        subjects = [wrap_module(models)]
    else:
        subjects = select_specs(models, weights=weights, random_weights=random_weights, seed=seed, download=download)
    if inputs is not None and not isinstance(inputs, (str, Path)):
        if isinstance(groups, str) or not isinstance(groups, Sequence | None):
            raise UsageError("A batch or loader has no folders: give a list with the group of each input.")
        if isinstance(inputs, (Tensor, Mapping)):
            selected = select_batch(inputs, settings.device, groups)
        else:
            check_whole(1, limit=limit)
            selected = select_loader(inputs, in_memory, limit, settings.device, groups)
    else:
        if groups not in (None, "folder"):
            raise UsageError('groups must be "folder" for named inputs; lists are for batch tensors.')
        place_of_inputs = None if inputs is None else Path(inputs)
        asked = InputSelection(
            place_of_inputs, limit, seed, first, lines, kind=kind, by_folder=groups is not None, known_only=True
        )
        selected = select_inputs(subjects, asked, settings.protocol, settings.device)
    with busy("loading models and inputs") if progress is True else nullcontext():
        plan = plan_audit(subjects, selected.shards, settings, selection.own, kept)
    _announce(plan, selected, judged, bounds)
    folder = RunFolder(Path(out) if out is not None else Path(defaults.RUNS) / plan.name)
    if keep_maps is not None:
        with (
            busy("finding how much the maps take") if progress is True else nullcontext(),
            nullcontext() if in_memory is None else put_back(in_memory),
        ):
            check_size(plan, keep_maps, allowed)
    with folder.locked():
        with (
            shown_progress(progress, "measuring heads and references", _LESS) as told,
            nullcontext() if in_memory is None else put_back(in_memory),
        ):
            measured = measure(plan, folder, resources=resources, progress=told)
        if keep_maps is not None:
            with (
                shown_progress(progress, "keeping maps of heads", "--keep-maps 1 keeps those of one input") as told,
                nullcontext() if in_memory is None else put_back(in_memory),
            ):
                keep_views(plan, folder.path, keep_maps, resources, told)
        for words in measured.settings.kinds_of_attention:
            _log.info("Attention: %s.", words)
        for line in losses(measured.summary):
            _log.warning(line)
        with busy(f"judging {counted(len(judged), 'claim')}") if progress is True else nullcontext():
            run = conclude(measured, judged, bounds, own=selection.own)
    for claim in judged if claims != "all" else ():
        if claim.name not in {verdict.claim for verdict in run.verdicts}:
            _log.warning("%s is not judged: it needs %s.", claim.name, claim.needs)
    return run


def _kept(keep: Keep | str) -> Keep:
    if keep not in list(Keep):
        raise unknown("keep", str(keep), list(Keep))
    return Keep(keep)


def conclude(
    measured: AuditRun,
    claims: Sequence[Claim],
    bounds: Bounds | None = None,
    *,
    own: tuple[Measure | Theory | Reference, ...] = (),
) -> Run:
    """Judge the claims, and write `summary.json`: statistics and verdicts together, once."""
    audits = [
        AuditedModel(model, measured.heads, measured.summary.observed(model), measured.protocol, measured.seed)
        for model in measured.models
    ]
    bounds = bounds or Bounds()
    judgement = judge(claims, audits, threshold=bounds.threshold, chance=bounds.chance, own=own)
    known = {**THEORIES, **{entry.name: entry for entry in own if isinstance(entry, Theory)}}
    theories = [known[name] for name in measured.settings.identity.settings.theories if name in known]
    own_measures = {entry.name: entry for entry in own if isinstance(entry, Measure)}
    references = Terms(own=own).references
    ranks = [
        rank(measured.heads, model, theories, bounds, references, own_measures)
        for model in measured.models
        if len(theories) > 1
    ]
    summary = replace(
        measured.summary,
        claims={claim.name: claim.words for claim in claims},
        verdicts=judgement.verdicts,
        ranking=tuple(entry for own_ranks in ranks for entry in own_ranks),
        best_theories=tuple(best for own_ranks in ranks for best in best_theories(own_ranks, theories)),
        levels=judgement.levels,
        threshold=bounds.threshold,
        chance=bounds.chance,
    )
    RunFolder(measured.path).write_summary(summary)
    return Run(measured.path, measured.settings, summary, measured.heads)


def _announce(plan: AuditPlan, selected: SelectedInputs, judged: Sequence[Claim], bounds: Bounds) -> None:
    """What will be computed, and before anybody has seen a number, what the verdicts will mean."""
    for model in plan.loaded:
        weights = (
            "RANDOM weights: this network is untrained, so its numbers say nothing about training"
            if model.weights_origin == "random"
            else f"weights {model.weights_origin}"
        )
        protocol = plan.settings.protocol.value
        _log.info("Auditing %s on %s, protocol %s, %s.", model.label, selected.words, protocol, weights)
    if judged:
        _log.info(
            "Heads are scored from 0, chance, to 1, the claim itself. A claim is supported if the whole confidence "
            "interval is at or above %g, refuted if all of it is below.",
            bounds.threshold,
        )
