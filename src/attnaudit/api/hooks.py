"""Which functions belong to which stage of an audit: the one table that the clock of `bench` goes by.

Functions, not names, so that none can be renamed without a change here. A new measure or source needs no entry.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import attnaudit.api as api_package
import attnaudit.audit as audit_package
import attnaudit.capture as capture_package
import attnaudit.claims as claims_package
import attnaudit.kernel as kernel_package
import attnaudit.measures as measures_package
import attnaudit.records as records_package
import attnaudit.report as report_package
import attnaudit.sources as sources_package
import attnaudit.theories as theories_package
from attnaudit.audit.fit_unit import FitUnit
from attnaudit.audit.ranking import rank
from attnaudit.audit.stages import ELSE, Hook
from attnaudit.audit.summary import statistics, summarise
from attnaudit.audit.unit import AuditWorker
from attnaudit.capture import capture
from attnaudit.claims.jury import judge
from attnaudit.kernel.best_projection import refined_projections
from attnaudit.kernel.eigen import leading_eigenvalues, spectrum
from attnaudit.kernel.gram import normalised_gram
from attnaudit.measures.assignment import matched
from attnaudit.measures.ceiling import Ceiling
from attnaudit.measures.evaluation import evaluate
from attnaudit.measures.measuring import (
    measure_fits,
    measure_heads,
    measure_network,
    measure_primal,
)
from attnaudit.measures.references.base import Reference
from attnaudit.measures.references.planted import values as planted_values
from attnaudit.measures.references.reparametrised import reparametrised
from attnaudit.measures.registry import MEASURES
from attnaudit.measures.sensitivity import measure_sensitivity
from attnaudit.records.engine import execute
from attnaudit.records.part_folder import PartFolder
from attnaudit.records.parts import encode_part
from attnaudit.records.rows import rows_of
from attnaudit.report.page import write_page
from attnaudit.report.references import reference_figure
from attnaudit.report.theory_map import theory_figure
from attnaudit.sources.images import ImageShard
from attnaudit.sources.model import load_model
from attnaudit.sources.selection import select_inputs
from attnaudit.sources.text_shards import TextShard
from attnaudit.theories.registry import THEORIES

#: Where functions are looked for.
PACKAGES: tuple[ModuleType, ...] = (
    api_package,
    audit_package,
    capture_package,
    claims_package,
    kernel_package,
    measures_package,
    records_package,
    report_package,
    sources_package,
    theories_package,
)
#: Stages in the order of an audit; those of measures are named after their files.
STAGES = (
    "imports",
    "load",
    "choose inputs",
    "read inputs",
    "forward and capture",
    "Gram",
    "eigen-solve",
    "singular vectors",
    "other predictions",
    "references",
    "assignment",
    *dict.fromkeys(f"measures: {measure.function.__module__.rpartition('.')[2]}" for measure in MEASURES.values()),
    "checks of numbers",
    "best projection",
    "refined projection",
    "evidence",
    "summary",
    "verdicts",
    "page",
    ELSE,
)
#: Theories that predict head by head, and the stage of those that take a decomposition of their own.
_PREDICTING = {name: theory for name, theory in THEORIES.items() if "predict" in vars(type(theory))}
_PREDICTED = {"ksvd": "singular vectors"}


def hooks() -> tuple[Hook, ...]:
    """All of them; made anew because measures are looked up as they are now."""
    return (
        Hook(_bootstrap()._find_and_load, "imports", _bootstrap(), "_find_and_load"),
        Hook(load_model, "load"),
        Hook(select_inputs, "choose inputs"),
        *(_method(shard, "prepare", "read inputs") for shard in (ImageShard, TextShard)),
        Hook(capture, "forward and capture"),
        Hook(normalised_gram, "Gram"),
        *(Hook(solver, "eigen-solve") for solver in (spectrum, leading_eigenvalues)),
        *(
            _method(type(theory), "predict", _PREDICTED.get(name, "other predictions"))
            for name, theory in _PREDICTING.items()
        ),
        _method(Reference, "apply", "references"),
        *(Hook(made, "references") for made in (planted_values, reparametrised)),
        Hook(matched, "assignment"),
        *(
            Hook(measure.function, f"measures: {measure.function.__module__.rpartition('.')[2]}", measure, "function")
            for measure in MEASURES.values()
        ),
        Hook(evaluate, "checks of numbers"),
        *(_method(Ceiling, name, "best projection") for name in ("add", "measure")),
        Hook(refined_projections, "refined projection"),
        *(Hook(stored, "evidence") for stored in (rows_of, encode_part)),
        *(_method(PartFolder, name, "evidence") for name in ("missing", "write")),
        *(_method(PartFolder, name, "summary") for name in ("evidence", "notes")),
        *(Hook(summing, "summary") for summing in (statistics, summarise)),
        *(Hook(judged, "verdicts") for judged in (judge, rank)),
        *(Hook(drawn, "page") for drawn in (write_page, reference_figure, theory_figure)),
        *(Hook(measuring, ELSE) for measuring in (measure_heads, measure_fits, measure_primal)),
        Hook(execute, None, begins="storing"),
        Hook(AuditWorker.compute, None, AuditWorker, "compute", _pass_of),
        Hook(measure_sensitivity, None, begins="sensitivity sample"),
        Hook(measure_network, None, begins="untrained twin"),
    )


def _method(owner: type, name: str, stage: str) -> Hook:
    return Hook(vars(owner)[name], stage, owner, name)


def _bootstrap() -> Any:
    """Python's own importer, which every import of a module that is not loaded yet goes through."""
    return importlib._bootstrap


def _pass_of(worker: AuditWorker, unit: Any, *following: Any) -> str:
    return "best projections" if isinstance(unit, FitUnit) else "heads and references"
