"""The Python front door: one call from a model and inputs to a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from torch import Tensor, nn

from attnaudit.audit import AuditSettings, Measured, measure, plan_audit, shard_size
from attnaudit.audit.ranking import rank
from attnaudit.claims.claim import Claim, RecordKind
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import claims_about, claims_named, theories_for
from attnaudit.errors import UsageError
from attnaudit.measures import DEFAULT_MEASURES, REFERENCES, Measure, Reference, select
from attnaudit.protocol import Protocol
from attnaudit.records.audited_model import AuditedModel
from attnaudit.records.engine import Progress, Resources, default_memory, parse_memory
from attnaudit.records.schema import OBSERVED
from attnaudit.report.run import Run
from attnaudit.sources.images import choose_images, find_images, image_shards
from attnaudit.sources.inputs import Shard, tensor_shards
from attnaudit.sources.model import LoadedModel, ModelSpec, parse_model, wrap_module
from attnaudit.sources.texts import passages, read_text, study_lines, text_shards
from attnaudit.statistics.decisions import THRESHOLD
from attnaudit.theories import Theory


def audit(
    model: nn.Module | str,
    inputs: Tensor | str | Path,
    *,
    weights: str | Path | None = None,
    random_weights: bool = False,
    download: bool = False,
    limit: int | None = None,
    seed: int = 0,
    protocol: Protocol | str = Protocol.EXACT,
    claims: Sequence[str | Claim] | None = None,
    references: Sequence[str | Reference] = tuple(REFERENCES),
    repeats: int = 1,
    theories: Sequence[str | Theory] = (),
    measures: Sequence[str | Measure] = DEFAULT_MEASURES,
    threshold: float = THRESHOLD,
    device: str = "cpu",
    workers: int = 1,
    cluster: str | None = None,
    memory: str | int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Run:
    """Audit every attention head of a model.

    Args:
        model: a torch module, or a name such as `"timm:deit_tiny_patch16_224"`, `"hf:bert-base-uncased"` or `"minilm"`.
        inputs: a batch tensor; or, for a named model, a folder of images or a text file or folder.
        weights: a local weights file for a named model.
        random_weights: audit a named model untrained, initialised from `seed`.
        download: allow the network for a named model's weights.
        limit: how many images or passages to draw; all if None.
        seed: of every random choice.
        protocol: `exact` or `paper`.
        claims: which claims to judge, all if None: names, see `attnaudit ls claims`, or claims of your own.
        references: which references to compute: names, see `attnaudit ls references`, or objects of your own; without
            a null and an ideal one no claim can be judged.
        repeats: how often each random reference is drawn.
        theories: theories to rank beside those the claims need: names, or objects of your own class.
        measures: which measures to compute: names, see `attnaudit ls measures`, or objects of your own.
        threshold: the score from which on a claim counts as met.
        device: where the model and the measures run.
        workers: processes, for named models.
        cluster: address of a dask scheduler whose workers do the work instead, for named models.
        memory: what the audit may take, as bytes or `"8GB"`; half of the machine's memory if None.
        out: the run folder; a temporary one if None. Repeating the call with the same folder resumes.
        progress: called with (units done, units in total, what is computed next).
    """
    allowed = default_memory() if memory is None else parse_memory(str(memory))
    resources = Resources(workers, cluster, allowed)
    judged = claims_about(RecordKind.AUDIT) if claims is None else claims_named(claims, RecordKind.AUDIT)
    selection = select(
        measures=measures,
        theories=(*theories_for(judged), *theories),
        references=references,
        repeats=repeats,
        seed=seed,
        protocol=Protocol(protocol),
    )
    settings = AuditSettings.of(selection, device)
    subject: ModelSpec | LoadedModel
    if isinstance(model, str):
        subject = parse_model(
            model,
            weights=None if weights is None else Path(weights),
            random_weights=random_weights,
            seed=seed,
            download=download,
        )
    else:
        subject = wrap_module(model)
    shards: Sequence[Shard]
    if isinstance(inputs, Tensor):
        shards = tensor_shards(inputs[:limit], shard_size(device))
    elif isinstance(subject, ModelSpec) and subject.reads_text:
        choose = study_lines if settings.protocol is Protocol.PAPER else passages
        shards = text_shards(choose(read_text(Path(inputs)), limit, seed), settings.protocol, shard_size())
    elif isinstance(subject, ModelSpec):
        root = Path(inputs)
        shards = image_shards(choose_images(find_images(root), root, limit, seed), shard_size(device))
    else:
        raise UsageError("A module given in memory needs a batch tensor as inputs: its preprocessing is not known.")
    plan = plan_audit([subject], shards, settings, selection.own)
    extra = {} if progress is None else {"progress": progress}
    measured = measure(plan, out=None if out is None else Path(out), resources=resources, **extra)
    return conclude(measured, plan.settings, judged, threshold)


def conclude(measured: Measured, settings: AuditSettings, claims: Sequence[Claim], threshold: float = THRESHOLD) -> Run:
    """Judge the claims, and write `summary.json`: statistics and verdicts together, once."""
    audits = [
        AuditedModel(model, measured.rows, groups.get(OBSERVED, {}), settings.protocol.value, settings.seed)
        for model, groups in measured.summary["models"].items()
    ]
    judgement = judge(claims, audits, threshold=threshold)
    ranking = [
        entry
        for audit in audits
        if len(settings.theories) > 1
        for entry in rank(audit.rows, audit.model, settings.theories, threshold=threshold, seed=settings.seed)
    ]
    summary = measured.summary | {
        "claims": {claim.name: {"statement": claim.statement, "theory": claim.theory} for claim in claims},
        "verdicts": [asdict(verdict) for verdict in judgement.verdicts],
        "ranking": [asdict(entry) for entry in ranking],
        "interval_level": judgement.level,
        "threshold": threshold,
    }
    measured.folder.write_summary(summary)
    return Run(
        measured.path,
        measured.rows,
        summary,
        judgement.verdicts,
        tuple(ranking),
        judgement.level,
        measured.keep_alive,
    )
